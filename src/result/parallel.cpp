#include "result/parallel.h"

#include <fmt/format.h>

#include <numeric>

#include "base/text.h"
#include "hardware/runtime_execution.h"

namespace llmperf::result {
namespace {

// All exchanges of a kind in a step.
struct KindExchanged {
  graph::CollectiveKind kind;
  std::int64_t count;
  Bytes sent;
};
template <graph::CollectiveKind Kind>
Bytes sent(const ParallelPlan& p) {
  return p.communication().sent[static_cast<std::size_t>(Kind)];
}

std::vector<KindExchanged> kinds_exchanged(const ParallelPlan& p) {
  std::vector<KindExchanged> kinds;
  const estimate::Communication& c = p.communication();
  for (std::size_t i = 0; i < estimate::kCollectiveKinds; ++i) {
    if (c.count[i] > 0) kinds.push_back({static_cast<graph::CollectiveKind>(i), c.count[i], c.sent[i]});
  }
  return kinds;
}

// A formula, whose value is nothing where the model cannot be divided so.
struct StrategyFormula {
  const estimate::Formula* formula;
  bool legal;
};
template <estimate::Formula estimate::StrategyFormulas::*Member>
StrategyFormula formula_of(const estimate::StrategyFormulas& s) {
  return {&(s.*Member), !s.illegal};
}

}  // namespace

Type parallel_inputs(Fields<ParallelStudy> f) {
  using I = ParallelStudy;
  using S = estimate::SearchSpace;
  return f.of("model", "its name", [](const I& i) { return i.setup->execution.model->name; })
      .of("hardware", "its name", [](const I& i) { return i.setup->device->name; })
      .of<&I::space, &S::devices>("devices", "of every plan")
      .of("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; })
      .of<&I::space, &S::batch>("batch", "sequences of a step")
      .of<&I::space, &S::sequence>("sequence_tokens", "of each sequence")
      .of<&I::space, &S::training>("training", "whether a training step")
      .json("phase", "\"decode\" where a step is one of decode, its sequences in the cache",
            [](const I& i) { return i.setup->serving.phases; })
      .only_when([](const I& i) { return !i.setup->serving.prefills(); })
      .of<&I::space, &S::micro_batches>("micro_batches", "sequences of a micro-batch, those tried")
      .only_when([](const I& i) { return i.space.training; })
      .of("weights", "type", [](const I& i) { return i.setup->execution.weights.name; })
      .of("kv", "type", [](const I& i) { return i.setup->execution.kv.name(); })
      .of<&I::setup, &estimate::Setup::execution, &graph::Execution::activations>("activations", "type")
      .of("options", "of the runtime",
          [](const I& i) { return hardware::format_runtime_options(i.setup->execution.runtime); });
}

double ParallelPlan::tokens_per_second() const {
  const estimate::SearchSpace& s = study->space;
  return static_cast<double>(s.batch * (s.decode ? 1 : s.sequence)) / cost().time.value;
}
std::optional<double> ParallelPlan::cost_per_million_tokens() const {
  if (!cost().fits || !study->setup->price) return std::nullopt;
  const double hour = study->setup->price->amount * static_cast<double>(plan().devices());
  return hour / 3600 / tokens_per_second() * 1e6;
}

Type plan_memory(Fields<ParallelPlan> f) {
  using M = ParallelPlan;
  using C = estimate::PlanCost;
  return f.of<&M::cost, &C::memory, &cost::Memory::weights>("weight_bytes", "weights")
      .of<&M::cost, &C::memory, &cost::Memory::gradients>("gradient_bytes", "of training")
      .of<&M::cost, &C::memory, &cost::Memory::optimizer>("optimizer_bytes", "of training")
      .of<&M::cost, &C::memory, &cost::Memory::kv_cache>("kv_cache_bytes", "of a prefill, or before a decode step")
      .of<&M::cost, &C::activations>("activation_bytes", "the peak")
      .of<&M::cost, &C::memory, &cost::Memory::total>("total_bytes", "with the reserve");
}

Type fields_of(Fields<KindExchanged> f) {
  using K = KindExchanged;
  return f.of<&K::kind>("kind", "as in an exchange")
      .of<&K::count>("count", "in a step")
      .of<&K::sent>("sent_bytes", "by one device");
}

Type fields_of(Fields<ParallelPlan> f) {
  using P = ParallelPlan;
  using O = graph::TrainingOptions;
  using C = estimate::PlanCost;
  using K = graph::CollectiveKind;
  constexpr auto training = [](const P& p) { return p.study->space.training; };
  constexpr auto fits = [](const P& p) { return p.cost().fits; };
  return f.of("rank", "from 1, the best", [](const P& p) { return p.index + 1; })
      .of<&P::plan>("plan", "how the model is spread")
      .row<&P::name>("plan", "as text")
      .where(training)
      .json<&P::cost, &C::candidate, &estimate::Candidate::micro_batch>("micro_batch",
                                                                        "sequences; null without `training`")
      .json<&P::options, &O::schedule>("schedule", "of stages; likewise")
      .json<&P::options, &O::zero>("zero", "stage of ZeRO; likewise")
      .json<&P::options, &O::chunks>("interleave", "runs of layers per stage; likewise")
      .json<&P::options, &O::recompute>("recompute", "likewise")
      .always()
      .group<&plan_memory>("memory", "of one device")
      .flat()
      .of<&P::cost, &C::fits>("fits", "when false, times are null")
      .of<&P::cost, &C::time>("step_s", "the step")
      .when(fits)
      .of<&P::cost, &C::mfu>("mfu", "of training")
      .when([](const P& p) { return p.cost().fits && p.study->space.training; })
      .of<&P::tokens_per_second>("tokens_per_second", "of all devices")
      .when(fits)
      .of<&P::cost_per_million_tokens>("cost_per_million_tokens",
                                       "by the price of all devices, in its currency; null without one, or when false")
      .json<&P::band>("step_band", "how sure `step_s` is, where a profile predicts it; else null")
      .json("sent_bytes", "by one device in a step", [](const P& p) { return p.communication().sent_bytes(); })
      .row<&sent<K::all_reduce>>("all_reduce_bytes", "sent by one device")
      .row<&sent<K::all_gather>>("all_gather_bytes", "likewise")
      .row<&sent<K::reduce_scatter>>("reduce_scatter_bytes", "likewise")
      .row<&sent<K::all_to_all>>("all_to_all_bytes", "likewise")
      .row<&sent<K::send>>("send_bytes", "likewise")
      .row<&sent<K::ring_pass>>("ring_pass_bytes", "likewise")
      .row<&sent<K::broadcast>>("broadcast_bytes", "likewise")
      .of<&P::communication, &estimate::Communication::time>("communication_s", "of a step")
      .of<&P::communication, &estimate::Communication::overlapped>("overlapped_s", "of it, beside other work")
      .of<&kinds_exchanged>("collectives", "by kind")
      .of<&P::divided>("divided", "what each axis divides, in attention / outside it")
      .of<&P::up_to>("up_to", "what bounds each axis on its own");
}

Type fields_of(Fields<ParallelStudy> f) {
  using S = ParallelStudy;
  return f
      .of("label", "\"upper bound, uncalibrated\", or the profile of `runtime`",
          [](const S& s) { return s.setup->profile ? label(*s.setup) : std::string(kUncalibrated); })
      .group<&parallel_inputs>("inputs", "as resolved")
      .of<&S::tried>("tried", "combinations of degrees")
      .of<&S::legal>("legal", "those that divide model, batch and sequence")
      .of<&S::fitting>("fitting", "those of them that fit")
      .of<&S::alike>("alike",
                     "of them, those as fast as the first within the mean error of predictions: their order "
                     "is within the noise; 0: no error is known")
      .of("capacity_bytes", "memory of one device", [](const S& s) { return *s.setup->device->dram().capacity; })
      .of("currency", "of costs; null without a price", [](const S& s) { return s.setup->price->currency; })
      .when([](const S& s) { return s.setup->price.has_value(); })
      .of<&plans_of>("plans", "best first")
      .of<&S::setup, &estimate::Setup::notes>("notes", "substitutions, as text");
}

Type strategy_inputs(Fields<StrategyStudy> f) {
  using S = StrategyStudy;
  return f.of("model", "its name", [](const S& s) { return s.setup->execution.model->name; })
      .of<&S::devices>("devices", "of every strategy")
      .of<&S::batch>("batch", "sequences of a step")
      .of<&S::sequence>("sequence_tokens", "of each sequence")
      .of("options", "of the runtime",
          [](const S& s) { return hardware::format_runtime_options(s.setup->execution.runtime); });
}

Type fields_of(Fields<estimate::Formula> f) {
  using F = estimate::Formula;
  return f.of<&F::text>("formula", "over the names of `variables`").of<&F::value>("value", "with their values");
}

Type fields_of(Fields<StrategyFormula> f) {
  using F = StrategyFormula;
  return f.of<&F::formula, &estimate::Formula::text>("formula", "over the names of `variables`")
      .of<&F::formula, &estimate::Formula::value>("value", "with their values")
      .when([](const F& formula) { return formula.legal; })
      .named("formula");
}

Type fields_of(Fields<estimate::Variable> f) {
  using V = estimate::Variable;
  return f.of<&V::value>("value", "of the name").of<&V::meaning>("meaning", "as text");
}

Type fields_of(Fields<estimate::StrategyFormulas> f) {
  using S = estimate::StrategyFormulas;
  return f.of<&S::name>("method", "\"Megatron-SP\"")
      .of<&S::plan>("plan", "that it stands for")
      .of<&S::zero>("zero", "stage of ZeRO")
      .of<&S::split>("divided", "in attention / outside it")
      .of<&S::illegal>("illegal", "why this model cannot be divided so; null")
      .of<&S::parameter_collectives>("parameter_collectives", "of a step")
      .of<&S::activation_collectives>("activation_collectives", "of a step")
      .of<&formula_of<&S::activation_communication>>(
          "activation_communication_elements: activations sent (elements)",
          "Activation communication (elements sent by a device, forward and backward)")
      .of<&formula_of<&S::activations>>("activation_bytes", "Activations kept (bytes)")
      .of<&formula_of<&S::parameter_communication>>("parameter_communication_elements: parameters sent (elements)",
                                                    "Parameter communication (elements sent by a device)")
      .of<&formula_of<&S::weights>>("weight_elements: weights", "Weights (P; parameters that a device holds)")
      .of<&formula_of<&S::gradients>>("gradient_elements", "Gradients (G)")
      .of<&formula_of<&S::optimizer>>("optimizer_elements", "Optimiser (in 2-byte parameters)");
}

Type fields_of(Fields<StrategyStudy> f) {
  using S = StrategyStudy;
  return f.group<&strategy_inputs>("inputs", "as resolved")
      .of("variables", "of the formulas",
          [](const S& s) {
            Map<estimate::Variable> variables;
            for (const estimate::Variable& v : s.table.variables) variables.emplace_back(v.name, v);
            return variables;
          })
      .of<&S::table, &estimate::StrategyTable::parameters>("layer_parameters", "P: parameters of a layer")
      .of<&S::table, &estimate::StrategyTable::strategies>("strategies", "every pure one, and Ulysses with Ring");
}

std::optional<estimate::Band> ParallelPlan::noise() const {
  if (!study->space.training || !cost().fits) return std::nullopt;
  estimate::TrainingEstimate e;
  e.plan = plan();
  e.options = options();
  e.scenario = {study->space.batch, cost().candidate.micro_batch, study->space.sequence};
  return training_band(*study->setup, e);
}

std::string ParallelPlan::name() const {
  std::string text = graph::to_text(plan());
  if (!study->space.training) return text;
  const graph::TrainingOptions& o = options();
  const std::int64_t micro_batch = cost().candidate.micro_batch;
  if (micro_batch > 1) text += fmt::format(", micro-batch {}", micro_batch);
  if (o.zero > 0) text += fmt::format(", zero {}", o.zero);
  if (o.schedule != graph::Schedule::one_forward) text += fmt::format(", {}", graph::name(o.schedule));
  if (o.chunks > 1) text += fmt::format(", interleave {}", o.chunks);
  if (o.recompute != graph::Recompute::none) text += fmt::format(", recompute {}", graph::name(o.recompute));
  return text;
}

std::string ParallelPlan::divided() const {
  const graph::Plan& p = plan();
  std::vector<std::string> parts;
  if (p.tensor > 1) parts.emplace_back(p.tensor_rows > 0 ? "a/h^2" : p.sequence_parallel ? "a/h,s" : "a/h");
  if (p.ulysses > 1) parts.emplace_back("a/s");
  if (p.ring > 1) parts.emplace_back("s/s");
  if (p.expert > 1) parts.emplace_back("E");
  if (p.data > 1) parts.emplace_back("b/b");
  if (p.pipeline > 1) parts.emplace_back("L");
  return parts.empty() ? "-" : join(parts, " ");
}

std::string ParallelPlan::up_to() const {
  const graph::Plan& p = plan();
  const model::Decoder& m = *study->setup->execution.model;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t experts = 0;
  for (const model::Layer& layer : m.kinds) {
    heads = std::gcd(heads, layer.attention.heads);
    kv_heads = std::gcd(kv_heads, layer.attention.kv_heads);
    if (layer.feed_forward.experts) experts = std::gcd(experts, layer.feed_forward.experts->count);
  }
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t degree, std::string_view symbol, std::int64_t most) {
    if (degree > 1) parts.push_back(fmt::format("{}={}", symbol, most));
  };
  add(p.tensor, "a", heads);
  add(p.ulysses, "kv", kv_heads);
  add(p.ring, "s/2", study->space.sequence / 2);
  add(p.expert, "E", experts);
  add(p.data, "b", study->space.batch);
  add(p.pipeline, "L", m.num_layers());
  return parts.empty() ? "-" : join(parts, " ");
}

std::vector<ParallelPlan> plans_of(const ParallelStudy& study) {
  std::vector<ParallelPlan> plans;
  for (std::size_t i = 0; i < study.plans.size(); ++i) plans.push_back({&study, i});
  return plans;
}

}  // namespace llmperf::result
