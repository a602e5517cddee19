// Training as stacks of today run it: narrow products, adapters, sharding, schedules, recomputation and memory, each
// against numbers that can be checked by hand.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/integer.h"
#include "catch.h"
#include "estimate/training.h"
#include "hardware/runtime_profile.h"
#include "model/model_file.h"

namespace llmperf::training_stack_test {

using estimate::TrainingEstimate;
using estimate::TrainingMemory;
using estimate::TrainingScenario;
using graph::Pass;
using graph::Plan;
using graph::Recompute;
using graph::Tag;
using graph::TrainingOptions;

namespace {

// llama-3-8b: 32 layers, h = 4096, f = 14336, 32 heads and 8 for keys and values of 128, a vocabulary of 128,256.
constexpr double kLayers = 32;
constexpr double kHidden = 4096;
constexpr double kWidth = 14336;
constexpr double kKeys = 1024;
constexpr double kVocabulary = 128256;
constexpr double kLayerWeights = kHidden * (2 * kHidden + 2 * kKeys + 3 * kWidth);

struct Run {
  model::Decoder model;
  hardware::Device device;
  std::optional<hardware::RuntimeProfile> profile;
  std::optional<estimate::TrainingEstimator> estimator;

  explicit Run(const char* name, const char* runtime = nullptr, const char* weights = "bf16",
               const char* trained = "llama-3-8b")
      : model(model::load_decoder(trained)), device(hardware::load_device(name)) {
    estimate::Choices choices;
    choices.weights = weights;
    choices.activations = "bf16";
    if (runtime != nullptr) {
      profile = hardware::load_runtime_profile(device, runtime, hardware::UnknownRuntime::error,
                                               hardware::Workload::training);
      choices.runtime = profile->options;
      choices.profile = &*profile;
    } else {
      choices.runtime = hardware::parse_runtime_options("all");
    }
    estimator.emplace(estimate::make_setup(model, device, choices));
  }
  TrainingEstimate step(const TrainingOptions& o = {}, const Plan& plan = {}, std::int64_t micro_batches = 1,
                        std::int64_t sequence = 4096, std::int64_t micro_batch = 1) {
    TrainingEstimate e;
    const TrainingScenario scenario{plan.data * micro_batches * micro_batch, micro_batch, sequence};
    REQUIRE(graph::legal(model, plan));
    REQUIRE(estimate::legal(model, scenario, plan, o));
    estimator->run(scenario, plan, o, e);
    return e;
  }
  double share(hardware::Parameter p) const { return hardware::get(profile->values, p); }
};

// FLOPs of the products of weights in a phase.
double products(const estimate::Phase& phase) {
  double sum = 0;
  for (const estimate::OpEstimate& o : phase.ops) {
    if (std::holds_alternative<graph::Gemm>(o.op.body)) sum += o.work.matrix.value * d(o.op.count);
  }
  return sum;
}
const estimate::OpEstimate* find(const estimate::Phase& phase, Tag tag, Pass pass) {
  const auto at = std::ranges::find_if(
      phase.ops, [&](const estimate::OpEstimate& o) { return o.op.tag == tag && o.op.pass == pass; });
  return at == phase.ops.end() ? nullptr : &*at;
}
double seconds_of(const estimate::Phase& phase, Pass pass) {
  double sum = 0;
  for (const estimate::OpEstimate& o : phase.ops) {
    if (o.op.pass == pass && o.op.layer_kind >= 0) sum += o.step_time().value;
  }
  return sum;
}

}  // namespace

TEST_CASE("products of 8 bits run at a share of their own peak, after kernels that make their operands narrow") {
  Run h100("h100-sxm", "megatron");
  const TrainingEstimate wide = h100.step();
  const TrainingEstimate narrow = h100.step({.products = graph::Products::fp8});
  CHECK(products(narrow.phases[0]) == products(wide.phases[0]));
  const estimate::OpEstimate* down = find(narrow.phases[0], Tag::down_proj, Pass::forward);
  REQUIRE(down != nullptr);
  // 2 x 4096 x 14336 x 4096 FLOPs at a share of 1,979 TFLOP/s; memory adds little to a product of that size.
  const double compute =
      2 * 4096 * kWidth * kHidden / (1979e12 * h100.share(hardware::Parameter::training_narrow_share));
  CHECK(down->time.total.value == Approx(compute).epsilon(0.06));
  // The head stays in 16 bits: 2 x 4096 x 4096 x 128,256 FLOPs at a share of 989 TFLOP/s.
  const estimate::OpEstimate* head = find(narrow.phases[0], Tag::lm_head, Pass::forward);
  REQUIRE(head != nullptr);
  const double share = h100.share(hardware::Parameter::gemm_share);
  CHECK(head->time.total.value == Approx(2 * 4096 * kHidden * kVocabulary / (989.4e12 * share)).epsilon(0.06));
  // Four products of a layer have an operand each that is made narrow; backward two each.
  const auto made = [](const estimate::Phase& phase) {
    return std::ranges::count_if(phase.ops, [](const estimate::OpEstimate& o) { return o.op.tag == Tag::quantise; });
  };
  CHECK(made(wide.phases[0]) == 0);
  CHECK(made(narrow.phases[0]) == 4);
  CHECK(made(narrow.phases[1]) == 8);
  CHECK(narrow.time < wide.time);
}

TEST_CASE("a scale for every row costs more passes than one for a tensor") {
  Run h100("h100-sxm", "megatron");
  const TrainingEstimate rows = h100.step({.products = graph::Products::fp8_rowwise});
  CHECK(rows.time > h100.step({.products = graph::Products::fp8}).time);  // more scales, more passes
}

TEST_CASE("adapters have r (in + out) parameters, and frozen weights no gradients") {
  Run a100("a100-sxm-80gb", "transformers-peft");
  const TrainingOptions all{.adapters = {.rank = 16, .mlp = true}};
  const TrainingMemory memory = a100.estimator->memory({1, 1, 4096}, {}, all);
  // q, k, v of their own, o, gate and up of their own, down.
  const double adapter = 16 * ((kHidden + kHidden) + 2 * (kHidden + kKeys) + (kHidden + kHidden) +
                               2 * (kHidden + kWidth) + (kWidth + kHidden));
  CHECK(memory.optimizer.value == Approx(kLayers * adapter * 12));
  CHECK(memory.weights.value == Approx(2 * (kLayers * (kLayerWeights + 2 * kHidden) + 2 * kVocabulary * kHidden +
                                            kHidden + kLayers * adapter)));
  const TrainingEstimate frozen = a100.step(all);
  CHECK(find(frozen.phases[1], Tag::down_proj, Pass::wgrad) == nullptr);
  CHECK(find(frozen.phases[1], Tag::down_proj, Pass::dgrad) != nullptr);
  CHECK(find(frozen.phases[1], Tag::adapter_up, Pass::wgrad) != nullptr);
  // Backward as many FLOPs of base products as forward, where all weights would have twice as many.
  const TrainingEstimate full = a100.step();
  CHECK(products(full.phases[1]) == Approx(2 * products(full.phases[0])).epsilon(1e-9));
  CHECK(products(frozen.phases[1]) < 1.1 * products(frozen.phases[0]));
  // With adapters on attention alone fewer parameters: 3 x 16 x (in + out) of q, k, v and one of o.
  const double attention = 16 * (2 * (kHidden + kHidden) + 2 * (kHidden + kKeys));
  CHECK(a100.estimator->memory({1, 1, 4096}, {}, {.adapters = {.rank = 16}}).optimizer.value ==
        Approx(kLayers * attention * 12));
}

TEST_CASE("frozen weights of 4 bits are made wide before every product, and again on the way back") {
  Run a100("a100-sxm-80gb", "transformers-peft", "nf4-double");
  const TrainingOptions o{.recompute = Recompute::full, .adapters = {.rank = 16, .mlp = true}};
  const TrainingEstimate e = a100.step(o);
  for (const auto& [phase, pass] :
       {std::pair{0, Pass::forward}, std::pair{1, Pass::again}, std::pair{1, Pass::backward}}) {
    CAPTURE(phase);
    const estimate::OpEstimate* wide = find(e.phases[static_cast<std::size_t>(phase)], Tag::dequantise, pass);
    REQUIRE(wide != nullptr);
    CHECK(wide->op.count == 32);
  }
  // Llama 3 8B by QLoRA, 4 sequences of 4096 tokens on one A100: 25.4 GiB (fms-acceleration's formula of its runs).
  const TrainingMemory memory = a100.estimator->memory({4, 4, 4096}, {}, o);
  CHECK(std::abs(memory.total().value / 1073741824 - 25.4) < 3);
}

TEST_CASE("recomputing a part of the layers keeps what the others keep, and takes their time") {
  Run a100("a100-sxm-80gb", "pytorch-fsdp");
  const auto kept = [&](const TrainingOptions& o) {
    return a100.estimator->memory({2, 1, 4096}, {}, o).activation.value;
  };
  const TrainingOptions full{.recompute = Recompute::full};
  TrainingOptions half = full;
  half.recomputed_share = 0.5;
  CHECK(kept(half) == Approx((kept({}) + kept(full)) / 2));
  const double none_s = a100.step().time.value;
  const double full_s = a100.step(full).time.value;
  CHECK(a100.step(half).time.value == Approx((none_s + full_s) / 2));
  // Inputs of layers: 2 bytes of 4096 x 4096 elements each, all of them or, waiting on the host, two.
  CHECK(kept(full) - kept({.recompute = Recompute::offload}) == Approx(30 * 2 * 4096 * kHidden));
  const double ops = a100.step({.recompute = Recompute::ops}).time.value;
  CHECK(ops > none_s);
  CHECK(ops < full_s);
  CHECK(kept({.recompute = Recompute::ops}) < kept({}));
}

TEST_CASE("PyTorch computes a layer again up to the last input that is needed, Megatron all of it") {
  const auto again = [](const char* runtime, const char* trained) {
    Run h100("h100-sxm", runtime, "bf16", trained);
    return (products(h100.step({.recompute = Recompute::full}).phases[1]) - products(h100.step().phases[1])) / 4096 / 2;
  };
  // 4096 tokens through the matrices of 32 layers: all, or but those that a layer ends with.
  CHECK(again("megatron", "llama-3-8b") == Approx(kLayers * kLayerWeights));
  CHECK(again("pytorch-fsdp", "llama-3-8b") == Approx(kLayers * (kLayerWeights - kHidden * kWidth)));
  // A norm of what the last matrix makes needs it: Gemma 2, of 26 layers, h = 2304, f = 9216, 8 heads of 256 with 4.
  constexpr double kGemma = 2304 * (2 * 8 * 256 + 2 * 4 * 256 + 3 * 9216);
  CHECK(again("pytorch-fsdp", "gemma-2-2b") == Approx(26 * kGemma));
  // Layers of Mamba or attention alone end with their last product, too, and begin with their own norm.
  Run hybrid("h100-sxm", "pytorch-fsdp", "bf16", "nemotron-nano-9b-v2");
  const TrainingEstimate e = hybrid.step({.recompute = Recompute::full});
  CHECK(find(e.phases[1], Tag::recurrent_out, Pass::again) == nullptr);
  CHECK(find(e.phases[1], Tag::attention_add_norm, Pass::again) != nullptr);
}

TEST_CASE("without a compiler element-wise ops move what PyTorch's kernels move") {
  Run h100("h100-sxm", "pytorch-fsdp@2024");
  const auto bytes = [&](Tag tag, bool eager) {
    const TrainingEstimate e = h100.step();
    const graph::Op& op = find(e.phases[0], tag, Pass::forward)->op;
    const auto& v = std::get<graph::Vector>(op.body);
    const double elements = d(v.rows) * d(v.width);
    return 2 * (v.reads + v.writes) + (eager ? graph::moved_eagerly(op).value / elements : 0);
  };
  // A norm: to fp32 2 + 4, squared 4 + 4, averaged 4, multiplied 4 + 4, to 16 bits 4 + 2, weighed 2 + 2; before it the
  // residual is added, 2 + 2 + 2. A rotation: 2 + 4, 4 + 4, 4 + 2. A gate: 2 + 2, and times the other half 2 + 2 + 2.
  CHECK(bytes(Tag::attention_add_norm, false) == 8);
  CHECK(bytes(Tag::attention_add_norm, true) == 36 + 6);
  CHECK(bytes(Tag::rope, false) == 4);
  CHECK(bytes(Tag::rope, true) == 20);
  CHECK(bytes(Tag::activation, false) == 6);
  CHECK(bytes(Tag::activation, true) == 10);
  // A kernel of its own takes LayerNorm in one go.
  Run mpt("h100-sxm", "pytorch-fsdp@2024", "bf16", "mpt-1b");
  const TrainingEstimate m = mpt.step();
  for (const estimate::OpEstimate& o : m.phases[0].ops) {
    const auto* v = std::get_if<graph::Vector>(&o.op.body);
    if (!v || v->kind != graph::VectorKind::add_layer_norm || o.op.layer_kind < 0) continue;
    CHECK(graph::moved_eagerly(o.op).value == 2 * d(v->rows) * d(v->width));  // what it adds is read once more
  }
  // torchtitan of 2024 on 8 H100s: 2.84 s a step without torch.compile, 2.46 with it.
  const auto seconds = [&](bool eager) {
    const TrainingOptions o{.recompute = Recompute::ops, .zero = 3, .eager = eager};
    return h100.step(o, {.data = 8}, 1, 8192, 2).time.value;
  };
  CHECK(seconds(true) / seconds(false) == Approx(2.84 / 2.46).epsilon(0.03));
}

TEST_CASE("exchanges of the tensor axis that run piece by piece show in part") {
  Run h100("h100-sxm", "pytorch-fsdp");
  const auto shows = [&](bool pieces) {
    const TrainingEstimate e = h100.step({.async_sums = pieces}, {.tensor = 8, .sequence_parallel = true});
    const estimate::OpEstimate* o = find(e.phases[0], Tag::attention_gather, Pass::forward);
    return 1 - o->hidden / o->step_time();
  };
  CHECK(shows(false) == Approx(h100.share(hardware::Parameter::training_tensor_shows)));
  CHECK(shows(true) == Approx(shows(false) * h100.share(hardware::Parameter::training_async_shows)));
}

TEST_CASE("shared experts hide tokens on their way to routed ones as long as they last") {
  Run h100("h100-sxm", "megatron", "bf16", "deepseek-v2-lite");
  const auto step = [&](bool beside) { return h100.step({.shared_beside = beside}, {.expert = 8, .data = 8}); };
  const TrainingEstimate apart = step(false);
  const TrainingEstimate beside = step(true);
  for (const std::size_t phase : {0U, 1U}) {
    double travels = 0;
    double shared = 0;
    double hidden = 0;
    for (const estimate::OpEstimate& o : apart.phases[phase].ops) {
      const auto* c = std::get_if<graph::Collective>(&o.op.body);
      if (c && c->routing.experts > 0) travels += (o.step_time() - o.hidden).value;
      if (o.op.layer_kind == 1 && graph::is_of_shared_experts(o.op.tag)) shared += o.step_time().value;
    }
    REQUIRE(travels > shared);  // of 26 layers with two shared experts
    for (std::size_t i = 0; i < apart.phases[phase].ops.size(); ++i) {
      hidden += (beside.phases[phase].ops[i].hidden - apart.phases[phase].ops[i].hidden).value;
    }
    CHECK(hidden == Approx(shared));
  }
  CHECK(beside.time < apart.time);
  // What a layer computes again travels again, beside its shared experts: more of that takes longer, never less.
  const auto again = [&](double share) {
    return h100
        .step({.recompute = Recompute::full, .recomputed_share = share, .shared_beside = true},
              {.expert = 8, .data = 8})
        .time;
  };
  CHECK(again(0.1) > beside.time);
  CHECK((again(1) - beside.time).value == Approx(10 * (again(0.1) - beside.time).value).epsilon(0.01));
}

TEST_CASE("modules that compute again give up what the products behind them read") {
  Run h100("h100-sxm", "megatron");
  const auto options = [](unsigned modules) {
    return TrainingOptions{.recompute = Recompute::modules, .modules = modules};
  };
  const auto kept = [&](const TrainingOptions& o) {
    return h100.estimator->memory({2, 1, 4096}, {}, o).activation.value;
  };
  const unsigned layernorm = 1U << static_cast<unsigned>(graph::Module::layernorm);
  const unsigned mlp = 1U << static_cast<unsigned>(graph::Module::mlp);
  // The results of two norms in 16 bits; of the feed-forward part its two inputs of the activation and its result.
  CHECK(kept({}) - kept(options(layernorm)) == Approx(kLayers * 2 * 2 * 4096 * kHidden));
  CHECK(kept({}) - kept(options(mlp)) == Approx(kLayers * 3 * 2 * 4096 * kWidth));
  CHECK(h100.step(options(layernorm | mlp)).time > h100.step().time);
}

TEST_CASE("the loss is charged once, by its logits") {
  Run peft("a100-sxm-80gb", "transformers-peft");
  const TrainingOptions plain{.recompute = Recompute::full, .adapters = {.rank = 16}};
  TrainingOptions chunked = plain;
  chunked.loss = graph::Loss::chunked;
  TrainingOptions fused = plain;
  fused.loss = graph::Loss::fused;
  const TrainingScenario long_one{1, 1, 16384};
  const auto total = [&](const TrainingOptions& o) { return peft.estimator->memory(long_one, {}, o).total().value; };
  // 8 bytes a logit are more than a layer needs: the difference to one byte is of 7.
  CHECK(total(plain) - total(fused) > 6 * 16384 * kVocabulary);
  CHECK(total(chunked) <= total(fused) + 1);
  const TrainingMemory m = peft.estimator->memory(long_one, {}, plain);
  CHECK(m.workspace.value == Approx(8 * 16384 * kVocabulary + 2 * 16384 * kHidden).epsilon(1e-6));
}

TEST_CASE("optimisers without a copy hold two moments, and gradients that are consumed at once one layer") {
  Run peft("a100-sxm-80gb", "transformers-peft");
  const double parameters = kLayers * (kLayerWeights + 2 * kHidden) + 2 * kVocabulary * kHidden + kHidden;
  const TrainingOptions pure{.recompute = Recompute::full, .gradient_bits = 16, .optimizer_bits = 32};
  const TrainingMemory m = peft.estimator->memory({2, 1, 4096}, {}, pure);
  CHECK(m.optimizer.value == Approx(4 * parameters));
  CHECK(m.gradients.value == Approx(2 * parameters));
  TrainingOptions at_once = pure;
  at_once.updates_at_once = true;
  CHECK(peft.estimator->memory({2, 1, 4096}, {}, at_once).gradients.value == 0);
}

TEST_CASE("devices that divide in groups hold a group's part, and groups sum what they hold") {
  Run h100("h100-sxm", "pytorch-fsdp");
  const Plan plan{.data = 32};
  const TrainingOptions whole{.recompute = Recompute::full, .zero = 3};
  TrainingOptions grouped = whole;
  grouped.shard = 8;
  const auto weights = [&](const TrainingOptions& o) {
    return h100.estimator->memory({32, 1, 4096}, plan, o).weights.value;
  };
  CHECK(weights(grouped) == Approx(4 * weights(whole)));
  const TrainingEstimate e = h100.step(grouped, plan);
  int sums = 0;
  for (const estimate::OpEstimate& o : e.phases[2].ops) {
    const auto* c = std::get_if<graph::Collective>(&o.op.body);
    if (c == nullptr) continue;
    if (c->kind == graph::CollectiveKind::all_reduce) {
      ++sums;
      CHECK(c->ranks == 4);
      CHECK(c->stride == 8);
    } else {
      CHECK(c->ranks == 8);
    }
  }
  CHECK(sums == 1);
  // What stays gathered between the passes is gathered half as often.
  TrainingOptions once = whole;
  once.stays_gathered = true;
  const auto gathers = [&](const TrainingOptions& o) {
    const TrainingEstimate step = h100.step(o, plan);
    for (const estimate::OpEstimate& op : step.phases[2].ops) {
      if (op.op.name == "weights_gather") return op.op.count;
    }
    return std::int64_t{0};
  };
  CHECK(gathers(whole) == 2);
  CHECK(gathers(once) == 1);
}

TEST_CASE("gathers and scatters hide beside what is computed, but for a twentieth") {
  Run h100("h100-sxm", "pytorch-fsdp");
  const TrainingEstimate e = h100.step({.recompute = Recompute::full, .zero = 3}, {.data = 8});
  double all = 0;
  for (const estimate::OpEstimate& o : e.phases[2].ops) {
    if (o.op.place == graph::Place::network) all += o.step_time().value;
  }
  CHECK(e.gradient_exposed.value == Approx(all * h100.share(hardware::Parameter::training_shard_shows)));
}

TEST_CASE("bubbles are those of the schedules' papers") {
  Run h100("h100-sxm", "megatron");
  const Plan plan{.pipeline = 8};
  const TrainingOptions o;
  const TrainingEstimate plain = h100.step(o, plan, 16);
  // Every stage has as many layers: F and B of a stage's layers, W the gradients of weights in B.
  const estimate::Phase& forward = plain.phases[0];
  const estimate::Phase& backward = plain.phases[1];
  const auto layers = [&](const estimate::Phase& phase) {
    double sum = 0;
    for (const estimate::OpEstimate& op : phase.ops) {
      if (op.op.layer_kind >= 0) sum += op.step_time().value - op.hidden.value;
    }
    return sum;
  };
  const auto sent = [&](const estimate::Phase& phase) {
    double sum = 0;
    for (const estimate::OpEstimate& op : phase.ops) {
      if (op.op.name.starts_with("stage_send")) sum += op.time.total.value;
    }
    return sum;
  };
  const double f = layers(forward) + sent(forward);
  const double b = layers(backward) + sent(backward);
  const double w = seconds_of(backward, Pass::wgrad) + seconds_of(backward, Pass::wgrad_sum);
  // Within what the first stage has beside layers, the embedding.
  CHECK(plain.bubble.value == Approx(7 * (f + b)).epsilon(1e-3));
  const auto bubble = [&](graph::Schedule schedule) {
    TrainingOptions other = o;
    other.schedule = schedule;
    return h100.step(other, plan, 16).bubble.value;
  };
  CHECK(bubble(graph::Schedule::zb_h1) == Approx(7 * (f + b - 2 * w)).epsilon(1e-3));
  CHECK(bubble(graph::Schedule::dualpipe) == Approx(3 * (f + b + layers(backward) - 3 * w)).epsilon(6e-3));
  CHECK(bubble(graph::Schedule::zb_v) == bubble(graph::Schedule::zb_h1));
  CHECK(bubble(graph::Schedule::v_half) == Approx(7 * (f + b) / 2).epsilon(1e-3));
  CHECK(bubble(graph::Schedule::v_min) == Approx(7 * (f + b) * 2 / 3).epsilon(1e-3));
}

TEST_CASE(
    "keys of other devices are gathered before attention, again for its backward pass, and their gradients return") {
  Run h100("h100-sxm", "megatron");
  const TrainingEstimate e = h100.step({}, {.ring = 4, .gathers_keys = true});
  // Keys and values of 8 heads of 128 elements in 2 bytes; a device receives three quarters of them.
  const double tokens = static_cast<double>(e.scenario.micro_batch * e.scenario.sequence);
  const double received = tokens * 2 * 8 * 128 * 2 * 3 / 4;
  const auto exchanges = [&](const estimate::Phase& phase) {
    std::vector<graph::CollectiveKind> kinds;
    for (const estimate::OpEstimate& op : phase.ops) {
      if (op.op.tag != graph::Tag::kv_gather) continue;
      kinds.push_back(std::get<graph::Collective>(op.op.body).kind);
      CHECK(op.work.network.value == Approx(received));
    }
    return kinds;
  };
  using enum graph::CollectiveKind;
  CHECK(exchanges(e.phases[0]) == std::vector{all_gather});
  CHECK(exchanges(e.phases[1]) == std::vector{all_gather, reduce_scatter});
  // A ring passes as much beside attention; nothing runs beside the gather.
  for (const bool gathers : {false, true}) {
    const TrainingEstimate either = h100.step({}, {.ring = 4, .gathers_keys = gathers});
    for (const estimate::OpEstimate& op : either.phases[0].ops) {
      const bool keys = op.op.tag == graph::Tag::kv_gather || op.op.tag == graph::Tag::kv_ring;
      if (keys) CHECK((op.hidden.value > 0) == !gathers);
    }
  }
}

TEST_CASE("activations in flight are those of the schedules") {
  Run h100("h100-sxm", "megatron");
  const Plan plan{.pipeline = 8};
  const auto layers_kept = [&](graph::Schedule schedule, std::int64_t batches) {
    const TrainingOptions o{.schedule = schedule};
    return h100.estimator->memory({batches, 1, 4096}, plan, o).activation.value;
  };
  const double whole = layers_kept(graph::Schedule::one_forward, 64);
  CHECK(layers_kept(graph::Schedule::zb_h1, 64) == whole);
  CHECK(layers_kept(graph::Schedule::v_half, 64) < 0.7 * whole);
  CHECK(layers_kept(graph::Schedule::v_min, 64) < layers_kept(graph::Schedule::v_half, 64));
  CHECK(layers_kept(graph::Schedule::dualpipe, 64) > whole);
}

TEST_CASE("what a schedule or an optimiser cannot do is refused with what it can") {
  const model::Decoder model = model::load_decoder("llama-3-8b");
  const auto hint = [&](const TrainingScenario& s, const Plan& plan, const TrainingOptions& o) {
    const std::vector<graph::Problem> found = estimate::problems(model, s, plan, o);
    return found.empty() ? std::string() : found.front().hint;
  };
  const Plan stages{.pipeline = 8};
  CHECK(hint({4, 1, 4096}, stages, {.schedule = graph::Schedule::zb_h1}) == "`global-batch` 8");
  CHECK(hint({8, 1, 4096}, stages, {.schedule = graph::Schedule::zb_h1}).empty());
  CHECK(hint({8, 1, 4096}, stages, {.schedule = graph::Schedule::dualpipe}) == "`global-batch` 16");
  CHECK(hint({16, 1, 4096}, stages, {.schedule = graph::Schedule::zb_v, .chunks = 2}) == "leave one of them out");
  CHECK(hint({16, 2, 4096}, {.data = 4}, {.updates_at_once = true}) == "`global-batch` 8 without `pp`");
  CHECK(hint({8, 2, 4096}, {.data = 4}, {.updates_at_once = true}).empty());
}

TEST_CASE("inputs of layers that go to the host show where their link takes longer than the layer") {
  Run h100("h100-sxm", "pytorch-fsdp");
  const TrainingOptions full{.recompute = Recompute::full};
  TrainingOptions away = full;
  away.recompute = Recompute::offload;
  CHECK(h100.step(away).time == h100.step(full).time);  // 32 MiB a layer take less than a millisecond
  h100.device.host_link->per_direction = BytesPerSecond{1e9};
  CHECK(h100.step(away).time == h100.step(full).time);  // the estimator read the link when it was made
  estimate::Choices choices;
  choices.weights = "bf16";
  choices.runtime = h100.profile->options;
  choices.profile = &*h100.profile;
  estimate::TrainingEstimator slow(estimate::make_setup(h100.model, h100.device, choices));
  TrainingEstimate e;
  slow.run({1, 1, 4096}, {}, away, e);
  CHECK(e.host.value > 0);
  // Each pass of each layer waits for 2 x 4096 x 4096 bytes at 1 GB/s.
  CHECK(e.compute.value > 2 * kLayers * 2 * 4096 * kHidden / 1e9);
}

TEST_CASE("recurrences are differentiated, and keep what they read and their states") {
  const hardware::Device device = hardware::load_device("h100-sxm");
  const model::Decoder hybrid = model::load_decoder("qwen3-next-80b-a3b");
  REQUIRE(hybrid.has_recurrent());
  CHECK_FALSE(hybrid.is_plain_transformer());
  CHECK(hybrid.has_backward());
  estimate::Choices choices;
  choices.weights = "bf16";
  choices.runtime = hardware::parse_runtime_options("all");
  estimate::TrainingEstimator estimator(estimate::make_setup(hybrid, device, choices));
  TrainingEstimate e;
  estimator.run({64, 1, 4096}, {.data = 64}, {.zero = 3}, e);
  const estimate::OpEstimate* scan = find(e.phases[0], Tag::scan, Pass::forward);
  REQUIRE(scan != nullptr);
  CHECK(scan->op.saved.value > 0);
  CHECK(find(e.phases[1], Tag::scan, Pass::dgrad) != nullptr);
  CHECK(find(e.phases[1], Tag::scan, Pass::backward) != nullptr);
  CHECK(products(e.phases[1]) == Approx(2 * products(e.phases[0])).epsilon(1e-9));
  CHECK_FALSE(model::load_decoder("deepseek-v3.2").has_backward());  // an indexer
}

TEST_CASE("DeepSeek-V3 on 2048 H800 trains at what its report says, within a fifth") {
  Run h800("h800-sxm", "megatron");
  const model::Decoder v3 = model::load_decoder("deepseek-v3");
  estimate::Choices choices;
  choices.weights = "bf16";
  choices.runtime = h800.profile->options;
  choices.profile = &*h800.profile;
  estimate::TrainingEstimator estimator(estimate::make_setup(v3, h800.device, choices));
  const auto bit = [](graph::Module m) { return 1U << static_cast<unsigned>(m); };
  const TrainingOptions o{
      .recompute = Recompute::modules,
      .modules = bit(graph::Module::mla_up_proj) | bit(graph::Module::layernorm) | bit(graph::Module::moe_act),
      .zero = 1,
      .schedule = graph::Schedule::dualpipe,
      .optimizer_bits = 64,  // moments of 16 bits
      .products = graph::Products::fp8_block};
  const Plan plan{.expert = 64, .data = 128, .pipeline = 16};
  TrainingEstimate e;
  estimator.run({15360, 1, 4096}, plan, o, e);
  // arXiv 2412.19437: 180,000 hours of an H800 for 10^12 tokens.
  constexpr double kReported = 1e12 / (180e3 * 3600);
  CHECK(kReported == Approx(1543).epsilon(1e-3));
  INFO(e.tokens_per_second / 2048);
  CHECK(std::abs(e.tokens_per_second / 2048 / kReported - 1) < 0.2);
}

}  // namespace llmperf::training_stack_test
