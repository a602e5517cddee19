// Collectives between devices that one kind of link joins. Used by collective.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cost/collective.h"

namespace llmperf::cost {

// `ranks` devices, `stride` apart, and the bytes of graph::Collective.
struct Exchange {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  double bytes = 0;
  bool routed = false;
  double once = 1;  // routed: bytes that a node is sent once, of those for its devices one by one

  double block() const { return bytes / static_cast<double>(ranks); }  // M of docs/formulas.md
  double others() const { return static_cast<double>(ranks - 1); }
  bool broadcast() const { return kind == graph::CollectiveKind::broadcast; }
  // All-reduce is a reduce-scatter and an all-gather, which are each other's mirror image; a broadcast can be a scatter
  // and an all-gather.
  double phases() const { return kind == graph::CollectiveKind::all_reduce || broadcast() ? 2 : 1; }
  // By a ring a broadcast passes on all of the tensor, once round.
  double ring_rounds() const { return broadcast() ? 1 : phases(); }
  double ring_bytes() const { return broadcast() ? bytes : phases() * others() * block(); }
};

// The algorithms of one collective; no more than this exist for any.
class Candidates {
 public:
  void add(const CollectiveCost& cost) { list_[count_++] = cost; }
  const CollectiveCost* begin() const { return list_.data(); }
  const CollectiveCost* end() const { return list_.data() + count_; }
  // The first of the fastest; `none` where there are none.
  CollectiveCost fastest() const;

 private:
  std::array<CollectiveCost, 5> list_;
  std::size_t count_ = 0;
};

// At least one algorithm for more than one rank; none for one. A library of rings has that one only.
Candidates one_level(const Links& links, const Exchange& exchange);

// Adds to `cost` what a library of rings takes beside the links: `own` bytes that a rank copies, and filling the
// pipeline of each of `calls`. Does nothing to links without one.
void add_chunks(const Links& links, double own, double calls, CollectiveCost& cost);

}  // namespace llmperf::cost
