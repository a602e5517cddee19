#include "report/result_row.h"

#include "base/text.h"
#include "hardware/runtime_execution.h"
#include "model/parameters.h"
#include "report/json.h"
#include "report/runtime_text.h"
#include "report/training_report.h"
#include "report/video_report.h"

namespace llmperf::report {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// Of a generation of text or of video.
template <class Estimate>
void fill_memory(const sweep::RowFiller& fill, const Estimate* e) {
  fill("weight_bytes", [&] { return e->memory.weights.value; });
  fill("kv_cache_bytes", [&] { return e->memory.kv_cache.value; });
  fill("activation_bytes", [&] { return e->memory.activation.value; });
  fill("reserve_bytes", [&] { return e->memory.reserve.value; });
  fill("total_bytes", [&] { return e->memory.total().value; });
  fill("capacity_bytes", [&] { return e->capacity.value; });
}

}  // namespace

SetupFacts::SetupFacts(const estimate::Estimator& estimator)
    : kv(estimator.setup().execution.kv.name()),
      options(options_text(estimator.setup())),
      plan(graph::to_text(estimator.setup().execution.plan)),
      label(report::label(estimator.setup())),
      runtime(estimator.setup().profile ? estimator.setup().profile->name : "none"),
      parameters(d(model::count_parameters(*estimator.setup().execution.model).total)) {
  const model::Decoder& m = *estimator.setup().execution.model;
  for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
    kv_bytes_per_token +=
        cost::layer_kv_bytes(estimator.setup().execution.kv, m.kinds[kind].attention, 1).value * d(m.kind_counts[kind]);
  }
}

void fill_row(const sweep::RowFiller& fill, const SetupFacts* facts, const estimate::Estimator* estimator,
              const estimate::Estimate* e) {
  const auto execution = [&]() -> const graph::Execution& { return estimator->setup().execution; };
  const auto fits = [&] { return e->fits; };
  const auto decodes = [&] { return e->fits && e->tpot.has_value(); };
  fill("model", [&] { return execution().model->name; });
  fill("hardware", [&] { return estimator->setup().device->name; });
  fill("batch", [&] { return d(e->scenario.batch); });
  fill("prompt_tokens", [&] { return d(e->scenario.prompt); });
  fill("generate_tokens", [&] { return d(e->scenario.generate); });
  fill("weights", [&] { return execution().weights.name; });
  fill("kv", [&] { return facts->kv; });
  fill("activations", [&] { return name(execution().activations); });
  fill("options", [&] { return facts->options; });
  fill("devices", [&] { return d(execution().plan.devices()); });
  fill("plan", [&] { return facts->plan; });
  fill("label", [&] { return facts->label; });
  fill("runtime", [&] { return facts->runtime; });
  fill("extrapolated", [&] { return join(extrapolations(*estimator, e->scenario), "; "); });
  fill("fits", fits);
  fill("ttft_s", fits, [&] { return e->ttft.value; });
  fill("tpot_s", decodes, [&] { return e->tpot->value; });
  fill("tpot_first_s", decodes, [&] { return e->tpot_first->value; });
  fill("tpot_last_s", decodes, [&] { return e->tpot_last->value; });
  fill("total_s", fits, [&] { return e->total.value; });
  fill("tokens_per_second", fits, [&] { return e->tokens_per_second; });
  fill("tokens_per_second_per_request", fits, [&] { return e->tokens_per_second_per_request; });
  fill("tokens_per_second_per_device", fits, [&] { return e->tokens_per_second / d(execution().plan.devices()); });
  fill_memory(fill, e);
  fill("host_total_bytes", [&] { return e->host_memory.total().value; });
  fill("host_capacity_bytes", [&] { return e->host_capacity.value; });
  fill("largest_batch", [&] { return d(e->largest_batch); });
  fill("longest_context_tokens", [&] { return d(e->longest_context); });
  fill("parameters", [&] { return facts->parameters; });
  fill("kv_bytes_per_token", [&] { return facts->kv_bytes_per_token; });
}

void fill_row(const sweep::RowFiller& fill, const estimate::VideoEstimator* estimator,
              const estimate::VideoEstimate* e) {
  const auto setup = [&]() -> const estimate::VideoSetup& { return estimator->setup(); };
  const auto execution = [&]() -> const graph::VideoExecution& { return estimator->setup().execution; };
  const auto fits = [&] { return e->fits; };
  fill("model", [&] { return execution().model->name; });
  fill("hardware", [&] { return setup().device->name; });
  fill("height", [&] { return d(execution().shape.size.height); });
  fill("width", [&] { return d(execution().shape.size.width); });
  fill("frames", [&] { return d(execution().shape.frames); });
  fill("videos", [&] { return d(execution().videos); });
  fill("steps", [&] { return d(setup().scenario.steps); });
  fill("guidance", [&] { return execution().guidance; });
  fill("text_tokens", [&] { return d(execution().text_tokens); });
  fill("tokens", [&] { return d(execution().shape.tokens()); });
  fill("weights", [&] { return setup().weights_name; });
  fill("activations", [&] { return name(execution().activations); });
  fill("options", [&] { return options_text(setup()); });
  fill("devices", [&] { return d(setup().devices()); });
  fill("plan", [&] { return graph::to_text(execution().plan); });
  fill("patches", [&] { return d(execution().patches); });
  fill("label", [&] { return label(setup()); });
  fill("runtime", [&] { return setup().profile ? setup().profile->name : std::string("none"); });
  fill("extrapolated", [&] { return join(extrapolations(setup()), "; "); });
  fill("fits", fits);
  fill("generation_s", fits, [&] { return e->generation.value; });
  fill("step_s", fits, [&] { return e->step.value; });
  constexpr const char* kPhases[] = {"text_encoding_s", "denoising_s", "vae_decoding_s", "other_s"};
  static_assert(std::size(kPhases) == std::size(estimate::kVideoPhases));
  for (std::size_t i = 0; i < std::size(kPhases); ++i) {
    fill(kPhases[i], fits,
         [&] { return i < e->phases.size() ? e->phases[i].time.value * d(e->phases[i].steps) : 0.0; });
  }
  fill("step_utilisation", fits, [&] { return e->step_utilisation; });
  fill_memory(fill, e);
}

void fill_row(const sweep::RowFiller& fill, const estimate::TrainingEstimator* estimator,
              const estimate::TrainingEstimate* e) {
  const auto execution = [&]() -> const graph::Execution& { return estimator->setup().execution; };
  const auto fits = [&] { return e->fits; };
  fill("model", [&] { return execution().model->name; });
  fill("hardware", [&] { return estimator->setup().device->name; });
  fill("plan", [&] { return graph::to_text(e->plan); });
  fill("devices", [&] { return d(e->plan.devices()); });
  fill("global_batch", [&] { return d(e->scenario.global_batch); });
  fill("micro_batch", [&] { return d(e->scenario.micro_batch); });
  fill("sequence_tokens", [&] { return d(e->scenario.sequence); });
  fill("weights", [&] { return execution().weights.name; });
  fill("activations", [&] { return name(execution().activations); });
  fill("gradient_bits", [&] { return static_cast<double>(e->options.gradient_bits); });
  fill("optimizer_bits", [&] { return static_cast<double>(e->options.optimizer_bits); });
  fill("recompute", [&] { return graph::name(e->options.recompute); });
  fill("zero", [&] { return static_cast<double>(e->options.zero); });
  fill("interleave", [&] { return d(e->options.chunks); });
  fill("options", [&] { return hardware::format_runtime_options(execution().runtime); });
  fill("label", [&] { return training_label(estimator->setup()); });
  fill("extrapolated", [&] { return join(training_extrapolations(estimator->setup(), *e), "; "); });
  fill("fits", fits);
  fill("step_s", fits, [&] { return e->time.value; });
  fill("compute_s", fits, [&] { return e->compute.value; });
  fill("bubble_s", fits, [&] { return e->bubble.value; });
  fill("gradient_exposed_s", fits, [&] { return e->gradient_exposed.value; });
  fill("optimizer_s", fits, [&] { return e->optimizer.value; });
  fill("overlapped_s", fits, [&] { return e->overlapped.value; });
  fill("tokens_per_second", fits, [&] { return e->tokens_per_second; });
  fill("tokens_per_second_per_device", fits, [&] { return e->tokens_per_second / d(e->plan.devices()); });
  fill("mfu", fits, [&] { return e->mfu; });
  fill("hfu", fits, [&] { return e->hfu; });
  fill("weight_bytes", [&] { return e->memory.weights.value; });
  fill("gradient_bytes", [&] { return e->memory.gradients.value; });
  fill("optimizer_bytes", [&] { return e->memory.optimizer.value; });
  fill("activation_bytes", [&] { return e->memory.activations.value; });
  fill("layer_activation_bytes", [&] { return e->memory.layer_activations.value; });
  fill("workspace_bytes", [&] { return e->memory.workspace.value; });
  fill("reserve_bytes", [&] { return e->memory.reserve.value; });
  fill("total_bytes", [&] { return e->memory.total().value; });
  fill("capacity_bytes", [&] { return e->capacity.value; });
}

std::string cell_text(const sweep::Cell& cell) {
  switch (cell.kind) {
    case sweep::Cell::Kind::none: return {};
    case sweep::Cell::Kind::number: return plain(cell.number);
    case sweep::Cell::Kind::truth: return cell.number != 0 ? "true" : "false";
    case sweep::Cell::Kind::text: return cell.text;
  }
  return {};
}

Table table_of(const sweep::Row& row) {
  Table t;
  t.rows.resize(1);
  for (std::size_t i = 0; i < row.size(); ++i) {
    t.columns.push_back({std::string(row.name(i))});
    t.rows[0].push_back(cell_text(row[i]));
  }
  return t;
}

Table summary_csv(const estimate::Estimator& estimator, const estimate::Estimate& estimate) {
  const SetupFacts facts(estimator);
  sweep::Row row;
  fill_row(sweep::RowFiller(row), &facts, &estimator, &estimate);
  return table_of(row);
}

}  // namespace llmperf::report
