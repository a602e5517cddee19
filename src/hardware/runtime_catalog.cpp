// Which profile belongs to a device and a runtime's name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/list.h"
#include "base/load_once.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "hardware/beyond_range.h"
#include "hardware/engine.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

// The default of families that have none of their own.
constexpr std::string_view kAnyFamily = "any";

// What a profile's file says of itself, so that a lookup reads no more of the files than it chooses from.
struct Head {
  std::string file;
  std::string name, hardware, engine, tool, workload;
  std::string since, since_date;  // the release of the engine from which it holds; empty: from the beginning
  bool preferred = false;
  std::vector<std::string> families;

  RuntimeProfile profile() const { return parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, file)); }
};

Head read_head(const std::string& file) {
  const auto found = descriptor::values(
      descriptor::Kind::runtime, file,
      {"name", "hardware", "engine", "tool", "workload", "preferred", "based_on", "families", "since", "since_date"});
  const auto said = [&](std::size_t i) { return join(found[i], ","); };
  Head head{.file = file,
            .name = said(0),
            .hardware = said(1),
            .engine = said(2),
            .tool = said(3),
            .workload = said(4),
            .since = said(8),
            .since_date = said(9),
            .preferred = said(5) == "true",
            .families = found[7]};
  // What somebody wrote is read whole, and what is wrong with it told, whether it will be chosen or not.
  if (!descriptor::is_built_in(descriptor::Kind::runtime, file)) head.profile();
  // Of what is based on another profile, its engine.
  if (head.engine.empty() && !found[6].empty()) head.engine = read_head(found[6].front()).engine;
  return head;
}

// Whether a file that cannot be read may be about the device: it names it, its family or all of them.
bool seems_about(const Device& device, std::string_view text) {
  const auto lines = split(text, '\n');
  return text.find(device.name) != std::string_view::npos || text.find(device.family) != std::string_view::npos ||
         std::ranges::any_of(lines, [](std::string_view line) {
           const bool families = line.starts_with("families:") && line.find(kAnyFamily) != std::string_view::npos;
           return families || trim(line) == fmt::format("- {}", kAnyFamily);
         });
}

// Those that are the device's own or defaults of its family.
std::vector<Head> heads_for(const Device& device) {
  std::vector<Head> heads;
  for (const std::string& file : descriptor::names(descriptor::Kind::runtime)) {
    std::vector<std::vector<std::string>> found;
    try {
      found = descriptor::values(descriptor::Kind::runtime, file, {"hardware", "families"});
    } catch (const Error&) {  // another device's is told where that is asked for
      if (seems_about(device, descriptor::load_text(descriptor::Kind::runtime, file).text)) throw;
      continue;
    }
    const std::vector<std::string>& families = found[1];
    if (contains(found[0], device.name) || contains(families, device.name) || contains(families, device.family) ||
        contains(families, kAnyFamily)) {
      heads.push_back(read_head(file));
    }
  }
  return heads;
}

// "torchair-2024b", then "torchair".
std::vector<std::string> prefixes(const std::string& name) {
  std::vector<std::string> result;
  for (std::string text = name; !text.empty();) {
    result.push_back(text);
    const std::size_t dash = text.rfind('-');
    text = dash == std::string::npos ? "" : text.substr(0, dash);
  }
  return result;
}

// The best of them: by name, longest prefix first; without a name the preferred one, else the first that is the
// device's own.
const Head* choose(const std::vector<Head>& all, const std::string& name) {
  for (const std::string& prefix : prefixes(name)) {
    const auto found = std::ranges::find(all, prefix, &Head::name);
    if (found != all.end()) return &*found;
  }
  if (!name.empty()) return nullptr;
  const Head* first = nullptr;
  for (const Head& head : all) {
    if (head.preferred) return &head;
    if (first == nullptr && head.families.empty()) first = &head;
  }
  return first;
}

bool is_wide(std::string_view dtype) { return dtype == "bf16" || dtype == "fp16"; }

// The two 16-bit types take the same time.
bool names(const std::vector<std::string>& fitted, std::string_view name) {
  return std::ranges::any_of(fitted,
                             [&](const std::string& one) { return one == name || (is_wide(one) && is_wide(name)); });
}

// "7.72 B" of a number of parameters.
std::string billions(double parameters) { return fmt::format("{:.3g} B", parameters / 1e9); }

}  // namespace

std::string RuntimeProfile::title_for(const Device& device) const {
  if (!kernels.empty()) return fmt::format("{}: kernels of {}", engine, kernels);
  return measured_on(device) ? fmt::format("{} on {}", name, device.name)
                             : fmt::format("{} ({})", name, hardware.empty() ? title : "of " + hardware);
}

std::vector<Beyond> ways_beyond(const RuntimeProfile& profile, const StepSize& step) {
  constexpr double kALittle = 1.1;
  const FittedRange& range = profile.range;
  std::vector<Beyond> beyond;
  const auto add = [&](Way way, std::string text, double excess = 1) {
    beyond.push_back({way, std::move(text), excess});
  };
  if (!step.device.empty() && step.device != profile.hardware) {
    add(Way::device,
        fmt::format("device {} ({})", step.device,
                    profile.hardware.empty() ? "the profile is not its own" : "fitted on " + profile.hardware));
  }
  if (!step.power_limit.empty()) add(Way::power, step.power_limit, 1 + step.clock_doubt);
  if (!profile.borrowed.empty()) add(Way::kernels, profile.borrowed);
  if (!profile.foreign_steps.empty()) add(Way::era, profile.foreign_steps);
  if (range.max_tokens == 0) {
    if (range.rows > 0) add(Way::steps, "whole steps (fitted on single kernels)");
    return beyond;
  }
  const auto above = [&](Way way, const char* what, std::int64_t value, std::int64_t limit) {
    const double excess = static_cast<double>(value) / static_cast<double>(std::max<std::int64_t>(limit, 1));
    if (static_cast<double>(value) > kALittle * static_cast<double>(limit))
      add(way,
          fmt::format("{} {} (fitted up to {})", what, format_count(static_cast<double>(value)),
                      format_count(static_cast<double>(limit))),
          excess);
  };
  above(Way::batch, "batch", step.batch, range.max_batch);
  above(Way::tokens, "new tokens", step.tokens, range.max_tokens);
  above(Way::context, "context", step.context, range.max_context);
  // Sizes between models and a little beyond are what the formulas are for.
  constexpr double kMargin = 2;
  if (step.parameters > kMargin * range.max_parameters || step.parameters < range.min_parameters / kMargin) {
    add(Way::parameters,
        fmt::format("{} parameters (fitted {} to {})", billions(step.parameters), billions(range.min_parameters),
                    billions(range.max_parameters)),
        std::max(step.parameters / range.max_parameters, range.min_parameters / step.parameters) / kMargin);
  }
  if (!range.weights.empty() && !names(range.weights, step.weights)) {
    add(Way::weights, fmt::format("weights {} (fitted {})", step.weights, join(range.weights, ", ")));
  }
  const auto other = [&](Way way, const char* what, const std::string& value, const std::vector<std::string>& fitted) {
    if (value.empty() || fitted.empty() || names(fitted, value)) return;
    add(way, fmt::format("{} {} (fitted {})", what, value, join(fitted, ", ")));
  };
  other(Way::kv, "KV cache", step.kv, range.kv);
  other(Way::plan, "plan", step.plan, range.plans);
  other(Way::kind, "model with", step.kind, range.kinds);
  if (step.layers_on_host > 0) {
    add(Way::host_layers, fmt::format("{} layers on the host (fitted without)", step.layers_on_host));
  }
  return beyond;
}

std::vector<std::string> RuntimeProfile::beyond_range(const StepSize& step) const {
  std::vector<std::string> texts;
  for (Beyond& way : ways_beyond(*this, step)) texts.push_back(std::move(way.text));
  return texts;
}

FittedError FittedError::widened() const {
  if (rows == 0) return *this;
  const auto n = static_cast<double>(rows);
  constexpr double z = 1.6448536269514722;  // 95th percentile of the normal distribution
  // Exactly for one and two degrees of freedom (tan(0.45 pi), 0.9 sqrt(2 / 0.19)), else by the first terms of Fisher's
  // expansion in 1 / n (Abramowitz, Stegun 26.7.5), which are good to 0.3 % from three on.
  constexpr double first = (z * z * z + z) / 4;
  constexpr double second = (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / 96;
  constexpr double third = (3 * z * z * z * z * z * z * z + 19 * z * z * z * z * z + 17 * z * z * z - 15 * z) / 384;
  const double t = rows == 1   ? 6.313751514675043
                   : rows == 2 ? 2.919985580355516
                               : z + (first + (second + third / n) / n) / n;
  FittedError wider = *this;
  wider.mean *= t / z;
  wider.p90 *= t / z;
  return wider;
}

const RuntimeProfile::FormatKernels* RuntimeProfile::kernels_of(FormatKernel format) const {
  const auto last = std::find_if(format_kernels.rbegin(), format_kernels.rend(),
                                 [&](const FormatKernels& k) { return contains(k.formats, format); });
  return last == format_kernels.rend() ? nullptr : &*last;
}

const FittedError* RuntimeProfile::error_of(std::string_view group) const {
  const auto it = std::ranges::find_if(errors, [&](const FittedError& e) { return e.group == group; });
  return it == errors.end() ? nullptr : &*it;
}

std::vector<std::string> runtimes_of(const Device& device) {
  std::vector<std::string> result;
  for (const Head& head : heads_for(device)) {
    if (head.hardware == device.name) result.push_back(head.name);
  }
  return result;
}

std::vector<RuntimeProfile> all_runtime_profiles() {
  std::vector<RuntimeProfile> all;
  for (const std::string& file : descriptor::names(descriptor::Kind::runtime)) {
    all.push_back(parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, file)));
  }
  return all;
}

namespace {

// 16-bit FLOPs of one core in one cycle; 0: not known.
double matrix_per_cycle(const Device& device) {
  const Peak* peak = device.find_peak(Engine::matrix, Dtype::bf16);
  if (peak == nullptr || !device.cores || !device.clock_hz) return 0;
  return peak->rate.value / static_cast<double>(*device.cores) / *device.clock_hz;
}

// Small tiles are bound by what goes on beside the multiplications, at the pace of the clock: of weaker matrix engines
// they are a larger share, up to that of the largest tiles.
void widen_small_tiles(ParameterValues& values, double weaker, bool same_generation) {
  const auto widen = [&](std::span<double> tiles) {
    for (double& share : tiles) share = std::max(share, std::min(share * weaker, tiles.back()));
  };
  constexpr std::size_t kTiles = 4;
  // A tile of 16 rows that costs most of what one of 64 does multiplies 64 (Hopper's wgmma), and so it does on much
  // weaker engines of its generation, which take longer for that than memory and hide little of it: one row of a 32B is
  // more than twice its reads on an H20.
  double& few = values[index(Parameter::gemm_share_16)];
  const double& rows_of_64 = values[index(Parameter::gemm_share_64)];
  const bool padded = same_generation && weaker > 2 && 4 * few < 1.75 * rows_of_64;
  widen({&few, kTiles});
  if (padded) few = rows_of_64 / 4;
  if (padded) values[index(Parameter::gemm_overlap)] = 1.5;
  widen({&values[index(std::nullopt, ExpertParameter::share)], kTiles});
  for (std::size_t f = 0; f < kFormatKernels; ++f) {
    const auto format = static_cast<FormatKernel>(f);
    widen({&values[index(format, ExpertParameter::share)], kTiles});
    if (multiplies_in_8_bits(format)) {  // tiles of 64 rows, and larger ones
      double& small = values[index(format, FormatParameter::small_share)];
      small = std::max(small, std::min(small * weaker, values[index(format, FormatParameter::share)]));
    }
  }
}

// Cores that unpack the weights of experts get through so many bytes, and no more where memory grew faster than they:
// Marlin on an H200 reads what it does on an H100.
void hold_unpacked_experts(RuntimeProfile& profile, const Device& from, const Device& to) {
  if (profile.choices.ggml || !from.cores || !to.cores || !from.dram().bandwidth || !to.dram().bandwidth) return;
  const auto core_bytes = [](const Device& d) {
    return static_cast<double>(*d.cores) * *d.clock_hz / d.dram().bandwidth->value;
  };
  const double held = core_bytes(to) / core_bytes(from);
  for (std::size_t f = 0; f < kFormatKernels && held < 1; ++f) {
    const auto format = static_cast<FormatKernel>(f);
    if (multiplies_in_8_bits(format) || profile.choices.product_tiles[f] != ProductTiles::unpacked) continue;
    const std::size_t i = index(format, ExpertParameter::memory_share);
    profile.values[i] = std::max(profile.values[i] * held, parameter_info(i).min);
  }
}

}  // namespace

RuntimeProfile carried_over(RuntimeProfile profile, const Device& from, const Device& to) {
  if (!from.clock_hz || !to.clock_hz) return profile;
  const double ratio = *to.clock_hz / *from.clock_hz;
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    const ParameterInfo& info = parameter_info(i);
    if (info.clock_power == 0) continue;
    for (double* number : {&profile.values[i], &profile.prior[i]}) {
      if (*number > 0)
        *number = std::clamp(info.clock_power > 0 ? *number * ratio : *number / ratio, info.min, info.max);
    }
  }
  const double had = matrix_per_cycle(from);
  const double has = matrix_per_cycle(to);
  const bool same_generation = from.family == to.family;
  constexpr double kAlike = 0.02;
  if (has > 0 && had > has) widen_small_tiles(profile.values, had / has, same_generation);
  profile.same_die = same_generation && std::abs(had - has) <= kAlike * had;
  hold_unpacked_experts(profile, from, to);
  profile.origin = to.name;
  return profile;
}

namespace {

// "llama.cpp-vulkan" of "llama.cpp".
bool is_backend(std::string_view name, const std::string& engine) { return name.starts_with(engine + '-'); }

// The engine's era over the kernels of `profile`.
RuntimeProfile compose(RuntimeProfile profile, const EngineEra& era, const Device& device) {
  std::string kernels = profile.title_for(device);
  const std::string title = fmt::format("{}, kernels of {}", era.title, profile.title);
  const std::string source = fmt::format("{}; kernels: {}", era.source, profile.source);
  const bool measured = contains(era.measured_on, device.name);
  if (measured && profile.hardware.empty()) {
    profile.hardware = device.name;
    profile.families.clear();
  }
  const std::string name = profile.name;
  const std::string own = profile.engine;
  const bool borrows = !own.empty() && load_engine(own).engine != era.engine;
  if (borrows) profile.borrowed = fmt::format("kernels of {}", name);
  RuntimeProfile p = with_engine(std::move(profile), era);
  p.name = is_backend(name, era.engine) ? name : era.engine;
  p.kernels = std::move(kernels);
  p.title = title;
  p.source = source;
  p.notes = era.notes;
  return p;
}

// What `--runtime` asks for.
struct Asked {
  std::string name;
  std::string version;  // behind an @; empty: none is said
  std::string tool;     // behind a +; likewise
};
Asked parse_asked(const std::string& text) {
  const std::size_t plus = text.find('+');
  const std::string rest = text.substr(0, plus);
  const std::size_t at = rest.find('@');
  Asked asked = {rest.substr(0, at), at == std::string::npos ? "" : rest.substr(at + 1),
                 plus == std::string::npos ? "" : text.substr(plus + 1)};
  // A tool that people take for the engine. Its versions are its own: what is asked for is a build or a date.
  if (asked.name == "ollama") {
    asked.name = "llama.cpp";
    if (asked.tool.empty()) asked.tool = "ollama";
  }
  return asked;
}

class Lookup {
 public:
  // A profile of a tool is for that tool, and with `any_tool` for who says nothing of tools and versions.
  Lookup(const Device& device, Workload workload, const Asked& asked = {}, bool any_tool = false)
      : device_(device), language_(workload == Workload::language), heads_(heads_for(device)) {
    std::erase_if(heads_, [&](const Head& head) {
      return (head.workload.empty() ? name(Workload::language) : std::string_view(head.workload)) != name(workload);
    });
    keep_begun(asked);
    dated_ = workload == Workload::training && !asked.version.empty();
    any_tool = any_tool && asked.tool.empty() && asked.version.empty();
    std::copy_if(heads_.begin(), heads_.end(), std::back_inserter(own_), [&](const Head& head) {
      return head.hardware == device.name && (head.tool.empty() || head.tool == asked.tool || any_tool);
    });
    if (!language_) return;
    for (const std::string& file : descriptor::names(descriptor::Kind::engine)) {
      const auto found = descriptor::values(descriptor::Kind::engine, file, {"name", "engine"});
      engines_.push_back({file, join(found[0], ""), join(found[1], "")});
    }
  }

  RuntimeProfile strict(const Asked& asked) const {
    const EngineEra* era = outright(asked.name);
    if (era == nullptr && !asked.version.empty() && asked.version != "unknown") {
      const std::string engine = engine_of(asked.name);
      constexpr std::int64_t kYears = 1000;  // numbers that could be one, and are no date
      const std::optional<Version> release = parse_version(asked.version);
      // Training stacks have no part of their own beside kernels: their releases are those of profiles.
      const bool of_profiles = dated_ && release && (is_date(*release) || release->front() < kYears);
      if (engine.empty() && !of_profiles) {
        const std::string known = known_eras(every_era(), device_.family, "");
        throw Error::bad_input(fmt::format("no versions are known of runtime {}", quote(asked.name)),
                               known.empty() ? "" : "known: " + known);
      }
      if (!engine.empty()) era = era_by_text(eras_of(engine), device_.family, engine, asked.version);
      if (era == nullptr && !engine.empty()) {
        throw Error::bad_input(fmt::format("no era of {} has version {}", engine, quote(asked.version)),
                               "known: " + known_eras(eras_of(engine), device_.family, engine));
      }
    }
    if (era != nullptr && find_era({*era}, device_.family, era->engine) == nullptr) {
      throw Error::bad_input(fmt::format("{} is for {}, and {} is of {}", era->name, join(era->families, ", "),
                                         device_.name, device_.family));
    }
    if (std::optional<RuntimeProfile> p = found(asked.name, era)) return *std::move(p);
    // The name is no runtime of this device's family.
    std::vector<std::string> known = {"none"};
    for (const Head& head : own_) known.push_back(head.name);
    for (const std::string_view family : groups()) {
      for (const Head& head : classes(family)) known.push_back(head.name);
    }
    for (const EngineEra& e : every_era()) known.insert(known.end(), {e.engine, e.name});
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const std::string hint = name_hint(asked.name, known);
    throw Error::bad_input(fmt::format("unknown runtime {} for {}", quote(asked.name), device_.name),
                           fmt::format("{}{} 'none' is the speed of light", hint, hint.ends_with('?') ? "" : ";"));
  }

  RuntimeProfile kernels() const {
    if (const std::optional<Head> head = fitted("")) return head->profile();
    throw Error::bad_input(fmt::format("no runtime profile for {}", device_.name));
  }

  // What it says of the era as far as it is known, else the family's default.
  RuntimeProfile lenient(const Asked& asked) const {
    const EngineEra* era = outright(asked.name);
    if (era == nullptr) {
      const std::string engine = engine_of(asked.name);
      era = era_by_text(eras_of(engine), device_.family, engine, asked.version);
    }
    if (std::optional<RuntimeProfile> p = found(asked.name, era)) return *std::move(p);
    for (const std::string_view family : groups()) {
      const std::vector<Head> of_family = classes(family);
      if (const Head* head = choose(of_family, "")) return current(*head);
    }
    throw Error::bad_input(fmt::format("no runtime profile for {}", device_.name));
  }

 private:
  // The device's own of that name, else its family's, else that of all; without a name the preferred one.
  std::optional<Head> fitted(const std::string& name) const {
    // Of a release that was asked for, the last to begin by then, be it the device's own or its family's.
    for (const std::string_view family : groups()) {
      std::vector<Head> all = dated_ ? classes(family) : std::vector<Head>();
      if (all.empty()) continue;
      all.insert(all.begin(), own_.begin(), own_.end());
      std::ranges::stable_sort(all, std::ranges::greater(), &Head::since_date);
      if (const Head* head = choose(all, name)) return *head;
    }
    if (const Head* head = choose(own_, name)) return *head;
    for (const std::string_view family : groups()) {
      const std::vector<Head> of_family = classes(family);
      if (const Head* head = choose(of_family, name)) return *head;
    }
    return std::nullopt;
  }
  // The engine that a name means by the rule for profiles, or "".
  std::string engine_of(const std::string& name) const {
    for (const std::string& prefix : prefixes(name)) {
      for (const EraHead& era : engines_) {
        if (era.engine == prefix || era.name == prefix) return era.engine;
      }
    }
    return "";
  }
  // The era of that very name, which is its file's.
  const EngineEra* outright(const std::string& name) const {
    const auto head = std::ranges::find_if(
        engines_, [&](const EraHead& era) { return era.file == name && era.name == name && era.engine != name; });
    return head == engines_.end() ? nullptr : &*std::ranges::find(eras_of(head->engine), name, &EngineEra::name);
  }
  // Kernels that come without an engine run under the present one.
  RuntimeProfile current(const Head& head) const {
    if (!head.engine.empty() || !head.tool.empty()) return head.profile();
    const std::string engine = engine_of(head.name);
    const EngineEra* era = find_era(eras_of(engine), device_.family, engine);
    return era != nullptr ? compose(head.profile(), *era, device_) : head.profile();
  }
  // `era`: that is asked for, or null.
  std::optional<RuntimeProfile> found(const std::string& name, const EngineEra* era) const {
    // The device's own steps under the era, whatever the name of the profile.
    const auto own =
        std::ranges::find_if(own_, [&](const Head& head) { return era != nullptr && head.engine == era->name; });
    if (own != own_.end()) return own->profile();
    const bool backend = era != nullptr && name != era->name && is_backend(name, era->engine);
    std::optional<Head> head = fitted(era == nullptr || backend ? name : era->engine);
    if (head && (era == nullptr || !head->tool.empty())) return current(*head);
    if (head && head->engine == era->name) return head->profile();
    if (era == nullptr) {
      const std::string engine = engine_of(name);
      era = find_era(eras_of(engine), device_.family, engine);
    }
    if (era == nullptr) return std::nullopt;
    if (!head) head = fitted("");
    return head ? std::optional(compose(head->profile(), *era, device_)) : std::nullopt;
  }

  // Of kernels that changed from one release to another those of the release asked for, the last to begin first.
  void keep_begun(const Asked& asked) {
    std::optional<Version> version = parse_version(asked.version);
    std::vector<std::string> eras = {asked.name};  // or the version is one's last word
    for (const std::string& name : prefixes(asked.name)) eras.push_back(fmt::format("{}-{}", name, asked.version));
    for (const std::string& era : eras) {
      if (version || !contains(descriptor::names(descriptor::Kind::engine), era)) continue;
      // An era from the beginning began before any release.
      const EngineEra named = load_engine(era);
      if (named.engine != era) version = parse_version(named.since_date).value_or(Version());
    }
    std::erase_if(heads_, [&](const Head& h) { return !has_begun(h.since, h.since_date, version); });
    std::ranges::stable_sort(heads_, std::ranges::greater(), &Head::since_date);
  }
  // What a default may be of: some devices of a family by their names, the family, all.
  std::array<std::string_view, 3> groups() const { return {device_.name, device_.family, kAnyFamily}; }
  // The defaults of a family.
  std::vector<Head> classes(std::string_view family) const {
    std::vector<Head> all;
    std::copy_if(heads_.begin(), heads_.end(), std::back_inserter(all),
                 [&](const Head& h) { return contains(h.families, family); });
    return all;
  }
  // The eras of one engine.
  const std::vector<EngineEra>& eras_of(const std::string& engine) const {
    return load_once(eras_, engine, [&] {
      std::vector<EngineEra> eras;
      for (const EraHead& era : engines_) {
        if (era.engine == engine) eras.push_back(load_engine(era.file));
      }
      return eras;
    });
  }
  std::vector<EngineEra> every_era() const { return language_ ? all_engines() : std::vector<EngineEra>(); }

  const Device& device_;
  bool language_;
  bool dated_ = false;       // a release of a training stack is asked for
  std::vector<Head> heads_;  // of the workload
  std::vector<Head> own_;    // of the device
  struct EraHead {
    std::string file, name, engine;
  };
  std::vector<EraHead> engines_;                                // those of language models
  mutable std::map<std::string, std::vector<EngineEra>> eras_;  // by engine, read when they are asked for
};

RuntimeProfile chosen_profile(const Device& device, const std::string& text, UnknownRuntime unknown,
                              Workload workload) {
  if (descriptor::is_inline(text)) return parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, text));
  // Versions of measured rows may have slashes in them.
  const bool strict = unknown == UnknownRuntime::error;
  const Asked asked = parse_asked(text);
  if (descriptor::is_path(strict ? text : asked.name)) {
    return parse_runtime_profile(descriptor::parse_file(text));
  }
  const Lookup lookup(device, workload, asked, unknown == UnknownRuntime::measured);
  return with_tool(strict ? lookup.strict(asked) : lookup.lenient(asked), asked.tool, unknown);
}

// Numbers of another device's cores at this one's clock.
RuntimeProfile on(const Device& device, RuntimeProfile profile) {
  if (profile.origin == device.name) return profile;
  const auto known = descriptor::names(descriptor::Kind::device);
  if (!contains(known, profile.origin)) return profile;
  const Device from = load_device(profile.origin);
  return carried_over(std::move(profile), from, device);
}

}  // namespace

RuntimeProfile load_runtime_profile(const Device& device, const std::string& name, UnknownRuntime unknown,
                                    Workload workload) {
  RuntimeProfile profile = on(device, chosen_profile(device, name, unknown, workload));
  const std::optional<Version> version = parse_version(parse_asked(name).version);
  std::erase_if(profile.format_kernels, [&](const RuntimeProfile::FormatKernels& k) {
    return (!k.families.empty() && !contains(k.families, device.family)) || !has_begun(k.since, k.since_date, version);
  });
  return profile;
}

RuntimeProfile load_kernels(const Device& device) { return on(device, Lookup(device, Workload::language).kernels()); }

}  // namespace llmperf::hardware
