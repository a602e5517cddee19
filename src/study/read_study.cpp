#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "study/read.h"

namespace llmperf::study {
namespace {

using descriptor::Node;
using descriptor::Reader;

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
void check_names(Reader& reader, std::vector<Reader>& sections, const Study& study) {
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

Study parse_study(const descriptor::Document& document) {
  descriptor::Problems problems(document.file);
  Reader reader(document.root, problems, "a study");
  Study study;
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

Study load_study(const std::string& name_or_path) {
  return parse_study(descriptor::load(descriptor::Kind::scenario, name_or_path));
}

}  // namespace llmperf::study
