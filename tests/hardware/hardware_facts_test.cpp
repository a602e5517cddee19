// Holds every device file against a table of published figures, so that a slip in one of the two shows.
#include <algorithm>
#include <fstream>
#include <map>
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

bool is_variant(const std::string& name) {
  const descriptor::Document file = descriptor::load(descriptor::Kind::device, name);
  return std::any_of(file.root.entries.begin(), file.root.entries.end(), [](const auto& e) { return e.key == "like"; });
}

TEST_CASE("fp16 matrix rate and memory bandwidth equal the published figures") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    if (facts.fp16_tflops) {
      const Peak* peak = device.find_peak(Engine::matrix, Dtype::fp16);
      REQUIRE(peak != nullptr);
      // Of a variant the rate is that of its base, which is rounded, by cores and clock.
      const bool scaled = is_variant(facts.name);
      CHECK(peak->rate.value == Approx(*facts.fp16_tflops * 1e12).epsilon(scaled ? 1e-3 : 1.2e-5));
    }
    const MemoryLevel& dram = device.dram();
    CHECK(dram.bandwidth->value / (1 - dram.ecc_traffic) == Approx(facts.bandwidth_gbps.value() * 1e9));
  }
}

// An "80 GB" board of an H100 has 80 GiB, of which software sees 79.2: neither 74.5 (10^9 bytes each) nor 80.
TEST_CASE("capacity is what a driver or framework reports to software, less than the board has") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    const MemoryLevel dram = device.dram();
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
    // What the GPU of a shared memory may take is two thirds of it at least; ECC and a driver take an eighth at most.
    CHECK(dram.capacity->value > (device.kind == DeviceKind::soc ? 0.66 : 0.87) * dram.board->value);
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

// A core of a generation multiplies so many numbers in a cycle: a peak, a number of cores or a clock that is another
// one's shows. Cards for games have a half of it, as has one L40 on paper, and the H20 a quarter.
TEST_CASE("the 16-bit peak is a whole number of operations per core and cycle") {
  const std::map<std::string, double> of_generation = {{"nvidia-volta", 1024},
                                                       {"nvidia-turing", 1024},
                                                       {"nvidia-ga100", 2048},
                                                       {"nvidia-ampere", 1024},
                                                       {"nvidia-ada", 1024},
                                                       {"nvidia-hopper", 4096},
                                                       {"amd-rdna3", 512},
                                                       {"amd-rdna4", 1024},
                                                       {"nvidia-blackwell", 8192},
                                                       {"nvidia-blackwell-rtx", 1024},
                                                       {"amd-cdna", 1024},
                                                       {"amd-cdna2", 1024},
                                                       {"amd-cdna3", 2048},
                                                       {"amd-cdna4", 4096},
                                                       {"apple7", 256},
                                                       {"apple10", 1024}};
  std::set<std::string> checked;
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    const auto found = of_generation.find(device.family);
    if (found == of_generation.end()) continue;
    REQUIRE(device.cores.has_value());
    REQUIRE(device.clock_hz.has_value());
    const bool half = device.title.find("GeForce") != std::string::npos || facts.name == "l40" || facts.name == "l20";
    const double each = found->second / (half ? 2 : facts.name.starts_with("h20-") || facts.name == "h20" ? 4 : 1);
    const double peak = device.find_peak(Engine::matrix, Dtype::fp16)->rate.value;
    CHECK(peak / (static_cast<double>(*device.cores) * *device.clock_hz) == Approx(each).epsilon(0.02));
    checked.insert(device.family);
  }
  CHECK(checked.size() == of_generation.size());
}

TEST_CASE("a short name means the one device that has it") {
  CHECK(load_device("rtx-pro-6000").name == "rtx-pro-6000-blackwell-server");
}

// A name, title or alias that two files claim would find neither.
TEST_CASE("every device is found by its title and by its aliases") {
  for (const Facts& facts : read_facts()) {
    CAPTURE(facts.name);
    const Device device = load_device(facts.name);
    const descriptor::Document file = descriptor::load(descriptor::Kind::device, facts.name);
    std::vector<std::string> called = {device.title};
    for (const descriptor::Node::Entry& entry : file.root.entries) {
      for (const descriptor::Node& alias :
           entry.key == "aliases" ? entry.value.items : std::vector<descriptor::Node>()) {
        called.push_back(alias.scalar);
      }
    }
    for (const std::string& name : called) {
      CAPTURE(name);
      if (!descriptor::is_path(name)) CHECK(load_device(name).name == facts.name);
    }
  }
}

}  // namespace
}  // namespace llmperf::hardware::hardware_facts_test
