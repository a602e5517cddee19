#include "sweep/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "sweep/values.h"

namespace llmperf::sweep {

RowChoice row_choice(const RowQuery& f, const std::vector<std::string>& columns) {
  RowChoice choice;
  for (const auto& [flag, text] : {std::pair{"`where`", &f.where}, std::pair{"`by`", &f.by},
                                   std::pair{"`pareto`", &f.pareto}, std::pair{"`columns`", &f.columns}}) {
    if (text->size() > kLongestText) {
      throw Error::bad_input(
          fmt::format("{}: {} characters are more than a text may have: {}", flag, text->size(), kLongestText));
    }
  }
  if (!f.where.empty()) {
    choice.where.emplace(f.where, columns);
    choice.text = "where " + f.where;
  }
  const auto add_text = [&](const std::string& text) {
    choice.text = choice.text.empty() ? text : text + " " + choice.text;
  };
  if (f.top.has_value() == f.by.empty()) throw Error::bad_input("`top` and `by` go together", "`top` 5 `by` ttft_s");
  if (f.top) {
    choice.selection = Selection::top(parse_key("`by`", f.by, columns), static_cast<std::size_t>(*f.top));
    add_text(fmt::format("the {} best by {}", *f.top, f.by));
  }
  if (!f.pareto.empty()) {
    std::vector<Key> keys;
    for (const std::string& name : list_value("`pareto`", f.pareto)) {
      keys.push_back(parse_key("`pareto`", name, columns));
    }
    if (keys.size() < 2) throw Error::bad_input("`pareto` takes two columns or more", "`top` 1 `by` " + f.pareto);
    choice.selection = Selection::pareto(std::move(keys));
    add_text("the Pareto front of " + f.pareto);
  }
  if (!f.columns.empty()) {
    for (const std::string& name : list_value("`columns`", f.columns)) {
      const auto at = std::find(columns.begin(), columns.end(), name);
      if (at == columns.end()) {
        throw Error::bad_input("`columns`: unknown column " + quote(name), name_hint(name, columns));
      }
      choice.shown.push_back(static_cast<std::size_t>(at - columns.begin()));
    }
  }
  return choice;
}

}  // namespace llmperf::sweep
