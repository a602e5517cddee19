// What another machine is asked to time: every op once, what the profile doubts most first, and steps by the rows'
// numbers.
#include "replay/emit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "catch.h"
#include "measure/advice.h"

namespace llmperf::replay::emit_test {
namespace {

using measure::OpRow;
using measure::Row;

OpRow gemm(std::int64_t m) { return measure::row_of(Dtype::bf16, measure::GemmShape{m, 4096, 4096, 1, {}}); }
OpRow norm(std::int64_t m) {
  return measure::row_of(Dtype::bf16, measure::VectorShape{.layer = "rms_norm", .tokens = m, .width = 4096});
}
const hardware::Device& device() {
  static const hardware::Device card = hardware::load_device("h100-sxm");
  return card;
}
const hardware::RuntimeProfile& profile() {
  static const hardware::RuntimeProfile replayed = hardware::load_runtime_profile(device(), "replay");
  return replayed;
}

// Two layers of a norm and a product, and one op that no row says.
Step step() {
  Step s;
  s.ops = {{{"input_norm", "mlp_norm"}, 4, norm(8)}, {{"o_proj"}, 2, gemm(8)}, {{"routing"}, 2, "no replay of router"}};
  s.blocks = {{{{0, 2}, {1, 1}, {2, 1}}, 2}};
  return s;
}
measure::StepRow decode() {
  measure::StepRow row;
  row.model = "a \"model\"";
  row.weights = "bf16";
  row.batch = 8;
  row.phase = measure::Phase::decode;
  row.context = 100;
  return row;
}

double value(const Row& row) { return row.extra.at(2).empty() ? 0 : std::stod(row.extra.at(2)); }

}  // namespace

TEST_CASE("every op of all steps is one row, with its names and executions", "[emit]") {
  const Step a = step();
  Step b = step();
  b.ops[1].what = gemm(512);
  const EmittedStep steps[] = {{&a}, {&b}};
  const Emission e = emission("two steps", steps, device(), nullptr);
  REQUIRE(e.rows.rows.size() == 3);
  CHECK(e.rows.rows[0].extra == std::vector<std::string>{"input_norm+mlp_norm", "8", ""});
  CHECK(e.rows.rows[1].extra == std::vector<std::string>{"o_proj", "2", ""});
  CHECK(std::get<OpRow>(e.rows.rows[2].of) == gemm(512));
  CHECK(e.left_out == std::vector<std::string>{"routing: no replay of router"});
  CHECK(e.steps == "[]");  // none is said to be timed as a whole
  const std::string text = emitted_rows(e);
  CHECK(text.starts_with("hardware,op,dtype,m,n,k,name,count,value\n"));
  CHECK(text.find("\nh100-sxm,gemm,bf16,512,4096,4096,o_proj,2,\n") != std::string::npos);
}

TEST_CASE("a whole step names its ops by the numbers of rows", "[emit]") {
  const Step s = step();
  const EmittedStep steps[] = {{&s, decode()}};
  const Emission e = emission("a step", steps, device(), nullptr);
  const auto json = nlohmann::json::parse(e.steps);
  REQUIRE(json.size() == 1);
  CHECK(json[0]["columns"]["model"] == "a \"model\"");
  CHECK(json[0]["columns"]["phase"] == "decode");
  CHECK(json[0]["columns"]["context"] == "100");
  CHECK(json[0]["columns"]["hardware"] == "h100-sxm");
  CHECK(json[0]["blocks"] == nlohmann::json::parse("[[2, [[0, 2], [1, 1], [-1, 1]]]]"));
}

TEST_CASE("with a profile the ops come in other sizes, too, but for what takes long", "[emit]") {
  const Step s = step();
  const EmittedStep steps[] = {{&s}};
  const Emission e = emission("a step", steps, device(), &profile());
  std::set<std::int64_t> rows;
  for (const Row& row : e.rows.rows) {
    const auto* shape = std::get_if<measure::GemmShape>(&std::get<OpRow>(row.of).shape);
    if (shape) rows.insert(shape->m);
  }
  CHECK(rows == std::set<std::int64_t>{1, 8, 16, 128, 1024, 8192});
  CHECK(e.rows.rows.size() == 12);
  CHECK(e.rows.rows.front().extra.at(1) == "4");
  CHECK(e.rows.rows.back().extra.at(1).empty());  // of no step
  const Step list = list_of({gemm(8)});
  const EmittedStep lists[] = {{&list}};
  CHECK(emission("a list", lists, device(), &profile()).rows.rows.size() == 1);  // as it was asked for
}

TEST_CASE("a row is worth what the profile may be wrong by for want of it", "[emit]") {
  measure::Measurements m;
  m.files.emplace_back();
  for (const OpRow& row : {gemm(8), gemm(8192), norm(8192), gemm(8192)}) {
    m.rows.push_back({.hardware = "h100-sxm", .of = row, .latency = {}, .extra = {}});
  }
  const std::vector<double> once = measure::doubts(m, std::vector<double>{1, 1, 1, 1}, device(), profile());
  CHECK(once[1] > once[0]);        // the same numbers are doubted, about a longer time
  CHECK(once[3] < 0.3 * once[1]);  // which is known once that row is measured
  CHECK(once[2] > 0);
  const std::vector<double> often = measure::doubts(m, std::vector<double>{1, 1, 1000, 1}, device(), profile());
  CHECK(often[2] == Approx(1000 * once[2]));
  // What was fitted is doubted as far as its error says.
  hardware::RuntimeProfile known = profile();
  for (double& error : known.uncertainty) error = 0.01;
  CHECK(measure::doubts(m, std::vector<double>{1, 1, 1, 1}, device(), known)[1] < 0.1 * once[1]);
}

TEST_CASE("the program holds the rows and steps as Python reads them", "[emit]") {
  const Step s = step();
  const EmittedStep steps[] = {{&s, decode()}};
  Emission e = emission("a \"step\" of C:\\models", steps, device(), nullptr);
  e.rows.rows[0].extra[0] = "quotes \"\"\" within";
  const std::string program = emitted_program(e);
  CHECK(program.find("\nWHAT = \"a \\\"step\\\" of C:\\\\models\"\n") != std::string::npos);
  const std::size_t rows = program.find("\nROWS = \"\"\"\\\nhardware,op,");
  REQUIRE(rows != std::string::npos);
  const std::size_t end = program.find("\n\"\"\"\n", rows);
  const std::string data = program.substr(rows, end - rows);
  CHECK(std::count(data.begin(), data.end(), '\n') == 4);  // the line of ROWS, the header and two rows
  CHECK(data.find("\\\"\\\"\\\"") != std::string::npos);   // three quotes would end it
  CHECK(program.find("WHAT = \"examples") == std::string::npos);
  CHECK(program.find("a \\\\\"model\\\\\"") != std::string::npos);  // JSON's own backslash, twice
}

TEST_CASE("values order the rows from the most to the least telling", "[emit]") {
  const Step s = step();
  const EmittedStep steps[] = {{&s}};
  const Emission e = emission("a step", steps, device(), &profile());
  const auto most = std::max_element(e.rows.rows.begin(), e.rows.rows.end(),
                                     [](const Row& a, const Row& b) { return value(a) < value(b); });
  CHECK(std::get<OpRow>(most->of).op == "gemm");
  for (const Row& row : e.rows.rows) CHECK(value(row) >= 0);
}

}  // namespace llmperf::replay::emit_test
