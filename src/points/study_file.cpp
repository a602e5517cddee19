// Scenario files read: their keys, flags and views. What is not understood is reported, and the reading goes on.
#include "points/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"

namespace llmperf::points {

std::vector<Flag> merged(const std::vector<Flag>& under, const std::vector<Flag>& over) {
  std::vector<Flag> all = under;
  for (const Flag& flag : over) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Flag& f) { return f.name.text == flag.name.text; });
    if (same == all.end()) {
      all.push_back(flag);
    } else {
      *same = flag;
    }
  }
  return all;
}

std::vector<std::string> words_of(const std::vector<Flag>& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : flags) {
    if (flag.kind == Flag::Kind::off) continue;
    const std::string name = "--" + flag.name.text;
    if (flag.kind == Flag::Kind::on) {
      words.push_back(name);
    } else if (flag.value.starts_with('-')) {
      words.push_back(name + "=" + flag.value);  // apart it would be read as a flag
    } else {
      words.insert(words.end(), {name, flag.value});
    }
  }
  return words;
}

std::vector<std::string> paragraphs(const std::string& text) {
  std::vector<std::string> found;
  bool open = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view words = trim(line);
    if (words.empty()) {
      open = false;
    } else if (open) {
      found.back().append(1, ' ').append(words);
    } else {
      found.emplace_back(words);
      open = true;
    }
  }
  return found;
}

namespace {

using descriptor::Node;
using descriptor::Reader;

// ---- The mapping of a section's key `flags`, or one of `rows`.

bool is_flag_name(const std::string& text) {
  return !text.empty() && text.front() != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

// A comma-separated value; nothing when an item is no text.
std::optional<std::string> list_of(const Node& node) {
  std::string joined;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar || item.scalar.empty()) return std::nullopt;
    joined += (joined.empty() ? "" : ",") + item.scalar;
  }
  return joined.empty() ? std::nullopt : std::optional(joined);
}

std::optional<Flag> read_flag(const Node::Entry& entry, descriptor::Problems& problems) {
  const Node& value = entry.value;
  Flag flag{{entry.key, entry.line, entry.column}, Flag::Kind::value, {}};
  const bool plain = value.kind == Node::Kind::scalar && !value.quoted;
  if (plain && (value.scalar == "true" || value.scalar == "false")) {
    flag.kind = value.scalar == "true" ? Flag::Kind::on : Flag::Kind::off;
    return flag;
  }
  std::optional<std::string> text;
  if (value.kind == Node::Kind::scalar && !value.scalar.empty()) text = value.scalar;
  if (value.kind == Node::Kind::sequence) text = list_of(value);
  if (!text) {
    problems.add(entry.line, entry.column,
                 "flag " + quote(entry.key) + " needs a value, a list of values, true or false");
    return std::nullopt;
  }
  flag.value = *text;
  return flag;
}

std::vector<Flag> read_flags(const Node& node, descriptor::Problems& problems) {
  constexpr std::array<std::string_view, 4> kOutput = {"format", "json", "export", "lang"};
  const descriptor::Reader mapping(node, problems, "flags");  // reports what is none
  std::vector<Flag> flags;
  for (const Node::Entry& entry : node.entries) {
    if (std::find(kOutput.begin(), kOutput.end(), entry.key) != kOutput.end()) {
      problems.add(entry.line, entry.column, "flag " + quote(entry.key) + " says where a result goes",
                   "a section's files are its key 'write'");
    } else if (!is_flag_name(entry.key)) {
      problems.add(entry.line, entry.column, quote(entry.key) + " is no name of a flag",
                   "write it as on the command line without the dashes: batch, gpu-layers");
    } else if (std::optional<Flag> flag = read_flag(entry, problems)) {
      flags.push_back(std::move(*flag));
    }
  }
  return flags;
}

// ---- `only`, `columns`, `pivot` and `parts` of a section.

Word word(const Node& node) { return {node.scalar, node.line, node.column}; }

// The items of a list, or the value itself where one is enough.
std::vector<const Node*> items(const Node* node) {
  std::vector<const Node*> found;
  if (node == nullptr) return found;
  if (node->kind != Node::Kind::sequence) return {node};
  for (const Node& item : node->items) found.push_back(&item);
  return found;
}

std::vector<Word> read_words(Reader& reader, std::string_view key) {
  std::vector<Word> words;
  for (const Node* item : items(reader.find(key))) {
    if (item->kind == Node::Kind::scalar && !item->scalar.empty()) {
      words.push_back(word(*item));
    } else {
      reader.problems().add(*item, quote(key) + " must be a text or a list of texts");
    }
  }
  return words;
}

// `ttft_s`, or `ttft_s: TTFT` with a heading.
std::vector<ShownColumn> read_columns(Reader& reader, std::string_view key) {
  std::vector<ShownColumn> columns;
  for (const Node* item : items(reader.find(key))) {
    if (item->kind == Node::Kind::scalar && !item->scalar.empty()) {
      columns.push_back({word(*item), {}});
      continue;
    }
    const bool headed = item->kind == Node::Kind::mapping && !item->entries.empty();
    bool good = headed;
    for (const Node::Entry& entry : item->entries) good = good && entry.value.kind == Node::Kind::scalar;
    if (!good) {
      reader.problems().add(*item, quote(key) + " must list names of columns, or 'name: heading'");
      continue;
    }
    for (const Node::Entry& entry : item->entries) {
      columns.push_back({{entry.key, entry.line, entry.column}, entry.value.scalar});
    }
  }
  return columns;
}

std::vector<Only> read_only(Reader& reader) {
  std::vector<Only> only;
  const Node* node = reader.find("only");
  if (node == nullptr) return only;
  const Reader mapping(*node, reader.problems(), "'only'");  // reports what is none
  for (const Node::Entry& entry : node->entries) {
    Only one{{entry.key, entry.line, entry.column}, {}};
    for (const Node* item : items(&entry.value)) {
      if (item->kind == Node::Kind::scalar) {
        one.values.push_back(item->scalar);
      } else {
        reader.problems().add(*item, quote(entry.key) + " must be a value or a list of values");
      }
    }
    only.push_back(std::move(one));
  }
  return only;
}

std::optional<Pivot> read_pivot(Reader& section) {
  std::optional<Reader> reader = section.optional_mapping("pivot");
  if (!reader) return std::nullopt;
  Pivot pivot;
  pivot.rows = read_words(*reader, "rows");
  const std::vector<Word> columns = read_words(*reader, "columns");
  pivot.cells = read_columns(*reader, "cells");
  if (pivot.rows.empty()) reader->problem("rows", "'pivot' needs 'rows': a column of the result, or several");
  if (columns.size() != 1) reader->problem("columns", "'pivot' needs 'columns': one column of the result");
  if (pivot.cells.empty()) reader->problem("cells", "'pivot' needs 'cells': what its cells show");
  if (!columns.empty()) pivot.columns = columns.front();
  reader->finish();
  return pivot;
}

View read_view(Reader& section) {
  View view{.only = read_only(section),
            .columns = read_columns(section, "columns"),
            .pivot = read_pivot(section),
            .parts = read_words(section, "parts")};
  if (!view.parts.empty() && view.of_rows()) {
    section.problem("parts",
                    "'parts' cuts the command's own page; 'only', 'columns' and 'pivot' show its rows instead");
  }
  if (view.pivot && !view.columns.empty()) {
    section.problem("columns", "'columns' and 'pivot' are two ways to show the same rows", "choose one");
  }
  return view;
}

// ---- The study.

constexpr std::array<std::string_view, 5> kWritten = {"csv", "md", "json", "html", "trace.json"};

// "What fits (24 GiB)" -> "what-fits-24-gib"; a title without Latin letters gets its number.
std::string file_name(const std::string& title, std::size_t number) {
  std::string name;
  for (const char c : title) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name = name.substr(0, 80);
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? fmt::format("section-{}", number) : name;
}

std::string read_name(Reader& reader, const std::string& title, std::size_t number) {
  const std::optional<std::string> given = reader.optional_string("name");
  if (!given) return file_name(title, number);
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (given->empty() || given->size() > 80 || given->front() == '.' ||
      given->find_first_not_of(kPlain) != std::string::npos) {
    reader.problem("name", quote(*given) + " is no name for files", "letters, digits, '-', '_' and '.', at most 80");
  }
  return *given;
}

std::vector<std::string> read_arguments(Reader& reader) {
  std::vector<std::string> arguments;
  const Node* node = reader.find("arguments");
  if (node != nullptr && node->kind == Node::Kind::scalar) {
    arguments.push_back(node->scalar);
  } else {
    arguments = reader.optional_strings("arguments");
  }
  for (const std::string& argument : arguments) {
    if (argument.empty()) reader.problem("arguments", "an argument is empty");
    if (argument.starts_with('-'))
      reader.problem("arguments", quote(argument) + " is a flag: it belongs under 'flags'");
  }
  return arguments;
}

std::vector<std::string> read_write(Reader& reader, bool of_rows) {
  if (!reader.has("write")) {
    reader.find("write");
    return {"csv"};
  }
  std::vector<std::string> written = reader.optional_strings("write");
  const std::vector<std::string> known(kWritten.begin(), kWritten.end());
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::string& form = written[i];
    if (std::find(known.begin(), known.end(), form) == known.end()) {
      reader.problem("write", fmt::format("there is no output {}", quote(form)), name_hint(form, known));
    } else if (of_rows && form != "csv" && form != "md") {
      reader.problem("write", fmt::format("rows are several results, which {} has no form for", form), "csv or md");
    }
    if (std::find(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(i), form) !=
        written.begin() + static_cast<std::ptrdiff_t>(i)) {
      reader.problem("write", quote(form) + " is named twice");
    }
  }
  return written;
}

std::vector<std::vector<Flag>> read_rows(Reader& reader) {
  std::vector<std::vector<Flag>> rows;
  const Node* node = reader.find("rows");
  if (node == nullptr) return rows;
  if (node->kind != Node::Kind::sequence || node->items.empty()) {
    reader.problem("rows", "'rows' must be a list of mappings: the flags of one run each");
  }
  for (const Node& item : node->items) rows.push_back(read_flags(item, reader.problems()));
  return rows;
}

Section read_section(Reader& reader, std::size_t number) {
  Section section;
  section.title = reader.require_string("title");
  section.text = paragraphs(reader.string_or("text", ""));
  section.name = read_name(reader, section.title, number);
  section.command.text = reader.require_string("command");
  if (const Node* command = reader.find("command")) {
    section.command.line = command->line;
    section.command.column = command->column;
  }
  section.arguments = read_arguments(reader);
  if (const Node* flags = reader.find("flags")) section.flags = read_flags(*flags, reader.problems());
  section.rows = read_rows(reader);
  section.may_not_fit = reader.bool_or("may_not_fit", false);
  section.view = read_view(reader);
  section.write = read_write(reader, !section.rows.empty());
  reader.finish();
  return section;
}

// Names are compared as a file system that ignores case would.
void check_names(Reader& reader, std::vector<Reader>& sections, const StudyFile& study) {
  std::map<std::string, std::size_t> seen{{"readme", 0}};
  for (std::size_t i = 0; i < study.sections.size(); ++i) {
    const std::string& name = study.sections[i].name;
    if (seen.emplace(to_lower(name), i).second) continue;
    sections[i].problem(sections[i].has("name") ? "name" : "title",
                        fmt::format("the files of two sections would be called {}", quote(name)),
                        "give this one another 'name'");
  }
  if (study.sections.empty() && !reader.has("sections"))
    reader.problem("sections", "missing key 'sections' in a study");
  if (study.sections.empty() && reader.has("sections")) reader.problem("sections", "a study needs a section");
}

}  // namespace

StudyFile parse_study(const descriptor::Document& document) {
  descriptor::Problems problems(document.file);
  Reader reader(document.root, problems, "a study");
  StudyFile study;
  study.file = document.file;
  study.title = reader.require_string("title");
  study.description = paragraphs(reader.string_or("description", ""));
  if (const Node* flags = reader.find("flags")) study.flags = read_flags(*flags, problems);
  std::vector<Reader> sections = reader.optional_mappings("sections");
  for (Reader& section : sections) study.sections.push_back(read_section(section, study.sections.size() + 1));
  check_names(reader, sections, study);
  reader.finish();
  problems.throw_if_any();
  return study;
}

StudyFile load_study(const std::string& name_or_path) {
  return parse_study(descriptor::load(descriptor::Kind::scenario, name_or_path));
}

}  // namespace llmperf::points
