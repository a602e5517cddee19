// What `llmperf map` answers: the mappings of an op on an array of tiles, in numbers and in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"
#include "hardware/device.h"
#include "mapper/tile/published.h"
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

}  // namespace llmperf::result
