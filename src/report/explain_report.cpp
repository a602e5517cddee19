#include "report/explain_report.h"

#include <fmt/format.h>

#include "base/number.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using estimate::Explanation;
using estimate::Variable;

std::string exact(double value, const std::string& unit) { return plain(value) + (unit.empty() ? "" : " " + unit); }

// The same value as people write it, where its unit has a prefix form.
std::string readable(double value, const std::string& unit) {
  if (unit == "B") return format_bytes(Bytes{value});
  if (unit == "FLOP") return format_flops(Flops{value});
  if (unit == "s") return format_seconds(Seconds{value});
  return {};
}

void add(const Explanation& x, Document& doc) {
  Fields f;
  const std::string people = readable(x.value, x.unit);
  f.rows.emplace_back("value", exact(x.value, x.unit) + (people.empty() ? "" : " (" + people + ")"));
  f.rows.emplace_back("formula", x.formula);
  f.rows.emplace_back("with values", x.substituted);
  for (const std::string& note : x.notes) f.rows.emplace_back("note", note);
  Table variables{"", {{"where", true}, {"value"}, {"meaning", true}}, {}};
  for (const Variable& v : x.variables) variables.rows.push_back({v.name, plain(v.value), v.meaning});
  doc.push_back(Heading{x.path, {}});
  doc.push_back(f);
  if (!variables.rows.empty()) doc.push_back(variables);
  for (const Explanation& part : x.parts) add(part, doc);
}

Json to_json(const Explanation& x) {
  Json json = {{"path", x.path},
               {"unit", x.unit},
               {"value", number(x.value)},
               {"formula", x.formula},
               {"substituted", x.substituted},
               {"variables", Json::array()},
               {"notes", x.notes},
               {"parts", Json::array()}};
  for (const Variable& v : x.variables) {
    json["variables"].push_back({{"name", v.name}, {"value", number(v.value)}, {"meaning", v.meaning}});
  }
  for (const Explanation& part : x.parts) json["parts"].push_back(to_json(part));
  return json;
}

}  // namespace

Report explain_report(const Explanation& x) {
  Document doc;
  add(x, doc);
  Table csv{"", {{"path"}, {"value"}, {"unit"}, {"formula"}, {"substituted"}}, {}};
  csv.rows.push_back({x.path, plain(x.value), x.unit, x.formula, x.substituted});
  Json json = json_header("llmperf.explanation");
  json.update(to_json(x));
  return {std::move(doc), csv, dump(json)};
}

Report explainable_report(const std::vector<PathValue>& paths) {
  Table people{"Numbers that can be explained", {{"path", true}, {"value", true}}, {}};
  Table csv{"", {{"path"}, {"value"}, {"unit"}}, {}};
  Json json = json_header("llmperf.explainable");
  json["paths"] = Json::array();
  for (const PathValue& p : paths) {
    people.rows.push_back({p.path, exact(p.value, p.unit)});
    csv.rows.push_back({p.path, plain(p.value), p.unit});
    json["paths"].push_back({{"path", p.path}, {"value", number(p.value)}, {"unit", p.unit}});
  }
  return {{people}, csv, dump(json)};
}

}  // namespace llmperf::report
