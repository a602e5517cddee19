// `llmperf list` and `llmperf show`.
#include "descriptor/catalog.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "hardware/device.h"
#include "model/model_file.h"
#include "model/video_dit.h"
#include "report/reports.h"
#include "result/catalog.h"
#include "result/study.h"

namespace llmperf::cli {
namespace {

struct CatalogFlags {
  std::string what;
  std::string name;
  request::Request request;  // what a model is sized with
  std::string detail = "summary";
  OutputFlags output;
};

// One of several words for a kind of built-in data; the first of a kind is named in messages.
struct Word {
  std::string_view word;
  descriptor::Kind kind;
};
descriptor::Kind kind_value(const std::string& what, std::initializer_list<Word> words) {
  std::vector<std::string> names;
  std::optional<descriptor::Kind> last;
  for (const Word& w : words) {
    if (w.word == what) return w.kind;
    if (last != w.kind) names.emplace_back(w.word);
    last = w.kind;
  }
  throw Error::bad_input(fmt::format("there is no {} to list or show", quote(what)), name_hint(what, names));
}

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

int list_action(const CatalogFlags& flags, const Context& context) {
  using descriptor::Kind;
  const Kind kind = kind_value(flags.what, {{"models", Kind::model},
                                            {"model", Kind::model},
                                            {"hardware", Kind::device},
                                            {"devices", Kind::device},
                                            {"device", Kind::device},
                                            {"runtimes", Kind::runtime},
                                            {"runtime", Kind::runtime},
                                            {"measurements", Kind::measurements},
                                            {"scenarios", Kind::scenario},
                                            {"scenario", Kind::scenario}});
  Output output(flags.output, context);
  if (kind == Kind::runtime) {
    report::RuntimeList list;
    for (hardware::RuntimeProfile& profile : hardware::all_runtime_profiles()) list.runtimes.push_back({profile});
    output.write(report::runtime_list_report(list));
  } else if (kind == Kind::measurements) {
    report::MeasurementList list;
    for (const std::string& name : descriptor::names(kind)) list.measurements.push_back(measurement_set(name));
    output.write(report::measurement_list_report(list));
  } else if (kind == Kind::scenario) {
    report::StudyList list;
    for (const std::string& name : descriptor::names(kind)) list.studies.push_back({name, study::load_study(name)});
    output.write(report::study_list_report(list));
  } else if (kind == Kind::model) {
    report::ModelList list;
    for (const std::string& name : model::decoder_names()) list.add(model::load_decoder(name));
    for (const std::string& name : model::video_names()) list.add(model::load_video_dit(name));
    output.write(report::model_list_report(list));
  } else {
    report::DeviceList list;
    for (const std::string& name : descriptor::names(kind)) list.hardware.push_back({hardware::load_device(name)});
    output.write(report::hardware_list_report(list));
  }
  return kExitDone;
}

bool lists_tensors(const std::string& detail) {
  if (detail == "summary" || detail == "tensors") return detail == "tensors";
  const std::vector<std::string> names = {"summary", "tensors"};
  throw Error::bad_input(fmt::format("--detail: unknown level {}", quote(detail)), name_hint(detail, names));
}

bool sizes(const CatalogFlags& flags) { return flags.request != request::Request(); }

int show_video_model(const CatalogFlags& flags, const Context& context) {
  if (sizes(flags) || flags.detail != "summary") {
    throw Error::bad_input("--weights, --kv, --detail and the options of GGUF files are for language models");
  }
  Output output(flags.output, context);
  const model::VideoDit model = model::load_video_dit(flags.name);
  output.write(report::video_model_report({model}));
  return kExitDone;
}

int show_model(const CatalogFlags& flags, const Context& context) {
  if (model::is_video_dit(flags.name)) return show_video_model(flags, context);
  const bool list_tensors = lists_tensors(flags.detail);
  const model::ModelFile file = model::load_model(flags.name);
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
                          .list_tensors = list_tensors};
  Output output(flags.output, context);
  output.write(report::model_report(view));
  return kExitDone;
}

void check_no_model_flags(const CatalogFlags& flags) {
  if (!sizes(flags) && flags.detail == "summary") return;
  throw Error::bad_input("--weights, --kv, --detail and the options of GGUF files are for models");
}

int show_action(const CatalogFlags& flags, const Context& context) {
  using descriptor::Kind;
  const Kind kind = kind_value(flags.what, {{"model", Kind::model},
                                            {"models", Kind::model},
                                            {"hardware", Kind::device},
                                            {"device", Kind::device},
                                            {"devices", Kind::device},
                                            {"runtime", Kind::runtime},
                                            {"runtimes", Kind::runtime},
                                            {"scenario", Kind::scenario},
                                            {"scenarios", Kind::scenario}});
  if (kind == Kind::scenario) {
    check_no_model_flags(flags);
    const study::Study study = study::load_study(flags.name);
    Output output(flags.output, context);
    output.write(report::study_summary_report({flags.name, study}));
    return kExitDone;
  }
  if (kind == Kind::runtime) {
    Output output(flags.output, context);
    output.write(report::runtime_report(
        hardware::parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, flags.name))));
    return kExitDone;
  }
  if (kind == descriptor::Kind::device) {
    check_no_model_flags(flags);
    const hardware::Device device = hardware::load_device(flags.name);
    Output output(flags.output, context);
    output.write(report::hardware_report(device));
    return kExitDone;
  }
  return show_model(flags, context);
}

}  // namespace

void add_list(Command& root) {
  Command& command = root.add_command("list", "built-in models, hardware, runtimes, measurements or scenarios");
  auto flags = std::make_shared<CatalogFlags>();
  command.add("KIND", flags->what, "", "models, hardware, runtimes, measurements or scenarios")
      .required()
      .offers(Values::Sort::words, "models hardware runtimes measurements scenarios");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return list_action(*flags, context); };
}

void add_show(Command& root) {
  Command& command = root.add_command(
      "show",
      "one model's exact parameter counts, one device's figures, a runtime profile or a scenario, with sources");
  auto flags = std::make_shared<CatalogFlags>();
  command.add("KIND", flags->what, "", "model, hardware, runtime or scenario")
      .required()
      .offers(Values::Sort::words, "model hardware runtime scenario");
  command.add("NAME", flags->name, "", "built-in name or file").required().offers(Values::Sort::paths);
  command.add("weights", flags->request).about = "model: weight scheme to size it with";
  command.add("kv", flags->request).about = "model: KV cache type to size it with";
  for (const char* field : {"gguf-era", "cache-type-k", "cache-type-v"}) command.add(field, flags->request);
  command.add("--detail", flags->detail, "LEVEL", "model: summary, or tensors (every tensor, its type and its bytes)")
      .offers(Values::Sort::words, "summary tensors");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return show_action(*flags, context); };
}

}  // namespace llmperf::cli
