// Functions that are the same to the last bit everywhere: near those of the C library, and these very bits.
#include "base/maths.h"

#include <cmath>
#include <limits>

#include "catch.h"

namespace llmperf::maths_test {

TEST_CASE("exp, log, pow and the cosine are those of the C library to some units of the last place") {
  for (double x = -30; x <= 30; x += 0.37) {
    CHECK(maths::exp(x) == Approx(std::exp(x)).epsilon(1e-15));
    CHECK(maths::log(std::exp(x)) == Approx(x).epsilon(1e-14));
    CHECK(maths::exp2(x) == Approx(std::exp2(x)).epsilon(1e-15));
    CHECK(maths::pow(1.7, x) == Approx(std::pow(1.7, x)).epsilon(1e-14));
    CHECK(maths::cos_turns(x) == Approx(std::cos(2 * 3.14159265358979323846 * x)).margin(1e-13));
  }
  CHECK(maths::log(1 + 1e-9) == Approx(1e-9).epsilon(1e-7));
}

TEST_CASE("exact where the result is: whole powers of two, quarters of a turn, the ends of the range") {
  CHECK(maths::exp(0) == 1);
  CHECK(maths::log(1) == 0);
  for (int k = -1074; k <= 1023; ++k) CHECK(maths::exp2(k) == std::ldexp(1, k));
  CHECK(maths::cos_turns(0) == 1);
  CHECK(maths::cos_turns(0.5) == -1);
  CHECK(maths::cos_turns(0.25) == 0);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(maths::exp(1000) == infinity);
  CHECK(maths::exp(-1000) == 0);
  CHECK(maths::exp(-infinity) == 0);
  CHECK(maths::log(0) == -infinity);
  CHECK(std::isnan(maths::log(-1)));
  CHECK(maths::pow(0, 2) == 0);
  CHECK(maths::pow(0, 0) == 1);
}

TEST_CASE("the same bits on every machine") {
  CHECK(maths::exp(1.5) == 0x1.1ed3fe64fc542p+2);
  CHECK(maths::log(10) == 0x1.26bb1bbb55516p+1);
  CHECK(maths::pow(2.5, 0.3) == 0x1.50fe6c94a6e58p+0);
  CHECK(maths::cos_turns(0.1) == 0x1.9e3779b97f4a8p-1);
}

}  // namespace llmperf::maths_test
