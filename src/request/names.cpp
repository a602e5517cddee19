#include "request/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "hardware/runtime.h"
#include "model/gguf/tensors.h"
#include "model/quantization.h"
#include "model/video/video_dit.h"

namespace llmperf::request {
namespace {

using Names = std::vector<std::string>;

// What a file says at a key. A file that cannot be read says nothing: names are offered where nobody asked for it.
Names said(descriptor::Kind kind, const std::string& file, std::string_view key) {
  try {
    return descriptor::values(kind, file, {key}).front();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Names model_names() { return descriptor::names(descriptor::Kind::model); }
Names draft_names() {
  Names names = model_names();
  names.insert(names.begin(), {"mtp", "eagle"});
  return names;
}
Names device_names() { return descriptor::names(descriptor::Kind::device); }

Names host_names() {
  Names names;
  for (const std::string& file : device_names()) {
    const Names kinds = said(descriptor::Kind::device, file, "kind");
    if (kinds == Names{"cpu"} || kinds == Names{"soc"}) names.push_back(file);
  }
  return names;
}

Names runtime_names() {
  std::set<std::string> names = {"none", "ollama"};
  const auto add = [&](descriptor::Kind kind, const std::string& file, std::string_view key) {
    const Names found = said(kind, file, key);
    names.insert(found.begin(), found.end());
  };
  for (const std::string& file : descriptor::names(descriptor::Kind::runtime)) {
    add(descriptor::Kind::runtime, file, "name");
  }
  for (const std::string& era : descriptor::names(descriptor::Kind::engine)) {
    names.insert(era);
    add(descriptor::Kind::engine, era, "engine");
  }
  return {names.begin(), names.end()};
}

Names gguf_type_names() {
  Names names;
  for (const model::GgufFileType& type : model::gguf_file_types()) names.emplace_back(type.name);
  return names;
}

Names weight_names() {
  Names names = model::weight_scheme_names();
  for (std::string& name : gguf_type_names()) names.push_back(std::move(name));
  return names;
}

Names option_names() {
  Names names = {"all", "none"};
  for (const auto workload : {hardware::Workload::language, hardware::Workload::video}) {
    for (const std::string& name : hardware::runtime_option_names(workload)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  const Names on(names.begin() + 2, names.end());
  for (const std::string& name : on) names.push_back("no_" + name);
  return names;
}

Names era_names() {
  Names names;
  for (const model::GgufEra era : model::gguf_eras()) names.emplace_back(model::name(era));
  return names;
}

Names resolution_names() { return model::video_resolutions(); }
Names measurement_names() { return descriptor::names(descriptor::Kind::measurements); }

std::size_t one_of(std::string_view field, std::string_view none, std::string_view text,
                   std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error::bad_input(fmt::format("`{}`: {} {}", field, none, quote(text)),
                         name_hint(text, std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace llmperf::request
