// Collectives on a switch by hand.
#include "mapper/roofline/collective_kernel.h"

#include "catch.h"
#include "kernel_values.h"

namespace llmperf::mapper {
namespace {

using enum hardware::Parameter;
using graph::CollectiveKind;
using hardware::ParameterValues;

// 9 us, 1 us a step, half of 100 GB/s, the own part at 200 GB/s.
ParameterValues values() {
  return values_with(
      {{collective_launch, 9e-6}, {collective_step, 1e-6}, {collective_share, 0.5}, {collective_copy_share, 2}});
}
double of(CollectiveKind kind, double ranks, double bytes) {
  return collective_seconds(round_device(), values(), kind, ranks, bytes);
}

TEST_CASE("a ring sends all parts but the own one, and an all-reduce sends them twice") {
  // 4 MB on 4 ranks: 3 steps and 3 MB at 50 GB/s are 63 us, the own 1 MB takes 5 us.
  CHECK(of(CollectiveKind::all_gather, 4, 4e6) == Approx(9e-6 + 3e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::reduce_scatter, 4, 4e6) == Approx(9e-6 + 3e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::all_reduce, 4, 4e6) == Approx(9e-6 + 6e-6 + 120e-6 + 5e-6));
}

TEST_CASE("an all-to-all posts all its messages at once") {
  CHECK(of(CollectiveKind::all_to_all, 4, 4e6) == Approx(9e-6 + 4e-6 + 60e-6 + 5e-6));
  CHECK(of(CollectiveKind::all_to_all, 2, 8) == Approx(of(CollectiveKind::all_to_all, 64, 8)).epsilon(1e-4));
}

TEST_CASE("a send is one message, and a ring pass one per other rank") {
  CHECK(of(CollectiveKind::send, 2, 5e6) == Approx(9e-6 + 1e-6 + 100e-6));
  CHECK(of(CollectiveKind::ring_pass, 4, 5e6) == Approx(3 * of(CollectiveKind::send, 2, 5e6)));
}

TEST_CASE("a broadcast passes all bytes on, a step for each other rank") {
  CHECK(of(CollectiveKind::broadcast, 4, 5e6) == Approx(9e-6 + 3e-6 + 100e-6));
}

TEST_CASE("filling the pipeline costs twice the geometric mean of a chunk's latency and the transfer") {
  ParameterValues v = values();
  v[index(collective_fill)] = 4e-6;
  // The transfer takes 100 us: 2 sqrt(4 us x 100 us) = 40 us.
  CHECK(collective_seconds(round_device(), v, CollectiveKind::send, 2, 5e6) == Approx(9e-6 + 1e-6 + 100e-6 + 40e-6));
}

TEST_CASE("a single rank or nothing to send takes no time") {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::send}) {
    CHECK(of(kind, 1, 1e9) == 0);
    CHECK(of(kind, 8, 0) == 0);
  }
}

}  // namespace
}  // namespace llmperf::mapper
