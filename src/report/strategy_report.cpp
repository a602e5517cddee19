#include <fmt/format.h>

#include "base/number.h"
#include "report/json.h"
#include "report/parallel_report.h"
#include "report/plan_json.h"

namespace llmperf::report {
namespace {

using estimate::Formula;
using estimate::StrategyFormulas;
using estimate::StrategyTable;

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
  Table t{"Strategies",
          {{"method", true}, {"divided", true}, {"parameters", true}, {"activations", true}, {"legal", true}},
          {}};
  for (const StrategyFormulas& s : table.strategies) {
    t.rows.push_back(
        {s.name, s.split, s.parameter_collectives, s.activation_collectives, s.illegal ? "no: " + *s.illegal : "yes"});
  }
  return t;
}

Table part_table(const StrategyTable& table, const Part& part) {
  Table t{part.title, {{"method", true}, {"formula", true}, {"value"}}, {}};
  for (const StrategyFormulas& s : table.strategies) {
    const Formula& f = s.*part.formula;
    t.rows.push_back({s.name, estimate::pretty(f.text), s.illegal ? "-" : format_count(f.value)});
  }
  return t;
}

}  // namespace

Report strategy_report(const estimate::Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices,
                       const StrategyTable& table) {
  const std::string& model = setup.execution.model->name;
  Fields symbols{"where", {}};
  Json variables = Json::object();
  for (const estimate::Variable& v : table.variables) {
    symbols.rows.emplace_back(v.name, fmt::format("{}: {}", format_significant(v.value), v.meaning));
    variables[v.name] = {{"value", number(v.value)}, {"meaning", v.meaning}};
  }
  Document doc{
      Heading{fmt::format("{}: one layer, one training step on {} devices", model, devices), "equal to the op graph"},
      Paragraph{fmt::format("P = {} = {} parameters in a layer; 2 bytes an element; options {}",
                            estimate::pretty(table.parameters.text), format_count(table.parameters.value),
                            hardware::format_runtime_options(setup.execution.runtime))},
      overview(table)};
  for (const Part& part : kParts) doc.emplace_back(part_table(table, part));
  doc.emplace_back(symbols);

  Json json = json_header("llmperf.parallel_symbolic");
  json["inputs"] = {{"model", model},
                    {"devices", devices},
                    {"batch", batch},
                    {"sequence_tokens", sequence},
                    {"options", hardware::format_runtime_options(setup.execution.runtime)}};
  json["variables"] = variables;
  json["layer_parameters"] = {{"formula", table.parameters.text}, {"value", number(table.parameters.value)}};
  json["strategies"] = Json::array();
  Table csv{"", {{"method"}, {"divided"}, {"quantity"}, {"formula"}, {"value"}, {"collectives"}, {"illegal"}}, {}};
  for (const StrategyFormulas& s : table.strategies) {
    Json row = {{"method", s.name},
                {"plan", plan_json(s.plan)},
                {"zero", s.zero},
                {"divided", s.split},
                {"illegal", s.illegal ? Json(*s.illegal) : Json(nullptr)},
                {"parameter_collectives", s.parameter_collectives},
                {"activation_collectives", s.activation_collectives}};
    for (const Part& part : kParts) {
      const Formula& f = s.*part.formula;
      row[part.key] = {{"formula", f.text}, {"value", s.illegal ? Json(nullptr) : number(f.value)}};
      const bool of_parameters = std::string_view(part.key).starts_with("parameter");
      csv.rows.push_back({s.name, s.split, part.key, f.text, s.illegal ? "" : plain(f.value),
                          of_parameters ? s.parameter_collectives : s.activation_collectives, s.illegal.value_or("")});
    }
    json["strategies"].push_back(row);
  }
  return {std::move(doc), std::move(csv), dump(json)};
}

}  // namespace llmperf::report
