// `llmperf serve`.

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"
#include "result/serving.h"

namespace llmperf::report {
namespace {

using serving::Distribution;
using serving::EngineSettings;
using serving::Summary;

std::string per_second(double rate, const char* what) { return fmt::format("{} {}/s", Rounded{rate}, what); }

std::string engine_name(const EngineSettings& s) {
  constexpr std::array<const char*, 4> kTitles = {"vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"};
  const std::string title = kTitles[static_cast<std::size_t>(s.kind)];
  return s.version.empty() ? title : title + " " + s.version;
}

std::string traffic_text(const TrafficSent& t) {
  const serving::Load& load = t.load;
  std::string text = t.trace.empty() ? "" : t.trace + ": ";
  text += fmt::format("{} request{}", Count(t.requests), t.requests == 1 ? "" : "s");
  if (t.rate) text += fmt::format(" at {} per second", Rounded{*t.rate});
  if (t.rate && t.endless) {
    text += !std::isfinite(load.burstiness) ? ", at equal intervals"
            : load.burstiness == 1          ? " (Poisson)"
                                            : fmt::format(" (burstiness {})", Rounded{load.burstiness});
  }
  if (t.concurrency) text += fmt::format(", {} under way at most", Count(*t.concurrency));
  if (t.trace.empty()) {
    text += "; " + text_of(load, "; ");
  } else {
    text += fmt::format("; {} tokens in and {} out on the mean", Rounded{t.mean_input}, Rounded{t.mean_output});
  }
  return text;
}

std::string engine_text(const Serving& r) {
  const EngineSettings& s = r.deployed->settings;
  const serving::Deployment& of = r.deployed->deployment;
  std::string text = fmt::format("{}: {} tokens and {} sequences a step", engine_name(s), Count(s.max_batched_tokens),
                                 Count(s.max_sequences));
  if (!s.chunked_prefill) text += ", prompts uncut";
  if (!s.prefix_caching) text += ", no prefix cache";
  if (of.decode) {
    const std::string own = r.decode == nullptr ? ""
                                                : fmt::format(" ({} on {})", graph::to_text(r.decode->execution.plan),
                                                              r.decode->device->name);
    text += fmt::format("; {} replica{} for prompts, {} for decode{}, over {} {}", of.pool.replicas,
                        of.pool.replicas == 1 ? "" : "s", of.decode->replicas, own, of.transfer.rate,
                        of.transfer.per_layer ? "while prompts are computed" : "once they are");
  } else if (r.study->run.replicas > 1) {
    text += fmt::format("; {} replicas, {}", r.study->run.replicas, name(of.router));
  }
  return text;
}

std::string assumptions_line(const Serving& r) {
  const graph::Execution& x = r.setup->execution;
  std::string text = fmt::format("{}. {}; weights {}, KV cache {}, activations {}; options {}", traffic_text(r.traffic),
                                 engine_text(r), weights_text(*r.setup), kv_text(*r.setup), name(x.activations),
                                 options_text(*r.setup));
  if (r.setup->profile) text += "; runtime " + r.setup->profile->name;
  if (x.plan.devices() > 1) text += "; " + plan_text(*r.setup, x.split);
  if (const auto& draft = r.setup->draft) {
    text += fmt::format("; {} drafts {} token{} for a step, accepted with {}", draft->file->decoder.name, draft->tokens,
                        draft->tokens == 1 ? "" : "s", draft->acceptance.text());
  }
  return text;
}

// " (1.1 s .. 1.4 s)".
std::string range_text(const serving::Range& r, bool time) {
  if (!(r.high > r.low)) return {};
  const auto text = [&](double v) { return time ? format_seconds(Seconds{v}) : format_significant(v); };
  return fmt::format(" ({} .. {})", text(r.low), text(r.high));
}

// "mean 45.2 ms (44 ms .. 47 ms), p50 …, p99 …".
std::string times_text(const Distribution& t, const serving::Range* mean, const serving::Range* p99) {
  return fmt::format("p50 {}, p99 {}{}, mean {}{}", Seconds{t.p50}, Seconds{t.p99}, p99 ? range_text(*p99, true) : "",
                     Seconds{t.mean}, mean ? range_text(*mean, true) : "");
}

std::string slo_text(const Serving& r) {
  std::vector<std::string> met;
  std::vector<std::string> missed;
  for (const ServedBound& b : r.bounds()) (b.met() ? met : missed).push_back(slo_bound_text(b));
  if (missed.empty()) return "met: " + join(met, "; ");
  return "missed: " + join(missed, "; ") + (met.empty() ? "" : "; met: " + join(met, "; "));
}

std::string queue_text(const Summary& s) {
  return fmt::format("unstable: queue grows by {}", per_second(s.queue_growth, "requests"));
}

// What most of a time passes with, and what could be done about it is another's to say.
std::string causes_text(const Serving& r) {
  const Summary& s = r.study->summary;
  constexpr std::array<const char*, 5> kWords = {"the front end, a seat or a step's end", "waiting for KV blocks",
                                                 "waiting for a share of a step's tokens", "the prompt's own steps",
                                                 "what others add to these"};
  std::vector<std::pair<double, std::string>> parts;
  for (std::size_t i = 0; i < kWords.size(); ++i) parts.emplace_back(s.ttft_causes[i], kWords[i]);
  std::vector<std::pair<double, std::string>> gaps = {{s.itl_causes.decode, "decode steps"},
                                                      {s.itl_causes.prefill, "prompts in the same steps"},
                                                      {s.itl_causes.stall, "steps without it"}};
  const auto most = [](std::vector<std::pair<double, std::string>>& of) {
    std::ranges::stable_sort(of, std::greater{}, &std::pair<double, std::string>::first);
    std::vector<std::string> texts;
    for (const auto& [share, what] : of) {
      if (share >= 0.05 || texts.empty()) texts.push_back(fmt::format("{} {}", Share{share}, what));
    }
    return join(texts, ", ");
  };
  std::string text = "TTFT by " + most(parts);
  if (s.itl.mean > 0) text += "; time between tokens by " + most(gaps);
  return text;
}

std::string band_text(const Serving& r) {
  if (r.setup->profile == nullptr) return no_band_text(*r.setup);
  std::vector<std::string> parts;
  std::int64_t rows = 0;
  for (const auto& [phase, band] : r.bands) {
    if (!band) continue;
    parts.push_back(
        fmt::format("{} ±{} (9 of 10 within {})", phase, band_share(band->band.mean), band_share(band->band.p90)));
    rows += band->band.rows;
  }
  const std::string seeds =
      r.study->seeds.size() > 1 ? fmt::format(", and {} seeds", r.study->seeds.size()) : std::string();
  return fmt::format(
      "{}; {}; ranges are of the latter{}", join(parts, ", "),
      rows > 0 ? fmt::format("cross-validated on {} rows", rows) : "from the errors of the parts of a step", seeds);
}

Fields headline(const Serving& r) {
  const serving::Study& t = *r.study;
  const Summary& s = t.summary;
  const Measured measured = r.measured();
  Fields f;
  if (t.run.interrupted) {
    f.add("interrupted", "{} of {} requests had ended", Count(s.requests), Count(r.traffic.requests));
  }
  if (!s.stable) {
    f.add("load", queue_text(s) + (measured.endless ? ": no TTFT holds for longer than it is looked at"
                                                    : " while the trace lasts"));
  }
  const bool encodes = r.setup->encodes();
  if (encodes) {
    f.add("throughput", "{}, {}", per_second(s.requests_per_second, "texts"),
          per_second(s.input_tokens_per_second, "tokens"));
  } else {
    f.add("throughput", "{}{}, {}, {}", per_second(s.output_tokens_per_second, "output tokens"),
          range_text(t.output_tokens_per_second, false), per_second(s.requests_per_second, "requests"),
          per_second(s.input_tokens_per_second, "prompt tokens"));
  }
  if (measured.steady()) f.add(encodes ? "time" : "TTFT", times_text(s.ttft, &t.ttft_mean, &t.ttft_p99));
  if (s.tpot.mean > 0) f.add("TPOT", times_text(s.tpot, &t.tpot_mean, nullptr));
  if (!r.slo.empty()) f.add("SLO", slo_text(r));
  if (s.goodput_per_second) {
    f.add("goodput", "{} that meet every bound, {} of all", per_second(*s.goodput_per_second, "requests"),
          Share{s.met_share});
  }
  const double tokens = encodes ? s.input_tokens_per_second : s.output_tokens_per_second;
  if (const std::optional<double> million = r.cost_per_million(tokens)) {
    f.add("cost", "{}; {} a million {}", price_text(*r.setup->price, *r.cost_per_hour()), Rounded{*million, 3},
          encodes ? "tokens, idle time included" : "output tokens, with their prompts and idle time");
  }
  if (const std::optional<double> joules = r.joules_per_output_token()) {
    f.add("energy", "{} W ({}); {} J for an output token", Rounded{*r.power_w()}, estimate::kPowerBound,
          Rounded{*joules, 3});
  }
  f.add("bound", causes_text(r));
  f.add("error band", band_text(r));
  if (const auto beyond = r.beyond(); !beyond.empty()) f.add("extrapolated", join(beyond, "; "));
  return f;
}

Table latency_table(const Serving& r) {
  Table t = titled("Latency", "<metric, <of, mean, p50, p90, p95, p99");
  const Summary& s = r.study->summary;
  const auto add = [&](const char* name, const char* of, const Distribution& t_) {
    std::vector<std::string> cells = {name, of};
    for (const double v : {t_.mean, t_.p50, t_.p90, t_.p95, t_.p99}) cells.push_back(format_seconds(Seconds{v}));
    t.rows.push_back(std::move(cells));
  };
  const bool steady = r.measured().steady();
  if (steady && !r.setup->encodes()) add("TTFT", "requests", s.ttft);
  if (s.tpot.mean > 0) add("TPOT", "requests", s.tpot);
  if (s.itl.mean > 0) add("ITL", "tokens", s.itl);
  if (steady) add("end to end", "requests", s.e2e);
  for (const serving::ClassSummary& c : s.classes) {
    if (c.requests == 0) continue;
    if (steady) add("TTFT", c.name.c_str(), c.ttft);
    if (c.tpot.mean > 0) add("TPOT", c.name.c_str(), c.tpot);
    if (steady) add("end to end", c.name.c_str(), c.e2e);
  }
  return t;
}

Fields engine_fields(const Serving& r) {
  const Summary& s = r.study->summary;
  const estimate::KvCapacity& kv = r.deployed->kv;
  const std::int64_t blocks = r.deployed->deployment.pool.blocks;
  const std::int64_t size = r.deployed->settings.block_size;
  Fields f{"Engine", {}};
  f.add("steps", "{} in {}, {} of which they run", Count(s.steps), s.duration, Share{s.busy_share});
  if (const Seconds front = r.deployed->settings.frontend; front.value > 0) {
    f.add("front end", format_seconds(front) + " of each request before it can be in a step");
  }
  f.add("batch", "{} sequences on the mean, {} waiting", Rounded{s.mean_batch}, Rounded{s.mean_waiting});
  if (r.setup->encodes()) return f;
  f.add("KV cache",
        "{} tokens as the engine prints them; of these requests {} block{} of {}; {} in use on the mean, {} at most",
        Count(r.deployed->settings.kv_blocks ? blocks * size : kv.tokens), Count(blocks), blocks == 1 ? "" : "s", size,
        Share{s.kv_mean_share}, Share{s.kv_peak_share});
  if (!r.deployed->settings.kv_blocks) {
    f.add("memory", "{} for keys and values of {}: {} weights, {} activations, {} graphs, {} besides", Held{kv.kv},
          Held{kv.usable}, Held{kv.weights}, Held{kv.activation}, Held{kv.graphs}, Held{kv.other});
  }
  if (r.deployed->settings.max_queue) {
    f.add("rejected", "{} requests, {} of those that were sent, found {} waiting", Count(s.rejected),
          Share{d(s.rejected) / std::max(1.0, d(s.rejected + s.requests))}, Count(*r.deployed->settings.max_queue));
  }
  f.add("preemptions", format_count(d(s.preemptions)));
  f.add("prefix hits", "{} of prompt tokens{}", Share{s.prefix_hit_share},
        s.tier_hit_share > 0 ? fmt::format(", {} from tiers", Share{s.tier_hit_share}) : "");
  return f;
}

Table seed_table(const Serving& r) {
  Table t = titled("Seeds", "seed, requests/s, tokens/s, TTFT p50, TTFT p99, TPOT p50, TPOT p99");
  for (std::size_t i = 0; i < r.study->seeds.size(); ++i) {
    const Summary& s = r.study->seeds[i];
    const bool steady = Measured{&s, r.traffic.endless}.steady();
    const auto time = [](double v) { return format_seconds(Seconds{v}); };
    add_row(t, r.traffic.load.seed + i, Rounded{s.requests_per_second}, Rounded{s.output_tokens_per_second},
            steady ? time(s.ttft.p50) : "unstable", steady ? time(s.ttft.p99) : "-", time(s.tpot.p50),
            time(s.tpot.p99));
  }
  return t;
}

bool unlike_devices(const Serving& r) { return r.decode != nullptr && r.decode->device->name != r.setup->device->name; }

std::string devices_text(const Serving& r) {
  if (!r.setup->cards.empty()) return title_text(*r.setup);
  const bool unlike = unlike_devices(r);
  const std::int64_t apart = unlike ? r.deployed->decode_devices : 0;
  const std::string own = title_text(*r.setup->device, r.deployed->devices - apart);
  return unlike ? own + " and " + title_text(*r.decode->device, apart) : own;
}

Document document(const Serving& r) {
  Document doc{Heading{fmt::format("{} served by {} on {}", r.setup->execution.model->name,
                                   engine_name(r.deployed->settings), devices_text(r)),
                       r.label},
               Paragraph{assumptions_line(r)}, headline(r), latency_table(r), engine_fields(r)};
  if (r.study->seeds.size() > 1) doc.push_back(seed_table(r));
  doc.push_back(rests_on(*r.setup, figures_used(*r.setup), r.notes));
  if (unlike_devices(r)) doc.push_back(rests_on(*r.decode, figures_used(*r.decode), {"the above: what decodes"}));
  return doc;
}

}  // namespace

std::vector<std::string> missed_bounds(const Serving& serving) {
  std::vector<std::string> missed;
  for (const ServedBound& b : serving.bounds()) {
    if (!b.met()) missed.push_back(slo_bound_text(b));
  }
  return missed;
}

Report serving_report(const Serving& serving, Trace trace) {
  return {document(serving), csv_of(ended(serving.study->run)), result::document("llmperf.serve", serving),
          std::move(trace)};
}

}  // namespace llmperf::report
