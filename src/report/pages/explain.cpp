// `llmperf explain`: a number, its formula, the formula with the values in place, and the formulas of its parts.
#include <span>

#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/explanation.h"

namespace llmperf::report {
namespace {

std::string exact(double value, const std::string& unit) { return plain(value) + (unit.empty() ? "" : " " + unit); }

// The same value as people write it, where its unit has a prefix form.
std::string people_text(double value, const std::string& unit) {
  if (unit == "B") return format_bytes(Bytes{value});
  if (unit == "FLOP") return format_flops(Flops{value});
  if (unit == "s") return format_seconds(Seconds{value});
  return {};
}

void add(const Explanation& x, Document& doc) {
  Fields f;
  const std::string people = people_text(x.value, x.unit);
  f.add("value", exact(x.value, x.unit) + (people.empty() ? "" : " (" + people + ")"));
  f.add("formula", x.formula);
  f.add("with values", x.substituted);
  for (const std::string& note : x.notes) f.add("note", note);
  Table variables = titled("", "<where, value, <meaning");
  for (const Variable& v : x.variables) add_row(variables, v.name, plain(v.value), v.meaning);
  doc.push_back(Heading{x.path, {}});
  doc.push_back(f);
  if (!variables.rows.empty()) doc.push_back(variables);
  for (const Explanation& part : x.parts) add(part, doc);
}

}  // namespace

Report explain_report(const Explanation& x) {
  Document doc;
  add(x, doc);
  return {std::move(doc), csv_of(std::span(&x, 1), "path, value, unit, formula, substituted"),
          result::document("llmperf.explanation", x)};
}

Report explainable_report(const Explainable& explainable) {
  Table people = titled("Numbers that can be explained", "<path, <value");
  for (const PathValue& p : explainable.paths) add_row(people, p.path, exact(p.value, p.unit));
  return {{people}, csv_of(explainable.paths), result::document("llmperf.explainable", explainable)};
}

}  // namespace llmperf::report
