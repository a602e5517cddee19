// `llmperf parallel`, and `--symbolic`.
#include "result/parallel.h"

#include <algorithm>

#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"

namespace llmperf::report {
namespace {

using estimate::Formula;
using estimate::PlanCost;
using estimate::StrategyFormulas;
using estimate::StrategyTable;
using graph::CollectiveKind;

const char* step_text(const ParallelStudy& study) {
  return study.space.training              ? "training step"
         : study.setup->encodes()          ? "pass"
         : study.setup->serving.prefills() ? "prefill"
                                           : "decode step";
}

Table cost_table(const ParallelStudy& study) {
  const std::string order = study.fitting == 0 ? "the smallest" : fmt::format("the fastest {}", step_text(study));
  const auto& price = study.setup->price;
  const std::string shown =
      study.space.training
          ? "rank: #, plan, memory.weight_bytes: weights, memory.gradient_bytes: grads, "
            "memory.optimizer_bytes: optim., memory.activation_bytes: activ., memory.total_bytes: total, fits, step_s: "
            "step, mfu"
          : "rank: #, plan, memory.weight_bytes: weights, memory.kv_cache_bytes: KV cache, memory.activation_bytes: "
            "activ., memory.total_bytes: total, fits, step_s: step, tokens_per_second: tokens/s";
  return table_of(
      fmt::format("Plans, {} first (memory of one device)", order), plans_of(study),
      shown + (price && !study.space.training ? fmt::format(", cost_per_million_tokens: {}/M", price->currency) : ""));
}

Table communication_table(const ParallelStudy& study) {
  using enum CollectiveKind;
  return table_of("Communication of one step (sent by one device), what is divided, and how far",
                  "#, all-reduce, gather+scat., all-to-all, p2p, time, hidden, <divided, <up to", plans_of(study),
                  [](const ParallelPlan& plan) {
                    const estimate::Communication& c = plan.communication();
                    const auto sent = [&](std::initializer_list<CollectiveKind> kinds) {
                      Bytes sum;
                      for (const CollectiveKind kind : kinds) sum += c.sent[static_cast<std::size_t>(kind)];
                      return sum.value > 0 ? std::optional(sum) : std::nullopt;
                    };
                    return cells(plan.index + 1, sent({all_reduce}), sent({all_gather, reduce_scatter}),
                                 sent({all_to_all}), sent({send, ring_pass}), c.time,
                                 Share{c.time.value > 0 ? c.overlapped / c.time : 0}, plan.divided(), plan.up_to());
                  });
}

std::string request_text(const estimate::SearchSpace& space) {
  return fmt::format("batch {}, {} tokens each{}", space.batch, space.sequence,
                     space.training ? fmt::format(", micro-batches of {}", fmt::join(space.micro_batches, ", ")) : "");
}

// ---- Strategies

struct Part {
  const char* key;    // JSON
  const char* title;  // of the table
  const Formula StrategyFormulas::*formula;
};
constexpr Part kParts[] = {
    {"activation_communication_elements", "Activation communication (elements sent by a device, forward and backward)",
     &StrategyFormulas::activation_communication},
    {"activation_bytes", "Activations kept (bytes)", &StrategyFormulas::activations},
    {"parameter_communication_elements", "Parameter communication (elements sent by a device)",
     &StrategyFormulas::parameter_communication},
    {"weight_elements", "Weights (P; parameters that a device holds)", &StrategyFormulas::weights},
    {"gradient_elements", "Gradients (G)", &StrategyFormulas::gradients},
    {"optimizer_elements", "Optimiser (in 2-byte parameters)", &StrategyFormulas::optimizer},
};

Table overview(const StrategyTable& table) {
  Table t = titled("Strategies", "<method, <divided, <parameters, <activations, <legal");
  for (const StrategyFormulas& s : table.strategies) {
    t.rows.push_back(
        {s.name, s.split, s.parameter_collectives, s.activation_collectives, s.illegal ? "no: " + *s.illegal : "yes"});
  }
  return t;
}

Table part_table(const StrategyTable& table, const Part& part) {
  Table t = titled(part.title, "<method, <formula, value");
  for (const StrategyFormulas& s : table.strategies) {
    const Formula& f = s.*part.formula;
    add_row(t, s.name, estimate::pretty(f.text), s.illegal ? "-" : format_count(f.value));
  }
  return t;
}

}  // namespace

Report parallel_report(const ParallelStudy& study) {
  const estimate::Setup& setup = *study.setup;
  Document doc{
      Heading{fmt::format("{} on {} x {}", setup.execution.model->name, study.space.devices, setup.device->title),
              setup.profile ? result::label(setup) : std::string(kUncalibrated)},
      Paragraph{fmt::format("{}: {}; weights {}, activations {}; nodes of {}", step_text(study),
                            request_text(study.space), setup.execution.weights.name, name(setup.execution.activations),
                            setup.cluster.devices_per_node)},
      Paragraph{fmt::format("{} plans tried, {} divide model and batch, {} of them fit in {}; {} shown", study.tried,
                            study.legal, study.fitting, Held{*setup.device->dram().capacity}, study.plans.size())}};
  doc.emplace_back(cost_table(study));
  if (study.alike > 1) {
    const estimate::Band band = *ParallelPlan{&study, 0}.noise();
    doc.emplace_back(Paragraph{fmt::format(
        "{} plans are within {} of the fastest, as far as such predictions are off on the mean: their order "
        "is within the noise. Nine of ten are within {}.",
        study.alike, band_share(band.mean), band_share(band.p90))});
  }
  doc.emplace_back(communication_table(study));
  doc.emplace_back(
      Paragraph{"divided: in attention / outside it: a heads, h hidden, s tokens, b sequences, E experts, L layers. up "
                "to: what bounds each axis on its own (kv: KV heads). hidden: beside other work."});
  return {std::move(doc), csv_of(plans_of(study)), result::document("llmperf.parallel", study)};
}

Report strategy_report(const StrategyStudy& study) {
  const estimate::Setup& setup = *study.setup;
  const StrategyTable& table = study.table;
  const std::string& model = setup.execution.model->name;
  Fields symbols{"where", {}};
  for (const estimate::Variable& v : table.variables) {
    symbols.rows.emplace_back(v.name, fmt::format("{}: {}", Rounded{v.value}, v.meaning));
  }
  Document doc{Heading{fmt::format("{}: one layer, one training step on {} devices", model, study.devices),
                       "equal to the op graph"},
               Paragraph{fmt::format("P = {} = {} parameters in a layer; 2 bytes an element; options {}",
                                     estimate::pretty(table.parameters.text), Count(table.parameters.value),
                                     hardware::format_runtime_options(setup.execution.runtime))},
               overview(table)};
  for (const Part& part : kParts) doc.emplace_back(part_table(table, part));
  doc.emplace_back(symbols);

  Table csv = titled("", "method, divided, quantity, formula, value, collectives, illegal");
  for (const StrategyFormulas& s : table.strategies) {
    for (const Part& part : kParts) {
      const Formula& f = s.*part.formula;
      const bool of_parameters = std::string_view(part.key).starts_with("parameter");
      add_row(csv, s.name, s.split, part.key, f.text, s.illegal ? "" : plain(f.value),
              of_parameters ? s.parameter_collectives : s.activation_collectives, s.illegal.value_or(""));
    }
  }
  return {std::move(doc), std::move(csv), result::document("llmperf.parallel_symbolic", study)};
}

}  // namespace llmperf::report
