// `llmperf run`, `list scenarios` and `show scenario`.
#include "result/study.h"

#include <fmt/format.h>

#include "base/number.h"
#include "report/pages/study_view.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

constexpr std::size_t kCommandsShown = 3;  // of rows; the others differ in a flag

void append(Document& page, const std::vector<std::string>& paragraphs) {
  for (const std::string& text : paragraphs) page.push_back(Paragraph{text});
}

Commands shown_commands(const std::vector<std::string>& commands) {
  Commands shown{commands};
  if (shown.lines.size() <= kCommandsShown + 1) return shown;
  shown.lines.resize(kCommandsShown);
  shown.lines.push_back(fmt::format("# and {} more", commands.size() - kCommandsShown));
  return shown;
}

// What a CSV cell is.
result::Value value_of(const std::string& cell) {
  if (cell.empty()) return std::monostate();
  if (cell == "true" || cell == "false") return cell == "true";
  if (const auto number = parse_double(cell)) return *number;
  return cell;
}

}  // namespace

Document section_page(const SectionResult& result) {
  Document page{Heading{result.section->title, ""}};
  append(page, result.section->text);
  for (Block block : result.page) {
    if (auto* heading = std::get_if<Heading>(&block)) heading->level = 3;
    page.push_back(std::move(block));
  }
  append(page, result.notes);
  page.push_back(shown_commands(result.commands));
  return page;
}

Report study_report(const study::Study& study, const std::vector<SectionResult>& results) {
  Report report;
  report.document.push_back(Heading{study.title, "", 1});
  append(report.document, study.description);
  StudyRun run{&study, {}};
  for (const SectionResult& result : results) {
    for (Block& block : section_page(result)) report.document.push_back(std::move(block));
    StudySection section{.name = result.section->name,
                         .title = result.section->title,
                         .text = result.section->text,
                         .commands = result.commands,
                         .status = result.status,
                         .notes = result.notes,
                         .columns = {},
                         .rows = {}};
    for (const Column& column : result.rows.columns) section.columns.push_back(column.header);
    for (const auto& row : result.rows.rows) {
      auto& cells = section.rows.emplace_back();
      for (const std::string& cell : row) cells.push_back(value_of(cell));
    }
    run.sections.push_back(std::move(section));
  }
  if (results.size() == 1) report.csv = results.front().rows;
  report.json = result::document("llmperf.study", run);
  return report;
}

Report study_list_report(const StudyList& list) {
  const Table csv = csv_of(list.studies);
  return {{Table{"", {{"scenario", true}, {"sections"}, {"title", true}}, csv.rows}},
          csv,
          result::document("llmperf.studies", list)};
}

Report study_summary_report(const StudySummary& summary) {
  Report report;
  report.document.push_back(Heading{summary.study.title, summary.name});
  append(report.document, summary.study.description);
  report.csv = csv_of(summary.study.sections);
  report.document.push_back(Table{"Sections", {{"name", true}, {"title", true}, {"command", true}}, report.csv.rows});
  report.document.push_back(Commands{{"llmperf run " + summary.name}});
  report.json = result::document("llmperf.study_summary", summary);
  return report;
}

}  // namespace llmperf::report
