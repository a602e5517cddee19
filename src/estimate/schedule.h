// From the ops of a step to its time: each op is timed, they are scheduled, and a phase sums them up. Ops run one after
// the other, but for collectives beside the op before them and for pipeline stages that work on different micro-batches
// at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/units.h"
#include "estimate/phase.h"
#include "estimate/setup.h"

namespace llmperf::estimate {

// Of a workload without a pipeline; never empty, as stages are.
inline const std::array<Stage, 1> kWhole = {};

// To the next stage.
bool is_send(const graph::Op& op);
// Work and time of one execution of an op.
void time_op(const mapper::Machine& machine, OpEstimate& op);
// … of every op of a graph, `times` executions for one; what `ops` held before is replaced.
void time_ops(const mapper::Machine& machine, std::span<const graph::Op> graph, std::int64_t times,
              std::vector<OpEstimate>& ops);
// What the runtime takes beside ops that take `seconds` in a step. There has to be a profile.
Seconds runtime_overhead(const Platform& platform, const Launches& launches, std::span<const OpEstimate> ops,
                         std::span<const double> seconds);
// Time that no kernel takes, as an op.
OpEstimate waiting(std::string_view name, Seconds time, std::int64_t count = 1, graph::Tag tag = {});

// A phase from the ops of one micro-batch of its step: times them, adds what the runtime takes beside them, and sums
// up. How steps follow one another (micro-batches, steadiness, launches) the phase says itself. Prefetch: whether
// weights come early. `seconds` is scratch; allocates nothing once warm. Throws as sum_up() does.
enum class Prefetch : bool { no, yes };
void time_phase(const Platform& platform, const mapper::Machine& machine, std::span<const graph::Op> graph,
                std::span<const Stage> stages, Prefetch prefetch, Phase& phase, std::vector<double>& seconds);

// Attention and experts on devices of their own (Plan::afd), and the exchanges there and back: seconds of a step, of
// all micro-batches, that each is busy; all zero of other plans. Micro-batches take turns, and steps follow one
// another; m of them take
//
//   max(sum over ops / m, attention, experts, dispatch, return)
//
// With T_a, T_e of a layer and micro-batch, T_f = max(T_a, T_e) and exchanges of T_c < T_f that is m T_f a layer where
// m T_f >= T_a + T_e + 2 T_c: of MegaScale-Infer (arXiv 2504.02263, section 4.1) the third condition, which for
// T_a = T_e reads m >= 2 (1 + T_c / T_f). Its iteration, (T_a + T_e + 2 T_c) + T_f (m L - 1), fills the pipeline anew
// for each token; here the first micro-batch begins its next token while the others end theirs, m L T_f.
enum class Pool : unsigned char { attention, experts, dispatch, result };
inline constexpr std::array<std::string_view, 4> kPools = {"attention", "experts", "dispatch", "return"};
using Pools = std::array<double, kPools.size()>;
Pool pool_of(const graph::Op& op);
Pools pools_of(std::span<const OpEstimate> ops, std::span<const double> seconds);
Pools pools_of(const Phase& phase);
// The name of the busiest; "turns" where a micro-batch's own way takes longest, as of too few of them.
std::string_view bound_of(const Pools& pools, Seconds step);

struct Schedule {
  Seconds time;
  Seconds ops;  // the times of all ops; ops = time + overlapped + pipelined
  Seconds overlapped;
  Seconds pipelined;
  Seconds bubble;  // of the busiest stage
};

// `seconds`: what each op takes in the step, all executions of all micro-batches. `in_flight`: of these, as many as are
// worked on at the same time, whatever the number of stages.
Schedule schedule_step(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages,
                       std::int64_t micro_batches, Steady steady,
                       double in_flight = std::numeric_limits<double>::infinity());

// What pipelining makes of a prompt's micro-batches in llama.cpp: so many are worked on at the same time. One host
// launches for all cards in turn and stops where more launches are pending on a card than its queue takes. A queue that
// holds q = queue / (kernels x layers / cards) micro-batches lets the first card begin micro-batch m + 1 once the last
// has done m - q of them, so that j = ceil(q) micro-batches take (cards - 1 + j - q) stages' times, not fewer than j:
//
//   in flight = min(4, cards / max(1, (cards - 1 + j - q) / j))
//
// and min(4, cards) of no more than j micro-batches. Inputs are kept for four. Layers whose weights are not unpacked
// before their products launch an eighth less.
double prompts_in_flight(const hardware::ParameterValues& values, double layers, double cards, double micro_batches,
                         bool unpacks);

// Work, times and bounds of a phase from its ops, micro-batches and steadiness. `seconds` is scratch. Throws
// std::logic_error when an op is faster than its roof.
void sum_up(Phase& phase, std::span<const Stage> stages, std::vector<double>& seconds);

// What of an exchange is hidden when the step's sequences are divided into two micro-batches, A and B, that take turns
// (two-batch overlap): A's exchange n_i runs beside B's ops c_i before the same exchange, and B's beside A's ops c_i+1
// after it. Two micro-batches with k exchanges then take
//
//   c_1 + sum over i of (max(n_i, c_i) + max(n_i, c_i+1)) + c_k+1
//
// which is what they take one after the other, 2 (sum of c_i + sum of n_i), less min(n_i, c_i) + min(n_i, c_i+1) for
// each i. Exchanges that follow one another are one; the ops between the last exchange of a layer and the first of the
// next are one c. Before the first exchange of the first layer and after the last of the last there are only that
// layer's own.
double beside_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i);

// What of op `i` is hidden: OpEstimate::hidden, beside_seconds(), else of a collective that can run while the op before
// it does its share (Op::hidden) of the shorter of the two.
double hidden_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i);
// … in the phase's (mean) step.
Seconds hidden_time(std::span<const OpEstimate> ops, std::size_t i);

// Of an op's executions in a step, those on pipeline stage `index`: ops before the layers belong to the first stage and
// those after them to the last; a stage has its share of the layers of each kind, and all but the last send. The
// runtime's overhead is divided as the layers are: every stage has a host of its own, which launches its kernels.
class StageShare {
 public:
  StageShare(std::span<const Stage> stages, std::size_t index) : stages_(stages), index_(index) {}
  double of(const graph::Op& op);  // all ops of the step, in order

 private:
  std::span<const Stage> stages_;
  std::size_t index_;
  bool layers_seen_ = false;
  int kind_ = -1;  // that `layers_` is the share of
  double layers_ = 0;
};

// Weights that arrive before their product begins: fills in OpEstimate::hidden of the ops of one step, in order;
// layers follow one another. While the tiles still work on one op, the DRAM channel can load the first slices of the
// next op's weights, which depend on nothing: as much as the channel is idle and the tiles' memory has room for. What
// the product would have waited for them, it does not wait.
void prefetch_weights(const mapper::Machine& machine, std::span<OpEstimate> ops);

}  // namespace llmperf::estimate
