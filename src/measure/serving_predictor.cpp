#include "measure/serving_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/integer.h"
#include "base/load_once.h"
#include "base/number.h"
#include "base/text.h"
#include "hardware/beyond_range.h"
#include "hardware/engine.h"
#include "hardware/runtime_execution.h"
#include "measure/row_ops.h"
#include "model/decoder.h"
#include "model/model_file.h"
#include "request/draft.h"

namespace llmperf::measure {
namespace {

using hardware::RuntimeProfile;

constexpr std::uint64_t kSeeds = 3;

std::string draft_and_target(const ServingRow& row) { return fmt::format("{} on {}", row.draft, row.model); }

std::string engine_of(const ServingRow& row) {
  const std::string engine = engine_followed(row);
  if (!engine.empty()) return engine;
  const std::vector<std::string> names(serving::kEngines.begin(), serving::kEngines.end());
  throw Error::bad_input(fmt::format("'runtime': no engine whose rules {} follows", quote(row.runtime)),
                         name_hint(row.runtime, names));
}

// Of an engine that cuts no prompts, and whose row does not say how long its steps are, they are as launch files have
// them; `note` says so where that is more than its default.
serving::EngineChoices engine_choices(const ServingRow& row, const estimate::Setup& setup, std::string& note) {
  serving::EngineChoices choices = row.engine;
  choices.engine = engine_of(row);
  const serving::EngineSettings s = serving::choose_engine(choices, setup);
  if (choices.recv_interval && s.kind != serving::EngineKind::sglang) {
    throw Error::bad_input(fmt::format("'recv_interval' is of SGLang, and the engine is {}", name(s.kind)));
  }
  if (choices.max_batched_tokens || s.chunked_prefill || row.input.empty()) return choices;
  const serving::Lengths input = serving::parse_lengths("input", row.input);
  const double longest = input.kind == serving::Lengths::Kind::uniform ? input.high : input.mean();
  const std::int64_t sequences = std::min(row.load.concurrency.value_or(row.sent()), s.max_sequences);
  constexpr std::int64_t kSpare = 64;
  choices.max_batched_tokens = std::max<std::int64_t>(s.max_batched_tokens, sequences + std::llround(longest) + kSpare);
  if (*choices.max_batched_tokens == s.max_batched_tokens) return choices;
  note = fmt::format(
      "{} does not cut prompts: where rows do not say 'max_batched_tokens' and the default holds no prompt beside the "
      "others' tokens, it is taken to be their number, 64 and a prompt",
      name(s.kind));
  return choices;
}

// The plan of one kind of replicas, "tp2 ep4" or "tp1 dp8 ep8"; "dp" at its end: the devices of tp have their own
// requests.
ServingRow with_plan(const ServingRow& row, const std::string& text) {
  ServingRow own = row;
  if (text.empty()) return own;
  const bool apart = text.ends_with(" dp");
  const std::optional<graph::Plan> plan =
      graph::parse_plan(std::string_view(text).substr(0, text.size() - (apart ? 3 : 0)));
  if (!plan) throw Error::bad_input(fmt::format("{} is no plan of replicas", quote(text)), "tp2 ep4, tp1 dp8 ep8");
  own.tp = apart ? plan->data : plan->tensor;
  own.dp = apart ? plan->tensor : plan->data;
  own.ep = plan->expert;
  own.pp = plan->pipeline;
  return own;
}

serving::Replicas replicas_of(const ServingRow& row) {
  serving::Replicas replicas = row.replicas;
  if (!replicas.prefill && !replicas.decode) return replicas;
  replicas.prefill = replicas.prefill.value_or(1);
  replicas.decode = replicas.decode.value_or(1);
  return replicas;
}

serving::Load load_of(const ServingRow& row, std::uint64_t seed) {
  serving::Load load = row.load;
  load.requests = row.sent();
  if (!row.input.empty()) load.input = serving::parse_lengths("input", row.input);
  if (!row.output.empty()) load.output = serving::parse_lengths("output", row.output);
  if (!row.prefix.empty()) load.prefix = serving::parse_prefix(row.prefix, load.input);
  load.seed = seed;
  return load;
}

}  // namespace

// What runs share whose steps cost the same.
struct ServingPredictor::Simulated {
  estimate::Setup setup;
  std::shared_ptr<const estimate::StepCost> cost;
};

ServingPredictor::ServingPredictor(const Measurements& measurements, const std::vector<std::size_t>& rows,
                                   const hardware::Device& device, Refusals* refused)
    : device_(device) {
  std::map<std::string, std::size_t> known;
  Refusals own;
  for (const std::size_t row : rows) {
    const auto& of = std::get<ServingRow>(measurements.rows[row].of);
    const std::string key = fmt::format("{}|{}|{}|{}", of.runtime, of.model, of.weights, describe(of));
    try {
      const std::size_t run = load_once(known, key, [&] {
        prepare(of);
        runs_.push_back({of, {}});
        return runs_.size() - 1;
      });
      runs_[run].figures.push_back(rows_.size());
      run_of_.push_back(run);
      metrics_.push_back(of.metric);
      rows_.push_back(row);
    } catch (const Error& error) {
      (refused != nullptr ? *refused : own).add(measurements, row, error);
    }
  }
  own.throw_if_any();
}

ServingPredictor::~ServingPredictor() = default;

void ServingPredictor::prepare(const ServingRow& row) {
  std::unique_ptr<model::Decoder>& decoder = models_[row.model];
  if (!decoder) decoder = std::make_unique<model::Decoder>(model::load_decoder(row.model));
  engine_of(row);
  if (!row.trace.empty()) load_once(traces_, row.trace, [&] { return serving::load_trace(row.trace); });
  if (!row.draft.empty() && row.accept.empty()) {
    acceptances_.emplace(draft_and_target(row), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  for (const std::string& plan : {row.prefill_plan, row.decode_plan}) {
    const estimate::Choices choices = choices_of(with_plan(row, plan), nullptr);
    if (const auto broken = graph::problems(*decoder, choices.plan); !broken.empty()) {
      throw Error::bad_input(broken.front().message, broken.front().hint);
    }
    estimate::make_setup(*decoder, device_, choices);
  }
}

// Of a row that names no length one token. Chances are divided by slashes in a cell; no file of them is read because
// another names it.
estimate::Draft ServingPredictor::draft_of(const ServingRow& row, const model::Decoder& target) {
  std::string accept = row.accept;
  std::ranges::replace(accept, '/', ',');
  if (accept.empty()) {
    const double share = acceptances_.at(draft_and_target(row));
    if (std::isnan(share)) throw Error::bad_input("'draft' needs 'accept'", "0.8, or 0.85/0.7/0.6");
    accept = fmt::format("{}", share);
  }
  try {
    estimate::Draft draft = request::read_draft(row.draft, accept, target, sources_);
    draft.best = false;
    return draft;
  } catch (const Error& error) {  // which is about columns here, not about fields of a request
    Diagnostic first = error.diagnostics().front();
    std::ranges::replace(first.message, '`', '\'');
    if (first.message.starts_with("'accept'")) first.hint = "0.8, or 0.85/0.7/0.6";
    throw Error(error.kind(), {first});
  }
}

estimate::Choices ServingPredictor::choices_of(const ServingRow& row, const RuntimeProfile* profile) {
  static const RuntimeProfile kNone;
  const model::Decoder& decoder = *models_.at(row.model);
  StepRow step;
  static_cast<ModelRow&>(step) = row;
  estimate::Choices choices = step_choices(step, profile != nullptr ? *profile : kNone, decoder);
  choices.profile = profile;
  if (!row.draft.empty()) choices.draft = draft_of(row, decoder);
  return choices;
}

serving::Workload ServingPredictor::workload_of(const ServingRow& row, const serving::EngineSettings& engine,
                                                std::uint64_t seed) const {
  serving::Load load = load_of(row, seed);
  if (row.trace.empty()) serving::spread_lengths(load, engine, models_.at(row.model)->max_position);
  return row.trace.empty() ? serving::make_workload(load) : serving::sent_as(traces_.at(row.trace), load);
}

void ServingPredictor::predict(const RuntimeProfile* profile, std::span<double> seconds) {
  std::fill(seconds.begin(), seconds.end(), std::numeric_limits<double>::quiet_NaN());
  std::optional<RuntimeProfile> loaded;
  if (profile != nullptr) loaded = hardware::under_load(*profile);
  std::map<std::string, Simulated> cases;
  for (RunOf& run : runs_) {
    run.remark.clear();
    run.beyond.clear();
    run.note.clear();
    try {
      simulate(run, loaded ? &*loaded : nullptr, cases, seconds);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::infeasible && error.kind() != ErrorKind::bad_input) throw;
      run.remark = "not predicted: " + error.diagnostics().front().message;
    }
  }
}

const ServingPredictor::Simulated& ServingPredictor::simulated(const ServingRow& row, const RuntimeProfile* profile,
                                                               std::map<std::string, Simulated>& cases) {
  const std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.model, row.weights, row.kv, row.tp,
                                      row.ep, row.dp, row.pp, row.execution, row.options, row.draft, row.accept);
  return load_once(cases, key, [&] {
    estimate::Setup setup = estimate::make_setup(*models_.at(row.model), device_, choices_of(row, profile));
    auto cost = std::make_shared<const estimate::StepCost>(setup);
    return Simulated{std::move(setup), std::move(cost)};
  });
}

void ServingPredictor::simulate(RunOf& run, const RuntimeProfile* profile, std::map<std::string, Simulated>& cases,
                                std::span<double> seconds) {
  const ServingRow& row = run.row;
  const Simulated& of = simulated(with_plan(row, row.prefill_plan), profile, cases);
  const serving::EngineSettings engine = serving::choose_engine(engine_choices(row, of.setup, run.note), of.setup);
  const serving::Workload first = workload_of(row, engine, 0);
  const auto tokens = static_cast<std::int64_t>(first.mean_input() + first.mean_output());
  serving::Deployed deployed = serving::deploy(of.setup, engine, replicas_of(row), tokens);
  deployed.deployment.pool.cost = [cost = of.cost](const estimate::StepShape& shape) { return (*cost)(shape); };
  if (deployed.deployment.decode) {
    const Simulated& decode = simulated(with_plan(row, row.decode_plan), profile, cases);
    if (row.decode_plan != row.prefill_plan) {
      serving::decode_on(deployed, serving::deploy(decode.setup, engine, replicas_of(row), tokens));
    }
    deployed.deployment.decode->cost = [cost = decode.cost](const estimate::StepShape& shape) {
      return (*cost)(shape);
    };
  }

  const bool random = row.trace.empty() || row.load.rate.has_value() || !row.draft.empty();
  const std::uint64_t seeds = random ? kSeeds : 1;
  std::vector<double> sums(run.figures.size(), 0);
  double batch = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const serving::Workload workload = seed == 0 ? first : workload_of(row, engine, seed);
    const serving::Summary summary =
        serving::summarise(serving::simulate(deployed.deployment, workload, {.seed = seed}), workload);
    batch = std::max(batch, summary.mean_batch);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += figure_of(summary, metrics_[run.figures[i]]).value;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) seconds[run.figures[i]] = sums[i] / static_cast<double>(seeds);
  if (profile == nullptr) return;
  hardware::StepSize size = estimate::step_size(of.setup, profile);
  size.batch = size.tokens = std::max<std::int64_t>(1, static_cast<std::int64_t>(batch));
  size.context = static_cast<std::int64_t>(first.mean_input() + first.mean_output() / 2);
  run.beyond = join(profile->beyond_range(size), "; ");
}

const std::string& ServingPredictor::remark(std::size_t row) const { return runs_[run_of_[row]].remark; }
const std::string& ServingPredictor::beyond(std::size_t row) const { return runs_[run_of_[row]].beyond; }
const std::string& ServingPredictor::note(std::size_t row) const { return runs_[run_of_[row]].note; }

}  // namespace llmperf::measure
