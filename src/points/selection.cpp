#include "points/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "points/values.h"

namespace llmperf::points {

Better better(std::string_view column) {
  constexpr std::string_view kInputs[] = {"devices_per_node", "host_capacity_bytes", "capacity_bytes"};
  if (std::find(std::begin(kInputs), std::end(kInputs), column) != std::end(kInputs)) return Better::unsaid;
  constexpr std::string_view kHigher[] = {"largest_batch", "longest_context_tokens", "fits", "mfu"};
  if (std::find(std::begin(kHigher), std::end(kHigher), column) != std::end(kHigher)) return Better::higher;
  if (column.find("_per_second") != std::string_view::npos) return Better::higher;
  const bool spent =
      column.starts_with("cost_") || column.starts_with("request_cost_") || column.starts_with("joules_");
  if (spent || column.ends_with("_s") || column.ends_with("_bytes") || column == "devices") return Better::lower;
  return Better::unsaid;
}

Key parse_key(std::string_view flag, std::string_view text, std::span<const std::string> columns) {
  const std::size_t colon = text.find(':');
  const std::string name(trim(text.substr(0, colon)));
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) {
    throw Error::bad_input(fmt::format("{}: unknown column {}", flag, quote(name)), name_hint(name, columns));
  }
  Key key{static_cast<std::size_t>(found - columns.begin()), better(name)};
  if (colon != std::string_view::npos) {
    const std::string_view way = trim(text.substr(colon + 1));
    if (way != "low" && way != "high") {
      throw Error::bad_input(fmt::format("{}: cannot read {}", flag, quote(text)), name + ":low or " + name + ":high");
    }
    key.better = way == "low" ? Better::lower : Better::higher;
  }
  if (key.better == Better::unsaid) {
    throw Error::bad_input(fmt::format("{}: which way is {} better?", flag, name), name + ":low or " + name + ":high");
  }
  return key;
}

bool Selection::dominates(const Row& a, const Row& b) const {
  bool better_somewhere = false;
  for (const Key& key : keys_) {
    if (cost(a, key) > cost(b, key)) return false;
    better_somewhere = better_somewhere || cost(a, key) < cost(b, key);
  }
  return better_somewhere;
}

void Selection::beat(const Row& row) {
  if (!beaten_) return;
  if (beaten_->size() == kMostBeaten) return beaten_.reset();
  std::vector<double>& values = beaten_->emplace_back();
  for (const Key& key : keys_) values.push_back(row[key.column].number);
}

void Selection::add_beaten(const Selection& other) {
  if (!beaten_ || !other.beaten_ || beaten_->size() + other.beaten_->size() > kMostBeaten) return beaten_.reset();
  beaten_->insert(beaten_->end(), other.beaten_->begin(), other.beaten_->end());
}

void Selection::offer(Row row) {
  if (kind_ == Kind::all) {
    rows_.push_back(std::move(row));
    return;
  }
  for (const Key& key : keys_) {
    if (row[key.column].kind != Cell::Kind::number && row[key.column].kind != Cell::Kind::truth) return;
  }
  const auto place = [&] {
    return std::upper_bound(rows_.begin(), rows_.end(), row, [&](const Row& a, const Row& b) { return before(a, b); });
  };
  if (kind_ == Kind::top) {
    if (rows_.size() == count_ && (count_ == 0 || !before(row, rows_.back()))) return;
    rows_.insert(place(), std::move(row));
    if (rows_.size() > count_) rows_.pop_back();
    return;
  }
  // What equals a row of the front is on it: sweeps have columns with few values.
  const auto [first, last] =
      std::equal_range(rows_.begin(), rows_.end(), row, [&](const Row& a, const Row& b) { return before(a, b); });
  const bool on_front = std::any_of(first, last, [&](const Row& kept) {
    return std::all_of(keys_.begin(), keys_.end(), [&](const Key& key) { return cost(kept, key) == cost(row, key); });
  });
  if (on_front) {
    rows_.insert(last, std::move(row));
    return;
  }
  if (std::any_of(rows_.begin(), rows_.end(), [&](const Row& kept) { return dominates(kept, row); })) return beat(row);
  std::erase_if(rows_, [&](const Row& kept) {
    const bool beaten = dominates(row, kept);
    if (beaten) beat(kept);
    return beaten;
  });
  rows_.insert(place(), std::move(row));
}

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

}  // namespace llmperf::points
