// Rings over a switch, as NCCL runs them (arXiv:2507.04786; derivation of the bytes in docs/formulas.md, Collectives).
//
//   launch + steps step + wire + 2 sqrt(fill wire)
//
// wire: the bytes that a rank sends over the share of its links that is reached, and the copy of its own part, which
// goes no further than its memory. A message is cut into chunks that follow each other through the ring; a chunk has a
// latency, fewer chunks leave the pipeline empty for longer, and with the best number of chunks these two cost as much
// as each other and together the last term.
// An all-to-all has no ring: every message is posted at once, which costs the same few steps for any number of ranks.
#include "mapper/roofline/collective_kernel.h"

#include <cmath>

namespace llmperf::mapper {

using enum hardware::Parameter;

namespace {

constexpr double kPostedSteps = 4;

struct Traffic {
  double calls = 1;
  double steps = 0;  // each call
  double sent = 0;   // bytes, each call
  double kept = 0;
};

Traffic traffic(graph::CollectiveKind kind, double ranks, double bytes) {
  using enum graph::CollectiveKind;
  const double own = bytes / ranks;
  const double others = ranks - 1;
  switch (kind) {
    case all_reduce: return {.steps = 2 * others, .sent = 2 * others * own, .kept = own};
    case all_gather:
    case reduce_scatter: return {.steps = others, .sent = others * own, .kept = own};
    case all_to_all: return {.steps = kPostedSteps, .sent = others * own, .kept = own};
    case send: return {.steps = 1, .sent = bytes};
    case ring_pass: return {.calls = others, .steps = 1, .sent = bytes};  // each pass is awaited by what uses the block
    case broadcast: return {.steps = others, .sent = bytes};              // passed on from rank to rank
  }
  return {};
}

}  // namespace

double collective_seconds(const KernelDevice& d, const hardware::ParameterValues& v, graph::CollectiveKind kind,
                          double ranks, double bytes) {
  if (ranks <= 1 || bytes <= 0) return 0;
  const Traffic t = traffic(kind, ranks, bytes);
  const double wire =
      t.sent / (d.link * v[index(collective_share)]) + t.kept / (d.link * v[index(collective_copy_share)]);
  return t.calls * (v[index(collective_launch)] + t.steps * v[index(collective_step)] + wire +
                    2 * std::sqrt(v[index(collective_fill)] * wire));
}

}  // namespace llmperf::mapper
