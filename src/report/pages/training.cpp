// `llmperf estimate --training`.

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

using estimate::OpEstimate;
using estimate::Phase;
using estimate::TrainingEstimate;

bool is_exchange(const OpEstimate& o) { return o.op.place == graph::Place::network; }

std::string assumptions(const Training& training) {
  const TrainingEstimate& e = *training.estimate;
  const graph::Execution& x = training.setup->execution;
  const graph::TrainingOptions& o = e.options;
  std::string text = fmt::format(
      "global batch {}, micro-batch {}, {} tokens; weights {}, activations {}, gradients {} bits, optimiser {} bits "
      "per parameter; recompute {}, ZeRO {}",
      e.scenario.global_batch, e.scenario.micro_batch, Count(e.scenario.sequence), x.weights.name, name(x.activations),
      plain(o.gradient_bits), plain(o.optimizer_bits), name(o.recompute), o.zero);
  const auto add = [&](bool said, const std::string& what) {
    if (said) text += ", " + what;
  };
  add(o.recomputed_share < 1, fmt::format("of {} of the layers", Share{o.recomputed_share}));
  add(o.stays_gathered, "weights gathered once");
  add(o.shard > 0, fmt::format("over {}", o.shard));
  add(o.products != graph::Products::wide, fmt::format("products {}", name(o.products)));
  add(o.adapters.any(), fmt::format("adapters of rank {}", o.adapters.rank));
  add(o.loss != graph::Loss::plain, fmt::format("loss {}", name(o.loss)));
  add(o.schedule != graph::Schedule::one_forward, fmt::format("schedule {}", name(o.schedule)));
  add(o.chunks > 1, fmt::format("interleave {}", o.chunks));
  add(o.updates_at_once, "optimiser in the backward pass");
  add(o.graphs, "CUDA graphs");
  add(o.eager, "eager");
  add(o.async_sums, "asynchronous TP");
  add(o.shared_beside, "shared experts beside");
  add(!o.fused_gradients, "separate gradients");
  add(!o.overlapped_sums, "exposed sums");
  return fmt::format("{}; options {}; {}", text, hardware::format_runtime_options(x.runtime),
                     plan_text(*training.setup, e.split));
}

std::string activation_text(const TrainingEstimate& e) {
  return fmt::format("{} kept per layer and micro-batch", Held{e.layer_activations});
}

// What the step's time goes into: ops by what binds them, and waiting.
std::string bound_shares(const TrainingEstimate& e) {
  std::array<Seconds, std::extent_v<decltype(estimate::Phase::bound_time)>> bound;
  for (const Phase& p : e.phases) {
    for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += p.bound_time[i] * d(p.steps);
  }
  std::string text;
  const auto add = [&](std::string_view what, Seconds time) {
    const double share = time / e.time;
    if (share < 0.0005) return;  // would print as 0.0 %
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, Share{share});
  };
  for (std::size_t i = 0; i < bound.size(); ++i) add(mapper::name(static_cast<mapper::Bound>(i)), bound[i]);
  add("host", e.host);
  add("pipeline bubble", e.bubble);
  return text;
}

std::string error_band(const estimate::Setup& setup, const TrainingEstimate& e) {
  if (setup.profile == nullptr) return no_band_text(setup);
  const hardware::FittedError* error = setup.profile->error_of("training");
  if (error == nullptr) return "not known: the profile was not compared with training runs";
  const std::optional<Band> band = training_band(setup, e);
  if (!band) {
    return fmt::format("not known: extrapolated beyond the {} published runs that it was compared with", error->rows);
  }
  if (setup.profile->choices.fused_training) {
    return fmt::format("±{} (9 of 10 within {}): {}", band_share(band->mean), band_share(band->p90),
                       band->rows > 0
                           ? fmt::format("{} published runs, predicted without their sites or models", band->rows)
                           : "no run of such was published with its plan, an assumption");
  }
  return fmt::format("±{} (9 of 10 within {}); {} published runs, none of them fitted", band_share(band->mean),
                     band_share(band->p90), error->rows);
}

// Rows up to the total add up to it.
Table time_table(const TrainingEstimate& e) {
  Table t = titled(fmt::format("Time of a step (one device{})",
                               e.plan.pipeline > 1 ? fmt::format(" of stage {}", e.busiest_stage + 1) : ""),
                   "<what, time, of the step");
  const auto row = [&](std::string_view what, Seconds time) { add_row(t, what, time, Share{time / e.time}); };
  const std::string batches = fmt::format("{} micro-batch{}", e.micro_batches, e.micro_batches == 1 ? "" : "es");
  for (const std::size_t pass : {0U, 1U}) {
    const Phase& p = e.phases[pass];
    Seconds shown;
    for (const OpEstimate& o : p.ops) {
      if (is_exchange(o)) shown += o.step_time() - o.hidden;
    }
    row(fmt::format("{}, {}", p.name, batches), (p.time - shown) * d(p.steps));
    row(fmt::format("{}: exchanges that show", p.name), shown * d(p.steps));
  }
  if (e.host.value > 0) row("waiting for the host", e.host);
  row("pipeline bubble", e.bubble);
  row("gradient and weight exchanges that show", e.gradient_exposed);
  row("optimiser", e.optimizer);
  row("total", e.time);
  row("exchanges beside the above", e.overlapped);
  return t;
}

Table memory_table(const TrainingEstimate& e) {
  const std::string stage = e.plan.pipeline > 1 ? fmt::format(" of stage {}, the fullest", e.fullest_stage + 1) : "";
  return device_memory_table("Memory of a device" + stage, e.memory, e.capacity);
}

Paragraph sentence(const Training& training) {
  const TrainingEstimate& e = *training.estimate;
  const estimate::Setup& setup = *training.setup;
  const double each = e.tokens_per_second / d(e.plan.devices());
  const std::string all =
      e.plan.devices() > 1 ? fmt::format(" a device ({} in all)", number_text(e.tokens_per_second)) : "";
  return opening(fmt::format("{} tokens/s{}, a step of {}, MFU {}", number_text(each), all, e.time, Share{e.mfu}),
                 e.memory.total(), e.capacity,
                 cost_text(setup.price, training.cost_per_million_tokens(), "per million tokens"), setup,
                 {training_band(setup, e)}, !training_extrapolations(setup, e).empty());
}

Fields headline(const Training& training, bool full) {
  const estimate::Setup& setup = *training.setup;
  const TrainingEstimate& e = *training.estimate;
  Fields f;
  f.add("request", assumptions(training));
  if (!full) f.add("time", parts_text(time_table(e), 2));
  f.add("utilisation", "MFU {}, HFU {}; {} of the model, {} computed", Share{e.mfu}, Share{e.hfu}, e.model_flops,
        e.hardware_flops);
  f.add("bound by", bound_shares(e));
  add_spent(setup.price, training.spent(), "a step", f);
  add_sureness(setup, error_band(setup, e), training_extrapolations(setup, e), f);
  if (!full) f.add("memory", parts_text(memory_table(e)));
  f.add("allocated", "{} in tensors, {} with what the runtime reserves beside them", Held{e.memory.allocated()},
        Held{e.memory.total()});
  f.add("activations", activation_text(e));
  if (!full) add_notes(setup.notes, f);
  return f;
}

// All exchanges of a step.
Table communication_table(const TrainingEstimate& e) {
  std::vector<Exchange> exchanges;
  for (const Phase& p : e.phases) {
    for (const OpEstimate& o : p.ops) {
      if (is_exchange(o)) exchanges.push_back({.op = &o, .steps = p.steps, .hidden = o.hidden});
    }
  }
  return exchange_table("Communication of a step (one device)", exchanges, nullptr);
}

Document document(const Training& training, Detail detail) {
  const estimate::Setup& setup = *training.setup;
  const TrainingEstimate& e = *training.estimate;
  const bool full = detail != Detail::summary;
  Heading heading{
      fmt::format("Training {} on {}", setup.execution.model->name, title_text(*setup.device, e.plan.devices())),
      training.label};
  if (!e.fits) {
    const std::string stage =
        e.plan.pipeline > 1 ? fmt::format(" (stage {} of {})", e.fullest_stage + 1, e.plan.pipeline) : "";
    return refused(heading, of_capacity(e.memory.total(), e.capacity) + stage, assumptions(training),
                   {"", {{"activations", activation_text(e)}}}, memory_table(e), full);
  }
  Document doc{heading, sentence(training), headline(training, full)};
  if (!full) return doc;
  doc.push_back(time_table(e));
  doc.push_back(memory_table(e));
  if (e.plan.devices() > 1) doc.push_back(communication_table(e));
  if (detail == Detail::ops) {
    for (const Phase& p : e.phases) {
      Table t = op_table(p, nullptr, true);
      t.title += p.name == "update" ? " (one step)" : " (one micro-batch)";
      doc.push_back(std::move(t));
    }
  }
  doc.push_back(rests_on(setup, figures_used(setup), setup.notes));
  return doc;
}

}  // namespace

Report training_report(const Training& training, Detail detail, Trace trace) {
  const std::vector<Phase> none;
  const std::vector<Phase>& phases = training.estimate->fits ? training.estimate->phases : none;
  return {document(training, detail), detail == Detail::ops ? ops_csv(phases, Also::hidden) : csv_of(training),
          result::document("llmperf.training", training), std::move(trace)};
}

}  // namespace llmperf::report
