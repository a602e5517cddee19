#include "result/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "result/basis.h"
#include "result/parts.h"

namespace llmperf::result {
namespace {

using mapper::tile::Description;
using mapper::tile::Operand;
using mapper::tile::Results;

// The op as asked for, where it is of that kind.
template <class Body>
const Body* body_of(const MappingStudy& study) {
  return std::get_if<Body>(&study.op->body);
}

struct OperandOf {
  const Operand* operand;
  Results results;
};
struct DescribedMapping {
  const MappingStudy* of;
  const Description* one;
};
std::int64_t keys_of(const graph::Attention& a) { return a.keys > 0 ? a.keys : a.context + a.q_tokens; }

Type mapped_op(Fields<MappingStudy> f) {
  using O = MappingStudy;
  constexpr auto gemm = [](const O& o) { return body_of<graph::Gemm>(o) != nullptr; };
  constexpr auto attention = [](const O& o) { return body_of<graph::Attention>(o) != nullptr; };
  constexpr auto vector = [](const O& o) { return body_of<graph::Vector>(o) != nullptr; };
  return f
      .of("kind", "\"gemm\", \"attention\" or \"vector\"",
          [](const O& o) {
            return body_of<graph::Gemm>(o) ? "gemm" : body_of<graph::Attention>(o) ? "attention" : "vector";
          })
      .of<&O::dtype>("dtype", "of the operands; gemm: of the first")
      .of("passes", "of the matrix unit; null: those that the device's rate is of",
          [](const O& o) { return o.operands.passes; })
      .only_where(gemm)
      .of("b_dtype: type of B", "gemm: of the second operand", [](const O& o) { return o.product.second; })
      .of("out_dtype: type of results", "likewise: of the results", [](const O& o) { return o.product.results; })
      .of("rate_dtype: type of the rate", "likewise: whose rate the matrix unit has",
          [](const O& o) { return o.operands.dtype; })
      .of("local: in tile memory", "likewise: what is in the tiles' memory: \"a, c\"",
          [](const O& o) { return o.product.local; })
      .of("near: near the channels", "likewise: whether the second comes to the tiles beside the channels",
          [](const O& o) { return o.operands.near; })
      .of("batch", "gemm: products", [](const O& o) { return body_of<graph::Gemm>(o)->batch; })
      .of("m", "likewise", [](const O& o) { return body_of<graph::Gemm>(o)->m; })
      .of("n", "likewise", [](const O& o) { return body_of<graph::Gemm>(o)->n; })
      .of("k", "likewise", [](const O& o) { return body_of<graph::Gemm>(o)->k; })
      .of("then", "likewise: what is joined to it, or null",
          [](const O& o) { return o.name.empty() ? std::nullopt : std::optional(o.name); })
      .only_where(attention)
      .of("batch", "attention: sequences", [](const O& o) { return body_of<graph::Attention>(o)->sequences; })
      .of("queries", "likewise", [](const O& o) { return body_of<graph::Attention>(o)->q_tokens; })
      .of("keys", "likewise", [](const O& o) { return keys_of(*body_of<graph::Attention>(o)); })
      .of("causal", "likewise", [](const O& o) { return body_of<graph::Attention>(o)->keys == 0; })
      .of("heads", "likewise", [](const O& o) { return body_of<graph::Attention>(o)->heads; })
      .of("kv_heads", "likewise", [](const O& o) { return body_of<graph::Attention>(o)->kv_heads; })
      .of("head_dim", "likewise", [](const O& o) { return body_of<graph::Attention>(o)->qk_dim; })
      .only_where(vector)
      .of<&O::name>("vector_kind", "vector: its name")
      .of("rows", "likewise", [](const O& o) { return body_of<graph::Vector>(o)->rows; })
      .of("width", "likewise", [](const O& o) { return body_of<graph::Vector>(o)->width; });
}

Type fields_of(Fields<OperandOf> f) {
  using O = OperandOf;
  return f.of("name", "\"A\"", [](const O& o) { return o.operand->name; })
      .of("feed", "\"direct\", \"multicast\" or \"ring\"; null: results", [](const O& o) { return o.operand->feed; })
      .when([](const O& o) { return !o.operand->result; })
      .of("sharing_tiles", "that need the same slices", [](const O& o) { return o.operand->sharers; })
      .of("path_links", "to the last of them", [](const O& o) { return o.operand->hops; })
      .of("local", "whether it is in the tiles' memory", [](const O& o) { return o.operand->local; })
      .of("buffers", "as text", [](const O& o) { return buffers_text(*o.operand, o.results); })
      .of("sram_bytes", "of a tile", [](const O& o) { return o.operand->sram; })
      .of("dram_bytes", "moved", [](const O& o) { return o.operand->moved.dram; })
      .of("least_dram_bytes", "every element once", [](const O& o) { return o.operand->least; })
      .of("noc_bytes: NoC", "passed from tile to tile; of results partial sums",
          [](const O& o) { return o.operand->moved.passed; })
      .of("noc_link_bytes: NoC link bytes", "these times the links of their way",
          [](const O& o) { return o.operand->moved.hops; });
}

}  // namespace

Type fields_of(Fields<mapper::tile::Dimension> f) {
  using D = mapper::tile::Dimension;
  return f.of<&D::name>("name", "\"m\"")
      .of<&D::extent>("extent", "of the op")
      .of<&D::tiles>("tiles", "that share it")
      .of<&D::part>("per_tile", "of the extent")
      .of<&D::block>("block", "of a tile's part")
      .of<&D::blocks>("blocks_per_tile", "how many");
}

Type fields_of(Fields<mapper::tile::Phase> f) {
  using P = mapper::tile::Phase;
  return f.of<&P::name>("name", "\"fill\", \"steady\" or \"drain\"")
      .of<&P::seconds>("time_s", "they add up to `closed_form_s`")
      .of<&P::dram>("dram_busy_s", "of that time")
      .of<&P::noc>("noc_busy_s: NoC busy", "likewise")
      .of<&P::matrix>("matrix_busy_s", "likewise")
      .of<&P::vector>("vector_busy_s", "likewise")
      .of<&P::binds>("bound", "\"DRAM\", \"NoC\", \"matrix\", \"vector\" or \"latency\"");
}

Type fields_of(Fields<mapper::tile::Bound> f) {
  using B = mapper::tile::Bound;
  return f.of<&B::resource>("resource", "which is the largest: \"matrix\", \"vector\", \"DRAM\"")
      .of<&B::matrix>("matrix_s", "at the rate of all tiles")
      .of<&B::vector>("vector_s", "likewise")
      .of<&B::dram>("dram_s", "every tensor moved once");
}

Type fields_of(Fields<mapper::tile::Recost> f) {
  using R = mapper::tile::Recost;
  return f.of<&R::sram>("sram_bytes", "of a tile")
      .of("fits", "into a tile", [](const R& r) { return r.closed_form.has_value(); })
      .of<&R::closed_form>("closed_form_s", "null: it does not fit")
      .of<&R::simulated>("simulated_s", "likewise")
      .of<&R::spilled>("spilled_s", "a product's at least, with sums that go to DRAM; else null");
}

Type fields_of(Fields<mapper::tile::Bar> f) {
  using B = mapper::tile::Bar;
  return f.of<&B::step>("step", "that is worked on")
      .of<&B::begin>("begin_s", "as simulated")
      .of<&B::end>("end_s", "as simulated");
}
Type fields_of(Fields<DrawnSchedule::Window> f) {
  return f.of<&DrawnSchedule::Window::begin>("begin_s", "of what is drawn")
      .of<&DrawnSchedule::Window::end>("end_s", "likewise");
}
Type fields_of(Fields<DrawnSchedule::Lane> f) {
  return f.of<&DrawnSchedule::Lane::name>("name", "of a resource")
      .of<&DrawnSchedule::Lane::bars>("bars", "when it is busy");
}
Type fields_of(Fields<DrawnSchedule> f) {
  using S = DrawnSchedule;
  return f.of<&S::seconds>("time_s", "null where only the first and last steps of a long schedule are drawn")
      .of<&S::windows>("windows", "of time")
      .of<&S::lanes>("lanes", "one below the other");
}

namespace {

Type fields_of(Fields<DescribedMapping> f) {
  using B = DescribedMapping;
  return f
      .of("stationary", "operand of which slices stay, or \"results\"",
          [](const B& b) { return b.one->stays.slices > 0 ? b.one->stays.operand : "results"; })
      .of("stationary_slices", "how many stay", [](const B& b) { return b.one->stays.slices; })
      .of("slices", "of how many", [](const B& b) { return b.one->stays.of; })
      .of("loop", "the order of blocks", [](const B& b) { return b.one->loop; })
      .of("last_block_pieces", "of the last block of all", [](const B& b) { return b.one->tail; })
      .of("overlapped_units", "whether matrix and vector units work on different steps at once",
          [](const B& b) { return b.one->overlapped; })
      .of("dimensions", "of the op", [](const B& b) { return b.one->dimensions; })
      .of("operands", "and results",
          [](const B& b) {
            std::vector<OperandOf> list;
            for (const Operand& o : b.one->operands) list.push_back({&o, b.one->results});
            return list;
          })
      .of("scores_sram_bytes: SRAM of scores", "attention: scores in a tile's memory",
          [](const B& b) { return b.one->working; })
      .of("sram_bytes", "of a tile: the sum over operands and scores", [](const B& b) { return b.one->sram; })
      .of("sram_capacity_bytes", "what there is", [](const B& b) { return b.of->study->machine().sram; })
      .of("phases", "of the pipeline", [](const B& b) { return b.one->phases; });
}

Type published_mapping(Fields<MappingStudy> f) {
  using P = MappingStudy;
  constexpr auto feasible = [](const P& p) { return p.published->feasible(); };
  return f.where(feasible)
      .of("time_s", "null: it has none", [](const P& p) { return p.published->seconds; })
      .of("compute_s", "of that", [](const P& p) { return p.published->compute; })
      .always()
      .of("utilisation", "by its own account", [](const P& p) { return p.published->utilisation(); })
      .of("below_bound", "faster than can be",
          [](const P& p) { return p.published->feasible() && p.published->seconds < p.study->bound().seconds(); })
      .of("splits", "products: n1, n2, nk; attention: Tx, Ty; vector: chunks",
          [](const P& p) {
            std::vector<std::int64_t> splits;
            for (const std::int64_t split : p.published->splits) {
              if (split > 0) splits.push_back(split);
            }
            return splits;
          })
      .of("weights_stay", "rather than inputs", [](const P& p) { return p.published->transposed; })
      .of<&P::recost>("mapped_here", "the same choice on the machine of the mappings, or null");
}

}  // namespace

Type fields_of(Fields<MappingRow> f) {
  using R = MappingRow;
  return f.of("rank", "from 1", [](const R& r) { return r.rank + 1; })
      .of("time_s", "simulated", [](const R& r) { return r.mapping().simulated; })
      .of("closed_form_s", "by the formula that the search ranks by",
          [](const R& r) { return r.description().closed_form; })
      .of("simulation", "\"brief\" (few blocks of every kind) or \"whole\"",
          [](const R& r) { return r.of->whole && r.rank == 0 ? "whole" : "brief"; })
      .of("of_bound: bound / time %", "lower bound over time", [](const R& r) { return r.of->of_bound(r.mapping()); })
      .of("split", "as text", [](const R& r) { return split_text(r.description()); })
      .of("block", "as text", [](const R& r) { return block_text(r.description()); })
      .of("stays", "as text", [](const R& r) { return stays_text(r.description()); })
      .of("feeds", "as text", [](const R& r) { return feeds_text(r.description()); })
      .of("results", "\"in_place\", \"staged\" or \"doubled\"", [](const R& r) { return r.description().results; })
      .of("text", "of a product: as `llmperf map` takes a mapping of one's own; else empty",
          [](const R& r) { return r.mapping().text; })
      .of("bound", "the resource that is busy for longest: \"DRAM\", \"NoC\", \"matrix\" or \"vector\"",
          [](const R& r) { return busiest(r.of->study->machine(), r.description()); })
      .of("sram_bytes", "of a tile", [](const R& r) { return r.description().sram; })
      .of("dram_bytes", "moved", [](const R& r) { return r.description().traffic.dram(); })
      .of("noc_bytes", "from tile to tile", [](const R& r) { return r.description().traffic.passed(); })
      .of("noc_link_bytes", "these times the links of their way",
          [](const R& r) { return r.description().traffic.hops(); })
      .of("dram_busy_s", "of all tiles",
          [](const R& r) { return r.description().traffic.dram() / r.of->study->machine().dram; })
      .of("noc_busy_s", "of the busiest link", [](const R& r) { return r.description().traffic.link; })
      .of("matrix_busy_s", "of the busiest tile", [](const R& r) { return r.description().traffic.matrix; })
      .of("vector_busy_s", "likewise", [](const R& r) { return r.description().traffic.vector; })
      .of("slower_by_s", "than the best", [](const R& r) { return r.mapping().simulated - r.of->best().simulated; })
      .of("why", "as text; null for the best",
          [](const R& r) { return slower_text(r.of->best().description, r.description()); })
      .when([](const R& r) { return r.rank > 0; });
}

std::vector<MappingRow> rows_of(const MappingStudy& study) {
  std::vector<MappingRow> rows;
  const auto& all = study.study->mappings();
  for (std::size_t i = 0; i < all.size(); ++i) rows.push_back({&study, i, &all[i]});
  return rows;
}

namespace {

// A row like those of the mappings that were found.
MappingRow given_row(const MappingStudy& s) {
  const auto& all = s.study->mappings();
  const auto faster = std::ranges::count_if(
      all, [&](const mapper::tile::StudiedMapping& m) { return m.simulated < s.given()->simulated; });
  return {&s, static_cast<std::size_t>(faster), &*s.given()};
}

Type given_mapping(Fields<MappingStudy> f) {
  using G = MappingStudy;
  return f
      .of("times_best: over the best", "its time over that of the best; 1: none that was found is faster",
          [](const G& g) { return g.given()->simulated / g.best().simulated; })
      .of<&given_row>("row", "as in `mappings`; `rank`: among those shown")
      .of("mapping", "as that of the best", [](const G& g) {
        return DescribedMapping{&g, &g.given()->description};
      });
}

}  // namespace

Type fields_of(Fields<MappingStudy> f) {
  using S = MappingStudy;
  return f
      .of("label", "\"mapped, uncalibrated\", or \"mapped, with\" a runtime profile",
          [](const S& s) { return s.label(); })
      .of("hardware", "its name", [](const S& s) { return s.device->name; })
      .of("runtime", "the profile whose rates the times are with; null: none",
          [](const S& s) { return s.runtime.empty() ? std::nullopt : std::optional(s.runtime); })
      .of("grid", "columns x rows of tiles: \"8x8\"",
          [](const S& s) { return fmt::format("{}x{}", s.study->machine().mesh_x, s.study->machine().mesh_y); })
      .group<&mapped_op>("op", "as given")
      .of("time_s", "of the best mapping, simulated", [](const S& s) { return s.best().simulated; })
      .of("simulated_s", "the same", [](const S& s) { return s.best().simulated; })
      .of("closed_form_s", "by the formula that the search ranks by",
          [](const S& s) { return s.best().description.closed_form; })
      .of("simulation", "\"brief\" (few blocks of every kind) or \"whole\"",
          [](const S& s) { return s.whole ? "whole" : "brief"; })
      .of("bound_s: lower bound", "lower bound: the largest of `bound`",
          [](const S& s) { return s.study->bound().seconds(); })
      .of("bound", "by resource", [](const S& s) { return s.study->bound(); })
      .of("of_bound", "`bound_s` / `time_s`", [](const S& s) { return s.of_bound(s.best()); })
      .of("mapping", "the best",
          [](const S& s) {
            return DescribedMapping{&s, &s.best().description};
          })
      .of<&rows_of>("mappings", "all that were simulated, the fastest first; also the CSV")
      .group<&given_mapping>("given: given mapping", "a mapping of one's own, or null")
      .when([](const S& s) { return s.given().has_value(); })
      .group<&published_mapping>("published", "by the published mapper's formulas, where these were asked for, or null")
      .when([](const S& s) { return s.published.has_value(); })
      .of<&S::schedule>("schedule", "what is drawn")
      .of<&S::svg>("drawing_svg: drawing", "the same as `llmperf map` draws it");
}

std::string op_text(const MappingStudy& study) {
  if (const auto* g = std::get_if<graph::Gemm>(&study.op->body)) {
    return fmt::format("gemm {}m {}, n {}, k {}{}", g->batch > 1 ? fmt::format("batch {}, ", g->batch) : "", g->m, g->n,
                       g->k, study.name.empty() ? "" : fmt::format(", then {}", study.name));
  }
  if (const auto* a = std::get_if<graph::Attention>(&study.op->body)) {
    return fmt::format("attention batch {}, {} queries, {} keys{}, {}/{} heads of {}", a->sequences, a->q_tokens,
                       keys_of(*a), a->keys > 0 ? "" : " (causal)", a->heads, a->kv_heads, a->qk_dim);
  }
  const auto& v = std::get<graph::Vector>(study.op->body);
  return fmt::format("{} {} rows of {}", study.name, v.rows, v.width);
}

std::string split_text(const Description& mapping) {
  std::string text;
  for (const auto& dim : mapping.dimensions) {
    if (dim.tiles > 1) text += fmt::format("{}{}/{}", text.empty() ? "" : " ", dim.name, dim.tiles);
  }
  return text.empty() ? "one tile" : text;
}

std::string block_text(const Description& mapping) {
  std::string text;
  for (const auto& dim : mapping.dimensions) text += fmt::format("{}{}", text.empty() ? "" : "x", dim.block);
  return text;
}

std::string stays_text(const Description& mapping) {
  const auto& s = mapping.stays;
  if (s.slices == 0 || s.operand == "results") return "results";
  if (s.slices >= s.of) return fmt::format("all {}", s.operand);
  return fmt::format("{} of {} slices of {}", s.slices, s.of, s.operand);
}

std::string feeds_text(const Description& mapping) {
  std::string text;
  for (const Operand& o : mapping.operands) {
    if (o.result || o.sharers == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", o.name, name(o.feed));
  }
  return text.empty() ? "direct" : text;
}

std::string buffers_text(const Operand& operand, Results results) {
  if (operand.result) {
    switch (results) {
      case Results::in_place: return "one";
      case Results::staged: return "one and a copy that leaves";
      case Results::doubled: return "two in turn";
    }
  }
  if (operand.buffers == 0) return "stays";
  return operand.buffers == 1 ? "single" : operand.buffers == 2 ? "double" : fmt::format("{} slices", operand.buffers);
}

std::string slower_text(const Description& best, const Description& other) {
  const auto busiest = [](const mapper::tile::Phase& p) { return std::max({p.dram, p.noc, p.matrix, p.vector}); };
  const mapper::tile::Phase& steady = other.phases[1];
  const mapper::tile::Phase& best_steady = best.phases[1];
  struct Part {
    std::string_view name;
    double more;
  };
  const Part parts[] = {
      {"fill", other.phases[0].seconds - best.phases[0].seconds},
      {"drain", other.phases[2].seconds - best.phases[2].seconds},
      {steady.binds, busiest(steady) - busiest(best_steady)},
      {"waiting", (steady.seconds - busiest(steady)) - (best_steady.seconds - busiest(best_steady))},
  };
  const Part& most = *std::max_element(std::begin(parts), std::end(parts),
                                       [](const Part& x, const Part& y) { return x.more < y.more; });
  if (other.closed_form <= best.closed_form || most.more <= 0) return "in the simulation only";
  return fmt::format("{} +{}", most.name, format_seconds(Seconds{most.more}));
}

std::string PlacedRow::from() const {
  std::string text;
  for (const std::string_view op : placed().from) text.append(text.empty() ? "" : ", ").append(op);
  return text;
}

Type fields_of(Fields<PlacedRow> f) {
  using R = PlacedRow;
  constexpr auto mapped = [](const R& r) { return r.placed().mapping.has_value(); };
  return f.of("name", "\"qkv_proj\"", [](const R& r) { return r.op().name; })
      .of("kind", "of op", [](const R& r) { return graph::kind_of(r.op()); })
      .of("shape", "as text", [](const R& r) { return shape_text(r.op()); })
      .of("count", "executions in the step", [](const R& r) { return r.op().count; })
      .of("time_s", "of one execution, simulated", [](const R& r) { return r.placed().seconds; })
      .of("apart_s: all in DRAM", "with everything in DRAM, as `estimate` has it",
          [](const R& r) { return r.apart().total; })
      .of("dealt_s: dealt out", "of `time_s`: operands go over links to the tiles that need them",
          [](const R& r) { return r.placed().dealt; })
      .of("slices", "of its rows, one after the other together with the ops beside it",
          [](const R& r) { return r.placed().slices; })
      .of("from: from tile memory",
          "ops whose results it finds in the tiles' memory, as text; everything else is in DRAM",
          [](const R& r) { return r.from(); })
      .of("to: results go to", "where its results go: \"DRAM\", \"tiles\" or \"DRAM and tiles\"",
          [](const R& r) { return r.placed().to; })
      .of("dram_bytes", "of one execution", [](const R& r) { return r.placed().dram; })
      .of("apart_dram_bytes: DRAM before", "with everything in DRAM", [](const R& r) { return r.placed().dram_apart; })
      .of("resident_sram_bytes: SRAM beside it", "of a tile's memory: taken by what stays, beside the op's mapping",
          [](const R& r) { return r.placed().resident; })
      .where(mapped)
      .of("sram_bytes", "of a tile's memory: taken by the mapping; null: the tiles have no part in the op",
          [](const R& r) { return r.placed().mapping->sram; })
      .of("bound", "the resource that is busy for longest", [](const R& r) { return r.placed().bound; })
      .of("split", "as in `llmperf map`", [](const R& r) { return split_text(*r.placed().mapping); })
      .of("block", "likewise", [](const R& r) { return block_text(*r.placed().mapping); })
      .of("stays", "likewise", [](const R& r) { return stays_text(*r.placed().mapping); })
      .of("feeds", "likewise", [](const R& r) { return feeds_text(*r.placed().mapping); });
}

std::vector<PlacedRow> placed_rows(const StepMapping& step) {
  std::vector<PlacedRow> rows;
  for (std::size_t i = 0; i < step.step.ops.size(); ++i) rows.push_back({&step, i});
  return rows;
}

Type fields_of(Fields<StepMapping> f) {
  using S = StepMapping;
  return f
      .of("label", "what the times are: \"best mapping found, uncalibrated\"",
          [](const S& s) { return label(*s.setup); })
      .of("model", "its name", [](const S& s) { return s.setup->execution.model->name; })
      .of("hardware", "its name", [](const S& s) { return s.setup->device->name; })
      .of("weights", "the scheme", [](const S& s) { return s.setup->execution.weights.name; })
      .of("options", "what the runtime fuses", [](const S& s) { return options_text(*s.setup); })
      .of("phase", "\"prefill\" or \"decode\"", [](const S& s) { return s.phase->name; })
      .of<&S::group, &graph::SequenceGroup::count>("batch", "sequences")
      .of<&S::group, &graph::SequenceGroup::new_tokens>("new_tokens", "of each")
      .of<&S::group, &graph::SequenceGroup::context>("context", "tokens of each that are cached")
      .of("time_s", "of the ops of the step, simulated, one after the other", [](const S& s) { return s.step.seconds; })
      .of("apart_s", "with everything in DRAM between ops", [](const S& s) { return s.step.apart; })
      .of("gain", "the share of `apart_s` that is saved", [](const S& s) { return 1 - s.step.seconds / s.step.apart; })
      .of("dram_bytes", "that the mappings move", [](const S& s) { return s.step.dram; })
      .of("apart_dram_bytes", "with everything in DRAM", [](const S& s) { return s.step.dram_apart; })
      .of<&S::sram>("sram_capacity_bytes", "of a tile")
      .of<&placed_rows>("ops", "of the step, those of a layer of each kind once; also the CSV");
}

Type fields_of(Fields<cost::Links> f) {
  using L = cost::Links;
  return f.of<&L::name>("name", "\"HCCS\"")
      .of<&L::topology>("topology", "how neighbours are joined")
      .of<&L::per_device>("per_device_bytes_per_s", "all links of one device")
      .of<&L::per_link>("per_link_bytes_per_s", "to one neighbour")
      .of<&L::provenance>("provenance", "of the rates")
      .of<&L::latency>("latency_s", "of a step")
      .of<&L::latency_provenance>("latency_provenance: provenance of the latency", "of the latency");
}

Type fields_of(Fields<cost::SizeRange> f) {
  using R = cost::SizeRange;
  return f.of<&R::from>("from_bytes: GiB", "up to the next of these").of<&R::algorithm>("algorithm", "the fastest");
}

Type fields_of(Fields<CollectiveLine> f) {
  using L = CollectiveLine;
  constexpr auto moves = [](const L& l) { return l.moves(); };
  return f.of<&L::size>("size_bytes: GiB", "of a rank's data")
      .of("algorithm",
          "\"ring\", \"one-shot\", \"two-shot\", \"halving-doubling\", \"tree\", \"bruck\", \"dimensions\", "
          "\"hierarchical\", \"direct\"; \"none\" with one rank",
          [](const L& l) { return l.cost.algorithm; })
      .of<&L::chosen>("chosen", "the fastest, or the one asked for")
      .of("steps", "messages that follow one another", [](const L& l) { return l.cost.steps; })
      .of("sent_bytes", "by one device over all its links", [](const L& l) { return l.cost.sent; })
      .of("busiest_link_bytes", "over the link that limits the exchange",
          [](const L& l) { return l.cost.busiest_link; })
      .of<&L::busiest>("busiest_link", "name of these links")
      .of("latency_s", "of the steps", [](const L& l) { return l.cost.latency; })
      .of("transfer_s", "of the bytes", [](const L& l) { return l.cost.transfer; })
      .of("time_s", "the sum", [](const L& l) { return l.cost.time(); })
      .where(moves)
      .of("bound", "\"latency\" or \"bandwidth\", whichever takes longer; null with one rank",
          [](const L& l) { return l.latency_bound() ? "latency" : "bandwidth"; })
      .of<&L::algorithm_bandwidth>("algorithm_bandwidth_bytes_per_s", "as nccl-tests define it; null with one rank")
      .of<&L::bus_bandwidth>("bus_bandwidth_bytes_per_s", "likewise");
}

Type fields_of(Fields<CollectiveStudy> f) {
  using S = CollectiveStudy;
  return f.of("label", "\"upper bound, uncalibrated\"", [](const S&) { return kUncalibrated; })
      .of("hardware", "its name", [](const S& s) { return s.device->name; })
      .of("op",
          "\"all-reduce\", \"all-gather\", \"reduce-scatter\", \"all-to-all\", \"send\", \"ring pass\" or "
          "\"broadcast\"",
          [](const S& s) { return s.collective.kind; })
      .of("ranks", "as asked for", [](const S& s) { return s.collective.ranks; })
      .of("stride", "as asked for", [](const S& s) { return s.collective.stride; })
      .of("devices_per_node", "null: links between neighbours join any number",
          [](const S& s) { return s.cluster.devices_per_node; })
      .when([](const S& s) { return s.cluster.devices_per_node != cost::kAnyDevices; })
      .of("ranks_per_node", "how the ranks lie", [](const S& s) { return s.placement().inside; })
      .of("nodes", "likewise", [](const S& s) { return s.placement().nodes; })
      .of("package: links in a package", "links between dies of a card; null: there are none",
          [](const S& s) { return s.cluster.package; })
      .when([](const S& s) { return s.cluster.devices_per_package > 1; })
      .of("inside", "links of a node", [](const S& s) { return s.cluster.inside; })
      .of("supernode: links between nodes of a supernode",
          "links between nodes that share ports with those inside; null: there are none",
          [](const S& s) { return s.cluster.supernode; })
      .when([](const S& s) { return s.cluster.devices_per_supernode > 1; })
      .of("between", "links between nodes", [](const S& s) { return s.cluster.between; })
      .of<&S::lines>("rows", "with one size every algorithm, fastest first; with several the chosen one of each")
      .of<&S::fastest>("fastest", "by size, up to 1 TiB");
}

void study_collective(CollectiveStudy& s) {
  for (const Bytes size : s.sizes) {
    graph::Collective c = s.collective;
    c.element = {};
    c.rows = size.value / bytes_per_element(c.element);
    c.width = 1;
    const auto add = [&](const cost::CollectiveCost& cost, bool chosen) {
      s.lines.push_back({size, cost, chosen, s.cluster.links(cost.level).name, cost::sent_bytes(c)});
    };
    const cost::CollectiveCost chosen = collective_cost(s.cluster, c, s.algorithm);
    if (s.sizes.size() > 1) {
      add(chosen, true);
    } else {
      for (const auto& one : collective_costs(s.cluster, c)) add(one, one.algorithm == chosen.algorithm);
    }
  }
  s.fastest = fastest_by_size(s.cluster, s.collective);
}

}  // namespace llmperf::result
