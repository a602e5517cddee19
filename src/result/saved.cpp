#include "result/saved.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "result/generation.h"
#include "result/training.h"
#include "result/video.h"

namespace llmperf::result {
namespace {

using descriptor::Node;

constexpr JudgedTime kGenerationTimes[] = {{"ttft_s", "TTFT", "prefill"}, {"tpot_s", "TPOT", "decode"}};
constexpr JudgedTime kVideoTimes[] = {{"generation_s", "the generation", "generation"}};
constexpr JudgedTime kTrainingTimes[] = {{"step_s", "the step"}};
constexpr SavedKind kKinds[] = {
    {"llmperf.training", "an estimate of a training step", "",
     "step_s tokens_per_second mfu compute_s bubble_s gradient_exposed_s optimizer_s cost_per_million_tokens "
     "memory.total_bytes memory.capacity_bytes",
     "step_s", kTrainingTimes, &type_of<Training>},
    {"llmperf.estimate", "an estimate of generated video", "generation_s",
     "step_s generation_s step_utilisation generation_utilisation cost_per_generation memory.total_bytes "
     "memory.weight_bytes memory.capacity_bytes",
     "generation_s", kVideoTimes, &type_of<Video>},
    {"llmperf.estimate", "an estimate of a generation", "",
     "ttft_s tpot_s total_s tokens_per_second prefill_tokens_per_second decode_tokens_per_second "
     "cost_per_million_input_tokens cost_per_million_output_tokens joules_per_output_token memory.total_bytes "
     "memory.weight_bytes memory.kv_cache_bytes memory.capacity_bytes largest_batch longest_context_tokens",
     "total_s", kGenerationTimes, &type_of<Generation>},
};

const Node* member(const Node& object, std::string_view key) {
  for (const Node::Entry& e : object.entries) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const Node& root, SavedResult& result) const {
    if (root.kind != Node::Kind::mapping) fail(root, "the document is not an object");
    const Node& schema = need(root, "schema");
    for (const SavedKind& kind : kKinds) {
      const bool marked = kind.mark.empty() || member(root, kind.mark) != nullptr;
      if (result.kind == nullptr && kind.schema == schema.scalar && marked) result.kind = &kind;
    }
    if (result.kind == nullptr) {
      fail(schema, fmt::format("{} is not a result that can be compared", quote(schema.scalar)),
           "llmperf estimate --export FILE.json writes one");
    }
    const Node& version = need(root, "schema_version");
    if (version.scalar != "1") fail(version, "schema_version is not 1: written by another version of llmperf");
    for (const char* key : {"inputs", "fits", "phases"}) need(root, key);
    check_object(root, "the document", result.kind->type());
    result.version = need(need(root, "tool"), "version").scalar;
    if (const Node* label = find(root, "label")) result.label = label->scalar;
    result.fits = need(root, "fits").scalar == "true";
  }

 private:
  [[noreturn]] void fail(const Node& at, std::string message, std::string hint = {}) const {
    throw Error(ErrorKind::bad_input, {{{file_, at.line, at.column}, std::move(message), std::move(hint)}});
  }
  const Node& need(const Node& object, std::string_view key) const {
    const Node* node = member(object, key);
    if (node == nullptr)
      fail(object, fmt::format("'{}' is missing", key), "is this what llmperf estimate --json wrote?");
    return *node;
  }

  void check_object(const Node& node, std::string_view key, const Type& type) const {
    if (node.kind != Node::Kind::mapping) fail(node, fmt::format("'{}' is not an object", key));
    for (const Field& field : type.fields) {
      if (field.in == In::row) continue;
      if (field.spread) {
        check_object(node, key, field.shape.type());
      } else if (const Node* value = member(node, field.key)) {
        check(*value, field.key, field.shape, field.shape.lists);
      }
    }
  }

  // Null stands for a number that is none, wherever numbers stand.
  void check(const Node& node, std::string_view key, const Shape& shape, int lists) const {
    if (node.kind == Node::Kind::null) return;
    if (lists > 0) {
      if (node.kind != Node::Kind::sequence) fail(node, fmt::format("'{}' is not a list", key));
      for (const Node& item : node.items) check(item, key, shape, lists - 1);
      return;
    }
    if (shape.map) {
      for (const Node::Entry& e : node.entries) check(e.value, e.key, {.kind = shape.kind, .type = shape.type}, 0);
      return;
    }
    const bool bare = node.kind == Node::Kind::scalar && !node.quoted;
    switch (shape.kind) {
      case Kind::object: return check_object(node, key, shape.type());
      case Kind::any: return;
      case Kind::text:
        if (!node.quoted) fail(node, fmt::format("'{}' is not text", key));
        return;
      case Kind::truth:
        if (!bare || (node.scalar != "true" && node.scalar != "false"))
          fail(node, fmt::format("'{}' is not true or false", key));
        return;
      case Kind::integer:
      case Kind::number: {
        const auto value = bare ? parse_double(node.scalar) : std::nullopt;
        if (!value) fail(node, fmt::format("'{}' is not a number", key));
        if (*value < 0 && key == "time_s") fail(node, "'time_s' is negative");
      }
    }
  }

  const std::string& file_;
};

}  // namespace

const Node* find(const Node& object, std::string_view path) {
  const Node* at = &object;
  for (const std::string_view key : split(path, '.')) {
    at = member(*at, key);
    if (at == nullptr || at->kind == Node::Kind::null) return nullptr;
  }
  return at;
}

std::optional<double> SavedResult::figure(std::string_view path) const {
  const Node* node = find(document.root, path);
  return node ? parse_double(node->scalar) : std::nullopt;
}

SavedResult read_result(std::string_view text, const std::string& source) {
  SavedResult result;
  result.source = source;
  result.document = descriptor::parse_json(text, source, {.max_bytes = kMaxResultBytes});
  Reader(source).read(result.document.root, result);
  return result;
}

}  // namespace llmperf::result
