#include "report/pages/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "estimate/schedule.h"
#include "report/pages/phase.h"
#include "report/quantity.h"

namespace llmperf::report {

using estimate::OpEstimate;
using estimate::Phase;

std::string title_text(const hardware::Device& device, std::int64_t devices) {
  return devices > 1 ? fmt::format("{} x {}", devices, device.title) : device.title;
}

std::string title_text(const estimate::Setup& setup) {
  if (setup.cards.empty()) return title_text(*setup.device, setup.execution.plan.devices());
  std::vector<std::string> titles;
  for (auto card = setup.cards.begin(); card != setup.cards.end();) {
    const auto next = std::find_if(card, setup.cards.end(), [&](const estimate::Card& other) {
      return other.device->title != card->device->title;
    });
    titles.push_back(title_text(*card->device, next - card));
    card = next;
  }
  return join(titles, " + ");
}

std::string devices_text(const cost::Cluster& cluster, std::int64_t devices) {
  // A node may be as large as an integer goes.
  const std::int64_t nodes = 1 + (devices - 1) / cluster.devices_per_node;
  return fmt::format("{} devices on {} {}", devices, nodes, nodes == 1 ? "node" : "nodes");
}

std::string plan_text(const estimate::Setup& setup, const graph::StageSplit& split) {
  const graph::Plan& plan = setup.execution.plan;
  return fmt::format("{}: {}{}{}", devices_text(setup.cluster, plan.devices()), graph::to_text(plan),
                     split.equal() ? "" : "; stages " + graph::to_text(split),
                     plan.tensor == 1       ? ""
                     : plan.shard_embedding ? "; embedding sharded"
                                            : "; embedding replicated");
}

std::string price_text(const estimate::HourPrice& price, double cost_per_hour) {
  return fmt::format("{} {}/h ({})", format_significant(cost_per_hour), price.currency, price.text());
}

std::string slo_bound_text(const ServedBound& b) {
  const std::string what = fmt::format("{}.{}", name(b.bound.metric), b.bound.statistic);
  if (!b.value) return fmt::format("{} grows without end, and {} is promised", what, format_seconds(b.bound.limit));
  return fmt::format("{} is {}, {} {} {}", what, format_seconds(Seconds{*b.value}), format_share(std::abs(*b.excess())),
                     b.met() ? "below" : "above", format_seconds(b.bound.limit));
}

void add_spent(const std::optional<estimate::HourPrice>& price, const estimate::Spent& spent, std::string_view run,
               Fields& fields) {
  if (price && spent.cost) {
    fields.add("cost", fmt::format("{} {} {}; {}", format_significant(*spent.cost, 3), price->currency, run,
                                   price_text(*price, *spent.cost_per_hour)));
  }
  if (spent.joules) {
    fields.add("energy", fmt::format("{} J {}; {} W ({})", number_text(*spent.joules), run, number_text(*spent.power_w),
                                     estimate::kPowerBound));
  }
}

std::string network_text(std::span<const Phase> phases) {
  std::string text;
  for (const Phase& p : phases) {
    Seconds network;
    for (const OpEstimate& o : p.ops) network += o.time.bound == mapper::Bound::network ? o.step_time() : Seconds{};
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", format_share(network / p.ops_time), p.name);
    if (p.overlapped.value > 0) text += fmt::format(" ({} beside other work)", format_seconds(p.overlapped));
    if (p.batches() > 1 || p.bubble.value > 0)
      text += fmt::format(" ({} micro-batch{}, {} bubble)", p.batches(), p.batches() == 1 ? "" : "es",
                          format_share(p.bubble / p.time));
  }
  return text;
}

Table exchange_table(std::string title, const std::vector<Exchange>& exchanges, const cost::Cluster* cluster) {
  Table t{
      std::move(title), {{"op", true}, {"exchange", true}, {"count"}, {"payload"}, {"sent"}, {"time"}, {"shows"}}, {}};
  if (cluster) t.columns.push_back({"algorithm", true});
  Bytes sent;
  Seconds time;
  Seconds shows;
  for (const Exchange& e : exchanges) {
    const auto& c = std::get<graph::Collective>(e.op->op.body);
    const auto steps = static_cast<double>(e.steps);
    const Bytes volume = e.op->work.network * (static_cast<double>(e.op->op.count) * steps);
    const Seconds took = e.op->step_time() * steps;
    const Seconds exposed = took - e.hidden * steps;
    t.rows.push_back({e.name, fmt::format("{}, {} {}", name(c.kind), name(c.axis), c.ranks),
                      std::to_string(e.op->op.count * e.steps), format_bytes(c.bytes()), format_bytes(volume),
                      format_seconds(took), format_seconds(exposed)});
    if (cluster) t.rows.back().emplace_back(cost::name(cost::collective_cost(*cluster, c).algorithm));
    sent += volume;
    time += took;
    shows += exposed;
  }
  t.rows.push_back({"total", "", "", "", format_bytes(sent), format_seconds(time), format_seconds(shows)});
  if (cluster) t.rows.back().emplace_back("");
  return t;
}

namespace {

// Exchanges of one name that differ in nothing: layers of several kinds have them.
bool same(const Exchange& a, const Exchange& b) {
  return a.op->op.name == b.op->op.name && a.op->op.count == b.op->op.count &&
         std::get<graph::Collective>(a.op->op.body).bytes() == std::get<graph::Collective>(b.op->op.body).bytes() &&
         a.op->time.total == b.op->time.total && a.hidden == b.hidden;
}

}  // namespace

Table communication_table(const cost::Cluster& cluster, bool pipeline, const Phase& p, const model::Decoder* model) {
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    if (p.ops[i].op.place != graph::Place::network) continue;
    const Exchange exchange{&p.ops[i], 1, estimate::hidden_time(p.ops, i), op_name(p, p.ops[i].op, model)};
    const auto alike =
        std::find_if(exchanges.begin(), exchanges.end(), [&](const Exchange& e) { return same(e, exchange); });
    if (alike == exchanges.end()) {
      exchanges.push_back(exchange);
    } else {
      ++alike->steps;
      alike->name = p.ops[i].op.name;
    }
  }
  return exchange_table(
      fmt::format("Communication of {} (one step, one device{})", p.name, pipeline ? " of every stage" : ""), exchanges,
      &cluster);
}

Table stage_table(const Generation& g) {
  Table t{"Pipeline stages (one device of each)", {{"stage"}, {"layers"}, {"weights"}, {"KV cache"}}, {}};
  const bool drafts = g.setup->draft.has_value();
  if (drafts) t.columns.push_back({"draft"});
  // llama.cpp's buffers are those of each device; other activations are the same on all.
  const bool gguf = g.setup->execution.weights.gguf;
  if (gguf) t.columns.insert(t.columns.end(), {{"compute buffers"}, {"total"}});
  const bool unlike = !g.setup->cards.empty();
  if (unlike) t.columns.insert(t.columns.end(), {{"capacity"}, {"device", true}});
  for (const StageHeld& stage : g.stages) {
    t.rows.push_back({std::to_string(t.rows.size() + 1), std::to_string(stage.layers),
                      format_bytes_binary(stage.memory.weights), format_bytes_binary(stage.memory.kv_cache)});
    if (drafts) t.rows.back().push_back(format_bytes_binary(stage.memory.draft + stage.memory.draft_cache));
    if (gguf) {
      t.rows.back().push_back(format_bytes_binary(stage.memory.activation));
      t.rows.back().push_back(format_bytes_binary(stage.memory.total()));
    }
    if (unlike) {
      t.rows.back().push_back(format_bytes_binary(stage.capacity));
      t.rows.back().push_back(stage.device);
    }
  }
  return t;
}

std::string plan_text(const estimate::VideoSetup& setup) {
  std::string text = devices_text(setup.cluster, setup.devices()) + ": ";
  if (setup.stages.size() == 1) return text + graph::to_text(setup.stages.front().plan);
  std::vector<std::string> stages;
  for (const estimate::VideoStage& stage : setup.stages) {
    graph::Plan plan = stage.plan;
    plan.pipeline = 1;
    const bool divided = plan.stage() > 1;
    stages.push_back(
        fmt::format("{}-{}{}", stage.first, stage.last, divided ? " (" + graph::to_text(plan) + ")" : std::string()));
  }
  text += fmt::format("{} stages of the depth, {}", stages.size(), join(stages, ", "));
  if (setup.execution.patches > 1) text += fmt::format("; {} patches", setup.execution.patches);
  return text;
}

std::string request_text(const estimate::VideoSetup& setup) {
  const graph::VideoExecution& e = setup.execution;
  const model::VideoShape& s = e.shape;
  std::string text = s.is_image() ? "an image" : fmt::format("{} frames", s.frames);
  if (e.videos > 1) text = fmt::format("{} times {}", e.videos, text);
  text += fmt::format(
      " of {}x{} (height x width); {} steps {} guidance, {} text tokens; weights {}, activations {}, text encoder {}; "
      "options {}",
      s.size.height, s.size.width, setup.scenario.steps, e.guidance ? "with" : "without", e.text_tokens,
      setup.weights_name, name(e.activations), name(e.text_activations), options_text(setup));
  if (setup.profile) text += fmt::format("; runtime {}, {}", setup.profile->name, hardware::name(setup.dispatch));
  if (setup.devices() > 1) text += "; " + plan_text(setup);
  return text;
}

}  // namespace llmperf::report
