// `llmperf list` and `llmperf show`.
#include "descriptor/catalog.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "hardware/device.h"
#include "model/model_file.h"
#include "model/video/video_dit.h"
#include "report/reports.h"
#include "result/study.h"
#include "service/catalog.h"

namespace llmperf::cli {
namespace {

using descriptor::Kind;

struct CatalogFlags {
  Kind kind = Kind::model;
  std::string name;
  request::Request request;  // what a model is sized with
  bool tensors = false;
  std::string emit;
};

Answer list_answer(const CatalogFlags& flags, const Context&) {
  switch (flags.kind) {
    case Kind::runtime: return {report::runtime_list_report(service::list_runtimes())};
    case Kind::measurements: return {report::measurement_list_report(service::list_measurements())};
    case Kind::scenario: return {report::study_list_report(service::list_studies())};
    case Kind::device: return {report::hardware_list_report(service::list_devices())};
    default: return {report::model_list_report(service::list_models())};
  }
}

Answer show_answer(const CatalogFlags& flags, const Context& context) {
  if (flags.kind != Kind::model || model::is_video_dit(flags.name)) {
    context.refuse(
        {"--weights", "--kv", "--gguf-era", "--cache-type-k", "--cache-type-v", "--detail", "--assume", "--emit"},
        "for language models");
  }
  if (!flags.emit.empty()) {
    context.refuse({"--json", "--format", "--export"}, "a model file is printed in place of a result");
    write_stdout(model::to_descriptor(model::load_decoder(flags.name, flags.request.assume.value_or(""))));
    return {};
  }
  switch (flags.kind) {
    case Kind::scenario: return {report::study_summary_report({flags.name, points::load_study(flags.name)})};
    case Kind::runtime: return {report::runtime_report(service::show_runtime(flags.name))};
    case Kind::device: return {report::hardware_report(hardware::load_device(flags.name))};
    default:
      if (!model::is_video_dit(flags.name)) {
        return {report::model_report(service::ShownModel(flags.name, flags.request, flags.tensors).shown())};
      }
      return {report::video_model_report({model::load_video_dit(flags.name)})};
  }
}

// In the singular, in the plural and by other names. `shown`: those that help and completion name.
Flag& add_kind(Command& command, Kind& kind, bool measurements, std::string_view shown, const char* about) {
  Meanings<Kind> all = {{"model", Kind::model},      {"models", Kind::model},      {"hardware", Kind::device},
                        {"device", Kind::device},    {"devices", Kind::device},    {"runtime", Kind::runtime},
                        {"runtimes", Kind::runtime}, {"scenario", Kind::scenario}, {"scenarios", Kind::scenario}};
  if (measurements) all.emplace_back("measurements", Kind::measurements);
  return command.add("KIND", kind, all, "", about).required().offers(Values::Sort::words, shown);
}

}  // namespace

void describe_list(Command& command) {
  CatalogFlags& flags = answers(command, list_answer);
  add_kind(command, flags.kind, true, "models hardware runtimes measurements scenarios",
           "models, hardware, runtimes, measurements or scenarios");
}

void describe_show(Command& command) {
  CatalogFlags& flags = answers(command, show_answer);
  add_kind(command, flags.kind, false, "model hardware runtime scenario", "model, hardware, runtime or scenario");
  command.add("NAME", flags.name, "", "built-in name or file").required().offers(Values::Sort::paths);
  command.add("weights", flags.request).about = "model: weight scheme to size it with";
  command.add("kv", flags.request).about = "model: KV cache type to size it with";
  for (const char* field : {"assume", "gguf-era", "cache-type-k", "cache-type-v"}) command.add(field, flags.request);
  command.add("--emit", flags.emit, "WHAT", "model: print its descriptor (model), to change and to give as a model")
      .one_of({"model"});
  command.add("--detail", flags.tensors, {{"summary", false}, {"tensors", true}}, "LEVEL",
              "model: summary, or tensors (every tensor, its type and its bytes)");
}

}  // namespace llmperf::cli
