// `llmperf import`: what the files of a profiler hold, by class and type, and what became measurements.

#include <algorithm>

#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/measured.h"

namespace llmperf::report {
namespace {

std::string meaning_of(import::Class of) {
  switch (of) {
    case import::Class::kernel: return "kernel time";
    case import::Class::communication: return "communication";
    case import::Class::host: return "host time";
    case import::Class::other: return "other";
    case import::Class::step: return "tests";
    case import::Class::run: return "runs";
  }
  return "";
}

// Of one class; of long lists the types that take nearly all the time.
Table types_table(const std::vector<ImportedType>& types, const ClassTotal& all) {
  constexpr std::size_t kMost = 40;
  Table t = titled(meaning_of(all.of), "<type, count, total, share, in rows, in groups, left out, <because");
  const auto share = [&](Seconds part) { return part.value > 0 ? share_of(part, all.total) : std::nullopt; };
  std::size_t hidden = 0;
  for (const ImportedType& type : types) {
    const import::TypeSummary& s = *type.summary;
    if (s.of != all.of) continue;
    if (t.rows.size() == kMost) {
      ++hidden;
      continue;
    }
    add_row(t, s.type, Count(s.count), s.total, Share{type.share}, share(s.in_rows), share(s.in_groups),
            share(s.left_out()), s.remark);
  }
  add_row(t, "all", Count(all.count), all.total, "", share(all.in_rows), share(all.in_groups), share(all.left_out), "");
  if (hidden > 0) t.title += fmt::format(" (the {} types of most time; {} more)", kMost, hidden);
  return t;
}

}  // namespace

Report import_report(const import::Imported& imported) {
  const std::vector<ImportedType> types = types_of(imported);
  Fields f;
  const std::size_t rows = imported.measurements.rows.size();
  const import::Class made = import::rows_of(imported.source);
  f.add("measurements", "{} {}", rows,
        made == import::Class::run    ? "figures"
        : made == import::Class::step ? "of steps"
                                      : "of different ops");
  std::vector<Table> tables;
  const std::vector<ClassTotal> totals = totals_of(imported);
  for (const ClassTotal& c : totals) {
    f.add(meaning_of(c.of), "{} in {} execution{}, {} imported", c.total, Count(c.count), c.count == 1 ? "" : "s",
          Count(c.imported));
    tables.push_back(types_table(types, c));
  }
  if (!imported.groups.empty()) {
    tables.push_back(table_of("no op of a model", "<group, <of, count, total, share, <why", imported.groups,
                              [&](const import::GroupSummary& g) {
                                const auto of = std::ranges::find(totals, g.of, &ClassTotal::of);
                                return cells(g.group->name, meaning_of(g.of), Count(g.count), g.total,
                                             share_of(g.total, of->total), g.group->reason);
                              }));
  }
  for (const std::string& warning : warnings_of(imported)) f.add("warning", warning);
  Document doc{Heading{"Imported measurements", std::string(name(imported.source))}, std::move(f)};
  for (Table& t : tables) doc.push_back(std::move(t));
  return {std::move(doc), csv_of(types), result::document("llmperf.import", imported)};
}

}  // namespace llmperf::report
