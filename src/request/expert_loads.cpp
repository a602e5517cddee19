// Files of expert loads, as sources.h has them.
#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "descriptor/reader.h"
#include "request/sources.h"

namespace llmperf::request {
namespace {

using descriptor::Node;

std::vector<double> read_row(const Node& row, const std::string& model, const model::Experts& x,
                             descriptor::Problems& problems) {
  constexpr double kMost = 1e18;
  std::vector<double> loads;
  for (const Node& item : row.items) {
    loads.push_back(parse_double(item.scalar).value_or(-1));
    if (loads.back() >= 0 && loads.back() <= kMost) continue;
    problems.add(item, fmt::format("{} is no load of an expert", quote(item.scalar)), "tokens, or a share: 0 or more");
  }
  const auto given = static_cast<std::int64_t>(loads.size());
  const std::int64_t busy = given - std::ranges::count(loads, 0.0);
  if (given != x.count) {
    problems.add(row, fmt::format("loads of {} experts: {} has {}", given, model, x.count),
                 "one of each expert, with those of its copies");
  } else if (busy < x.per_token) {
    problems.add(row, fmt::format("{} experts have tokens, and every token goes to {}", busy, x.per_token));
  }
  return loads;
}

}  // namespace

std::shared_ptr<const graph::MeasuredLoads> load_expert_loads(const std::string& path, const model::Decoder& model) {
  descriptor::Problems problems(path);
  Node file = path.ends_with(".csv") ? descriptor::read_csv_file(path, problems)
                                     : descriptor::parse_file(path, descriptor::kConfigRules).root;
  if (const Node* counts = file.find("logical_count")) file = Node(*counts);
  const bool one = !file.items.empty() && file.items.front().kind == Node::Kind::scalar;
  const std::vector<Node> rows = one ? std::vector<Node>{file} : file.items;
  std::vector<const model::Experts*> routed;  // of each layer
  for (const unsigned char kind : model.layer_kinds) {
    const auto& experts = model.kinds[kind].feed_forward.experts;
    routed.push_back(experts ? &*experts : nullptr);
  }
  const std::size_t layers = routed.size();
  if (rows.size() != layers) std::erase(routed, nullptr);
  if (rows.size() != layers && rows.size() != routed.size() && rows.size() != 1) {
    problems.add(file,
                 fmt::format("loads of {} layers: {} has {} with experts", rows.size(), model.name, routed.size()),
                 fmt::format("a list for each of them, for each of all {}, or one for all", layers));
  }
  problems.throw_if_any();
  std::vector<std::vector<double>> loads;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (routed[i]) loads.push_back(read_row(rows[i], model.name, *routed[i], problems));
  }
  problems.throw_if_any();
  return std::make_shared<const graph::MeasuredLoads>(path, std::move(loads));
}

}  // namespace llmperf::request
