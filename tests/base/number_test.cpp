#include "base/number.h"

#include <limits>

#include "catch.h"

namespace llmperf::number_test {

TEST_CASE("an integer is the whole text or nothing") {
  CHECK(parse_int("0") == 0);
  CHECK(parse_int("-12") == -12);
  CHECK(parse_int("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "abc", "1_000", "1,000", "--1", "-", "nan"}) {
    INFO(text);
    CHECK_FALSE(parse_int(text));
  }
}

TEST_CASE("an integer with a leading zero is nothing: it could be octal") {
  CHECK_FALSE(parse_int("010"));
  CHECK_FALSE(parse_int("-01"));
  CHECK_FALSE(parse_int("00"));
  CHECK_FALSE(parse_double("010"));
}

TEST_CASE("an integer beyond 64 bits is nothing") {
  CHECK_FALSE(parse_int("9223372036854775808"));
  CHECK_FALSE(parse_int("-9223372036854775809"));
  CHECK_FALSE(parse_int(std::string(100'000, '9')));
}

TEST_CASE("a double is finite and the whole text") {
  CHECK(parse_double("0.5") == 0.5);
  CHECK(parse_double("-2.5e3") == -2500);
  CHECK(parse_double("7") == 7);
  for (const char* text : {"", "nan", "NaN", "inf", "-inf", "infinity", "0x1p3", "1e400", "-1e400", "1e-400", "1.5x",
                           " 1", "1 ", "+1", ".", "1e", "1,5"}) {
    INFO(text);
    CHECK_FALSE(parse_double(text));
  }
}

TEST_CASE("GB is 10^9 bytes and GiB is 2^30, always") {
  CHECK(parse_bytes("24 GB") == Bytes{24e9});
  CHECK(parse_bytes("24GB") == Bytes{24e9});
  CHECK(parse_bytes("24GiB") == Bytes{24 * 1073741824.0});
  CHECK(parse_bytes("1.5 MiB") == Bytes{1572864});
  CHECK(parse_bytes("0 B") == Bytes{0});
  CHECK(parse_bytes("2 TiB") == Bytes{2199023255552.0});
}

TEST_CASE("a size without a unit, with a wrong one, negative or not finite is nothing") {
  for (const char* text : {"24", "24 gb", "24 Gb", "24 GBs", "24 GB/s", "24  GB", "24 GB ", "GB", "", "-1 GB", "-0 GB",
                           "1e400 B", "1e308 TB", "nan GB", "24 G", "024 GB"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("rates and times carry their own units") {
  CHECK(parse_bytes_per_second("1008 GB/s") == BytesPerSecond{1008e9});
  CHECK(parse_bytes_per_second("1KiB/s") == BytesPerSecond{1024});
  CHECK_FALSE(parse_bytes_per_second("1008 GB"));
  CHECK(parse_flops_per_second("165.2 TFLOP/s")->value == Approx(165.2e12));
  CHECK(parse_flops_per_second("660.6 TOP/s")->value == Approx(660.6e12));
  CHECK(parse_flops_per_second("1 FLOP/s") == FlopsPerSecond{1});
  CHECK_FALSE(parse_flops_per_second("165.2 TFLOPS"));
  CHECK_FALSE(parse_flops_per_second("165.2 T"));
  CHECK(parse_seconds("1.5 us")->value == Approx(1.5e-6));
  CHECK(parse_seconds("2s") == Seconds{2});
  CHECK_FALSE(parse_seconds("2 min"));
}

TEST_CASE("numbers print with at most four significant digits and a prefix that fits") {
  CHECK(format_bytes(Bytes{15.44e9}) == "15.44 GB");
  CHECK(format_bytes(Bytes{24e9}) == "24 GB");
  CHECK(format_bytes(Bytes{512}) == "512 B");
  CHECK(format_bytes_binary(Bytes{14.38 * kGiB}) == "14.38 GiB");
  CHECK(format_bytes_binary(Bytes{512 * kMiB}) == "512 MiB");
  CHECK(format_flops(Flops{7.71e12}) == "7.71 TFLOP");
  CHECK(format_flops_rate(FlopsPerSecond{165.2e12}) == "165.2 TFLOP/s");
  CHECK(format_seconds(Seconds{0.01532}) == "15.32 ms");
  CHECK(format_seconds(Seconds{1234}) == "1234 s");
  CHECK(format_seconds(Seconds{3e-10}) == "0.3 ns");
}

TEST_CASE("bandwidth keeps a datasheet's prefix up to 9999") {
  CHECK(format_bandwidth(BytesPerSecond{1008e9}) == "1008 GB/s");
  CHECK(format_bandwidth(BytesPerSecond{3.35e12}) == "3350 GB/s");
  CHECK(format_bandwidth(BytesPerSecond{80e12}) == "80 TB/s");
}

TEST_CASE("rounding up to the next prefix switches to it") {
  CHECK(format_bytes(Bytes{999.96e9}) == "1 TB");
  CHECK(format_seconds(Seconds{0.99999}) == "1 s");
  CHECK(format_flops(Flops{999.94e9}) == "999.9 GFLOP");
}

TEST_CASE("counts print whole and grouped, shares as percent") {
  CHECK(format_count(7721324544.0) == "7,721,324,544");
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(-1234) == "-1,234");
  CHECK(format_share(0.934) == "93.4 %");
  CHECK(format_share(1) == "100.0 %");
  CHECK(format_share(0.00123) == "0.1 %");
}

TEST_CASE("significant digits have no trailing zeros and keep the whole part of an integer") {
  CHECK(format_significant(0) == "0");
  CHECK(format_significant(-0.0) == "0");
  CHECK(format_significant(0.125) == "0.125");
  CHECK(format_significant(1.0 / 3) == "0.3333");
  CHECK(format_significant(9.99996) == "10");
  CHECK(format_significant(123456) == "123456");
  CHECK(format_significant(-2.5) == "-2.5");
  // Rounding carries into the next power of ten, and does not where it stops short of it.
  CHECK(format_significant(999.94, 4) == "999.9");
  CHECK(format_significant(999.96, 4) == "1000");
  CHECK(format_significant(0.0099996, 4) == "0.01");
  CHECK(format_significant(0.0099994, 4) == "0.009999");
  CHECK(format_significant(9.4, 1) == "9");
  CHECK(format_significant(9.6, 1) == "10");
  CHECK(format_bytes(Bytes{999.94e9}) == "999.9 GB");
  CHECK(format_bytes(Bytes{999.96e9}) == "1 TB");
  CHECK(format_bytes_binary(Bytes{1023.4 * kGiB}) == "1023 GiB");
  CHECK(format_bytes_binary(Bytes{1023.6 * kGiB}) == "0.9996 TiB");
  CHECK(format_significant(163.889, 3) == "164");
  CHECK(format_significant(1e-12) == "1e-12");
}

TEST_CASE("what is not finite prints as n/a, never as nan") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(format_significant(nan) == "n/a");
  CHECK(format_bytes(Bytes{inf}) == "n/a");
  CHECK(format_count(nan) == "n/a");
  CHECK(format_share(-inf) == "n/a");
  CHECK(format_seconds(Seconds{nan}) == "n/a");
}

TEST_CASE("a number with a decimal prefix is the nearest double to the decimal written") {
  CHECK(parse_flops_per_second("66.9 TFLOP/s")->value == 66.9e12);  // 66.9 * 1e12 is 66900000000000.01
  CHECK(parse_bytes("0.3 KB")->value == 300);
  CHECK(parse_bytes_per_second("1.5e1 GB/s")->value == 15e9);
  CHECK(parse_bytes("1.5 GiB")->value == 1.5 * kGiB);
  CHECK(parse_seconds("0.7 us")->value == 0.7e-6);
}

}  // namespace llmperf::number_test
