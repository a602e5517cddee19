// From a scenario to an estimate: memory, prefill, decode over the growing context, and the limits that follow. The
// result is a plain tree; every output is written from it and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/phase.h"
#include "estimate/setup.h"
#include "graph/decoder_graph.h"
#include "mapper/machine.h"

namespace llmperf::estimate {

// `batch` requests (of all replicas of the model together) of `prompt` tokens each are prefilled together; the first
// token comes out of the prefill, the other generate - 1 out of one decode step each, at contexts prompt, prompt + 1,
// …, prompt + generate - 2 cached tokens, and `depth` more in every step. An encoder reads the prompts and is done.
struct Scenario {
  std::int64_t batch = 1;
  std::int64_t prompt = 512;
  std::int64_t generate = 128;
  std::int64_t depth = 0;  // tokens of every request that are cached before its prompt
  // Of every request, and what the model's tower makes of one; their tokens are among those of the prompt.
  std::int64_t images = 0;
  model::SeenImage image = {};

  std::int64_t image_tokens() const { return images * image.prompt_tokens; }
  std::int64_t decode_context() const { return depth + prompt; }  // tokens cached before the first decode step
  auto operator<=>(const Scenario&) const = default;
};

inline constexpr std::int64_t kMaxBatch = 1'000'000;
inline constexpr std::int64_t kMaxTokens = 100'000'000;

// It fits when both the device and the host do. Phases: prefill, then decode when more than one token is generated;
// one of the two alone when the device runs no other (Serving). A prompt in pieces has them as steps of its prefill; a
// piece whose ops are others (of the first nothing may be cached, the last may be shorter) begins a phase of its own,
// prefill_2, prefill_3. Before the prefill, vision where there are images. With a draft decode steps verify, and the
// phase after them is what drafts for one: a cycle of a request is the two, one after the other. Of an encoder one
// phase: encode.
struct Estimate : Outcome {
  Scenario scenario;
  cost::Memory host_memory;  // all zero without a host
  Bytes host_capacity;
  cost::Memory expert_memory;        // of a device of experts alone (Plan::afd); else all zero
  std::int64_t largest_batch = 0;    // of this prompt and generation that fits; 0: none
  std::int64_t longest_context = 0;  // prompt + generate tokens per sequence that fit at this batch; 0: none

  // Only when it fits.
  std::optional<Seconds> ttft;  // with a prefill: it and the pass over images; of an encoder its pass
  std::optional<Seconds>
      tpot_first;               // of the second token of a request: the first decode step, over the tokens it keeps
  std::optional<Seconds> tpot;  // mean
  std::optional<Seconds> tpot_last;
  Seconds total;                 // all steps
  double tokens_per_second = 0;  // generated tokens of all requests over `total`; 0 of a prefill alone
  double tokens_per_second_per_request = 0;
  double prefill_tokens_per_second = 0;  // prompt tokens over ttft; 0 without prefill
  double decode_tokens_per_second = 0;   // batch / tpot; 0 without decode
  double sequences_per_second = 0;       // of an encoder: batch / ttft; else 0
  Spending spending;
  const Phase* phase(std::string_view name) const;  // null where there is none
};

// Whether a group gets one token per sequence (or verifies some) after others.
inline bool is_decode(const graph::SequenceGroup& group) { return !group.prompts() && group.context > 0; }
bool has_prompts(std::span<const graph::SequenceGroup> step);
std::int64_t sequences_of(std::span<const graph::SequenceGroup> step);
std::int64_t rows_of(std::span<const graph::SequenceGroup> step);
std::int64_t longest_past(std::span<const graph::SequenceGroup> step);

// Groups that decode with as many new tokens each, as one: all their sequences, the mean of their contexts and the
// longest. Others stay as they are.
void pool_decodes(std::span<const graph::SequenceGroup> step, std::vector<graph::SequenceGroup>& pooled);
// Whether the attention of a group is part of an earlier group's launch: kernels take sequences of any lengths
// (varlen), those that decode and pieces of prompts in one launch where the stack's do
// (KernelChoices::joint_attention), else in one for each of the two.
bool joins_attention(const Platform& platform, std::span<const graph::SequenceGroup> step, std::size_t group);
// Attention over latents is launched for each group all the same.
void join_attention(const Platform& platform, std::span<const graph::SequenceGroup> step, graph::Graph& graph);

// Keeps its workspace between runs, so that a run allocates nothing once warm. One per thread.
class Estimator {
 public:
  explicit Estimator(Setup setup);

  // Throws std::logic_error if a result broke an invariant (faster than its roof): a bug, never a user's mistake.
  void run(const Scenario& scenario, Estimate& result);
  Estimate run(const Scenario& scenario);

  // The prefill alone, in one step, whether it fits or not.
  void prefill(const Scenario& scenario, Phase& result) {
    phase(prompt_phase(), prefill_of(scenario), micro_batches(scenario), result);
  }
  // The pass of the vision tower over the images of all requests, of which there must be some.
  void vision(const Scenario& scenario, Phase& result);
  // The decode step with `context` cached tokens, whether it fits or not.
  void decode_step(const Scenario& scenario, std::int64_t context, Phase& result) {
    phase("decode", decode_at(scenario, context), micro_batches(scenario), result);
  }
  // A step of `micro_batches` parts, each over `group` (of one replica), whether it fits or not.
  void step(const graph::SequenceGroup& group, std::int64_t micro_batches, Phase& result) {
    phase(is_decode(group) ? "decode" : prompt_phase(), {&group, 1}, micro_batches, result);
  }
  // A step of continuous batching over several groups (of one replica, at least one), whether it fits or not: groups
  // that decode are pooled, and attention is launched together (join_attention).
  void mixed_step(std::span<const graph::SequenceGroup> groups, Phase& result);
  // Time of one step over `step` (of one replica), without the per-op results.
  Seconds step_time(std::span<const graph::SequenceGroup> step);
  cost::Memory memory(const Scenario& scenario) const { return placed_memory(scenario).device; }
  cost::Memory host_memory(const Scenario& scenario) const { return placed_memory(scenario).host; }
  // Bytes left where they are scarcer; negative: it does not fit.
  Bytes room(const Scenario& scenario) const;
  bool fits(const Scenario& scenario) const { return room(scenario).value >= 0; }
  Bytes capacity() const { return capacity(0); }
  Bytes capacity(std::size_t stage) const {
    return *(cards_.empty() ? *setup_.device : *setup_.cards[stage].device).dram().capacity;
  }
  Bytes host_capacity() const { return setup_.host ? *setup_.host->dram().capacity : Bytes{}; }

  const Setup& setup() const { return setup_; }
  // Of what drafts; null where nothing does. Its phase is one of `draft_tokens` steps in a row.
  const Estimator* draft() const { return draft_.get(); }
  // A step verifies what as many drafts propose. There has to be a draft.
  void set_draft_tokens(std::int64_t tokens);
  // The steps that draft for a decode step with `context` cached tokens, whether it fits or not.
  void draft_steps(const Scenario& scenario, std::int64_t context, Phase& result) {
    draft_->phase("draft", draft_->decode_at(scenario, context), draft_->micro_batches(scenario), result);
  }
  // Takes another legal plan; the setup's notes stay those of the first. Layers that its stages cannot share evenly are
  // dealt by what they take in a prefill and in decode steps of one and of many sequences (kReferenceSteps), whatever
  // is run: a model is loaded once.
  void set_plan(const graph::Plan& plan);
  const std::vector<Stage>& stages() const { return stages_; }
  std::vector<Stage> stages(const Phase& phase) const;  // at the pace that they have in the phase
  // The pipeline stage whose device has least room, and what a device of a stage needs.
  std::size_t fullest_stage(const Scenario& scenario) const;
  cost::Memory stage_memory(const Scenario& scenario, std::size_t stage) const;
  cost::Memory expert_memory(const Scenario& scenario) const;  // of a device of experts alone (Plan::afd)
  const mapper::Machine& machine() const { return machine_; }
  // What draws power; nothing where a device's file does not say. Measured shares are taken of one kind of device,
  // which computes everything itself.
  std::optional<BoardPower> board() const;
  // Of the layers' products, which are most of all.
  FlopsPerSecond product_rate() const;
  // What a device of the plan does in all steps of a phase.
  Load load(const Phase& phase) const;
  // Of the phases of an estimate those that read the prompts; the others decode.
  static std::span<const Phase> prompt_phases(const Estimate& estimate);
  static std::span<const Phase> decode_phases(const Estimate& estimate);
  // Of the device or of the host.
  const mapper::Roofline& roofline(graph::Place place = graph::Place::device) const { return machine_.roofline(place); }
  // Work and time of one execution where the op runs.
  cost::Work work(const graph::Op& op) const { return machine_.work(op); }
  mapper::OpTime time(const graph::Op& op, const cost::Work& work) const { return machine_.time(op, work); }

  // Requests of one replica, the micro-batches they go through the pipeline in, and the steps of one of these.
  std::int64_t replica_batch(const Scenario& scenario) const;
  std::int64_t micro_batches(const Scenario& scenario) const;
  graph::SequenceGroup prefill_of(const Scenario& scenario) const;  // of whole prompts
  // Steps of as many new tokens each, which follow one another through a prompt.
  struct Pieces {
    graph::SequenceGroup first;
    std::int64_t steps = 1;
    graph::SequenceGroup at(std::int64_t step) const;
    graph::SequenceGroup last() const { return at(steps - 1); }
  };
  // The pieces of a prompt (Serving::prefill_chunk), and what is left of it: no step where nothing is.
  std::array<Pieces, 2> pieces_of(const Scenario& scenario) const;
  graph::SeenImages images_of(const Scenario& scenario) const;  // of a replica
  graph::SequenceGroup decode_at(const Scenario& scenario, std::int64_t context) const;
  // Of a request: tokens that it has in the end, those that the cache has room for (guesses, too), decode steps, and
  // tokens that come out of these steps and the prefill.
  std::int64_t tokens(const Scenario& scenario) const;
  std::int64_t cached_tokens(const Scenario& scenario) const;
  std::int64_t decode_steps(const Scenario& scenario) const;
  std::int64_t generated(const Scenario& scenario) const;
  // What the phase of the prompts is called.
  std::string_view prompt_phase() const { return setup_.encodes() ? "encode" : "prefill"; }
  // What a legal batch and a legal prompt are multiples of.
  std::int64_t batch_unit() const;
  std::int64_t prompt_unit() const;

 private:
  void phase(std::string_view name, std::span<const graph::SequenceGroup> groups, std::int64_t micro_batches,
             Phase& result);
  void phase(std::string_view name, const graph::SequenceGroup& group, std::int64_t micro_batches, Phase& result) {
    phase(name, {&group, 1}, micro_batches, result);
  }
  // The steps of a phase as the context grows: in full at the first, the mean and the last one's time.
  struct Pace {
    Seconds first, mean, last;
    Pace& operator+=(const Pace& other);
  };
  Pace walk_decode(std::string_view name, const Scenario& scenario, std::int64_t steps, std::int64_t last_context,
                   Phase& phase);
  // From the phase of the first step to the mean one: contexts go up to the last's by the phase's stride.
  enum class Each : bool { no, yes };  // every step by itself, and what the runtime takes beside it
  Pace walk(Each each, Phase& phase);
  // Fills `pieces_`: pieces that have the same ops, but for what grows with the context, are together.
  void find_pieces(const Scenario& scenario);
  bool same_ops(const graph::SequenceGroup& a, const graph::SequenceGroup& b);
  void prefill(const Scenario& scenario, std::size_t pieces, Phase& result);
  void decode(const Scenario& scenario, Estimate& result);
  void run_drafts(const Scenario& scenario, Estimate& result);
  void add_draft(const Scenario& scenario, cost::Memory& memory) const;
  graph::StageSplit split_layers();
  // What layers of the graph take on each of unlike devices, over the mean.
  void pace_stages();
  graph::PassCosts pass_costs(const graph::SequenceGroup& group);
  Bytes prompt_activation(const Scenario& scenario) const;
  // llama.cpp's compute buffers beside stage `stage`.
  model::PlacedBytes compute_buffers(const Scenario& scenario, std::size_t stage) const;
  void limits(const Scenario& scenario, Estimate& result);
  std::int64_t largest_batch(const Scenario& scenario) const;
  std::int64_t longest_context(const Scenario& scenario) const;
  void spend(Estimate& result) const;
  struct PlacedMemory {
    cost::Memory device;
    cost::Memory host;
    cost::Memory experts;
    Bytes capacity;  // of the device
  };
  Bytes room(const PlacedMemory& memory) const;
  PlacedMemory placed_memory(const Scenario& scenario) const;

  Setup setup_;
  std::unique_ptr<Estimator> draft_;
  std::vector<std::unique_ptr<mapper::Machine>> cards_;  // of each stage, where devices are unlike
  mapper::Machine machine_;
  Bytes host_weights_;
  std::vector<Stage> stages_;  // at least one
  std::int64_t turns_ = 1;     // micro-batches between attention and experts (Plan::afd), where none are asked for
  graph::Graph graph_;
  std::vector<graph::SequenceGroup> pooled_;
  std::vector<Pieces> pieces_;   // of the prompts: a phase each
  std::vector<double> samples_;  // scratch of sum_over_context
  std::vector<double> seconds_;  // scratch: the times of the ops of a step
  std::vector<double> sums_;
  // What limits() has found under this plan: of scenarios that differ in nothing that it depends on it is the same.
  struct {
    std::map<Scenario, std::int64_t> batches, contexts;
  } limits_;
};

}  // namespace llmperf::estimate
