// gemm: [m, k] x [k, n] for numbers of rows from one (the weights' bandwidth and the launch) to 1024 (the peak rate),
// between which lies where the two meet, on matrices that differ in size (launch against work), in the ratio of n to k
// (tiles against depth) and in whether they divide into large tiles.
#include "replay/sweep.h"

#include "base/error.h"
#include "base/text.h"

namespace llmperf::replay {
namespace {

std::vector<calibrate::OpRow> gemm_sweep(Dtype dtype) {
  constexpr std::int64_t kRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  constexpr std::int64_t kMatrices[][2] = {{1024, 1024}, {3072, 1024}, {1024, 4096}, {4096, 4096},
                                           {8192, 2048}, {896, 4864},  {11008, 2048}};  // n, k
  std::vector<calibrate::OpRow> ops;
  for (const auto& [n, k] : kMatrices) {
    for (const std::int64_t m : kRows) ops.push_back({"gemm", dtype, calibrate::GemmShape{m, n, k, 1, {}}});
  }
  return ops;
}

}  // namespace

const std::vector<std::string>& sweep_names() {
  static const std::vector<std::string> names = {"gemm"};
  return names;
}

std::vector<calibrate::OpRow> sweep(std::string_view name, Dtype dtype) {
  if (name == "gemm") return gemm_sweep(dtype);
  throw Error::bad_input("--sweep: there is no " + quote(name), name_hint(name, sweep_names()));
}

}  // namespace llmperf::replay
