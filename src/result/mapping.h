// What `llmperf map` answers: the mappings of an op on an array of tiles, in numbers and in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/collective.h"
#include "estimate/estimate.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "mapper/tile/published.h"
#include "mapper/tile/residency.h"
#include "mapper/tile/simulation.h"
#include "mapper/tile/study.h"
#include "result/field.h"

namespace llmperf::result {

inline constexpr const char* kMapped = "mapped, uncalibrated";

// The schedule of the best mapping, as it is drawn.
struct DrawnSchedule {
  struct Window {  // of time, s
    double begin = 0;
    double end = 0;
  };
  struct Lane {
    std::string name;
    mapper::tile::Lane kind = mapper::tile::Lane::matrix;
    std::vector<mapper::tile::Bar> bars;
  };
  std::optional<double> seconds;  // nothing: the drawing has the first and the last steps of a long one
  std::vector<Window> windows;
  std::vector<Lane> lanes;
};
Type fields_of(Fields<DrawnSchedule::Window> f);
Type fields_of(Fields<DrawnSchedule::Lane> f);
Type fields_of(Fields<DrawnSchedule> f);

// What is said of a product beside its op.
struct ProductTerms {
  Dtype second = Dtype::bf16;   // of B
  Dtype results = Dtype::bf16;  // of C
  std::string local;            // operands in the tiles' memory: "a, c"; may be empty
};

struct MappingStudy {
  const hardware::Device* device = nullptr;
  std::string runtime;  // the profile that times are with; empty: none
  Dtype dtype = Dtype::bf16;
  mapper::tile::Operands operands;
  ProductTerms product;
  const graph::Op* op = nullptr;  // a gemm, an attention or a vector op
  std::string_view name;          // of the vector op's kind, or of what is joined to the product; may be empty
  const mapper::tile::Study* study = nullptr;
  bool whole = false;                                    // the best was simulated from the first step to the last
  std::optional<mapper::tile::PublishedTime> published;  // asked for
  std::optional<mapper::tile::Recost> recost;            // of its choice on the machine of the mappings
  DrawnSchedule schedule;
  std::string svg;  // of the schedule

  const mapper::tile::StudiedMapping& best() const { return study->mappings().front(); }
  const std::optional<mapper::tile::StudiedMapping>& given() const { return study->given(); }
  // What the times are: "mapped, uncalibrated" or "mapped, with NAME".
  std::string label() const { return runtime.empty() ? kMapped : "mapped, with " + runtime; }
  double of_bound(const mapper::tile::StudiedMapping& m) const { return study->bound().seconds() / m.simulated; }
};
Type fields_of(Fields<MappingStudy> f);

// A mapping in a flat row.
struct MappingRow {
  const MappingStudy* of;
  std::size_t rank;  // from 0
  const mapper::tile::StudiedMapping* one;
  const mapper::tile::StudiedMapping& mapping() const { return *one; }
  const mapper::tile::Description& description() const { return one->description; }
};
Type fields_of(Fields<MappingRow> f);
std::vector<MappingRow> rows_of(const MappingStudy& study);

Type fields_of(Fields<mapper::tile::Dimension> f);

// "gemm m 4096, n 12288, k 4096"
std::string op_text(const MappingStudy& study);
// "m/4 n/4": the dimensions that tiles share.
std::string split_text(const mapper::tile::Description& mapping);
// "256x512x64"
std::string block_text(const mapper::tile::Description& mapping);
// "all of A", "3 of 8 slices of B", "results"
std::string stays_text(const mapper::tile::Description& mapping);
// "A multicast, B direct"
std::string feeds_text(const mapper::tile::Description& mapping);
std::string buffers_text(const mapper::tile::Operand& operand, mapper::tile::Results results);
// What takes a mapping longer than the best, by the closed form.
std::string slower_text(const mapper::tile::Description& best, const mapper::tile::Description& other);

// ---- What `llmperf map model` answers: the ops of one step on an array of tiles, and what stays there between them.

struct StepMapping {
  const estimate::Setup* setup = nullptr;
  graph::SequenceGroup group;
  const estimate::Phase* phase = nullptr;
  double sram = 0;  // bytes of a tile
  mapper::tile::PlacedStep step;
};
Type fields_of(Fields<StepMapping> f);

// An op of it in a flat row.
struct PlacedRow {
  const StepMapping* of;
  std::size_t index;
  const graph::Op& op() const { return of->phase->ops[index].op; }
  const mapper::OpTime& apart() const { return of->phase->ops[index].time; }
  const mapper::tile::PlacedOp& placed() const { return of->step.ops[index]; }
  // "attention, up_proj": ops whose results it finds in the tiles' memory.
  std::string from() const;
};
Type fields_of(Fields<PlacedRow> f);
std::vector<PlacedRow> placed_rows(const StepMapping& step);

// ---- What `llmperf map-collective` answers: a collective by each algorithm, or by size.

// A size by an algorithm. Bandwidths are as nccl-tests defines them: size over time, and that times the factor which
// makes it the rate of the links when all are busy, so unavoidable bytes over time; nothing where nothing moves.
struct CollectiveLine {
  Bytes size;
  cost::CollectiveCost cost;
  bool chosen = false;
  std::string_view busiest;  // links
  Bytes unavoidable;
  bool moves() const { return cost.time().value > 0; }
  bool latency_bound() const { return cost.latency > cost.transfer; }
  BytesPerSecond algorithm_bandwidth() const { return moves() ? size / cost.time() : BytesPerSecond{}; }
  BytesPerSecond bus_bandwidth() const { return moves() ? unavoidable / cost.time() : BytesPerSecond{}; }
};
Type fields_of(Fields<CollectiveLine> f);

struct CollectiveStudy {
  const hardware::Device* device = nullptr;
  cost::Cluster cluster;
  graph::Collective collective;              // kind, ranks and stride
  std::vector<Bytes> sizes;                  // at least one
  std::optional<cost::Algorithm> algorithm;  // asked for; none: the fastest
  bool node_given = false;                   // devices per node was given, not read from the file

  // Filled in by study_collective().
  std::vector<CollectiveLine> lines;     // with one size of every algorithm, with several of the fastest of each
  std::vector<cost::SizeRange> fastest;  // by size
  cost::Placement placement() const { return place(cluster, collective); }
};
Type fields_of(Fields<CollectiveStudy> f);
// Throws Error(bad_input) when the algorithm asked for does not exist for the collective.
void study_collective(CollectiveStudy& study);

}  // namespace llmperf::result
