// Engines' commands: what is written is in the engine's own list of flags and reads back as the request it was written
// for; what people publish is read as they mean it.
#include "cli/launch.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "catch.h"

namespace llmperf::launch_test {

using namespace llmperf::request;
using cli::Launch, cli::ReadLaunch, cli::launch_text, cli::read_launch;

namespace {

std::string data(const std::string& name) {
  std::ifstream file(LLMPERF_SOURCE_DIR "/tests/cli/launch/" + name);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> flags_of(const std::string& engine) {
  std::set<std::string> flags;
  const std::string text = data(engine + ".txt");
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with('-')) flags.emplace(line);
  }
  return flags;
}

Request request_of(const std::string& fields) {
  Request request;
  for (const std::string_view one : words(fields)) {
    const std::size_t sign = one.find('=');
    set(request, field(one.substr(0, sign)), std::string(one.substr(sign + 1)));
  }
  return request;
}

std::string text_of(const std::string& fields, Launch as, std::int64_t replicas = 1) {
  Sources sources;
  return launch_text(request_of(fields), sources, as, replicas);
}

Request read(const std::string& text) { return read_launch(text, "x").request; }

std::string notes_of(const std::string& text) { return join(read_launch(text, "x").notes, "; "); }

std::string said(const Request& request, std::string_view name) { return get(request, field(name)).value_or("none"); }

template <class Ask>
std::string error_of(Ask ask, ErrorKind kind = ErrorKind::bad_input) {
  try {
    ask();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("accepted");
  return {};
}

void check_fields(const Request& request, const std::string& expected) {
  for (const std::string_view one : words(expected)) {
    const std::size_t sign = one.find('=');
    INFO(one);
    CHECK(said(request, one.substr(0, sign)) == one.substr(sign + 1));
  }
}

}  // namespace

TEST_CASE("commands that are published read as their pages mean them", "[launch]") {
  const std::string text = data("public_commands.txt");
  int read_ones = 0;
  std::string url;
  std::string expected;
  std::string command;
  const auto check = [&] {
    if (expected.empty()) return;
    INFO(url << "\n" << command);
    const ReadLaunch launch = read_launch(command, "x");
    CHECK(launch.request.engine == "vllm");
    check_fields(launch.request, expected);
    expected.clear();
    command.clear();
    ++read_ones;
  };
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) {
      check();
    } else if (line.starts_with("# http")) {
      url = line;
    } else if (expected.empty() && !line.starts_with('#')) {
      expected = line;
    } else if (!expected.empty()) {
      command.append(line).append("\n");
    }
  }
  check();
  CHECK(read_ones == 21);
}

TEST_CASE("words are split as a shell does", "[launch]") {
  CHECK(said(read("vllm serve 'Qwen/Qwen3-8B' --tensor-parallel-size \"2\""), "tp") == "2");
  CHECK(said(read("vllm serve Qwen/Qwen3-8B \\\n  --tensor-parallel-size 2\n"), "tp") == "2");
  CHECK(said(read("vllm serve Qwen/Qwen3-8B \\\r\n  -tp 2 \r\n"), "tp") == "2");
  CHECK(said(read("# how\nA=1 B='x y' vllm serve Qwen/Qwen3-8B -tp 2 # two\n"), "tp") == "2");
  CHECK(said(read("cd x && vllm serve Qwen/Qwen3-8B -tp 2 > log 2>&1 &"), "tp") == "2");
  CHECK(said(read("vllm serve my\\ model -tp 2"), "model") == "my model");
  CHECK(said(read("$ /usr/bin/vllm serve Qwen/Qwen3-8B -tp=2"), "tp") == "2");
  CHECK(said(read(R"(bash -c "vllm serve Qwen/Qwen3-8B -tp 2")"), "tp") == "2");
  CHECK(error_of([] { read("vllm serve 'Qwen/Qwen3-8B"); }).find("a quote is not closed") != std::string::npos);
}

TEST_CASE("every engine's way to be started is known", "[launch]") {
  for (const char* command :
       {"vllm serve Qwen/Qwen3-8B", "vllm serve --model Qwen/Qwen3-8B", "vllm serve --trust-remote-code Qwen/Qwen3-8B",
        "vllm serve --port 80 Qwen/Qwen3-8B", "python -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B",
        "docker run --gpus all -v ~/.cache/vllm:/root vllm/vllm-openai:latest --model Qwen/Qwen3-8B",
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B", "sglang serve Qwen/Qwen3-8B",
        "docker run lmsysorg/sglang:latest python3 -m sglang.launch_server --model Qwen/Qwen3-8B",
        "trtllm-serve Qwen/Qwen3-8B --backend pytorch", "trtllm-serve serve Qwen/Qwen3-8B"}) {
    INFO(command);
    CHECK(read(command).model == "Qwen/Qwen3-8B");
  }
  CHECK(read("docker run vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B").engine == "vllm@0.11.0");
  CHECK(read("docker run nvcr.io/nvidia/tensorrt-llm/release:1.0.0 trtllm-serve Qwen/Qwen3-8B").engine ==
        "trtllm@1.0.0");
  CHECK(error_of([] { read("vlm serve Qwen/Qwen3-8B"); }).find("did you mean 'vllm'") != std::string::npos);
  CHECK(error_of([] { read(""); }).find("nothing in it starts vLLM") != std::string::npos);
  CHECK(error_of([] { read("llama-server -m x.gguf"); }).find("vllm serve MODEL") != std::string::npos);
}

TEST_CASE("flags are read as their engine means them", "[launch]") {
  const std::string vllm = "vllm serve Qwen/Qwen3-30B-A3B ";
  check_fields(read(vllm + "--max-model-len 32k --max-num-batched-tokens 2K --dtype half"),
               "max-model-len=32000 max-batched-tokens=2048 activations=fp16");
  check_fields(read(vllm + "--max-model-len auto --kv-cache-dtype auto --dtype auto"),
               "max-model-len=none kv=none activations=none");
  check_fields(read(vllm + "--kv-cache-dtype fp8_e5m2 --enforce-eager --num-gpu-blocks-override 500"),
               "kv=fp8 execution=eager kv-blocks=500");
  check_fields(read(vllm + "-tp 2 -dp 2 --enable-expert-parallel -q fp8"), "tp=2 dp=2 ep=4 weights=fp8");
  check_fields(read(vllm + "-tp 2 -ep"), "tp=2 ep=2");
  // Without its flag experts are divided, and whole ones stand for that.
  check_fields(read(vllm + "-tp 2 -dp 2"), "ep=4");
  CHECK(notes_of(vllm + "-tp 2 -dp 2").find("divides each expert over 4 devices") != std::string::npos);
  CHECK(notes_of(vllm + "-tp 2").empty());
  check_fields(read("vllm serve Qwen/Qwen3-8B -tp 2 --enable-expert-parallel"), "tp=2 ep=none");
  // What a checkpoint is stored as it says better itself.
  check_fields(read("vllm serve deepseek-ai/DeepSeek-V3 --quantization fp8"), "weights=none");
  check_fields(read("vllm serve Qwen/Qwen3-8B --quantization compressed-tensors"), "weights=none");
  check_fields(read("vllm serve Qwen/Qwen3-8B --quantization awq_marlin"), "weights=awq");

  const std::string sglang = "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 ";
  check_fields(
      read(sglang + "--tp 8 --mem-fraction-static 0.8 --context-length 4096 --page-size 64 --disable-radix-cache"),
      "tp=8 kv-utilisation=0.8 max-model-len=4096 block-size=64 prefix-caching=off");
  check_fields(read(sglang + "--tp-size 16 --dp-size 16 --enable-dp-attention --ep-size 16 --max-running-requests 1024 "
                             "--chunked-prefill-size 131072"),
               "tp=1 dp=16 ep=16 max-seqs=64 max-batched-tokens=8192");
  check_fields(read(sglang + "--tp 8 --dp 4 --enable-dp-attention --moe-a2a-backend deepep"), "tp=2 dp=4 ep=8");
  check_fields(read(sglang + "--tp 8 --dp 2"), "tp=8 dp=2 ep=none");
  check_fields(read(sglang + "--chunked-prefill-size -1 --disable-cuda-graph"), "chunked-prefill=off execution=eager");
  check_fields(
      read("trtllm-serve Qwen/Qwen3-30B-A3B --tp_size 4 --ep_size 4 --max_batch_size 64 --max_num_tokens 4096 "
           "--max_seq_len 8192 --kv_cache_free_gpu_memory_fraction 0.85 --enable_chunked_prefill"),
      "tp=4 ep=4 max-seqs=64 max-batched-tokens=4096 max-model-len=8192 kv-utilisation=0.85 chunked-prefill=on");
  CHECK(error_of([&] { read(sglang + "--tp 8 --dp 3 --enable-dp-attention"); }).find("do not divide") !=
        std::string::npos);
  CHECK(error_of([&] { read(vllm + "--tensor-parallel-size $TP"); }).find("is a variable: '$TP'") != std::string::npos);
  CHECK(error_of([&] { read(vllm + "--max-num-seqs"); }).find("needs a value") != std::string::npos);
  CHECK(error_of([&] { read(vllm + "--max-num-seqs many"); }).find("`max-seqs`: 'many'") != std::string::npos);
}

TEST_CASE("what drafts is read, however it is said", "[launch]") {
  const std::string vllm = "vllm serve deepseek-ai/DeepSeek-V3 ";
  const auto draft = [](const std::string& command) { return said(read(command), "draft"); };
  CHECK(draft(vllm + R"(--speculative-config '{"method":"mtp","num_speculative_tokens":1}')") == "mtp:1");
  CHECK(draft(vllm + "--speculative-config.method deepseek_mtp --speculative-config.num_speculative_tokens 2") ==
        "mtp:2");
  CHECK(draft(vllm + R"(-sc '{"model":"a/b-eagle3","method":"eagle3","num_speculative_tokens":3}')") == "eagle:3");
  CHECK(draft(vllm + "--speculative-model Qwen/Qwen3-0.6B --num-speculative-tokens 5") == "Qwen/Qwen3-0.6B:5");
  CHECK(draft(vllm + R"(-sc '{"method":"ngram","num_speculative_tokens":5}')") == "none");
  CHECK(notes_of(vllm + R"(-sc '{"method":"ngram","num_speculative_tokens":5}')").find("by ngram") !=
        std::string::npos);
  CHECK(error_of([&] { read(vllm + "-sc '{\"method\":'"); }).find("--speculative-config:1") != std::string::npos);
  const std::string sglang = "sglang serve --model-path deepseek-ai/DeepSeek-V3 --speculative-num-steps 3 ";
  CHECK(draft(sglang + "--speculative-algorithm EAGLE --speculative-eagle-topk 1 --speculative-num-draft-tokens 4") ==
        "mtp:3");
  CHECK(draft(sglang + "--speculative-algorithm EAGLE3 --speculative-draft-model-path a/b") == "eagle:3");
  CHECK(draft(sglang + "--speculative-algorithm STANDALONE --speculative-draft-model-path a/b") == "a/b:3");
}

TEST_CASE("what is not used is said", "[launch]") {
  CHECK(notes_of("X_Y=1 vllm serve Qwen/Qwen3-8B --port 8000 --trust-remote-code --made-up 3 --api-key=k") ==
        "not used of the command: X_Y=1, --port 8000, --trust-remote-code, --made-up 3, --api-key=k");
  CHECK(notes_of("vllm serve Qwen/Qwen3-8B\nvllm serve Qwen/Qwen3-0.6B").find("1 further commands") !=
        std::string::npos);
  CHECK(notes_of("vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2").empty());
  CHECK(notes_of("vllm serve Qwen/Qwen3-8B --max-loras 4") ==
        "not used of the command: --max-loras, --max-lora-rank (without --enable-lora)");
}

TEST_CASE("manifests, files of compose and of engines are read", "[launch]") {
  check_fields(read("apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 3\n  template:\n    spec:\n"
                    "      containers:\n        - name: a\n          image: busybox\n        - name: b\n"
                    "          image: vllm/vllm-openai:v0.11.0\n          command: [\"vllm\", \"serve\"]\n"
                    "          args:\n            - Qwen/Qwen3-8B\n            - --tensor-parallel-size=2\n"
                    "            - --port\n            - \"8000\"\n---\nkind: Service\n"),
               "engine=vllm@0.11.0 model=Qwen/Qwen3-8B tp=2 replicas=3");
  check_fields(read("kind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai\n    command: [/bin/sh, -c]\n"
                    "    args: [\"vllm serve Qwen/Qwen3-8B --max-num-seqs 64\"]\n"),
               "model=Qwen/Qwen3-8B max-seqs=64 replicas=none");
  check_fields(read("services:\n  llm:\n    image: vllm/vllm-openai:latest\n    ports: [\"8000:8000\"]\n"
                    "    command: >\n      --model Qwen/Qwen3-8B\n      --max-model-len 4096\n"),
               "engine=vllm model=Qwen/Qwen3-8B max-model-len=4096");
  check_fields(read("model: Qwen/Qwen3-8B\ntensor-parallel-size: 4\nenable-prefix-caching: false\nport: 8000\n"
                    "speculative-config: {method: draft_model, model: Qwen/Qwen3-0.6B, num_speculative_tokens: 4}\n"),
               "engine=vllm tp=4 prefix-caching=off draft=Qwen/Qwen3-0.6B:4");
  check_fields(read("model-path: Qwen/Qwen3-8B\ntp-size: 4\n"), "engine=sglang tp=4 model=Qwen/Qwen3-8B");
  CHECK(error_of([] { read("kind: Service\nspec: {ports: []}\n"); }).find("nothing in it starts") != std::string::npos);
  CHECK(error_of([] { read("kind: [\n"); }).find("x:") != std::string::npos);
}

TEST_CASE("what is written has flags of the engine's own list, and reads back", "[launch]") {
  struct Answer {
    Launch as;
    const char* engine;
    std::string fields;
  };
  const std::string small = "model=qwen3-8b hw=h100-sxm ";
  const std::string experts = "model=qwen3-30b-a3b hw=h100-sxm ";
  const std::vector<Answer> answers = {
      {Launch::vllm, "vllm", small + "tp=2 max-seqs=64 max-batched-tokens=4096 kv-utilisation=0.85 max-model-len=8192"},
      {Launch::vllm, "vllm", small + "kv=fp8 block-size=32 weights=fp8 activations=fp16 prefix-caching=off"},
      {Launch::vllm, "vllm", small + "dp=2 pp=2 chunked-prefill=off execution=eager kv-blocks=5000"},
      {Launch::vllm, "vllm", small + "draft=qwen3-0.6b:4 accept=0.8 kv=bf16 weights=awq"},
      {Launch::vllm, "vllm", experts + "tp=2 dp=2 ep=4"},
      {Launch::vllm, "vllm", "model=deepseek-v3 hw=h200-sxm tp=8 ep=8 draft=mtp:2 accept=0.8"},
      {Launch::sglang, "sglang", small + "engine=sglang tp=2 max-seqs=64 max-batched-tokens=4096 kv-utilisation=0.8"},
      {Launch::sglang, "sglang", small + "engine=sglang kv=fp8 block-size=64 prefix-caching=off chunked-prefill=off"},
      {Launch::sglang, "sglang",
       "model=deepseek-v3 hw=h200-sxm engine=sglang dp=8 ep=8 max-seqs=64 draft=mtp:3 accept=0.8"},
      {Launch::sglang, "sglang", experts + "engine=sglang tp=4 ep=2 scheduler-recv-interval=10 execution=eager"},
      {Launch::sglang, "sglang", small + "engine=sglang dp=2 draft=eagle:3 accept=0.8 max-model-len=4096"},
      {Launch::trtllm, "trtllm", small + "engine=trtllm tp=2 max-seqs=64 max-batched-tokens=4096 chunked-prefill=on"},
      {Launch::trtllm, "trtllm", experts + "engine=trtllm tp=4 ep=4 max-model-len=8192 kv-utilisation=0.8"},
  };
  for (const Answer& answer : answers) {
    const std::string text = text_of(answer.fields, answer.as);
    INFO(text);
    const std::set<std::string> known = flags_of(answer.engine);
    for (const std::string_view word : words(text)) {
      const bool is_flag = word.starts_with("--");
      const std::string positive = word.starts_with("--no-") ? "--" + std::string(word.substr(5)) : std::string(word);
      if (is_flag) CHECK(known.count(positive) == 1);
    }
    const Request back = read(text);
    const Request asked = request_of(answer.fields);
    for (const Field& one : fields()) {
      if (one.name == "hw" || one.name == "accept" || one.name == "model" || one.name == "draft") continue;
      if (one.name == "weights" && asked.weights == "bf16") continue;
      INFO(one.name);
      if (const auto value = get(asked, one); value && one.name != "engine") CHECK(said(back, one.name) == *value);
    }
    CHECK(back.draft.has_value() == asked.draft.has_value());
    // The same request starts the same engine.
    Request again = back;
    again.hw = asked.hw;
    again.accept = asked.accept;
    Sources sources;
    const auto without_remarks = [](const std::string& of) {
      std::string kept;
      for (const std::string_view line : split(of, '\n')) kept += line.starts_with('#') ? "" : std::string(line) + "\n";
      return kept;
    };
    CHECK(without_remarks(launch_text(again, sources, answer.as, 1)) == without_remarks(text));
    const std::string manifest = text_of(answer.fields, Launch::k8s, 3);
    const Request deployed = read(manifest);
    INFO(manifest);
    CHECK(deployed.replicas == 3);
    Request one = deployed;
    one.replicas.reset();
    if (answer.as == Launch::trtllm) one.engine = back.engine;  // its images have no tag but a version's
    CHECK(one == back);
  }
}

TEST_CASE("commands that would start something else are refused, with what to ask for", "[launch]") {
  const auto refused = [](const std::string& fields, Launch as) { return error_of([&] { text_of(fields, as); }); };
  const std::string small = "model=qwen3-8b hw=h100-sxm ";
  CHECK(refused(small, Launch::sglang).find("`engine` sglang") != std::string::npos);
  CHECK(refused(small + "engine=llama.cpp", Launch::k8s).find("llama.cpp's command") != std::string::npos);
  CHECK(refused("model=qwen3-30b-a3b hw=h100-sxm dp=2", Launch::vllm).find("`ep` 2") != std::string::npos);
  CHECK(refused("model=qwen3-30b-a3b hw=h100-sxm tp=4 ep=2", Launch::vllm).find("`ep` 4") != std::string::npos);
  CHECK(refused(small + "engine=trtllm dp=2", Launch::trtllm).find("no flag for `dp`") != std::string::npos);
  CHECK(refused(small + "draft=qwen3-0.6b accept=0.8", Launch::vllm).find("`draft` qwen3-0.6b:3") != std::string::npos);
  CHECK(refused(small + "prefill-replicas=1 decode-replicas=1", Launch::vllm).find("one command") != std::string::npos);
  CHECK(refused(small + "dp=16", Launch::k8s).find("a server has 8") != std::string::npos);
  CHECK(error_of([] { text_of("model=llama-3.1-70b hw=h100-sxm", Launch::vllm); }, ErrorKind::infeasible)
            .find("does not start") != std::string::npos);
  CHECK(text_of(small + "replicas=3", Launch::vllm, 3).find("# 3 such servers behind a router") != std::string::npos);
  CHECK(text_of(small + "engine=trtllm kv=fp8", Launch::trtllm).find("# --kv fp8 is not in the command") !=
        std::string::npos);
}

}  // namespace llmperf::launch_test
