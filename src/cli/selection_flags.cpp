#include "cli/selection_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/values.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMaxTop = 100'000;

}  // namespace

void add_selection_flags(Command& command, SelectionFlags& f) {
  command.add("--where", f.where, "CONDITION",
              "rows to keep: 'ttft_s < 0.5 and fits', 'total_bytes < 20GiB and batch >= 8'");
  command.add("--top", f.top, "N", "the N best rows alone, by the column of --by").with("--by");
  command.add("--by", f.by, "COLUMN", "column of --top; batch:low or batch:high where it does not say what is better")
      .with("--top");
  command
      .add("--pareto", f.pareto, "COLUMNS",
           "the rows alone that no other beats in all of these: ttft_s,tokens_per_second")
      .without("--top");
  command.add("--columns", f.columns, "COLUMNS", "columns to write, in this order [all; of a table the most telling]");
}

RowChoice row_choice(const SelectionFlags& f, const std::vector<std::string>& columns) {
  RowChoice choice;
  if (!f.where.empty()) {
    choice.where.emplace(f.where, columns);
    choice.text = "where " + f.where;
  }
  const auto add_text = [&](const std::string& text) {
    choice.text = choice.text.empty() ? text : text + " " + choice.text;
  };
  if (!f.top.empty()) {
    const std::int64_t count = int_value("--top", f.top, 1, kMaxTop);
    choice.selection = sweep::Selection::top(sweep::parse_key("--by", f.by, columns), static_cast<std::size_t>(count));
    add_text(fmt::format("the {} best by {}", count, f.by));
  }
  if (!f.pareto.empty()) {
    std::vector<sweep::Key> keys;
    for (const std::string& name : list_value("--pareto", f.pareto)) {
      keys.push_back(sweep::parse_key("--pareto", name, columns));
    }
    if (keys.size() < 2) throw Error::bad_input("--pareto takes two columns or more", "--top 1 --by " + f.pareto);
    choice.selection = sweep::Selection::pareto(std::move(keys));
    add_text("the Pareto front of " + f.pareto);
  }
  if (!f.columns.empty()) {
    for (const std::string& name : list_value("--columns", f.columns)) {
      const auto at = std::find(columns.begin(), columns.end(), name);
      if (at == columns.end()) {
        throw Error::bad_input("--columns: unknown column " + quote(name), name_hint(name, columns));
      }
      choice.shown.push_back(static_cast<std::size_t>(at - columns.begin()));
    }
  }
  return choice;
}

}  // namespace llmperf::cli
