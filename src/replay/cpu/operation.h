// An op as this backend runs it: prepared operands and a body that every thread of the pool executes at the same time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "replay/backend.h"
#include "replay/cpu/buffer.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/isa.h"
#include "replay/cpu/machine.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

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
  // The result of the last execution, of which there was one at least.
  virtual std::vector<float> read() const = 0;
  // Operands of which there are copies() copies, one after the other, or null.
  virtual const Buffer* rotated() const { return nullptr; }

 private:
  std::int64_t copies_;
  std::int64_t turn_ = 0;
};

using Operated = std::variant<std::unique_ptr<Operation>, Unavailable>;

// What the makers of operations work with.
struct Workshop {
  const Kernels* kernels = nullptr;
  Gemm gemm = Gemm::best;
  Gemm best_fp32 = Gemm::eigen;  // whom `best` means for products in fp32
  ThreadPool* pool = nullptr;
  std::int64_t last_level = 0;  // bytes of cache that rotated operands must exceed

  // How many copies of `bytes` there are to be where `asked` were asked for: as many; of 0, as many as kRotatedCaches
  // times the last-level cache hold, within a third of the free memory. Or that there is no memory for `others` bytes
  // and one copy.
  std::variant<std::int64_t, Unavailable> copies(std::int64_t asked, std::int64_t bytes, std::int64_t others) const;
};

Operated make_gemm(const Workshop& shop, Dtype dtype, const calibrate::GemmShape& shape, std::int64_t copies);
Operated make_attention(const Workshop& shop, Dtype dtype, const calibrate::AttentionShape& shape, std::int64_t copies);
Operated make_vector(const Workshop& shop, Dtype dtype, const calibrate::VectorShape& shape);
Operated make_gather(const Workshop& shop, Dtype dtype, const calibrate::GatherShape& shape, std::int64_t copies);
Operated make_kv_write(const Workshop& shop, Dtype dtype, const calibrate::CacheShape& shape, std::int64_t copies);
Operated make_collective(const Workshop& shop, Dtype dtype, const calibrate::CollectiveShape& shape);

// fp32 or bf16; else the reason why not, for an op called `op`.
std::variant<Element, Unavailable> element_of(Dtype dtype, std::string_view op);

// The product of positive extents times an element size; nothing when one is not positive or the result is beyond any
// memory.
std::optional<std::int64_t> bytes_of_tensor(std::initializer_list<std::int64_t> extents, Element element);

}  // namespace llmperf::replay::cpu
