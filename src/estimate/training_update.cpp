// Bytes of memory that an update moves for each parameter it owns, with g bytes of a gradient, o of optimiser state and
// w of a weight:
//
//   zero_gradients  write g
//   gradient_norm   read g
//   adam            read g + o, write o + w (weights of 32 bits have no copy in o and are read too)
//
// 16-bit weights and gradients with o = 12 move 2 + 2 + (2 + 12 + 12 + 2) = 32 bytes, in three kernels that waste
// nothing. Under a runtime profile an update is what Megatron runs (arXiv 2205.05198; its mixed-precision optimiser),
// 58 bytes with gradients of 32 bits:
//
//   zero_gradients 4, unscale_gradients 8, gradient_norm 4, clip_gradients 8, adam 28, copy_weights 6 (not of fp32)
//
// Between devices, with G bytes of gradients and W of weights on a device:
//
//   ZeRO 0  all-reduce of G after the last backward pass
//   ZeRO 1  reduce-scatter of G after the last backward pass, all-gather of W after the update
//   ZeRO 2  reduce-scatter of G after every backward pass, all-gather of W after the update
//   ZeRO 3  all-gather of W before every forward and backward pass, reduce-scatter of G after every backward pass
//
// Micro-batches of a pipeline pass a stage in turns, so that stacks keep its weights and gradients whole
// (training.cpp): there W is gathered once, before the first forward pass, and G scattered once, after the last
// backward pass.
//
// What belongs to a pass runs beside it, as far as that lasts; the all-gather after the update shows. Under a profile
// the stages of a pipeline reduce their gradients after the last pass, not beside it (the DDP of arXiv 2104.04473), and
// what runs beside a pass costs it cores (training_pass.h).
#include "estimate/training_update.h"

#include <algorithm>
#include <cmath>

#include "estimate/training_pass.h"

namespace llmperf::estimate {
namespace {

using graph::CollectiveKind;

double d(std::int64_t x) { return static_cast<double>(x); }

class UpdateWriter {
 public:
  UpdateWriter(const Setup& setup, const mapper::Machine& machine, const graph::Plan& plan,
               const graph::TrainingOptions& options, std::int64_t micro_batches, const PassTimes& passes,
               TrainingPhase& phase)
      : e_(setup.execution),
        machine_(machine),
        plan_(plan),
        options_(options),
        micro_batches_(micro_batches),
        passes_(passes),
        phase_(phase),
        weight_bits_(e_.weights.groups.front()[model::Role::o].bits),
        gradient_{.name = options.gradient_bits == 32 ? "fp32" : "16 bit", .bits = options.gradient_bits},
        weight_{.name = weight_bits_ == 32 ? "fp32" : "16 bit", .bits = weight_bits_},
        framework_(setup.profile != nullptr),
        hideable_(hideable_share(setup)) {}

  void build(const ParameterShare& share, double tied) {
    phase_.ops.clear();
    phase_.hidden.clear();
    reduce_over_replicas("gradient_reduce", "gradient_scatter", "weights_gather", share.dense, plan_.replicas(),
                         plan_.stride(graph::Axis::data));
    reduce_over_replicas("expert_gradient_reduce", "expert_gradient_scatter", "expert_weights_gather", share.expert,
                         plan_.expert_replicas(), plan_.expert * plan_.expert_tensor());
    if (plan_.sequence_parallel) {
      exchange("vector_gradient_reduce", CollectiveKind::all_reduce, graph::Axis::tensor, plan_.tensor, 1,
               share.summands, gradient_);
    }
    if (tied > 0) {
      exchange("tied_embedding_reduce", CollectiveKind::all_reduce, graph::Axis::pipeline, 2,
               (plan_.pipeline - 1) * plan_.stage(), tied, gradient_);
    }
    const double owned = share.dense / (options_.zero >= 1 ? d(plan_.replicas()) : 1) +
                         share.expert / (options_.zero >= 1 ? d(plan_.expert_replicas()) : 1);
    const double kept = options_.zero >= 2 && plan_.pipeline == 1 ? owned : share.total();
    update_memory(owned, kept);
  }

 private:
  void push(const graph::Op& op, Seconds beside = Seconds{}) {
    OpEstimate o;
    o.op = op;
    o.work = machine_.work(o.op);
    o.time = machine_.time(o.op, o.work);
    phase_.ops.push_back(o);
    phase_.hidden.push_back(std::min(beside, o.step_time() * hideable_));
  }
  void exchange(std::string_view name, CollectiveKind kind, graph::Axis axis, std::int64_t ranks, std::int64_t stride,
                double elements, const model::ElementFormat& element, std::int64_t times = 1,
                Seconds beside = Seconds{}) {
    if (ranks == 1 || elements == 0) return;
    push({.name = name,
          .count = times,
          .place = graph::Place::network,
          .overlaps = beside.value > 0,
          .body = graph::Collective{.kind = kind,
                                    .axis = axis,
                                    .ranks = ranks,
                                    .stride = stride,
                                    .rows = elements,
                                    .width = 1,
                                    .element = element}},
         beside);
  }
  // Dense parameters first: what they leave of the passes is for the experts'.
  void reduce_over_replicas(std::string_view reduce, std::string_view scatter, std::string_view gather, double elements,
                            std::int64_t ranks, std::int64_t stride) {
    const auto over = [&](std::string_view name, CollectiveKind kind, const model::ElementFormat& element,
                          std::int64_t times, Seconds beside) {
      const std::size_t before = phase_.ops.size();
      exchange(name, kind, graph::Axis::data, ranks, stride, elements, element, times, beside);
      return phase_.ops.size() > before ? phase_.hidden.back() : Seconds{};
    };
    const bool pipelined = plan_.pipeline > 1;
    const std::int64_t times = pipelined ? 1 : micro_batches_;
    const double m = d(times);
    const auto beside = [&](Seconds passes) { return framework_ && pipelined ? Seconds{} : passes - used_; };
    if (options_.zero == 0) {
      used_ += over(reduce, CollectiveKind::all_reduce, gradient_, 1, beside(passes_.backward));
    } else if (options_.zero == 1) {
      used_ += over(scatter, CollectiveKind::reduce_scatter, gradient_, 1, beside(passes_.backward));
      over(gather, CollectiveKind::all_gather, weight_, 1, Seconds{});
    } else if (options_.zero == 2) {
      used_ += over(scatter, CollectiveKind::reduce_scatter, gradient_, times, beside(passes_.backward * m));
      over(gather, CollectiveKind::all_gather, weight_, 1, Seconds{});
    } else {
      const Seconds passes = (passes_.forward + passes_.backward) * m;
      used_ += over(gather, CollectiveKind::all_gather, weight_, pipelined ? 1 : 2 * times, passes - used_);
      used_ += over(scatter, CollectiveKind::reduce_scatter, gradient_, times, beside(passes));
    }
  }
  void update_memory(double owned, double kept) {
    const double activation_bits = bits(e_.activations);
    const auto rows = [](double elements) { return static_cast<std::int64_t>(std::ceil(elements)); };
    push({.name = "zero_gradients", .body = graph::Copy{.write_elements = kept, .from = gradient_, .to = gradient_}});
    const auto vector = [&](std::string_view name, graph::VectorKind kind, double read_bits, double written_bits) {
      push({.name = name,
            .body = graph::Vector{.kind = kind,
                                  .rows = rows(owned),
                                  .width = 1,
                                  .reads = read_bits / activation_bits,
                                  .writes = written_bits / activation_bits,
                                  .activation = e_.activations}});
    };
    const double gradient = options_.gradient_bits;
    const double state = options_.optimizer_bits;
    const bool copies = framework_ && weight_bits_ != 32;
    if (framework_) vector("unscale_gradients", graph::VectorKind::multiply, gradient, gradient);
    vector("gradient_norm", graph::VectorKind::add, gradient, 0);
    if (framework_) vector("clip_gradients", graph::VectorKind::multiply, gradient, gradient);
    vector("adam", graph::VectorKind::adam, gradient + state + (weight_bits_ == 32 ? weight_bits_ : 0),
           state + (copies ? 0 : weight_bits_));
    if (copies) vector("copy_weights", graph::VectorKind::add, 32, weight_bits_);
  }

  const graph::Execution& e_;
  const mapper::Machine& machine_;
  const graph::Plan& plan_;
  const graph::TrainingOptions& options_;
  std::int64_t micro_batches_;
  const PassTimes& passes_;
  TrainingPhase& phase_;
  double weight_bits_;
  model::ElementFormat gradient_;
  model::ElementFormat weight_;
  bool framework_;
  double hideable_;
  Seconds used_;  // of the passes, by collectives beside them
};

}  // namespace

void build_update(const Setup& setup, const mapper::Machine& machine, const ParameterShare& share, double tied,
                  const graph::Plan& plan, const graph::TrainingOptions& options, std::int64_t micro_batches,
                  const PassTimes& passes, TrainingPhase& phase) {
  UpdateWriter(setup, machine, plan, options, micro_batches, passes, phase).build(share, tied);
}

}  // namespace llmperf::estimate
