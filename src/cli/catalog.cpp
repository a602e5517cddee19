// `llmperf list` and `llmperf show`.
#include "descriptor/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/files.h"
#include "cli/output.h"
#include "hardware/device.h"
#include "hardware/engine.h"
#include "model/model_file.h"
#include "model/video_dit.h"
#include "report/reports.h"
#include "result/catalog.h"
#include "result/study.h"

namespace llmperf::cli {
namespace {

using descriptor::Kind;

struct CatalogFlags {
  Kind kind = Kind::model;
  std::string name;
  request::Request request;  // what a model is sized with
  bool tensors = false;
  std::string emit_model;
};

// Rows and comment of a built-in set, without reading its columns.
report::MeasurementSet measurement_set(const std::string& name) {
  report::MeasurementSet set;
  set.name = name;
  const descriptor::Text text = descriptor::load_text(descriptor::Kind::measurements, name);
  for (const std::string_view line : split(text.text, '\n')) {
    if (line.starts_with('#')) {
      set.about += (set.about.empty() ? "" : " ") + std::string(trim(line.substr(1)));
    } else if (!trim(line).empty()) {
      ++set.rows;
    }
  }
  --set.rows;  // the header
  return set;
}

Answer list_answer(const CatalogFlags& flags, const Context&) {
  const std::vector<std::string> names = descriptor::names(flags.kind);
  switch (flags.kind) {
    case Kind::runtime: {
      report::RuntimeList list;
      for (hardware::RuntimeProfile& profile : hardware::all_runtime_profiles()) list.runtimes.push_back({profile});
      list.engines = hardware::all_engines();
      return {report::runtime_list_report(list)};
    }
    case Kind::measurements: {
      report::MeasurementList list;
      for (const std::string& name : names) list.measurements.push_back(measurement_set(name));
      return {report::measurement_list_report(list)};
    }
    case Kind::scenario: {
      report::StudyList list;
      for (const std::string& name : names) list.studies.push_back({name, study::load_study(name)});
      return {report::study_list_report(list)};
    }
    case Kind::device: {
      report::DeviceList list;
      for (const std::string& name : names) list.hardware.push_back({hardware::load_device(name)});
      return {report::hardware_list_report(list)};
    }
    default: {
      report::ModelList list;
      for (const std::string& name : model::decoder_names()) list.add(model::load_decoder(name));
      for (const std::string& name : model::video_names()) list.add(model::load_video_dit(name));
      return {report::model_list_report(list)};
    }
  }
}

report::Report model_report(const CatalogFlags& flags) {
  const model::ModelFile file = model::load_model(flags.name, flags.request.assume.value_or(""));
  const model::Decoder& decoder = file.decoder;
  const request::Request& asked = flags.request;
  const model::GgufEra era = asked.gguf_era ? model::parse_gguf_era(*asked.gguf_era) : model::GgufEra::v2026;

  model::WeightLayout layout;
  std::vector<model::GgufTensor> tensors;
  const bool stored = file.stored && !asked.weights;
  if (stored) {
    layout = file.stored->layout;
  } else if (!asked.weights) {
    layout = model::checkpoint_layout(decoder, Dtype::bf16);
  } else if (const model::GgufFileType* type = model::gguf_weights(*asked.weights)) {
    tensors = model::quantised_tensors(decoder, *type, era);
    layout = model::gguf_layout(decoder, tensors, std::string(type->name));
  } else {
    layout = model::make_layout(decoder, *asked.weights, Dtype::bf16, era);
  }
  if (asked.gguf_era && (stored || !layout.gguf)) {
    throw Error::bad_input("--gguf-era is for a GGUF type as --weights", "--weights q4_k_m");
  }
  const std::string own_kv = layout.gguf ? "fp16" : decoder.default_kv.empty() ? "bf16" : decoder.default_kv;
  const model::ElementFormat kv = model::parse_kv_scheme(asked.kv.value_or(own_kv));
  report::ModelShown view{.model = decoder,
                          .layout = layout,
                          .kv = {asked.cache_type_k ? model::parse_kv_scheme(*asked.cache_type_k) : kv,
                                 asked.cache_type_v ? model::parse_kv_scheme(*asked.cache_type_v) : kv},
                          .tensors = stored        ? &file.stored->tensors
                                     : layout.gguf ? &tensors
                                                   : nullptr,
                          .file = stored ? &file.stored->file : nullptr,
                          .list_tensors = flags.tensors};
  return report::model_report(view);
}

Answer show_answer(const CatalogFlags& flags, const Context& context) {
  if (flags.kind != Kind::model || model::is_video_dit(flags.name)) {
    context.refuse(
        {"--weights", "--kv", "--gguf-era", "--cache-type-k", "--cache-type-v", "--detail", "--assume", "--emit-model"},
        "for language models");
  }
  if (!flags.emit_model.empty()) {
    const std::string text = model::to_descriptor(model::load_decoder(flags.name, flags.request.assume.value_or("")));
    if (flags.emit_model == "-") return write_stdout(text), Answer{};
    WrittenFile(flags.emit_model).commit(text);
  }
  switch (flags.kind) {
    case Kind::scenario: return {report::study_summary_report({flags.name, study::load_study(flags.name)})};
    case Kind::runtime: {
      const std::vector<std::string> eras = descriptor::names(Kind::engine);
      if (std::find(eras.begin(), eras.end(), flags.name) != eras.end()) {
        return {report::runtime_report(hardware::by_itself(hardware::load_engine(flags.name)))};
      }
      return {report::runtime_report(hardware::parse_runtime_profile(descriptor::load(Kind::runtime, flags.name)))};
    }
    case Kind::device: return {report::hardware_report(hardware::load_device(flags.name))};
    default:
      if (!model::is_video_dit(flags.name)) return {model_report(flags)};
      return {report::video_model_report({model::load_video_dit(flags.name)})};
  }
}

// In the singular, in the plural and by other names. `shown`: those that help and completion name.
Flag& add_kind(Command& command, Kind& kind, bool measurements, std::string_view shown, const char* about) {
  Meanings<Kind> all = {{"model", Kind::model},      {"models", Kind::model},      {"hardware", Kind::device},
                        {"device", Kind::device},    {"devices", Kind::device},    {"runtime", Kind::runtime},
                        {"runtimes", Kind::runtime}, {"scenario", Kind::scenario}, {"scenarios", Kind::scenario}};
  if (measurements) all.emplace_back("measurements", Kind::measurements);
  Flag& flag = command.add("KIND", kind, all, "", about).required().offers(Values::Sort::words, shown);
  flag.otherwise.clear();
  return flag;
}

}  // namespace

void add_list(Command& root) {
  Command& command = root.add_command("list", "built-in models, hardware, runtimes, measurements or scenarios");
  CatalogFlags& flags = answers(command, list_answer);
  add_kind(command, flags.kind, true, "models hardware runtimes measurements scenarios",
           "models, hardware, runtimes, measurements or scenarios");
}

void add_show(Command& root) {
  Command& command = root.add_command(
      "show",
      "one model's exact parameter counts, one device's figures, a runtime profile or a scenario, with sources");
  CatalogFlags& flags = answers(command, show_answer);
  add_kind(command, flags.kind, false, "model hardware runtime scenario", "model, hardware, runtime or scenario");
  command.add("NAME", flags.name, "", "built-in name or file").required().offers(Values::Sort::paths);
  command.add("weights", flags.request).about = "model: weight scheme to size it with";
  command.add("kv", flags.request).about = "model: KV cache type to size it with";
  for (const char* field : {"assume", "gguf-era", "cache-type-k", "cache-type-v"}) command.add(field, flags.request);
  command.add("--emit-model", flags.emit_model, "FILE",
              "model: write its descriptor, to change and to give as a model; -: to stdout, instead of the report");
  command.add("--detail", flags.tensors, {{"summary", false}, {"tensors", true}}, "LEVEL",
              "model: summary, or tensors (every tensor, its type and its bytes)");
}

}  // namespace llmperf::cli
