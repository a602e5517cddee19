#include "replay/cpu/isa.h"

namespace llmperf::replay::cpu {

extern const Kernels kBaselineKernels;
#ifdef LLMPERF_X86_KERNELS
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "AVX2";
    case Isa::avx512: return "AVX-512";
    case Isa::baseline: break;
  }
#if defined(__x86_64__)
  return "SSE2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "scalar";
#endif
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = {Isa::baseline};
#ifdef LLMPERF_X86_KERNELS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::avx512);
    }
  }
#endif
  return isas;
}

const Kernels& kernels(Isa isa) {
#ifdef LLMPERF_X86_KERNELS
  if (isa == Isa::avx2) return kAvx2Kernels;
  if (isa == Isa::avx512) return kAvx512Kernels;
#endif
  (void)isa;
  return kBaselineKernels;
}

}  // namespace llmperf::replay::cpu
