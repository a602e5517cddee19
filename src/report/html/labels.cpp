#include "report/html/labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "result/document.h"

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

// What stands in the places {} of a sentence; nothing where the text is another.
std::optional<std::vector<std::string>> places_of(std::string_view sentence, std::string_view text) {
  std::vector<std::string> places;
  for (;;) {
    const std::size_t place = sentence.find("{}");
    const std::string_view before = sentence.substr(0, place);
    if (!text.starts_with(before)) return std::nullopt;
    text.remove_prefix(before.size());
    if (place == std::string_view::npos) return text.empty() ? std::optional(places) : std::nullopt;
    sentence.remove_prefix(place + 2);
    const std::string_view next = sentence.substr(0, sentence.find("{}"));
    const std::size_t end = next.empty() ? text.size() : text.find(next);
    if (end == std::string_view::npos) return std::nullopt;
    places.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string filled(std::string text, const std::vector<std::string>& places) {
  std::size_t from = 0;
  for (const std::string& place : places) {
    const std::size_t at = text.find("{}", from);
    if (at == std::string::npos) break;
    text.replace(at, 2, place);
    from = at + place.size();
  }
  return text;
}

}  // namespace

std::string Labels::key(std::string_view key) const {
  const Words* row = row_of(key);
  if (row != nullptr && language_ == Language::chinese) return std::string(row->chinese);
  return row == nullptr || row->english.empty() ? result::label_of(key) : std::string(row->english);
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
  return filled(std::string(language_ == Language::chinese ? row->chinese : row->english), places);
}

std::string Labels::sentence(const std::string& text) const {
  if (language_ == Language::english) return text;
  for (auto row = table().lower_bound("~"); row != table().end() && row->first.starts_with('~'); ++row) {
    if (const auto places = places_of(row->first.substr(1), text))
      return filled(std::string(row->second.chinese), *places);
  }
  if (text.find(", ") == std::string::npos) return text;
  std::string said;  // part by part
  bool known = false;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(", ", from), text.size());
    const std::string part = text.substr(from, end - from);
    const std::string in_chinese = sentence(part);
    said += (from == 0 ? "" : "，") + in_chinese;
    known = known || in_chinese != part;
    from = end + 2;
  }
  return known ? said : text;
}

std::string Labels::value(std::string_view key, const std::string& value) const {
  const Words* row = row_of(std::string(key) + "=" + value);
  if (row == nullptr) return sentence(value);
  return std::string(language_ == Language::chinese ? row->chinese : row->english);
}

}  // namespace llmperf::report
