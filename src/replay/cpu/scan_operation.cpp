// Recurrences: heads are dealt to the threads, and where these are more the columns of each head's state as well, which
// do not depend on one another. States are what a model reads and writes for every token, so that there are copies of
// them; executions change them in place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kColumns = 32;  // of a state, at least for one thread

class ScanOperation final : public Operation {
 public:
  ScanOperation(const Workshop& shop, Element element, const calibrate::ScanShape& shape, std::int64_t copies)
      : Operation(copies),
        kernel_(element == Element::f32 ? shop.kernels->scan_f32 : shop.kernels->scan_bf16),
        element_(element),
        shape_(shape) {
    ThreadPool& pool = *shop.pool;
    const std::int64_t tokens = shape.batch * shape.q_len;
    const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_dim)));
    const std::int64_t keys = tokens * shape.key_heads * shape.key_dim;
    q_ = filled(pool, element, keys, 1, {.operand = 0, .scale = root});
    k_ = filled(pool, element, keys, 1, {.operand = 1, .scale = root});
    v_ = filled(pool, element, results(), 1, {.operand = 2});
    decay_ = filled(pool, element, tokens * shape.heads, 1, {.operand = 3, .scale = 0.125F, .offset = 0.875F});
    write_ = filled(pool, element, tokens * shape.heads, 1, {.operand = 4, .scale = 0.5F, .offset = 0.5F});
    states_ = filled(pool, Element::f32, state_elements(), copies, kStates);
    y_ = zeroed(pool, results() * bytes_of(element));
    const std::int64_t items = shape.batch * shape.heads;
    if (items < pool.threads()) columns_ = std::min(columns_, kColumns);
    parts_ = (shape.value_dim + columns_ - 1) / columns_;
    scratch_stride_ = scan_scratch(shape.key_dim, columns_);
    scratch_ = zeroed(pool, pool.threads() * scratch_stride_ * 4);
  }

  void execute(const Team& team, std::int64_t turn) override {
    const Range share = part_of(shape_.batch * shape_.heads * parts_, 1, team.thread, team.threads);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      kernel_(args(item / parts_, item % parts_ * columns_, turn),
              scratch_.as<float>() + team.thread * scratch_stride_);
    }
  }

  void restore() override { fill_elements(states(turn()), Element::f32, 0, state_elements(), kStates); }
  std::vector<float> read() const override { return to_floats(y_.data(), element_, results()); }
  const Buffer* rotated() const override { return &states_; }

 private:
  static constexpr Fill kStates{.operand = 5};

  std::int64_t results() const { return shape_.batch * shape_.q_len * shape_.heads * shape_.value_dim; }
  std::int64_t state_elements() const { return shape_.batch * shape_.heads * shape_.key_dim * shape_.value_dim; }
  float* states(std::int64_t turn) const {
    return reinterpret_cast<float*>(states_.data() + turn % copies() * whole_lines(state_elements() * 4));
  }
  std::byte* at(const Buffer& buffer, std::int64_t element) const {
    return buffer.data() + element * bytes_of(element_);
  }

  // The columns from `column` on of a sequence's head.
  ScanArgs args(std::int64_t item, std::int64_t column, std::int64_t turn) const {
    const std::int64_t sequence = item / shape_.heads;
    const std::int64_t head = item % shape_.heads;
    const std::int64_t key_head = head / (shape_.heads / shape_.key_heads);
    const std::int64_t token = sequence * shape_.q_len;
    ScanArgs a;
    a.qk_stride = shape_.key_heads * shape_.key_dim;
    a.v_stride = shape_.heads * shape_.value_dim;
    a.gate_stride = shape_.heads;
    a.state_stride = shape_.value_dim;
    const std::int64_t key = token * a.qk_stride + key_head * shape_.key_dim;
    const std::int64_t value = token * a.v_stride + head * shape_.value_dim + column;
    a.q = at(q_, key);
    a.k = at(k_, key);
    a.v = at(v_, value);
    a.decay = at(decay_, token * shape_.heads + head);
    a.write = at(write_, token * shape_.heads + head);
    a.y = at(y_, value);
    a.state = states(turn) + item * shape_.key_dim * shape_.value_dim + column;
    a.tokens = shape_.q_len;
    a.key_dim = shape_.key_dim;
    a.columns = std::min(columns_, shape_.value_dim - column);
    a.fresh = shape_.q_len > 1;
    a.delta = shape_.kind == model::RecurrentKind::gated_delta_net;
    return a;
  }

  ScanKernel kernel_;
  Element element_;
  calibrate::ScanShape shape_;
  std::int64_t columns_ = shape_.value_dim;  // of a state, that a thread takes
  std::int64_t parts_ = 1;
  Buffer q_, k_, v_, decay_, write_, states_, y_;
  Buffer scratch_;  // per thread
  std::int64_t scratch_stride_ = 0;
};

}  // namespace

Operated make_scan(const Workshop& shop, Dtype dtype, const calibrate::ScanShape& s, std::int64_t asked) {
  using model::RecurrentKind;
  const Element type = element_of(dtype, "scan");
  require(s.kind == RecurrentKind::gated_delta_net || s.kind == RecurrentKind::mamba2,
          fmt::format("no recurrence of {} here: gated_delta_net and mamba2 only", model::name(s.kind)));
  const auto states = bytes_of_tensor({s.batch, s.heads, s.key_dim, s.value_dim}, Element::f32);
  const auto values = bytes_of_tensor({s.batch, s.q_len, s.heads, s.value_dim}, type);
  const auto keys = bytes_of_tensor({s.batch, s.q_len, s.key_heads, s.key_dim}, type);
  require(s.heads % s.key_heads == 0,
          fmt::format("{} heads cannot share {} heads of keys evenly", s.heads, s.key_heads));
  return std::make_unique<ScanOperation>(shop, type, s, shop.copies(asked, states, 2 * (values + keys)));
}

}  // namespace llmperf::replay::cpu
