// What one estimate is asked for, as a value: made from flags, from a section of a study, from a point of a sweep or
// from JSON, and resolved in one place (resolve.h). One table of fields says what there is; flags, help, completion,
// manual pages, axes of sweeps, keys of studies and of JSON are made from it.
//
// Messages write a field's name between backquotes: `batch`. Whoever shows them to a user of a command line, a library
// or a page says what the field is called there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "descriptor/node.h"
#include "descriptor/reader.h"

namespace llmperf::request {

using Text = std::optional<std::string>;
using Count = std::optional<std::int64_t>;
using Number = std::optional<double>;
using Amount = std::optional<Bytes>;

// Only what was asked: what is empty is chosen by resolve().
struct Request {
  Text model, assume, hw;
  Count batch, prompt, gen, depth, prefill_chunk, images;
  Text image_size;
  Text step;  // "32x1@2048,1x512@0"
  Number kv_utilisation, top_p;
  Count block_size, max_batched_tokens, max_seqs, max_model_len;
  Text phase;
  Count verify, top_k;
  Text accept;  // tokens of --verify, or chances of a draft
  Text draft;   // "mtp:3"
  Text weights, kv, activations, routing, options;
  Amount reserve;
  Text runtime, tool, execution, power, power_limit, tile_model, price;
  Text gguf_era, cache_type_k, cache_type_v, gpu_layers, split, tensor_split, host;
  Count n_cpu_moe;
  bool cpu_moe = false;
  Text override_tensor;
  bool no_op_offload = false;
  bool no_mmap = false;
  Count cpu_threads, numa;
  Text tp;  // "8", or "2x4": rows x columns
  Count pp, dp, ep, redundant_experts, shared_expert_ranks;
  bool afd = false;
  Text ep_dispatch, ep_combine;
  Text sp;  // "ulysses:4xring:2"
  bool megatron_sp = false;
  Text embedding;
  Count devices, devices_per_node, pipeline_batches, overlap_batches, ubatch;
  Text resolution, aspect;
  Number seconds;
  Count frames, steps;
  Text cfg;
  Count text_tokens;
  Text text_weights, stages;
  Count patches;
  Text die_link;
  bool training = false;
  Count global_batch, micro_batch, seq;
  Text recompute;
  Count zero, interleave;
  Text products, optimizer;
  bool optimizer_in_backward = false;
  Text loss, lora, dp_mode, schedule;
  Count adapters;
  bool cuda_graphs = false;
  Text max;  // "micro-batch", "seq"
  Text gradients;
  Number optimizer_bits;
  bool separate_gradients = false;
  bool exposed_sums = false;
  bool async_tp = false;
  bool eager = false;
  bool shared_expert_overlap = false;
  Number rate;
  Text burstiness;  // a number, or "inf"
  Count concurrency, requests;
  Text trace, input, output, lengths, prefix, classes;
  Count turns;
  Text think;
  Count seed, seeds;
  Text slo, engine;  // "ttft.p99=1s,tpot.p95=50ms", "vllm@0.15.1"
  Count kv_blocks, max_queue, recv_interval;
  Text prefix_caching, chunked_prefill, admission;
  Count replicas;
  Text router;
  Count prefill_replicas, decode_replicas;
  Text decode_hw, decode_plan;
  Text kv_link, kv_transfer, kv_tier;
  bool operator==(const Request&) const = default;
};

// What a request becomes: a generation of text, a generated video, a training step, traffic that is served.
enum class Workload : std::uint8_t { text, video, training, serve };

// What a value may be, for completion.
struct Values {
  enum class Sort {
    free,   // a number, a formula: nothing to offer
    words,  // one of the names
    paths,  // one of them, or a file
    items,  // a comma-separated list of them
    files,
    folders,
  };
  Sort sort = Sort::free;
  std::vector<std::string> (*names)() = nullptr;
  std::string_view list = {};  // where they are few and fixed, separated by blanks
  std::vector<std::string> all() const;
};

using Member = std::variant<Text Request::*, Count Request::*, Number Request::*, Amount Request::*, bool Request::*>;

// The multiplier that a suffix of a count means: of tokens 128k is 131072, of all else 128000.
enum class Kilo : std::int64_t { none = 0, decimal = 1000, binary = 1024 };

struct Field {
  std::string_view name;  // "gpu-layers": the flag is --gpu-layers, the key of JSON gpu_layers
  Member member;
  std::string_view group;  // heading in the help
  std::string_view type;   // as help shows it: "N"
  std::string_view about;
  std::string_view workloads = "tvrs";  // that it means something to: text, video, tRaining, serving
  std::string_view otherwise = {};      // the value when it is not asked for, where there is always the same one
  Values values = {};
  double least = 1;  // of counts and numbers
  double most = 0;
  Kilo kilo = Kilo::none;
  char separator = ',';  // of values in a list: those of some have commas themselves
  // What engines and their tools call it, separated by blanks: "tensor-parallel-size -tp". Flags that are taken as
  // well.
  std::string_view aliases = {};
  bool applies_to(Workload workload) const {
    return workloads.find("tvrs"[static_cast<std::size_t>(workload)]) != std::string_view::npos;
  }
  bool is_switch() const { return std::holds_alternative<bool Request::*>(member); }
};

// In the order of the help.
std::span<const Field> fields();
// Null for what does not exist.
const Field* find_field(std::string_view name);
const Field& field(std::string_view name);

// The key of JSON: "gpu_layers"; of an amount with its unit, "reserve_bytes".
std::string key_of(const Field& field);
// The field of a key; null where there is none, which is added to the problems with the nearest keys.
const Field* find_key(const descriptor::Node::Entry& entry, descriptor::Problems& problems);

// Reads the value as it is typed; of a switch "true". No text asks for nothing. Throws Error(bad_input).
void set(Request& request, const Field& field, const std::string& text);
// As it would be typed; nothing when it was not asked for. Of a switch "true".
std::optional<std::string> get(const Request& request, const Field& field);

// A whole number between least and most, with a suffix k or M where they mean something. Throws Error(bad_input) naming
// `name`, which is printed as it is.
std::int64_t count_value(std::string_view name, std::string_view text, std::int64_t least, std::int64_t most,
                         Kilo kilo = Kilo::none);
// A finite number between them; an amount of memory with its unit, "512MiB" or "2 GB".
double number_value(std::string_view name, std::string_view text, double least, double most);
Bytes amount_value(std::string_view name, std::string_view text);

// The fields that were asked for, as one object of JSON without a line end; units are in the keys.
std::string to_json(const Request& request);
// A value of JSON as it would be typed: of what is named by a path or a name (a model, a device) also an object, which
// is the description itself. Nothing of null. What is no value is added to the problems.
std::optional<std::string> typed(const Field& field, const descriptor::Node& value, descriptor::Problems& problems);
// A whole request read back; the text of a whole result is that of its key `request`. Throws Error(bad_input) with
// positions.
Request parse_request(const descriptor::Document& document);

}  // namespace llmperf::request
