// Runtime profiles: files read back as they were written, mistakes in them are reported where they are, every device
// finds its profile, and flags become the way a step runs.
#include "hardware/runtime_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "descriptor/node.h"
#include "hardware/runtime_execution.h"
#include "one_problem.h"

namespace llmperf::hardware::runtime_profile_test {
namespace {

std::vector<RuntimeProfile> shipped() {
  std::vector<RuntimeProfile> all;
  for (const std::string& file : descriptor::names(descriptor::Kind::runtime)) {
    all.push_back(parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, file)));
  }
  return all;
}

RuntimeProfile parse(const std::string& text) {
  return parse_runtime_profile(descriptor::parse_yaml(text, "toy.yaml"));
}

RuntimeProfile profile_of(const std::string& device, const std::string& name,
                          UnknownRuntime unknown = UnknownRuntime::error) {
  return load_runtime_profile(load_device(device), name, unknown);
}

TEST_CASE("rows of single ops may have values of their own, which a profile that is written keeps") {
  const RuntimeProfile p = parse(
      "name: toy\nhardware: toybox\ntitle: Toy\nsource: made up\nparameters:\n"
      "  - {name: gemm.launch, value: 4e-6, provenance: fitted, alone: 9e-6}\n"
      "  - {name: gemm.overlap, value: 3, provenance: fitted}\n");
  const auto launch = static_cast<std::size_t>(Parameter::gemm_launch);
  const auto overlap = static_cast<std::size_t>(Parameter::gemm_overlap);
  CHECK(p.values[launch] == 4e-6);
  CHECK(measured_alone(p).values[launch] == 9e-6);
  CHECK(measured_alone(p).values[overlap] == 3);
  CHECK(parse(format_runtime_profile(p)).alone == p.alone);
}

const std::string kGood =
    "name: toy\n"                                                                                         // 1
    "hardware: toybox\n"                                                                                  // 2
    "title: Toy\n"                                                                                        // 3
    "source: made up\n"                                                                                   // 4
    "options: all,no_fused_qkv\n"                                                                         // 5
    "named_options:\n"                                                                                    // 6
    "  - {name: mc2, switches: [overlap_collectives]}\n"                                                  // 7
    "choices: {tile_menu: true, serial_formats: [gptq], power: sustained, custom_all_reduce: 8388608}\n"  // 8
    "parameters:\n"                                                                                       // 9
    "  - {name: gemm.launch, value: 4e-6, provenance: fitted}\n"                                          // 10
    "  - {name: format.awq.share, value: 0.4, provenance: assumed}\n"                                     // 11
    "range: {rows: 20, weights: [bf16], models: [m], max_batch: 8, max_tokens: 512, max_context: 1000, "
    "min_parameters: 1e9, max_parameters: 8e9}\n"                           // 12
    "errors:\n"                                                             // 13
    "  - {group: decode, rows: 20, mean: 0.03, p90: 0.08, bias: -0.01}\n";  // 14

std::string edit(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(fmt::format("no '{}' in the test file", from));
  return text.replace(at, from.size(), to);
}

// Exactly one problem, on that line, with these parts in its message and its hint.
void check_problem(std::string_view from, std::string_view to, int line, const std::string& message,
                   const std::string& hint = "") {
  CAPTURE(from, to);
  check_one_problem([&] { parse(edit(kGood, from, to)); }, line, message, hint);
}

bool same_errors(const RuntimeProfile& a, const RuntimeProfile& b) {
  return std::equal(a.errors.begin(), a.errors.end(), b.errors.begin(), b.errors.end(),
                    [](const FittedError& x, const FittedError& y) {
                      return x.group == y.group && x.mean == y.mean && x.p90 == y.p90 && x.bias == y.bias &&
                             x.rows == y.rows;
                    });
}

}  // namespace

TEST_CASE("every shipped profile reads back from what the writer makes of it", "[runtime_profile]") {
  const std::vector<RuntimeProfile> all = shipped();
  CHECK(all.size() >= 6);
  for (const RuntimeProfile& p : all) {
    CAPTURE(p.name, p.hardware, p.title);
    const RuntimeProfile again = parse(format_runtime_profile(p));
    CHECK(again.name == p.name);
    CHECK(again.hardware == p.hardware);
    CHECK(again.families == p.families);
    CHECK(again.preferred == p.preferred);
    CHECK(again.engine == p.engine);
    CHECK(again.host_class == p.host_class);
    CHECK(again.foreign_steps == p.foreign_steps);
    CHECK(again.title == p.title);
    CHECK(again.source == p.source);
    CHECK(again.notes == p.notes);
    CHECK(again.dispatch == p.dispatch);
    CHECK(again.prefill_dispatch == p.prefill_dispatch);
    CHECK(again.options == p.options);
    CHECK(again.base == p.base);
    CHECK(again.static_graph_needs == p.static_graph_needs);
    CHECK(again.gguf_era == p.gguf_era);
    CHECK(again.choices == p.choices);
    CHECK(again.provenance == p.provenance);
    CHECK(again.range.models == p.range.models);
    CHECK(again.range.weights == p.range.weights);
    CHECK(again.range.max_context == p.range.max_context);
    CHECK(same_errors(again, p));
    REQUIRE(again.ladder.size() == p.ladder.size());
    for (std::size_t i = 0; i < p.ladder.size(); ++i) {
      CHECK(again.ladder[i].name == p.ladder[i].name);
      CHECK(again.ladder[i].switches == p.ladder[i].switches);
    }
    for (std::size_t i = 0; i < kAllParameters; ++i) {
      CAPTURE(parameter_info(i).name);
      CHECK(again.values[i] == Approx(p.values[i]).epsilon(1e-6));  // six digits are written
      CHECK(again.uncertainty[i] == Approx(p.uncertainty[i]).epsilon(1e-3));
    }
    CHECK(format_runtime_profile(again) == format_runtime_profile(p));
  }
}

TEST_CASE("which attention runs is a choice by name", "[runtime_profile]") {
  RuntimeProfile p = shipped().front();
  for (const auto kernels :
       {AttentionKernels::flash2, AttentionKernels::flash3, AttentionKernels::blackwell, AttentionKernels::cann}) {
    p.choices.attention = kernels;
    CHECK(parse(format_runtime_profile(p)).choices.attention == kernels);
  }
}

TEST_CASE("the numbers of every shipped profile lie within their bounds", "[runtime_profile]") {
  for (const RuntimeProfile& p : shipped()) {
    for (std::size_t i = 0; i < kAllParameters; ++i) {
      const ParameterInfo& info = parameter_info(i);
      CAPTURE(p.name, p.hardware, info.name);
      CHECK(p.values[i] >= info.min);
      CHECK(p.values[i] <= info.max);
    }
  }
}

TEST_CASE("parameters have names of their own, defaults within bounds and units of their kind", "[runtime_profile]") {
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    const ParameterInfo& info = parameter_info(i);
    CAPTURE(info.name);
    CHECK(find_parameter(info.name) == i);
    CHECK(info.min > 0);
    CHECK(info.min <= info.initial);
    CHECK(info.initial <= info.max);
    CHECK(info.spread > 0);
    CHECK((info.unit.empty() || info.unit == "s" || info.unit == "B/s" || info.unit == "1/s" || info.unit == "B" ||
           info.unit == "FLOP/J"));
    CHECK_FALSE(info.meaning.empty());
  }
  CHECK_FALSE(find_parameter("gemm.lunch").has_value());
}

TEST_CASE("every parameter is explained in docs/runtimes.md, with its default", "[runtime_profile]") {
  std::ifstream in(LLMPERF_SOURCE_DIR "/docs/runtimes.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  REQUIRE_FALSE(text.empty());
  for (std::size_t i = 0; i < kParameters; ++i) {
    const ParameterInfo& info = parameter_info(i);
    CAPTURE(info.name);
    // A row of the table: | `gemm.launch` | s | 3e-06 | ...
    const std::string row =
        fmt::format("| `{}` | {} | {:g} |", info.name, info.unit.empty() ? "-" : info.unit, info.initial);
    CHECK(text.find(row) != std::string::npos);
  }
  for (std::size_t i = 0; i < kFormatKernels; ++i) {
    const auto kernel = static_cast<FormatKernel>(i);
    const auto value = [&](FormatParameter p) { return parameter_info(index(kernel, p)).initial; };
    const std::string row = fmt::format("| {} | {:g} | {:g} | {:g} | {:g} |", name(kernel),
                                        value(FormatParameter::share), value(FormatParameter::small_share),
                                        value(FormatParameter::memory_share), value(FormatParameter::host));
    CAPTURE(row);
    CHECK(text.find(row) != std::string::npos);
  }
  // The others have one default for all families.
  for (auto p = FormatParameter::reduce; p < FormatParameter::count;
       p = static_cast<FormatParameter>(static_cast<int>(p) + 1)) {
    const ParameterInfo& info = parameter_info(index(FormatKernel::fp8, p));
    const std::string row = fmt::format("| `format.FAMILY{}` | {} | {:g} |", info.name.substr(info.name.rfind('.')),
                                        info.unit.empty() ? "-" : info.unit, info.initial);
    CAPTURE(row);
    CHECK(text.find(row) != std::string::npos);
  }
}

TEST_CASE("ops that a framework calls have two numbers each, explained in docs/runtimes.md", "[runtime_profile]") {
  std::ifstream in(LLMPERF_SOURCE_DIR "/docs/runtimes.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const std::string_view kind : kCalled) {
    CAPTURE(kind);
    CHECK(text.find(fmt::format("`{}`", kind)) != std::string::npos);
    for (const auto& [p, ending] : {std::pair{CallParameter::call, ""}, std::pair{CallParameter::passes, "_passes"}}) {
      const ParameterInfo& info = parameter_info(*index(kind, p));
      CHECK(info.name == fmt::format("eager.{}{}", kind, ending));
      CHECK(find_parameter(info.name) == index(kind, p));
      const std::string row = fmt::format("| `eager.KIND{}` | {} | {:g} | {:g} | {:g} to {:g} | {} |", ending,
                                          info.unit, info.initial, info.spread, info.min, info.max, info.meaning);
      CHECK(text.find(row) != std::string::npos);
    }
  }
  CHECK_FALSE(index("collective", CallParameter::call));
}

TEST_CASE("what a profile leaves out is the default, and an assumption", "[runtime_profile]") {
  const RuntimeProfile p = parse(kGood);
  CHECK(get(p.values, Parameter::gemm_launch) == 4e-6);
  CHECK(p.provenance[index(Parameter::gemm_launch)] == Provenance::fitted);
  CHECK(get(p.values, Parameter::gemm_share) == parameter_info(index(Parameter::gemm_share)).initial);
  CHECK(p.provenance[index(Parameter::gemm_share)] == Provenance::assumed);
  CHECK(p.values[index(FormatKernel::awq, FormatParameter::share)] == 0.4);
  CHECK_FALSE(p.options.fused_qkv);
  CHECK(p.options.fused_norm);
  CHECK(p.choices.tile_menu);
  CHECK(p.choices.power == Power::sustained);
  CHECK(p.choices.custom_all_reduce == 8388608);
  CHECK(p.choices.serial[static_cast<std::size_t>(FormatKernel::gptq)]);
  CHECK_FALSE(p.choices.serial[static_cast<std::size_t>(FormatKernel::awq)]);
}

TEST_CASE("a profile based on another takes its numbers as assumptions", "[runtime_profile]") {
  const RuntimeProfile base = profile_of("rtx4090", "vllm");
  const RuntimeProfile p = parse(
      "name: mine\nfamilies: [x]\ntitle: t\nsource: s\nbased_on: rtx4090-vllm\n"
      "parameters: [{name: gemm.launch, value: 9e-6, provenance: assumed}]\n");
  CHECK(get(p.values, Parameter::gemm_launch) == 9e-6);
  CHECK(get(p.values, Parameter::decode_memory_share) == get(base.values, Parameter::decode_memory_share));
  CHECK(p.choices == base.choices);
  CHECK(p.dispatch == base.dispatch);
  CHECK(p.range.rows == 0);
  CHECK(p.hardware.empty());
  CHECK(std::all_of(p.provenance.begin(), p.provenance.end(), [](Provenance x) { return x == Provenance::assumed; }));
}

TEST_CASE("unknown parameters, formats and options are reported in place, with the nearest names",
          "[runtime_profile]") {
  check_problem("gemm.launch", "gemm.lunch", 10, "unknown parameter 'gemm.lunch'", "'gemm.launch'");
  check_problem("format.awq.share", "format.awk.share", 11, "unknown parameter 'format.awk.share'",
                "'format.awq.share'");
  check_problem("[gptq]", "[gptk]", 8, "unknown format 'gptk'", "'gptq'");
  check_problem("no_fused_qkv", "no_fused_qkw", 5, "unknown runtime option 'no_fused_qkw'", "'fused_qkv'");
  check_problem("[overlap_collectives]", "[overlap_colectives]", 7, "unknown runtime option 'overlap_colectives'",
                "'overlap_collectives'");
  check_problem("tile_menu", "tile_menus", 8, "unknown key 'tile_menus'", "'tile_menu'");
  check_problem("source: made up", "sources: made up\nsource: made up", 4, "unknown key 'sources'", "'source'");
}

TEST_CASE("numbers beyond what the physics allow are refused", "[runtime_profile]") {
  check_problem("value: 4e-6", "value: 4", 10, "'value'");  // s: a kernel is not launched for seconds
  check_problem("value: 4e-6", "value: -4e-6", 10, "'value'");
  check_problem("value: 4e-6", "value: nan", 10, "'value'");
  check_problem("value: 0.4", "value: 400", 11, "'value'");  // a share
  check_problem("provenance: fitted", "provenance: guessed", 10, "'provenance' must be one of");
  check_problem("mean: 0.03", "mean: -1", 14, "'mean'");
  check_problem("rows: 20, weights", "rows: -1, weights", 12, "'rows'");
}

TEST_CASE("a profile belongs to a device or to families, not to both or none", "[runtime_profile]") {
  CHECK_THROWS_WITH(parse(edit(kGood, "hardware: toybox\n", "")), Catch::Contains("families"));
  CHECK_THROWS_WITH(parse(edit(kGood, "hardware: toybox\n", "hardware: toybox\nfamilies: [toys]\n")),
                    Catch::Contains("families"));
}

TEST_CASE("a device's own profile is taken by name, by the longest prefix of the name, or as preferred",
          "[runtime_profile]") {
  const auto own = [](const std::string& device, const std::string& name) {
    const RuntimeProfile p = profile_of(device, name);
    CHECK(p.hardware == device);
    return p.name;
  };
  CHECK(own("rtx4090", "") == "vllm");
  CHECK(own("rtx4090", "llama.cpp+llama-cpp-python") == "llama.cpp");
  CHECK(own("rtx4090", "vllm-0.4-nightly") == "vllm");
  CHECK(own("atlas-800i-a2", "") == "torchair");
  CHECK(own("atlas-800i-a2", "torchair-2024b") == "torchair");
  CHECK(own("atlas-800i-a2", "torchair-2024a") == "torchair-2024a");
  CHECK(own("atlas-800i-a2", "torchair-2024a-hotfix") == "torchair-2024a");
}

TEST_CASE("a device without a profile of its own gets its family's, else that of all devices", "[runtime_profile]") {
  const auto families = [](const std::string& device, const std::string& name) {
    const RuntimeProfile p = profile_of(device, name);
    CHECK(p.hardware.empty());
    CHECK_FALSE(p.measured_on(load_device(device)));
    CHECK(p.range.rows == 0);
    return p.name + ' ' + p.families.front();
  };
  CHECK(families("rtx3090", "") == "vllm nvidia-ampere");
  CHECK(families("h20", "") == "vllm nvidia-hopper");
  CHECK(families("gb200", "sglang") == "sglang nvidia-blackwell");
  CHECK(families("mi325x", "") == "vllm amd-cdna3");
  CHECK(families("gaudi2", "llama.cpp") == "llama.cpp any");
  CHECK(families("h200-sxm", "transformers") == "transformers any");
  CHECK(families("ascend-910b2", "torchair-2024b") == "torchair ascend-910b");
  CHECK(families("mi250x", "") == "default any");
  CHECK(families("mi250x", "vllm") == "vllm any");
}

TEST_CASE("llama.cpp unpacks weights before a product in the era of cuBLAS, and without int8 units",
          "[runtime_profile]") {
  const auto from = [](const char* device, const char* name) {
    const KernelChoices c = profile_of(device, name).choices;
    CHECK(c.ggml);
    return c.dequantise_rows[static_cast<std::size_t>(FormatKernel::q4_k)];
  };
  CHECK(from("rtx4090", "llama.cpp@2024-05") == 33);
  CHECK(from("rtx4090", "llama.cpp@2024-12") == 0);
  CHECK(from("h100-sxm", "llama.cpp") == 0);
  CHECK(from("v100-sxm2-32gb", "llama.cpp") == 64);
  CHECK(from("p40", "llama.cpp") == 0);
  CHECK(from("rx7900xt", "llama.cpp-rocm@2025-10") == 64);
  CHECK(from("rx7900xt", "llama.cpp-rocm") == 0);
  CHECK(from("mi300x", "llama.cpp-rocm@2025-10") == 0);
  for (const char* device : {"epyc-9654", "apple-m2-ultra", "atlas-800i-a2"}) {
    CHECK(from(device, "llama.cpp") == 0);
    CHECK_FALSE(profile_of(device, "llama.cpp").choices.fp16_accumulate);
  }
}

TEST_CASE("no profile raises the clock that a device's peaks are at", "[runtime_profile]") {
  for (const RuntimeProfile& p : shipped()) CHECK(p.choices.clock <= 1);
  CHECK_THROWS_WITH(parse(edit(kGood, "tile_menu: true", "clock: 1.07")), Catch::Contains("clock"));
}

TEST_CASE("every device has a profile", "[runtime_profile]") {
  for (const std::string& name : descriptor::names(descriptor::Kind::device)) {
    CAPTURE(name);
    CHECK_FALSE(profile_of(name, "").name.empty());
  }
}

TEST_CASE("a runtime nobody knows is an error with the nearest name, or the default where rows name it",
          "[runtime_profile]") {
  CHECK_THROWS_WITH(profile_of("rtx4090", "vlm"), Catch::Contains("unknown runtime 'vlm' for rtx4090"));
  try {
    profile_of("rtx4090", "vlm");
  } catch (const Error& error) {
    REQUIRE_FALSE(error.diagnostics().empty());
    CHECK_THAT(error.diagnostics()[0].hint, Catch::Contains("'vllm'"));
  }
  const RuntimeProfile p = profile_of("rtx4090", "tgi", UnknownRuntime::use_default);
  CHECK_FALSE(p.families.empty());
  CHECK(p.name == "vllm");
}

TEST_CASE("a path is read as a profile", "[runtime_profile]") {
  const std::string path = "./runtime_profile_test_toy.yaml";
  std::ofstream(path) << kGood;
  CHECK(profile_of("rtx4090", path).hardware == "toybox");
  std::remove(path.c_str());
}

TEST_CASE("a step is extrapolated in every respect that no measurement covers", "[runtime_profile]") {
  const RuntimeProfile p = parse(kGood);
  const StepSize inside{.batch = 8, .tokens = 512, .context = 1000, .parameters = 8e9, .weights = "bf16"};
  CHECK(p.beyond_range(inside).empty());
  StepSize step = inside;
  step.tokens = 563;  // up to a tenth more than what was fitted is as good as inside
  CHECK(p.beyond_range(step).empty());
  step.batch = 9;
  CHECK(p.beyond_range(step) == std::vector<std::string>{"batch 9 (fitted up to 8)"});
  step = inside;
  step.tokens = 564;
  step.context = 1101;
  CHECK(p.beyond_range(step).size() == 2);
  step = inside;
  step.parameters = 15.9e9;  // up to twice the largest
  CHECK(p.beyond_range(step).empty());
  step.parameters = 16.1e9;
  CHECK(p.beyond_range(step).size() == 1);
  step.parameters = 0.49e9;
  CHECK(p.beyond_range(step).size() == 1);
  step = inside;
  step.weights = "fp8";
  CHECK(p.beyond_range(step) == std::vector<std::string>{"weights fp8 (fitted bf16)"});
  REQUIRE(p.error_of("decode") != nullptr);
  CHECK(p.error_of("decode")->mean == 0.03);
  CHECK(p.error_of("prefill") == nullptr);
}

TEST_CASE("other plans, caches, kinds of models, devices and layers on the host are extrapolated",
          "[runtime_profile]") {
  const RuntimeProfile p =
      parse(edit(kGood, "max_batch", "kv: [bf16], plans: [\"1 device\"], kinds: [dense], max_batch"));
  const StepSize inside{.batch = 8,
                        .tokens = 512,
                        .context = 1000,
                        .parameters = 8e9,
                        .weights = "fp16",  // takes the time of bf16
                        .kv = "fp16",
                        .plan = "1 device",
                        .kind = "dense",
                        .device = "toybox"};
  CHECK(p.beyond_range(inside).empty());
  const auto only = [&](auto&& change) {
    StepSize step = inside;
    change(step);
    const std::vector<std::string> beyond = p.beyond_range(step);
    return beyond.size() == 1 ? beyond.front() : fmt::format("{} ways", beyond.size());
  };
  CHECK(only([](StepSize& s) { s.kv = "fp8"; }) == "KV cache fp8 (fitted bf16)");
  CHECK(only([](StepSize& s) { s.plan = "tp 2"; }) == "plan tp 2 (fitted 1 device)");
  CHECK(only([](StepSize& s) { s.kind = "experts"; }) == "model with experts (fitted dense)");
  CHECK(only([](StepSize& s) { s.layers_on_host = 3; }) == "3 layers on the host (fitted without)");
  CHECK(only([](StepSize& s) { s.device = "other"; }) == "device other (fitted on toybox)");
  const RuntimeProfile any = profile_of("gb200", "vllm");
  REQUIRE(any.hardware.empty());
  CHECK(any.beyond_range({.weights = "bf16", .device = "gb200"}) ==
        std::vector<std::string>{"device gb200 (the profile is not its own)"});
  const RuntimeProfile kernels =
      profile_of("a100-sxm-80gb", LLMPERF_SOURCE_DIR "/hardware/runtimes/a100-sxm-80gb-vllm.yaml");
  CHECK(kernels.beyond_range({.weights = "bf16", .device = "a100-sxm-80gb"}) ==
        std::vector<std::string>{"whole steps (fitted on single kernels)"});
}

TEST_CASE("errors of few rows are widened as Student's t is wider than the normal distribution", "[runtime_profile]") {
  // 95th percentiles of t with 1, 2, 5, 20 degrees of freedom over the normal distribution's, from any table.
  for (const auto& [rows, t] : {std::pair{1, 6.314}, std::pair{2, 2.920}, std::pair{5, 2.015}, std::pair{20, 1.725}}) {
    const FittedError wide = FittedError{.group = "decode", .mean = 0.1, .p90 = 0.2, .rows = rows}.widened();
    CHECK(wide.mean == Approx(0.1 * t / 1.645).epsilon(1e-3));
    CHECK(wide.p90 == Approx(0.2 * t / 1.645).epsilon(1e-3));
  }
  CHECK(FittedError{.group = "decode", .mean = 0.1, .rows = 1'000'000}.widened().mean == Approx(0.1));
  CHECK(FittedError{.group = "decode", .mean = 0.1, .rows = 0}.widened().mean ==
        0.1);  // an assumption says what it assumes
}

TEST_CASE("options of a profile are all, none, or names on top of what the stack does in any case",
          "[runtime_profile]") {
  const RuntimeProfile torchair = profile_of("atlas-800i-a2", "torchair");
  const auto options = [&](std::string_view list) { return resolve_execution(torchair, list, "eager").options; };
  CHECK(options("all").overlap_collectives);
  CHECK_FALSE(options("all").fused_gate_up);  // the stack cannot
  CHECK_FALSE(options("none").flash_attention);
  CHECK(options("baseline") == options("none"));
  CHECK(options("flash_attention").fused_rope);  // the rung brings both
  CHECK_FALSE(options("flash_attention").fused_norm);
  CHECK(options("fused_add_rmsnorm").fused_norm);
  CHECK(options("fused_add_rmsnorm").fused_add_norm);
  CHECK(options("static_kv+mc2") == options("static_kv,overlap_collectives"));
  CHECK_FALSE(options("all,no_mc2").overlap_collectives);
  CHECK(options("no_mc2") == options("all,no_mc2"));
  const RuntimeProfile transformers = profile_of("rtx4090", "transformers");
  CHECK(resolve_execution(transformers, "none", "").options.flash_attention);  // its base has it

  // ChatGLM's code repeats keys and values under torchair-2024a, whatever else is on; others' does not.
  const RuntimeProfile glm = hardware::run_by(profile_of("atlas-800i-a2", "torchair-2024a"), "chatglm");
  CHECK(resolve_execution(glm, "all", "").options.repeated_kv);
  CHECK(resolve_execution(glm, "none", "").options.repeated_kv);
  CHECK_FALSE(resolve_execution(glm, "all,no_repeated_kv", "").options.repeated_kv);
  CHECK_FALSE(hardware::run_by(profile_of("atlas-800i-a2", "torchair-2024a"), "llama").options.repeated_kv);
  CHECK_THROWS_WITH(options("last_token_haed"), Catch::Contains("unknown runtime option 'last_token_haed'"));
  for (const char* list : {"all", "none", "static_kv", "static_kv,flash_attention,fused_qkv"}) {
    CHECK(format_profile_options(torchair, options(list)) == list);
  }
}

TEST_CASE("a graph is static once every option that it needs is on, or by request", "[runtime_profile]") {
  const RuntimeProfile torchair = profile_of("atlas-800i-a2", "torchair");
  REQUIRE(torchair.static_graph_needs == std::vector<std::string>{"flash_attention"});
  const auto decode = [&](std::string_view options, std::string_view execution) {
    return resolve_execution(torchair, options, execution).decode;
  };
  CHECK(decode("all", "") == Dispatch::graph);
  CHECK(decode("all", "graph") == Dispatch::graph);
  CHECK(decode("static_kv", "graph") == Dispatch::dynamic_graph);
  CHECK(decode("static_kv", "") == Dispatch::dynamic_graph);
  CHECK(decode("static_kv+flash_attention", "graph") == Dispatch::graph);
  CHECK(decode("static_kv", "static-graph") == Dispatch::graph);
  CHECK(decode("all", "dynamic-graph") == Dispatch::dynamic_graph);
  CHECK(decode("all", "eager") == Dispatch::eager);
  // Chains of element-wise kernels are merged by the compiler of a static graph only.
  CHECK(resolve_execution(torchair, "static_kv", "static-graph").options.chains == Chains::compiled);
  CHECK(resolve_execution(torchair, "static_kv", "graph").options.chains == Chains::framework);
  CHECK(resolve_execution(torchair, "all", "eager").options.chains == Chains::framework);
  CHECK(resolve_execution(torchair, "all", "").options.allocated_kv == 2048);
}

TEST_CASE("without a wish a runtime launches each phase in its own way", "[runtime_profile]") {
  const auto both = [](const std::string& runtime, std::string_view execution) {
    const RuntimeExecution e = resolve_execution(profile_of("rtx4090", runtime), "all", execution);
    return std::pair{e.prefill, e.decode};
  };
  CHECK(both("vllm", "") == std::pair{Dispatch::eager, Dispatch::graph});
  CHECK(both("vllm", "graph") == std::pair{Dispatch::eager, Dispatch::graph});  // what its graph mode is
  CHECK(both("vllm", "eager") == std::pair{Dispatch::eager, Dispatch::eager});
  CHECK(both("vllm", "static-graph") == std::pair{Dispatch::graph, Dispatch::graph});
  CHECK(both("transformers", "") == std::pair{Dispatch::eager, Dispatch::eager});
  CHECK(both("transformers", "graph") == std::pair{Dispatch::graph, Dispatch::graph});
  CHECK_THROWS_WITH(both("vllm", "egaer"), Catch::Contains("`execution`: unknown way to run 'egaer'"));
}

}  // namespace llmperf::hardware::runtime_profile_test
