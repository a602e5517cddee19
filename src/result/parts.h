// What results of several commands are made of: the device and the plan behind them, memory, phases and ops. Small
// views of what the estimator made, whose fields are declared in parts.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/integer.h"
#include "base/text.h"
#include "cost/collective.h"
#include "estimate/phase.h"
#include "estimate/setup.h"
#include "graph/op.h"
#include "model/decoder.h"
#include "result/basis.h"
#include "result/field.h"

namespace llmperf::result {

// A file that was read: a model.
struct Source {
  std::string_view name;
  std::string_view source;
};

// The device, with the figures of it that the numbers rest on.
struct HardwareUsed {
  const hardware::Device* device;
  std::vector<Figure> figures;
};

// The runtime profile; of text prefill and decode are launched each in its way.
struct RuntimeUsed {
  const estimate::Platform* platform;
  bool text = false;
};
inline std::optional<RuntimeUsed> runtime_used(const estimate::Platform& platform, bool text = false) {
  return platform.profile ? std::optional(RuntimeUsed{&platform, text}) : std::nullopt;
}

// A time with the error of like predictions.
struct BandOf {
  Band band;
  Seconds time;
};
inline std::optional<BandOf> band_of(const std::optional<Band>& band, Seconds time) {
  return band ? std::optional(BandOf{*band, time}) : std::nullopt;
}

using Bands = Map<std::optional<BandOf>>;

// Of an op of a phase, the columns of measurements that say what was measured; nothing: no row says it.
using OpColumns = std::optional<Map<Value>> (*)(const estimate::Phase& phase, std::size_t op);

// What the results of one setup have in common.
struct Answer {
  Answer(const estimate::Platform& platform, std::string what)
      : label(std::move(what)),
        runtime(platform.profile ? platform.profile->name : "none"),
        cluster(platform.charged_cluster()) {}
  std::string label;  // what the numbers are
  std::string runtime;
  cost::Cluster cluster;        // as exchanges are charged
  OpColumns columns = nullptr;  // that ops come with, where they do
};

// The price that costs rest on.
struct PriceUsed {
  const std::optional<estimate::HourPrice>* price;
};
// … and what a whole run of video or training takes at it.
struct RunSpent {
  estimate::Spent spent;
  bool power_known() const { return spent.power_w.has_value(); }
};

struct MemoryUsed {
  const cost::Memory* memory;
  Bytes capacity;
};

// What the device could do at best.
struct Roofs {
  const hardware::Device* device;
};
struct MemoryRoof {
  std::string_view name;
  BytesPerSecond rate;
  hardware::Provenance provenance;
};
struct ComputeRoof {
  Dtype dtype;
  hardware::Engine unit;
  FlopsPerSecond rate;
  hardware::Provenance provenance;
};

// FLOPs and bytes of `count` executions.
struct CountedWork {
  const cost::Work* work;
  double count = 1;
};

// An op, wherever it is from. `cluster`: the links as its exchanges are charged for them.
struct OpResult {
  const estimate::OpEstimate* op;
  const cost::Cluster* cluster;
  double count() const { return d(op->op.count); }
};
// What phases and ops of a workload say beside what those of all say: of text the tokens of a step, of video what a
// kernel is for, of training what runs beside other ops.
enum class Also : std::uint8_t { nothing, tokens, purpose, hidden };
struct PhaseResult {
  const estimate::Phase* phase;
  const cost::Cluster* cluster;
  Also also = Also::nothing;
  OpColumns columns = nullptr;
};
struct PhaseOp {
  PhaseResult of;
  std::size_t index;
  const estimate::Phase& phase() const { return *of.phase; }
  OpResult op() const { return {&of.phase->ops[index], of.cluster}; }
};
std::vector<PhaseOp> ops_of(const PhaseResult& phase);
// Of a workload's phases, one after the other.
std::vector<PhaseResult> phases_of(const estimate::Outcome& outcome, const cost::Cluster& cluster, Also also,
                                   OpColumns columns);
// How an exchange between devices runs.
struct Exchanged {
  const graph::Collective* collective;
  cost::CollectiveCost cost;
  Bytes sent;  // in all executions
  bool overlaps;
  bool of_plan = true;  // whose axis it runs along
};
std::optional<Exchanged> exchanged(const OpResult& op);

Type fields_of(Fields<Source> f);
Type fields_of(Fields<Figure> f);
Type fields_of(Fields<HardwareUsed> f);
Type fields_of(Fields<RuntimeUsed> f);
Type fields_of(Fields<BandOf> f);
Type fields_of(Fields<graph::Plan> f);
Type fields_of(Fields<cost::Memory> f);
Type fields_of(Fields<PriceUsed> f);
Type fields_of(Fields<RunSpent> f);
Type fields_of(Fields<MemoryUsed> f);
Type fields_of(Fields<MemoryRoof> f);
Type fields_of(Fields<ComputeRoof> f);
Type fields_of(Fields<Roofs> f);
Type fields_of(Fields<CountedWork> f);
Type fields_of(Fields<estimate::Phase> f);
Type fields_of(Fields<Exchanged> f);
Type fields_of(Fields<OpResult> f);
Type fields_of(Fields<PhaseOp> f);
Type fields_of(Fields<graph::SequenceGroup> f);
Type fields_of(Fields<PhaseResult> f);
Type fields_of(Fields<estimate::OpGroup> f);

// The first fields of what a result was computed with, which has a setup.
template <class R>
Fields<R> model_and_device(Fields<R> f) {
  return f
      .of("model", "the model",
          [](const R& r) {
            return Source{r.setup->execution.model->name, r.setup->execution.model->source};
          })
      .of("hardware", "the device", [](const R& r) {
        return HardwareUsed{r.setup->device, figures_used(*r.setup)};
      });
}
// … and their names in rows.
template <class R>
Fields<R> named_model_and_device(Fields<R> f) {
  return model_and_device(std::move(f))
      .row("model", "its name", [](const R& r) { return std::string_view(r.setup->execution.model->name); })
      .row("hardware", "its name", [](const R& r) { return std::string_view(r.setup->device->name); });
}

// What an estimate of any workload begins and ends with. A result R is an Answer with a setup and an estimate;
// R::beyond() says in which ways it is extrapolated, R::bands() how far like predictions were off, and R::kAlso what
// its phases tell.
template <class R, Type (*Inputs)(Fields<R>)>
Fields<R> answer_fields(Doc bands_doc) {
  constexpr auto fits = [](const R& r) { return r.estimate->fits; };
  return Fields<R>()
      .template json<&R::label>(
          "label",
          "\"predicted: vllm on rtx4090\", with \", not fitted to this device\" for class defaults; with `runtime "
          "none` \"upper bound, uncalibrated\"; of training the profile's title")
      .json("extrapolated", "whether the request lies outside of what the profile was fitted on or compared with",
            [](const R& r) { return !r.beyond().empty(); })
      .template of<&R::beyond>("extrapolations", "in which ways")
      .template of<&R::bands>("error_band", bands_doc)
      .template group<Inputs>("inputs", "the request, with what was left to llmperf")
      .flat()
      .template row<&R::label>("label", "what the numbers are")
      .template row<&R::runtime>("runtime", "the runtime profile, or \"none\"")
      .row("extrapolated", "in which ways", [](const R& r) { return join(r.beyond(), "; "); })
      .of("fits", "true or false. When false, every time and rate below is null and `phases` is empty", fits)
      .where(fits);
}
template <class R>
Fields<R> with_phases(Fields<R> fields, Doc phases_doc) {
  return std::move(fields)
      .of("roofs", "what the device could do at best", [](const R& r) { return Roofs{r.setup->device}; })
      .of("phases", phases_doc, [](const R& r) { return phases_of(*r.estimate, r.cluster, R::kAlso, r.columns); })
      .of("notes", "substitutions, as text", [](const R& r) { return r.setup->notes; });
}

// ---- An op in words, for every output.

// "dense", "expert, window": what tells the layers of a kind from those of the others; empty for
// models whose layers are all alike.
std::string layers_text(const model::Decoder& model, int kind);
// "512 x 12288 x 4096" and the like.
std::string shape_text(const graph::Op& op);
// Of the weights it reads or sends; null when it has none.
const model::StoredFormat* weight_format(const graph::Op& op);

}  // namespace llmperf::result
