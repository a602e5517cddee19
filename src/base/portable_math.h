// Functions whose last bit differs from one C library to the next, as they are computed everywhere alike: documents are
// the same bytes on every platform. (Of exp, log and pow no difference was seen.)
#pragma once

namespace llmperf {

double portable_expm1(double x);  // exp(x) - 1
double portable_log1p(double x);  // log(1 + x)

}  // namespace llmperf
