#include "calibrate/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "calibrate/row_columns.h"
#include "descriptor/catalog.h"
#include "model/quantization.h"

namespace llmperf::calibrate {
namespace {

using descriptor::Problems;

enum class Schema : unsigned char { steps, ops, both };
enum class Needed : unsigned char { always, by_some };  // by_some: rows of some ops, or never

enum class Column : unsigned char {
  hardware,
  batch,
  tp,
  ep,
  dp,
  pp,
  runtime,
  execution,
  options,
  model,
  weights,
  kv,
  phase,
  new_tokens,
  context,
  latency_ms,
  op,
  dtype,
  ranks,
  m,
  n,
  k,
  q_len,
  kv_len,
  heads,
  kv_heads,
  head_dim,
  causal,
  bytes,
  latency_us,
  count
};
constexpr std::size_t kColumns = static_cast<std::size_t>(Column::count);

struct ColumnInfo {
  std::string_view name;
  Schema schema;
  Needed needed = Needed::always;
};
constexpr std::array<ColumnInfo, kColumns> kColumnInfo = {{
    {"hardware", Schema::both},
    {"batch", Schema::both, Needed::by_some},
    {"tp", Schema::steps, Needed::by_some},
    {"ep", Schema::steps, Needed::by_some},
    {"dp", Schema::steps, Needed::by_some},
    {"pp", Schema::steps, Needed::by_some},
    {"runtime", Schema::steps},
    {"execution", Schema::steps, Needed::by_some},
    {"options", Schema::steps, Needed::by_some},
    {"model", Schema::steps},
    {"weights", Schema::both, Needed::by_some},
    {"kv", Schema::steps, Needed::by_some},
    {"phase", Schema::steps},
    {"new_tokens", Schema::steps},
    {"context", Schema::steps},
    {"latency_ms", Schema::steps},
    {"op", Schema::ops},
    {"dtype", Schema::ops},
    {"ranks", Schema::ops, Needed::by_some},
    {"m", Schema::ops, Needed::by_some},
    {"n", Schema::ops, Needed::by_some},
    {"k", Schema::ops, Needed::by_some},
    {"q_len", Schema::ops, Needed::by_some},
    {"kv_len", Schema::ops, Needed::by_some},
    {"heads", Schema::ops, Needed::by_some},
    {"kv_heads", Schema::ops, Needed::by_some},
    {"head_dim", Schema::ops, Needed::by_some},
    {"causal", Schema::ops, Needed::by_some},
    {"bytes", Schema::ops, Needed::by_some},
    {"latency_us", Schema::ops},
}};

// One file. Problems are collected; a row that has one is dropped.
class FileParser {
 public:
  FileParser(std::string_view text, Measurements& into, Problems& problems)
      : reader_(text, problems), into_(&into), problems_(&problems) {}

  void parse() {
    if (!reader_.next()) {
      problems_->add(0, 0, "holds no header line and no rows");
      return;
    }
    if (!read_header()) return;
    const std::size_t before = into_->rows.size();
    while (reader_.next() && !problems_->full()) read_row();
    into_->files.back().notes = reader_.comments();
    if (into_->rows.size() == before && problems_->empty()) problems_->add(0, 0, "holds a header line and no rows");
  }

 private:
  // Where each known column stands, and which schema it is.
  bool read_header() {
    width_ = reader_.cells().size();
    const bool ops = named(Column::op) || named(Column::latency_us);
    if (ops && named(Column::latency_ms)) {
      problem(1, "latency_ms (steps) and latency_us (ops) in one file", "a file holds rows of one of the two schemas");
      return false;
    }
    schema_ = ops ? Schema::ops : Schema::steps;
    for (std::size_t i = 0; i < width_; ++i) read_column_name(i, reader_.cells()[i]);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const ColumnInfo& info = kColumnInfo[i];
      const bool of_step = schema_ == Schema::steps && (i == static_cast<std::size_t>(Column::batch) ||
                                                        i == static_cast<std::size_t>(Column::weights));
      const bool wanted = info.needed == Needed::always || of_step;
      if (wanted && is_of_schema(info) && !at_[i]) missing.push_back(quote(info.name));
    }
    if (missing.empty()) return true;
    problem(1, fmt::format("no column {}", join(missing, ", ")),
            fmt::format("taken for measurements of {}, because there is {} column 'op' or 'latency_us'",
                        ops ? "ops" : "steps", ops ? "a" : "no"));
    return false;
  }

  void read_column_name(std::size_t i, const CsvCell& cell) {
    const auto* known = std::find_if(kColumnInfo.begin(), kColumnInfo.end(), [&](const ColumnInfo& info) {
      return is_of_schema(info) && info.name == cell.text;
    });
    if (known != kColumnInfo.end()) {
      std::optional<std::size_t>& at = at_[static_cast<std::size_t>(known - kColumnInfo.begin())];
      if (at) problem(cell.column, fmt::format("a second column {}", quote(cell.text)));
      at = i;
    } else if (!cell.text.empty()) {
      std::vector<std::string>& names = into_->extra_columns;
      const auto found = std::find(names.begin(), names.end(), cell.text);
      extra_.emplace_back(i, static_cast<std::size_t>(found - names.begin()));
      if (found == names.end()) names.push_back(cell.text);
    }
  }

  bool is_of_schema(const ColumnInfo& info) const { return info.schema == Schema::both || info.schema == schema_; }
  bool named(Column c) const {
    const std::vector<CsvCell>& cells = reader_.cells();
    return std::any_of(cells.begin(), cells.end(), [&](const CsvCell& cell) { return cell.text == name_of(c); });
  }
  static std::string_view name_of(Column c) { return kColumnInfo[static_cast<std::size_t>(c)].name; }

  void problem(int column, std::string message, std::string hint = {}) {
    problems_->add(reader_.line(), column, std::move(message), std::move(hint));
    good_ = false;
  }

  void read_row() {
    good_ = true;
    const std::vector<CsvCell>& cells = reader_.cells();
    if (cells.size() != width_) {
      problem(1, fmt::format("{} fields, and the header has {}", cells.size(), width_));
      return;
    }
    Row row;
    row.file = into_->files.size() - 1;
    row.line = reader_.line();
    row.hardware = required(Column::hardware);
    if (schema_ == Schema::steps) {
      row.latency = Seconds{latency(Column::latency_ms) * 1e-3};
      row.of = step();
    } else {
      row.latency = Seconds{latency(Column::latency_us) * 1e-6};
      row.of = op();
    }
    if (!extra_.empty()) row.extra.resize(into_->extra_columns.size());
    for (const auto& [cell, index] : extra_) row.extra[index] = cells[cell].text;
    if (good_) into_->rows.push_back(std::move(row));
  }

  // The cell of a column; null when the file has no such column.
  const CsvCell* cell(Column c) const {
    const std::optional<std::size_t>& at = at_[static_cast<std::size_t>(c)];
    return at ? &reader_.cells()[*at] : nullptr;
  }
  std::string text(Column c) const { return cell(c) ? cell(c)->text : std::string(); }

  std::string required(Column c) {
    const CsvCell* found = cell(c);
    if (found == nullptr) {
      problem(1, fmt::format("such rows need a column {}", quote(name_of(c))));
      return {};
    }
    if (found->text.empty()) problem(found->column, fmt::format("{} is empty", quote(name_of(c))));
    return found->text;
  }

  // Spreadsheets write whole numbers of a column with gaps as "128.0".
  std::int64_t integer(Column c, std::int64_t min = 1, std::int64_t max = 1'000'000'000) {
    const std::string value = required(c);
    if (value.empty()) return min;
    const std::optional<double> number = parse_double(value);
    if (number && *number == std::floor(*number) && *number >= static_cast<double>(min) &&
        *number <= static_cast<double>(max)) {
      return static_cast<std::int64_t>(*number);
    }
    problem(cell(c)->column,
            fmt::format("{} must be an integer between {} and {}, not {}", quote(name_of(c)), min, max, quote(value)));
    return min;
  }
  std::int64_t integer_or(Column c, std::int64_t fallback) { return text(c).empty() ? fallback : integer(c); }

  // Up to a day: no step of a model takes longer.
  double latency(Column c) {
    constexpr double kLongest = 1e12;
    const std::string value = required(c);
    if (value.empty()) return 1;
    const std::optional<double> number = parse_double(value);
    if (number && *number > 0 && *number < kLongest) return *number;
    problem(cell(c)->column, fmt::format("{} must be a positive number, not {}", quote(name_of(c)), quote(value)));
    return 1;
  }

  StepRow step() {
    StepRow s;
    s.tp = integer_or(Column::tp, 1);
    s.ep = integer_or(Column::ep, 1);
    s.dp = integer_or(Column::dp, 1);
    s.pp = integer_or(Column::pp, 1);
    s.runtime = required(Column::runtime);
    s.execution = text(Column::execution);
    s.options = text(Column::options);
    s.model = required(Column::model);
    s.weights = required(Column::weights);
    s.kv = text(Column::kv);
    s.batch = integer(Column::batch);
    const std::string phase = required(Column::phase);
    if (phase == name(Phase::decode)) {
      s.phase = Phase::decode;
    } else if (!phase.empty() && phase != name(Phase::prefill)) {
      problem(cell(Column::phase)->column, fmt::format("unknown phase {}", quote(phase)),
              "known phases: prefill, decode");
    }
    s.new_tokens = integer(Column::new_tokens);
    s.context = integer(Column::context, 0);
    return s;
  }

  OpRow op() {
    OpRow o;
    o.op = required(Column::op);
    const std::string dtype = required(Column::dtype);
    if (const std::optional<Dtype> known = parse_dtype(dtype)) {
      o.dtype = *known;
    } else if (!dtype.empty()) {
      const std::vector<std::string> names(dtype_names().begin(), dtype_names().end());
      problem(cell(Column::dtype)->column, fmt::format("unknown element type {}", quote(dtype)),
              name_hint(dtype, names));
    }
    if (std::optional<OpShape> shape = shape_of_word(o.op)) {
      o.shape = std::move(*shape);
      match(
          o.shape,
          [&](GemmShape& g) {
            g.m = integer(Column::m);
            g.n = integer(Column::n);
            g.k = integer(Column::k);
            if (g.ranks > 1) {
              g.ranks = integer(Column::ranks, 2, 1'000'000);
            } else {
              g.batch = integer_or(Column::batch, 1);
              g.weights = gemm_weights(o.dtype);
            }
          },
          [&](AttentionShape& a) { a = attention(a.phase); },
          [&](VectorShape& v) {
            if (known_layer(v.layer)) {
              v.tokens = integer(Column::m);
            } else {
              v = vector(v.layer);
            }
          },
          [&](GatherShape& g) {
            g = {integer(Column::m), integer(Column::n), integer_or(Column::k, 0)};
          },
          [&](CacheShape& c) {
            c = {integer(Column::m), integer(Column::kv_heads), integer(Column::head_dim)};
          },
          [&](CollectiveShape& c) {
            c.ranks = integer(Column::ranks, 2, 1'000'000);
            c.bytes = bytes();
          });
    } else if (!o.op.empty()) {
      problem(cell(Column::op)->column, fmt::format("unknown op {}", quote(o.op)), name_hint(o.op, op_names()));
    }
    return o;
  }

  Bytes bytes() {
    constexpr std::int64_t kPetabyte = 1'000'000'000'000'000;
    return Bytes{static_cast<double>(integer(Column::bytes, 1, kPetabyte))};
  }

  // The scheme in its canonical spelling; empty for the type of the other operand.
  std::string gemm_weights(Dtype dtype) {
    const std::string text = this->text(Column::weights);
    if (text.empty()) return {};
    try {
      std::string scheme = model::parse_weight_scheme(text).name;
      return scheme == name(dtype) ? std::string() : scheme;
    } catch (const Error& error) {
      problem(cell(Column::weights)->column, error.diagnostics().front().message, error.diagnostics().front().hint);
      return {};
    }
  }

  VectorShape vector(std::string layer) {
    VectorShape v;
    v.layer = std::move(layer);
    v.tokens = integer(Column::m);
    v.width = integer(Column::n);
    v.heads = integer_or(Column::heads, 0);
    v.kv_heads = integer_or(Column::kv_heads, 0);
    if (!text(Column::bytes).empty()) v.bytes = bytes();
    if (good_ && v.heads > 0 && v.tokens % (v.heads + v.kv_heads) != 0) {
      problem(cell(Column::m)->column,
              fmt::format("{} rows are not whole tokens of {} + {} heads", v.tokens, v.heads, v.kv_heads));
    }
    return v;
  }

  AttentionShape attention(Phase phase) {
    AttentionShape a;
    a.phase = phase;
    a.batch = integer(Column::batch);
    a.q_len = integer_or(Column::q_len, 1);
    if (phase == Phase::prefill && text(Column::q_len).empty()) a.q_len = integer(Column::q_len);
    a.kv_len = integer(Column::kv_len);
    a.heads = integer(Column::heads);
    a.kv_heads = integer(Column::kv_heads);
    a.head_dim = integer(Column::head_dim);
    const std::string causal = to_lower(text(Column::causal));
    a.causal = causal.empty() || causal == "1" || causal == "1.0" || causal == "true";
    if (!a.causal && causal != "0" && causal != "0.0" && causal != "false") {
      problem(cell(Column::causal)->column, fmt::format("'causal' must be 0 or 1, not {}", quote(causal)));
    }
    if (good_ && a.heads % a.kv_heads != 0) {
      problem(cell(Column::kv_heads)->column,
              fmt::format("{} heads do not share {} KV heads evenly", a.heads, a.kv_heads));
    }
    if (good_ && a.causal && a.q_len > a.kv_len) {
      problem(cell(Column::kv_len)->column,
              fmt::format("kv_len {} counts the {} new tokens, so it cannot be less", a.kv_len, a.q_len));
    }
    return a;
  }

  CsvReader reader_;
  Measurements* into_;
  Problems* problems_;
  Schema schema_ = Schema::steps;
  std::size_t width_ = 0;
  std::array<std::optional<std::size_t>, kColumns> at_ = {};
  std::vector<std::pair<std::size_t, std::size_t>> extra_;  // cell, index in extra_columns
  bool good_ = true;
};

void parse_into(Measurements& into, std::string_view text, const std::string& file) {
  Problems problems(file);
  into.files.push_back({file, {}});
  if (text.find('\0') != std::string_view::npos) {
    problems.add(0, 0, "is not a text file");
  } else {
    FileParser(text, into, problems).parse();
  }
  problems.throw_if_any();
}

}  // namespace

std::string configuration(const Row& row) {
  if (const auto* s = std::get_if<StepRow>(&row.of)) {
    std::string text = fmt::format("{} {} {} {}", row.hardware, s->runtime, s->model, s->weights);
    if (!s->kv.empty()) text += fmt::format(" kv {}", s->kv);
    for (const auto& [axis, degree] :
         {std::pair{"tp", s->tp}, std::pair{"ep", s->ep}, std::pair{"dp", s->dp}, std::pair{"pp", s->pp}}) {
      if (degree > 1) text += fmt::format(" {} {}", axis, degree);
    }
    for (const std::string* part : {&s->execution, &s->options}) {
      if (!part->empty()) text += " " + *part;
    }
    return text + fmt::format(" batch {} {} {}+{}", s->batch, name(s->phase), s->context, s->new_tokens);
  }
  return fmt::format("{} {}", row.hardware, describe(std::get<OpRow>(row.of)));
}

std::vector<std::string> Measurements::unused_columns() const {
  std::vector<std::string> names = extra_columns;
  std::erase(names, kUntrustedColumn);
  return names;
}

Measurements parse_measurements(std::string_view text, const std::string& file) {
  Measurements measurements;
  parse_into(measurements, text, file);
  return measurements;
}

Measurements read_measurements(std::span<const std::string> names_or_paths) {
  Measurements measurements;
  std::vector<Diagnostic> diagnostics;
  for (const std::string& name : names_or_paths) {
    try {
      const descriptor::Text file = descriptor::is_path(name)
                                        ? descriptor::Text{name, descriptor::read_text_file(name, kMaxMeasurementBytes)}
                                        : descriptor::load_text(descriptor::Kind::measurements, name);
      parse_into(measurements, file.text, file.path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      diagnostics.insert(diagnostics.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!diagnostics.empty()) throw Error(ErrorKind::bad_input, diagnostics);
  return measurements;
}

}  // namespace llmperf::calibrate
