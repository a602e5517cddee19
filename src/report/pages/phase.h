// What the outputs of an estimate say about a phase, whatever the model does.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estimate/estimate.h"
#include "report/document.h"
#include "result/parts.h"

namespace llmperf::report {

// The figures that the numbers rest on, each with its provenance.
Fields rests_on(const estimate::Platform& platform, const std::vector<Figure>& figures);
// "matrix 97 %, memory 3 %" of a phase's time.
std::string bound_shares(std::span<const estimate::Phase> phases);
inline std::string bound_shares(const estimate::Phase& phase) { return bound_shares({&phase, 1}); }
// "889.1 G": the column's header says of what.
std::string flops_cell(Flops flops);
// The op's name, with the layers it is of where ops of that name are of several kinds of layers of `model`, which is
// null for other models than decoders.
std::string op_name(const estimate::Phase& phase, const graph::Op& op, const model::Decoder* model);
// A row for each op of a step.
Table op_table(const estimate::Phase& phase, const model::Decoder* model = nullptr);
Table ops_csv(std::span<const estimate::Phase> phases, Also also = Also::nothing);
// What takes the memory of a device, and what share of it; the capacity itself becomes the last row.
Table capacity_table(std::string title, Bytes capacity, std::vector<std::pair<std::string, Bytes>> rows);

}  // namespace llmperf::report
