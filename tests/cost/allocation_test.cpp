// Weights as an allocator hands them out. Llama-3-70B under tensor parallelism over 8 devices that replicates embedding
// and lm_head (DeepSpeed's AutoTP): a published run reports 19.8543 GiB of weights per device.
#include "catch.h"
#include "cost/memory.h"

namespace llmperf::allocation_test {

namespace {

graph::Execution llama_3_70b(const model::Decoder& m, const char* options) {
  graph::Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("fp16", Dtype::fp16));
  e.runtime = hardware::parse_runtime_options(options);
  e.plan.tensor = 8;
  e.plan.shard_embedding = false;
  return e;
}

// 2 x 128256 x 8192 outside the layers; per layer 855638016 in matrices, of which a device has an eighth, and two
// norms.
constexpr double kTensors = 2 * (2. * 128256 * 8192 + 80 * 855638016. / 8 + 161 * 8192);

}  // namespace

TEST_CASE("the tensors alone are 19.8540 GiB") {
  const model::Decoder m = model::load_decoder("llama-3-70b");
  CHECK(cost::stage_weight_bytes(llama_3_70b(m, "fused_qkv"), 0).value == kTensors);
  CHECK(kTensors / kGiB == Approx(19.8540).margin(0.00005));
}

TEST_CASE("an allocator that adds 32 bytes and hands out whole 512 takes the 19.8543 GiB that were reported") {
  const model::Decoder m = model::load_decoder("llama-3-70b");
  graph::Execution e = llama_3_70b(m, "fused_qkv");
  e.allocation = {.padding = 32, .granule = 512};
  // Every size is a multiple of 512, so the padding costs 512 per tensor: seven in a layer (qkv, o, gate, up, down and
  // two norms), embedding, final norm and lm_head.
  CHECK(cost::stage_allocation_bytes(e, 0).value == 512 * (80 * 7 + 3));
  CHECK(cost::stage_weight_bytes(e, 0).value == kTensors + 512 * 563);
  CHECK(cost::stage_weight_bytes(e, 0).value / kGiB == Approx(19.8543).margin(0.00005));
  // Nine in a layer where q, k and v are apart, six where gate and up are one.
  e.runtime = hardware::parse_runtime_options("none");
  CHECK(cost::stage_allocation_bytes(e, 0).value == 512 * (80 * 9 + 3));
  e.runtime = hardware::parse_runtime_options("all");
  CHECK(cost::stage_allocation_bytes(e, 0).value == 512 * (80 * 6 + 3));
}

TEST_CASE("without padding only what is no multiple of the granule is rounded") {
  const model::Decoder m = model::load_decoder("llama-3-70b");
  graph::Execution e = llama_3_70b(m, "all");
  e.allocation = {.padding = 0, .granule = 512};
  CHECK(cost::stage_allocation_bytes(e, 0).value == 0);
  e.allocation = {.padding = 0, .granule = 1000};  // a norm takes 16384 bytes: 616 more
  e.plan.pipeline = 80;                            // one layer each, and the outer tensors at the ends
  const double matrices[] = {10240. * 8192 / 8, 8192. * 8192 / 8, 2 * 28672. * 8192 / 8, 28672. * 8192 / 8};
  double expected = 2 * 616;
  for (const double elements : matrices) expected += 1000 * std::ceil(2 * elements / 1000) - 2 * elements;
  CHECK(cost::stage_allocation_bytes(e, 40).value == expected);
}

}  // namespace llmperf::allocation_test
