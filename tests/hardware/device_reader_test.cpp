// Every class of mistake in a device file is reported where it is, and all of them at once.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "descriptor/node.h"
#include "hardware/device.h"
#include "one_problem.h"

namespace llmperf::hardware::device_reader_test {
namespace {

// A small tile array with every kind of entry; line numbers below count from its first line.
const std::string kGood =
    "name: toy\n"                                                                                       // 1
    "vendor: ACME\n"                                                                                    // 2
    "family: acme\n"                                                                                    // 3
    "kind: tile_array\n"                                                                                // 4
    "peaks:\n"                                                                                          // 5
    "  - {engine: matrix, dtype: fp16, accumulate: fp32, rate: 8 TFLOP/s, provenance: datasheet}\n"     // 6
    "  - {engine: vector, dtype: fp32, rate: 1 TFLOP/s, provenance: assumed}\n"                         // 7
    "memory:\n"                                                                                         // 8
    "  - {name: SRAM, capacity: 3 MiB, per_tile: true, provenance: datasheet}\n"                        // 9
    "  - {name: DRAM, capacity: 8 GB, bandwidth: 100 GB/s, provenance: assumed, "                       // 10
    "bandwidth_provenance: measured}\n"                                                                 //
    "interconnect: {name: Link, topology: ring, per_direction: 50 GB/s, per_link: 25 GB/s, links: 2, "  // 11
    "provenance: derived}\n"                                                                            //
    "host_link: {name: PCIe, per_direction: 16 GB/s, provenance: datasheet}\n"                          // 12
    "tile_array: {tiles: 6, mesh: 3x2, noc_link: 10 GB/s, hop_latency: 10 ns, dram_latency: 100 ns, "   // 13
    "provenance: assumed}\n"                                                                            //
    "clock: 1.5 GHz\n"                                                                                  // 14
    "power: 30 W\n"                                                                                     // 15
    "prices: [{kind: rent, amount: 2.5, currency: USD, source: a shop, date: 2026-03}]\n"               // 16
    "network: {name: Wire, per_direction: 9 GB/s, provenance: datasheet}\n";                            // 17

Device parse(const std::string& text) { return parse_device(descriptor::parse_yaml(text, "toy.yaml")); }

// kGood with the first `from` replaced by `to`.
std::string edit(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(fmt::format("no '{}' in the test file", from));
  return text.replace(at, from.size(), to);
}

std::string problems_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

// Exactly one problem, on that line, whose message contains `message`.
void check_problem(std::string_view from, std::string_view to, int line, const std::string& message) {
  CAPTURE(from, to);
  check_one_problem([&] { parse(edit(kGood, from, to)); }, line, message);
}

TEST_CASE("a device file gives every figure with its provenance") {
  const Device device = parse(kGood);
  CHECK(device.title == "toy");  // no title: the name
  REQUIRE(device.peaks.size() == 2);
  CHECK(device.peaks[0].accumulate == Dtype::fp32);
  CHECK(device.peaks[1].provenance == Provenance::assumed);
  CHECK_FALSE(device.peaks[1].accumulate.has_value());
  CHECK(device.dram().provenance == Provenance::assumed);
  CHECK(device.dram().bandwidth_provenance == Provenance::measured);
  CHECK(device.memory[0].bandwidth_provenance == Provenance::datasheet);  // that of the capacity
  CHECK(device.interconnect->provenance == Provenance::derived);
  CHECK(device.interconnect->links == 2);
  CHECK_FALSE(device.interconnect->latency.has_value());
  CHECK(device.network->name == "Wire");
  CHECK(device.network->per_direction.value == 9e9);
  CHECK_FALSE(device.network->latency.has_value());
  CHECK(device.tile_array->mesh_x == 3);
  CHECK(device.tile_array->mesh_y == 2);
  CHECK(*device.clock_hz == Approx(1.5e9));
  CHECK(device.clock_ratio() == 1);
  CHECK(*device.power_w == Approx(30));
  REQUIRE(device.prices.size() == 1);
  CHECK(device.prices[0].kind == Offer::rent);
  CHECK(device.prices[0].amount == 2.5);
  CHECK(device.prices[0].source == "a shop");
  CHECK(device.prices[0].date == "2026-03");
}

TEST_CASE("unknown keys are reported at the key, at every depth") {
  check_problem("vendor: ACME\n", "vendor: ACME\nvendr: X\n", 3, "unknown key 'vendr'");
  check_problem("rate: 8 TFLOP/s,", "rate: 8 TFLOP/s, sparse: 16 TFLOP/s,", 6, "unknown key 'sparse'");
  check_problem("per_tile: true,", "per_tile: true, latency: 1 us,", 9, "unknown key 'latency'");
  check_problem("mesh: 3x2,", "mesh: 3x2, mesh_x: 3,", 13, "unknown key 'mesh_x'");
  CHECK_THAT(problems_of(edit(kGood, "vendor: ACME\n", "vendor: ACME\nvendr: X\n")), Catch::Contains("'vendor'"));
}

TEST_CASE("missing keys are reported by name") {
  check_problem("vendor: ACME\n", "", 1, "missing key 'vendor' in device");
  check_problem("family: acme\n", "", 1, "missing key 'family'");
  check_problem("rate: 8 TFLOP/s, ", "", 6, "missing key 'rate'");
  check_problem(", provenance: datasheet}", "}", 6, "missing key 'provenance'");
  check_problem("topology: ring, ", "", 11, "missing key 'topology'");
  check_problem("hop_latency: 10 ns, ", "", 13, "missing key 'hop_latency'");
}

TEST_CASE("names outside a list are refused with the nearest ones") {
  check_problem("kind: tile_array", "kind: tile_aray", 4, "'kind' must be one of");
  check_problem("engine: matrix", "engine: tensor", 6, "'engine' must be one of");
  check_problem("dtype: fp16", "dtype: half", 6, "'dtype' must be one of");
  check_problem("accumulate: fp32", "accumulate: f32", 6, "'accumulate' must be one of");
  check_problem("provenance: derived", "provenance: guessed", 11, "'provenance' must be one of");
  check_problem("topology: ring, ", "topology: ring, direct: 2, ", 11, "only PCIe has a host between devices");
  check_problem("topology: ring", "topology: rings", 11, "'topology' must be one of");
}

TEST_CASE("figures need a unit of their dimension and must be positive") {
  for (const char* bad : {"8", "0 TFLOP/s", "-8 TFLOP/s", "nan TFLOP/s", "1e400 TFLOP/s", "8 GB/s", "8 TFLOPS", "''"}) {
    check_problem("8 TFLOP/s", bad, 6, "'rate' must be a positive number with a unit");
  }
  check_problem("8 GB,", "8,", 10, "'capacity' must be");
  check_problem("100 GB/s", "100 GB", 10, "'bandwidth' must be");
  check_problem("dram_latency: 100 ns", "dram_latency: 100", 13, "'dram_latency' must be");
  for (const char* bad : {"1.5", "0 GHz", "-1 GHz", "1.5 ghz", "1.5  GHz", "1,5 GHz", "[1 GHz]"}) {
    check_problem("1.5 GHz", bad, 14, "'clock' must be a positive number with a unit");
  }
  check_problem("30 W", "30 V", 15, "'power' must be");
}

TEST_CASE("a price is a number with a currency, a source and a date that exists") {
  check_problem("amount: 2.5", "amount: 2.5 USD", 16, "'amount' must be a number");
  check_problem("amount: 2.5", "amount: 0", 16, "'amount' must be a number");
  check_problem("amount: 2.5, ", "", 16, "missing key 'amount'");
  check_problem("currency: USD", "currency: dollars", 16, "'currency' must be three capital letters");
  check_problem("source: a shop, ", "", 16, "missing key 'source'");
  check_problem("kind: rent", "kind: lease", 16, "'kind' must be one of");
  for (const char* bad : {"2026-13", "2026-3", "26-03", "2026-03-32", "March"}) {
    check_problem("2026-03", bad, 16, "'date' must be a year, a month or a day");
  }
  CHECK(parse(edit(kGood, ", date: 2026-03", "")).prices[0].date.empty());
  check_problem("prices: [", "prices: [{kind: purchase, amount: 900, currency: EUR, source: another shop}, ", 16,
                "a price in USD beside one in EUR");
}

TEST_CASE("measured shares of the board power need the power that they are shares of") {
  const std::string shares = "power_shares: {idle: 0.3, memory: 0.7, matrix: 1.2, provenance: measured, source: a log}";
  const Device device = parse(kGood + shares + "\n");
  CHECK(device.power_shares->idle == 0.3);
  CHECK(device.power_shares->matrix == 1.2);
  check_problem("power: 30 W", shares, 15, "'power_shares' without the 'power'");
  check_problem("power: 30 W",
                "power: 30 W\npower_shares: {idle: 1.3, memory: 0.7, matrix: 1.2, provenance: measured, "
                "source: a log}",
                16, "'idle' must be");
}

TEST_CASE("figures that only a wrong unit explains are refused") {
  check_problem("8 TFLOP/s", "200000000 TFLOP/s", 6, "'rate' is more than 1e20 OP/s");
  check_problem("8 TFLOP/s", "1e-300 FLOP/s", 6, "'rate' is less than 1 a second");
  check_problem("100 GB/s", "0.5 B/s", 10, "'bandwidth' is less than 1 a second");
  check_problem("100 GB/s", "2000 TB/s", 10, "'bandwidth' is more than 1e15 B/s");
  check_problem("8 GB,", "2000000 TB,", 10, "'capacity' is more than 1e18 B");
  check_problem("dram_latency: 100 ns", "dram_latency: 100 s", 13, "'dram_latency' is more than 1 s");
  check_problem("1.5 GHz", "1500000 GHz", 14, "'clock' must be");
  check_problem("clock: 1.5 GHz", "measured_clock: 1.5 GHz", 14, "'measured_clock' without 'clock'");
}

TEST_CASE("a board has room for what software can use of it") {
  const Device device = parse(edit(kGood, "capacity: 8 GB,", "capacity: 7 GiB, board: 8 GiB, capacity_note: a log,"));
  CHECK(device.dram().capacity->value == 7 * kGiB);
  CHECK(device.dram().board->value == 8 * kGiB);
  CHECK(device.dram().capacity_note == "a log");
  CHECK_FALSE(device.memory[0].board.has_value());
  check_problem("capacity: 8 GB,", "capacity: 8 GB, board: 7 GiB,", 10, "'board' without a 'capacity'");
  check_problem("capacity: 3 MiB,", "board: 3 MiB,", 9, "'board' without a 'capacity'");
}

TEST_CASE("one figure per engine, type and accumulator") {
  const std::string line = "  - {engine: vector, dtype: fp32, rate: 1 TFLOP/s, provenance: assumed}\n";
  check_problem(line, line + line, 8, "second peak for vector fp32");
  check_problem(line,
                line + "  - {engine: matrix, dtype: fp16, accumulate: fp32, rate: 9 TFLOP/s, provenance: fitted}\n", 8,
                "second peak for matrix fp16 with fp32 accumulation");
  CHECK(
      parse(edit(kGood, line,
                 line + "  - {engine: matrix, dtype: fp16, accumulate: fp16, rate: 16 TFLOP/s, provenance: fitted}\n"))
          .find_peak(Engine::matrix, Dtype::fp16)
          ->rate.value == 8e12);
}

TEST_CASE("a device without a vector fp32 rate could not run every vector operation") {
  check_problem("  - {engine: vector, dtype: fp32,", "  - {engine: vector, dtype: fp16,", 6, "no peak for vector fp32");
}

TEST_CASE("the last memory level has a capacity and a bandwidth") {
  check_problem("capacity: 8 GB, ", "", 10, "it needs a capacity");
  check_problem("bandwidth: 100 GB/s, provenance: assumed, bandwidth_provenance: measured", "provenance: assumed", 10,
                "it needs a bandwidth");
  check_problem("name: DRAM,", "name: DRAM, per_tile: true,", 10, "shared by the whole device");
  check_problem("3 MiB", "9 GB", 9, "'SRAM' is larger than 'DRAM'");
}

TEST_CASE("a tile array comes with the kind tile_array and only with it") {
  CHECK_THAT(problems_of(edit(kGood, "kind: tile_array", "kind: gpu")),
             Catch::Contains("toy.yaml:9:") && Catch::Contains("memory per tile") && Catch::Contains("toy.yaml:13:") &&
                 Catch::Contains("'tile_array' in a device of kind gpu"));
  std::string without = kGood;
  without.erase(without.find("tile_array: {"), without.find("clock:") - without.find("tile_array: {"));
  CHECK_THAT(problems_of(without), Catch::Contains("missing key 'tile_array'"));
}

TEST_CASE("bandwidth of DRAM is the chip's, or of each tile when it says so") {
  const std::string each = edit(kGood, "bandwidth: 100 GB/s", "bandwidth_per_tile: 10 GB/s");
  CHECK(parse(each).dram().bandwidth->value == 6 * 10e9);
  check_problem("bandwidth: 100 GB/s", "bandwidth: 100 GB/s, bandwidth_per_tile: 10 GB/s", 10, "say the same");
  check_problem("bandwidth: 100 GB/s", "bandwidth_per_tile: 0 GB/s", 10, "bandwidth_per_tile");
}

TEST_CASE("a mesh has as many tiles as the array") {
  check_problem("mesh: 3x2", "mesh: 3x3", 13, "a mesh of 3x3 has 9 tiles, not 6");
  for (const char* bad : {"6", "3x", "x2", "3x2x1", "-3x-2", "3 x 2", "0x6", "99999999999x1"}) {
    check_problem("3x2", bad, 13, "'mesh' must be two sides");
  }
}

TEST_CASE("links add up to the interconnect's bandwidth") {
  check_problem("links: 2", "links: 4", 11, "4 links of 25 GB/s are 100 GB/s, not 50 GB/s");
}

TEST_CASE("the latency of links comes with a provenance of its own, or not at all") {
  const Device device = parse(edit(edit(kGood, "links: 2,", "links: 2, latency: 1.5 us, latency_provenance: measured,"),
                                   "9 GB/s,", "9 GB/s, latency: 5 us, latency_provenance: assumed,"));
  CHECK(device.interconnect->latency->value == Approx(1.5e-6));
  CHECK(device.interconnect->latency_provenance == Provenance::measured);
  CHECK(device.interconnect->provenance == Provenance::derived);
  CHECK(device.network->latency->value == Approx(5e-6));
  CHECK(device.network->latency_provenance == Provenance::assumed);
  check_problem("links: 2,", "links: 2, latency: 1 us,", 11, "missing key 'latency_provenance'");
  check_problem("links: 2,", "links: 2, latency_provenance: measured,", 11, "'latency_provenance' without 'latency'");
  check_problem("links: 2,", "links: 2, latency: 2 s, latency_provenance: measured,", 11, "more than 1 s");
  check_problem("links: 2,", "links: 2, latency: 2, latency_provenance: measured,", 11, "'latency' must be");
  check_problem("9 GB/s,", "9 GB/s, latency: 1 us, latency_provenance: guess,", 17, "'latency_provenance' must be");
}

TEST_CASE("a network is a name, a rate and where that is from") {
  check_problem("name: Wire, ", "", 17, "missing key 'name' in 'network'");
  check_problem("per_direction: 9 GB/s, ", "", 17, "missing key 'per_direction' in 'network'");
  check_problem("9 GB/s, provenance: datasheet}", "9 GB/s}", 17, "missing key 'provenance'");
  check_problem("9 GB/s,", "9 Gbit/s,", 17, "'per_direction' must be");
  check_problem("9 GB/s,", "9000 TB/s,", 17, "'per_direction' is more than 1e15 B/s");
  check_problem("9 GB/s,", "9 GB/s, topology: ring,", 17, "unknown key 'topology'");
  check_problem("9 GB/s,", "9 GB/s, links: 2,", 17, "unknown key 'links'");
}

TEST_CASE("all problems of a file are reported at once, in file order") {
  const std::string text = problems_of(
      edit(edit(edit(kGood, "30 W", "30"), "kind: tile_array", "kind: tiles"), "rate: 8 TFLOP/s", "rate: 8"));
  const std::size_t kind = text.find("toy.yaml:4:");
  const std::size_t rate = text.find("toy.yaml:6:");
  const std::size_t power = text.find("toy.yaml:15:");
  CAPTURE(text);
  CHECK(kind < rate);
  CHECK(rate < power);
  CHECK(power != std::string::npos);
}

TEST_CASE("documents that are no device are refused without a crash") {
  for (const char* text : {"[]", "{}", "42", "null", "peaks: 3", "peaks: [1, [], null]", "memory: {}", "memory: []",
                           "tile_array: []", "{peaks: [{}], memory: [{}], interconnect: {}, host_link: {}}"}) {
    CAPTURE(text);
    CHECK_THAT(problems_of(text), Catch::Contains("toy.yaml"));
  }
  std::string many = "peaks:\n";
  for (int i = 0; i < 65; ++i) many += "  - {engine: vector}\n";
  CHECK_THAT(problems_of(many), Catch::Contains("more than 64 peaks"));
}

TEST_CASE("an unknown device name is answered with the nearest ones") {
  try {
    load_device("rtx409");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    CHECK_THAT(std::string(error.what()), Catch::Contains("rtx4090"));
  }
}

TEST_CASE("what is wrong with a variant is said at its place") {
  const auto problem = [](const std::string& text, int line, const std::string& message) {
    CAPTURE(text);
    check_one_problem([&] { parse(text); }, line, message);
  };
  problem("name: toy\nlike: ./rtx4090.yaml\n", 2, "'like' must be the name of a device");
  problem("name: toy\nlike: [rtx4090]\n", 2, "'like' must be the name of a device");
  problem("name: toy\nlike: h20-141gb\n", 2, "h20-141gb is itself like another device");
  problem("name: toy\nlike: rtx4090\ncoers: 5\n", 3, "unknown key 'coers'");
  problem("name: toy\nlike: rtx4090\nmemory:\n    capacity: 8 GiB\n", 4, "provenance");  // no longer the base's
  CHECK_THROWS_AS(parse("name: toy\nlike: rtx4091\n"), Error);
  const Device toy = parse("name: toy\nlike: rtx4090\ncores: 64\n");
  CHECK(toy.peaks.front().rate.value == Approx(82.6e12));
  CHECK(toy.source == "the rest as rtx4090");
}

}  // namespace
}  // namespace llmperf::hardware::device_reader_test
