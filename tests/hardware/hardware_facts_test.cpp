// Holds every device file against a table of published figures, so that a slip in one of the two shows.
#include <algorithm>
#include <fstream>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "catch.h"
#include "descriptor/catalog.h"
#include "hardware/device.h"

namespace llmperf::hardware {
namespace {

struct Facts {
  std::string name;
  std::optional<double> fp16_tflops;
  std::optional<double> bandwidth_gbps;
  std::optional<double> capacity_bytes;
};

std::vector<Facts> read_facts() {
  std::ifstream in(LLMPERF_SOURCE_DIR "/tests/hardware/hardware_facts.csv");
  REQUIRE(in.good());
  std::vector<Facts> facts;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || line.starts_with("name,")) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    REQUIRE(cells.size() == 4);
    facts.push_back({std::string(cells[0]), parse_double(cells[1]), parse_double(cells[2]), parse_double(cells[3])});
  }
  return facts;
}

TEST_CASE("fp16 matrix rate, memory bandwidth and capacity equal the published figures") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    if (facts.fp16_tflops) {
      const Peak* peak = device.find_peak(Engine::matrix, Dtype::fp16);
      REQUIRE(peak != nullptr);
      CHECK(peak->rate.value == Approx(*facts.fp16_tflops * 1e12));
    }
    CHECK(device.dram().bandwidth->value == Approx(facts.bandwidth_gbps.value() * 1e9));
    if (facts.capacity_bytes) CHECK(device.dram().capacity->value == *facts.capacity_bytes);
  }
}

TEST_CASE("a figure that is not published is marked as assumed") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    if (const Peak* peak = device.find_peak(Engine::matrix, Dtype::fp16); peak != nullptr && !facts.fp16_tflops) {
      CHECK(peak->provenance == Provenance::assumed);
    }
    if (!facts.capacity_bytes) CHECK(device.dram().provenance == Provenance::assumed);
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
}  // namespace llmperf::hardware
