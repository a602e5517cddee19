// A request is a value: what is written of it, as JSON and as text, is what is read.
#include "request/request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "request/price.h"
#include "request/resolve.h"
#include "request/traffic.h"

namespace llmperf::request_test {

using namespace llmperf::request;

namespace {

template <class Ask>
std::string error_of(Ask ask) {
  try {
    ask();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.what();
  }
  FAIL("accepted");
  return {};
}

Request read(const std::string& json) { return parse_request(descriptor::parse_json(json, "r.json")); }

// A value that a field takes, by its kind; a share is at most 1.
std::string sample(const Field& field) {
  if (field.name == "kv-utilisation" || field.name == "top-p") return "0.5";
  if (field.is_switch()) return "true";
  if (std::holds_alternative<Amount Request::*>(field.member)) return "2GiB";
  return std::holds_alternative<Text Request::*>(field.member) ? "a \"b\"\\c" : "2";
}

}  // namespace

TEST_CASE("every field is written to JSON and read back, and names of fields are unique", "[request]") {
  Request all;
  std::set<std::string_view> names;
  for (const Field& field : fields()) {
    INFO(field.name);
    CHECK(names.insert(field.name).second);
    CHECK(find_field(field.name) == &field);
    CHECK_FALSE(get(all, field));
    set(all, field, sample(field));
    REQUIRE(get(all, field));
  }
  CHECK(all.batch == 2);
  CHECK(all.reserve->value == 2147483648.0);
  CHECK(read(to_json(all)) == all);
  CHECK(read("{\"schema\": \"llmperf.estimate\", \"request\": " + to_json(all) + "}") == all);
  for (const Field& field : fields()) set(all, field, "");
  CHECK(all == Request());
  CHECK(to_json(all) == "{}");
}

TEST_CASE("of tokens 128k is 131072, of all else k is a thousand", "[request]") {
  Request request;
  set(request, field("prompt"), "128k");
  CHECK(request.prompt == 131072);
  set(request, field("prompt"), "2M");
  CHECK(request.prompt == 2097152);
  set(request, field("batch"), "4k");
  CHECK(request.batch == 4000);
  for (const char* text : {"k", "1.5k", "-1k", "0k", "1kk", "9223372036854775807M", "100M"}) {
    INFO(text);
    CHECK(error_of([&] { set(request, field("prompt"), text); }).find("is not a whole number between 1 and") !=
          std::string::npos);
  }
}

TEST_CASE("tokens are drawn where top-k or top-p leave a choice", "[request]") {
  const auto draws = [](const char* fields) {
    Sources sources;
    const auto r = resolve(read(fmt::format(R"({{"model": "llama-2-7b", "hw": "h100-sxm"{}}})", fields)), sources);
    return r->setup().execution.draws;
  };
  CHECK_FALSE(draws(""));
  CHECK(draws(R"(, "top_k": 20)"));
  CHECK(draws(R"(, "top_p": 0.95)"));
  CHECK_FALSE(draws(R"(, "top_k": 1, "top_p": 0.95)"));  // the likeliest
  CHECK_FALSE(draws(R"(, "top_p": 1)"));                 // of all
  CHECK(error_of([&] { draws(R"(, "weights": "q4_k_m", "top_k": 20)"); }).find("on the host") != std::string::npos);
}

TEST_CASE("what a file of a request has wrong is told with its place, and by the field", "[request]") {
  CHECK(error_of([] { read("{\"batc\": 4}"); }).find("r.json:1:2: unknown key 'batc' in a request") !=
        std::string::npos);
  CHECK(error_of([] { read("{\"batch\": [4]}"); }).find("'batch' must be a value") != std::string::npos);
  CHECK(error_of([] { read("{\"batch\": 0}"); }).find("`batch`: '0' is not a whole number") != std::string::npos);
  CHECK(error_of([] { read("{\"schema\": \"llmperf.model\"}"); }).find("a result without its request") !=
        std::string::npos);
  CHECK(error_of([] {
          Sources sources;
          resolve(read("{\"hw\": \"rtx4090\"}"), sources);
        }) == "`model` is required");
}

TEST_CASE("a training step is not run under a profile of inference, and what there is is named", "[request]") {
  Sources sources;
  const auto asked = [&](const char* hw, const char* runtime) {
    return read(fmt::format(R"({{"model": "llama-2-7b", "hw": "{}", "training": true, "tp": "8", "runtime": "{}"}})",
                            hw, runtime));
  };
  for (const char* runtime : {"vllm", "transformers", "sglang", "trtllm", "vllm@0.6"}) {
    CAPTURE(runtime);
    CHECK(error_of([&] { resolve(asked("h100-sxm", runtime), sources); }).find("is a profile of inference") !=
          std::string::npos);
  }
  CHECK_NOTHROW(resolve(asked("a100-sxm-80gb", "megatron"), sources));
  CHECK_NOTHROW(resolve(asked("h100-sxm", "none"), sources));
}

TEST_CASE("a sweep is told of what a point would be refused for by itself", "[request]") {
  Sources sources;
  const auto unused = [&](const char* runtime) {
    const Request request =
        read(fmt::format(R"({{"model": "llama-2-7b", "hw": "rtx4090", "options": "none", "runtime": "{}"}})", runtime));
    return resolve(request, sources, Unused::taken)->unused;
  };
  CHECK(unused("none").empty());
  REQUIRE(unused("vllm").size() == 1);
  CHECK(unused("vllm")[0] == "`options` none: the stack of profile vllm does the same without it");
}

TEST_CASE("a field that has no effect on what is asked is refused, and taken where it may at another point",
          "[request]") {
  Sources sources;
  const auto refused = [&](const char* more) {
    const Request request = read(std::string("{\"model\": \"llama-2-7b\", \"hw\": \"h100-sxm\", ") + more + "}");
    CHECK_NOTHROW(resolve(request, sources, Unused::taken));
    return error_of([&] { resolve(request, sources); });
  };
  CHECK(refused("\"embedding\": \"replicated\"").find("`embedding`") == 0);
  CHECK(refused("\"devices_per_node\": 4").find("`devices-per-node`: there is one device") == 0);
  CHECK(refused("\"training\": true, \"zero\": 1").find("`zero`: there is one replica") == 0);
  const auto routed = [&](const char* more) {
    return read(std::string(R"({"model": "mixtral-8x7b", "hw": "h100-sxm", "training": true, "tp": "8", )") + more);
  };
  CHECK(error_of([&] {
          resolve(routed(R"("routing": "balanced"})"), sources);
        }).find("`routing`: a micro-batch reaches every expert") == 0);
  CHECK_NOTHROW(resolve(routed(R"("routing": "power-law:4", "seq": 4})"), sources));
  CHECK(refused("\"training\": true, \"exposed_sums\": true").find("`exposed-sums`") == 0);
  CHECK(refused("\"training\": true, \"async_tp\": true").find("`async-tp` takes gathers and scatters") == 0);
  CHECK(refused("\"training\": true, \"runtime\": \"none\", \"eager\": true").find("`eager`: of PyTorch from 2024") ==
        0);
  CHECK(refused("\"training\": true, \"runtime\": \"pytorch-fsdp@2023\", \"eager\": true")
            .find("`eager`: of PyTorch from 2024") == 0);
  CHECK(refused("\"training\": true, \"shared_expert_overlap\": true")
            .find("`shared-expert-overlap`: llama-2-7b has no shared experts") == 0);
  CHECK(refused("\"training\": true, \"options\": \"all,no_static_kv\"").find("`options`: static_kv") == 0);
  CHECK(refused("\"runtime\": \"vllm\", \"options\": \"none\"").find("`options` none: the stack of profile vllm") == 0);
  CHECK(refused("\"training\": true, \"recompute\": \"selective\"").find("`recompute` selective: flash attention") ==
        0);
  CHECK(refused("\"runtime\": \"none\", \"power\": \"short\"").find("`power`: the speed of light says nothing") == 0);
  // The default restated does no harm.
  CHECK_NOTHROW(
      resolve(read(R"({"model": "llama-2-7b", "hw": "h100-sxm", "embedding": "sharded", "pp": 1})"), sources));
}

TEST_CASE("a prompt is cut into pieces where it can be", "[request]") {
  Sources sources;
  const auto resolved = [&](const std::string& more) {
    return resolve(read(R"({"hw": "h100-sxm", "prompt": 1024, )" + more + "}"), sources);
  };
  const auto refused = [&](const std::string& more) { return error_of([&] { resolved(more); }); };
  const auto chunk = [&](const std::string& more) { return resolved(more)->setup().serving.prefill_chunk; };
  const std::string llama = R"("model": "llama-2-7b", )";
  CHECK(chunk(llama + R"("prefill_chunk": "1k")") == 1024);
  CHECK_FALSE(chunk(llama + R"("batch": 1)"));
  CHECK(refused(llama + R"("prefill_chunk": 0)").find("`prefill-chunk`: '0' is not a whole number between 1") !=
        std::string::npos);
  CHECK(refused(llama + R"("prefill_chunk": 256, "phase": "decode")").find("`prefill-chunk`: `phase` decode has no") ==
        0);
  CHECK(refused(llama + R"("prefill_chunk": 256, "sp": "ulysses:2")").find("start it from its first token") !=
        std::string::npos);
  CHECK(chunk(llama + R"("prefill_chunk": 1024, "sp": "ulysses:2")") == 1024);  // all of it
  const std::string shared = llama + R"("tp": "4", "megatron_sp": true, "prefill_chunk": )";
  CHECK(refused(shared + "250").find("`prefill-chunk`: 250 do not divide into 4 shares of a piece") == 0);
  CHECK(chunk(shared + "252") == 252);
  CHECK(refused(llama + R"("prefill_chunk": 256, "training": true)").find("has no effect on a training step") !=
        std::string::npos);
  CHECK(refused(R"("model": "bert-base-uncased", "prefill_chunk": 256)")
            .find("is an encoder: it reads every text once") != std::string::npos);
}

TEST_CASE("longer micro-batches are advised where a step has more than one", "[request]") {
  Sources sources;
  const auto notes = [&](const std::string& more) {
    const auto resolved =
        resolve(read(R"({"hw": "rtx4090", "weights": "q4_0", "model": "llama-2-7b", "gen": 1)" + more + "}"), sources);
    return join(resolved->setup().notes, "; ");
  };
  CHECK(notes("").empty());  // nothing stays on the host
  CHECK_THAT(notes(R"(, "gpu_layers": 0, "prompt": 512)"), Catch::Contains("is the host sending weights"));
  CHECK_THAT(notes(R"(, "gpu_layers": 0, "prompt": 512)"), !Catch::Contains("ubatch"));
  CHECK_THAT(notes(R"(, "gpu_layers": 0, "prompt": 4096)"), Catch::Contains("`ubatch` 2048 does so less often"));
}

TEST_CASE("what is said of a host that computes nothing is refused, and of experts that there are none of",
          "[request]") {
  Sources sources;
  const auto asked = [](const std::string& model, const std::string& more) {
    return read(fmt::format(R"({{"hw": "rtx4090", "weights": "q4_0", "model": "{}", {}}})", model, more));
  };
  const auto refused = [&](const std::string& model, const std::string& more) {
    return error_of([&] { resolve(asked(model, more), sources); });
  };
  for (const char* field : {"\"cpu_threads\": 4", "\"no_op_offload\": true", "\"no_mmap\": true"}) {
    INFO(field);
    CHECK(refused("llama-2-7b", field).find("the host computes nothing but the token embedding") != std::string::npos);
    CHECK_NOTHROW(resolve(asked("llama-2-7b", fmt::format("{}, \"gpu_layers\": 20", field)), sources));
    CHECK_NOTHROW(resolve(asked("mixtral-8x7b", fmt::format("{}, \"n_cpu_moe\": 20", field)), sources));
  }
  CHECK(refused("llama-2-7b", "\"no_mmap\": true, \"gpu_layers\": 9, \"no_op_offload\": true")
            .find("`no-mmap`: with `no-op-offload` no weights are sent") == 0);
  CHECK(refused("llama-2-7b", "\"no_mmap\": true, \"gpu_layers\": 9, \"runtime\": \"none\"")
            .find("`no-mmap`: the speed of light") == 0);
  CHECK(
      refused("llama-2-7b", "\"cpu_threads\": 17, \"gpu_layers\": 9").find("`cpu-threads`: ryzen-7950x has 16 cores") ==
      0);
  CHECK(refused("llama-2-7b", "\"numa\": 2, \"gpu_layers\": 9").find("`numa`: ryzen-7950x has 1 NUMA node") == 0);
  CHECK(refused("llama-2-7b", "\"n_cpu_moe\": 2").find("llama-2-7b has no routed experts") == 0);
  CHECK(refused("mixtral-8x7b", "\"n_cpu_moe\": 33").find("`n-cpu-moe`: mixtral-8x7b has 32 layers") == 0);
  CHECK(refused("mixtral-8x7b", "\"n_cpu_moe\": 3, \"cpu_moe\": true").find("`cpu-moe` and `n-cpu-moe` both") == 0);
  CHECK(
      refused("mixtral-8x7b", "\"cpu_moe\": true, \"gpu_layers\": 0").find("`cpu-moe`: of the layers on the device") ==
      0);
  CHECK(refused("deepseek-v2-lite", "\"n_cpu_moe\": 1").find("`n-cpu-moe`: of the layers on the device none") == 0);
  CHECK(refused("mixtral-8x7b", "\"cpu_moe\": true, \"pp\": 2").find("`n-cpu-moe`: experts of a GGUF model") == 0);
  const Request bf16 = read(R"({"hw": "rtx4090", "model": "qwen-7b", "weights": "int8", "no_mmap": true})");
  CHECK(error_of([&] { resolve(bf16, sources); }).find("`no-mmap` is for GGUF formats") == 0);
}

TEST_CASE("the load that is asked for is that of a profile which tells loads apart") {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("llmperf-power-{}.yaml", getpid());
  const auto asked = [&](const char* own, const char* power) {
    std::ofstream(path) << "name: hot\nhardware: h100-sxm\ntitle: hot\nsource: a test\nchoices: {power: " << own
                        << "}\n";
    Request request = read(R"({"model": "llama-2-7b", "hw": "h100-sxm"})");
    request.runtime = path;
    request.power = power;
    Sources sources;
    const auto profile = choose_profile(request, "h100-sxm", hardware::load_device("h100-sxm"), false,
                                        hardware::Workload::language, sources);
    std::filesystem::remove(path);
    return profile->choices.power;
  };
  CHECK(asked("short", "sustained") == hardware::Power::sustained);
  CHECK(asked("sustained", "short") == hardware::Power::short_run);
  CHECK(asked("none", "short") == hardware::Power::none);
  CHECK(error_of([&] { asked("short", "sustaned"); }).find("`power`: unknown load 'sustaned'") == 0);
}

TEST_CASE("a server computes at the clock that steady load leaves, unless another load is asked for") {
  Sources sources;
  Request request = read(R"({"model": "llama-2-7b", "hw": "h100-sxm", "runtime": "vllm"})");
  CHECK(resolve_setup(request, sources)->profile->choices.power == hardware::Power::short_run);
  CHECK(resolve_serving(request, sources)->profile->choices.power == hardware::Power::sustained);
  request.power = "short";
  CHECK(resolve_serving(request, sources)->profile->choices.power == hardware::Power::short_run);
}

// Weights are read at the memory's rate, which the limit leaves; products take as much longer as the clock is lower.
TEST_CASE("a power limit lengthens prompts by the clock, tokens hardly, and leaves both in more doubt", "[request]") {
  Sources sources;
  const auto asked = [&](const char* more) {
    const auto r =
        resolve(read(fmt::format(R"({{"model": "llama-3.1-8b", "hw": "rtx3090", "prompt": 4096, "gen": 64{}}})", more)),
                sources);
    const Generation& text = std::get<Generation>(r->work);
    return std::pair(text.estimator->run(text.scenario), r->device);
  };
  const auto [whole, board] = asked("");
  const auto [limited, device] = asked(R"(, "power_limit": "225W")");
  REQUIRE(device.power_limit.has_value());
  const double clock = device.power_limit->clock;
  CHECK(clock == Approx(std::cbrt((225 - 87.5) / (350 - 87.5))));
  CHECK(*whole.ttft / *limited.ttft < 1);
  CHECK(*whole.ttft / *limited.ttft >= clock);
  CHECK(*whole.ttft / *limited.ttft < (1 + clock) / 2);  // most of a prompt is products
  CHECK(*whole.tpot / *limited.tpot > (1 + clock) / 2);
  CHECK(asked(R"(, "power_limit": "225W", "runtime": "none")").first.tpot ==
        asked(R"(, "runtime": "none")").first.tpot);
  CHECK(error_of([&] { asked(R"(, "power_limit": "warm")"); }).find("`power-limit`: no power in 'warm'") == 0);
  CHECK(error_of([&] { asked(R"(, "power_limit": "400W")"); }).find("`power-limit` of 400 W limits nothing") == 0);
  CHECK(error_of([&] { asked(R"(, "power_limit": "100W")"); }).find("`power-limit` of 100 W leaves rtx3090 hardly") ==
        0);
}

TEST_CASE("a version of a runtime is one of the rules of its engine, where it has rules of its own", "[request]") {
  Sources sources;
  const auto rules = [&](const char* hw, const char* runtime, const char* weights) {
    const Request r =
        read(fmt::format(R"({{"model": "llama-3.1-8b", "hw": "{}", "weights": "{}", "runtime": "{}", "rate": 1}})", hw,
                         weights, runtime));
    return engine_choices(*resolve_serving(r, sources)).engine;
  };
  CHECK(rules("h100-sxm", "vllm@0.10.1", "bf16") == "vllm@0.10.1");
  CHECK(rules("h100-sxm", "vllm", "bf16") == "vllm");
  CHECK(rules("rtx4090", "llama.cpp@b5000+llama-bench", "q4_k_m") == "llama.cpp@b5000");
  CHECK(rules("rtx4090", "llama.cpp@2025-01", "q4_k_m") == "llama.cpp");
  // Transformers and LMDeploy are simulated by vLLM's rules, of which 4.40 is no version and 0.6 another one.
  CHECK(rules("h100-sxm", "transformers@4.40", "bf16") == "vllm");
  CHECK(rules("h100-sxm", "lmdeploy@0.6", "bf16") == "vllm");
}

TEST_CASE("a field of another workload is refused by name", "[request]") {
  Sources sources;
  const auto refused = [&](const char* json) { return error_of([&] { resolve(read(json), sources); }); };
  CHECK(refused(R"({"model": "stdit3-xl2", "hw": "h100-sxm", "gen": 8})") ==
        "`gen` is for language models: stdit3-xl2 is not one\n  hint: leave it out");
  CHECK(refused(R"({"model": "qwen-7b", "hw": "h100-sxm", "cfg": "on"})") ==
        "`cfg` is for models that generate video: qwen-7b is not one\n  hint: leave it out");
  CHECK(refused(R"({"model": "qwen-7b", "hw": "h100-sxm", "zero": 1})") ==
        "`zero` requires `training`\n  hint: leave it out");
  CHECK(refused(R"({"model": "qwen-7b", "hw": "h100-sxm", "training": true, "gen": 1})").find("`gen`") == 0);
}

TEST_CASE("a list of devices is a plan over them, of GGUF formats alone") {
  Sources sources;
  const auto asked = [](const char* more) {
    return read(fmt::format(R"({{"model": "llama-3-8b", "weights": "q4_k_m", {}}})", more));
  };
  const auto plan = [&](const char* more) {
    return std::get<Generation>(resolve(asked(more), sources)->work).choices.plan;
  };
  CHECK(plan(R"("hw": "2xrtx3090")") == graph::Plan{.pipeline = 2});
  CHECK(plan(R"("hw": "2xrtx3090+rtx3060")") == graph::Plan{.pipeline = 3});
  CHECK(plan(R"("hw": "rtx3090", "devices": 4)") == graph::Plan{.pipeline = 4});
  CHECK(plan(R"("hw": "rtx3090", "devices": 2, "split": "tensor")").tensor == 2);
  CHECK(std::get<Generation>(resolve(asked(R"("hw": "2xrtx3090")"), sources)->work).choices.cards.empty());
  const auto refused = [&](const char* more) { return error_of([&] { resolve(asked(more), sources); }); };
  CHECK(refused(R"("hw": "rtx3090", "devices": 2, "split": "row")").find("removed") != std::string::npos);
  CHECK(refused(R"("hw": "rtx3090+rtx3060", "split": "tensor")").find("alike") != std::string::npos);
  CHECK(refused(R"("hw": "2xrtx3090", "pp": 2)").find("`hw` lists 2 devices") == 0);
  CHECK(refused(R"("hw": "rtx3090", "split": "layer")").find("there is one device") != std::string::npos);
  CHECK(error_of([&] { resolve(read(R"({"model": "llama-3-8b", "hw": "2xrtx3090"})"), sources); }).find("GGUF") !=
        std::string::npos);
}

TEST_CASE("weights are those that a model's name says, unless the request says others", "[request]") {
  Sources sources;
  const auto weights = [&](const std::string& model, const std::string& more = "") {
    const auto r = resolve(read(fmt::format(R"({{"hw": "rtx4090", "model": "{}"{}}})", model, more)), sources);
    return r->setup().execution.weights.name;
  };
  CHECK(weights("unsloth/Qwen3-8B-GGUF:Q5_K_M") == "q5_k_m");
  CHECK(weights("Qwen/Qwen3-8B-AWQ") == weights("qwen3-8b", R"(, "weights": "awq")"));
  CHECK(weights("Qwen/Qwen3-8B-AWQ", R"(, "weights": "bf16")") == "bf16");
  CHECK(weights("Qwen/Qwen3-8B") == "bf16");
}

TEST_CASE("a format of weights says which stack runs it, and a name of two says both") {
  Sources sources;
  const auto asked = [&](const std::string& hw, const std::string& weights, const std::string& more = "") {
    return resolve(read(fmt::format(R"({{"hw": "{}", "model": "gpt-oss-20b", "weights": "{}"{}}})", hw, weights, more)),
                   sources);
  };
  CHECK(asked("apple-m4-max", "mlx-q4")->profile->name == "mlx");
  CHECK(asked("apple-m4-max", "mlx-q4", R"(, "runtime": "default")")->profile->name == "default");
  CHECK(asked("apple-m4-max", "q4_0")->profile->name == "llama.cpp");
  CHECK(asked("rtx4090", "mlx-q4")->profile->name == "vllm");  // which MLX does not run on
  // Experts stay on the host in GGUF's form of mxfp4.
  const auto offloaded = asked("rtx4090", "mxfp4", R"(, "n_cpu_moe": 4)");
  CHECK(offloaded->setup().execution.weights.name == "mxfp4_moe");
  CHECK(asked("rtx4090", "mxfp4")->profile->name == "vllm");
  const auto both = asked("ascend-910b2", "w8a8c8");
  CHECK(both->setup().execution.weights.name == "w8a8");
  CHECK(both->setup().execution.kv.name() == "int8");
}

TEST_CASE("a price is a number of USD, another currency, or a file", "[request]") {
  CHECK(parse_price("2.5")->amount == 2.5);
  CHECK(parse_price("2.5")->currency == "USD");
  CHECK(parse_price("2.5")->basis == estimate::PriceBasis::given);
  CHECK(parse_price("2.5 EUR/h")->currency == "EUR");
  CHECK(parse_price("0.34USD/h")->amount == 0.34);
  CHECK_FALSE(parse_price("prices.yaml"));
  CHECK_FALSE(parse_price("./prices.csv"));
  for (const char* bad : {"0", "-1", "cheap", "2.5 dollars", "1e10", "EUR"}) {
    INFO(bad);
    CHECK(error_of([&] { parse_price(bad); }).find("`price`: '" + std::string(bad) + "' is neither") == 0);
  }
}

TEST_CASE("a request costs what it says, else what the device's file says, else what a file of prices says") {
  Sources sources;
  const auto price = [&](const char* more, Unused unused = Unused::refused) {
    return resolve(read(fmt::format(R"({{"model": "qwen-7b", "hw": "h100-sxm"{}}})", more)), sources, unused)->price;
  };
  CHECK(price("")->amount == estimate::hour_price(sources.device("h100-sxm"))->amount);
  CHECK(price(R"(, "price": 2.5)")->amount == 2.5);
  const std::string yaml = (std::filesystem::temp_directory_path() / fmt::format("prices_{}.yaml", getpid())).string();
  const std::string asked = fmt::format(R"(, "price": "{}")", yaml);
  std::ofstream(yaml) << "currency: EUR\nsource: a contract\ndate: 2026-05\n"
                         "devices:\n  H100: 1.5\n  ours: {amount: 3, currency: USD}\n";
  CHECK(price(asked.c_str())->amount == 1.5);
  CHECK(price(asked.c_str())->text() == "given: a contract, 2026-05");
  CHECK(load_prices(yaml).at("ours").currency == "USD");
  std::ofstream(yaml) << "devices: {rtx4090: 0.5}\n";
  Sources again;
  const Request of_other = read(fmt::format(R"({{"model": "qwen-7b", "hw": "h100-sxm"{}}})", asked));
  CHECK(error_of([&] { resolve(of_other, again); }).find("has no price of h100-sxm") != std::string::npos);
  CHECK_FALSE(resolve(of_other, again, Unused::taken)->price);  // a sweep goes on
  std::filesystem::remove(yaml);
}

TEST_CASE("every mistake in a file of prices is reported where it is") {
  const auto problems = [](const char* name, const char* text) {
    const std::string path = (std::filesystem::temp_directory_path() / fmt::format("{}_{}", getpid(), name)).string();
    std::ofstream(path) << text;
    const std::string found = error_of([&] { load_prices(path); });
    std::filesystem::remove(path);
    return found;
  };
  const auto has = [](const std::string& text, const char* part) { CHECK_THAT(text, Catch::Contains(part)); };
  const std::string yaml = problems("p.yaml",
                                    "currency: usd\n"
                                    "devices:\n"
                                    "  h100-sxm: cheap\n"
                                    "  a: {amount: 0}\n"
                                    "  b: {amount: 1, per: day}\n"
                                    "  c: {amount: 1, date: 2026-14}\n");
  has(yaml, ":1:11: 'currency' must be three capital letters");
  has(yaml, ":3:13: 'h100-sxm' must be a number");
  has(yaml, ":4:15: 'amount' must be a number");
  has(yaml, ":5:18: unknown key 'per'");
  has(yaml, ":6:24: 'date' must be a year");
  has(problems("q.yaml", "currency: USD\n"), "missing key 'devices'");
  const std::string csv =
      problems("p.csv", "device,amount,currency\nh100-sxm,none,USD\na,1,usd\n,1,USD\nH100 SXM,2,USD\n");
  has(csv, ":2:10: 'amount' must be a number");
  has(csv, ":3:5: 'currency' must be three capital letters");
  has(csv, ":4:1: missing key 'device'");
  has(csv, ":5:1: second price of 'H100 SXM'");
  has(problems("q.csv", "device,price\nx,1\n"), ":1:8: unknown key 'price'");
  has(problems("s.csv", "device,amount,curency\nx,1,\ny,1,EUR\n"), ":1:15: unknown key 'curency'");
  has(problems("r.csv", "device\nx\n"), ":2:1: missing key 'amount'");
}

}  // namespace llmperf::request_test
