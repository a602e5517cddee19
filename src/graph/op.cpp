#include "graph/op.h"

#include <array>
#include <cstddef>

namespace llmperf::graph {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 7> kCollectiveNames = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "ring pass", "broadcast"};
constexpr std::array<std::string_view, 8> kAxisNames = {"tensor", "tensor rows", "tensor columns", "ulysses",
                                                        "ring",   "expert",      "data",           "pipeline"};

constexpr std::array<std::string_view, 25> kVectorNames = {
    "rms_norm",         "layer_norm", "add",        "add_rms_norm",  "add_layer_norm", "rope",     "activation",
    "gated_activation", "multiply",   "mask",       "softmax",       "router",         "combine",  "sigmoid_gate",
    "sampling",         "softcap",    "dropout",    "cross_entropy", "adam",           "modulate", "gate_add",
    "select",           "reduce",     "group_norm", "elementwise"};

static_assert(static_cast<std::size_t>(VectorKind::elementwise) + 1 == kVectorNames.size());
static_assert(static_cast<std::size_t>(CollectiveKind::broadcast) + 1 == kCollectiveNames.size());
static_assert(static_cast<std::size_t>(Axis::pipeline) + 1 == kAxisNames.size());

}  // namespace

std::string_view name(CollectiveKind kind) { return kCollectiveNames[static_cast<std::size_t>(kind)]; }
std::string_view name(VectorKind kind) { return kVectorNames[static_cast<std::size_t>(kind)]; }
std::string_view name(Axis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }

}  // namespace llmperf::graph
