// TTFT and TPOT of a model on a device, over a range of batches: what `llmperf estimate` prints, from a program of
// one's own. Usage: estimate MODEL DEVICE; both by built-in name or file.
#include <cstdio>

#include "base/error.h"
#include "estimate/estimate.h"
#include "hardware/runtime_execution.h"
#include "model/model_file.h"

using namespace llmperf;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: estimate MODEL DEVICE\n", stderr);
    return 2;
  }
  try {
    const model::ModelFile file = model::load_model(argv[1]);
    const hardware::Device device = hardware::load_device(argv[2]);

    // The software stack: the device's preferred one. Without a profile the estimate is the speed of light.
    const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, "");
    const hardware::RuntimeExecution execution = hardware::resolve_execution(profile, "all", "");
    estimate::Choices choices;
    choices.profile = &profile;
    choices.run_as(execution);

    // The setup is what stays while scenarios change. Model, device and profile must outlive the estimator.
    estimate::Estimator estimator(estimate::make_setup(file.decoder, device, choices));
    std::puts("batch,ttft_s,tpot_s");
    for (const std::int64_t batch : {1, 2, 4, 8}) {
      const estimate::Estimate e = estimator.run({.batch = batch, .prompt = 512, .generate = 128});
      if (!e.fits) break;
      std::printf("%lld,%.17g,%.17g\n", static_cast<long long>(batch), e.ttft->value, e.tpot->value);
    }
  } catch (const Error& error) {  // an unknown name, a file that cannot be read: with its place and a hint
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
