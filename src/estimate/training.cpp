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

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "estimate/training_parameters.h"
#include "estimate/training_pass.h"
#include "estimate/training_update.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

bool trainable(const model::StoredFormat& f) {
  return (f.bits == 16 || f.bits == 32) && f.group == 0 && f.block == 0 && f.bits_per_row == 0 && f.dequant_flops == 0;
}

void check_trainable(const Setup& setup) {
  const model::WeightLayout& w = setup.execution.weights;
  bool plain = !w.gguf && trainable(w.token_embedding) && trainable(w.lm_head);
  for (const model::LayerGroup& group : w.groups) {
    plain = plain && std::all_of(group.formats.begin(), group.formats.end(), trainable);
  }
  if (!plain) {
    throw Error::bad_input("--training needs weights that are kept as bf16, fp16 or fp32, not as " + w.name,
                           "--weights bf16");
  }
}

double in_flight(const graph::Plan& plan, std::int64_t stage, std::int64_t chunks, std::int64_t micro_batches) {
  const std::int64_t after = plan.pipeline - stage;
  if (chunks == 1) return d(std::min(micro_batches, after));
  return d(std::min(chunks * micro_batches, 2 * after - 1 + (chunks - 1) * plan.pipeline)) / d(chunks);
}

void sum_up(TrainingPhase& phase) {
  phase.work = {};
  phase.roof = phase.ops_time = phase.overlapped = Seconds{};
  for (Seconds& s : phase.bound_time) s = Seconds{};
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    const double count = d(op.op.count);
    phase.work += op.work * count;
    phase.ops_time += op.step_time();
    phase.overlapped += phase.hidden[i];
    phase.roof += op.time.roof * count;
    phase.bound_time[static_cast<std::size_t>(op.time.bound)] += op.step_time() - phase.hidden[i];
    if (op.time.total.value < op.time.roof.value * (1 - 1e-9)) {
      throw std::logic_error("internal error: an op is faster than its roof");
    }
  }
  phase.time = phase.ops_time - phase.overlapped;
  phase.roof = std::min(phase.roof, phase.time);
  const auto longest = std::max_element(std::begin(phase.bound_time), std::end(phase.bound_time));
  phase.bound = static_cast<mapper::Bound>(longest - std::begin(phase.bound_time));
}

}  // namespace

class TrainingEstimator::State {
 public:
  explicit State(Setup given)
      : setup(std::move(given)),
        machine(*setup.device, setup.cluster, nullptr, {}, setup.profile, setup.tiles),
        parameters(*setup.execution.model),
        passes(setup, machine) {
    weight_bits_ = setup.execution.weights.groups.front()[model::Role::o].bits;
  }

  TrainingMemory memory(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o) {
    passes.prepare(s, plan, o);
    split_layers(plan, o);
    TrainingMemory fullest;
    const std::int64_t micro_batches = s.micro_batches(plan);
    each_stage(plan, [&](std::int64_t stage) {
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
    e.memory = memory(s, plan, o);
    e.split = split_;
    e.capacity = *setup.device->dram().capacity;
    e.fits = e.memory.total() <= e.capacity;
    e.micro_batches = s.micro_batches(plan);
    passes.prepare_times(o);
    forward_exchange_ = passes.stage_exchange(plan, TrainingPasses::Direction::forward);
    backward_exchange_ = passes.stage_exchange(plan, TrainingPasses::Direction::backward);

    StageTimes busiest;
    double heaviest = -1;
    ParameterShare share;
    each_stage(plan, [&](std::int64_t stage) {
      const StageTimes t = stage_times(plan, o, stage);
      if (stage == 0 || t.time() > busiest.time()) {
        busiest = t;
        e.busiest_stage = stage;
      }
      const ParameterShare held = parameters.stage(plan, split_, stage);
      if (held.total() > heaviest) {
        heaviest = held.total();
        share = held;
      }
    });
    const double m = d(e.micro_batches);
    build_update(setup, machine, share, parameters.tied(plan), plan, o, e.micro_batches,
                 {busiest.forward.time(), busiest.backward.time()}, update_);
    e.optimizer = e.gradient_exposed = Seconds{};
    Seconds update_hidden;
    for (std::size_t i = 0; i < update_.ops.size(); ++i) {
      const bool network = update_.ops[i].op.place == graph::Place::network;
      (network ? e.gradient_exposed : e.optimizer) += update_.ops[i].step_time() - update_.hidden[i];
      update_hidden += update_.hidden[i];
    }
    e.compute = busiest.time() * m;
    e.bubble = round(o, e.busiest_stage, busiest) * (d(plan.pipeline - 1) / d(o.chunks));
    e.time = e.compute + e.bubble + e.gradient_exposed + e.optimizer;
    e.overlapped = (busiest.forward.hidden + busiest.backward.hidden) * m + update_hidden;
    rates(e);
  }

  void run(const TrainingScenario& s, const graph::Plan& plan, const graph::TrainingOptions& o, TrainingEstimate& e) {
    summary(s, plan, o, e);
    e.phases.resize(3);
    fill(passes.forward(), "forward", e, forward_exchange_, e.phases[0]);
    fill(passes.backward(), "backward", e, backward_exchange_, e.phases[1]);
    e.phases[2] = update_;
    e.phases[2].name = "update";
    e.phases[2].steps = 1;
    for (TrainingPhase& phase : e.phases) {
      phase.first = phase.last = {.count = s.micro_batch, .new_tokens = s.sequence, .context = 0};
      sum_up(phase);
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
    const auto [known, added] = splits_.try_emplace(o.chunks);
    if (added) known->second = balanced_split(plan, o);
    split_ = known->second;
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

  // Stages that may differ in what counts: of layers of one kind in equal runs the middle ones are alike (and hold less
  // than the first).
  template <class Visit>
  void each_stage(const graph::Plan& plan, Visit&& visit) const {
    const std::int64_t last = plan.pipeline - 1;
    const bool alike = setup.execution.model->kinds.size() == 1 && split_.equal();
    for (std::int64_t stage = 0; stage <= last; ++stage) {
      visit(stage);
      if (alike && stage == 1 && last > 2) stage = last - 1;
    }
  }

  TrainingMemory stage_memory(const graph::Plan& plan, const graph::TrainingOptions& o, std::int64_t micro_batches,
                              std::int64_t stage) {
    const ParameterShare p = parameters.stage(plan, split_, stage);
    const bool pipelined = plan.pipeline > 1;
    // Of the tensors of which a device holds a part under ZeRO, what is whole at a time.
    const auto whole = [&](double dense, double expert) {
      return (plan.replicas() > 1 ? dense : 0) + (plan.expert_replicas() > 1 ? expert : 0);
    };
    const auto held = [&](double bits, bool divided) {
      const double elements =
          p.dense / (divided ? d(plan.replicas()) : 1) + p.expert / (divided ? d(plan.expert_replicas()) : 1);
      return Bytes{elements * bits / 8};
    };
    TrainingMemory m;
    m.stage = stage;
    m.reserve = setup.reserve;
    m.optimizer = held(o.optimizer_bits, o.zero >= 1);
    m.gradients = held(o.gradient_bits, o.zero >= 2 && !pipelined);
    m.weights = held(weight_bits_, o.zero >= 3);
    if (o.zero >= 3 && pipelined) m.weights += Bytes{whole(p.dense, p.expert) * weight_bits_ / 8};

    const KeptBytes& kept = passes.kept();
    // Sequence parallelism gathers what enters a product, and its gradient leaves it whole.
    const Bytes whole_residual = kept.residual * (plan.sequence_parallel ? d(plan.tensor) : 1);
    const double flying = in_flight(plan, stage, o.chunks, micro_batches);
    for (std::size_t kind = 0; kind < kept.layers.size(); ++kind) {
      const std::int64_t layers = parameters.layers(split_, stage, kind);
      if (layers == 0) continue;
      m.activations += kept.layers[kind] * (d(layers) * flying);
      m.layer_activations = std::max(m.layer_activations, kept.layers[kind]);
      m.workspace = std::max(m.workspace, kept.recomputed[kind] + kept.largest[kind] + whole_residual * 2);
    }
    if (stage == 0) m.activations += kept.first * d(std::min(micro_batches, plan.pipeline));
    if (stage == plan.pipeline - 1) {
      m.activations += kept.last;
      const bool divided_vocabulary = plan.tensor > 1 && plan.shard_embedding;
      const double fp32_copies = divided_vocabulary || setup.profile ? 2 : 0;
      const double logits = 1 + fp32_copies * 32 / bits(setup.execution.activations);
      m.workspace = std::max(m.workspace, kept.logits * logits + whole_residual * (plan.sequence_parallel ? 2 : 1));
    }
    if (!pipelined) {
      const double gathered = whole(p.outer + 2 * p.largest_dense, 2 * p.largest_experts);
      if (o.zero >= 2) m.workspace += Bytes{gathered * o.gradient_bits / 8};
      if (o.zero >= 3) m.workspace += Bytes{gathered * weight_bits_ / 8};
    }
    return m;
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
  // What every other stage adds to filling and draining the pipeline. Under a profile without what the ends of the
  // model have beside layers: they are on one stage each.
  Seconds round(const graph::TrainingOptions& o, std::int64_t stage, const StageTimes& busiest) const {
    if (setup.profile == nullptr) return busiest.time();
    return layer_sum(passes.forward(), stage).time() + layer_sum(passes.backward(), stage).time() +
           (forward_exchange_.time() + backward_exchange_.time()) * d(o.chunks);
  }

  void rates(TrainingEstimate& e) {
    const model::Decoder& model = *setup.execution.model;
    e.model_flops = passes.model_flops(e.scenario.sequence) * (3 * d(e.scenario.global_batch));
    Flops matrix;  // of one micro-batch, one device of every stage
    for (const Pass* pass : {&passes.forward(), &passes.backward()}) {
      for (std::size_t kind = 0; kind < pass->layers.size(); ++kind) {
        matrix += pass->layers[kind].matrix * d(model.count_of_kind(kind));
      }
      matrix += pass->first.matrix + pass->last.matrix;
    }
    e.hardware_flops = matrix * (d(e.micro_batches) * d(e.plan.stage()));
    const Dtype compute = setup.execution.weights.groups.front()[model::Role::o].compute;
    const Flops possible = machine.roofline().matrix_rate(compute) * e.time * d(e.plan.devices());
    e.mfu = e.model_flops / possible;
    e.hfu = e.hardware_flops / possible;
    e.tokens_per_second = d(e.scenario.global_batch) * d(e.scenario.sequence) / e.time.value;
  }

  // The ops of a pass on the busiest stage.
  void fill(const Pass& pass, std::string_view name, const TrainingEstimate& e,
            const TrainingPasses::StageExchange& exchange, TrainingPhase& phase) const {
    phase.name = name;
    phase.steps = e.micro_batches;
    phase.ops.clear();
    phase.hidden.clear();
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
      phase.ops.push_back(pass.ops[i]);
      phase.ops.back().op.count *= times;
      phase.hidden.push_back(pass.hidden[i] * d(phase.ops.back().op.count));
    }
    const bool ends_here = stage == (&pass == &passes.forward() ? last : 0);
    if (const std::int64_t times = sends(e.plan, e.options.chunks, ends_here); times > 0) {
      const auto append = [&](const OpEstimate& op) {
        phase.ops.push_back(op);
        phase.ops.back().op.count = times;
        phase.hidden.push_back(Seconds{});
      };
      append(exchange.send);
      if (exchange.gather) append(*exchange.gather);
    }
  }

  double weight_bits_ = 16;
  graph::StageSplit split_;
  // Balanced ones by runs on a stage: what ZeRO divides changes none.
  std::map<std::int64_t, graph::StageSplit> splits_;
  std::int64_t splits_version_ = -1;
  std::int64_t splits_stages_ = 0;
  TrainingPasses::StageExchange forward_exchange_;
  TrainingPasses::StageExchange backward_exchange_;
  TrainingPhase update_;
};

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
