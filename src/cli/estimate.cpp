// `llmperf estimate` and `llmperf explain`.
#include "cli/estimate.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
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
  std::string detail = "summary";
  OutputFlags output;
};

// The JSON with the request as its last key.
std::string with_request(std::string json, const request::Request& request) {
  json.erase(json.rfind("\n}"));
  return json + ",\n  \"request\": " + to_json(request) + "\n}\n";
}

Answer answer_of(Resolved& r, request::Generation& text, report::Detail detail, bool curve) {
  const estimate::Estimate e = text.estimator->run(text.scenario);
  std::vector<estimate::ContextPoint> points;
  if (curve) points = estimate::context_curve(*text.estimator, e);
  Answer answer{report::estimate_report(result::generation(*text.estimator, e, std::move(points)), detail,
                                        report::step_trace(*text.estimator, e)),
                std::nullopt};
  if (!e.fits) answer.infeasible = infeasible(r, e);
  return answer;
}

Answer answer_of(Resolved& r, request::Video& video, report::Detail detail, bool) {
  estimate::VideoEstimator estimator(estimate::make_video_setup(r.video, r.device, video.choices));
  const estimate::VideoEstimate e = estimator.run();
  Answer answer{report::video_report(result::video(estimator, e), detail, report::step_trace(estimator, e)),
                std::nullopt};
  if (!e.fits) answer.infeasible = infeasible(r, e);
  return answer;
}

Answer answer_of(Resolved& r, request::Training& training, report::Detail detail, bool) {
  estimate::TrainingEstimate e;
  training.estimator->run(training.scenario, training.choices.plan, training.options, e);
  Answer answer{
      report::training_report({training.estimator->setup(), e}, detail, report::step_trace(*training.estimator, e)),
      std::nullopt};
  if (!e.fits) answer.infeasible = infeasible(r, e);
  return answer;
}

}  // namespace

Answer answer(Resolved& resolved, report::Detail detail, bool curve) {
  Answer answer = std::visit([&](auto& work) { return answer_of(resolved, work, detail, curve); }, resolved.work);
  answer.report.json = with_request(std::move(answer.report.json), resolved.asked);
  return answer;
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

namespace {

request::Request request_of(const EstimateFlags& flags) {
  return flags.file.empty() ? flags.request : merged(read_request(flags.file), flags.request);
}

int estimate_action(const EstimateFlags& flags, const Context& context) {
  const report::Detail detail = detail_value(flags.detail);
  const request::Request request = request_of(flags);
  check_complete(request, "llmperf estimate --help says what it takes");
  request::Sources sources;
  const auto resolved = resolve(request, sources);
  Output output(flags.output, context);
  const Answer answered = answer(*resolved, detail, output.wants(report::Format::json));
  output.write(answered.report);
  if (answered.infeasible) throw Error(*answered.infeasible);
  return kExitDone;
}

int explain_action(const EstimateFlags& flags, const Context& context) {
  request::Sources sources;
  const request::Request request = request_of(flags);
  check_complete(request, "llmperf explain --help says what it takes");
  const auto resolved = request::resolve_setup(request, sources);
  auto& text = std::get<request::Generation>(resolved->work);
  text.scenario = request::scenario_of(request);
  request::check_scenario(text.scenario, text.choices);
  Output output(flags.output, context);
  const estimate::Estimate e = text.estimator->run(text.scenario);
  if (!flags.number.empty()) {
    output.write(report::explain_report(estimate::explain(*text.estimator, e, flags.number)));
    return kExitDone;
  }
  result::Explainable explainable;
  for (const std::string& path : estimate::explainable_paths(e)) {
    const estimate::Explanation x = estimate::explain(*text.estimator, e, path);
    explainable.paths.push_back({path, x.value, x.unit});
  }
  output.write(report::explainable_report(explainable));
  return kExitDone;
}

void require_unless_read(Command& command) {
  for (const char* flag : {"--model", "--hw"}) command.find(flag)->required().unless = "--request";
}

void add_request_file(Command& command, EstimateFlags& flags) {
  command.add("--request", flags.file, "FILE",
              "JSON of a request, or a result that was saved with one; - is stdin; flags go over it");
}

}  // namespace

void add_estimate(Command& root) {
  Command& command =
      root.add_command("estimate", "latency, throughput and memory of a model; with --training, of a training step");
  auto flags = std::make_shared<EstimateFlags>();
  command.add_fields(flags->request, "tvr");
  require_unless_read(command);
  add_request_file(command, *flags);
  command.add("--detail", flags->detail, "LEVEL", "summary or ops (every op of each phase)")
      .offers(Values::Sort::words, "summary ops")
      .group = "Output";
  add_output_flags(command, flags->output, Traced::yes);
  command.action = [flags](const Context& context) { return estimate_action(*flags, context); };
}

void add_explain(Command& root) {
  Command& command = root.add_command("explain", "the formula of any number of an estimate, with its values");
  auto flags = std::make_shared<EstimateFlags>();
  command.add("number", flags->number, "",
              "path of the number, as in the JSON output (ttft_s, phases.decode.ops.attention.bytes); without it all "
              "paths are listed");
  command.add_fields(flags->request, "t");
  require_unless_read(command);
  add_request_file(command, *flags);
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return explain_action(*flags, context); };
}

}  // namespace llmperf::cli
