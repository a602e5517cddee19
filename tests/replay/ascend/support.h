// The stand-in of CANN as tests see it, and what ops should make of their operands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "measure/op_row.h"
#include "replay/ascend/ascend_backend.h"

namespace llmperf::replay::ascend {

// The functions of control.h, of the stand-in that is loaded first.
struct Standin {
#define STANDIN_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name;
  STANDIN_CONTROL(STANDIN_MEMBER)
#undef STANDIN_MEMBER
};
Standin& standin();

// "standin", "split", "reduced": a folder of libraries.
std::vector<std::string> folders(const std::string& home = "standin");
// The functions of the whole stand-in; a copy, so that a test can take some away.
std::shared_ptr<cann::Functions> functions(const std::string& home = "standin");

// A backend that does not warm up for longer than one pass, on a stand-in that was reset.
std::unique_ptr<NpuBackend> backend(std::shared_ptr<const cann::Functions> cann = functions(), std::int64_t page = 0);

// All violations, one per line; empty: none.
std::string violations();
// Fails the test when rules of CANN were broken or objects are left.
void check_clean();

measure::OpRow gemm(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype, const std::string& weights = {},
                    std::int64_t batch = 1);
measure::OpRow attention(std::int64_t batch, std::int64_t q, std::int64_t kv, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t width, Dtype dtype, bool causal = true);
measure::OpRow experts(std::int64_t m, std::int64_t hidden, std::int64_t inter, std::int64_t topk, std::int64_t experts,
                       Dtype dtype, const std::string& weights = {}, std::int64_t tp = 1);
measure::OpRow vector(const std::string& layer, std::int64_t rows, std::int64_t width, Dtype dtype,
                      std::int64_t heads = 0, std::int64_t kv_heads = 0);
measure::OpRow gather(std::int64_t rows, std::int64_t width, std::int64_t table, Dtype dtype);
measure::OpRow cache_write(std::int64_t tokens, std::int64_t kv_heads, std::int64_t width, Dtype dtype);
measure::OpRow collective(const std::string& op, std::int64_t ranks, double bytes, Dtype dtype);

// The op, or the test fails with the reason that it is not available.
std::unique_ptr<Prepared> prepared(NpuBackend& backend, const measure::OpRow& row, std::int64_t copies = 1);
// Why it is not available; empty: it is.
std::string refusal(NpuBackend& backend, const measure::OpRow& row, std::int64_t copies = 1);

// What the op makes of its operands as operands.h defines them, in doubles.
std::vector<double> expected(const measure::OpRow& row);
// Norm of the difference over the norm of what is expected; infinite when the sizes differ.
double relative_error(const std::vector<float>& values, const std::vector<double>& expected);
double tolerance(Dtype dtype);

}  // namespace llmperf::replay::ascend
