#include "result/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "estimate/speculative.h"
#include "report/reports.h"
#include "request/draft.h"
#include "request/names.h"
#include "request/resolve.h"
#include "result/basis.h"

namespace llmperf::cli {
namespace {

constexpr const char* kDefaultWeights = "w16kv16,w8kv16,w4kv16";

struct LimitsFlags {
  std::string models;
  std::string hardware;
  std::string weights = kDefaultWeights;
  std::string kv = "fp16";
  cost::UnitConvention units = cost::UnitConvention::si;
  std::string draft;
  std::string accept;
  std::optional<std::int64_t> batch, context, tp;
  request::Request gguf;  // of GGUF types: era, cache types, host, runtime, devices
};

model::GgufEra era_of(const LimitsFlags& flags) {
  return flags.gguf.gguf_era ? model::parse_gguf_era(*flags.gguf.gguf_era) : model::GgufEra::v2026;
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
std::optional<estimate::SpeculativeScenario> speculative_scenario(const LimitsFlags& flags) {
  if (flags.draft.empty() && flags.accept.empty() && !flags.batch && !flags.context) return std::nullopt;
  if (flags.draft.empty() || flags.accept.empty()) {
    throw Error::bad_input("--draft and --accept go together, --batch and --context with them",
                           "--draft MODEL --accept 0.8; --context also goes with GGUF types: --weights all-gguf");
  }
  estimate::SpeculativeScenario scenario;
  scenario.batch = flags.batch.value_or(scenario.batch);
  scenario.context = flags.context.value_or(scenario.context);
  return scenario;
}

report::SpeculativeStudy speculative_study(const LimitsFlags& flags, const estimate::SpeculativeScenario& scenario,
                                           const model::Decoder& target, const hardware::Device& device,
                                           const cost::LimitPrecision& precision) {
  request::Sources sources;
  estimate::Choices choices;
  choices.weights = precision.scheme;
  choices.kv = kv_of(precision, flags.kv);
  choices.plan.tensor = flags.tp.value_or(1);
  choices.draft = request::read_draft(flags.draft, flags.accept, target, sources);
  if (!choices.draft->best) {
    throw Error::bad_input(fmt::format("--draft {}: limits compares all lengths of a draft", flags.draft),
                           "leave out the number of tokens");
  }
  const estimate::Setup setup = estimate::make_setup(target, device, choices);
  const graph::Execution& draft = setup.draft->setup->execution;
  return {draft.model->name, setup.execution.weights.name, draft.weights.name, setup.notes,
          estimate::speculate(setup, scenario)};
}

constexpr std::string_view kAllGguf = "all-gguf";
constexpr std::int64_t kGgufContext = 4096;

bool is_gguf_name(const std::string& name) { return name == kAllGguf || model::find_gguf_file_type(name) != nullptr; }
// Names that are both ("bf16") mean a GGUF type only beside others that do.
bool asks_for_gguf(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == kAllGguf || model::gguf_weights(name) != nullptr; });
}

// Each once, in the order asked for.
std::vector<const model::GgufFileType*> gguf_types(const std::vector<std::string>& names, model::GgufEra era) {
  std::vector<const model::GgufFileType*> types;
  const auto add = [&](const model::GgufFileType* type) {
    if (!contains(types, type)) types.push_back(type);
  };
  for (const std::string& name : names) {
    if (name == kAllGguf) {
      for (const model::GgufFileType& type : model::gguf_file_types()) {
        if (type.since <= era) add(&type);
      }
    } else if (is_gguf_name(name)) {
      add(model::find_gguf_file_type(name));
    } else {
      throw Error::bad_input(fmt::format("--weights: {} is no GGUF type, and the list has some", quote(name)),
                             "ask for the precisions of the closed form apart");
    }
  }
  return types;
}

// The file as it is first, then the types; MXFP4 is for experts, and with none the same as Q8_0.
std::vector<estimate::GgufCandidate> candidates(const model::ModelFile& file,
                                                const std::vector<const model::GgufFileType*>& types,
                                                model::GgufEra era) {
  std::vector<estimate::GgufCandidate> list;
  if (file.stored) {
    list.push_back({.name = "as stored",
                    .layout = file.stored->layout,
                    .file = Bytes{static_cast<double>(file.stored->file.file_bytes)}});
  }
  const bool experts = std::any_of(file.decoder.kinds.begin(), file.decoder.kinds.end(),
                                   [](const model::Layer& layer) { return layer.feed_forward.experts.has_value(); });
  for (const model::GgufFileType* type : types) {
    if (experts || types.size() == 1 || type->type != model::GgmlType::mxfp4) {
      list.push_back(estimate::gguf_candidate(file.decoder, *type, era));
    }
  }
  return list;
}

// Under the runtime's profile, layers on as many devices as asked for.
Answer gguf_answer(const LimitsFlags& flags, const Context& context, const std::vector<model::ModelFile>& models,
                   const std::vector<const model::GgufFileType*>& types) {
  context.refuse({"--draft", "--accept", "--batch", "--units", "--tp"},
                 "not for GGUF types: it belongs to the closed form");
  const request::Request& asked = flags.gguf;
  request::Sources sources;
  const hardware::Device device = sources.device(flags.hardware);
  const std::string host_name = asked.host.value_or("");
  const hardware::Device host = sources.host(host_name);
  const auto profile =
      request::choose_profile(asked, flags.hardware, device, true, hardware::Workload::language, sources);
  std::optional<hardware::RuntimeProfile> host_profile;
  if (profile) host_profile = request::choose_host_profile(asked, host, sources);
  const std::int64_t tokens = flags.context.value_or(kGgufContext);
  report::GgufLimits limits{};
  limits.device = &device;
  limits.devices = asked.devices.value_or(1);
  limits.context = tokens;
  limits.era = era_of(flags);
  for (const model::ModelFile& file : models) {
    std::optional<hardware::RuntimeProfile> own;
    if (profile) own = hardware::run_by(*profile, file.decoder.architecture);
    estimate::Choices choices = request::choose_schemes(asked, device, own ? &*own : nullptr);
    choices.gguf_era = limits.era;
    choices.kv = flags.kv;
    choices.cache_k = asked.cache_type_k;
    choices.cache_v = asked.cache_type_v;
    choices.host = &host;
    choices.host_profile = host_profile ? &*host_profile : nullptr;
    choices.plan.pipeline = limits.devices;
    for (const graph::Problem& problem : graph::problems(file.decoder, choices.plan)) {
      throw Error::bad_input("--devices: " + problem.message, problem.hint);
    }
    const auto list = candidates(file, types, choices.gguf_era);
    if (limits.studies.empty()) {
      choices.stored = &list.front().layout;
      const estimate::Setup setup = estimate::make_setup(file.decoder, device, choices);
      request::check_host(host_name, setup);
      limits.host = setup.host == nullptr ? nullptr : &host;
      limits.kv = setup.execution.kv;
      limits.notes = setup.notes;
      limits.label = result::label(setup);
      if (own) limits.runtime = own->name;
    }
    limits.studies.push_back({&file.decoder, estimate::study_gguf(file.decoder, device, list, tokens, choices)});
  }
  return {report::gguf_report(limits)};
}

Answer limits_answer(const LimitsFlags& flags, const Context& context) {
  std::vector<model::ModelFile> models;
  for (const std::string& name : list_value("--model", flags.models)) {
    models.push_back(model::load_model(name));
    if (!models.back().decoder.encoder) continue;
    throw Error::bad_input(
        fmt::format("{} is an encoder: the limits are those of decoding with a cache, and it has neither", name),
        "llmperf estimate says how many sequences it reads per second");
  }
  const std::vector<std::string> weights = list_value("--weights", flags.weights);
  const bool as_stored = flags.weights == kDefaultWeights && models.front().stored && models.size() == 1;
  if (as_stored) return gguf_answer(flags, context, models, {});
  for (const std::string& name : weights) {
    if (name == kAllGguf || nearest_names(name, std::vector{std::string(kAllGguf)}).empty()) continue;
    throw Error::bad_input(fmt::format("--weights: unknown precision {}", quote(name)), "did you mean 'all-gguf'?");
  }
  if (asks_for_gguf(weights)) return gguf_answer(flags, context, models, gguf_types(weights, era_of(flags)));
  context.refuse({"--gguf-era", "--cache-type-k", "--cache-type-v", "--host", "--runtime", "--tool", "--devices"},
                 "for GGUF types, not for the closed form", "--weights all-gguf, or leave it out");
  const double kv_bits = model::parse_kv_scheme(flags.kv).bits;
  std::vector<cost::LimitPrecision> precisions;
  for (const std::string& text : weights) {
    precisions.push_back(cost::parse_limit_precision(text, kv_bits));
  }
  if (std::all_of(precisions.begin(), precisions.end(), [](const auto& p) { return p.names_kv; })) {
    context.refuse({"--kv"}, "every precision of --weights names the type of its cache",
                   "--weights bf16,w4a16 name none");
  }
  const std::optional<estimate::SpeculativeScenario> scenario = speculative_scenario(flags);
  if (scenario && models.size() > 1) throw Error::bad_input("--draft takes a single --model");
  const hardware::Device device = hardware::load_device(flags.hardware);
  report::Limits limits{&device, {}};
  const std::int64_t devices = flags.tp.value_or(1);
  for (const model::ModelFile& file : models) {
    const model::Decoder& decoder = file.decoder;
    report::ModelLimits row{decoder.name, {}};
    graph::refuse(graph::problems(decoder, {.tensor = devices}));
    for (const auto& p : precisions) row.limits.push_back(compute_limits(decoder, device, p, flags.units, devices));
    limits.models.push_back(std::move(row));
    if (scenario) limits.speculation = speculative_study(flags, *scenario, decoder, device, precisions.front());
  }
  Answer answer{report::limits_report(limits)};
  if (const auto& study = limits.speculation; study && !study->speculation.fits) {
    const estimate::Speculation& s = study->speculation;
    answer.error = Error::infeasible(
        fmt::format("{} and {} do not fit on {} together: a device needs {} and has {}; the times assume that they do",
                    limits.models.front().model, study->draft, device.name, format_bytes_binary(s.memory),
                    format_bytes_binary(s.capacity)),
        "choose narrower --weights, a larger device or more of them (--tp)");
  }
  return answer;
}

std::vector<std::string> precisions() {
  std::vector<std::string> names = {"w16kv16", "w8kv16", "w4kv16", std::string(kAllGguf)};
  for (std::string& name : request::weight_names()) names.push_back(std::move(name));
  return names;
}

}  // namespace

void describe_limits(Command& command) {
  LimitsFlags& flags = answers(command, limits_answer);
  Flag& model = command.add_field("model", flags.models).required();
  model.about = "one model or a comma-separated family";
  model.values.sort = Values::Sort::items;
  command.add_field("hw", flags.hardware).required();
  command
      .add("--weights", flags.weights, "LIST",
           "comma-separated precisions: w16kv16, w4kv16, bf16, fp8, w4a16-g128, 4.5 …; or GGUF types: q4_k_m …, "
           "all-gguf")
      .offers(Values::Sort::items, precisions);
  command.add_field("kv", flags.kv).about = "KV cache type where a precision names none";
  command.add("--units", flags.units, {{"si", cost::UnitConvention::si}, {"article", cost::UnitConvention::article}},
              "UNITS", "si, or article (K = 1024 throughout, plain vector rate)");
  command.add("--tp", flags.tp, {1, 1024}, "N", "devices that share every matrix, exchanging in no time [1]");
  command.add("--draft", flags.draft, "MODEL", "speculative decoding: a draft model, mtp or eagle")
      .offers(Values::Sort::paths, request::draft_names);
  command.add("--accept", flags.accept, "P",
              "speculative decoding: chance that a draft token is accepted, or of the first, second …: 0.85,0.7,0.6");
  command.add("--batch", flags.batch, {1, estimate::kMaxBatch}, "N", "speculative decoding: sequences in lockstep [1]");
  command
      .add("--context", flags.context, {1, estimate::kMaxTokens, request::Kilo::binary}, "TOKENS",
           "speculative decoding: cached tokens [512]; GGUF: tokens of the sequence [4096]")
      .old_names = {"--prompt", "--seq"};
  for (const char* field : {"host", "gguf-era", "cache-type-k", "cache-type-v", "runtime", "tool"}) {
    command.add(field, flags.gguf);
  }
  command.add("--devices", flags.gguf.devices, {1, 1024}, "N", "GGUF: devices that the layers are dealt to [1]");
}

}  // namespace llmperf::cli
