#include "result/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "estimate/video.h"
#include "result/row.h"

namespace llmperf::result {

Type fields_of(Fields<Source> f) {
  return f.of<&Source::name>("name", "built-in name").of<&Source::source>("source", "where its description is from");
}

Type fields_of(Fields<Figure> f) {
  return f.of<&Figure::value>("value", "in the SI unit that ends the figure's key")
      .of<&Figure::provenance>("provenance",
                               "\"datasheet\", \"derived\", \"measured\", "
                               "\"fitted\" or \"assumed\"");
}

Type fields_of(Fields<HardwareUsed> f) {
  using H = HardwareUsed;
  return f.of<&H::device, &hardware::Device::name>("name", "built-in name")
      .of<&H::device, &hardware::Device::source>("source", "where its description is from")
      .of("figures",
          "the figures that the numbers rest on: `matrix_flops_per_s` (for the product type of the layer matrices; "
          "absent when the device has none), `attention_matrix_flops_per_s` (for the activation type, when that "
          "differs), `text_matrix_flops_per_s` (of a video model's text encoder), `vector_flops_per_s`, "
          "`measured_clock_hz` (which the peaks are taken at, where the device file has one), "
          "`memory_bandwidth_bytes_per_s`, `memory_capacity_bytes`, `reserve_bytes`; with layers on a host "
          "`host_vector_flops_per_s`, `host_memory_bandwidth_bytes_per_s`, `host_memory_capacity_bytes`, "
          "`host_link_bytes_per_s`; with more than one device `interconnect_bytes_per_s`, "
          "`interconnect_latency_s` and, beyond a node, `network_bytes_per_s`, `network_latency_s`, under a "
          "runtime profile a latency only where it counts",
          [](const H& h) {
            Map<Figure> figures;
            for (const Figure& figure : h.figures) figures.emplace_back(figure.key, figure);
            return figures;
          })
      .named("hardware used");
}

Type fields_of(Fields<RuntimeUsed> f) {
  using R = RuntimeUsed;
  return f.of("name", "of the profile", [](const R& r) -> const std::string& { return r.platform->profile->name; })
      .of("title", "for people", [](const R& r) -> const std::string& { return r.platform->profile->title; })
      .of("source", "of its numbers", [](const R& r) -> const std::string& { return r.platform->profile->source; })
      .of("measured_on", "a device", [](const R& r) -> const std::string& { return r.platform->profile->hardware; })
      .when([](const R& r) { return !r.platform->profile->hardware.empty(); })
      .of("engine", "era of the engine whose host it has; null: none of the files",
          [](const R& r) -> const std::string& { return r.platform->profile->engine; })
      .when([](const R& r) { return !r.platform->profile->engine.empty(); })
      .of("host", "of machine that the host's numbers were measured on: \"desktop\", \"server\" or \"grace\"",
          [](const R& r) -> const std::string& { return r.platform->profile->host_class; })
      .when([](const R& r) { return !r.platform->profile->host_class.empty(); })
      .of("class_default: by defaults of the class", "whether it is not fitted to this device",
          [](const R& r) { return !r.platform->profile->measured_on(*r.platform->device); })
      .of<&R::platform, &estimate::Platform::dispatch>("prefill_dispatch: dispatch of prefill",
                                                       "\"graph\", \"eager\", \"serial\" or \"dynamic_graph\"")
      .only_when([](const R& r) { return r.text; })
      .of<&R::platform, &estimate::Platform::decode_dispatch>("decode_dispatch: dispatch of decode", "likewise")
      .only_when([](const R& r) { return r.text; })
      .of<&R::platform, &estimate::Platform::dispatch>("dispatch", "likewise, of results that have no such phases")
      .only_when([](const R& r) { return !r.text; })
      .of("rows", "measurements that it was fitted to", [](const R& r) { return r.platform->profile->range.rows; })
      .named("runtime used");
}

Type fields_of(Fields<BandOf> f) {
  using B = BandOf;
  return f
      .of<&B::band, &Band::mean>(
          "mean_error",
          "relative, of predictions that were left out of the fit, or from the errors of the parts of a step")
      .of<&B::band, &Band::p90>("p90_error: 9 of 10 within", "nine of ten were within this")
      .of<&B::band, &Band::rows>("rows", "that were left out of the fit and say so; 0: from the errors of the parts")
      .of("low_s", "the time over 1 + the mean error", [](const B& b) { return b.time / (1 + b.band.mean); })
      .of("high_s", "the time times that", [](const B& b) { return b.time * (1 + b.band.mean); })
      .named("error band");
}

Type fields_of(Fields<graph::Plan> f) {
  using P = graph::Plan;
  return f.of("text", "as `plan` writes it", [](const P& p) { return graph::to_text(p); })
      .of<&P::devices>("devices", "of the plan")
      .of<&P::tensor>("tensor", "degree of tensor parallelism")
      .of<&P::tensor_rows>("tensor_rows", "null: one-dimensional")
      .when([](const P& p) { return p.tensor_rows > 0; })
      .of<&P::sequence_parallel>("sequence_parallel", "whether norms are divided over the tensor axis")
      .of<&P::ulysses>("ulysses: Ulysses", "degree of sequence parallelism by heads")
      .of<&P::ring>("ring", "… by passing K and V round")
      .of<&P::gathers_keys>("gathers_keys: keys gathered", "whether they are gathered before attention instead")
      .only_when([](const P& p) { return p.gathers_keys; })
      .of<&P::expert>("expert", "degree of expert parallelism")
      .of<&P::afd>("afd: experts apart", "whether these are devices of their own")
      .only_when([](const P& p) { return p.afd; })
      .of<&P::expert_copies>("expert_copies: redundant experts", "experts held a second time")
      .only_when([](const P& p) { return p.expert_copies > 0; })
      .of<&P::shared_ranks>("shared_ranks: devices of shared experts", "devices that hold a shared expert alone")
      .only_when([](const P& p) { return p.shared_ranks > 0; })
      .of<&P::expert_dispatch>("expert_dispatch: type of tokens sent to experts",
                               "type that tokens travel to experts in; null: as the weights have it")
      .of<&P::expert_combine>("expert_combine: type of results of experts", "… and back")
      .of<&P::data>("data", "replicas")
      .of<&P::pipeline>("pipeline", "stages")
      .of("embedding", "\"sharded\" or \"replicated\"",
          [](const P& p) { return p.shard_embedding ? "sharded" : "replicated"; })
      .named("plan");
}

Type fields_of(Fields<cost::Memory> f) {
  using M = cost::Memory;
  return f.of<&M::weights>("weight_bytes: weights", "weights")
      .of<&M::kv_cache>("kv_cache_bytes: GiB", "KV cache of all sequences at their full length")
      .of<&M::state>("state_bytes: recurrent state",
                     "of recurrent layers, all sequences; only of models that have such")
      .only_when([](const M& m) { return m.state.value > 0; })
      .of<&M::draft>("draft_weight_bytes: weights of the draft",
                     "weights of what drafts (`draft`), but for what it shares with the model")
      .only_when([](const M& m) { return m.draft.value > 0; })
      .of<&M::draft_cache>("draft_cache_bytes: KV cache of the draft",
                           "its KV cache and recurrent state, all sequences; of llama.cpp also its compute buffers")
      .only_when([](const M& m) { return m.draft.value > 0; })
      .of<&M::activation>("activation_bytes: activations", "the peak")
      .of<&M::reserve>("reserve_bytes: runtime reserve GiB", "what the runtime keeps for itself")
      .of<&M::total>("total_bytes: memory needed GiB", "the sum")
      .named("memory");
}

Type fields_of(Fields<PriceUsed> f) {
  const auto of = []<class Get>(Get) {
    return [](const PriceUsed& p) { return *p.price ? std::optional(Get()(**p.price)) : std::nullopt; };
  };
  using P = estimate::HourPrice;
  return f.of("currency", "of costs", of([](const P& p) { return std::string_view(p.currency); }))
      .of("price_basis",
          "of a device-hour: \"rent\" (the median of offers on demand), \"spot\", \"derived\" (a purchase price over "
          "three "
          "years, and electricity) or \"given\"",
          of([](const P& p) { return p.basis; }))
      .of("price_source", "who asks for it", of([](const P& p) { return std::string_view(p.source); }))
      .of("price_date", "when that was read; may be empty", of([](const P& p) { return std::string_view(p.date); }));
}

Type fields_of(Fields<RunSpent> f) {
  using R = RunSpent;
  return f.of<&R::spent, &estimate::Spent::cost_per_hour>("cost_per_hour", "of all devices; null without a price")
      .of<&R::spent, &estimate::Spent::power_w>("average_power_w", "of all devices; null where it is not stated")
      .of("power_basis", "what that rests on", [](const R&) { return estimate::kPowerBound; })
      .when([](const R& r) { return r.power_known(); });
}

Type fields_of(Fields<MemoryUsed> f) {
  using M = MemoryUsed;
  return f.spread<&M::memory>().of<&M::capacity>("capacity_bytes", "what there is");
}

Type fields_of(Fields<MemoryRoof> f) {
  using R = MemoryRoof;
  return f.of<&R::name>("name", "of the memory level")
      .of<&R::rate>("bytes_per_s: bandwidth", "of all tiles together")
      .of<&R::provenance>("provenance", "of the rate");
}

Type fields_of(Fields<ComputeRoof> f) {
  using R = ComputeRoof;
  return f.of<&R::dtype>("dtype: type", "of the operands")
      .of<&R::unit>("unit", "\"matrix\" or \"vector\"")
      .of<&R::rate>("flops_per_s: peak", "dense")
      .of<&R::provenance>("provenance", "of the rate");
}

Type fields_of(Fields<Roofs> f) {
  return f
      .of("memory", "near to far",
          [](const Roofs& r) {
            std::vector<MemoryRoof> roofs;
            for (const hardware::MemoryLevel& level : r.device->memory) {
              if (!level.bandwidth) continue;
              const auto& tiles = r.device->tile_array;
              const double parts = level.per_tile && tiles ? d(tiles->tiles) : 1;
              roofs.push_back({level.name, *level.bandwidth * parts, level.bandwidth_provenance});
            }
            return roofs;
          })
      .of("compute", "the peak of every type",
          [](const Roofs& r) {
            std::vector<ComputeRoof> roofs;
            for (const hardware::Peak& p : r.device->peaks) {
              if (r.device->find_peak(p.engine, p.dtype) != &p) continue;  // another accumulation of the same type
              roofs.push_back({p.dtype, p.engine, p.rate * r.device->clock_ratio(), p.provenance});
            }
            return roofs;
          })
      .named("roofs");
}

Type fields_of(Fields<CountedWork> f) {
  using W = CountedWork;
  return f.of("flops", "sum of the two below", [](const W& w) { return (w.work->matrix + w.work->vector) * w.count; })
      .of("matrix_flops", "of the matrix engine", [](const W& w) { return w.work->matrix * w.count; })
      .of("vector_flops", "of the vector engine", [](const W& w) { return w.work->vector * w.count; })
      .of("bytes", "memory traffic: sum of the five below", [](const W& w) { return w.work->bytes() * w.count; })
      .of("weight_bytes", "weights read", [](const W& w) { return w.work->weights * w.count; })
      .of("activation_read_bytes: activations read", "activations read",
          [](const W& w) { return w.work->activations_read * w.count; })
      .of("activation_written_bytes: activations written", "activations written",
          [](const W& w) { return w.work->activations_written * w.count; })
      .of("kv_read_bytes", "KV cache read", [](const W& w) { return w.work->kv_read * w.count; })
      .of("kv_written_bytes", "KV cache written", [](const W& w) { return w.work->kv_written * w.count; })
      .of("network_bytes: bytes sent",
          "sent over the link between device and host, or by a device to others; not part of `bytes`",
          [](const W& w) { return w.work->network * w.count; })
      .named("work");
}

Type fields_of(Fields<estimate::Phase> f) {
  using P = estimate::Phase;
  return f.of<&P::name>("name", "\"prefill\", \"decode\" and the like")
      .of<&P::steps>("steps", "how many steps the phase has")
      .of<&P::time>("time_s", "of one step")
      .of<&P::total>("total_s: total time", "of all steps")
      .of<&P::roof>("roof_s", "the bound that `time_s` is held against")
      .of<&P::ops_time>("ops_time_s: sum of ops", "of all ops: `time_s` + `overlapped_s` + `pipelined_s`")
      .of<&P::overlapped>("overlapped_s",
                          "what collectives take beside other ops, and what weights that come early save "
                          "(`prefetch_weights`)")
      .of<&P::pipelined>("pipelined_s", "what stages, or attention and experts (`afd`), do at the same time")
      .of<&P::bubble>("bubble_s", "idle time of the busiest of them")
      .of<&P::batches>("micro_batches: micro-batches", "that a step goes through the pipeline in")
      .spread([](const P& p) { return CountedWork{&p.work}; })
      .of<&P::intensity>("intensity_flop_per_byte: intensity (FLOP/B)", "`flops` / `bytes`")
      .of<&P::bound>("bound",
                     "what binds the largest share of the time: \"matrix\", \"vector\", \"memory\", \"network\", "
                     "\"launch\" or \"operand feed\" (the rate at which cores get operands from the cache)")
      .named("phase");
}

Type fields_of(Fields<Exchanged> f) {
  using E = Exchanged;
  return f
      .of<&E::collective, &graph::Collective::kind>(
          "kind",
          "\"all-reduce\", \"all-gather\", \"reduce-scatter\", \"all-to-all\", \"send\", \"ring pass\" or "
          "\"broadcast\"")
      .of<&E::collective, &graph::Collective::axis>("axis", "of the plan")
      .only_when([](const Exchanged& e) { return e.of_plan; })
      .of<&E::collective, &graph::Collective::ranks>("ranks", "devices that take part")
      .of<&E::collective, &graph::Collective::stride>("stride", "between their numbers")
      .of("payload_bytes", "of one execution", [](const E& e) { return e.collective->bytes(); })
      .of<&E::sent>("sent_bytes", "by one device in all executions, `network_bytes`")
      .of<&E::cost, &cost::CollectiveCost::algorithm>("algorithm", "the fastest on these links")
      .of<&E::cost, &cost::CollectiveCost::steps>("steps", "messages that follow one another")
      .of<&E::cost, &cost::CollectiveCost::busiest_link>("busiest_link_bytes", "over the link that limits it")
      .of<&E::cost, &cost::CollectiveCost::latency>("latency_s", "of one execution, as charged")
      .of<&E::cost, &cost::CollectiveCost::transfer>("transfer_s", "likewise")
      .of<&E::overlaps>("overlaps", "whether it may run beside other ops")
      .named("exchange");
}

Type fields_of(Fields<OpResult> f) {
  using O = OpResult;
  return f.of("name", "\"qkv_proj\"; not unique when layers differ", [](const O& o) { return o.op->op.name; })
      .of("kind", "\"gemm\", \"attention\", \"vector\", \"gather\", \"copy\", \"transfer\" or \"collective\"",
          [](const O& o) { return graph::kind_of(o.op->op); })
      .of("shape", "text for people", [](const O& o) { return shape_text(o.op->op); })
      .of("count", "executions per step", [](const O& o) { return o.op->op.count; })
      .spread([](const O& o) {
        return CountedWork{&o.op->work, o.count()};
      })
      .of("weights",
          "type of the weights read or sent, where that is one of ggml's (\"Q4_K\"; \"mixed\" when two halves "
          "differ); else null",
          [](const O& o) { return weight_format(o.op->op)->name; })
      .when([](const O& o) {
        const model::StoredFormat* format = weight_format(o.op->op);
        return format != nullptr && !format->name.empty();
      })
      .of("place", "\"device\", \"host\", \"link\" between them, or \"network\" between devices",
          [](const O& o) { return o.op->op.place; })
      .of("matrix_dtype: matrix type", "operand type of the matrix product",
          [](const O& o) { return o.op->work.matrix_dtype; })
      .of("time_s", "as in a phase", [](const O& o) { return o.op->step_time(); })
      .of("roof_s", "as in a phase", [](const O& o) { return o.op->time.roof * o.count(); })
      .of("bound", "as in a phase", [](const O& o) { return o.op->time.bound; })
      .of<&exchanged>("collective", "how an exchange between devices runs; null for other ops")
      .named("op", "Numbers are of all `count` executions in the step; they add up to those of their phase.");
}

Type fields_of(Fields<PhaseOp> f) {
  using O = PhaseOp;
  static const auto collective = [](const O& o) { return std::get_if<graph::Collective>(&o.op().op->op.body); };
  return f.row<&O::phase, &estimate::Phase::name>("phase", "that it is of")
      .row<&O::phase, &estimate::Phase::steps>("steps", "of the phase")
      .spread<&O::op>()
      .of("class", "what it is for, of a denoising step; null in other phases of a video",
          [](const O& o) {
            return o.phase().name == estimate::kVideoPhases[1] ? std::optional(purpose_of(o.op().op->op))
                                                               : std::nullopt;
          })
      .only_when([](const O& o) { return o.of.also == Also::purpose; })
      .of("hidden_s", "of training: what of its time runs beside others", [](const O& o) { return o.op().op->hidden; })
      .only_when([](const O& o) { return o.of.also == Also::hidden; })
      .json("row", "only where ops are asked for: the columns of a measurement of the op; null where none can say it",
            [](const O& o) { return o.of.columns(o.phase(), o.index); })
      .only_when([](const O& o) { return o.of.columns != nullptr; })
      .row("share: %", "of the phase's time", [](const O& o) { return o.op().op->step_time() / o.phase().time; })
      .row("axis", "of an exchange", [](const O& o) { return collective(o)->axis; })
      .when([](const O& o) { return collective(o) != nullptr; })
      .row("ranks", "of an exchange", [](const O& o) { return collective(o)->ranks; })
      .when([](const O& o) { return collective(o) != nullptr; });
}

Type fields_of(Fields<graph::SequenceGroup> f) {
  using G = graph::SequenceGroup;
  return f.of<&G::count>("sequences", "alike")
      .of<&G::new_tokens>("new_tokens", "of each")
      .of<&G::context>("context", "cached tokens of each, on the mean")
      .of("longest_context", "of the longest", [](const G& g) { return std::max(g.context, g.longest); })
      .named("group of sequences");
}

Type fields_of(Fields<PhaseResult> f) {
  using P = PhaseResult;
  using G = graph::SequenceGroup;
  constexpr auto tokens = [](const P& p) { return p.also == Also::tokens; };
  return f.spread<&P::phase>()
      .only_where(tokens)
      .of<&P::phase, &estimate::Phase::first, &G::new_tokens>("new_tokens", "per sequence")
      .of<&P::phase, &estimate::Phase::first, &G::context>("first_context", "cached tokens in the first step")
      .of<&P::phase, &estimate::Phase::last, &G::context>("last_context", "cached tokens in the last step")
      .always()
      .of<&P::phase, &estimate::Phase::groups>("groups",
                                               "of a step of several groups of sequences; those that decode "
                                               "together are one")
      .only_when([](const P& p) { return !p.phase->groups.empty(); })
      .of("ops", "of the step", [](const P& p) { return ops_of(p); });
}

std::vector<PhaseOp> ops_of(const PhaseResult& phase) {
  std::vector<PhaseOp> ops;
  for (std::size_t i = 0; i < phase.phase->ops.size(); ++i) ops.push_back({phase, i});
  return ops;
}

std::vector<PhaseResult> phases_of(const estimate::Outcome& outcome, const cost::Cluster& cluster, Also also,
                                   OpColumns columns) {
  std::vector<PhaseResult> phases;
  if (!outcome.fits) return phases;
  for (const estimate::Phase& phase : outcome.phases) phases.push_back({&phase, &cluster, also, columns});
  return phases;
}

Type fields_of(Fields<estimate::OpGroup> f) {
  using G = estimate::OpGroup;
  return f.of<&G::name>("name", "what its ops have in common")
      .of<&G::count>("count", "executions")
      .of<&G::kernels>("kernels", "launches")
      .of<&G::time>("time_s", "of all")
      .spread([](const G& g) { return CountedWork{&g.work}; })
      .of<&G::roof>("roof_s", "the bound that it is held against")
      .of<&G::bound>("bound", "what binds most of the time")
      .named("ops together");
}

std::optional<Exchanged> exchanged(const OpResult& o) {
  const auto* c = std::get_if<graph::Collective>(&o.op->op.body);
  if (c == nullptr) return std::nullopt;
  return Exchanged{c, cost::collective_cost(*o.cluster, *c), o.op->work.network * o.count(), o.op->op.overlaps};
}

std::string layers_text(const model::Decoder& model, int kind) {
  if (kind < 0 || model.kinds.size() < 2) return "";
  const model::Layer& layer = model.kinds[static_cast<std::size_t>(kind)];
  const auto differ = [&](auto&& trait) {
    return std::any_of(model.kinds.begin(), model.kinds.end(),
                       [&](const model::Layer& other) { return trait(other) != trait(layer); });
  };
  const auto routed = [](const model::Layer& l) { return l.feed_forward.experts.has_value(); };
  const auto slides = [](const model::Layer& l) { return l.attention.window.has_value(); };
  const auto recurs = [](const model::Layer& l) { return l.recurrent.has_value(); };
  const auto compressed = [](const model::Layer& l) { return l.attention.compression; };
  std::vector<std::string> traits;
  if (differ(recurs)) traits.emplace_back(recurs(layer) ? name(layer.recurrent->kind) : "attention");
  if (differ(routed)) traits.emplace_back(routed(layer) ? "expert" : layer.has_feed_forward() ? "dense" : "mixer");
  if (differ(slides) && layer.attends()) traits.emplace_back(slides(layer) ? "window" : "full");
  if (differ(compressed)) {
    const auto& c = layer.attention.compression;
    traits.push_back(c ? fmt::format("1 key for {} tokens", c->ratio) : "no compressed keys");
  }
  return traits.empty() ? fmt::format("kind {}", kind + 1) : join(traits, ", ");
}

std::string shape_text(const graph::Op& op) {
  struct Text {
    std::string operator()(const graph::Gemm& g) const {
      std::string text = fmt::format("{}x{}x{}", g.m, g.k, g.n);
      if (g.batch > 1) text = fmt::format("{} * {}", g.batch, text);
      for (const auto& joined : {g.joined.input, g.joined.output}) {
        if (joined) text += fmt::format(" +{}", graph::name(*joined));
      }
      return g.joined.cached > 0 ? text + " +cache" : text;
    }
    std::string operator()(const graph::Attention& a) const {
      const std::int64_t keys = a.keys > 0 ? a.keys : a.context + a.q_tokens;
      return fmt::format("{} * {}q {}kv h{}/{} d{}", a.sequences, a.q_tokens, keys, a.heads, a.kv_heads,
                         a.qk_dim == a.v_dim ? std::to_string(a.qk_dim) : fmt::format("{}/{}", a.qk_dim, a.v_dim));
    }
    std::string operator()(const graph::Scan& s) const {
      return fmt::format("{} * {}q h{} {}x{}", s.sequences, s.tokens, s.heads, s.key_dim, s.value_dim);
    }
    std::string operator()(const graph::Convolution& c) const {
      return fmt::format("{} px {}x{} -> {}", c.positions, c.inputs, c.taps, c.outputs);
    }
    std::string operator()(const graph::Vector& v) const { return fmt::format("{}x{}", v.rows, v.width); }
    std::string operator()(const graph::Gather& g) const { return fmt::format("{}x{}", g.rows, g.width); }
    std::string operator()(const graph::Transfer& t) const { return fmt::format("{}x{}", t.rows, t.width); }
    std::string operator()(const graph::Collective& c) const {
      const bool whole = c.rows == std::floor(c.rows);  // expected rows of routed tokens are none
      return fmt::format("{} * {}x{}", c.ranks, whole ? plain(c.rows) : fmt::format("{:.6g}", c.rows), plain(c.width));
    }
    std::string operator()(const graph::Overhead&) const { return ""; }
    std::string operator()(const graph::Copy& c) const { return format_count(c.write_elements); }
  };
  return std::visit(Text{}, op.body);
}

const model::StoredFormat* weight_format(const graph::Op& op) {
  using Stored = const model::StoredFormat*;
  return match(
      op.body, [](const graph::Gemm& g) -> Stored { return g.weights; },
      [](const graph::Gather& g) -> Stored { return g.table; },
      [](const graph::Convolution& c) -> Stored { return c.weights; },
      [](const graph::Transfer& t) -> Stored { return t.weights; },
      [](const graph::Attention&) -> Stored { return nullptr; }, [](const graph::Vector&) -> Stored { return nullptr; },
      [](const graph::Copy&) -> Stored { return nullptr; }, [](const graph::Collective&) -> Stored { return nullptr; },
      [](const graph::Overhead&) -> Stored { return nullptr; }, [](const graph::Scan&) -> Stored { return nullptr; });
}

}  // namespace llmperf::result
