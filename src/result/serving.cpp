#include "result/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "result/generation.h"
#include "serving/trace_file.h"

namespace llmperf::result {
namespace {

using serving::Distribution;
using serving::EngineKind;
using serving::EngineSettings;
using serving::Summary;

// "vllm" alone, "trtllm" alone: a setting of one engine.
template <EngineKind Kind>
constexpr auto of_engine() {
  return [](const EngineSettings& s) { return s.kind == Kind; };
}

}  // namespace

Type fields_of(Fields<Distribution> f) {
  using D = Distribution;
  return f.of<&D::mean>("mean", "the mean")
      .of<&D::p50>("p50", "the median")
      .of<&D::p90>("p90", "nine of ten are within this")
      .of<&D::p95>("p95", "19 of 20 are")
      .of<&D::p99>("p99", "99 of 100 are")
      .named("distribution", "Percentiles are interpolated between the two nearest values, as numpy does.");
}

Type fields_of(Fields<EngineSettings> f) {
  using S = EngineSettings;
  return f.of<&S::kind>("name", "\"vllm\", \"sglang\", \"trtllm\" or \"llama.cpp\"")
      .of<&S::version>("version", "that was asked for; null: the newest whose rules are known")
      .when([](const S& s) { return !s.version.empty(); })
      .of<&S::max_batched_tokens>("max_batched_tokens: tokens of a step at most", "of a step")
      .of<&S::max_sequences>("max_sequences: sequences at most", "that run at once; of llama.cpp slots")
      .of<&S::kv_utilisation>("kv_utilisation: memory utilisation", "share of the memory that it may use")
      .of<&S::block_size>("block_size", "tokens")
      .of<&S::prefix_caching>("prefix_caching", "whether what is cached of a prompt's beginning is taken")
      .of<&S::chunked_prefill>("chunked_prefill", "whether prompts are cut")
      .of<&S::asynchronous>("asynchronous", "whether the next step is prepared while one runs")
      .of<&S::graph_rows>("graph_rows: rows of the largest graph", "of the largest captured graph; null: none is")
      .when([](const S& s) { return s.captures_graphs; })
      .of<&S::max_queue>("max_queue: waiting at most", "requests at a replica; null: any number")
      .of<&S::frontend>("frontend_s: front end", "of each request, before it can be in a step: HTTP, tokenising")
      .of<&S::reserves_full_input>("reserves_full_input: reserves the whole prompt",
                                   "vLLM: whether blocks of all of a prompt must be free, not of its first part alone")
      .only_when(of_engine<EngineKind::vllm>())
      .of<&S::watermark>("watermark", "vLLM: share of the blocks that stays free where something runs")
      .only_when(of_engine<EngineKind::vllm>())
      .of<&S::max_prefill_tokens>("max_prefill_tokens: prompt tokens of a step at most", "SGLang: of a step of prompts")
      .only_when(of_engine<EngineKind::sglang>())
      .of<&S::recv_interval>("recv_interval: steps between looks for requests", "SGLang: steps of decode for one look")
      .only_when(of_engine<EngineKind::sglang>())
      .of<&S::conservativeness>("conservativeness", "SGLang: of the share of max_tokens that is reserved")
      .only_when(of_engine<EngineKind::sglang>())
      .of("admission", "TensorRT-LLM: \"guaranteed-no-evict\" or \"max-utilisation\"",
          [](const S& s) {
            return s.admission == serving::Admission::max_utilisation ? "max-utilisation" : "guaranteed-no-evict";
          })
      .only_when(of_engine<EngineKind::trtllm>());
}

Type fields_of(Fields<TrafficSent> f) {
  using T = TrafficSent;
  using L = serving::Load;
  constexpr auto made = [](const T& t) { return t.trace.empty(); };
  constexpr auto alike = [](const T& t) { return t.trace.empty() && t.load.classes.empty(); };
  return f.of<&T::trace>("trace", "its file; null: requests were made")
      .when([](const T& t) { return !t.trace.empty(); })
      .of<&T::requests>("requests", "that are sent")
      .of<&T::rate>("requests_per_second", "at which they come; null: as the closed loop lets them, or all at once")
      .of<&T::load, &L::burstiness>(
          "burstiness", "shape of the gamma distribution of their intervals; null: all alike, or not random")
      .when([](const T& t) { return t.endless && std::isfinite(t.load.burstiness); })
      .of<&T::concurrency>("concurrency", "requests under way at most; null: any number")
      .of("input", "lengths of prompts, as asked for; null: the trace's, or those of `classes`",
          [](const T& t) { return text_of(t.load.input); })
      .when(alike)
      .of("output", "likewise of what is generated", [](const T& t) { return text_of(t.load.output); })
      .when(alike)
      .of("classes", "their shares, and lengths in place of these; null: all are alike",
          [](const T& t) { return text_of(t.load.classes); })
      .when([](const T& t) { return t.trace.empty() && !t.load.classes.empty(); })
      .of<&T::mean_input>("mean_input_tokens: mean prompt", "of all requests")
      .of<&T::mean_output>("mean_output_tokens: mean output", "likewise")
      .of<&T::load, &L::prefix, &serving::Prefix::tokens>("prefix_tokens: shared prefix",
                                                          "at the beginning of prompts that others have as well")
      .when(made)
      .of<&T::load, &L::prefix, &serving::Prefix::kinds>("prefixes", "of them, which requests choose among")
      .when([](const T& t) { return t.trace.empty() && t.load.prefix.tokens > 0; })
      .of<&T::load, &L::turns>("turns", "requests of a session")
      .when(made)
      .of<&T::load, &L::think>("think_s: time between answer and turn",
                               "on the mean; null: as `rate` and their order have it")
      .when([](const T& t) { return t.load.think.value > 0; })
      .of<&T::load, &L::seed>("seed", "of what is random, of the first run");
}

Type serving_inputs(Fields<Serving> f) {
  using I = Serving;
  constexpr auto apart = [](const I& i) { return i.deployed->deployment.decode.has_value(); };
  return model_and_device(std::move(f))
      .of("weights", "what was used, also where it was left to llmperf",
          [](const I& i) { return i.setup->execution.weights.name; })
      .of("weights_kernel", "what the runtime's stack multiplies with them; null where the profile does not say",
          [](const I& i) { return i.setup->weights_kernel; })
      .when([](const I& i) { return !i.setup->weights_kernel.empty(); })
      .of("kv", "likewise", [](const I& i) { return i.setup->execution.kv.name(); })
      .of("activations", "likewise", [](const I& i) { return i.setup->execution.activations; })
      .of("options", "likewise", [](const I& i) { return options_text(*i.setup); })
      .of("runtime", "the runtime profile; null for the speed of light",
          [](const I& i) { return runtime_used(*i.setup, true); })
      .of("plan", "how the model is spread over the devices of a replica",
          [](const I& i) { return i.setup->execution.plan; })
      .of("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; })
      .of<&I::deployed, &serving::Deployed::settings>("engine", "whose rules it is, with its settings")
      .of("draft_tokens", "that are proposed for each step; null without `draft`",
          [](const I& i) { return i.setup->draft->tokens; })
      .when([](const I& i) { return i.setup->draft.has_value(); })
      .of("replicas", "engines; with prompts and decode apart those of both",
          [](const I& i) { return i.study->run.replicas; })
      .of("prefill_replicas: replicas for prompts", "that compute prompts alone; null: none do",
          [](const I& i) { return i.deployed->deployment.pool.replicas; })
      .when(apart)
      .of("decode_replicas: replicas for decode", "that decode alone; null: none do",
          [](const I& i) { return i.deployed->deployment.decode->replicas; })
      .when(apart)
      .of("decode_hardware", "that these are on; null: on that of the others",
          [](const I& i) { return i.decode->device->name; })
      .when([](const I& i) { return i.decode != nullptr; })
      .of("decode_plan", "their plan; null: that of the others", [](const I& i) { return i.decode->execution.plan; })
      .when([](const I& i) { return i.decode != nullptr; })
      .of("router", "how requests are dealt to them: \"round-robin\", \"least-loaded\" or \"prefix-aware\"",
          [](const I& i) { return i.deployed->deployment.router; })
      .of("kv_link_bytes_per_s: link for keys and values",
          "at which a replica sends keys and values; null: none are sent",
          [](const I& i) { return i.deployed->deployment.transfer.rate; })
      .when(apart)
      .of("kv_bytes_per_token", "that are sent of a prompt; null: none are",
          [](const I& i) { return i.deployed->deployment.transfer.per_token; })
      .when(apart)
      .of("kv_tiers", "where keys and values stay beside the cache, as text; null: nowhere",
          [](const I& i) {
            std::vector<std::string> all;
            for (const serving::KvTier& t : i.deployed->deployment.pool.tiers) {
              all.push_back(fmt::format("{} {} {}", t.name, format_bytes(t.size), format_bandwidth(*t.rate)));
            }
            return join(all, ", ");
          })
      .when([](const I& i) { return !i.deployed->deployment.pool.tiers.empty(); })
      .of<&I::traffic>("traffic", "what was sent")
      .of("slo", "what was promised, as text; null: nothing", [](const I& i) { return serving::text_of(i.slo); })
      .when([](const I& i) { return !i.slo.empty(); });
}

Type ttft_causes(Fields<Measured> f) {
  using C = Measured;
  using serving::Cause;
  static constexpr auto at = [](const C& c, Cause cause) {
    return c.summary->ttft_causes[static_cast<std::size_t>(cause)];
  };
  return f
      .of("queue", "the front end, waiting for a seat, or for the step that was under way",
          [](const C& c) { return at(c, Cause::queue); })
      .of("kv", "waiting for blocks of the KV cache, or for what is read from `kv-tier`",
          [](const C& c) { return at(c, Cause::kv); })
      .of("budget: token budget", "waiting for a share of a step's tokens",
          [](const C& c) { return at(c, Cause::budget); })
      .of("prefill", "what the steps of its prompt take by themselves",
          [](const C& c) { return at(c, Cause::prefill); })
      .of("interference", "what others in the same steps add", [](const C& c) { return at(c, Cause::interference); });
}
Type fields_of(Fields<serving::GapCauses> f) {
  using G = serving::GapCauses;
  return f.of<&G::decode>("decode", "steps of decode by themselves")
      .of<&G::prefill>("prefill", "what prompts in the same steps add")
      .of<&G::stall>("stall", "steps that a request was not in: of prompts alone, preempted, or sent elsewhere");
}
Type causes(Fields<Measured> f) {
  using C = Measured;
  return f.group<&ttft_causes>("ttft", "shares of all time to a first token")
      .of<&C::summary, &Summary::itl_causes>("itl", "shares of all time between tokens");
}

Type fields_of(Fields<serving::Range> f) {
  using R = serving::Range;
  return f.of<&R::low>("low", "least").of<&R::high>("high", "most");
}

Type kv_used(Fields<Serving> f) {
  using K = Serving;
  return f
      .of("blocks", "of a replica, in sequences as long as the mean one that is sent",
          [](const K& k) { return k.deployed->deployment.pool.blocks; })
      .of("block_size", "tokens of a block", [](const K& k) { return k.deployed->settings.block_size; })
      .of("tokens", "as the engine prints them",
          [](const K& k) {
            const auto& d = *k.deployed;
            return d.settings.kv_blocks ? d.deployment.pool.blocks * d.settings.block_size : d.kv.tokens;
          })
      .of("peak_share: at most", "of the blocks, that requests hold at most",
          [](const K& k) { return k.study->summary.kv_peak_share; })
      .of("mean_share: on the mean", "… on the mean while steps run",
          [](const K& k) { return k.study->summary.kv_mean_share; })
      .of<&K::deployed, &serving::Deployed::kv>("memory", "what leaves room for so many");
}

Type fields_of(Fields<ServedBound> f) {
  using B = ServedBound;
  return f.of("name", "as text", [](const B& b) { return b.bound.text(); })
      .of<&B::bound, &serving::Bound::metric>("metric", "\"ttft\", \"tpot\", \"itl\" or \"e2e\"")
      .of<&B::bound, &serving::Bound::statistic>("statistic", "\"mean\", \"p50\" …")
      .of<&B::bound, &serving::Bound::limit>("limit_s", "that it must not exceed")
      .of("class", "whose requests it is about; null: all", [](const B& b) { return b.bound.of; })
      .when([](const B& b) { return !b.bound.of.empty(); })
      .of<&B::value>("value_s", "what it is; null: it grows without end, or more were rejected than may miss it")
      .of<&B::met>("met", "whether it is kept")
      .of<&B::excess>("relative_excess: excess",
                      "how far it is exceeded: 0.2 of what is 20 % too long; below 0 there is room");
}

Type fields_of(Fields<serving::ClassSummary> f) {
  using C = serving::ClassSummary;
  return f.of<&C::name>("name", "of the class")
      .of<&C::requests>("requests", "that ended")
      .of<&C::rejected>("rejected", "that found the queue full")
      .of<&C::ttft>("ttft_s", "to the first token")
      .of<&C::tpot>("tpot_s", "for each token after that")
      .of<&C::e2e>("e2e_s: end to end", "to the last token")
      .of<&C::met_share>("good_share: requests that meet all bounds", "of these; 1 without bounds");
}

Type fields_of(Fields<Measured> f) {
  using M = Measured;
  using S = Summary;
  constexpr auto steady = [](const M& m) { return m.steady(); };
  constexpr auto continued = [](const M& m) { return m.summary->tpot.mean > 0; };
  return f.of<&M::summary, &S::stable>("stable", "whether as many requests end as are sent")
      .of<&M::summary, &S::queue_growth>("queue_growth_per_second: growth of the queue/s",
                                         "requests that are sent beyond those; 0 where it is stable")
      .of<&M::summary, &S::requests>("requests", "that ended: all, but where it was interrupted")
      .of<&M::summary, &S::duration>("duration_s", "from the first that is sent to the last token")
      .of<&M::summary, &S::output_tokens_per_second>("output_tokens_per_second", "generated, over the duration")
      .of<&M::summary, &S::input_tokens_per_second>("input_tokens_per_second: prompt tokens/s", "of prompts, likewise")
      .of<&M::summary, &S::requests_per_second>("requests_per_second", "that end, likewise")
      .of<&M::summary, &S::goodput_per_second>("goodput_per_second: goodput (requests/s)",
                                               "of them, those that meet all bounds of `slo`; null without")
      .of<&M::summary, &S::met_share>("good_share: requests that meet all bounds",
                                      "… of those that ended or were rejected; null without")
      .when([](const M& m) { return m.summary->goodput_per_second.has_value(); })
      .of<&M::summary, &S::ttft>(
          "ttft_s",
          "time to first token, of each request from when it is sent; null where made traffic is "
          "more than is served")
      .when(steady)
      .of<&M::summary, &S::tpot>(
          "tpot_s",
          "time per output token, of each request: from its first to its last over one less than "
          "its tokens; AIPerf's inter token latency; null where no request has two")
      .when(continued)
      .of<&M::summary, &S::itl>("itl_s", "every time between two tokens, of all requests together; null likewise")
      .when(continued)
      .of<&M::summary, &S::e2e>(
          "e2e_s: end to end",
          "from when a request is sent to its last token; AIPerf's request latency; null as `ttft_s`")
      .when(steady)
      .of<&M::summary, &S::rejected>("rejected", "requests that found `max_queue` of them waiting")
      .of<&M::summary, &S::classes>("classes", "the same of each class of requests; empty: there is one")
      .of<&M::summary, &S::preemptions>("preemptions", "requests that lost their blocks and were computed again")
      .of<&M::summary, &S::prefix_hit_share>("prefix_hit_share: prefix hits",
                                             "of prompt tokens, that the cache had, or `kv-tier`")
      .of<&M::summary, &S::tier_hit_share>("tier_hit_share: read from tiers", "… of these `kv-tier`")
      .group<&causes>("causes", "what time passes with")
      .of<&M::summary, &S::mean_batch>("mean_batch", "sequences in a step, over the time that steps run")
      .of<&M::summary, &S::mean_waiting>("mean_waiting: waiting on the mean", "… and sequences that wait")
      .of<&M::summary, &S::busy_share>("utilisation", "share of the duration in which steps run")
      .of<&M::summary, &S::steps>("steps", "of all replicas");
}

Type fields_of(Fields<SeedMeasured> f) {
  return f.of<&SeedMeasured::seed>("seed", "of all that is random").spread<&SeedMeasured::measured>();
}

Type fields_of(Fields<ServingMoment> f) {
  using M = ServingMoment;
  return f.of<&M::begin>("begin_s", "of the stretch, whose values are means")
      .of<&M::running>("running", "sequences in steps, of all replicas")
      .of<&M::waiting>("waiting", "sequences")
      .of<&M::kv_share>("kv_share: KV blocks in use", "of the blocks of all replicas, that requests hold")
      .of<&M::output_tokens_per_second>("output_tokens_per_second", "generated");
}
Type fields_of(Fields<ServingPercentile> f) {
  using P = ServingPercentile;
  return f.of<&P::share>("share", "of the requests")
      .of<&P::ttft>("ttft_s", "that they are within; null where made traffic is more than is served")
      .of<&P::tpot>("tpot_s", "likewise, of those of two tokens and more; null: there are none")
      .of<&P::e2e>("e2e_s", "as `ttft_s`");
}

Type fields_of(Fields<Serving> f) {
  using S = Serving;
  return f.of<&S::label>("label", "as of an estimate: where the times of steps are from")
      .of("extrapolated", "whether steps lie outside of what the profile was fitted on",
          [](const S& s) { return !s.beyond().empty(); })
      .of<&S::beyond>("extrapolations", "in which ways")
      .of<&S::bands>(
          "error_band",
          "of the time of a step, as an estimate has it: `prefill` of one prompt of the mean length, `decode` "
          "of the mean batch; each null without a profile")
      .group<&serving_inputs>("inputs", "what was asked for, with what was left to llmperf")
      .of<&S::deployed, &serving::Deployed::devices>("devices", "of all replicas")
      .spread([](const S& s) { return s.measured(); })
      .of<&S::cost_per_hour>("cost_per_hour", "of all devices, in `currency`; null without a price, as all costs")
      .of("cost_per_million_output_tokens", "over `output_tokens_per_second`, prompts and idle time included",
          [](const S& s) {
            return s.setup->encodes() ? std::nullopt : s.cost_per_million(s.study->summary.output_tokens_per_second);
          })
      .of("cost_per_million_input_tokens", "of an encoder, over `input_tokens_per_second`; null of others",
          [](const S& s) {
            return s.setup->encodes() ? s.cost_per_million(s.study->summary.input_tokens_per_second) : std::nullopt;
          })
      .spread([](const S& s) { return PriceUsed{&s.setup->price}; })
      .of<&S::power_w>("average_power_w", "of all devices at most; null: it is not stated")
      .of<&S::joules_per_output_token>("joules_per_output_token", "over `output_tokens_per_second`; null likewise")
      .of("power_basis", "\"board power, upper bound\"", [](const S&) { return estimate::kPowerBound; })
      .when([](const S& s) { return s.power_w().has_value(); })
      .json<&S::interrupted>("interrupted",
                             "true where it was ended early: the requests and seeds that had ended are in it")
      .only_when([](const S& s) { return s.interrupted; })
      .of<&S::bounds>("slo", "each bound of `slo`")
      .group<&kv_used>("kv", "the KV cache")
      .of("bands",
          "how far the numbers go, over `seeds` and with all steps longer or shorter by the error that nine of ten are "
          "within: `ttft_mean_s`, `ttft_p99_s`, `tpot_mean_s`, `e2e_mean_s`, `output_tokens_per_second`",
          [](const S& s) {
            const auto steady = [&](const serving::Range& r) {
              return s.measured().steady() ? std::optional(r) : std::nullopt;
            };
            const serving::Study& t = *s.study;
            return Map<std::optional<serving::Range>>{{"ttft_mean_s", steady(t.ttft_mean)},
                                                      {"ttft_p99_s", steady(t.ttft_p99)},
                                                      {"tpot_mean_s", t.tpot_mean},
                                                      {"e2e_mean_s", steady(t.e2e_mean)},
                                                      {"output_tokens_per_second", t.output_tokens_per_second}};
          })
      .of("seeds", "the same of each run, at the time of steps as it is",
          [](const S& s) {
            std::vector<SeedMeasured> all;
            for (std::size_t i = 0; i < s.study->seeds.size(); ++i) {
              all.push_back({s.traffic.load.seed + i, {&s.study->seeds[i], s.traffic.endless}});
            }
            return all;
          })
      .of<&S::timeline>("timeline", "how the first run went, in stretches of equal length")
      .of<&S::percentiles>("percentiles", "of its requests, in steps of 1 %")
      .of<&S::notes>("notes", "substitutions, as text");
}

std::optional<bool> Serving::meets() const {
  if (slo.empty()) return std::nullopt;
  return std::ranges::all_of(bounds(), [](const ServedBound& b) { return b.met(); });
}

Type fields_of(Fields<ServingRow> f) {
  using R = ServingRow;
  using S = serving::Summary;
  using D = serving::Distribution;
  constexpr auto steady = [](const R& r) { return r.steady(); };
  return f.of("model", "its name", [](const R& r) { return r.of->setup->execution.model->name; })
      .of("hardware", "its name", [](const R& r) { return r.of->setup->device->name; })
      .of("weights", "type", [](const R& r) { return r.of->setup->execution.weights.name; })
      .of("plan", "of a replica", [](const R& r) { return graph::to_text(r.of->setup->execution.plan); })
      .of("devices", "of all replicas", [](const R& r) { return r.of->deployed->devices; })
      .of<&R::steady>("stable", "false: the queue grows without end, and times of whole requests say nothing")
      .of<&R::of, &Serving::meets>("meets", "whether every bound of `slo` is met; null: nothing was promised")
      .of<&R::summary, &S::requests_per_second>("requests_per_second", "that end")
      .of<&R::summary, &S::output_tokens_per_second>("output_tokens_per_second", "of all devices")
      .of("tokens_per_second_per_device", "generated",
          [](const R& r) {
            return r.summary().output_tokens_per_second / static_cast<double>(r.of->deployed->devices);
          })
      .of("tokens_per_second_per_user", "generated, one over the mean time between them; null: of one token",
          [](const R& r) { return 1 / r.summary().tpot.mean; })
      .when([](const R& r) { return r.summary().tpot.mean > 0; })
      .where(steady)
      .of<&R::summary, &S::ttft, &D::mean>("ttft_mean_s", "to the first token")
      .of<&R::summary, &S::ttft, &D::p50>("ttft_p50_s", "likewise")
      .of<&R::summary, &S::ttft, &D::p99>("ttft_p99_s", "likewise")
      .of<&R::summary, &S::e2e, &D::mean>("e2e_mean_s", "to the last token")
      .of<&R::summary, &S::e2e, &D::p99>("e2e_p99_s", "likewise")
      .always()
      .of<&R::summary, &S::tpot, &D::mean>("tpot_mean_s", "between tokens")
      .of<&R::summary, &S::tpot, &D::p95>("tpot_p95_s", "likewise")
      .of<&R::summary, &S::tpot, &D::p99>("tpot_p99_s", "likewise")
      .of<&R::summary, &S::mean_batch>("mean_batch", "sequences in a step")
      .of<&R::summary, &S::busy_share>("utilisation", "share of the time in which steps run")
      .of("cost_per_hour", "of all devices; null: no price is known", [](const R& r) { return r.of->cost_per_hour(); });
}

Type fields_of(Fields<serving::Served> f) {
  using R = serving::Served;
  return f.of<&R::sent>("sent_s", "when the request was sent")
      .of<&R::ttft>("ttft_s", "to its first token")
      .of("tpot_s", "time per output token after that; empty where there is one alone",
          [](const R& r) { return r.tpot(); })
      .when([](const R& r) { return r.output > 1; })
      .of<&R::latency>("e2e_s", "to its last token")
      .of<&R::input>("input_tokens", "of its prompt")
      .of<&R::output>("output_tokens", "generated")
      .of<&R::reused>("reused_tokens", "of the prompt, that the cache had, or a tier")
      .of<&R::preemptions>("preemptions", "how often it lost its blocks")
      .of<&R::replica>("replica", "that its last token came from, from 0");
}

std::vector<serving::Served> ended(const serving::Run& run) {
  std::vector<serving::Served> all;
  std::ranges::copy_if(run.requests, std::back_inserter(all), &serving::Served::ended);
  return all;
}

std::optional<double> Serving::over_devices(
    const std::function<std::optional<double>(const estimate::Setup&)>& each) const {
  const std::int64_t apart = decode != nullptr ? deployed->decode_devices : 0;
  const std::optional<double> one = each(*setup);
  const std::optional<double> other = apart > 0 ? each(*decode) : 0.0;
  if (!one || !other) return std::nullopt;
  return *one * d(deployed->devices - apart) + *other * d(apart);
}

std::optional<double> Serving::power_w() const {
  return over_devices([](const estimate::Setup& s) { return s.cards.empty() ? s.device->power_w : std::nullopt; });
}

std::optional<double> Serving::joules_per_output_token() const {
  const std::optional<double> watts = power_w();
  const double rate = setup->encodes() ? 0 : study->summary.output_tokens_per_second;
  return watts && rate > 0 ? std::optional(*watts / rate) : std::nullopt;
}

std::optional<double> Serving::cost_per_hour() const {
  return over_devices([&](const estimate::Setup& s) {
    const bool foreign = s.price && setup->price && s.price->currency != setup->price->currency;
    return s.price && !foreign ? std::optional(s.price->amount) : std::nullopt;
  });
}

std::optional<double> Serving::cost_per_million(double tokens_per_second) const {
  const std::optional<double> hour = cost_per_hour();
  if (!hour || !(tokens_per_second > 0)) return std::nullopt;
  return estimate::cost_per_million<double>(*hour, tokens_per_second);
}

// In what a step of prompts and one of decode both are it is said of prompts: "new tokens 1024".
std::vector<std::string> Serving::beyond() const {
  const auto what = [](const std::string& way) {
    return std::string_view(way).substr(0, way.find_first_of("0123456789"));
  };
  std::vector<std::string> all = extrapolations(*setup, prompts, "prefill");
  for (std::string& way : extrapolations(decode != nullptr ? *decode : *setup, decodes, "decode")) {
    const bool said = std::ranges::any_of(all, [&](const std::string& other) { return what(other) == what(way); });
    if (!said) all.push_back(std::move(way));
  }
  return all;
}

std::vector<ServedBound> bounds_at(const serving::Slo& slo, const Summary& summary, bool steady) {
  std::vector<ServedBound> all;
  for (const serving::Bound& b : slo) {
    const bool of_requests = b.metric == serving::Metric::ttft || b.metric == serving::Metric::e2e;
    ServedBound& one = all.emplace_back(ServedBound{b, {}});
    one.value = summary.value(b);
    one.full = !one.value;
    if (of_requests && !steady) one.value.reset();
  }
  return all;
}

std::vector<ServedBound> Serving::bounds() const { return bounds_at(slo, study->summary, measured().steady()); }

TrafficSent traffic_sent(const serving::Load& load, const serving::Workload& requests, bool of_trace) {
  TrafficSent t;
  t.load = load;
  if (of_trace) t.trace = requests.name;
  t.requests = static_cast<std::int64_t>(requests.requests.size());
  // At a rate that was asked for the requests come by its definition: the last one at their number over it.
  if (requests.open) t.rate = load.rate ? load.rate : std::optional(requests.requests_per_second());
  if (t.rate == 0.0) t.rate.reset();
  t.concurrency = requests.concurrency;
  t.endless = requests.endless;
  t.mean_input = requests.mean_input();
  t.mean_output = requests.mean_output();
  return t;
}

std::vector<ServingMoment> moments(const serving::Run& run, std::int64_t most) {
  const double begin = run.begin.value;
  const double seconds = run.end.value - begin;
  if (run.timeline.empty() || !(seconds > 0)) return {};
  const double stretch = seconds / d(most);
  std::vector<ServingMoment> all(static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < all.size(); ++i) all[i].begin = Seconds{begin + stretch * static_cast<double>(i)};
  const auto index = [&](double at) {
    return static_cast<std::size_t>(std::clamp((at - begin) / stretch, 0.0, d(most - 1)));
  };
  // Calls add(moment, seconds) for each that a time from `from` to `to` touches.
  const auto spread = [&](double from, double to, auto add) {
    for (std::size_t i = index(from); i <= index(to); ++i) {
      const double inside = std::min(to, all[i].begin.value + stretch) - std::max(from, all[i].begin.value);
      if (inside > 0) add(all[i], inside);
    }
  };
  for (const serving::Interval& step : run.timeline) {
    spread(step.begin.value, step.end.value, [&](ServingMoment& m, double inside) {
      const double share = inside / stretch;
      m.running += share * d(step.decodes + step.prompts);
      m.waiting += share * d(step.waiting);
      m.kv_share += share * step.kv_share / d(run.replicas);
    });
  }
  // A request's tokens come evenly from the first to the last.
  for (const serving::Served& r : run.requests) {
    if (!r.ended) continue;
    all[index(r.first.value)].output_tokens_per_second += 1 / stretch;
    if (r.output < 2) continue;
    spread(r.first.value, r.last.value,
           [&](ServingMoment& m, double inside) { m.output_tokens_per_second += inside / r.tpot().value / stretch; });
  }
  return all;
}

std::vector<ServingPercentile> percentiles(const serving::Run& run, bool steady) {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> e2e;
  for (const serving::Served& r : run.requests) {
    if (!r.ended) continue;
    ttft.push_back(r.ttft().value);
    e2e.push_back(r.latency().value);
    if (r.output > 1) tpot.push_back(r.tpot().value);
  }
  if (ttft.empty()) return {};
  if (!steady) {
    ttft.clear();
    e2e.clear();
  }
  for (std::vector<double>* list : {&ttft, &tpot, &e2e}) std::ranges::sort(*list);
  const auto at = [](const std::vector<double>& sorted, double share) -> std::optional<double> {
    if (sorted.empty()) return std::nullopt;
    const double position = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const double low = sorted[below];
    return low + (position - static_cast<double>(below)) * (sorted[std::min(below + 1, sorted.size() - 1)] - low);
  };
  std::vector<ServingPercentile> all;
  for (int i = 0; i <= 100; ++i) {
    const double share = i / 100.0;
    all.push_back({.share = share, .ttft = at(ttft, share), .e2e = at(e2e, share), .tpot = at(tpot, share)});
  }
  return all;
}

std::optional<double> Candidate::objective(Minimise minimise) const {
  switch (minimise) {
    case Minimise::cost: return cost_per_hour;
    case Minimise::devices: return static_cast<double>(devices);
    case Minimise::rate: return -requests_per_second;
    case Minimise::energy: break;
  }
  return power_w;
}

std::optional<BreakEven> CapacityResult::break_even() const {
  if (!api_price || best() == nullptr || !best()->cost_per_hour) return std::nullopt;
  constexpr double kMillion = 1e6;
  constexpr double kHour = 3600;
  constexpr double kDay = 24;
  const double request = (api_price->input * load.input.mean() + api_price->output * load.output.mean()) / kMillion;
  BreakEven e;
  e.per_hour = request * rate * kHour;
  e.requests_per_second = *best()->cost_per_hour / (request * kHour);
  e.requests_per_day = e.requests_per_second * kHour * kDay;
  const double apart = best()->decode_replicas > 0 ? 1 : static_cast<double>(best()->replicas);
  e.utilisation = e.requests_per_second / (best()->max_requests_per_second * apart);
  return e;
}

std::optional<DayPlan> CapacityResult::day_plan() const {
  const Candidate* k = best();
  if (day.empty() || k == nullptr || k->decode_replicas > 0) return std::nullopt;
  const double hours = part_hours();
  DayPlan plan{.parts = {}, .fixed_cost = {}, .scaled_cost = {}, .start = k->start, .start_formula = k->start_formula};
  if (k->cost_per_hour) plan.scaled_cost = 0;
  for (const double of : day) {
    DayPart part{.from_h = hours * static_cast<double>(plan.parts.size()), .rate = of};
    // What the highest rate needs is known; less of it takes less in proportion.
    const double share = static_cast<double>(k->replicas) * of / rate;
    part.replicas = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share * (1 - 1e-9))));
    part.devices = part.replicas * k->replica_devices;
    plan.parts.push_back(part);
  }
  if (!k->cost_per_hour) return plan;
  plan.fixed_cost = *k->cost_per_hour * day_hours;
  const double each = *k->cost_per_hour / d(k->devices);  // device, for an hour
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    DayPart& part = plan.parts[i];
    const DayPart& before = plan.parts[(i + plan.parts.size() - 1) % plan.parts.size()];  // of the day before, the last
    const double started = d(std::max<std::int64_t>(0, part.devices - before.devices));
    part.cost = each * (d(part.devices) * hours + started * k->start.value / 3600);
    *plan.scaled_cost += *part.cost;
  }
  return plan;
}

namespace {

// Times of the requests of a replica at its share of the rate.
struct CapacityTimes {
  const serving::Summary* summary;
  const std::vector<ServedBound>* bounds;
};

}  // namespace

Type fields_of(Fields<CapacityTimes> f) {
  using T = CapacityTimes;
  using S = serving::Summary;
  return f.of<&T::summary, &S::ttft, &serving::Distribution::mean>("ttft_mean_s", "of a replica at its share")
      .of<&T::summary, &S::ttft, &serving::Distribution::p99>("ttft_p99_s", "likewise")
      .of<&T::summary, &S::tpot, &serving::Distribution::mean>("tpot_mean_s", "likewise")
      .of<&T::summary, &S::tpot, &serving::Distribution::p95>("tpot_p95_s", "likewise")
      .of<&T::summary, &S::e2e, &serving::Distribution::mean>("e2e_mean_s: end to end mean", "likewise")
      .of("slo", "each bound of `slo`", [](const T& t) { return *t.bounds; })
      .of<&T::summary, &S::mean_batch>("mean_batch", "sequences in a step")
      .of<&T::summary, &S::busy_share>("utilisation", "share of the time in which steps run");
}

Type fields_of(Fields<Candidate> f) {
  using C = Candidate;
  return f.of<&C::hardware>("hardware", "its name")
      .of<&C::devices>(
          "devices",
          "of all replicas, at least as many where it was not simulated; 0: no number of them meets the bounds")
      .of<&C::plan>("plan", "of a replica")
      .of<&C::weights>("weights", "scheme")
      .of<&C::engine>("engine", "whose rules it is")
      .of<&C::max_requests_per_second>(
          "max_requests_per_second: requests/s at most",
          "that a replica takes within the bounds; with prompts and decode apart `rate`, which all of them take; 0: "
          "the bounds are missed at any rate")
      .of<&C::requests_per_second>("fleet_requests_per_second: requests/s of the fleet",
                                   "of all replicas that a fleet has room for, at most; null: no fleet was given")
      .when([](const C& c) { return c.requests_per_second > 0; })
      .of("tokens_per_second_per_user", "generated, one over its mean TPOT; null: not simulated",
          [](const C& c) { return 1 / c.at->tpot.mean; })
      .when([](const C& c) { return c.at && c.at->tpot.mean > 0; })
      .of<&C::tokens_per_second_per_device>("tokens_per_second_per_device",
                                            "generated, at the rate; null: it does not meet the bounds")
      .when([](const C& c) { return c.meets; })
      .of<&C::ceiling>("ceiling_requests_per_second: requests/s in closed form",
                       "of a replica, by the closed form: beyond it no queue is stable")
      .of<&C::replicas>("replicas", "for the rate; with decode apart those of prompts")
      .of<&C::decode_replicas>("decode_replicas", "of decode alone; 0: there are none")
      .of<&C::decode_hardware>("decode_hardware", "that these are on; null: on that of the others, if there are any")
      .when([](const C& c) { return !c.decode_plan.empty(); })
      .of<&C::decode_plan>("decode_plan", "of one of these; null likewise")
      .when([](const C& c) { return !c.decode_plan.empty(); })
      .of<&C::cost_per_hour>("cost_per_hour", "of all devices; null: no price is known")
      .of<&C::currency>("currency", "of the costs; null: likewise")
      .when([](const C& c) { return c.cost_per_hour.has_value(); })
      .of<&C::cost_per_million_output_tokens>(
          "cost_per_million_output_tokens",
          "of all that is served at the rate, prompts and idle time included; null: likewise")
      .of<&C::power_w>("power_w", "of all boards at most; null: not known")
      .of<&C::joules_per_output_token>("joules_per_output_token", "by board power, an upper bound; null: likewise")
      .of<&C::meets>("meets", "whether it serves the rate within the bounds")
      .of<&C::binding>(
          "binding: what binds",
          "what is exceeded beyond its rate: \"ttft\", \"tpot\", \"itl\", \"e2e\", \"throughput\", \"memory\", "
          "\"length\"; \"none\" of what could not be built or was not simulated")
      .of("cause", "what takes most of a TTFT that binds: \"queue\", \"kv\", \"budget\", \"prefill\", \"interference\"",
          [](const C& c) { return serving::kCauses[static_cast<std::size_t>(*c.cause)]; })
      .when([](const C& c) { return c.cause.has_value(); })
      .of<&C::simulated>(
          "simulated",
          "false: the closed form rules it out, or that or a rate that it misses puts what it takes at least, which "
          "`replicas` and costs then are, beyond 1.5 times the best; or the search was interrupted")
      .of<&C::why>(
          "why",
          "why it is none: it cannot be built, a request alone is too slow, the search was interrupted; null of others")
      .when([](const C& c) { return !c.why.empty(); })
      .of<&C::beyond_best>(
          "beyond_best: beyond the best %",
          "by how much more of what is minimised it takes than the best: 0.2 is 20 %; null: it does not "
          "meet the bounds")
      .of<&C::pareto>("pareto: Pareto front",
                      "whether none that meets the bounds is both cheaper and quicker from end to end")
      .of<&C::profile>("runtime", "the profile that times its steps")
      .of<&C::extrapolated>("extrapolated", "whether the profile is not the device's own")
      .of("at: at its share of the rate", "at its share of the rate; null: it was not simulated",
          [](const C& c) {
            return CapacityTimes{&*c.at, &c.bounds};
          })
      .when([](const C& c) { return c.at.has_value(); });
}

Type fields_of(Fields<BreakEven> f) {
  using B = BreakEven;
  return f.of<&B::per_hour>("api_cost_per_hour", "of the same traffic, in the currency of the devices' price")
      .of<&B::requests_per_second>("requests_per_second", "that cost as much there as the devices do")
      .of<&B::requests_per_day>("requests_per_day", "likewise: from there on the devices win")
      .of<&B::utilisation>("utilisation", "that rate as a share of what the devices take; above 1 they never win");
}

Type fields_of(Fields<DayPart> f) {
  using D = DayPart;
  return f.of<&D::from_h>("from_h: from hour", "hours since the day began")
      .of<&D::rate>("rate: requests/s", "requests per second in it")
      .of<&D::replicas>("replicas", "that it needs")
      .of<&D::devices>("devices", "of them")
      .of<&D::cost>("cost", "of the part; null: no price is known");
}

Type fields_of(Fields<DayPlan> f) {
  using D = DayPlan;
  return f
      .of<&D::fixed_cost>("fixed_cost", "of the day, with the replicas of its highest rate; null: no price is known")
      .of<&D::scaled_cost>("scaled_cost", "of the day, with those that each part needs; null likewise")
      .of<&D::start>("start_s: start of a replica", "paid, before it serves")
      .of<&D::start_formula>("start_formula", "of a replica that wakes, its terms; null: as given")
      .when([](const D& p) { return !p.start_formula.empty(); })
      .of<&D::parts>("parts", "of equal length");
}

Type fields_of(Fields<CapacityResult> f) {
  using R = CapacityResult;
  return f.of("model", "its name", [](const R& r) { return r.asked.model; })
      .of<&R::rate>("rate: requests/s", "requests per second, that were asked for; of a fleet the most that it takes")
      .of("trace", "file of the requests; null: they are made", [](const R& r) { return r.load.trace->workload.name; })
      .when([](const R& r) { return r.load.trace != nullptr; })
      .of("slo", "what is promised, as text", [](const R& r) { return serving::text_of(r.slo); })
      .of("input", "lengths of prompts", [](const R& r) { return serving::text_of(r.load.input); })
      .of("output", "likewise of what is generated", [](const R& r) { return serving::text_of(r.load.output); })
      .of<&R::minimise>("minimise: what is least",
                        "\"cost\", \"devices\" or \"energy\"; of a fleet \"rate\", which is the most")
      .of<&R::day_plan>("day", "replicas by part of a day; null: one rate was asked for")
      .of<&R::break_even>("break_even", "against the price of an API; null: none was given, or no price is known")
      .of("feasible", "whether some candidate meets the bounds", [](const R& r) { return r.best() != nullptr; })
      .of<&R::notes>("notes", "columns of the trace that are passed over, and lengths that are estimated, as text")
      .of<&R::simulations>("simulations", "of the candidates that were simulated")
      .json<&R::interrupted>("interrupted", "true where the search was ended early")
      .only_when([](const R& r) { return r.interrupted; })
      .of<&R::candidates>("candidates", "best first");
}

}  // namespace llmperf::result
