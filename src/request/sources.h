// Models, devices and runtime profiles by the names that requests give them, each read once. Threads may share one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "estimate/price.h"
#include "graph/expert_placement.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "model/model_file.h"
#include "model/video/video_dit.h"

namespace llmperf::request {

// The CPU beside a device for GGUF formats when a request names none: a desktop's.
inline constexpr const char* kDefaultHost = "ryzen-7950x";
// The CPU of that name or file, kDefaultHost when `name` is empty. Throws Error(bad_input) for what is no CPU.
hardware::Device load_host(const std::string& name);

// Tokens of each expert of a model: JSON as DeepSeek's EPLB takes it, a list for each layer, which is one of its
// experts' loads, as such or as `logical_count` of a mapping (SGLang's), or CSV with a line for each layer. There may
// be one for all layers, and some of layers without experts, which are passed over. Throws Error(bad_input) with every
// problem and its position.
std::shared_ptr<const graph::MeasuredLoads> load_expert_loads(const std::string& path, const model::Decoder& model);

class Sources {
 public:
  // Throw Error(bad_input) for what there is none of or cannot be read, again at every call.
  model::ModelFile model(const std::string& name, const std::string& assume = {});
  model::VideoDit video(const std::string& name);
  bool is_video(const std::string& name);
  hardware::Device device(const std::string& name);
  hardware::Device host(const std::string& name);
  hardware::RuntimeProfile profile(const std::string& device_name, const hardware::Device& device,
                                   const std::string& name, hardware::UnknownRuntime unknown,
                                   hardware::Workload workload);
  // Of a file of prices, by the names of devices. Throws Error(bad_input) with every problem of the file.
  std::map<std::string, estimate::HourPrice> prices(const std::string& path);
  std::shared_ptr<const graph::MeasuredLoads> expert_loads(const std::string& path, const model::Decoder& model);
  void put(const std::string& name, hardware::Device device) { devices_.insert_or_assign(name, std::move(device)); }
  // A profile of the device that requests may name so.
  void put(const std::string& device_name, const std::string& name, hardware::RuntimeProfile profile) {
    const hardware::Workload workload = profile.workload;
    profiles_.insert_or_assign({device_name, name, workload}, std::move(profile));
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, model::ModelFile> models_;
  std::map<std::string, model::VideoDit> video_models_;
  std::map<std::string, bool> is_video_;
  std::map<std::string, hardware::Device> devices_;
  std::map<std::string, hardware::Device> hosts_;
  std::map<std::string, std::map<std::string, estimate::HourPrice>> prices_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const graph::MeasuredLoads>> expert_loads_;
  std::map<std::tuple<std::string, std::string, hardware::Workload>, hardware::RuntimeProfile> profiles_;
};

}  // namespace llmperf::request
