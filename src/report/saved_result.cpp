#include "report/saved_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/node.h"

namespace llmperf::report {
namespace {

using descriptor::Node;

// The numbers shown of each kind of result, in this order.
constexpr std::array kGenerationFigures = {"ttft_s",
                                           "tpot_s",
                                           "total_s",
                                           "tokens_per_second",
                                           "prefill_tokens_per_second",
                                           "decode_tokens_per_second",
                                           "memory.total_bytes",
                                           "memory.weight_bytes",
                                           "memory.kv_cache_bytes",
                                           "memory.capacity_bytes",
                                           "largest_batch",
                                           "longest_context_tokens"};
constexpr std::array kVideoFigures = {"step_s",
                                      "generation_s",
                                      "step_utilisation",
                                      "generation_utilisation",
                                      "memory.total_bytes",
                                      "memory.weight_bytes",
                                      "memory.capacity_bytes"};
constexpr std::array kTrainingFigures = {"step_s",      "tokens_per_second",  "mfu",
                                         "compute_s",   "bubble_s",           "gradient_exposed_s",
                                         "optimizer_s", "memory.total_bytes", "memory.capacity_bytes"};

std::span<const char* const> figures_of(ResultKind kind) {
  switch (kind) {
    case ResultKind::generation: return kGenerationFigures;
    case ResultKind::video: return kVideoFigures;
    case ResultKind::training: return kTrainingFigures;
  }
  return {};
}

class Reader {
 public:
  Reader(const descriptor::Document& document, SavedResult& result) : file_(document.file), result_(result) {
    read(document.root);
  }

 private:
  [[noreturn]] void fail(const Node& at, std::string message, std::string hint = {}) const {
    throw Error(ErrorKind::bad_input, {{{file_, at.line, at.column}, std::move(message), std::move(hint)}});
  }
  static const Node* find(const Node& object, std::string_view key) {
    for (const Node::Entry& e : object.entries) {
      if (e.key == key) return &e.value;
    }
    return nullptr;
  }
  const Node& get(const Node& object, std::string_view key, Node::Kind kind, const char* what) const {
    const Node* node = find(object, key);
    if (node == nullptr)
      fail(object, fmt::format("'{}' is missing", key), "is this what llmperf estimate --json wrote?");
    if (node->kind != kind) fail(*node, fmt::format("'{}' is not {}", key, what));
    return *node;
  }
  std::string text(const Node& object, std::string_view key) const {
    const Node& node = get(object, key, Node::Kind::scalar, "text");
    if (!node.quoted) fail(node, fmt::format("'{}' is not text", key));
    return node.scalar;
  }
  std::string text_or_empty(const Node& object, std::string_view key) const {
    const Node* node = find(object, key);
    return node == nullptr || node->kind == Node::Kind::null ? std::string() : text(object, key);
  }
  double number(const Node& node, std::string_view key) const {
    const auto value = node.kind == Node::Kind::scalar && !node.quoted ? parse_double(node.scalar) : std::nullopt;
    if (!value) fail(node, fmt::format("'{}' is not a number", key));
    return *value;
  }
  double number_of(const Node& object, std::string_view key) const {
    return number(get(object, key, Node::Kind::scalar, "a number"), key);
  }
  double amount_of(const Node& object, std::string_view key) const {
    const double value = number_of(object, key);
    if (value < 0) fail(*find(object, key), fmt::format("'{}' is negative", key));
    return value;
  }
  double amount_or_none(const Node& object, std::string_view key) const {
    return find(object, key) == nullptr ? 0 : amount_of(object, key);
  }
  const std::vector<Node>& list(const Node& object, std::string_view key) const {
    return get(object, key, Node::Kind::sequence, "a list").items;
  }
  void check_object(const Node& node, const char* what) const {
    if (node.kind != Node::Kind::mapping) fail(node, fmt::format("{} is not an object", what));
  }

  void read(const Node& root) {
    check_object(root, "the document");
    const std::string schema = text(root, "schema");
    if (schema != "llmperf.estimate" && schema != "llmperf.training") {
      fail(*find(root, "schema"), fmt::format("{} is not a result that can be compared", quote(schema)),
           "llmperf estimate --export FILE.json writes one");
    }
    if (number_of(root, "schema_version") != 1) {
      fail(*find(root, "schema_version"), "schema_version is not 1: written by another version of llmperf");
    }
    result_.kind = schema == "llmperf.training"            ? ResultKind::training
                   : find(root, "generation_s") != nullptr ? ResultKind::video
                                                           : ResultKind::generation;
    result_.version = text(get(root, "tool", Node::Kind::mapping, "an object"), "version");
    result_.label = text_or_empty(root, "label");
    const Node& fits = get(root, "fits", Node::Kind::scalar, "true or false");
    if (fits.quoted || (fits.scalar != "true" && fits.scalar != "false")) fail(fits, "'fits' is not true or false");
    result_.fits = fits.scalar == "true";
    add_inputs("", get(root, "inputs", Node::Kind::mapping, "an object"));
    for (const char* key : figures_of(result_.kind)) add_figure(root, key);
    if (const Node* bands = find(root, "error_band"); bands != nullptr) add_bands(*bands);
    for (const Node& phase : list(root, "phases")) add_phase(phase);
  }

  void add_figure(const Node& root, const std::string& key) {
    const std::size_t dot = key.find('.');
    const Node& object =
        dot == std::string::npos ? root : get(root, key.substr(0, dot), Node::Kind::mapping, "an object");
    const Node* node = find(object, dot == std::string::npos ? key : key.substr(dot + 1));
    if (node == nullptr) fail(object, fmt::format("'{}' is missing", key));
    result_.figures.push_back({key, node->kind == Node::Kind::null ? std::nullopt : std::optional(number(*node, key))});
  }

  void add_bands(const Node& bands) {
    check_object(bands, "'error_band'");
    for (const Node::Entry& e : bands.entries) {
      if (e.value.kind == Node::Kind::null) continue;
      check_object(e.value, "an error band");
      result_.bands.push_back({e.key, number_of(e.value, "low_s"), number_of(e.value, "high_s")});
    }
  }

  void add_phase(const Node& node) {
    check_object(node, "a phase");
    SavedPhase& phase = result_.phases.emplace_back();
    phase.name = text(node, "name");
    phase.bound = text_or_empty(node, "bound");
    phase.steps = amount_of(node, "steps");
    phase.time = amount_of(node, "time_s");
    phase.overlapped = amount_or_none(node, "overlapped_s");
    // Of a training step the last digits of nothing may be negative.
    if (find(node, "pipelined_s") != nullptr) phase.pipelined = number_of(node, "pipelined_s");
    phase.flops = amount_of(node, "flops");
    phase.bytes = amount_of(node, "bytes");
    for (const Node& op : list(node, "ops")) add_op(op, phase);
  }

  void add_op(const Node& node, SavedPhase& phase) {
    check_object(node, "an op");
    SavedOp& op = phase.ops.emplace_back();
    op.name = text(node, "name");
    op.place = text_or_empty(node, "place");
    op.shape = text_or_empty(node, "shape");
    op.weights = text_or_empty(node, "weights");
    op.bound = text_or_empty(node, "bound");
    op.count = amount_of(node, "count");
    op.time = amount_of(node, "time_s");
    op.flops = amount_of(node, "flops");
    op.bytes = amount_of(node, "bytes");
    op.network = amount_or_none(node, "network_bytes");
  }

  // ---- Inputs: every scalar by its path. Of what has a name, a value or a text that one stands for the whole, and
  // where it comes from is left out.
  static bool names_the_rest(std::string_view key) { return key == "name" || key == "value" || key == "text"; }
  static bool is_origin(std::string_view key) {
    return key == "source" || key == "title" || key == "provenance" || key == "host_source" || key == "measured_on" ||
           key == "class_default";
  }
  static SavedValue scalar_value(const Node& node) {
    if (node.kind != Node::Kind::scalar) return std::monostate();
    if (node.quoted) return node.scalar;
    if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
    if (const auto value = parse_double(node.scalar)) return *value;
    return node.scalar;
  }
  static std::string list_text(const Node& node) {
    std::vector<std::string> items;
    for (const Node& item : node.items) items.push_back(item.kind == Node::Kind::scalar ? item.scalar : "…");
    return join(items, ", ");
  }
  void add_inputs(const std::string& path, const Node& object) {
    for (const Node::Entry& e : object.entries) {
      if (is_origin(e.key)) continue;
      if (path == "plan" && e.key != "text") continue;  // which says the rest
      std::string name = path;
      if (path.empty() || !names_the_rest(e.key)) name += (path.empty() ? "" : ".") + e.key;
      if (name.starts_with("hardware.figures.")) name.erase(0, std::string_view("hardware.figures.").size());
      if (e.value.kind == Node::Kind::mapping) {
        add_inputs(name == "hardware.figures" ? "hardware.figures" : name, e.value);
      } else if (e.value.kind == Node::Kind::sequence) {
        result_.inputs.push_back({name, list_text(e.value)});
      } else {
        result_.inputs.push_back({name, scalar_value(e.value)});
      }
    }
  }

  const std::string& file_;
  SavedResult& result_;
};

}  // namespace

std::string_view name(ResultKind kind) {
  constexpr std::string_view names[] = {"an estimate of a generation", "an estimate of generated video",
                                        "an estimate of a training step"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<double> SavedResult::figure(std::string_view key) const {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const SavedFigure& f) { return f.key == key; });
  return found == figures.end() ? std::nullopt : found->value;
}

const SavedBand* SavedResult::band(std::string_view phase) const {
  const auto found = std::find_if(bands.begin(), bands.end(), [&](const SavedBand& b) { return b.phase == phase; });
  return found == bands.end() ? nullptr : &*found;
}

SavedResult read_result(std::string_view text, const std::string& source) {
  SavedResult result;
  result.source = source;
  Reader(descriptor::parse_json(text, source, {.max_bytes = kMaxResultBytes}), result);
  return result;
}

}  // namespace llmperf::report
