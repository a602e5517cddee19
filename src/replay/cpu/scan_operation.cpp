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

constexpr Fill kStates{.operand = 5};

}  // namespace

Operated make_scan(const Workshop& shop, Dtype dtype, const measure::ScanShape& s, std::int64_t asked) {
  using model::RecurrentKind;
  const Element type = element_of(dtype, "scan");
  require(s.kind == RecurrentKind::gated_delta_net || s.kind == RecurrentKind::mamba2,
          fmt::format("no recurrence of {} here: gated_delta_net and mamba2 only", model::name(s.kind)));
  const auto states = bytes_of_tensor({s.batch, s.heads, s.key_dim, s.value_dim}, Element::f32);
  const auto values = bytes_of_tensor({s.batch, s.q_len, s.heads, s.value_dim}, type);
  const auto keys = bytes_of_tensor({s.batch, s.q_len, s.key_heads, s.key_dim}, type);
  require(s.heads % s.key_heads == 0,
          fmt::format("{} heads cannot share {} heads of keys evenly", s.heads, s.key_heads));
  ThreadPool& pool = *shop.pool;
  auto op = std::make_unique<Operation>(shop, shop.copies(asked, states, 2 * (values + keys)));
  const std::int64_t element = bytes_of(type);
  const std::int64_t gates = s.batch * s.q_len * s.heads;
  const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(s.key_dim)));
  const std::byte* q = op->input(type, keys / element, {.operand = 0, .scale = root});
  const std::byte* k = op->input(type, keys / element, {.operand = 1, .scale = root});
  const std::byte* v = op->input(type, values / element, {.operand = 2});
  const std::byte* decay = op->input(type, gates, {.operand = 3, .scale = 0.125F, .offset = 0.875F});
  const std::byte* write = op->input(type, gates, {.operand = 4, .scale = 0.5F, .offset = 0.5F});
  const Rotated state = op->rotated(Element::f32, states / 4, kStates);
  std::byte* y = op->output(type, values / element);
  const std::int64_t items = s.batch * s.heads;
  // Of a state, that a thread takes.
  const std::int64_t columns = items < pool.threads() ? std::min(s.value_dim, kColumns) : s.value_dim;
  const std::int64_t parts = (s.value_dim + columns - 1) / columns;
  shop.scratch->reserve(pool, scan_scratch(s.key_dim, columns));
  op->execute = [=, scan = shop.kernels->of(type).scan, scratch = shop.scratch](const Team& team, std::int64_t turn) {
    const Range share = part_of(items * parts, 1, team.thread, team.threads);
    for (std::int64_t i = share.first; i < share.last; ++i) {
      const std::int64_t item = i / parts;  // a sequence's head
      const std::int64_t column = i % parts * columns;
      const std::int64_t head = item % s.heads;
      const std::int64_t token = item / s.heads * s.q_len;
      ScanArgs a;
      a.qk_stride = s.key_heads * s.key_dim;
      a.v_stride = s.heads * s.value_dim;
      a.gate_stride = s.heads;
      a.state_stride = s.value_dim;
      const std::int64_t key = (token * a.qk_stride + head / (s.heads / s.key_heads) * s.key_dim) * element;
      const std::int64_t value = (token * a.v_stride + head * s.value_dim + column) * element;
      const std::int64_t gate = (token * s.heads + head) * element;
      a.q = q + key;
      a.k = k + key;
      a.v = v + value;
      a.decay = decay + gate;
      a.write = write + gate;
      a.y = y + value;
      a.state = reinterpret_cast<float*>(state.at(turn)) + item * s.key_dim * s.value_dim + column;
      a.tokens = s.q_len;
      a.key_dim = s.key_dim;
      a.columns = std::min(columns, s.value_dim - column);
      a.fresh = s.q_len > 1;
      a.delta = s.kind == RecurrentKind::gated_delta_net;
      scan(a, scratch->of(team.thread));
    }
  };
  op->restore = [made = op.get(), state, states] {
    fill_elements(state.at(made->turn()), Element::f32, 0, states / 4, kStates);
  };
  return op;
}

}  // namespace llmperf::replay::cpu
