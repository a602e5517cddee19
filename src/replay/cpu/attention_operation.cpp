// Attention of every phase: [queries] x [keys] of each KV head, in tiles of queries. Tiles are dealt as threads come
// for them, the long ones of a causal prompt first. Where there are fewer tiles than threads (decode of a few
// sequences) the keys are divided too, and the parts joined after a barrier. What a tile computes does not depend on
// who does. Of latents, whose first elements are the values, there is one head for all queries.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "calibrate/row_ops.h"
#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kTileRows = 96;   // queries x heads of a group
constexpr std::int64_t kPartKeys = 256;  // fewer are not worth a thread

// Attention of any kind: the shape's head_dim is of queries and keys.
struct AttentionPlan {
  calibrate::AttentionShape shape;
  std::int64_t v_dim = 0;
  std::int64_t scaled_by = 0;  // scores are divided by its root
  bool shared = false;         // values are the first elements of the keys
};

class AttentionOperation final : public Operation {
 public:
  AttentionOperation(const Workshop& shop, Element element, const AttentionPlan& plan, std::int64_t copies)
      : Operation(copies),
        kernels_(element == Element::f32 ? shop.kernels->attention_f32 : shop.kernels->attention_bf16),
        element_(element),
        plan_(plan),
        shape_(plan_.shape),
        group_(shape_.heads / shape_.kv_heads) {
    ThreadPool& pool = *shop.pool;
    const calibrate::AttentionShape& shape = shape_;
    const std::int64_t cached = shape.batch * shape.kv_len * shape.kv_heads;
    q_ = filled(pool, element, shape.batch * shape.q_len * shape.heads * shape.head_dim, 1, {.operand = 0});
    k_ = filled(pool, element, cached * shape.head_dim, copies, {.operand = 1});
    if (!plan.shared) v_ = filled(pool, element, cached * plan.v_dim, copies, {.operand = 2});
    y_ = zeroed(pool, results() * bytes_of(element));

    tile_queries_ = std::clamp<std::int64_t>(kTileRows / group_, 1, shape.q_len);
    tiles_ = (shape.q_len + tile_queries_ - 1) / tile_queries_;
    heads_ = shape.batch * shape.kv_heads;
    const std::int64_t wanted = (pool.threads() + heads_ * tiles_ - 1) / (heads_ * tiles_);
    parts_ = std::clamp<std::int64_t>(shape.kv_len / kPartKeys, 1, wanted);
    const std::int64_t rows = tile_queries_ * group_;
    state_stride_ = whole_lines(attention_state(rows, plan.v_dim) * 4) / 4;
    scratch_stride_ = whole_lines(attention_scratch(rows, shape.head_dim, plan.v_dim) * 4) / 4;
    scratch_ = zeroed(pool, pool.threads() * scratch_stride_ * 4);
    // Joined parts need the states of all tiles at once, else a thread needs room for one.
    states_ = zeroed(pool, (parts_ > 1 ? heads_ * tiles_ * parts_ : pool.threads()) * state_stride_ * 4);
  }

  void execute(const Team& team, std::int64_t turn) override {
    // Every thread comes once in vain, so the counter need not be set back between executions.
    const std::int64_t items = heads_ * tiles_ * parts_;
    const std::int64_t before = turn * (items + team.threads);
    float* scratch = scratch_.as<float>() + team.thread * scratch_stride_;
    while (true) {
      const std::int64_t item = next_.fetch_add(1, std::memory_order_relaxed) - before;
      if (item >= items) break;
      const std::int64_t index = item / parts_;
      AttentionTile t = tile(index, turn);
      const Range keys = part_of(shape_.kv_len, kKeyBlock, static_cast<int>(item % parts_), static_cast<int>(parts_));
      t.first_key = keys.first;
      t.last_key = keys.last;
      float* state = states_.as<float>() + (parts_ > 1 ? item : team.thread) * state_stride_;
      kernels_.tile(t, state, scratch);
      if (parts_ == 1) kernels_.finish(state, 1, 0, t, result(index), 0, t.queries * t.group);
    }
    if (parts_ == 1) return;
    team.wait();
    for (std::int64_t index = 0; index < heads_ * tiles_; ++index) {
      const AttentionTile t = tile(index, turn);
      const Range rows = part_of(t.queries * t.group, 1, team.thread, team.threads);
      kernels_.finish(states_.as<float>() + index * parts_ * state_stride_, parts_, state_stride_, t, result(index),
                      rows.first, rows.last);
    }
  }

  std::vector<float> read() const override { return to_floats(y_.data(), element_, results()); }
  const Buffer* rotated() const override { return &k_; }

 private:
  struct Place {
    std::int64_t batch;
    std::int64_t kv_head;
    std::int64_t first_query;
  };
  Place place(std::int64_t index) const {
    const std::int64_t head = index % heads_;
    const std::int64_t from_last = tiles_ - 1 - index / heads_;
    return {head / shape_.kv_heads, head % shape_.kv_heads, from_last * tile_queries_};
  }
  // Elements of the result.
  std::int64_t results() const { return shape_.batch * shape_.q_len * shape_.heads * plan_.v_dim; }
  // Where a tile's queries begin, in heads.
  std::int64_t first_row(const Place& p) const {
    return (p.batch * shape_.q_len + p.first_query) * shape_.heads + p.kv_head * group_;
  }
  void* result(std::int64_t index) const {
    return y_.data() + first_row(place(index)) * plan_.v_dim * bytes_of(element_);
  }
  // Where the keys (or values) of a tile begin, heads of `width` elements.
  const std::byte* cached(const Buffer& buffer, const Place& p, std::int64_t width, std::int64_t turn) const {
    const std::int64_t head = (p.batch * shape_.kv_len * shape_.kv_heads + p.kv_head) * width * bytes_of(element_);
    return buffer.data() + turn % copies() * (buffer.bytes() / copies()) + head;
  }

  AttentionTile tile(std::int64_t index, std::int64_t turn) const {
    const Place p = place(index);
    AttentionTile t;
    t.q = q_.data() + first_row(p) * shape_.head_dim * bytes_of(element_);
    t.k = cached(k_, p, shape_.head_dim, turn);
    t.v = plan_.shared ? t.k : cached(v_, p, plan_.v_dim, turn);
    t.q_stride = shape_.heads * shape_.head_dim;
    t.k_stride = shape_.kv_heads * shape_.head_dim;
    t.v_stride = plan_.shared ? t.k_stride : shape_.kv_heads * plan_.v_dim;
    t.y_stride = shape_.heads * plan_.v_dim;
    t.queries = std::min(tile_queries_, shape_.q_len - p.first_query);
    t.group = group_;
    t.head_dim = shape_.head_dim;
    t.v_dim = plan_.v_dim;
    t.visible = shape_.causal ? shape_.kv_len - shape_.q_len + p.first_query + 1 : shape_.kv_len;
    t.visible_step = shape_.causal ? 1 : 0;
    t.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(plan_.scaled_by)));
    return t;
  }

  AttentionKernels kernels_;
  Element element_;
  AttentionPlan plan_;
  const calibrate::AttentionShape& shape_;
  std::int64_t group_;  // query heads per KV head
  Buffer q_, k_, v_, y_;
  std::int64_t tile_queries_ = 1;
  std::int64_t tiles_ = 1;  // of queries, per sequence and KV head
  std::int64_t heads_ = 1;  // sequences x KV heads
  std::int64_t parts_ = 1;  // of the keys
  Buffer scratch_;          // per thread
  std::int64_t scratch_stride_ = 0;
  Buffer states_;  // per thread, or per tile and part
  std::int64_t state_stride_ = 0;
  std::atomic<std::int64_t> next_ = 0;
};

Operated operated(const Workshop& shop, Dtype dtype, const AttentionPlan& plan, std::int64_t asked) {
  const calibrate::AttentionShape& s = plan.shape;
  const Element type = element_of(dtype, "attention");
  const auto queries = bytes_of_tensor({s.batch, s.q_len, s.heads, s.head_dim}, Element::f32);
  const std::int64_t width = s.head_dim + (plan.shared ? 0 : plan.v_dim);
  const auto cached = bytes_of_tensor({s.batch, s.kv_len, s.kv_heads, width}, type);
  require(s.window == 0 && s.kv_dtype.empty(), "windows and caches of another type are not replayed");
  require(s.heads % s.kv_heads == 0,
          fmt::format("{} query heads cannot share {} KV heads evenly", s.heads, s.kv_heads));
  require(!s.causal || s.kv_len >= s.q_len,
          fmt::format("the first of {} queries would see none of {} keys", s.q_len, s.kv_len));
  return std::make_unique<AttentionOperation>(shop, type, plan, shop.copies(asked, cached, 3 * queries));
}

}  // namespace

Operated make_attention(const Workshop& shop, Dtype dtype, const calibrate::AttentionShape& s, std::int64_t asked) {
  return operated(shop, dtype, {.shape = s, .v_dim = s.head_dim, .scaled_by = s.head_dim}, asked);
}

Operated make_latent(const Workshop& shop, Dtype dtype, const calibrate::LatentShape& s, std::int64_t asked) {
  require(s.part == calibrate::LatentShape::Part::attention, "is several ops: replay them one by one");
  const auto widths = [&](calibrate::Phase phase) {
    calibrate::LatentShape shape = s;
    shape.phase = phase;
    return std::get<graph::Attention>(calibrate::ops_of({{}, dtype, shape}, {}).front().body);
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
                   .scaled_by = widths(calibrate::Phase::prefill).qk_dim,  // absorbing changes no score
                   .shared = a.shared_kv},
                  asked);
}

}  // namespace llmperf::replay::cpu
