#include "report/estimate_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "report/estimate_json.h"
#include "report/json.h"
#include "report/op_text.h"
#include "report/plan_report.h"
#include "report/runtime_text.h"

namespace llmperf::report {
namespace {

using estimate::Estimate;
using estimate::Estimator;
using estimate::OpEstimate;
using estimate::Phase;

std::string tokens_rate(double rate) { return format_significant(rate) + " tokens/s"; }

// "matrix-bound 97 %, memory-bound 3 %" of a phase's time.
std::string bound_shares(const Phase& p) {
  std::string text;
  for (std::size_t i = 0; i < std::size(p.bound_time); ++i) {
    const double share = p.bound_time[i] / p.ops_time;
    if (share < 0.0005) continue;  // would print as 0.0 %
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", mapper::name(static_cast<mapper::Bound>(i)), format_share(share));
  }
  return text;
}

Heading heading(const Estimator& estimator) {
  return {estimator.setup().execution.model->name + " on " + estimator.setup().device->title, label(estimator.setup())};
}

std::string assumptions_line(const Estimator& estimator, const Estimate& e) {
  const graph::Execution& x = estimator.setup().execution;
  std::string text =
      fmt::format("batch {}, prompt {}, generate {}; weights {}, KV cache {}, activations {}; options {}",
                  e.scenario.batch, e.scenario.prompt, e.scenario.generate, x.weights.name, x.kv.name(),
                  name(x.activations), options_text(estimator.setup()));
  const estimate::Setup& setup = estimator.setup();
  if (setup.profile) {
    const std::string prefill(hardware::name(setup.prefill_dispatch));
    const std::string decode(hardware::name(setup.decode_dispatch));
    text += fmt::format("; runtime {}, {}", setup.profile->name,
                        prefill == decode ? decode : fmt::format("prefill {}, decode {}", prefill, decode));
  }
  if (x.plan.devices() > 1) text += "; " + plan_text(setup);
  return text;
}

std::string fit_text(const Estimate& e) {
  std::string text =
      fmt::format("needs {} of {}", format_bytes_binary(e.memory.total()), format_bytes_binary(e.capacity));
  if (e.host_capacity.value > 0) {
    text += fmt::format("; {} of the host's {}", format_bytes_binary(e.host_memory.total()),
                        format_bytes_binary(e.host_capacity));
  }
  return text;
}

// "32 of 33 layers on the device" as llama.cpp counts them, the head being one.
std::string offload_text(const estimate::Setup& setup) {
  const model::WeightLayout& w = setup.execution.weights;
  std::int64_t layers = w.head_on_host ? 0 : 1;
  for (const model::LayerGroup& group : w.groups) layers += group.on_host ? 0 : group.count();
  return fmt::format("{} of {} layers on the device (the head counts as one); the token embedding and sampling on {}",
                     layers, setup.execution.model->num_layers() + 1, setup.host->title);
}

std::string context_text(const Estimator& estimator, const Estimate& e) {
  const auto trained = estimator.setup().execution.model->max_position;
  if (e.longest_context == 0) return fmt::format("none at batch {}", e.scenario.batch);
  std::string text =
      fmt::format("{} tokens at batch {}", format_count(static_cast<double>(e.longest_context)), e.scenario.batch);
  if (trained && e.longest_context > *trained) {
    text += fmt::format(" (the model is made for {})", format_count(static_cast<double>(*trained)));
  }
  return text;
}

Fields headline(const Estimator& estimator, const Estimate& e) {
  Fields f;
  f.rows.emplace_back("TTFT", fmt::format("{} ({}; bound by {})", with_band(e.ttft, band(estimator.setup(), "prefill")),
                                          tokens_rate(e.prefill_tokens_per_second), bound_shares(e.phases[0])));
  if (e.tpot) {
    f.rows.emplace_back(
        "TPOT",
        fmt::format("{} mean, {} first, {} last (bound by {})", with_band(*e.tpot, band(estimator.setup(), "decode")),
                    format_seconds(*e.tpot_first), format_seconds(*e.tpot_last), bound_shares(e.phases[1])));
    f.rows.emplace_back("decode", fmt::format("{} in total, {} per request", tokens_rate(e.decode_tokens_per_second),
                                              tokens_rate(1 / e.tpot->value)));
  }
  f.rows.emplace_back(
      "generation",
      fmt::format("{} for {} tokens per request: {} in total, {} per request", format_seconds(e.total),
                  e.scenario.generate, tokens_rate(e.tokens_per_second), tokens_rate(e.tokens_per_second_per_request)));
  f.rows.emplace_back("error band", band_text(estimator.setup()));
  if (const auto beyond = extrapolations(estimator, e.scenario); !beyond.empty()) {
    f.rows.emplace_back("extrapolated", join(beyond, "; "));
  }
  if (estimator.setup().execution.plan.devices() > 1) {
    for (const Phase& p : e.phases) {
      f.rows.emplace_back("network in " + std::string(p.name), network_text(p));
    }
  }
  f.rows.emplace_back("memory", "fits: " + fit_text(e));
  if (estimator.setup().host) f.rows.emplace_back("offload", offload_text(estimator.setup()));
  f.rows.emplace_back("largest batch", fmt::format("{} requests of {} + {} tokens", e.largest_batch, e.scenario.prompt,
                                                   e.scenario.generate));
  f.rows.emplace_back("longest context", context_text(estimator, e));
  return f;
}

Table phase_table(const Estimator& estimator, const Estimate& e) {
  Table t{"Phases (one step)",
          {{"phase", true},
           {"steps"},
           {"time"},
           {"FLOPs"},
           {"bytes"},
           {"FLOP/byte"},
           {"ridge"},
           {"bound", true},
           {"of roof"}},
          {}};
  const auto& roofline = estimator.roofline();
  const double ridge =
      (roofline.matrix_rate(estimator.setup().execution.weights.groups.front()[model::Role::o].compute) /
       roofline.bandwidth())
          .value;
  for (const Phase& p : e.phases) {
    t.rows.push_back({std::string(p.name), std::to_string(p.steps), format_seconds(p.time),
                      format_flops(p.work.matrix + p.work.vector), format_bytes(p.work.bytes()),
                      format_significant(p.intensity().value, 3), format_significant(ridge, 3),
                      std::string(mapper::name(p.bound)), format_share(p.roof / p.time)});
  }
  return t;
}

Table memory_table(std::string title, const cost::Memory& memory, Bytes capacity) {
  Table t{std::move(title), {{"what", true}, {"size"}, {"of capacity"}}, {}};
  const auto row = [&](const char* what, Bytes bytes) {
    t.rows.push_back({what, format_bytes_binary(bytes), format_share(bytes / capacity)});
  };
  row("weights", memory.weights);
  row("KV cache", memory.kv_cache);
  row("activations (peak)", memory.activation);
  row("runtime reserve", memory.reserve);
  row("total", memory.total());
  row("capacity", capacity);
  return t;
}

void add_memory(const Estimator& estimator, const Estimate& e, Document& doc) {
  const hardware::Device* host = estimator.setup().host;
  doc.push_back(memory_table("Memory", e.memory, e.capacity));
  if (host) doc.push_back(memory_table("Memory of the host (" + host->title + ")", e.host_memory, e.host_capacity));
}

// "889.1 G": the column's header says of what.
std::string flops_cell(Flops flops) {
  std::string text = format_flops(flops);
  text.resize(text.size() - std::string_view("FLOP").size());
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

Table op_table(const Phase& p) {
  Table t{fmt::format("Ops of {}{}", p.name, p.steps > 1 ? ": mean step; shapes as in the first" : ""),
          {{"op", true},
           {"shape", true},
           {"count"},
           {"FLOPs"},
           {"bytes"},
           {"time"},
           {"share"},
           {"bound", true},
           {"of roof"}},
          {}};
  for (const OpEstimate& o : p.ops) {
    const double count = static_cast<double>(o.op.count);
    std::string name(o.op.name);
    if (o.op.place == graph::Place::host) name += " (host)";
    const model::StoredFormat* format = weight_format(o.op);
    const std::string shape =
        shape_text(o.op) + (format && !format->name.empty() ? fmt::format(" {}", format->name) : "");
    t.rows.push_back({name, shape, std::to_string(o.op.count), flops_cell((o.work.matrix + o.work.vector) * count),
                      format_bytes((o.work.bytes() + o.work.network) * count), format_seconds(o.step_time()),
                      format_share(o.step_time() / p.time), std::string(mapper::name(o.time.bound)),
                      format_share(o.time.roof / o.time.total)});
  }
  return t;
}

Fields basis(const Estimator& estimator) {
  Fields f = rests_on(estimator.setup());
  const std::int64_t devices = estimator.setup().execution.plan.devices();
  if (const std::int64_t n = estimator.setup().device->devices_per_node; n > 1 && devices == 1) {
    f.rows.emplace_back("devices", fmt::format("1 of the {} in a node", n));
  }
  for (const std::string& note : estimator.setup().notes) f.rows.emplace_back("note", note);
  return f;
}

Document document(const Estimator& estimator, const Estimate& e, Detail detail) {
  Document doc{heading(estimator), Paragraph{assumptions_line(estimator, e)}};
  if (!e.fits) {
    doc.push_back(
        Fields{"",
               {{"does not fit", fit_text(e)},
                {"largest batch", e.largest_batch > 0 ? std::to_string(e.largest_batch) + " requests of this length"
                                                      : "none: not even one request of this length fits"},
                {"longest context", context_text(estimator, e)}}});
    add_memory(estimator, e, doc);
    return doc;
  }
  doc.push_back(headline(estimator, e));
  doc.push_back(phase_table(estimator, e));
  add_memory(estimator, e, doc);
  if (estimator.stages().size() > 1) doc.push_back(stage_table(estimator, e));
  if (estimator.setup().execution.plan.devices() > 1) {
    for (const Phase& p : e.phases) doc.push_back(communication_table(estimator, p));
  }
  if (detail == Detail::ops) {
    for (const Phase& p : e.phases) doc.push_back(op_table(p));
  }
  doc.push_back(basis(estimator));
  return doc;
}

Table summary_csv(const Estimator& estimator, const Estimate& e) {
  Table t;
  t.rows.resize(1);
  const auto text = [&](const char* header, std::string value) {
    t.columns.push_back({header});
    t.rows[0].push_back(std::move(value));
  };
  const auto value = [&](const char* header, double v) { text(header, plain(v)); };
  const auto timed = [&](const char* header, double v) { text(header, e.fits ? plain(v) : ""); };
  const graph::Execution& x = estimator.setup().execution;
  text("model", x.model->name);
  text("hardware", estimator.setup().device->name);
  value("batch", static_cast<double>(e.scenario.batch));
  value("prompt_tokens", static_cast<double>(e.scenario.prompt));
  value("generate_tokens", static_cast<double>(e.scenario.generate));
  text("weights", x.weights.name);
  text("kv", x.kv.name());
  text("activations", std::string(name(x.activations)));
  text("options", options_text(estimator.setup()));
  text("devices", std::to_string(x.plan.devices()));
  text("plan", graph::to_text(x.plan));
  text("label", label(estimator.setup()));
  text("runtime", estimator.setup().profile ? estimator.setup().profile->name : "none");
  text("extrapolated", join(extrapolations(estimator, e.scenario), "; "));
  text("fits", e.fits ? "true" : "false");
  timed("ttft_s", e.ttft.value);
  text("tpot_s", e.fits && e.tpot ? plain(e.tpot->value) : "");
  text("tpot_first_s", e.fits && e.tpot ? plain(e.tpot_first->value) : "");
  text("tpot_last_s", e.fits && e.tpot ? plain(e.tpot_last->value) : "");
  timed("total_s", e.total.value);
  timed("tokens_per_second", e.tokens_per_second);
  timed("tokens_per_second_per_request", e.tokens_per_second_per_request);
  value("weight_bytes", e.memory.weights.value);
  value("kv_cache_bytes", e.memory.kv_cache.value);
  value("activation_bytes", e.memory.activation.value);
  value("reserve_bytes", e.memory.reserve.value);
  value("total_bytes", e.memory.total().value);
  value("capacity_bytes", e.capacity.value);
  value("host_total_bytes", e.host_memory.total().value);
  value("host_capacity_bytes", e.host_capacity.value);
  value("largest_batch", static_cast<double>(e.largest_batch));
  value("longest_context_tokens", static_cast<double>(e.longest_context));
  return t;
}

Table ops_csv(const Estimate& e) {
  Table t{"",
          {{"phase"},
           {"name"},
           {"kind"},
           {"shape"},
           {"count"},
           {"flops"},
           {"bytes"},
           {"time_s"},
           {"share"},
           {"bound"},
           {"roof_s"},
           {"place"},
           {"weights"},
           {"network_bytes"},
           {"axis"},
           {"ranks"}},
          {}};
  for (const Phase& p : e.phases) {
    for (const OpEstimate& o : p.ops) {
      const double count = static_cast<double>(o.op.count);
      const model::StoredFormat* format = weight_format(o.op);
      const auto* collective = std::get_if<graph::Collective>(&o.op.body);
      t.rows.push_back({std::string(p.name), std::string(o.op.name), std::string(kind_text(o.op)), shape_text(o.op),
                        std::to_string(o.op.count), plain(((o.work.matrix + o.work.vector) * count).value),
                        plain((o.work.bytes() * count).value), plain(o.step_time().value),
                        plain(o.step_time() / p.time), std::string(mapper::name(o.time.bound)),
                        plain((o.time.roof * count).value), std::string(graph::name(o.op.place)),
                        format ? std::string(format->name) : "", plain((o.work.network * count).value),
                        collective ? std::string(name(collective->axis)) : "",
                        collective ? std::to_string(collective->ranks) : ""});
    }
  }
  return t;
}

}  // namespace

std::vector<Figure> figures_used(const estimate::Setup& setup) {
  using hardware::Engine;
  const hardware::Device& device = *setup.device;
  std::vector<Figure> figures;
  const auto peak = [&](const char* key, const char* label, Engine engine, Dtype dtype) {
    if (const hardware::Peak* p = device.find_peak(engine, dtype)) {
      figures.push_back(
          {key, label, fmt::format("{} {}", format_flops_rate(p->rate), name(p->dtype)), p->rate.value, p->provenance});
    }
  };
  const Dtype compute = setup.execution.weights.groups.front()[model::Role::o].compute;
  peak("matrix_flops_per_s", "matrix peak", Engine::matrix, compute);
  if (compute != setup.execution.activations) {
    peak("attention_matrix_flops_per_s", "matrix peak (attention)", Engine::matrix, setup.execution.activations);
  }
  peak("vector_flops_per_s", "vector peak", Engine::vector, Dtype::fp32);
  const hardware::MemoryLevel& dram = device.dram();
  figures.push_back({"memory_bandwidth_bytes_per_s", "memory bandwidth", format_bandwidth(*dram.bandwidth),
                     dram.bandwidth->value, dram.bandwidth_provenance});
  figures.push_back({"memory_capacity_bytes", "memory capacity", format_bytes_binary(*dram.capacity),
                     dram.capacity->value, dram.provenance});
  if (setup.host) {
    const hardware::Device& host = *setup.host;
    const hardware::Peak& rate = *host.find_peak(Engine::vector, Dtype::fp32);
    const hardware::MemoryLevel& memory = host.dram();
    figures.push_back({"host_vector_flops_per_s", "vector peak (host)",
                       fmt::format("{} {}", format_flops_rate(rate.rate), name(rate.dtype)), rate.rate.value,
                       rate.provenance});
    figures.push_back({"host_memory_bandwidth_bytes_per_s", "memory bandwidth (host)",
                       format_bandwidth(*memory.bandwidth), memory.bandwidth->value, memory.bandwidth_provenance});
    figures.push_back({"host_memory_capacity_bytes", "memory capacity (host)", format_bytes_binary(*memory.capacity),
                       memory.capacity->value, memory.provenance});
    figures.push_back({"host_link_bytes_per_s", "host link",
                       fmt::format("{} {}", setup.link.name, format_bandwidth(setup.link.per_direction)),
                       setup.link.per_direction.value, setup.link.provenance});
  }
  if (setup.execution.plan.devices() > 1) {
    const auto links = [&](const char* rate, const char* latency, const char* what, const cost::Links& l) {
      figures.push_back(
          {rate, what,
           fmt::format("{} ({}), {} per device", l.name, hardware::name(l.topology), format_bandwidth(l.per_device)),
           l.per_device.value, l.provenance});
      figures.push_back(
          {latency, "latency of a step", format_seconds(l.latency), l.latency.value, l.latency_provenance});
    };
    const cost::Cluster& c = setup.cluster;
    if (c.devices_per_node > 1) {
      links("interconnect_bytes_per_s", "interconnect_latency_s", "links in a node", c.inside);
    }
    if (setup.execution.plan.devices() > c.devices_per_node) {
      links("network_bytes_per_s", "network_latency_s", "links between nodes", c.between);
    }
  }
  figures.push_back({"reserve_bytes", "runtime reserve", format_bytes_binary(setup.reserve), setup.reserve.value,
                     hardware::Provenance::assumed});
  return figures;
}

Fields rests_on(const estimate::Setup& setup) {
  Fields f{"Rests on", {}};
  for (const Figure& figure : figures_used(setup)) {
    f.rows.emplace_back(figure.label, fmt::format("{} ({})", figure.text, hardware::name(figure.provenance)));
  }
  if (setup.profile) {
    const hardware::RuntimeProfile& p = *setup.profile;
    const auto fitted = std::count(p.provenance.begin(), p.provenance.end(), hardware::Provenance::fitted);
    f.rows.emplace_back(
        "runtime profile",
        p.measured_on(*setup.device)
            ? fmt::format("{}: {} numbers fitted to {} measurements, the rest assumed", p.title, fitted, p.range.rows)
            : p.title + " (assumed for this device)");
  }
  return f;
}

Report estimate_report(const Estimator& estimator, const Estimate& e, Detail detail) {
  return {document(estimator, e, detail), detail == Detail::ops ? ops_csv(e) : summary_csv(estimator, e),
          estimate_json(estimator, e)};
}

}  // namespace llmperf::report
