// Each thread of the pool multiplies its own piece and OpenBLAS is told to use one thread: its own threads would meet
// ours on the same processors, and would be woken for every product.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/text.h"
#include "replay/cpu/gemm_operation.h"
#include "replay/library.h"

#ifdef LLMPERF_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace llmperf::replay::cpu {
#ifdef LLMPERF_HAVE_OPENBLAS
namespace {

template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

struct OpenBlas {
  Library library;
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_set_num_threads) set_threads = nullptr;
  decltype(&openblas_get_config) get_config = nullptr;
  decltype(&openblas_get_corename) get_core = nullptr;
};

Loaded<OpenBlas> load_openblas() {
  const std::array<std::string, 2> names = {"libopenblas.so.0", "libopenblas.so"};
  std::vector<std::string> problems;
  auto library = Library::open(names, {}, problems);
  if (!library) return {.library = std::nullopt, .why_not = join(problems, "; ")};
  OpenBlas blas{.library = std::move(*library)};
  blas.sgemm = blas.library.find<Pointee<decltype(blas.sgemm)>>("cblas_sgemm");
  blas.set_threads = blas.library.find<Pointee<decltype(blas.set_threads)>>("openblas_set_num_threads");
  blas.get_config = blas.library.find<Pointee<decltype(blas.get_config)>>("openblas_get_config");
  blas.get_core = blas.library.find<Pointee<decltype(blas.get_core)>>("openblas_get_corename");
  if (blas.sgemm == nullptr || blas.set_threads == nullptr) {
    return {.library = std::nullopt, .why_not = blas.library.path() + " lacks cblas_sgemm or openblas_set_num_threads"};
  }
  return {.library = std::move(blas), .why_not = {}};
}

// Never unloaded: its threads live until the process ends.
const Loaded<OpenBlas>& loaded_openblas() {
  static const auto* const library = new Loaded<OpenBlas>(load_openblas());
  return *library;
}

class OpenBlasGemm final : public GemmOperation {
 public:
  OpenBlasGemm(const Workshop& shop, const GemmPlan& plan, const OpenBlas& blas)
      : GemmOperation(shop, plan, plan.copies), blas_(blas) {}

  void execute(const Team& team, std::int64_t turn) override {
    const GemmPiece piece = division().piece(team.thread);
    if (piece.empty()) return;
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      const ProductArgs p = product(piece, b, turn);
      blas_.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(p.m), static_cast<blasint>(p.n),
                  static_cast<blasint>(p.k), 1, p.x, static_cast<blasint>(p.x_stride), static_cast<const float*>(p.w),
                  static_cast<blasint>(p.w_stride), 0, static_cast<float*>(p.y), static_cast<blasint>(p.y_stride));
    }
  }

 private:
  const OpenBlas& blas_;
};

}  // namespace

std::string openblas_name(std::string& why_not) {
  const auto& [library, reason] = loaded_openblas();
  why_not = reason;
  if (!library) return {};
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … Haswell MAX_THREADS=64"
  const std::string config = library->get_config != nullptr ? library->get_config() : "OpenBLAS";
  const auto words = split(config, ' ');
  const std::string version = words.size() > 1 ? fmt::format("{} {}", words[0], words[1]) : config;
  const std::string core = library->get_core != nullptr ? fmt::format(", {} kernels", library->get_core()) : "";
  return fmt::format("{} ({}{})", version, library->library.path(), core);
}

std::unique_ptr<GemmOperation> make_openblas_gemm(const Workshop& shop, const GemmPlan& plan) {
  require(plan.input == Element::f32, "OpenBLAS multiplies fp32 only");
  const auto& [library, reason] = loaded_openblas();
  require(library.has_value(), reason);
  library->set_threads(1);
  return std::make_unique<OpenBlasGemm>(shop, plan, *library);
}

#else

std::string openblas_name(std::string& why_not) {
  why_not = "this program was built without OpenBLAS's header";
  return {};
}

std::unique_ptr<GemmOperation> make_openblas_gemm(const Workshop&, const GemmPlan&) {
  std::string why_not;
  openblas_name(why_not);
  throw Refusal{why_not};
}

#endif
}  // namespace llmperf::replay::cpu
