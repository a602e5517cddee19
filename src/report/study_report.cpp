#include "report/study_report.h"

#include <fmt/format.h>

#include <utility>

#include "base/number.h"
#include "report/json.h"

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

// A CSV cell as JSON has it.
Json value_of(const std::string& cell) {
  if (cell.empty()) return nullptr;
  if (cell == "true" || cell == "false") return cell == "true";
  if (const auto whole = parse_int(cell)) return *whole;
  if (const auto number = parse_double(cell)) return *number;
  return cell;
}

Json section_json(const SectionResult& result) {
  Json columns = Json::array();
  for (const Column& column : result.rows.columns) columns.push_back(column.header);
  Json rows = Json::array();
  for (const auto& row : result.rows.rows) {
    Json cells = Json::array();
    for (const std::string& cell : row) cells.push_back(value_of(cell));
    rows.push_back(std::move(cells));
  }
  return {{"name", result.section->name},  {"title", result.section->title}, {"text", result.section->text},
          {"commands", result.commands},   {"status", result.status},        {"notes", result.notes},
          {"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

std::string command_line(const study::Section& section) {
  std::string text = section.command.text;
  for (const std::string& argument : section.arguments) text += " " + argument;
  if (!section.rows.empty()) text += fmt::format(" ({} rows)", section.rows.size());
  return text;
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
  Json json = json_header("llmperf.study");
  json["title"] = study.title;
  json["description"] = study.description;
  json["sections"] = Json::array();
  for (const SectionResult& result : results) {
    for (Block& block : section_page(result)) report.document.push_back(std::move(block));
    json["sections"].push_back(section_json(result));
  }
  if (results.size() == 1) report.csv = results.front().rows;
  report.json = dump(json);
  return report;
}

Report study_list_report(const std::vector<NamedStudy>& studies) {
  Table people{"", {{"scenario", true}, {"sections"}, {"title", true}}, {}};
  Table csv{"", {{"scenario"}, {"sections"}, {"title"}}, {}};
  Json json = json_header("llmperf.studies");
  json["studies"] = Json::array();
  for (const NamedStudy& s : studies) {
    const std::string sections = std::to_string(s.study.sections.size());
    people.rows.push_back({s.name, sections, s.study.title});
    csv.rows.push_back({s.name, sections, s.study.title});
    json["studies"].push_back({{"name", s.name}, {"title", s.study.title}, {"sections", s.study.sections.size()}});
  }
  return {{people}, csv, dump(json)};
}

Report study_summary_report(const std::string& name, const study::Study& study) {
  Report report;
  report.document.push_back(Heading{study.title, name});
  append(report.document, study.description);
  Table people{"Sections", {{"name", true}, {"title", true}, {"command", true}}, {}};
  Json json = json_header("llmperf.study_summary");
  json["name"] = name;
  json["title"] = study.title;
  json["description"] = study.description;
  json["sections"] = Json::array();
  for (const study::Section& section : study.sections) {
    people.rows.push_back({section.name, section.title, command_line(section)});
    json["sections"].push_back({{"name", section.name},
                                {"title", section.title},
                                {"command", section.command.text},
                                {"runs", std::max<std::size_t>(1, section.rows.size())}});
  }
  report.csv = {"", {{"name"}, {"title"}, {"command"}}, people.rows};
  report.document.push_back(std::move(people));
  report.document.push_back(Commands{{"llmperf run " + name}});
  report.json = dump(json);
  return report;
}

}  // namespace llmperf::report
