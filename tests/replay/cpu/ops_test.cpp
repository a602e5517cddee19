// Every op of every type on every instruction set that this machine has, against loops of doubles.
#include <algorithm>

#include "catch.h"
#include "check.h"
#include "replay/cpu/machine.h"

namespace llmperf::replay::cpu::ops_test {
namespace {

using graph::CollectiveKind;
using measure::AttentionShape;
using measure::OpRow;
using measure::Phase;
using measure::VectorShape;

OpRow vector_row(Dtype dtype, const std::string& layer, std::int64_t m, std::int64_t n, std::int64_t heads = 0,
                 std::int64_t kv_heads = 0) {
  return {"vector:" + layer, dtype,
          VectorShape{.layer = layer, .tokens = m, .width = n, .heads = heads, .kv_heads = kv_heads}};
}

OpRow attention(Dtype dtype, const AttentionShape& shape) {
  return {shape.phase == Phase::prefill ? "attention_prefill" : "attention_decode", dtype, shape};
}

// Calls body(backend) for every instruction set, on all processors and on one.
template <class Body>
void on_all(const Body& body) {
  for (const Isa isa : supported_isas()) {
    for (const int threads : {0, 1}) {
      INFO("instruction set " << name(isa) << ", threads " << threads);
      const auto backend = make_cpu_backend({.threads = threads, .gemm = Gemm::eigen}, isa);
      body(*backend);
    }
  }
}

constexpr Dtype kTypes[] = {Dtype::fp32, Dtype::bf16};

}  // namespace

TEST_CASE("row kernels compute what operands.h says, at widths that no vector divides") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      for (const char* layer : {"rms_norm", "layer_norm", "add", "add_rms_norm", "add_layer_norm", "activation",
                                "gated_activation", "multiply", "softmax", "sampling", "elementwise"}) {
        for (const auto& [m, n] : {std::pair{1, 3}, {3, 77}, {17, 64}, {2, 1030}}) {
          check_op(backend, vector_row(dtype, layer, m, n));
        }
      }
    }
  });
}

TEST_CASE("rotary embedding turns queries and keys of a token by its position") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      check_op(backend, vector_row(dtype, "rope", 7, 10));
      check_op(backend, vector_row(dtype, "rope", 25, 38, 3, 2));
      check_op(backend, vector_row(dtype, "rope", 36, 64, 4, 0));
    }
  });
}

TEST_CASE("layers that profilers name have the width and the kernel of Llama-3.1-8B") {
  on_all([](Backend& backend) {
    for (const char* layer : {"act_fn", "embedding", "final_layernorm", "layernorm", "rotary_emb"}) {
      check_op(backend, vector_row(Dtype::bf16, layer, 2, 0));
    }
  });
}

TEST_CASE("attention of few queries streams the cache, of many is blocked, with grouped heads and a context") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      for (const bool causal : {true, false}) {
        const auto shape = [&](Phase phase, int batch, int q, int kv, int heads, int kv_heads, int dim) {
          check_op(backend, attention(dtype, {phase, batch, q, kv, heads, kv_heads, dim, causal}));
        };
        shape(Phase::prefill, 1, 1, 1, 1, 1, 3);
        shape(Phase::prefill, 2, 17, 17, 4, 2, 20);
        shape(Phase::prefill, 1, 70, 150, 3, 1, 40);
        shape(Phase::decode, 3, 1, 133, 6, 3, 32);
        shape(Phase::decode, 1, 1, 700, 5, 1, 80);  // its keys are divided among threads
        shape(Phase::decode, 1, 3, 530, 12, 1, 16);
      }
    }
  });
}

TEST_CASE("latent attention reads keys wider than values, and latents that are both") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      const auto shape = [&](Phase phase, int batch, int q, int kv, int heads) {
        const measure::LatentShape s{.phase = phase, .batch = batch, .q_len = q, .kv_len = kv, .heads = heads};
        check_op(backend, measure::row_of(dtype, s));
      };
      shape(Phase::prefill, 2, 17, 17, 2);
      shape(Phase::prefill, 1, 3, 140, 3);
      shape(Phase::prefill, 1, 100, 130, 1);
      shape(Phase::decode, 2, 1, 133, 4);   // streamed
      shape(Phase::decode, 1, 1, 530, 16);  // blocked, and its keys are divided among threads
      shape(Phase::decode, 1, 2, 40, 128);
    }
  });
}

TEST_CASE("recurrences go on from a state, or walk through a prompt, with heads that share their keys") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      for (const auto kind : {model::RecurrentKind::gated_delta_net, model::RecurrentKind::mamba2}) {
        const auto shape = [&](int batch, int q, int heads, int key_heads, int key_dim, int value_dim) {
          const measure::ScanShape s{kind, batch, q, heads, key_heads, key_dim, value_dim};
          check_op(backend, measure::row_of(dtype, s));
        };
        shape(1, 1, 1, 1, 3, 5);
        shape(2, 1, 6, 2, 16, 32);
        shape(1, 1, 1, 1, 128, 77);  // its columns are divided among threads
        shape(2, 9, 4, 2, 19, 21);
        shape(1, 70, 2, 2, 32, 64);
      }
    }
  });
}

TEST_CASE("states that executions change are there again for a result") {
  const auto backend = make_cpu_backend({.threads = 1, .gemm = Gemm::eigen});
  const measure::ScanShape s{model::RecurrentKind::mamba2, 1, 1, 2, 1, 8, 16};
  const auto ready = prepared(*backend, measure::row_of(Dtype::fp32, s), 2);
  const std::vector<float> first = backend->result(*ready);
  Prepared* const one[] = {ready.get()};
  backend->run(one, 5);
  CHECK(backend->result(*ready) == first);
}

TEST_CASE("experts multiply the rows that they get, and a token's results are added up") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      const auto shape = [&](const measure::ExpertsShape& s) { check_op(backend, {"moe", dtype, s}); };
      shape({.m = 1, .hidden = 40, .inter = 24, .topk = 1, .experts = 4});
      shape({.m = 3, .hidden = 40, .inter = 24, .topk = 2, .experts = 8});  // two get nothing
      shape({.m = 70, .hidden = 67, .inter = 101, .topk = 3, .experts = 4});
      shape({.m = 30, .hidden = 40, .inter = 24, .topk = 2, .experts = 8, .tp = 2, .ep = 2});
      shape({.m = 3, .hidden = 40, .inter = 24, .topk = 1, .experts = 8, .ep = 4});  // one token finds none here
      for (const char* distribution : {"power_law_1.2", "power_law_0.5"}) {
        shape({.m = 50, .hidden = 40, .inter = 24, .topk = 2, .experts = 16, .distribution = distribution});
        shape({.m = 3, .hidden = 40, .inter = 24, .topk = 2, .experts = 16, .ep = 2, .distribution = distribution});
      }
      shape({.m = 2, .hidden = 2688, .inter = 1856, .topk = 1, .experts = 2, .tp = 58});  // without gates
    }
  });
}

TEST_CASE("rows are gathered from the table and keys and values written to the cache") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      check_op(backend, {"gather", dtype, measure::GatherShape{.rows = 13, .width = 37, .table = 50}});
      check_op(backend, {"gather", dtype, measure::GatherShape{.rows = 1, .width = 1, .table = 1}});
      check_op(backend, {"kv_write", dtype, measure::CacheShape{.tokens = 5, .kv_heads = 3, .head_dim = 7}});
      check_op(backend, {"kv_write", dtype, measure::CacheShape{.tokens = 1, .kv_heads = 8, .head_dim = 128}});
    }
  });
}

TEST_CASE("collectives move what each rank holds between threads") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : kTypes) {
      for (const auto& [op, kind] : {std::pair{"all_reduce", CollectiveKind::all_reduce},
                                     {"all_gather", CollectiveKind::all_gather},
                                     {"reduce_scatter", CollectiveKind::reduce_scatter},
                                     {"alltoall", CollectiveKind::all_to_all}}) {
        for (const std::int64_t ranks : {1, 2}) {
          const OpRow row{op, dtype, measure::CollectiveShape{kind, ranks, Bytes{4.0 * 346}}};
          const auto made = backend.prepare(row, 1);
          if (const auto* reason = std::get_if<Unavailable>(&made)) {
            CHECK_THAT(reason->reason, Catch::Contains("2 ranks need as many threads, and there are 1"));
          } else {
            check_op(backend, row);
          }
        }
      }
      check_op(backend,
               {"all_reduce", dtype, measure::CollectiveShape{CollectiveKind::all_reduce, 1, Bytes{4.0 * 33}}});
    }
  });
}

TEST_CASE("products of few and many rows, batched too, of fp32, bf16 and int8") {
  on_all([](Backend& backend) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::int8}) {
      for (const std::int64_t m : {1, 2, 3, 7, 9, 17, 70}) {
        check_op(backend, {"gemm", dtype, measure::GemmShape{.m = m, .n = 101, .k = 67}});
      }
      check_op(backend, {"gemm", dtype, measure::GemmShape{.m = 1, .n = 5, .k = 3}});
      check_op(backend, {"gemm", dtype, measure::GemmShape{.m = 300, .n = 3, .k = 5}});
      check_op(backend, {"gemm", dtype, measure::GemmShape{.m = 11, .n = 530, .k = 300}});
      check_op(backend, {"gemm", dtype, measure::GemmShape{.m = 5, .n = 13, .k = 24, .batch = 3}});
      check_op(backend, {"gemm", dtype, measure::GemmShape{.m = 19, .n = 13, .k = 24, .batch = 3}});
    }
    check_op(backend, {"gemm", Dtype::fp32, measure::GemmShape{.m = 20, .n = 50, .k = 40, .weights = "w8a8"}});
    check_op(backend, {"gemm", Dtype::bf16, measure::GemmShape{.m = 2, .n = 50, .k = 40, .weights = "w8a8"}});
  });
}

}  // namespace llmperf::replay::cpu::ops_test
