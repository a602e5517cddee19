#include "report/runtime_report.h"

#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using hardware::RuntimeProfile;

std::string error_cell(const RuntimeProfile& p, std::string_view group) {
  const hardware::FittedError* error = p.error_of(group);
  return error ? format_share(error->mean) : "";
}

Json error_value(const RuntimeProfile& p, std::string_view group) {
  const hardware::FittedError* error = p.error_of(group);
  return error ? number(error->mean) : Json(nullptr);
}

std::string covers(const RuntimeProfile& p) {
  return p.hardware.empty() ? "class " + join(p.families, ", ") : p.hardware;
}

}  // namespace

Report runtime_list_report(const std::vector<RuntimeProfile>& profiles) {
  Table people{
      "", {{"runtime", true}, {"hardware", true}, {"measurements"}, {"prefill"}, {"decode"}, {"matrix products"}}, {}};
  Json json = json_header("llmperf.runtime_list");
  json["runtimes"] = Json::array();
  for (const RuntimeProfile& p : profiles) {
    people.rows.push_back({p.name, covers(p), p.range.rows > 0 ? std::to_string(p.range.rows) : "none",
                           error_cell(p, "prefill"), error_cell(p, "decode"), error_cell(p, "gemm")});
    json["runtimes"].push_back({{"name", p.name},
                                {"hardware", p.hardware},
                                {"families", join(p.families, " ")},
                                {"preferred", p.preferred},
                                {"title", p.title},
                                {"rows", p.range.rows},
                                {"prefill_error", error_value(p, "prefill")},
                                {"decode_error", error_value(p, "decode")},
                                {"gemm_error", error_value(p, "gemm")}});
  }
  return {{people, Paragraph{"Errors are means, cross-validated; those of classes are assumptions."}},
          csv_of(json["runtimes"]),
          dump(json)};
}

Report runtime_report(const RuntimeProfile& p) {
  Fields about{"", {{"hardware", covers(p)}, {"source", p.source}}};
  if (!p.notes.empty()) about.rows.emplace_back("notes", p.notes);
  about.rows.emplace_back("runs", fmt::format("prefill {}, decode {}", name(p.prefill_dispatch), name(p.dispatch)));
  about.rows.emplace_back("options", hardware::format_runtime_options(p.options, p.workload));
  Table numbers{
      "Numbers", {{"parameter", true}, {"value"}, {"unit", true}, {"from", true}, {"+-"}, {"what", true}}, {}};
  Json json = json_header("llmperf.runtime");
  json["name"] = p.name;
  json["title"] = p.title;
  json["hardware"] = p.hardware;
  json["families"] = p.families;
  json["source"] = p.source;
  json["parameters"] = Json::array();
  for (std::size_t i = 0; i < hardware::kAllParameters; ++i) {
    const hardware::ParameterInfo& info = hardware::parameter_info(i);
    const bool fitted = p.provenance[i] == hardware::Provenance::fitted;
    json["parameters"].push_back({{"name", info.name},
                                  {"value", number(p.values[i])},
                                  {"unit", std::string(info.unit)},
                                  {"provenance", std::string(hardware::name(p.provenance[i]))},
                                  {"uncertainty", fitted ? number(p.uncertainty[i]) : Json(nullptr)},
                                  {"default", number(info.initial)},
                                  {"meaning", std::string(info.meaning)}});
    // Formats that the profile says nothing of would be pages of defaults.
    if (i >= hardware::kParameters && !fitted && p.values[i] == info.initial) continue;
    numbers.rows.push_back({info.name, format_significant(p.values[i]), std::string(info.unit),
                            std::string(hardware::name(p.provenance[i])), fitted ? format_share(p.uncertainty[i]) : "",
                            std::string(info.meaning)});
  }
  Table errors{"Errors, cross-validated", {{"of", true}, {"rows"}, {"mean"}, {"p90"}, {"bias"}}, {}};
  json["errors"] = Json::array();
  for (const hardware::FittedError& e : p.errors) {
    errors.rows.push_back(
        {e.group, std::to_string(e.rows), format_share(e.mean), format_share(e.p90), format_share(e.bias)});
    json["errors"].push_back({{"group", e.group},
                              {"rows", e.rows},
                              {"mean", number(e.mean)},
                              {"p90", number(e.p90)},
                              {"bias", number(e.bias)}});
  }
  return {{Heading{p.title, p.name}, about, numbers, errors}, csv_of(json["parameters"]), dump(json)};
}

Report measurement_list_report(const std::vector<MeasurementSet>& sets) {
  Table people{"", {{"measurements", true}, {"rows"}, {"about", true}}, {}};
  Json json = json_header("llmperf.measurement_list");
  json["measurements"] = Json::array();
  for (const MeasurementSet& set : sets) {
    people.rows.push_back({set.name, std::to_string(set.rows), set.about});
    json["measurements"].push_back({{"name", set.name}, {"rows", set.rows}, {"about", set.about}});
  }
  return {{people}, csv_of(json["measurements"]), dump(json)};
}

}  // namespace llmperf::report
