// Parts of results as JSON trees. Included by .cpp files only.
#pragma once

#include "report/json.h"
#include "result/parts.h"

namespace llmperf::report {

inline Json hardware_json(const estimate::Platform& platform, const std::vector<Figure>& figures) {
  return tree(HardwareUsed{platform.device, figures});
}
inline Json hardware_json(const estimate::Setup& setup) { return hardware_json(setup, figures_used(setup)); }
inline Json roofs_json(const hardware::Device& device) { return tree(Roofs{&device}); }
inline Json work_json(const cost::Work& work, double count) { return tree(CountedWork{&work, count}); }
inline Json collective_json(const estimate::OpEstimate& op, const cost::Cluster& cluster) {
  const auto exchange = exchanged({&op, &cluster});
  return exchange ? tree(*exchange) : Json(nullptr);
}
inline Json phase_json(const estimate::Phase& phase) { return tree(phase); }
inline Json op_json(const estimate::OpEstimate& op, const cost::Cluster& cluster) {
  return tree(OpResult{&op, &cluster});
}
inline Json plan_json(const graph::Plan& plan) { return tree(plan); }
inline Json runtime_json(const estimate::Platform& platform, hardware::Dispatch dispatch) {
  return platform.profile ? tree(RuntimeUsed{&platform, dispatch}) : Json(nullptr);
}
inline Json band_json(const std::optional<Band>& band, Seconds time) {
  return band ? tree(BandOf{*band, time}) : Json(nullptr);
}

}  // namespace llmperf::report
