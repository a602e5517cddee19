// Engines' commands: any text reads as a request whose fields have values within their rules, and again as the same
// one, or is refused as bad input.
#include "base/error.h"
#include "cli/launch.h"
#include "fuzz.h"

void fuzz_launch(std::string_view text) {
  using namespace llmperf;
  try {
    const cli::ReadLaunch read = cli::read_launch(std::string(text), "f");
    require(read.request.engine.has_value());
    require(cli::read_launch(std::string(text), "f").request == read.request);
    const auto json = descriptor::parse_json(request::to_json(read.request), "r");
    require(request::parse_request(json) == read.request);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty());
  }
}
