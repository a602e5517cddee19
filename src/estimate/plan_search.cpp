#include "estimate/plan_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= n; ++i) {
    if (n % i == 0) found.push_back(i);
  }
  return found;
}

// Calls `visit` with every plan of exactly `devices` devices: all ways to write that number as a product of the five
// axes, with the variants of the tensor axis, and the degrees of the expert axis that the model's experts allow.
template <class Visit>
void each_plan(const model::Decoder& model, const SearchSpace& space, Visit&& visit) {
  std::vector<std::int64_t> experts = {1};
  for (const model::Layer& layer : model.kinds) {
    if (layer.feed_forward.experts) experts = divisors(layer.feed_forward.experts->count);
  }
  const auto with_experts = [&](graph::Plan plan) {
    for (const std::int64_t degree : experts) {
      if (degree > plan.stage() || plan.stage() % degree != 0) continue;
      plan.expert = degree;
      visit(plan);
    }
  };
  const auto with_tensor_variants = [&](graph::Plan plan) {
    with_experts(plan);
    if (plan.tensor == 1) return;
    if (!space.decode) {
      plan.sequence_parallel = true;
      with_experts(plan);
      plan.sequence_parallel = false;
    }
    for (const std::int64_t rows : divisors(plan.tensor)) {
      if (rows == 1) continue;
      plan.tensor_rows = rows;
      visit(plan);
    }
  };
  for (const std::int64_t tensor : divisors(space.devices)) {
    for (const std::int64_t pipeline : divisors(space.devices / tensor)) {
      for (const std::int64_t ulysses : divisors(space.devices / tensor / pipeline)) {
        for (const std::int64_t ring : divisors(space.devices / tensor / pipeline / ulysses)) {
          with_tensor_variants({.tensor = tensor,
                                .ulysses = ulysses,
                                .ring = ring,
                                .data = space.devices / tensor / pipeline / ulysses / ring,
                                .pipeline = pipeline,
                                .shard_embedding = space.shard_embedding});
        }
      }
    }
  }
}

bool divides_prefill(const graph::Plan& plan, const SearchSpace& space) {
  return space.batch % plan.data == 0 && space.sequence % graph::sequence_multiple(plan) == 0;
}

bool worth_trying(const graph::Plan& plan, const graph::TrainingOptions& options) {
  const bool two_ways = options.schedule == graph::Schedule::dualpipe;
  return (options.zero == 0 || plan.replicas() > 1) && (options.chunks == 1 || plan.pipeline > 1) &&
         (options.schedule == graph::Schedule::one_forward || plan.pipeline > 1) &&
         (!two_ways || plan.pipeline % 2 == 0);
}

}  // namespace

Enumeration enumerate_plans(const model::Decoder& model, const SearchSpace& space) {
  Enumeration found;
  each_plan(model, space, [&](const graph::Plan& plan) {
    const bool fits_model = graph::legal(model, plan);
    if (!space.training) {
      ++found.tried;
      if (fits_model && divides_prefill(plan, space)) found.legal.push_back({.plan = plan});
      return;
    }
    for (const std::int64_t micro_batch : space.micro_batches) {
      const TrainingScenario scenario{space.batch, micro_batch, space.sequence};
      for (const graph::TrainingOptions& options : space.options) {
        if (!worth_trying(plan, options)) continue;
        ++found.tried;
        if (fits_model && legal(model, scenario, plan, options)) found.legal.push_back({plan, micro_batch, options});
      }
    }
  });
  return found;
}

Bytes Communication::sent_bytes() const { return std::accumulate(sent.begin(), sent.end(), Bytes{}); }

PlanSearch::PlanSearch(const Setup& setup, const SearchSpace& space) : space_(space) {
  if (space.training) {
    check_trained(setup.execution.weights, space.options.front().adapters.any());
    training_.emplace(setup);
  } else {
    inference_.emplace(setup);
  }
}

const Phase& PlanSearch::step_of_inference() {
  if (inference_->setup().serving.prefills()) {
    inference_->prefill(scenario(), inference_step_);
  } else {
    inference_->decode_step(scenario(), space_.sequence, inference_step_);
  }
  return inference_step_;
}

PlanCost PlanSearch::cost(const Candidate& candidate) {
  PlanCost cost;
  cost.candidate = candidate;
  if (inference_) {
    inference_->set_plan(candidate.plan);
    cost.memory = inference_->memory(scenario());
    cost.fits = cost.memory.total() <= inference_->capacity();
    if (cost.fits) cost.time = step_of_inference().time;
    return cost;
  }
  cost.memory = training_->memory(scenario_of(candidate), candidate.plan, candidate.options);
  cost.fits = cost.memory.total() <= *training_->setup().device->dram().capacity;
  if (!cost.fits) return cost;
  training_->summary(scenario_of(candidate), candidate.plan, candidate.options, training_step_);
  cost.time = training_step_.time;
  cost.mfu = training_step_.mfu;
  return cost;
}

namespace {

// Adds what ops exchange in a step; `share`: of each op's executions, those of one device.
template <class Share>
void add_exchanges(const Phase& phase, Communication& sum, Share&& share) {
  const auto steps = static_cast<double>(phase.steps);
  for (const OpEstimate& op : phase.ops) {
    const double part = share(op.op);
    const auto* c = std::get_if<graph::Collective>(&op.op.body);
    if (c == nullptr) continue;
    const auto kind = static_cast<std::size_t>(c->kind);
    const double count = part * static_cast<double>(op.op.count) * steps;
    sum.sent[kind] += op.work.network * count;
    sum.count[kind] += static_cast<std::int64_t>(std::llround(count));
    sum.time += op.time.total * count;
  }
}

// Of a prefill's ops, which are those of all stages one after the other, the part of one stage.
Communication of_stage(const Phase& prefill, std::span<const Stage> stages, std::size_t index) {
  Communication sum;
  Communication all;
  StageShare share(stages, index);
  add_exchanges(prefill, sum, [&](const graph::Op& op) { return share.of(op); });
  add_exchanges(prefill, all, [](const graph::Op&) { return 1.0; });
  sum.overlapped = prefill.overlapped * (sum.time / all.time);
  return sum;
}

}  // namespace

Communication PlanSearch::communication(const Candidate& candidate) {
  if (training_) {
    Communication sum;
    training_->run(scenario_of(candidate), candidate.plan, candidate.options, training_step_);
    for (const Phase& phase : training_step_.phases) {
      add_exchanges(phase, sum, [](const graph::Op&) { return 1.0; });
      sum.overlapped += phase.overlapped * static_cast<double>(phase.steps);
    }
    return sum;
  }
  inference_->set_plan(candidate.plan);
  const Phase& step = step_of_inference();
  Communication most;
  if (step.work.network.value == 0) return most;
  for (std::size_t i = 0; i < inference_->stages().size(); ++i) {
    const Communication stage = of_stage(step, inference_->stages(), i);
    if (stage.sent_bytes() > most.sent_bytes()) most = stage;
  }
  return most;
}

std::vector<PlanCost> PlanSearch::rank(const std::vector<Candidate>& candidates) {
  std::vector<PlanCost> costs;
  costs.reserve(candidates.size());
  for (const Candidate& candidate : candidates) costs.push_back(cost(candidate));
  std::ranges::stable_sort(costs, [](const PlanCost& a, const PlanCost& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits && a.time != b.time ? a.time < b.time : a.memory.total() < b.memory.total();
  });
  return costs;
}

}  // namespace llmperf::estimate
