// Attention of every phase: [queries] x [keys] of each KV head, in tiles of queries. Tiles are dealt as threads come
// for them, the long ones of a causal prompt first. Where there are fewer tiles than threads (decode of a few
// sequences) the keys are divided too, and the parts joined after a barrier. What a tile computes does not depend on
// who does.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kTileRows = 96;   // queries x heads of a group
constexpr std::int64_t kPartKeys = 256;  // fewer are not worth a thread

class AttentionOperation final : public Operation {
 public:
  AttentionOperation(const Workshop& shop, Element element, const calibrate::AttentionShape& shape, std::int64_t copies)
      : Operation(copies),
        kernels_(element == Element::f32 ? shop.kernels->attention_f32 : shop.kernels->attention_bf16),
        element_(element),
        shape_(shape),
        group_(shape.heads / shape.kv_heads) {
    ThreadPool& pool = *shop.pool;
    const std::int64_t cached = shape.batch * shape.kv_len * shape.kv_heads * shape.head_dim;
    const std::int64_t queries = shape.batch * shape.q_len * shape.heads * shape.head_dim;
    q_ = filled(pool, element, queries, 1, {.operand = 0});
    k_ = filled(pool, element, cached, copies, {.operand = 1});
    v_ = filled(pool, element, cached, copies, {.operand = 2});
    cache_stride_ = whole_lines(cached * bytes_of(element));
    y_ = zeroed(pool, queries * bytes_of(element));

    tile_queries_ = std::clamp<std::int64_t>(kTileRows / group_, 1, shape.q_len);
    tiles_ = (shape.q_len + tile_queries_ - 1) / tile_queries_;
    heads_ = shape.batch * shape.kv_heads;
    const std::int64_t wanted = (pool.threads() + heads_ * tiles_ - 1) / (heads_ * tiles_);
    parts_ = std::clamp<std::int64_t>(shape.kv_len / kPartKeys, 1, wanted);
    const std::int64_t rows = tile_queries_ * group_;
    state_stride_ = whole_lines(attention_state(rows, shape.head_dim) * 4) / 4;
    scratch_stride_ = whole_lines(attention_scratch(rows, shape.head_dim) * 4) / 4;
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

  std::vector<float> read() const override {
    return to_floats(y_.data(), element_, shape_.batch * shape_.q_len * shape_.heads * shape_.head_dim);
  }
  const Buffer* rotated() const override { return &v_; }

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
  std::int64_t query_offset(const Place& p) const {
    return ((p.batch * shape_.q_len + p.first_query) * shape_.heads + p.kv_head * group_) * shape_.head_dim *
           bytes_of(element_);
  }
  void* result(std::int64_t index) const { return y_.data() + query_offset(place(index)); }

  AttentionTile tile(std::int64_t index, std::int64_t turn) const {
    const Place p = place(index);
    const std::int64_t head =
        (p.batch * shape_.kv_len * shape_.kv_heads + p.kv_head) * shape_.head_dim * bytes_of(element_);
    const std::int64_t cached = turn % copies() * cache_stride_ + head;
    AttentionTile t;
    t.q = q_.data() + query_offset(p);
    t.k = k_.data() + cached;
    t.v = v_.data() + cached;
    t.q_stride = shape_.heads * shape_.head_dim;
    t.kv_stride = shape_.kv_heads * shape_.head_dim;
    t.queries = std::min(tile_queries_, shape_.q_len - p.first_query);
    t.group = group_;
    t.head_dim = shape_.head_dim;
    t.visible = shape_.causal ? shape_.kv_len - shape_.q_len + p.first_query + 1 : shape_.kv_len;
    t.visible_step = shape_.causal ? 1 : 0;
    t.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.head_dim)));
    return t;
  }

  AttentionKernels kernels_;
  Element element_;
  calibrate::AttentionShape shape_;
  std::int64_t group_;  // query heads per KV head
  Buffer q_, k_, v_, y_;
  std::int64_t cache_stride_ = 0;
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

}  // namespace

Operated make_attention(const Workshop& shop, Dtype dtype, const calibrate::AttentionShape& s, std::int64_t asked) {
  const Element type = element_of(dtype, "attention");
  const auto queries = bytes_of_tensor({s.batch, s.q_len, s.heads, s.head_dim}, Element::f32);
  const auto cached = bytes_of_tensor({2, s.batch, s.kv_len, s.kv_heads, s.head_dim}, type);
  require(s.window == 0 && s.kv_dtype.empty(), "windows and caches of another type are not replayed");
  require(s.heads % s.kv_heads == 0,
          fmt::format("{} query heads cannot share {} KV heads evenly", s.heads, s.kv_heads));
  require(!s.causal || s.kv_len >= s.q_len,
          fmt::format("the first of {} queries would see none of {} keys", s.q_len, s.kv_len));
  return std::make_unique<AttentionOperation>(shop, type, s, shop.copies(asked, cached, 3 * queries));
}

}  // namespace llmperf::replay::cpu
