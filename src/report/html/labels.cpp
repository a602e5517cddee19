#include "report/html/labels.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/text.h"

namespace llmperf::report {
namespace {

struct Words {
  std::string_view english;
  std::string_view chinese;
};

const std::map<std::string_view, Words>& table() {
  static const std::map<std::string_view, Words> rows = [] {
    std::map<std::string_view, Words> read;
    for (const std::string_view line : split(labels_csv(), '\n')) {
      const std::vector<std::string_view> cells = split(line, ',');
      if (cells.size() == 3) read[cells[0]] = {cells[1], cells[2]};
    }
    return read;
  }();
  return rows;
}

const Words* row_of(std::string_view key) {
  const auto found = table().find(key);
  return found == table().end() ? nullptr : &found->second;
}

// Without the unit at its end, which the value shows.
std::string spelt_out(std::string_view key) {
  for (const std::string_view unit : {"_bytes_per_s", "_flops_per_s", "_bytes", "_hz", "_usd", "_s", "_w"}) {
    if (key.size() > unit.size() && key.ends_with(unit)) {
      key.remove_suffix(unit.size());
      break;
    }
  }
  std::string text(key);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string Labels::key(std::string_view key) const {
  const Words* row = row_of(key);
  if (row == nullptr) return spelt_out(key);
  if (language_ == Language::chinese) return std::string(row->chinese);
  return row->english.empty() ? spelt_out(key) : std::string(row->english);
}

std::string Labels::title(std::string_view key) const {
  std::string text = this->key(key);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string Labels::list_title(std::string_view key) const {
  const std::string list = std::string(key) + "[]";
  return title(row_of(list) == nullptr ? key : std::string_view(list));
}

std::string Labels::text(std::string_view id, const std::vector<std::string>& places) const {
  const Words* row = row_of("@" + std::string(id));
  if (row == nullptr) throw std::logic_error("reports/labels.csv has no @" + std::string(id));
  std::string text(language_ == Language::chinese ? row->chinese : row->english);
  std::size_t from = 0;
  for (const std::string& place : places) {
    const std::size_t at = text.find("{}", from);
    if (at == std::string::npos) break;
    text.replace(at, 2, place);
    from = at + place.size();
  }
  return text;
}

std::string Labels::value(std::string_view key, const std::string& value) const {
  const Words* row = row_of(std::string(key) + "=" + value);
  if (row == nullptr) return value;
  return std::string(language_ == Language::chinese ? row->chinese : row->english);
}

}  // namespace llmperf::report
