// Which rows of a sweep are kept: all, the best of one column, or those that nothing beats in all of some columns. What
// is kept does not depend on how the points were divided: a selection of selections is that of the whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "points/condition.h"
#include "points/row.h"

namespace llmperf::points {

// Which way a column is better; nothing said of inputs and texts.
enum class Better : std::uint8_t { unsaid, lower, higher };
Better better(std::string_view column);

struct Key {
  std::size_t column = 0;
  Better better = Better::lower;
};
// "ttft_s", or "batch:low", "batch:high" where the column does not say which way it is better. Throws Error(bad_input)
// naming the flag.
Key parse_key(std::string_view flag, std::string_view text, std::span<const std::string> columns);

class Selection {
 public:
  static constexpr std::size_t kMostBeaten = 10'000;
  static Selection all() { return Selection(Kind::all, {}, 0); }
  // The best first; of equals the one offered first.
  static Selection top(Key key, std::size_t count) { return Selection(Kind::top, {key}, count); }
  // The Pareto front, along the first key from its best end.
  static Selection pareto(std::vector<Key> keys) { return Selection(Kind::pareto, std::move(keys), 0); }

  // Rows in the order of their points. One with an empty cell where a key looks is never among the best.
  void offer(Row row);
  bool keeps_all() const { return kind_ == Kind::all; }
  // What a Pareto front is of; empty for any other selection.
  std::span<const Key> front_keys() const { return kind_ == Kind::pareto ? keys_ : std::span<const Key>(); }
  // The values of the keys of each row that the front beats, in no order; nothing once there are more than kMostBeaten:
  // a picture of more shows no more.
  const std::optional<std::vector<std::vector<double>>>& beaten() const { return beaten_; }
  // Takes over what another selection of the same keys has found to be beaten.
  void add_beaten(const Selection& other);
  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row> take() { return std::move(rows_); }

 private:
  enum class Kind : std::uint8_t { all, top, pareto };
  Selection(Kind kind, std::vector<Key> keys, std::size_t count) : kind_(kind), keys_(std::move(keys)), count_(count) {}
  // The smaller the better.
  double cost(const Row& row, const Key& key) const {
    const double value = row[key.column].number;
    return key.better == Better::higher ? -value : value;
  }
  bool before(const Row& a, const Row& b) const { return cost(a, keys_[0]) < cost(b, keys_[0]); }
  bool dominates(const Row& a, const Row& b) const;
  void beat(const Row& row);

  Kind kind_;
  std::vector<Key> keys_;
  std::size_t count_;
  std::vector<Row> rows_;
  std::optional<std::vector<std::vector<double>>> beaten_ = std::vector<std::vector<double>>();
};

// As it is asked for, `top` with `by`.
struct RowQuery {
  std::string where;
  std::optional<std::int64_t> top;
  std::string by;
  std::string pareto;
  std::string columns;
};

struct RowChoice {
  std::optional<Condition> where;
  Selection selection = Selection::all();  // an empty one, to copy
  std::vector<std::size_t> shown;          // indices of the columns to write; empty: all
  std::string text;                        // of the selection, for people; empty: all rows
};
// Throws Error(bad_input).
RowChoice row_choice(const RowQuery& query, const std::vector<std::string>& columns);

}  // namespace llmperf::points
