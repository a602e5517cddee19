#include "service/estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.h"
#include "base/match.h"
#include "estimate/explain.h"
#include "result/document.h"
#include "result/row.h"

namespace llmperf::service {

std::optional<estimate::KvCapacity> pool_of(const request::Generation& text, const estimate::Scenario& scenario,
                                            estimate::Estimate& e) {
  if (!text.memory) return std::nullopt;
  const estimate::KvCapacity room = estimate::kv_capacity(*text.estimator, *text.memory);
  const std::int64_t replicas = text.choices.plan.data;
  if (text.estimator->setup().execution.weights.gguf) return room;  // llama.cpp's buffers are the estimate's own
  const double each = room.pool->running_pages(text.estimator->tokens(scenario));
  const auto fit = static_cast<std::int64_t>(static_cast<double>(room.blocks) / each);
  e.largest_batch = replicas * std::min(fit, room.at_once);
  const std::int64_t most = text.memory->max_model_len > 0 ? text.memory->max_model_len : estimate::kMaxTokens;
  e.longest_context = std::min(room.longest_of(divide_up(scenario.batch, replicas)), most);
  return room;
}

namespace {

Estimated::Work run(const request::Resolved&, request::Generation& text) {
  Estimated::Text made{&text};
  estimate::Estimate& e = made.estimate = text.estimator->run(text.scenario);
  if (e.fits && !text.step.empty()) {
    estimate::Phase& step = e.phases.emplace_back();
    text.estimator->mixed_step(text.step, step);
    step.name = "step";
  }
  made.room = pool_of(text, text.scenario, e);
  return made;
}

Estimated::Work run(const request::Resolved& r, request::Video& video) {
  Estimated::Film made{
      std::make_unique<estimate::VideoEstimator>(estimate::make_video_setup(r.video, r.device, video.choices))};
  made.estimate = made.estimator->run();
  return made;
}

Estimated::Work run(const request::Resolved&, request::Training& training) {
  Estimated::Trained made{&training};
  training.estimator->run(training.scenario, training.choices.plan, training.options, made.estimate);
  return made;
}

// Of an engine that does not start.
std::optional<Error> refusal(const request::Resolved&, const Estimated::Film&) { return std::nullopt; }
std::optional<Error> refusal(const request::Resolved&, const Estimated::Trained&) { return std::nullopt; }
std::optional<Error> refusal(const request::Resolved& r, const Estimated::Text& text) {
  const std::int64_t most = text.of->memory ? text.of->memory->max_model_len : 0;
  if (const std::int64_t asked = text.of->estimator->tokens(text.of->scenario); most > 0 && asked > most) {
    return Error::infeasible(fmt::format("a request of {} tokens is longer than `max-model-len`", asked),
                             fmt::format("`max-model-len` {}", asked));
  }
  if (!text.room || text.room->refusal.empty()) return std::nullopt;
  return Error::infeasible(
      fmt::format("{} does not start on {}: {}", r.model().name, r.device.name, text.room->refusal), text.room->remedy);
}

}  // namespace

Estimated::Estimated(const request::Request& request, request::Sources& sources)
    : Estimated(request::resolve(request, sources)) {}

Estimated::Estimated(std::unique_ptr<request::Resolved> resolved)
    : resolved_(std::move(resolved)),
      work_(std::visit([&](auto& work) { return run(*resolved_, work); }, resolved_->work)) {}

Estimated::~Estimated() = default;

result::Generation Estimated::Text::result(bool curve) const {
  std::vector<estimate::ContextPoint> points;
  if (curve) points = estimate::context_curve(*of->estimator, estimate);
  result::Generation result = result::generation(*of->estimator, estimate, std::move(points));
  result.room = room;
  result.log = log;
  return result;
}

void Estimated::compare(estimate::EngineLog log) {
  auto* text = std::get_if<Text>(&work_);
  if (text == nullptr)
    throw Error::bad_input("`engine-log`: only servers of text write one that is read", "leave it out");
  estimate::Estimator& estimator = *text->of->estimator;
  if (estimator.setup().execution.model->encoder) {
    throw Error::bad_input("`engine-log`: an encoder caches nothing", "leave it out");
  }
  if (!text->room) {
    text->of->memory = request::engine_memory(*resolved_, estimator.setup());
    text->room = pool_of(*text->of, text->of->scenario, text->estimate);
  }
  estimate::compare(log, *text->room, text->estimate.memory);
  text->log = std::move(log);
}

std::optional<Error> Estimated::infeasible() const {
  return std::visit(
      [&](const auto& work) {
        if (!work.estimate.fits) return std::optional(request::infeasible(*resolved_, work.estimate));
        return refusal(*resolved_, work);
      },
      work_);
}

std::string Estimated::json() const {
  std::string document = match(
      work_, [](const Text& text) { return result::document("llmperf.estimate", text.result(true)); },
      [](const Film& film) {
        return result::document("llmperf.estimate", result::video(*film.estimator, film.estimate));
      },
      [](const Trained& trained) {
        return result::document("llmperf.training", result::Training(trained.of->estimator->setup(), trained.estimate));
      });
  return with_request(std::move(document), resolved_->asked);
}

void Estimated::fill(points::Row& row) const {
  match(
      work_,
      [&](const Text& text) {
        result::Generation result(text.of->estimator->setup());
        result.estimate = &text.estimate;
        result.room = text.room;
        result::fill_row(row, &result);
      },
      [&](const Film& film) {
        const result::Video result(film.estimator->setup(), film.estimate);
        result::fill_row(row, &result);
      },
      [&](const Trained& trained) {
        const result::Training result(trained.of->estimator->setup(), trained.estimate);
        result::fill_row(row, &result);
      });
}

std::vector<result::Column> Estimated::columns() const {
  if (std::holds_alternative<Film>(work_)) return result::columns(result::type_of<result::Video>());
  if (std::holds_alternative<Trained>(work_)) return result::columns(result::type_of<result::Training>());
  return result::columns(result::type_of<result::Generation>());
}

std::string with_request(std::string json, const request::Request& request) {
  json.erase(json.rfind("\n}"));
  json += ",\n  \"request\": ";
  json += to_json(request);
  json += "\n}\n";
  return json;
}

void refuse_beside(const request::Request& request, bool pools) {
  const auto refuse = [&](const char* name) {
    if (!get(request, request::field(name))) return;
    throw Error::bad_input(fmt::format("`{}`: only an estimate by itself shows it", name), "leave it out");
  };
  refuse("step");
  for (const char* name : request::kPoolFields) {
    if (pools) refuse(name);
  }
}

void check_complete(const request::Request& request, const std::string& hint) {
  for (const char* name : {"model", "hw"}) {
    if (!get(request, request::field(name))) throw Error::bad_input(fmt::format("`{}` is required", name), hint);
  }
}

Explained explain(const request::Request& request, request::Sources& sources, const std::string& number) {
  refuse_beside(request, false);
  const auto resolved = request::resolve_setup(request, sources);
  auto& text = std::get<request::Generation>(resolved->work);
  text.scenario = request::scenario_of(request, resolved->model());
  request::check_scenario(text.scenario, text.choices);
  const estimate::Estimate e = text.estimator->run(text.scenario);
  Explained explained;
  std::optional<estimate::Explanation> pool;
  if (text.memory) {
    pool = estimate::explain_pool(*text.memory, estimate::kv_capacity(*text.estimator, *text.memory));
  }
  if (!number.empty()) {
    explained.one = pool && number == estimate::kPoolTokens ? *pool : estimate::explain(*text.estimator, e, number);
    return explained;
  }
  if (pool) explained.all.paths.push_back({pool->path, pool->value, pool->unit});
  for (const std::string& path : estimate::explainable_paths(*text.estimator, e)) {
    const estimate::Explanation x = estimate::explain(*text.estimator, e, path);
    explained.all.paths.push_back({path, x.value, x.unit});
  }
  return explained;
}

std::string Explained::json() const {
  return one ? result::document("llmperf.explanation", *one) : result::document("llmperf.explainable", all);
}

}  // namespace llmperf::service
