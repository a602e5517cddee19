#include "report/pages/phase.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "report/quantity.h"
#include "report/rows.h"
#include "result/op_text.h"
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

}  // namespace llmperf::report
