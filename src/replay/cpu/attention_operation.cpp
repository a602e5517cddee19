// Attention of every phase: [queries] x [keys] of each KV head, in tiles of queries. Tiles are dealt as threads come
// for them, the long ones of a causal prompt first. Where there are fewer tiles than threads (decode of a few
// sequences) the keys are divided too, and the parts joined after a barrier. What a tile computes does not depend on
// who does. Of latents, whose first elements are the values, there is one head for all queries.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "measure/row_ops.h"
#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kTileRows = 96;   // queries x heads of a group
constexpr std::int64_t kPartKeys = 256;  // fewer are not worth a thread

// Attention of any kind: the shape's head_dim is of queries and keys.
struct AttentionPlan {
  measure::AttentionShape shape;
  std::int64_t v_dim = 0;
  std::int64_t scaled_by = 0;  // scores are divided by its root
  bool shared = false;         // values are the first elements of the keys
};

// How an op is divided, and where its operands lie.
struct Attention {
  AttentionPlan plan;
  std::int64_t element = 0;  // bytes
  std::byte* q = nullptr;
  Rotated k = {};
  Rotated v = {};
  std::byte* y = nullptr;
  std::int64_t group = 1;         // query heads per KV head
  std::int64_t tile_queries = 1;  // at most
  std::int64_t tiles = 1;         // of queries, per sequence and KV head
  std::int64_t heads = 1;         // sequences x KV heads
  std::int64_t parts = 1;         // of the keys

  // Tile `index`, over all keys, and where its result begins.
  std::pair<AttentionTile, std::byte*> tile(std::int64_t index, std::int64_t turn) const {
    const measure::AttentionShape& s = plan.shape;
    const std::int64_t sequence = index % heads / s.kv_heads;
    const std::int64_t kv_head = index % heads % s.kv_heads;
    const std::int64_t first_query = (tiles - 1 - index / heads) * tile_queries;
    const std::int64_t row = (sequence * s.q_len + first_query) * s.heads + kv_head * group;
    const std::int64_t key = sequence * s.kv_len * s.kv_heads + kv_head;
    AttentionTile t;
    t.q = q + row * s.head_dim * element;
    t.k = k.at(turn) + key * s.head_dim * element;
    t.v = plan.shared ? t.k : v.at(turn) + key * plan.v_dim * element;
    t.q_stride = s.heads * s.head_dim;
    t.k_stride = s.kv_heads * s.head_dim;
    t.v_stride = plan.shared ? t.k_stride : s.kv_heads * plan.v_dim;
    t.y_stride = s.heads * plan.v_dim;
    t.queries = std::min(tile_queries, s.q_len - first_query);
    t.group = group;
    t.head_dim = s.head_dim;
    t.v_dim = plan.v_dim;
    t.visible = s.causal ? s.kv_len - s.q_len + first_query + 1 : s.kv_len;
    t.visible_step = s.causal ? 1 : 0;
    t.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(plan.scaled_by)));
    return {t, y + row * plan.v_dim * element};
  }
};

Operated operated(const Workshop& shop, Dtype dtype, const AttentionPlan& plan, std::int64_t asked) {
  const measure::AttentionShape s = plan.shape;
  const Element type = element_of(dtype, "attention");
  const auto queries = bytes_of_tensor({s.batch, s.q_len, s.heads, s.head_dim}, Element::f32);
  const std::int64_t width = s.head_dim + (plan.shared ? 0 : plan.v_dim);
  const auto cached = bytes_of_tensor({s.batch, s.kv_len, s.kv_heads, width}, type);
  require(s.window == 0 && s.kv_dtype.empty(), "windows and caches of another type are not replayed");
  require(s.heads % s.kv_heads == 0,
          fmt::format("{} query heads cannot share {} KV heads evenly", s.heads, s.kv_heads));
  require(!s.causal || s.kv_len >= s.q_len,
          fmt::format("the first of {} queries would see none of {} keys", s.q_len, s.kv_len));
  ThreadPool& pool = *shop.pool;
  auto op = std::make_unique<Operation>(shop, shop.copies(asked, cached, 3 * queries));
  Attention a{.plan = plan, .element = bytes_of(type)};
  const std::int64_t keys = s.batch * s.kv_len * s.kv_heads;
  a.q = op->input(type, s.batch * s.q_len * s.heads * s.head_dim, {.operand = 0});
  if (!plan.shared) a.v = op->rotated(type, keys * plan.v_dim, {.operand = 2});
  a.k = op->rotated(type, keys * s.head_dim, {.operand = 1});
  a.y = op->output(type, s.batch * s.q_len * s.heads * plan.v_dim);
  a.group = s.heads / s.kv_heads;
  a.tile_queries = std::clamp<std::int64_t>(kTileRows / a.group, 1, s.q_len);
  a.tiles = (s.q_len + a.tile_queries - 1) / a.tile_queries;
  a.heads = s.batch * s.kv_heads;
  const std::int64_t wanted = (pool.threads() + a.heads * a.tiles - 1) / (a.heads * a.tiles);
  a.parts = std::clamp<std::int64_t>(s.kv_len / kPartKeys, 1, wanted);
  const std::int64_t rows = a.tile_queries * a.group;
  shop.scratch->reserve(pool, attention_scratch(rows, s.head_dim, plan.v_dim));
  // Joined parts need the states of all tiles at once, else a thread needs room for one.
  const std::int64_t stride = whole_line_floats(attention_state(rows, plan.v_dim));
  const std::int64_t room = (a.parts > 1 ? a.heads * a.tiles * a.parts : pool.threads()) * stride;
  auto* const states = reinterpret_cast<float*>(op->room(room * 4));
  const auto next = std::make_shared<std::atomic<std::int64_t>>(0);
  op->execute = [=, &kernels = shop.kernels->of(type), scratch = shop.scratch](const Team& team, std::int64_t turn) {
    // Every thread comes once in vain, so the counter need not be set back between executions.
    const std::int64_t items = a.heads * a.tiles * a.parts;
    const std::int64_t before = turn * (items + team.threads);
    while (true) {
      const std::int64_t item = next->fetch_add(1, std::memory_order_relaxed) - before;
      if (item >= items) break;
      auto [t, result] = a.tile(item / a.parts, turn);
      const Range part = part_of(s.kv_len, kKeyBlock, static_cast<int>(item % a.parts), static_cast<int>(a.parts));
      t.first_key = part.first;
      t.last_key = part.last;
      float* state = states + (a.parts > 1 ? item : team.thread) * stride;
      kernels.attention(t, state, scratch->of(team.thread));
      if (a.parts == 1) kernels.finish_attention(state, 1, 0, t, result, 0, t.queries * t.group);
    }
    if (a.parts == 1) return;
    team.wait();
    for (std::int64_t index = 0; index < a.heads * a.tiles; ++index) {
      const auto [t, result] = a.tile(index, turn);
      const Range share = part_of(t.queries * t.group, 1, team.thread, team.threads);
      kernels.finish_attention(states + index * a.parts * stride, a.parts, stride, t, result, share.first, share.last);
    }
  };
  return op;
}

}  // namespace

Operated make_attention(const Workshop& shop, Dtype dtype, const measure::AttentionShape& s, std::int64_t asked) {
  return operated(shop, dtype, {.shape = s, .v_dim = s.head_dim, .scaled_by = s.head_dim}, asked);
}

Operated make_latent(const Workshop& shop, Dtype dtype, const measure::LatentShape& s, std::int64_t asked) {
  require(s.part == measure::LatentShape::Part::attention, "is several ops: replay them one by one");
  require(s.kv_dtype.empty(), "caches of another type are not replayed");
  const auto widths = [&](measure::Phase phase) {
    measure::LatentShape shape = s;
    shape.phase = phase;
    return std::get<graph::Attention>(measure::ops_of({{}, dtype, shape}, {}).front().body);
  };
  const graph::Attention a = widths(s.phase);
  return operated(shop, dtype,
                  {.shape = {.phase = s.phase,
                             .batch = s.batch,
                             .q_len = s.q_len,
                             .kv_len = s.kv_len,
                             .heads = s.heads,
                             .kv_heads = a.kv_heads,
                             .head_dim = a.qk_dim,
                             .kv_dtype = s.kv_dtype},
                   .v_dim = a.v_dim,
                   .scaled_by = widths(measure::Phase::prefill).qk_dim,  // absorbing changes no score
                   .shared = a.shared_kv},
                  asked);
}

}  // namespace llmperf::replay::cpu
