// Holds every device file against a table of published figures, so that a slip in one of the two shows.
#include <algorithm>
#include <fstream>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "hardware/device.h"

namespace llmperf::hardware::hardware_facts_test {
namespace {

struct Facts {
  std::string name;
  std::optional<double> fp16_tflops;
  std::optional<double> bandwidth_gbps;
  std::optional<double> board_gib;
  std::optional<double> reported_mib;
};

std::vector<Facts> read_facts() {
  std::ifstream in(LLMPERF_SOURCE_DIR "/tests/hardware/hardware_facts.csv");
  REQUIRE(in.good());
  std::vector<Facts> facts;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || line.starts_with("name,")) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    REQUIRE(cells.size() == 5);
    facts.push_back({std::string(cells[0]), parse_double(cells[1]), parse_double(cells[2]), parse_double(cells[3]),
                     parse_double(cells[4])});
  }
  return facts;
}

TEST_CASE("fp16 matrix rate and memory bandwidth equal the published figures") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    if (facts.fp16_tflops) {
      const Peak* peak = device.find_peak(Engine::matrix, Dtype::fp16);
      REQUIRE(peak != nullptr);
      CHECK(peak->rate.value == Approx(*facts.fp16_tflops * 1e12));
    }
    CHECK(device.dram().bandwidth->value == Approx(facts.bandwidth_gbps.value() * 1e9));
  }
}

// An "80 GB" board of an H100 has 80 GiB, of which software sees 79.2: neither 74.5 (10^9 bytes each) nor 80.
TEST_CASE("capacity is what a driver or framework reports to software, less than the board has") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const MemoryLevel dram = load_device(facts.name).dram();
    if (facts.reported_mib) {
      CHECK(dram.capacity->value == Approx(*facts.reported_mib * kMiB).epsilon(1e-5));
      CHECK(dram.provenance == Provenance::measured);
    } else {
      CHECK((dram.provenance == Provenance::derived || dram.provenance == Provenance::assumed));
    }
    CHECK(dram.capacity_note.empty() == (dram.provenance == Provenance::assumed));
    CHECK(dram.board.has_value() == facts.board_gib.has_value());
    if (!facts.board_gib) continue;
    CHECK(dram.board->value == *facts.board_gib * kGiB);
    CHECK(*dram.capacity < *dram.board);
    // What the GPU of a unified memory may take is three quarters of it; ECC and a driver take an eighth at most.
    CHECK(dram.capacity->value > (dram.name == "unified" ? 0.74 : 0.87) * dram.board->value);
  }
}

TEST_CASE("a figure that is not published is marked as assumed") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    if (const Peak* peak = device.find_peak(Engine::matrix, Dtype::fp16); peak != nullptr && !facts.fp16_tflops) {
      CHECK(peak->provenance == Provenance::assumed);
    }
  }
}

TEST_CASE("the table names every built-in device") {
  std::set<std::string> listed;
  for (const Facts& facts : read_facts()) listed.insert(facts.name);
  std::set<std::string> built_in;
  for (const descriptor::EmbeddedFile& file : descriptor::embedded_files()) {
    if (file.kind == descriptor::Kind::device) built_in.emplace(file.name);
  }
  CHECK(listed == built_in);
}

}  // namespace
}  // namespace llmperf::hardware::hardware_facts_test
