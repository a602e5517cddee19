#include "result/basis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/estimate.h"
#include "hardware/beyond_range.h"
#include "hardware/runtime_execution.h"
#include "model/video/video_dit.h"
#include "program/estimate.h"

namespace llmperf::result {

std::string kv_text(const estimate::Setup& setup) {
  return setup.execution.kv.name() + (setup.checkpoint_kv ? " (checkpoint)" : "");
}

namespace {

std::string replaced_text(std::string_view source) {
  const std::string_view file = descriptor::replacing(source);
  return file.empty() ? "" : fmt::format("; {}, in place of the built-in file", file);
}

}  // namespace

std::string replaced_text(const estimate::Platform& platform) {
  return replaced_text(platform.device->source) + (platform.profile ? replaced_text(platform.profile->source) : "");
}

std::string label(const estimate::Platform& platform) {
  const std::string replaced = replaced_text(platform);
  if (platform.tile_model() == mapper::TileModel::mapped) return "best mapping found, uncalibrated" + replaced;
  if (platform.tile_model() == mapper::TileModel::published)
    return "the published mapper's formulas, not held against roofs" + replaced;
  if (platform.profile == nullptr) return kUncalibrated + replaced;
  const bool own = platform.profile->measured_on(*platform.device);
  return fmt::format("predicted: {}{}{}", platform.profile->title_for(*platform.device),
                     own ? "" : ", not fitted to this device", replaced);
}

std::string label(const estimate::Setup& setup) {
  const std::string& family = setup.execution.model->read_as;
  const std::string basis =
      label(static_cast<const estimate::Platform&>(setup)) + replaced_text(setup.execution.model->source);
  return family.empty() ? basis : fmt::format("{}; model read as {}", basis, family);
}

std::string no_band_text(const estimate::Platform& platform) {
  switch (platform.tile_model()) {
    case mapper::TileModel::mapped:
      return "none: event simulation of the best mapping found, on the datasheet's rates; no array of tiles was "
             "measured";
    case mapper::TileModel::published:
      return "none: for comparison only, docs/errata.md says what these formulas leave out";
    default: return "none: speed of light (efficiency 1, no launch cost); real software is slower";
  }
}

std::string options_text(const estimate::Setup& setup) {
  const hardware::RuntimeOptions& options = setup.execution.runtime;
  return setup.profile ? hardware::format_profile_options(*setup.profile, options)
                       : hardware::format_runtime_options(options);
}

std::string weights_text(const estimate::Setup& setup) {
  const std::string& name = setup.execution.weights.name;
  return setup.weights_kernel.empty() ? name : fmt::format("{} ({})", name, setup.weights_kernel);
}

std::optional<Band> band(const estimate::Platform& platform, std::string_view workload, bool extrapolated) {
  const hardware::FittedError* error = platform.profile ? platform.profile->error_of(workload) : nullptr;
  if (error == nullptr || (extrapolated && !platform.profile->hardware.empty() && error->rows > 0)) return std::nullopt;
  Band band = estimate::band_of(*error);
  if (platform.profile->hardware.empty()) band.rows = 0;
  return band;
}

std::string band_share(double share) { return format_significant(100 * share, 2) + " %"; }

std::string with_band(Seconds time, const std::optional<Band>& band) {
  if (!band) return format_seconds(time);
  return fmt::format("{} ±{}", format_seconds(time), band_share(band->mean));
}

std::string rows_text(const hardware::RuntimeProfile& profile, std::int64_t rows, std::int64_t fewest) {
  constexpr std::int64_t kFew = 20;  // below, the band is widened by more than a twentieth
  if (rows == 0) {
    return fmt::format("; an assumption: {}", profile.hardware.empty() ? "the profile is not this device's own"
                                                                       : "such steps were not measured on it");
  }
  return fmt::format("; cross-validated on {} rows{}", rows,
                     fewest < kFew ? ", and widened because they are so few" : "");
}

namespace {

// Whether a phase has further pieces of the prompts that an earlier one begins.
bool continues_prompt(const estimate::Phase& phase) { return phase.name.starts_with("prefill_"); }

hardware::StepSize step_of(const estimate::Setup& setup, const estimate::Scenario& s, std::string_view phase,
                           hardware::StepSize step) {
  const bool prefill = phase != "decode";
  const std::int64_t replicas = setup.execution.plan.data;
  step.batch = (s.batch + replicas - 1) / replicas;
  const std::int64_t piece = std::min(s.prompt, setup.serving.prefill_chunk.value_or(s.prompt));
  step.tokens = step.batch * (prefill ? piece : setup.serving.verify);
  // Of decode the mean, as in measured rows: errors are of the mean step.
  step.context = s.depth + (prefill ? s.prompt : s.prompt + s.generate / 2);
  return step;
}

}  // namespace

std::optional<Band> band(const estimate::Setup& setup, const estimate::Estimate& e, std::string_view phase) {
  const auto found = std::ranges::find(e.phases, phase, &estimate::Phase::name);
  if (setup.profile == nullptr || found == e.phases.end()) return std::nullopt;
  const hardware::StepSize step = step_of(setup, e.scenario, phase, estimate::step_size(setup));
  // Steps that verify are not the decode steps that were measured.
  const std::string_view measured = phase == "decode" && setup.serving.verify > 1 ? "verify"
                                    : continues_prompt(*found)                    ? "prefill"
                                                                                  : phase;
  return estimate::band_of(*setup.profile, step, estimate::shares_of(found->ops), measured,
                           ways_beyond(*setup.profile, step));
}

std::optional<Band> ttft_band(const estimate::Setup& setup, const estimate::Estimate& e) {
  std::optional<Band> widest;
  for (const estimate::Phase& phase : e.phases) {
    if (phase.name == "decode") continue;
    const std::optional<Band> each = band(setup, e, phase.name);
    if (each && (!widest || widest->p90 < each->p90)) widest = each;
  }
  return widest;
}

std::string band_text(const estimate::Setup& setup, const estimate::Estimate& e) {
  if (setup.profile == nullptr) return no_band_text(setup);
  std::string text;
  std::int64_t rows = 0;
  std::optional<std::int64_t> fewest;
  std::vector<std::string> parts;
  for (const estimate::Phase& phase : e.phases) {
    if (continues_prompt(phase)) continue;
    const std::optional<Band> b = band(setup, e, phase.name);
    text += fmt::format("{}{} within {}", text.empty() ? "9 of 10: " : ", ", phase.name, band_share(b->p90));
    rows += b->rows;
    if (b->rows == 0) parts.emplace_back(phase.name);
    if (b->rows > 0 && (!fewest || b->rows < *fewest)) fewest = b->rows;
  }
  if (!fewest) return text + "; from the errors of the parts of a step";
  text += rows_text(*setup.profile, rows, *fewest);
  return parts.empty() ? text : fmt::format("{}; {} from the errors of its parts", text, parts.front());
}

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s,
                                        std::string_view phase) {
  if (setup.profile == nullptr) return {};
  return setup.profile->beyond_range(step_of(setup, s, phase, estimate::step_size(setup)));
}

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s) {
  if (setup.profile == nullptr) return {};
  const hardware::StepSize step = estimate::step_size(setup);
  const auto beyond = [&](std::string_view phase) {
    return ways_beyond(*setup.profile, step_of(setup, s, phase, step));
  };
  std::vector<hardware::Beyond> all;
  if (setup.serving.prefills()) all = beyond("prefill");
  if (setup.serving.decodes() && s.generate > 1) {
    for (hardware::Beyond& way : beyond("decode")) {
      const auto same = std::ranges::find(all, way.way, &hardware::Beyond::way);
      if (same == all.end()) {
        all.push_back(std::move(way));
      } else if (way.way == hardware::Way::context) {  // a longer one takes the place of the prompt's
        *same = std::move(way);
      }
    }
  }
  std::vector<std::string> texts;
  for (hardware::Beyond& way : all) texts.push_back(std::move(way.text));
  return texts;
}

std::string options_text(const estimate::VideoSetup& setup) {
  const hardware::RuntimeOptions& options = setup.execution.runtime;
  return setup.profile ? hardware::format_profile_options(*setup.profile, options)
                       : hardware::format_runtime_options(options, hardware::Workload::video);
}

std::vector<std::string> extrapolations(const estimate::VideoSetup& setup) {
  if (setup.profile == nullptr) return {};
  const graph::VideoExecution& e = setup.execution;
  return setup.profile->beyond_range({.batch = e.batch(),
                                      .tokens = e.batch() * e.shape.tokens(),
                                      .context = 0,
                                      .parameters = static_cast<double>(model::count_parameters(*e.model).total),
                                      .weights = setup.weights_name,
                                      .plan = graph::to_text(e.plan),
                                      .device = setup.device->name});
}

std::optional<Band> band(const estimate::VideoSetup& setup) {
  return band(setup, "video", !extrapolations(setup).empty());
}

std::optional<Band> training_band(const estimate::Setup& setup, const estimate::TrainingEstimate& e) {
  const bool sites_left_out = setup.profile != nullptr && setup.profile->choices.fused_training;
  return sites_left_out || training_extrapolations(setup, e).empty() ? estimate::band_of_run(setup, e) : std::nullopt;
}

std::string profile_label(const estimate::Platform& platform) {
  return platform.profile ? platform.profile->title_for(*platform.device) + replaced_text(platform) : label(platform);
}

std::string profile_label(const estimate::Setup& setup) {
  if (setup.profile == nullptr) return label(setup);
  return profile_label(static_cast<const estimate::Platform&>(setup)) + replaced_text(setup.execution.model->source);
}

std::vector<std::string> training_extrapolations(const estimate::Setup& setup, const estimate::TrainingEstimate& e) {
  if (setup.profile == nullptr || setup.profile->error_of("training") == nullptr) return {};
  if (setup.profile->choices.fused_training) {  // whose errors are of sites left out
    const std::optional<Band> band = estimate::band_of_run(setup, e);
    std::vector<std::string> beyond;
    if (!band || band->rows == 0) {
      beyond.push_back(
          fmt::format("no such run under {} on such devices was published with its plan", setup.profile->name));
    }
    constexpr std::int64_t kShortest = 512;  // tokens of the runs
    constexpr std::int64_t kLongest = 262144;
    if (e.scenario.sequence < kShortest || e.scenario.sequence > kLongest) {
      beyond.push_back(
          fmt::format("sequences of {} tokens (measured {} to {})", e.scenario.sequence, kShortest, kLongest));
    }
    return beyond;
  }
  const hardware::FittedRange& measured = setup.profile->range;
  const model::Decoder& m = *setup.execution.model;
  std::vector<std::string> beyond;
  const auto check = [&](bool outside, std::string what) {
    if (outside) beyond.push_back(std::move(what));
  };
  constexpr double kMargin = 2;  // sizes between the measured ones and a little beyond are what the formulas are for
  const auto tokens = static_cast<double>(e.scenario.sequence);
  const auto measured_tokens = static_cast<double>(measured.max_context);
  check(!setup.profile->measured_on(*setup.device), fmt::format("not measured on {}", setup.device->name));
  check(tokens > kMargin * measured_tokens || tokens < measured_tokens / kMargin,
        fmt::format("sequences of {} tokens (measured with {})", format_count(tokens), format_count(measured_tokens)));
  check(e.scenario.micro_batch * e.scenario.sequence > measured.max_tokens,
        fmt::format("micro-batches of {} tokens (measured up to {})",
                    format_count(tokens * static_cast<double>(e.scenario.micro_batch)),
                    format_count(static_cast<double>(measured.max_tokens))));
  check(e.scenario.global_batch > measured.max_batch,
        fmt::format("global batch {} (measured up to {})", e.scenario.global_batch, measured.max_batch));
  const auto parameters = static_cast<double>(model::count_parameters(m).total);
  check(parameters > kMargin * measured.max_parameters || parameters < measured.min_parameters / kMargin,
        fmt::format("{} parameters (measured {} to {})", format_significant(parameters),
                    format_significant(measured.min_parameters), format_significant(measured.max_parameters)));
  const bool gpt = std::all_of(m.kinds.begin(), m.kinds.end(), [](const model::Layer& layer) {
    return !layer.feed_forward.gated && !layer.feed_forward.experts &&
           layer.attention.kv_heads == layer.attention.heads;
  });
  check(!gpt, "another block than a GPT's (measured: as many KV heads as heads, an MLP without gate)");
  const std::string options = hardware::format_runtime_options(setup.execution.runtime);
  check(options != "none", fmt::format("options {} (measured with none)", options));
  using graph::Recompute;
  check(e.options.recompute == Recompute::none || (e.options.recompute == Recompute::full) == e.plan.sequence_parallel,
        fmt::format("recompute {} with{} sequence parallelism (measured: full without, selective with)",
                    graph::name(e.options.recompute), e.plan.sequence_parallel ? "" : "out"));
  check(e.options.zero > 0, fmt::format("ZeRO {} (measured without)", e.options.zero));
  check(e.plan.sequence() > 1 || e.plan.tensor_rows > 0,
        "a sequence or matrices divided another way (measured: tensor, pipeline and data parallelism)");
  return beyond;
}

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

std::vector<Figure> figures_used(const program::ProgramSetup& setup, Dtype products) {
  Figures figures(setup);
  figures.peak("matrix_flops_per_s", "matrix peak", Engine::matrix, products);
  figures.peak("vector_flops_per_s", "vector peak", Engine::vector, Dtype::fp32);
  figures.memory();
  figures.links(setup.devices);
  return figures.done();
}

}  // namespace llmperf::result
