#include "request/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "hardware/engine.h"
#include "request/names.h"

namespace llmperf::request {
namespace {

constexpr std::int64_t kRequests = 1000;
constexpr const char* kInput = "1024";
constexpr const char* kOutput = "128";
constexpr const char* kText = "256";  // of an encoder
constexpr auto kMade =
    std::to_array<const char*>({"input", "output", "prefix", "turns", "think", "classes"});  // without a trace

constexpr auto kSent = std::to_array<const char*>({"kv-link", "kv-transfer", "decode-plan", "decode-hw"});  // apart

bool switch_value(std::string_view field, const std::string& text) {
  if (text == "on" || text == "off") return text == "on";
  throw Error::bad_input(fmt::format("`{}`: {} is neither on nor off", field, quote(text)));
}

std::size_t named(std::string_view field, const std::string& text, std::span<const std::string_view> names) {
  return one_of(field, "there is no", text, names);
}

double burstiness_value(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1e6;
  const std::optional<double> value = parse_double(text);
  if (value && *value >= kLeast && *value <= kMost) return *value;
  throw Error::bad_input(
      fmt::format("`burstiness`: {} is no number between {} and {:.0f}, nor inf", quote(text), kLeast, kMost));
}

// Whose schedulers know priorities, and whose caches are read from tiers here.
bool is_vllm_or_sglang(serving::EngineKind kind) {
  return kind == serving::EngineKind::vllm || kind == serving::EngineKind::sglang;
}

// What has no effect beside the rest, or lacks what would give it one.
void check_traffic(const Request& q, const serving::EngineChoices& engine, bool encodes) {
  std::vector<graph::Problem> broken;
  const auto refuse = [&](bool useless, std::string message, std::string hint = "leave it out") {
    if (useless) broken.push_back({std::move(message), std::move(hint)});
  };
  refuse(!q.rate && !q.concurrency && !q.trace, "nothing says when requests are sent",
         "`rate` 4 (per second), `concurrency` 16 (under way at once), or `trace` FILE");
  refuse(q.burstiness && !q.rate, "`burstiness` is of requests at a `rate`", "give `rate` as well, or leave it out");
  if (q.trace) {
    for (const char* name : kMade) {
      refuse(get(q, field(name)).has_value(), fmt::format("`{}`: the trace says it", name));
    }
  }
  refuse(q.lengths && (!q.concurrency || q.rate || q.trace || q.classes),
         "`lengths` is of a closed loop: `concurrency`, and no `rate`, `trace` or `classes`");
  refuse(q.think && (!q.rate || q.concurrency || q.turns.value_or(1) == 1),
         "`think` is of turns of sessions that start at a `rate`, of which `concurrency` holds none back",
         "`rate` and `turns` beside it");
  refuse(q.prefill_replicas && !q.decode_replicas, "`prefill-replicas`: nothing decodes what they compute",
         "give `decode-replicas` as well");
  refuse(q.decode_replicas && !q.prefill_replicas, "`decode-replicas`: nothing computes the prompts",
         "give `prefill-replicas` as well");
  const bool apart = q.prefill_replicas && q.decode_replicas;
  refuse(apart && q.replicas, "`replicas` compute prompts and decode, and `prefill-replicas` say who computes prompts",
         "leave one of them out");
  for (const char* name : kSent) {
    refuse(!apart && get(q, field(name)), fmt::format("`{}`: no keys and values are sent to others", name),
           "give `prefill-replicas` and `decode-replicas` as well, or leave it out");
  }
  const bool one = apart ? *q.prefill_replicas == 1 && *q.decode_replicas == 1 : q.replicas.value_or(1) == 1;
  refuse(q.router && one && q.dp.value_or(1) == 1 && !q.devices, "`router`: there is one replica",
         "give `replicas` as well, or leave it out");
  const serving::EngineKind kind = serving::parse_engine_kind(engine.engine);
  refuse(q.kv_tier && (q.prefix_caching == "off" || !is_vllm_or_sglang(kind) || encodes),
         "`kv-tier`: vLLM and SGLang with prefix caching read what they kept of a text that goes on");
  refuse(q.kv_blocks && q.kv_utilisation, "`kv-blocks` and `kv-utilisation` both say how large the KV cache is",
         "leave one of them out");
  refuse(q.admission && kind != serving::EngineKind::trtllm,
         fmt::format("`admission` is of TensorRT-LLM, and the engine is {}", name(kind)));
  refuse(q.recv_interval && kind != serving::EngineKind::sglang,
         fmt::format("`scheduler-recv-interval` is of SGLang, and the engine is {}", name(kind)));
  graph::refuse(broken);
}

serving::Replicas replicas_of(const Request& q) {
  serving::Replicas r;
  r.count = q.replicas.value_or(1);
  r.prefill = q.prefill_replicas;
  r.decode = q.decode_replicas;
  if (q.router) r.router = static_cast<serving::Router>(named("router", *q.router, serving::kRouters));
  if (q.kv_link) {
    r.kv_link = parse_bytes_per_second(*q.kv_link);
    if (!r.kv_link || !(r.kv_link->value > 0)) {
      throw Error::bad_input(fmt::format("`kv-link`: cannot read {}", quote(*q.kv_link)), "`kv-link` 50GB/s");
    }
  }
  if (q.kv_tier) r.tiers = serving::parse_kv_tiers(*q.kv_tier);
  if (q.kv_transfer) {
    constexpr std::array<std::string_view, 2> kNames = {"after", "per-layer"};
    r.kv_per_layer = named("kv-transfer", *q.kv_transfer, kNames) == 1;
  }
  return r;
}

}  // namespace

void check_capacity(const Request& q, bool disaggregated) {
  std::vector<graph::Problem> broken;
  const auto refuse = [&](const char* name, const std::string& why, std::string hint = "leave it out") {
    if (get(q, field(name))) broken.push_back({fmt::format("`{}`: {}", name, why), std::move(hint)});
  };
  refuse("lengths", "it is of a closed loop");
  for (const char* name : {"replicas", "prefill-replicas", "decode-replicas"})
    refuse(name, "how many there must be is what is searched for");
  refuse("concurrency", "the bounds are of requests that come at the rate, and nothing holds them back");
  if (q.kv_tier && std::ranges::any_of(serving::parse_kv_tiers(*q.kv_tier), &serving::KvTier::shared)) {
    refuse("kv-tier", "a pool is of all replicas, and each is simulated alone", "`kv-tier` host:200GB");
  }
  if (!disaggregated) {
    constexpr const char* kApart = "try prompts and decode apart as well (pd), or leave it out";
    for (const char* name : kSent) {
      refuse(name, "no keys and values are sent to others", kApart);
    }
    if (q.dp.value_or(1) == 1) refuse("router", "each replica is simulated at its share of the rate", kApart);
  }
  if (q.trace) {
    for (const char* name : kMade) refuse(name, "the trace says it");
  }
  graph::refuse(broken);
}

serving::EngineKind engine_of(std::string_view runtime) {
  for (const serving::EngineKind kind :
       {serving::EngineKind::sglang, serving::EngineKind::trtllm, serving::EngineKind::llama_cpp}) {
    if (runtime.starts_with(name(kind))) return kind;
  }
  return serving::EngineKind::vllm;
}

serving::EngineChoices engine_choices(const Resolved& r) {
  const Request& q = r.asked;
  serving::EngineChoices e;
  const std::string profile = r.profile ? r.profile->name : "";
  e.engine = name(engine_of(profile));
  // The era of the steps is that of the rules, too, where these are the runtime's own.
  const std::string runtime = q.runtime.value_or("");
  const std::size_t at = runtime.find('@');
  if (at != std::string::npos && profile.starts_with(e.engine)) {
    const std::string asked = runtime.substr(at + 1, runtime.find('+', at) - at - 1);  // without a tool behind it
    const auto version = hardware::parse_version(asked);
    if (version && !hardware::is_date(*version)) e.engine += '@' + asked;
  }
  if (q.engine) e.engine = *q.engine;
  e.max_batched_tokens = q.max_batched_tokens;
  e.max_sequences = q.max_seqs;
  e.block_size = q.block_size;
  e.max_model_len = q.max_model_len;
  e.kv_blocks = q.kv_blocks;
  e.recv_interval = q.recv_interval;
  e.max_queue = q.max_queue;
  e.kv_utilisation = q.kv_utilisation;
  if (q.prefix_caching) e.prefix_caching = switch_value("prefix-caching", *q.prefix_caching);
  if (q.chunked_prefill) e.chunked_prefill = switch_value("chunked-prefill", *q.chunked_prefill);
  if (q.admission) {
    constexpr std::array<std::string_view, 2> kNames = {"guaranteed-no-evict", "max-utilisation"};
    e.admission = static_cast<serving::Admission>(named("admission", *q.admission, kNames));
  }
  return e;
}

namespace {

void spread_lengths(const Resolved& r, Traffic& t) {
  const serving::Load exact = t.load;
  const serving::EngineSettings engine = serving::choose_engine(t.engine, r.setup());
  const double share = serving::spread_lengths(t.load, engine, r.model().max_position);
  std::vector<std::string> spread;
  if (t.load.input.kind != exact.input.kind) spread.push_back(serving::text_of(exact.input));
  if (t.load.output.kind != exact.output.kind) spread.push_back(serving::text_of(exact.output));
  if (spread.empty()) return;
  t.notes.push_back(
      fmt::format("lengths are spread evenly within {} of {}: of a closed loop requests that are all alike would end "
                  "and begin together (`lengths` exact)",
                  format_share(share), join(spread, " and ")));
}

// Tokens of images come on top of every prompt, and its share of the tower's time is in the steps that compute it.
void see_images(const Resolved& r, Traffic& t) {
  if (r.asked.trace) throw Error::bad_input("`images`: a trace says what its requests have", "leave it out");
  estimate::Scenario one = scenario_of(r.asked, r.model());
  one.batch = r.setup().execution.plan.data;
  t.load.input.more = d(one.image_tokens());
  if (one.images == 0) return;
  estimate::Phase tower;
  r.estimator().vision(one, tower);
  t.replicas.per_prompt_token = tower.time / t.load.input.mean();
}

// The mean request stands for all of them where one length is asked for: in closed forms.
void read_classes(const Request& q, bool encodes, Traffic& t) {
  serving::Load& load = t.load;
  load.classes =
      serving::parse_classes(*q.classes, {.input = load.input, .output = load.output}, q.prefix.value_or(""));
  const double alike = load.input.mean();
  double sum = 0, input = 0, output = 0, prefix = 0;
  for (serving::TrafficClass& c : load.classes) {
    if (encodes) c.output = load.output;
    sum += c.share;
    input += c.share * c.input.mean();
    output += c.share * c.output.mean();
    prefix += c.share * d(c.prefix.tokens);
  }
  load.input = {.low = std::round(input / sum)};
  load.output = {.low = std::round(output / sum)};
  load.prefix.tokens = std::llround(prefix / sum);
  t.replicas.per_prompt_token = t.replicas.per_prompt_token * (alike / load.input.mean());  // of as many images
  const serving::EngineKind engine = serving::parse_engine_kind(t.engine.engine);
  const bool ordered = std::ranges::any_of(load.classes, [](const auto& c) { return c.priority != 0; });
  if (ordered && !is_vllm_or_sglang(engine)) {
    throw Error::bad_input(fmt::format("`classes`: {} takes requests in the order in which they come", name(engine)),
                           "leave priority out, or take `engine` vllm or sglang");
  }
}

void check_class(const std::vector<serving::TrafficClass>& classes, const serving::Bound& b) {
  std::vector<std::string> names;
  for (const serving::TrafficClass& c : classes) names.push_back(c.name);
  if (std::ranges::count(names, b.of) == 0) {
    throw Error::bad_input(fmt::format("`slo`: there is no class {}", quote(b.of)),
                           names.empty() ? "`classes` says which there are" : name_hint(b.of, names));
  }
  if (b.metric == serving::Metric::itl) {
    throw Error::bad_input("`slo`: itl is of all requests together", "tpot of a class, or itl without one");
  }
}

}  // namespace

Traffic read_traffic(const Resolved& r) {
  const Request& q = r.asked;
  Traffic t;
  t.engine = engine_choices(r);
  check_traffic(q, t.engine, r.model().encoder);
  const std::string engine = t.engine.engine.substr(0, t.engine.engine.find('@'));
  if (r.profile && engine_of(r.profile->name) != serving::parse_engine_kind(engine)) {
    t.notes.push_back(fmt::format("{}'s rules on the steps of runtime {}", engine, r.profile->name));
  }
  t.replicas = replicas_of(q);
  t.load.rate = q.rate;
  if (q.burstiness) t.load.burstiness = burstiness_value(*q.burstiness);
  t.load.concurrency = q.concurrency;
  t.load.requests = q.requests.value_or(kRequests);
  t.load.extends = !q.requests && !q.trace && !q.concurrency;
  const bool encodes = r.model().encoder;
  t.load.input = serving::parse_lengths("input", q.input.value_or(encodes ? kText : kInput));
  // Of an encoder the one result of a text stands for its first token.
  t.load.output = serving::parse_lengths("output", encodes ? "1" : q.output.value_or(kOutput));
  if (q.prefix) t.load.prefix = serving::parse_prefix(*q.prefix, t.load.input);
  if (q.images.value_or(0) > 0 || q.image_size) see_images(r, t);
  if (q.classes) read_classes(q, encodes, t);
  t.load.turns = q.turns.value_or(1);
  if (q.think) {
    t.load.think = parse_seconds(*q.think).value_or(Seconds{});
    if (!(t.load.think.value > 0)) throw Error::bad_input("`think`: no time: " + quote(*q.think), "`think` 20s");
  }
  t.load.seed = static_cast<std::uint64_t>(q.seed.value_or(0));
  t.seeds = q.seeds.value_or(1);
  if (q.slo) t.slo = serving::parse_slo(*q.slo);
  for (const serving::Bound& b : t.slo) {
    if (!b.of.empty()) check_class(t.load.classes, b);
    if (!encodes || b.metric == serving::Metric::ttft || b.metric == serving::Metric::e2e) continue;
    throw Error::bad_input(fmt::format("`slo`: {} is an encoder, and has no time between tokens", r.model().name),
                           "`slo` e2e.p99=100ms");
  }
  if (!q.trace) {
    if (q.lengths) named("lengths", *q.lengths, std::array<std::string_view, 2>{"spread", "exact"});
    if (q.concurrency && q.lengths != "exact" && !q.classes) spread_lengths(r, t);
    return t;
  }
  t.trace = serving::load_trace(*q.trace, q.requests.value_or(0));
  if (encodes) serving::read_alone(*t.trace);
  t.notes.insert(t.notes.end(), t.trace->notes.begin(), t.trace->notes.end());
  const bool random = q.rate && !t.trace->timed;
  std::vector<graph::Problem> broken;
  for (const char* name : {"burstiness", "seeds"}) {
    if (random || !get(q, field(name)) || (name == std::string_view("seeds") && (t.seeds == 1 || q.draft))) continue;
    broken.push_back(
        {fmt::format("`{}`: nothing of a trace {} is random", name, t.trace->timed ? "with times" : "in a closed loop"),
         "leave it out"});
  }
  graph::refuse(broken);
  return t;
}

serving::Deployed deploy(const Resolved& r, const Traffic& traffic, const serving::EngineSettings& settings,
                         std::int64_t tokens) {
  serving::Deployed deployed = serving::deploy(r.setup(), settings, traffic.replicas, tokens);
  if (r.decode) {
    const estimate::Setup& decode = r.decode->setup();
    serving::decode_on(
        deployed, serving::deploy(decode, serving::choose_engine(traffic.engine, decode), traffic.replicas, tokens));
  }
  return deployed;
}

serving::Workload requests_of(const Traffic& t, std::uint64_t seed, const model::Decoder& model,
                              const serving::EngineSettings& settings) {
  serving::Load load = t.load;
  load.seed = seed;
  serving::Workload w = t.trace ? serving::sent_as(*t.trace, load) : serving::make_workload(load);
  const std::int64_t result = model.encoder ? 1 : 0;  // which is no token of the text's
  const std::int64_t made_for =
      model.max_position ? *model.max_position + result : std::numeric_limits<std::int64_t>::max();
  // The other engines cut what is longer in any case.
  const bool whole = !settings.chunked_prefill && (model.encoder || settings.kind == serving::EngineKind::vllm ||
                                                   settings.kind == serving::EngineKind::trtllm);
  const bool of_trace = t.trace || t.load.trace;
  const std::string shorter = of_trace ? "leave such requests out" : "shorter `input` and `output`";
  const std::string file = of_trace ? w.name + ": " : std::string();
  for (std::size_t i = 0; i < w.requests.size(); ++i) {
    const serving::Request& r = w.requests[i];
    if (r.input + r.output > made_for) {
      throw Error::bad_input(
          fmt::format("{}request {}: {} tokens of prompt and {} of output are more than the {} that {} "
                      "is made for",
                      file, i + 1, format_count(d(r.input)), format_count(d(r.output)), format_count(d(made_for)),
                      model.name),
          shorter);
    }
    if (whole && r.input > settings.max_batched_tokens) {
      throw Error::bad_input(
          fmt::format("{}request {}: a prompt of {} tokens is longer than a step of {}, and {} does not "
                      "cut it",
                      file, i + 1, format_count(d(r.input)), format_count(d(settings.max_batched_tokens)),
                      name(settings.kind)),
          model.encoder ? "a larger `max-batched-tokens`" : "`chunked-prefill` on, or a larger `max-batched-tokens`");
    }
  }
  return w;
}

}  // namespace llmperf::request
