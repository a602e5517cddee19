#include "measure/training_run.h"

#include <utility>

namespace llmperf::measure {
namespace {

request::Training& training_of(const TrainingRun& run) { return std::get<request::Training>(run.resolved->work); }

void resolve(TrainingRun& run, request::Sources& sources) {
  run.resolved = request::resolve(run.request, sources, request::Unused::taken);
  request::Training& t = training_of(run);
  t.estimator->summary(t.scenario, t.choices.plan, t.options, run.estimate);
}

}  // namespace

void resolve_again(TrainingRun& run, const std::string& runtime, request::Sources& sources) {
  run.request.runtime = runtime;
  resolve(run, sources);
}

const estimate::Setup& TrainingRun::setup() const { return training_of(*this).estimator->setup(); }

TrainingRun resolve_run(const TrainingRow& row, const hardware::Device& device, const std::string& runtime,
                        request::Sources& sources) {
  TrainingRun run;
  run.request = request_of(row, device, sources.model(row.model).decoder.num_layers());
  if (!runtime.empty()) run.request.runtime = runtime;
  resolve(run, sources);
  // What a recipe computes again and does not say is the least with which the run, which there was, fits.
  for (const char* more : {"modules:layernorm,moe_act,mla_up_proj", "modules:layernorm,mlp,moe_act", "full"}) {
    if (run.estimate.fits || row.recompute != kRecipe || row.oom) break;
    run.request.recompute = more;
    resolve(run, sources);
  }
  const auto whole = static_cast<double>(row.micro_batches() * row.micro_batch() * row.replicas());
  run.part = static_cast<double>(row.gbs) / whole;
  return run;
}

void estimate_under(TrainingRun& run, const hardware::RuntimeProfile& profile, const hardware::Device& device) {
  request::Resolved& r = *run.resolved;
  r.profile = run.request.power_limit ? hardware::carried_over(profile, device, r.device) : profile;
  request::Training& t = training_of(run);
  t.choices.profile = r.runtime();
  t.estimator = std::make_unique<estimate::TrainingEstimator>(estimate::make_setup(r.model(), r.device, t.choices));
  t.estimator->summary(t.scenario, t.choices.plan, t.options, run.estimate);
}

}  // namespace llmperf::measure
