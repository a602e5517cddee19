// A step of 1F1B (arXiv 2104.04473): stage i of p forwards p - i micro-batches before its first backward pass and then
// alternates; with layers in m chunks per stage it runs chunks instead of stages.
//
//   compute = M (t_f + t_b)                     M micro-batches on the busiest stage, its sends included
//   bubble  = (p - 1) (t_f + t_b) / m           so (p - 1) / (m M) of it
//   update  = what shows of the gradients' collectives, and the optimiser
//
// That is the speed of light. Under a runtime profile t_f + t_b of the bubble is of the layers and messages alone.
//
// Activations in flight on stage i, in micro-batches of the whole stage (arXiv 2205.05198 section 4.2.3):
//
//   m = 1   min(M, p - i)                       the first stage: p runs of L / p layers, L in all
//   m > 1   min(m M, 2 (p - i) - 1 + (m - 1) p) / m     the first: L (1 + (p - 1) / (p m))
//
// Layers that do not divide into p m runs are dealt by the time of both passes (graph/stage_split.h); in the formulas
// above every stage then has its own layers, and t_f + t_b are those of the busiest.
//
// Outputs that were sent are freed (appendix B there), so only what the graph's ops keep counts.
//
// What ZeRO divides is whole while it is used (torch.distributed.fsdp: one unit's weights are gathered while another's
// are in use, gradients are scattered one unit behind, and the outermost unit, with embedding and lm_head, stays
// gathered). Without a pipeline that is two layers and those tables. In a pipeline every stage has micro-batches in
// both directions, so its weights (ZeRO 3) and gradients (2, 3) stay whole until the last one has gone back (torchtitan
// does not reshard after the forward pass there; arXiv 2407.21783 section 3.3.2).
//
// The loss: logits of a whole vocabulary become gradients in place, in the 4 bytes that Korthikanti et al. count for
// them, beside their 16-bit gradient. Where the tensor axis divides the vocabulary, and under a profile, it runs as
// Megatron-LM's and PyTorch's loss-parallel functions do, with an exponential and a gradient in fp32 as well.
#include "estimate/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/load_once.h"
#include "estimate/schedule.h"
#include "graph/training_graph.h"
#include "model/parameters.h"

namespace llmperf::estimate {

namespace {

// ---- Which batches, sequences and chunks of layers go into a plan

// `value` must be a multiple of `of`.
struct Multiple {
  std::int64_t value = 0;
  std::int64_t of = 1;
  bool holds() const { return value % of == 0; }
  // "96 or 112"
  std::string nearest() const {
    const std::int64_t below = value / of * of;
    return below > 0 ? fmt::format("{} or {}", below, below + of) : fmt::format("{}", of);
  }
};

Multiple batch(const TrainingScenario& s, const graph::Plan& plan) {
  return {s.global_batch, plan.data * s.micro_batch};
}
// Every device of the sequence axes has as many tokens, and of these every device of the tensor axis under sequence
// parallelism.
Multiple sequence(const TrainingScenario& s, const graph::Plan& plan) {
  return {s.sequence, graph::sequence_multiple(plan)};
}
// Interleaved stages take micro-batches in groups of as many as there are stages (arXiv 2104.04473 section 2.2).
Multiple groups(const TrainingScenario& s, const graph::Plan& plan) { return {s.micro_batches(plan), plan.pipeline}; }

}  // namespace

// ---- Parameters that one device of a plan holds, by what happens to their gradients

struct ParameterShare {
  double dense = 0;     // the same on all Plan::replicas()
  double expert = 0;    // routed experts: the same on all Plan::expert_replicas()
  double summands = 0;  // of `dense`: vectors that the tensor axis does not divide; under sequence parallelism every
                        // device of it sees the gradients of its own tokens only
  double outer = 0;     // of `dense`: embedding, lm_head, final norm
  double largest_dense = 0;    // of the layer that has most
  double largest_experts = 0;  // likewise
  void add(const ParameterShare& other, double times) {
    dense += other.dense * times;
    expert += other.expert * times;
    summands += other.summands * times;
    if (times <= 0) return;
    largest_dense = std::max(largest_dense, other.largest_dense);
    largest_experts = std::max(largest_experts, other.largest_experts);
  }
  double total() const { return dense + expert; }
};

static bool is_routed(const model::Tensor& tensor) { return tensor.name.starts_with("mlp.experts."); }

static ParameterShare layer_share(const model::Decoder& model, const model::Layer& layer, const graph::Plan& plan) {
  ParameterShare share;
  const std::vector<model::Tensor> whole = model::layer_tensors(model, layer);
  if (plan.tensor_rows > 0) {  // everything is divided by rows and columns, vectors too
    for (const model::Tensor& tensor : whole) share.dense += d(tensor.elements()) / d(plan.tensor);
  } else {
    const std::vector<model::Tensor> local = model::layer_tensors(model, graph::shard(layer, plan));
    for (std::size_t i = 0; i < local.size(); ++i) {
      const double elements = d(local[i].elements());
      (is_routed(local[i]) ? share.expert : share.dense) += elements;
      const bool vector = local[i].role == model::Role::vector && !is_routed(local[i]);
      if (vector && local[i].n == whole[i].n) share.summands += elements;
    }
  }
  share.largest_dense = share.dense;
  share.largest_experts = share.expert;
  return share;
}

// Sums over tensors, kept for every degree seen.
class ParameterShares {
 public:
  explicit ParameterShares(const model::Decoder& model) : model_(model) {
    before_.resize(model.kinds.size());
    for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
      before_[kind].push_back(0);
      for (const unsigned char k : model.layer_kinds)
        before_[kind].push_back(before_[kind].back() + (k == kind ? 1 : 0));
    }
    for (const model::Tensor& tensor : model::outer_tensors(model)) {
      if (tensor.role == model::Role::position_embedding) positions_ += d(tensor.elements());
      if (tensor.part == model::Part::norm) final_norm_ += d(tensor.elements());
    }
    if (model.lm_head_bias) head_bias_ = 1;
  }

  // Of pipeline stage `stage`. Allocates nothing for degrees seen before.
  ParameterShare stage(const graph::Plan& plan, const graph::StageSplit& split, std::int64_t stage) {
    ParameterShare share;
    const Entry& entry = of(plan);
    for (std::size_t kind = 0; kind < entry.kinds.size(); ++kind) {
      share.add(entry.kinds[kind], d(layers(split, stage, kind)));
    }
    // What a two-dimensional plan divides beside the vocabulary.
    const double vectors = plan.tensor_rows > 0 ? d(plan.tensor) : 1;
    const double table = d(graph::shard_vocab(model_, plan) * model_.hidden);
    share.outer = -share.dense;
    if (stage == 0) {
      share.dense += table + positions_ / vectors;
      share.summands += positions_ / vectors;
    }
    if (stage == plan.pipeline - 1) {
      share.dense += final_norm_ / vectors + head_bias_ * d(graph::shard_vocab(model_, plan));
      share.summands += final_norm_ / vectors;
      if (!model_.tied_embeddings || plan.pipeline > 1) share.dense += table;
    }
    share.outer += share.dense;
    return share;
  }
  // Elements of a tied embedding that two stages hold, on one device; 0 when there is one copy.
  double tied(const graph::Plan& plan) const {
    return model_.tied_embeddings && plan.pipeline > 1 ? d(graph::shard_vocab(model_, plan) * model_.hidden) : 0;
  }
  // Layers of one kind on a stage.
  std::int64_t layers(const graph::StageSplit& split, std::int64_t stage, std::size_t kind) const {
    std::int64_t count = 0;
    for (std::int64_t run = stage; run < split.runs(); run += split.stages) {
      const auto before = [&](std::int64_t r) {
        return before_[kind][static_cast<std::size_t>(split.first[static_cast<std::size_t>(r)])];
      };
      count += before(run + 1) - before(run);
    }
    return count;
  }

 private:
  struct Entry {
    std::int64_t tensor, rows, expert;
    std::vector<ParameterShare> kinds;
  };
  const Entry& of(const graph::Plan& plan) {
    for (const Entry& entry : entries_) {
      if (entry.tensor == plan.tensor && entry.rows == plan.tensor_rows && entry.expert == plan.expert) return entry;
    }
    Entry entry{plan.tensor, plan.tensor_rows, plan.expert, {}};
    for (const model::Layer& layer : model_.kinds) entry.kinds.push_back(layer_share(model_, layer, plan));
    entries_.push_back(std::move(entry));
    return entries_.back();
  }

  const model::Decoder& model_;
  std::vector<Entry> entries_;
  std::vector<std::vector<std::int64_t>> before_;  // [kind][i]: layers of the kind among the first i
  double positions_ = 0;
  double final_norm_ = 0;
  double head_bias_ = 0;
};

// ---- Both passes of one micro-batch as lists of timed ops, and their sums by part of the pipeline

// Where in the pipeline an op runs.
enum class Region : unsigned char { layer, first_stage, last_stage };

// Ops before the layers are of the stage that the step begins in: the first going forward, the last going back. The
// norm before the first layer stands for the final one: a layer's own last norm is the next layer's first.
static Region region_of(const graph::Op& op, bool layers_seen, bool backward) {
  if (op.layer_kind >= 0) return Region::layer;
  if (op.tag == graph::Tag::input_norm || op.tag == graph::Tag::norm_statistics) return Region::last_stage;
  return layers_seen == backward ? Region::first_stage : Region::last_stage;
}

// Of one pass, all executions of the step's one micro-batch in one region.
struct PassSum {
  Seconds ops;  // waits for the host included
  Seconds hidden;
  Seconds device;  // of ops, what is no exchange
  Seconds waits;
  Seconds weights;  // of gradients of weights
  Flops matrix;
  Seconds time() const { return ops - hidden; }
};

struct Pass {
  std::vector<OpEstimate> ops;  // layer ops: counts of one layer of their kind; hidden: of one execution
  std::vector<Region> regions;
  std::vector<PassSum> layers;  // by kind, of one layer
  PassSum first;
  PassSum last;
};

// What a profile says of training; without one nothing costs more than it must.
struct Stack {
  bool framework = false;  // kernels of Megatron-LM of 2022
  bool fused = false;      // of libraries of today
  double quantise = 1;     // passes
  double quantise_rows = 1;
  double tensor_shows = 0;  // of exchanges, by their axis
  double async_shows = 1;   // of that, in pieces beside their products
  double routing_shows = 0;
  double context_shows = 0;
  double shard_hidden = 1;
  double shard_shows = 0;
  double update_shows = 0;
  Seconds host_op;
  Seconds host_experts;
  double gathered = 2;  // layers
  double loss = 8;      // B of a logit
  double divided_loss = 14;
  bool buffers = true;  // of gradients
  graph::Again again = graph::Again::all;

  explicit Stack(const hardware::RuntimeProfile* profile) {
    if (profile == nullptr) return;
    fused = profile->choices.fused_training;
    framework = !fused;
    if (framework) return;
    using P = hardware::Parameter;
    const auto of = [&](P p) { return hardware::get(profile->values, p); };
    quantise = of(P::training_quantise);
    quantise_rows = of(P::training_quantise_rows);
    tensor_shows = of(P::training_tensor_shows);
    async_shows = of(P::training_async_shows);
    routing_shows = of(P::training_routing_shows);
    context_shows = of(P::training_context_shows);
    shard_hidden = of(P::training_shard_hidden);
    shard_shows = of(P::training_shard_shows);
    update_shows = of(P::training_update_shows);
    host_op = Seconds{of(P::training_host_op)};
    host_experts = Seconds{of(P::training_host_experts)};
    gathered = of(P::training_gathered);
    loss = of(P::training_loss_bytes);
    divided_loss = of(P::training_divided_loss_bytes);
    buffers = profile->choices.gradient_buffers;
    if (profile->choices.early_stop) again = graph::Again::needed;
  }
  double quantising(graph::Products products) const {
    const bool many_scales = products == graph::Products::fp8_rowwise || products == graph::Products::fp8_block;
    return many_scales ? quantise_rows : quantise;
  }
  double shows(const graph::Collective& c, bool pieces) const {
    if (c.axis == graph::Axis::expert || c.routing.experts > 0) return routing_shows;
    if (c.axis == graph::Axis::ring && c.kind != graph::CollectiveKind::ring_pass) return 1;  // attention waits for it
    if (c.axis == graph::Axis::ring || c.axis == graph::Axis::ulysses) return context_shows;
    const bool parted = c.kind == graph::CollectiveKind::all_gather || c.kind == graph::CollectiveKind::reduce_scatter;
    return pieces && parted ? tensor_shows * async_shows : tensor_shows;
  }
};

// Share of an exchange's time that it can run beside an op at no cost to it. NCCL copies and sums in thread blocks that
// hold a core each, 24 of them on an A100: beside an exchange of C seconds an op of W seconds ends after
// max(C, W + C 24 / cores). 1 without a profile.
static double hideable_share(const Setup& setup) {
  constexpr double kExchangeBlocks = 24;
  const double cores = d(setup.device->cores.value_or(0));
  if (setup.profile == nullptr || setup.profile->choices.fused_training || cores == 0) return 1;
  return std::max(0.0, 1 - kExchangeBlocks / cores);
}

// Of the bandwidth, what a kernel gets of it that reads, does next to nothing and writes.
constexpr double kStreams = 0.85;

// What one device keeps between the passes for one micro-batch, by region.
struct KeptBytes {
  std::vector<Bytes> layers;      // by kind, of one layer
  std::vector<Bytes> recomputed;  // given up by one layer
  std::vector<Bytes> largest;     // kept by a single op of the layer
  Bytes first;
  Bytes last;
  Bytes logits;                  // the largest tensor of the last stage, as its gradient
  Bytes loss;                    // of `last`, what the loss keeps
  Bytes residual;                // the residual stream
  std::vector<double> adapters;  // parameters of adapters, of one layer by kind
};

// Whether what was made with some options is, by those that have a part in it, what others would make.
template <auto... Member>
bool alike(const std::optional<graph::TrainingOptions>& made, const graph::TrainingOptions& asked) {
  return made && ((*made.*Member == asked.*Member) && ...);
}

// Ops depend on the plan's data and pipeline axes in nothing but stage sends, which are made apart: plans that differ
// in these alone share their passes.
class TrainingPasses {
 public:
  TrainingPasses(const Setup& setup, const mapper::Machine& machine)
      : execution_(setup.execution),
        machine_(machine),
        stack_(setup.profile),
        kernels_(stack_.framework ? graph::Kernels::framework : graph::Kernels::ideal),
        hideable_(hideable_share(setup)),
        cores_(d(setup.device->cores.value_or(0))),
        link_(setup.device->host_link ? setup.device->host_link->per_direction : BytesPerSecond{}),
        streams_(setup.device->dram().bandwidth.value_or(BytesPerSecond{}) * kStreams) {
    execution_.training = true;
    const std::size_t kinds = execution_.model->kinds.size();
    for (std::vector<Bytes>* list : {&kept_.layers, &kept_.recomputed, &kept_.largest}) list->resize(kinds);
    kept_.adapters.resize(kinds);
    forward_.layers.resize(kinds);
    backward_.layers.resize(kinds);
  }

  // Makes the passes below those of a micro-batch of this plan. Allocates nothing once warm.
  void prepare(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o) {
    graph::Plan local = plan;
    local.data = local.pipeline = 1;
    using O = graph::TrainingOptions;
    const bool other = !alike<&O::adapters, &O::products>(built_options_, o);
    if (other || group_.count != s.micro_batch || group_.new_tokens != s.sequence || local != execution_.plan) {
      built_options_ = o;
      execution_.plan = local;
      group_ = {.count = s.micro_batch, .new_tokens = s.sequence, .context = 0};
      const bool framework = kernels_ == graph::Kernels::framework;
      graph::build_step(execution_, {&group_, 1}, graph::Part::all, framework ? ideal_graph_ : forward_graph_);
      if (framework) graph::use_framework_kernels(ideal_graph_, forward_graph_);
      if (o.adapters.any()) graph::add_adapters(o, execution_.weights.lm_head, forward_graph_);
      for (graph::Op& op : forward_graph_) {
        if (op.layer_kind >= 0) op.count /= execution_.model->count_of_kind(static_cast<std::size_t>(op.layer_kind));
      }
      kept_options_.reset();
      backward_options_.reset();
      timed_.reset();
    }
    if (!alike<&O::recompute, &O::modules, &O::products, &O::recomputed_share>(kept_options_, o)) keep(o);
  }
  // Times too; prepare() comes first.
  void prepare_times(const graph::TrainingOptions& o) {
    const bool narrow = o.products != graph::Products::wide;
    const Timing timing{.graphs = o.graphs,
                        .eager = o.eager,
                        .async_sums = o.async_sums,
                        .shared_beside = o.shared_beside,
                        .both_ways = o.schedule == graph::Schedule::dualpipe,
                        .away = o.recompute == graph::Recompute::offload ? o.recomputed_share : 0};
    if (timing != timed_) {
      timed_ = timing;
      backward_options_.reset();
      const graph::Graph* pass = &forward_graph_;
      if (narrow) {
        narrow_graph_ = forward_graph_;
        graph::narrow_products(o, stack_.quantising(o.products), narrow_graph_);
        pass = &narrow_graph_;
      }
      time(*pass, o, forward_);
      ++version_;
    }
    using O = graph::TrainingOptions;
    if (alike<&O::recompute, &O::modules, &O::recomputed_share, &O::gradient_bits, &O::fused_gradients,
              &O::overlapped_sums>(backward_options_, o)) {
      return;
    }
    graph::build_backward(forward_graph_, o, backward_graph_, kernels_, stack_.again);
    if (narrow) graph::narrow_products(o, stack_.quantising(o.products), backward_graph_);
    time(backward_graph_, o, backward_);
    ++version_;
    backward_options_ = o;
  }
  // Another number whenever the times are others.
  std::int64_t version() const { return version_; }

  const KeptBytes& kept() const { return kept_; }
  const Pass& forward() const { return forward_; }
  const Pass& backward() const { return backward_; }
  // What takes the residual stream from one stage to the next, on one device. Without sequence parallelism all devices
  // of a stage hold the same: under a profile each sends its share, which the receivers gather.
  struct StageExchange {
    OpEstimate send;
    std::optional<OpEstimate> gather;
    Seconds time() const { return gather ? send.time.total + gather->time.total : send.time.total; }
  };
  enum class Direction : bool { forward, backward };
  StageExchange stage_exchange(const graph::Plan& plan, Direction direction) const {
    const bool forward = direction == Direction::forward;
    const model::ElementFormat element = model::element_format(execution_.activations);
    const double elements = kept_.residual.value / bytes_per_element(execution_.activations);
    const bool shared =
        kernels_ == graph::Kernels::framework && plan.tensor > 1 && plan.tensor_rows == 0 && !plan.sequence_parallel;
    StageExchange e{.send = exchange(forward ? "stage_send" : "stage_send backward",
                                     {.kind = graph::CollectiveKind::send,
                                      .axis = graph::Axis::pipeline,
                                      .ranks = plan.pipeline,
                                      .stride = plan.stride(graph::Axis::pipeline),
                                      .rows = 1,
                                      .width = elements / (shared ? d(plan.tensor) : 1),
                                      .element = element}),
                    .gather = {}};
    if (shared) {
      e.gather =
          exchange(forward ? "stage_gather" : "stage_gather backward", {.kind = graph::CollectiveKind::all_gather,
                                                                        .axis = graph::Axis::tensor,
                                                                        .ranks = plan.tensor,
                                                                        .stride = plan.stride(graph::Axis::tensor),
                                                                        .rows = 1,
                                                                        .width = elements,
                                                                        .element = element});
    }
    return e;
  }
  // FLOPs of matrix products of a forward pass over one sequence, on whatever number of devices.
  Flops model_flops(std::int64_t sequence) {
    if (counted_sequence_ == sequence) return counted_flops_;
    graph::Execution whole = execution_;
    whole.plan = graph::Plan{};
    const graph::SequenceGroup one{.count = 1, .new_tokens = sequence, .context = 0};
    graph::Graph graph;
    graph::build_step(whole, {&one, 1}, graph::Part::all, graph);
    counted_flops_ = Flops{};
    for (const graph::Op& op : graph) counted_flops_ += cost::work_of(op).matrix * d(op.count);
    counted_sequence_ = sequence;
    return counted_flops_;
  }

 private:
  // What of the options has a part in the time of a pass.
  struct Timing {
    bool graphs = false;
    bool eager = false;
    bool async_sums = false;
    bool shared_beside = false;
    bool both_ways = false;  // a micro-batch of the other direction runs beside tokens on their way to experts
    double away = 0;         // of the layers, those whose inputs go to the host
    bool operator==(const Timing&) const = default;
  };
  void keep(const graph::TrainingOptions& o) {
    std::ranges::fill(kept_.adapters, 0);
    for (std::vector<Bytes>* list : {&kept_.layers, &kept_.recomputed, &kept_.largest}) {
      std::fill(list->begin(), list->end(), Bytes{});
    }
    kept_.first = kept_.last = kept_.logits = kept_.loss = Bytes{};
    bool layers_seen = false;
    for (const graph::Op& op : forward_graph_) {
      // Megatron weighs the activations of experts, not their results, which then need not be kept.
      const bool weighed = stack_.fused && stack_.buffers && op.tag == graph::Tag::combine;
      // Narrow products keep their inputs as they multiply them.
      const double width =
          graph::is_narrowed(op, o) ? bits(graph::type_of(o.products)) / bits(execution_.activations) : 1;
      const Bytes saved = weighed ? Bytes{} : op.saved * (d(op.count) * width);
      const Region region = region_of(op, layers_seen, false);
      if (region == Region::layer) {
        layers_seen = true;
        const auto kind = static_cast<std::size_t>(op.layer_kind);
        const double given = graph::given_up(op, o);
        kept_.recomputed[kind] += saved * (given > 0 ? 1 : 0);
        kept_.layers[kind] += saved * (1 - given);
        if (op.tag == graph::Tag::adapter_down || op.tag == graph::Tag::adapter_up) {
          const auto& g = std::get<graph::Gemm>(op.body);
          kept_.adapters[kind] += d(g.n) * d(g.k) * std::max(1.0, g.weight_matrices) * d(op.count);
        }
        kept_.largest[kind] = std::max(kept_.largest[kind], op.saved);
      } else {
        (region == Region::first_stage ? kept_.first : kept_.last) += saved;
      }
      const auto* v = std::get_if<graph::Vector>(&op.body);
      if (v == nullptr) continue;
      const Bytes tensor{d(v->rows) * d(v->width) * bytes_per_element(v->activation)};
      if (op.tag == graph::Tag::input_norm) kept_.residual = tensor;
      if (v->kind == graph::VectorKind::cross_entropy) {
        kept_.logits = tensor;
        kept_.loss = saved;
      }
    }
    kept_options_ = o;
  }
  // What the host needs to launch the op's kernels.
  Seconds host_time(const graph::Op& op, const graph::TrainingOptions& o) const {
    if (o.graphs || op.place == graph::Place::network) return Seconds{};
    return stack_.host_op * d(op.launches) +
           (op.tag == graph::Tag::routing && op.pass != graph::Pass::again ? stack_.host_experts : Seconds{});
  }
  void time(const graph::Graph& graph, const graph::TrainingOptions& o, Pass& pass) {
    const bool backward = &pass == &backward_;
    host_.assign(pass.layers.size(), Seconds{});
    pass.ops.resize(graph.size());
    pass.regions.resize(graph.size());
    std::ranges::fill(pass.layers, PassSum{});
    pass.first = pass.last = PassSum{};
    bool layers_seen = false;
    Seconds beside;  // what is left of the op that collectives can run beside
    for (std::size_t i = 0; i < graph.size(); ++i) {
      OpEstimate& e = pass.ops[i];
      e.op = graph[i];
      e.op.hidden = 0;  // beside the op before alone; here beside all since the exchange before, below
      time_op(machine_, e);
      if (o.eager && streams_.value > 0) e.time.total += graph::moved_eagerly(e.op) / streams_;
      layers_seen = layers_seen || e.op.layer_kind >= 0;
      pass.regions[i] = region_of(e.op, layers_seen, backward);
      e.hidden = e.op.overlaps ? std::min(beside, e.time.total * hideable_) : Seconds{};
      const Seconds left = e.op.overlaps || e.op.pass == graph::Pass::wgrad_sum ? beside : Seconds{};
      beside = e.op.overlaps ? left - e.hidden : left + e.time.total;  // beside both kernels of a gradient
      const auto* c = std::get_if<graph::Collective>(&e.op.body);
      const bool routed = c && c->routing.experts > 0;
      const bool beside_other = timed_->both_ways && routed;
      // Its kernels hold 20 cores meanwhile (arXiv 2412.19437, section 3.2.2), which the products miss.
      constexpr double kHeld = 20;
      const double held = cores_ > 0 ? std::min(1.0, kHeld / cores_) : 0;
      if (c && stack_.fused) e.hidden = e.time.total * (1 - (beside_other ? held : stack_.shows(*c, o.async_sums)));
      const bool of_layer = pass.regions[i] == Region::layer;
      const auto kind = static_cast<std::size_t>(std::max(0, e.op.layer_kind));
      PassSum& sum = of_layer ? pass.layers[kind] : pass.regions[i] == Region::first_stage ? pass.first : pass.last;
      // Where not all layers compute again, the mean one does by their share.
      const double count = d(e.op.count) * (e.op.pass == graph::Pass::again ? o.recomputed_share : 1);
      sum.ops += e.time.total * count;
      sum.hidden += e.hidden * count;
      sum.matrix += e.work.matrix * count;
      if (c == nullptr) sum.device += e.time.total * count;
      const bool of_weights = e.op.pass == graph::Pass::wgrad || e.op.pass == graph::Pass::wgrad_sum;
      if (of_weights) sum.weights += e.time.total * count;
      if (of_layer) host_[kind] += host_time(e.op, o) * count;
    }
    if (o.shared_beside) {
      hide_beside_shared(pass, false, 1);
      hide_beside_shared(pass, true, o.recomputed_share);
    }
    // A host that launches more slowly than the device computes is what a layer waits for, or a link to it that takes
    // longer for the layer's input.
    const bool offloads = o.recompute == graph::Recompute::offload && link_.value > 0;
    for (std::size_t kind = 0; kind < host_.size(); ++kind) {
      PassSum& sum = pass.layers[kind];
      if (offloads) host_[kind] = std::max(host_[kind], kept_.residual * o.recomputed_share / link_);
      sum.waits = std::max(Seconds{}, host_[kind] - sum.device);
      sum.ops += sum.waits;
    }
  }
  // Shared experts run beside tokens on their way to routed ones and back (Megatron's moe-shared-expert-overlap): what
  // shows of these is what lasts longer. What is computed again runs beside what travels again.
  void hide_beside_shared(Pass& pass, bool again, double share) {
    shared_.assign(pass.layers.size(), Seconds{});
    const auto in_layer = [&](std::size_t i) {
      const graph::Op& op = pass.ops[i].op;
      return pass.regions[i] == Region::layer && (op.pass == graph::Pass::again) == again &&
             execution_.model->kinds[static_cast<std::size_t>(op.layer_kind)].feed_forward.experts;
    };
    for (std::size_t i = 0; i < pass.ops.size(); ++i) {
      const OpEstimate& e = pass.ops[i];
      if (!in_layer(i) || !graph::is_of_shared_experts(e.op.tag)) continue;
      shared_[static_cast<std::size_t>(e.op.layer_kind)] += e.step_time();
    }
    for (std::size_t i = 0; i < pass.ops.size(); ++i) {
      OpEstimate& e = pass.ops[i];
      const auto* c = std::get_if<graph::Collective>(&e.op.body);
      if (!in_layer(i) || !c || c->routing.experts == 0) continue;
      const auto kind = static_cast<std::size_t>(e.op.layer_kind);
      const Seconds more = std::min(e.time.total - e.hidden, shared_[kind] / d(e.op.count));
      e.hidden += more;
      shared_[kind] = shared_[kind] - more * d(e.op.count);
      pass.layers[kind].hidden += more * (d(e.op.count) * share);
    }
  }
  OpEstimate exchange(std::string_view name, const graph::Collective& collective) const {
    OpEstimate o;
    o.op.name = name;
    o.op.place = graph::Place::network;
    o.op.body = collective;
    time_op(machine_, o);
    return o;
  }

  graph::Execution execution_;
  const mapper::Machine& machine_;
  Stack stack_;
  graph::Kernels kernels_;
  double hideable_;         // share of an exchange that can run beside an op without costing it anything
  double cores_;            // 0: not known
  BytesPerSecond link_;     // to the host, each way; 0: not known
  BytesPerSecond streams_;  // what a kernel gets through that does nothing else
  graph::Graph ideal_graph_;
  graph::Graph forward_graph_;
  graph::Graph narrow_graph_;
  std::vector<Seconds> host_;    // of one layer by kind
  std::vector<Seconds> shared_;  // likewise, of shared experts that nothing runs beside yet
  graph::Graph backward_graph_;
  KeptBytes kept_;
  Pass forward_;
  Pass backward_;
  // What the above was made of.
  graph::SequenceGroup group_{.count = 0};
  std::optional<graph::TrainingOptions> built_options_;
  std::optional<graph::TrainingOptions> kept_options_;
  std::optional<Timing> timed_;
  std::int64_t version_ = 0;
  std::optional<graph::TrainingOptions> backward_options_;
  std::int64_t counted_sequence_ = 0;
  Flops counted_flops_;
};

// ---- What happens once a step: gradients over the replicas, the optimiser, and what ZeRO moves (arXiv 1910.02054)
//
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
// (above): there W is gathered once, before the first forward pass, and G scattered once, after the last
// backward pass.
//
// What belongs to a pass runs beside it, as far as that lasts; the all-gather after the update shows. Under a profile
// the stages of a pipeline reduce their gradients after the last pass, not beside it (the DDP of arXiv 2104.04473), and
// what runs beside a pass costs it cores (hideable_share).

namespace {

// Time of one micro-batch that parameter collectives can run beside.
struct PassTimes {
  Seconds forward;
  Seconds backward;
};

using graph::CollectiveKind;

// Bits of an element, scales of its group included.
double stored_bits(const model::StoredFormat& f) { return f.bits + (f.group > 0 ? f.bits_per_group / f.group : 0); }
// Over how many of `ranks` devices ZeRO divides.
std::int64_t shard_of(const graph::TrainingOptions& o, std::int64_t ranks) {
  return o.shard > 0 ? std::min(o.shard, ranks) : ranks;
}

// How much of an exchange shows: what lasts longer than what it runs beside, or a share in any case.
struct Beside {
  Seconds time = {};
  bool once = false;  // a step, with what is computed at its ends
};

// Writes the ops of an update, of one step: what ZeRO 2 and 3 move for every micro-batch is counted that often.
class UpdateWriter {
 public:
  UpdateWriter(const Setup& setup, const mapper::Machine& machine, const graph::Plan& plan,
               const graph::TrainingOptions& options, std::int64_t micro_batches, const PassTimes& passes,
               std::vector<OpEstimate>& ops)
      : e_(setup.execution),
        machine_(machine),
        plan_(plan),
        options_(options),
        micro_batches_(micro_batches),
        passes_(passes),
        ops_(ops),
        weight_bits_(stored_bits(e_.weights.groups.front()[model::Role::o])),
        stack_(setup.profile),
        gradient_{.name = options.gradient_bits == 32 ? "fp32" : "16 bit", .bits = options.gradient_bits},
        weight_{.name = weight_bits_ == 32 ? "fp32" : "16 bit", .bits = weight_bits_},
        framework_(stack_.framework),
        hideable_(hideable_share(setup)) {}

  // Of a device that holds `held` and trains `share`, and `tied` elements that another stage holds too.
  void build(const ParameterShare& share, const ParameterShare& held, double tied) {
    ops_.clear();
    reduce_over_replicas({"gradient_reduce", "gradient_scatter", "weights_gather"}, share.dense, held.dense,
                         plan_.replicas(), plan_.stride(graph::Axis::data));
    reduce_over_replicas({"expert_gradient_reduce", "expert_gradient_scatter", "expert_weights_gather"}, share.expert,
                         held.expert, plan_.expert_replicas(), plan_.expert * plan_.expert_tensor());
    if (plan_.sequence_parallel) {
      exchange("vector_gradient_reduce", CollectiveKind::all_reduce, graph::Axis::tensor, plan_.tensor, 1,
               share.summands, gradient_);
    }
    if (tied > 0) {
      exchange("tied_embedding_reduce", CollectiveKind::all_reduce, graph::Axis::pipeline, 2,
               (plan_.pipeline - 1) * plan_.stage(), tied, gradient_);
    }
    const auto divided = [&](double elements, std::int64_t ranks) {
      return elements / (options_.zero >= 1 ? d(shard_of(options_, ranks)) : 1);
    };
    const double owned = divided(share.dense, plan_.replicas()) + divided(share.expert, plan_.expert_replicas());
    const double kept = options_.zero >= 2 && plan_.pipeline == 1 ? owned : share.total();
    update_memory(owned, kept);
  }

 private:
  void push(const graph::Op& op, Beside beside = {}) {
    OpEstimate& o = ops_.emplace_back();
    o.op = op;
    o.op.hidden = 0;
    time_op(machine_, o);
    const Seconds all = o.step_time();
    if (!stack_.fused) {
      o.hidden = std::min(beside.time, all * hideable_);
    } else if (beside.once) {
      o.hidden = all * (1 - stack_.update_shows);
    } else {
      o.hidden = std::min(std::max(beside.time, Seconds{}) * stack_.shard_hidden, all * (1 - stack_.shard_shows));
    }
  }
  void exchange(std::string_view name, CollectiveKind kind, graph::Axis axis, std::int64_t ranks, std::int64_t stride,
                double elements, const model::ElementFormat& element, std::int64_t times = 1, Beside beside = {}) {
    if (ranks == 1 || elements == 0) return;
    push({.name = name,
          .count = times,
          .place = graph::Place::network,
          .overlaps = beside.time.value > 0,
          .body = graph::Collective{.kind = kind,
                                    .axis = axis,
                                    .ranks = ranks,
                                    .stride = stride,
                                    .rows = elements,
                                    .width = 1,
                                    .element = element}},
         beside);
  }
  struct Names {
    std::string_view reduce, scatter, gather;
  };
  // Dense parameters first: what they leave of the passes is for the experts'. `trained` have gradients, `held` are
  // gathered.
  void reduce_over_replicas(const Names& names, double trained, double held, std::int64_t ranks, std::int64_t stride) {
    const std::int64_t shard = options_.zero == 0 ? ranks : shard_of(options_, ranks);
    const auto over = [&](std::string_view name, CollectiveKind kind, std::int64_t times, Beside beside) {
      const std::size_t before = ops_.size();
      const bool gathers = kind == CollectiveKind::all_gather;
      const double elements = gathers && options_.zero == 3 ? held : trained;  // frozen weights do not change
      exchange(name, kind, graph::Axis::data, shard, stride, elements, gathers ? weight_ : gradient_, times, beside);
      return ops_.size() > before ? ops_.back().hidden : Seconds{};
    };
    const bool pipelined = plan_.pipeline > 1;
    const std::int64_t times = pipelined ? 1 : micro_batches_;
    const double m = d(times);
    const auto beside = [&](Seconds passes) { return framework_ && pipelined ? Seconds{} : passes - used_; };
    if (options_.zero == 0) {
      used_ += over(names.reduce, CollectiveKind::all_reduce, 1, {beside(passes_.backward), true});
    } else if (options_.zero == 1) {
      used_ += over(names.scatter, CollectiveKind::reduce_scatter, 1, {beside(passes_.backward), true});
      over(names.gather, CollectiveKind::all_gather, 1, {Seconds{}, true});
    } else if (options_.zero == 2) {
      used_ += over(names.scatter, CollectiveKind::reduce_scatter, times, {beside(passes_.backward * m)});
      over(names.gather, CollectiveKind::all_gather, 1, {Seconds{}, true});
    } else {
      const Seconds passes = (passes_.forward + passes_.backward) * m;
      const std::int64_t gathers = (options_.stays_gathered ? 1 : 2) * times;
      used_ += over(names.gather, CollectiveKind::all_gather, pipelined ? 1 : gathers, {passes - used_});
      used_ += over(names.scatter, CollectiveKind::reduce_scatter, times, {beside(passes)});
    }
    if (shard < ranks) {  // groups that divide the same among themselves
      exchange(names.reduce, CollectiveKind::all_reduce, graph::Axis::data, ranks / shard, stride * shard,
               trained / d(shard), gradient_, 1, {beside(passes_.backward), true});
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
  std::vector<OpEstimate>& ops_;
  double weight_bits_;
  Stack stack_;
  model::ElementFormat gradient_;
  model::ElementFormat weight_;
  bool framework_;
  double hideable_;
  Seconds used_;  // of the passes, by collectives beside them
};

// ---- The step

bool trainable(const model::StoredFormat& f) {
  return (f.bits == 16 || f.bits == 32) && f.group == 0 && f.block == 0 && f.bits_per_row == 0 && f.dequant_flops == 0;
}

}  // namespace

bool trains_whole(const model::WeightLayout& w) {
  bool plain = !w.gguf && trainable(w.token_embedding) && trainable(w.lm_head);
  for (const model::LayerGroup& group : w.groups) {
    plain = plain && std::ranges::all_of(group.formats, trainable);
  }
  return plain;
}

void check_trained(const model::WeightLayout& weights, bool adapters) {
  if (trains_whole(weights) || (adapters && !weights.gguf && !weights.uses_host())) return;
  throw Error::bad_input("`training` needs weights that are kept as bf16, fp16 or fp32, not as " + weights.name,
                         "`weights` bf16, or `lora` beside frozen ones of 4 bits");
}

namespace {

void check_trainable(const Setup& setup) {
  const model::Decoder& model = *setup.execution.model;
  if (!model.has_backward()) {
    throw Error::bad_input(
        fmt::format(
            "`training` knows the backward passes of attention, recurrences, MLPs and experts; {} has other parts "
            "(an indexer, compressed or shared keys, several residual streams)",
            model.name),
        "leave out `training`");
  }
}

// That a schedule other than 1F1B is made of.
std::int64_t fewest_micro_batches(const graph::Plan& plan, const graph::TrainingOptions& o) {
  return plan.pipeline * (o.schedule == graph::Schedule::dualpipe ? 2 : 1);
}

double in_flight(const graph::Plan& plan, const graph::TrainingOptions& o, std::int64_t stage,
                 std::int64_t micro_batches) {
  const std::int64_t after = plan.pipeline - stage;
  const std::int64_t chunks = o.chunks;
  const double most = d(std::min(micro_batches, plan.pipeline));
  switch (o.schedule) {
    case graph::Schedule::zb_v: return most;  // every stage alike, as 1F1B's first
    case graph::Schedule::v_half: return std::min(most, d((plan.pipeline + 2) / 2));
    case graph::Schedule::v_min: return std::min(most, d((plan.pipeline + 4) / 3));
    case graph::Schedule::dualpipe: return std::min(d(micro_batches), d(plan.pipeline + 1));
    case graph::Schedule::one_forward:
    case graph::Schedule::zb_h1: break;
  }
  if (chunks == 1) return d(std::min(micro_batches, after));
  return d(std::min(chunks * micro_batches, 2 * after - 1 + (chunks - 1) * plan.pipeline)) / d(chunks);
}

}  // namespace

bool legal(const model::Decoder& model, const TrainingScenario& s, const graph::Plan& plan,
           const graph::TrainingOptions& o) {
  if (!batch(s, plan).holds() || !sequence(s, plan).holds()) return false;
  if (o.schedule != graph::Schedule::one_forward) {
    return o.chunks == 1 && plan.pipeline > 1 && s.micro_batches(plan) >= fewest_micro_batches(plan, o);
  }
  return o.chunks == 1 || (plan.pipeline > 1 && graph::enough_layers(model.num_layers(), plan.pipeline, o.chunks) &&
                           groups(s, plan).holds());
}

std::vector<graph::Problem> problems(const model::Decoder& model, const TrainingScenario& s, const graph::Plan& plan,
                                     const graph::TrainingOptions& o) {
  std::vector<graph::Problem> found;
  const Multiple b = batch(s, plan);
  if (!b.holds()) {
    found.push_back({fmt::format("`global-batch`: {} sequences do not divide into micro-batches of {} on {} replicas",
                                 s.global_batch, s.micro_batch, plan.data),
                     "nearest legal: " + b.nearest()});
  }
  const Multiple q = sequence(s, plan);
  if (!q.holds()) {
    found.push_back({fmt::format("`seq`: {} tokens do not divide into the {} parts of the plan", s.sequence, q.of),
                     "nearest legal: " + q.nearest()});
  }
  if (o.schedule != graph::Schedule::one_forward && b.holds()) {
    const std::int64_t fewest = fewest_micro_batches(plan, o);
    if (s.micro_batches(plan) < fewest) {
      found.push_back({fmt::format("`schedule` {}: {} micro-batches are too few for {} stages", name(o.schedule),
                                   s.micro_batches(plan), plan.pipeline),
                       fmt::format("`global-batch` {}", fewest * plan.data * s.micro_batch)});
    }
    if (o.chunks > 1) {
      found.push_back(
          {fmt::format("`schedule` {}: `interleave` is of 1F1B", name(o.schedule)), "leave one of them out"});
    }
  }
  if (o.updates_at_once && b.holds() && (plan.pipeline > 1 || s.micro_batches(plan) > 1)) {
    found.push_back({"`optimizer-in-backward`: gradients of several micro-batches are added up before they are used",
                     fmt::format("`global-batch` {} without `pp`", plan.data * s.micro_batch)});
  }
  if (o.chunks == 1) return found;
  if (plan.pipeline == 1) {
    found.push_back({"`interleave` divides the layers of a pipeline stage, and the plan has no pipeline",
                     "give `pp`, or leave it out"});
  } else if (!graph::enough_layers(model.num_layers(), plan.pipeline, o.chunks)) {
    found.push_back({fmt::format("`interleave`: {} layers are too few for {} runs on each of {} stages: all but the "
                                 "first and the last run need one",
                                 model.num_layers(), o.chunks, plan.pipeline),
                     fmt::format("at most {}", (model.num_layers() + 2) / plan.pipeline)});
  } else if (b.holds() && !groups(s, plan).holds()) {
    const std::int64_t replica = plan.data * s.micro_batch;
    found.push_back({fmt::format("`interleave`: {} micro-batches are no multiple of the {} pipeline stages",
                                 s.micro_batches(plan), plan.pipeline),
                     "nearest legal `global-batch`: " + Multiple{s.global_batch, replica * plan.pipeline}.nearest()});
  }
  return found;
}

class TrainingEstimator::State {
 public:
  explicit State(Setup given)
      : setup(std::move(given)),
        machine(*setup.device, setup.cluster, nullptr, {}, setup.profile, setup.tiles),
        parameters(*setup.execution.model),
        passes(setup, machine),
        stack_(setup.profile) {
    weight_bits_ = stored_bits(setup.execution.weights.groups.front()[model::Role::o]);
    outer_bits_ = setup.execution.weights.lm_head.bits;
  }

  TrainingMemory memory(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o) {
    passes.prepare(s, plan, o);
    split_layers(plan, o);
    TrainingMemory fullest;
    const std::int64_t micro_batches = s.micro_batches(plan);
    each_stage(plan, [&](std::int64_t stage, std::int64_t) {
      const TrainingMemory m = stage_memory(plan, o, micro_batches, stage);
      if (stage == 0 || m.total() > fullest.total()) fullest = m;
    });
    return fullest;
  }

  // Everything but the phases.
  void summary(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o,
               TrainingEstimate& e) {
    e.scenario = s;
    e.plan = plan;
    e.options = o;
    const TrainingMemory fullest = memory(s, plan, o);
    e.memory = fullest;
    e.layer_activations = fullest.layer_activations;
    e.fullest_stage = fullest.stage;
    e.split = split_;
    e.capacity = *setup.device->dram().capacity;
    e.fits = e.memory.total() <= e.capacity;
    e.micro_batches = s.micro_batches(plan);
    passes.prepare_times(o);
    forward_exchange_ = passes.stage_exchange(plan, TrainingPasses::Direction::forward);
    backward_exchange_ = passes.stage_exchange(plan, TrainingPasses::Direction::backward);

    StageTimes busiest;
    double heaviest = -1;
    std::int64_t heaviest_stage = 0;
    ParameterShare share;
    stages_.clear();
    each_stage(plan, [&](std::int64_t stage, std::int64_t count) {
      const StageTimes t = stage_times(plan, o, stage);
      stages_.insert(stages_.end(), static_cast<std::size_t>(count), t.passes());
      if (stage == 0 || t.time() > busiest.time()) {
        busiest = t;
        e.busiest_stage = stage;
      }
      const ParameterShare held = parameters.stage(plan, split_, stage);
      if (held.total() > heaviest) {
        heaviest = held.total();
        heaviest_stage = stage;
        share = held;
      }
    });
    const double m = d(e.micro_batches);
    const PassTimes times{busiest.forward.time(), busiest.backward.time()};
    UpdateWriter(setup, machine, plan, o, e.micro_batches, times, update_)
        .build(trained(share, o, heaviest_stage), share, o.adapters.any() ? 0 : parameters.tied(plan));
    e.optimizer = e.gradient_exposed = Seconds{};
    Seconds update_hidden;
    for (const OpEstimate& op : update_) {
      const bool network = op.op.place == graph::Place::network;
      (network ? e.gradient_exposed : e.optimizer) += op.step_time() - op.hidden;
      update_hidden += op.hidden;
    }
    e.compute = busiest.time() * m;
    e.host = (busiest.forward.waits + busiest.backward.waits) * m;
    e.bubble = pipeline_bubble(o, stages_, e.micro_batches);
    e.time = e.compute + e.bubble + e.gradient_exposed + e.optimizer;
    e.overlapped = (busiest.forward.hidden + busiest.backward.hidden) * m + update_hidden;
    rates(e);
  }

  void run(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o, TrainingEstimate& e) {
    summary(s, plan, o, e);
    e.phases.resize(3);
    fill(passes.forward(), "forward", e, forward_exchange_, e.phases[0]);
    fill(passes.backward(), "backward", e, backward_exchange_, e.phases[1]);
    e.phases[2].name = "update";
    e.phases[2].steps = 1;
    e.phases[2].ops = update_;
    for (Phase& phase : e.phases) {
      phase.first = phase.last = {.count = s.micro_batch, .new_tokens = s.sequence, .context = 0};
      sum_up(phase, kWhole, seconds_);
    }
  }

  Setup setup;
  mapper::Machine machine;
  ParameterShares parameters;
  TrainingPasses passes;

 private:
  struct StageTimes {
    PassSum forward;
    PassSum backward;
    Seconds time() const { return forward.time() + backward.time(); }
    StagePasses passes() const { return {forward.time(), backward.time(), backward.weights}; }
  };

  void split_layers(const graph::Plan& plan, const graph::TrainingOptions& o) {
    const model::Decoder& model = *setup.execution.model;
    if (model.num_layers() % (plan.pipeline * o.chunks) == 0) {
      split_ = graph::equal_split(model.num_layers(), plan.pipeline, o.chunks);
      return;
    }
    passes.prepare_times(o);
    if (passes.version() != splits_version_ || plan.pipeline != splits_stages_) splits_.clear();
    splits_version_ = passes.version();
    splits_stages_ = plan.pipeline;
    split_ = load_once(splits_, o.chunks, [&] { return balanced_split(plan, o); });
  }
  graph::StageSplit balanced_split(const graph::Plan& plan, const graph::TrainingOptions& o) const {
    const model::Decoder& model = *setup.execution.model;
    const auto both = [&](auto&& part) { return (part(passes.forward()) + part(passes.backward())).value; };
    graph::PassCosts costs;
    for (const unsigned char kind : model.layer_kinds) {
      costs.layers.push_back(both([&](const Pass& pass) { return pass.layers[kind].time(); }));
    }
    costs.first = both([](const Pass& pass) { return pass.first.time(); });
    costs.last = both([](const Pass& pass) { return pass.last.time(); });
    return graph::balanced_split({&costs, 1}, plan.pipeline, o.chunks);
  }

  // Stages that may differ in what counts, and how many of each there are: of layers of one kind in equal runs the
  // middle ones are alike (and hold less than the first).
  template <class Visit>
  void each_stage(const graph::Plan& plan, Visit&& visit) const {
    const std::int64_t last = plan.pipeline - 1;
    const bool alike = setup.execution.model->kinds.size() == 1 && split_.equal();
    for (std::int64_t stage = 0; stage <= last; ++stage) {
      const bool middle = alike && stage == 1 && last > 2;
      visit(stage, middle ? last - 1 : 1);
      if (middle) stage = last - 1;
    }
  }

  // Of what a stage holds, what has gradients: all of it, or its adapters.
  ParameterShare trained(const ParameterShare& held, const graph::TrainingOptions& o, std::int64_t stage) const {
    if (!o.adapters.any()) return held;
    ParameterShare share;
    for (std::size_t kind = 0; kind < passes.kept().adapters.size(); ++kind) {
      share.dense += passes.kept().adapters[kind] * d(parameters.layers(split_, stage, kind));
    }
    share.largest_dense = share.dense / d(std::max<std::int64_t>(1, split_.layers(stage)));
    return share;
  }

  // What is resident, and the largest of what comes on top of it: a layer's backward pass, the loss, the update.
  TrainingMemory stage_memory(const graph::Plan& plan, const graph::TrainingOptions& o, std::int64_t micro_batches,
                              std::int64_t stage) {
    const ParameterShare p = parameters.stage(plan, split_, stage);
    const ParameterShare t = trained(p, o, stage);
    const bool pipelined = plan.pipeline > 1;
    const std::int64_t shard = shard_of(o, plan.replicas());
    const std::int64_t expert_shard = shard_of(o, plan.expert_replicas());
    // Of the tensors of which a device holds a part under ZeRO, what is whole at a time.
    const auto whole = [&](double dense, double expert) {
      return (shard > 1 ? dense : 0) + (expert_shard > 1 ? expert : 0);
    };
    const auto held = [&](const ParameterShare& of, double bits, bool divided) {
      const double elements = of.dense / (divided ? d(shard) : 1) + of.expert / (divided ? d(expert_shard) : 1);
      return Bytes{elements * bits / 8};
    };
    // Twice, where both directions of a DualPipe have a copy of every stage.
    const double copies = o.schedule == graph::Schedule::dualpipe ? 2 : 1;
    const double more = (outer_bits_ - weight_bits_) / 8 * p.outer;  // embedding and lm_head are never packed
    TrainingMemory m;
    m.stage = stage;
    m.reserve = setup.reserve;
    m.optimizer = held(t, o.optimizer_bits, o.zero >= 1);
    m.gradients = o.updates_at_once ? Bytes{} : held(t, o.gradient_bits, o.zero >= 2 && !pipelined) * copies;
    m.weights = (held(p, weight_bits_, o.zero >= 3) + Bytes{more / (o.zero >= 3 ? d(shard) : 1)}) * copies;
    if (o.adapters.any()) m.weights += held(t, outer_bits_, o.zero >= 3);
    if (o.zero >= 3 && (pipelined || o.stays_gathered)) {
      m.weights += Bytes{whole(p.dense, p.expert) * weight_bits_ / 8};
    }

    const KeptBytes& kept = passes.kept();
    // Sequence parallelism gathers what enters a product, and its gradient leaves it whole.
    const Bytes whole_residual = kept.residual * (plan.sequence_parallel ? d(plan.tensor) : 1);
    const double flying = in_flight(plan, o, stage, micro_batches);
    const bool offloads = o.recompute == graph::Recompute::offload;
    for (std::size_t kind = 0; kind < kept.layers.size(); ++kind) {
      const std::int64_t layers = parameters.layers(split_, stage, kind);
      if (layers == 0) continue;
      constexpr double kStaged = 2;  // layers whose inputs are on the device: on their way, and in use
      const Bytes away = offloads ? kept.residual * o.recomputed_share : Bytes{};
      m.activation += std::max(kept.layers[kind] - away, Bytes{}) * (d(layers) * flying);
      if (offloads) m.activation += kept.residual * std::min(kStaged, d(layers));
      m.layer_activations = std::max(m.layer_activations, kept.layers[kind]);
      m.workspace = std::max(m.workspace, kept.recomputed[kind] + kept.largest[kind] + whole_residual * 2);
    }
    if (stage == 0) m.activation += kept.first * d(std::min(micro_batches, plan.pipeline));
    if (stage == plan.pipeline - 1) {
      const bool divided_vocabulary = plan.tensor > 1 && plan.shard_embedding;
      const double fp32_copies = divided_vocabulary || stack_.framework ? 2 : 0;
      const double logits = 1 + fp32_copies * 32 / bits(setup.execution.activations);
      const double residuals = plan.sequence_parallel ? 2 : 1;
      const bool own_loss = stack_.fused || o.loss != graph::Loss::plain;
      m.activation += kept.last - (own_loss ? kept.loss : Bytes{});
      const Bytes loss =
          own_loss ? kept.logits * (loss_bytes(plan, o) * 8 / bits(setup.execution.activations)) : kept.logits * logits;
      m.workspace = std::max(m.workspace, loss + whole_residual * residuals);
    }
    if (!pipelined) {
      // Gradients of one layer come in the type of its products, while those of another are scattered.
      const double layers = stack_.gathered;
      const double outer = p.outer * std::min(1.0, layers);
      const double gathered = whole(outer + layers * p.largest_dense, layers * p.largest_experts);
      const double scattered = o.adapters.any() ? layers * t.largest_dense : gathered;
      const double gradient_bits = stack_.fused ? (o.gradient_bits + outer_bits_) / 2 : o.gradient_bits;
      if (o.zero >= 2) m.workspace += Bytes{scattered * gradient_bits / 8};
      if (o.zero >= 3 && !o.stays_gathered) m.workspace += Bytes{gathered * weight_bits_ / 8};
    }
    if (o.updates_at_once) m.workspace += Bytes{(2 * t.largest_dense + t.largest_experts) * o.gradient_bits / 8};
    // An optimiser without a copy of the weights works on a temporary of its own, when no activations are there.
    const bool copy = o.optimizer_bits >= 96 || o.updates_at_once;
    const Bytes update = stack_.fused && !copy ? held(t, outer_bits_, o.zero >= 1) : Bytes{};
    if (update > m.activation + m.workspace) m.workspace = update - m.activation;
    // Gradients that come as activations go take their place.
    const bool grow = !stack_.buffers && micro_batches == 1 && !pipelined;
    if (grow) m.activation = std::max(m.activation - m.gradients, Bytes{});
    return m;
  }

  // Of a logit, from the product to its gradient. At least 16 bits, a copy in fp32 whose gradient takes its place, and
  // the gradient in 16 bits; an exponential and another copy where a framework widens what a divided model returns.
  double loss_bytes(const graph::Plan& plan, const graph::TrainingOptions& o) const {
    constexpr double kFused = 1;
    if (o.loss == graph::Loss::fused) return kFused;
    const bool divided = o.zero >= 3 || (plan.tensor > 1 && plan.shard_embedding);
    const double plain = divided ? stack_.divided_loss : stack_.loss;
    return o.loss == graph::Loss::chunked ? std::max(kFused, plain / d(o.loss_chunks)) : plain;
  }

  // How often a stage sends in one pass of a micro-batch. Under a profile a stage waits for what it gets, too, which
  // comes at the same time: the last stage as often as the others.
  std::int64_t sends(const graph::Plan& plan, std::int64_t chunks, bool ends_here) const {
    if (plan.pipeline == 1) return 0;
    return chunks - (ends_here && setup.profile == nullptr ? 1 : 0);
  }
  static void add(const PassSum& part, double times, PassSum& sum) {
    sum.ops += part.ops * times;
    sum.hidden += part.hidden * times;
    sum.weights += part.weights * times;
    sum.waits += part.waits * times;
  }
  PassSum layer_sum(const Pass& pass, std::int64_t stage) const {
    PassSum sum;
    for (std::size_t kind = 0; kind < pass.layers.size(); ++kind) {
      add(pass.layers[kind], d(parameters.layers(split_, stage, kind)), sum);
    }
    return sum;
  }
  PassSum stage_sum(const Pass& pass, const graph::Plan& plan, const graph::TrainingOptions& o, std::int64_t stage,
                    bool ends_here, const TrainingPasses::StageExchange& exchange) const {
    PassSum sum = layer_sum(pass, stage);
    if (stage == 0) add(pass.first, 1, sum);
    if (stage == plan.pipeline - 1) add(pass.last, 1, sum);
    sum.ops += exchange.time() * d(sends(plan, o.chunks, ends_here));
    return sum;
  }
  StageTimes stage_times(const graph::Plan& plan, const graph::TrainingOptions& o, std::int64_t stage) const {
    return {stage_sum(passes.forward(), plan, o, stage, stage == plan.pipeline - 1, forward_exchange_),
            stage_sum(passes.backward(), plan, o, stage, stage == 0, backward_exchange_)};
  }
  void rates(TrainingEstimate& e) {
    const model::Decoder& model = *setup.execution.model;
    const double forward_passes = e.options.adapters.any() ? 2 : 3;  // frozen weights have no gradients
    e.model_flops = passes.model_flops(e.scenario.sequence) * (forward_passes * d(e.scenario.global_batch));
    Flops matrix;  // of one micro-batch, one device of every stage
    for (const Pass* pass : {&passes.forward(), &passes.backward()}) {
      for (std::size_t kind = 0; kind < pass->layers.size(); ++kind) {
        matrix += pass->layers[kind].matrix * d(model.count_of_kind(kind));
      }
      matrix += pass->first.matrix + pass->last.matrix;
    }
    e.hardware_flops = matrix * (d(e.micro_batches) * d(e.plan.stage()));
    const bool narrow = e.options.products != graph::Products::wide;
    const Dtype compute = narrow ? graph::type_of(e.options.products) : setup.execution.activations;
    const Flops possible = machine.roofline().matrix_rate(compute) * e.time * d(e.plan.devices());
    e.mfu = e.model_flops / possible;
    e.hfu = e.hardware_flops / possible;
    e.tokens_per_second = d(e.scenario.global_batch) * d(e.scenario.sequence) / e.time.value;
  }

  // The ops of a pass on the busiest stage.
  void fill(const Pass& pass, std::string_view name, const TrainingEstimate& e,
            const TrainingPasses::StageExchange& exchange, Phase& phase) const {
    phase.name = name;
    phase.steps = e.micro_batches;
    phase.ops.clear();
    const std::int64_t stage = e.busiest_stage;
    const std::int64_t last = e.plan.pipeline - 1;
    for (std::size_t i = 0; i < pass.ops.size(); ++i) {
      const graph::Op& op = pass.ops[i].op;
      std::int64_t times = 0;
      switch (pass.regions[i]) {
        case Region::first_stage: times = stage == 0 ? 1 : 0; break;
        case Region::last_stage: times = stage == last ? 1 : 0; break;
        case Region::layer: times = parameters.layers(split_, stage, static_cast<std::size_t>(op.layer_kind));
      }
      if (times == 0) continue;
      OpEstimate& all = phase.ops.emplace_back(pass.ops[i]);
      all.op.count *= times;
      all.hidden = all.hidden * d(all.op.count);
    }
    const bool ends_here = stage == (&pass == &passes.forward() ? last : 0);
    if (const std::int64_t times = sends(e.plan, e.options.chunks, ends_here); times > 0) {
      const auto append = [&](const OpEstimate& op) {
        phase.ops.push_back(op);
        phase.ops.back().op.count = times;
      };
      append(exchange.send);
      if (exchange.gather) append(*exchange.gather);
    }
  }

  Stack stack_;
  double weight_bits_ = 16;
  double outer_bits_ = 16;  // of embedding and lm_head
  graph::StageSplit split_;
  // Balanced ones by runs on a stage: what ZeRO divides changes none.
  std::map<std::int64_t, graph::StageSplit> splits_;
  std::int64_t splits_version_ = -1;
  std::int64_t splits_stages_ = 0;
  TrainingPasses::StageExchange forward_exchange_;
  TrainingPasses::StageExchange backward_exchange_;
  std::vector<OpEstimate> update_;
  std::vector<StagePasses> stages_;
  std::vector<double> seconds_;
};

Seconds pipeline_bubble(const graph::TrainingOptions& o, std::span<const StagePasses> stages,
                        std::int64_t micro_batches) {
  Seconds busiest;
  Seconds before;
  for (const StagePasses& t : stages) {
    busiest = std::max(busiest, t.both());
    before += t.both();
  }
  if (o.schedule == graph::Schedule::one_forward) {
    Seconds longest;
    Seconds after;
    for (std::size_t s = stages.size(); s-- > 0;) {
      const StagePasses& t = stages[s];
      const double ahead = d(static_cast<std::int64_t>(stages.size() - 1 - s));
      before = std::max(before - t.both(), Seconds{});
      const Seconds waits =
          before + std::max(after - t.forward * ahead, Seconds{}) + std::max(after - t.backward * ahead, Seconds{});
      longest = std::max(longest, t.both() * d(micro_batches) + waits / d(o.chunks));
      after += t.both();
    }
    return longest - busiest * d(micro_batches);
  }
  const double pairs = d(static_cast<std::int64_t>(stages.size())) / 2 - 1;
  const auto waits = [&](const StagePasses& t) {
    const Seconds least = std::max(t.both() - t.weights * 2, Seconds{});
    switch (o.schedule) {
      case graph::Schedule::v_half: return t.both() / 2;
      case graph::Schedule::v_min: return t.both() * (2.0 / 3);
      case graph::Schedule::dualpipe:
        return std::max(t.both() + t.backward - t.weights * 3, Seconds{}) * (pairs / (2 * pairs + 1));
      case graph::Schedule::zb_h1:
      case graph::Schedule::zb_v:
      case graph::Schedule::one_forward: break;
    }
    return least;
  };
  Seconds sum;
  Seconds own;  // of the busiest stage
  for (const StagePasses& t : stages) {
    sum += waits(t);
    if (t.both() == busiest) own = waits(t);
  }
  return sum - own;
}

std::string kind_of_run(const Setup& setup, const TrainingEstimate& e) {
  const graph::TrainingOptions& o = e.options;
  return setup.execution.model->has_experts()   ? "training experts"
         : o.adapters.any()                     ? "training adapters"
         : o.products == graph::Products::nvfp4 ? "training nvfp4"
         : o.products != graph::Products::wide  ? "training narrow"
                                                : "training";
}

std::optional<Band> band_of_run(const Setup& setup, const TrainingEstimate& e) {
  if (setup.profile == nullptr) return std::nullopt;
  const hardware::FittedError* error = setup.profile->error_of(kind_of_run(setup, e));
  if (error == nullptr) error = setup.profile->error_of("training");
  return error ? std::optional(band_of(*error)) : std::nullopt;
}

TrainingEstimator::TrainingEstimator(Setup setup) {
  check_trainable(setup);
  state_ = std::make_unique<State>(std::move(setup));
}
TrainingEstimator::~TrainingEstimator() = default;

TrainingMemory TrainingEstimator::memory(const TrainingScenario& scenario, const graph::Plan& plan,
                                         const graph::TrainingOptions& options) {
  return state_->memory(scenario, plan, options);
}
void TrainingEstimator::summary(const TrainingScenario& scenario, const graph::Plan& plan,
                                const graph::TrainingOptions& options, TrainingEstimate& result) {
  state_->summary(scenario, plan, options, result);
  result.phases.clear();
}
void TrainingEstimator::run(const TrainingScenario& scenario, const graph::Plan& plan,
                            const graph::TrainingOptions& options, TrainingEstimate& result) {
  state_->run(scenario, plan, options, result);
}
const Setup& TrainingEstimator::setup() const { return state_->setup; }
const mapper::Machine& TrainingEstimator::machine() const { return state_->machine; }

}  // namespace llmperf::estimate
