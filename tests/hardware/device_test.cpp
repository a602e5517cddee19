// Figures of the built-in devices that a reader can look up or work out by hand.
#include "hardware/device.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "catch.h"
#include "descriptor/catalog.h"

namespace llmperf::hardware::device_test {
namespace {

double tera(const Device& device, Engine engine, Dtype dtype) {
  const Peak* peak = device.find_peak(engine, dtype);
  REQUIRE(peak != nullptr);
  return peak->rate.value / 1e12;
}

std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const descriptor::EmbeddedFile& file : descriptor::embedded_files()) {
    if (file.kind == descriptor::Kind::device) devices.push_back(load_device(std::string(file.name)));
  }
  return devices;
}

TEST_CASE("every built-in device loads under its own name and says where its figures come from") {
  std::size_t count = 0;
  for (const descriptor::EmbeddedFile& file : descriptor::embedded_files()) {
    if (file.kind != descriptor::Kind::device) continue;
    CAPTURE(file.path);
    const Device device = load_device(std::string(file.name));
    CHECK(device.name == file.name);
    CHECK(device.title != device.name);
    CHECK_FALSE(device.source.empty());
    ++count;
  }
  CHECK(count >= 127);
}

TEST_CASE("every built-in device can run vector operations of any type and hold weights") {
  for (const Device& device : all_devices()) {
    CAPTURE(device.name);
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      CHECK(device.find_peak(Engine::vector, dtype) != nullptr);
    }
    CHECK(device.dram().capacity.has_value());
    CHECK(device.dram().bandwidth.has_value());
  }
}

TEST_CASE("a narrower type is never slower than a wider one on the same matrix engine") {
  const std::pair<Dtype, Dtype> ladder[] = {
      {Dtype::fp32, Dtype::tf32}, {Dtype::tf32, Dtype::fp16}, {Dtype::tf32, Dtype::bf16}, {Dtype::fp16, Dtype::fp8},
      {Dtype::fp16, Dtype::int8}, {Dtype::int8, Dtype::int4}, {Dtype::fp8, Dtype::fp4}};
  for (const Device& device : all_devices()) {
    for (const auto& [wide, narrow] : ladder) {
      const Peak* slow = device.find_peak(Engine::matrix, wide);
      const Peak* fast = device.find_peak(Engine::matrix, narrow);
      if (slow == nullptr || fast == nullptr) continue;
      CAPTURE(device.name, name(wide), name(narrow));
      CHECK(fast->rate >= slow->rate);
    }
  }
}

TEST_CASE("RTX 4090: three fp16 rates, and the one with fp32 accumulation is used") {
  const Device device = load_device("rtx4090");
  CHECK(device.title == "NVIDIA GeForce RTX 4090");
  CHECK(device.family == "nvidia-ada");
  CHECK(device.kind == DeviceKind::gpu);
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(165.2));
  CHECK(tera(device, Engine::matrix, Dtype::bf16) == Approx(165.2));
  CHECK(tera(device, Engine::matrix, Dtype::fp8) == Approx(330.3));
  CHECK(tera(device, Engine::matrix, Dtype::int8) == Approx(660.6));
  CHECK(tera(device, Engine::matrix, Dtype::int4) == Approx(1321.2));
  CHECK(tera(device, Engine::vector, Dtype::fp16) == Approx(82.58));
  CHECK(device.dram().name == "GDDR6X");
  CHECK(device.dram().capacity->value == Approx(23.52 * kGiB));
  CHECK(device.dram().board->value == 24 * kGiB);
  CHECK(device.dram().bandwidth->value == 1008e9);
  REQUIRE(device.last_level_cache() != nullptr);
  CHECK(device.last_level_cache()->capacity->value == 72 * kMiB);
  CHECK(device.host_link->per_direction.value == 32e9);
  CHECK(device.cores == 128);
  CHECK(*device.clock_hz == Approx(2520e6));
  CHECK(device.clock_ratio() == Approx(1.07));
  CHECK(device.fastest_peak(Dtype::fp16)->rate.value == Approx(330.3e12));  // with 16-bit accumulation
  CHECK(device.fastest_peak(Dtype::fp4) == nullptr);
  CHECK(*device.power_w == Approx(450));
  CHECK_FALSE(device.power_shares.has_value());
  REQUIRE(device.prices.size() == 6);
  CHECK(device.prices[0].kind == Offer::purchase);
  CHECK(device.prices[0].amount == 1599);
  CHECK(device.prices[1].kind == Offer::spot);
  CHECK(device.prices[1].amount == 0.34);
  CHECK(device.prices[1].currency == "USD");
  CHECK(device.prices[1].date == "2026-03");
  CHECK(device.devices_per_node == 1);

  const auto fp16_accumulation = std::find_if(device.peaks.begin(), device.peaks.end(), [](const Peak& peak) {
    return peak.dtype == Dtype::fp16 && peak.accumulate == Dtype::fp16;
  });
  REQUIRE(fp16_accumulation != device.peaks.end());
  CHECK(fp16_accumulation->rate.value == Approx(330.3e12));
}

TEST_CASE("RTX 3060: 192 bits of 15 Gbit/s, 28 cores of which each multiplies 512 numbers a cycle") {
  const Device device = load_device("rtx3060");
  CHECK(device.dram().bandwidth->value == 192 * 15e9 / 8);
  CHECK(device.dram().board->value == 12 * kGiB);
  CHECK(device.dram().capacity->value == 11.75 * kGiB);
  CHECK(tera(device, Engine::vector, Dtype::fp32) == Approx(3584 * 2 * 1.777e-3).epsilon(0.001));
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(28 * 512 * 1.777e-3).epsilon(0.002));
  CHECK(device.fastest_peak(Dtype::fp16)->rate.value == Approx(28 * 1024 * 1.777e9).epsilon(0.002));
  CHECK(tera(device, Engine::matrix, Dtype::int8) == Approx(28 * 2048 * 1.777e-3).epsilon(0.002));
  CHECK(device.find_peak(Engine::matrix, Dtype::fp16)->provenance == Provenance::assumed);
}

// Cards of data centres since Hopper print vector and tensor rates at different clocks, the GB10 its clock in round.
TEST_CASE("the fp32 rate of CUDA cards is cores x clock x 128 lanes, 64 of Volta, Turing and GA100, x 2") {
  std::size_t count = 0;
  for (const Device& device : all_devices()) {
    const std::string& family = device.family;
    if (!family.starts_with("nvidia-") || family == "nvidia-hopper" || family == "nvidia-blackwell") continue;
    if (device.name == "gb10") continue;
    CAPTURE(device.name);
    const bool few = family == "nvidia-volta" || family == "nvidia-turing" || family == "nvidia-ga100";
    const double per_cycle = static_cast<double>(device.cores.value()) * (few ? 128 : 256);
    CHECK(tera(device, Engine::vector, Dtype::fp32) ==
          Approx(per_cycle * device.clock_hz.value() / 1e12).epsilon(0.02));
    ++count;
  }
  CHECK(count >= 40);
}

TEST_CASE("only GeForce multiplies 16-bit numbers at half the rate when it sums in 32 bits") {
  for (const Device& device : all_devices()) {
    const Peak* wide = device.find_peak(Engine::matrix, Dtype::fp16);
    if (wide == nullptr || device.vendor != "NVIDIA" || device.name == "gb10") continue;
    CAPTURE(device.name);
    const double times = device.title.find("GeForce") == std::string::npos ? 1 : 2;
    CHECK(device.fastest_peak(Dtype::fp16)->rate.value == Approx(times * wide->rate.value).epsilon(0.003));
  }
}

TEST_CASE("M4 Max: 512 bits of LPDDR5X-8533, 40 cores of 128 lanes, 84 % of the memory for the GPU") {
  const Device device = load_device("m4 max");
  CHECK(device.dram().bandwidth->value == Approx(512 / 8 * 8.533e9).epsilon(0.001));
  CHECK(tera(device, Engine::vector, Dtype::fp32) == Approx(40 * 128 * 2 * 1.578e-3).epsilon(0.005));
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == tera(device, Engine::vector, Dtype::fp32));
  CHECK(device.dram().board->value == 128 * kGiB);
  CHECK(device.dram().capacity->value == 107.52 * kGiB);
  CHECK(load_device("m1").dram().capacity->value == Approx(2. / 3 * 16 * kGiB).epsilon(1e-5));
}

TEST_CASE("cards without matrix units multiply int8 on the vector units at four times the fp32 rate") {
  for (const char* name : {"p40", "rx6800xt", "mi50-32gb", "ryzen-9950x", "raspberry-pi-5"}) {
    CAPTURE(name);
    const Device device = load_device(name);
    CHECK(device.find_peak(Engine::matrix, Dtype::fp16) == nullptr);
    CHECK(tera(device, Engine::vector, Dtype::int8) ==
          Approx(4 * tera(device, Engine::vector, Dtype::fp32)).epsilon(0.01));
  }
  CHECK(tera(load_device("p40"), Engine::vector, Dtype::fp16) < 0.2);
}

TEST_CASE("Xeon 8480+: AMX multiplies 1024 16-bit numbers a core and cycle, eight channels of 8 bytes") {
  const Device device = load_device("xeon 8480+");
  CHECK(tera(device, Engine::matrix, Dtype::bf16) == Approx(56 * 1024 * 2.6e-3).epsilon(0.005));
  CHECK(tera(device, Engine::matrix, Dtype::int8) == Approx(56 * 2048 * 2.6e-3).epsilon(0.005));
  CHECK(device.dram().bandwidth->value == Approx(8 * 8 * 4.8e9));
}

TEST_CASE("H100 SXM: dense rates, half of what the datasheet prints, and no int4") {
  const Device device = load_device("h100-sxm");
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(989.4));
  CHECK(tera(device, Engine::matrix, Dtype::fp8) == Approx(1978.9));
  CHECK(tera(device, Engine::matrix, Dtype::tf32) == Approx(494.7));
  CHECK(device.find_peak(Engine::matrix, Dtype::int4) == nullptr);
  CHECK(tera(device, Engine::vector, Dtype::fp32) == Approx(66.9));
  CHECK(tera(device, Engine::vector, Dtype::fp16) == Approx(133.8));
  CHECK(device.dram().capacity->value == 81089 * kMiB);  // 79.19 GiB
  CHECK(device.interconnect->topology == Topology::fully_switched);
  CHECK(device.interconnect->per_direction->value == 450e9);
  CHECK(device.interconnect->links == 18);
  CHECK(device.interconnect->per_link->value == 450e9 / 18);
}

TEST_CASE("A100 SXM 80 GB: vector fp16 at four times fp32") {
  const Device device = load_device("a100-sxm-80gb");
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(312));
  CHECK(tera(device, Engine::matrix, Dtype::int8) == Approx(624));
  CHECK(tera(device, Engine::vector, Dtype::fp32) == Approx(19.5));
  CHECK(tera(device, Engine::vector, Dtype::fp16) == Approx(4 * 19.5));
  CHECK(device.dram().bandwidth->value == 2039e9);
  CHECK(device.dram().capacity->value == 79.25 * kGiB);
  CHECK(device.interconnect->per_direction->value == 300e9);
}

TEST_CASE("Atlas 800I A2: one 910B4 of eight, its peak worked out from cores and clock") {
  const Device device = load_device("atlas-800i-a2");
  CHECK(device.kind == DeviceKind::npu);
  CHECK(device.devices_per_node == 8);
  const double matrix_fp16 = static_cast<double>(*device.cores) * *device.clock_hz * 8192;  // 20 x 1.5 GHz
  CHECK(matrix_fp16 == Approx(245.76e12));
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(matrix_fp16 / 1e12));
  CHECK(device.find_peak(Engine::matrix, Dtype::fp16)->provenance == Provenance::derived);
  CHECK(tera(device, Engine::matrix, Dtype::int8) == Approx(2 * matrix_fp16 / 1e12));
  CHECK(device.dram().capacity->value == 29.5 * kGiB);
  CHECK(device.dram().bandwidth->value == 800e9);
  CHECK(device.interconnect->topology == Topology::full_mesh);
  CHECK(device.interconnect->per_direction->value == 7 * 28e9);

  const Device large = load_device("atlas-800i-a2-64gb");
  CHECK(large.dram().capacity->value == 62432 * kMiB);
  CHECK(large.dram().bandwidth->value == 1600e9);
  CHECK(tera(large, Engine::matrix, Dtype::fp16) == Approx(245.76));
}

TEST_CASE("tx8: 16 tiles of 8 TFLOP/s share 100 GB/s of DRAM") {
  const Device device = load_device("tx8");
  REQUIRE(device.kind == DeviceKind::tile_array);
  REQUIRE(device.tile_array.has_value());
  const TileArray& array = *device.tile_array;
  CHECK(array.tiles == 16);
  CHECK(array.mesh_x == 4);
  CHECK(array.mesh_y == 4);
  CHECK(array.noc_link.value == 128e9);
  CHECK(array.hop_latency.value == Approx(0.01e-6));
  CHECK(array.dram_latency.value == Approx(0.1e-6));
  CHECK(tera(device, Engine::matrix, Dtype::fp16) == Approx(16 * 8));
  CHECK(tera(device, Engine::vector, Dtype::fp16) == Approx(16 * 0.0625));
  REQUIRE(device.memory.size() == 2);
  CHECK(device.memory[0].per_tile);
  CHECK(device.memory[0].capacity->value == 3 * kMiB);
  CHECK(device.last_level_cache() == nullptr);  // no tile sees another one's SRAM as its cache
  CHECK(device.dram().bandwidth->value == 100e9);
  CHECK(device.dram().provenance == Provenance::assumed);
  CHECK(device.dram().bandwidth_provenance == Provenance::datasheet);
}

TEST_CASE("hardware before bf16 has no bf16 matrix rate and says so instead of standing in fp16") {
  for (const char* old : {"t4", "v100-sxm2-32gb", "ascend-910a", "ascend-310p"}) {
    CAPTURE(old);
    const Device device = load_device(old);
    CHECK(device.find_peak(Engine::matrix, Dtype::fp16) != nullptr);
    CHECK(device.find_peak(Engine::matrix, Dtype::bf16) == nullptr);
    CHECK(device.find_peak(Engine::vector, Dtype::bf16) == device.find_peak(Engine::vector, Dtype::fp32));
  }
}

TEST_CASE("parts of servers say how many are in one and what joins the servers") {
  const std::pair<const char*, double> eight[] = {
      {"a100-sxm-80gb", 25e9}, {"h100-sxm", 50e9}, {"h200-sxm", 50e9},      {"b200-sxm", 50e9},     {"mi300x", 50e9},
      {"gaudi2", 37.5e9},      {"gaudi3", 75e9},   {"atlas-800i-a2", 25e9}, {"ascend-910b2", 25e9}, {"h20", 50e9}};
  for (const auto& [name, rate] : eight) {
    CAPTURE(name);
    const Device device = load_device(name);
    CHECK(device.devices_per_node == 8);
    REQUIRE(device.network.has_value());
    CHECK(device.network->per_direction.value == rate);
  }
  CHECK(load_device("gb200").devices_per_node == 72);  // a rack
  CHECK(load_device("mi250x").devices_per_node == 4);  // cards of two dies
  CHECK(load_device("tpu-v4").devices_per_node == 1);  // a torus has no nodes
  CHECK_FALSE(load_device("rtx4090").network.has_value());
}

TEST_CASE("in a full mesh every device has a link for each of the others") {
  for (const Device& device : all_devices()) {
    if (!device.interconnect || device.interconnect->topology != Topology::full_mesh) continue;
    if (!device.interconnect->links || device.devices_per_node == 1) continue;
    CAPTURE(device.name);
    CHECK(*device.interconnect->links >= device.devices_per_node - 1);
  }
}

TEST_CASE("a CPU has vector rates only") {
  const Device device = load_device("epyc-9654");
  CHECK(device.find_peak(Engine::matrix, Dtype::fp32) == nullptr);
  CHECK(tera(device, Engine::vector, Dtype::fp16) == Approx(96 * 2.4e9 * 32 / 1e12).epsilon(0.001));
}

TEST_CASE("a program on some cores of a CPU has their rates, and the bandwidth that they draw") {
  Device cpu = load_device("ryzen-7950x");  // 16 cores, 2.735 TFLOP/s, 67 GB/s
  const Device four = with_threads(cpu, 4, std::nullopt);
  CHECK(tera(four, Engine::vector, Dtype::fp32) == Approx(2.735 / 4));
  CHECK(four.cores == 4);
  CHECK(four.dram().bandwidth->value == 67e9);  // they could draw 80
  CHECK(four.peaks.front().provenance == Provenance::derived);
  CHECK(with_threads(cpu, 2, std::nullopt).dram().bandwidth->value == 2 * 20e9);
  cpu.core_bandwidth.reset();
  CHECK(with_threads(cpu, 4, std::nullopt).dram().bandwidth->value == 4 * 13e9);  // where a file does not say
  CHECK(with_threads(cpu, 4, std::nullopt).dram().bandwidth_provenance == Provenance::assumed);
  cpu.core_bandwidth = BytesPerSecond{5e9};
  CHECK(with_threads(cpu, 8, std::nullopt).dram().bandwidth->value == 40e9);
  CHECK(with_threads(cpu, std::nullopt, std::nullopt).dram().bandwidth->value == 67e9);

  cpu.numa_nodes = 4;
  const Device node = with_threads(cpu, std::nullopt, 1);
  CHECK(node.cores == 4);
  CHECK(node.dram().bandwidth->value == 67e9 / 4);
  CHECK(tera(node, Engine::vector, Dtype::fp32) == Approx(2.735 / 4));
  CHECK(with_threads(cpu, 2, 1).dram().bandwidth->value == 10e9);  // of the node's 16.75
  CHECK(with_threads(cpu, std::nullopt, 4).dram().bandwidth->value == 67e9);
  CHECK_THROWS_AS(with_threads(cpu, 17, std::nullopt), Error);
  CHECK_THROWS_AS(with_threads(cpu, 5, 1), Error);  // a node has four
  CHECK_THROWS_AS(with_threads(cpu, std::nullopt, 5), Error);
}

// A card of 400 W at 100 TFLOP/s, with 300 W above the quarter that it draws at rest.
TEST_CASE("under a power limit the clock is the cube root of the share above rest, and the memory stays") {
  Device card = load_device("rtx4090");
  card.power_w = 400;
  card.clock_hz = 2e9;
  const double before = tera(card, Engine::matrix, Dtype::fp16);
  const Device half = with_power_limit(card, 250);  // (250 - 100) / 300 = 1/2
  CHECK(half.power_limit->clock == Approx(0.7937));
  CHECK(half.power_limit->doubt == Approx(0.1225).epsilon(1e-3));  // as far as the square root: 0.7071
  CHECK(half.power_limit->board_w == 400);
  CHECK(half.power_w == 250);
  CHECK(tera(half, Engine::matrix, Dtype::fp16) == Approx(before * 0.7937));
  CHECK(*half.clock_hz == Approx(2e9 * 0.7937));
  CHECK(half.clock_ratio() == Approx(card.clock_ratio()));
  CHECK(half.dram().bandwidth->value == card.dram().bandwidth->value);
  CHECK(with_power_limit(card, 399.999).power_limit->clock == Approx(1).epsilon(1e-4));
  CHECK_THROWS_AS(with_power_limit(card, 400), Error);                    // limits nothing
  CHECK_THROWS_AS(with_power_limit(card, 159), Error);                    // below two fifths
  CHECK_THROWS_AS(with_power_limit(load_device("apple-m4"), 30), Error);  // says no power
  card.power_shares = PowerShares{.idle = 0.4, .memory = 0.2, .matrix = 0.5};
  CHECK(with_power_limit(card, 280).power_limit->clock == Approx(0.7937));  // (280 - 160) / 240
  card.power_shares->idle = 0.45;
  CHECK_THROWS_AS(with_power_limit(card, 170), Error);  // less than it draws at rest
  CHECK(parse_watts("245W") == 245.0);
  CHECK(parse_watts("0.3 kW") == 300.0);
  CHECK(parse_watts("245") == 245.0);
  CHECK_FALSE(parse_watts("-5W").has_value());
  CHECK_FALSE(parse_watts("245 V").has_value());
}

// Laptops are sold with limits, and with the boost clocks that belong to them.
TEST_CASE("the clock under a limit is within its doubt of the clocks that laptops are sold with") {
  struct Sold {
    const char* name;
    double watts, share;  // of the clock at the most power
  };
  for (const Sold& sold : {Sold{"rtx3060-laptop", 80, 1425.0 / 1702}, Sold{"rtx3060-laptop", 60, 1282.0 / 1702},
                           Sold{"rtx3080-laptop", 115, 1545.0 / 1710}, Sold{"rtx4070-laptop", 60, 1620.0 / 2175},
                           Sold{"rtx4090-laptop", 120, 1695.0 / 2040}, Sold{"rtx4090-laptop", 130, 1815.0 / 2040}}) {
    CAPTURE(sold.name, sold.watts);
    const PowerLimit limit = *with_power_limit(load_device(sold.name), sold.watts).power_limit;
    CHECK(limit.clock == Approx(sold.share).epsilon(0.09));
  }
}

TEST_CASE("memory that keeps its check bits among the data has less bandwidth") {
  CHECK(load_device("l40s").dram().bandwidth->value == Approx(0.88 * 864e9));
  CHECK(load_device("l40s").dram().bandwidth_provenance == Provenance::assumed);  // as the share is
  CHECK(load_device("a40").dram().bandwidth->value == Approx(0.88 * 695.8e9));
  CHECK(load_device("rtx6000ada").dram().bandwidth->value == Approx(960e9));  // where ECC is off as delivered
}

// 60 of 80 cores, at the same clock, with the memory of its own.
TEST_CASE("a variant is another device but for what its file says") {
  const Device whole = load_device("apple-m3-ultra");
  const Device bin = load_device("apple-m3-ultra-60");
  CHECK(bin.family == whole.family);
  CHECK(bin.kind == whole.kind);
  CHECK(bin.cores == 60);
  CHECK(tera(bin, Engine::matrix, Dtype::fp16) == Approx(28.4 * 60 / 80));
  CHECK(bin.dram().bandwidth->value == whole.dram().bandwidth->value);
  CHECK(bin.dram().board->value == 256 * kGiB);
  CHECK(bin.dram().name == "unified");
  CHECK(bin.source.ends_with("; the rest as apple-m3-ultra"));

  // What the RTX 4090 was seen to run at, and what it is sold for, is not said of its variant.
  const Device fewer = load_device("rtx4090d");
  CHECK(fewer.prices.empty());
  CHECK_FALSE(fewer.measured_clock_hz.has_value());
  CHECK(fewer.peaks.front().provenance == Provenance::derived);
  CHECK(fewer.peaks.size() == load_device("rtx4090").peaks.size());
  CHECK(fewer.memory.front().capacity->value == 72 * kMiB);

  const Device h20 = load_device("h20-141gb");
  CHECK(h20.peaks.front().provenance == Provenance::datasheet);  // at the base's cores and clock
  CHECK(h20.dram().capacity->value == Approx(143156 * kMiB));
  CHECK(h20.dram().capacity_note != load_device("h20").dram().capacity_note);
}

}  // namespace
}  // namespace llmperf::hardware::device_test
