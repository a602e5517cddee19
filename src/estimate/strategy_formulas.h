// What one strategy of parallel training costs a layer, as formulas over the model's dimensions: the comparison table
// of the literature for any dense decoder. Every formula is evaluated and compared with what the op graph gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/term.h"
#include "estimate/estimate.h"
#include "graph/training_graph.h"

namespace llmperf::estimate {

using llmperf::Variable;

struct Formula {
  std::string text;  // "8 * alpha * b * s * h"
  double value = 0;
  std::vector<Variable> variables;
};

// Per layer; communication of one training step (forward and backward pass, no recomputation), in elements that one
// device sends.
struct StrategyFormulas {
  std::string name;  // "Megatron-SP"
  graph::Plan plan;
  int zero = 0;
  std::optional<std::string> illegal;  // why this model, batch or sequence cannot be divided so
  std::string parameter_collectives;   // "all-reduce of P"
  Formula parameter_communication;
  std::string activation_collectives;  // "6 all-gather, 4 reduce-scatter"
  Formula activation_communication;
  std::string split;  // what is divided inside attention / outside it: "a / h"
  Formula weights;    // parameters that a device holds
  Formula gradients;
  Formula optimizer;    // in 2-byte parameters: 6 per parameter that it updates
  Formula activations;  // bytes kept between the passes
};

struct StrategyTable {
  std::vector<Variable> variables;  // b, s, h, a, k, d, f, n, alpha, …: those the formulas use
  Formula parameters;               // of one layer: P
  std::vector<StrategyFormulas> strategies;
};

// Every pure strategy, and Ulysses with Ring, on `devices` devices. Throws Error(bad_input) for models with experts,
// latent attention or several kinds of layers, and std::logic_error when a formula and the graph disagree.
StrategyTable strategy_formulas(const Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices);

// For people: "8 alpha b s h", "12 h^2".
std::string pretty(const std::string& formula);

}  // namespace llmperf::estimate
