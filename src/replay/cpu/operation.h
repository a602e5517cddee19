// Memory for operands: aligned to cache lines, on huge pages where the system gives them (a product that streams
// gigabytes would otherwise wait for page tables), zero until written, and not touched before, so that each page comes
// to lie beside the processor that writes it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "replay/backend.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/kernels.h"
#include "replay/cpu/machine.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

class Buffer {
 public:
  Buffer() = default;
  // Throws Error(failed) when the system has no such memory.
  explicit Buffer(std::int64_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Rounded up to whole cache lines.
constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// ---- Filling operands as operands.h says, on all threads, so that pages lie where they are used.

// offset + scale fill_value(operand, first + i); s8: rounded(127 fill_value).
struct Fill {
  std::uint32_t operand = 0;
  float scale = 1;
  float offset = 0;
  std::int64_t first = 0;
};

// Elements [first, first + count) of an operand.
void fill_elements(void* to, Element element, std::int64_t first, std::int64_t count, const Fill& fill);

// Room for `copies` times `count` elements, each copy from a new cache line on, all filled with the same values.
Buffer filled(ThreadPool& pool, Element element, std::int64_t count, std::int64_t copies, const Fill& fill);

// `copies` - 1 further copies of the `stride` bytes at `data` behind them.
void replicate(ThreadPool& pool, std::byte* data, std::int64_t stride, std::int64_t copies);

// An untouched buffer, zeroed by the threads that will use its parts.
Buffer zeroed(ThreadPool& pool, std::int64_t bytes);

// The elements, behind those that are there.
void append_floats(std::vector<float>& to, const void* from, Element element, std::int64_t count);
std::vector<float> to_floats(const void* from, Element element, std::int64_t count);

// ---- An op as this backend runs it: prepared operands and a body that every thread of the pool executes at the same
// time.

class Operation : public Prepared {
 public:
  explicit Operation(std::int64_t copies) : copies_(copies) {}
  std::int64_t copies() const { return copies_; }
  // Executions so far: the next one is number turn() and takes copy turn() % copies().
  std::int64_t turn() const { return turn_; }
  void advance(std::int64_t executions) { turn_ += executions; }

  // This thread's share of execution `turn`. All threads meet at a barrier before and after, and as often inside as
  // the op wants; all of them as often. Does not throw and does not allocate.
  virtual void execute(const Team& team, std::int64_t turn) = 0;
  // What went wrong in an execution; empty: nothing.
  virtual std::string failure() const { return {}; }
  // Before a result is asked for: operands that executions change, as they were filled.
  virtual void restore() {}
  // The result of the last execution, of which there was one at least.
  virtual std::vector<float> read() const = 0;
  // Operands of which there are copies() copies, one after the other, or null.
  virtual const Buffer* rotated() const { return nullptr; }

 private:
  std::int64_t copies_;
  std::int64_t turn_ = 0;
};

// What the makers of operations work with.
struct Workshop {
  const Kernels* kernels = nullptr;
  Gemm gemm = Gemm::best;
  Gemm best_fp32 = Gemm::eigen;  // whom `best` means for products in fp32
  ThreadPool* pool = nullptr;
  std::int64_t last_level = 0;  // bytes of cache that rotated operands must exceed

  // How many copies of `bytes` there are to be where `asked` were asked for: as many; of 0, as many as kRotatedCaches
  // times the last-level cache hold, within a third of the free memory. Refusal where there is no memory for `others`
  // bytes and one copy.
  std::int64_t copies(std::int64_t asked, std::int64_t bytes, std::int64_t others) const;
};

// All throw Refusal when the op cannot be run: a type that no kernel takes, a constraint that the shape breaks.
using Operated = std::unique_ptr<Operation>;
Operated make_gemm(const Workshop& shop, Dtype dtype, const calibrate::GemmShape& shape, std::int64_t copies);
Operated make_attention(const Workshop& shop, Dtype dtype, const calibrate::AttentionShape& shape, std::int64_t copies);
Operated make_latent(const Workshop& shop, Dtype dtype, const calibrate::LatentShape& shape, std::int64_t copies);
Operated make_experts(const Workshop& shop, Dtype dtype, const calibrate::ExpertsShape& shape, std::int64_t copies);
Operated make_vector(const Workshop& shop, Dtype dtype, const calibrate::VectorShape& shape);
Operated make_gather(const Workshop& shop, Dtype dtype, const calibrate::GatherShape& shape, std::int64_t copies);
Operated make_kv_write(const Workshop& shop, Dtype dtype, const calibrate::CacheShape& shape, std::int64_t copies);
Operated make_scan(const Workshop& shop, Dtype dtype, const calibrate::ScanShape& shape, std::int64_t copies);
Operated make_collective(const Workshop& shop, Dtype dtype, const calibrate::CollectiveShape& shape);

// fp32 or bf16; Refusal of others, for an op called `op`.
Element element_of(Dtype dtype, std::string_view op);

// The product of positive extents times an element size. Refusal when one is not positive or the result is beyond any
// memory.
std::int64_t bytes_of_tensor(std::initializer_list<std::int64_t> extents, Element element);

}  // namespace llmperf::replay::cpu
