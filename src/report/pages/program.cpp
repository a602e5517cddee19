// `llmperf graph`.
#include "result/program.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

using estimate::OpEstimate;
using estimate::OpGroup;
using estimate::Phase;
using program::LoweredOp;
using program::NodeId;
using program::Program;
using program::ProgramEstimate;
using program::ProgramSetup;

// At most `width` columns, the middle left out.
std::string shortened(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  const std::size_t half = (width - 1) / 2;
  return std::string(text.substr(0, width - 1 - half)) + "…" + std::string(text.substr(text.size() - half));
}

constexpr std::size_t kMostScopes = 20;  // rows of the table; the JSON has all

Fields headline(const ProgramStudy& study) {
  const ProgramEstimate& e = *study.estimate;
  const Phase& p = e.phase();
  const bool runs = p.time.value > 0;
  Fields f;
  f.add("time", runs ? fmt::format("{} (bound by {})", p.time, bound_shares(p)) : "0 s");
  if (runs) f.add("of roof", format_share(p.roof / p.time));
  const std::string reached = e.peak.value > 0 ? fmt::format(", {} of {}", Share{e.utilisation}, e.peak) : "";
  f.add("matrix FLOPs", format_flops(p.work.matrix) + reached);
  f.add("vector FLOPs", format_flops(p.work.vector));
  f.add("memory traffic", format_bytes(p.work.bytes()));
  if (p.work.network.value > 0) f.add("network", network_text({&p, 1}));
  f.add("error band", study.setup->profile == nullptr ? no_band_text(*study.setup)
                                                      : "none: the profile was compared with no compiled programs");
  f.add("memory", "{}: needs {}", e.fits ? "fits" : "does not fit", of_capacity(e.memory.total(), e.capacity));
  return f;
}

std::string program_text(const ProgramStudy& study) {
  const Program& program = *study.program;
  const auto idle = std::ranges::count(program.nodes, program::OpClass::free,
                                       [](const program::Node& node) { return node.traits.op_class; });
  const bool fused = study.setup->fusion != program::Fusion::none;
  std::string text = fmt::format("{} instructions unfold to {} ops, {} of them without work; {} kernels{}",
                                 Count(program.module->instructions), Count(program.nodes.size()), Count(idle),
                                 Count(study.estimate->lowered.ops.size()), fused ? ", element-wise ones fused" : "");
  if (study.setup->devices > 1) {
    text += fmt::format("; of one of {}", devices_text(study.setup->cluster, study.setup->devices));
  }
  return text;
}

// The first groups, and all others as one.
Table group_table(std::string title, std::string_view what, const std::vector<OpGroup>& groups, Seconds all,
                  std::size_t most) {
  std::vector<OpGroup> shown(groups.begin(),
                             groups.begin() + static_cast<std::ptrdiff_t>(std::min(most, groups.size())));
  for (OpGroup& g : shown) g.name = g.name.empty() ? "(no location)" : shortened(g.name, 29);
  if (groups.size() > most) {
    OpGroup& rest = shown.emplace_back();
    rest.name = fmt::format("{} others", groups.size() - most);
    for (std::size_t n = most; n < groups.size(); ++n) rest += groups[n];
  }
  return table_of(std::move(title), fmt::format("<{}, runs, matrix, vector, bytes, time, share, <bound, of roof", what),
                  shown, [&](const OpGroup& g) {
                    return cells(g.name, Count(g.count), Bare{g.work.matrix}, Bare{g.work.vector},
                                 g.work.bytes() + g.work.network, g.time, share_of(g.time, all), g.bound(),
                                 share_of(g.roof, g.time));
                  });
}

Table block_table(const program::Blocks& blocks) {
  Table t = titled("Transformer blocks",
                   "<block, layers, <attention, batch, queries, keys, heads, kv, width, hidden, <feed-forward");
  for (const auto& block : blocks.blocks) {
    std::string feed_forward = "-";
    if (block.feed_forward) {
      const auto& f = *block.feed_forward;
      feed_forward = fmt::format("{}{}{}", f.intermediate, f.gated ? " gated" : "",
                                 f.experts > 0 ? fmt::format(", {} experts", f.experts) : "");
    }
    const std::size_t first = t.rows.size();
    for (const auto& a : block.attentions) {
      add_row(t, "", "", a.kind, a.batch, a.queries, a.keys, a.heads, a.kv_heads, a.head_dim, "", "");
    }
    if (block.attentions.empty()) add_row(t, "", "", "none", "", "", "", "", "", "", "", "");
    std::vector<std::string>& row = t.rows[first];
    row[0] = block.name;
    row[1] = std::to_string(block.layers);
    row[9] = std::to_string(block.hidden);
    row[10] = feed_forward;
  }
  return t;
}

// The products of a block by what they are for.
Table role_table(const ProgramStudy& study) {
  Table t =
      titled("Matrix products by role", "<block, <role, <shape (m x k x n), runs, FLOPs, time, share, of peak, <bound");
  const ProgramEstimate& e = *study.estimate;
  std::map<NodeId, std::size_t> op_of;
  for (std::size_t n = 0; n < e.lowered.ops.size(); ++n) {
    for (const NodeId node : e.lowered.ops[n].nodes) {
      if (!e.lowered.ops[n].copy) op_of[node] = n;
    }
  }
  const auto rows = [&](const std::string& block, const std::vector<program::RoleNodes>& products) {
    for (const auto& product : products) {
      const OpEstimate* one = nullptr;
      std::int64_t runs = 0;
      Flops flops;
      Seconds time;
      Seconds peak;  // that the products would take at it
      for (const NodeId node : product.nodes) {
        const auto found = op_of.find(node);
        if (found == op_of.end()) continue;
        one = &e.phase().ops[found->second];
        runs += one->op.count;
        flops += one->work.matrix * d(one->op.count);
        time += one->step_time();
        peak += one->step_time() * e.of_peak[found->second];
      }
      if (one == nullptr || time.value == 0) continue;
      const bool alike = std::all_of(product.nodes.begin(), product.nodes.end(), [&](NodeId node) {
        const auto found = op_of.find(node);
        return found == op_of.end() || shape_text(e.phase().ops[found->second].op) == shape_text(one->op);
      });
      add_row(t, block, product.role, alike ? shape_text(one->op) : "various", runs, Bare{flops}, time,
              share_of(time, e.phase().time), Share{peak / time}, one->time.bound);
    }
  };
  for (const auto& block : study.blocks->blocks) rows(block.name, block.products);
  rows("", study.blocks->outside);
  return t;
}

Table collective_table(const ProgramStudy& study) {
  Table t = titled("Communication (of one device)", "<op, <groups, runs, payload, sent, <algorithm, steps, time");
  const ProgramEstimate& e = *study.estimate;
  const cost::Cluster charged = study.setup->charged_cluster();
  Bytes sent;
  Seconds time;
  for (std::size_t n = 0; n < e.lowered.ops.size(); ++n) {
    const OpEstimate& op = e.phase().ops[n];
    const auto* c = std::get_if<graph::Collective>(&op.op.body);
    if (c == nullptr) continue;
    const cost::CollectiveCost cost = cost::collective_cost(charged, *c);
    const Bytes volume = op.work.network * d(op.op.count);
    add_row(t, c->kind, shortened(e.lowered.ops[n].groups, 28), op.op.count, c->bytes(), volume, cost.algorithm,
            Rounded{cost.steps}, op.step_time());
    sent += volume;
    time += op.step_time();
  }
  if (!t.rows.empty()) add_row(t, "total", "", "", "", sent, "", "", time);
  return t;
}

Table memory_table(const ProgramEstimate& e) {
  return capacity_table("Memory", e.capacity,
                        {{"arguments (weights and inputs)", e.lowered.arguments},
                         {"constants", e.lowered.constants},
                         {"intermediate values (most at once)", e.lowered.intermediate},
                         {"runtime reserve", e.memory.reserve},
                         {"total", e.memory.total()}});
}

// "add" of "stablehlo.add".
std::string without_dialect(const std::string& name) {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos || name.find(' ') < dot ? name : name.substr(dot + 1);
}

Table program_op_table(const ProgramStudy& study) {
  return table_of("Ops", "line, <op, <result, runs, matrix, vector, bytes, time, <bound, of roof", kernels_of(study),
                  [](const Kernel& k) {
                    const OpEstimate& op = k.op();
                    const double count = d(op.op.count);
                    return cells(k.line(), shortened(without_dialect(k.name()), 21), shortened(k.results(), 21),
                                 op.op.count, Bare{op.work.matrix * count}, Bare{op.work.vector * count},
                                 (op.work.bytes() + op.work.network) * count, op.step_time(), op.time.bound,
                                 share_of(op.time.roof, op.time.total));
                  });
}

Table unknown_table(const Program& program) {
  return table_of("Without a known meaning: no work is counted for these", "<what, first in line, runs",
                  program.unknown,
                  [](const auto& unknown) { return cells(shortened(unknown.name, 70), unknown.line, unknown.count); });
}

Table loop_table(const Program& program) {
  return table_of("Loops", "<loop, line, passes, <from", program.loops, [](const program::Loop& loop) {
    return cells(loop.name, loop.instruction->line, loop.trips,
                 loop.known  ? "the program, or --trip-count"
                 : loop.most ? "the most that it can run"
                             : "not known: counted once");
  });
}

Document document(const ProgramStudy& study, Detail detail) {
  const ProgramEstimate& e = *study.estimate;
  const ProgramSetup& setup = *study.setup;
  Document doc{Heading{setup.name + " on " + title_text(*setup.device, setup.devices), label(setup)},
               Paragraph{program_text(study)}};
  doc.push_back(headline(study));
  if (!study.program->unknown.empty()) doc.push_back(unknown_table(*study.program));
  doc.push_back(group_table("By kind of op", "op", e.kinds, e.phase().time, e.kinds.size()));
  if (!e.scopes.empty()) {
    doc.push_back(group_table("By place in the source", "scope", e.scopes, e.phase().time, kMostScopes));
  }
  if (!study.blocks->blocks.empty()) doc.push_back(block_table(*study.blocks));
  for (Table& table : std::array{role_table(study), collective_table(study)}) {
    if (!table.rows.empty()) doc.push_back(std::move(table));
  }
  if (!study.program->loops.empty()) doc.push_back(loop_table(*study.program));
  doc.push_back(memory_table(e));
  if (detail == Detail::ops) doc.push_back(program_op_table(study));
  doc.push_back(rests_on(setup, figures_used(setup, e.products), all_notes(study)));
  return doc;
}

}  // namespace

Report program_report(const ProgramStudy& study, Detail detail, bool json) {
  constexpr std::string_view kOps =
      "line, name, class, scope, result, count, matrix_flops, vector_flops, bytes, network_bytes, time_s, roof_s, "
      "bound, "
      "role, groups";
  constexpr std::string_view kProgram =
      "program, hardware, devices, fuse, label, runtime, fits, time_s, roof_s, matrix_flops, vector_flops, bytes, "
      "network_bytes, utilisation, argument_bytes, constant_bytes, activation_bytes, reserve_bytes, total_bytes, "
      "capacity_bytes, unknown";
  return {document(study, detail),
          detail == Detail::ops ? csv_of(kernels_of(study), kOps) : csv_of(std::span(&study, 1), kProgram),
          json ? result::document("llmperf.graph", study) : std::string()};
}

}  // namespace llmperf::report
