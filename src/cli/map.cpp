// `llmperf map gemm|attention|vector`: how one op runs best on an array of tiles, and why. `llmperf map-collective`:
// how long one collective takes, and by which algorithm.
#include <fmt/format.h>

#include <algorithm>

#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "hardware/runtime_profile.h"
#include "mapper/machine.h"
#include "mapper/tile/published.h"
#include "mapper/tile/study.h"
#include "mapper/tile/tile_mapper.h"
#include "report/reports.h"
#include "result/mapping.h"

namespace llmperf::cli {
namespace {

constexpr Bounds kExtent{1, std::int64_t{1} << 30};
constexpr Bounds kHeads{1, 1 << 20};
constexpr Bounds kRanks{1, 1 << 20};
constexpr Bounds kMappings{1, 200};

struct MapFlags {
  std::string hardware;
  std::string grid;
  std::string runtime;
  Dtype dtype = Dtype::bf16;
  std::optional<int> passes;
  std::int64_t top = 3;
  mapper::TileModel tile_model = mapper::TileModel::mapped;
  std::string svg;
  bool simulate = false;
  // Of a product.
  bool near = false;
  std::string mapping;
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
  std::optional<Dtype> b_dtype;
  std::optional<Dtype> out_dtype;
  std::string local;
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

// "8x8": the part of the mesh that programs run on.
std::optional<hardware::TilePlace> grid_of(const std::string& text, const hardware::Device& device) {
  if (text.empty() || !device.tile_array) return std::nullopt;
  const std::optional<hardware::TilePlace> grid = hardware::parse_sides(text);
  if (!grid) throw Error::bad_input(fmt::format("--grid: {} is not columns x rows", quote(text)), "--grid 8x8");
  const hardware::TileArray& array = *device.tile_array;
  if (grid->x > array.mesh_x || grid->y > array.mesh_y) {
    throw Error::bad_input(fmt::format("--grid: {}x{} has more tiles than the mesh of {}, {}x{}", grid->x, grid->y,
                                       device.name, array.mesh_x, array.mesh_y));
  }
  return grid;
}

// What software makes of the device: a profile with numbers of mappings on tiles. Without a name the device's own, if
// there is one.
std::optional<hardware::RuntimeProfile> profile_of(const hardware::Device& device, const std::string& name) {
  std::optional<hardware::RuntimeProfile> found;
  if (name == "none") return found;
  std::vector<std::string> mapping;
  for (const std::string& own : hardware::runtimes_of(device)) {
    hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, own);
    if (!profile.choices.tile_mappings) continue;
    mapping.push_back(own);
    if (!found || profile.preferred) found = std::move(profile);
  }
  if (name.empty()) return found;
  found = hardware::load_runtime_profile(device, name);
  if (found->choices.tile_mappings) return found;
  throw Error::bad_input(fmt::format("--runtime: {} says nothing of mappings on tiles", found->name),
                         mapping.empty()
                             ? fmt::format("no profile of {} does; none: the rates of its file", device.name)
                             : "those that do: " + join(mapping, ", "));
}

// Work on an op's operands as `estimate` would pose it.
Answer map_op(const MapFlags& flags, const graph::Op& op, std::string_view name, const result::ProductTerms& terms) {
  namespace tile = mapper::tile;
  WrittenFile svg(flags.svg);
  const hardware::Device device = hardware::load_device(flags.hardware);
  const std::optional<hardware::RuntimeProfile> profile = profile_of(device, flags.runtime);
  tile::Problem problem = *tile::problem_of(op, cost::work_of(op), profile ? &profile->choices : nullptr);
  const bool attends = std::holds_alternative<tile::AttentionProblem>(problem);
  report::MappingStudy result;
  result.operands = {
      .dtype = flags.dtype, .passes = flags.passes, .near = flags.near, .grid = grid_of(flags.grid, device)};
  if (auto* gemm = std::get_if<tile::GemmProblem>(&problem)) {
    const auto local = [&](char operand) { return terms.local.find(operand) != std::string::npos; };
    gemm->b_bytes = bytes_per_element(terms.second);
    gemm->c_bytes = bytes_per_element(terms.results);
    if (gemm->finish_bytes > 0) gemm->finish_bytes = gemm->c_bytes;  // a residual is of the results' type
    gemm->a_local = local('a');
    gemm->b_local = local('b');
    gemm->c_local = local('c');
    // The format of weights decides how they are multiplied.
    result.operands.bytes = gemm->a_bytes + gemm->b_bytes;
    if (device.find_peak(hardware::Engine::matrix, terms.second) != nullptr) {
      result.operands.dtype = terms.second;
    }
  }
  const tile::Machine machine =
      tile::make_machine(device, result.operands,
                         profile ? tile::reached_of(*profile, attends ? tile::Kernel::attention : tile::Kernel::product)
                                 : tile::Reached{});
  if (flags.near && !profile && !device.tile_array->channels) {
    throw Error::bad_input(fmt::format("--near: {} does not say where its channels are", device.name),
                           "tile_array: {channels: {places: …}, …}");
  }
  const Bytes bytes{std::visit([](const auto& p) { return p.least_bytes(); }, problem)};
  const Bytes capacity = *device.dram().capacity;
  if (bytes > capacity) {
    throw Error::infeasible(fmt::format("the operands and the result take {}, and {} has {}",
                                        format_bytes_binary(bytes), device.name, format_bytes_binary(capacity)));
  }
  const tile::Study study(
      machine, problem, {.keep = static_cast<std::size_t>(flags.top), .whole = flags.simulate, .given = flags.mapping});
  result.device = &device;
  if (profile) result.runtime = profile->title_for(device);
  result.dtype = flags.dtype;
  result.product = terms;
  result.op = &op;
  result.name = name;
  result.study = &study;
  result.whole = flags.simulate;
  if (flags.tile_model == mapper::TileModel::published) {
    const bool plain = bits(terms.second) == 16 && bits(terms.results) == 16 && terms.local.empty();
    if (machine.tiles != 16 || bits(flags.dtype) != 16 || !plain) {
      throw Error::bad_input("--tile-model: the published mapper is for 16 tiles and elements of 16 bits in DRAM");
    }
    result.published = tile::published_time(machine, problem);
    if (result.published->feasible()) {
      result.recost = tile::recost(machine, study.grids(), problem, *result.published);
    }
  }
  Answer answer{report::mapping_report(result)};
  svg.commit(result.svg);
  return answer;
}

// Of "c,a": "a, c".
std::string local_of(const std::string& text) {
  if (text.empty()) return text;
  const std::vector<std::string> kOperands = {"a", "b", "c"};
  const std::vector<std::string> given = list_value("--local", text);
  for (const std::string& one : given) {
    if (!contains(kOperands, one)) {
      throw Error::bad_input(fmt::format("--local: {} is none of a, b and c", quote(one)),
                             "a and b are the operands, c the results");
    }
  }
  std::vector<std::string> found;
  for (const std::string& one : kOperands) {
    if (contains(given, one)) found.push_back(one);
  }
  return join(found, ", ");
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
  const result::ProductTerms terms{f.b_dtype.value_or(f.dtype), f.out_dtype.value_or(f.dtype), local_of(f.local)};
  if (f.near && terms.local.find('b') != std::string::npos) {
    throw Error::bad_input("--near has no effect beside --local b: nothing comes over the channels");
  }
  return map_op(f, graph::Op{.name = "gemm", .body = gemm}, f.then != nullptr ? f.then->name : std::string_view(),
                terms);
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
  return map_op(f, graph::Op{.name = "attention", .body = a}, {}, {f.dtype, f.dtype, {}});
}

Answer map_vector(const VectorFlags& f, const Context& context) {
  graph::Vector v = f.op;
  v.kind = f.kind->kind;
  v.reads = f.kind->reads;
  v.writes = f.kind->writes;
  v.parameters = Bytes{f.kind->parameters * static_cast<double>(v.width) * bytes_per_element(f.dtype)};
  v.activation = f.dtype;
  return map_op(f, graph::Op{.name = "vector", .body = v}, find(context.given, "--kind")->value,
                {f.dtype, f.dtype, {}});
}

void add_common(Command& command, MapFlags& f) {
  command.add_field("hw", f.hardware).required();
  command.add("--dtype", f.dtype, dtypes(), "DTYPE", "type of the elements: bf16, fp16, int8, bfp8, …");
  command.add("--grid", f.grid, "CxR", "columns and rows of the mesh to run on [all, or those of the device's file]");
  command.add_field("runtime", f.runtime).about =
      "profile with rates that software reaches on tiles [the device's own]; none: those of its file";
  command.add("--simulate", f.simulate, "simulate every step of the best mapping, not few of every kind");
  command.add("--top", f.top, kMappings, "N", "mappings to simulate and show");
  command.add("--tile-model", f.tile_model,
              {{"default", mapper::TileModel::mapped}, {"published", mapper::TileModel::published}}, "NAME",
              "published: also what the published mapper's formulas give");
  command.add("--svg", f.svg, "FILE", "also draw the schedule into FILE");
}

void add_passes(Command& command, MapFlags& f) {
  command.add("--passes", f.passes, Bounds{1, 16}, "N", "of the matrix unit [those that the device's rate is of]");
}

Flag& required(Command& command, const std::string& flag, std::int64_t& value, const std::string& text,
               Bounds bounds = kExtent) {
  return command.add(flag, value, bounds, "N", text).required();
}

void describe_gemm(Command& command) {
  GemmFlags& gemm = answers(command, map_gemm);
  required(command, "--m", gemm.op.m, "rows of the first operand and of the result");
  required(command, "--n", gemm.op.n, "columns of the second operand and of the result");
  required(command, "--k", gemm.op.k, "columns of the first operand, rows of the second");
  command.add("--batch", gemm.op.batch, kExtent, "N", "products with operands of their own");
  Meanings<const Then*> then;
  for (const Then& one : kThen) then.emplace_back(one.name, &one);
  command.add("--then", gemm.then, then, "OP", "joined to the product: " + words_of(then));
  add_common(command, gemm);
  add_passes(command, gemm);
  command.add("--b-dtype", gemm.b_dtype, dtypes(), "DTYPE", "type of the second operand [that of the first]");
  command.add("--out-dtype", gemm.out_dtype, dtypes(), "DTYPE", "type of the results [that of the first operand]");
  command.add("--local", gemm.local, "LIST", "what is in the tiles' memory: a, b (operands), c (results)");
  command.add("--near", gemm.near, "the second operand is read by the tiles beside the DRAM channels");
  command.add("--mapping", gemm.mapping, "TEXT",
              "compare this one with the best: \"grid=m4n4 block=256x128x64 a=multicast:2 …\"; what it does not say is "
              "chosen");
}

void describe_attention(Command& command) {
  AttentionFlags& attention = answers(command, map_attention);
  required(command, "--queries", attention.op.q_tokens, "queries of a sequence");
  command.add("--keys", attention.keys, kExtent, "N", "keys of a sequence [as many as queries]");
  required(command, "--heads", attention.op.heads, "query heads", kHeads);
  command.add("--kv-heads", attention.kv_heads, kHeads, "N", "key and value heads [as many as heads]");
  command.add("--head-dim", attention.op.qk_dim, kHeads, "N", "elements of a head");
  command.add("--batch", attention.op.sequences, kExtent, "N", "sequences");
  command.add("--causal", attention.causal, "the last query sees all keys, each one before it one less");
  add_common(command, attention);
  add_passes(command, attention);
}

void describe_vector(Command& command) {
  VectorFlags& vector = answers(command, map_vector);
  Meanings<const graph::VectorOp*> kinds;
  for (const graph::VectorOp& op : graph::kVectorOps) {
    if (!op.is(graph::kMapped)) continue;
    kinds.emplace_back(op.name, &op);
    if (!op.alias.empty()) kinds.emplace_back(op.alias, &op);
  }
  command.add("--kind", vector.kind, kinds, "OP", words_of(kinds)).required();
  required(command, "--rows", vector.op.rows, "rows, which a norm or softmax is of");
  required(command, "--width", vector.op.width, "elements of a row");
  add_common(command, vector);
}

}  // namespace

void describe_map(Command& command) {
  command.add_command("gemm", "matrix product [m, k] x [k, n]", describe_gemm);
  command.add_command("attention", "softmax(Q K^T) V in one kernel", describe_attention);
  command.add_command("vector", "element-wise or row-wise work on [rows, width]", describe_vector);
  command.add_command("model", "the ops of one step of a model, and which results stay in the tiles' memory",
                      describe_map_model);
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

void describe_map_collective(Command& command) {
  CollectiveFlags& flags = answers(command, collective_answer);
  command.add_field("hw", flags.hardware).required();
  const auto kinds = enum_words(graph::CollectiveKind::all_reduce, graph::CollectiveKind::broadcast);
  command.add("--op", flags.op.kind, kinds, "OP", words_of(kinds, " or ")).required();
  command.add("--size", flags.sizes, "BYTES", "one size or a comma-separated list: 64MiB");
  command.add("--sweep", flags.sweep, "sizes from 1 KiB to 1 GiB");
  required(command, "--ranks", flags.op.ranks, "devices that take part", kRanks);
  command.add("--stride", flags.op.stride, kRanks, "N", "distance between their numbers; nodes have consecutive ones");
  command.add("--devices-per-node", flags.devices_per_node, kRanks, "N", "other than the hardware file says");
  command.add("--algorithm", flags.algorithm, enum_words(cost::Algorithm::ring, cost::Algorithm::direct), "NAME",
              "take this one instead of the fastest");
}

}  // namespace llmperf::cli
