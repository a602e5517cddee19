// `llmperf map gemm|attention|vector`: how one op runs best on an array of tiles, and why.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
#include "mapper/machine.h"
#include "mapper/tile/published.h"
#include "mapper/tile/study.h"
#include "report/reports.h"
#include "result/mapping.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 30;
constexpr std::int64_t kMostMappings = 20;

struct MapFlags {
  std::string hardware;
  std::string dtype = "bf16";
  std::string top = "3";
  std::string tile_model = "default";
  std::string svg;
  bool simulate = false;
  OutputFlags output;
};
struct GemmFlags : MapFlags {
  std::string m, n, k;
  std::string batch = "1";
  std::string then;
};
struct AttentionFlags : MapFlags {
  std::string queries, keys, heads, kv_heads;
  std::string head_dim = "128";
  std::string batch = "1";
  bool causal = false;
};
struct VectorFlags : MapFlags {
  std::string kind, rows, width;
};

// The words of --kind.
struct VectorWord {
  std::string_view name;
  const graph::VectorOp* op;
};
std::vector<VectorWord> vector_words() {
  std::vector<VectorWord> words;
  for (const graph::VectorOp& op : graph::kVectorOps) {
    if (!op.is(graph::kMapped)) continue;
    words.push_back({op.name, &op});
    if (!op.alias.empty()) words.push_back({op.alias, &op});
  }
  return words;
}

using enum graph::VectorKind;
// What a product's kernel does to its results.
struct Then {
  std::string_view name;
  graph::VectorKind kind;
  double share;
  double reads;
  double results;
};
constexpr Then kThen[] = {
    {"activation", activation, 1, 0, 1},
    {"gated_activation", gated_activation, 0.5, 0, 0.5},  // n: of both products, side by side
    {"add", add, 1, 1, 1},                                // a residual
};

template <class Entries>
const auto& named(std::string_view flag, const std::string& text, const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    if (entry.name == text) return entry;
    names.emplace_back(entry.name);
  }
  throw Error::bad_input(fmt::format("{}: there is no {}", flag, quote(text)), name_hint(text, names));
}

std::int64_t extent(std::string_view flag, const std::string& text) { return int_value(flag, text, 1, kMostExtent); }

// Work on an op's operands as `estimate` would pose it.
int map_op(const MapFlags& flags, const Context& context, const graph::Op& op, std::string_view name, Dtype dtype) {
  const mapper::TileModel model = mapper::parse_tile_model(flags.tile_model);
  if (model == mapper::TileModel::roofline) throw Error::bad_input("--tile-model: the roofline makes no mapping");
  mapper::tile::StudyOptions options;
  options.keep = static_cast<std::size_t>(int_value("--top", flags.top, 1, kMostMappings));
  options.whole = flags.simulate;
  const hardware::Device device = hardware::load_device(flags.hardware);
  const mapper::tile::Machine machine = mapper::tile::make_machine(device, dtype);
  const cost::Work work = cost::work_of(op);
  const Bytes capacity = *device.dram().capacity;
  if (work.bytes() > capacity) {
    Diagnostic d;
    d.message = fmt::format("the operands and the result take {}, and {} has {}", format_bytes_binary(work.bytes()),
                            device.name, format_bytes_binary(capacity));
    throw Error(ErrorKind::infeasible, {d});
  }
  const mapper::tile::Problem problem = *mapper::tile::problem_of(op, work);
  Output output(flags.output, context, flags.svg);
  const mapper::tile::Study study(machine, problem, options);
  report::MappingStudy result;
  result.device = &device;
  result.dtype = dtype;
  result.op = &op;
  result.name = name;
  result.study = &study;
  result.whole = options.whole;
  if (model == mapper::TileModel::published) {
    if (machine.tiles != 16 || bits(dtype) != 16) {
      throw Error::bad_input("--tile-model: the published mapper is for 16 tiles and elements of 16 bits");
    }
    result.published = mapper::tile::published_time(machine, problem);
    if (result.published->feasible()) {
      result.recost = mapper::tile::recost(machine, study.grids(), problem, *result.published);
    }
  }
  const report::Report report = report::mapping_report(result);
  output.write(report, result.svg);
  return kExitDone;
}

int map_gemm(const GemmFlags& f, const Context& context) {
  const Dtype dtype = dtype_value("--dtype", f.dtype);
  graph::Gemm g;
  g.m = extent("--m", f.m);
  g.n = extent("--n", f.n);
  g.k = extent("--k", f.k);
  g.batch = extent("--batch", f.batch);
  g.activation = dtype;
  if (!f.then.empty()) {
    const Then& then = named("--then", f.then, kThen);
    g.joined.output = then.kind;
    g.joined.share = then.share;
    g.joined.reads = then.reads;
    g.joined.results = then.results;
  }
  return map_op(f, context, graph::Op{.name = "gemm", .body = g}, f.then, dtype);
}

int map_attention(const AttentionFlags& f, const Context& context) {
  constexpr std::int64_t kMostHeads = 1 << 20;
  const Dtype dtype = dtype_value("--dtype", f.dtype);
  graph::Attention a;
  a.sequences = extent("--batch", f.batch);
  a.q_tokens = extent("--queries", f.queries);
  a.keys = f.keys.empty() ? a.q_tokens : extent("--keys", f.keys);
  a.heads = int_value("--heads", f.heads, 1, kMostHeads);
  a.kv_heads = f.kv_heads.empty() ? a.heads : int_value("--kv-heads", f.kv_heads, 1, kMostHeads);
  a.qk_dim = a.v_dim = int_value("--head-dim", f.head_dim, 1, kMostHeads);
  if (a.heads % a.kv_heads != 0) {
    throw Error::bad_input(fmt::format("--kv-heads: {} do not divide {} heads", a.kv_heads, a.heads));
  }
  a.activation = dtype;
  a.cached = {model::element_format(dtype), model::element_format(dtype)};
  if (f.causal) {
    if (a.keys < a.q_tokens) throw Error::bad_input("--causal: there are fewer keys than queries");
    a.context = a.keys - a.q_tokens;
    a.keys = 0;
  }
  return map_op(f, context, graph::Op{.name = "attention", .body = a}, {}, dtype);
}

int map_vector(const VectorFlags& f, const Context& context) {
  const Dtype dtype = dtype_value("--dtype", f.dtype);
  const std::vector<VectorWord> words = vector_words();
  const VectorWord& word = named("--kind", f.kind, words);
  graph::Vector v;
  v.kind = word.op->kind;
  v.rows = extent("--rows", f.rows);
  v.width = extent("--width", f.width);
  v.reads = word.op->reads;
  v.writes = word.op->writes;
  v.parameters = Bytes{word.op->parameters * static_cast<double>(v.width) * bytes_per_element(dtype)};
  v.activation = dtype;
  return map_op(f, context, graph::Op{.name = "vector", .body = v}, word.name, dtype);
}

template <class Entries>
std::string names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return join(names, ", ");
}

void add_common(Command& command, MapFlags& f) {
  command.add_field("hw", f.hardware).required();
  command.add("--dtype", f.dtype, "DTYPE", "type of the elements: bf16, fp16, int8, …")
      .offers(Values::Sort::words, dtypes);
  command.add("--simulate", f.simulate, "simulate every step of the best mapping, not few of every kind");
  command.add("--top", f.top, "N", "mappings to simulate and show");
  command.add("--tile-model", f.tile_model, "NAME", "published: also what the published mapper's formulas give")
      .offers(Values::Sort::words, "default published");
  command.add("--svg", f.svg, "FILE", "also draw the schedule into FILE");
  add_output_flags(command, f.output);
}

Flag& required(Command& command, const std::string& flag, std::string& value, const std::string& text) {
  return command.add(flag, value, "N", text).required();
}

}  // namespace

void add_map(Command& root) {
  Command& command = root.add_command("map", "how one op runs best on an array of tiles, and why");

  auto gemm = std::make_shared<GemmFlags>();
  Command& product = command.add_command("gemm", "matrix product [m, k] x [k, n]");
  required(product, "--m", gemm->m, "rows of the first operand and of the result");
  required(product, "--n", gemm->n, "columns of the second operand and of the result");
  required(product, "--k", gemm->k, "columns of the first operand, rows of the second");
  product.add("--batch", gemm->batch, "N", "products with operands of their own");
  product.add("--then", gemm->then, "OP", "joined to the product: " + names_of(kThen))
      .offers(Values::Sort::words, "activation gated_activation add");
  add_common(product, *gemm);
  product.action = [gemm](const Context& context) { return map_gemm(*gemm, context); };

  auto attention = std::make_shared<AttentionFlags>();
  Command& scores = command.add_command("attention", "softmax(Q K^T) V in one kernel");
  required(scores, "--queries", attention->queries, "queries of a sequence");
  scores.add("--keys", attention->keys, "N", "keys of a sequence [as many as queries]");
  required(scores, "--heads", attention->heads, "query heads");
  scores.add("--kv-heads", attention->kv_heads, "N", "key and value heads [as many as heads]");
  scores.add("--head-dim", attention->head_dim, "N", "elements of a head");
  scores.add("--batch", attention->batch, "N", "sequences");
  scores.add("--causal", attention->causal, "the last query sees all keys, each one before it one less");
  add_common(scores, *attention);
  scores.action = [attention](const Context& context) { return map_attention(*attention, context); };

  auto vector = std::make_shared<VectorFlags>();
  Command& rows = command.add_command("vector", "element-wise or row-wise work on [rows, width]");
  rows.add("--kind", vector->kind, "OP", names_of(vector_words())).required();
  required(rows, "--rows", vector->rows, "rows, which a norm or softmax is of");
  required(rows, "--width", vector->width, "elements of a row");
  add_common(rows, *vector);
  rows.action = [vector](const Context& context) { return map_vector(*vector, context); };
}

}  // namespace llmperf::cli
