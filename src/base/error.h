// Errors a user reads. One Diagnostic is one line of a compiler-like report; an Error carries all that were found at
// once and the exit status they lead to.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace llmperf {

// Where in an input something was found. line and column are 1-based; 0 means "not known" and is not printed. In a
// binary file the place is an offset in bytes instead.
struct SourcePosition {
  std::string file;  // path, built-in name or "--flag"
  int line = 0;
  int column = 0;
  std::optional<std::int64_t> byte = {};
};

struct Diagnostic {
  SourcePosition where;
  std::string message;
  std::string hint;  // may be empty; e.g. "did you mean 'num_heads'?"
};

enum class ErrorKind {
  failed,      // exit 1: something outside the input went wrong (I/O, a device)
  bad_input,   // exit 2: usage, a file or a value
  infeasible,  // exit 3: understood, and it cannot be done (does not fit)
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics);
  // Errors of one message without a position.
  static Error bad_input(std::string message, std::string hint = {});
  static Error failed(std::string message, std::string hint = {});
  static Error infeasible(std::string message, std::string hint = {});

  const char* what() const noexcept override { return text_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

// "file:3:7: message" (binary: "file: byte 42: message") plus the hint on a line of its own; parts that are not known
// are left out.
std::string format_diagnostic(const Diagnostic& diagnostic);

}  // namespace llmperf
