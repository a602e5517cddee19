#include "report/html/values.h"

#include <algorithm>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "report/quantity.h"

namespace llmperf::report {
namespace {

constexpr std::size_t kMostRows = 10'000;  // of a table; a page with more is no use to anyone
constexpr std::size_t kMostSections = 12;  // rows that get sections of their own for the lists in them
constexpr std::size_t kMostInLine = 12;    // values of a list shown without folding
constexpr std::size_t kMostNames = 8;      // of a list in a cell
constexpr std::size_t kFoldFrom = 4;       // rows from which a column that never changes is worth a line above
constexpr std::size_t kMostSame = 6;       // such columns that the line names

// The columns that a reader looks at first, by the key of the list.
const std::vector<std::string>& leading_columns(const std::string& key) {
  static const std::map<std::string, std::vector<std::string>> kLeading = {
      {"ops", {"name", "before_s", "after_s", "relative_change", "why", "share_of_change"}},
      {"phases", {"name", "before_s", "after_s", "relative_change", "bound_before", "bound_after"}},
      {"plans", {"rank", "plan", "step_s", "mfu", "memory.total_bytes", "fits", "communication_s"}},
      {"parameters", {"name", "value", "default", "relative_error", "status", "meaning"}},
      {"mappings", {"rank", "time_s", "slower_by_s", "why", "of_bound", "split", "block", "stays", "feeds"}}};
  static const std::vector<std::string> kNone;
  const auto found = kLeading.find(key);
  return found == kLeading.end() ? kNone : found->second;
}

// A number with the unit that stands beside it in the document.
HtmlCell shown_with_unit(double value, const std::string& unit) {
  static const std::map<std::string, std::string_view> kKeys = {
      {"B", "bytes"}, {"B/s", "bytes_per_s"}, {"FLOP", "flops"}, {"FLOP/s", "flops_per_s"}, {"s", "time_s"}};
  const std::string exact = number(value).dump();
  if (const auto key = kKeys.find(unit); key != kKeys.end()) return {quantity_text(key->second, value, {}), exact};
  return {format_significant(value) + (unit.empty() ? "" : " " + unit), exact};
}

std::string scalar_text(const Json& value, const std::string& key, const Labels& labels) {
  return is_scalar(value) ? shown(value, key, {}, labels).text : value.dump();
}

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
  // Of text in lines a sentence may go on in the next one.
  return join(parts, key == "notes" || key == "description" || key == "text" ? " " : ", ");
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
  // What is compared, and members of an object, are named by a key, which says the unit of their numbers.
  const std::string name = find_text(row, "name");
  if ((key == "headline" || key == "inputs" || key == "figures" || key == "error_band") && !name.empty()) {
    const bool named = path == "before" || path == "after" || path == "change" || path == "value";
    if (path == "name") return {column_label(name, labels), {}};
    if (value.is_number() && named) return shown(value, last_of(name), parent_of(name, {}), labels);
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

// Its rows, each named by its key, whose end says the unit of a "value".
Json rows_of_members(const Json& object) {
  Json rows = Json::array();
  for (const auto& [name, member] : object.items()) {
    if (member.is_null()) continue;
    rows.push_back({{"name", name}});
    rows.back().update(member);
  }
  return rows;
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
  write_table(page, table_of(rows, key, labels, leading_columns(key), lists), labels);
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

std::string last_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }
std::string parent_of(const std::string& path, const std::string& key) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? key : last_of(path.substr(0, dot));
}

const Json* find(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (at->is_object()) {
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array() && parse_int(key)) {
      const auto index = static_cast<std::size_t>(*parse_int(key));
      if (index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

std::optional<double> find_number(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::string find_text(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_true(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

bool is_false(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_boolean() && !value->get<bool>();
}

const Json& list_at(const Json& json, std::string_view path) {
  static const Json kNone = Json::array();
  const Json* value = find(json, path);
  return value != nullptr && is_list_of_objects(*value) ? *value : kNone;
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_object(); });
}

bool is_list_of_texts(const Json* value) {
  return value != nullptr && value->is_array() &&
         std::all_of(value->begin(), value->end(), [](const Json& item) { return item.is_string(); });
}

HtmlCell shown(const Json& value, std::string_view key, std::string_view parent, const Labels& labels) {
  // "flops_before" is counted as "flops" is.
  for (const std::string_view side : {"_before", "_after"}) {
    if (key.ends_with(side)) key.remove_suffix(side.size());
  }
  if (value.is_null()) return {labels.text("nothing"), {}};
  if (value.is_boolean()) return {labels.text(value.get<bool>() ? "yes" : "no"), {}};
  if (value.is_number()) return {quantity_text(key, value.get<double>(), parent), value.dump()};
  const std::string text = value.get<std::string>();
  if (key.ends_with("provenance")) return {labels.value("provenance", text), text, true};
  return {labels.value(key, text), {}};
}

HtmlTable table_of(const Json& rows, const std::string& key, const Labels& labels,
                   const std::vector<std::string>& leading, const std::set<std::string>& skip) {
  HtmlTable table{key, labels.list_title(key), {}, {}};
  std::vector<Flat> flat(std::min(rows.size(), kMostRows));
  for (std::size_t i = 0; i < flat.size(); ++i) {
    flatten(rows[i], {}, skip, flat[i]);
    for (const auto& [path, value] : flat[i]) {
      const auto known = std::ranges::find(table.columns, path, &HtmlColumn::key);
      if (value->is_null() || known != table.columns.end()) continue;
      table.columns.push_back({path, column_label(path, labels), value->is_number()});
    }
  }
  const auto rank = [&](const HtmlColumn& column) { return std::ranges::find(leading, column.key) - leading.begin(); };
  std::ranges::stable_sort(table.columns, {}, rank);
  std::map<std::string, std::size_t> columns;
  for (const HtmlColumn& column : table.columns) columns.emplace(column.key, columns.size());
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

void write_table(HtmlWriter& page, HtmlTable table, const Labels& labels) {
  std::vector<HtmlField> same;
  for (std::size_t c = 1; table.rows.size() >= kFoldFrom && c < table.columns.size();) {
    const HtmlCell& first = table.rows[0][c];
    if (!std::ranges::all_of(table.rows, [&](const std::vector<HtmlCell>& row) {
          return row[c].text == first.text && row[c].value == first.value;
        })) {
      ++c;
      continue;
    }
    same.push_back({table.columns[c].label, first});
    const auto at = static_cast<std::ptrdiff_t>(c);
    for (std::vector<HtmlCell>& row : table.rows) row.erase(row.begin() + at);
    table.columns.erase(table.columns.begin() + at);
  }
  if (!same.empty()) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(same.size(), kMostSame); ++i) {
      parts.push_back(same[i].label + " " + same[i].cell.text);
    }
    if (same.size() > kMostSame) parts.emplace_back("…");
    page.open_fold("same", {}, labels.text("same_in_all", {join(parts, " · ")}));
    page.fields(same);
    page.close_fold();
  }
  page.table(table);
}

void write_value(HtmlWriter& page, const Json& value, const std::string& key, int level, const Labels& labels) {
  if (is_list_of_objects(value)) {
    write_rows(page, value, key, level, labels);
  } else if (is_list_of_texts(&value)) {
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(labels.sentence(item.get<std::string>()));
    page.list(items);
  } else if (value.is_array()) {
    page.open_fold({}, {}, labels.text("values_count", {std::to_string(value.size())}));
    page.paragraph(line_of(value, key, labels));
    page.close_fold();
  } else if (is_table_of_members(value)) {
    write_table(page, table_of(rows_of_members(value), key, labels), labels);
  } else {
    write_object(page, value, key, level, labels);
  }
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
    } else if (find_number(value, "devices") == 1.0 && !find_text(value, "text").empty()) {
      fields.push_back({labels.key(name), {find_text(value, "text"), {}}});  // a plan of one device has no degrees
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
