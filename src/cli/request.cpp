#include "cli/request.h"

#include <CLI/CLI.hpp>

#include "cli/values.h"

namespace llmperf::cli {

void add_model_flag(CLI::App& command, std::string& model, const char* description) {
  command
      .add_option("-m,--model", model,
                  description ? description : "built-in name, YAML file or Hugging Face config.json")
      ->type_name("MODEL")
      ->required();
}

void add_hardware_flag(CLI::App& command, std::string& hardware) {
  command.add_option("--hw", hardware, "built-in name or YAML file")->type_name("DEVICE")->required();
}

void add_request_flags(CLI::App& command, RequestFlags& f) {
  add_model_flag(command, f.model);
  add_hardware_flag(command, f.hardware);
  command.add_option("--batch", f.batch, "requests processed together")->type_name("N")->capture_default_str();
  command.add_option("--prompt", f.prompt, "prompt tokens of a request")->type_name("N")->capture_default_str();
  command.add_option("--gen", f.generate, "tokens to generate for a request")->type_name("N")->capture_default_str();
  command
      .add_option("--weights", f.weights,
                  "bf16, fp16, fp32, fp8, int8, w8a8, w4a16[-gN] (gptq, awq), mxfp4 or bits per weight")
      ->type_name("SCHEME");
  command.add_option("--kv", f.kv, "KV cache type: bf16, fp16, fp32, fp8, int8, int4")->type_name("SCHEME");
  command.add_option("--activations", f.activations, "activation type: bf16, fp16, fp32")->type_name("DTYPE");
  command
      .add_option("--options", f.options, "what the runtime fuses: all, none, or a list of names; no_NAME switches off")
      ->type_name("LIST")
      ->capture_default_str();
  command.add_option("--reserve", f.reserve, "memory the runtime keeps for itself [512MiB]")->type_name("BYTES");
}

estimate::Choices choices_of(const RequestFlags& f) {
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  estimate::Choices choices;
  choices.weights = given(f.weights);
  choices.kv = given(f.kv);
  choices.activations = given(f.activations);
  choices.runtime = hardware::parse_runtime_options(f.options);
  if (!f.reserve.empty()) choices.reserve = bytes_value("--reserve", f.reserve);
  return choices;
}

std::unique_ptr<Request> load_request(const RequestFlags& f) {
  auto request = std::make_unique<Request>();
  request->scenario.batch = int_value("--batch", f.batch, 1, estimate::kMaxBatch);
  request->scenario.prompt = int_value("--prompt", f.prompt, 1, estimate::kMaxTokens);
  request->scenario.generate = int_value("--gen", f.generate, 1, estimate::kMaxTokens);
  const estimate::Choices choices = choices_of(f);
  request->model = model::load_decoder(f.model);
  request->device = hardware::load_device(f.hardware);
  request->estimator =
      std::make_unique<estimate::Estimator>(estimate::make_setup(request->model, request->device, choices));
  return request;
}

}  // namespace llmperf::cli
