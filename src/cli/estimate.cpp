// `llmperf estimate` and `llmperf explain`.
#include "cli/estimate.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "cli/command_line.h"
#include "estimate/context_curve.h"
#include "estimate/explain.h"
#include "report/reports.h"
#include "report/step_trace.h"
#include "request/hints.h"
#include "result/explanation.h"
#include "result/training.h"
#include "result/video.h"

namespace llmperf::cli {
namespace {

using request::Resolved;

struct EstimateFlags {
  std::string file;
  std::string number;  // of explain
  request::Request request;
  report::Detail detail = report::Detail::summary;
};

template <class Estimate>
Answer answer_of(const Resolved& r, const Estimate& e, report::Report report) {
  Answer answer{std::move(report)};
  if (!e.fits) answer.error = infeasible(r, e);
  return answer;
}

Answer answer_of(Resolved& r, request::Generation& text, report::Detail detail, bool curve) {
  estimate::Estimate e = text.estimator->run(text.scenario);
  std::vector<estimate::ContextPoint> points;
  if (curve) points = estimate::context_curve(*text.estimator, e);
  if (e.fits && !text.step.empty()) {
    estimate::Phase& step = e.phases.emplace_back();
    text.estimator->mixed_step(text.step, step);
    step.name = "step";
  }
  result::Generation result = result::generation(*text.estimator, e, std::move(points));
  if (text.memory) result.room = estimate::kv_capacity(*text.estimator, *text.memory);
  return answer_of(r, e, report::estimate_report(result, detail, report::step_trace(*text.estimator, e)));
}

Answer answer_of(Resolved& r, request::Video& video, report::Detail detail, bool) {
  estimate::VideoEstimator estimator(estimate::make_video_setup(r.video, r.device, video.choices));
  const estimate::VideoEstimate e = estimator.run();
  return answer_of(r, e, report::video_report(result::video(estimator, e), detail, report::step_trace(estimator, e)));
}

Answer answer_of(Resolved& r, request::Training& training, report::Detail detail, bool) {
  estimate::TrainingEstimate e;
  training.estimator->run(training.scenario, training.choices.plan, training.options, e);
  const auto trace = report::step_trace(*training.estimator, e);
  return answer_of(r, e, report::training_report({training.estimator->setup(), e}, detail, trace));
}

}  // namespace

std::string with_request(std::string json, const request::Request& request) {
  json.erase(json.rfind("\n}"));
  return json + ",\n  \"request\": " + to_json(request) + "\n}\n";
}

Answer answer(Resolved& resolved, report::Detail detail, bool curve) {
  Answer answer = std::visit([&](auto& work) { return answer_of(resolved, work, detail, curve); }, resolved.work);
  answer.report->json = with_request(std::move(answer.report->json), resolved.asked);
  return answer;
}

Flag& add_detail(Command& command, report::Detail& detail, const char* about) {
  return command.add("--detail", detail, {{"summary", report::Detail::summary}, {"ops", report::Detail::ops}}, "LEVEL",
                     about);
}

request::Request read_request(const std::string& path) {
  if (path == "-") {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    return request::parse_request(descriptor::parse_json(text, "(stdin)"));
  }
  return request::parse_request(descriptor::parse_json(descriptor::read_text_file(path), path));
}

request::Request merged(const request::Request& under, const request::Request& over) {
  request::Request all = under;
  for (const request::Field& field : request::fields()) {
    if (const auto value = get(over, field)) set(all, field, *value);
  }
  return all;
}

void check_complete(const request::Request& request, const std::string& hint) {
  for (const char* name : {"model", "hw"}) {
    if (!get(request, request::field(name))) throw Error::bad_input(fmt::format("`{}` is required", name), hint);
  }
}

void refuse_beside(const request::Request& request) {
  for (const char* name : {"step", "kv-utilisation"}) {
    if (!get(request, request::field(name))) continue;
    throw Error::bad_input(fmt::format("`{}`: only `llmperf estimate` shows it", name), "leave it out");
  }
}

namespace {

// What the file asks for with the flags over it. `command`: that is asked, for the message about what is missing.
request::Request request_of(const EstimateFlags& flags, const char* command) {
  request::Request request = flags.file.empty() ? flags.request : merged(read_request(flags.file), flags.request);
  check_complete(request, fmt::format("llmperf {} --help says what it takes", command));
  return request;
}

Answer estimate_answer(const EstimateFlags& flags, const Context& context) {
  request::Sources sources;
  const auto resolved = resolve(request_of(flags, "estimate"), sources);
  return answer(*resolved, flags.detail, context.output->wants(report::Format::json));
}

Answer explain_answer(const EstimateFlags& flags, const Context&) {
  request::Sources sources;
  const request::Request request = request_of(flags, "explain");
  refuse_beside(request);
  const auto resolved = request::resolve_setup(request, sources);
  auto& text = std::get<request::Generation>(resolved->work);
  text.scenario = request::scenario_of(request, resolved->model());
  request::check_scenario(text.scenario, text.choices);
  const estimate::Estimate e = text.estimator->run(text.scenario);
  if (!flags.number.empty()) {
    return {report::explain_report(estimate::explain(*text.estimator, e, flags.number))};
  }
  result::Explainable explainable;
  for (const std::string& path : estimate::explainable_paths(e)) {
    const estimate::Explanation x = estimate::explain(*text.estimator, e, path);
    explainable.paths.push_back({path, x.value, x.unit});
  }
  return {report::explainable_report(explainable)};
}

void add_request(Command& command, EstimateFlags& flags, std::string_view workloads) {
  command.add_fields(flags.request, workloads);
  for (const char* flag : {"--model", "--hw"}) command.find(flag)->required().unless = "--request";
  command.add("--request", flags.file, "FILE",
              "JSON of a request, or a result that was saved with one; - is stdin; flags go over it");
}

}  // namespace

void add_estimate(Command& root) {
  Command& command =
      root.add_command("estimate", "latency, throughput and memory of a model; with --training, of a training step");
  EstimateFlags& flags = answers(command, estimate_answer, Traced::yes);
  add_request(command, flags, "tvr");
  add_detail(command, flags.detail, "summary or ops (every op of each phase)").group = "Output";
}

void add_explain(Command& root) {
  Command& command = root.add_command("explain", "the formula of any number of an estimate, with its values");
  EstimateFlags& flags = answers(command, explain_answer);
  command.add("number", flags.number, "",
              "path of the number, as in the JSON output (ttft_s, phases.decode.ops.attention.bytes); without it all "
              "paths are listed");
  add_request(command, flags, "t");
}

}  // namespace llmperf::cli
