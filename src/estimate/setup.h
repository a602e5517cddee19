// What a workload runs on and how: what was asked for (choices), and what became of it with all that was left to
// llmperf (setups).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/collective.h"
#include "estimate/price.h"
#include "graph/decoder_graph.h"
#include "hardware/device.h"
#include "hardware/runtime_execution.h"
#include "hardware/runtime_profile.h"
#include "mapper/machine.h"
#include "model/model_file.h"

namespace llmperf::estimate {

// What times ops, and how they are launched: chosen, and so run.
struct Timing {
  const hardware::RuntimeProfile* profile = nullptr;    // null: the speed of light
  mapper::TileModel tiles = mapper::TileModel::mapped;  // of an array of tiles, without a profile
  // With a profile. Of text of the prefill and of decode.
  hardware::Dispatch dispatch = hardware::Dispatch::graph;
  hardware::Dispatch decode_dispatch = hardware::Dispatch::graph;
  std::optional<HourPrice> price;  // of a device, of unlike ones their mean; hour_price() where nobody says another
};

// What an estimate runs on. Device and profile must outlive everything made from it.
struct Platform : Timing {
  cost::Cluster cluster;
  const hardware::Device* device = nullptr;
  // CPUs of which not all is used, kept for `device` and `host`.
  std::vector<std::shared_ptr<const hardware::Device>> parts;
  Bytes reserve{0.5 * kGiB};       // runtime context and workspaces; an assumption
  std::vector<std::string> notes;  // substitutions worth telling: "fp8 products run in bf16: …"

  // The links as collectives are charged for them: under a profile as its library drives them.
  cost::Cluster charged_cluster() const;
  // Of a step of `rows` new tokens: decode of more sequences than were captured, or longer ones, is launched as prompts
  // are, and few tokens with prompts among them as graphs in pieces where a stack has captured these.
  hardware::Dispatch dispatch_of(bool prompts, std::int64_t sequences, std::int64_t rows,
                                 std::int64_t context = 0) const {
    using enum hardware::Dispatch;
    const std::int64_t captured = profile ? profile->choices.graph_rows : 0;
    const bool in_pieces = captured > 0 && profile->choices.graph_pieces && rows <= captured;
    if (prompts && in_pieces && dispatch == eager && decode_dispatch == graph) return pieces;
    const std::int64_t longest = profile ? profile->choices.graph_context : 0;
    const bool beyond = (captured > 0 && sequences > captured) || (longest > 0 && context > longest);
    return prompts || beyond ? dispatch : decode_dispatch;
  }
  // Roofline where the device has no tiles or a profile times the ops.
  mapper::TileModel tile_model() const {
    return device->tile_array && profile == nullptr ? tiles : mapper::TileModel::roofline;
  }
};

// Which steps of its requests a device runs: all, or those of prompts or of decode alone, where the others run on other
// devices (disaggregated) and the cache of the prompts is sent.
enum class Served : std::uint8_t { both, prefill, decode };
inline constexpr std::array<std::string_view, 3> kServed = {"both", "prefill", "decode"};
constexpr std::string_view name(Served served) { return kServed[static_cast<std::size_t>(served)]; }

inline constexpr std::int64_t kMostVerified = 64;

// How the steps of requests are run.
struct Serving {
  Served phases = Served::both;
  std::int64_t verify = 1;           // tokens of every sequence in a decode step: one, and guesses that it checks
  double accepted = 1;               // of them, those that are kept on the mean: 1 to `verify`
  std::int64_t drafts = 1;           // of a draft: steps of one token each that it takes in a row
  bool joins_step = false;           // … within its target's step, which begins but once
  std::int64_t overlap_batches = 1;  // 2: two micro-batches, whose exchanges run beside each other's ops
  std::optional<std::int64_t> prefill_chunk = {};  // new tokens of a prompt in a step at most; nothing: all of it
  bool decodes() const { return phases != Served::prefill; }
  bool prefills() const { return phases != Served::decode; }
};

// ---- How many of the tokens that a draft proposes its target keeps (speculative.cpp)

// Chances that the target keeps the 1st, 2nd, … token of a draft given that it keeps those before; the last one also
// holds for tokens beyond the list.
struct Acceptance {
  std::vector<double> rates = {1};  // at least one, each in [0, 1]
  Acceptance() = default;
  Acceptance(double rate) : rates{rate} {}  // NOLINT(google-explicit-constructor)
  explicit Acceptance(std::vector<double> table) : rates(std::move(table)) {}
  double of(std::int64_t token) const;  // from 0
  std::string text() const;             // "0.8", "0.85, 0.7, 0.6"
  bool operator==(const Acceptance&) const = default;
};

// Tokens that a draft of `length` tokens is expected to yield, with the one that the target adds:
// 1 + p_1 + p_1 p_2 + …, with one rate p for all (1 - p^(length + 1)) / (1 - p).
double expected_tokens(const Acceptance& acceptance, std::int64_t length);

// "0.8", "0.85,0.7,0.6" (or with / in lists of values), or a file with a number on each line. Throws Error(bad_input);
// messages say `accept`.
Acceptance parse_acceptance(const std::string& text);

struct Setup;

// What proposes the tokens that a decode step of the target verifies: a model of its own, or layers made for it
// (model/decoder.h), which run in the target's step on hidden states of it and share its embedding.
struct Draft {
  enum class Kind : std::uint8_t { model, next_token, eagle };
  Kind kind = Kind::model;
  std::shared_ptr<const model::ModelFile> file;
  std::int64_t tokens = 1;  // that it proposes for a step
  bool best = false;        // they are as many as take the least time per token: a run says how many
  Acceptance acceptance;
  std::shared_ptr<const Setup> setup = {};  // how it runs, beside its target; made with that one's
};
inline constexpr std::int64_t kMaxDraftLength = 32;
inline constexpr std::int64_t kMostCompared = 8;  // lengths of which the best is taken where none is asked for

// What can be chosen for any workload, names as on the command line; nothing where that is left to llmperf. The profile
// must outlive the setup.
struct WorkloadChoices : Timing {
  std::optional<std::string> weights;
  std::optional<std::string> activations;
  hardware::RuntimeOptions runtime;
  std::optional<Bytes> reserve;
  graph::Plan plan;  // must be legal (graph::problems)
  std::optional<std::int64_t> devices_per_node;
  // Of a CPU, be it the device or the host: cores and NUMA nodes that are used; nothing: all.
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> numa_nodes;

  void run_as(const hardware::RuntimeExecution& execution);
};
// Whether llama.cpp would keep a part of a model outside of the device's memory: not on a CPU or a chip that shares its
// memory with one.
bool has_own_memory(const hardware::Device& device);
// To the host; the usual one where the device's file says nothing.
hardware::HostLink link_of(const hardware::Device& device);
void choose_platform(const hardware::Device& device, const WorkloadChoices& choices, Platform& platform);

// A device among unlike ones, and what times its ops. Both must outlive everything made from it.
struct Card {
  const hardware::Device* device = nullptr;
  const hardware::RuntimeProfile* profile = nullptr;
};

// How requests go through a language model's devices: chosen, and so run.
struct Deployment {
  Serving serving;
  std::optional<Draft> draft = {};  // decides what of `serving` is about verifying
  // Micro-batches that a batch goes through the pipeline in; 0: the largest divisor of a replica's batch that is at
  // most the number of stages.
  std::int64_t pipeline_batches = 0;
  // GGUF: how much of the model each device of the pipeline gets, in any unit; empty: all as much, as llama.cpp deals
  // it to devices of equal free memory.
  std::vector<double> tensor_split = {};
  // GGUF: the unlike devices of the pipeline, of which the first is the device; layers are dealt to them by the memory
  // that each has free.
  std::vector<Card> cards = {};
};

// Of language models: what does not change between scenarios. Model and host must outlive everything made from it, too.
struct Setup : Platform, Deployment {
  graph::Execution execution;                              // its plan is legal for the model
  const hardware::Device* host = nullptr;                  // null: everything is on the device
  hardware::HostLink link;                                 // between the two, where there is a host
  const hardware::RuntimeProfile* host_profile = nullptr;  // of a host that has layers, experts or the head
  bool pinned_weights = false;                             // on the host
  bool checkpoint_kv = false;                              // the checkpoint says what the KV cache is stored in
  std::string_view weights_kernel = {};  // the profile's name for what multiplies with them; empty: it has none
  bool encodes() const { return execution.model->encoder; }
  double activation_factor = 1;  // memory that a runtime plans for activations, over the peak of those alive at once
};

// Left to llmperf,
//  * weights are as the checkpoint stores them, else of the 16-bit type of the activations;
//  * activations are of the type of unquantised weights; with weights of GPTQ and AWQ fp16; else bf16, else fp16, where
//    the device multiplies it, else fp32;
//  * kv is what the checkpoint asks for, else the activation type; cache_k and cache_v override it for one half;
//  * gpu_layers are all layers, and the head is on the device; so are all experts.
// Weights in a GGUF format (by name, or `stored`) are run as llama.cpp does: computed in fp16, cached in fp16, the
// token embedding and sampling on the host, q, k, v and gate, up multiplied apart as the file keeps them.
struct Choices : WorkloadChoices, Deployment {
  std::optional<std::string> kv;
  graph::Popularity routing;
  graph::Adapters adapters;  // served
  bool draws = false;        // tokens by top-k and top-p
  std::optional<std::string> cache_k;
  std::optional<std::string> cache_v;
  const model::WeightLayout* stored = nullptr;  // of the model's own file, taken when `weights` names nothing
  model::GgufEra gguf_era = model::GgufEra::v2026;
  std::optional<std::int64_t> gpu_layers;
  // Of the layers, from the first, those whose routed experts stay on the host.
  std::optional<std::int64_t> cpu_moe;
  std::string override_tensor;  // "blk\.[0-9]\..*_exps=CPU": regular expressions of names of such matrices
  bool op_offload = true;       // micro-batches of many tokens are computed on the device all the same
  bool pinned_weights = false;  // what stays there is in pinned memory: the file is read, not mapped
  std::optional<std::int64_t> micro_batch;
  const hardware::Device* host = nullptr;                  // used by GGUF formats on a device with memory of its own
  const hardware::RuntimeProfile* host_profile = nullptr;  // … under a profile of the device; null: its speed of light
};
// The type that activations have unless asked otherwise; whether the device has a matrix rate for a type.
Dtype activation_dtype(const hardware::Device& device);
bool multiplies(const hardware::Device& device, Dtype dtype);
// Makes products in a type that the device has no matrix rate for run in the activations' type, after a conversion.
// Says so in `note`, which is left alone otherwise.
void substitute(model::StoredFormat& format, const hardware::Device& device, Dtype activations, std::string& note);
// Notes that there is no matrix rate for a type, where that is so.
void note_rate(Platform& platform, Dtype activations);

// How a draft spreads over its target's devices: as the target does, without its stages; where that divides the draft's
// dimensions not, each device runs it whole.
graph::Plan draft_plan(const model::Decoder& draft, const graph::Plan& target);
// A step verifies what `tokens` drafts propose.
void set_draft_tokens(std::int64_t tokens, Setup& setup);

// Throws Error(bad_input) for unknown schemes, and for a cache type whose blocks do not divide the rows of the cache.
Setup make_setup(const model::Decoder& model, const hardware::Device& device, const Choices& choices);

// "dense", or what sets the model apart for the kernels it needs: "experts", "latent attention", "experts, latent
// attention".
std::string model_kind(const model::Decoder& model);

// A step as the range of a runtime profile sees it: all but batch, tokens and context, which are the step's own.
// Weights go by the name that the setup's profile was fitted under where the same kernel runs: w4a16-g128 is GPTQ's.
hardware::StepSize step_size(const Setup& setup);
// The same, its weights by the name that another profile was fitted on.
hardware::StepSize step_size(const Setup& setup, const hardware::RuntimeProfile* profile);

}  // namespace llmperf::estimate
