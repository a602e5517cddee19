#include "report/html_generic.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace llmperf::report {
namespace {

constexpr std::size_t kMostRows = 10'000;  // of a table; a page with more is no use to anyone
constexpr std::size_t kMostSections = 12;  // rows that get sections of their own for the lists in them
constexpr std::size_t kMostInLine = 12;    // values of a list shown without folding
constexpr std::size_t kMostNames = 8;      // of a list in a cell

std::string scalar_text(const Json& value, const std::string& key, const Labels& labels) {
  return is_scalar(value) ? shown(value, key, {}, labels).text : value.dump();
}

// Keys of text in lines: a sentence may go on in the next one.
bool is_prose(std::string_view key) { return key == "notes" || key == "description" || key == "text"; }

// A list in one line: values, or of objects what they are called.
std::string line_of(const Json& list, const std::string& key, const Labels& labels) {
  std::vector<std::string> parts;
  for (const Json& item : list) {
    if (is_list_of_objects(list) && parts.size() == kMostNames) {
      parts.push_back("… (" + std::to_string(list.size()) + ")");
      break;
    }
    const Json* called = item.is_object() && !item.empty() ? &*item.begin() : &item;
    parts.push_back(scalar_text(*called, key, labels));
  }
  return join(parts, is_prose(key) ? " " : ", ");
}

bool has_lists_of_objects(const Json& row) {
  return row.is_object() && std::any_of(row.begin(), row.end(), is_list_of_objects);
}

// A path in a row, and what is there. Objects that describe themselves in a "text" are that text.
using Flat = std::vector<std::pair<std::string, const Json*>>;
void flatten(const Json& row, const std::string& prefix, const std::set<std::string>& skip, Flat& out) {
  for (const auto& [key, value] : row.items()) {
    if (prefix.empty() && skip.contains(key)) continue;
    const std::string path = prefix + key;
    if (!value.is_object()) {
      out.emplace_back(path, &value);
    } else if (const auto text = value.find("text"); text != value.end() && text->is_string()) {
      out.emplace_back(path, &*text);
    } else {
      flatten(value, path + ".", skip, out);
    }
  }
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }
std::string parent_of(const std::string& path, const std::string& key) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? key : last_of(path.substr(0, dot));
}

std::string column_label(const std::string& path, const Labels& labels) {
  std::string label;
  for (const std::string_view part : split(path, '.')) label += (label.empty() ? "" : " · ") + labels.key(part);
  return label;
}

HtmlCell cell_of(const Json& row, const std::string& path, const Json& value, const std::string& key,
                 const Labels& labels) {
  const std::string last = last_of(path);
  if (!is_scalar(value)) return {value.is_array() ? line_of(value, last, labels) : std::string(), {}};
  if (value.is_null()) return {};
  // Of a headline the unit is that of the number the row names.
  const std::string name = find_text(row, "name");
  const std::string named = last_of(name);
  if (key == "headline" && path == "name") return {labels.key(named), {}};
  if (key == "headline" && value.is_number() && (path == "before" || path == "after" || path == "change")) {
    return shown(value, named, parent_of(name, {}), labels);
  }
  const std::string unit = find_text(row, "unit");
  if (value.is_number() && !unit.empty() && (path == "value" || path == "default" || path == "min" || path == "max")) {
    return shown_with_unit(value.get<double>(), unit);
  }
  return shown(value, last, parent_of(path, key), labels);
}

// {"prefill": {…}, "decode": {…}}: members that are alike and hold nothing but scalars.
bool is_table_of_members(const Json& object) {
  if (!object.is_object()) return false;
  const Json* first = nullptr;
  for (const Json& member : object) {
    if (member.is_null()) continue;
    if (!member.is_object() || member.empty() || !std::all_of(member.begin(), member.end(), is_scalar)) return false;
    if (first == nullptr) first = &member;
    if (member.begin().key() != first->begin().key()) return false;
  }
  return first != nullptr;
}

// Its rows, each with the member's own label; a "value" is of the unit that the member's key ends in.
HtmlTable table_of_members(const Json& object, const std::string& key, const Labels& labels) {
  HtmlTable table{key, labels.title(key), {{"name", labels.key("name"), false}}, {}};
  std::map<std::string, std::size_t> columns;
  for (const Json& member : object) {
    if (member.is_null()) continue;
    for (const auto& [name, value] : member.items()) {
      if (!columns.emplace(name, table.columns.size()).second) continue;
      table.columns.push_back({name, labels.key(name), value.is_number()});
    }
  }
  for (const auto& [name, member] : object.items()) {
    std::vector<HtmlCell> row(table.columns.size());
    row[0] = {labels.key(name), {}};
    if (member.is_null()) {
      row[1] = {labels.text("none"), {}};
    } else {
      for (const auto& [field, value] : member.items()) {
        row[columns[field]] = shown(value, field == "value" ? name : field, key, labels);
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string name_of(const Json& row, std::size_t index, const Labels& labels) {
  for (const char* key : {"name", "method", "plan.text", "text", "path", "by", "option", "label"}) {
    const std::string text = find_text(row, key);
    if (!text.empty()) return labels.value("name", text);
  }
  return std::to_string(index + 1);
}

void write_rows(HtmlWriter& page, const Json& rows, const std::string& key, int level, const Labels& labels) {
  const bool sections = rows.size() <= kMostSections && std::any_of(rows.begin(), rows.end(), has_lists_of_objects);
  std::set<std::string> lists;
  if (sections) {
    for (const Json& row : rows) {
      for (const auto& [name, value] : row.items()) {
        if (is_list_of_objects(value)) lists.insert(name);
      }
    }
  }
  page.table(table_of(rows, key, labels, lists));
  if (!sections) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_lists_of_objects(rows[i])) continue;
    page.open_section({}, name_of(rows[i], i, labels), level + 1);
    for (const auto& [name, value] : rows[i].items()) {
      if (is_list_of_objects(value)) write_value(page, value, name, level + 2, labels);
    }
    page.close_section();
  }
}

}  // namespace

HtmlTable table_of(const Json& rows, const std::string& key, const Labels& labels, const std::set<std::string>& skip) {
  HtmlTable table{key, labels.list_title(key), {}, {}};
  std::map<std::string, std::size_t> columns;
  std::vector<Flat> flat(std::min(rows.size(), kMostRows));
  for (std::size_t i = 0; i < flat.size(); ++i) {
    flatten(rows[i], {}, skip, flat[i]);
    for (const auto& [path, value] : flat[i]) {
      if (value->is_null()) continue;
      const auto [at, added] = columns.emplace(path, table.columns.size());
      if (added) table.columns.push_back({path, column_label(path, labels), value->is_number()});
    }
  }
  for (std::size_t i = 0; i < flat.size(); ++i) {
    std::vector<HtmlCell> row(table.columns.size());
    for (const auto& [path, value] : flat[i]) {
      const auto column = columns.find(path);
      if (column != columns.end()) row[column->second] = cell_of(rows[i], path, *value, key, labels);
    }
    table.rows.push_back(std::move(row));
  }
  if (rows.size() > kMostRows) {
    table.caption += ": " + labels.text("first_rows", {std::to_string(kMostRows), std::to_string(rows.size())});
  }
  return table;
}

void write_value(HtmlWriter& page, const Json& value, const std::string& key, int level, const Labels& labels) {
  if (is_list_of_objects(value)) {
    write_rows(page, value, key, level, labels);
    return;
  }
  if (value.is_array()) {
    const std::string summary = labels.text("values_count", {std::to_string(value.size())});
    const bool texts = std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
    if (texts) {
      page.list(value.get<std::vector<std::string>>());
    } else {
      page.details(summary, line_of(value, key, labels));
    }
    return;
  }
  if (is_table_of_members(value)) {
    page.table(table_of_members(value, key, labels));
    return;
  }
  write_object(page, value, key, level, labels);
}

void write_object(HtmlWriter& page, const Json& object, const std::string& key, int level, const Labels& labels,
                  const std::set<std::string>& skip) {
  if (!object.is_object()) return write_value(page, object, key, level, labels);
  std::vector<HtmlField> fields;
  std::vector<std::string> parts;  // what needs a section
  for (const auto& [name, value] : object.items()) {
    if (skip.contains(name)) continue;
    const bool list = value.is_array() && std::all_of(value.begin(), value.end(), is_scalar);
    if (is_scalar(value)) {
      const std::string unit = name == "value" ? find_text(object, "unit") : std::string();
      fields.push_back({labels.key(name), value.is_number() && !unit.empty()
                                              ? shown_with_unit(value.get<double>(), unit)
                                              : shown(value, name, key, labels)});
    } else if (value.empty()) {
      fields.push_back({labels.key(name), {labels.text("none"), {}}});
    } else if (list && value.size() <= kMostInLine && !value.front().is_string()) {
      fields.push_back({labels.key(name), {line_of(value, name, labels), {}}});
    } else {
      parts.push_back(name);
    }
  }
  page.fields(fields);
  for (const std::string& name : parts) {
    page.open_section({}, object.at(name).is_array() ? labels.list_title(name) : labels.title(name), level);
    write_value(page, object.at(name), name, level + 1, labels);
    page.close_section();
  }
}

}  // namespace llmperf::report
