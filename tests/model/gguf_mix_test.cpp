#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "model/gguf/tensors.h"
#include "model/parameters.h"
#include "model_files.h"

namespace llmperf::gguf_mix_test {

using namespace llmperf::model;
using Catch::Matchers::Contains;

namespace {

std::vector<GgufTensor> quantised(const std::string& model, const std::string& type, const std::string& era) {
  const GgufFileType* found = find_gguf_file_type(type);
  REQUIRE(found != nullptr);
  return quantised_tensors(load_decoder(model), *found, parse_gguf_era(era));
}

double elements(const std::vector<GgufTensor>& tensors) {
  double sum = 0;
  for (const GgufTensor& tensor : tensors) sum += static_cast<double>(tensor.elements());
  return sum;
}

double bits_per_weight(const std::vector<GgufTensor>& tensors) {
  return 8 * tensor_bytes(tensors).value / elements(tensors);
}

GgmlType type_of(const std::vector<GgufTensor>& tensors, const std::string& name) {
  for (const GgufTensor& tensor : tensors) {
    if (tensor.name() == name) return tensor.type;
  }
  FAIL("no tensor " << name);
  return GgmlType::f32;
}

std::map<std::string, int> count_types(const std::vector<GgufTensor>& tensors) {
  std::map<std::string, int> counts;
  for (const GgufTensor& tensor : tensors) ++counts[std::string(info(tensor.type).name)];
  return counts;
}

// Calls check(model, column, cell) for every cell of a table under data/ whose header names the columns.
template <class Check>
void each_cell(const std::string& file, Check check) {
  std::ifstream in(fixture("data/" + file));
  std::vector<std::string> columns;
  int cells = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string_view> row = split(line, ',');
    if (columns.empty()) {
      columns.assign(row.begin(), row.end());
      continue;
    }
    REQUIRE(row.size() == columns.size());
    for (std::size_t i = 1; i < row.size(); ++i, ++cells) {
      INFO(file << ": " << row[0] << ", " << columns[i] << ": " << row[i]);
      check(std::string(row[0]), columns[i], std::string(row[i]));
    }
  }
  REQUIRE(cells >= 24);
}

}  // namespace

TEST_CASE("bits per weight of every published Qwen1.5 file are met to two decimals") {
  each_cell("qwen15_gguf_bpw.csv", [](const std::string& model, const std::string& type, const std::string& cell) {
    CHECK(fmt::format("{:.2f}", bits_per_weight(quantised(model, type, "2024-02"))) == cell);
  });
}

TEST_CASE("sizes of every published Qwen1.5 file are met within 0.3 %, or to every digit where there are too few") {
  each_cell("qwen15_gguf_file_size.csv", [](const std::string& model, const std::string& type,
                                            const std::string& cell) {
    if (type == "bf16_theory") return;
    const double unit = cell.find("MB") != std::string::npos ? 1e6 : 1e9;
    const double printed = std::stod(cell) * unit;
    const double computed =
        file_bytes(quantised(model, type, "2024-02"), estimated_metadata_bytes(load_decoder(model))).value;
    const std::string number = cell.substr(0, cell.find_first_not_of("0123456789."));
    const std::size_t point = number.find('.');
    const std::size_t decimals = point == std::string::npos ? 0 : number.size() - point - 1;
    INFO("computed " << computed << ", off by " << (computed / printed - 1) * 100 << " %");
    CHECK((std::abs(computed / printed - 1) <= 0.003 || fmt::format("{:.{}f}", computed / unit, decimals) == number));
  });
}

TEST_CASE("weights on the GPU, all but the token embedding, are those llama.cpp printed within 1 %") {
  each_cell("qwen15_rtx4090_cuda_buffer.csv", [](const std::string& model, const std::string& type, std::string cell) {
    if (type == "bf16_file" || cell == "oom") return;
    const std::vector<GgufTensor> tensors = quantised(model, type, "2024-02");
    REQUIRE(tensors.front().name() == "token_embd.weight");
    const double on_device = (tensor_bytes(tensors) - tensors.front().bytes()).value / kGiB;
    INFO("computed " << on_device);
    CHECK(std::abs(on_device / std::stod(cell) - 1) <= 0.01);
  });
}

TEST_CASE("bytes of Qwen1.5 files are met exactly") {
  CHECK(tensor_bytes(quantised("qwen1.5-7b", "q4_k_m", "2024-02")).value == 4761153536.0);
  CHECK(tensor_bytes(quantised("qwen1.5-7b", "q4_0", "2024-02")).value == 4505956352.0);
  CHECK(tensor_bytes(quantised("qwen1.5-0.5b", "q2_k", "2024-02")).value == 292467712.0);
  CHECK(tensor_bytes(quantised("qwen1.5-14b", "q6_k", "2024-02")).value == 12304199680.0);
  CHECK(tensor_bytes(quantised("qwen1.5-72b", "q4_k_m", "2024-02")).value == 44098191360.0);
}

TEST_CASE("bits per weight in llama.cpp's own documentation are met to every digit") {
  const auto rows = read_rows(fixture("data/llama_bits_per_weight.csv"));
  REQUIRE(rows.size() == 45);
  for (const auto& row : rows) {
    INFO(row[0] << " " << row[1]);
    const std::size_t decimals = row[3].size() - row[3].find('.') - 1;
    CHECK(fmt::format("{:.{}f}", bits_per_weight(quantised(row[0], row[1], row[2])), decimals) == row[3]);
  }
}

TEST_CASE("model sizes that llama.cpp prints are met to two decimals") {
  const auto rows = read_rows(fixture("data/gguf_model_sizes.csv"));
  REQUIRE(rows.size() == 15);
  for (const auto& row : rows) {
    INFO(row[0] << " " << row[1]);
    const std::vector<GgufTensor> tensors = quantised(row[0], row[1], row[2]);
    CHECK(fmt::format("{:.2f}", tensor_bytes(tensors).value / kGiB) == row[3]);
    CHECK(fmt::format("{:.2f}", elements(tensors) / 1e9) == row[4]);
  }
}

TEST_CASE("as many tensors have each type as llama.cpp's loader counts") {
  const auto rows = read_rows(fixture("data/gguf_type_counts.csv"));
  REQUIRE(rows.size() == 8);
  for (const auto& row : rows) {
    INFO(row[0] << " " << row[1]);
    std::map<std::string, int> expected;
    for (const std::string_view item : split(row[3], ' ')) {
      const std::vector<std::string_view> parts = split(item, ':');
      expected[std::string(parts[0])] = std::stoi(std::string(parts[1]));
    }
    CHECK(count_types(quantised(row[0], row[1], row[2])) == expected);
  }
}

TEST_CASE("Q4_K_M gives more bits to v and down in the first and last eighth of the layers and every third between") {
  // 32 layers: 0 to 3, then 6, 9, … 27, then 28 to 31.
  const std::vector<GgufTensor> tensors = quantised("llama-2-7b", "q4_k_m", "2024");
  for (int layer = 0; layer < 32; ++layer) {
    const bool more = layer < 4 || layer >= 28 || layer % 3 == 0;
    INFO(layer);
    CHECK(type_of(tensors, fmt::format("blk.{}.attn_v.weight", layer)) == (more ? GgmlType::q6_k : GgmlType::q4_k));
    CHECK(type_of(tensors, fmt::format("blk.{}.ffn_down.weight", layer)) == (more ? GgmlType::q6_k : GgmlType::q4_k));
    CHECK(type_of(tensors, fmt::format("blk.{}.ffn_up.weight", layer)) == GgmlType::q4_k);
  }
  CHECK(type_of(tensors, "output.weight") == GgmlType::q6_k);
  CHECK(type_of(tensors, "token_embd.weight") == GgmlType::q4_k);
}

TEST_CASE("models that the loader takes for a 70B get Q5_K where v would be Q4_K or less") {
  const auto v = [](const char* model) {
    return type_of(quantised(model, "q4_k_m", "2024"), "blk.11.attn_v.weight");  // no layer for more bits
  };
  CHECK(v("llama-2-70b") == GgmlType::q5_k);
  CHECK(v("qwen1.5-72b") == GgmlType::q5_k);   // without grouped heads
  CHECK(v("qwen1.5-110b") == GgmlType::q5_k);  // 80 layers
  CHECK(v("llama-65b") == GgmlType::q4_k);     // 80 layers, but every head has its own keys
  CHECK(v("llama-2-13b") == GgmlType::q4_k);
}

TEST_CASE("models with eight experts keep keys and values at Q8_0 and attention's output at Q5_K") {
  const std::vector<GgufTensor> tensors = quantised("mixtral-8x7b", "q4_k_m", "2024");
  CHECK(type_of(tensors, "blk.5.attn_k.weight") == GgmlType::q8_0);
  CHECK(type_of(tensors, "blk.5.attn_v.weight") == GgmlType::q8_0);
  CHECK(type_of(tensors, "blk.5.attn_output.weight") == GgmlType::q5_k);
  CHECK(type_of(tensors, "blk.5.attn_q.weight") == GgmlType::q4_k);
  CHECK(type_of(tensors, "blk.0.ffn_down_exps.weight") == GgmlType::q6_k);
  CHECK(type_of(tensors, "blk.5.ffn_gate_inp.weight") == GgmlType::f32);
  CHECK(type_of(quantised("mixtral-8x7b", "q4_k_m", "2024-02"), "blk.5.ffn_gate_inp.weight") == GgmlType::f16);
}

TEST_CASE("down matrices of mixtures count by layer, and one by one in the low-bit types") {
  // 24 layers of routed and shared experts. Q4_K_S: Q5_K in the first eighth, three layers.
  const std::vector<GgufTensor> small = quantised("qwen1.5-moe-a2.7b", "q4_k_s", "2024");
  CHECK(type_of(small, "blk.2.ffn_down_shexp.weight") == GgmlType::q5_k);
  CHECK(type_of(small, "blk.3.ffn_down_shexp.weight") == GgmlType::q4_k);
  // Rows of the routed experts have 1408 = 5.5 * 256 elements.
  CHECK(type_of(small, "blk.2.ffn_down_exps.weight") == GgmlType::q5_1);
  CHECK(type_of(small, "blk.3.ffn_down_exps.weight") == GgmlType::q5_0);
  // IQ2_XS: the first three matrices are Q2_K, which ends within layer 1.
  const std::vector<GgufTensor> low = quantised("qwen1.5-moe-a2.7b", "iq2_xs", "2024");
  CHECK(type_of(low, "blk.0.ffn_down_shexp.weight") == GgmlType::q2_k);
  CHECK(type_of(low, "blk.1.ffn_down_shexp.weight") == GgmlType::iq2_xs);
  CHECK(type_of(low, "blk.5.attn_v.weight") == GgmlType::q4_k);  // 60 experts are four or more
}

TEST_CASE("rows that are no multiple of 256 take the replacement of their era") {
  // ffn_down of Qwen1.5-14B has 13696 = 53.5 * 256 columns.
  const std::string down = "blk.20.ffn_down.weight";
  const std::vector<std::vector<std::string>> expected = {
      {"q2_k", "Q4_1", "IQ4_NL", "IQ4_NL", "Q4_0"},  // wanted: Q3_K
      {"q3_k_s", "Q4_1", "IQ4_NL", "IQ4_NL", "Q4_0"}, {"q4_k_s", "Q5_0", "Q5_0", "Q5_0", "Q5_0"},
      {"q5_k_s", "Q5_1", "Q5_1", "Q5_1", "Q5_1"},     {"q6_k", "Q8_0", "Q8_0", "Q8_0", "Q8_0"},
      {"q2_k_s", "Q4_0", "IQ4_NL", "IQ4_NL", "Q4_0"}};
  for (const auto& row : expected) {
    for (std::size_t era = 0; era < gguf_eras().size(); ++era) {
      const std::string when(name(gguf_eras()[era]));
      INFO(row[0] << " in " << when);
      CHECK(info(type_of(quantised("qwen1.5-14b", row[0], when), down)).name == row[era + 1]);
    }
  }
  for (const char* type : {"iq1_s", "iq2_xxs", "iq3_s", "iq4_xs"}) {
    CHECK(type_of(quantised("qwen1.5-14b", type, "2026"), down) == GgmlType::iq4_nl);
  }
  CHECK(type_of(quantised("qwen1.5-14b", "tq2_0", "2025"), down) == GgmlType::q4_0);
}

TEST_CASE("fused query, key and value matrices have rules of their own, and follow those of v since 2026") {
  const auto qkv = [](const char* type, const char* era, int layer) {
    return type_of(quantised("phi-3-mini", type, era), fmt::format("blk.{}.attn_qkv.weight", layer));
  };
  for (const char* era : {"2024", "2025"}) {
    CHECK(qkv("q4_k_m", era, 0) == GgmlType::q5_k);
    CHECK(qkv("q4_k_m", era, 5) == GgmlType::q5_k);
    CHECK(qkv("q2_k", era, 5) == GgmlType::q2_k);
  }
  CHECK(qkv("q4_k_m", "2026", 0) == GgmlType::q6_k);
  CHECK(qkv("q4_k_m", "2026", 5) == GgmlType::q4_k);
  CHECK(qkv("q2_k", "2026", 5) == GgmlType::q3_k);
}

TEST_CASE("the embedding of a tied model is stored like an output matrix, but not before 2024-02-19") {
  CHECK(type_of(quantised("gemma-2b", "q4_k_m", "2024"), "token_embd.weight") == GgmlType::q6_k);
  CHECK(type_of(quantised("gemma-2b", "iq2_xs", "2024"), "token_embd.weight") == GgmlType::q5_k);
  CHECK(type_of(quantised("gemma-2b", "q4_k_m", "2024-02"), "token_embd.weight") == GgmlType::q4_k);
  CHECK(type_of(quantised("llama-3-8b", "q4_k_m", "2024"), "token_embd.weight") == GgmlType::q4_k);
}

TEST_CASE("the split matrices of latent attention replace kv_b since 2025") {
  const std::vector<GgufTensor> before = quantised("deepseek-v2-lite", "q4_k_m", "2024");
  CHECK(type_of(before, "blk.3.attn_kv_b.weight") == GgmlType::q4_k);
  const std::vector<GgufTensor> since = quantised("deepseek-v2-lite", "q4_k_m", "2025");
  CHECK(type_of(since, "blk.3.attn_k_b.weight") == GgmlType::q5_0);  // rows of 128 elements
  CHECK(type_of(since, "blk.3.attn_v_b.weight") == GgmlType::q4_k);  // rows of 512
  CHECK(elements(before) == elements(since));
}

TEST_CASE("MXFP4_MOE stores experts in MXFP4 and every other matrix in Q8_0") {
  for (const GgufTensor& tensor : quantised("qwen3-30b-a3b", "mxfp4_moe", "2025")) {
    if (tensor.type == GgmlType::f32) continue;
    INFO(tensor.name());
    CHECK(tensor.type == (tensor.count == 128 ? GgmlType::mxfp4 : GgmlType::q8_0));
  }
}

TEST_CASE("an importance matrix changes the first eighth of down matrices in Q4_0 and IQ4_XS files") {
  const Decoder model = load_decoder("llama-2-7b");
  GgufFileType type = *find_gguf_file_type("q4_0");
  CHECK(type_of(quantised_tensors(model, type, GgufEra::v2024), "blk.3.ffn_down.weight") == GgmlType::q4_0);
  type.imatrix = true;
  CHECK(type_of(quantised_tensors(model, type, GgufEra::v2024), "blk.3.ffn_down.weight") == GgmlType::q4_1);
  CHECK(type_of(quantised_tensors(model, type, GgufEra::v2024), "blk.4.ffn_down.weight") == GgmlType::q4_0);
  type = *find_gguf_file_type("iq4_xs");
  CHECK(type_of(quantised_tensors(model, type, GgufEra::v2024), "blk.3.ffn_down.weight") == GgmlType::q5_k);
  type.imatrix = true;
  CHECK(type_of(quantised_tensors(model, type, GgufEra::v2024), "blk.3.ffn_down.weight") == GgmlType::iq4_xs);
}

TEST_CASE("every file type has an id of its own, is found in either case, and narrows from first to last") {
  double previous = 32.01;
  for (const GgufFileType& type : gguf_file_types()) {
    INFO(type.name);
    CHECK(std::ranges::count(gguf_file_types(), type.id, &GgufFileType::id) == 1);
    CHECK(find_gguf_file_type(type.name) == &type);
    if (type.id == GgufFtype::mxfp4_moe) continue;  // a dense model has nothing to put in MXFP4
    const double bits = bits_per_weight(quantised("llama-3-8b", std::string(type.name), "2026"));
    CHECK(bits <= previous);
    previous = bits;
  }
  CHECK(gguf_file_types().size() == 33);
  CHECK(find_gguf_file_type("Q4_K_M") == find_gguf_file_type("q4_k_m"));
  for (const char* typed : {"q4km", "Q4-K-M", "q4_KM"}) CHECK(find_gguf_file_type(typed)->name == "q4_k_m");
  CHECK(find_gguf_file_type("q4_k_x") == nullptr);
}

TEST_CASE(
    "models of every shape can be stored as every file type, in rows of whole blocks and without losing an element") {
  for (const char* model : {"qwen2-0.5b", "deepseek-v2-lite", "gpt-oss-20b", "phi-2", "glm-4-9b", "gemma-2-9b"}) {
    for (const GgufFileType& type : gguf_file_types()) {
      INFO(model << " " << type.name);
      const double count = elements(quantised(model, "f16", "2026"));
      const std::vector<GgufTensor> tensors = quantised(model, std::string(type.name), "2026");
      CHECK(elements(tensors) == count);
      for (const GgufTensor& tensor : tensors) CHECK(tensor.k % info(tensor.type).block == 0);
    }
  }
}

TEST_CASE("an era that lacks a file type, and an unknown era, are errors that name the known ones") {
  CHECK_THROWS_WITH(quantised("qwen1.5-7b", "iq4_xs", "2024-02"), Contains("iq4_xs") && Contains("2024, 2025, 2026"));
  CHECK_THROWS_WITH(quantised("qwen3-30b-a3b", "mxfp4_moe", "2024"), Contains("2025, 2026"));
  CHECK_THROWS_WITH(parse_gguf_era("2023"), Contains("2024-02, 2024, 2025, 2026"));
}

TEST_CASE("rows that are no multiple of 32 cannot be stored in blocks of 32 and are kept in 16 bits by the others") {
  Decoder model = load_decoder("llama-2-7b");
  model.kinds[0].feed_forward.intermediate = 11000;  // 343.75 * 32
  const auto down = [&](const char* type) {
    return type_of(quantised_tensors(model, *find_gguf_file_type(type), GgufEra::v2025), "blk.9.ffn_down.weight");
  };
  CHECK(down("q4_k_s") == GgmlType::f16);
  CHECK_THROWS_WITH(down("q8_0"), Contains("11000"));
}

}  // namespace llmperf::gguf_mix_test
