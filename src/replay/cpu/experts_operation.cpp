// The routed experts of a layer: rows are gathered by expert, every expert that has any multiplies them by its two
// matrices, and the results of a token's experts are added up. Each product is divided among all threads as one that
// stands alone is; between the products of different experts nobody waits for anybody.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

using measure::ExpertsShape;

constexpr std::int64_t kActivationGrain = 512;  // elements: whole cache lines of any type

// Tokens of each expert that this device holds, as operands.h deals them.
std::vector<std::vector<std::int64_t>> deal(const ExpertsShape& s) {
  std::vector<std::vector<std::int64_t>> tokens(static_cast<std::size_t>(s.experts / s.ep));
  if (const std::optional<double> exponent = measure::drawn_exponent(s.distribution)) {
    const std::vector<std::int64_t> counts = graph::drawn_counts(*exponent, s.experts, s.topk, s.m);
    std::int64_t row = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const bool here = rank % static_cast<std::size_t>(s.ep) == 0;
      for (std::int64_t i = 0; i < counts[rank]; ++i, ++row) {
        if (here) tokens[rank / static_cast<std::size_t>(s.ep)].push_back(row % s.m);
      }
    }
    return tokens;
  }
  for (std::int64_t row = 0; row < s.m * s.topk; ++row) {
    const std::int64_t expert = row % s.experts;
    if (expert % s.ep == 0) tokens[static_cast<std::size_t>(expert / s.ep)].push_back(row / s.topk);
  }
  return tokens;
}

struct Expert {
  std::int64_t rows;
  Product up;  // gate and up in one where there is a gate
  Product down;
};
// A row of x on its way to an expert.
struct Row {
  const std::byte* from;
  std::byte* to;
};

// The experts that have rows, and what lies between their products.
struct Experts {
  std::vector<Expert> experts;
  std::vector<Row> rows;
  std::vector<std::vector<const void*>> picks;  // of each token: its rows of results
};

}  // namespace

Operated make_experts(const Workshop& shop, Dtype dtype, const ExpertsShape& s, std::int64_t asked) {
  const Element type = element_of(dtype, "moe");
  require(!s.products, "the products of experts run among what is around them (op moe)");
  require(s.weights.empty(), fmt::format("no experts here read weights stored as {}", s.weights));
  require(s.distribution != measure::kUniform, "no experts are drawn at random here: balanced or power_law_A");
  require(s.topk >= 1 && s.topk <= s.experts && s.ep >= 1 && s.experts % s.ep == 0 && s.tp >= 1 && s.inter % s.tp == 0,
          "its experts cannot be divided so");
  const std::int64_t width = s.inter / s.tp;
  bytes_of_tensor({s.experts, 3, s.hidden, width}, Element::f32);  // places in the weights of all can be counted
  const auto rows = bytes_of_tensor({s.m, s.topk, 2 * s.hidden + 3 * width}, Element::f32);
  const auto others = 2 * rows + bytes_of_tensor({s.experts, 64}, Element::s8);
  shop.copies(1, 0, others);  // fits, before anything of that size is made
  const std::vector<std::vector<std::int64_t>> tokens = deal(s);
  const std::int64_t active =
      std::ssize(tokens) - std::count_if(tokens.begin(), tokens.end(), [](const auto& t) { return t.empty(); });
  const std::int64_t weights = bytes_of_tensor({active, measure::has_gate(s) ? 3 : 2, s.hidden, width}, type);
  const std::int64_t copies = shop.copies(asked, weights, others);

  auto op = std::make_unique<Operation>(shop, copies);
  const std::int64_t row_bytes = s.hidden * bytes_of(type);
  const std::byte* x = op->input(type, s.m * s.hidden, {.operand = 0});
  std::byte* y = op->output(type, s.m * s.hidden);
  const auto product = [&](std::uint32_t operand, std::size_t expert, std::int64_t n, std::int64_t k, double scale) {
    GemmPlan plan = plan_of(dtype, {.m = std::ssize(tokens[expert]), .n = n, .k = k});
    plan.copies = copies;
    plan.weights.operand = operand;
    plan.weights.scale = static_cast<float>(scale / std::sqrt(static_cast<double>(k)));
    plan.weights.first = static_cast<std::int64_t>(expert) * n * k;
    plan.joined = true;
    return make_product(shop, plan);
  };
  const auto all = std::make_shared<Experts>();
  all->picks.resize(static_cast<std::size_t>(s.m));
  for (std::size_t e = 0; e < tokens.size(); ++e) {
    if (tokens[e].empty()) continue;
    Expert& expert = all->experts.emplace_back();
    expert.rows = std::ssize(tokens[e]);
    expert.up = product(1, e, (measure::has_gate(s) ? 2 : 1) * width, s.hidden, 1);
    expert.down = product(2, e, s.hidden, width, 1 / static_cast<double>(s.topk));
    for (std::int64_t i = 0; i < expert.rows; ++i) {
      const std::int64_t token = tokens[e][static_cast<std::size_t>(i)];
      all->rows.push_back({x + token * row_bytes, expert.up.x + i * row_bytes});
      all->picks[static_cast<std::size_t>(token)].push_back(expert.down.y + i * row_bytes);
    }
  }
  const TypedKernels& kernels = shop.kernels->of(type);
  const RowKernel activation = measure::has_gate(s) ? kernels.gated_silu : kernels.silu;
  op->execute = [=, &kernels, m = s.m, hidden = s.hidden](const Team& team, std::int64_t turn) {
    const Range gathered = part_of(std::ssize(all->rows), 1, team.thread, team.threads);
    for (std::int64_t i = gathered.first; i < gathered.last; ++i) {
      const Row& row = all->rows[static_cast<std::size_t>(i)];
      std::memcpy(row.to, row.from, static_cast<std::size_t>(row_bytes));
    }
    team.wait();
    for (const Expert& expert : all->experts) expert.up.op->execute(team, turn);
    team.wait();
    for (const Expert& expert : all->experts) {
      const Range share = part_of(expert.rows * width, kActivationGrain, team.thread, team.threads);
      RowArgs args{.in = {expert.up.y}, .out = {expert.down.x}, .width = width};
      if (share.size() > 0) activation(args, share.first, share.last);
    }
    team.wait();
    for (const Expert& expert : all->experts) expert.down.op->execute(team, turn);
    team.wait();
    const Range share = part_of(m, 1, team.thread, team.threads);
    for (std::int64_t t = share.first; t < share.last; ++t) {
      const std::vector<const void*>& picks = all->picks[static_cast<std::size_t>(t)];
      if (picks.empty()) continue;  // all are elsewhere, and y is zero
      kernels.sum(picks.data(), std::ssize(picks), y + t * row_bytes, 0, hidden);
    }
  };
  op->failure = [all] {
    std::string failure;
    for (const Expert& expert : all->experts) failure += expert.up.op->failure() + expert.down.op->failure();
    return failure;
  };
  return op;
}

}  // namespace llmperf::replay::cpu
