// `llmperf estimate` and `llmperf explain`.
#include "cli/estimate.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/files.h"
#include "import/engine_log.h"
#include "report/reports.h"
#include "report/trace.h"
#include "result/measured.h"

namespace llmperf::cli {
namespace {

using report::step_trace;

constexpr std::size_t kMostLogBytes = 64 << 20;  // of a server that has run for days

struct EstimateFlags : RequestFlags {
  std::string number;  // of explain
  report::Detail detail = report::Detail::summary;
  std::string log;
};

// What `replay` would call its ops, where these are told one by one.
template <class Result>
Result with_rows(Result result, report::Detail detail) {
  if (detail == report::Detail::ops) result.columns = &result::measured_columns;
  return result;
}

}  // namespace

Answer answer_of(const service::Estimated& estimated, report::Detail detail, bool curve) {
  using service::Estimated;
  struct Reports {
    report::Detail detail;
    bool curve;
    report::Report operator()(const Estimated::Text& text) const {
      return report::estimate_report(with_rows(text.result(curve), detail), detail,
                                     step_trace(*text.of->estimator, text.estimate));
    }
    report::Report operator()(const Estimated::Film& film) const {
      return report::video_report(with_rows(result::video(*film.estimator, film.estimate), detail), detail,
                                  step_trace(*film.estimator, film.estimate));
    }
    report::Report operator()(const Estimated::Trained& trained) const {
      return report::training_report(
          with_rows(result::Training(trained.of->estimator->setup(), trained.estimate), detail), detail,
          step_trace(*trained.of->estimator, trained.estimate));
    }
  };
  Answer answer{std::visit(Reports{detail, curve}, estimated.work()), estimated.infeasible()};
  answer.report->json = service::with_request(std::move(answer.report->json), estimated.resolved().asked);
  return answer;
}

Flag& add_detail(Command& command, report::Detail& detail, const char* about) {
  using report::Detail;
  return command.add("--detail", detail, {{"summary", Detail::summary}, {"full", Detail::full}, {"ops", Detail::ops}},
                     "LEVEL", about);
}

namespace {

request::Request read_request(const std::string& path) {
  const GivenText json = read_given(path);
  return request::parse_request(descriptor::parse_json(json.text, json.name));
}

}  // namespace

request::Request over(request::Request all, const request::Request& flags) {
  for (const request::Field& field : request::fields()) {
    if (const auto value = get(flags, field)) set(all, field, *value);
  }
  return all;
}

request::Request RequestFlags::asked() const { return file.empty() ? request : over(read_request(file), request); }

void add_request_file(Command& command, RequestFlags& flags) {
  command.add("--request", flags.file, "FILE",
              "JSON of a request, or a result that was saved with one; - is stdin; flags go over it");
}

void add_request(Command& command, RequestFlags& flags, std::string_view workloads) {
  command.add_fields(flags.request, workloads);
  for (const char* flag : {"--model", "--hw"}) command.find(flag)->required().unless = "--request";
  add_request_file(command, flags);
}

namespace {

// What is asked for. `command`: that is asked, for the message about what is missing.
request::Request request_of(const EstimateFlags& flags, const char* command) {
  request::Request request = flags.asked();
  service::check_complete(request, fmt::format("llmperf {} --help says what it takes", command));
  return request;
}

Answer estimate_answer(const EstimateFlags& flags, const Context& context) {
  request::Sources sources;
  service::Estimated estimated(request_of(flags, "estimate"), sources);
  if (!flags.log.empty()) {
    estimated.compare(import::read_engine_log(descriptor::read_text_file(flags.log, kMostLogBytes), flags.log));
  }
  // A study picks parts of the whole page.
  const bool part = context.caught != nullptr && !context.has("--detail");
  const report::Detail detail = part ? report::Detail::full : flags.detail;
  Answer answer = answer_of(estimated, detail, context.output->wants(report::Format::json));
  if (detail == report::Detail::summary)
    answer.report->document.push_back(report::Paragraph{"--detail full says more, --detail ops each operation."});
  return answer;
}

Answer explain_answer(const EstimateFlags& flags, const Context&) {
  request::Sources sources;
  const service::Explained explained = service::explain(request_of(flags, "explain"), sources, flags.number);
  return {explained.one ? report::explain_report(*explained.one) : report::explainable_report(explained.all)};
}

}  // namespace

void describe_estimate(Command& command) {
  EstimateFlags& flags = answers(command, estimate_answer, Traced::yes);
  add_request(command, flags, "tvr");
  add_detail(command, flags.detail,
             "summary (what fits on a screen), full (all that was assumed, phases, memory, exchanges, the figures it "
             "rests on) or ops (every op of each phase, too)")
      .group = "Output";
  command.add(
      "--engine-log", flags.log, "FILE",
      "start-up log of vLLM, SGLang, TensorRT-LLM, llama.cpp or Ollama: what it prints of its memory beside what "
      "is predicted of it");
}

void describe_explain(Command& command) {
  EstimateFlags& flags = answers(command, explain_answer);
  command.add("number", flags.number, "",
              "path of the number, as in the JSON output (ttft_s, phases.decode.ops.attention.bytes); without it all "
              "paths are listed");
  add_request(command, flags, "t");
}

}  // namespace llmperf::cli
