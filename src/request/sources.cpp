#include "request/sources.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/load_once.h"
#include "request/price.h"

namespace llmperf::request {
hardware::Device load_host(const std::string& name) {
  hardware::Device host = hardware::load_device(name.empty() ? kDefaultHost : name);
  if (host.kind != hardware::DeviceKind::cpu && host.kind != hardware::DeviceKind::soc) {
    throw Error::bad_input(fmt::format("`host`: {} is a {}, not a CPU", host.name, hardware::name(host.kind)),
                           fmt::format("{}, epyc-9654 or a device file of kind cpu", kDefaultHost));
  }
  return host;
}

model::ModelFile Sources::model(const std::string& name, const std::string& assume) {
  const std::lock_guard lock(mutex_);
  return load_once(models_, {name, assume}, [&] { return model::load_model(name, assume); });
}

model::VideoDit Sources::video(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return load_once(video_models_, name, [&] { return model::load_video_dit(name); });
}

bool Sources::is_video(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return load_once(is_video_, name, [&] { return model::is_video_dit(name); });
}

hardware::Device Sources::device(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return load_once(devices_, name, [&] { return hardware::load_device(name); });
}

hardware::Device Sources::host(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return load_once(hosts_, name, [&] { return load_host(name); });
}

std::map<std::string, estimate::HourPrice> Sources::prices(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return load_once(prices_, path, [&] { return load_prices(path); });
}

std::shared_ptr<const graph::MeasuredLoads> Sources::expert_loads(const std::string& path,
                                                                  const model::Decoder& model) {
  const std::lock_guard lock(mutex_);
  return load_once(expert_loads_, {path, model.name}, [&] { return load_expert_loads(path, model); });
}

hardware::RuntimeProfile Sources::profile(const std::string& device_name, const hardware::Device& device,
                                          const std::string& name, hardware::UnknownRuntime unknown,
                                          hardware::Workload workload) {
  const std::lock_guard lock(mutex_);
  return load_once(profiles_, {device_name, name, workload},
                   [&] { return hardware::load_runtime_profile(device, name, unknown, workload); });
}

}  // namespace llmperf::request
