#include "result/generation.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "estimate/schedule.h"
#include "hardware/runtime_execution.h"
#include "model/parameters.h"

namespace llmperf::result {
namespace {

using estimate::Estimate;

}  // namespace

std::vector<std::string> Generation::beyond() const { return extrapolations(*setup, estimate->scenario); }
Bands Generation::bands() const {
  const Estimate& e = *estimate;
  const auto of = [&](const char* phase, const std::optional<Seconds>& time) {
    return e.fits && time ? band_of(band(*setup, e, phase), *time) : std::nullopt;
  };
  if (setup->encodes()) return {{"encode", of("encode", e.ttft)}};
  return {{"prefill", e.fits && e.ttft ? band_of(ttft_band(*setup, e), *e.ttft) : std::nullopt},
          {"decode", of("decode", e.tpot)}};
}

namespace {

std::vector<std::int64_t> expert_layers(const Generation& g) {
  std::vector<std::int64_t> layers;
  for (const model::LayerGroup& group : g.setup->execution.weights.groups) {
    if (group.keeps_experts()) layers.insert(layers.end(), group.layers.begin(), group.layers.end());
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace

Type host_share(Fields<Generation> f) {
  using O = Generation;
  return f.of<&O::setup, &estimate::Setup::host, &hardware::Device::name>("host", "its name")
      .of<&O::setup, &estimate::Setup::host, &hardware::Device::source>("host_source", "where its description is from")
      .of("layers_on_host", "indices",
          [](const O& o) {
            std::vector<std::int64_t> layers;
            for (const model::LayerGroup& group : o.setup->execution.weights.groups) {
              if (group.on_host) layers.insert(layers.end(), group.layers.begin(), group.layers.end());
            }
            std::sort(layers.begin(), layers.end());
            return layers;
          })
      .of<&O::setup, &estimate::Setup::execution, &graph::Execution::weights, &model::WeightLayout::head_on_host>(
          "head_on_host", "whether the head runs there")
      .of<&O::setup, &estimate::Setup::execution, &graph::Execution::weights, &model::WeightLayout::embedding_on_host>(
          "token_embedding_on_host", "whether tokens are looked up there")
      .json("expert_layers_on_host",
            "those on the device whose routed experts, or some matrices of them, stay on the host",
            [](const O& o) { return expert_layers(o); })
      .only_when([](const O& o) { return !expert_layers(o).empty(); });
}

Type generation_inputs(Fields<Generation> f) {
  using I = Generation;
  constexpr auto sees = [](const I& i) { return i.estimate->scenario.images > 0; };
  return named_model_and_device(std::move(f))
      .of<&I::estimate, &Estimate::scenario, &estimate::Scenario::batch>("batch",
                                                                         "requests that are prefilled together")
      .of("prompt_tokens: prompt", "of each request, but those of its images",
          [](const I& i) { return i.estimate->scenario.prompt - i.estimate->scenario.image_tokens(); })
      .of("generate_tokens: generated tokens", "of each request; 0 of an encoder",
          [](const I& i) { return i.setup->encodes() ? 0 : i.estimate->scenario.generate; })
      .json("images", "of each request, where there are some, as the next five",
            [](const I& i) { return i.estimate->scenario.images; })
      .only_when(sees)
      .json("image_tokens", "of all images of a request, in its prompt",
            [](const I& i) { return i.estimate->scenario.image_tokens(); })
      .only_when(sees)
      .json("image_scaled", "what the tower scales each image to: width x height in pixels",
            [](const I& i) { return model::to_text(i.estimate->scenario.image.scaled); })
      .only_when(sees)
      .json("image_patches", "of an image, of all its tiles",
            [](const I& i) { return i.estimate->scenario.image.tiles * i.estimate->scenario.image.patches; })
      .only_when(sees)
      .json("image_embeddings", "of an image: rows that the tower makes, without what stands around them in the prompt",
            [](const I& i) { return i.estimate->scenario.image.tokens; })
      .only_when(sees)
      .json("vision_weights", "what the tower is stored as, in bits",
            [](const I& i) { return i.setup->execution.vision_weights.bits; })
      .only_when(sees)
      .json("depth_tokens", "of each request, cached before its prompt, where there are some",
            [](const I& i) { return i.estimate->scenario.depth; })
      .only_when([](const I& i) { return i.estimate->scenario.depth > 0; })
      .json("prefill_chunk_tokens: tokens of a piece of the prompt",
            "of each request, new in a step of the prefill at most, where that cuts the prompt",
            [](const I& i) { return i.setup->serving.prefill_chunk; })
      .only_when([](const I& i) {
        return i.setup->serving.prefills() &&
               i.setup->serving.prefill_chunk.value_or(i.estimate->scenario.prompt) < i.estimate->scenario.prompt;
      })
      .json("phase", "which steps the devices run, where that is one kind alone: \"prefill\" or \"decode\"",
            [](const I& i) { return i.setup->serving.phases; })
      .only_when([](const I& i) { return i.setup->serving.phases != estimate::Served::both && !i.setup->encodes(); })
      .json("verify_tokens: tokens verified in a step",
            "of every sequence in a decode step, where that is more than one",
            [](const I& i) { return i.setup->serving.verify; })
      .only_when([](const I& i) { return i.setup->serving.verify > 1; })
      .json("accepted_tokens: tokens kept in a step", "of them, those that a step keeps on the mean",
            [](const I& i) { return i.setup->serving.accepted; })
      .only_when([](const I& i) { return i.setup->serving.verify > 1; })
      .json("overlap_batches: overlapping micro-batches",
            "micro-batches whose exchanges run beside each other's ops, where there are two",
            [](const I& i) { return i.setup->serving.overlap_batches; })
      .only_when([](const I& i) { return i.setup->serving.overlap_batches > 1; })
      .of("weights", "what was used, also where it was left to llmperf",
          [](const I& i) { return i.setup->execution.weights.name; })
      .of("weights_kernel", "what the runtime's stack multiplies with them; null where the profile does not say",
          [](const I& i) { return i.setup->weights_kernel; })
      .when([](const I& i) { return !i.setup->weights_kernel.empty(); })
      .of<&I::kv>("kv: KV type", "likewise")
      .of("activations", "likewise", [](const I& i) { return i.setup->execution.activations; })
      .of<&I::options>("options", "likewise")
      .of("runtime", "the runtime profile; null for the speed of light",
          [](const I& i) { return runtime_used(*i.setup, true); })
      .of("devices", "of the plan", [](const I& i) { return i.setup->execution.plan.devices(); })
      .of("plan", "how the model is spread over them", [](const I& i) { return i.setup->execution.plan; })
      .row<&I::plan>("plan", "as text")
      .of("expert_imbalance: imbalance of experts",
          "tokens of the busiest device of `ep` over the mean, by the loads of a file of `routing`",
          [](const I& i) { return i.setup->execution.placement()->imbalance; })
      .only_when([](const I& i) { return i.setup->execution.placement() != nullptr; })
      .of("expert_imbalance_by_number: imbalance of experts by number", "… before experts are placed by them",
          [](const I& i) { return i.setup->execution.placement()->by_number; })
      .only_when([](const I& i) { return i.setup->execution.placement() != nullptr; })
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; })
      .group<&host_share>("offload", "which layers run on a host; null when everything is on the device")
      .when([](const I& i) { return i.setup->host != nullptr; });
}

Type fields_of(Fields<estimate::SpeculativeRound> f) {
  using R = estimate::SpeculativeRound;
  return f.of<&R::length>("draft_length", "tokens, 1 to 32")
      .of<&R::expected_tokens>("expected_tokens", "that a round yields, per sequence")
      .of<&R::draft>("draft_s", "steps of the draft")
      .of<&R::verify>("verify_s: verification", "step of the target")
      .of<&R::speedup>("speedup", "over plain decoding");
}

Type drafted(Fields<Generation> f) {
  using D = Generation;
  return f
      .of("model", "its name",
          [](const D& d) { return std::string_view(d.setup->draft->setup->execution.model->name); })
      .of("weights", "what it is stored as", [](const D& d) { return d.setup->draft->setup->execution.weights.name; })
      .of("parameters", "of its own",
          [](const D& d) { return model::count_parameters(*d.setup->draft->setup->execution.model).total; })
      .of("plan", "how it is spread over the devices of one stage",
          [](const D& d) { return d.setup->draft->setup->execution.plan; })
      .of("tokens", "that it proposes for a step", [](const D& d) { return d.setup->draft->tokens; })
      .of("best_of", "lengths that these were chosen from; null where they were asked for",
          [](const D&) { return estimate::kMostCompared; })
      .when([](const D& d) { return d.setup->draft->best; })
      .of("acceptance: %", "chances that the first, second … is kept; the last one holds for further tokens",
          [](const D& d) { return d.setup->draft->acceptance.rates; })
      .of("kept_tokens: tokens kept", "of a cycle, with the one that the model adds",
          [](const D& d) { return d.setup->serving.accepted; })
      .of("draft_s", "of a cycle: all steps of the draft", [](const D& d) { return d.estimate->phase("draft")->time; })
      .when([](const D& d) { return d.estimate->phase("draft") != nullptr; })
      .of("verify_s", "of a cycle: the model's step", [](const D& d) { return d.estimate->phase("decode")->time; })
      .when([](const D& d) { return d.estimate->phase("draft") != nullptr; })
      .of<&D::rounds>("rounds", "cycles of 1 to 8 tokens, against the same request without a draft");
}

namespace {

const estimate::Phase& decode_of(const Generation& g) { return *g.estimate->phase("decode"); }
// Seconds of the mean decode step that a pool is busy, and the share that it is not.
template <estimate::Pool pool>
Seconds busy_time(const Generation& g) {
  return Seconds{estimate::pools_of(decode_of(g))[static_cast<std::size_t>(pool)]};
}
template <estimate::Pool pool>
double idle_share(const Generation& g) {
  return 1 - busy_time<pool>(g) / decode_of(g).time;
}

}  // namespace

Type disaggregated(Fields<Generation> f) {
  using G = Generation;
  using enum estimate::Pool;
  return f.of("attention_devices", "those of `tp` and `dp`", [](const G& g) { return g.setup->execution.plan.stage(); })
      .of("expert_devices", "those of `ep`", [](const G& g) { return g.setup->execution.plan.expert; })
      .of("micro_batches", "that take turns", [](const G& g) { return decode_of(g).micro_batches; })
      .of<&busy_time<attention>>(
          "attention_s",
          "that a device of attention is busy in the mean decode step, with what the runtime takes beside its ops")
      .of<&busy_time<experts>>("experts_s", "… of experts")
      .of<&busy_time<dispatch>>("dispatch_s", "that tokens are on their way to the experts")
      .of<&busy_time<result>>("return_s", "… and their results back")
      .of("bound",
          "the busiest of these: \"attention\", \"experts\", \"dispatch\", \"return\"; \"turns\" where a micro-batch's "
          "own way through all of them takes longer",
          [](const G& g) { return estimate::bound_of(estimate::pools_of(decode_of(g)), decode_of(g).time); })
      .of<&idle_share<attention>>("attention_idle: attention idle %",
                                  "share of a step that a device of attention has nothing to do")
      .of<&idle_share<experts>>("experts_idle: experts idle %", "… of experts");
}

Type fields_of(Fields<StageHeld> f) {
  using S = StageHeld;
  return f.of<&S::first_layer>("first_layer", "from 0")
      .of<&S::layers>("layers", "how many")
      .of<&S::memory, &cost::Memory::weights>("weight_bytes", "of one of its devices")
      .of<&S::memory, &cost::Memory::kv_cache>("kv_cache_bytes", "likewise")
      .of("draft_bytes: GiB", "likewise: weights and cache of what drafts, where something does",
          [](const S& s) { return s.memory.draft + s.memory.draft_cache; })
      .only_when([](const S& s) { return s.memory.draft.value > 0; })
      .of<&S::memory, &cost::Memory::activation>("activation_bytes", "likewise")
      .of("total_bytes", "with the reserve", [](const S& s) { return s.memory.total(); })
      .of<&S::capacity>("capacity_bytes", "what the device has")
      .of<&S::device>("device", "its name");
}

Type fields_of(Fields<estimate::ContextPoint> f) {
  using P = estimate::ContextPoint;
  return f.of<&P::context>("context_tokens: context", "of every sequence")
      .of<&P::kv_cache>("kv_cache_bytes", "of a device")
      .of<&P::decode_step>("decode_step_s",
                           "with that many tokens in the cache; null where it does not fit and with `phase prefill`")
      .of<&P::fits>("fits", "whether a request of that many tokens does");
}

Type fields_of(Fields<estimate::KvCapacity> f) {
  using K = estimate::KvCapacity;
  return f.of<&K::blocks>("blocks", "of one group of layers; 0: none fits")
      .of<&K::block_size>("block_size", "tokens of a block, in the groups whose blocks hold fewest")
      .of<&K::tokens>("tokens", "as the engine prints them: those of `sequences`, or of blocks in all groups")
      .of<&K::max_model_len>("max_model_len", "tokens of the longest sequence")
      .of<&K::sequence>("sequence_bytes: such a sequence",
                        "what one of that length takes: pages of full layers, windows "
                        "with the steps in flight, states")
      .of<&K::sequences>("sequences", "of that length that fit")
      .of<&K::longest>("longest_tokens: longest sequence", "that fits")
      .of<&K::at_once>("sequences_at_once", "that there may be: as many as it is told, and have a state")
      .of("refusal", "why the engine does not start; empty: it does", [](const K& k) { return k.refusal; })
      .of<&K::block>("block_bytes: a block", "of a device")
      .of<&K::usable>("usable_bytes", "that the engine may use")
      .of<&K::weights>("weight_bytes", "of it, weights as loaded")
      .of<&K::padding>("padding_bytes: filled up", "… of them, what kernels add to the matrices that are stored")
      .of<&K::activation>("activation_bytes", "… the peak of the largest step")
      .of<&K::images>("image_bytes: tower", "… what of it the pass over the largest images takes by itself")
      .of<&K::graphs>("graph_bytes: graphs", "… captured graphs")
      .of<&K::other>("other_bytes: besides", "… libraries, what exchanges stage in, tables of positions")
      .of<&K::kv>("kv_bytes: KV cache", "… what is left; negative: nothing fits")
      .of<&K::state>("state_bytes", "of recurrences, of each sequence")
      .named("room for keys and values", "Of the device that has least.");
}

Type fields_of(Fields<estimate::LogPart> f) {
  using P = estimate::LogPart;
  return f.of<&P::name>("name", "\"weights\", \"keys and values\", \"tokens\" …")
      .of<&P::unit>("unit", "\"bytes\", \"tokens\", \"blocks\", \"sequences\"")
      .of<&P::printed>("printed", "as the log has it")
      .of<&P::predicted>("predicted", "of one device; of llama.cpp of all");
}

Type fields_of(Fields<estimate::EngineLog> f) {
  using L = estimate::EngineLog;
  return f.of<&L::version>("version", "of the engine that wrote it; empty: the log does not say")
      .of<&L::parts>("parts", "of its memory")
      .named("start-up log", "What an engine printed of its memory, beside what is predicted.");
}

Type fields_of(const Fields<Generation>&) {
  using G = Generation;
  using E = Estimate;
  using S = estimate::Spending;
  constexpr auto decodes = [](const G& g) { return g.estimate->fits && g.estimate->tpot.has_value(); };
  constexpr auto prefills = [](const G& g) { return g.estimate->fits && g.estimate->ttft.has_value(); };
  constexpr auto generates = [](const G& g) { return g.estimate->fits && g.estimate->tokens_per_second > 0; };
  return with_phases(
      answer_fields<G, &generation_inputs>("how far like predictions were off, or from the errors of the parts of a "
                                           "step: `prefill` of `ttft_s`, `decode` "
                                           "of `tpot_s`; each null without a profile")
          .of<&G::estimate, &E::ttft>("ttft_s",
                                      "time to first token: the prefill, with images the vision tower's pass "
                                      "before it; of an encoder its only pass; null with `phase decode`")
          .of<&G::estimate, &E::tpot>("tpot_s",
                                      "time per output token: mean over the generation, of steps that verify several "
                                      "tokens over those that they keep; null with one generated token and with "
                                      "`phase prefill`")
          .of<&G::estimate, &E::tpot_first>("tpot_first_s: TPOT of the first token", "… of the first decode step")
          .of<&G::estimate, &E::tpot_last>("tpot_last_s: TPOT of the last token", "… of the last")
          .of<&G::estimate, &E::total>("total_s", "prefill and all decode steps, of those that the devices run")
          .of<&G::estimate, &E::tokens_per_second>(
              "tokens_per_second",
              "generated tokens of all requests over `total_s`, with `phase decode` all but the first; null with "
              "`phase prefill`")
          .when(generates)
          .of<&G::estimate, &E::tokens_per_second_per_request>("tokens_per_second_per_request", "… of one")
          .when(generates)
          .of<&G::estimate, &E::sequences_per_second>("sequences_per_second", "of an encoder: batch over `ttft_s`")
          .only_when([](const G& g) { return g.estimate->sequences_per_second > 0; })
          .row("tokens_per_second_per_device", "… of all, over the devices",
               [](const G& g) { return g.estimate->tokens_per_second / d(g.setup->execution.plan.devices()); })
          .when(generates)
          .json<&G::estimate, &E::prefill_tokens_per_second>(
              "prefill_tokens_per_second", "prompt tokens of all requests over `ttft_s`; null with `phase decode`")
          .when(prefills)
          .always()
          .json<&G::estimate, &E::decode_tokens_per_second>("decode_tokens_per_second",
                                                            "batch over `tpot_s`; null with one generated token")
          .when(decodes)
          .of<&G::estimate, &E::spending, &S::cost_per_hour>(
              "cost_per_hour", "of all devices of the plan, in `currency`; null without a price, as all costs")
          .of<&G::estimate, &E::spending, &S::cost_per_million_input_tokens>(
              "cost_per_million_input_tokens", "the prefill's time over the prompts' tokens; null with `phase decode`")
          .of<&G::estimate, &E::spending, &S::cost_per_million_output_tokens>(
              "cost_per_million_output_tokens",
              "the decode steps' time over the tokens that they keep; null without any")
          .of<&G::estimate, &E::spending, &S::request_cost_per_million_output>(
              "request_cost_per_million_output_tokens",
              "`total_s` over all generated tokens: prompts are paid for, too")
          .spread([](const G& g) { return PriceUsed{&g.setup->price}; })
          .of<&G::estimate, &E::spending, &S::average_power_w>(
              "average_power_w",
              "of all devices, over `total_s`; null where a file does not state it, as the three below")
          .of<&G::estimate, &E::spending, &S::joules_per_input_token>(
              "joules_per_input_token", "over the time of `cost_per_million_input_tokens`")
          .of<&G::estimate, &E::spending, &S::joules_per_output_token>(
              "joules_per_output_token", "over the time of `cost_per_million_output_tokens`")
          .of<&G::estimate, &E::spending, &S::power_basis>(
              "power_basis", "\"board power, upper bound\" or \"measured shares of board power\"")
          .when([](const G& g) { return g.estimate->spending.average_power_w.has_value(); })
          .group<&drafted>("draft", "what drafts; only with `draft`")
          .only_when([](const G& g) { return g.setup->draft.has_value(); })
          .json<&G::room>("kv",
                          "the KV cache as an engine sizes it; only where what its memory holds is asked for "
                          "(`kv-utilisation`, `max-model-len` …)")
          .only_when([](const G& g) { return g.room.has_value(); })
          .json<&G::log>("engine_log", "a start-up log of the engine, beside what is predicted; only with `engine-log`")
          .only_when([](const G& g) { return g.log.has_value(); })
          .json("memory", "of one device, with a pipeline of the fullest stage",
                [](const G& g) {
                  return MemoryUsed{&g.estimate->memory, g.estimate->capacity};
                })
          .spread([](const G& g) {  // with experts on devices of their own of the kind that needs more
            const E& e = *g.estimate;
            return MemoryUsed{e.expert_memory.total() > e.memory.total() ? &e.expert_memory : &e.memory, e.capacity};
          })
          .row()
          .of("host_memory", "the same of the host; null without one",
              [](const G& g) {
                return MemoryUsed{&g.estimate->host_memory, g.estimate->host_capacity};
              })
          .when([](const G& g) { return g.setup->host != nullptr; })
          .row("host_total_bytes: memory needed of the host GiB", "what the host holds",
               [](const G& g) { return g.estimate->host_memory.total(); })
          .row<&G::estimate, &E::host_capacity>("host_capacity_bytes: capacity of the host", "what it has")
          .json("expert_memory", "the same of a device of experts; only with `afd`",
                [](const G& g) {
                  return MemoryUsed{&g.estimate->expert_memory, g.estimate->capacity};
                })
          .only_when([](const G& g) { return g.setup->execution.plan.afd; })
          .group<&disaggregated>("afd", "attention and experts on devices of their own; only with `afd`")
          .only_when([](const G& g) { return g.setup->execution.plan.afd && g.estimate->tpot.has_value(); })
          .of<&G::stages>("stages", "of each pipeline stage")
          .of<&G::estimate, &E::largest_batch>("largest_batch",
                                               "requests of this prompt and generation that fit; 0: none")
          .of<&G::estimate, &E::longest_context>(
              "longest_context_tokens: longest context",
              "prompt and generated tokens of a sequence that fit at this batch; 0: none")
          .row("kv_tokens: tokens of the engine's cache", "as it prints them, where what its memory holds is asked for",
               [](const G& g) { return d(g.room->tokens); })
          .when([](const G& g) { return g.room.has_value(); })
          .row("draft_tokens: tokens drafted", "that `draft` proposes for a step",
               [](const G& g) { return g.setup->draft->tokens; })
          .when([](const G& g) { return g.setup->draft.has_value(); })
          .row("kept_tokens", "that a step keeps on the mean, with `draft` or `verify`",
               [](const G& g) { return g.setup->serving.accepted; })
          .when([](const G& g) { return g.setup->serving.verify > 1; })
          .row<&G::parameters>("parameters", "of the model")
          .row<&G::kv_bytes_per_token>("kv_bytes_per_token: KV cache of a token",
                                       "that a token adds to the cache of one sequence, on all devices together")
          .of<&G::curve>("context_curve: over the context",
                         "over the tokens of every sequence, at this batch: powers of two, the request's own length, "
                         "the longest that fits and what the model is made for"),
      "prefill, then decode when more than one token is generated, then with `draft` all that drafts for one of its "
      "steps; with `phase` one of the two; with `step` that step at the end. With `prefill-chunk` the steps of "
      "the "
      "prefill are the pieces of the prompt; a piece whose ops are others begins a phase of its own (`prefill_2`, …): "
      "the one after the first, where caches or states are read that the first has none of, or the last, which may be "
      "shorter. Everything is of one step, of several in decode or prefill of the mean step; with a plan bytes and "
      "FLOPs are of one device of every pipeline stage together (with `afd` of one of attention and one of "
      "experts), for all micro-batches of a replica");
}

Generation::Generation(const estimate::Setup& s)
    : Answer(s, result::label(s)),
      setup(&s),
      kv(s.execution.kv.name()),
      options(options_text(s)),
      plan(graph::to_text(s.execution.plan)),
      parameters(d(model::count_parameters(*s.execution.model).total)) {
  const model::Decoder& m = *s.execution.model;
  for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
    kv_bytes_per_token += cost::layer_kv_bytes(s.execution, m.kinds[kind].attention, 1).value * d(m.kind_counts[kind]);
  }
}

Generation generation(const estimate::Estimator& estimator, const Estimate& estimate,
                      std::vector<estimate::ContextPoint> curve) {
  Generation g(estimator.setup());
  g.estimate = &estimate;
  g.curve = std::move(curve);
  if (g.setup->draft && estimate.fits) {
    g.rounds = estimate::rounds_of(*g.setup, estimate.scenario, estimate::kMostCompared);
  }
  g.ridge = estimator.product_rate() / estimator.roofline().bandwidth();
  const graph::StageSplit& split = g.setup->execution.split;
  for (std::size_t i = 0; i < estimator.stages().size(); ++i) {
    g.stages.push_back(
        {split.first[i], split.layers(static_cast<std::int64_t>(i)), estimator.stage_memory(estimate.scenario, i),
         g.setup->cards.empty() ? g.setup->device->name : g.setup->cards[i].device->name, estimator.capacity(i)});
  }
  return g;
}

namespace {

struct LayerRun {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
};
struct TrainingStage {
  std::int64_t layers = 0;
  std::vector<LayerRun> runs;
};
std::vector<TrainingStage> stages_of(const Training& t) {
  const graph::StageSplit& split = t.estimate->split;
  std::vector<TrainingStage> stages;
  for (std::int64_t stage = 0; stage < split.stages; ++stage) {
    stages.push_back({split.layers(stage), {}});
    for (std::int64_t run = stage; run < split.runs(); run += split.stages) {
      stages.back().runs.push_back({split.first[static_cast<std::size_t>(run)], split.layers_of_run(run)});
    }
  }
  return stages;
}

}  // namespace

std::vector<std::string> Training::beyond() const { return training_extrapolations(*setup, *estimate); }
Bands Training::bands() const {
  return {{"step", estimate->fits ? band_of(training_band(*setup, *estimate), estimate->time) : std::nullopt}};
}

estimate::Spent Training::spent() const {
  if (!estimate->fits) return {};
  return estimate::spent(setup->price, setup->device->power_w, d(estimate->plan.devices()), estimate->time);
}

namespace {

// Of a step, over its tokens.
std::optional<double> per_token(const Training& t, std::optional<double> of_step) {
  const double tokens = t.estimate->tokens_per_second * t.estimate->time.value;
  return of_step ? std::optional(*of_step / tokens) : std::nullopt;
}

}  // namespace

std::optional<double> Training::cost_per_million_tokens() const {
  const std::optional<double> one = per_token(*this, spent().cost);
  return one ? std::optional(1e6 * *one) : std::nullopt;
}

Type training_inputs(Fields<Training> f) {
  using I = Training;
  using E = estimate::TrainingEstimate;
  return named_model_and_device(std::move(f))
      .row("plan", "as text", [](const I& i) { return graph::to_text(i.estimate->plan); })
      .row("devices", "of the plan", [](const I& i) { return i.estimate->plan.devices(); })
      .of<&I::estimate, &E::scenario, &estimate::TrainingScenario::global_batch>("global_batch", "sequences of a step")
      .of<&I::estimate, &E::scenario, &estimate::TrainingScenario::micro_batch>("micro_batch: micro-batch",
                                                                                "sequences of a micro-batch")
      .of<&I::estimate, &E::scenario, &estimate::TrainingScenario::sequence>("sequence_tokens", "of each sequence")
      .of("weights", "type", [](const I& i) { return i.setup->execution.weights.name; })
      .of("activations", "type", [](const I& i) { return i.setup->execution.activations; })
      .of<&I::estimate, &E::options, &graph::TrainingOptions::gradient_bits>("gradient_bits",
                                                                             "of a parameter's gradient")
      .of<&I::estimate, &E::options, &graph::TrainingOptions::optimizer_bits>("optimizer_bits",
                                                                              "of a parameter's state")
      .of("recompute", "\"none\", \"selective\", \"full\", \"ops\", \"modules\" or \"offload\"",
          [](const I& i) { return name(i.estimate->options.recompute); })
      .of<&I::estimate, &E::options, &graph::TrainingOptions::recomputed_share>("recomputed_share",
                                                                                "of the layers, those that do")
      .of("products", "what products of layers multiply", [](const I& i) { return name(i.estimate->options.products); })
      .of("lora_rank", "of adapters beside frozen weights; 0: all are trained",
          [](const I& i) { return i.estimate->options.adapters.rank; })
      .of("loss", "\"plain\", \"chunked\" or \"fused\"", [](const I& i) { return name(i.estimate->options.loss); })
      .of("schedule", "of pipeline stages", [](const I& i) { return name(i.estimate->options.schedule); })
      .of<&I::estimate, &E::options, &graph::TrainingOptions::zero>("zero: ZeRO", "stage of ZeRO")
      .of<&I::estimate, &E::options, &graph::TrainingOptions::chunks>("interleave", "runs of layers per stage")
      .of("options", "of the runtime",
          [](const I& i) { return hardware::format_runtime_options(i.setup->execution.runtime); })
      .json("devices", "of the plan", [](const I& i) { return i.estimate->plan.devices(); })
      .of("plan", "how the model is spread over them", [](const I& i) { return i.estimate->plan; })
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; })
      .json("runtime", "the runtime profile", [](const I& i) { return i.setup->profile->name; })
      .only_when([](const I& i) { return i.setup->profile != nullptr; })
      .json("separate_gradients", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return !i.estimate->options.fused_gradients; })
      .json("exposed_sums", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return !i.estimate->options.overlapped_sums; })
      .json("async_tp", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return i.estimate->options.async_sums; })
      .json("eager", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return i.estimate->options.eager; })
      .json("shared_expert_overlap", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return i.estimate->options.shared_beside; });
}

Type fields_of(Fields<LayerRun> f) {
  return f.of<&LayerRun::first_layer>("first_layer", "from 0").of<&LayerRun::layers>("layers", "how many");
}

Type fields_of(Fields<TrainingStage> f) {
  return f.of<&TrainingStage::layers>("layers", "how many")
      .of<&TrainingStage::runs>("runs", "of layers, several with `interleave`");
}

Type training_memory(Fields<Training> f) {
  using M = Training;
  using E = estimate::TrainingEstimate;
  using Held = cost::Memory;
  return f.json("stage", "of the device", [](const M& m) { return m.estimate->fullest_stage + 1; })
      .of<&M::estimate, &E::memory, &Held::weights>("weight_bytes",
                                                    "with `zero` 3 in a pipeline the share and what is gathered")
      .of<&M::estimate, &E::memory, &Held::gradients>("gradient_bytes: gradients GiB", "gradients")
      .of<&M::estimate, &E::memory, &Held::optimizer>("optimizer_bytes: GiB", "state of the optimiser")
      .of<&M::estimate, &E::memory, &Held::activation>("activation_bytes", "of all micro-batches in flight")
      .of<&M::estimate, &E::layer_activations>("layer_activation_bytes: activations of a layer",
                                               "part of it: of one micro-batch and layer")
      .of<&M::estimate, &E::memory, &Held::workspace>("workspace_bytes: GiB", "what one layer needs beside them")
      .of<&M::estimate, &E::memory, &Held::reserve>("reserve_bytes", "what the runtime keeps for itself")
      .of<&M::estimate, &E::memory, &Held::total>("total_bytes", "the sum")
      .of<&M::estimate, &E::capacity>("capacity_bytes", "what there is");
}

Type fields_of(const Fields<Training>&) {
  using T = Training;
  using E = estimate::TrainingEstimate;
  return with_phases(
      answer_fields<T, &training_inputs>(
          "`step` of `step_s`; null without a profile and outside of the published runs that it was compared with")
          .of<&T::estimate, &E::time>("step_s: time of a step",
                                      "`compute_s` + `bubble_s` + `gradient_exposed_s` + `optimizer_s`")
          .of<&T::estimate, &E::compute>(
              "compute_s",
              "both passes of all micro-batches on the busiest stage, what shows of its exchanges included")
          .of<&T::estimate, &E::bubble>("bubble_s", "while the pipeline fills and drains")
          .of<&T::estimate, &E::gradient_exposed>("gradient_exposed_s: exposed gradient exchange",
                                                  "what shows of the exchanges of gradients and weights")
          .of<&T::estimate, &E::optimizer>("optimizer_s: optimizer update", "the update")
          .of<&T::estimate, &E::host>("host_s", "of `compute_s`, what layers wait for the host or the link to it")
          .of<&T::estimate, &E::overlapped>("overlapped_s", "exchanges beside other ops; not part of `step_s`")
          .of<&T::estimate, &E::tokens_per_second>("tokens_per_second", "of the global batch over `step_s`")
          .of("tokens_per_second_per_device", "… over the devices",
              [](const T& t) { return t.estimate->tokens_per_second / d(t.estimate->plan.devices()); })
          .of<&T::estimate, &E::mfu>("mfu: %", "`model_flops` over what all devices could do in `step_s`")
          .of<&T::estimate, &E::hfu>("hfu: %", "… `hardware_flops`")
          .always()
          .spread([](const T& t) { return RunSpent{t.spent()}; })
          .of("cost_per_step", "all devices for `step_s`, in `currency`", [](const T& t) { return t.spent().cost; })
          .of<&T::cost_per_million_tokens>("cost_per_million_tokens", "of the global batch")
          .of("joules_per_token", "an upper bound, as the power",
              [](const T& t) { return per_token(t, t.spent().joules); })
          .spread([](const T& t) { return PriceUsed{&t.setup->price}; })
          .json<&T::estimate, &E::model_flops>("model_flops: FLOPs of the model",
                                               "matrix products of all devices: three forward passes")
          .json<&T::estimate, &E::hardware_flops>("hardware_flops: FLOPs of the hardware",
                                                  "… with what is computed again or on several devices")
          .json<&T::estimate, &E::micro_batches>("micro_batches", "of one replica")
          .json("busiest_stage", "the stage that `phases` is of, from 1",
                [](const T& t) { return t.estimate->busiest_stage + 1; })
          .of<&stages_of>("stages", "of each pipeline stage")
          .group<&training_memory>("memory", "of the fullest device")
          .flat(),
      "\"forward\" and \"backward\" of one micro-batch, \"update\" of a step; op values add up to theirs");
}

namespace {

// Of all steps of one of kVideoPhases.
template <std::size_t I>
double phase_seconds(const Video& v) {
  const std::vector<estimate::Phase>& phases = v.estimate->phases;
  return I < phases.size() ? phases[I].total().value : 0.0;
}

}  // namespace

std::vector<std::string> Video::beyond() const { return extrapolations(*setup); }
Bands Video::bands() const {
  return {{"generation", estimate->fits ? band_of(band(*setup), estimate->generation) : std::nullopt}};
}

estimate::Spent Video::spent() const {
  if (!estimate->fits) return {};
  return estimate::spent(setup->price, setup->device->power_w, d(setup->devices()), estimate->generation);
}

Type fields_of(Fields<model::VideoShape> f) {
  using S = model::VideoShape;
  return f.of<&S::size, &model::VideoSize::height>("height", "pixels")
      .of<&S::size, &model::VideoSize::width>("width", "pixels")
      .of<&S::frames>("frames", "of a video")
      .of("latent", "frames, height, width",
          [](const S& s) {
            return std::array{s.latent_frames, s.latent_height, s.latent_width};
          })
      .of("patches", "frames, rows, columns",
          [](const S& s) {
            return std::array{s.patch_frames, s.patch_rows, s.patch_columns};
          })
      .json<&S::spatial_tokens>("spatial_tokens", "of a frame")
      .json<&S::temporal_tokens>("temporal_tokens", "of a place")
      .json<&S::tokens>("tokens", "of a video");
}

Type video_inputs(Fields<Video> f) {
  using I = Video;
  using S = estimate::VideoSetup;
  using X = graph::VideoExecution;
  return named_model_and_device(std::move(f))
      .flat<&I::setup, &S::execution, &X::shape>("shape", "of a video")
      .of<&I::setup, &S::execution, &X::videos>("videos", "generated together")
      .of("steps", "of denoising", [](const I& i) { return i.setup->scenario.steps; })
      .of<&I::setup, &S::execution, &X::guidance>("guidance",
                                                  "whether classifier-free, which doubles the batch of a step")
      .of<&I::setup, &S::execution, &X::text_tokens>("text_tokens", "of the prompt")
      .row("tokens", "of a video", [](const I& i) { return i.setup->execution.shape.tokens(); })
      .of<&I::setup, &S::weights_name>("weights", "of the transformer")
      .of<&I::setup, &S::execution, &X::activations>("activations", "type")
      .json<&I::setup, &S::execution, &X::text_activations>("text_encoder", "type the text encoder runs in")
      .of("options", "of the runtime", [](const I& i) { return options_text(*i.setup); })
      .of("runtime", "the runtime profile; null for the speed of light",
          [](const I& i) { return runtime_used(*i.setup); })
      .of("devices", "of the plan", [](const I& i) { return i.setup->devices(); })
      .of<&I::setup, &S::execution, &X::plan>("plan", "how the model is spread over them")
      .row("plan", "as text", [](const I& i) { return graph::to_text(i.setup->execution.plan); })
      .of<&I::setup, &S::execution, &X::patches>("patches", "pieces of the latent that stages work on side by side")
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; });
}

Type video_memory(Fields<Video> f) {
  using M = Video;
  using E = estimate::VideoEstimate;
  return f.of<&M::estimate, &E::memory, &cost::Memory::weights>("weight_bytes", "the sum of the three below")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::transformer>("transformer_bytes", "its weights")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::text_encoder>("text_encoder_bytes", "its weights")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::autoencoder>("autoencoder_bytes", "its weights")
      .of<&M::estimate, &E::memory, &cost::Memory::kv_cache>("kv_cache_bytes", "kept for patches")
      .of<&M::estimate, &E::memory, &cost::Memory::activation>("activation_bytes", "the largest of the three below")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::text_activation>(
          "text_activation_bytes: activations of the text encoder", "encoding")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::step_activation>(
          "step_activation_bytes: activations of a step", "a step")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::decode_activation>(
          "decode_activation_bytes: activations of the decoder", "decoding")
      .of<&M::estimate, &E::memory, &cost::Memory::reserve>("reserve_bytes", "what the runtime keeps for itself")
      .of("total_bytes", "the sum", [](const M& m) { return m.estimate->memory.total(); })
      .of<&M::estimate, &E::capacity>("capacity_bytes", "what there is");
}

Type fields_of(Fields<VideoStageHeld> f) {
  using S = VideoStageHeld;
  return f.of<&S::stage, &estimate::VideoStage::first>("first", "unit of the depth")
      .of<&S::stage, &estimate::VideoStage::last>("last", "unit of the depth")
      .of("devices", "of the stage", [](const S& s) { return s.stage->plan.stage(); })
      .of<&S::stage, &estimate::VideoStage::plan>("plan", "of the stage")
      .of<&S::weights>("weight_bytes", "of one of its devices")
      .of<&S::kept>("kv_cache_bytes", "likewise");
}

Type fields_of(const Fields<Video>&) {
  using V = Video;
  using E = estimate::VideoEstimate;
  return with_phases(
      answer_fields<V, &video_inputs>(
          "`generation` of `generation_s`; null without a profile and where it is extrapolated")
          .row<&V::estimate, &E::generation>("generation_s", "the whole generation")
          .of<&V::estimate, &E::step>("step_s", "one denoising step")
          .json<&V::estimate, &E::generation>("generation_s", "the whole generation, the sum of the phases' `total_s`")
          .row<&phase_seconds<0>>("text_encoding_s", "of the generation")
          .row<&phase_seconds<1>>("denoising_s", "of the generation")
          .row<&phase_seconds<2>>("vae_decoding_s", "of the generation")
          .row<&phase_seconds<3>>("other_s", "of the generation")
          .json<&V::estimate, &E::peak>("matrix_peak_flops_per_s", "of products in the activations' type")
          .of<&V::estimate, &E::step_utilisation>(
              "step_utilisation: utilisation of a step",
              "matrix products of a step over what its devices could do in that time")
          .json<&V::estimate, &E::generation_utilisation>("generation_utilisation: utilisation of the generation",
                                                          "… of all steps, over the generation")
          .always()
          .spread([](const V& v) { return RunSpent{v.spent()}; })
          .of("cost_per_generation", "all devices for `generation_s`, in `currency`",
              [](const V& v) { return v.spent().cost; })
          .of("joules_per_generation", "an upper bound, as the power", [](const V& v) { return v.spent().joules; })
          .spread([](const V& v) { return PriceUsed{&v.setup->price}; })
          .group<&video_memory>("memory", "of a device of the fullest stage")
          .flat()
          .of<&V::stages>("stages", "of each pipeline stage")
          .of<&V::estimate, &E::classes>("classes", "a step by what its kernels are for, the longest first"),
      "\"text encoding\", \"denoising step\" (`steps` of them), \"VAE decoding\", and \"other\" where there is any");
}

Video video(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate) {
  Video v(estimator.setup(), estimate);
  for (std::size_t i = 0; i < v.setup->stages.size(); ++i) {
    const cost::VideoMemory held = estimator.stage_memory(i);
    v.stages.push_back({&v.setup->stages[i], held.weights(), held.kept});
  }
  return v;
}

}  // namespace llmperf::result
