#include "report/calibrate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/error_table.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using calibrate::CalibratedParameter;
using calibrate::Calibration;
using calibrate::GroupErrors;
using calibrate::Identified;
using calibrate::LeftOut;

std::string value_text(const CalibratedParameter& p, double value) {
  if (p.unit == "s") return format_seconds(Seconds{value});
  if (p.unit == "B/s") return format_bandwidth(BytesPerSecond{value});
  return p.unit.empty() ? format_significant(value) : fmt::format("{} {}", format_significant(value), p.unit);
}

bool identified(const CalibratedParameter& p) { return p.fitted.identified == Identified::yes; }

// The larger of what rows and prior leave open and what changes with the rows left out.
double uncertainty(const CalibratedParameter& p) { return std::max(p.fitted.relative_error, p.jackknife); }

std::string_view status(const CalibratedParameter& p) {
  switch (p.fitted.identified) {
    case Identified::yes: return p.fitted.at_bound ? "at bound" : "identified";
    case Identified::no_effect: return "no effect";
    case Identified::weakly: return "weakly identified";
  }
  return "";
}

std::string remark(const CalibratedParameter& p) {
  switch (p.fitted.identified) {
    case Identified::yes: break;
    case Identified::no_effect: return "default: no row depends on it";
    case Identified::weakly:
      return fmt::format("default: the rows narrow it down by {} only", format_share(p.fitted.shrinkage));
  }
  if (!p.fitted.at_bound) return "";
  const bool lowest = p.fitted.value < std::sqrt(p.free.min * p.free.max);
  return lowest ? "at its lower bound" : "at its upper bound";
}

Table parameter_table(const Calibration& c) {
  Table t{"Parameters (±: relative standard error, of rows and prior or of leaving groups out)",
          {{"parameter", true}, {"value"}, {"±"}, {"default"}, {"", true}},
          {}};
  for (const CalibratedParameter& p : c.parameters) {
    t.rows.push_back({p.name, value_text(p, p.fitted.value), identified(p) ? format_share(uncertainty(p)) : "-",
                      value_text(p, p.free.prior), remark(p)});
  }
  return t;
}

const std::string& name_of(const Calibration& c, std::size_t index) {
  static const std::string kUnknown = "?";
  const auto found = std::find_if(c.parameters.begin(), c.parameters.end(),
                                  [&](const CalibratedParameter& p) { return p.free.index == index; });
  return found == c.parameters.end() ? kUnknown : found->name;
}

std::string summary_text(const std::vector<GroupErrors>& errors) {
  if (errors.empty()) return "n/a";
  const calibrate::Summary& s = errors.front().errors;
  return fmt::format("{}; median {}, 90 % of rows within {}, bias {}", error_text(s.mape), error_text(s.median_ape),
                     error_text(s.p90_ape), signed_error_text(s.bias));
}

Fields headline(const Calibration& c) {
  Fields f;
  for (const LeftOut& left : c.left_out) {
    f.rows.emplace_back("error, left out",
                        left.folds > 0
                            ? fmt::format("{} (by {}, in {} folds)", summary_text(left.errors), left.by, left.folds)
                            : fmt::format("unknown: the rows are one group by {}", left.by));
  }
  f.rows.emplace_back("error, fitted", summary_text(c.residuals));
  f.rows.emplace_back("rows", std::to_string(c.residuals.empty() ? 0 : c.residuals.front().errors.rows));
  const auto known = std::count_if(c.parameters.begin(), c.parameters.end(), identified);
  f.rows.emplace_back("parameters", fmt::format("{} of {} identified by the rows, the others at their defaults", known,
                                                c.parameters.size()));
  if (!c.converged) {
    f.rows.emplace_back("warning", fmt::format("the fit had not converged after {} iterations", c.iterations));
  }
  for (const std::string& warning : c.warnings) f.rows.emplace_back("warning", warning);
  return f;
}

std::span<const GroupErrors> groups_of(const std::vector<GroupErrors>& errors) {
  return errors.empty() ? std::span<const GroupErrors>() : std::span(errors).subspan(1);
}

Json parameters_json(const Calibration& c) {
  Json list = Json::array();
  for (const CalibratedParameter& p : c.parameters) {
    list.push_back(
        {{"name", p.name},
         {"unit", p.unit},
         {"value", number(p.fitted.value)},
         {"identified", identified(p)},
         {"status", std::string(status(p))},
         {"relative_error", identified(p) ? number(uncertainty(p)) : Json(nullptr)},
         {"relative_error_fit", identified(p) ? number(p.fitted.relative_error) : Json(nullptr)},
         {"relative_error_jackknife", identified(p) && p.jackknife > 0 ? number(p.jackknife) : Json(nullptr)},
         {"shrinkage", number(p.fitted.shrinkage)},
         {"default", number(p.free.prior)},
         {"default_spread", number(p.free.spread)},
         {"min", number(p.free.min)},
         {"max", number(p.free.max)},
         {"meaning", p.meaning}});
  }
  return list;
}

Json section_json(const std::vector<GroupErrors>& errors) {
  return {{"summary", errors.empty() ? Json(nullptr) : errors_json(errors.front(), false)},
          {"groups", groups_json(groups_of(errors), false)}};
}

std::string document_json(const Calibration& c, const Json& parameters) {
  Json json = json_header("llmperf.calibrate");
  json["hardware"] = c.hardware;
  json["runtime"] = c.runtime;
  json["files"] = c.files;
  json["converged"] = c.converged;
  json["iterations"] = c.iterations;
  json["residual_scale"] = number(c.residual_scale);
  json["parameters"] = parameters;
  json["correlations"] = Json::array();
  for (const calibrate::Correlation& pair : c.correlations) {
    json["correlations"].push_back({{"first", name_of(c, pair.first)},
                                    {"second", name_of(c, pair.second)},
                                    {"coefficient", number(pair.coefficient)}});
  }
  json["residuals"] = section_json(c.residuals);
  json["cross_validation"] = Json::array();
  for (const LeftOut& left : c.left_out) {
    Json entry = {{"by", left.by}, {"folds", left.folds}};
    entry.update(section_json(left.errors));
    json["cross_validation"].push_back(std::move(entry));
  }
  json["warnings"] = c.warnings;
  return dump(json);
}

}  // namespace

Report calibrate_report(const Calibration& c) {
  Document doc{Heading{fmt::format("{} on {}", c.runtime, c.hardware), "calibrated"}, headline(c), parameter_table(c)};
  if (!c.correlations.empty()) {
    Table t{"Parameters the rows know only together", {{"first", true}, {"second", true}, {"correlation"}}, {}};
    for (const calibrate::Correlation& pair : c.correlations) {
      t.rows.push_back({name_of(c, pair.first), name_of(c, pair.second), format_significant(pair.coefficient, 3)});
    }
    doc.emplace_back(std::move(t));
  }
  for (const LeftOut& left : c.left_out) {
    for (Table& t :
         error_tables(fmt::format("Errors of groups left out by {}", left.by), groups_of(left.errors), false)) {
      doc.emplace_back(std::move(t));
    }
  }
  for (Table& t : error_tables("Residuals of the fit to all rows", groups_of(c.residuals), false)) {
    doc.emplace_back(std::move(t));
  }
  const Json parameters = parameters_json(c);
  Table csv = parameters.empty() ? Table{"", {{"name"}}, {}} : csv_of(parameters);
  return {std::move(doc), std::move(csv), document_json(c, parameters)};
}

}  // namespace llmperf::report
