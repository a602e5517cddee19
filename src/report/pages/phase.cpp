#include "report/pages/phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/schedule.h"
#include "report/quantity.h"
#include "report/rows.h"
#include "result/parts.h"

namespace llmperf::report {

using estimate::OpEstimate;
using estimate::Phase;

Fields rests_on(const estimate::Platform& platform, const std::vector<Figure>& figures,
                const std::vector<std::string>& notes) {
  Fields f{"Rests on", {}};
  for (const Figure& figure : figures) {
    f.rows.emplace_back(figure.label, fmt::format("{} ({})", figure.text, hardware::name(figure.provenance)));
  }
  if (platform.profile) {
    const hardware::RuntimeProfile& p = *platform.profile;
    const auto fitted = std::count(p.provenance.begin(), p.provenance.end(), hardware::Provenance::fitted);
    f.rows.emplace_back(
        "runtime profile",
        p.measured_on(*platform.device)
            ? fmt::format("{}: {} numbers fitted to {} measurements, the rest assumed", p.title, fitted, p.range.rows)
            : p.title + " (assumed for this device)");
  }
  for (const std::string& note : notes) f.add("note", note);
  return f;
}

std::string of_capacity(Bytes part, Bytes whole) {
  return fmt::format("{} of {}", format_bytes_binary(part), format_bytes_binary(whole));
}

std::string cost_text(const std::optional<estimate::HourPrice>& price, std::optional<double> cost,
                      std::string_view of) {
  return price && cost ? fmt::format("{} {} {}", format_significant(*cost, 3), price->currency, of) : "";
}

Paragraph opening(const std::string& speed, Bytes needs, Bytes capacity, const std::string& cost,
                  const estimate::Platform& platform, std::initializer_list<std::optional<Band>> bands, bool beyond) {
  double least = 0;
  double most = 0;
  for (const std::optional<Band>& band : bands) {
    if (!band) continue;
    least = least > 0 ? std::min(least, band->mean) : band->mean;
    most = std::max(most, band->mean);
  }
  std::string sure = most > 0 ? "±" : platform.profile ? "error not known" : "no error band";
  if (band_share(least) != band_share(most)) sure += format_significant(100 * least, 2) + " to ";
  if (most > 0) sure += band_share(most);
  if (platform.profile) sure += beyond ? ", extrapolated" : ", inside of what was measured";
  return {fmt::format("{}; fits in {}; {}{}{}.", speed, of_capacity(needs, capacity), cost, cost.empty() ? "" : "; ",
                      sure)};
}

std::string parts_text(const Table& table, std::size_t column) {
  std::string text;
  for (const auto& row : table.rows) {
    if (row[0] == "total") break;
    if (row[column].starts_with("0 ") || row[column] == "0.0 %") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row[0], row[column]);
  }
  return text;
}

void add_sureness(const estimate::Platform& platform, const std::string& band, const std::vector<std::string>& beyond,
                  Fields& fields) {
  fields.add("error band", band);
  if (!beyond.empty()) fields.add("extrapolated", join(beyond, "; "));
  if (platform.profile == nullptr || platform.profile->measured_on(*platform.device)) return;
  std::string sets;
  std::int64_t rows = 0;  // in whose cells the name stands
  for (const descriptor::EmbeddedFile& file : descriptor::embedded_files()) {
    if (file.kind != descriptor::Kind::measurements) continue;
    const std::string cell = platform.device->name + ",";
    const std::int64_t before = rows;
    for (std::size_t at = file.text.find(cell); at != std::string_view::npos; at = file.text.find(cell, at + 1)) {
      rows += at > 0 && (file.text[at - 1] == '\n' || file.text[at - 1] == ',') ? 1 : 0;
    }
    if (rows > before) sets += fmt::format("{}{}", sets.empty() ? "" : ", ", file.name);
  }
  if (rows > 0)
    fields.add("shipped rows", fmt::format("{} of this device in {} (llmperf validate NAME)", count_text(rows), sets));
}

void add_notes(const std::vector<std::string>& notes, Fields& fields) {
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(kMost, notes.size()); ++i) fields.add("note", notes[i]);
  if (notes.size() > kMost) fields.add("", fmt::format("{} more", notes.size() - kMost));
}

Document refused(Heading heading, const std::string& needs, const std::string& request, Fields rows, Table memory,
                 bool full) {
  rows.rows.insert(rows.rows.begin(), {{"request", request}, {"memory", parts_text(memory)}});
  Document doc{std::move(heading), Paragraph{fmt::format("It does not fit: needs {}.", needs)}, std::move(rows)};
  if (full) doc.push_back(std::move(memory));
  return doc;
}

std::string bound_shares(std::span<const Phase> phases) {
  std::string text;
  for (std::size_t i = 0; i < mapper::kBounds; ++i) {
    Seconds bound;
    Seconds all;
    for (const Phase& p : phases) {
      bound += p.bound_time[i] * static_cast<double>(p.steps);
      all += (p.ops_time - p.overlapped) * static_cast<double>(p.steps);
    }
    const double share = bound / all;
    if (share < 0.0005) continue;  // would print as 0.0 %
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", mapper::name(static_cast<mapper::Bound>(i)), format_share(share));
  }
  return text;
}

std::string flops_cell(Flops flops) {
  std::string text = format_flops(flops);
  text.resize(text.size() - std::string_view("FLOP").size());
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string op_name(const Phase& p, const graph::Op& op, const model::Decoder* model) {
  const std::string name(op.name);
  const bool shared = std::any_of(p.ops.begin(), p.ops.end(), [&](const OpEstimate& other) {
    return other.op.name == op.name && other.op.layer_kind != op.layer_kind;
  });
  const std::string layers = model && shared ? layers_text(*model, op.layer_kind) : "";
  return layers.empty() ? name : fmt::format("{} ({})", name, layers);
}

Table op_table(const Phase& p, const model::Decoder* model) {
  Table t{
      fmt::format("Ops of {}{}", p.name, p.last.context > p.first.context ? ": mean step; shapes as in the first" : ""),
      {{"op", true},
       {"shape", true},
       {"count"},
       {"FLOPs"},
       {"bytes"},
       {"time"},
       {"share"},
       {"bound", true},
       {"of roof"}},
      {}};
  for (const OpEstimate& o : p.ops) {
    const double count = static_cast<double>(o.op.count);
    std::string name = op_name(p, o.op, model);
    if (o.op.place == graph::Place::host) name += " (host)";
    const model::StoredFormat* format = weight_format(o.op);
    const std::string shape =
        shape_text(o.op) + (format && !format->name.empty() ? fmt::format(" {}", format->name) : "");
    t.rows.push_back({name, shape, std::to_string(o.op.count), flops_cell((o.work.matrix + o.work.vector) * count),
                      format_bytes((o.work.bytes() + o.work.network) * count), format_seconds(o.step_time()),
                      format_share(o.step_time() / p.time), std::string(mapper::name(o.time.bound)),
                      format_share(o.time.roof / o.time.total)});
  }
  return t;
}

Table ops_csv(std::span<const Phase> phases, Also also) {
  std::vector<PhaseOp> all;
  for (const Phase& p : phases) {
    const std::vector<PhaseOp> ops = ops_of(PhaseResult{&p, nullptr, also});
    all.insert(all.end(), ops.begin(), ops.end());
  }
  if (also == Also::hidden) {
    return csv_of(all, {"phase", "steps", "name", "kind", "shape", "count", "flops", "bytes", "network_bytes", "time_s",
                        "hidden_s", "bound", "roof_s"});
  }
  return csv_of(all, {"phase", "name", "kind", "shape", "count", "flops", "bytes", "time_s", "share", "bound", "roof_s",
                      "place", "weights", "network_bytes", "axis", "ranks"});
}

Table capacity_table(std::string title, Bytes capacity, std::vector<std::pair<std::string, Bytes>> rows) {
  Table t{std::move(title), {{"what", true}, {"size"}, {"of capacity"}}, {}};
  rows.emplace_back("capacity", capacity);
  for (const auto& [what, bytes] : rows) {
    t.rows.push_back({what, format_bytes_binary(bytes), format_share(bytes / capacity)});
  }
  return t;
}

// ---- What the outputs of an estimate say about a plan.

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
