// Engines and eras: which era a version means, what an engine's part changes of a profile, and which profile and era a
// name means on a device.
#include "hardware/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "../descriptor/temporary_folder.h"
#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "descriptor/node.h"
#include "one_problem.h"

namespace llmperf::hardware::engine_test {
namespace {

EngineEra era(const std::string& text) { return parse_engine(descriptor::parse_yaml(text, "toy.yaml")); }
EngineEra era(const std::string& name, const std::string& since, const std::string& more = "") {
  return era("name: " + name + "\nengine: toy\nhost_class: server\ntitle: t\nsource: s\n" +
             (since.empty() ? "" : "since: \"" + since + "\"\n") + more);
}
RuntimeProfile profile(const std::string& text) {
  return parse_runtime_profile(descriptor::parse_yaml(text, "toy.yaml"));
}
RuntimeProfile taken(const std::string& device, const std::string& name,
                     UnknownRuntime unknown = UnknownRuntime::error) {
  return load_runtime_profile(load_device(device), name, unknown);
}
double value(const RuntimeProfile& p, const char* parameter) { return p.values[find_parameter(parameter).value()]; }
Provenance provenance(const RuntimeProfile& p, const char* parameter) {
  return p.provenance[find_parameter(parameter).value()];
}
double initial(const char* parameter) { return parameter_info(find_parameter(parameter).value()).initial; }

// What is wrong with asking for it, and what would not be.
std::string refused(const std::string& device, const std::string& name) {
  try {
    return "no error: " + taken(device, name).name;
  } catch (const Error& error) {
    return error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
  }
}

const std::string kKernels =  // of a device, with a host of its own
    "name: mine\nhardware: toybox\ntitle: t\nsource: s\n"
    "parameters:\n"
    "  - {name: gemm.launch, value: 4e-6, provenance: fitted, uncertainty: 0.1}\n"
    "  - {name: step.decode, value: 0.003, provenance: fitted, uncertainty: 0.2}\n"
    "  - {name: host.launch, value: 1e-5, provenance: fitted, uncertainty: 0.2}\n"
    "range: {rows: 9, max_batch: 4, max_tokens: 4, max_context: 100, min_parameters: 1e9, max_parameters: 1e9}\n"
    "errors:\n"
    "  - {group: gemm, rows: 9, mean: 0.01, p90: 0.02}\n"
    "  - {group: decode, rows: 9, mean: 0.03, p90: 0.06}\n";
const std::string kPart =
    "dispatch: eager\noptions: all,no_fused_qkv\nchoices: {graph_rows: 7}\n"
    "parameters:\n"
    "  - {name: step.decode, value: 0.002, provenance: fitted, uncertainty: 0.3}\n"
    "  - {name: vector.launch, value: 1e-6, provenance: fitted, uncertainty: 0.3}\n"
    "range: {rows: 5, weights: [fp8], max_batch: 8, max_tokens: 8, max_context: 50, min_parameters: 1e9, "
    "max_parameters: 1e9}\n"
    "errors:\n"
    "  - {group: decode, rows: 5, mean: 0.07, p90: 0.1}\n";

}  // namespace

TEST_CASE("a version is the numbers that a text begins with", "[engine]") {
  CHECK(parse_version("0.6.3 (2024-09)") == Version{0, 6, 3});
  CHECK(parse_version("1.0.0rc3") == Version{1, 0, 0});
  CHECK(parse_version("0.10.0, ROCm 6.4.1, AITER") == Version{0, 10, 0});
  CHECK(parse_version("0.5.1.post1") == Version{0, 5, 1});
  CHECK(parse_version("0.5-0.6.1 (2023-12)") == Version{0, 5});
  CHECK(parse_version("v0.8") == Version{0, 8});
  CHECK(parse_version("0.") == Version{0});
  CHECK(parse_version("b4380") == Version{4380});
  CHECK(parse_version("2024-06-10") == Version{2024, 6, 10});
  CHECK(parse_version("2024-06 PR") == Version{2024, 6, 31});  // by the end of the month
  CHECK(parse_version("2025") == Version{2025, 12, 31});
  CHECK(is_date({2024, 6, 10}));
  CHECK_FALSE(is_date({0, 6, 3}));
  for (const char* text : {"", "unknown", "dev", "0.x", "main 0.9", "."}) {
    CAPTURE(text);
    CHECK_FALSE(parse_version(text).has_value());
  }
}

TEST_CASE("an era that is based on another has all of it that it does not say itself", "[engine]") {
  const std::string head = "name: mine\nengine: toy\ntitle: t\nsource: s\n";
  const RuntimeProfile base = by_itself(load_engine("vllm-async"));
  const RuntimeProfile p = with_engine(
      profile(kKernels),
      era(head + "based_on: vllm-async\nchoices: {overlapped: false}\n"
                 "parameters:\n  - {name: launch.gap, value: 3e-6, provenance: fitted, uncertainty: 0.3}\n"));
  CHECK(p.engine == "mine");
  CHECK(p.host_class == base.host_class);
  CHECK(value(p, "launch.gap") == 3e-6);
  CHECK(value(p, "step.decode") == value(base, "step.decode"));
  CHECK(value(p, "step.decode") != value(profile(kKernels), "step.decode"));
  CHECK(value(p, "gemm.launch") == 4e-6);  // the device's
  CHECK(p.options == base.options);
  CHECK(base.choices.overlapped);
  CHECK_FALSE(p.choices.overlapped);
  CHECK(p.format_kernels.size() == base.format_kernels.size());
  CHECK(p.range.rows == 9);  // of steps nothing is taken along
  CHECK(std::ranges::none_of(p.errors, [](const FittedError& e) { return e.group == "decode"; }));
  check_one_problem([&] { era(head + "based_on: nothing\nhost_class: server\n"); }, 5, "unknown engine 'nothing'");
}

TEST_CASE("numbers of an era's base are measured where the era itself was", "[engine]") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path(""));
  const std::string head = "engine: toy\ntitle: t\nsource: s\nhost_class: server\n";
  folder.write("hardware/engines/toy.yaml",
               "name: toy\nmeasured_on: [elsewhere]\n" + head +
                   "format_kernels:\n  - {name: k, formats: [awq]}\n"
                   "parameters:\n  - {name: step.decode, value: 0.002, provenance: fitted, uncertainty: 0.3}\n");
  folder.write("hardware/engines/toy-2.yaml", "name: toy-2\nbased_on: toy\n" + head);
  const std::string third = "name: toy-3\nbased_on: toy-2\n" + head + "measured_on: [toybox]\n";
  const RuntimeProfile p = with_engine(profile(kKernels), era(third));
  CHECK(value(p, "step.decode") == 0.002);
  CHECK(provenance(p, "step.decode") == Provenance::fitted);
  CHECK(p.format_kernels.size() == 1);
  CHECK(with_engine(profile(kKernels), era(third + "format_kernels: []\n")).format_kernels.empty());
  CHECK(provenance(with_engine(profile(kKernels), load_engine("toy-2")), "step.decode") == Provenance::assumed);
  folder.write("hardware/engines/toy.yaml", "name: toy\nbased_on: toy-2\n" + head);
  CHECK_THROWS_WITH(load_engine("toy-2"), Catch::Contains("based on itself"));
}

TEST_CASE("a version means the era that began last before it, of its family first", "[engine]") {
  const std::vector<EngineEra> eras = {era("old", ""), era("new", "0.8"), era("cdna", "0.8", "families: [c]\n"),
                                       era("late", "1.2")};
  const auto found = [&](const char* family, const char* version) {
    const EngineEra* e = find_era(eras, family, "toy", parse_version(version));
    return e != nullptr ? e->name : "none";
  };
  CHECK(found("n", "0.6.3") == "old");
  CHECK(found("n", "0.7.99") == "old");
  CHECK(found("n", "0.8") == "new");
  CHECK(found("n", "0.8.0") == "new");
  CHECK(found("n", "0.10.2") == "new");  // ten is more than eight
  CHECK(found("n", "1.2rc1") == "late");
  CHECK(found("c", "0.10") == "cdna");
  CHECK(found("c", "0.7") == "old");
  CHECK(found("c", "2") == "late");
  CHECK(found("n", "") == "late");  // the present one
  CHECK(find_era(eras, "n", "toybox") == nullptr);
  CHECK(find_era({eras[1]}, "n", "toy", parse_version("0.7")) == nullptr);
}

TEST_CASE("an engine's part takes the place of a profile's host, and leaves its kernels", "[engine]") {
  const RuntimeProfile before = profile(kKernels);
  const RuntimeProfile p = with_engine(before, era("new", "0.8", kPart + "measured_on: [other, third]\n"));
  CHECK(p.engine == "new");
  CHECK(p.host_class == "server");
  CHECK(p.dispatch == Dispatch::eager);
  CHECK_FALSE(p.options.fused_qkv);
  CHECK(p.base == before.base);
  CHECK(p.choices.graph_rows == 7);
  CHECK(value(p, "step.decode") == 0.002);
  CHECK(value(p, "vector.launch") == 1e-6);
  CHECK(value(p, "host.launch") == initial("host.launch"));  // not listed: not what the other engine took
  CHECK(value(p, "gemm.launch") == 4e-6);
  CHECK(provenance(p, "gemm.launch") == Provenance::fitted);
  for (const char* name : {"step.decode", "vector.launch", "host.launch"}) {
    CAPTURE(name);
    CHECK(provenance(p, name) == Provenance::assumed);
    CHECK(p.uncertainty[find_parameter(name).value()] == 0);
  }
  CHECK(p.error_of("gemm")->rows == 9);
  CHECK(p.error_of("decode") == nullptr);  // such steps were not measured here
  CHECK(p.range.rows == 9);
  CHECK(p.range.max_batch == 8);
  CHECK(p.beyond_range({.batch = 8, .tokens = 8, .parameters = 1e9, .weights = "fp8", .device = "toybox"}) ==
        std::vector<std::string>{"new from 0.8 on this device (its steps were fitted on other, third)"});
}

TEST_CASE("an engine whose steps were measured on the device is measured there", "[engine]") {
  const RuntimeProfile p = with_engine(profile(kKernels), era("new", "0.8", kPart + "measured_on: [other, toybox]\n"));
  CHECK(provenance(p, "step.decode") == Provenance::fitted);
  CHECK(p.uncertainty[find_parameter("step.decode").value()] == 0.3);
  CHECK(p.error_of("decode")->rows == 5);
  CHECK(p.beyond_range({.batch = 8, .tokens = 8, .parameters = 1e9, .weights = "fp8", .device = "toybox"}).empty());
  CHECK(p.beyond_range({.batch = 16, .tokens = 8, .parameters = 1e9, .weights = "fp8", .device = "toybox"}).size() ==
        1);
}

TEST_CASE("what is of the host is known by its name", "[engine]") {
  for (const char* name : {"step.decode", "step.sequence", "host.layer", "launch.gap", "format.awq.host"}) {
    CHECK(of_host(find_parameter(name).value()));
  }
  for (const char* name :
       {"gemm.launch", "vector.launch", "custom.launch", "memory.utilisation", "format.fp8.step", "format.awq.share"}) {
    CHECK_FALSE(of_host(find_parameter(name).value()));
  }
}

TEST_CASE("a line puts one engine's host on another's kernels", "[engine]") {
  const RuntimeProfile base = taken("h100-sxm", "vllm");
  const EngineEra sglang = load_engine("sglang");
  const std::string head = "name: mine\nhardware: h100-sxm\nbased_on: h100-sxm-vllm\ntitle: t\nsource: s\n";
  const RuntimeProfile p = profile(head + "engine: sglang\n");
  CHECK(p.engine == "sglang");
  CHECK(value(p, "step.decode") == value(with_engine(base, sglang), "step.decode"));
  CHECK(value(p, "step.decode") != value(base, "step.decode"));
  CHECK(value(p, "gemm.launch") == value(base, "gemm.launch"));
  CHECK(provenance(p, "gemm.launch") == Provenance::fitted);
  // The file's own lines come last, and an engine that the base has already changes nothing.
  const RuntimeProfile own =
      profile(head + "engine: sglang\nparameters: [{name: step.decode, value: 0.005, provenance: assumed}]\n");
  CHECK(value(own, "step.decode") == 0.005);
  CHECK(profile(head + "engine: vllm-async\n").values == base.values);
  CHECK(profile(head).engine == "vllm-async");
  check_one_problem([&] { profile(head + "engine: sglank\n"); }, 6, "unknown engine 'sglank'", "'sglang'");
}

TEST_CASE("every engine's file is named like its era, and no two begin together", "[engine]") {
  std::set<std::string> begun;
  for (const std::string& file : descriptor::names(descriptor::Kind::engine)) {
    const EngineEra e = load_engine(file);
    CAPTURE(file);
    CHECK(e.name == file);
    CHECK(begun.insert(e.engine + ' ' + e.since + ' ' + join(e.families, " ")).second);
    // Small kernels are a matter of the engine's fusions, so that none leaves their launches to the kernels' profile;
    // llama.cpp's are those of its backends, and part of their profiles.
    RuntimeProfile p = profile(kKernels);
    p.values[index(Parameter::vector_launch)] = 0;
    CHECK((value(with_engine(p, e), "vector.launch") > 0) == (e.engine != "llama.cpp"));
    for (const std::string& device : e.measured_on) CHECK_FALSE(load_device(device).name.empty());
  }
  CHECK(begun.size() >= 8);
}

TEST_CASE("kernels without an engine run under its present era", "[engine]") {
  const Device a100 = load_device("a100-sxm-80gb");
  const RuntimeProfile p = taken("a100-sxm-80gb", "vllm");
  CHECK(p.name == "vllm");
  CHECK(p.engine == "vllm-async");
  CHECK(p.measured_on(a100));
  CHECK(p.title_for(a100) == "vllm-async: kernels of vllm on a100-sxm-80gb");
  CHECK(taken("a100-sxm-80gb", "").engine == "vllm-async");
  CHECK(value(p, "step.decode") == value(taken("h100-sxm", "vllm"), "step.decode"));
  CHECK(provenance(p, "step.decode") == Provenance::assumed);
  CHECK(provenance(p, "gemm.launch") == Provenance::fitted);
  CHECK(p.choices.attention == AttentionKernels::flash2);
}

TEST_CASE("kernels by themselves run under no engine that is not their own", "[engine]") {
  const RuntimeProfile a100 = load_kernels(load_device("a100-sxm-80gb"));
  CHECK(a100.engine.empty());
  CHECK(value(a100, "vector.launch") == initial("vector.launch"));
  CHECK(load_kernels(load_device("h100-sxm")).engine == "vllm-async");
  CHECK(load_kernels(load_device("h20")).families == std::vector<std::string>{"nvidia-hopper"});
  CHECK(load_kernels(load_device("mi250x")).name == "default");
}

TEST_CASE("what multiplies with AWQ's weights depends on engine, version and device", "[engine]") {
  const auto kernel = [](const char* device, const char* name, FormatKernel format = FormatKernel::awq) {
    const RuntimeProfile p = taken(device, name);
    const auto* kernels = p.kernels_of(format);
    return kernels == nullptr ? std::string("its own")
                              : kernels->name + " of " + std::string(llmperf::name(kernels->formats.front()));
  };
  CHECK(kernel("rtx4090", "vllm@0.4") == "AWQ's GEMM of awq");
  CHECK(kernel("rtx4090", "vllm@0.5.2") == "AWQ's GEMM of awq");
  CHECK(kernel("rtx4090", "vllm@0.5.3") == "Marlin of gptq");
  CHECK(kernel("rtx4090", "vllm@0.6.3 (2024-09)") == "Marlin of gptq");
  CHECK(kernel("rtx4090", "vllm") == "Marlin of gptq");
  CHECK(kernel("h100-sxm", "vllm") == "Marlin of gptq");
  CHECK(kernel("h100-sxm", "vllm", FormatKernel::gptq) == "Machete of gptq");
  CHECK(kernel("h100-sxm", "sglang") == "Marlin of gptq");
  CHECK(kernel("h100-sxm", "trtllm") == "TensorRT-LLM's weight-only GEMM of gptq");
  CHECK(kernel("rtx4090", "transformers") == "AutoAWQ's GEMM of awq");
  CHECK(kernel("rtx4090", "transformers", FormatKernel::gptq) == "ExLlama of gptq");
  CHECK(kernel("v100-sxm2-32gb", "vllm") == "its own");  // Marlin asks for an Ampere at least
  CHECK(kernel("mi300x", "vllm") == "its own");
}

TEST_CASE("a version chooses the era on any device's kernels", "[engine]") {
  const auto era_of_name = [](const char* device, const char* name) { return taken(device, name).engine; };
  CHECK(era_of_name("a100-sxm-80gb", "vllm@0.6.3 (2024-09)") == "vllm-v0");
  CHECK(era_of_name("a100-sxm-80gb", "vllm-v0") == "vllm-v0");
  CHECK(era_of_name("a100-sxm-80gb", "vllm@unknown") == "vllm-async");
  CHECK(era_of_name("a100-sxm-80gb", "vllm@0.4.3 (2024-06)") == "vllm-v0-2024a");
  CHECK(era_of_name("h200-sxm", "vllm@0.6") == "vllm-v0");
  CHECK(era_of_name("h200-sxm", "vllm@0.13") == "vllm-v1");
  CHECK(era_of_name("h200-sxm", "vllm@0.14") == "vllm-async");
  CHECK(era_of_name("h200-sxm", "vllm") == "vllm-async");
  CHECK(era_of_name("b200-sxm", "vllm@2025-10-29") == "vllm-v1-blackwell");
  CHECK(era_of_name("gb200", "vllm") == "vllm-async-blackwell");
  CHECK(era_of_name("h200-sxm", "trtllm@0.5-0.6.1 (2023-12)") == "trtllm-2023");
  CHECK(era_of_name("b200-sxm", "trtllm@0.8.1.post1") == "trtllm-dynamo");
  CHECK(era_of_name("h200-sxm", "trtllm@2025-11-02") == "trtllm");
  CHECK(era_of_name("b200-sxm", "trtllm@1.1.0rc2.post2") == "trtllm");
  CHECK(era_of_name("b200-sxm", "trtllm@1.2.0rc6.post2") == "trtllm-1.2");
  CHECK(era_of_name("mi300x", "vllm@0.10.0, ROCm 6.4.1, AITER") == "vllm-aiter");
  CHECK(era_of_name("mi300x", "vllm@0.6") == "vllm-v0");
  CHECK(era_of_name("mi325x", "vllm") == "vllm-aiter");
  CHECK(era_of_name("rtx4090", "vllm") == "vllm-v0-2024a");
  CHECK(era_of_name("rtx4090", "vllm@0.10") == "vllm-v1");
  const Device a100 = load_device("a100-sxm-80gb");
  const RuntimeProfile old = taken("a100-sxm-80gb", "vllm@0.6");
  CHECK(old.title_for(a100) == "vllm-v0 on a100-sxm-80gb");
  const Device rtx3090 = load_device("rtx3090");
  CHECK(taken("rtx3090", "vllm@0.6").title_for(rtx3090).starts_with("vllm-v0: kernels of vllm"));
  CHECK(value(old, "step.decode") > value(taken("a100-sxm-80gb", "vllm@0.10"), "step.decode"));
  CHECK(value(old, "gemm.launch") == value(taken("a100-sxm-80gb", "vllm"), "gemm.launch"));
}

TEST_CASE("a build, a date or its own name chooses an era of llama.cpp", "[engine]") {
  const auto of = [](const char* device, const std::string& release) {
    return taken(device, ("llama.cpp@" + release).c_str()).engine;
  };
  CHECK(of("rtx3090", "b3215") == "llama.cpp-cublas");
  CHECK(of("rtx3090", "b3216") == "llama.cpp-mmq");
  CHECK(of("rtx3090", "b4000") == "llama.cpp-mmq");
  CHECK(of("rtx3090", "2024-06-23") == "llama.cpp-cublas");
  CHECK(of("rtx3090", "2024-06-24") == "llama.cpp-mmq");
  CHECK(of("rtx3090", "2025-09") == "llama.cpp-fa");
  CHECK(of("rtx3090", "mmq") == "llama.cpp-mmq");
  CHECK(taken("rtx3090", "llama.cpp").engine == "llama.cpp-fa");
  // Where a month had two eras, the row may say which.
  CHECK(of("rtx3090", "2025-08") == "llama.cpp-fa");
  CHECK(of("rtx3090", "2025-08 mmq") == "llama.cpp-mmq");
  CHECK(of("rtx3090", "2024-05 mmq") == "llama.cpp-cublas");  // there was none yet
  // Other devices have eras of their own; another's name is the time when it began.
  CHECK(of("apple-m2-ultra", "cublas") == "llama.cpp-unified");
  CHECK(of("apple-m2-ultra", "fa") == "llama.cpp-unified-fa");
  CHECK(of("rx7900xt", "2026-05") == "llama.cpp-fa-amd");
}

TEST_CASE("kernels of a class that changed are those of the release asked for", "[engine]") {
  const auto share = [](const char* device, const std::string& runtime) {
    return value(taken(device, runtime.c_str()), "format.q4_k.share");
  };
  // Radeon cards multiply in 8 bits on matrix units from December 2025 on.
  CHECK(share("rx7900xtx", "llama.cpp-rocm") > 1.5 * share("rx7900xtx", "llama.cpp-rocm@2025-11"));
  CHECK(share("rx7900xtx", "llama.cpp-rocm@b7400") == share("rx7900xtx", "llama.cpp-rocm@2026-05"));
  CHECK(share("rx7900xtx", "llama.cpp-rocm@b7399") == share("rx7900xtx", "llama.cpp-rocm@2024-01"));
  CHECK(share("rx7900xtx", "llama.cpp-rocm@mmq") == share("rx7900xtx", "llama.cpp-rocm@2025-01"));
  CHECK(share("strix-halo", "llama.cpp-fa-amd") == share("strix-halo", "llama.cpp"));
  CHECK(share("strix-halo", "llama.cpp-cublas") == share("strix-halo", "llama.cpp@2024-01"));
  // K-quants leave the vector kernel earlier from August 2026 on, on Blackwell earlier than on Ada.
  const auto rows = [](const char* device, const char* runtime) {
    return taken(device, runtime).choices.few_rows[static_cast<std::size_t>(FormatKernel::q4_k)];
  };
  CHECK(rows("rtx4090", "llama.cpp@2026-07") == 8);
  CHECK(rows("rtx4090", "llama.cpp@2026-08") == 7);
  CHECK(rows("rtx5070", "llama.cpp") == 5);
  CHECK(rows("rtx3090", "llama.cpp") == 8);
}

TEST_CASE("a kernel's launch grows with the cores of an Apple chip under MLX, and with the threads of a CPU",
          "[engine]") {
  const auto launch = [](const char* device, const char* runtime) {
    const RuntimeProfile profile = taken(device, runtime);
    return value(profile, "gemm.launch") +
           static_cast<double>(*load_device(device).cores) * value(profile, "launch.core");
  };
  CHECK(launch("apple-m1-max", "mlx") == Approx(0.86e-6 + 32 * 0.0677e-6));
  CHECK(launch("apple-m3-ultra", "mlx") == Approx(0.86e-6 + 80 * 0.0677e-6));
  CHECK(launch("ryzen-7950x", "llama.cpp") == Approx(4.5e-6 + 16 * 0.2e-6));
  CHECK(launch("ampereone-192", "llama.cpp") == Approx(4.5e-6 + 192 * 0.2e-6));
}

TEST_CASE("a CPU unpacks tables, codebooks of eight and of four weights apart, and by the width of its vectors",
          "[engine]") {
  const auto rate = [](const char* device, const char* format) {
    return value(taken(device, "llama.cpp"), fmt::format("format.{}.unpack_rate", format).c_str());
  };
  CHECK(rate("ryzen-7950x", "iq4") == Approx(6.1));
  CHECK(rate("ryzen-7950x", "iq") == Approx(3.85));
  CHECK(rate("ryzen-7950x", "iq3") == Approx(2.5));
  CHECK(rate("raspberry-pi-5", "q4_k") == Approx(rate("apple-m2-max-cpu", "q4_k") / 2).epsilon(1e-3));
  CHECK(rate("ampereone-192", "q4_0") == Approx(31.22 / 2));
  CHECK(rate("intel-n100", "q8_0") == Approx(rate("ryzen-7950x", "q8_0") / 2));
  CHECK(rate("xeon-6980p", "q4_0") == Approx(2 * 13.7));
  // Without dot products of 8 bits.
  CHECK(rate("ryzen-7950x", "q8_0") == Approx(13.4));
  CHECK(rate("threadripper-3970x", "q8_0") == Approx(9.6));
  CHECK(rate("ryzen-7950x", "q4_0") == Approx(13.7));
  CHECK(rate("threadripper-pro-5975wx", "q4_0") == Approx(8.2));
  CHECK(rate("threadripper-3970x", "q6_k") == rate("ryzen-7950x", "q6_k"));
}

TEST_CASE("SYCL launches every kernel from the host, and lays formats out anew one after the other", "[engine]") {
  const auto at = [](const char* runtime, const char* parameter) {
    return value(taken("arc-b580", runtime), parameter);
  };
  CHECK(at("llama.cpp-sycl", "gemm.launch") == Approx(11e-6));
  CHECK(at("llama.cpp-sycl", "gemm.memory_share") == Approx(0.75));
  CHECK(at("llama.cpp-sycl@2025-01", "format.q4_0.unpack_rate") == Approx(8));
  CHECK(at("llama.cpp-sycl@2025-03", "format.q4_0.unpack_rate") == Approx(53));
  CHECK(at("llama.cpp-sycl@2025-03", "format.q4_k.unpack_rate") == Approx(8));
  CHECK(at("llama.cpp-sycl", "format.q4_k.unpack_rate") == Approx(53));
  CHECK(at("llama.cpp-sycl", "format.q3_k.unpack_rate") == Approx(8));
}

TEST_CASE("prompts' attention gets further on Radeon cards where eight heads share keys", "[engine]") {
  const auto eights = [](const char* device, const char* runtime) {
    return value(taken(device, runtime), "prefill.eights");
  };
  CHECK(eights("strix-halo", "llama.cpp-rocm") == Approx(2.737));
  CHECK(eights("strix-halo", "llama.cpp-rocm@2025-08") == 1);
  CHECK(eights("strix-halo", "llama.cpp") == Approx(1.363));
  CHECK(eights("r9700", "llama.cpp-rocm") == Approx(1.65));
  CHECK(eights("rx6800", "llama.cpp") == Approx(1.363));
  CHECK(eights("rtx4090", "llama.cpp@2025-09") == 1);
}

TEST_CASE("flash attention is on where an era has it on", "[engine]") {
  CHECK_FALSE(taken("rtx3090", "llama.cpp@b4000").options.flash_attention);
  CHECK(taken("rtx3090", "llama.cpp@b6325").options.flash_attention);
  CHECK_FALSE(taken("apple-m4-pro", "llama.cpp@2024-12").options.flash_attention);
  CHECK(taken("apple-m4-pro", "llama.cpp").options.flash_attention);
}

TEST_CASE("a backend has kernels of its own under the same eras", "[engine]") {
  CHECK(taken("rtx3090", "llama.cpp-vulkan@b4000").name == "llama.cpp-vulkan");
  CHECK(taken("rtx3090", "llama.cpp-vulkan@b4000").engine == "llama.cpp-mmq");
  CHECK(taken("rtx3090", "llama.cpp-cuda@b4000").name == "llama.cpp");
  const double hip = value(taken("rx7900xt", "llama.cpp-rocm@2025-11"), "format.q4_0.share");
  CHECK(hip < value(taken("rx7900xt", "llama.cpp-vulkan@2025-11"), "format.q4_0.share"));
}

TEST_CASE("a tool adds its time to a step of decode, and one that was measured by itself has its own profile",
          "[engine]") {
  const double bench = value(taken("rtx3090", "llama.cpp+llama-bench"), "step.decode");
  CHECK(value(taken("rtx3090", "llama.cpp+llama-server"), "step.decode") == Approx(bench + 0.34e-3));
  CHECK_THROWS_AS(taken("rtx3090", "llama.cpp+nothing"), Error);
  CHECK(taken("rtx4090", "llama.cpp+llama-cpp-python").measured_on(load_device("rtx4090")));
  CHECK_FALSE(taken("rtx4090", "llama.cpp").measured_on(load_device("rtx4090")));
  // A row of measurements that says neither tool nor version.
  const auto row = [](const char* runtime) {
    return load_runtime_profile(load_device("rtx4090"), runtime, UnknownRuntime::measured).tool;
  };
  CHECK(row("llama.cpp") == "llama-cpp-python");
  CHECK(row("llama.cpp@2024-05").empty());
}

TEST_CASE("a profile whose steps are of the era is taken as it is", "[engine]") {
  for (const auto& [device, name, version] :
       {std::tuple{"rtx4090", "vllm", "vllm@0.4.1"}, std::tuple{"h100-sxm", "vllm", "vllm@0.18.0"},
        std::tuple{"h100-sxm", "trtllm", "trtllm@1.3"}, std::tuple{"mi300x", "vllm", "vllm@0.10"},
        std::tuple{"rtx4090", "transformers", "transformers@4.40"},
        std::tuple{"a100-sxm-80gb", "vllm-v0", "vllm@0.6"}}) {
    CAPTURE(device, version);
    const RuntimeProfile p = taken(device, version);
    CHECK(p.kernels.empty());
    CHECK(format_runtime_profile(p) == format_runtime_profile(taken(device, name)));
    CHECK(p.measured_on(load_device(device)));
  }
}

TEST_CASE("an engine that no profile of a device is of runs on its preferred kernels", "[engine]") {
  const Device card = load_device("rtx4090");
  const RuntimeProfile p = taken("rtx4090", "sglang");
  CHECK(p.name == "sglang");
  CHECK(p.title_for(card) == "sglang: kernels of vllm on rtx4090");
  CHECK(value(p, "gemm.launch") == value(taken("rtx4090", "vllm"), "gemm.launch"));
  CHECK(value(p, "host.layer") == initial("host.layer"));
  CHECK(p.borrowed == "kernels of vllm");
  CHECK(taken("b200-sxm", "trtllm").title_for(load_device("b200-sxm")) == "trtllm on b200-sxm");
  CHECK(taken("b200-sxm", "trtllm").borrowed.empty());
  CHECK(taken("h100-sxm", "lmdeploy").borrowed == "kernels of vllm");
  CHECK(taken("h100-sxm", "gpt-fast").choices.custom_all_reduce == 0);
}

TEST_CASE("versions and eras that are not known are said with those that are", "[engine]") {
  CHECK(refused("a100-sxm-80gb", "vllm@dev") ==
        "no era of vllm has version 'dev' | known: vllm-async (from 0.14), vllm-v0 (from 0.6), vllm-v0-2024a (from the "
        "first), vllm-v1 (from 0.8)");
  CHECK_THAT(refused("mi300x", "vllm@0.x"), Catch::Contains("vllm-aiter (from 0.8)"));
  CHECK(refused("h100-sxm", "sglang@0.3") == "no era of sglang has version '0.3' | known: sglang (from 0.4)");
  CHECK_THAT(refused("a100-sxm-80gb", "replay@2000"), Catch::Contains("no versions are known of runtime 'replay'"));
  CHECK_THAT(refused("rtx4090", "llama.cpp@soon"), Catch::Contains("llama.cpp-mmq (from b3216)"));
  CHECK_THAT(refused("h100-sxm", "vllm-aiter"), Catch::Contains("vllm-aiter is for amd-cdna3, amd-cdna4"));
  CHECK_THAT(refused("h100-sxm", "sglan"), Catch::Contains("'sglang'"));
  // Rows of measurements are taken as far as they are understood.
  const auto lenient = [](const char* device, const char* name) {
    return taken(device, name, UnknownRuntime::use_default).engine;
  };
  CHECK(lenient("a100-sxm-80gb", "vllm@dev/1234") == "vllm-async");
  CHECK(lenient("rtx4090", "sglang@0.3") == "sglang");
  CHECK(lenient("a100-sxm-80gb", "somebody's@0.6") == "vllm-async");
}

TEST_CASE("a version that never was is refused with the eras there are, of rows as well", "[engine]") {
  const std::string eras =
      "known: vllm-async (from 0.14), vllm-v0 (from 0.6), vllm-v0-2024a (from the first), vllm-v1 (from 0.8)";
  CHECK(refused("h100-sxm", "vllm@99") == "no era of vllm has version '99' | " + eras);
  CHECK(taken("h100-sxm", "vllm@2025-07").engine == "vllm-v1");  // a date
  for (const char* name : {"sglang@7.1", "trtllm@99", "transformers@2030", "vllm@2"}) {
    CHECK_THAT(refused("h100-sxm", name), Catch::Contains("no era of"));
    CHECK_THROWS_AS(taken("h100-sxm", name, UnknownRuntime::measured), Error);
  }
  CHECK_THROWS_AS(taken("rtx4090", "llama.cpp@b99999", UnknownRuntime::measured), Error);
  CHECK_THROWS_AS(era_of(load_device("h100-sxm"), "vllm", "99"), Error);
  // Releases that may yet come, and dates of an engine that is told by date.
  for (const char* name : {"vllm@0.99", "vllm@1.0", "trtllm@2.0", "transformers@5.3", "llama.cpp@b9999"}) {
    CHECK_NOTHROW(taken("h100-sxm", name));
  }
  CHECK_NOTHROW(taken("rtx4090", "llama.cpp@2026-07"));
  CHECK_NOTHROW(taken("rtx4090", "exllamav2@2024-05", UnknownRuntime::measured));  // whose eras nobody told
}

TEST_CASE("mistakes in an engine's file are reported where they are", "[engine]") {
  const std::string good = "name: toy\nengine: toy\nhost_class: server\ntitle: t\nsource: s\n";
  check_one_problem([&] { era(good + "since: soon\n"); }, 6, "'soon' is no version", "0.8");
  check_one_problem([&] { era("name: toy\nengine: toy\ntitle: t\nsource: s\n"); }, 1, "host's numbers");
  check_one_problem([&] { era(good + "host: server\n"); }, 6, "unknown key 'host'");
  check_one_problem([&] { era(good + "parameters:\n  - {name: step.decod, value: 1, provenance: assumed}\n"); }, 7,
                    "unknown parameter 'step.decod'", "'step.decode'");
}

TEST_CASE("the era of a row is said by its version or by its name", "[engine]") {
  const Device a100 = load_device("a100-sxm-80gb");
  CHECK(era_of(a100, "vllm", "0.6.3 (2024-09)") == "vllm-v0");
  CHECK(era_of(a100, "vllm-v0", "") == "vllm-v0");
  CHECK(era_of(a100, "vllm", "").empty());
  CHECK(era_of(a100, "vllm", "unknown").empty());
  CHECK(era_of(a100, "megatron", "0.6").empty());
  CHECK(era_of(a100, "llama.cpp-cuda", "b4000") == "llama.cpp-mmq");
}

TEST_CASE("an era by itself is what its file says", "[engine]") {
  const RuntimeProfile p = by_itself(load_engine("vllm-v0"));
  CHECK(p.name == "vllm-v0");
  CHECK(p.hardware == "a100-sxm-80gb");
  CHECK(p.choices.graph_rows == 256);
  CHECK(value(p, "format.gptq.reduce") == Approx(11.4e-6).epsilon(0.01));
  CHECK(provenance(p, "step.decode") == Provenance::fitted);
  CHECK(value(p, "gemm.launch") == initial("gemm.launch"));
  CHECK(by_itself(load_engine("gpt-fast")).hardware.empty());
}

TEST_CASE("small tiles reach a larger share of weaker matrix engines, up to that of the largest") {
  const Device h100 = load_device("h100-sxm");
  RuntimeProfile profile = load_runtime_profile(h100, "vllm");
  const auto share = [](const RuntimeProfile& p, Parameter tile) { return p.values[index(tile)]; };
  // 989.4 TFLOP/s of 132 cores and 148 of 78 at the same clock: 3.95 times less of a core.
  const double ratio = (989.4 / 132) / (148.0 / 78);
  CHECK(ratio == Approx(3.95).epsilon(1e-2));
  profile.values[index(Parameter::gemm_share_16)] = 0.2;
  profile.values[index(Parameter::gemm_share_64)] = 0.8;
  profile.values[index(Parameter::gemm_share_128)] = 1.3;
  profile.values[index(Parameter::gemm_share_256)] = 0.95;
  const RuntimeProfile weaker = carried_over(profile, h100, load_device("h20"));
  // 16 rows cost what 64 do, a quarter of the share, and so they do there.
  CHECK(share(weaker, Parameter::gemm_share_16) == Approx(0.95 / 4));
  CHECK(share(weaker, Parameter::gemm_overlap) == 1.5);
  CHECK(share(weaker, Parameter::gemm_share_64) == 0.95);
  CHECK(share(weaker, Parameter::gemm_share_128) == 1.3);
  // A tile that costs less than half of that does not multiply 64.
  profile.values[index(Parameter::gemm_share_16)] = 0.5;
  CHECK(share(carried_over(profile, h100, load_device("h20")), Parameter::gemm_share_16) == 0.95);
  profile.values[index(Parameter::gemm_share_16)] = 0.2;
  // Other generations have products of fewer rows: 8 times less of a core, up to the largest tile's share.
  CHECK(share(carried_over(profile, h100, load_device("rtx4090")), Parameter::gemm_share_16) == 0.95);
  // Of stronger ones nothing is known.
  CHECK(share(carried_over(profile, h100, load_device("b200-sxm")), Parameter::gemm_share_16) == 0.2);
}

TEST_CASE("cores that unpack weights of experts read no more bytes where memory alone is faster") {
  const Device h100 = load_device("h100-sxm");
  RuntimeProfile profile = load_runtime_profile(h100, "vllm");
  const auto share = [](const RuntimeProfile& p, FormatKernel format) {
    return p.values[index(format, ExpertParameter::memory_share)];
  };
  profile.values[index(FormatKernel::mxfp4, ExpertParameter::memory_share)] = 0.9;
  profile.values[index(FormatKernel::fp8, ExpertParameter::memory_share)] = 0.9;
  // 3.35 TB/s and 4.8 TB/s on the same cores at the same clock.
  const RuntimeProfile faster = carried_over(profile, h100, load_device("h200-sxm"));
  CHECK(share(faster, FormatKernel::mxfp4) == Approx(0.9 * 3350 / 4800));
  CHECK(share(faster, FormatKernel::fp8) == 0.9);
  // Slower memory binds by itself.
  CHECK(share(carried_over(profile, h100, load_device("h100-pcie")), FormatKernel::mxfp4) == 0.9);
}

TEST_CASE("a profile that is based on itself, or on what is based on it, is refused where it stands") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path(""));
  const auto write = [&](const std::string& name, const std::string& base) {
    folder.write("hardware/runtimes/" + name + ".yaml",
                 "name: " + name + "\nhardware: rtx4090\nbased_on: " + base + "\ntitle: t\nsource: s\n");
  };
  write("mine", "mine");
  CHECK(refused("rtx4090", "") == "a profile cannot be based on itself | ");
  write("mine", "other");
  write("other", "mine");
  CHECK(refused("rtx4090", "") == "a profile cannot be based on itself | ");
  write("other", "rtx4090-vllm");  // whose name ends alike
  write("mine", "other");
  CHECK(taken("rtx4090", "mine").name == "mine");
}

TEST_CASE("a profile of one's own that cannot be read is told where it is about the device") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path(""));
  folder.write("hardware/runtimes/mine.yaml", "name: mine\nhardware: a100-sxm-80gb\ntitle: [\n");
  CHECK(taken("rtx4090", "vllm").name == "vllm");
  CHECK_THROWS_AS(taken("a100-sxm-80gb", "vllm"), Error);
  folder.write("hardware/runtimes/mine.yaml",
               "name: mine\nhardware: a100-sxm-80gb\ntitle: t\nsource: s\nprefered: true\n");
  CHECK(refused("a100-sxm-80gb", "vllm").starts_with("unknown key 'prefered'"));  // chosen or not
  folder.write("hardware/runtimes/mine.yaml", "name: mine\nfamilies:\n  - nvidia-ga100\ntitle: t\nsorce: s\n");
  CHECK(refused("a100-sxm-80gb", "vllm").starts_with("missing key 'source'"));
}

TEST_CASE("a profile that others are based on is told where these are asked for") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path(""));
  folder.write("hardware/runtimes/h100-sxm-vllm.yaml", "name: vllm\nhardware: h100-sxm\ntitle: t\nsorce: s\n");
  CHECK(refused("h20", "").starts_with("unknown key 'sorce'"));  // class-nvidia-hopper-vllm is based on it
}

TEST_CASE("a profile may be called like one that it is based on by way of another") {
  const TemporaryFolder folder;
  folder.write("a100-sxm-80gb-vllm.yaml",
               "name: own\nhardware: a100-sxm-80gb\nbased_on: class-any-vllm\ntitle: t\nsource: s\n");
  CHECK(taken("a100-sxm-80gb", folder.path("a100-sxm-80gb-vllm.yaml")).name == "own");
}

TEST_CASE("an era's name is the one in its file, whatever the file is called") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path(""));
  folder.write("hardware/engines/toy-file.yaml",
               "name: toy-era\nengine: toy\nhost_class: server\ntitle: t\nsource: s\n");
  for (const std::string name : {"toy", "toy-era", "toy-file"}) CHECK(taken("rtx4090", name).engine == "toy-era");
}

}  // namespace llmperf::hardware::engine_test
