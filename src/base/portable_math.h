// Functions whose last bit differs from one C library to the next, computed alike everywhere, so that documents are the
// same bytes on every platform. (exp, log and pow are one algorithm in the C libraries there are; where a processor
// fuses multiplications with additions, one result in 1500 differs by a bit.)
#pragma once

namespace llmperf {

double portable_expm1(double x);  // exp(x) - 1
double portable_log1p(double x);  // log(1 + x)

}  // namespace llmperf
