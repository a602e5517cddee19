// The files of msprof and torch_npu: columns by name, and the quirks of cells.
#include <fmt/format.h>

#include "import_helpers.h"

namespace llmperf::import::ascend_csv_test {
namespace {

using measure::GemmShape;
using measure::VectorShape;

const std::string kTorchNpu =
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,cube_utilization(%)\n";
const std::string kMsprof =
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,Context ID,cube_utilization(%)\n";

// Both layouts have the same number of columns in the same order; the names differ.
std::string line(const std::string& type, const std::string& core, const std::string& time, const std::string& in,
                 const std::string& in_types, const std::string& out, const std::string& out_types,
                 const std::string& formats = "ND;ND;ND;ND;ND;ND;ND;ND") {
  return fmt::format(
      "0,4294967295,7,2,aclnn_{0},{0},dynamic,{1},\"1736413971558972.912\t\",{2},1.087,20,0,NO,\"\"\"{3}\"\"\",{4},{5},"
      "\"\"\"{6}\"\"\",{7},ND,N/A,79.2\n",
      type, core, time, in, in_types, formats, out, out_types);
}
std::string bf16_product(const std::string& time, const std::string& in, const std::string& out) {
  return line("MatMulV2", "AI_CORE", time, in, "DT_BF16;DT_BF16", out, "DT_BF16");
}

}  // namespace

TEST_CASE("a kernel is the median of its executions, with their spread and number beside it", "[import][ascend]") {
  const Imported i = imported(Source::torch_npu, kTorchNpu + bf16_product("10", "64,4096;4096,512", "64,512") +
                                                     bf16_product("14", "64,4096;4096,512", "64,512") +
                                                     bf16_product("11", "64,4096;4096,512", "64,512") +
                                                     bf16_product("13", "64,4096;4096,512", "64,512"));
  REQUIRE(i.measurements.rows.size() == 1);
  CHECK(op(i, 0).op == "gemm");
  CHECK(op(i, 0).dtype == Dtype::bf16);
  CHECK(shape<GemmShape>(i) == GemmShape{.m = 64, .n = 512, .k = 4096});
  CHECK(micros(i) == Approx(12));  // between 11 and 13
  // Quartiles of 10, 11, 13, 14 between ranks: 10.75 and 13.25.
  CHECK(i.measurements.extra_columns == std::vector<std::string>{"spread_us", "repetitions", "type", "source"});
  CHECK(i.measurements.rows[0].extra == std::vector<std::string>{"2.5", "4", "MatMulV2", "torch-npu"});
  CHECK(i.measurements.rows[0].line == 2);
  CHECK(i.measurements.rows[0].hardware == "unknown");
  CHECK(i.measurements.files[0].notes == std::vector<std::string>{"imported from t.csv (torch-npu)"});
  CHECK(type(i, "MatMulV2").count == 4);
  CHECK(type(i, "MatMulV2").imported == 4);
  CHECK(type(i, "MatMulV2").total.value == Approx(48e-6));
  CHECK(type(i, "MatMulV2").remark.empty());
}

TEST_CASE("the names of msprof's columns mean the same", "[import][ascend]") {
  const std::string row = bf16_product("10", "64,4096;4096,512", "64,512");
  const Imported i = imported(Source::msprof, kMsprof + row, {.hardware = "ascend-910b3"});
  CHECK(shape<GemmShape>(i) == GemmShape{.m = 64, .n = 512, .k = 4096});
  CHECK(i.measurements.rows[0].hardware == "ascend-910b3");
  CHECK(imported(Source::msprof, "\xEF\xBB\xBF" + kMsprof + row).measurements.rows.size() == 1);  // with a BOM
}

TEST_CASE("columns are found by name, wherever they stand", "[import][ascend]") {
  const Imported i = imported(Source::torch_npu,
                              "Output Data Types,Duration(us),Output Shapes,Type,Input Data Types,Input Shapes\r\n"
                              "BF16,5.5,\"8,32\",MatMul,BF16;BF16,\"8,16;16,32\"\r\n");
  CHECK(shape<GemmShape>(i) == GemmShape{.m = 8, .n = 32, .k = 16});
  CHECK(micros(i) == Approx(5.5));
}

TEST_CASE("work of CPUs and communication are kept apart from kernel time", "[import][ascend]") {
  const Imported i = imported(
      Source::torch_npu, kTorchNpu + line("Add", "AI_VECTOR_CORE", "2", "4,8;4,8", "FLOAT;FLOAT", "4,8", "FLOAT") +
                             line("Add", "AI_CPU", "900", "4,8;4,8", "FLOAT;FLOAT", "4,8", "FLOAT") +
                             "0,1,7,2,hcom_allReduce__1,hcom_allReduce_,N/A,COMMUNICATION,\"1\t\",300,0,0,0,N/A,N/A,N/"
                             "A,N/A,N/A,N/A,N/A,N/A,N/A\n"
                             "0,1,7,2,x,HcomAllGather,N/A,HCCL,1,70,0,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
                             "0,1,7,2,x,MemcpyAsync,N/A,PCIE_DMA_SQE,1,5,0,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n");
  REQUIRE(i.measurements.rows.size() == 1);  // the CPU's Add has the same name and shapes
  CHECK(micros(i) == Approx(2));
  REQUIRE(i.types.size() == 5);
  CHECK(i.types[0].of == Class::kernel);
  CHECK(i.types[0].total.value == Approx(2e-6));
  CHECK(i.types[1].type == "hcom_allReduce_");
  CHECK(i.types[1].of == Class::communication);
  CHECK(i.types[1].remark == "no sizes");
  CHECK(i.types[2].type == "HcomAllGather");
  CHECK(i.types[3].of == Class::host);
  CHECK(i.types[3].total.value == Approx(900e-6));
  CHECK(i.types[3].remark == "runs on a CPU");
  CHECK(i.types[4].of == Class::other);
}

TEST_CASE("empty slots are absent tensors or scalars, and N/A is nothing", "[import][ascend]") {
  const Imported i =
      imported(Source::torch_npu, kTorchNpu + line("Add", "AI_VECTOR_CORE", "1.5", ";", "FLOAT;FLOAT", "", "FLOAT") +
                                      line("Add", "AI_VECTOR_CORE", "3", "N/A", "N/A", "N/A", "N/A", "N/A") +
                                      line("Add", "AI_VECTOR_CORE", "N/A", "4,8;4,8", "FLOAT;FLOAT", "4,8", "FLOAT") +
                                      line("Cast", "AI_VECTOR_CORE", "4", "4,8", "FLOAT", "4,8", "DT_BF16") +
                                      line("Muls", "AI_VECTOR_CORE", "5", "4,8;", "FLOAT;FLOAT", "4,8", "FLOAT"));
  CHECK(type(i, "Add").count == 3);
  CHECK(type(i, "Add").imported == 0);
  CHECK(type(i, "Add").total.value == Approx(4.5e-6));
  CHECK(type(i, "Add").remark == "no shapes (2), no time (1)");
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(op(i, 0).op == "vector:elementwise");
  CHECK(op(i, 0).dtype == Dtype::bf16);
  CHECK(shape<VectorShape>(i, 0).bytes.value == 4 * 8 * (4 + 2));
  CHECK(shape<VectorShape>(i, 1).bytes.value == 4 * 8 * (4 + 4));
}

TEST_CASE("a kernel without shapes is of scalars only where the file has shapes", "[import][ascend]") {
  const auto in_groups = [](const std::string& text) { return imported(Source::torch_npu, text).groups.size(); };
  CHECK(in_groups(kTorchNpu + line("Add", "AI_VECTOR_CORE", "1.5", ";", "FLOAT;FLOAT", "", "FLOAT")) == 1);
  CHECK(in_groups("Type,Accelerator Core,Duration(us)\nAdd,AI_VECTOR_CORE,1.5\n") == 0);
  CHECK(in_groups("Type,Accelerator Core,Duration(us),Input Shapes\nAdd,AI_VECTOR_CORE,1.5,N/A\n") == 0);
  CHECK(in_groups("Type,Accelerator Core,Duration(us),Input Shapes\nSort,AI_VECTOR_CORE,1.5,N/A\n") == 1);
}

TEST_CASE("rows whose shapes do not multiply are left out", "[import][ascend]") {
  // Inner dimensions 81920 and 8192; a result of 1536 rows of 15365.
  const Imported i =
      imported(Source::torch_npu, kTorchNpu + bf16_product("185.504", "81920,4096;8192,512", "4096,512") +
                                      bf16_product("521.31", "8192,15365;8192,4096", "1536,4096"));
  CHECK(i.measurements.rows.empty());
  CHECK(type(i, "MatMulV2").remark == "shapes do not multiply");
  CHECK(type(i, "MatMulV2").count == 2);
}

TEST_CASE("op_statistic has types and totals and no measurements", "[import][ascend]") {
  const Imported i = imported(Source::msprof,
                              "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max "
                              "Time(us),Ratio(%)\n"
                              "0,Cast,AI_VECTOR_CORE,240,23077.4,1.18,96.155,2708.32,10.561\n"
                              "0,MatMulV2,AI_CORE,332,17945.3,1.28,54.052,329.68,8.212\n"
                              "0,IndexPut,AI_CPU,2,99999,1,1,1,1\n");
  CHECK(i.measurements.rows.empty());
  REQUIRE(i.types.size() == 3);
  CHECK(i.types[0].type == "Cast");
  CHECK(i.types[0].count == 240);
  CHECK(i.types[0].total.value == Approx(23077.4e-6));
  CHECK(i.types[0].remark == "totals only, no shapes");
  CHECK(i.types[2].of == Class::host);  // though it took longest
}

TEST_CASE("executions of several files are put together, types apart", "[import][ascend]") {
  const Imported i = imported(
      Source::torch_npu, kTorchNpu + bf16_product("10", "64,128;128,32", "64,32") +
                             line("MatMulV3", "AI_CORE", "8", "64,128;128,32", "DT_BF16;DT_BF16", "64,32", "DT_BF16"));
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(op(i, 0) == op(i, 1));
  CHECK(i.measurements.rows[1].extra[2] == "MatMulV3");
}

TEST_CASE("what is written can be read back", "[import][ascend]") {
  const Imported i =
      imported(Source::torch_npu,
               kTorchNpu + bf16_product("10", "64,128;128,32", "64,32") +
                   line("RmsNorm", "AI_VECTOR_CORE", "3", "2,16,256;256", "DT_BF16;DT_BF16", "2,16,256", "DT_BF16") +
                   line("Cast", "AI_VECTOR_CORE", "4", "3", "INT4", "3", "DT_BF16") +  // 1.5 bytes
                   line("Cast", "AI_VECTOR_CORE", "4", "999983,999979", "INT8", "999983,999979", "DT_BF16"));
  const measure::Measurements back = measure::parse_measurements(format_measurements(i.measurements), "w.csv");
  REQUIRE(back.rows.size() == 4);
  for (std::size_t row = 0; row < back.rows.size(); ++row) {
    CHECK(back.rows[row].of == i.measurements.rows[row].of);
    CHECK(back.rows[row].latency.value == Approx(i.measurements.rows[row].latency.value));
    CHECK(back.rows[row].extra == i.measurements.rows[row].extra);
  }
}

TEST_CASE("malformed tables are refused with their places, all at once", "[import][ascend]") {
  CHECK(problems_of(Source::msprof, "") == std::vector<std::string>{"t.csv: holds no header line and no rows"});
  CHECK(problems_of(Source::msprof, kMsprof) == std::vector<std::string>{"t.csv: holds a header line and no rows"});
  CHECK(problems_of(Source::msprof, "a,b\n1,2\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'OP Type' or 'Type'"});
  CHECK(problems_of(Source::msprof, "OP Type,b\nAdd,2\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'Task Duration(us)' or 'Duration(us)'"});
  CHECK(problems_of(Source::msprof,
                    "Type,Duration(us),Input Shapes\nAdd,-1,\nAdd,x,\nAdd,1\nAdd,1,\"4,a\"\n\"Add,1,\n") ==
        std::vector<std::string>{"t.csv:2:5: not a time in microseconds: '-1'",
                                 "t.csv:3:5: not a time in microseconds: 'x'",
                                 "t.csv:4:1: 2 fields, and the header has 3", "t.csv:5:7: not a shape: '4,a'",
                                 "t.csv:6:1: a quoted field does not end on its line"});
  CHECK(problems_of(Source::msprof, "Type,Count,Total Time(us)\nAdd,1.5,2\n") ==
        std::vector<std::string>{"t.csv:2:5: not a count: '1.5'"});
}

}  // namespace llmperf::import::ascend_csv_test
