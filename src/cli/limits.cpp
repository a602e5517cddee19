#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "estimate/speculative.h"
#include "report/limits_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string models;
  std::string hardware;
  std::string weights = "w16kv16,w8kv16,w4kv16";
  std::string kv = "fp16";
  std::string units = "si";
  std::string draft;
  std::string accept;
  std::string batch;
  std::string context;
  OutputFlags output;
};

cost::UnitConvention units_value(const std::string& text) {
  if (const auto units = cost::parse_unit_convention(text)) return *units;
  const std::vector<std::string> names = {"si", "article"};
  throw Error::bad_input(fmt::format("--units: unknown convention {}", quote(text)), name_hint(text, names));
}

// The KV cache type an estimate takes for the width a precision names; nothing but the common widths has one.
std::string kv_of(const cost::LimitPrecision& p, const std::string& fallback) {
  if (!p.names_kv) return fallback;
  if (p.kv_bits == 32) return "fp32";
  if (p.kv_bits == 16) return "fp16";
  if (p.kv_bits == 8) return "int8";
  if (p.kv_bits == 4) return "int4";
  throw Error::bad_input(fmt::format("--draft: no KV cache type has {} bits", p.kv_bits), "use kv32, kv16, kv8 or kv4");
}

// Nothing without --draft.
std::optional<estimate::SpeculativeScenario> speculative_scenario(const Flags& flags) {
  const std::string given = flags.accept + flags.batch + flags.context;
  if (flags.draft.empty() && given.empty()) return std::nullopt;
  if (flags.draft.empty() || flags.accept.empty()) {
    throw Error::bad_input("--draft and --accept go together, --batch and --context with them",
                           "--draft MODEL --accept 0.8");
  }
  estimate::SpeculativeScenario scenario;
  scenario.acceptance = double_value("--accept", flags.accept, 0, 1);
  if (!flags.batch.empty()) scenario.batch = int_value("--batch", flags.batch, 1, estimate::kMaxBatch);
  if (!flags.context.empty()) scenario.context = int_value("--context", flags.context, 1, estimate::kMaxTokens);
  return scenario;
}

report::SpeculativeStudy speculative_study(const Flags& flags, const estimate::SpeculativeScenario& scenario,
                                           const model::Decoder& target, const hardware::Device& device,
                                           const cost::LimitPrecision& precision) {
  const model::Decoder draft = model::load_decoder(flags.draft);
  estimate::Choices choices;
  choices.weights = precision.scheme;
  choices.kv = kv_of(precision, flags.kv);
  const estimate::Setup target_setup = estimate::make_setup(target, device, choices);
  const estimate::Setup draft_setup = estimate::make_setup(draft, device, choices);
  return {draft.name, target_setup.execution.weights.name, draft_setup.execution.weights.name,
          estimate::speculate(target_setup, draft_setup, scenario)};
}

int limits_action(const Flags& flags) {
  const cost::UnitConvention units = units_value(flags.units);
  const double kv_bits = bits(model::parse_kv_scheme(flags.kv));
  std::vector<cost::LimitPrecision> precisions;
  for (const std::string& text : list_value("--weights", flags.weights)) {
    precisions.push_back(cost::parse_limit_precision(text, kv_bits));
  }
  const std::vector<std::string> names = list_value("--model", flags.models);
  const std::optional<estimate::SpeculativeScenario> scenario = speculative_scenario(flags);
  if (scenario && names.size() > 1) throw Error::bad_input("--draft takes a single --model");
  const hardware::Device device = hardware::load_device(flags.hardware);
  Output output(flags.output);
  std::vector<report::ModelLimits> models;
  std::optional<report::SpeculativeStudy> study;
  for (const std::string& name : names) {
    const model::Decoder decoder = model::load_decoder(name);
    report::ModelLimits row{decoder.name, {}};
    for (const cost::LimitPrecision& p : precisions) row.limits.push_back(compute_limits(decoder, device, p, units));
    models.push_back(std::move(row));
    if (scenario) study = speculative_study(flags, *scenario, decoder, device, precisions.front());
  }
  output.write(report::limits_report(models, device, study));
  if (study && !study->speculation.fits) {
    const estimate::Speculation& s = study->speculation;
    Diagnostic d;
    d.message =
        fmt::format("{} and {} do not fit on {} together: they need {}, it has {}; the times assume that they do",
                    models.front().model, study->draft, device.name, format_bytes_binary(s.memory),
                    format_bytes_binary(s.capacity));
    d.hint = "choose narrower --weights or a larger device";
    throw Error(ErrorKind::infeasible, {d});
  }
  return kExitDone;
}

}  // namespace

void add_limits(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("limits", "closed-form limits of a single user: KV tokens, inflection points, decode line");
  auto flags = std::make_shared<Flags>();
  add_model_flag(*command, flags->models, "one model or a comma-separated family");
  add_hardware_flag(*command, flags->hardware);
  command
      ->add_option("--weights", flags->weights,
                   "comma-separated precisions: w16kv16, w4kv16, bf16, fp8, w4a16-g128, 4.5 …")
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--kv", flags->kv, "KV cache type where a precision names none")
      ->type_name("SCHEME")
      ->capture_default_str();
  command->add_option("--units", flags->units, "si, or article (K = 1024 throughout, plain vector rate)")
      ->type_name("UNITS")
      ->capture_default_str();
  command->add_option("--draft", flags->draft, "speculative decoding: the draft model")->type_name("MODEL");
  command->add_option("--accept", flags->accept, "speculative decoding: chance that a draft token is accepted")
      ->type_name("P");
  command->add_option("--batch", flags->batch, "speculative decoding: sequences in lockstep [1]")->type_name("N");
  command->add_option("--context", flags->context, "speculative decoding: cached tokens [512]")->type_name("N");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return limits_action(*flags); }; });
}

}  // namespace llmperf::cli
