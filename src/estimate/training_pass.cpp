#include "estimate/training_pass.h"

#include <algorithm>

#include "graph/training_kernels.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// Ops before the layers are of the stage that the step begins in: the first going forward, the last going back. The
// norm before the first layer stands for the final one: a layer's own last norm is the next layer's first.
Region region_of(const graph::Op& op, bool layers_seen, bool backward) {
  if (op.layer_kind >= 0) return Region::layer;
  if (op.name.starts_with("input_norm") || op.name.starts_with("norm_statistics")) return Region::last_stage;
  return layers_seen == backward ? Region::first_stage : Region::last_stage;
}

}  // namespace

double hideable_share(const Setup& setup) {
  constexpr double kExchangeBlocks = 24;
  const double cores = d(setup.device->cores.value_or(0));
  if (setup.profile == nullptr || cores == 0) return 1;
  return std::max(0.0, 1 - kExchangeBlocks / cores);
}

TrainingPasses::TrainingPasses(const Setup& setup, const mapper::Machine& machine)
    : execution_(setup.execution),
      machine_(machine),
      kernels_(setup.profile ? graph::Kernels::framework : graph::Kernels::ideal),
      hideable_(hideable_share(setup)) {
  execution_.training = true;
  const std::size_t kinds = execution_.model->kinds.size();
  for (std::vector<Bytes>* list : {&kept_.layers, &kept_.recomputed, &kept_.largest}) list->resize(kinds);
  forward_.layers.resize(kinds);
  backward_.layers.resize(kinds);
}

void TrainingPasses::prepare(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o) {
  graph::Plan local = plan;
  local.data = local.pipeline = 1;
  if (group_.count != s.micro_batch || group_.new_tokens != s.sequence || local != execution_.plan) {
    execution_.plan = local;
    group_ = {.count = s.micro_batch, .new_tokens = s.sequence, .context = 0};
    const bool framework = kernels_ == graph::Kernels::framework;
    graph::build_step(execution_, {&group_, 1}, graph::Part::all, framework ? ideal_graph_ : forward_graph_);
    if (framework) graph::use_framework_kernels(ideal_graph_, forward_graph_);
    for (graph::Op& op : forward_graph_) {
      if (op.layer_kind >= 0) op.count /= execution_.model->count_of_kind(static_cast<std::size_t>(op.layer_kind));
    }
    kept_recompute_.reset();
    backward_options_.reset();
    forward_timed_ = false;
  }
  if (kept_recompute_ != o.recompute) keep(o.recompute);
}

void TrainingPasses::keep(graph::Recompute recompute) {
  for (std::vector<Bytes>* list : {&kept_.layers, &kept_.recomputed, &kept_.largest}) {
    std::fill(list->begin(), list->end(), Bytes{});
  }
  kept_.first = kept_.last = kept_.logits = Bytes{};
  bool layers_seen = false;
  for (const graph::Op& op : forward_graph_) {
    const Bytes saved = op.saved * d(op.count);
    const Region region = region_of(op, layers_seen, false);
    if (region == Region::layer) {
      layers_seen = true;
      const auto kind = static_cast<std::size_t>(op.layer_kind);
      (graph::recomputed(op, recompute) ? kept_.recomputed : kept_.layers)[kind] += saved;
      kept_.largest[kind] = std::max(kept_.largest[kind], op.saved);
    } else {
      (region == Region::first_stage ? kept_.first : kept_.last) += saved;
    }
    const auto* v = std::get_if<graph::Vector>(&op.body);
    if (v == nullptr) continue;
    const Bytes tensor{d(v->rows) * d(v->width) * bytes_per_element(v->activation)};
    if (op.name == "input_norm") kept_.residual = tensor;
    if (v->kind == graph::VectorKind::cross_entropy) kept_.logits = tensor;
  }
  kept_recompute_ = recompute;
}

void TrainingPasses::prepare_times(const graph::TrainingOptions& o) {
  if (!forward_timed_) {
    time(forward_graph_, forward_);
    ++version_;
  }
  forward_timed_ = true;
  const bool same = backward_options_ && backward_options_->recompute == o.recompute &&
                    backward_options_->gradient_bits == o.gradient_bits &&
                    backward_options_->fused_gradients == o.fused_gradients &&
                    backward_options_->overlapped_sums == o.overlapped_sums;
  if (same) return;
  graph::build_backward(forward_graph_, o, backward_graph_, kernels_);
  time(backward_graph_, backward_);
  ++version_;
  backward_options_ = o;
}

void TrainingPasses::time(const graph::Graph& graph, Pass& pass) const {
  const bool backward = &pass == &backward_;
  pass.ops.resize(graph.size());
  pass.regions.resize(graph.size());
  pass.hidden.resize(graph.size());
  std::fill(pass.layers.begin(), pass.layers.end(), PassSum{});
  pass.first = pass.last = PassSum{};
  bool layers_seen = false;
  Seconds beside;  // what is left of the op that collectives can run beside
  for (std::size_t i = 0; i < graph.size(); ++i) {
    OpEstimate& o = pass.ops[i];
    o.op = graph[i];
    o.work = machine_.work(o.op);
    o.time = machine_.time(o.op, o.work);
    layers_seen = layers_seen || o.op.layer_kind >= 0;
    pass.regions[i] = region_of(o.op, layers_seen, backward);
    pass.hidden[i] = o.op.overlaps ? std::min(beside, o.time.total * hideable_) : Seconds{};
    const Seconds left = o.op.overlaps || o.op.name.ends_with(" wgrad sum") ? beside : Seconds{};
    beside = o.op.overlaps ? left - pass.hidden[i] : left + o.time.total;  // beside both kernels of a gradient
    PassSum& sum = pass.regions[i] == Region::layer         ? pass.layers[static_cast<std::size_t>(o.op.layer_kind)]
                   : pass.regions[i] == Region::first_stage ? pass.first
                                                            : pass.last;
    const double count = d(o.op.count);
    sum.ops += o.time.total * count;
    sum.hidden += pass.hidden[i] * count;
    sum.matrix += o.work.matrix * count;
  }
}

OpEstimate TrainingPasses::exchange(std::string_view name, const graph::Collective& collective) const {
  OpEstimate o;
  o.op.name = name;
  o.op.place = graph::Place::network;
  o.op.body = collective;
  o.work = machine_.work(o.op);
  o.time = machine_.time(o.op, o.work);
  return o;
}

TrainingPasses::StageExchange TrainingPasses::stage_exchange(const graph::Plan& plan, Direction direction) const {
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
    e.gather = exchange(forward ? "stage_gather" : "stage_gather backward", {.kind = graph::CollectiveKind::all_gather,
                                                                             .axis = graph::Axis::tensor,
                                                                             .ranks = plan.tensor,
                                                                             .stride = plan.stride(graph::Axis::tensor),
                                                                             .rows = 1,
                                                                             .width = elements,
                                                                             .element = element});
  }
  return e;
}

Flops TrainingPasses::model_flops(std::int64_t sequence) {
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

}  // namespace llmperf::estimate
