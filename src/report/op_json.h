// An op and what its numbers rest on, in the JSON outputs. Included by .cpp files only.
#pragma once

#include "cost/collective.h"
#include "estimate/estimate.h"
#include "report/figures.h"
#include "report/json.h"

namespace llmperf::report {

// {"name", "source", "figures"} of the device; the figures used with their provenance.
Json hardware_json(const estimate::Platform& platform, const std::vector<Figure>& figures);
Json hardware_json(const estimate::Setup& setup);
// What the device could do at best: the bandwidth of its memory levels, near to far, and the peak of every type.
Json roofs_json(const hardware::Device& device);
// FLOPs and bytes by what they are, of `count` executions.
Json work_json(const cost::Work& work, double count);
// How an exchange between devices runs; null for other ops.
Json collective_json(const estimate::OpEstimate& op, const cost::Cluster& cluster);
// What a phase is and takes, of one step, without its ops.
Json phase_json(const estimate::Phase& phase);
// Numbers are of all executions.
Json op_json(const estimate::OpEstimate& op, const cost::Cluster& cluster);

}  // namespace llmperf::report
