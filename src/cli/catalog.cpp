// `llmperf list` and `llmperf show`.
#include "descriptor/catalog.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "hardware/device.h"
#include "model/decoder.h"
#include "report/catalog_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string what;
  std::string name;
  std::string weights;
  std::string kv;
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

int show_action(const Flags& flags) {
  const descriptor::Kind kind = kind_value(flags.what, {"model", "models"}, {"hardware", "device", "devices"});
  if (kind == descriptor::Kind::device) {
    if (!flags.weights.empty() || !flags.kv.empty()) throw Error::bad_input("--weights and --kv are for models");
    const hardware::Device device = hardware::load_device(flags.name);
    Output output(flags.output);
    output.write(report::hardware_report(device));
    return kExitDone;
  }
  const model::Decoder decoder = model::load_decoder(flags.name);
  const std::string own = decoder.default_weights.empty() ? "bf16" : decoder.default_weights;
  const model::WeightScheme scheme = model::parse_weight_scheme(flags.weights.empty() ? own : flags.weights);
  const Dtype kv = flags.kv.empty() ? Dtype::bf16 : model::parse_kv_scheme(flags.kv);
  Output output(flags.output);
  output.write(report::model_report(decoder, scheme, kv));
  return kExitDone;
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
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return show_action(*flags); }; });
}

}  // namespace llmperf::cli
