// The mapper as a whole: a Llama-7B layer over 4096 tokens on the published tx8 machine, op by op, and what estimates
// ask of it.
#include "mapper/tile/tile_mapper.h"

#include <array>

#include "base/error.h"
#include "catch.h"
#include "hardware/device.h"
#include "mapper/machine.h"
#include "mapper/tile/published.h"

namespace llmperf::mapper::tile_mapper_test {
namespace {

using tile::AttentionProblem;
using tile::GemmProblem;
using tile::TileMapper;
using tile::VectorProblem;

GemmProblem gemm(std::int64_t n, std::int64_t k) { return {.m = 4096, .n = n, .k = k}; }
VectorProblem vector(std::int64_t width, double operands, double ops) {
  return {.rows = 4096, .width = width, .in_bytes = 2 * operands, .ops = ops};
}
VectorProblem norm() {
  VectorProblem p = vector(4096, 1, 4);
  p.shared_bytes = 2;
  p.row_wise = true;
  return p;
}
// Every query sees every key, and rotation is part of it.
AttentionProblem attention() { return {.kv_heads = 32, .queries = 4096, .keys = 4096, .rope_ops = 3}; }

// Perfect overlap, every tensor moved once.
double bound(const tile::Machine& m, double flops, double vector_ops, double bytes) {
  return std::max({flops / (m.tiles * m.matrix), vector_ops / (m.tiles * m.vector), bytes / m.dram});
}
double vector_ops(const GemmProblem& p) {
  return static_cast<double>(p.m) *
         (p.finish_ops * static_cast<double>(p.n) + p.prepare_ops * static_cast<double>(p.k));
}

template <typename P>
double simulated_on(const TileMapper& mapper, const P& p) {
  return std::get<tile::Mapped<P>>(mapper.map(p, Dtype::bf16)).found.front().simulated;
}

struct Sum {
  const TileMapper& mapper;
  double simulated = 0;
  double bound = 0;
  void take(double seconds, double least) {
    CHECK(seconds >= least * (1 - 1e-9));
    simulated += seconds;
    bound += least;
  }
  template <typename P>
  void add(const P& p, double flops, double vector_ops) {
    take(simulated_on(mapper, p),
         tile_mapper_test::bound(mapper.machine(Dtype::bf16), flops, vector_ops, p.least_bytes()));
  }
  void add(const GemmProblem& p) { add(p, p.flops(), vector_ops(p)); }
  void add(const AttentionProblem& p) { add(p, p.flops(), p.vector_ops()); }
  void add(const VectorProblem& p) { add(p, 0, p.vector_ops()); }
};

constexpr double kLayers = 32;

}  // namespace

TEST_CASE("32 layers of Llama-7B, op by op, take less than 747 ms and more than the 697.5 ms of perfect overlap") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const TileMapper mapper(tx8);
  Sum layer{mapper};
  GemmProblem up = gemm(11008, 4096);
  up.finish_ops = 4;  // SiLU
  layer.add(norm());
  layer.add(gemm(12288, 4096));
  layer.add(attention());
  layer.add(gemm(4096, 4096));
  layer.add(vector(4096, 2, 1));
  layer.add(norm());
  layer.add(up);
  layer.add(gemm(11008, 4096));
  layer.add(vector(11008, 2, 1));
  layer.add(gemm(4096, 11008));
  layer.add(vector(4096, 2, 1));
  CHECK(kLayers * layer.bound == Approx(0.6975).epsilon(0.001));
  CHECK(kLayers * layer.simulated <= 0.747);
}

TEST_CASE("with vector work joined to products, and up and gate as one, they take less than 600 ms") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const TileMapper mapper(tx8);
  Sum layer{mapper};
  GemmProblem qkv = gemm(12288, 4096);
  qkv.prepare_ops = 4;
  GemmProblem out = gemm(4096, 4096);
  out.finish_ops = 1;
  out.finish_bytes = 2;
  GemmProblem up = gemm(22016, 4096);
  up.prepare_ops = 4;
  up.finish_ops = 2.5;  // SiLU and a product per pair
  up.results = 0.5;
  GemmProblem down = gemm(4096, 11008);
  down.finish_ops = 1;
  down.finish_bytes = 2;
  layer.add(qkv);
  layer.add(attention());
  layer.add(out);
  layer.add(up);
  layer.add(down);
  CHECK(kLayers * layer.simulated <= 0.600);
}

TEST_CASE("matrices that share a product's rows each meet their part of them") {
  const model::StoredFormat bf16{.bits = 16};
  const auto problem = [&](const graph::Gemm& g) {
    const graph::Op op{.name = "product", .body = g};
    return std::get<GemmProblem>(*tile::problem_of(op, cost::work_of(op, {})));
  };
  // 64 rows of 16 heads, a matrix each; 64 rows dealt to 8 experts; one matrix for the rows of four sequences.
  const GemmProblem heads =
      problem({.m = 64, .n = 512, .k = 128, .batch = 16, .weights = &bf16, .weight_matrices = 16});
  CHECK((heads.batch == 16 && heads.m == 64));
  const GemmProblem experts = problem({.m = 64, .n = 512, .k = 128, .weights = &bf16, .weight_matrices = 8});
  CHECK((experts.batch == 8 && experts.m == 8));
  const GemmProblem one = problem({.m = 64, .n = 512, .k = 128, .batch = 4, .weights = &bf16});
  CHECK((one.batch == 1 && one.m == 256));
  for (const GemmProblem& p : {heads, experts, one}) CHECK(p.b_bytes == 2);
}

TEST_CASE("where a stack says so the activations of few rows stay in the tiles") {
  hardware::KernelChoices choices;
  choices.near_rows = 32;
  const model::StoredFormat bf16{.bits = 16};
  const auto problem = [&](const graph::OpBody& body) {
    const graph::Op op{.name = "op", .body = body};
    return *tile::problem_of(op, cost::work_of(op, {}), &choices);
  };
  const auto product = [&](const graph::Gemm& g) { return std::get<GemmProblem>(problem(g)); };
  const GemmProblem few = product({.m = 32, .n = 512, .k = 128, .weights = &bf16});
  CHECK((few.a_local && !few.b_local && few.c_local));
  CHECK(few.least_bytes() == 512 * 128 * 2);
  // Keys and values leave for the cache. More rows, 16 matrices of 4 rows each, and two activations come from the DRAM.
  graph::Gemm cached{.m = 32, .n = 512, .k = 128, .weights = &bf16};
  cached.joined.cached = 128;
  CHECK(!product(cached).c_local);
  CHECK(!product({.m = 33, .n = 512, .k = 128, .weights = &bf16}).a_local);
  CHECK(!product({.m = 4, .n = 512, .k = 128, .batch = 16, .weights = &bf16, .weight_matrices = 16}).a_local);
  CHECK(!product({.m = 32, .n = 512, .k = 128}).a_local);
  const auto bytes = [&](std::int64_t rows) {
    return std::get<VectorProblem>(problem(graph::Vector{.rows = rows, .width = 512, .parameters = Bytes{1024}}))
        .least_bytes();
  };
  CHECK(bytes(32) == 1024);
  CHECK(bytes(33) == 1024 + 33 * 512 * 2 * 2);
}

TEST_CASE("rows of queries cost keys of their own in prompts alone") {
  const hardware::Device n150 = hardware::load_device("wormhole-n150");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(n150, "");
  const auto time = [&](std::int64_t queries, std::int64_t context, double keys) {
    profile.values[hardware::index(hardware::Parameter::tile_attention_keys)] = keys;
    const Machine machine(n150, cost::make_cluster(n150), nullptr, {}, &profile);
    const graph::Op op{.name = "attention",
                       .body = graph::Attention{.sequences = 1,
                                                .q_tokens = queries,
                                                .context = context,
                                                .heads = 32,
                                                .kv_heads = 8,
                                                .qk_dim = 128,
                                                .v_dim = 128}};
    return machine.time(op, machine.work(op)).total.value;
  };
  CHECK(time(1, 1023, 1000) == time(1, 1023, 2000));
  // As much for every thousand.
  const double none = time(1024, 0, 1e-9);
  CHECK(time(1024, 0, 2000) - none == Approx(2 * (time(1024, 0, 1000) - none)));
}

// One head of one sequence has 16 of the 64 tiles, so that its keys take four times as long; four heads have all of
// them.
TEST_CASE("where a stack says so few tiles share a head's keys in decode") {
  const hardware::Device n150 = hardware::load_device("wormhole-n150");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(n150, "");
  const auto time = [&](std::int64_t heads, std::int64_t queries, std::int64_t most) {
    profile.choices.head_tiles = most;
    const Machine machine(n150, cost::make_cluster(n150), nullptr, {}, &profile);
    const graph::Op op{.name = "attention",
                       .body = graph::Attention{.sequences = 1,
                                                .q_tokens = queries,
                                                .context = 65535,
                                                .heads = 4 * heads,
                                                .kv_heads = heads,
                                                .qk_dim = 128,
                                                .v_dim = 128}};
    return machine.time(op, machine.work(op)).total.value;
  };
  CHECK(time(1, 1, 16) / time(1, 1, 0) == Approx(4).epsilon(0.1));
  CHECK(time(4, 1, 16) == time(4, 1, 0));
  CHECK(time(1, 64, 16) == time(1, 64, 0));  // of a prompt
}

TEST_CASE("a shape is searched once") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const TileMapper mapper(tx8);
  const auto* first = &mapper.map(gemm(256, 256), Dtype::bf16);
  mapper.map(gemm(512, 256), Dtype::bf16);
  CHECK(&mapper.map(gemm(256, 256), Dtype::bf16) == first);
  CHECK(&mapper.map(gemm(256, 256), Dtype::fp16) != first);
}

TEST_CASE("ops that are searched for at once get the mappings that they get one by one") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const cost::Cluster cluster = cost::make_cluster(tx8);
  const Machine together(tx8, cluster);
  const Machine alone(tx8, cluster);
  std::vector<graph::Op> ops;
  for (const std::int64_t rows : {1, 7, 300, 4096}) {
    ops.push_back({.name = "product", .body = graph::Gemm{.m = rows, .n = 1000, .k = 512}});
    ops.push_back({.name = "scores", .body = graph::Gemm{.m = rows, .n = rows, .k = 64, .batch = 32}});
    ops.push_back(ops.front());
  }
  together.search_mappings(ops);
  for (const graph::Op& op : ops)
    CHECK(together.time(op, together.work(op)).total == alone.time(op, alone.work(op)).total);
}

TEST_CASE("a tile without room for any block is an error that names op, memory and device") {
  hardware::Device small = hardware::load_device("tx8");
  small.memory.front().capacity = Bytes{512};
  const Machine machine(small, cost::make_cluster(small));
  const graph::Op op{.name = "scores", .body = graph::Gemm{.m = 1024, .n = 1024, .k = 1024}};
  try {
    machine.time(op, machine.work(op));
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::infeasible);
    CHECK(std::string(error.what()).find("scores: no mapping fits into 512 B of a tile of tx8") != std::string::npos);
  }
}

TEST_CASE("an op on tiles is never faster than its roof, under the published formulas it can be") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const cost::Cluster cluster = cost::make_cluster(tx8);
  const graph::Op qkv{.name = "qkv", .body = graph::Gemm{.m = 4096, .n = 11008, .k = 4096}};
  const Machine mapped(tx8, cluster);
  const OpTime time = mapped.time(qkv, mapped.work(qkv));
  CHECK(time.total >= time.roof);
  CHECK(time.roof.value == Approx(2 * 4096.0 * 11008 * 4096 / 128e12));
  const Machine published(tx8, cluster, nullptr, {}, nullptr, TileModel::published);
  CHECK(published.time(qkv, published.work(qkv)).total.value == Approx(2.959731e-3).epsilon(1e-6));
  const Machine plain(tx8, cluster, nullptr, {}, nullptr, TileModel::roofline);
  CHECK(plain.time(qkv, plain.work(qkv)).total == plain.time(qkv, plain.work(qkv)).roof);
}

TEST_CASE("no choice of the published mapper that fits is faster than what is found here") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const TileMapper mapper(tx8);
  const tile::Machine& machine = mapper.machine(Dtype::bf16);
  const std::vector<tile::Grid> grids = tile::all_grids(machine);
  int fitting = 0;
  const auto check = [&](const auto& problem) {
    const tile::PublishedTime published = tile::published_time(machine, problem);
    if (!published.feasible()) return;
    const std::optional<tile::Recost> choice = tile::recost(machine, grids, problem, published);
    REQUIRE(choice);
    if (!choice->simulated) {
      CHECK(choice->sram > machine.sram);
      return;
    }
    ++fitting;
    // A search may leave 0.1 % and 5 ns unfound, and so may the simulation of a part.
    CHECK(simulated_on(mapper, problem) <= *choice->simulated * 1.002 + 5e-9);
  };
  check(norm());
  check(attention());
  check(vector(4096, 2, 1));
  check(vector(11008, 2, 1));
  for (const std::int64_t width : {4096, 11008, 12288}) check(gemm(width, 4096));
  // STDiT3 at 720p on 16 chips: tokens, or matrices, divided.
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{13500, 3456, 1152},
                                {13500, 1152, 1152},
                                {216000, 216, 1152},
                                {216000, 1152, 72},
                                {216000, 288, 1152},
                                {108000, 1152, 144}}) {
    check(GemmProblem{.m = m, .n = n, .k = k});
  }
  check(AttentionProblem{.sequences = 30, .kv_heads = 2, .queries = 3600, .keys = 3600, .qk_dim = 72, .v_dim = 72});
  CHECK(fitting >= 8);
}

TEST_CASE("what an op leaves to the next one is what the channel and the memory of a tile do not use") {
  const hardware::Device tx8 = hardware::load_device("tx8");
  const TileMapper mapper(tx8);
  const model::StoredFormat bf16{.bits = 16};
  const graph::Op op{.name = "up", .body = graph::Gemm{.m = 4096, .n = 22016, .k = 4096, .weights = &bf16}};
  const tile::Seam seam = mapper.seam(op, cost::work_of(op, {}));
  const auto& best = std::get<tile::Mapped<GemmProblem>>(mapper.map(gemm(22016, 4096), Dtype::bf16)).found.front();
  CHECK(seam.idle == Approx(best.simulated - best.choice.time.dram));
  CHECK(seam.room >= 0);
  CHECK(seam.room < mapper.machine(Dtype::bf16).sram);
  CHECK(seam.weights > 0);
  // The first slices are no more than all weights, and come at the channel's rate.
  CHECK(seam.load <= 4096.0 * 22016 * 2 / 100e9);
  const graph::Op gather{.name = "embed", .place = graph::Place::host, .body = graph::Gemm{.m = 1, .n = 1, .k = 1}};
  CHECK(mapper.seam(gather, cost::work_of(gather, {})).idle == 0);
}

}  // namespace llmperf::mapper::tile_mapper_test
