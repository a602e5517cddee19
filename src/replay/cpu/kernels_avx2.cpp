// AVX2 and FMA (flags: src/CMakeLists.txt).
#define LLMPERF_TABLE kAvx2Kernels
#define Eigen Eigen_avx2
#include "replay/cpu/kernels.inc"
