#include "graph/op.h"

#include <array>
#include <cstddef>

namespace llmperf::graph {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 6> kCollectiveNames = {"all-reduce", "all-gather", "reduce-scatter",
                                                              "all-to-all", "send",       "ring pass"};
constexpr std::array<std::string_view, 8> kAxisNames = {"tensor", "tensor rows", "tensor columns", "ulysses",
                                                        "ring",   "expert",      "data",           "pipeline"};

static_assert(static_cast<std::size_t>(CollectiveKind::ring_pass) + 1 == kCollectiveNames.size());
static_assert(static_cast<std::size_t>(Axis::pipeline) + 1 == kAxisNames.size());

}  // namespace

std::string_view name(CollectiveKind kind) { return kCollectiveNames[static_cast<std::size_t>(kind)]; }
std::string_view name(Axis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }

}  // namespace llmperf::graph
