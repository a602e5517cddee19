// AVX-512 F, BW, DQ and VL (flags: src/CMakeLists.txt).
#define LLMPERF_TABLE kAvx512Kernels
#define Eigen Eigen_avx512
#include "replay/cpu/kernels.inc"
