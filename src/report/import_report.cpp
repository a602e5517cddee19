#include "report/import_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/number.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using import::Class;
using import::Imported;
using import::TypeSummary;

struct ClassTotal {
  Class of;
  std::int64_t count = 0;
  Seconds total;
  std::int64_t imported = 0;
};

// Classes never mix: a share is of the time of its class.
std::vector<ClassTotal> totals_of(const Imported& imported) {
  std::vector<ClassTotal> totals;
  for (const TypeSummary& t : imported.types) {
    if (totals.empty() || totals.back().of != t.of) totals.push_back({.of = t.of, .total = {}});
    totals.back().count += t.count;
    totals.back().total += t.total;
    totals.back().imported += t.imported;
  }
  return totals;
}

double share_of(const TypeSummary& t, const std::vector<ClassTotal>& totals) {
  const auto found = std::find_if(totals.begin(), totals.end(), [&](const ClassTotal& c) { return c.of == t.of; });
  return found->total.value > 0 ? t.total / found->total : 0;
}

std::string_view meaning(Class of) {
  switch (of) {
    case Class::kernel: return "kernel time";
    case Class::communication: return "communication";
    case Class::host: return "host time";
    case Class::other: return "other";
  }
  return "";
}

std::string plural(std::int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", format_count(static_cast<double>(n)), what, n == 1 ? "" : "s");
}

std::vector<std::string> warnings_of(const Imported& imported) {
  if (imported.types.empty()) return {"the files hold no kernels and no collectives"};
  if (imported.measurements.rows.empty()) return {"nothing here is a measurement of an op: the remarks say why"};
  return {};
}

Fields headline(const Imported& imported, const std::vector<ClassTotal>& totals) {
  Fields f;
  f.rows.emplace_back("measurements", fmt::format("{} of different ops", imported.measurements.rows.size()));
  for (const ClassTotal& c : totals) {
    f.rows.emplace_back(meaning(c.of),
                        fmt::format("{} in {}, {} imported", format_seconds(c.total), plural(c.count, "execution"),
                                    format_count(static_cast<double>(c.imported))));
  }
  for (const std::string& warning : warnings_of(imported)) f.rows.emplace_back("warning", warning);
  return f;
}

// Of one class; of long lists the types that take nearly all the time.
Table type_table(const Imported& imported, const std::vector<ClassTotal>& totals, Class of) {
  constexpr std::size_t kMost = 40;
  Table t{std::string(meaning(of)),
          {{"type", true}, {"count"}, {"total"}, {"share"}, {"imported"}, {"left out because", true}},
          {}};
  std::size_t hidden = 0;
  for (const TypeSummary& s : imported.types) {
    if (s.of != of) continue;
    if (t.rows.size() == kMost) {
      ++hidden;
      continue;
    }
    t.rows.push_back({s.type, format_count(static_cast<double>(s.count)), format_seconds(s.total),
                      format_share(share_of(s, totals)), format_count(static_cast<double>(s.imported)), s.remark});
  }
  if (hidden > 0) t.title += fmt::format(" (the {} types of most time; {} more)", kMost, hidden);
  return t;
}

Json types_json(const Imported& imported, const std::vector<ClassTotal>& totals) {
  Json list = Json::array();
  for (const TypeSummary& t : imported.types) {
    list.push_back({{"type", t.type},
                    {"class", std::string(import::name(t.of))},
                    {"count", t.count},
                    {"time_s", number(t.total)},
                    {"share", number(share_of(t, totals))},
                    {"imported", t.imported},
                    {"remark", t.remark}});
  }
  return list;
}

Json measurements_json(const Imported& imported) {
  Json list = Json::array();
  for (const calibrate::Row& row : imported.measurements.rows) {
    list.push_back({{"op", calibrate::describe(std::get<calibrate::OpRow>(row.of))}, {"time_s", number(row.latency)}});
    for (std::size_t i = 0; i < row.extra.size(); ++i) {
      const std::string& column = imported.measurements.extra_columns[i];
      const std::optional<double> value = parse_double(row.extra[i]);
      if (column == "spread_us" && value) list.back()["spread_s"] = number(*value * 1e-6);
      if (column == "repetitions" && value) list.back()["repetitions"] = number(*value);
      if (column == "type") list.back()["type"] = row.extra[i];
    }
  }
  return list;
}

}  // namespace

Report import_report(const Imported& imported) {
  const std::vector<ClassTotal> totals = totals_of(imported);
  Document doc{Heading{"Imported measurements", std::string(import::name(imported.source))},
               headline(imported, totals)};
  for (const ClassTotal& c : totals) doc.emplace_back(type_table(imported, totals, c.of));

  const Json types = types_json(imported, totals);
  Json json = json_header("llmperf.import");
  json["source"] = std::string(import::name(imported.source));
  json["files"] = Json::array();
  for (const auto& file : imported.measurements.files) json["files"].push_back(file.path);
  json["classes"] = Json::array();
  for (const ClassTotal& c : totals) {
    json["classes"].push_back({{"class", std::string(import::name(c.of))},
                               {"count", c.count},
                               {"time_s", number(c.total)},
                               {"imported", c.imported}});
  }
  json["types"] = types;
  json["measurements"] = measurements_json(imported);
  json["warnings"] = warnings_of(imported);
  Table csv = types.empty() ? Table{"", {{"type"}}, {}} : csv_of(types);
  return {std::move(doc), std::move(csv), dump(json)};
}

}  // namespace llmperf::report
