// The outputs of hccl_test and nccl-tests.
#include <algorithm>

#include "base/text.h"
#include "import_helpers.h"

namespace llmperf::import::collective_files_test {
namespace {

using graph::CollectiveKind;
using measure::CollectiveShape;

const std::string kHeader =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const std::string kStart =
    "# nccl-tests version 2.17.6 nccl-headers=22808 nccl-library=22808\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20\n#\n"
    "# Using devices\n";
const std::string kRanks =
    "#  Rank  0 Group  0 Pid   6899 on node-a device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   6900 on node-a device  1 [0000:05:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid   6901 on node-b device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n";
const std::string kRows =
    "        1024           256     float     sum      -1    13.50    0.08    0.10      0    13.20    0.08    0.10     "
    " 0\n"
    "        2048          1024      half     sum      -1    14.50    0.14    0.19      0    14.80    0.14    0.19     "
    " 0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.15\n";

const std::string kHccl = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n";

}  // namespace

TEST_CASE("nccl-tests: of both halves the shorter time; name and ranks are in the comments", "[import][nccl]") {
  const Imported i = imported(Source::nccl_tests, "node-a:12:12 [0] NCCL INFO x\n" + kStart + kRanks + kHeader + kRows);
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(op(i, 0).op == "all_reduce");
  CHECK(op(i, 0).dtype == Dtype::fp32);
  CHECK(shape<CollectiveShape>(i, 0) == CollectiveShape{CollectiveKind::all_reduce, 3, Bytes{1024}});
  CHECK(micros(i, 0) == Approx(13.2));
  CHECK(i.measurements.rows[0].extra[1] == "2");
  CHECK(op(i, 1).dtype == Dtype::fp16);
  CHECK(shape<CollectiveShape>(i, 1).bytes.value == 2048);
  CHECK(micros(i, 1) == Approx(14.5));
  REQUIRE(i.types.size() == 1);
  CHECK(i.types[0].of == Class::communication);
  CHECK(i.types[0].count == 4);
}

TEST_CASE("nccl-tests: without lines of ranks those of one process count, or the flag", "[import][nccl]") {
  const std::string eight = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n";
  CHECK(shape<CollectiveShape>(imported(Source::nccl_tests, eight + kHeader + kRows, {}, "all_gather.log")) ==
        CollectiveShape{CollectiveKind::all_gather, 8, Bytes{1024}});
  CHECK(problems_of(Source::nccl_tests, kStart + kHeader + kRows) ==
        std::vector<std::string>{"t.csv:7:1: does not say how many ranks took part"});
  CHECK(shape<CollectiveShape>(imported(Source::nccl_tests, kStart + kHeader + kRows, {.ranks = 16})).ranks == 16);
  CHECK(problems_of(Source::nccl_tests, kStart + kRanks + kHeader + kRows, {.ranks = 16}) ==
        std::vector<std::string>{"t.csv:10:1: lists 3 ranks, and `ranks` says 16"});
  CHECK(problems_of(Source::nccl_tests, kRanks + kHeader + kRows) ==
        std::vector<std::string>{"t.csv:5:1: does not say which collective was measured"});
  CHECK(problems_of(Source::nccl_tests, kStart + kRanks + kHeader + kRows, {.collective = "all_gather"}) ==
        std::vector<std::string>{"t.csv:10:1: measures all_reduce, and `op` says 'all_gather'"});
}

TEST_CASE("nccl-tests: wrong and unchecked results are left out", "[import][nccl]") {
  const Imported i = imported(Source::nccl_tests,
                              kRanks + kHeader +
                                  "  1024  256  float  none  -1  13.50  0.08  0.10  0  13.20  0.08  0.10  N/A\n"
                                  "  2048  512  float  none  -1  14.50  0.14  0.19  7  14.80  0.14  0.19  0\n",
                              {.collective = "alltoall"});
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(micros(i, 0) == Approx(13.5));  // all-to-all in place is not supported
  CHECK(micros(i, 1) == Approx(14.8));
  CHECK(i.types[0].imported == 2);
  CHECK(i.types[0].remark == "results not checked (1), wrong results (1)");
}

TEST_CASE("nccl-tests: old headers, tags of mpirun and blank reductions", "[import][nccl]") {
  const Imported old = imported(
      Source::nccl_tests,
      kRanks +
          "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
          "  1024  256  float  13.50  0.08  0.10  2e-07  13.20  0.08  0.10  0e+00\n",
      {}, "logs/all_gather_perf.txt");
  CHECK(micros(old) == Approx(13.2));
  CHECK(op(old, 0).op == "all_gather");
  const Imported tagged =
      imported(Source::nccl_tests,
               "[1,0]<stdout>:#  Rank  0 Group  0 Pid 1 on a device 0\n[1,0]<stdout>:#  Rank  1 Group  "
               "0 Pid 1 on a device 1\n" +
                   kHeader + "[1,0]<stdout>:  64  16  float  -1  5  0  0  0  6  0  0  0\n",
               {.collective = "reduce_scatter"});
  CHECK(micros(tagged) == Approx(5));
}

TEST_CASE("nccl-tests: lines may begin with whose they are, and with no '#'", "[import][nccl]") {
  const std::string whole = kStart + kRanks + kHeader + kRows;
  for (const std::string tag : {"[0] ", "1: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "worker-0: "}) {
    CAPTURE(tag);
    std::string text;
    for (const std::string_view line : split(whole, '\n')) text += line.empty() ? "" : tag + std::string(line) + '\n';
    const Imported i = imported(Source::nccl_tests, text);
    REQUIRE(i.measurements.rows.size() == 2);
    CHECK(shape<CollectiveShape>(i, 0).ranks == 3);
    CHECK(micros(i, 0) == Approx(13.2));
  }
  std::string bare = whole;
  std::replace(bare.begin(), bare.end(), '#', ' ');
  CHECK(micros(imported(Source::nccl_tests, bare)) == Approx(13.2));
  CHECK(shape<CollectiveShape>(imported(Source::nccl_tests, bare)).ranks == 3);
}

TEST_CASE("nccl-tests: malformed output is refused with its place", "[import][nccl]") {
  CHECK(problems_of(Source::nccl_tests, "") ==
        std::vector<std::string>{"t.csv: is no output of nccl-tests: no line '# size count type … time algbw busbw'"});
  CHECK(problems_of(Source::nccl_tests, kStart + kRanks + kHeader) ==
        std::vector<std::string>{"t.csv: holds a header line and no rows"});
  CHECK(problems_of(Source::nccl_tests,
                    kStart + kRanks + kHeader + " 1024 256 float sum -1 x 0 0 0 1 0 0 0\n 64 16 float\n") ==
        std::vector<std::string>{"t.csv:12:24: not a time in microseconds: 'x'",
                                 "t.csv:13:2: 3 fields, and the header has 13"});
}

TEST_CASE("broadcast and its kin are no ops of measurements", "[import][nccl]") {
  const Imported i = imported(Source::nccl_tests, kRanks + kHeader + kRows, {}, "broadcast_perf.txt");
  CHECK(i.measurements.rows.empty());
  CHECK(i.types[0].type == "broadcast");
  CHECK(i.types[0].remark == "no such op");
}

TEST_CASE("hccl_test: sizes and times; the rest comes from flags", "[import][hccl]") {
  const Imported i = imported(Source::hccl_test,
                              "the minbytes is 64, maxbytes is 128, iters is 20, warmup_iters is 5\n" + kHccl +
                                  "64                | 1000.00        | 0.00006              | success\n"
                                  "128               | 40.5           | 0.00316              | NULL\n"
                                  "128               | 39.5           | 0.00316              | success\n"
                                  "256               | 39.5           | 0.00316              | failed\n",
                              {.ranks = 8, .collective = "all_reduce"});
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(shape<CollectiveShape>(i, 0) == CollectiveShape{CollectiveKind::all_reduce, 8, Bytes{64}});
  CHECK(op(i, 0).dtype == Dtype::fp32);  // hccl_test's own default
  CHECK(micros(i, 0) == Approx(1000));
  CHECK(micros(i, 1) == Approx(39.5));  // the shortest
  CHECK(i.types[0].remark == "wrong results");
  const Imported named = imported(Source::hccl_test, kHccl + "64 | 10 | 1 | success\n",
                                  {.ranks = 4, .dtype = Dtype::bf16}, "out/reduce_scatter_test.txt");
  CHECK(op(named, 0).op == "reduce_scatter");
  CHECK(op(named, 0).dtype == Dtype::bf16);
}

TEST_CASE("hccl_test: what the output does not say must be given", "[import][hccl]") {
  CHECK(problems_of(Source::hccl_test, kHccl + "64 | 10 | 1 | success\n") ==
        std::vector<std::string>{"t.csv:1:1: does not say which collective was measured",
                                 "t.csv:1:1: does not say how many ranks took part"});
  const Options given{.ranks = 8, .collective = "all_reduce"};
  CHECK(problems_of(Source::hccl_test, "nothing\n", given) ==
        std::vector<std::string>{
            "t.csv: is no output of hccl_test: no line with 'data_size(Bytes):' and 'aveg_time(us):'"});
  CHECK(problems_of(Source::hccl_test, kHccl, given) ==
        std::vector<std::string>{"t.csv: holds a header line and no rows"});
  CHECK(
      problems_of(Source::hccl_test, kHccl + "64 | ten | 1 | success\n-4 | 10 | 1 | success\n", given) ==
      std::vector<std::string>{"t.csv:2:6: not a time in microseconds: 'ten'", "t.csv:3:1: not a size in bytes: '-4'"});
}

TEST_CASE("flags of collectives are refused where files say it themselves", "[import]") {
  CHECK(problems_of(Source::msprof, "", {.collective = "all_reduce"}).front() ==
        "`op` is for hccl-test and nccl-tests, not for msprof");
  CHECK(problems_of(Source::chrome_trace, "", {.ranks = 8}).front() ==
        "`ranks` is for files that do not say it, not for chrome-trace");
  CHECK(problems_of(Source::nccl_tests, "", {.kv_len = 8}).front() ==
        "`kv-len` is for msprof and torch-npu, not for nccl-tests");
  CHECK(problems_of(Source::msprof, "", {.kv_len = 0}).front() == "`kv-len` must be between 1 and 1000000000, not 0");
  CHECK(problems_of(Source::nccl_tests, "", {.dtype = Dtype::bf16}).front() ==
        "`dtype` is for hccl-test, not for nccl-tests");
  CHECK(problems_of(Source::hccl_test, "", {.ranks = 1}).front() == "`ranks` must be between 2 and 1000000, not 1");
  CHECK(problems_of(Source::hccl_test, "", {.collective = "all_reduc"}).front() ==
        "`op`: unknown collective 'all_reduc'");
  CHECK(parse_source("hccl-test") == Source::hccl_test);
  CHECK_THROWS_WITH(parse_source("nsys"), Catch::Contains("unknown source 'nsys'"));
}

}  // namespace llmperf::import::collective_files_test
