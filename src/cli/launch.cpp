#include "cli/launch.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.h"
#include "cli/files.h"

namespace llmperf::cli {

void add_emit(Command& command, std::optional<Launch>& emit) {
  using enum Launch;
  command
      .add("--emit", emit, {{"vllm", vllm}, {"sglang", sglang}, {"trtllm", trtllm}, {"k8s", k8s}}, "WHAT",
           "in place of the report the command that starts the engine so, of vllm, sglang or trtllm; or a manifest of "
           "Kubernetes (k8s)")
      .group = "Output";
}

void check_emit(const Context& context) {
  context.refuse({"--json", "--format", "--export"}, "a command is printed in place of a result");
  if (context.caught != nullptr)
    throw Error::bad_input("--emit: a study has reports, and a command is none", "leave it out");
}

Answer emitted(const request::Request& request, request::Sources& sources, Launch emit, std::int64_t replicas) {
  write_stdout(launch_text(request, sources, emit, replicas));
  return {};
}

ReadLaunch read_from(const std::string& given) {
  std::error_code ignored;
  const bool one_word = words(given).size() == 1 && given.find('\n') == std::string::npos;
  const bool file = one_word || std::filesystem::exists(given, ignored);
  const GivenText launch = file ? read_given(given) : GivenText{given, "--from"};
  return read_launch(launch.text, launch.name);
}

}  // namespace llmperf::cli
