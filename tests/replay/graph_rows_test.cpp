#include "catch.h"
#include "cost/work.h"
#include "estimate/estimate.h"
#include "hardware/device.h"
#include "measure/row_ops.h"
#include "model/model_file.h"
#include "replay/replay.h"

namespace llmperf::graph_rows_test {

using measure::OpRow;

namespace {

// The step's graph, of which the ops point into the setup.
struct Built {
  model::Decoder model;
  hardware::Device device = hardware::load_device("epyc-9654");
  estimate::Setup setup;
  graph::Graph graph;

  Built(const std::string& name, const graph::SequenceGroup& group, estimate::Choices choices = {})
      : model(model::load_decoder(name)) {
    if (!choices.weights) choices.weights = "bf16";
    choices.activations = "bf16";
    setup = estimate::make_setup(model, device, choices);
    graph::build_step(setup.execution, {&group, 1}, graph::Part::all, graph);
  }
  replay::Step step(replay::Sums sums = replay::Sums::apart) const { return replay::step_of(graph, sums); }
};

const replay::DistinctOp& op_named(const replay::Step& step, const std::string& name) {
  for (const replay::DistinctOp& op : step.ops) {
    if (std::find(op.names.begin(), op.names.end(), name) != op.names.end()) return op;
  }
  throw std::runtime_error("no op " + name);
}
std::string text(const replay::DistinctOp& op) {
  const auto* row = std::get_if<OpRow>(&op.what);
  return row ? measure::describe(*row) : "-: " + std::get<std::string>(op.what);
}

}  // namespace

TEST_CASE("the ops of a step are named by their shapes", "[graph_rows]") {
  // 24 layers, hidden 1024, 16 heads of 64, intermediate 2816, vocabulary 151936.
  const Built built("qwen1.5-0.5b", {2, 1, 128});
  const replay::Step step = built.step();
  CHECK(text(op_named(step, "embed")) == "gather bf16 2 x 1024 of 151936");
  CHECK(text(op_named(step, "qkv_proj")) == "gemm bf16 2 x 3072 x 1024");
  CHECK(text(op_named(step, "rope")) == "vector:rope bf16 64 x 64 heads 16/16");
  CHECK(text(op_named(step, "kv_write")) == "kv_write bf16 2 tokens 16 x 64");
  CHECK(text(op_named(step, "attention")) == "attention_decode bf16 batch 2 q 1 kv 129 heads 16/16 x 64");
  CHECK(text(op_named(step, "activation")) == "vector:gated_activation bf16 2 x 2816");
  CHECK(text(op_named(step, "lm_head")) == "gemm bf16 2 x 151936 x 1024");
  CHECK(op_named(step, "qkv_proj").count == 24);
}

TEST_CASE("a row asks for the work of the op it is of", "[graph_rows]") {
  for (const char* name : {"qwen1.5-0.5b", "qwen2-0.5b", "llama-3.2-1b", "mistral-7b-v0.3", "phi-2"}) {
    for (const graph::SequenceGroup& group : {graph::SequenceGroup{1, 128, 0}, graph::SequenceGroup{3, 1, 500}}) {
      const Built built(name, group);
      for (const graph::Op& op : built.graph) {
        const auto row = replay::row_of(op, replay::attention_beside(op, built.graph));
        if (!std::holds_alternative<OpRow>(row)) continue;
        INFO(name << " " << op.name << " " << measure::describe(std::get<OpRow>(row)));
        const graph::Op again = measure::ops_of(std::get<OpRow>(row), {}).front();
        const cost::Work a = cost::work_of(op, {});
        const cost::Work b = cost::work_of(again, {});
        CHECK(b.matrix.value == a.matrix.value);
        const auto* gemm = std::get_if<graph::Gemm>(&op.body);
        const double bias = gemm && gemm->bias ? 2.0 * static_cast<double>(gemm->n) : 0;  // a row has none
        CHECK(b.bytes().value == Approx(a.bytes().value - bias));
      }
    }
  }
}

TEST_CASE("a recurrence is a row of its shape, and a row asks for its work again", "[graph_rows]") {
  const std::string model = LLMPERF_SOURCE_DIR "/tests/replay/recurrent.yaml";
  for (const auto& [group, expected] :
       {std::pair{graph::SequenceGroup{2, 100, 0}, "scan:gated_delta_net bf16 batch 2 q 100 heads 4/2 x 32 x 32"},
        {graph::SequenceGroup{3, 1, 100}, "scan:gated_delta_net bf16 batch 3 q 1 heads 4/2 x 32 x 32"}}) {
    const Built built(model, group);
    CHECK(text(op_named(built.step(), "scan")) == expected);
    std::size_t scans = 0;
    for (const graph::Op& op : built.graph) {
      if (!std::holds_alternative<graph::Scan>(op.body)) continue;
      const auto row = replay::row_of(op, replay::attention_beside(op, built.graph));
      const graph::Op again = measure::ops_of(std::get<OpRow>(row), {}).front();
      CHECK(cost::work_of(again, {}).matrix.value == cost::work_of(op, {}).matrix.value);
      CHECK(cost::work_of(again, {}).bytes().value == cost::work_of(op, {}).bytes().value);
      ++scans;
    }
    CHECK(scans == 2);
  }
}

TEST_CASE("latent attention is expanded over a prompt and absorbed for new tokens", "[graph_rows]") {
  for (const auto& [group, expected] :
       {std::pair{graph::SequenceGroup{2, 16, 0}, "mla_prefill bf16 batch 2 q 16 kv 16 heads 16"},
        {graph::SequenceGroup{2, 1, 16}, "mla_decode bf16 batch 2 q 1 kv 17 heads 16"}}) {
    const Built built("deepseek-v2-lite", group);
    CHECK(text(op_named(built.step(), "attention")) == expected);
    for (const graph::Op& op : built.graph) {
      if (!std::holds_alternative<graph::Attention>(op.body)) continue;
      const auto row = replay::row_of(op, replay::attention_beside(op, built.graph));
      const graph::Op again = measure::ops_of(std::get<OpRow>(row), {}).front();
      CHECK(cost::work_of(again, {}).matrix.value == cost::work_of(op, {}).matrix.value);
      CHECK(cost::work_of(again, {}).bytes().value == cost::work_of(op, {}).bytes().value);
    }
  }
}

TEST_CASE("layers follow each other, each with all its ops", "[graph_rows]") {
  const Built built("qwen1.5-0.5b", {1, 16, 0});
  const replay::Step step = built.step();
  REQUIRE(step.blocks.size() >= 3);
  std::int64_t layers = 0;
  std::vector<std::int64_t> executions(step.ops.size(), 0);
  for (const replay::StepBlock& block : step.blocks) {
    layers = std::max(layers, block.times);
    for (const replay::StepPlace& place : block.places) executions[place.op] += block.times * place.repeat;
  }
  CHECK(layers == 24);
  for (std::size_t i = 0; i < step.ops.size(); ++i) CHECK(executions[i] == step.ops[i].count);
}

TEST_CASE("experts are as many products with their share of the rows", "[graph_rows]") {
  // Mixtral: 8 experts, 2 per token. One token reaches 2 of them.
  const Built built("mixtral-8x7b", {1, 1, 16});
  const replay::Step step = built.step();
  CHECK(text(op_named(step, "experts_down")) == "gemm bf16 2 * 1 x 4096 x 14336");
}

TEST_CASE("quantised weights are named by their scheme", "[graph_rows]") {
  estimate::Choices choices;
  for (const char* scheme : {"w4a16-g128", "int8", "w8a8", "fp8"}) {
    choices.weights = scheme;
    const Built built("qwen1.5-0.5b", {1, 1, 16}, choices);
    CHECK(text(op_named(built.step(), "o_proj")) == std::string("gemm bf16 1 x 1024 x 1024 ") + scheme);
  }
}

TEST_CASE("an op that a row cannot name says why", "[graph_rows]") {
  estimate::Choices choices;
  SECTION("a chain of an eager framework") {
    choices.runtime = hardware::parse_runtime_options("none");
    choices.runtime.chains = hardware::Chains::framework;
    const Built built("qwen1.5-0.5b", {1, 16, 0}, choices);
    CHECK(text(op_named(built.step(), "input_norm")) == "-: stands for the 8 kernels of a chain");
  }
  SECTION("latent attention of other widths than DeepSeek's") {
    const Built built("deepseek-v2-lite", {1, 1, 16});
    for (graph::Op op : built.graph) {
      auto* attention = std::get_if<graph::Attention>(&op.body);
      if (!attention) continue;
      attention->v_dim = 256;
      const auto row = replay::row_of(op, replay::attention_beside(op, built.graph));
      CHECK(std::get<std::string>(row) == "is latent attention of other widths than 576 and 512");
    }
  }
}

TEST_CASE("ranks of a plan exchange by collectives", "[graph_rows]") {
  estimate::Choices choices;
  choices.plan.tensor = 2;
  const Built built("qwen1.5-0.5b", {1, 4, 0}, choices);
  const replay::Step step = built.step();
  std::vector<std::string> collectives;
  for (const replay::DistinctOp& op : step.ops) {
    const auto* row = std::get_if<OpRow>(&op.what);
    if (row && std::holds_alternative<measure::CollectiveShape>(row->shape)) collectives.push_back(text(op));
  }
  REQUIRE(!collectives.empty());
  CHECK(collectives.front() == "all_reduce bf16 2 ranks 8192 B");  // 4 tokens x 1024 x 2 B
}

TEST_CASE("a product and the sum beside it are one kernel", "[graph_rows]") {
  estimate::Choices choices;
  choices.plan.tensor = 2;
  choices.runtime = hardware::parse_runtime_options("all");
  choices.runtime.overlap_collectives = true;
  const Built built("qwen1.5-0.5b", {1, 4, 0}, choices);
  std::vector<std::string> joint;
  CHECK(text(op_named(built.step(), "o_proj")) == "gemm bf16 4 x 1024 x 512");
  for (const replay::DistinctOp& op : built.step(replay::Sums::joint).ops) {
    if (op.names.front().starts_with("o_proj")) joint.push_back(text(op));
  }
  CHECK(joint == std::vector<std::string>{"matmul_all_reduce bf16 4 x 1024 x 512 over 2 ranks"});
}

TEST_CASE("a list has every op once", "[graph_rows]") {
  const OpRow a{"gemm", Dtype::bf16, measure::GemmShape{1, 2, 3, 1, {}}};
  const OpRow b{"gemm", Dtype::bf16, measure::GemmShape{1, 2, 4, 1, {}}};
  CHECK(replay::list_of({a, b, a}).ops.size() == 2);
}

TEST_CASE("windows and caches of another type are columns of attention's row", "[graph_rows]") {
  estimate::Choices choices;
  choices.kv = "fp8";
  const Built narrow("qwen1.5-0.5b", {2, 1, 128}, choices);
  CHECK(text(op_named(narrow.step(), "attention")) ==
        "attention_decode bf16 batch 2 q 1 kv 129 heads 16/16 x 64 cache fp8");
  const Built sliding("mistral-7b-v0.1", {1, 1, 8191});
  CHECK(text(op_named(sliding.step(), "attention")) ==
        "attention_decode bf16 batch 1 q 1 kv 8192 heads 32/8 x 128 window 4096");
  const Built shorter("mistral-7b-v0.1", {1, 1, 1000});  // which is no window
  CHECK(text(op_named(shorter.step(), "attention")) == "attention_decode bf16 batch 1 q 1 kv 1001 heads 32/8 x 128");
  for (const Built* built : {&narrow, &sliding}) {
    for (const graph::Op& op : built->graph) {
      if (!std::holds_alternative<graph::Attention>(op.body)) continue;
      const auto row = replay::row_of(op, replay::attention_beside(op, built->graph));
      const graph::Op again = measure::ops_of(std::get<OpRow>(row), {}).front();
      CHECK(cost::work_of(again, {}).matrix.value == cost::work_of(op, {}).matrix.value);
      CHECK(cost::work_of(again, {}).bytes().value == cost::work_of(op, {}).bytes().value);
    }
  }
}

}  // namespace llmperf::graph_rows_test
