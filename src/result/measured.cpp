#include "result/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "cost/work.h"
#include "measure/row_ops.h"

namespace llmperf::result {
namespace {

using measure::GroupErrors;

// Errors of predictions; with the baselines: the speed of light, three constants fitted to the rows, the rule of thumb.
struct Errors {
  const GroupErrors* of;
};
struct BaselineErrors {
  const GroupErrors* of;
};
constexpr const char* kBy =
    "training by \"hardware_runtime\", \"hardware_precision\", \"hardware_task\", \"hardware_source\"; steps by "
    "\"model\", \"runtime\", "
    "\"weights\", \"phase\", \"batch_band\", \"execution\", \"options\", "
    "\"runtime_phase\", \"runtime_batch_band\", \"hardware_phase\", \"backend\", \"era\", \"cards\", "
    "\"offload\"; figures of servers by \"metric\", \"metric_hardware\", \"metric_model\", \"metric_tp\", "
    "\"metric_load\"; kernels by \"op\", \"mode\", \"kernel\", \"m_band\", \"site\" (n and k), \"layout\" "
    "(heads), \"collective\"";

Type fields_of(Fields<Errors> f) {
  using E = Errors;
  return f.of("rows", "that were scored", [](const E& e) { return e.of->errors.rows; })
      .of("mape: mean error", "mean absolute error", [](const E& e) { return e.of->errors.mape; })
      .of("median_ape: median error", "of the absolute errors", [](const E& e) { return e.of->errors.median_ape; })
      .of("p90_ape: 9 of 10 errors within", "nine of ten are within this",
          [](const E& e) { return e.of->errors.p90_ape; })
      .of("max_ape: largest error", "the largest", [](const E& e) { return e.of->errors.max_ape; })
      .of("bias: %", "mean error", [](const E& e) { return e.of->errors.bias; })
      .of("inside_mean: inside the mean band %", "rows within the mean band that is printed beside them",
          [](const E& e) { return e.of->inside_mean; })
      .of("inside_p90: inside the band of nine in ten %", "… within that of nine in ten",
          [](const E& e) { return e.of->inside_p90; })
      .of("median_band_factor: median factor of the band",
          "that the latter is wide, to either side, on the median: 1.27 is +- 27 %",
          [](const E& e) { return e.of->band_factor; })
      .named("errors", "Shares, not percent; null where there are no rows, and of bands where there are none.");
}
Type fields_of(Fields<BaselineErrors> f) {
  using E = BaselineErrors;
  return f.spread([](const E& e) { return Errors{e.of}; })
      .of("roofline_mape: mean error of the roofline", "of the speed of light on the same rows",
          [](const E& e) { return e.of->roofline_mape; })
      .of("fitted_roofline_mape: mean error of the fitted roofline", "of three constants fitted to these rows",
          [](const E& e) { return e.of->fitted_roofline_mape; })
      .of("rule_mape: mean error of the rule of thumb", "of the rule of thumb on the steps among them; null: none",
          [](const E& e) { return e.of->rule_mape; });
}

// Of a group of rows, without baselines.
struct GroupLeftOut {
  const GroupErrors* of;
  static Type fields() {
    using G = GroupLeftOut;
    return Fields<G>()
        .of<&G::of, &GroupErrors::by>("by", kBy)
        .of<&G::of, &GroupErrors::name>("name", "of the group")
        .spread([](const G& g) { return Errors{g.of}; });
  }
};

// Errors of all rows and by group; null and none where nothing was left out.
struct ErrorSection {
  const std::vector<GroupErrors>* of;
  static Type fields() {
    using S = ErrorSection;
    return Fields<S>()
        .of("summary", "null: of nothing",
            [](const S& s) { return s.of->empty() ? std::nullopt : std::optional(Errors{&s.of->front()}); })
        .of("groups", "by kind of group", [](const S& s) {
          std::vector<GroupLeftOut> groups;
          for (const GroupErrors& group : groups_of(*s.of)) groups.push_back({&group});
          return groups;
        });
  }
};

}  // namespace

// ---- validate

Type fields_of(Fields<measure::GroupErrors> f) {
  return f.of<&GroupErrors::by>("by", kBy)
      .of<&GroupErrors::name>("name", "of the group")
      .spread([](const GroupErrors& g) { return BaselineErrors{&g}; });
}

Type fields_of(Fields<measure::Measurements::File> f) {
  using F = measure::Measurements::File;
  return f.of<&F::path>("path", "as given").of<&F::notes>("notes", "the comment lines of the file");
}

Type fields_of(Fields<Diagnostic> f) {
  using D = Diagnostic;
  return f.of("file", "as given", [](const D& d) { return d.where.file; })
      .of("line", "of the file", [](const D& d) { return d.where.line; })
      .of<&D::message>("reason", "what is wrong with it; a line has one entry for each")
      .of<&D::hint>("hint", "what would be right, may be empty");
}

Type fields_of(Fields<ValidatedRow> f) {
  using R = ValidatedRow;
  using V = measure::ValidatedRow;
  return f
      .of("measured_s", "as the file says; of a rate its inverse", [](const R& r) { return r.of->measured(*r.row); })
      .of<&R::row, &V::predicted>("predicted_s", "by the profile")
      .of("error: %", "predicted / measured - 1; of a rate that of the rate",
          [](const R& r) { return r.of->error(*r.row); })
      .of<&R::row, &V::roofline>("roofline_s", "the speed of light")
      .of<&R::row, &V::fitted_roofline>("fitted_roofline_s", "three constants fitted to the rows of its kind")
      .of("rule_s: rule of thumb",
          "of steps by the rule of thumb: decode reads at three quarters of the bandwidth, prefill multiplies at half "
          "the 16-bit peak",
          [](const R& r) { return r.row->rule; })
      .only_when([](const R& r) { return r.row->rule.has_value(); })
      .of("band_low_s: band from", "nine of ten like it are within this and the next",
          [](const R& r) { return r.edge(-1); })
      .of("band_high_s: band to", "likewise; null: no band", [](const R& r) { return r.edge(1); })
      .of<&R::row, &V::profile>("profile",
                                "what predicted it: \"vllm on rtx4090\", \"vllm (defaults of NVIDIA Ampere)\"; "
                                "\"none\" is the speed of light")
      .of<&R::row, &V::extrapolated>("extrapolated", "outside of what the profile was fitted on; `remark` says in what")
      .of<&R::row, &V::class_default>("class_default",
                                      "by defaults of the device's class, for lack of a profile of its own")
      .of("fits", "of a training step, whether the device has the memory",
          [](const R& r) { return r.row->memory->fits; })
      .only_when([](const R& r) { return r.row->memory.has_value(); })
      .of("memory_bytes", "of it, of one device, counted as its measurement is",
          [](const R& r) { return r.row->memory->bytes; })
      .only_when([](const R& r) { return r.row->memory.has_value(); })
      .of("memory_error: error of memory %", "predicted / measured - 1",
          [](const R& r) { return r.row->memory->bytes / r.row->memory->measured - 1; })
      .only_when([](const R& r) { return r.row->memory && r.row->memory->measured > 0; })
      .of<&R::row, &V::scored>("scored", "false: listed only; `remark` says why")
      .of<&R::row, &V::remark>("remark", "as text, may be empty");
}

Type fields_of(Fields<measure::Validation> f) {
  using V = measure::Validation;
  return f.of("files", "that were read", [](const V& v) { return v.measurements.files; })
      .of("summary", "of all scored rows", [](const V& v) { return BaselineErrors{&v.summary}; })
      .of<&V::groups>("groups", "of scored rows")
      .of("unused_columns: columns not used", "of the input: kept as they are, they change no prediction",
          [](const V& v) { return v.measurements.unused_columns(); })
      .of<&V::warnings>("warnings", "as text")
      .of("refused: refused lines", "lines that are not among the rows",
          [](const V& v) { return v.measurements.refused; })
      .of("rows",
          "in the order of the files: `file`, `line`, the columns of the input that the row uses under their own "
          "names (text or numbers; without the latency), and the keys below; then columns that llmperf does not "
          "know, as text, one that is named like a key as `input_NAME`",
          [](const V&) { return std::vector<ValidatedRow>(); });  // written by the report
}

// ---- calibrate

Type fields_of(Fields<ParameterFitted> f) {
  using P = ParameterFitted;
  constexpr auto identified = [](const P& p) { return p.identified(); };
  return f.of<&P::name>("name", "as in [runtimes.md](runtimes.md)")
      .of<&P::unit>("unit", "\"s\", \"B/s\" or \"\"")
      .of("value", "the default unless identified", [](const P& p) { return p.fitted.value; })
      .of("identified", "whether rows say it", identified)
      .of("status",
          "\"identified\", \"at bound\", \"weakly identified\" or \"no effect\": in the last two cases it is at its "
          "default",
          [](const P& p) {
            switch (p.fitted.identified) {
              case measure::Identified::yes: return p.fitted.at_bound ? "at bound" : "identified";
              case measure::Identified::no_effect: return "no effect";
              case measure::Identified::weakly: return "weakly identified";
            }
            return "";
          })
      .where(identified)
      .of("relative_error", "the larger of the two below: standard deviation of the logarithm; null: not identified",
          [](const P& p) { return p.uncertainty(); })
      .of("relative_error_fit: relative error (fit)", "given rows and default",
          [](const P& p) { return p.fitted.relative_error; })
      .always()
      .of<&P::jackknife>("relative_error_jackknife: relative error (jackknife)",
                         "over fits that each lack a group; null without")
      .when([](const P& p) { return p.identified() && p.jackknife > 0; })
      .of("shrinkage: %", "how much narrower the rows made it than its default's spread: 0 not at all, 1 to a point",
          [](const P& p) { return p.fitted.shrinkage; })
      .of("default", "what it is pulled towards", [](const P& p) { return p.free.prior; })
      .of("default_spread", "how strongly", [](const P& p) { return p.free.spread; })
      .of("min", "bound", [](const P& p) { return p.free.min; })
      .of("max", "bound", [](const P& p) { return p.free.max; })
      .of<&P::meaning>("meaning", "in words");
}

std::vector<ParameterFitted> parameters_of(const measure::Calibration& c) {
  std::vector<ParameterFitted> list;
  for (const measure::CalibratedParameter& p : c.parameters) list.push_back({p});
  return list;
}

Type fields_of(Fields<Correlated> f) {
  using C = Correlated;
  return f.of<&C::first>("first", "parameter")
      .of<&C::second>("second", "parameter")
      .of<&C::coefficient>("coefficient", "of correlation");
}

std::vector<Correlated> correlated(const measure::Calibration& c) {
  const auto name = [&](std::size_t index) -> std::string_view {
    for (const measure::CalibratedParameter& p : c.parameters) {
      if (p.free.index == index) return p.name;
    }
    return "?";
  };
  std::vector<Correlated> list;
  for (const measure::Correlation& pair : c.correlations) {
    list.push_back({name(pair.first), name(pair.second), pair.coefficient});
  }
  return list;
}

std::span<const GroupErrors> groups_of(const std::vector<GroupErrors>& errors) {
  return errors.empty() ? std::span<const GroupErrors>() : std::span(errors).subspan(1);
}

Type fields_of(Fields<measure::LeftOut> f) {
  using L = measure::LeftOut;
  return f.of<&L::by>("by", "kind of groups")
      .of<&L::folds>("folds", "0: one group only, nothing could be left out")
      .spread([](const L& l) { return ErrorSection{&l.errors}; });
}

Type fields_of(Fields<measure::Narrowed> f) {
  using N = measure::Narrowed;
  return f.of<&N::parameter>("parameter", "name")
      .of<&N::before>("before", "relative uncertainty of the number without the row")
      .of<&N::after>("after", "with it");
}

Type fields_of(Fields<measure::Proposal> f) {
  using P = measure::Proposal;
  return f.of("row", "what to measure, in the words of a measurement", [](const P& p) { return configuration(p.row); })
      .of<&P::gain>("gain: information gain",
                    "nats: by how much the logarithm of the volume falls in which the numbers lie")
      .of<&P::narrows>("narrows: narrows down", "one to three numbers that it tells most about");
}

Type fields_of(Fields<measure::Calibration> f) {
  using C = measure::Calibration;
  return f.of<&C::hardware>("hardware", "device that was fitted")
      .of<&C::runtime>("runtime", "profile that was fitted")
      .of<&C::files>("files", "paths")
      .of<&C::converged>("converged", "the last fit")
      .of<&C::iterations>("iterations", "of the last fit")
      .of<&C::residual_scale>("residual_scale",
                              "1.48 times the median absolute residual of the logarithm: the noise, were residuals "
                              "normal")
      .of<static_cast<std::vector<ParameterFitted> (*)(const C&)>(&parameters_of)>("parameters",
                                                                                   "those that a row depends on")
      .of<&correlated>("correlations", "parameters that the rows know only together")
      .of("before", "errors of the profile that the fit starts from, on rows of ops and steps",
          [](const C& c) { return ErrorSection{&c.before}; })
      .of("residuals", "errors of the fit to all rows", [](const C& c) { return ErrorSection{&c.residuals}; })
      .of<&C::left_out>("cross_validation",
                        "rows predicted without their group; the profile stores those by phase and op. Two of them "
                        "where ops were fitted first and steps after them")
      .of<&C::next>("next_rows: rows worth measuring next",
                    "at most five that would tell most, each given those before it, the best first")
      .of<&C::warnings>("warnings", "as text")
      .of<&C::refused>("refused", "lines that were left out");
}

// ---- import

Type fields_of(Fields<ClassTotal> f) {
  using T = ClassTotal;
  return f.of<&T::of>("class", "\"kernel\", \"communication\", \"host\", \"other\", \"step\" or \"run\"")
      .of<&T::count>("count", "executions")
      .of<&T::total>("time_s", "of all of them; never added up over classes")
      .of<&T::imported>("imported", "executions that became measurements")
      .of<&T::in_rows>("in_rows_s", "time of these")
      .of<&T::in_groups>("in_groups_s", "time of what is no op of a model: groups")
      .of<&T::left_out>("left_out_s", "time of the rest");
}

Type fields_of(Fields<import::GroupSummary> f) {
  using G = import::GroupSummary;
  return f.of("group", "what it is", [](const G& g) { return g.group->name; })
      .of("reason", "why it is no measurement", [](const G& g) { return g.group->reason; })
      .of<&G::of>("class", "as above")
      .of<&G::count>("count", "executions")
      .of<&G::total>("time_s", "of all of them");
}

std::vector<ClassTotal> totals_of(const import::Imported& imported) {
  std::vector<ClassTotal> totals;
  for (const import::TypeSummary& t : imported.types) {
    if (totals.empty() || totals.back().of != t.of) totals.emplace_back().of = t.of;
    totals.back().count += t.count;
    totals.back().total += t.total;
    totals.back().imported += t.imported;
    totals.back().in_rows += t.in_rows;
    totals.back().in_groups += t.in_groups;
    totals.back().left_out += t.left_out();
  }
  return totals;
}

Type fields_of(Fields<ImportedType> f) {
  using T = ImportedType;
  return f.of("type", "name of a kernel or collective", [](const T& t) { return t.summary->type; })
      .of("class", "as above", [](const T& t) { return t.summary->of; })
      .of("count", "executions", [](const T& t) { return t.summary->count; })
      .of("time_s", "of all of them", [](const T& t) { return t.summary->total; })
      .of<&T::share>("share", "of the time of its class")
      .of("imported", "executions that became measurements", [](const T& t) { return t.summary->imported; })
      .of("in_rows_s", "time of these", [](const T& t) { return t.summary->in_rows; })
      .of("in_groups_s", "time of what is no op of a model", [](const T& t) { return t.summary->in_groups; })
      .of("left_out_s", "time of the rest", [](const T& t) { return t.summary->left_out(); })
      .of("remark", "why the others did not; may be empty", [](const T& t) { return t.summary->remark; });
}

std::vector<ImportedType> types_of(const import::Imported& imported) {
  std::vector<ImportedType> types;
  const std::vector<ClassTotal> totals = totals_of(imported);
  for (const import::TypeSummary& t : imported.types) {
    const auto of = std::find_if(totals.begin(), totals.end(), [&](const ClassTotal& c) { return c.of == t.of; });
    types.push_back({&t, of->total.value > 0 ? t.total / of->total : 0});
  }
  return types;
}

std::vector<std::string> warnings_of(const import::Imported& imported) {
  if (imported.types.empty()) return {"the files hold no kernels, no collectives, no steps and no runs"};
  std::vector<std::string> warnings;
  if (imported.measurements.rows.empty()) warnings.emplace_back("nothing here is a measurement: the remarks say why");
  if (!imported.passed_over.empty()) {
    warnings.push_back(fmt::format("columns passed over: {}", join(imported.passed_over, ", ")));
  }
  return warnings;
}

namespace {

struct ImportedRow {
  const measure::Measurements* of;
  const measure::Row* row;

  std::optional<std::string_view> extra(std::string_view column) const {
    for (std::size_t i = 0; i < row->extra.size(); ++i) {
      if (of->extra_columns[i] == column) return row->extra[i];
    }
    return std::nullopt;
  }
  std::optional<double> number(std::string_view column) const {
    const auto text = extra(column);
    return text ? parse_double(*text) : std::nullopt;
  }
  static Type fields() {
    using R = ImportedRow;
    return Fields<R>()
        .of("op", "one line; of llama-bench a step, of servers a figure of a run",
            [](const R& r) {
              const auto* op = std::get_if<measure::OpRow>(&r.row->of);
              return op ? measure::describe(*op) : measure::configuration(*r.row);
            })
        .of("time_s", "median; of collectives the shortest; of a rate its inverse",
            [](const R& r) { return r.row->latency; })
        .of("spread_s", "between the quartiles", [](const R& r) { return *r.number("spread_us") * 1e-6; })
        .only_when([](const R& r) { return r.number("spread_us").has_value(); })
        .of("repetitions", "executions", [](const R& r) { return r.number("repetitions"); })
        .only_when([](const R& r) { return r.number("repetitions").has_value(); })
        .of("type", "name of the kernel or collective", [](const R& r) { return r.extra("type"); })
        .only_when([](const R& r) { return r.extra("type").has_value(); });
  }
};

}  // namespace

Type fields_of(Fields<import::Imported> f) {
  using I = import::Imported;
  return f
      .of<&I::source>("source",
                      "\"msprof\", \"torch-npu\", \"hccl-test\", \"nccl-tests\", \"chrome-trace\", \"aiconfigurator\" "
                      "or \"llama-bench\"")
      .of("files", "paths as given",
          [](const I& i) {
            std::vector<std::string> paths;
            for (const auto& file : i.measurements.files) paths.push_back(file.path);
            return paths;
          })
      .of<&totals_of>("classes", "what ran it")
      .of<&types_of>("types", "by class, then by time")
      .of<&I::groups>("groups", "what is no op of a model, by class, then by time")
      .of("measurements", "that they became",
          [](const I& i) {
            std::vector<ImportedRow> rows;
            for (const measure::Row& row : i.measurements.rows) rows.push_back({&i.measurements, &row});
            return rows;
          })
      .of<&warnings_of>("warnings", "as text");
}

// ---- replay

std::optional<Map<Value>> measured_columns(const estimate::Phase& phase, std::size_t op) {
  const graph::Op& one = phase.ops[op].op;
  const auto op_of = [](const estimate::OpEstimate& each) -> const graph::Op& { return each.op; };
  const auto found = replay::row_of(one, replay::attention_beside(one, phase.ops, op_of));
  const auto* op_row = std::get_if<measure::OpRow>(&found);
  if (op_row == nullptr) return std::nullopt;
  const measure::Row row{.hardware = {}, .of = *op_row, .latency = {}, .extra = {}};
  Map<Value> columns;
  for (const auto& [name, cell] : measure::filled_cells(row)) {
    columns.emplace_back(
        name, match(
                  cell, [](std::string_view text) -> Value { return std::string(text); },
                  [](std::int64_t number) -> Value { return d(number); }, [](auto same) -> Value { return same; }));
  }
  return columns;
}

cost::Work ReplayedOp::work() const {
  cost::Work work;
  for (const graph::Op& one : measure::ops_of(*row(), {})) work += cost::work_of(one, {});
  return work;
}

Type fields_of(Fields<ReplayedOp> f) {
  using O = ReplayedOp;
  constexpr auto row = [](const O& o) { return o.row() != nullptr; };
  constexpr auto timed = [](const O& o) { return o.timed(); };
  return f.row("phase", "the step it is of", [](const O& o) { return o.phase->name; })
      .row("names", "of the ops that it stands for", [](const O& o) { return join(o.op->op.names, "+"); })
      .of("names", "of the ops that it stands for", [](const O& o) { return o.op->op.names; })
      .only_where(row)
      .of("op", "of what a row can name", [](const O& o) { return o.row()->op; })
      .of("dtype", "likewise", [](const O& o) { return o.row()->dtype; })
      .of("shape", "likewise, as text", [](const O& o) { return measure::shape_text(*o.row()); })
      .json("flops", "likewise", [](const O& o) { return o.work().matrix + o.work().vector; })
      .json("bytes", "likewise", [](const O& o) { return o.work().bytes(); })
      .always()
      .of("count", "executions per step; 0: of a list", [](const O& o) { return o.op->op.count; })
      .of("available", "on this backend", timed)
      .of("reason", "where it is not", [](const O& o) { return o.op->unavailable; })
      .only_when([](const O& o) { return !o.timed(); })
      .only_where(timed)
      .of("time_s", "the figure that stands for it, where available", [](const O& o) { return o.op->time(); })
      .json("median_s", "likewise", [](const O& o) { return o.op->timing->median; })
      .json("minimum_s", "likewise", [](const O& o) { return o.op->timing->minimum; })
      .of("spread_s", "likewise: between the quartiles", [](const O& o) { return o.op->timing->spread; })
      .json("samples", "likewise", [](const O& o) { return o.op->timing->samples; })
      .of("repetitions", "likewise", [](const O& o) { return o.op->timing->passes; })
      .of<&O::predicted>("predicted_s", "likewise; null: no profile");
}

std::vector<ReplayedOp> ops_of(const replay::PhaseStudy& phase) {
  std::vector<ReplayedOp> ops;
  for (std::size_t i = 0; i < phase.replay.ops.size(); ++i) {
    ops.push_back({&phase, &phase.replay.ops[i], i < phase.predicted.size() ? phase.predicted[i] : std::nullopt});
  }
  return ops;
}

std::vector<ReplayedOp> ops_of(const replay::Study& study) {
  std::vector<ReplayedOp> all;
  for (const replay::PhaseStudy& phase : study.phases) {
    for (const ReplayedOp& op : ops_of(phase)) all.push_back(op);
  }
  return all;
}

Seconds ops_time(const replay::PhaseStudy& phase) {
  Seconds sum;
  for (const replay::TimedOp& op : phase.replay.ops) sum += op.time() * d(op.op.count);
  return sum;
}

Type fields_of(Fields<replay::StepTime> f) {
  using S = replay::StepTime;
  return f.of("time_s", "median", [](const S& s) { return s.timing.median; })
      .of("minimum_s", "the shortest", [](const S& s) { return s.timing.minimum; })
      .of("spread_s", "between the quartiles", [](const S& s) { return s.timing.spread; })
      .of("repetitions", "of the step", [](const S& s) { return s.timing.passes; })
      .of<&S::ops>("ops_time_s", "of the ops that are in it")
      .of<&S::left_out>("left_out", "ops that are not in it");
}

Type fields_of(Fields<replay::PhaseStudy> f) {
  using P = replay::PhaseStudy;
  return f.of<&P::name>("name", "\"prefill\", \"decode\", or \"ops\" of a list")
      .of("complete", "false: interrupted", [](const P& p) { return p.replay.complete; })
      .of<&ops_time>("ops_time_s", "all executions of the ops, one by one")
      .of<&P::predicted_step>("predicted_step_s", "null: no step, or no profile")
      .of("whole_step", "null: not timed as a whole", [](const P& p) { return p.replay.whole; })
      .of("ops", "each once", [](const P& p) { return ops_of(p); });
}

namespace {
struct Fact {
  std::string_view name;
  std::string_view value;
  static Type fields() {
    return Fields<Fact>().of<&Fact::name>("name", "\"threads\", \"driver\"").of<&Fact::value>("value", "as text");
  }
};
}  // namespace

Type fields_of(Fields<replay::Description> f) {
  using D = replay::Description;
  return f.of<&D::backend>("backend", "\"cpu\" or \"ascend\"")
      .of<&D::device>("name", "of the device")
      .of<&D::title>("title", "for people")
      .of("facts", "what the device says of itself",
          [](const D& d) {
            std::vector<Fact> facts;
            for (const auto& [name, value] : d.facts) facts.push_back({name, value});
            return facts;
          })
      .named("device");
}

Type fields_of(Fields<replay::Study> f) {
  using S = replay::Study;
  return f.of<&S::what>("what", "was replayed")
      .of<&S::hardware>("hardware", "name of the device that it is a measurement of")
      .of<&S::profile>("profile", "that predicts; null: none")
      .when([](const S& s) { return !s.profile.empty(); })
      .of<&S::device>("device", "that ran it")
      .of<&S::phases>("phases", "of the step, or the list");
}

Type fields_of(Fields<replay::SelfTestResult> f) {
  using R = replay::SelfTestResult;
  return f.of<&R::op>("op", "one line")
      .of<&R::outcome>("outcome", "\"passed\", \"failed\" or \"unavailable\"")
      .of<&R::error>("error", "relative, of the norm of the difference; null: nothing was compared")
      .of<&R::tolerance>("tolerance: %", "likewise: what the type's rounding allows")
      .of<&R::reason>("reason", "why not available, or what failed");
}

std::int64_t SelfTest::count(replay::SelfTestResult::Outcome outcome) const {
  return std::count_if(results.begin(), results.end(), [&](const auto& r) { return r.outcome == outcome; });
}

Type fields_of(Fields<SelfTest> f) {
  using S = SelfTest;
  return f.of<&S::device>("device", "that was tested")
      .of("passed", "no op failed", [](const S& s) { return !replay::failed(s.results); })
      .of("ops", "small ones of every kind", [](const S& s) { return s.results; });
}

}  // namespace llmperf::result
