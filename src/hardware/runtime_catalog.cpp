// Which profile belongs to a device and a runtime's name.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "hardware/beyond_range.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

// The default of families that have none of their own.
constexpr std::string_view kAnyFamily = "any";

bool covers(const RuntimeProfile& profile, std::string_view family) {
  return std::find(profile.families.begin(), profile.families.end(), family) != profile.families.end();
}

// Those whose line `key` mentions `word`: few, so that a lookup does not parse every file there is. All without a key.
std::vector<RuntimeProfile> profiles(std::string_view key = "", std::string_view word = "") {
  std::vector<RuntimeProfile> found;
  for (const std::string& file : descriptor::names(descriptor::Kind::runtime)) {
    if (!key.empty()) {
      const descriptor::Text text = descriptor::load_text(descriptor::Kind::runtime, file);
      const auto lines = split(text.text, '\n');
      const bool mentioned = std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
        return line.starts_with(key) && line.find(word) != std::string_view::npos;
      });
      if (!mentioned) continue;
    }
    found.push_back(parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, file)));
  }
  return found;
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

// The best of those that `fits` says may be taken: by name, longest prefix first; without a name the preferred one,
// else the first that is the device's own.
template <class Fits>
const RuntimeProfile* choose(const std::vector<RuntimeProfile>& all, const std::string& name, Fits&& fits) {
  for (const std::string& prefix : prefixes(name)) {
    for (const RuntimeProfile& p : all) {
      if (p.name == prefix && fits(p)) return &p;
    }
  }
  if (!name.empty()) return nullptr;
  const RuntimeProfile* first = nullptr;
  for (const RuntimeProfile& p : all) {
    if (!fits(p)) continue;
    if (p.preferred) return &p;
    if (first == nullptr && p.families.empty()) first = &p;
  }
  return first;
}

bool is_wide(std::string_view dtype) { return dtype == "bf16" || dtype == "fp16"; }

// The two 16-bit types take the same time.
bool names(const std::vector<std::string>& fitted, std::string_view name) {
  return std::any_of(fitted.begin(), fitted.end(),
                     [&](const std::string& one) { return one == name || (is_wide(one) && is_wide(name)); });
}

// "7.72 B" of a number of parameters.
std::string billions(double parameters) { return fmt::format("{:.3g} B", parameters / 1e9); }

}  // namespace

std::string RuntimeProfile::title_for(const Device& device) const {
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
                    profile.hardware.empty() ? "nothing was measured on it" : "fitted on " + profile.hardware));
  }
  if (range.max_tokens == 0) {
    if (range.rows > 0) add(Way::steps, "whole steps (fitted on single kernels)");
    return beyond;
  }
  const auto above = [&](Way way, const char* what, std::int64_t value, std::int64_t limit) {
    const double excess = static_cast<double>(value) / static_cast<double>(std::max<std::int64_t>(limit, 1));
    if (static_cast<double>(value) > kALittle * static_cast<double>(limit))
      add(way, fmt::format("{} {} (fitted up to {})", what, value, limit), excess);
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
  if (!names(range.weights, step.weights)) {
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

const FittedError* RuntimeProfile::error_of(std::string_view group) const {
  const auto it = std::find_if(errors.begin(), errors.end(), [&](const FittedError& e) { return e.group == group; });
  return it == errors.end() ? nullptr : &*it;
}

std::vector<std::string> runtimes_of(const Device& device) {
  std::vector<std::string> result;
  for (const RuntimeProfile& p : profiles("hardware:", device.name)) {
    if (p.hardware == device.name) result.push_back(p.name);
  }
  return result;
}

std::vector<RuntimeProfile> all_runtime_profiles() { return profiles(); }

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
  profile.origin = to.name;
  return profile;
}

namespace {

RuntimeProfile chosen_profile(const Device& device, const std::string& name, UnknownRuntime unknown,
                              Workload workload) {
  if (descriptor::is_path(name)) return parse_runtime_profile(descriptor::parse_file(name));
  const auto of_workload = [&](std::vector<RuntimeProfile> all) {
    std::erase_if(all, [&](const RuntimeProfile& p) { return p.workload != workload; });
    return all;
  };
  const std::vector<RuntimeProfile> own = of_workload(profiles("hardware:", device.name));
  const auto is_own = [&](const RuntimeProfile& p) { return p.hardware == device.name; };
  if (const RuntimeProfile* p = choose(own, name, is_own)) return *p;
  const std::vector<RuntimeProfile> classes = of_workload(profiles("families:"));
  const auto family = [&](const RuntimeProfile& p) { return covers(p, device.family); };
  const auto any = [&](const RuntimeProfile& p) { return covers(p, kAnyFamily); };
  if (const RuntimeProfile* p = choose(classes, name, family)) return *p;
  if (const RuntimeProfile* p = choose(classes, name, any)) return *p;
  // The name is no runtime of this device's family: say so, or take the family's default.
  if (unknown == UnknownRuntime::error) {
    std::vector<std::string> known;
    for (const RuntimeProfile& p : own) {
      if (is_own(p)) known.push_back(p.name);
    }
    for (const RuntimeProfile& p : classes) {
      if (family(p) || any(p)) known.push_back(p.name);
    }
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    known.emplace_back("none");
    const std::string hint = name_hint(name, known);
    throw Error::bad_input(fmt::format("unknown runtime {} for {}", quote(name), device.name),
                           fmt::format("{}{} 'none' is the speed of light", hint, hint.ends_with('?') ? "" : ";"));
  }
  if (const RuntimeProfile* p = choose(classes, "", family)) return *p;
  if (const RuntimeProfile* p = choose(classes, "", any)) return *p;
  throw Error::bad_input(fmt::format("no runtime profile for {}", device.name));
}

}  // namespace

RuntimeProfile load_runtime_profile(const Device& device, const std::string& name, UnknownRuntime unknown,
                                    Workload workload) {
  RuntimeProfile profile = chosen_profile(device, name, unknown, workload);
  if (profile.origin == device.name) return profile;
  const auto known = descriptor::names(descriptor::Kind::device);
  if (std::find(known.begin(), known.end(), profile.origin) == known.end()) return profile;
  return carried_over(profile, load_device(profile.origin), device);
}

}  // namespace llmperf::hardware
