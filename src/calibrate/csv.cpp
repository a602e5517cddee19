#include "calibrate/row_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "calibrate/measurements.h"

namespace llmperf::calibrate {

CsvReader::CsvReader(std::string_view text, descriptor::Problems& problems, int first_line)
    : rest_(text), problems_(&problems), line_(first_line - 1) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view record = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (record.ends_with('\r')) record.remove_suffix(1);
    const std::string_view content = trim(record);
    if (content.empty()) continue;
    if (content.front() == '#') {
      comments_.emplace_back(trim(content.substr(1)));
      continue;
    }
    if (read_cells(record)) return true;
  }
  return false;
}

bool CsvReader::read_cells(std::string_view record) {
  cells_.clear();
  std::size_t at = 0;
  for (;;) {
    while (at < record.size() && (record[at] == ' ' || record[at] == '\t')) ++at;
    CsvCell cell{{}, static_cast<int>(at) + 1};
    if (at < record.size() && record[at] == '"') {
      bool closed = false;
      for (++at; at < record.size() && !closed; ++at) {
        if (record[at] != '"') {
          cell.text += record[at];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          cell.text += record[at++];
        } else {
          closed = true;
        }
      }
      if (!closed) {
        problems_->add(line_, cell.column, "a quoted field does not end on its line");
        return false;
      }
      const std::size_t comma = std::min(record.find(',', at), record.size());
      if (!trim(record.substr(at, comma - at)).empty()) {
        problems_->add(line_, static_cast<int>(at) + 1, "text behind a quoted field", "a quote inside one is doubled");
        return false;
      }
      at = comma;
    } else {
      const std::size_t comma = std::min(record.find(',', at), record.size());
      cell.text = trim(record.substr(at, comma - at));
      at = comma;
    }
    cells_.push_back(std::move(cell));
    if (at >= record.size()) return true;
    ++at;  // the comma
  }
}

namespace {

const StepRow* step(const Row& row) { return std::get_if<StepRow>(&row.of); }
const OpRow* op(const Row& row) { return std::get_if<OpRow>(&row.of); }

template <auto Member>
Cell of_step(const Row& row) {
  const StepRow* s = step(row);
  return s ? Cell(s->*Member) : Cell();
}

// An axis of the plan that divides something.
template <auto Member>
Cell axis_of_step(const Row& row) {
  return step(row) && step(row)->*Member > 1 ? Cell(step(row)->*Member) : Cell();
}
Cell kv_of_step(const Row& row) {
  return step(row) && !step(row)->kv.empty() ? Cell(std::string_view(step(row)->kv)) : Cell();
}

// A number of which 0 means that the row has none.
Cell given(std::int64_t value) { return value > 0 ? Cell(value) : Cell(); }
Cell given(Bytes value) { return value.value > 0 ? Cell(value.value) : Cell(); }

// What a shape has under the name of a column; a shape without an overload has nothing.
struct Ranks {
  Cell operator()(const CollectiveShape& s) const { return s.ranks; }
  Cell operator()(const GemmShape& s) const { return s.ranks > 1 ? Cell(s.ranks) : Cell(); }
  Cell operator()(const auto&) const { return {}; }
};
struct Batch {
  Cell operator()(const AttentionShape& s) const { return s.batch; }
  Cell operator()(const GemmShape& s) const { return s.batch > 1 ? Cell(s.batch) : Cell(); }
  Cell operator()(const auto&) const { return {}; }
};
struct Weights {
  Cell operator()(const GemmShape& s) const { return s.weights.empty() ? Cell() : Cell(std::string_view(s.weights)); }
  Cell operator()(const auto&) const { return {}; }
};
struct M {
  Cell operator()(const GemmShape& s) const { return s.m; }
  Cell operator()(const VectorShape& s) const { return s.tokens; }
  Cell operator()(const GatherShape& s) const { return s.rows; }
  Cell operator()(const CacheShape& s) const { return s.tokens; }
  Cell operator()(const auto&) const { return {}; }
};
struct N {
  Cell operator()(const GemmShape& s) const { return s.n; }
  Cell operator()(const VectorShape& s) const { return given(s.width); }
  Cell operator()(const GatherShape& s) const { return s.width; }
  Cell operator()(const auto&) const { return {}; }
};
struct K {
  Cell operator()(const GemmShape& s) const { return s.k; }
  Cell operator()(const GatherShape& s) const { return given(s.table); }
  Cell operator()(const auto&) const { return {}; }
};
struct Heads {
  Cell operator()(const AttentionShape& s) const { return s.heads; }
  Cell operator()(const VectorShape& s) const { return given(s.heads); }
  Cell operator()(const auto&) const { return {}; }
};
struct KvHeads {
  Cell operator()(const AttentionShape& s) const { return s.kv_heads; }
  Cell operator()(const VectorShape& s) const { return given(s.kv_heads); }
  Cell operator()(const CacheShape& s) const { return s.kv_heads; }
  Cell operator()(const auto&) const { return {}; }
};
struct HeadDim {
  Cell operator()(const AttentionShape& s) const { return s.head_dim; }
  Cell operator()(const CacheShape& s) const { return s.head_dim; }
  Cell operator()(const auto&) const { return {}; }
};
struct OpBytes {
  Cell operator()(const CollectiveShape& s) const { return s.bytes.value; }
  Cell operator()(const VectorShape& s) const { return given(s.bytes); }
  Cell operator()(const auto&) const { return {}; }
};
template <class Of>
Cell of_op(const Row& row) {
  return op(row) ? std::visit(Of{}, op(row)->shape) : Cell();
}
template <auto Member>
Cell of_attention(const Row& row) {
  const auto* shape = op(row) ? std::get_if<AttentionShape>(&op(row)->shape) : nullptr;
  return shape ? Cell(shape->*Member) : Cell();
}

constexpr RowColumn kRowColumns[] = {
    {"hardware", [](const Row& row) { return Cell(std::string_view(row.hardware)); }},
    {"tp", of_step<&StepRow::tp>},
    {"ep", axis_of_step<&StepRow::ep>},
    {"dp", axis_of_step<&StepRow::dp>},
    {"pp", axis_of_step<&StepRow::pp>},
    {"runtime", of_step<&StepRow::runtime>},
    {"execution", of_step<&StepRow::execution>},
    {"options", of_step<&StepRow::options>},
    {"model", of_step<&StepRow::model>},
    {"weights", [](const Row& row) { return step(row) ? Cell(step(row)->weights) : of_op<Weights>(row); }},
    {"kv", kv_of_step},
    {"op", [](const Row& row) { return op(row) ? Cell(std::string_view(op(row)->op)) : Cell(); }},
    {"dtype", [](const Row& row) { return op(row) ? Cell(name(op(row)->dtype)) : Cell(); }},
    {"ranks", of_op<Ranks>},
    {"batch", [](const Row& row) { return step(row) ? Cell(step(row)->batch) : of_op<Batch>(row); }},
    {"phase", [](const Row& row) { return step(row) ? Cell(name(step(row)->phase)) : Cell(); }},
    {"new_tokens", of_step<&StepRow::new_tokens>},
    {"context", of_step<&StepRow::context>},
    {"m", of_op<M>},
    {"n", of_op<N>},
    {"k", of_op<K>},
    {"q_len", of_attention<&AttentionShape::q_len>},
    {"kv_len", of_attention<&AttentionShape::kv_len>},
    {"heads", of_op<Heads>},
    {"kv_heads", of_op<KvHeads>},
    {"head_dim", of_op<HeadDim>},
    {"causal", of_attention<&AttentionShape::causal>},
    {"bytes", of_op<OpBytes>},
};

}  // namespace

std::span<const RowColumn> row_columns() { return kRowColumns; }

// ---- Measurements as a file: a column is written when some row fills it in.

namespace {

// RFC 4180. A comment sign at the start of a record would make it a comment.
std::string csv_field(std::string_view text) {
  if (text.find_first_of("\",\r\n#") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;  // a record is one line
  }
  return quoted + '"';
}

struct CellText {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{:.12g}", value); }
  std::string operator()(bool value) const { return value ? "1" : "0"; }
  std::string operator()(std::string_view text) const { return csv_field(text); }
};

std::string line(const std::vector<std::string>& fields) { return fmt::format("{}\n", fmt::join(fields, ",")); }

}  // namespace

std::string format_measurements(const Measurements& measurements) {
  std::string text;
  for (const Measurements::File& file : measurements.files) {
    for (const std::string& note : file.notes) text += fmt::format("# {}\n", note);
  }
  std::vector<const RowColumn*> columns;
  for (const RowColumn& column : row_columns()) {
    const bool used = std::any_of(measurements.rows.begin(), measurements.rows.end(),
                                  [&](const Row& row) { return column.value(row).index() != 0; });
    if (used) columns.push_back(&column);
  }
  const bool steps = !measurements.rows.empty() && std::holds_alternative<StepRow>(measurements.rows.front().of);
  std::vector<std::string> fields;
  for (const RowColumn* column : columns) fields.emplace_back(column->name);
  fields.emplace_back(steps ? "latency_ms" : "latency_us");
  for (const std::string& name : measurements.extra_columns) fields.push_back(csv_field(name));
  text += line(fields);
  for (const Row& row : measurements.rows) {
    fields.clear();
    for (const RowColumn* column : columns) fields.push_back(std::visit(CellText{}, column->value(row)));
    fields.push_back(fmt::format("{:.6g}", row.latency.value * (steps ? 1e3 : 1e6)));
    for (std::size_t i = 0; i < measurements.extra_columns.size(); ++i) {
      fields.push_back(i < row.extra.size() ? csv_field(row.extra[i]) : std::string());
    }
    text += line(fields);
  }
  return text;
}

}  // namespace llmperf::calibrate
