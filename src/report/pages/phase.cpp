#include "report/pages/phase.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/schedule.h"
#include "report/quantity.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/parts.h"

namespace llmperf::report {

using estimate::OpEstimate;
using estimate::Phase;

Fields rests_on(const estimate::Platform& platform, const std::vector<Figure>& figures,
                const std::vector<std::string>& notes) {
  Fields f{"Rests on", {}};
  for (const Figure& figure : figures) f.add(figure.label, "{} ({})", figure.text, figure.provenance);
  if (platform.profile) {
    const hardware::RuntimeProfile& p = *platform.profile;
    const auto fitted = std::count(p.provenance.begin(), p.provenance.end(), hardware::Provenance::fitted);
    f.add("runtime profile",
          p.measured_on(*platform.device)
              ? fmt::format("{}: {} numbers fitted to {} measurements, the rest assumed", p.title, fitted, p.range.rows)
              : p.title + " (assumed for this device)");
  }
  for (const std::string& note : notes) f.add("note", note);
  return f;
}

std::string of_capacity(Bytes part, Bytes whole) { return fmt::format("{} of {}", Held{part}, Held{whole}); }

std::string cost_text(const std::optional<estimate::HourPrice>& price, std::optional<double> cost,
                      std::string_view of) {
  return price && cost ? fmt::format("{} {} {}", Rounded{*cost, 3}, price->currency, of) : "";
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
    const bool trains = platform.profile->workload == hardware::Workload::training;
    if (trains != (file.name == "training")) continue;
    const std::string cell = platform.device->name + ",";
    const std::int64_t before = rows;
    for (std::size_t at = file.text.find(cell); at != std::string_view::npos; at = file.text.find(cell, at + 1)) {
      rows += at > 0 && (file.text[at - 1] == '\n' || file.text[at - 1] == ',') ? 1 : 0;
    }
    if (rows > before) sets += fmt::format("{}{}", sets.empty() ? "" : ", ", file.name);
  }
  if (rows > 0) fields.add("shipped rows", "{} of this device in {} (llmperf validate NAME)", Count(rows), sets);
}

void add_notes(const std::vector<std::string>& notes, Fields& fields) {
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(kMost, notes.size()); ++i) fields.add("note", notes[i]);
  if (notes.size() > kMost) fields.add("", "{} more", notes.size() - kMost);
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
    text += fmt::format("{} {}", static_cast<mapper::Bound>(i), Share{share});
  }
  return text;
}

std::string op_name(const Phase& p, const graph::Op& op, const model::Decoder* model) {
  const std::string name(op.name);
  const bool shared = std::any_of(p.ops.begin(), p.ops.end(), [&](const OpEstimate& other) {
    return other.op.name == op.name && other.op.layer_kind != op.layer_kind;
  });
  const std::string layers = model && shared ? layers_text(*model, op.layer_kind) : "";
  return layers.empty() ? name : fmt::format("{} ({})", name, layers);
}

Table op_table(const Phase& p, const model::Decoder* model, bool hidden) {
  Table t = table_of(
      fmt::format("Ops of {}{}", p.name, p.last.context > p.first.context ? ": mean step; shapes as in the first" : ""),
      "<op, <shape, count, FLOPs, bytes, time, share, <bound, of roof", p.ops, [&](const OpEstimate& o) {
        const double count = d(o.op.count);
        const model::StoredFormat* format = weight_format(o.op);
        const std::string stored = format && !format->name.empty() ? fmt::format(" {}", format->name) : "";
        return cells(op_name(p, o.op, model) + (o.op.place == graph::Place::host ? " (host)" : ""),
                     shape_text(o.op) + stored, o.op.count, Bare{(o.work.matrix + o.work.vector) * count},
                     (o.work.bytes() + o.work.network) * count, o.step_time(), Share{o.step_time() / p.time},
                     o.time.bound, Share{o.time.roof / o.time.total});
      });
  if (!hidden) return t;
  t.columns.push_back({"hidden"});
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    t.rows[i].push_back(p.ops[i].hidden.value > 0 ? format_seconds(p.ops[i].hidden) : "");
  }
  return t;
}

Table phases_table(std::span<const Phase> phases, std::string title) {
  return table_of(std::move(title), "<phase, steps, time, all steps, FLOPs, bytes, FLOP/byte, <bound, of roof", phases,
                  [](const Phase& p) {
                    const bool works = p.roof.value > 0;
                    const auto of = [&](auto value) { return works ? std::optional(value) : std::nullopt; };
                    return cells(p.name, p.steps, p.time, p.total(), of(p.work.matrix + p.work.vector),
                                 of(p.work.bytes()), of(Rounded{p.intensity().value, 3}), p.bound,
                                 of(Share{p.roof / p.time}));
                  });
}

Table ops_csv(std::span<const Phase> phases, Also also) {
  std::vector<PhaseOp> all;
  for (const Phase& p : phases) {
    const std::vector<PhaseOp> ops = ops_of(PhaseResult{&p, nullptr, also});
    all.insert(all.end(), ops.begin(), ops.end());
  }
  if (also == Also::hidden) {
    return csv_of(
        all, "phase, steps, name, kind, shape, count, flops, bytes, network_bytes, time_s, hidden_s, bound, roof_s");
  }
  return csv_of(all,
                "phase, name, kind, shape, count, flops, bytes, time_s, share, bound, roof_s, place, weights, "
                "network_bytes, axis, ranks");
}

Table capacity_table(std::string title, Bytes capacity, std::vector<std::pair<std::string, Bytes>> rows) {
  rows.emplace_back("capacity", capacity);
  return table_of(std::move(title), "<what, size, of capacity", rows,
                  [&](const auto& row) { return cells(row.first, Held{row.second}, Share{row.second / capacity}); });
}

Table device_memory_table(std::string title, const cost::Memory& m, Bytes capacity) {
  std::vector<std::pair<std::string, Bytes>> rows = {
      {"weights", m.weights},
      {"gradients", m.gradients},
      {"optimiser state", m.optimizer},
      {"KV cache", m.kv_cache},
      {"recurrent state", m.state},
      {"draft: weights", m.draft},
      {"draft: cache", m.draft_cache},
      {m.gradients.value > 0 ? "activations kept" : "activations (peak)", m.activation},
      {"workspace", m.workspace},
      {"runtime reserve", m.reserve}};
  std::erase_if(rows, [](const auto& row) { return row.second.value == 0; });
  rows.emplace_back("total", m.total());
  return capacity_table(std::move(title), capacity, std::move(rows));
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
  return fmt::format("{} {}/h ({})", Rounded{cost_per_hour}, price.currency, price.text());
}

std::string slo_bound_text(const ServedBound& b) {
  const std::string what =
      fmt::format("{}{}{}.{}", b.bound.of, b.bound.of.empty() ? "" : ": ", b.bound.metric, b.bound.statistic);
  if (!b.value)
    return fmt::format("{} {}, and {} is promised", what,
                       b.full ? "is missed by those that were rejected" : "grows without end", b.bound.limit);
  return fmt::format("{} is {}, {} {} {}", what, Seconds{*b.value}, Share{std::abs(*b.excess())},
                     b.met() ? "below" : "above", b.bound.limit);
}

void add_spent(const std::optional<estimate::HourPrice>& price, const estimate::Spent& spent, std::string_view run,
               Fields& fields) {
  if (price && spent.cost) {
    fields.add("cost", "{} {} {}; {}", Rounded{*spent.cost, 3}, price->currency, run,
               price_text(*price, *spent.cost_per_hour));
  }
  if (spent.joules) {
    fields.add("energy", "{} J {}; {} W ({})", number_text(*spent.joules), run, number_text(*spent.power_w),
               estimate::kPowerBound);
  }
}

std::string network_text(std::span<const Phase> phases) {
  std::string text;
  for (const Phase& p : phases) {
    Seconds network;
    for (const OpEstimate& o : p.ops) network += o.time.bound == mapper::Bound::network ? o.step_time() : Seconds{};
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", Share{network / p.ops_time}, p.name);
    if (p.overlapped.value > 0) text += fmt::format(" ({} beside other work)", p.overlapped);
    if (p.batches() > 1 || p.bubble.value > 0)
      text += fmt::format(" ({} micro-batch{}, {} bubble)", p.batches(), p.batches() == 1 ? "" : "es",
                          Share{p.bubble / p.time});
  }
  return text;
}

Table exchange_table(std::string title, const std::vector<Exchange>& exchanges, const cost::Cluster* cluster) {
  Table t = titled(std::move(title), "<op, <exchange, count, payload, sent, time, shows");
  if (cluster) t.columns.push_back({"algorithm", true});
  Bytes sent;
  Seconds time;
  Seconds shows;
  for (const Exchange& e : exchanges) {
    const auto& c = std::get<graph::Collective>(e.op->op.body);
    const double steps = d(e.steps);
    const Bytes volume = e.op->work.network * (d(e.op->op.count) * steps);
    const Seconds took = e.op->step_time() * steps;
    const Seconds exposed = took - e.hidden * steps;
    add_row(t, e.name, fmt::format("{}, {} {}", c.kind, c.axis, c.ranks), e.op->op.count * e.steps, c.bytes(), volume,
            took, exposed);
    if (cluster) t.rows.back().emplace_back(cost::name(cost::collective_cost(*cluster, c).algorithm));
    sent += volume;
    time += took;
    shows += exposed;
  }
  add_row(t, "total", "", "", "", sent, time, shows);
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
  std::string keys = "first_layer: from layer, layers, weight_bytes: weights, kv_cache_bytes: KV cache";
  if (g.setup->draft) keys += ", draft_bytes: draft";
  // llama.cpp's buffers are those of each device; other activations are the same on all.
  if (g.setup->execution.weights.gguf) keys += ", activation_bytes: compute buffers, total_bytes: total";
  if (!g.setup->cards.empty()) keys += ", capacity_bytes: capacity, device";
  return table_of("Pipeline stages (one device of each)", g.stages, keys);
}

std::string plan_text(const estimate::VideoSetup& setup) {
  std::string text = devices_text(setup.cluster, setup.devices()) + ": ";
  if (setup.stages.size() == 1) return text + graph::to_text(setup.stages.front().plan);
  std::vector<std::string> stages;
  for (const estimate::VideoStage& stage : setup.stages) {
    graph::Plan plan = stage.plan;
    plan.pipeline = 1;
    const std::string divided = plan.stage() > 1 ? fmt::format(" ({})", graph::to_text(plan)) : "";
    stages.push_back(fmt::format("{}-{}{}", stage.first, stage.last, divided));
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
      setup.weights_name, e.activations, e.text_activations, options_text(setup));
  if (setup.profile) text += fmt::format("; runtime {}, {}", setup.profile->name, setup.dispatch);
  if (setup.devices() > 1) text += "; " + plan_text(setup);
  return text;
}

}  // namespace llmperf::report
