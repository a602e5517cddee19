// What the outputs of an estimate say about a phase, whatever the model does, and about a plan.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estimate/estimate.h"
#include "report/document.h"
#include "result/generation.h"
#include "result/parts.h"
#include "result/serving.h"

namespace llmperf::report {

// The figures that the numbers rest on, each with its provenance, and notes.
Fields rests_on(const estimate::Platform& platform, const std::vector<Figure>& figures,
                const std::vector<std::string>& notes);
// What an estimate opens with: `speed`, whether it fits, the cost, and how sure that is: "57 tokens/s a request; fits
// in 15.23 GiB of 23.52 GiB; 1.2 USD per million tokens; ±4 to 5.5 %, extrapolated."
Paragraph opening(const std::string& speed, Bytes needs, Bytes capacity, const std::string& cost,
                  const estimate::Platform& platform, std::initializer_list<std::optional<Band>> bands, bool beyond);
// "1.2 USD per million tokens"; empty where it is not known.
std::string cost_text(const std::optional<estimate::HourPrice>& price, std::optional<double> cost, std::string_view of);
// "15.23 GiB of 23.52 GiB".
std::string of_capacity(Bytes part, Bytes whole);
// "weights 14.38 GiB, KV cache 320 MiB": the first cells of a table's rows with those of a column, up to the total; of
// rows that are more than nothing.
std::string parts_text(const Table& table, std::size_t column = 1);
// How far the numbers may be off, what is extrapolated, and what of a device is measured that no profile is fitted to.
void add_sureness(const estimate::Platform& platform, const std::string& band, const std::vector<std::string>& beyond,
                  Fields& fields);
// The notes that a first screen has room for.
void add_notes(const std::vector<std::string>& notes, Fields& fields);
// The page of what does not fit, with the memory in a table of its own where all is asked for.
Document refused(Heading heading, const std::string& needs, const std::string& request, Fields rows, Table memory,
                 bool full);
// "matrix 97 %, memory 3 %" of a phase's time.
std::string bound_shares(std::span<const estimate::Phase> phases);
inline std::string bound_shares(const estimate::Phase& phase) { return bound_shares({&phase, 1}); }
// The op's name, with the layers it is of where ops of that name are of several kinds of layers of `model`, which is
// null for other models than decoders.
std::string op_name(const estimate::Phase& phase, const graph::Op& op, const model::Decoder* model);
// A row for each phase; a row for each op of a step, where that is asked for with what of it runs beside others.
Table phases_table(std::span<const estimate::Phase> phases, std::string title = "Phases (one step)");
Table op_table(const estimate::Phase& phase, const model::Decoder* model = nullptr, bool hidden = false);
Table ops_csv(std::span<const estimate::Phase> phases, Also also = Also::nothing);
// What takes the memory of a device, and what share of it; the capacity itself becomes the last row.
Table device_memory_table(std::string title, const cost::Memory& memory, Bytes capacity);
Table capacity_table(std::string title, Bytes capacity, std::vector<std::pair<std::string, Bytes>> rows);

// ---- What the outputs of an estimate say about a plan: the devices, what they send each other, the pipeline.

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
