#include "base/error.h"

#include <utility>

namespace llmperf {

Error::Error(ErrorKind kind, std::vector<Diagnostic> diagnostics) : kind_(kind), diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& diagnostic : diagnostics_) {
    if (!text_.empty()) text_ += '\n';
    text_ += format_diagnostic(diagnostic);
  }
}

Error Error::bad_input(std::string message, std::string hint) {
  return {ErrorKind::bad_input, {Diagnostic{{}, std::move(message), std::move(hint)}}};
}

Error Error::failed(std::string message, std::string hint) {
  return {ErrorKind::failed, {Diagnostic{{}, std::move(message), std::move(hint)}}};
}

Error Error::infeasible(std::string message, std::string hint) {
  return {ErrorKind::infeasible, {Diagnostic{{}, std::move(message), std::move(hint)}}};
}

std::string format_diagnostic(const Diagnostic& diagnostic) {
  const SourcePosition& where = diagnostic.where;
  std::string text = where.file;
  if (where.line > 0) {
    if (!text.empty()) text += ':';
    text += std::to_string(where.line);
    if (where.column > 0) text += ':' + std::to_string(where.column);
  }
  if (where.byte) {
    if (!text.empty()) text += ": ";
    text += "byte " + std::to_string(*where.byte);
  }
  if (!text.empty()) text += ": ";
  text += diagnostic.message;
  if (!diagnostic.hint.empty()) text += "\n  hint: " + diagnostic.hint;
  return text;
}

}  // namespace llmperf
