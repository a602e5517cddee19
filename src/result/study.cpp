#include "result/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "result/document.h"
#include "result/json.h"

namespace llmperf::result {
namespace {

struct SweptColumn {
  std::string_view name;
  points::Better better;
  static Type fields() {
    using C = SweptColumn;
    return Fields<C>()
        .of<&C::name>("name", "as in CSV")
        .of("better", "which way it is: \"lower\", \"higher\" or null",
            [](const C& c) { return c.better == points::Better::lower ? "lower" : "higher"; })
        .when([](const C& c) { return c.better != points::Better::unsaid; });
  }
};

std::string command_line(const points::Section& section) {
  std::string text = section.command.text;
  for (const std::string& argument : section.arguments) text += " " + argument;
  if (!section.rows.empty()) text += fmt::format(" ({} rows)", section.rows.size());
  return text;
}

}  // namespace

Type fields_of(Fields<SweptFlag> f) {
  using F = SweptFlag;
  return f.of<&F::flag>("flag", "that changes")
      .of<&F::column>("column", "that it is in")
      .of<&F::values>("values", "as text");
}

Type fields_of(Fields<SweptFront> f) {
  using F = SweptFront;
  return f
      .of("columns", "what was asked for",
          [](const F& front) {
            std::vector<SweptColumn> list;
            for (std::size_t i = 0; i < front.keys.size(); ++i)
              list.push_back({front.columns[i], front.keys[i].better});
            return list;
          })
      .of<&F::beaten>("beaten", "values there of the rows that the front beats; null: too many");
}

std::optional<SweptFront> front_of(const points::Selection& selection, std::span<const std::string> columns) {
  const std::span<const points::Key> keys = selection.front_keys();
  if (keys.empty()) return std::nullopt;
  SweptFront front{{keys.begin(), keys.end()}, {}, selection.beaten()};
  for (const points::Key& key : keys) front.columns.push_back(columns[key.column]);
  // In an order that does not depend on how the points were divided.
  if (front.beaten) std::sort(front.beaten->begin(), front.beaten->end());
  return front;
}

std::vector<std::size_t> SweepResult::written() const {
  if (!shown.empty()) return shown;
  std::vector<std::size_t> all(columns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Type fields_of(Fields<SweepResult> f) {
  using S = SweepResult;
  return f.of<&S::points>("points", "evaluated")
      .of<&S::failed>("failed", "of these")
      .of<&S::selection>("selection", "in words; null: all rows")
      .when([](const S& s) { return !s.selection.empty(); })
      .of<&S::notes>("notes", "at how many points a field says nothing that `estimate` would refuse there")
      .only_when([](const S& s) { return !s.notes.empty(); })
      .of<&S::front>("pareto", "of `pareto`, what the front is of")
      .only_when([](const S& s) { return s.front.has_value(); })
      .of<&S::axes>("axes", "what changes")
      .of("columns", "of the rows",
          [](const S& s) {
            std::vector<SweptColumn> list;
            for (const std::size_t i : s.written()) list.push_back({s.columns[i], points::better(s.columns[i])});
            return list;
          })
      .of("rows", "objects with a key for each column, null where there is no value",
          [](const S&) { return std::vector<Value>(); });
}

namespace {

Json cell_json(const points::Cell& cell) {
  switch (cell.kind) {
    case points::Cell::Kind::none: return nullptr;
    case points::Cell::Kind::number: return number(cell.number);
    case points::Cell::Kind::truth: return cell.number != 0;
    case points::Cell::Kind::text: return cell.text;
  }
  return nullptr;
}

}  // namespace

std::string sweep_document(const SweepResult& result) {
  const std::vector<std::size_t> shown = result.written();
  std::string text = document("llmperf.sweep", result);
  if (result.rows.empty()) return text;
  constexpr std::string_view kEnd = "]\n}\n";
  text.resize(text.size() - kEnd.size());
  for (const points::Row& row : result.rows) {
    text += text.back() == '[' ? "\n    " : ",\n    ";
    Json object = Json::object();
    for (const std::size_t column : shown) object[result.columns[column]] = cell_json(row[column]);
    const std::string lines = dump(object);
    for (const char c : std::string_view(lines).substr(0, lines.size() - 1)) {
      text += c;
      if (c == '\n') text += "    ";
    }
  }
  return text + "\n  " + std::string(kEnd);
}

Type fields_of(Fields<StudySection> f) {
  using S = StudySection;
  return f.of<&S::name>("name", "of its files")
      .of<&S::title>("title", "of the file")
      .of("text", "paragraphs", [](const S& s) { return s.text; })
      .of("commands", "what ran, as a shell reads it; one for each row", [](const S& s) { return s.commands; })
      .of<&S::status>("status", "exit status of a command, 0 for \"does not fit\" where that is an answer")
      .of("notes", "what did not fit or failed, as text", [](const S& s) { return s.notes; })
      .of<&S::columns>("columns", "what the section shows of the commands' CSV")
      .of<&S::rows>("rows", "lists of cells: numbers, true or false, text, or null for an empty cell");
}
Type fields_of(Fields<StudyRun> f) {
  using S = StudyRun;
  return f.of("title", "of the file", [](const S& s) { return s.study->title; })
      .of("description", "paragraphs", [](const S& s) { return s.study->description; })
      .of<&S::sections>("sections", "those that ran, in the order of the file");
}

Type fields_of(Fields<NamedStudy> f) {
  using N = NamedStudy;
  constexpr auto title = [](const N& n) { return n.study.title; };
  constexpr auto sections = [](const N& n) { return n.study.sections.size(); };
  return f.row<&N::name>("scenario", "built-in name")
      .json<&N::name>("name", "built-in name")
      .json("title", "of the file", title)
      .of("sections", "how many", sections)
      .row("title", "of the file", title);
}
Type fields_of(Fields<StudyList> f) { return f.of<&StudyList::studies>("studies", "built-in ones"); }

Type fields_of(Fields<points::Section> f) {
  using S = points::Section;
  return f.of<&S::name>("name", "of its files")
      .of<&S::title>("title", "of the file")
      .row<&command_line>("command", "with its arguments")
      .json("command", "a subcommand", [](const S& s) { return s.command.text; })
      .json("runs", "of the command", [](const S& s) { return std::max<std::size_t>(1, s.rows.size()); });
}
Type fields_of(Fields<StudySummary> f) {
  using S = StudySummary;
  return f.of<&S::name>("name", "as asked for")
      .of("title", "of the file", [](const S& s) { return s.study.title; })
      .of("description", "paragraphs", [](const S& s) { return s.study.description; })
      .of("sections", "in the order of the file", [](const S& s) { return s.study.sections; });
}

}  // namespace llmperf::result
