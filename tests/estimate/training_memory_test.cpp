// Memory of training beside runs that exist: what fits there must not be refused here, and what was measured is met.
#include <fstream>
#include <vector>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "catch.h"
#include "estimate/training.h"
#include "gpt_block.h"

namespace llmperf::training_memory_test {

using estimate::TrainingEstimator;
using estimate::TrainingMemory;
using estimate::TrainingScenario;
using graph::Plan;
using graph::Recompute;
using graph::TrainingOptions;

namespace {

double gib(Bytes bytes) { return bytes.value / kGiB; }

TrainingMemory memory_of(const model::Decoder& model, const hardware::Device& device, const TrainingScenario& s,
                         const Plan& plan, const TrainingOptions& o) {
  estimate::Choices choices;
  choices.weights = "bf16";
  choices.runtime = hardware::parse_runtime_options("all");
  TrainingEstimator estimator(estimate::make_setup(model, device, choices));
  REQUIRE(graph::legal(model, plan));
  REQUIRE(estimate::legal(model, s, plan, o));
  return estimator.memory(s, plan, o);
}

model::Decoder gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  model::Decoder m = gpt_of("megatron-22b", layers, hidden, heads);
  m.dropout = false;
  return m;
}

// The model with `layers` of its layers.
model::Decoder with_layers(const char* name, std::int64_t layers) {
  model::Decoder m = model::load_decoder(name);
  const model::Layer layer = m.kinds.front();
  m.kinds.clear();
  m.layer_kinds.clear();
  m.kind_counts.clear();
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

}  // namespace

TEST_CASE("the published runs of MPT models fit on the GPUs they ran on") {
  std::ifstream in(LLMPERF_SOURCE_DIR "/tests/estimate/data/mpt_training_runs.csv");
  REQUIRE(in.good());
  std::size_t runs = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || line.starts_with("gpu,")) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    REQUIRE(cells.size() == 9);
    const auto number = [&](std::size_t column) {
      return static_cast<std::int64_t>(parse_double(cells[column]).value());
    };
    const std::int64_t sequence = number(5);
    const std::int64_t gpus = number(6);
    const std::int64_t micro_batch = number(7);
    model::Decoder model = gpt(number(2), number(3), number(4));
    model.vocab = 50368;
    model.position_embeddings = sequence;
    model.max_position = sequence;
    const hardware::Device device = hardware::load_device(std::string(cells[0]));
    const TrainingMemory m = memory_of(model, device, {gpus * micro_batch, micro_batch, sequence}, {.data = gpus},
                                       {.recompute = cells[8] == "yes" ? Recompute::full : Recompute::none, .zero = 3});
    INFO(line << ": weights " << gib(m.weights) << ", gradients " << gib(m.gradients) << ", optimiser "
              << gib(m.optimizer) << ", activations " << gib(m.activation) << ", workspace " << gib(m.workspace)
              << " GiB");
    CHECK(gib(m.total()) < gib(*device.dram().capacity));
    ++runs;
  }
  CHECK(runs == 150);
}

// Llama 3: arXiv 2407.21783, table 4 (8,192 and 16,384 GPUs, 43 and 41 % MFU), weights whole after the forward pass, no
// recomputation. The others: torchtitan, docs/performance.md of 2024, fully sharded over 64 A100.
TEST_CASE("published runs of Llama models fit on the GPUs they ran on") {
  const auto check = [](const char* model, std::int64_t layers, const char* gpu, const TrainingScenario& s,
                        const Plan& plan, const TrainingOptions& o) {
    const hardware::Device device = hardware::load_device(gpu);
    const TrainingMemory m = memory_of(with_layers(model, layers), device, s, plan, o);
    INFO(model << ": weights " << gib(m.weights) << ", gradients " << gib(m.gradients) << ", activations "
               << gib(m.activation) << ", workspace " << gib(m.workspace) << " GiB");
    CHECK(gib(m.total()) < gib(*device.dram().capacity));
  };
  for (const std::int64_t replicas : {64, 128}) {  // 126 layers on 16 stages: 8 at most
    check("llama-3.1-405b", 128, "h100-sxm", {2048, 1, 8192},
          {.tensor = 8, .sequence_parallel = true, .data = replicas, .pipeline = 16}, {.zero = 2});
  }
  const Plan fsdp{.data = 64};
  const TrainingOptions full{.recompute = Recompute::full, .zero = 3, .gradient_bits = 32};
  const TrainingOptions none{.zero = 3, .gradient_bits = 32};
  check("llama-2-13b", 40, "a100-sxm-80gb", {128, 2, 4096}, fsdp, none);
  check("llama-2-70b", 80, "a100-sxm-80gb", {128, 2, 4096}, fsdp, full);
  check("llama-3-8b", 32, "a100-sxm-80gb", {64, 1, 8192}, fsdp, none);
  check("llama-3-70b", 80, "a100-sxm-80gb", {64, 1, 8192}, fsdp, full);
}

// torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: tables 4 and 5, on GPUs with 96 GB, memory that PyTorch had
// reserved at most: 67.6 GiB with and 71.9 without asynchronous tensor parallelism; 72.7 with interleaved stages, 82.5
// without. Sequences are 8192 tokens, gradients fp32; 126 layers are not a multiple of 8: a stage has 16 at most.
TEST_CASE("sharded runs of Llama 3.1 need within 15 % of the memory that torchtitan measured") {
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  const TrainingOptions fsdp{.recompute = Recompute::full, .zero = 3, .gradient_bits = 32};
  const model::Decoder llama70 = model::load_decoder("llama-3.1-70b");
  const TrainingMemory tp =
      memory_of(llama70, h100, {512, 16, 8192}, {.tensor = 8, .sequence_parallel = true, .data = 32}, fsdp);
  INFO("70B: activations " << gib(tp.activation) << ", workspace " << gib(tp.workspace) << " GiB");
  CHECK(gib(tp.total()) == Approx((67.6 + 71.9) / 2).epsilon(0.15));

  const model::Decoder llama405 = with_layers("llama-3.1-405b", 128);
  const TrainingMemory pp = memory_of(llama405, h100, {256, 4, 8192},
                                      {.tensor = 8, .sequence_parallel = true, .data = 8, .pipeline = 8}, fsdp);
  INFO("405B: weights " << gib(pp.weights) << ", gradients " << gib(pp.gradients) << ", activations "
                        << gib(pp.activation) << ", workspace " << gib(pp.workspace) << " GiB");
  CHECK(gib(pp.total()) == Approx((72.7 + 82.5) / 2).epsilon(0.15));
}

TEST_CASE("stages of a pipeline keep weights and gradients whole until the last micro-batch has gone back") {
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  const model::Decoder model = gpt(8, 1024, 8);
  const TrainingScenario s{16, 1, 256};
  const auto memory = [&](int zero) {
    return memory_of(model, h100, s, {.data = 4, .pipeline = 2}, {.zero = zero, .gradient_bits = 32});
  };
  const TrainingMemory plain = memory(0);
  for (const int zero : {2, 3}) CHECK(memory(zero).gradients.value == plain.gradients.value);
  CHECK(memory(2).weights.value == plain.weights.value);
  CHECK(memory(3).weights.value == Approx(plain.weights.value * (1 + 1. / 4)));  // its share and what is gathered
  CHECK(memory(3).optimizer.value == Approx(plain.optimizer.value / 4));
  CHECK(memory(3).workspace.value == plain.workspace.value);
}

TEST_CASE("ZeRO holds two layers and the embedding gathered, and with one replica nothing") {
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  const model::Decoder model = gpt(8, 1024, 8);
  const auto workspace = [&](std::int64_t replicas, int zero) {
    return memory_of(model, h100, {replicas, 1, 256}, {.data = replicas}, {.zero = zero, .gradient_bits = 32})
        .workspace.value;
  };
  const double layer = 12. * 1024 * 1024 + 13 * 1024;
  const double outer = (51200. + 2048) * 1024 + 2 * 1024;  // a tied table, positions, the final norm
  CHECK(workspace(4, 1) == workspace(4, 0));
  CHECK(workspace(4, 2) - workspace(4, 0) == Approx(4 * (2 * layer + outer)));
  CHECK(workspace(4, 3) - workspace(4, 0) == Approx((4 + 2) * (2 * layer + outer)));
  for (const int zero : {1, 2, 3}) CHECK(workspace(1, zero) == workspace(1, 0));
}

TEST_CASE("a loss over a divided vocabulary has its exponential and its gradient in fp32") {
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  const model::Decoder model = gpt(1, 1024, 8);
  const auto workspace = [&](bool divided) {
    return memory_of(model, h100, {4, 4, 2048}, {.tensor = 2, .shard_embedding = divided}, {}).workspace.value;
  };
  // 4 x 2048 tokens and a vocabulary of 51200: 2 bytes of each gradient of a logit, and 8 where two devices share them;
  // the gradient of lm_head's input beside them.
  const double logits = d(4 * 2048) * 51200;
  const double residual = 2. * 4 * 2048 * 1024;
  CHECK(workspace(false) == Approx(2 * logits + residual));
  CHECK(workspace(true) == Approx((2 + 8) * logits / 2 + residual));
}

TEST_CASE("experts that one device holds alone are not gathered") {
  const hardware::Device h100 = hardware::load_device("h100-sxm");
  const model::Decoder mixtral = model::load_decoder("mixtral-8x7b");
  const auto workspace = [&](int zero) {
    return memory_of(mixtral, h100, {4, 1, 256}, {.expert = 4, .data = 4}, {.zero = zero}).workspace.value;
  };
  // Attention with 8 of 32 heads for keys and values, a router of 8, two norms; two tables and a norm.
  const double layer = 2.5 * 4096 * 4096 + 8 * 4096 + 2 * 4096;
  const double outer = 2. * 32000 * 4096 + 4096;
  CHECK(workspace(3) - workspace(0) == Approx((2 + 2) * (2 * layer + outer)));
}

}  // namespace llmperf::training_memory_test
