#include "descriptor/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "bad_input.h"
#include "catch.h"
#include "temporary_folder.h"

namespace llmperf::catalog_test {

using namespace llmperf::descriptor;
using Catch::Matchers::Contains;

namespace {

bool knows(Kind kind, const std::string& name) {
  const std::vector<std::string> known = names(kind);
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

TEST_CASE("every embedded file is valid YAML under its own name, measurements and traces aside") {
  CHECK_FALSE(embedded_files().empty());
  for (const EmbeddedFile& file : embedded_files()) {
    INFO(file.path);
    if (file.kind == Kind::measurements || file.kind == Kind::trace) {
      CHECK(load_text(file.kind, std::string(file.name)).text == file.text);
      continue;
    }
    const Document document = load(file.kind, std::string(file.name));
    CHECK(document.file == file.path);
    CHECK(document.root.kind == Node::Kind::mapping);
    CHECK(knows(file.kind, std::string(file.name)));
  }
}

TEST_CASE("embedded files are sorted by kind and name, and names() is sorted") {
  const auto less = [](const EmbeddedFile& a, const EmbeddedFile& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.name < b.name;
  };
  CHECK(std::is_sorted(embedded_files().begin(), embedded_files().end(), less));
  const std::vector<std::string> models = names(Kind::model);
  CHECK(std::is_sorted(models.begin(), models.end()));
}

TEST_CASE("the source of a file that stands in place of a built-in one begins with its path") {
  const TemporaryFolder folder;
  const std::string file = folder.write("data/hardware/devices/h100-sxm.yaml", "name: h100-sxm\nsource: a guess\n");
  folder.write("data/hardware/devices/mine.yaml", "name: mine\nsource: a guess\n");
  const SearchPath path(folder.path("data"));
  const auto source = [](const char* name) {
    for (const Node::Entry& e : load(Kind::device, name).root.entries) {
      if (e.key == "source") return e.value.scalar;
    }
    return std::string();
  };
  CHECK(source("h100-sxm") == file + ", in place of the built-in file; a guess");
  CHECK(replacing(source("h100-sxm")) == file);
  CHECK(replacing("its release notes; kernels: /p/x.yaml, in place of the built-in file; a table") == "/p/x.yaml");
  CHECK(source("H100 SXM") == source("h100-sxm"));  // whatever it is called
  CHECK(source("mine") == "a guess");
  CHECK(replacing(source("a100-sxm-80gb")).empty());
}

TEST_CASE("a slash or a known extension makes a name a path") {
  for (const char* path : {"./qwen-7b", "a/b/c", "a/", "/x", "m.yaml", "m.yml", "config.json", "m.gguf"})
    CHECK(is_path(path));
  for (const char* name : {"qwen-7b", "qwen1.5-7b", "yaml", "", "a/b", "https://huggingface.co/a/b.gguf"})
    CHECK_FALSE(is_path(name));
}

TEST_CASE("an unknown name suggests the nearest ones") {
  CHECK_THAT(bad_input([] { load(Kind::model, "qwen-7c"); }),
             Contains("unknown model 'qwen-7c'\n  hint: did you mean 'qwen-7b'"));
  CHECK_THAT(bad_input([] { load(Kind::model, "Qwen/Qwen-7C-AWQ"); }),
             Contains("unknown model 'Qwen/Qwen-7C-AWQ'\n  hint: did you mean 'qwen-7b'") &&
                 Contains("of a model that is not built in give its config.json"));
  CHECK_THAT(bad_input([] { load(Kind::device, "rtx490"); }),
             Contains("unknown hardware 'rtx490'\n  hint: did you mean 'rtx4090'"));
  CHECK_THAT(bad_input([] { load(Kind::device, ""); }), Contains("unknown hardware ''"));
  CHECK_THAT(bad_input([] { load(Kind::model, std::string(100'000, 'q')); }), Contains("unknown model"));
}

TEST_CASE("models and hardware do not mix") {
  CHECK_THAT(bad_input([] { load(Kind::device, "qwen-7b"); }), Contains("unknown hardware 'qwen-7b'"));
}

TEST_CASE("a path is read from there, whatever the catalog holds") {
  const TemporaryFolder folder;
  const std::string path = folder.write("qwen-7b.yaml", "mine: 1\n");
  CHECK(load(Kind::model, path).root.entries[0].key == "mine");
  CHECK_THAT(bad_input([&] { load(Kind::model, folder.path("no.yaml")); }), Contains("cannot open"));
}

TEST_CASE("LLMPERF_PATH adds names and overrides embedded ones, first directory first") {
  const TemporaryFolder folder;
  folder.write("one/models/qwen-7b.yaml", "from: one\n");
  folder.write("two/models/qwen-7b.yaml", "from: two\n");
  folder.write("two/models/extra.yaml", "from: two\n");
  folder.write("two/models/notes.txt", "");
  folder.write("two/hardware/devices/box.yaml", "from: two\n");
  const SearchPath path(folder.path("missing") + "::" + folder.path("one") + ":" + folder.path("two"));
  const Document overridden = load(Kind::model, "qwen-7b");
  CHECK(overridden.root.entries[0].value.scalar == "one");
  CHECK(overridden.file == folder.path("one/models/qwen-7b.yaml"));
  CHECK(load(Kind::model, "extra").root.entries[0].value.scalar == "two");
  CHECK(load(Kind::device, "box").root.entries[0].value.scalar == "two");
  CHECK(knows(Kind::model, "extra"));
  CHECK(knows(Kind::device, "box"));
  CHECK_FALSE(knows(Kind::model, "box"));
  CHECK_FALSE(knows(Kind::model, "notes"));
  const std::vector<std::string> models = names(Kind::model);
  CHECK(std::count(models.begin(), models.end(), "qwen-7b") == 1);
}

TEST_CASE("a broken file on the search path is an error, not a reason to look further") {
  const TemporaryFolder folder;
  folder.write("models/qwen-7b.yaml", "a: 1\na: 2\n");
  const SearchPath path(folder.path(""));
  CHECK_THAT(bad_input([] { load(Kind::model, "qwen-7b"); }), Contains("duplicate key 'a'"));
}

TEST_CASE("a name at a hub says which model it is, and what of its weights the rest of it says", "[catalog]") {
  struct Case {
    const char* given;
    const char* model;
    const char* weights;
  };
  const Case cases[] = {
      {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B", ""},
      {"Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-8B", "awq"},
      {"Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B", "fp8-block128"},
      {"RedHatAI/Qwen3-8B-FP8-dynamic", "RedHatAI/Qwen3-8B", "fp8-channel"},
      {"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "RedHatAI/Meta-Llama-3.1-8B-Instruct", "w4a16"},
      {"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "gptq"},
      {"unsloth/Qwen3-8B-unsloth-bnb-4bit", "unsloth/Qwen3-8B", "nf4-double"},
      {"nvidia/DeepSeek-R1-0528-FP4", "nvidia/DeepSeek-R1-0528", "nvfp4"},
      {"mlx-community/Qwen3-8B-4bit", "mlx-community/Qwen3-8B", "mlx-q4"},
      {"lmstudio-community/Qwen3-8B-MLX-8bit", "lmstudio-community/Qwen3-8B", "mlx-q8"},
      {"unsloth/Qwen3-8B-GGUF", "unsloth/Qwen3-8B", "q4_k_m"},
      {"unsloth/Qwen3-8B-GGUF:Q5_K_M", "unsloth/Qwen3-8B", "q5_k_m"},
      {"someone/Qwen3-8B-IQ4_XS-GGUF", "someone/Qwen3-8B", "iq4_xs"},
      {"google/gemma-3-27b-it-qat-q4_0-gguf", "google/gemma-3-27b-it", "q4_0"},
      {"https://huggingface.co/Qwen/Qwen3-8B/tree/main", "Qwen/Qwen3-8B", ""},
      {"https://huggingface.co/Qwen/Qwen3-8B-AWQ?library=vllm", "Qwen/Qwen3-8B", "awq"},
      {"hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "unsloth/Qwen3-8B", "q4_k_m"},
      {"https://huggingface.co/unsloth/Qwen3-8B-GGUF/blob/main/Qwen3-8B-Q6_K.gguf", "unsloth/Qwen3-8B", "q6_k"},
      // Names that are known as they stand say all they say.
      {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", ""},
      // Of 4 bits nobody but MLX's publishers says no more.
      {"someone/Qwen3-8B-4bit", "someone/Qwen3-8B-4bit", ""},
  };
  for (const Case& c : cases) {
    INFO(c.given);
    CHECK(read_model_name(c.given).model == c.model);
    CHECK(read_model_name(c.given).weights == c.weights);
  }
  CHECK(load(Kind::model, "https://huggingface.co/Qwen/Qwen3-8B-AWQ/tree/main").file == "models/qwen3-8b.yaml");
}

TEST_CASE("a model is known whatever stands between the letters and digits of its name", "[catalog]") {
  for (const char* name : {"llama3.1-8b", "llama31 8b", "llama3.1:8b", "Llama-3_1-8B-Instruct"}) {
    INFO(name);
    CHECK(load(Kind::model, name).file == "models/llama-3.1-8b.yaml");
  }
  CHECK(load(Kind::model, "deepseek-ai/DeepSeek-V3.1").file == "models/deepseek-v3.yaml");
  CHECK(load(Kind::model, "Qwen/Qwen3-Coder-30B-A3B-Instruct").file == "models/qwen3-30b-a3b-2507.yaml");
  // Every model is still found by its own name, and by its id.
  for (const std::string& name : names(Kind::model)) {
    INFO(name);
    const Document found = load(Kind::model, name);
    CHECK(found.file == "models/" + name + ".yaml");
    for (const Node::Entry& entry : found.root.entries) {
      if (entry.key == "hf_id") CHECK(load(Kind::model, entry.value.scalar).file == found.file);
    }
  }
}

TEST_CASE("names that people type mean what is built in, in any case", "[catalog]") {
  using llmperf::descriptor::Kind;
  const auto found = [](Kind kind, const char* name) { return llmperf::descriptor::load(kind, name).file; };
  for (const char* name : {"llama-3.3-70b", "Llama-3.3-70B", "LLAMA 3.3 70b", "meta-llama/Llama-3.3-70B-Instruct",
                           "someone/Llama-3.3-70B-Instruct-hf"}) {
    INFO(name);
    CHECK(found(Kind::model, name) == "models/llama-3.3-70b.yaml");
  }
  CHECK(found(Kind::model, "mistralai/Mistral-7B-Instruct-v0.3") == "models/mistral-7b-v0.3.yaml");
  CHECK(found(Kind::model, "meta-llama/Meta-Llama-3-8B-Instruct") == "models/llama-3-8b.yaml");
  CHECK(found(Kind::model, "google/gemma-2-9b-it") == "models/gemma-2-9b.yaml");
  CHECK(found(Kind::model, "microsoft/Phi-3-mini-4k-instruct") == "models/phi-3-mini.yaml");
  for (const char* name : {"4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "rtx-4090"}) {
    INFO(name);
    CHECK(found(Kind::device, name) == "hardware/devices/rtx4090.yaml");
  }
  const std::pair<const char*, const char*> devices[] = {{"3090", "rtx3090"},
                                                         {"RTX 3090", "rtx3090"},
                                                         {"rtx_3090 24GB", "rtx3090"},
                                                         {"3090 Ti", "rtx3090ti"},
                                                         {"4060ti", "rtx4060ti-16gb"},
                                                         {"rtx 4060 ti 16gb", "rtx4060ti-16gb"},
                                                         {"NVIDIA GeForce RTX 4070 Ti SUPER", "rtx4070tisuper"},
                                                         {"RTX 6000 Ada", "rtx6000ada"},
                                                         {"Tesla P40", "p40"},
                                                         {"dgx-spark", "gb10"},
                                                         {"orin", "jetson-agx-orin"},
                                                         {"Jetson Thor", "jetson-agx-thor"},
                                                         {"m2 ultra", "apple-m2-ultra"},
                                                         {"m4", "apple-m4"},
                                                         {"m4-max", "apple-m4-max"},
                                                         {"Apple M2 Max", "apple-m2-max"},
                                                         {"M2 Max 96GB", "apple-m2-max"},
                                                         {"ryzen ai max+ 395", "strix-halo"},
                                                         {"Radeon RX 7900 XTX", "rx7900xtx"},
                                                         {"7900xtx", "rx7900xtx"},
                                                         {"mi50", "mi50-32gb"},
                                                         {"a770", "arc-a770-16gb"},
                                                         {"Intel Arc B580", "arc-b580"},
                                                         {"13900k", "core-i9-13900k"},
                                                         {"i9-13900K", "core-i9-13900k"},
                                                         {"9950x", "ryzen-9950x"},
                                                         {"Ryzen 9 9950X", "ryzen-9950x"},
                                                         {"8480+", "xeon-8480plus"},
                                                         {"rpi5", "raspberry-pi-5"}};
  for (const auto& [name, device] : devices) {
    INFO(name);
    CHECK(found(Kind::device, name) == fmt::format("hardware/devices/{}.yaml", device));
  }
  CHECK(found(Kind::device, "h100") == "hardware/devices/h100-sxm.yaml");
  CHECK(found(Kind::device, "H100 PCIe") == "hardware/devices/h100-pcie.yaml");
  CHECK(found(Kind::device, "A100 80GB") == "hardware/devices/a100-sxm-80gb.yaml");
  CHECK(found(Kind::device, "B200") == "hardware/devices/b200-sxm.yaml");
  const auto refused = [&](Kind kind, const char* name) -> std::string {
    try {
      found(kind, name);
    } catch (const llmperf::Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refused(Kind::device, "a100").find("'a100' may be more than one hardware") == 0);
  CHECK(refused(Kind::device, "a100").find("a100-pcie-80gb, a100-sxm-40gb, a100-sxm-80gb") != std::string::npos);
  CHECK(refused(Kind::device, "rtx409").find("unknown hardware 'rtx409'") == 0);
  // Another card than that with 10 GiB.
  CHECK(refused(Kind::device, "RTX 3080 12GB").find("did you mean 'rtx3080'") != std::string::npos);
  CHECK(refused(Kind::device, "7900xtz").find("'rx7900xtx'") != std::string::npos);
  for (const char* name : {"rtx", "24GB"}) CHECK(refused(Kind::device, name).find("unknown hardware") == 0);
  CHECK(refused(Kind::device, "gpu").find("unknown hardware") == 0);
  CHECK(refused(Kind::model, "qwen-7c").find("unknown model 'qwen-7c'") == 0);
  CHECK_FALSE(llmperf::descriptor::is_path("Qwen/Qwen2.5-7B-Instruct"));
  CHECK_FALSE(llmperf::descriptor::is_path("Qwen/no-such-model"));
  CHECK(llmperf::descriptor::is_path("./qwen-7b"));
}

}  // namespace llmperf::catalog_test
