#include "measure/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/csv.h"
#include "graph/plan.h"
#include "hardware/runtime_profile.h"
#include "model/quantization.h"

namespace llmperf::measure {
namespace {

using descriptor::Problems;

// ---- The schema: every column, and what each kind of row has in it. Files are read and written by it.

// In each kind of file, of steps, ops, servers and training: r, it must be there; o, it may; -, it is none of theirs.
struct ColumnInfo {
  std::string_view name;
  std::string_view use;
};
// clang-format off
constexpr ColumnInfo kColumns[] = {
    {"id", "---o"}, {"source", "---o"}, {"framework", "---o"}, {"year", "---o"},
    {"hardware", "rrrr"}, {"tp", "oooo"}, {"ep", "oooo"}, {"dp", "o-o"}, {"pp", "o-oo"}, {"runtime", "oor"},
    {"engine_version", "ooo"}, {"execution", "o-o"}, {"options", "o-o"}, {"model", "r-rr"}, {"weights", "roro"},
    {"kv", "o-o"}, {"op", "-r-"}, {"dtype", "-r-"}, {"ranks", "-o-"}, {"batch", "ro-"}, {"phase", "r--"},
    {"new_tokens", "r--"}, {"context", "r--"}, {"concurrency", "o-o"}, {"prompt", "o--"}, {"generated", "o--"},
    {"loaded", "o--"}, {"measured", "o--"}, {"n_gpu", "o--"}, {"split", "o--"}, {"gpu_layers", "o--"},
    {"host", "o--"}, {"backend", "o--"}, {"build", "o--"}, {"era", "o--"}, {"flash_attention", "o--"},
    {"ubatch", "o--"}, {"tool", "o--"}, {"threads", "o--"}, {"depth", "o--"}, {"gen_tokens", "o--"}, {"m", "-o-"},
    {"n", "-o-"}, {"k", "-o-"}, {"hidden", "-o-"}, {"inter", "-o-"}, {"topk", "-o-"}, {"experts", "-o-"},
    {"distribution", "-o-"}, {"q_len", "-o-"}, {"kv_len", "-o-"}, {"heads", "-o-"}, {"kv_heads", "-o-"},
    {"head_dim", "-o-"}, {"causal", "-o-"}, {"kv_dtype", "-o-"}, {"window", "-o-"}, {"bytes", "-o-"},
    {"power", "-o-"}, {"copies", "-o-"}, {"passes", "-o-"}, {"grid", "-o-"}, {"local", "-o-"}, {"mapping", "-o-"},
    {"kernel", "-o-"}, {"mode", "-o-"},
    {"max_batched_tokens", "--o"}, {"max_seqs", "--o"}, {"kv_utilisation", "--o"}, {"kv_blocks", "--o"},
    {"block_size", "--o"}, {"prefix_caching", "--o"}, {"recv_interval", "--o"}, {"rate", "--o"}, {"burstiness", "--o"}, {"requests", "--o"},
    {"input", "--o"}, {"output", "--o"}, {"prefix", "--o"}, {"trace", "--o"}, {"replicas", "--o"},
    {"prefill_replicas", "--o"}, {"decode_replicas", "--o"}, {"prefill_plan", "--o"}, {"decode_plan", "--o"},
    {"draft", "--o"}, {"accept", "--o"}, {"gpus", "---r"}, {"gpus_per_node", "---o"}, {"task", "---o"},
    {"precision", "---o"}, {"optimizer", "---o"}, {"lora_rank", "---o"}, {"lora_targets", "---o"}, {"seq", "---r"},
    {"gbs", "---r"}, {"mbs", "---r"}, {"sp", "---o"}, {"vp", "---o"}, {"schedule", "---o"}, {"cp", "---o"},
    {"dp_mode", "---o"}, {"shard_group", "---o"}, {"recompute", "---o"}, {"loss", "---o"}, {"mem_gib", "---o"},
    {"mem_kind", "---o"}, {"oom", "---o"}, {"notes", "---o"}, {"metric", "---"}, {"latency_ms", "r--"}, {"latency_us", "-r-"}};
// clang-format on
constexpr std::size_t kRowColumns = std::size(kColumns) - 2;  // without latencies

// A column by its name; one that is not in the table does not compile.
struct Column {
  std::size_t index = 0;
  consteval Column(const char* name) {  // NOLINT(google-explicit-constructor)
    while (kColumns[index].name != name) ++index;
  }
  std::string_view name() const { return kColumns[index].name; }
};

// What a cell may be.
struct Rule {
  std::optional<std::int64_t> absent = {};  // what no text stands for; without it there must be one
  std::int64_t min = 1;
  std::int64_t max = 1'000'000'000;
  bool shown = false;          // written also where it is what no text stands for
  std::string_view text = {};  // how it is told where a row is described; empty: it is not, or with others
};
// What other tools' tables call schemes: bits of weights (w), of activations (a) and of the cache (c); "wo": weights
// only, which are unpacked.
struct SchemeAlias {
  std::string_view name;
  std::string_view scheme;
  std::string_view kv = {};
};
// clang-format off
constexpr SchemeAlias kSchemeAliases[] = {
    {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}, {"fp8_block", "fp8-block128"}, {"int8_wo", "int8"},
    {"int4_wo", "w4a16"}, {"sq", "w8a8"}, {"w4a16_mxfp4", "mxfp4"}, {"w8a8_dynamic", "w8a8"},
    {"w4a8_dynamic", "w4a8"}, {"w8a8c8", "w8a8", "int8"}, {"w4a8c8", "w4a8", "int8"}};
// clang-format on
const SchemeAlias* scheme_called(std::string_view text) {
  const auto* found = std::ranges::find(kSchemeAliases, text, &SchemeAlias::name);
  return found == std::end(kSchemeAliases) ? nullptr : found;
}
constexpr std::string_view kSplits[] = {"layer", "tensor", "row", "none"};
constexpr std::string_view kTrainedTokens = "tok_s_gpu";
constexpr std::string_view kBalanced = "balanced";
constexpr Rule kRanks{.min = 2, .max = 1'000'000};
constexpr std::int64_t kMostRequests = 10'000'000;  // of a run
constexpr std::int64_t kPetabyte = 1'000'000'000'000'000;

// visit(column, member, rule) of everything that a row or the shape of an op has in a column; Of may be const.
template <class Of, class Visit>
void each_training_field(Of& s, const Visit& visit) {
  constexpr Rule kDegree{.absent = 1, .max = graph::kMostDevices};
  visit("id", s.id, {});
  visit("source", s.source, {});
  visit("framework", s.framework, {});
  visit("year", s.year, {.absent = 0});
  visit("model", s.model, {});
  visit("gpus", s.gpus, {.max = graph::kMostDevices});
  visit("gpus_per_node", s.gpus_per_node, {.absent = 0});
  visit("task", s.task, {});
  visit("precision", s.precision, {});
  visit("weights", s.weights, {});
  visit("optimizer", s.optimizer, {});
  visit("lora_rank", s.lora_rank, {.absent = 0});
  visit("lora_targets", s.lora_targets, {});
  visit("seq", s.seq, {});
  visit("gbs", s.gbs, {});
  visit("mbs", s.mbs, {});
  visit("tp", s.tp, kDegree);
  visit("sp", s.sp, {.absent = 0});
  visit("pp", s.pp, kDegree);
  visit("vp", s.vp, kDegree);
  visit("schedule", s.schedule, {});
  visit("cp", s.cp, kDegree);
  visit("ep", s.ep, kDegree);
  visit("dp_mode", s.dp_mode, {});
  visit("shard_group", s.shard_group, {.absent = 0});
  visit("recompute", s.recompute, {});
  visit("loss", s.loss, {});
  visit("mem_gib", s.mem_gib, {});
  visit("mem_kind", s.mem_kind, {});
  visit("oom", s.oom, {.absent = 0});
  visit("notes", s.notes, {});
}

template <class Of, class Visit>
void each_field(Of& s, const Visit& visit) {
  using Type = std::remove_const_t<Of>;
  constexpr bool step = std::is_same_v<Type, StepRow>;
  if constexpr (step || std::is_same_v<Type, ServingRow>) {
    visit("runtime", s.runtime, {});
    visit("model", s.model, {});
    visit("weights", s.weights, {});
    visit("tp", s.tp, {.absent = 1, .max = graph::kMostDevices, .shown = true, .text = "tp {}"});
    visit("ep", s.ep, {.absent = 1, .max = graph::kMostDevices, .text = "ep {}"});
    visit("dp", s.dp, {.absent = 1, .max = graph::kMostDevices, .text = "dp {}"});
    visit("pp", s.pp, {.absent = 1, .max = graph::kMostDevices, .text = "pp {}"});
    visit("kv", s.kv, {.text = "kv {}"});
    visit("engine_version", s.engine_version, {.text = "of {}"});
    visit("execution", s.execution, {.shown = step, .text = "execution {}"});
    visit("options", s.options, {.shown = step, .text = "options {}"});
  }
  if constexpr (std::is_same_v<Type, TrainingRow>) {
    each_training_field(s, visit);
  } else if constexpr (step) {
    visit("batch", s.batch, {});
    visit("phase", s.phase, {});
    visit("new_tokens", s.new_tokens, {});
    visit("context", s.context, {.min = 0});
    visit("concurrency", s.concurrency, {.absent = 0});
    visit("prompt", s.prompt, {.absent = 0});
    visit("generated", s.generated, {.absent = 0});
    visit("loaded", s.loaded, {.absent = 0});
    visit("measured", s.measured, {});
    visit("n_gpu", s.n_gpu, {.absent = 1, .max = graph::kMostDevices});
    visit("split", s.split, {});
    visit("gpu_layers", s.gpu_layers, {.min = 0});
    visit("host", s.host, {});
    visit("backend", s.backend, {});
    visit("build", s.build, {});
    visit("era", s.era, {});
    visit("flash_attention", s.flash_attention, {});
    visit("ubatch", s.ubatch, {.absent = 0});
    visit("tool", s.tool, {});
    visit("threads", s.threads, {.absent = 0});
    visit("depth", s.depth, {.min = 0});
    visit("gen_tokens", s.gen_tokens, {.absent = 0});
  } else if constexpr (std::is_same_v<Type, ServingRow>) {
    visit("prefill_plan", s.prefill_plan, {.text = "prefill {}"});
    visit("decode_plan", s.decode_plan, {.text = "decode {}"});
    visit("draft", s.draft, {.text = "draft {}"});
    visit("accept", s.accept, {.text = "accept {}"});
    visit("max_batched_tokens", s.engine.max_batched_tokens, {.text = "max batched tokens {}"});
    visit("max_seqs", s.engine.max_sequences, {.text = "max seqs {}"});
    visit("kv_blocks", s.engine.kv_blocks, {.text = "blocks {}"});
    visit("block_size", s.engine.block_size, {.max = 1 << 20, .text = "block size {}"});
    visit("prefill_replicas", s.replicas.prefill, {.max = 1'000'000, .text = "prefill replicas {}"});
    visit("decode_replicas", s.replicas.decode, {.max = 1'000'000, .text = "decode replicas {}"});
    visit("replicas", s.replicas.count, {.absent = 1, .max = 1'000'000, .text = "replicas {}"});
    visit("kv_utilisation", s.engine.kv_utilisation, {.max = 1, .text = "kv utilisation {}"});
    visit("prefix_caching", s.engine.prefix_caching, {.text = "prefix caching {}"});
    visit("recv_interval", s.engine.recv_interval, {.max = 1'000'000, .text = "recv interval {}"});
    visit("rate", s.load.rate, {.text = "rate {}"});
    visit("burstiness", s.load.burstiness, {.absent = 1, .text = "burstiness {}"});
    visit("concurrency", s.load.concurrency, {.max = kMostRequests, .text = "concurrency {}"});
    visit("requests", s.requests, {.absent = 0, .max = kMostRequests, .text = "requests {}"});
    visit("trace", s.trace, {.text = "trace {}"});
    visit("input", s.input, {});
    visit("output", s.output, {});
    visit("prefix", s.prefix, {});
  } else if constexpr (std::is_same_v<Type, OpRow>) {  // beside its shape
    visit("runtime", s.runtime, {});
    visit("engine_version", s.engine_version, {});
    visit("kernel", s.kernel, {.text = "by {}"});
    visit("mode", s.mode, {.text = "{}"});
  } else if constexpr (std::is_same_v<Type, GemmShape>) {
    visit("m", s.m, {});
    visit("n", s.n, {});
    visit("k", s.k, {});
    if (s.ranks > 1) {
      visit("ranks", s.ranks, {.min = kRanks.min, .max = kRanks.max, .text = "over {} ranks"});
    } else {
      visit("batch", s.batch, {.absent = 1});
      visit("weights", s.weights, {.text = "{}"});
      visit("power", s.power, {.text = "{}"});
      visit("copies", s.copies, {.absent = 0, .text = "copies {}"});
      visit("passes", s.passes, {.absent = 0, .max = hardware::kMostPasses, .text = "passes {}"});
      visit("grid", s.grid, {.text = "on {}"});
      visit("local", s.local, {.text = "{} in the tiles"});
      visit("mapping", s.mapping, {.text = "as {}"});
    }
  } else if constexpr (std::is_same_v<Type, AttentionShape>) {
    visit("batch", s.batch, {});
    visit("q_len", s.q_len, s.phase == Phase::decode ? Rule{.absent = 1, .shown = true} : Rule{});
    visit("kv_len", s.kv_len, {});
    visit("heads", s.heads, {});
    visit("kv_heads", s.kv_heads, {});
    visit("head_dim", s.head_dim, {});
    visit("causal", s.causal, {});
    visit("window", s.window, {.absent = 0, .min = 0, .text = "window {}"});
    visit("kv_dtype", s.kv_dtype, {.text = "cache {}"});
    visit("copies", s.copies, {.absent = 0, .text = "copies {}"});
    visit("passes", s.passes, {.absent = 0, .max = hardware::kMostPasses, .text = "passes {}"});
    visit("grid", s.grid, {.text = "on {}"});
  } else if constexpr (std::is_same_v<Type, LatentShape>) {
    const bool prolog = s.part == LatentShape::Part::prolog;
    visit("heads", s.heads, {});
    if (!prolog) visit("kv_dtype", s.kv_dtype, {.text = "cache {}"});
    if (s.part != LatentShape::Part::attention) visit("weights", s.weights, {.text = "{}"});
    if (prolog) return visit("m", s.batch, {});
    visit("batch", s.batch, {});
    visit("q_len", s.q_len, s.phase == Phase::decode ? Rule{.absent = 1, .shown = true} : Rule{});
    visit("kv_len", s.kv_len, {});
  } else if constexpr (std::is_same_v<Type, ExpertsShape>) {
    visit("m", s.m, {});
    visit("hidden", s.hidden, {});
    visit("inter", s.inter, {});
    visit("topk", s.topk, {});
    visit("experts", s.experts, {.max = 1'000'000});
    visit("tp", s.tp, {.absent = 1, .text = "tp {}"});
    visit("ep", s.ep, {.absent = 1, .text = "ep {}"});
    visit("weights", s.weights, {.text = "{}"});
    visit("distribution", s.distribution, {.text = "{}"});
  } else if constexpr (std::is_same_v<Type, VectorShape>) {
    visit("m", s.tokens, {});
    if (known_layer(s.layer)) return;
    visit("n", s.width, {});
    visit("heads", s.heads, {.absent = 0});
    visit("kv_heads", s.kv_heads, {.absent = 0});
    visit("bytes", s.bytes, {.absent = 0, .max = kPetabyte});
  } else if constexpr (std::is_same_v<Type, GatherShape>) {
    visit("m", s.rows, {});
    visit("n", s.width, {});
    visit("k", s.table, {.absent = 0});
  } else if constexpr (std::is_same_v<Type, CacheShape>) {
    visit("m", s.tokens, {});
    visit("kv_heads", s.kv_heads, {});
    visit("head_dim", s.head_dim, {});
  } else if constexpr (std::is_same_v<Type, ScanShape>) {
    visit("batch", s.batch, {});
    visit("q_len", s.q_len, {.absent = 1, .shown = true});
    visit("heads", s.heads, {});
    visit("kv_heads", s.key_heads, {});
    visit("k", s.key_dim, {});
    visit("n", s.value_dim, {});
  } else {
    if constexpr (std::is_same_v<Type, CollectiveShape>) visit("ranks", s.ranks, kRanks);
    visit("bytes", s.bytes, {.max = kPetabyte});
  }
}

// Of the row or, of an op, its shape.
template <class Visit>
void each_field(const Row& row, const Visit& visit) {
  std::visit([&](const auto& whole) { each_field(whole, visit); }, row.of);
  if (const auto* op = std::get_if<OpRow>(&row.of)) {
    std::visit([&](const auto& shape) { each_field(shape, visit); }, op->shape);
  }
}

// A number above 0 that need not be whole; infinite ones are what they are.
bool positive(double value, const Rule& rule) {
  return value > 0 && (value <= static_cast<double>(rule.max) || std::isinf(value));
}

// The cell of a value; nothing where no text stands for it.
struct CellOf {
  template <class Value>
  Cell operator()(Value value, const Rule& rule) const {
    return rule.absent && !rule.shown && value == static_cast<Value>(*rule.absent) ? Cell() : Cell(value);
  }
  Cell operator()(Bytes value, const Rule& rule) const { return (*this)(value.value, rule); }
  Cell operator()(const std::string& value, const Rule& rule) const {
    return !value.empty() || rule.shown ? Cell(std::string_view(value)) : Cell();
  }
  Cell operator()(Phase value, const Rule&) const { return name(value); }
  template <class Value>
  Cell operator()(const std::optional<Value>& value, const Rule&) const {
    return value ? Cell(*value) : Cell();
  }
};

struct CellText {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    const bool whole = value == std::floor(value) && std::abs(value) < 1e18;  // bytes
    return whole ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
  }
  std::string operator()(bool value) const { return value ? "1" : "0"; }
  std::string operator()(std::string_view text) const { return std::string(text); }
};

// One file. What is wrong with a line is collected, and the line dropped.
class FileParser {
 public:
  FileParser(std::string_view text, Measurements& into, const Beside& beside)
      : problems_(into.files.back().path),
        broken_(problems_),
        reader_(text, broken_),
        into_(&into),
        beside_{{"hardware", beside.hardware},
                {"model", beside.model},
                {"weights", beside.weights},
                {"runtime", beside.runtime}} {}

  // Throws Error(bad_input) with what is wrong with the whole file.
  void parse() {
    if (!reader_.next()) {
      problems_.add(0, 0, "holds no header line and no rows");
    } else if (read_header() && problems_.empty()) {
      const std::size_t before = into_->rows.size();
      const std::size_t told = into_->refused.size();
      in_rows_ = true;
      while (problems_.empty() && reader_.next()) {
        note_broken();
        read_row();
      }
      note_broken();
      into_->files.back().notes = reader_.comments();
      std::stable_sort(into_->refused.begin() + static_cast<std::ptrdiff_t>(told), into_->refused.end(),
                       [](const Diagnostic& a, const Diagnostic& b) {
                         return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
                       });
      if (into_->rows.size() == before && into_->refused.size() == told) {
        problems_.add(0, 0, "holds a header line and no rows");
      }
    }
    problems_.throw_if_any();
  }

 private:
  // Where each known column stands, and which schema it is.
  bool read_header() {
    width_ = reader_.cells().size();
    ops_ = named("op") || named("latency_us");
    requests_ = !ops_ && !named("latency_ms") && (named("ttft_ms") || named("tpot_ms"));
    if (ops_ && named("latency_ms")) {
      problem(1, "latency_ms (steps) and latency_us (ops) in one file", "a file holds rows of one schema");
      return false;
    }
    training_ = !ops_ && named(kTrainedTokens);
    if (!ops_ && !named("latency_ms") && !requests_ && !training_) {
      for (const ServingFigure& figure : serving_figures()) serving_ = serving_ || named(figure.column);
    }
    for (std::size_t i = 0; i < width_; ++i) read_column_name(i, reader_.cells()[i]);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < std::size(kColumns); ++i) {
      const bool told = i == Column("context").index && (named("depth") || named("gen_tokens"));
      if (use(kColumns[i]) == 'r' && !at_[i] && !told && !follows(i) && beside(i).empty()) {
        missing.push_back(quote(kColumns[i].name));
      }
    }
    if (requests_ && !at_[Column("prompt").index]) missing.push_back("'prompt'");
    if (requests_ && named("tpot_ms") && !at_[Column("gen_tokens").index]) missing.push_back("'gen'");
    if (missing.empty()) return true;
    problem(1, fmt::format("no column {}", join(missing, ", ")),
            requests_   ? "`hw`, `model` and `weights` beside the file say what no column does"
            : training_ ? "taken for measurements of training steps, because there is a column 'tok_s_gpu'"
            : serving_  ? "taken for measurements of servers, because there are columns of their figures"
                        : fmt::format("taken for measurements of {}, because there is {} column 'op' or 'latency_us'",
                                     ops_ ? "ops" : "steps", ops_ ? "a" : "no"));
    return false;
  }

  void read_column_name(std::size_t i, const descriptor::CsvCell& cell) {
    std::string_view name = cell.text;
    if (requests_ && (name == "gen" || name == "output")) name = "gen_tokens";
    if (requests_ && name == "input") name = "prompt";
    const auto* known = std::find_if(std::begin(kColumns), std::end(kColumns),
                                     [&](const ColumnInfo& info) { return use(info) != '-' && info.name == name; });
    if (known != std::end(kColumns)) {
      std::optional<std::size_t>& at = at_[static_cast<std::size_t>(known - std::begin(kColumns))];
      if (at) problem(cell.column, fmt::format("a second column {}", quote(cell.text)));
      at = i;
    } else if (training_ && name == kTrainedTokens) {
      tokens_ = i;
    } else if (const ServingFigure* figure = serving_ ? figure_called(cell.text) : nullptr) {
      const auto same = [&](const auto& one) { return one.second == figure; };
      if (std::any_of(figures_.begin(), figures_.end(), same)) {
        problem(cell.column, fmt::format("a second column {}", quote(cell.text)));
      }
      figures_.emplace_back(i, figure);
    } else if (requests_ && (name == "ttft_ms" || name == "tpot_ms")) {
      (name == "ttft_ms" ? ttft_ : tpot_) = i;
    } else if (!cell.text.empty()) {
      std::vector<std::string>& names = into_->extra_columns;
      const auto found = std::find(names.begin(), names.end(), cell.text);
      extra_.emplace_back(i, static_cast<std::size_t>(found - names.begin()));
      if (found == names.end()) names.push_back(cell.text);
    }
  }

  static const ServingFigure* figure_called(std::string_view column) {
    const auto found = std::ranges::find(serving_figures(), column, &ServingFigure::column);
    return found == serving_figures().end() ? nullptr : &*found;
  }
  char use(const ColumnInfo& info) const {
    const std::size_t schema = ops_ ? 1 : serving_ ? 2 : training_ ? 3 : 0;
    return schema < info.use.size() ? info.use[schema] : '-';
  }
  bool named(std::string_view name) const {
    const std::vector<descriptor::CsvCell>& cells = reader_.cells();
    return std::any_of(cells.begin(), cells.end(), [&](const descriptor::CsvCell& cell) { return cell.text == name; });
  }

  // Of steps that are told by the requests they were of: columns that follow from the others.
  bool follows(std::size_t column) const {
    constexpr Column kTold[] = {"phase", "new_tokens", "context", "latency_ms"};
    return requests_ && std::any_of(std::begin(kTold), std::end(kTold), [&](Column c) { return c.index == column; });
  }
  // What stands beside the file in place of a column.
  const std::string& beside(std::size_t column) const {
    static const std::string kNothing;
    const auto at = beside_.find(kColumns[column].name);
    return at == beside_.end() || use(kColumns[column]) != 'r' ? kNothing : at->second;
  }

  // Of the whole file, or of the line that is read.
  void problem(int column, std::string message, std::string hint = {}) {
    good_ = false;
    if (!in_rows_) return problems_.add(reader_.line(), column, std::move(message), std::move(hint));
    constexpr std::size_t kMost = 10'000;  // keeps a hostile file from turning into gigabytes of report
    if (into_->refused.size() >= kMost && problems_.empty()) {
      problems_.add(0, 0, fmt::format("more than {} problems in its lines", kMost));
    }
    into_->refused.push_back({{problems_.file(), reader_.line(), column}, std::move(message), std::move(hint)});
  }
  void problem(Column c, const Error& error) {
    problem(place(c), error.diagnostics().front().message, error.diagnostics().front().hint);
  }
  std::optional<Dtype> element_type(Column c, const std::string& text) {
    const std::optional<Dtype> known = parse_dtype(text);
    if (!known && !text.empty()) {
      const std::vector<std::string> names(dtype_names().begin(), dtype_names().end());
      problem(place(c), fmt::format("unknown element type {}", quote(text)), name_hint(text, names));
    }
    return known;
  }
  // Lines that are no CSV.
  void note_broken() {
    const std::vector<Diagnostic> broken = broken_.take();
    into_->refused.insert(into_->refused.end(), broken.begin(), broken.end());
  }

  void read_row() {
    good_ = true;
    const std::vector<descriptor::CsvCell>& cells = reader_.cells();
    if (cells.size() != width_) {
      problem(1, fmt::format("{} fields, and the header has {}", cells.size(), width_));
      return;
    }
    Row row;
    row.file = into_->files.size() - 1;
    row.line = reader_.line();
    row.hardware = required("hardware");
    if (training_) return add_trained(row);
    if (!serving_ && !requests_) {
      row.latency = Seconds{ops_ ? latency("latency_us") * 1e-6 : latency("latency_ms") * 1e-3};
    }
    if (ops_) {
      row.of = op();
    } else if (serving_) {
      row.of = served();
    } else {
      auto& step = std::get<StepRow>(row.of);
      each_field(step, CellReader{*this});
      set_scheme(step.weights, step.kv);
      if (tells_context()) {
        step.context = step.depth.value_or(0) + (step.phase == Phase::prefill ? 0 : step.gen_tokens / 2);
      }
      if (!step.split.empty() && std::find(std::begin(kSplits), std::end(kSplits), step.split) == std::end(kSplits)) {
        problem(place("split"), fmt::format("unknown split {}", quote(step.split)),
                fmt::format("known: {}", fmt::join(kSplits, ", ")));
      }
      if (step.loaded &&
          (step.concurrency == 0 || step.prompt == 0 || step.generated == 0 || step.phase != Phase::decode)) {
        problem(place("loaded"), "a step of a loaded server needs 'concurrency', 'prompt' and 'generated'",
                "and is one of decode");
      }
    }
    if (!extra_.empty()) row.extra.resize(into_->extra_columns.size());
    for (const auto& [cell, index] : extra_) row.extra[index] = cells[cell].text;
    if (serving_) return add_figures(row);
    if (requests_) return add_steps(row);
    if (good_) into_->rows.push_back(std::move(row));
  }

  // A step, in seconds; of a run of which only the memory is known, or that it had too little, no number.
  void add_trained(Row& row) {
    TrainingRow of;
    each_field(of, CellReader{*this});
    name_stack(of);
    const std::vector<descriptor::CsvCell>& cells = reader_.cells();
    const bool timed = tokens_ && !cells[*tokens_].text.empty();
    row.latency = Seconds{std::numeric_limits<double>::quiet_NaN()};
    if (timed) {
      const double rate = latency_of(cells[*tokens_], kTrainedTokens) * static_cast<double>(of.gpus);
      row.latency = Seconds{static_cast<double>(of.gbs) * static_cast<double>(of.seq) / rate};
    } else if (!of.oom && !of.mem_gib) {
      problem(1, "a run without 'tok_s_gpu', 'mem_gib' and 'oom'");
    }
    row.of = std::move(of);
    if (!extra_.empty()) row.extra.resize(into_->extra_columns.size());
    for (const auto& [cell, index] : extra_) row.extra[index] = cells[cell].text;
    if (good_) into_->rows.push_back(std::move(row));
  }

  // Prefill of the requests, and the mean of their steps of decode.
  void add_steps(Row& row) {
    const std::size_t before = into_->rows.size();
    const StepRow told = std::get<StepRow>(row.of);
    if (told.prompt == 0) problem(place("prompt"), "'prompt' says how many tokens a request has");
    for (const auto& [at, phase] : {std::pair{ttft_, Phase::prefill}, std::pair{tpot_, Phase::decode}}) {
      if (!at || reader_.cells()[*at].text.empty()) continue;
      const bool decode = phase == Phase::decode;
      if (decode && told.gen_tokens == 0) problem(place("gen_tokens"), "'gen' says how many tokens came of it");
      auto& step = std::get<StepRow>(row.of);
      step.phase = phase;
      step.new_tokens = decode ? 1 : told.prompt;
      step.context = told.depth.value_or(0) + (decode ? told.prompt + told.gen_tokens / 2 : 0);
      step.gen_tokens = decode ? told.gen_tokens : 0;
      step.prompt = 0;
      row.latency = Seconds{latency_of(reader_.cells()[*at], decode ? "tpot_ms" : "ttft_ms") * 1e-3};
      into_->rows.push_back(row);
    }
    if (good_ && into_->rows.size() == before) problem(1, "requests without 'ttft_ms' and 'tpot_ms'");
    if (!good_) into_->rows.resize(before);
  }

  ServingRow served() {
    ServingRow row;
    each_field(row, CellReader{*this});
    set_scheme(row.weights, row.kv);
    const auto check = [&](Column c, const auto& parse) {
      if (text(c).empty()) return;
      try {
        parse(text(c));
      } catch (const Error& error) {
        problem(c, error);
      }
    };
    serving::Lengths input{.high = static_cast<double>(serving::kMaxLength)};
    check("input", [&](const std::string& text) { input = serving::parse_lengths("input", text); });
    check("output", [](const std::string& text) { serving::parse_lengths("output", text); });
    check("prefix", [&](const std::string& text) { serving::parse_prefix(text, input); });
    if (row.load.rate && std::isinf(*row.load.rate))
      row.load.rate.reset();  // all at once, or as the closed loop lets them
    if (row.trace.empty() && (row.input.empty() || row.output.empty())) {
      problem(1, "a run without a 'trace' needs lengths in 'input' and 'output'", "1024, 820-1024, lognormal:900:0.7");
    } else if (row.trace.empty() && !row.load.rate && !row.load.concurrency && row.requests == 0) {
      problem(1, "a run needs a 'rate', a 'concurrency' or, where all are sent at once, its number of 'requests'");
    }
    return row;
  }

  // A row for each figure that the line has.
  void add_figures(Row& row) {
    const std::size_t before = into_->rows.size();
    bool any = false;
    for (const auto& [at, figure] : figures_) {
      const descriptor::CsvCell& found = reader_.cells()[at];
      if (found.text.empty()) continue;
      any = true;
      const double value = latency_of(found, figure->column);
      row.latency = Seconds{figure->rate ? 1 / value : value * 1e-3};
      std::get<ServingRow>(row.of).metric = figure->metric;
      into_->rows.push_back(row);
    }
    if (!any) problem(1, "a run without any figure", "ttft_mean_ms, tpot_mean_ms, output_tokens_per_second …");
    if (!good_) into_->rows.resize(before);
  }

  // The cell of a column; null when the file has no such column.
  const descriptor::CsvCell* cell(Column c) const {
    const std::optional<std::size_t>& at = at_[c.index];
    return at ? &reader_.cells()[*at] : nullptr;
  }
  std::string text(Column c) const {
    const descriptor::CsvCell* found = cell(c);
    return found && !found->text.empty() ? found->text : beside(c.index);
  }
  int place(Column c) const { return cell(c) ? cell(c)->column : 1; }

  // Whether the row says by other columns what its context is.
  bool tells_context() const {
    return text("context").empty() && !(text("depth").empty() && text("gen_tokens").empty());
  }

  std::string required(Column c) {
    std::string found = text(c);
    if (!found.empty()) return found;
    problem(place(c),
            cell(c) != nullptr ? quote(c.name()) + " is empty" : "such rows need a column " + quote(c.name()));
    return found;
  }

  // Spreadsheets write whole numbers of a column with gaps as "128.0".
  std::int64_t integer(Column c, const Rule& rule) {
    if (rule.absent && text(c).empty()) return *rule.absent;
    const std::string value = required(c);
    if (value.empty()) return rule.min;
    const std::optional<double> number = parse_double(value);
    if (number && *number == std::floor(*number) && *number >= static_cast<double>(rule.min) &&
        *number <= static_cast<double>(rule.max)) {
      return static_cast<std::int64_t>(*number);
    }
    problem(place(c), fmt::format("{} must be an integer between {} and {}, not {}", quote(c.name()), rule.min,
                                  rule.max, quote(value)));
    return rule.min;
  }

  // Up to a day: no step of a model takes longer. What is shorter than light takes through an atom underflows sums.
  double latency(Column c) { return required(c).empty() ? 1 : latency_of(*cell(c), c.name()); }
  double latency_of(const descriptor::CsvCell& found, std::string_view name) {
    constexpr double kLongest = 1e12;
    constexpr double kShortest = 1e-9;
    const std::optional<double> number = parse_double(found.text);
    if (number && *number >= kShortest && *number < kLongest) return *number;
    problem(found.column, fmt::format("{} must be a positive number, not {}", quote(name), quote(found.text)));
    return 1;
  }

  struct CellReader {
    FileParser& p;
    void operator()(Column c, std::int64_t& value, const Rule& rule) const {
      if (p.follows(c.index) || (c.index == Column("context").index && p.tells_context())) return;
      value = p.integer(c, rule);
    }
    template <class Value>
    void operator()(Column c, std::optional<Value>& value, const Rule& rule) const {
      if (!p.text(c).empty()) (*this)(c, value.emplace(), rule);
    }
    void operator()(Column c, Bytes& value, const Rule& rule) const {
      value = Bytes{static_cast<double>(p.integer(c, rule))};
    }
    void operator()(Column c, double& value, const Rule& rule) const {
      const std::string text = p.text(c);
      if (text.empty() && rule.absent) return;
      const std::optional<double> number = text == "inf" ? std::numeric_limits<double>::infinity() : parse_double(text);
      if (number && positive(*number, rule)) {
        value = *number;
      } else {
        p.problem(p.place(c), fmt::format("{} must be a number above 0 and up to {}, not {}", quote(c.name()), rule.max,
                                          quote(text)));
      }
    }
    void operator()(Column c, std::string& value, const Rule&) const {
      value = p.use(kColumns[c.index]) == 'r' ? p.required(c) : p.text(c);
    }
    void operator()(Column c, bool& value, const Rule& rule) const {
      const std::string text = to_lower(p.text(c));
      if (text.empty() && rule.absent) return;
      value = text.empty() || text == "1" || text == "1.0" || text == "true";
      if (value || text == "0" || text == "0.0" || text == "false") return;
      p.problem(p.place(c), fmt::format("{} must be 0 or 1, not {}", quote(c.name()), quote(text)));
    }
    void operator()(Column c, Phase& value, const Rule&) const {
      if (p.follows(c.index)) return;
      const std::string text = p.required(c);
      for (const Phase phase : {Phase::prefill, Phase::decode, Phase::verify}) {
        if (text == name(phase)) value = phase;
      }
      if (text.empty() || text == name(value)) return;
      p.problem(p.place(c), fmt::format("unknown phase {}", quote(text)), "known phases: prefill, decode, verify");
    }
  };

  OpRow op() {
    OpRow o;
    o.op = required("op");
    o.dtype = element_type("dtype", required("dtype")).value_or(o.dtype);
    each_field(o, CellReader{*this});
    o.mode = to_lower(o.mode);
    if (!o.mode.empty() && o.mode != kEager && o.mode != "graph") {
      problem(place("mode"), fmt::format("unknown mode {}", quote(o.mode)), "known: graph, eager");
    }
    if (std::optional<OpShape> shape = shape_of_word(o.op)) {
      o.shape = std::move(*shape);
      std::visit([&](auto& of) { each_field(of, CellReader{*this}); }, o.shape);
      match(
          o.shape, [&](GemmShape& g) { set_scheme(g.weights, o.dtype); },
          [&](AttentionShape& a) { set_cache(a.kv_dtype, o.dtype); },
          [&](LatentShape& l) {
            set_cache(l.kv_dtype, o.dtype);
            set_scheme(l.weights, o.dtype);
          },
          [&](ExpertsShape& e) {
            set_scheme(e.weights, o.dtype);
            if (e.distribution == kBalanced) e.distribution.clear();
          },
          [](auto&) {});
      if (const auto found = good_ ? contradiction(o.shape) : std::nullopt) {
        const std::vector<std::string_view> names = row_columns();
        const auto at = std::find(names.begin(), names.end(), found->column) - names.begin();
        problem(reader_.cells()[*at_[static_cast<std::size_t>(at)]].column, found->message, found->hint);
      }
    } else if (!o.op.empty()) {
      problem(place("op"), fmt::format("unknown op {}", quote(o.op)), name_hint(o.op, op_names()));
    }
    return o;
  }

  // The type of a cache; empty for that of the rest.
  void set_cache(std::string& kv_dtype, Dtype dtype) {
    if (element_type("kv_dtype", kv_dtype) && kv_dtype == name(dtype)) kv_dtype.clear();
  }

  // The scheme in its canonical spelling; empty for the type of the other operand.
  void set_scheme(std::string& weights, Dtype dtype) {
    if (weights.empty()) return;
    if (const SchemeAlias* alias = scheme_called(weights)) weights = alias->scheme;
    try {
      weights = model::parse_weight_scheme(weights).name;
      if (weights == name(dtype)) weights.clear();
    } catch (const Error& error) {
      problem("weights", error);
    }
  }
  // Of a whole model, whose cache some names tell as well.
  static void set_scheme(std::string& weights, std::string& kv) {
    const SchemeAlias* alias = scheme_called(weights);
    if (alias == nullptr) return;
    weights = alias->scheme;
    if (kv.empty()) kv = alias->kv;
  }

  Problems problems_;  // of the file
  Problems broken_;    // lines that are no CSV
  descriptor::CsvReader reader_;
  Measurements* into_;
  std::map<std::string_view, std::string> beside_;
  bool in_rows_ = false;
  bool ops_ = false;                   // the schema: of ops,
  bool serving_ = false;               // of servers, else of steps,
  bool training_ = false;              // of training,
  std::optional<std::size_t> tokens_;  // whose speed stands there
  bool requests_ = false;              // which are told by the requests they were of:
  std::optional<std::size_t> ttft_;    // the columns of their latencies
  std::optional<std::size_t> tpot_;
  std::size_t width_ = 0;
  std::array<std::optional<std::size_t>, std::size(kColumns)> at_ = {};
  std::vector<std::pair<std::size_t, std::size_t>> extra_;             // cell, index in extra_columns
  std::vector<std::pair<std::size_t, const ServingFigure*>> figures_;  // likewise
  bool good_ = true;
};

void parse_into(Measurements& into, std::string_view text, const std::string& file, const Beside& beside) {
  into.files.push_back({file, {}});
  if (text.find('\0') != std::string_view::npos) {
    throw Error(ErrorKind::bad_input, {{{file}, "is not a text file", {}}});
  }
  FileParser(text, into, beside).parse();
}

}  // namespace

std::string cell_text(const Cell& cell) { return std::visit(CellText(), cell); }

std::vector<std::string_view> row_columns() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kRowColumns; ++i) names.push_back(kColumns[i].name);
  return names;
}

std::vector<Cell> row_cells(const Row& row) {
  std::vector<Cell> cells(kRowColumns);
  const auto write = [&](Column c, const auto& value, const Rule& rule) { cells[c.index] = CellOf()(value, rule); };
  write("hardware", row.hardware, {.shown = true});
  if (const auto* op = std::get_if<OpRow>(&row.of)) {
    write("op", op->op, {.shown = true});
    cells[Column("dtype").index] = name(op->dtype);
  }
  if (const auto* run = std::get_if<ServingRow>(&row.of)) write("metric", run->metric, {});
  each_field(row, write);
  return cells;
}

std::vector<std::pair<std::string_view, Cell>> filled_cells(const Row& row) {
  std::vector<std::pair<std::string_view, Cell>> filled;
  const std::vector<Cell> cells = row_cells(row);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (!cell_text(cells[c]).empty()) filled.emplace_back(kColumns[c].name, cells[c]);
  }
  return filled;
}

namespace {

template <class Shape>
std::optional<Contradiction> fewer_keys(const Shape& s) {
  if (s.q_len <= s.kv_len) return std::nullopt;
  return Contradiction{
      "kv_len", fmt::format("kv_len {} counts the {} new tokens, so it cannot be less", s.kv_len, s.q_len), {}};
}

struct Contradictions {
  using Found = std::optional<Contradiction>;
  Found operator()(const GemmShape& g) const {
    if (g.power.empty() || hardware::parse_power(g.power)) return {};
    return Contradiction{"power", fmt::format("unknown load {}", quote(g.power)), "known: short, sustained"};
  }
  Found operator()(const AttentionShape& a) const {
    if (a.heads % a.kv_heads != 0) {
      return Contradiction{
          "kv_heads", fmt::format("{} heads do not share {} KV heads evenly", a.heads, a.kv_heads), {}};
    }
    return a.causal ? fewer_keys(a) : Found();
  }
  Found operator()(const LatentShape& l) const { return fewer_keys(l); }
  Found operator()(const ExpertsShape& e) const {
    if (e.topk > e.experts) {
      return Contradiction{"topk", fmt::format("{} experts per token, and there are {}", e.topk, e.experts), {}};
    }
    if (e.experts % e.ep != 0) {
      return Contradiction{"ep", fmt::format("{} experts are not dealt evenly to {} ranks", e.experts, e.ep), {}};
    }
    if (e.inter % e.tp != 0) {
      return Contradiction{"tp", fmt::format("width {} is not divided evenly by {} ranks", e.inter, e.tp), {}};
    }
    if (e.distribution.empty() || e.distribution == kUniform || drawn_exponent(e.distribution)) return {};
    return Contradiction{"distribution", fmt::format("unknown distribution {}", quote(e.distribution)),
                         "known: balanced, uniform, power_law_A with A from 0 to 10"};
  }
  Found operator()(const ScanShape& s) const {
    if (s.heads % s.key_heads == 0) return {};
    return Contradiction{
        "kv_heads", fmt::format("{} heads do not share {} heads of keys evenly", s.heads, s.key_heads), {}};
  }
  Found operator()(const VectorShape& v) const {
    if (v.heads == 0 || v.tokens % (v.heads + v.kv_heads) == 0) return {};
    return Contradiction{
        "m", fmt::format("{} rows are not whole tokens of {} + {} heads", v.tokens, v.heads, v.kv_heads), {}};
  }
  Found operator()(const auto&) const { return {}; }
};

}  // namespace

std::optional<Contradiction> contradiction(const OpShape& shape) { return std::visit(Contradictions{}, shape); }

bool writable(const Row& row) {
  bool kept = true;
  each_field(row, [&](Column, const auto& value, const Rule& rule) {
    const Cell cell = CellOf()(value, rule);
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) kept = kept && *whole >= rule.min && *whole <= rule.max;
    if (const auto* number = std::get_if<double>(&cell)) kept = kept && positive(*number, rule);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Bytes>) kept = kept && !std::isinf(value.value);
  });
  return kept;
}

std::string runtime_name(const StepRow& row) {
  if (row.runtime.empty()) return model::gguf_weights(row.weights) != nullptr ? "llama.cpp" : "";
  if (row.backend.empty()) return row.runtime;
  return fmt::format("{}-{}", row.runtime, row.backend.substr(0, row.backend.find('?')));
}

std::string runtime_version(const StepRow& row) {
  // Of a published figure that names none, the day it was measured.
  const bool dated = !row.measured.empty() && (row.engine_version.empty() || row.engine_version == "unknown");
  if (dated && row.build.empty() && row.era.empty()) return row.measured;
  if (!row.engine_version.empty()) return row.engine_version;
  // The month of a build may be of two eras.
  return row.build.empty() || row.era.empty() ? row.build + row.era : row.build + ' ' + row.era;
}

namespace {

// What columns with a text of their own say, each in its words: "tp 4", "max seqs 64".
template <class Of>
std::vector<std::string> told(const Of& of) {
  std::vector<std::string> parts;
  each_field(of, [&](Column, const auto& value, const Rule& rule) {
    const Cell cell = CellOf()(value, {.absent = rule.absent});
    if (rule.text.empty() || cell.index() == 0) return;
    const auto* is = std::get_if<bool>(&cell);
    parts.push_back(fmt::format(fmt::runtime(rule.text), is ? (*is ? "on" : "off") : std::visit(CellText(), cell)));
  });
  return parts;
}

// What of a shape stands before that.
struct ShapeText {
  std::string operator()(const GemmShape& g) const {
    return fmt::format("{}{} x {} x {}", g.batch > 1 ? fmt::format("{} * ", g.batch) : "", g.m, g.n, g.k);
  }
  std::string operator()(const AttentionShape& a) const {
    return fmt::format("batch {} q {} kv {} heads {}/{} x {}{}", a.batch, a.q_len, a.kv_len, a.heads, a.kv_heads,
                       a.head_dim, a.causal ? "" : " not causal");
  }
  std::string operator()(const LatentShape& l) const {
    if (l.part == LatentShape::Part::prolog) return fmt::format("{} tokens heads {}", l.batch, l.heads);
    return fmt::format("batch {} q {} kv {} heads {}", l.batch, l.q_len, l.kv_len, l.heads);
  }
  std::string operator()(const ExpertsShape& e) const {
    return fmt::format("{} tokens to {} of {} experts {} x {}", e.m, e.topk, e.experts, e.hidden, e.inter);
  }
  std::string operator()(const VectorShape& v) const {
    if (v.width == 0) return fmt::format("{} tokens", v.tokens);
    std::string text = fmt::format("{} x {}", v.tokens, v.width);
    if (v.heads > 0) text += fmt::format(" heads {}/{}", v.heads, v.kv_heads);
    return v.bytes.value > 0 ? text + fmt::format(" {:.0f} B", v.bytes.value) : text;
  }
  std::string operator()(const GatherShape& g) const { return fmt::format("{} x {} of {}", g.rows, g.width, g.table); }
  std::string operator()(const CacheShape& c) const {
    return fmt::format("{} tokens {} x {}", c.tokens, c.kv_heads, c.head_dim);
  }
  std::string operator()(const ScanShape& s) const {
    return fmt::format("batch {} q {} heads {}/{} x {} x {}", s.batch, s.q_len, s.heads, s.key_heads, s.key_dim,
                       s.value_dim);
  }
  std::string operator()(const TransferShape& t) const { return fmt::format("{:.0f} B", t.bytes.value); }
  std::string operator()(const CollectiveShape& c) const {
    return fmt::format("{} ranks {:.0f} B", c.ranks, c.bytes.value);
  }
};

// Plan, settings and load of a server: "tp 4", "max seqs 64", "820-1024 -> 1024".
std::vector<std::string> settings_of(const ServingRow& row) {
  std::vector<std::string> parts = told(row);
  if (!row.input.empty()) parts.push_back(fmt::format("{} -> {}", row.input, row.output));
  if (!row.prefix.empty()) parts.push_back("prefix " + row.prefix);
  return parts;
}

}  // namespace

Software software_of(const Row& row) {
  if (const auto* step = std::get_if<StepRow>(&row.of))
    return {runtime_name(*step), runtime_version(*step), step->tool};
  return std::visit([](const auto& of) { return Software{of.runtime, of.engine_version, {}}; }, row.of);
}

std::string runtime_text(const Row& row) {
  Software of = software_of(row);
  if (std::visit([](const auto& any) { return any.runtime.empty(); }, row.of)) return of.name;
  if (!of.version.empty()) of.name += '@' + of.version;
  return of.tool.empty() ? of.name : of.name + '+' + of.tool;
}

std::vector<std::string> configuration_parts(const Row& row) {
  std::vector<std::string> parts = {row.hardware};
  const auto add = [&](std::string text) {
    if (!text.empty()) parts.push_back(std::move(text));
  };
  if (const auto* s = std::get_if<StepRow>(&row.of)) {
    for (const std::string& part : {runtime_name(*s), s->model, s->weights}) add(part);
    if (!s->kv.empty()) add("kv " + s->kv);
    for (const auto& [axis, degree] :
         {std::pair{"tp", s->tp}, std::pair{"ep", s->ep}, std::pair{"dp", s->dp}, std::pair{"pp", s->pp}}) {
      if (degree > 1) add(fmt::format("{} {}", axis, degree));
    }
    add(s->execution);
    add(s->options);
    if (s->n_gpu > 1) add(fmt::format("{} GPUs by {}", s->n_gpu, s->split.empty() ? kSplits[0] : s->split));
    if (s->gpu_layers) add(fmt::format("{} layers on the GPU", *s->gpu_layers));
    if (!s->host.empty()) add("beside " + s->host);
    if (s->flash_attention) add(*s->flash_attention ? "fa 1" : "fa 0");
    for (const auto& [what, value] :
         {std::pair{"ubatch", s->ubatch}, std::pair{"threads", s->threads}, std::pair{"generating", s->gen_tokens}}) {
      if (value > 0) add(fmt::format("{} {}", what, value));
    }
    if (const std::string version = runtime_version(*s); !version.empty()) add("of " + version);
    if (!s->tool.empty()) add("by " + s->tool);
    add(fmt::format("batch {}", s->batch));
    add(fmt::format("{} {}+{}", name(s->phase), s->context, s->new_tokens));
    if (s->loaded) add(fmt::format("under {} requests {}+{}", s->concurrency, s->prompt, s->generated));
  } else if (const auto* r = std::get_if<ServingRow>(&row.of)) {
    for (const std::string& part : {r->runtime, r->model, r->weights}) add(part);
    for (std::string& part : settings_of(*r)) add(std::move(part));
    add(r->metric);
  } else if (const auto* t = std::get_if<TrainingRow>(&row.of)) {
    for (const std::string& part : {runtime_text(row), t->model, t->weights, describe(*t)}) add(part);
  } else {
    const auto& op = std::get<OpRow>(row.of);
    add(runtime_text(row));
    add(op.op);
    add(std::string(name(op.dtype)));
    for (std::string& part : told(op)) add(std::move(part));  // before the shape: pages cut long texts in front
    add(shape_text(op));
  }
  return parts;
}

std::string configuration(const Row& row) { return join(configuration_parts(row), " "); }

std::string shape_text(const OpRow& row) {
  const auto text = [](const auto& shape) {
    std::vector<std::string> parts = told(shape);
    parts.insert(parts.begin(), ShapeText()(shape));
    return join(parts, " ");
  };
  return std::visit(text, row.shape);
}

std::string describe(const OpRow& row) { return fmt::format("{} {} {}", row.op, name(row.dtype), shape_text(row)); }
std::string describe(const ServingRow& row) { return join(settings_of(row), " "); }

std::vector<std::string> Measurements::unused_columns() const {
  std::vector<std::string> names = extra_columns;
  std::erase(names, kUntrustedColumn);
  return names;
}

Measurements parse_measurements(std::string_view text, const std::string& file, const Beside& beside) {
  Measurements measurements;
  parse_into(measurements, text, file, beside);
  refuse_none(measurements.refused);
  return measurements;
}

Measurements read_measurements(std::span<const std::string> names_or_paths, const Beside& beside) {
  Measurements measurements;
  std::vector<Diagnostic> diagnostics;
  for (const std::string& name : names_or_paths) {
    try {
      const descriptor::Text file = descriptor::is_path(name)
                                        ? descriptor::Text{name, descriptor::read_text_file(name, kMaxMeasurementBytes)}
                                        : descriptor::load_text(descriptor::Kind::measurements, name);
      parse_into(measurements, file.text, file.path, beside);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      diagnostics.insert(diagnostics.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!diagnostics.empty()) throw Error(ErrorKind::bad_input, diagnostics);
  if (measurements.rows.empty()) refuse_none(measurements.refused);
  return measurements;
}

void Refusals::add(const Measurements& measurements, std::size_t row, const Error& error) {
  rows_.insert(row);
  for (Diagnostic why : error.diagnostics()) {
    if (!why.where.file.empty()) why.message = format_diagnostic({why.where, why.message, {}});  // of a file it names
    why.where = measurements.where(measurements.rows[row]);
    why_.push_back(std::move(why));
  }
}

void Refusals::throw_if_any() const { refuse_none(why_); }

std::vector<std::size_t> Refusals::apply(Measurements& measurements) const {
  std::vector<std::size_t> stay;
  for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
    if (!rows_.contains(i)) stay.push_back(i);
  }
  std::vector<Row> rows;
  for (const std::size_t i : stay) rows.push_back(std::move(measurements.rows[i]));
  measurements.rows = std::move(rows);
  std::vector<Diagnostic>& refused = measurements.refused;
  refused.insert(refused.end(), why_.begin(), why_.end());
  const auto file = [&](const Diagnostic& d) {
    return std::find_if(measurements.files.begin(), measurements.files.end(),
                        [&](const auto& f) { return f.path == d.where.file; });
  };
  std::stable_sort(refused.begin(), refused.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(file(a), a.where.line) < std::pair(file(b), b.where.line);
  });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {  // figures of one run
    return a.where.file == b.where.file && a.where.line == b.where.line && a.message == b.message;
  };
  refused.erase(std::unique(refused.begin(), refused.end(), same), refused.end());
  if (measurements.rows.empty()) refuse_none(measurements.refused);
  return stay;
}

void refuse_none(const std::vector<Diagnostic>& refused) {
  if (refused.empty()) return;
  const std::size_t told = std::min(refused.size(), Problems::kMaxProblems);
  std::vector<Diagnostic> list(refused.begin(), refused.begin() + static_cast<std::ptrdiff_t>(told));
  if (told < refused.size()) list.push_back({{}, fmt::format("and {} more", refused.size() - told), {}});
  throw Error(ErrorKind::bad_input, std::move(list));
}

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

std::string line(const std::vector<std::string>& fields) { return fmt::format("{}\n", fmt::join(fields, ",")); }

// A column of latencies, or of a figure.
struct Latency {
  std::string column;
  std::string metric;
  double unit = 1;  // of which a second has so many; 0: a rate
  bool is_of(const Row& row) const {
    const auto* run = std::get_if<ServingRow>(&row.of);
    return metric.empty() || (run && run->metric == metric);
  }
  std::string text(Seconds latency) const {
    return fmt::format("{:.6g}", unit > 0 ? latency.value * unit : 1 / latency.value);
  }
};
std::vector<Latency> latencies_of(const std::vector<Row>& rows) {
  if (rows.empty() || std::holds_alternative<OpRow>(rows.front().of)) return {{"latency_us", "", 1e6}};
  if (std::holds_alternative<StepRow>(rows.front().of)) return {{"latency_ms", "", 1e3}};
  if (std::holds_alternative<TrainingRow>(rows.front().of)) return {{"step_s", "", 1}};
  std::vector<Latency> columns;
  for (const ServingFigure& figure : serving_figures()) {
    Latency column{figure.column, figure.metric, figure.rate ? 0.0 : 1e3};
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return column.is_of(row); })) {
      columns.push_back(std::move(column));
    }
  }
  return columns;
}
// Figures of one run, that stood on one line.
bool of_one_line(const Row& a, const Row& b) {
  const auto* run = std::get_if<ServingRow>(&a.of);
  const auto* other = std::get_if<ServingRow>(&b.of);
  return run && other && a.file == b.file && a.line == b.line && a.hardware == b.hardware && a.extra == b.extra &&
         run->same_run(*other);
}

}  // namespace

std::string format_measurements(const Measurements& measurements, Latencies written) {
  std::string text;
  for (const Measurements::File& file : measurements.files) {
    for (const std::string& note : file.notes) text += fmt::format("# {}\n", note);
  }
  const std::vector<Row>& rows = measurements.rows;
  std::vector<std::vector<Cell>> cells;
  for (const Row& row : rows) cells.push_back(row_cells(row));
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < kRowColumns; ++c) {
    const bool used = std::any_of(cells.begin(), cells.end(), [&](const auto& row) { return row[c].index() != 0; });
    if (used && c != Column("metric").index) columns.push_back(c);
  }
  const std::vector<Latency> latencies = written == Latencies::written ? latencies_of(rows) : std::vector<Latency>();
  std::vector<std::string> fields;
  for (const std::size_t c : columns) fields.emplace_back(kColumns[c].name);
  for (const Latency& latency : latencies) fields.push_back(latency.column);
  for (const std::string& name : measurements.extra_columns) fields.push_back(csv_field(name));
  text += line(fields);
  for (std::size_t r = 0, next = 0; r < rows.size(); r = next) {
    const Row& row = rows[r];
    fields.clear();
    for (const std::size_t c : columns) fields.push_back(csv_field(std::visit(CellText(), cells[r][c])));
    const std::size_t first = fields.size();
    fields.resize(first + latencies.size());
    std::size_t at = 0;  // a figure whose column is before it is of a second run of the same settings
    for (next = r; next < rows.size() && (next == r || of_one_line(row, rows[next])); ++next, ++at) {
      while (at < latencies.size() && !latencies[at].is_of(rows[next])) ++at;
      if (at == latencies.size()) break;
      fields[first + at] = latencies[at].text(rows[next].latency);
    }
    next = std::max(next, r + 1);  // without latencies
    for (std::size_t i = 0; i < measurements.extra_columns.size(); ++i) {
      fields.push_back(i < row.extra.size() ? csv_field(row.extra[i]) : std::string());
    }
    text += line(fields);
  }
  return text;
}

}  // namespace llmperf::measure
