// What the outputs of an estimate say about a phase, whatever the model does.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estimate/estimate.h"
#include "report/document.h"
#include "result/parts.h"

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
