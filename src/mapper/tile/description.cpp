#include "mapper/tile/description.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

// What a tile keeps of an operand: what it would save if the operand took no bytes.
template <typename Problem, typename Mapping, typename... Bytes>
double share_of_sram(const Problem& problem, const Mapping& mapping, Bytes Problem::*... bytes) {
  Problem without = problem;
  ((without.*bytes = 0), ...);
  return sram_of(problem, mapping) - sram_of(without, mapping);
}

void feed(Operand& operand, const Stream& stream, const Paths& paths) {
  operand.feed = stream.feed;
  operand.sharers = paths.length;
  operand.hops = stream.feed == Feed::direct ? 0 : stream.feed == Feed::ring ? paths.longest : paths.hops;
  operand.buffers = stream.slots;
}

Phase phase(std::string_view name, double seconds, double dram, double noc, double matrix, double vector) {
  const auto within = [&](double busy) { return std::clamp(busy, 0.0, seconds); };
  Phase p{name, seconds, within(dram), within(noc), within(matrix), within(vector), "latency"};
  const double most = std::max({p.dram, p.noc, p.matrix, p.vector});
  if (most < seconds / 2) return p;
  p.binds = most == p.matrix ? "matrix" : most == p.vector ? "vector" : most == p.dram ? "DRAM" : "NoC";
  return p;
}

// Fill: until the first step begins. Drain: after the last one.
std::vector<Phase> phases_of(const Machine& m, const Schedule& s, const PipelineTime& time, const Traffic& total) {
  const Grid& g = *s.grid;
  const Block& first = s.blocks.front();
  const Block& last = s.blocks.back();
  const Step& step = first.first();
  const double load =
      (requests_of(m, s.a, g.a) * step.a + requests_of(m, s.b, g.b) * step.b + m.tiles * first.start) / m.dram;
  const Phase fill = phase("fill", time.fill, load, 0, 0, 0);
  const double store = m.tiles * last.result / m.dram;
  const double sums = last.reduce > 0 ? g.c_load * last.reduce / m.link : 0;
  const Phase drain = phase("drain", time.drain, store, sums, 0, s.results == Results::doubled ? last.finish : 0);
  const Phase steady = phase("steady", std::max(0.0, time.seconds - time.fill - time.drain),
                             total.dram() / m.dram - fill.dram - drain.dram, total.link - drain.noc, total.matrix,
                             total.vector - drain.vector);
  return {fill, steady, drain};
}

template <typename Problem>
Description common(const Machine& machine, const Problem& problem, const Choice<Problem>& choice) {
  const Schedule schedule = schedule_of(machine, problem, choice.mapping);
  Description result;
  result.closed_form = choice.time.seconds;
  result.traffic = traffic_of(machine, schedule);
  result.phases = phases_of(machine, schedule, choice.time, result.traffic);
  result.results = schedule.results;
  result.overlapped = schedule.overlapped;
  return result;
}

Operand results_operand(std::string_view name, const Traffic& traffic, const Paths& paths, Results results) {
  Operand o;
  o.name = name;
  o.result = true;
  o.sharers = paths.length;
  o.hops = paths.hops;
  o.buffers = results == Results::in_place ? 1 : 2;
  o.moved = traffic.sums;
  o.moved.dram = traffic.result;
  return o;
}

}  // namespace

Description describe(const Machine& machine, const GemmProblem& problem, const Choice<GemmProblem>& choice) {
  const GemmMapping& map = choice.mapping;
  const GemmProblem p = as_mapped(problem, map);
  const Grid& g = *map.grid;
  GemmProblem::Extent e = extent_of(p, map);
  Description result = common(machine, problem, choice);
  const Traffic& t = result.traffic;

  const double per_k = d(p.batch) * d(p.k);
  Operand a{.name = "A",
            .sram = share_of_sram(p, map, &GemmProblem::a_bytes),
            .least = p.a_local ? 0 : per_k * d(p.m) * p.a_bytes,
            .moved = t.a,
            .local = p.a_local};
  Operand b{.name = "B",
            .sram = share_of_sram(p, map, &GemmProblem::b_bytes),
            .least = p.b_local ? 0 : per_k * d(p.n) * p.b_bytes,
            .moved = t.b,
            .local = p.b_local};
  feed(a, map.a, g.a);
  feed(b, map.b, g.b);
  if (map.panel >= e.k.blocks) a.buffers = 0;
  result.a_name = map.transposed ? "B" : "A";
  result.b_name = map.transposed ? "A" : "B";
  result.tail = map.tail;
  result.loop = map.transposed ? "m, then n" : "n, then m";
  result.stays = {map.panel > 0 && e.n.blocks > 1 ? result.a_name : "results", map.panel, e.k.blocks};
  if (map.transposed) {
    std::swap(e.m, e.n);
    std::swap(e.m.name, e.n.name);
    std::swap(a, b);
    std::swap(a.name, b.name);
  }
  if (p.batch > 1) result.dimensions = {e.batch};
  result.dimensions.insert(result.dimensions.end(), {e.m, e.n, e.k});
  Operand c = results_operand("C", t, g.c, map.results);
  const double elements = d(p.batch) * d(p.m) * d(p.n);
  c.local = p.c_local;
  c.least = p.c_local ? 0 : elements * p.c_bytes * p.results;
  result.sram = sram_of(p, map);
  const double joined = share_of_sram(p, map, &GemmProblem::finish_bytes);
  c.sram = result.sram - a.sram - b.sram - joined;
  result.operands = {a, b, c};
  if (p.finish_bytes > 0) {
    Operand r{.name = "residual", .sram = joined, .least = elements * p.finish_bytes};
    r.moved.dram = t.end;
    result.operands.push_back(r);
    result.joined_name = r.name;
  }
  return result;
}

Description describe(const Machine& machine, const AttentionProblem& p, const Choice<AttentionProblem>& choice) {
  const AttentionMapping& map = choice.mapping;
  const Grid& g = *map.grid;
  const AttentionProblem::Extent e = extent_of(p, map);
  Description result = common(machine, p, choice);
  const Traffic& t = result.traffic;
  const double pairs = d(p.pairs());
  result.sram = sram_of(p, map);

  Operand q{.name = "Q",
            .sram = share_of_sram(p, map, &AttentionProblem::q_bytes),
            .least = pairs * d(p.rows()) * d(p.qk_dim) * p.q_bytes};
  q.buffers = map.q_slots;
  q.moved.dram = t.start + t.b.dram;
  Operand kv{.name = "K and V", .sram = share_of_sram(p, map, &AttentionProblem::k_bytes, &AttentionProblem::v_bytes)};
  kv.least = pairs * d(p.keys) * (d(p.qk_dim) * p.k_bytes + d(p.v_dim) * p.v_bytes);
  kv.moved = t.a;
  feed(kv, {map.feed, map.kv_slots, true}, g.a);
  if (map.keys_outside || map.resident) kv.buffers = 0;
  Operand o = results_operand("O", t, g.c, map.results);
  o.least = pairs * d(p.rows()) * d(p.v_dim) * p.o_bytes;
  // Where the units work on different steps there are scores of two.
  AttentionMapping other = map;
  other.overlapped = !map.overlapped;
  const double scores = std::abs(sram_of(p, other) - result.sram) * (map.overlapped ? 2 : 1);
  result.working = scores;
  o.sram = result.sram - q.sram - kv.sram - scores;
  result.operands = {q, kv, o};
  result.a_name = kv.name;
  result.b_name = q.name;
  result.dimensions = {e.pairs, e.rows, e.keys};
  result.loop = map.keys_outside ? "rows, then keys" : "keys, then rows";
  const bool stays = map.keys_outside || (map.resident && e.rows.blocks > 1);
  result.stays = {stays ? kv.name : "results", map.keys_outside ? 1 : map.resident ? e.keys.blocks : 0, e.keys.blocks};
  return result;
}

Description describe(const Machine& machine, const VectorProblem& problem, const Choice<VectorProblem>& choice) {
  const VectorMapping& map = choice.mapping;
  const VectorProblem p = as_mapped(problem, map);
  const Grid& g = *map.grid;
  VectorProblem::Extent e = extent_of(p, map);
  Description result = common(machine, problem, choice);
  const Traffic& t = result.traffic;
  const double elements = d(p.rows) * d(p.width);
  Operand in{.name = "inputs",
             .sram = share_of_sram(p, map, &VectorProblem::in_bytes),
             .least = elements * p.in_bytes,
             .moved = t.b};
  in.buffers = map.slots;
  Operand out = results_operand("outputs", t, g.c, map.results);
  out.least = elements * p.out_bytes;
  out.sram = share_of_sram(p, map, &VectorProblem::out_bytes);
  result.operands = {in};
  if (p.shared_bytes > 0) {
    Operand shared{.name = "parameters",
                   .sram = share_of_sram(p, map, &VectorProblem::shared_bytes),
                   .least = d(p.width) * p.shared_bytes,
                   .moved = t.a};
    feed(shared, {map.feed, 1, true}, g.a);
    shared.buffers = 0;
    result.operands.push_back(shared);
    result.a_name = shared.name;
  }
  result.operands.push_back(out);
  result.b_name = in.name;
  result.sram = sram_of(p, map);
  const bool flat = p.width == 1 && problem.width > 1;
  if (flat) e.rows.name = "elements";
  result.dimensions = {e.rows};
  if (!flat) result.dimensions.push_back(e.columns);
  result.loop = "rows, then width";
  result.stays = {p.shared_bytes > 0 ? "parameters" : "results", p.shared_bytes > 0 ? 1 : 0, 1};
  return result;
}

std::string_view busiest(const Machine& machine, const Description& mapping) {
  const Traffic& t = mapping.traffic;
  const std::pair<double, std::string_view> busy[] = {
      {t.dram() / machine.dram, "DRAM"}, {t.link, "NoC"}, {t.matrix, "matrix"}, {t.vector, "vector"}};
  return std::ranges::max_element(busy)->second;
}

}  // namespace llmperf::mapper::tile
