// `llmperf map gemm|attention|vector`: how one op runs best on an array of tiles, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "mapper/machine.h"
#include "mapper/tile/published_choice.h"
#include "mapper/tile/study.h"
#include "report/mapping_report.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 30;
constexpr std::int64_t kMostMappings = 20;

struct Flags {
  std::string hardware;
  std::string dtype = "bf16";
  std::string top = "3";
  std::string tile_model = "default";
  std::string svg;
  bool simulate = false;
  OutputFlags output;
};
struct GemmFlags : Flags {
  std::string m, n, k;
  std::string batch = "1";
  std::string then;
};
struct AttentionFlags : Flags {
  std::string queries, keys, heads, kv_heads;
  std::string head_dim = "128";
  std::string batch = "1";
  bool causal = false;
};
struct VectorFlags : Flags {
  std::string kind, rows, width;
};

// The element-wise ops by the tensors of [rows, width] they read and write, and the elements of a row they have as
// parameters.
struct VectorShape {
  std::string_view name;
  graph::VectorKind kind;
  double reads;
  double writes;
  double parameters;
};
using enum graph::VectorKind;
constexpr VectorShape kVectors[] = {
    {"rms_norm", rms_norm, 1, 1, 1},
    {"layer_norm", layer_norm, 1, 1, 2},
    {"add", add, 2, 1, 0},
    {"add_rms_norm", add_rms_norm, 2, 2, 1},
    {"add_layer_norm", add_layer_norm, 2, 2, 2},
    {"rope", rope, 1, 1, 0},
    {"activation", activation, 1, 1, 0},
    {"silu", activation, 1, 1, 0},
    {"gated_activation", gated_activation, 2, 1, 0},
    {"silu_mul", gated_activation, 2, 1, 0},
    {"multiply", multiply, 2, 1, 0},
    {"softmax", softmax, 1, 1, 0},
    {"modulate", modulate, 1, 1, 2},
    {"gate_add", gate_add, 2, 1, 1},
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
int map_op(const Flags& flags, const graph::Op& op, std::string_view name, Dtype dtype) {
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
  Output output(flags.output, flags.svg);
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
  const report::MappingReport report = report::mapping_report(result);
  output.write(report.report, report.svg);
  return kExitDone;
}

int map_gemm(const GemmFlags& f) {
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
  return map_op(f, graph::Op{.name = "gemm", .body = g}, f.then, dtype);
}

int map_attention(const AttentionFlags& f) {
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
  return map_op(f, graph::Op{.name = "attention", .body = a}, {}, dtype);
}

int map_vector(const VectorFlags& f) {
  const Dtype dtype = dtype_value("--dtype", f.dtype);
  const VectorShape& shape = named("--kind", f.kind, kVectors);
  graph::Vector v;
  v.kind = shape.kind;
  v.rows = extent("--rows", f.rows);
  v.width = extent("--width", f.width);
  v.reads = shape.reads;
  v.writes = shape.writes;
  v.parameters = Bytes{shape.parameters * static_cast<double>(v.width) * bytes_per_element(dtype)};
  v.activation = dtype;
  return map_op(f, graph::Op{.name = "vector", .body = v}, shape.name, dtype);
}

template <class Entries>
std::string names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return join(names, ", ");
}

void add_common(CLI::App& command, Flags& f) {
  add_hardware_flag(command, f.hardware);
  command.add_option("--dtype", f.dtype, "type of the elements: bf16, fp16, int8, …")
      ->type_name("DTYPE")
      ->capture_default_str();
  command.add_flag("--simulate", f.simulate, "simulate every step of the best mapping, not few of every kind");
  command.add_option("--top", f.top, "mappings to simulate and show")->type_name("N")->capture_default_str();
  command.add_option("--tile-model", f.tile_model, "published: also what the published mapper's formulas give")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--svg", f.svg, "also draw the schedule into FILE")->type_name("FILE");
  add_output_flags(command, f.output);
}

CLI::Option* required(CLI::App& command, const std::string& flag, std::string& value, const std::string& text) {
  return command.add_option(flag, value, text)->type_name("N")->required();
}

}  // namespace

void add_map(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("map", "how one op runs best on an array of tiles, and why");
  command->require_subcommand(1);

  auto gemm = std::make_shared<GemmFlags>();
  CLI::App* product = command->add_subcommand("gemm", "matrix product [m, k] x [k, n]");
  required(*product, "--m", gemm->m, "rows of the first operand and of the result");
  required(*product, "--n", gemm->n, "columns of the second operand and of the result");
  required(*product, "--k", gemm->k, "columns of the first operand, rows of the second");
  product->add_option("--batch", gemm->batch, "products with operands of their own")
      ->type_name("N")
      ->capture_default_str();
  product->add_option("--then", gemm->then, "joined to the product: " + names_of(kThen))->type_name("OP");
  add_common(*product, *gemm);
  product->callback([gemm, &action] { action = [gemm] { return map_gemm(*gemm); }; });

  auto attention = std::make_shared<AttentionFlags>();
  CLI::App* scores = command->add_subcommand("attention", "softmax(Q K^T) V in one kernel");
  required(*scores, "--queries", attention->queries, "queries of a sequence");
  scores->add_option("--keys", attention->keys, "keys of a sequence [as many as queries]")->type_name("N");
  required(*scores, "--heads", attention->heads, "query heads");
  scores->add_option("--kv-heads", attention->kv_heads, "key and value heads [as many as heads]")->type_name("N");
  scores->add_option("--head-dim", attention->head_dim, "elements of a head")->type_name("N")->capture_default_str();
  scores->add_option("--batch", attention->batch, "sequences")->type_name("N")->capture_default_str();
  scores->add_flag("--causal", attention->causal, "the last query sees all keys, each one before it one less");
  add_common(*scores, *attention);
  scores->callback([attention, &action] { action = [attention] { return map_attention(*attention); }; });

  auto vector = std::make_shared<VectorFlags>();
  CLI::App* rows = command->add_subcommand("vector", "element-wise or row-wise work on [rows, width]");
  rows->add_option("--kind", vector->kind, names_of(kVectors))->type_name("OP")->required();
  required(*rows, "--rows", vector->rows, "rows, which a norm or softmax is of");
  required(*rows, "--width", vector->width, "elements of a row");
  add_common(*rows, *vector);
  rows->callback([vector, &action] { action = [vector] { return map_vector(*vector); }; });
}

}  // namespace llmperf::cli
