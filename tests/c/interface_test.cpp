// The C interface as a C program sees it: what is answered, what is refused, and that nothing crosses it but values.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "llmperf.h"

namespace {

using Json = nlohmann::json;
using Session = std::unique_ptr<llmperf_session, decltype(&llmperf_close)>;
using Result = std::unique_ptr<llmperf_result, decltype(&llmperf_free)>;
using Question = llmperf_result*(llmperf_session*, const char*, size_t);

Session open() { return {llmperf_open(), llmperf_close}; }

Result ask(Question* question, const Session& session, const std::string& request) {
  Result result(question(session.get(), request.data(), request.size()), llmperf_free);
  REQUIRE(result != nullptr);
  return result;
}

std::string json_of(const Result& result) {
  size_t size = 0;
  const char* text = llmperf_json(result.get(), &size);
  CHECK(std::strlen(text) == size);
  return {text, size};
}

Json error_of(const Result& result) { return Json::parse(llmperf_error(result.get(), nullptr)); }

// The numbers of an estimate by the names of their columns.
std::map<std::string, double> numbers_of(const Result& result) {
  size_t count = 0;
  const double* numbers = llmperf_numbers(result.get(), &count);
  REQUIRE(count == llmperf_columns(result.get()));
  std::map<std::string, double> all;
  for (size_t i = 0; i < count; ++i) all[llmperf_column(result.get(), i).name] = numbers[i];
  return all;
}

constexpr const char* kSmall = R"({"model": "qwen-7b", "hw": "rtx4090"})";

}  // namespace

TEST_CASE("an estimate has a document, and the same numbers as columns") {
  const Session session = open();
  const Result result = ask(llmperf_estimate, session, R"({"model": "qwen-7b", "hw": "rtx4090", "batch": 2})");
  CHECK(llmperf_status(result.get()) == 0);
  CHECK(std::string(llmperf_error(result.get(), nullptr)).empty());
  const Json document = Json::parse(json_of(result));
  CHECK(document["schema"] == "llmperf.estimate");
  CHECK(document["request"] == Json({{"model", "qwen-7b"}, {"hw", "rtx4090"}, {"batch", 2}}));
  const auto numbers = numbers_of(result);
  CHECK(numbers.at("ttft_s") == document["ttft_s"].get<double>());
  CHECK(numbers.at("batch") == 2);
  CHECK(std::isnan(numbers.at("model")));  // a text
  CHECK(llmperf_rows(result.get()) == 1);
  CHECK(llmperf_column(result.get(), llmperf_columns(result.get())).name == nullptr);
}

TEST_CASE("what does not fit has a document and says why") {
  const Session session = open();
  const Result result = ask(llmperf_estimate, session, R"({"model": "llama-3-70b", "hw": "rtx4090"})");
  CHECK(llmperf_status(result.get()) == 3);
  CHECK(Json::parse(json_of(result))["fits"] == false);
  const Json error = error_of(result);
  CHECK(error["status"] == 3);
  CHECK(error["errors"][0]["message"].get<std::string>().find("does not fit") != std::string::npos);
  CHECK(error["errors"][0]["hint"].get<std::string>().find("tp") != std::string::npos);
}

TEST_CASE("a description stands in place of a name, and is not remembered") {
  const Session session = open();
  const Json config = {{"model_type", "llama"},     {"hidden_size", 1024},
                       {"intermediate_size", 2816}, {"num_hidden_layers", 24},
                       {"num_attention_heads", 16}, {"num_key_value_heads", 4},
                       {"vocab_size", 32000},       {"rms_norm_eps", 1e-5},
                       {"hidden_act", "silu"},      {"max_position_embeddings", 4096}};
  Json request = {{"model", config}, {"hw", "rtx4090"}};
  const Json first = Json::parse(json_of(ask(llmperf_estimate, session, request.dump())));
  request["model"]["num_hidden_layers"] = 48;
  const Json second = Json::parse(json_of(ask(llmperf_estimate, session, request.dump())));
  CHECK(second["ttft_s"].get<double>() > first["ttft_s"].get<double>() * 1.5);
  // The request of a document is a request again.
  const Json again = Json::parse(json_of(ask(llmperf_estimate, session, second["request"].dump())));
  CHECK(again["ttft_s"] == second["ttft_s"]);
}

TEST_CASE("all that is wrong with a request is told at once, with positions and the nearest names") {
  const Session session = open();
  const Result result =
      ask(llmperf_estimate, session, "{\"modle\": \"qwen-7b\",\n \"batch\": 0, \"hw\": [\"rtx4090\"]}");
  CHECK(llmperf_status(result.get()) == 2);
  const Json errors = error_of(result)["errors"];
  REQUIRE(errors.size() == 3);
  CHECK(errors[0]["message"] == "unknown key 'modle' in a request");
  CHECK(errors[0]["hint"].get<std::string>().find("model") != std::string::npos);
  CHECK(errors[1]["line"] == 2);
  CHECK(errors[1]["message"] == "`batch`: '0' is not a whole number between 1 and 1000000");
  CHECK(json_of(result) == llmperf_error(result.get(), nullptr));
}

TEST_CASE("a device that is a number is no count of devices") {
  const Session session = open();
  const Result result = ask(llmperf_estimate, session, R"({"model": "qwen-7b", "hw": "0"})");
  CHECK(llmperf_status(result.get()) == 2);
  CHECK(error_of(result)["errors"][0]["message"] == "unknown hardware '0'");
}

TEST_CASE("whatever a request is, there is an answer") {
  const Session session = open();
  const std::string deep(100'000, '[');
  std::string large = R"({"model": ")";
  large.append(100'000'000, 'a');
  large += "\"}";
  const std::string hostile[] = {"",
                                 "{",
                                 "null",
                                 "[]",
                                 "{\"model\": null}",
                                 deep,
                                 "{\"\xff\"",
                                 large,
                                 std::string(1, '\0'),
                                 "{\"model\": {\"a\": " + deep + "}}",
                                 R"({"model": "qwen-7b", "model": "qwen-7b"})",
                                 R"({"batch": 1e999})"};
  for (Question* question : {llmperf_estimate, llmperf_explain, llmperf_sweep, llmperf_serve, llmperf_capacity,
                             llmperf_validate, llmperf_calibrate, llmperf_catalog}) {
    for (const std::string& request : hostile) {
      const Result result = ask(question, session, request);
      CHECK(llmperf_status(result.get()) == 2);
      CHECK(error_of(result)["errors"].size() >= 1);
    }
    CHECK(llmperf_status(Result(question(session.get(), nullptr, 0), llmperf_free).get()) == 2);
  }
  CHECK(llmperf_status(Result(llmperf_estimate(nullptr, kSmall, std::strlen(kSmall)), llmperf_free).get()) == 2);
  llmperf_free(nullptr);
  llmperf_close(nullptr);
  llmperf_interrupt(nullptr);
  CHECK(std::string(llmperf_json(nullptr, nullptr)).empty());
}

TEST_CASE("a sweep has a row for each combination, chosen and ranked as the command does it") {
  const Session session = open();
  const Result all =
      ask(llmperf_sweep, session,
          R"({"model": "qwen-7b", "hw": ["rtx4090", "h100-sxm"], "batch": "1-8*2", "weights": ["bf16", "fp8"]})");
  CHECK(llmperf_status(all.get()) == 0);
  CHECK(llmperf_rows(all.get()) == 16);
  const Json document = Json::parse(json_of(all));
  CHECK(document["rows"].size() == 16);
  for (size_t i = 0; i < llmperf_columns(all.get()); ++i) {
    const llmperf_column_data column = llmperf_column(all.get(), i);
    for (size_t r = 0; r < 16; ++r) {
      const Json& cell = document["rows"][r][column.name];
      if (column.kind == LLMPERF_TEXTS) {
        const std::string text(column.text + column.offsets[r], column.text + column.offsets[r + 1]);
        CHECK((cell.is_null() ? "" : cell.is_string() ? cell.get<std::string>() : cell.dump()) == text);
      } else if (cell.is_null()) {
        CHECK(std::isnan(column.numbers[r]));
      } else {
        CHECK(column.numbers[r] == (cell.is_boolean() ? cell.get<bool>() : cell.get<double>()));
      }
    }
  }
  const Result best =
      ask(llmperf_sweep, session,
          R"({"model": "qwen-7b", "hw": "rtx4090", "batch": [1, 2, 4, 8], "where": "batch < 8", "top": 1,
                              "by": "tokens_per_second", "columns": ["batch", "tokens_per_second"]})");
  REQUIRE(llmperf_columns(best.get()) == 2);
  REQUIRE(llmperf_rows(best.get()) == 1);
  CHECK(llmperf_column(best.get(), 0).numbers[0] == 4);
}

TEST_CASE("a sweep's rows do not depend on the number of threads") {
  const Session session = open();
  const std::string start =
      R"({"model": ["qwen-7b", "llama-3.1-8b"], "hw": "rtx4090", "batch": "1-64*2", "prompt": [128, 1024])";
  const Result one = ask(llmperf_sweep, session, start + R"(, "threads": 1})");
  const Result four = ask(llmperf_sweep, session, start + R"(, "threads": 4})");
  CHECK(json_of(one) == json_of(four));
}

TEST_CASE("ten thousand calls of eight threads on one session give one answer each, the same for the same request") {
  const Session session = open();
  const std::string requests[] = {kSmall, R"({"model": "qwen-7b", "hw": "rtx4090", "batch": 8})",
                                  R"({"model": "llama-3.1-8b", "hw": "h100-sxm", "weights": "fp8"})",
                                  R"({"model": "no-such-model", "hw": "rtx4090"})"};
  std::vector<double> expected;
  for (const std::string& request : requests) {
    const Result result = ask(llmperf_estimate, session, request);
    const double* numbers = llmperf_numbers(result.get(), nullptr);
    size_t at = 0;
    while (numbers != nullptr && std::strcmp(llmperf_column(result.get(), at).name, "ttft_s") != 0) ++at;
    expected.push_back(numbers == nullptr ? -1 : numbers[at]);
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1250; ++i) {
        const auto which = static_cast<std::size_t>(t + i) % std::size(requests);
        llmperf_result* result = llmperf_estimate(session.get(), requests[which].data(), requests[which].size());
        const double* numbers = llmperf_numbers(result, nullptr);
        if (expected[which] < 0) {
          if (numbers != nullptr || llmperf_status(result) != 2) ++wrong;
        } else {
          size_t at = 0;
          while (std::strcmp(llmperf_column(result, at).name, "ttft_s") != 0) ++at;
          if (numbers[at] != expected[which]) ++wrong;
        }
        llmperf_free(result);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("what takes long ends when it is interrupted") {
  const Session session = open();
  const std::string request = R"({"model": "qwen-7b", "hw": "rtx4090", "batch": "1-4096+1", "prompt": "1-4096+1"})";
  llmperf_result* result = nullptr;
  std::atomic<bool> done = false;
  std::thread sweep([&] {
    result = llmperf_sweep(session.get(), request.data(), request.size());
    done = true;
  });
  while (!done) {  // whenever it has begun
    llmperf_interrupt(session.get());
    std::this_thread::yield();
  }
  sweep.join();
  CHECK(llmperf_status(result) == 130);
  llmperf_free(result);
}

TEST_CASE("traffic and capacity are answered, and missed bounds have their status") {
  const Session session = open();
  const Result served =
      ask(llmperf_serve, session,
          R"({"model": "qwen-7b", "hw": "rtx4090", "rate": 1, "requests": 20, "slo": "ttft.p99=1us"})");
  CHECK(llmperf_status(served.get()) == 4);
  CHECK(Json::parse(json_of(served))["schema"] == "llmperf.serve");
  const Result found = ask(
      llmperf_capacity, session,
      R"({"model": "qwen-7b", "hw": ["rtx4090"], "tp": [1], "weights": ["bf16"], "rate": 1, "slo": "ttft.p99=5s"})");
  CHECK(llmperf_status(found.get()) == 0);
  CHECK(Json::parse(json_of(found))["candidates"].size() == 1);
}

TEST_CASE("the catalogue names what there is and what a request may have") {
  const Session session = open();
  for (const auto& [kind, schema] : std::map<std::string, std::string>{{"models", "llmperf.models"},
                                                                       {"hardware", "llmperf.hardware_list"},
                                                                       {"runtimes", "llmperf.runtime_list"},
                                                                       {"measurements", "llmperf.measurement_list"},
                                                                       {"scenarios", "llmperf.studies"}}) {
    CHECK(Json::parse(json_of(ask(llmperf_catalog, session, Json({{"kind", kind}}).dump())))["schema"] == schema);
  }
  const Json fields = Json::parse(json_of(ask(llmperf_catalog, session, R"({"kind": "fields"})")))["fields"];
  const auto batch = std::find_if(fields.begin(), fields.end(), [](const Json& f) { return f["name"] == "batch"; });
  REQUIRE(batch != fields.end());
  CHECK((*batch)["type"] == "count");
  CHECK((*batch)["default"] == "1");
  CHECK((*batch)["least"] == 1);
  const Result model = ask(llmperf_catalog, session, R"({"kind": "model", "name": "qwen-7b", "weights": "q4_k_m"})");
  CHECK(Json::parse(json_of(model))["schema"] == "llmperf.model");
  CHECK(llmperf_status(ask(llmperf_catalog, session, R"({"kind": "model"})").get()) == 2);
}

TEST_CASE("a calibration gives the profile as YAML, a validation the errors") {
  const Session session = open();
  const Result validated = ask(llmperf_validate, session, R"({"measurements": ["atlas-800i-a2-llama-2-70b"]})");
  CHECK(llmperf_status(validated.get()) == 0);
  CHECK(Json::parse(json_of(validated))["summary"]["mape"].get<double>() > 0);
  CHECK(llmperf_status(ask(llmperf_validate, session, R"({"measurements": "rtx4090-serving", "batch": 1})").get()) ==
        2);
}
