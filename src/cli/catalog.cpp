// `llmperf list` and `llmperf show`.
#include "descriptor/catalog.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/gguf_flags.h"
#include "hardware/device.h"
#include "model/model_file.h"
#include "model/video_dit.h"
#include "report/catalog_report.h"
#include "report/runtime_report.h"
#include "report/study_report.h"
#include "report/video_model_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string what;
  std::string name;
  std::string weights;
  std::string kv;
  GgufFlags gguf;
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

int list_action(const Flags& flags) {
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
  Output output(flags.output);
  if (kind == Kind::runtime) {
    output.write(report::runtime_list_report(hardware::all_runtime_profiles()));
  } else if (kind == Kind::measurements) {
    std::vector<report::MeasurementSet> sets;
    for (const std::string& name : descriptor::names(kind)) sets.push_back(measurement_set(name));
    output.write(report::measurement_list_report(sets));
  } else if (kind == Kind::scenario) {
    std::vector<report::NamedStudy> studies;
    for (const std::string& name : descriptor::names(kind)) studies.push_back({name, study::load_study(name)});
    output.write(report::study_list_report(studies));
  } else if (kind == Kind::model) {
    std::vector<model::Decoder> models;
    for (const std::string& name : model::decoder_names()) models.push_back(model::load_decoder(name));
    std::vector<model::VideoDit> videos;
    for (const std::string& name : model::video_names()) videos.push_back(model::load_video_dit(name));
    output.write(report::model_list_report(models, videos));
  } else {
    std::vector<hardware::Device> devices;
    for (const std::string& name : descriptor::names(kind)) devices.push_back(hardware::load_device(name));
    output.write(report::hardware_list_report(devices));
  }
  return kExitDone;
}

bool lists_tensors(const std::string& detail) {
  if (detail == "summary" || detail == "tensors") return detail == "tensors";
  const std::vector<std::string> names = {"summary", "tensors"};
  throw Error::bad_input(fmt::format("--detail: unknown level {}", quote(detail)), name_hint(detail, names));
}

int show_video_model(const Flags& flags) {
  if (!flags.weights.empty() || !flags.kv.empty() || any_given(flags.gguf) || flags.detail != "summary") {
    throw Error::bad_input("--weights, --kv, --detail and the options of GGUF files are for language models");
  }
  Output output(flags.output);
  output.write(report::video_model_report(model::load_video_dit(flags.name)));
  return kExitDone;
}

int show_model(const Flags& flags) {
  if (model::is_video_dit(flags.name)) return show_video_model(flags);
  const bool list_tensors = lists_tensors(flags.detail);
  const model::ModelFile file = model::load_model(flags.name);
  const model::Decoder& decoder = file.decoder;
  const model::GgufEra era = era_value(flags.gguf);

  model::WeightLayout layout;
  std::vector<model::GgufTensor> tensors;
  const bool stored = file.stored && flags.weights.empty();
  if (stored) {
    layout = file.stored->layout;
  } else if (flags.weights.empty()) {
    layout = model::checkpoint_layout(decoder, Dtype::bf16);
  } else if (const model::GgufFileType* type = model::gguf_weights(flags.weights)) {
    tensors = model::quantised_tensors(decoder, *type, era);
    layout = model::gguf_layout(decoder, tensors, std::string(type->name));
  } else {
    layout = model::make_layout(decoder, flags.weights, Dtype::bf16, era);
  }
  if (!flags.gguf.era.empty() && (stored || !layout.gguf)) {
    throw Error::bad_input("--gguf-era is for a GGUF type as --weights", "--weights q4_k_m");
  }
  const std::string own_kv = layout.gguf ? "fp16" : decoder.default_kv.empty() ? "bf16" : decoder.default_kv;
  const model::ElementFormat kv = model::parse_kv_scheme(flags.kv.empty() ? own_kv : flags.kv);
  report::ModelView view{.model = decoder,
                         .layout = layout,
                         .kv = cache_value(flags.gguf, kv),
                         .tensors = stored        ? &file.stored->tensors
                                    : layout.gguf ? &tensors
                                                  : nullptr,
                         .file = stored ? &file.stored->file : nullptr,
                         .list_tensors = list_tensors};
  Output output(flags.output);
  output.write(report::model_report(view));
  return kExitDone;
}

void check_no_model_flags(const Flags& flags) {
  if (flags.weights.empty() && flags.kv.empty() && !any_given(flags.gguf) && flags.detail == "summary") return;
  throw Error::bad_input("--weights, --kv, --detail and the options of GGUF files are for models");
}

int show_action(const Flags& flags) {
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
    Output output(flags.output);
    output.write(report::study_summary_report(flags.name, study));
    return kExitDone;
  }
  if (kind == Kind::runtime) {
    Output output(flags.output);
    output.write(report::runtime_report(
        hardware::parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, flags.name))));
    return kExitDone;
  }
  if (kind == descriptor::Kind::device) {
    check_no_model_flags(flags);
    const hardware::Device device = hardware::load_device(flags.name);
    Output output(flags.output);
    output.write(report::hardware_report(device));
    return kExitDone;
  }
  return show_model(flags);
}

}  // namespace

void add_list(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("list", "built-in models, hardware, runtimes, measurements or scenarios");
  auto flags = std::make_shared<Flags>();
  command->add_option("KIND", flags->what, "models, hardware, runtimes, measurements or scenarios")->required();
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return list_action(*flags); }; });
}

void add_show(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand(
      "show",
      "one model's exact parameter counts, one device's figures, a runtime profile or a scenario, with sources");
  auto flags = std::make_shared<Flags>();
  command->add_option("KIND", flags->what, "model, hardware, runtime or scenario")->required();
  command->add_option("NAME", flags->name, "built-in name or file")->required();
  command->add_option("--weights", flags->weights, "model: weight scheme to size it with")->type_name("SCHEME");
  command->add_option("--kv", flags->kv, "model: KV cache type to size it with")->type_name("SCHEME");
  add_gguf_flags(*command, flags->gguf);
  command->add_option("--detail", flags->detail, "model: summary, or tensors (every tensor, its type and its bytes)")
      ->type_name("LEVEL")
      ->capture_default_str();
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return show_action(*flags); }; });
}

}  // namespace llmperf::cli
