// Ops that move rows without computing: rows of a table picked by index, and keys and values written to a cache.
#include <cstring>

#include "replay/cpu/operation.h"
#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

class GatherOperation final : public Operation {
 public:
  GatherOperation(const Workshop& shop, Element element, const calibrate::GatherShape& shape, std::int64_t copies)
      : Operation(copies), element_(element), shape_(shape) {
    const std::int64_t row = shape.width * bytes_of(element);
    table_ = filled(*shop.pool, element, shape.table * shape.width, copies, {.operand = 0});
    table_stride_ = whole_lines(shape.table * row);
    y_ = zeroed(*shop.pool, shape.rows * row);
    // Indices are a tensor that the op reads, as those of tokens are.
    for (std::int64_t r = 0; r < shape.rows; ++r) rows_.push_back(gathered_row(r, shape.table));
  }

  void execute(const Team& team, std::int64_t turn) override {
    const std::int64_t row = shape_.width * bytes_of(element_);
    const std::byte* table = table_.data() + turn % copies() * table_stride_;
    const Range share = part_of(shape_.rows, 1, team.thread, team.threads);
    for (std::int64_t r = share.first; r < share.last; ++r) {
      copy_bytes(y_.data() + r * row, table + rows_[static_cast<std::size_t>(r)] * row, row);
    }
  }

  std::vector<float> read() const override { return to_floats(y_.data(), element_, shape_.rows * shape_.width); }
  const Buffer* rotated() const override { return &table_; }

 private:
  Element element_;
  calibrate::GatherShape shape_;
  Buffer table_, y_;
  std::int64_t table_stride_ = 0;
  std::vector<std::int64_t> rows_;
};

// Each execution writes to the cache of the next layer: the copies are of what is written.
class KvWriteOperation final : public Operation {
 public:
  KvWriteOperation(const Workshop& shop, Element element, std::int64_t count, std::int64_t copies)
      : Operation(copies), element_(element), count_(count), stride_(whole_lines(count * bytes_of(element))) {
    keys_ = filled(*shop.pool, element, count, 1, {.operand = 0});
    values_ = filled(*shop.pool, element, count, 1, {.operand = 1});
    cache_ = zeroed(*shop.pool, 2 * stride_ * copies);
  }

  void execute(const Team& team, std::int64_t turn) override {
    std::byte* const cache = cache_.data() + turn % copies() * 2 * stride_;
    const Range share = part_of(count_ * bytes_of(element_), 64, team.thread, team.threads);
    copy_bytes(cache + share.first, keys_.data() + share.first, share.size());
    copy_bytes(cache + stride_ + share.first, values_.data() + share.first, share.size());
  }

  std::vector<float> read() const override {
    const std::byte* last = cache_.data() + (turn() - 1) % copies() * 2 * stride_;
    std::vector<float> values = to_floats(last, element_, count_);
    append_floats(values, last + stride_, element_, count_);
    return values;
  }
  const Buffer* rotated() const override { return &cache_; }

 private:
  Element element_;
  std::int64_t count_;
  std::int64_t stride_;
  Buffer keys_, values_, cache_;
};

}  // namespace

Operated make_gather(const Workshop& shop, Dtype dtype, const calibrate::GatherShape& shape, std::int64_t asked) {
  const Element type = element_of(dtype, "gather");
  require(shape.table != 0, "the number of rows of the table (column k) is not known");
  const auto table = bytes_of_tensor({shape.table, shape.width}, type);
  const auto rows = bytes_of_tensor({shape.rows, shape.width}, type);
  return std::make_unique<GatherOperation>(shop, type, shape, shop.copies(asked, table, rows));
}

Operated make_kv_write(const Workshop& shop, Dtype dtype, const calibrate::CacheShape& shape, std::int64_t asked) {
  const Element type = element_of(dtype, "kv_write");
  const auto bytes = bytes_of_tensor({shape.tokens, shape.kv_heads, shape.head_dim}, type);
  return std::make_unique<KvWriteOperation>(shop, type, bytes / bytes_of(type),
                                            shop.copies(asked, 2 * bytes, 2 * bytes));
}

}  // namespace llmperf::replay::cpu
