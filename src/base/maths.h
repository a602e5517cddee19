// exp, log and what is made of them, computed by additions, multiplications and divisions alone, so that they are the
// same to the last bit wherever they run. Those of C libraries are not: glibc chooses among several by the processor,
// and the page's (bindings/wasm) is another one again; and a document is promised to be the same bytes everywhere.
#pragma once

namespace llmperf::maths {

// Within four units of the last place; 0 and infinity where the result is none else.
double exp(double x);
double exp2(double x);  // exact for whole numbers
// Of x > 0; of 0 minus infinity.
double log(double x);
inline double log2(double x) { return log(x) * 1.4426950408889634; }
// Of x >= 0. Its relative error grows with the result: |y log x| units of the last place.
double pow(double x, double y);
// The cosine of an angle in turns: cos(2 pi x).
double cos_turns(double x);

}  // namespace llmperf::maths
