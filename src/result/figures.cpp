#include "result/figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "estimate/program.h"

namespace llmperf::result {
namespace {

using hardware::Engine;

class Figures {
 public:
  explicit Figures(const estimate::Platform& platform) : platform_(platform), device_(*platform.device) {}

  void add(Figure figure) { list_.push_back(std::move(figure)); }
  void peak(const char* key, const char* label, Engine engine, Dtype dtype) {
    if (const hardware::Peak* p = device_.find_peak(engine, dtype)) {
      add({key, label, fmt::format("{} {}", format_flops_rate(p->rate), name(p->dtype)), p->rate.value, p->provenance});
    }
  }
  // The peak that products with such weights are held against: the fastest way that their kernels have without a
  // profile; a profile's shares are of the wide one.
  void products(const model::StoredFormat& weights) {
    const cost::Sums sums = platform_.profile ? cost::Sums::wide : cost::sums_of(weights);
    const hardware::Peak* p = device_.find_peak(Engine::matrix, weights.compute);
    const hardware::Peak* narrow = sums == cost::Sums::wide ? nullptr : device_.fastest_peak(weights.compute);
    const hardware::Peak* integer = sums == cost::Sums::integer ? device_.fastest_peak(Dtype::int8) : nullptr;
    for (const hardware::Peak* other : {narrow, integer}) {
      if (p && other && other->rate > p->rate) p = other;
    }
    if (p == nullptr) return;
    const bool in_16_bits = p->accumulate == Dtype::fp16;
    add({"matrix_flops_per_s", "matrix peak",
         fmt::format("{} {}{}", format_flops_rate(p->rate), name(p->dtype), in_16_bits ? ", fp16 accumulate" : ""),
         p->rate.value, p->provenance});
  }
  void memory() {
    if (device_.measured_clock_hz && device_.clock_hz) {
      add({"measured_clock_hz", "clock",
           fmt::format("{} MHz, where peaks are at {}", format_significant(*device_.measured_clock_hz / 1e6),
                       format_significant(*device_.clock_hz / 1e6)),
           *device_.measured_clock_hz, hardware::Provenance::measured});
    }
    const hardware::MemoryLevel& dram = device_.dram();
    add({"memory_bandwidth_bytes_per_s", "memory bandwidth", format_bandwidth(*dram.bandwidth), dram.bandwidth->value,
         dram.bandwidth_provenance});
    add({"memory_capacity_bytes", "memory capacity", format_bytes_binary(*dram.capacity), dram.capacity->value,
         dram.provenance});
  }
  void links(std::int64_t devices) {
    if (devices == 1) return;
    const cost::Cluster& c = platform_.cluster;
    const cost::Cluster charged = platform_.charged_cluster();
    if (charged.devices_per_package > 1) {
      links("package_bytes_per_s", "package_latency_s", "links in a package", c.package, charged.package);
    }
    if (c.devices_per_node > 1) {
      links("interconnect_bytes_per_s", "interconnect_latency_s", "links in a node", c.inside, charged.inside);
    }
    if (c.devices_per_supernode > 1 && devices > c.devices_per_node) {
      links("supernode_bytes_per_s", "supernode_latency_s", "links in a supernode", c.supernode, charged.supernode);
    }
    if (devices > std::max(c.devices_per_node, c.devices_per_supernode)) {
      links("network_bytes_per_s", "network_latency_s", "links between nodes", c.between, charged.between);
    }
  }
  std::vector<Figure> done() {
    add({"reserve_bytes", "runtime reserve", format_bytes_binary(platform_.reserve), platform_.reserve.value,
         hardware::Provenance::assumed});
    return std::move(list_);
  }

 private:
  // The steps of a profile's library hide a latency that is shorter.
  void links(const char* rate, const char* latency, const char* what, const cost::Links& l,
             const cost::Links& charged) {
    add({rate, what,
         fmt::format("{} ({}), {} per device", l.name, hardware::name(l.topology), format_bandwidth(l.per_device)),
         l.per_device.value, l.provenance});
    if (platform_.profile && (!l.latency_stated || charged.latency > l.latency)) return;
    add({latency, "latency of a step", format_seconds(l.latency), l.latency.value, l.latency_provenance});
  }

  const estimate::Platform& platform_;
  const hardware::Device& device_;
  std::vector<Figure> list_;
};

}  // namespace

std::vector<Figure> figures_used(const estimate::Setup& setup) {
  Figures figures(setup);
  const model::StoredFormat& weights = setup.execution.weights.groups.front()[model::Role::o];
  figures.products(weights);
  if (weights.compute != setup.execution.activations) {
    figures.peak("attention_matrix_flops_per_s", "matrix peak (attention)", Engine::matrix,
                 setup.execution.activations);
  }
  figures.peak("vector_flops_per_s", "vector peak", Engine::vector, Dtype::fp32);
  figures.memory();
  if (setup.host) {
    const hardware::Device& host = *setup.host;
    const hardware::Peak& rate = *host.find_peak(Engine::vector, Dtype::fp32);
    const hardware::MemoryLevel& memory = host.dram();
    figures.add({"host_vector_flops_per_s", "vector peak (host)",
                 fmt::format("{} {}", format_flops_rate(rate.rate), name(rate.dtype)), rate.rate.value,
                 rate.provenance});
    figures.add({"host_memory_bandwidth_bytes_per_s", "memory bandwidth (host)", format_bandwidth(*memory.bandwidth),
                 memory.bandwidth->value, memory.bandwidth_provenance});
    figures.add({"host_memory_capacity_bytes", "memory capacity (host)", format_bytes_binary(*memory.capacity),
                 memory.capacity->value, memory.provenance});
    figures.add({"host_link_bytes_per_s", "host link",
                 fmt::format("{} {}", setup.link.name, format_bandwidth(setup.link.per_direction)),
                 setup.link.per_direction.value, setup.link.provenance});
  }
  figures.links(setup.execution.plan.devices());
  return figures.done();
}

std::vector<Figure> figures_used(const estimate::VideoSetup& setup) {
  Figures figures(setup);
  const graph::VideoExecution& e = setup.execution;
  figures.peak("matrix_flops_per_s", "matrix peak", Engine::matrix, e.weights.compute);
  if (e.weights.compute != e.activations) {
    figures.peak("attention_matrix_flops_per_s", "matrix peak (attention)", Engine::matrix, e.activations);
  }
  if (e.text_activations != e.activations) {
    figures.peak("text_matrix_flops_per_s", "matrix peak (text)", Engine::matrix, e.text_activations);
  }
  figures.peak("vector_flops_per_s", "vector peak", Engine::vector, Dtype::fp32);
  figures.memory();
  figures.links(setup.devices());
  return figures.done();
}

std::vector<Figure> figures_used(const estimate::ProgramSetup& setup, Dtype products) {
  Figures figures(setup);
  figures.peak("matrix_flops_per_s", "matrix peak", Engine::matrix, products);
  figures.peak("vector_flops_per_s", "vector peak", Engine::vector, Dtype::fp32);
  figures.memory();
  figures.links(setup.devices);
  return figures.done();
}

}  // namespace llmperf::result
