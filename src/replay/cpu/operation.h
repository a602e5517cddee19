// An op as this backend runs it: operands in memory of its own, and a body that every thread of the pool executes at
// the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replay/backend.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/kernels.h"
#include "replay/cpu/machine.h"
#include "replay/thread_pool.h"

namespace llmperf::replay::cpu {

// Memory for operands: aligned to cache lines, on huge pages where the system gives them (a product that streams
// gigabytes would otherwise wait for page tables), zero until written, and not touched before, so that each page comes
// to lie beside the processor that writes it first.
class Buffer {
 public:
  Buffer() = default;
  // Throws Error(failed) when the system has no such memory.
  explicit Buffer(std::int64_t bytes);

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(void* mapping) const;
  };

  std::unique_ptr<void, Unmap> mapping_;
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

// Memory of each thread for the time of an op, of which one runs at a time.
class Scratch {
 public:
  // At least `floats` for each thread, which may lie elsewhere than before.
  void reserve(ThreadPool& pool, std::int64_t floats);
  float* of(int thread) const { return memory_.as<float>() + thread * stride_; }

 private:
  Buffer memory_;
  std::int64_t stride_ = 0;
};

// What the makers of operations work with.
struct Workshop {
  const Kernels* kernels = nullptr;
  Gemm gemm = Gemm::best;
  ThreadPool* pool = nullptr;
  Scratch* scratch = nullptr;
  std::int64_t last_level = 0;  // bytes of cache that rotated operands must exceed

  // How many copies of `bytes` there are to be where `asked` were asked for: as many; of 0, as many as kRotatedCaches
  // times the last-level cache hold, within a third of the free memory. Unavailable where there is no memory for
  // `others` bytes and one copy.
  std::int64_t copies(std::int64_t asked, std::int64_t bytes, std::int64_t others) const;
};

// An operand of which each execution takes the next copy.
struct Rotated {
  std::byte* data = nullptr;
  std::int64_t stride = 0;  // bytes from copy to copy
  std::int64_t copies = 1;
  std::byte* at(std::int64_t turn) const { return data + turn % copies * stride; }
};

class Operation : public Prepared {
 public:
  Operation(const Workshop& shop, std::int64_t copies) : copies_(copies), pool_(*shop.pool) {}

  // What an op is made of. Memory stays where it is until the op is destroyed.
  std::byte* keep(Buffer buffer);
  std::byte* input(Element element, std::int64_t count, const Fill& fill) {
    return keep(filled(pool_, element, count, 1, fill));
  }
  Rotated rotated(Element element, std::int64_t count, const Fill& fill) {
    return rotated(filled(pool_, element, count, copies_, fill));
  }
  Rotated rotated(Buffer copies);
  std::byte* room(std::int64_t bytes) { return keep(zeroed(pool_, bytes)); }
  // Zeros, which read() returns behind those of the outputs before.
  std::byte* output(Element element, std::int64_t count);
  void add_output(const std::byte* data, Element element, std::int64_t count) {
    outputs_.push_back({data, element, count});
  }

  // A thread's share of execution `turn`. All threads meet at a barrier before and after, and as often inside as the op
  // wants; all of them as often. Does not throw and does not allocate.
  std::function<void(const Team& team, std::int64_t turn)> execute;
  // What went wrong in an execution; empty: nothing.
  std::function<std::string()> failure = [] { return std::string(); };
  // Before a result is computed: operands that executions change become what they were filled with.
  std::function<void()> restore = [] {};
  // Before a result is read, after execution `turn`.
  std::function<void(std::int64_t turn)> collect = [](std::int64_t) {};

  std::int64_t copies() const { return copies_; }
  // Executions so far: the next one is number turn() and takes copy turn() % copies().
  std::int64_t turn() const { return turn_; }
  void advance(std::int64_t executions) { turn_ += executions; }
  // The result of the last execution, of which there was one at least.
  std::vector<float> read() const;
  // Of the operand of which there are copies; null data where there is none.
  const Rotated& rotation() const { return rotation_; }

 private:
  struct Output {
    const std::byte* data;
    Element element;
    std::int64_t count;
  };

  std::int64_t copies_;
  std::int64_t turn_ = 0;
  ThreadPool& pool_;
  std::vector<Buffer> buffers_;
  std::vector<Output> outputs_;
  Rotated rotation_;
};

// ---- Products [m, k] x [n, k]^T.

// The results that one thread computes: [m, n] of products `batch`.
struct GemmPiece {
  Range batch;
  Range m;
  Range n;
  bool empty() const { return batch.size() == 0 || m.size() == 0 || n.size() == 0; }
};

// How the products of an op are divided among threads.
class GemmDivision {
 public:
  GemmDivision(const measure::GemmShape& shape, int threads);
  GemmPiece piece(int thread) const;  // may be empty
  // Slabs of columns: pieces that read different weights. Slab s is the columns of piece s for s < slabs().
  int slabs() const { return columns_; }
  int slab_of(int thread) const { return thread % columns_; }

 private:
  measure::GemmShape shape_;
  int threads_;
  bool by_batch_ = false;
  int rows_ = 1;     // parts of m
  int columns_ = 1;  // parts of n
};

struct GemmPlan {
  measure::GemmShape shape;
  Element input = Element::f32;   // of x and w
  Element output = Element::f32;  // of y
  float scale = 1;                // of the result: of quantised operands, the product of their scales
  std::int64_t copies = 1;
  Fill weights = {};    // how w is filled
  bool joined = false;  // y is asked for: threads may else leave their pieces apart
};

// A product as an op, or as a part of one: where x lies, and after an execution the result, [batch, m, n].
struct Product {
  std::unique_ptr<Operation> op;
  std::byte* x = nullptr;
  std::byte* y = nullptr;
};

// The types of a product. Unavailable where there is none of them.
GemmPlan plan_of(Dtype dtype, const measure::GemmShape& shape);
// By oneDNN where the workshop says so, else by Eigen.
Product make_product(const Workshop& shop, const GemmPlan& plan);

// oneDNN is loaded when its name or the first product is asked for. "oneDNN 2.6.3 (libdnnl.so.2)"; empty with the
// reason in `why_not` where there is none.
std::string onednn_name(std::string& why_not);
// Unavailable where there is no oneDNN or it has no such product.
Product make_onednn_product(const Workshop& shop, const GemmPlan& plan);

// ---- All throw Unavailable when the op cannot be run: a type that no kernel takes, a constraint that the shape
// breaks.

using Operated = std::unique_ptr<Operation>;
Operated make_gemm(const Workshop& shop, Dtype dtype, const measure::GemmShape& shape, std::int64_t copies);
Operated make_attention(const Workshop& shop, Dtype dtype, const measure::AttentionShape& shape, std::int64_t copies);
Operated make_latent(const Workshop& shop, Dtype dtype, const measure::LatentShape& shape, std::int64_t copies);
Operated make_experts(const Workshop& shop, Dtype dtype, const measure::ExpertsShape& shape, std::int64_t copies);
Operated make_vector(const Workshop& shop, Dtype dtype, const measure::VectorShape& shape);
Operated make_gather(const Workshop& shop, Dtype dtype, const measure::GatherShape& shape, std::int64_t copies);
Operated make_kv_write(const Workshop& shop, Dtype dtype, const measure::CacheShape& shape, std::int64_t copies);
Operated make_scan(const Workshop& shop, Dtype dtype, const measure::ScanShape& shape, std::int64_t copies);
Operated make_collective(const Workshop& shop, Dtype dtype, const measure::CollectiveShape& shape);

// fp32 or bf16; Unavailable of others, for an op called `op`.
Element element_of(Dtype dtype, std::string_view op);

// The product of positive extents times an element size. Unavailable when one is not positive or the result is beyond
// any memory.
std::int64_t bytes_of_tensor(std::initializer_list<std::int64_t> extents, Element element);

}  // namespace llmperf::replay::cpu
