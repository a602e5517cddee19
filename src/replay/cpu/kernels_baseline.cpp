// What every processor of the architecture can do: SSE2 on x86-64, NEON on AArch64.
#define LLMPERF_TABLE kBaselineKernels
#define Eigen Eigen_baseline
#include "replay/cpu/kernels.inc"
