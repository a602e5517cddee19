#include "graph/op.h"

#include "catch.h"

namespace llmperf::graph {
namespace {

TEST_CASE("collectives and axes have the names that people use") {
  CHECK(name(CollectiveKind::all_reduce) == "all-reduce");
  CHECK(name(CollectiveKind::all_to_all) == "all-to-all");
  CHECK(name(CollectiveKind::ring_pass) == "ring pass");
  CHECK(name(CollectiveKind::broadcast) == "broadcast");
  CHECK(name(Axis::tensor) == "tensor");
  CHECK(name(Axis::tensor_columns) == "tensor columns");
  CHECK(name(Axis::pipeline) == "pipeline");
}

}  // namespace
}  // namespace llmperf::graph
