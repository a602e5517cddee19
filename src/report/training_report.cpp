#include "report/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/number.h"
#include "base/text.h"
#include "model/parameters.h"
#include "report/capacity_table.h"
#include "report/json.h"
#include "report/op_text.h"
#include "report/plan_report.h"
#include "report/result_row.h"
#include "report/runtime_text.h"
#include "report/step_trace.h"

namespace llmperf::report {
namespace {

using estimate::OpEstimate;
using estimate::TrainingEstimate;
using estimate::TrainingEstimator;
using estimate::TrainingPhase;

double d(std::int64_t x) { return static_cast<double>(x); }
bool is_exchange(const OpEstimate& o) { return o.op.place == graph::Place::network; }

std::string assumptions(const TrainingEstimator& estimator, const TrainingEstimate& e) {
  const graph::Execution& x = estimator.setup().execution;
  const graph::TrainingOptions& o = e.options;
  return fmt::format(
      "global batch {}, micro-batch {}, {} tokens; weights {}, activations {}, gradients {} bits, optimiser {} bits "
      "per parameter; recompute {}, ZeRO {}{}{}{}; options {}; {}",
      e.scenario.global_batch, e.scenario.micro_batch, e.scenario.sequence, x.weights.name, name(x.activations),
      plain(o.gradient_bits), plain(o.optimizer_bits), graph::name(o.recompute), o.zero,
      o.chunks > 1 ? fmt::format(", interleave {}", o.chunks) : "", o.fused_gradients ? "" : ", separate gradients",
      o.overlapped_sums ? "" : ", exposed sums", hardware::format_runtime_options(x.runtime),
      plan_text(estimator.setup(), e.split));
}

std::string fit_text(const TrainingEstimate& e) {
  return fmt::format("needs {} of {}{}", format_bytes_binary(e.memory.total()), format_bytes_binary(e.capacity),
                     e.plan.pipeline > 1 ? fmt::format(" (stage {} of {})", e.memory.stage + 1, e.plan.pipeline) : "");
}

std::string activation_text(const TrainingEstimate& e) {
  return fmt::format("{} kept per layer and micro-batch", format_bytes_binary(e.memory.layer_activations));
}

// What the step's time goes into: ops by what binds them, and waiting.
std::string bound_shares(const TrainingEstimate& e) {
  std::array<Seconds, std::extent_v<decltype(estimate::Phase::bound_time)>> bound;
  for (const TrainingPhase& p : e.phases) {
    for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += p.bound_time[i] * d(p.steps);
  }
  std::string text;
  const auto add = [&](std::string_view what, Seconds time) {
    const double share = time / e.time;
    if (share < 0.0005) return;  // would print as 0.0 %
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_share(share));
  };
  for (std::size_t i = 0; i < bound.size(); ++i) add(mapper::name(static_cast<mapper::Bound>(i)), bound[i]);
  add("pipeline bubble", e.bubble);
  return text;
}

std::string error_band(const estimate::Setup& setup, const TrainingEstimate& e) {
  if (setup.profile == nullptr) return no_band_text(setup);
  const hardware::FittedError* error = setup.profile->error_of("training");
  if (error == nullptr) return "not known: the profile was not compared with training runs";
  if (!training_extrapolations(setup, e).empty()) {
    return fmt::format("not known: extrapolated beyond the {} published runs that it was compared with", error->rows);
  }
  return fmt::format("{} on average, at most {} in nine of ten ({} published runs, none of them fitted)",
                     format_share(error->mean), format_share(error->p90), error->rows);
}

Fields headline(const estimate::Setup& setup, const TrainingEstimate& e) {
  Fields f;
  f.rows.emplace_back("step", fmt::format("{}: {} tokens/s, {} per device", format_seconds(e.time),
                                          format_significant(e.tokens_per_second),
                                          format_significant(e.tokens_per_second / d(e.plan.devices()))));
  f.rows.emplace_back("utilisation",
                      fmt::format("MFU {}, HFU {}; {} of the model, {} computed", format_share(e.mfu),
                                  format_share(e.hfu), format_flops(e.model_flops), format_flops(e.hardware_flops)));
  f.rows.emplace_back("bound by", bound_shares(e));
  f.rows.emplace_back("error band", error_band(setup, e));
  if (const auto beyond = training_extrapolations(setup, e); !beyond.empty()) {
    f.rows.emplace_back("extrapolated", join(beyond, "; "));
  }
  f.rows.emplace_back("memory", "fits: " + fit_text(e));
  f.rows.emplace_back("activations", activation_text(e));
  return f;
}

// Rows up to the total add up to it.
Table time_table(const TrainingEstimate& e) {
  Table t{fmt::format("Time of a step (one device{})",
                      e.plan.pipeline > 1 ? fmt::format(" of stage {}", e.busiest_stage + 1) : ""),
          {{"what", true}, {"time"}, {"of the step"}},
          {}};
  const auto row = [&](std::string what, Seconds time) {
    t.rows.push_back({std::move(what), format_seconds(time), format_share(time / e.time)});
  };
  const std::string batches = fmt::format("{} micro-batch{}", e.micro_batches, e.micro_batches == 1 ? "" : "es");
  for (const std::size_t pass : {0U, 1U}) {
    const TrainingPhase& p = e.phases[pass];
    Seconds shown;
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      if (is_exchange(p.ops[i])) shown += p.ops[i].step_time() - p.hidden[i];
    }
    row(fmt::format("{}, {}", p.name, batches), (p.time - shown) * d(p.steps));
    row(fmt::format("{}: exchanges that show", p.name), shown * d(p.steps));
  }
  row("pipeline bubble", e.bubble);
  row("gradient and weight exchanges that show", e.gradient_exposed);
  row("optimiser", e.optimizer);
  row("total", e.time);
  row("exchanges beside the above", e.overlapped);
  return t;
}

Table memory_table(const TrainingEstimate& e) {
  return capacity_table(
      fmt::format("Memory of a device{}",
                  e.plan.pipeline > 1 ? fmt::format(" of stage {}, the fullest", e.memory.stage + 1) : ""),
      e.capacity,
      {{"weights", e.memory.weights},
       {"gradients", e.memory.gradients},
       {"optimiser state", e.memory.optimizer},
       {"activations kept", e.memory.activations},
       {"workspace", e.memory.workspace},
       {"runtime reserve", e.memory.reserve},
       {"total", e.memory.total()}});
}

// All exchanges of a step.
Table communication_table(const TrainingEstimate& e) {
  std::vector<Exchange> exchanges;
  for (const TrainingPhase& p : e.phases) {
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      if (is_exchange(p.ops[i])) exchanges.push_back({.op = &p.ops[i], .steps = p.steps, .hidden = p.hidden[i]});
    }
  }
  return exchange_table("Communication of a step (one device)", exchanges, nullptr);
}

Table op_table(const TrainingPhase& p) {
  Table t{fmt::format("Ops of {}{}", p.name, p.name == "update" ? " (one step)" : " (one micro-batch)"),
          {{"op", true}, {"shape", true}, {"count"}, {"FLOPs"}, {"bytes"}, {"time"}, {"hidden"}, {"bound", true}},
          {}};
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const OpEstimate& o = p.ops[i];
    const double count = d(o.op.count);
    t.rows.push_back({std::string(o.op.name), shape_text(o.op), std::to_string(o.op.count),
                      format_flops((o.work.matrix + o.work.vector) * count),
                      format_bytes((o.work.bytes() + o.work.network) * count), format_seconds(o.step_time()),
                      p.hidden[i].value > 0 ? format_seconds(p.hidden[i]) : "",
                      std::string(mapper::name(o.time.bound))});
  }
  return t;
}

Document document(const TrainingEstimator& estimator, const TrainingEstimate& e, Detail detail) {
  const estimate::Setup& setup = estimator.setup();
  Document doc{Heading{fmt::format("Training {} on {}", setup.execution.model->name, setup.device->title),
                       training_label(setup)},
               Paragraph{assumptions(estimator, e)}};
  if (!e.fits) {
    doc.push_back(Fields{"", {{"does not fit", fit_text(e)}, {"activations", activation_text(e)}}});
    doc.push_back(memory_table(e));
    return doc;
  }
  doc.push_back(headline(setup, e));
  doc.push_back(time_table(e));
  doc.push_back(memory_table(e));
  if (e.plan.devices() > 1) doc.push_back(communication_table(e));
  if (detail == Detail::ops) {
    for (const TrainingPhase& p : e.phases) doc.push_back(op_table(p));
  }
  Fields basis = rests_on(setup);
  for (const std::string& note : setup.notes) basis.rows.emplace_back("note", note);
  doc.push_back(std::move(basis));
  return doc;
}

Table ops_csv(const TrainingEstimate& e) {
  Table t{"",
          {{"phase"},
           {"steps"},
           {"name"},
           {"kind"},
           {"shape"},
           {"count"},
           {"flops"},
           {"bytes"},
           {"network_bytes"},
           {"time_s"},
           {"hidden_s"},
           {"bound"},
           {"roof_s"}},
          {}};
  if (!e.fits) return t;
  for (const TrainingPhase& p : e.phases) {
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      const OpEstimate& o = p.ops[i];
      const double count = d(o.op.count);
      t.rows.push_back({std::string(p.name), std::to_string(p.steps), std::string(o.op.name),
                        std::string(kind_text(o.op)), shape_text(o.op), std::to_string(o.op.count),
                        plain(((o.work.matrix + o.work.vector) * count).value), plain((o.work.bytes() * count).value),
                        plain((o.work.network * count).value), plain(o.step_time().value), plain(p.hidden[i].value),
                        std::string(mapper::name(o.time.bound)), plain((o.time.roof * count).value)});
    }
  }
  return t;
}

}  // namespace

std::vector<std::string> training_extrapolations(const estimate::Setup& setup, const TrainingEstimate& e) {
  if (setup.profile == nullptr || setup.profile->error_of("training") == nullptr) return {};
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
        fmt::format("sequences of {} tokens (measured with {})", e.scenario.sequence, measured.max_context));
  check(e.scenario.micro_batch * e.scenario.sequence > measured.max_tokens,
        fmt::format("micro-batches of {} tokens (measured up to {})", e.scenario.micro_batch * e.scenario.sequence,
                    measured.max_tokens));
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
        fmt::format("recompute {} with{} --megatron-sp (measured: full without, selective with)",
                    graph::name(e.options.recompute), e.plan.sequence_parallel ? "" : "out"));
  check(e.options.zero > 0, fmt::format("ZeRO {} (measured without)", e.options.zero));
  check(e.plan.sequence() > 1 || e.plan.tensor_rows > 0,
        "a sequence or matrices divided another way (measured: --tp N, --pp and --dp)");
  return beyond;
}

std::string training_label(const estimate::Setup& setup) {
  return setup.profile ? setup.profile->title_for(*setup.device) : label(setup);
}

Report training_report(const TrainingEstimator& estimator, const TrainingEstimate& e, Detail detail) {
  return {document(estimator, e, detail), detail == Detail::ops ? ops_csv(e) : summary_csv(estimator, e),
          training_json(estimator, e), step_trace(estimator, e)};
}

}  // namespace llmperf::report
