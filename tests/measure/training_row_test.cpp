// Rows of training runs: what a line becomes as a request, and what validate says of it.
#include <cmath>

#include "catch.h"
#include "measure/measurements.h"
#include "measure/validation.h"

namespace llmperf::training_row_test {

using measure::TrainingRow;

namespace {

constexpr const char* kHeader =
    "id,framework,year,hardware,gpus,gpus_per_node,model,task,precision,weights,optimizer,lora_rank,lora_targets,seq,"
    "gbs,mbs,tp,sp,pp,vp,schedule,cp,ep,dp_mode,shard_group,recompute,loss,tok_s_gpu,mem_gib,mem_kind,oom\n";

measure::Measurements parse(const std::string& lines) {
  return measure::parse_measurements(kHeader + lines, "runs.csv");
}
const TrainingRow& row(const measure::Measurements& m, std::size_t i = 0) {
  return std::get<TrainingRow>(m.rows.at(i).of);
}
request::Request request(const std::string& line, const char* device = "h100-sxm") {
  const measure::Measurements m = parse(line);
  return request_of(row(m), hardware::load_device(device), 80);
}

}  // namespace

TEST_CASE("a row's seconds are those of a step of all its sequences") {
  const auto m = parse(
      "a,torchtitan,2024,h100-sxm,8,8,llama-3-8b,pretrain,bf16,bf16,adamw-fp32,,,8192,16,2,1,0,1,1,,1,1,"
      "fsdp,,full,,5600,,,0\n");
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].latency.value == Approx(16 * 8192 / (5600.0 * 8)));
  CHECK(row(m).runtime == "pytorch-fsdp");
  CHECK(row(m).engine_version == "2024");
}

TEST_CASE("frameworks are told by words of their names, releases by numbers") {
  const auto stack = [](const std::string& framework, const std::string& task = "pretrain",
                        const std::string& precision = "fp8") {
    const std::string rank = task == "lora" ? "16" : "";
    const auto m = parse("a," + framework + ",2025,h100-sxm,8,8,llama-3-8b," + task + "," + precision +
                         ",bf16,adam-fp32," + rank + ",,4096,8,1,1,0,1,1,,1,1,zero1,,none,,100,,,0\n");
    return row(m).runtime + '@' + row(m).engine_version;
  };
  CHECK(stack("megatron-core 26.02.01") == "megatron@26.02");
  CHECK(stack("NVIDIA NeMo Framework Release 25.04") == "megatron@25.04");
  CHECK(stack("composer+FSDP1") == "pytorch-fsdp@2025");
  CHECK(stack("maxtext 2023-24") == "maxtext@2025");
  CHECK(stack("modellink mcore") == "mindspeed@2025");
  CHECK(stack("HF Trainer + PEFT", "lora", "bf16") == "transformers-peft@2025");
  CHECK(stack("LLMBoost 1.1.0", "lora") == "megatron@2025");  // adapters beside narrow products
}

TEST_CASE("a row becomes the request that its command was") {
  const request::Request q = request(
      "a,megatron-core 25.09,2025,h100-sxm,64,8,llama-3-70b,pretrain,fp8,bf16,adam-fp32,,,8192,128,1,4,1,8,5,"
      "interleaved,1,1,zero1,,half,,800,,,0\n");
  CHECK(q.tp == "4");
  CHECK(q.pp == 8);
  CHECK(q.dp == 2);
  CHECK(q.megatron_sp);
  CHECK(q.interleave == 5);
  CHECK_FALSE(q.schedule.has_value());  // 1F1B, interleaved
  CHECK(q.products == "fp8");
  CHECK(q.dp_mode == "zero1");
  CHECK(q.recompute == "full:40");
  CHECK(q.runtime == "megatron@25.09");
  const request::Request grouped = request(
      "a,pytorch "
      "FSDP,2024,h100-sxm,64,8,llama-3-8b,pretrain,bf16,bf16,adamw-8bit-in-backward,,,4096,100,4,1,0,1,1,,2,1,"
      "hsdp,8,modules:mlp+moe_act,chunked,800,,,0\n");
  CHECK(grouped.dp_mode == "hsdp:8");
  CHECK_FALSE((grouped.eager || grouped.async_tp));
  CHECK(grouped.sp == "ring:2");
  CHECK(grouped.optimizer == "adamw-8bit");
  CHECK(grouped.optimizer_in_backward);
  CHECK(grouped.recompute == "modules:mlp,moe_act");
  CHECK(grouped.loss == "chunked");
  CHECK(grouped.global_batch == 128);  // 32 replicas of one micro-batch of 4, the last not full
  const request::Request adapters = request(
      "a,HF Trainer + PEFT,2024,a100-sxm-80gb,1,8,llama-3-8b,qlora,bf16,nf4,adamw-8bit,32,all-linear,4096,4,4,1,0,1,1,"
      ",1,1,none,,full,plain,,20,allocated,0\n",
      "a100-sxm-80gb");
  CHECK(adapters.lora == "32:all-linear");
  CHECK(adapters.weights == "nf4-double");
  // A rack is one domain, whatever its servers.
  CHECK_FALSE(
      request("a,megatron-core 25.09,2025,gb200,8,4,llama-3-8b,pretrain,fp8,bf16,adam-fp32,,,8192,8,1,1,0,1,1,,1,1,"
              "zero1,,none,,800,,,0\n",
              "gb200")
          .devices_per_node.has_value());
}

TEST_CASE("lines that say neither speed nor memory are refused, as are numbers that are none") {
  const std::string begin =
      "a,torchtitan,2024,h100-sxm,8,8,llama-3-8b,pretrain,bf16,bf16,adamw-fp32,,,8192,16,2,1,0,1,1,,1,1,fsdp,,full,,";
  CHECK_THROWS_WITH(parse(begin + ",,,0\n"), Catch::Contains("without 'tok_s_gpu', 'mem_gib' and 'oom'"));
  CHECK_THROWS_WITH(parse(begin + "-3,,,0\n"), Catch::Contains("must be a positive number"));
  CHECK_THROWS_WITH(measure::parse_measurements("hardware,model,tok_s_gpu\nh100-sxm,x,1\n", "runs.csv"),
                    Catch::Contains("'gpus'") && Catch::Contains("training steps"));
}

TEST_CASE("validate says the seconds of a step, whether it fits, and its memory") {
  const auto v = measure::validate(parse(
      "a,HF Trainer + "
      "PEFT,2024,a100-sxm-80gb,1,8,mistral-7b-v0.1,lora,bf16,bf16,adamw-fp32,16,qkvo,4096,4,4,1,0,1,1,,1,1,"
      "none,,full,plain,3000,22.79,allocated,0\n"
      "b,HF Trainer + PEFT,2024,a100-sxm-80gb,1,8,mistral-7b-v0.1,sft,bf16,bf16,adamw-fp32,,,4096,4,4,1,0,1,1,,1,1,"
      "none,,none,plain,,,,1\n"
      "c,torchtitan,2024,no-such-chip,8,8,llama-3-8b,pretrain,bf16,bf16,adamw-fp32,,,8192,16,2,1,0,1,1,,1,1,"
      "fsdp,,full,,100,,,0\n"));
  REQUIRE(v.rows.size() == 2);
  CHECK(v.measurements.refused.size() == 1);
  const measure::ValidatedRow& fits = v.rows[0];
  REQUIRE(fits.memory.has_value());
  CHECK(fits.memory->fits);
  CHECK(std::abs(fits.memory->bytes / (22.79 * 1073741824) - 1) < 0.1);  // fms-acceleration measured it
  CHECK(fits.predicted > fits.roofline);
  CHECK(fits.scored);
  CHECK(fits.band.has_value());
  CHECK_FALSE(v.rows[1].memory->fits);  // 7.2 billion parameters with an fp32 copy need 116 GB
  CHECK_FALSE(v.rows[1].scored);
}

TEST_CASE("published runs are predicted within a tenth, and their bands hold nine of ten") {
  const std::vector<std::string> names = {"training"};
  const auto v = measure::validate(measure::read_measurements(names));
  CHECK(v.summary.errors.rows > 500);
  CHECK(v.summary.errors.mape < 0.085);
  CHECK(v.summary.inside_p90 > 0.85);
  int ran = 0;
  int fit = 0;
  for (const measure::ValidatedRow& r : v.rows) {
    const auto& of = std::get<TrainingRow>(v.measurements.rows[r.row].of);
    if (of.oom) {
      CHECK_FALSE(r.memory->fits);
      continue;
    }
    ++ran;
    fit += r.memory->fits ? 1 : 0;
  }
  CHECK(fit > 0.95 * ran);
}

}  // namespace llmperf::training_row_test
