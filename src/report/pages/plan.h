// What the outputs of an estimate say about a plan: the devices, what they send each other, the pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/document.h"
#include "result/generation.h"
#include "result/serving.h"

namespace llmperf::report {

// "16 x NVIDIA H100 SXM"; of one device its title alone.
std::string title_text(const hardware::Device& device, std::int64_t devices);
// "2 x A + B" of unlike cards.
std::string title_text(const estimate::Setup& setup);
// "16 devices on 2 nodes".
std::string devices_text(const cost::Cluster& cluster, std::int64_t devices);
// "16 devices on 2 nodes: tp 8, pp 2; embedding sharded"; with the layers of stages that are not alike.
std::string plan_text(const estimate::Setup& setup, const graph::StageSplit& split);
// "4 devices on 1 node: tp 4"; with unlike stages each of them.
std::string plan_text(const estimate::VideoSetup& setup);
// "102 frames of 720x1280, 30 steps with guidance, 300 text tokens; weights bf16, activations bf16, …".
std::string request_text(const estimate::VideoSetup& setup);
// "2.69 USD/h (rent: RunPod Community Cloud, 2026-09-25)", of all devices together.
std::string price_text(const estimate::HourPrice& price, double cost_per_hour);
// The cost and the energy of a run, "a step" or "a generation".
void add_spent(const std::optional<estimate::HourPrice>& price, const estimate::Spent& spent, std::string_view run,
               Fields& fields);
// "ttft.p99 is 1.2 s, 20.0 % above 1 s".
std::string slo_bound_text(const ServedBound& bound);
// Which share of the ops' time a device sends; what stages and collectives do side by side.
std::string network_text(std::span<const estimate::Phase> phases);

// One row for each exchange of a step, with the sum of what a device sends and of its time.
// `pipeline`: whether the step has stages; `model`: null for other models than decoders.
Table communication_table(const cost::Cluster& cluster, bool pipeline, const estimate::Phase& phase,
                          const model::Decoder* model = nullptr);
Table stage_table(const Generation& result);

// An op that is an exchange, in `steps` steps; `hidden`: of one, what runs beside other ops.
struct Exchange {
  const estimate::OpEstimate* op = nullptr;
  std::int64_t steps = 1;
  Seconds hidden;
  std::string name = std::string(op->op.name);  // with its layers, where several kinds have one
};
// With the algorithm that each takes on `cluster`, or without when it is null.
Table exchange_table(std::string title, const std::vector<Exchange>& exchanges, const cost::Cluster* cluster);

}  // namespace llmperf::report
