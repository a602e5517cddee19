// The names that values of a request can have, for completion and for whoever lists them.
#pragma once

#include <string>
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

}  // namespace llmperf::request
