#include "model/reading.h"

#include <fmt/format.h>

#include <utility>

#include "base/number.h"
#include "model/parameters.h"

namespace llmperf::model {
namespace {

double elements(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& tensor : tensors) {
    sum += static_cast<double>(tensor.n) * static_cast<double>(tensor.k) * static_cast<double>(tensor.count);
  }
  return sum;
}

}  // namespace

bool is_sound(descriptor::Reader& reader, std::string_view key, descriptor::IntRange range) {
  const descriptor::Node* node = reader.find(key);
  if (node == nullptr || node->kind != descriptor::Node::Kind::scalar || node->quoted) return false;
  const std::optional<std::int64_t> value = parse_int(node->scalar);
  return value && *value >= range.min && *value <= range.max;
}

bool check_divisible(descriptor::Reader& reader, std::string_view key, std::int64_t value, std::string_view divisor_key,
                     std::int64_t divisor, std::string_view remedy) {
  if (value % divisor == 0) return true;
  const bool given = is_sound(reader, key, kHiddenRange);
  // A divisor that is absent is a default of the architecture, which is sound.
  if (!given || (reader.has(divisor_key) && !is_sound(reader, divisor_key, kHiddenRange))) return true;
  reader.problem(key, fmt::format("{} ({}) is not divisible by {} ({})", key, value, divisor_key, divisor),
                 std::string(remedy));
  return false;
}

std::int64_t derive_head_dim(descriptor::Reader& reader, std::string_view hidden_key, std::int64_t hidden,
                             std::string_view heads_key, std::int64_t heads, std::string_view head_dim_key) {
  if (hidden % heads == 0) return hidden / heads;
  check_divisible(reader, hidden_key, hidden, heads_key, heads,
                  head_dim_key.empty() ? std::string() : fmt::format("give {} if heads differ", head_dim_key));
  return 1;
}

void check_experts(descriptor::Reader& reader, std::string_view key, const Experts& experts) {
  if (experts.per_token <= experts.count || !is_sound(reader, key, kExpertRange)) return;
  reader.problem(key,
                 fmt::format("{} ({}) is more than the number of experts ({})", key, experts.per_token, experts.count));
}

std::string groups_problem(const Experts& experts) {
  if (experts.groups < 1 || experts.per_token > experts.count) return {};  // reported as such
  const std::int64_t size = experts.count / experts.groups;
  if (experts.count % experts.groups == 0 && experts.groups_per_token <= experts.groups &&
      experts.per_token <= experts.groups_per_token * size) {
    return {};
  }
  return fmt::format("{} of {} groups of {} experts cannot give a token its {}", experts.groups_per_token,
                     experts.groups, experts.count, experts.per_token);
}

std::string size_problem(const Decoder& model) {
  constexpr double kMostParameters = 1e15;
  double total = elements(outer_tensors(model));
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    total += static_cast<double>(model.count_of_kind(kind)) * elements(layer_tensors(model, model.kinds[kind]));
  }
  if (model.vision) total += static_cast<double>(count_parameters(*model.vision).total());
  if (total <= kMostParameters) return {};
  return fmt::format("the model has {:.1e} parameters, more than the {:.0e} supported", total, kMostParameters);
}

void check_size(const Decoder& model, descriptor::Reader& reader) {
  std::string problem = size_problem(model);
  if (!problem.empty()) reader.problems().add(reader.node(), std::move(problem));
}

}  // namespace llmperf::model
