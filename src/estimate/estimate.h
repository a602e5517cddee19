// From a scenario to an estimate: memory, prefill, decode over the growing context, and the limits that follow. The
// result is a plain tree; every output is written from it and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/memory.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "mapper/machine.h"
#include "mapper/roofline/step_overhead.h"

namespace llmperf::estimate {

// `batch` requests (of all replicas of the model together) of `prompt` tokens each are prefilled together; the first
// token comes out of the prefill, the other generate - 1 out of one decode step each, at contexts prompt, prompt + 1,
// …, prompt + generate - 2 cached tokens.
struct Scenario {
  std::int64_t batch = 1;
  std::int64_t prompt = 512;
  std::int64_t generate = 128;
};

inline constexpr std::int64_t kMaxBatch = 1'000'000;
inline constexpr std::int64_t kMaxTokens = 100'000'000;

// What an estimate runs on. Device and profile must outlive everything made from it.
struct Platform {
  cost::Cluster cluster;
  const hardware::Device* device = nullptr;
  const hardware::RuntimeProfile* profile = nullptr;    // null: the speed of light
  mapper::TileModel tiles = mapper::TileModel::mapped;  // of an array of tiles, without a profile
  Bytes reserve{0.5 * kGiB};                            // runtime context and workspaces; an assumption
  std::vector<std::string> notes;                       // substitutions worth telling: "fp8 products run in bf16: …"

  // The links as collectives are charged for them: under a profile as its library drives them.
  cost::Cluster charged_cluster() const;
  // Roofline where the device has no tiles or a profile times the ops.
  mapper::TileModel tile_model() const {
    return device->tile_array && profile == nullptr ? tiles : mapper::TileModel::roofline;
  }
};

// What does not change between scenarios. Model and host must outlive everything made from it, too.
struct Setup : Platform {
  graph::Execution execution;                                       // its plan is legal for the model
  std::int64_t pipeline_batches = 0;                                // see Choices
  std::vector<double> tensor_split;                                 // see Choices
  const hardware::Device* host = nullptr;                           // null: everything is on the device
  hardware::HostLink link;                                          // between the two, where there is a host
  hardware::Dispatch prefill_dispatch = hardware::Dispatch::graph;  // with a profile
  hardware::Dispatch decode_dispatch = hardware::Dispatch::graph;
  bool checkpoint_kv = false;    // the checkpoint says what the KV cache is stored in
  double activation_factor = 1;  // memory that a runtime plans for activations, over the peak of those alive at once
};

// Names as on the command line; nothing where the caller leaves the choice to llmperf:
//  * weights: as the checkpoint stores them, else the 16-bit type of the activations;
//  * activations: the type of unquantised weights; with weights of GPTQ and AWQ fp16; else bf16, else fp16, where the
//    device multiplies it, else fp32;
//  * kv: what the checkpoint asks for, else the activation type; cache_k and cache_v override it for one half;
//  * gpu_layers: all layers and the head on the device.
// Weights in a GGUF format (by name, or `stored`) are run as llama.cpp does: computed in fp16, cached in fp16, the
// token embedding and sampling on the host, q, k, v and gate, up multiplied apart as the file keeps them.
struct Choices {
  std::optional<std::string> weights;
  std::optional<std::string> kv;
  std::optional<std::string> cache_k;
  std::optional<std::string> cache_v;
  std::optional<std::string> activations;
  const model::WeightLayout* stored = nullptr;  // of the model's own file, taken when `weights` names nothing
  model::GgufEra gguf_era = model::GgufEra::v2026;
  std::optional<std::int64_t> gpu_layers;
  std::optional<std::int64_t> micro_batch;
  const hardware::Device* host = nullptr;  // used by GGUF formats on a device with memory of its own
  hardware::RuntimeOptions runtime;
  mapper::TileModel tiles = mapper::TileModel::mapped;
  const hardware::RuntimeProfile* profile = nullptr;  // must outlive the setup; null: the speed of light
  hardware::Dispatch prefill_dispatch = hardware::Dispatch::graph;
  hardware::Dispatch decode_dispatch = hardware::Dispatch::graph;
  std::optional<Bytes> reserve;
  graph::Plan plan;  // must be legal (graph::problems)
  std::optional<std::int64_t> devices_per_node;
  // Micro-batches that a batch goes through the pipeline in; 0: the largest divisor of a replica's batch that is at
  // most the number of stages.
  std::int64_t pipeline_batches = 0;
  // GGUF: how much of the model each device of the pipeline gets, in any unit; empty: all as much, as llama.cpp deals
  // it to devices of equal free memory.
  std::vector<double> tensor_split;
};
// The type that activations have unless asked otherwise; whether the device has a matrix rate for a type.
Dtype activation_dtype(const hardware::Device& device);
bool multiplies(const hardware::Device& device, Dtype dtype);
// Makes products in a type that the device has no matrix rate for run in the activations' type, after a conversion.
// Says so in `note`, which is left alone otherwise.
void substitute(model::StoredFormat& format, const hardware::Device& device, Dtype activations, std::string& note);

// Throws Error(bad_input) for unknown schemes, and for a cache type whose blocks do not divide the rows of the cache.
Setup make_setup(const model::Decoder& model, const hardware::Device& device, const Choices& choices);

// "dense", or what sets the model apart for the kernels it needs: "experts", "latent attention", "experts, latent
// attention".
std::string model_kind(const model::Decoder& model);

// A step as the range of a runtime profile sees it: all but batch, tokens and context, which are the step's own.
// Weights go by the name that the setup's profile was fitted under where the same kernel runs: w4a16-g128 is GPTQ's.
hardware::StepSize step_size(const Setup& setup);

struct OpEstimate {
  graph::Op op;         // decode: as at the first generated token
  cost::Work work;      // of one execution; decode: mean over the generation
  mapper::OpTime time;  // likewise
  Seconds prefetched;   // of one execution: not waited for weights that the op before had loaded (schedule.h)
  Seconds step_time() const { return time.total * static_cast<double>(op.count); }
};

// The sums over ops count every execution; they are of one step (decode: the mean step) and of one device of every
// pipeline stage, for all micro-batches of the step. The times of the ops add up to
//
//   time + overlapped + pipelined
//
// where `overlapped` is what collectives take beside the op before them and what weights that come early save, and
// `pipelined` what stages do at the same time. With M micro-batches and stages that are busy for b_i (all micro-batches
// together) a prefill takes sum(b_i) / M + (M - 1) / M max(b_i); decode steps follow one another in a full pipeline:
// max(sum(b_i) / M, max(b_i)).
enum class Steady : bool { no, yes };  // whether steps follow one another without draining the pipeline
struct Phase {
  std::string_view name;  // "prefill", "decode"
  std::int64_t steps = 1;
  graph::SequenceGroup first;  // of the first step
  graph::SequenceGroup last;
  std::vector<OpEstimate> ops;
  cost::Work work;
  Seconds time;  // of one step
  Seconds roof;
  Seconds ops_time;
  Seconds overlapped;
  Seconds pipelined;
  // What the runtime takes beside the ops at these steps, of one micro-batch; the ops end with that of the mean step.
  Seconds first_overhead;
  Seconds last_overhead;
  Seconds bubble;  // of the busiest stage: time in which it has nothing to do
  std::int64_t micro_batches = 1;
  std::int64_t token_batches = 1;  // GGUF on several stages: micro-batches of tokens, which ops count already
  Steady steady = Steady::no;
  Seconds bound_time[mapper::kBounds];  // part of `ops_time` in ops bound by each mapper::Bound
  mapper::Bound bound = mapper::Bound::memory;
  FlopsPerByte intensity() const { return (work.matrix + work.vector) / work.bytes(); }
  std::int64_t batches() const { return micro_batches * token_batches; }  // that stages can work on at the same time
};

// What one device of a pipeline stage holds.
struct Stage {
  std::vector<std::int64_t> layers;  // of each kind
  Bytes weights;
};

struct Estimate {
  Scenario scenario;
  cost::Memory memory;  // of the device; with a pipeline of one of the fullest stage
  Bytes capacity;
  cost::Memory host_memory;  // all zero without a host
  Bytes host_capacity;
  bool fits = false;                 // both
  std::int64_t largest_batch = 0;    // of this prompt and generation that fits; 0: none
  std::int64_t longest_context = 0;  // prompt + generate tokens per sequence that fit at this batch; 0: none

  // Only when it fits.
  std::vector<Phase> phases;  // prefill, then decode when more than one token is generated
  Seconds ttft;
  std::optional<Seconds> tpot_first;  // of the second token of a request, the first decode step
  std::optional<Seconds> tpot;        // mean
  std::optional<Seconds> tpot_last;
  Seconds total;                 // ttft and all decode steps
  double tokens_per_second = 0;  // generated tokens of all requests over `total`
  double tokens_per_second_per_request = 0;
  double prefill_tokens_per_second = 0;  // prompt tokens over ttft
  double decode_tokens_per_second = 0;   // batch / tpot; 0 without decode
};

// Keeps its workspace between runs, so that a run allocates nothing once warm. One per thread.
class Estimator {
 public:
  explicit Estimator(Setup setup);

  // Throws std::logic_error if a result broke an invariant (faster than its roof): a bug, never a user's mistake.
  void run(const Scenario& scenario, Estimate& result);
  Estimate run(const Scenario& scenario);

  // The prefill alone, whether it fits or not.
  void prefill(const Scenario& scenario, Phase& result) {
    phase("prefill", prefill_of(scenario), micro_batches(scenario), result);
  }
  // The decode step with `context` cached tokens, whether it fits or not.
  void decode_step(const Scenario& scenario, std::int64_t context, Phase& result) {
    phase("decode", decode_at(scenario, context), micro_batches(scenario), result);
  }
  // A step of `micro_batches` parts, each over `group` (of one replica), whether it fits or not.
  void step(const graph::SequenceGroup& group, std::int64_t micro_batches, Phase& result) {
    phase(group.new_tokens == 1 && group.context > 0 ? "decode" : "prefill", group, micro_batches, result);
  }
  // Time of one step over `step` (of one replica), without the per-op results.
  Seconds step_time(std::span<const graph::SequenceGroup> step);
  cost::Memory memory(const Scenario& scenario) const { return placed_memory(scenario).device; }
  cost::Memory host_memory(const Scenario& scenario) const { return placed_memory(scenario).host; }
  // Bytes left where they are scarcer; negative: it does not fit.
  Bytes room(const Scenario& scenario) const;
  bool fits(const Scenario& scenario) const { return room(scenario).value >= 0; }
  Bytes capacity() const { return *setup_.device->dram().capacity; }
  Bytes host_capacity() const { return setup_.host ? *setup_.host->dram().capacity : Bytes{}; }

  const Setup& setup() const { return setup_; }
  // Takes another legal plan; the setup's notes stay those of the first. Layers that its stages cannot share evenly are
  // dealt by what they take in a prefill and in decode steps of one and of many sequences (kReferenceSteps), whatever
  // is run: a model is loaded once.
  void set_plan(const graph::Plan& plan);
  const std::vector<Stage>& stages() const { return stages_; }
  // The pipeline stage whose device needs most, and what a device of a stage needs.
  std::size_t fullest_stage(const Scenario& scenario) const;
  cost::Memory stage_memory(const Scenario& scenario, std::size_t stage) const;
  const mapper::Machine& machine() const { return machine_; }
  // Of the device or of the host.
  const mapper::Roofline& roofline(graph::Place place = graph::Place::device) const { return machine_.roofline(place); }
  // Work and time of one execution where the op runs.
  cost::Work work(const graph::Op& op) const { return machine_.work(op); }
  mapper::OpTime time(const graph::Op& op, const cost::Work& work) const { return machine_.time(op, work); }

  // Requests of one replica, the micro-batches they go through the pipeline in, and the steps of one of these.
  std::int64_t replica_batch(const Scenario& scenario) const;
  std::int64_t micro_batches(const Scenario& scenario) const;
  graph::SequenceGroup prefill_of(const Scenario& scenario) const;
  graph::SequenceGroup decode_at(const Scenario& scenario, std::int64_t context) const;
  // What a legal batch and a legal prompt are multiples of.
  std::int64_t batch_unit() const;
  std::int64_t prompt_unit() const;

 private:
  void phase(std::string_view name, const graph::SequenceGroup& group, std::int64_t micro_batches, Phase& result);
  void decode(const Scenario& scenario, Estimate& result);
  // What the runtime takes beside the ops before it, when these take `seconds` in the step.
  Seconds overhead(std::span<const OpEstimate> ops, std::span<const double> seconds, const graph::SequenceGroup& group,
                   std::int64_t micro_batches) const;
  graph::StageSplit split_layers();
  graph::PassCosts pass_costs(const graph::SequenceGroup& group);
  // llama.cpp's compute buffers beside stage `stage`.
  model::PlacedBytes compute_buffers(const Scenario& scenario, std::size_t stage) const;
  void limits(const Scenario& scenario, Estimate& result) const;
  struct PlacedMemory {
    cost::Memory device;
    cost::Memory host;
  };
  PlacedMemory placed_memory(const Scenario& scenario) const;

  Setup setup_;
  mapper::Machine machine_;
  Bytes host_weights_;
  std::vector<Stage> stages_;  // at least one
  graph::Graph graph_;
  std::vector<double> samples_;  // scratch of sum_over_context
  std::vector<double> seconds_;  // scratch: the times of the ops of a step
  std::vector<double> sums_;
};

}  // namespace llmperf::estimate
