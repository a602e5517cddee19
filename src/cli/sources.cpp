#include "cli/sources.h"

#include "cli/request.h"

namespace llmperf::cli {
namespace {

template <class Map, class Load>
typename Map::mapped_type found(Map& map, const typename Map::key_type& key, Load&& load) {
  auto at = map.find(key);
  if (at == map.end()) at = map.emplace(key, load()).first;
  return at->second;
}

}  // namespace

model::ModelFile Sources::model(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return found(models_, name, [&] { return model::load_model(name); });
}

model::VideoDit Sources::video(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return found(video_models_, name, [&] { return model::load_video_dit(name); });
}

bool Sources::is_video(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return found(is_video_, name, [&] { return model::is_video_dit(name); });
}

hardware::Device Sources::device(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return found(devices_, name, [&] { return hardware::load_device(name); });
}

hardware::Device Sources::host(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return found(hosts_, name, [&] { return load_host(name); });
}

hardware::RuntimeProfile Sources::profile(const std::string& device_name, const hardware::Device& device,
                                          const std::string& name, hardware::UnknownRuntime unknown,
                                          hardware::Workload workload) {
  const std::lock_guard lock(mutex_);
  return found(profiles_, {device_name, name, workload},
               [&] { return hardware::load_runtime_profile(device, name, unknown, workload); });
}

}  // namespace llmperf::cli
