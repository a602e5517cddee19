// Which tensor of a file is which of the model's. A file may hold a matrix in other pieces than gguf_tensors expects;
// every such form that llama.cpp's converter has written is put together here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <unordered_set>

#include "base/text.h"
#include "model/gguf_decoder.h"
#include "model/gguf_index.h"
#include "model/gguf_problems.h"

namespace llmperf::model {
namespace {

using Shape = std::array<std::int64_t, 4>;

// Frequencies of scaled rotary embeddings: not weights, and a few hundred bytes.
constexpr std::string_view kPositionTables[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                                "rope_factors_short.weight", "attn_rot_embd.weight"};
// The halves of attn_kv_b, in files that also hold the whole.
constexpr std::string_view kCopies[] = {"attn_k_b.weight", "attn_v_b.weight"};

Shape shape_of(const GgufTensor& tensor) {
  if (tensor.is_vector()) return {tensor.n, tensor.count, 1, 1};
  return {tensor.k, tensor.n, tensor.count, 1};
}

// Innermost first, as llama.cpp prints it.
std::string shape_text(const Shape& shape) {
  std::size_t dimensions = shape.size();
  while (dimensions > 1 && shape[dimensions - 1] == 1) --dimensions;
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dimensions), ", "));
}

// "blk.12.attn_q.weight" as 12 and "attn_q.weight"; the layer is -1 outside the layers.
struct PlacedName {
  int layer = -1;
  std::string_view stem;
};
PlacedName parse_name(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  constexpr std::size_t kMostDigits = 6;
  if (!name.starts_with(kPrefix)) return {-1, name};
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t dot = rest.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot > kMostDigits) return {-1, name};
  int layer = 0;
  for (const char digit : rest.substr(0, dot)) {
    if (digit < '0' || digit > '9') return {-1, name};
    layer = 10 * layer + (digit - '0');
  }
  return {layer, rest.substr(dot + 1)};
}

const std::string_view* find_stem(std::span<const std::string_view> stems, std::string_view stem) {
  const auto found = std::find(stems.begin(), stems.end(), stem);
  return found == stems.end() ? nullptr : &*found;
}

class Matcher {
 public:
  explicit Matcher(const GgufFile& file) : file_(file), index_(file), problems_(file) {}

  std::vector<GgufTensor> match(const Decoder& model) {
    const bool whole = index_.find(0, "attn_kv_b.weight") != nullptr;
    const bool halves = index_.find(0, "attn_k_b.weight") != nullptr;
    std::vector<GgufTensor> tensors = gguf_tensors(model, {.split_kv_b = halves && !whole});
    for (GgufTensor& tensor : tensors) match(tensor);
    add_others(tensors, whole && halves);
    problems_.throw_if_any();
    return tensors;
  }

 private:
  void match(GgufTensor& tensor) {
    const std::string name = tensor.name();
    if (const GgufTensorInfo* info = index_.find(name)) {
      take(*info, shape_of(tensor), tensor);
    } else if (!match_fused_experts(tensor) && !match_single_experts(tensor)) {
      problems_.add(fmt::format("missing tensor {} {}", name, shape_text(shape_of(tensor))));
    }
  }

  // Gives `tensor` the type of `info` if that has the shape.
  void take(const GgufTensorInfo& info, const Shape& shape, GgufTensor& tensor) {
    used_.insert(&info);
    if (info.shape != shape) {
      problems_.add(info, fmt::format("tensor {} is {}, expected {}", quote(info.name), shape_text(info.shape),
                                      shape_text(shape)));
    } else {
      check_type(info, tensor.is_vector());
    }
    tensor.type = info.type;
  }

  void check_type(const GgufTensorInfo& tensor, bool is_vector) {
    const GgmlTypeInfo& type = model::info(tensor.type);
    if (!type.weights) {
      problems_.add(tensor,
                    fmt::format("tensor {} is of type {}, which does not hold weights", quote(tensor.name), type.name));
    } else if (is_vector && type.block > 1) {
      problems_.add(tensor, fmt::format("tensor {} is of type {}: llama.cpp does not quantise norms, biases and tables",
                                        quote(tensor.name), type.name));
    }
  }

  // Since 2026 the converter can leave the gate and up matrices of experts in one tensor.
  bool match_fused_experts(GgufTensor& tensor) {
    if (tensor.role != Role::expert_gate && tensor.role != Role::expert_up) return false;
    const GgufTensorInfo* info = index_.find(tensor.layer, "ffn_gate_up_exps.weight");
    if (info == nullptr) return false;
    // Both halves ask for it: a wrong shape is reported once.
    if (tensor.role == Role::expert_up && used_.contains(info)) {
      tensor.type = info->type;
    } else {
      take(*info, {tensor.k, 2 * tensor.n, tensor.count, 1}, tensor);
    }
    return true;
  }

  // Until April 2024 Mixtral's experts were tensors of their own: blk.0.ffn_gate.7.weight.
  bool match_single_experts(GgufTensor& tensor) {
    constexpr std::string_view kEnding = "_exps.weight";
    if (!tensor.stem.ends_with(kEnding)) return false;
    const std::string_view base = tensor.stem.substr(0, tensor.stem.size() - kEnding.size());
    const auto find = [&](std::int64_t expert) {
      return index_.find(tensor.layer, fmt::format("{}.{}.weight", base, expert));
    };
    const GgufTensorInfo* first = find(0);
    if (first == nullptr) return false;
    for (std::int64_t expert = 0; expert < tensor.count; ++expert) {
      const GgufTensorInfo* info = find(expert);
      if (info == nullptr) {
        problems_.add(fmt::format("missing tensor blk.{}.{}.{}.weight", tensor.layer, base, expert));
        break;
      }
      if (info->type != first->type) {
        problems_.add(*info,
                      fmt::format("tensor {} is of type {}, the layer's other experts of type {}", quote(info->name),
                                  model::info(info->type).name, model::info(first->type).name));
      }
      take(*info, {tensor.k, tensor.n, 1, 1}, tensor);
    }
    return true;
  }

  // What the file has beyond the model: position tables at the end of `tensors`, copies nowhere, the rest is wrong.
  void add_others(std::vector<GgufTensor>& tensors, bool has_copies) {
    for (const GgufTensorInfo& info : file_.tensors) {
      if (used_.contains(&info)) continue;
      const PlacedName name = parse_name(info.name);
      if (const std::string_view* table = find_stem(kPositionTables, name.stem)) {
        check_type(info, true);
        tensors.push_back({.stem = *table, .layer = name.layer, .n = info.elements(), .type = info.type});
      } else if (!has_copies || find_stem(kCopies, name.stem) == nullptr) {
        problems_.add(info, fmt::format("unexpected tensor {} {}", quote(info.name), shape_text(info.shape)));
      }
    }
  }

  const GgufFile& file_;
  GgufIndex index_;
  GgufProblems problems_;
  std::unordered_set<const GgufTensorInfo*> used_;
};

}  // namespace

std::vector<GgufTensor> match_tensors(const Decoder& model, const GgufFile& file) { return Matcher(file).match(model); }

}  // namespace llmperf::model
