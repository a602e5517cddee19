// Built-in models and devices, read once for all tests of a program.
#pragma once

#include <map>
#include <string>

#include "hardware/device.h"
#include "model/decoder.h"

namespace llmperf::test {

inline const model::Decoder& decoder(const std::string& name) {
  static std::map<std::string, model::Decoder> loaded;
  const auto found = loaded.find(name);
  return found != loaded.end() ? found->second : loaded.emplace(name, model::load_decoder(name)).first->second;
}

inline const hardware::Device& device(const std::string& name) {
  static std::map<std::string, hardware::Device> loaded;
  const auto found = loaded.find(name);
  return found != loaded.end() ? found->second : loaded.emplace(name, hardware::load_device(name)).first->second;
}

}  // namespace llmperf::test
