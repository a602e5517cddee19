// Training times under the profile `megatron`, of which no constant is fitted to a training time, beside published
// measurements.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/integer.h"
#include "catch.h"
#include "estimate/training.h"
#include "gpt_block.h"
#include "hardware/runtime_profile.h"
#include "model/model_file.h"

namespace llmperf::training_prediction_test {

using estimate::TrainingEstimate;
using estimate::TrainingEstimator;
using estimate::TrainingScenario;
using graph::Plan;
using graph::Recompute;
using graph::TrainingOptions;

namespace {

const hardware::Device& a100() {
  static const hardware::Device device = hardware::load_device("a100-sxm-80gb");
  return device;
}
const hardware::RuntimeProfile& profile() {
  static const hardware::RuntimeProfile megatron =
      hardware::load_runtime_profile(a100(), "megatron", hardware::UnknownRuntime::error, hardware::Workload::training);
  return megatron;
}

model::Decoder gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return gpt_of("megatron-22b", layers, hidden, heads);
}

struct Run {
  std::int64_t layers, hidden, heads, tensor, pipeline, chunks, data, global_batch, micro_batch;
};

TrainingEstimate predict(const Run& r, bool sequence_parallel, TrainingOptions o) {
  const model::Decoder model = gpt(r.layers, r.hidden, r.heads);
  estimate::Choices choices;
  choices.weights = "fp16";
  choices.runtime = profile().base;
  choices.profile = &profile();
  TrainingEstimator estimator(estimate::make_setup(model, a100(), choices));
  const Plan plan{.tensor = r.tensor, .sequence_parallel = sequence_parallel, .data = r.data, .pipeline = r.pipeline};
  const TrainingScenario scenario{r.global_batch, r.micro_batch, 2048};
  o.chunks = r.chunks;
  o.gradient_bits = 32;
  REQUIRE(graph::legal(model, plan));
  REQUIRE(estimate::legal(model, scenario, plan, o));
  TrainingEstimate e;
  estimator.run(scenario, plan, o, e);
  return e;
}

// arXiv 2205.05198: configurations of table 3, seconds per iteration of table 5.
struct Iteration {
  const char* name;
  Run run;
  double full_s;       // full recomputation
  double selective_s;  // sequence parallelism and selective recomputation
};
constexpr Iteration kIterations[] = {
    {"22B", {48, 6144, 64, 8, 1, 1, 1, 4, 4}, 1.42, 1.10},
    {"175B", {96, 12288, 96, 8, 8, 3, 1, 64, 1}, 18.13, 13.75},
    {"530B", {105, 20480, 128, 8, 35, 3, 1, 280, 1}, 49.05, 37.83},
    {"1T", {128, 25600, 160, 8, 64, 1, 1, 512, 1}, 94.42, 71.49},
};

// arXiv 2104.04473, table 1; micro-batches and runs of layers per stage from the scripts published with it
// (Megatron-LM, examples/sc21/run_table_1.sh). TFLOP/s of a device count four forward passes (its section 5.1).
struct Earlier {
  const char* name;
  Run run;
  double tflops;
};
constexpr Earlier kEarlier[] = {
    {"1.7B", {24, 2304, 24, 1, 1, 1, 32, 512, 16}, 137},      {"3.6B", {30, 3072, 32, 2, 1, 1, 32, 512, 16}, 138},
    {"7.5B", {36, 4096, 32, 4, 1, 1, 32, 512, 16}, 142},      {"18.4B", {40, 6144, 48, 8, 1, 1, 32, 1024, 8}, 135},
    {"39.1B", {48, 8192, 64, 8, 2, 1, 32, 1536, 4}, 138},     {"76.1B", {60, 10240, 80, 8, 4, 3, 32, 1792, 2}, 140},
    {"145.6B", {80, 12288, 96, 8, 8, 2, 24, 2304, 2}, 148},   {"310.1B", {96, 16384, 128, 8, 16, 2, 15, 2160, 1}, 155},
    {"529.6B", {105, 20480, 128, 8, 35, 3, 9, 2520, 1}, 163}, {"1008B", {128, 25600, 160, 8, 64, 1, 6, 3072, 1}, 163},
};
double tflops_of(const Run& r, double seconds) {
  const double h = d(r.hidden);
  const double l = d(r.layers);
  const double s = 2048;
  const double v = 51200;
  const double flops = 96 * d(r.global_batch) * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return flops / seconds / d(r.tensor * r.pipeline * r.data) / 1e12;
}

}  // namespace

// Of a run that there was, so that it fits.
double seconds(const Run& r, bool sequence_parallel, const TrainingOptions& o) {
  const TrainingEstimate e = predict(r, sequence_parallel, o);
  CHECK(e.fits);
  return e.time.value;
}
double full_seconds(const Iteration& i) { return seconds(i.run, false, {.recompute = Recompute::full}); }
double selective_seconds(const Iteration& i) { return seconds(i.run, true, {.recompute = Recompute::selective}); }
constexpr TrainingOptions kEarlierStack{
    .recompute = Recompute::full, .fused_gradients = false, .overlapped_sums = false};
double tflops(const Earlier& r) { return tflops_of(r.run, seconds(r.run, false, kEarlierStack)); }

TEST_CASE("iterations of the Megatron models take within 4 % of what Korthikanti et al. measured") {
  for (const Iteration& i : kIterations) {
    const double full = full_seconds(i);
    const double selective = selective_seconds(i);
    INFO(i.name << ": full " << full << " s, measured " << i.full_s << "; selective " << selective << " s, measured "
                << i.selective_s);
    CHECK(std::abs(full / i.full_s - 1) < 0.04);
    CHECK(std::abs(selective / i.selective_s - 1) < 0.04);
  }
}

TEST_CASE("ten earlier Megatron runs reach what Narayanan et al. measured, within 6 % on average") {
  double sum = 0;
  for (const Earlier& r : kEarlier) {
    const double predicted = tflops(r);
    const double error = predicted / r.tflops - 1;
    UNSCOPED_INFO(r.name << ": " << predicted << " TFLOP/s, measured " << r.tflops << ", " << 100 * error << " %");
    CHECK(std::abs(error) < 0.12);
    sum += std::abs(error);
  }
  CHECK(sum / 10 < 0.06);
}

TEST_CASE("the error that the megatron profile states is that of these runs") {
  std::vector<double> sizes;
  double bias = 0;
  const auto add = [&](double predicted_s, double measured_s) {
    sizes.push_back(std::abs(predicted_s / measured_s - 1));
    bias += predicted_s / measured_s - 1;
  };
  for (const Iteration& i : kIterations) {
    add(full_seconds(i), i.full_s);
    add(selective_seconds(i), i.selective_s);
  }
  for (const Earlier& r : kEarlier) add(r.tflops, tflops(r));  // times are their inverse
  const hardware::FittedError* stated = profile().error_of("training");
  REQUIRE(stated);
  const auto runs = sizes.size();
  CHECK(stated->rows == static_cast<std::int64_t>(runs));
  CHECK(stated->mean ==
        Approx(std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(runs)).margin(0.001));
  CHECK(stated->bias == Approx(bias / static_cast<double>(runs)).margin(0.001));
  // Nine of ten, between the two runs next to it.
  std::sort(sizes.begin(), sizes.end());
  const double place = 0.9 * static_cast<double>(runs - 1);
  const auto below = static_cast<std::size_t>(place);
  const double p90 = sizes[below] + (place - std::floor(place)) * (sizes[below + 1] - sizes[below]);
  CHECK(stated->p90 == Approx(p90).margin(0.001));
}

TEST_CASE("kernels of a layer move the bytes that Megatron's move") {
  const Run& r = kIterations[0].run;
  const TrainingEstimate e = predict(r, false, {});
  const double tokens = 2048 * 4;
  const double x = tokens * 6144;                // elements of the residual stream
  const double y = x / 8;                        // of a device's share of a layer's hidden size
  const double s = 4 * (64. / 8) * 2048 * 2048;  // of the scores
  const auto moved = [&](const estimate::Phase& phase) {
    double bytes = 0;
    for (const estimate::OpEstimate& o : phase.ops) {
      const bool sums = o.op.name.ends_with("wgrad sum");
      const bool streams =
          std::holds_alternative<graph::Vector>(o.op.body) || std::holds_alternative<graph::Copy>(o.op.body);
      if (o.op.layer_kind < 0 || sums || !streams) continue;
      bytes += (o.work.activations_read + o.work.activations_written).value * d(o.op.count);
    }
    return bytes / d(r.layers);
  };
  // LayerNorms 2 x 4, bias-dropout-adds 2 x 7; QKV bias 12, bias-GeLU 16, transposition 4; softmax 3, dropout 5.
  CHECK(moved(e.phases[0]) == Approx(22 * x + 32 * y + 8 * s));
  // LayerNorms 2 x 10, bias-dropout-adds 2 x 7, residuals 2 x 6; bias-GeLU 32, transposition 4, Q, K and V 20 and their
  // bias 6; softmax 4, dropout 5.
  CHECK(moved(e.phases[1]) == Approx(46 * x + 62 * y + 9 * s));
  // Gradients of 12 h^2 / 8 weights: the product writes 2 B of each, its end reads 4 B and writes 2 B more; a kernel of
  // its own reads 2 B and 4 B and writes 4 B.
  const auto summed = [&](const TrainingEstimate& estimate) {
    double sums = 0;
    for (const estimate::OpEstimate& o : estimate.phases[1].ops) {
      if (o.op.layer_kind >= 0 && o.op.name.ends_with("wgrad sum")) {
        sums += o.work.bytes().value * d(o.op.count) / d(r.layers);
      }
    }
    return sums;
  };
  CHECK(summed(e) == Approx(6 * 12. * 6144 * 6144 / 8));
  CHECK(summed(predict(r, false, {.fused_gradients = false})) == Approx(10 * 12. * 6144 * 6144 / 8));
}

TEST_CASE("an update by Megatron moves 58 bytes for each parameter, six of them to copy 32-bit weights to 16") {
  const TrainingEstimate e = predict(kIterations[0].run, false, {});
  const double parameters = e.memory.optimizer.value / 12;
  double all = 0;
  double copied = 0;
  for (const estimate::OpEstimate& o : e.phases[2].ops) {
    all += o.work.bytes().value;
    if (o.op.name == "copy_weights") copied += o.work.bytes().value;
  }
  CHECK(all == Approx(58 * parameters).epsilon(1e-6));  // rows are whole
  CHECK(copied == Approx(6 * parameters).epsilon(1e-6));
}

// Table 4 of arXiv 2205.05198: milliseconds of one layer of the 22B model.
TEST_CASE("passes through a layer of the 22B model take what Korthikanti et al. measured") {
  const struct {
    bool sequence_parallel;
    Recompute recompute;
    double forward_ms, backward_ms;
  } measured[] = {{false, Recompute::none, 7.7, 11.9},
                  {true, Recompute::none, 7.2, 11.8},
                  {false, Recompute::full, 7.7, 19.5},
                  {false, Recompute::selective, 7.7, 13.2},
                  {true, Recompute::selective, 7.2, 13.1}};
  for (const auto& m : measured) {
    const TrainingEstimate e = predict(kIterations[0].run, m.sequence_parallel, {.recompute = m.recompute});
    const auto layer_ms = [&](const estimate::Phase& phase) {
      double seconds = 0;
      for (const estimate::OpEstimate& op : phase.ops) {
        if (op.op.layer_kind >= 0) seconds += (op.step_time() - op.hidden).value;
      }
      return 1e3 * seconds / 48;
    };
    CAPTURE(m.sequence_parallel, graph::name(m.recompute));
    CHECK(layer_ms(e.phases[0]) == Approx(m.forward_ms).epsilon(0.04));
    CHECK(layer_ms(e.phases[1]) == Approx(m.backward_ms).epsilon(0.04));
  }
}

}  // namespace llmperf::training_prediction_test
