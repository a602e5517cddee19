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
#include "report/catalog_report.h"

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

descriptor::Kind kind_value(const std::string& what, std::initializer_list<std::string> models,
                            std::initializer_list<std::string> devices) {
  if (std::find(models.begin(), models.end(), what) != models.end()) return descriptor::Kind::model;
  if (std::find(devices.begin(), devices.end(), what) != devices.end()) return descriptor::Kind::device;
  const std::vector<std::string> names = {*models.begin(), *devices.begin()};
  throw Error::bad_input(fmt::format("there is no {} to list or show", quote(what)), name_hint(what, names));
}

int list_action(const Flags& flags) {
  const descriptor::Kind kind = kind_value(flags.what, {"models", "model"}, {"hardware", "devices", "device"});
  Output output(flags.output);
  if (kind == descriptor::Kind::model) {
    std::vector<model::Decoder> models;
    for (const std::string& name : descriptor::names(kind)) models.push_back(model::load_decoder(name));
    output.write(report::model_list_report(models));
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

int show_model(const Flags& flags) {
  const bool list_tensors = lists_tensors(flags.detail);
  const model::ModelFile file = model::load_model(flags.name);
  const model::Decoder& decoder = file.decoder;
  const model::GgufEra era = era_value(flags.gguf);

  model::WeightLayout layout;
  std::vector<model::GgufTensor> tensors;
  const bool stored = file.stored && flags.weights.empty();
  if (stored) {
    layout = file.stored->layout;
  } else {
    const std::string own = decoder.default_weights.empty() ? "bf16" : decoder.default_weights;
    const std::string weights = flags.weights.empty() ? own : flags.weights;
    if (const model::GgufFileType* type = model::gguf_weights(weights)) {
      tensors = model::quantised_tensors(decoder, *type, era);
      layout = model::gguf_layout(decoder, tensors, std::string(type->name));
    } else {
      layout = model::make_layout(decoder, weights, Dtype::bf16, era);
    }
  }
  if (!flags.gguf.era.empty() && (stored || !layout.gguf)) {
    throw Error::bad_input("--gguf-era is for a GGUF type as --weights", "--weights q4_k_m");
  }
  const model::ElementFormat kv = flags.kv.empty() ? model::element_format(layout.gguf ? Dtype::fp16 : Dtype::bf16)
                                                   : model::parse_kv_scheme(flags.kv);
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

int show_action(const Flags& flags) {
  const descriptor::Kind kind = kind_value(flags.what, {"model", "models"}, {"hardware", "device", "devices"});
  if (kind == descriptor::Kind::device) {
    if (!flags.weights.empty() || !flags.kv.empty() || any_given(flags.gguf) || flags.detail != "summary") {
      throw Error::bad_input("--weights, --kv, --detail and the options of GGUF files are for models");
    }
    const hardware::Device device = hardware::load_device(flags.name);
    Output output(flags.output);
    output.write(report::hardware_report(device));
    return kExitDone;
  }
  return show_model(flags);
}

}  // namespace

void add_list(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("list", "built-in models or hardware");
  auto flags = std::make_shared<Flags>();
  command->add_option("KIND", flags->what, "models or hardware")->required();
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return list_action(*flags); }; });
}

void add_show(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("show", "one model's exact parameter counts, or one device's figures, with sources");
  auto flags = std::make_shared<Flags>();
  command->add_option("KIND", flags->what, "model or hardware")->required();
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
