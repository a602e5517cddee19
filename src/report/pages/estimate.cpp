// `llmperf estimate` of generated text.

#include <algorithm>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "estimate/schedule.h"
#include "report/pages/phase.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"

namespace llmperf::report {
namespace {

using estimate::Estimate;
using estimate::Phase;

std::string tokens_rate(double rate) { return number_text(rate) + " tokens/s"; }
std::string requests_text(std::int64_t count) {
  return fmt::format("{} request{}", Count(count), count == 1 ? "" : "s");
}

Heading heading(const Generation& g) {
  const std::string devices = title_text(*g.setup);
  return {g.setup->execution.model->name + " on " + devices, label(*g.setup)};
}

// Nothing of a prefill alone.
std::string generated_text(const Generation& g, std::string_view before) {
  return g.setup->serving.decodes() ? fmt::format("{}{}", before, Count(g.estimate->scenario.generate)) : "";
}

// What is not as in every request.
std::string serving_text(const estimate::Setup& setup) {
  const estimate::Serving& s = setup.serving;
  const std::optional<estimate::Draft>& draft = setup.draft;
  std::string text;
  if (s.phases != estimate::Served::both && !setup.encodes()) text += fmt::format("; {} alone", name(s.phases));
  if (s.verify > 1 && draft) {
    text += fmt::format("; {} drafts {} token{} for a step, accepted with {}", draft->file->decoder.name, draft->tokens,
                        draft->tokens == 1 ? "" : "s", draft->acceptance.text());
  } else if (s.verify > 1) {
    text += fmt::format("; steps verify {} tokens and keep {}", s.verify, Rounded{s.accepted});
  }
  if (s.overlap_batches > 1) text += "; two micro-batches whose exchanges run beside each other's ops";
  return text;
}

// " + 2 images of 1026 tokens (scaled to 1024x1024)".
std::string images_text(const estimate::Scenario& s) {
  if (s.images == 0) return {};
  return fmt::format(" + {} image{} of {} tokens (scaled to {})", s.images, s.images == 1 ? "" : "s",
                     Count(s.image.prompt_tokens), model::to_text(s.image.scaled));
}

// " in 3 pieces of 4096 and one of 512".
std::string pieces_text(const Generation& g) {
  const std::int64_t prompt = g.estimate->scenario.prompt;
  const std::int64_t piece = g.setup->serving.prefill_chunk.value_or(prompt);
  if (piece >= prompt || !g.setup->serving.prefills()) return {};
  const std::string rest = prompt % piece > 0 ? " and one of " + count_text(prompt % piece) : "";
  return fmt::format(" in {} piece{} of {}{}", prompt / piece, prompt / piece == 1 ? "" : "s", Count(piece), rest);
}

// What was asked for, and in full what was chosen besides.
std::string assumptions_line(const Generation& g, bool full) {
  const Estimate& e = *g.estimate;
  const graph::Execution& x = g.setup->execution;
  const std::string depth = e.scenario.depth > 0 ? fmt::format(", {} cached", Count(e.scenario.depth)) : "";
  const std::string cache = g.setup->encodes() ? "" : ", KV cache " + kv_text(*g.setup);
  std::string text = fmt::format("batch {}{}, prompt {}{}{}{}; weights {}{}", Count(e.scenario.batch), depth,
                                 Count(e.scenario.prompt - e.scenario.image_tokens()), images_text(e.scenario),
                                 pieces_text(g), generated_text(g, ", generate "), weights_text(*g.setup), cache);
  if (full) text += fmt::format(", activations {}; options {}", name(x.activations), options_text(*g.setup));
  // All that a stack has may be little.
  if (g.setup->profile && !x.runtime.flash_attention && text.ends_with("options all"))
    text += " of the stack, without flash attention";
  const estimate::Setup& setup = *g.setup;
  if (setup.profile && full) {
    const std::string prefill(hardware::name(setup.dispatch));
    const std::string decode(hardware::name(setup.decode_dispatch));
    text += fmt::format(
        "; runtime {}, {}", setup.profile->name,
        prefill == decode || setup.encodes() ? prefill : fmt::format("prefill {}, decode {}", prefill, decode));
  }
  if (x.model->has_experts() && full) text += "; routing " + graph::to_text(x.routing);
  if (x.plan.devices() > 1) text += "; " + plan_text(setup, x.split);
  return text + serving_text(setup);
}

// "32 of 33 layers on the device" as llama.cpp counts them, the head being one.
std::string offload_text(const estimate::Setup& setup) {
  const model::WeightLayout& w = setup.execution.weights;
  std::int64_t layers = w.head_on_host ? 0 : 1;
  std::int64_t experts = 0;
  for (const model::LayerGroup& group : w.groups) {
    layers += group.on_host ? 0 : group.count();
    experts += group.keeps_experts() ? group.count() : 0;
  }
  const std::string kept = experts > 0 ? fmt::format("routed experts of {} of them, ", experts) : "";
  return fmt::format("{} of {} layers on the device (the head counts as one); {}the token embedding and sampling on {}",
                     layers, setup.execution.model->num_layers() + 1, kept, setup.host->title);
}

std::string context_text(const Generation& g) {
  const Estimate& e = *g.estimate;
  const auto trained = g.setup->execution.model->max_position;
  if (e.longest_context == 0) return "none at batch " + count_text(e.scenario.batch);
  std::string text = fmt::format("{} tokens at batch {}", Count(e.longest_context), Count(e.scenario.batch));
  if (trained && e.longest_context > *trained) text += fmt::format(" (the model is made for {})", Count(*trained));
  return text;
}

// "bound by …", of a pass over images and of the prefill.
std::string prompt_bounds(const Estimate& e) {
  const Phase* vision = e.phase("vision");
  const std::string prefill =
      "bound by " + bound_shares(estimate::Estimator::prompt_phases(e).subspan(vision == nullptr ? 0 : 1));
  if (vision == nullptr) return prefill;
  return fmt::format("{} of it for the images, bound by {}; prefill {}", vision->time, bound_shares(*vision), prefill);
}

// "0.021 per input token", of those that there are.
std::string per_token(std::optional<double> in, std::optional<double> out, std::optional<double> all) {
  std::string text;
  for (const auto& [value, what] :
       {std::pair{in, "input"}, std::pair{out, "output"}, std::pair{all, "output with its prompt"}}) {
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Rounded{*value, 3}, what);
  }
  return text;
}

void add_spending(const Generation& g, bool full, Fields& f) {
  const estimate::Spending& s = g.estimate->spending;
  if (s.cost_per_hour) {
    const std::string tokens =
        per_token(s.cost_per_million_input_tokens, s.cost_per_million_output_tokens,
                  full && s.cost_per_million_input_tokens ? s.request_cost_per_million_output : std::nullopt);
    f.add("cost", "{}; a million tokens: {}", price_text(*g.setup->price, *s.cost_per_hour), tokens);
  }
  if (!s.average_power_w) return;
  f.add("energy", "{} W ({}); J per token: {}", number_text(*s.average_power_w), s.power_basis,
        per_token(s.joules_per_input_token, s.joules_per_output_token, {}));
}

Paragraph sentence(const Generation& g) {
  const Estimate& e = *g.estimate;
  const std::string all =
      e.scenario.batch > 1 ? fmt::format(" ({} in all)", number_text(e.decode_tokens_per_second)) : "";
  std::string speed = e.tpot ? tokens_rate(1 / e.tpot->value) + " a request" + all : "";
  if (g.setup->encodes()) speed = number_text(e.sequences_per_second) + " sequences/s, a batch";
  if (e.ttft && speed.empty()) speed = tokens_rate(e.prefill_tokens_per_second) + " of prompts";
  if (e.ttft) speed += fmt::format("{} after {}", g.setup->encodes() ? "" : ", first token", *e.ttft);
  const estimate::Spending& s = e.spending;
  const std::optional<double> in = s.cost_per_million_input_tokens;
  const std::optional<double> out = s.cost_per_million_output_tokens;
  const std::string cost =
      in && out
          ? cost_text(g.setup->price, s.request_cost_per_million_output, "per million output tokens with their prompts")
          : cost_text(g.setup->price, out ? out : in, out ? "per million output tokens" : "per million input tokens");
  return opening(speed, e.memory.total(), e.capacity, cost, *g.setup,
                 {ttft_band(*g.setup, e), band(*g.setup, e, "decode")}, !extrapolations(*g.setup, e.scenario).empty());
}

// What a step is made of, and what of it each part takes.
Table step_table(const Phase& p) {
  Table t = titled(fmt::format("Step of {} sequences", p.first.count), "<part, time, of the step");
  const auto add = [&](std::string_view name, auto&& takes) {
    Seconds sum;
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      if (takes(p.ops[i].op)) sum += p.ops[i].step_time();
    }
    if (sum.value > 0) add_row(t, name, sum, Share{sum / p.time});
  };
  const auto own = [](const graph::Op& op) { return !std::holds_alternative<graph::Overhead>(op.body); };
  add("products, norms and exchanges of all tokens", [&](const graph::Op& op) {
    return own(op) && (op.scope == graph::Scope::rows || op.scope == graph::Scope::sequences);
  });
  const std::vector<graph::SequenceGroup> groups =
      p.groups.empty() ? std::vector<graph::SequenceGroup>{p.first} : p.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const graph::SequenceGroup& of = groups[g];
    const std::string longest = of.longest > of.context ? fmt::format(" (longest {})", of.longest) : "";
    add(fmt::format("attention of {} x {} new after {}{}", of.count, of.new_tokens, of.context, longest),
        [&](const graph::Op& op) {
          return own(op) && op.scope == graph::Scope::group && static_cast<std::size_t>(op.group) == g;
        });
  }
  add("logits and sampling", [&](const graph::Op& op) { return own(op) && op.scope == graph::Scope::sampled; });
  add("beside the kernels", [&](const graph::Op& op) { return !own(op); });
  return t;
}

// What of the host is taken, or of a device of experts, behind what of the device is.
std::string host_text(const Generation& g) {
  if (g.setup->execution.plan.afd)
    return "; of a device of experts " + of_capacity(g.estimate->expert_memory.total(), g.estimate->capacity);
  if (g.setup->host == nullptr) return "";
  return "; of the host " + of_capacity(g.estimate->host_memory.total(), g.estimate->host_capacity);
}

// Rows that only tables of the whole page say more of stand in the short one.
Fields headline(const Generation& g, bool full) {
  const Estimate& e = *g.estimate;
  const bool several = e.scenario.batch > 1;
  Fields f;
  f.add("request", assumptions_line(g, full));
  if (g.setup->encodes()) {
    const Phase& pass = e.phases.front();
    f.add("time", "{} (bound by {})", with_band(*e.ttft, ttft_band(*g.setup, e)), bound_shares(pass));
    f.add("throughput", "{} sequences/s, {}", number_text(e.sequences_per_second),
          tokens_rate(e.prefill_tokens_per_second));
  } else if (e.ttft) {
    f.add("TTFT", "{} ({}; {})", with_band(*e.ttft, ttft_band(*g.setup, e)), tokens_rate(e.prefill_tokens_per_second),
          prompt_bounds(e));
  }
  if (e.tpot) {
    const Phase& decode = *e.phase("decode");
    const std::string ends = full ? fmt::format(" mean, {} first, {} last", *e.tpot_first, *e.tpot_last) : "";
    f.add("TPOT", "{}{} (bound by {})", with_band(*e.tpot, band(*g.setup, e, "decode")), ends, bound_shares(decode));
    const estimate::Serving& serving = g.setup->serving;
    if (serving.verify > 1) {
      f.add("decode step", "{} mean: verifies {} tokens of every request, keeps {}", decode.time, serving.verify,
            Rounded{serving.accepted});
    }
    if (const Phase* draft = e.phase("draft")) {
      const estimate::SpeculativeRound* best = estimate::best_round(g.rounds);
      f.add("draft", "{} mean for {} token{}, {} of a cycle; {}", draft->time, serving.verify - 1,
            serving.verify == 2 ? "" : "s", Share{draft->time / (draft->time + decode.time)},
            best == nullptr
                ? std::string("no length is faster than decoding without")
                : fmt::format("best with {}: {:.2f} times as fast as without", best->length, best->speedup));
    }
  }
  if (g.setup->execution.plan.afd && e.tpot) {
    const graph::Plan& plan = g.setup->execution.plan;
    const Phase& decode = *e.phase("decode");
    const estimate::Pools busy = estimate::pools_of(decode);
    const auto share = [&](std::size_t pool) { return Share{Seconds{busy[pool]} / decode.time}; };
    f.add("AFD",
          "attention on {} devices busy {}, experts on {} busy {}, dispatch {}, return {}; {} micro-batch{}, bound by "
          "{}; {} tokens/s a device",
          plan.stage(), share(0), plan.expert, share(1), share(2), share(3), decode.micro_batches,
          decode.micro_batches == 1 ? "" : "es", estimate::bound_of(busy, decode.time),
          number_text(e.decode_tokens_per_second / d(plan.devices())));
  }
  if (e.tokens_per_second > 0) {
    f.add("generation", "{} for {} tokens per request: {}{}", e.total, Count(e.scenario.generate - (e.ttft ? 0 : 1)),
          tokens_rate(e.tokens_per_second_per_request) + (e.ttft ? " with the prompt" : ""),
          several ? fmt::format(", {} in total", number_text(e.tokens_per_second)) : "");
  }
  for (const Phase& p : e.phases) {
    if (p.name == "step" && !full) f.add("step", "{}: {}", p.time, parts_text(step_table(p), 2));
  }
  add_spending(g, full, f);
  add_sureness(*g.setup, band_text(*g.setup, e), extrapolations(*g.setup, e.scenario), f);
  if (g.setup->execution.plan.devices() > 1) f.add("network", network_text(e.phases));
  if (!full) f.add("memory", parts_text(device_memory_table("", e.memory, e.capacity)) + host_text(g));
  if (g.room) {
    const estimate::KvCapacity& k = *g.room;
    const auto held = [](Bytes bytes) { return format_bytes_binary(bytes); };
    f.add("KV cache of an engine", "{} tokens in {} of {}; {} sequences of {} tokens, the longest that fits is of {}{}",
          Count(k.tokens), held(k.kv), held(k.usable), Rounded{k.sequences}, Count(k.max_model_len), Count(k.longest),
          e.scenario.batch > e.largest_batch ? "; not all of the batch run at once" : "");
    f.add("beside it", "weights {}{}, step {}{}, graphs {}, rest {}", held(k.weights),
          k.padding.value > 0 ? fmt::format(" ({} of it filled up by kernels)", held(k.padding)) : "",
          held(k.activation), k.images == k.activation ? " (of the largest image)" : "", held(k.graphs), held(k.other));
    if (!k.refusal.empty()) f.add("does not start", k.refusal);
  }
  if (g.setup->host) f.add("offload", offload_text(*g.setup));
  f.add("largest batch", "{} of {}{}{} tokens", requests_text(e.largest_batch),
        e.scenario.depth > 0 ? count_text(e.scenario.depth) + " + " : "", Count(e.scenario.prompt),
        generated_text(g, " + "));
  f.add("longest context", context_text(g));
  if (!full) add_notes(g.setup->notes, f);
  return f;
}

void add_log(const Generation& g, Document& doc) {
  if (!g.log) return;
  const auto amount = [](const estimate::LogPart& p, double value) {
    return p.unit == "bytes"       ? format_bytes_binary(Bytes{value})
           : p.unit == "sequences" ? fmt::format("{:.2f}", value)
                                   : format_count(std::round(value));
  };
  doc.push_back(table_of("Start-up log" + (g.log->version.empty() ? "" : " of " + g.log->version),
                         "part, printed, predicted, off", g.log->parts, [&](const estimate::LogPart& p) {
                           const double off = p.printed > 0 ? p.predicted / p.printed - 1 : 0;
                           return cells(p.name, amount(p, p.printed), amount(p, p.predicted),
                                        fmt::format("{:+.1f} %", 100 * off));
                         }));
}

void add_host_memory(const Generation& g, Document& doc) {
  if (g.setup->execution.plan.afd) {
    doc.push_back(
        device_memory_table("Memory of a device of experts", g.estimate->expert_memory, g.estimate->capacity));
  }
  if (const hardware::Device* host = g.setup->host) {
    doc.push_back(device_memory_table("Memory of the host (" + host->title + ")", g.estimate->host_memory,
                                      g.estimate->host_capacity));
  }
}

// Lengths of a draft, against decoding without one; the best is marked.
Table draft_table(const Generation& g) {
  const estimate::SpeculativeRound* best = estimate::best_round(g.rounds);
  return table_of(best == nullptr ? "Length of the draft: none is faster than decoding without" : "Length of the draft",
                  "tokens, kept, draft, verify, TPOT, speed-up, <", g.rounds, [&](const estimate::SpeculativeRound& r) {
                    std::string mark = &r == best ? "best" : "";
                    if (r.length == g.setup->draft->tokens) mark += mark.empty() ? "taken" : ", taken";
                    return cells(r.length, fmt::format("{:.2f}", r.expected_tokens), r.draft, r.verify,
                                 r.time_per_token(), fmt::format("{:.2f}", r.speedup), mark);
                  });
}

Document document(const Generation& g, Detail detail) {
  const Estimate& e = *g.estimate;
  const bool full = detail != Detail::summary;
  const Table memory = device_memory_table("Memory", e.memory, e.capacity);
  if (!e.fits) {
    const std::string batch = e.largest_batch > 0 ? requests_text(e.largest_batch) + " of this length"
                                                  : "none: not even one request of this length fits";
    std::string needs = of_capacity(e.memory.total(), e.capacity) + host_text(g);
    if (g.setup->execution.plan.afd && e.expert_memory.total() > e.capacity) {  // begins with what does not fit
      needs = of_capacity(e.expert_memory.total(), e.capacity) + " on a device of experts; on one of attention " +
              of_capacity(e.memory.total(), e.capacity);
    }
    Document doc = refused(heading(g), needs, assumptions_line(g, full),
                           {"", {{"largest batch", batch}, {"longest context", context_text(g)}}}, memory, full);
    if (full) add_host_memory(g, doc);
    return doc;
  }
  Document doc{heading(g), sentence(g), headline(g, full)};
  add_log(g, doc);
  if (!full) return doc;
  doc.push_back(phases_table(
      e.phases, fmt::format("Phases (one step; the ridge is at {} FLOP/byte)", Rounded{g.ridge.value, 3})));
  for (const Phase& p : e.phases) {
    if (p.name == "step") doc.push_back(step_table(p));
  }
  if (!g.rounds.empty()) doc.push_back(draft_table(g));
  doc.push_back(memory);
  add_host_memory(g, doc);
  if (g.stages.size() > 1) doc.push_back(stage_table(g));
  if (g.setup->execution.plan.devices() > 1) {
    for (const Phase& p : e.phases)
      doc.push_back(communication_table(g.cluster, g.stages.size() > 1, p, g.setup->execution.model));
  }
  if (detail == Detail::ops) {
    for (const Phase& p : e.phases) doc.push_back(op_table(p, g.setup->execution.model));
  }
  Fields basis = rests_on(*g.setup, figures_used(*g.setup), g.setup->notes);
  if (const std::int64_t n = g.setup->device->devices_per_node; n > 1 && g.setup->execution.plan.devices() == 1)
    basis.add("devices", fmt::format("1 of the {} in a node", n));
  doc.push_back(std::move(basis));
  return doc;
}

}  // namespace

Report estimate_report(const Generation& g, Detail detail, Trace trace) {
  return {document(g, detail), detail == Detail::ops ? ops_csv(g.estimate->phases) : csv_of(g),
          result::document("llmperf.estimate", g), std::move(trace)};
}

}  // namespace llmperf::report
