// Tables of kernels in the columns of aiconfigurator.
#include "import_helpers.h"

namespace llmperf::import::aiconfigurator_test {
namespace {

using measure::AttentionShape;
using measure::CollectiveShape;
using measure::ExpertsShape;
using measure::GemmShape;
using measure::LatentShape;
using measure::Phase;

constexpr Source kSource = Source::aiconfigurator;
const std::string kStart = "framework,version,device,op_name,kernel_source,";
const std::string kAttention =
    kStart +
    "attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,beam_width,step,"
    "latency\n";
const std::string kLatent = kStart + "mla_dtype,kv_cache_dtype,num_heads,batch_size,isl,tp_size,step,latency\n";
const std::string kExperts =
    "moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,latency\n";

}  // namespace

TEST_CASE("tables of products: schemes by the names they have there", "[import][aiconfigurator]") {
  const Imported i = imported(kSource,
                              kStart +
                                  "gemm_dtype,m,n,k,latency\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,bfloat16,128,1024,512,0.25\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,fp8_block,128,1024,512,0.125\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,float16,128,1024,512,0\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,float16,128,1024,512,-1\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,fp8_ootb,128,1024,512,1\n"
                                  "TRTLLM,1.0,NVIDIA H100,gemm,torch_flow,bfloat16,0,1024,512,1\n",
                              {.hardware = "h100-sxm"});
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(shape<GemmShape>(i, 0) == GemmShape{.m = 128, .n = 1024, .k = 512});
  CHECK(op(i, 0).dtype == Dtype::bf16);
  CHECK(micros(i, 0) == Approx(250));
  CHECK(shape<GemmShape>(i, 1).weights == "fp8-block128");
  CHECK(i.measurements.rows[0].extra[2] == "gemm torch_flow");
  CHECK(type(i, "gemm torch_flow").remark == "no time (2), no scheme of weights (1), sizes out of range (1)");
  // Columns in any order, without those that say nothing of the product.
  const auto product = [](const std::string& dtype) {
    return imported(kSource, "latency,k,n,m,gemm_dtype\n1,512,1024,128," + dtype + "\n");
  };
  for (const auto& [dtype, scheme] :
       {std::pair{"fp8", "fp8"}, std::pair{"int8_wo", "int8"}, std::pair{"int4_wo", "w4a16-g128"},
        std::pair{"nvfp4", "nvfp4"}, std::pair{"w4a16_mxfp4", "mxfp4"}, std::pair{"sq", "w8a8"}}) {
    CHECK(shape<GemmShape>(product(dtype)) == GemmShape{.m = 128, .n = 1024, .k = 512, .weights = scheme});
  }
  CHECK(op(product("float16"), 0).dtype == Dtype::fp16);
  CHECK(product("bfloat16").types[0].type == "gemm_dtype");
}

TEST_CASE("tables of attention: keys are the tokens before and the new ones", "[import][aiconfigurator]") {
  const Imported i =
      imported(kSource, kAttention +
                            "VLLM,1,x,context_attention,fa3,bfloat16,fp8,2,1000,32,8,128,0,1,24,1\n"
                            "VLLM,1,x,generation_attention,fa3,float16,float16,4,1,32,8,128,128,1,4095,0.5\n"
                            "VLLM,1,x,generation_attention,fa3,fp8,fp8,4,1,32,8,128,0,1,4095,0.5\n"
                            "VLLM,1,x,generation_attention,fa3,bfloat16,bfloat16,4,1,30,8,128,0,1,4095,0.5\n"
                            "VLLM,1,x,generation_attention,fa3,bfloat16,bfloat16,4,1,32,8,128,0,4,4095,0.5\n"
                            "VLLM,1,x,attention,,bfloat16,bfloat16,4,1,32,8,128,0,1,4095,0.5\n");
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(op(i, 0).op == "attention_prefill");
  CHECK(shape<AttentionShape>(i, 0) == AttentionShape{Phase::prefill, 2, 1000, 1024, 32, 8, 128, true, "fp8"});
  CHECK(op(i, 1).op == "attention_decode");
  CHECK(op(i, 1).dtype == Dtype::fp16);
  CHECK(shape<AttentionShape>(i, 1) == AttentionShape{Phase::decode, 4, 1, 4096, 32, 8, 128, true, "", 128});
  CHECK(type(i, "generation_attention fa3").remark == "beams (1), element type (1), sizes do not fit (1)");
  CHECK(type(i, "attention").remark == "neither context nor generation");
}

TEST_CASE("tables of latent attention", "[import][aiconfigurator]") {
  const Imported i = imported(kSource, kLatent +
                                           "SGLang,1,x,context_mla,fa3,bfloat16,fp8,16,2,512,8,512,1\n"
                                           "SGLang,1,x,generation_mla,fa3,bfloat16,bfloat16,16,2,1,8,999,1\n"
                                           "SGLang,1,x,mla_context_module,fa3,bfloat16,bfloat16,16,2,1,8,999,1\n");
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(op(i, 0).op == "mla_prefill");
  CHECK(shape<LatentShape>(i, 0) == LatentShape{Phase::prefill, 2, 512, 1024, 16, "fp8"});
  CHECK(op(i, 1).op == "mla_decode");
  CHECK(shape<LatentShape>(i, 1) == LatentShape{Phase::decode, 2, 1, 1000, 16});
  CHECK(type(i, "mla_context_module fa3").remark == "no such op");
}

TEST_CASE("tables of experts", "[import][aiconfigurator]") {
  const Imported i = imported(kSource, kExperts +
                                           "fp8_block,64,7168,2048,8,256,2,4,balanced,1\n"
                                           "w4a16_mxfp4,64,2880,2880,4,128,1,1,power_law_1.2,1\n"
                                           "bfloat16,64,2880,2880,4,128,1,1,uniform,1\n"
                                           "w4afp8,64,2880,2880,4,128,1,1,balanced,1\n"
                                           "bfloat16,64,2880,2880,4,128,1,3,balanced,1\n");
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(shape<ExpertsShape>(i, 0) == ExpertsShape{64, 7168, 2048, 8, 256, 2, 4, "fp8-block128"});
  CHECK(shape<ExpertsShape>(i, 1) == ExpertsShape{64, 2880, 2880, 4, 128, 1, 1, "mxfp4", "power_law_1.2"});
  CHECK(i.types[0].remark == "distribution not known (1), no scheme of weights (1), sizes do not fit (1)");
}

TEST_CASE("tables of collectives count elements", "[import][aiconfigurator]") {
  const Imported i = imported(kSource,
                              "nccl_dtype,num_gpus,message_size,kernel_source,op_name,latency\n"
                              "half,8,512,NCCL,all_gather,0.02\n"
                              "half,8,512,NCCL,all_gather,0.01\n"
                              "int8,4,1024,NCCL,alltoall,0.01\n"
                              "half,1,1024,NCCL,all_reduce,0.01\n"
                              "half,4,0,NCCL,all_reduce,0.01\n");
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(shape<CollectiveShape>(i, 0) == CollectiveShape{graph::CollectiveKind::all_gather, 8, Bytes{1024}});
  CHECK(micros(i, 0) == Approx(10));  // the shortest
  CHECK(op(i, 1).op == "all_to_all");
  CHECK(shape<CollectiveShape>(i, 1) == CollectiveShape{graph::CollectiveKind::all_to_all, 4, Bytes{1024}});
  CHECK(type(i, "all_reduce NCCL").remark == "nothing sent (1), sizes out of range (1)");
  CHECK(i.types[0].of == Class::communication);
  const Imported custom = imported(
      kSource, kStart + "allreduce_dtype,num_gpus,message_size,latency\nVLLM,1,x,all_reduce,vLLM,bfloat16,2,64,1\n");
  CHECK(op(custom, 0).op == "custom_all_reduce");
  CHECK(shape<CollectiveShape>(custom) == CollectiveShape{.ranks = 2, .bytes = Bytes{128}, .custom = true});
}

TEST_CASE("tables that are written are read back", "[import][aiconfigurator]") {
  const Imported i = imported(kSource, kExperts + "float16,64,7168,2048,8,256,2,4,power_law_1.01,1\n");
  const measure::Measurements back = measure::parse_measurements(format_measurements(i.measurements), "w.csv");
  REQUIRE(back.rows.size() == 1);
  CHECK(back.rows[0].of == i.measurements.rows[0].of);
}

TEST_CASE("malformed tables of kernels are refused with their places", "[import][aiconfigurator]") {
  CHECK(problems_of(kSource, "") == std::vector<std::string>{"t.csv: holds no header line and no rows"});
  CHECK(problems_of(kSource, kExperts) == std::vector<std::string>{"t.csv: holds a header line and no rows"});
  CHECK(problems_of(kSource, "a,b\n1,2\n") ==
        std::vector<std::string>{
            "t.csv:1:1: no column 'gemm_dtype', 'attn_dtype', 'mla_dtype', 'moe_dtype', 'nccl_dtype' or "
            "'allreduce_dtype'"});
  CHECK(problems_of(kSource, "gemm_dtype,m,n\nfp8,1,2\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'k', 'latency'"});
  CHECK(problems_of(kSource, "gemm_dtype,m,n,k,latency\nfp8,1,2,3\nfp8,x,2,3,4\nfp8,1,2,3,soon\nfp8,1,2,1e30,1\n") ==
        std::vector<std::string>{"t.csv:2:1: 4 fields, and the header has 5", "t.csv:3:5: not a number of m: 'x'",
                                 "t.csv:4:11: not a time in milliseconds: 'soon'",
                                 "t.csv:5:9: not a number of k: '1e30'"});
  CHECK(problems_of(kSource, "gemm_dtype,m,n,k,latency\n", {.ranks = 8}).front() ==
        "`ranks` is for files that do not say it, not for aiconfigurator");
}

}  // namespace llmperf::import::aiconfigurator_test
