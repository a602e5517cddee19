#include "request/draft.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/decoder.h"
#include "request/request.h"

namespace llmperf::request {
namespace {

using estimate::Draft;

// Where the length begins that follows the name; none: npos. A path may have a colon.
std::size_t length_at(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool digits = colon != std::string::npos && colon + 1 < text.size() &&
                      text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return digits ? colon : std::string::npos;
}

}  // namespace

Draft read_draft(const std::string& text, const std::optional<std::string>& accept, const model::Decoder& target,
                 Sources& sources) {
  if (!accept) {
    throw Error::bad_input("`draft` takes `accept`, the chance that a token it proposes is kept",
                           "`accept` 0.8, or 0.85,0.7,0.6 for the first, second and later ones");
  }
  Draft draft;
  draft.acceptance = estimate::parse_acceptance(*accept);
  const std::size_t colon = length_at(text);
  const std::string name = text.substr(0, colon);
  draft.best = colon == std::string::npos;
  if (!draft.best) draft.tokens = count_value("`draft`", text.substr(colon + 1), 1, estimate::kMaxDraftLength);
  auto file = std::make_shared<model::ModelFile>();
  try {
    if (name == "mtp") {
      draft.kind = Draft::Kind::next_token;
      file->decoder = model::next_token_draft(target);
    } else if (name == "eagle") {
      draft.kind = Draft::Kind::eagle;
      file->decoder = model::eagle_draft(target);
    } else {
      *file = sources.model(name);
    }
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    diagnostics.front().message = "`draft`: " + diagnostics.front().message;
    throw Error(error.kind(), std::move(diagnostics));
  }
  draft.file = std::move(file);
  return draft;
}

}  // namespace llmperf::request
