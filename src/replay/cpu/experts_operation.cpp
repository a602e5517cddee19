// The routed experts of a layer: rows are gathered by expert, every expert that has any multiplies them by its two
// matrices, and the results of a token's experts are added up. Each product is divided among all threads as one that
// stands alone is; between the products of different experts nobody waits for anybody.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "replay/cpu/gemm_operation.h"

namespace llmperf::replay::cpu {
namespace {

using calibrate::ExpertsShape;

constexpr std::int64_t kActivationGrain = 512;  // elements: whole cache lines of any type

// Tokens of each expert that this device holds, as operands.h deals them.
std::vector<std::vector<std::int64_t>> deal(const ExpertsShape& s) {
  const std::int64_t held = s.experts / s.ep;
  std::vector<std::vector<std::int64_t>> tokens(static_cast<std::size_t>(held));
  if (const std::optional<double> exponent = calibrate::drawn_exponent(s.distribution)) {
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
    if (row % s.experts < held) tokens[static_cast<std::size_t>(row % s.experts)].push_back(row / s.topk);
  }
  return tokens;
}

class ExpertsOperation final : public Operation {
 public:
  ExpertsOperation(const Workshop& shop, Dtype dtype, Element element, const ExpertsShape& s,
                   const std::vector<std::vector<std::int64_t>>& tokens, std::int64_t copies)
      : Operation(copies),
        kernels_(element == Element::f32 ? shop.kernels->f32 : shop.kernels->bf16),
        element_(element),
        shape_(s),
        row_bytes_(s.hidden * bytes_of(element)),
        picks_(static_cast<std::size_t>(s.m)) {
    const std::int64_t up_columns = (calibrate::has_gate(s) ? 2 : 1) * width();
    x_ = filled(*shop.pool, element, s.m * s.hidden, 1, {.operand = 0});
    y_ = zeroed(*shop.pool, s.m * row_bytes_);
    const auto scratch = std::make_shared<GemmScratch>();
    const auto product = [&](std::uint32_t operand, std::size_t expert, std::int64_t n, std::int64_t k, double scale) {
      GemmPlan plan = plan_of(dtype, {.m = static_cast<std::int64_t>(tokens[expert].size()), .n = n, .k = k});
      plan.copies = copies;
      plan.weights.operand = operand;
      plan.weights.scale = static_cast<float>(scale / std::sqrt(static_cast<double>(k)));
      plan.weights.first = static_cast<std::int64_t>(expert) * n * k;
      plan.scratch = scratch;
      plan.joined = true;
      return make_product(shop, plan);
    };
    for (std::size_t e = 0; e < tokens.size(); ++e) {
      if (tokens[e].empty()) continue;
      Expert expert{.rows = static_cast<std::int64_t>(tokens[e].size()),
                    .up = product(1, e, up_columns, s.hidden, 1),
                    .down = product(2, e, s.hidden, width(), 1 / static_cast<double>(s.topk))};
      for (std::int64_t i = 0; i < expert.rows; ++i) {
        const std::int64_t token = tokens[e][static_cast<std::size_t>(i)];
        rows_.push_back({x_.data() + token * row_bytes_, expert.up->x() + i * row_bytes_});
        picks_[static_cast<std::size_t>(token)].push_back(expert.down->y() + i * row_bytes_);
      }
      experts_.push_back(std::move(expert));
    }
  }

  void execute(const Team& team, std::int64_t turn) override {
    const Range rows = part_of(static_cast<std::int64_t>(rows_.size()), 1, team.thread, team.threads);
    for (std::int64_t i = rows.first; i < rows.last; ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      std::memcpy(row.to, row.from, static_cast<std::size_t>(row_bytes_));
    }
    team.wait();
    for (const Expert& expert : experts_) expert.up->execute(team, turn);
    team.wait();
    const RowKernel activation = calibrate::has_gate(shape_) ? kernels_.gated_silu : kernels_.silu;
    for (const Expert& expert : experts_) {
      const Range share = part_of(expert.rows * width(), kActivationGrain, team.thread, team.threads);
      RowArgs args{.in = {expert.up->y()}, .out = {expert.down->x()}, .width = width()};
      if (share.size() > 0) activation(args, share.first, share.last);
    }
    team.wait();
    for (const Expert& expert : experts_) expert.down->execute(team, turn);
    team.wait();
    const Range tokens = part_of(shape_.m, 1, team.thread, team.threads);
    for (std::int64_t t = tokens.first; t < tokens.last; ++t) {
      const std::vector<const void*>& picks = picks_[static_cast<std::size_t>(t)];
      if (picks.empty()) continue;  // all are elsewhere, and y is zero
      const auto count = static_cast<std::int64_t>(picks.size());
      kernels_.sum(picks.data(), count, y_.data() + t * row_bytes_, 0, shape_.hidden);
    }
  }

  std::vector<float> read() const override { return to_floats(y_.data(), element_, shape_.m * shape_.hidden); }
  std::string failure() const override {
    for (const Expert& expert : experts_) {
      for (const auto* product : {expert.up.get(), expert.down.get()}) {
        if (std::string failure = product->failure(); !failure.empty()) return failure;
      }
    }
    return {};
  }

 private:
  struct Expert {
    std::int64_t rows;
    std::unique_ptr<GemmOperation> up;  // gate and up in one where there is a gate
    std::unique_ptr<GemmOperation> down;
  };
  // A row of x on its way to an expert.
  struct Row {
    const std::byte* from;
    std::byte* to;
  };

  std::int64_t width() const { return shape_.inter / shape_.tp; }

  RowKernels kernels_;
  Element element_;
  ExpertsShape shape_;
  std::int64_t row_bytes_;
  Buffer x_, y_;
  std::vector<Expert> experts_;  // that have rows
  std::vector<Row> rows_;
  std::vector<std::vector<const void*>> picks_;  // of each token: its rows of results
};

}  // namespace

Operated make_experts(const Workshop& shop, Dtype dtype, const ExpertsShape& s, std::int64_t asked) {
  const Element type = element_of(dtype, "moe");
  require(!s.products, "the products of experts run among what is around them (op moe)");
  require(s.weights.empty(), fmt::format("no experts here read weights stored as {}", s.weights));
  require(s.distribution != calibrate::kUniform, "no experts are drawn at random here: balanced or power_law_A");
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
  const std::int64_t weights = bytes_of_tensor({active, calibrate::has_gate(s) ? 3 : 2, s.hidden, width}, type);
  return std::make_unique<ExpertsOperation>(shop, dtype, type, s, tokens, shop.copies(asked, weights, others));
}

}  // namespace llmperf::replay::cpu
