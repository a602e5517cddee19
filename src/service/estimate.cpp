#include "service/estimate.h"

#include <fmt/format.h>

#include "base/match.h"
#include "estimate/explain.h"
#include "estimate/kv_capacity.h"
#include "result/document.h"
#include "result/row.h"

namespace llmperf::service {
namespace {

Estimated::Work run(const request::Resolved&, request::Generation& text) {
  Estimated::Text made{&text};
  estimate::Estimate& e = made.estimate = text.estimator->run(text.scenario);
  if (e.fits && !text.step.empty()) {
    estimate::Phase& step = e.phases.emplace_back();
    text.estimator->mixed_step(text.step, step);
    step.name = "step";
  }
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
  if (of->memory) {
    estimate::EngineMemory memory = *of->memory;
    memory.sequence_tokens = of->estimator->tokens(of->scenario);
    result.room = estimate::kv_capacity(*of->estimator, memory);
  }
  return result;
}

std::optional<Error> Estimated::infeasible() const {
  return std::visit(
      [&](const auto& work) {
        return work.estimate.fits ? std::nullopt : std::optional(request::infeasible(*resolved_, work.estimate));
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

void refuse_beside(const request::Request& request) {
  for (const char* name : {"step", "kv-utilisation"}) {
    if (!get(request, request::field(name))) continue;
    throw Error::bad_input(fmt::format("`{}`: only an estimate by itself shows it", name), "leave it out");
  }
}

void check_complete(const request::Request& request, const std::string& hint) {
  for (const char* name : {"model", "hw"}) {
    if (!get(request, request::field(name))) throw Error::bad_input(fmt::format("`{}` is required", name), hint);
  }
}

Explained explain(const request::Request& request, request::Sources& sources, const std::string& number) {
  refuse_beside(request);
  const auto resolved = request::resolve_setup(request, sources);
  auto& text = std::get<request::Generation>(resolved->work);
  text.scenario = request::scenario_of(request, resolved->model());
  request::check_scenario(text.scenario, text.choices);
  const estimate::Estimate e = text.estimator->run(text.scenario);
  Explained explained;
  if (!number.empty()) {
    explained.one = estimate::explain(*text.estimator, e, number);
    return explained;
  }
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
