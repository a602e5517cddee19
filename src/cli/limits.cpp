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
  request::Request request;  // models, hardware, KV cache and, of GGUF types, all that chooses how they run
  std::string weights = kDefaultWeights;
  cost::UnitConvention units = cost::UnitConvention::si;
  std::string draft;
  std::string accept;
  std::optional<std::int64_t> batch, context, tp;
};

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
  choices.kv = kv_of(precision, *flags.request.kv);
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
  for (const model::GgufFileType* type : types) {
    if (file.decoder.has_experts() || types.size() == 1 || type->type != model::GgmlType::mxfp4) {
      list.push_back(estimate::gguf_candidate(file.decoder, *type, era));
    }
  }
  return list;
}

// Under the runtime's profile, layers on as many devices as asked for.
Answer gguf_answer(const LimitsFlags& flags, const Context& context, request::Sources& sources,
                   const std::vector<std::string>& models, const std::vector<std::string>& weights) {
  context.refuse({"--draft", "--accept", "--batch", "--units", "--tp"},
                 "not for GGUF types: it belongs to the closed form");
  request::Request asked = flags.request;
  asked.weights = "f16";  // any GGUF type, as each of the candidates is
  std::vector<std::unique_ptr<request::Resolved>> resolved;
  report::GgufLimits limits{};
  limits.context = flags.context.value_or(kGgufContext);
  for (const std::string& model : models) {
    asked.model = model;
    const request::Resolved& r = *resolved.emplace_back(request::resolve_setup(asked, sources, request::Unused::taken));
    estimate::Choices choices = std::get<request::Generation>(r.work).choices;
    choices.weights.reset();
    const auto list = candidates(r.file, gguf_types(weights, choices.gguf_era), choices.gguf_era);
    if (limits.studies.empty()) {
      choices.stored = &list.front().layout;
      const estimate::Setup setup = estimate::make_setup(r.model(), r.device, choices);
      limits.device = &r.device;
      limits.host = setup.host == nullptr ? nullptr : &r.host;
      limits.devices = choices.plan.pipeline;
      limits.era = choices.gguf_era;
      limits.kv = setup.execution.kv;
      limits.notes = setup.notes;
      limits.label = result::label(setup);
      if (r.profile) limits.runtime = r.profile->name;
    }
    limits.studies.push_back({&r.model(), estimate::study_gguf(r.model(), r.device, list, limits.context, choices)});
  }
  return {report::gguf_report(limits)};
}

Answer limits_answer(const LimitsFlags& flags, const Context& context) {
  const std::vector<std::string> names = list_value("--model", *flags.request.model);
  request::Sources sources;
  std::vector<model::ModelFile> models;
  for (const std::string& name : names) {
    models.push_back(sources.model(name));
    if (!models.back().decoder.encoder) continue;
    throw Error::bad_input(
        fmt::format("{} is an encoder: the limits are those of decoding with a cache, and it has neither", name),
        "llmperf estimate says how many sequences it reads per second");
  }
  const hardware::Device device = sources.device(*flags.request.hw);
  const std::vector<std::string> weights = list_value("--weights", flags.weights);
  const bool as_stored = flags.weights == kDefaultWeights && models.front().stored && models.size() == 1;
  if (as_stored) return gguf_answer(flags, context, sources, names, {});
  for (const std::string& name : weights) {
    if (name == kAllGguf || nearest_names(name, std::vector{std::string(kAllGguf)}).empty()) continue;
    throw Error::bad_input(fmt::format("--weights: unknown precision {}", quote(name)), "did you mean 'all-gguf'?");
  }
  if (asks_for_gguf(weights)) return gguf_answer(flags, context, sources, names, weights);
  context.refuse({"--gguf-era", "--cache-type-k", "--cache-type-v", "--host", "--runtime", "--tool", "--devices"},
                 "for GGUF types, not for the closed form", "--weights all-gguf, or leave it out");
  const double kv_bits = model::parse_kv_scheme(*flags.request.kv).bits;
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
  request::Request& r = flags.request;
  Flag& model = command.add("model", r).required();
  model.about = "one model or a comma-separated family";
  model.values.sort = Values::Sort::items;
  command.add("hw", r).required();
  command
      .add("--weights", flags.weights, "LIST",
           "comma-separated precisions: w16kv16, w4kv16, bf16, fp8, w4a16-g128, 4.5 …; or GGUF types: q4_k_m …, "
           "all-gguf")
      .offers(Values::Sort::items, precisions);
  Flag& kv = command.add("kv", r);
  kv.about = "KV cache type where a precision names none";
  kv.otherwise = *(r.kv = "fp16");
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
    command.add(field, r);
  }
  command.add("--devices", r.devices, {1, 1024}, "N", "GGUF: devices that the layers are dealt to [1]");
}

}  // namespace llmperf::cli
