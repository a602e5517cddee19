// `llmperf map gemm|attention|vector`: how one op runs best on an array of tiles, and why. `llmperf map-collective`:
// how long one collective takes, and by which algorithm.
#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/files.h"
#include "cli/output.h"
#include "mapper/machine.h"
#include "mapper/tile/published.h"
#include "mapper/tile/study.h"
#include "report/reports.h"
#include "result/collective.h"
#include "result/mapping.h"

namespace llmperf::cli {
namespace {

constexpr Bounds kExtent{1, std::int64_t{1} << 30};
constexpr Bounds kHeads{1, 1 << 20};
constexpr Bounds kRanks{1, 1 << 20};
constexpr Bounds kMappings{1, 200};

struct MapFlags {
  std::string hardware;
  Dtype dtype = Dtype::bf16;
  std::int64_t top = 3;
  mapper::TileModel tile_model = mapper::TileModel::mapped;
  std::string svg;
  bool simulate = false;
};

// What a product's kernel does to its results.
struct Then {
  std::string_view name;
  graph::VectorKind kind;
  double share;
  double reads;
  double results;
};
constexpr Then kThen[] = {
    {"activation", graph::VectorKind::activation, 1, 0, 1},
    {"gated_activation", graph::VectorKind::gated_activation, 0.5, 0, 0.5},  // n: of both products, side by side
    {"add", graph::VectorKind::add, 1, 1, 1},                                // a residual
};

struct GemmFlags : MapFlags {
  graph::Gemm op;
  const Then* then = nullptr;
};
struct AttentionFlags : MapFlags {
  AttentionFlags() { op.sequences = 1, op.qk_dim = 128; }
  graph::Attention op;
  std::optional<std::int64_t> keys, kv_heads;
  bool causal = false;
};
struct VectorFlags : MapFlags {
  graph::Vector op;
  const graph::VectorOp* kind = nullptr;
};

// Work on an op's operands as `estimate` would pose it.
Answer map_op(const MapFlags& flags, const graph::Op& op, std::string_view name) {
  WrittenFile svg(flags.svg);
  const hardware::Device device = hardware::load_device(flags.hardware);
  const mapper::tile::Machine machine = mapper::tile::make_machine(device, flags.dtype);
  const cost::Work work = cost::work_of(op);
  const Bytes capacity = *device.dram().capacity;
  if (work.bytes() > capacity) {
    throw Error::infeasible(fmt::format("the operands and the result take {}, and {} has {}",
                                        format_bytes_binary(work.bytes()), device.name, format_bytes_binary(capacity)));
  }
  const mapper::tile::Problem problem = *mapper::tile::problem_of(op, work);
  const mapper::tile::Study study(machine, problem,
                                  {.keep = static_cast<std::size_t>(flags.top), .whole = flags.simulate});
  report::MappingStudy result;
  result.device = &device;
  result.dtype = flags.dtype;
  result.op = &op;
  result.name = name;
  result.study = &study;
  result.whole = flags.simulate;
  if (flags.tile_model == mapper::TileModel::published) {
    if (machine.tiles != 16 || bits(flags.dtype) != 16) {
      throw Error::bad_input("--tile-model: the published mapper is for 16 tiles and elements of 16 bits");
    }
    result.published = mapper::tile::published_time(machine, problem);
    if (result.published->feasible()) {
      result.recost = mapper::tile::recost(machine, study.grids(), problem, *result.published);
    }
  }
  Answer answer{report::mapping_report(result)};
  svg.commit(result.svg);
  return answer;
}

Answer map_gemm(const GemmFlags& f, const Context&) {
  graph::Gemm gemm = f.op;
  gemm.activation = f.dtype;
  if (f.then != nullptr) {
    gemm.joined.output = f.then->kind;
    gemm.joined.share = f.then->share;
    gemm.joined.reads = f.then->reads;
    gemm.joined.results = f.then->results;
  }
  return map_op(f, graph::Op{.name = "gemm", .body = gemm}, f.then != nullptr ? f.then->name : std::string_view());
}

Answer map_attention(const AttentionFlags& f, const Context&) {
  graph::Attention a = f.op;
  a.keys = f.keys.value_or(a.q_tokens);
  a.kv_heads = f.kv_heads.value_or(a.heads);
  a.v_dim = a.qk_dim;
  if (a.heads % a.kv_heads != 0) {
    throw Error::bad_input(fmt::format("--kv-heads: {} do not divide {} heads", a.kv_heads, a.heads));
  }
  a.activation = f.dtype;
  a.cached = {model::element_format(f.dtype), model::element_format(f.dtype)};
  if (f.causal) {
    if (a.keys < a.q_tokens) throw Error::bad_input("--causal: there are fewer keys than queries");
    a.context = a.keys - a.q_tokens;
    a.keys = 0;
  }
  return map_op(f, graph::Op{.name = "attention", .body = a}, {});
}

Answer map_vector(const VectorFlags& f, const Context& context) {
  graph::Vector v = f.op;
  v.kind = f.kind->kind;
  v.reads = f.kind->reads;
  v.writes = f.kind->writes;
  v.parameters = Bytes{f.kind->parameters * static_cast<double>(v.width) * bytes_per_element(f.dtype)};
  v.activation = f.dtype;
  return map_op(f, graph::Op{.name = "vector", .body = v}, find(context.given, "--kind")->value);
}

void add_common(Command& command, MapFlags& f) {
  command.add_field("hw", f.hardware).required();
  command.add("--dtype", f.dtype, dtypes(), "DTYPE", "type of the elements: bf16, fp16, int8, …");
  command.add("--simulate", f.simulate, "simulate every step of the best mapping, not few of every kind");
  command.add("--top", f.top, kMappings, "N", "mappings to simulate and show");
  command.add("--tile-model", f.tile_model,
              {{"default", mapper::TileModel::mapped}, {"published", mapper::TileModel::published}}, "NAME",
              "published: also what the published mapper's formulas give");
  command.add("--svg", f.svg, "FILE", "also draw the schedule into FILE");
}

Flag& required(Command& command, const std::string& flag, std::int64_t& value, const std::string& text,
               Bounds bounds = kExtent) {
  Flag& added = command.add(flag, value, bounds, "N", text).required();
  added.otherwise.clear();
  return added;
}

}  // namespace

void add_map(Command& root) {
  Command& command = root.add_command("map", "how one op runs best on an array of tiles, and why");

  Command& product = command.add_command("gemm", "matrix product [m, k] x [k, n]");
  GemmFlags& gemm = answers(product, map_gemm);
  required(product, "--m", gemm.op.m, "rows of the first operand and of the result");
  required(product, "--n", gemm.op.n, "columns of the second operand and of the result");
  required(product, "--k", gemm.op.k, "columns of the first operand, rows of the second");
  product.add("--batch", gemm.op.batch, kExtent, "N", "products with operands of their own");
  Meanings<const Then*> then;
  for (const Then& one : kThen) then.emplace_back(one.name, &one);
  product.add("--then", gemm.then, then, "OP", "joined to the product: " + words_of(then));
  add_common(product, gemm);

  Command& scores = command.add_command("attention", "softmax(Q K^T) V in one kernel");
  AttentionFlags& attention = answers(scores, map_attention);
  required(scores, "--queries", attention.op.q_tokens, "queries of a sequence");
  scores.add("--keys", attention.keys, kExtent, "N", "keys of a sequence [as many as queries]");
  required(scores, "--heads", attention.op.heads, "query heads", kHeads);
  scores.add("--kv-heads", attention.kv_heads, kHeads, "N", "key and value heads [as many as heads]");
  scores.add("--head-dim", attention.op.qk_dim, kHeads, "N", "elements of a head");
  scores.add("--batch", attention.op.sequences, kExtent, "N", "sequences");
  scores.add("--causal", attention.causal, "the last query sees all keys, each one before it one less");
  add_common(scores, attention);

  Command& rows = command.add_command("vector", "element-wise or row-wise work on [rows, width]");
  VectorFlags& vector = answers(rows, map_vector);
  Meanings<const graph::VectorOp*> kinds;
  for (const graph::VectorOp& op : graph::kVectorOps) {
    if (!op.is(graph::kMapped)) continue;
    kinds.emplace_back(op.name, &op);
    if (!op.alias.empty()) kinds.emplace_back(op.alias, &op);
  }
  rows.add("--kind", vector.kind, kinds, "OP", words_of(kinds)).required();
  required(rows, "--rows", vector.op.rows, "rows, which a norm or softmax is of");
  required(rows, "--width", vector.op.width, "elements of a row");
  add_common(rows, vector);
}

// ---- Collectives.

namespace {

struct CollectiveFlags {
  std::string hardware;
  graph::Collective op;
  std::string sizes;
  std::optional<std::int64_t> devices_per_node;
  std::optional<cost::Algorithm> algorithm;
  bool sweep = false;
};

// The values of an enumeration whose names go on to `last`, from `first`; "ring pass" is one word on the command line.
template <class Enum>
auto enum_words(Enum first, Enum last) {
  Meanings<Enum> all;
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    std::string word(name(static_cast<Enum>(i)));
    std::replace(word.begin(), word.end(), ' ', '-');
    all.emplace_back(std::move(word), static_cast<Enum>(i));
  }
  return all;
}

std::vector<Bytes> size_values(const CollectiveFlags& flags) {
  std::vector<Bytes> sizes;
  if (flags.sweep) {
    for (double size = kKiB; size <= kGiB; size *= 4) sizes.emplace_back(size);
    return sizes;
  }
  for (const std::string& text : list_value("--size", flags.sizes)) {
    sizes.push_back(amount_value("--size", text));
    if (sizes.back() < Bytes{1}) throw Error::bad_input(fmt::format("--size: {} is nothing to exchange", quote(text)));
  }
  return sizes;
}

Answer collective_answer(const CollectiveFlags& flags, const Context&) {
  if (flags.sizes.empty() != flags.sweep) {
    throw Error::bad_input("give either --size or --sweep", "--size 64MiB; --sweep goes from 1 KiB to 1 GiB");
  }
  const hardware::Device device = hardware::load_device(flags.hardware);
  report::CollectiveStudy study;
  study.device = &device;
  study.cluster = cost::make_cluster(device, flags.devices_per_node);
  study.collective = flags.op;
  study.sizes = size_values(flags);
  study.algorithm = flags.algorithm;
  study.node_given = flags.devices_per_node.has_value();
  return {report::collective_report(study)};
}

}  // namespace

void add_map_collective(Command& root) {
  Command& command =
      root.add_command("map-collective", "time of one collective by algorithm, with the fastest and why");
  CollectiveFlags& flags = answers(command, collective_answer);
  command.add_field("hw", flags.hardware).required();
  const auto kinds = enum_words(graph::CollectiveKind::all_reduce, graph::CollectiveKind::broadcast);
  command.add("--op", flags.op.kind, kinds, "OP", words_of(kinds, " or ")).required().otherwise.clear();
  command.add("--size", flags.sizes, "BYTES", "one size or a comma-separated list: 64MiB");
  command.add("--sweep", flags.sweep, "sizes from 1 KiB to 1 GiB");
  required(command, "--ranks", flags.op.ranks, "devices that take part", kRanks);
  command.add("--stride", flags.op.stride, kRanks, "N", "distance between their numbers; nodes have consecutive ones");
  command.add("--devices-per-node", flags.devices_per_node, kRanks, "N", "other than the hardware file says");
  command.add("--algorithm", flags.algorithm, enum_words(cost::Algorithm::ring, cost::Algorithm::direct), "NAME",
              "take this one instead of the fastest");
}

}  // namespace llmperf::cli
