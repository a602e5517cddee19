// A prepared op: on every device it runs on, its operands and its launches.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "measure/op_row.h"
#include "replay/ascend/device.h"
#include "replay/backend.h"

namespace llmperf::replay::ascend {

// Throws Unavailable where this CANN does not have the op.
template <class... Parameters>
const cann::Op<Parameters...>& needed(const cann::Op<Parameters...>& op) {
  require(static_cast<bool>(op), std::string(op.name) + " is not in the libraries of this CANN");
  return op;
}

// The two phases of one op on fixed operands. The executor that the first phase makes is used again for every launch
// where CANN can do that; else there is one for each launch, made before the clock runs.
class Step {
 public:
  using Plan = std::function<cann::Status(std::uint64_t* workspace_bytes, aclOpExecutor** executor)>;
  // Runs the first phase: throws Unavailable when CANN does not have the op or the op does not take the operands.
  // Written with braces, the arguments are made in their order.
  template <class... Parameters, class... Arguments>
  Step(Device& device, const cann::Op<Parameters...>& op, Arguments... arguments)
      : Step(device, needed(op).name, op.launch,
             Plan([plan = op.plan, arguments...](std::uint64_t* workspace_bytes, aclOpExecutor** executor) {
               return plan(arguments..., workspace_bytes, executor);
             })) {}
  Step(Step&&) = default;
  Step& operator=(Step&&) = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  void stock(std::size_t launches);
  void enqueue(cann::Stream stream);

 private:
  Step(Device& device, const char* name, cann::Launch* launch, Plan plan);
  Executor planned();

  Device* device_;
  const char* name_;
  cann::Launch* launch_;
  Plan plan_;
  std::uint64_t workspace_bytes_ = 0;
  bool repeatable_ = false;
  std::deque<Executor> executors_;
};

// What an op leaves in memory: read back as result().
struct Output {
  const void* data;
  std::size_t count;
  cann::DataType type;
};
// What an op overwrites and result() fills again.
struct Overwritten {
  void* data;
  std::vector<std::byte> filled;
};

// An op on one device: its memory and tensors, released together, and its launches.
class Part {
  Tensor make(void* data, cann::DataType type, const Shape& view, const Shape& strides, const Shape& stored);

  // Released after the launches that use them.
  std::vector<Memory> memory_;
  std::vector<Tensor> tensors_;
  std::vector<TensorList> lists_;
  std::vector<IntArray> arrays_;
  std::vector<Scalar> scalars_;

 public:
  explicit Part(Device& on) : device(on) {}

  Device& device;
  std::vector<std::vector<Step>> copies;   // the launches of an execution, for each copy of what is rotated
  std::function<void(cann::Stream)> call;  // of collectives, instead
  std::vector<Output> outputs;
  std::vector<Overwritten> overwritten;
  std::size_t turn = 0;

  void* allocate(std::size_t bytes);
  void* store(std::span<const float> values, cann::DataType type);
  // Row-major without gaps, over memory that is there or over values that are stored for it.
  aclTensor* tensor(void* data, cann::DataType type, const Shape& shape);
  aclTensor* tensor(std::span<const float> values, cann::DataType type, const Shape& shape) {
    return tensor(store(values, type), type, shape);
  }
  // [..., rows, columns] in memory, seen as [..., columns, rows].
  aclTensor* transposed(std::span<const float> values, cann::DataType type, const Shape& stored);
  // Of one tensor, whose values are stored or which is there.
  aclTensorList* list(std::span<const float> values, cann::DataType type, const Shape& shape) {
    return list(store(values, type), type, shape);
  }
  aclTensorList* list(void* data, cann::DataType type, const Shape& shape);
  aclIntArray* array(std::span<const std::int64_t> values);
  aclScalar* scalar(float value);
  // A tensor that the op writes and result() reads.
  aclTensor* output(cann::DataType type, const Shape& shape);
  // The launch of an execution, with the next copy of what is rotated.
  void add_copy(Step step) { copies.emplace_back().push_back(std::move(step)); }
  std::size_t launches() const { return copies.empty() ? 1 : copies.front().size(); }
  void stock(std::size_t executions);
  void enqueue();
  void fill_again() const;
  std::vector<float> read() const;
};

class Op : public Prepared {
 public:
  explicit Op(std::unique_ptr<Part> part) { parts.push_back(std::move(part)); }
  // One part for each rank, made and destroyed on the rank's thread.
  Op(RankGroup& ranks, const std::function<std::unique_ptr<Part>(int rank, Device& device)>& make);
  ~Op() override;

  RankGroup* group = nullptr;
  std::vector<std::unique_ptr<Part>> parts;
};

// ---- Which call of CANN each op is, its operands as operands.h says, and the constraints of the call. All throw
// Unavailable when the op cannot be run: a function that this CANN lacks, a constraint that the shape breaks.

// How often an operand of that size is there: `asked`, or, of 0, as often as exceeds twice the cache.
class Rotation {
 public:
  Rotation(std::int64_t asked, std::int64_t cache_bytes) : asked_(asked), cache_bytes_(cache_bytes) {}
  std::int64_t copies(std::size_t bytes) const;

 private:
  std::int64_t asked_;
  std::int64_t cache_bytes_;
};

// aclnnMatmul, aclnnBatchMatMul; weights int8, w8a16 and w4a16: aclnnWeightQuantBatchMatmulV2; w8a8 and int8:
// aclnnQuantMatmulV4, else V5, else V3; several of these: aclnnGroupedMatmulV4.
std::unique_ptr<Part> make_gemm(Device& device, const measure::GemmShape& shape, Dtype dtype, Rotation rotation);

// Experts that share rows evenly: expert e's are rows first(e) to first(e + 1) of x.
struct Grouped {
  std::int64_t experts;
  std::int64_t rows;  // of all of them
  std::int64_t n;
  std::int64_t k;
};
// The launch of aclnnGroupedMatmulV4 of x [rows, k], or of int8 with its scales per row, on weights [experts, k, n]
// that are `operand` of operands.h times `scale`; `last_rows`: where the rows of each expert end.
struct GroupedOperands {
  void* x;
  void* x_scales;  // of int8, else null
  void* out;
  std::span<const float> last_rows;
};
Step grouped_product(Part& part, const Grouped& shape, const GroupedOperands& operands, std::uint32_t operand,
                     double scale, cann::DataType type);

// aclnnFusedInferAttentionScoreV3, else V4, else V2, else the first; without any aclnnPromptFlashAttentionV3, V2
// (several queries per sequence) or aclnnIncreFlashAttentionV4, V3 (one). With `page`, keys and values are in pages of
// as many tokens, and FusedInferAttentionScore is told a table of them and lengths; 0: sequences lie whole.
std::unique_ptr<Part> make_attention(Device& device, const measure::AttentionShape& shape, Dtype dtype,
                                     Rotation rotation, std::int64_t page = 0);

// aclnnMoeGatingTopKSoftmaxV2, aclnnMoeInitRoutingV2, aclnnGroupedMatmulV4, aclnnSwiGlu, aclnnGroupedMatmulV4 and
// aclnnMoeFinalizeRoutingV2; of weights w8a8 aclnnDynamicQuant before each product.
std::unique_ptr<Part> make_experts(Device& device, const measure::ExpertsShape& shape, Dtype dtype, Rotation rotation);

// aclnnRmsNorm, aclnnAddRmsNorm, aclnnApplyRotaryPosEmb (V2 where the heads are not of 128), aclnnSwiGlu, aclnnSilu,
// aclnnAdd, aclnnMul.
std::unique_ptr<Part> make_vector(Device& device, const measure::VectorShape& shape, Dtype dtype);
// aclnnEmbedding.
std::unique_ptr<Part> make_gather(Device& device, const measure::GatherShape& shape, Dtype dtype, Rotation rotation);
// aclnnInplaceScatterUpdate, for keys and for values.
std::unique_ptr<Part> make_cache_write(Device& device, const measure::CacheShape& shape, Dtype dtype);

// HcclAllReduce, HcclAllGather, HcclReduceScatter, HcclAlltoAll.
std::unique_ptr<Op> make_collective(RankGroup& group, const measure::CollectiveShape& shape, Dtype dtype);
// What the shape must hold before there is a group for it.
void require_collective(const cann::Functions& cann, const measure::CollectiveShape& shape, Dtype dtype);

// aclnnMatmulAllReduce: every rank r has x [m, k] (operand 2 r) and w [n, k] (operand 2 r + 1, scaled as of gemm); the
// result is the sum of all x w^T, as rank 0 has it.
std::unique_ptr<Op> make_matmul_all_reduce(RankGroup& group, const measure::GemmShape& shape, Dtype dtype);
void require_matmul_all_reduce(const cann::Functions& cann, const measure::GemmShape& shape, Dtype dtype);

// Throws Unavailable unless all of the sizes are positive.
void require_positive(std::initializer_list<std::int64_t> sizes, const char* op);

// ---- How long a sequence of ops takes on the device.
//
// Passes are enqueued while the stream waits for an event that the host records last, so that the device never waits
// for the host; the time is between two events on that stream, around the passes. A queue holds about a hundred
// launches, so many passes are timed in several parts, which are summed. A sequence of several launches is captured as
// a graph, where CANN can do that, and the graph is launched instead.

struct Timing {
  Seconds seconds;
  bool graph = false;  // launched as a graph
};

// Ops of one device.
Timing time_on_device(Device& device, std::span<Op* const> sequence, std::int64_t passes, bool graphs);

// Ops of which some are on several devices; those on one are on the first. Of the slowest rank.
Timing time_on_ranks(RankGroup& group, std::span<Op* const> sequence, std::int64_t passes);

}  // namespace llmperf::replay::ascend
