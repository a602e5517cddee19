// The names that values of a request can have, for completion and for whoever lists them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::request {

std::vector<std::string> model_names();
std::vector<std::string> draft_names();  // also of what is no model
std::vector<std::string> device_names();
std::vector<std::string> host_names();
std::vector<std::string> runtime_names();
std::vector<std::string> weight_names();
std::vector<std::string> gguf_type_names();
std::vector<std::string> option_names();
std::vector<std::string> era_names();
std::vector<std::string> resolution_names();
std::vector<std::string> measurement_names();

// Which of them the value of a field is. Throws Error(bad_input) that begins with `none`: "unknown way".
std::size_t one_of(std::string_view field, std::string_view none, std::string_view text,
                   std::span<const std::string_view> names);

// The enumerator up to `Last` that the text names.
template <auto Last>
auto word_of(std::string_view field, std::string_view text) {
  using Enum = decltype(Last);
  std::array<std::string_view, static_cast<std::size_t>(Last) + 1> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = name(static_cast<Enum>(i));
  return static_cast<Enum>(one_of(field, "unknown word", text, names));
}

}  // namespace llmperf::request
