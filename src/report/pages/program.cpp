// `llmperf graph`.
#include "result/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

using estimate::OpEstimate;
using estimate::OpGroup;
using estimate::Phase;
using estimate::ProgramEstimate;
using estimate::ProgramSetup;
using program::LoweredOp;
using program::NodeId;
using program::Program;

// At most `width` columns, the middle left out.
std::string shortened(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  const std::size_t half = (width - 1) / 2;
  return std::string(text.substr(0, width - 1 - half)) + "…" + std::string(text.substr(text.size() - half));
}

constexpr std::size_t kMostScopes = 20;  // rows of the table; the JSON has all

Fields headline(const ProgramStudy& study) {
  const ProgramEstimate& e = *study.estimate;
  const ProgramSetup& setup = *study.setup;
  const Phase& p = e.phase();
  Fields f;
  f.add("time", p.time.value > 0 ? fmt::format("{} (bound by {})", format_seconds(p.time), bound_shares(p)) : "0 s");
  if (p.time.value > 0) f.add("of roof", format_share(p.roof / p.time));
  f.add("matrix FLOPs",
        fmt::format("{}{}", format_flops(p.work.matrix),
                    e.peak.value > 0 ? fmt::format(", {} of {}", format_share(e.utilisation), format_flops_rate(e.peak))
                                     : std::string()));
  f.add("vector FLOPs", format_flops(p.work.vector));
  f.add("memory traffic", format_bytes(p.work.bytes()));
  if (p.work.network.value > 0) f.add("network", network_text({&p, 1}));
  f.add("error band",
        setup.profile == nullptr ? no_band_text(setup) : "none: the profile was compared with no compiled programs");
  f.add("memory",
        fmt::format("{}: needs {}", e.fits ? "fits" : "does not fit", of_capacity(e.memory.total(), e.capacity)));
  return f;
}

std::string program_text(const ProgramStudy& study) {
  const Program& program = *study.program;
  std::int64_t idle = 0;
  for (const auto& node : program.nodes) idle += node.traits.op_class == program::OpClass::free ? 1 : 0;
  const auto nodes = static_cast<std::int64_t>(program.nodes.size());
  std::string text =
      fmt::format("{} instructions unfold to {} ops, {} of them without work; {} kernels{}",
                  format_count(d(program.module->instructions)), format_count(d(nodes)), format_count(d(idle)),
                  format_count(d(static_cast<std::int64_t>(study.estimate->lowered.ops.size()))),
                  study.setup->fusion == program::Fusion::none ? "" : ", element-wise ones fused");
  if (study.setup->devices > 1) {
    text += fmt::format("; of one of {}", devices_text(study.setup->cluster, study.setup->devices));
  }
  return text;
}

Table group_table(std::string title, const char* what, const std::vector<OpGroup>& groups, Seconds all,
                  std::size_t most) {
  Table t{
      std::move(title),
      {{what, true}, {"runs"}, {"matrix"}, {"vector"}, {"bytes"}, {"time"}, {"share"}, {"bound", true}, {"of roof"}},
      {}};
  OpGroup rest;
  std::size_t dropped = 0;
  const auto row = [&](const std::string& name, const OpGroup& g) {
    t.rows.push_back({name, format_count(d(g.count)), flops_cell(g.work.matrix), flops_cell(g.work.vector),
                      format_bytes(g.work.bytes() + g.work.network), format_seconds(g.time),
                      all.value > 0 ? format_share(g.time / all) : "-", std::string(mapper::name(g.bound())),
                      g.time.value > 0 ? format_share(g.roof / g.time) : "-"});
  };
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (n < most) {
      row(groups[n].name.empty() ? "(no location)" : shortened(groups[n].name, 29), groups[n]);
      continue;
    }
    ++dropped;
    rest += groups[n];
  }
  if (dropped > 0) row(fmt::format("{} others", dropped), rest);
  return t;
}

Table block_table(const program::Blocks& blocks) {
  Table t{"Transformer blocks",
          {{"block", true},
           {"layers"},
           {"attention", true},
           {"batch"},
           {"queries"},
           {"keys"},
           {"heads"},
           {"kv"},
           {"width"},
           {"hidden"},
           {"feed-forward", true}},
          {}};
  for (const auto& block : blocks.blocks) {
    std::string feed_forward = "-";
    if (block.feed_forward) {
      const auto& f = *block.feed_forward;
      feed_forward = fmt::format("{}{}{}", f.intermediate, f.gated ? " gated" : "",
                                 f.experts > 0 ? fmt::format(", {} experts", f.experts) : "");
    }
    bool first = true;
    const auto row = [&](std::vector<std::string> attention) {
      std::vector<std::string> cells = {first ? block.name : "", first ? std::to_string(block.layers) : ""};
      cells.insert(cells.end(), attention.begin(), attention.end());
      cells.push_back(first ? std::to_string(block.hidden) : "");
      cells.push_back(first ? feed_forward : "");
      t.rows.push_back(std::move(cells));
      first = false;
    };
    for (const auto& a : block.attentions) {
      row({std::string(program::name(a.kind)), std::to_string(a.batch), std::to_string(a.queries),
           std::to_string(a.keys), std::to_string(a.heads), std::to_string(a.kv_heads), std::to_string(a.head_dim)});
    }
    if (block.attentions.empty()) row({"none", "", "", "", "", "", ""});
  }
  return t;
}

// The products of a block by what they are for.
Table role_table(const ProgramStudy& study) {
  Table t{"Matrix products by role",
          {{"block", true},
           {"role", true},
           {"shape (m x k x n)", true},
           {"runs"},
           {"FLOPs"},
           {"time"},
           {"share"},
           {"of peak"},
           {"bound", true}},
          {}};
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
      t.rows.push_back({block, std::string(program::name(product.role)), alike ? shape_text(one->op) : "various",
                        std::to_string(runs), flops_cell(flops), format_seconds(time),
                        e.phase().time.value > 0 ? format_share(time / e.phase().time) : "-", format_share(peak / time),
                        std::string(mapper::name(one->time.bound))});
    }
  };
  for (const auto& block : study.blocks->blocks) rows(block.name, block.products);
  rows("", study.blocks->outside);
  return t;
}

Table collective_table(const ProgramStudy& study) {
  Table t{"Communication (of one device)",
          {{"op", true}, {"groups", true}, {"runs"}, {"payload"}, {"sent"}, {"algorithm", true}, {"steps"}, {"time"}},
          {}};
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
    t.rows.push_back({std::string(name(c->kind)), shortened(e.lowered.ops[n].groups, 28), std::to_string(op.op.count),
                      format_bytes(c->bytes()), format_bytes(volume), std::string(cost::name(cost.algorithm)),
                      format_significant(cost.steps), format_seconds(op.step_time())});
    sent += volume;
    time += op.step_time();
  }
  if (!t.rows.empty()) t.rows.push_back({"total", "", "", "", format_bytes(sent), "", "", format_seconds(time)});
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
  Table t{"Ops",
          {{"line"},
           {"op", true},
           {"result", true},
           {"runs"},
           {"matrix"},
           {"vector"},
           {"bytes"},
           {"time"},
           {"bound", true},
           {"of roof"}},
          {}};
  const ProgramEstimate& e = *study.estimate;
  for (std::size_t n = 0; n < e.lowered.ops.size(); ++n) {
    const OpEstimate& op = e.phase().ops[n];
    const double count = d(op.op.count);
    t.rows.push_back(
        {std::to_string(Kernel{&study, n}.line()), shortened(without_dialect(Kernel{&study, n}.name()), 21),
         shortened(Kernel{&study, n}.results(), 21), std::to_string(op.op.count), flops_cell(op.work.matrix * count),
         flops_cell(op.work.vector * count), format_bytes((op.work.bytes() + op.work.network) * count),
         format_seconds(op.step_time()), std::string(mapper::name(op.time.bound)),
         op.time.total.value > 0 ? format_share(op.time.roof / op.time.total) : "-"});
  }
  return t;
}

Table unknown_table(const Program& program) {
  Table t{"Without a known meaning: no work is counted for these", {{"what", true}, {"first in line"}, {"runs"}}, {}};
  for (const auto& unknown : program.unknown) {
    t.rows.push_back({shortened(unknown.name, 70), std::to_string(unknown.line), std::to_string(unknown.count)});
  }
  return t;
}

Table loop_table(const Program& program) {
  Table t{"Loops", {{"loop", true}, {"line"}, {"passes"}, {"from", true}}, {}};
  for (const auto& loop : program.loops) {
    t.rows.push_back({loop.name, std::to_string(loop.instruction->line), std::to_string(loop.trips),
                      loop.known  ? "the program, or --trip-count"
                      : loop.most ? "the most that it can run"
                                  : "not known: counted once"});
  }
  return t;
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
  Table roles = role_table(study);
  if (!roles.rows.empty()) doc.push_back(std::move(roles));
  Table collectives = collective_table(study);
  if (!collectives.rows.empty()) doc.push_back(std::move(collectives));
  if (!study.program->loops.empty()) doc.push_back(loop_table(*study.program));
  doc.push_back(memory_table(e));
  if (detail == Detail::ops) doc.push_back(program_op_table(study));
  doc.push_back(rests_on(setup, figures_used(setup, e.products), all_notes(study)));
  return doc;
}

}  // namespace

Report program_report(const ProgramStudy& study, Detail detail, bool json) {
  return {document(study, detail),
          detail == Detail::ops ? csv_of(kernels_of(study), {"line", "name", "class", "scope", "result", "count",
                                                             "matrix_flops", "vector_flops", "bytes", "network_bytes",
                                                             "time_s", "roof_s", "bound", "role", "groups"})
                                : csv_of(std::span(&study, 1), {"program",
                                                                "hardware",
                                                                "devices",
                                                                "fuse",
                                                                "label",
                                                                "runtime",
                                                                "fits",
                                                                "time_s",
                                                                "roof_s",
                                                                "matrix_flops",
                                                                "vector_flops",
                                                                "bytes",
                                                                "network_bytes",
                                                                "utilisation",
                                                                "argument_bytes",
                                                                "constant_bytes",
                                                                "activation_bytes",
                                                                "reserve_bytes",
                                                                "total_bytes",
                                                                "capacity_bytes",
                                                                "unknown"}),
          json ? result::document("llmperf.graph", study) : std::string()};
}

}  // namespace llmperf::report
