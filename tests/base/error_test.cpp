#include "base/error.h"

#include "catch.h"

namespace llmperf::error_test {

TEST_CASE("a diagnostic prints like a compiler's, with the hint on a line of its own") {
  CHECK(format_diagnostic({{"my.yaml", 14, 3}, "unknown key 'n_head'", "did you mean 'num_heads'?"}) ==
        "my.yaml:14:3: unknown key 'n_head'\n  hint: did you mean 'num_heads'?");
}

TEST_CASE("parts of a position that are not known are left out") {
  CHECK(format_diagnostic({{"my.yaml", 14, 0}, "bad", ""}) == "my.yaml:14: bad");
  CHECK(format_diagnostic({{"my.yaml", 0, 0}, "bad", ""}) == "my.yaml: bad");
  CHECK(format_diagnostic({{"", 0, 0}, "bad", ""}) == "bad");
  CHECK(format_diagnostic({{"--batch", 0, 0}, "bad", ""}) == "--batch: bad");
}

TEST_CASE("a place in a binary file is an offset in bytes, counted from 0") {
  CHECK(format_diagnostic({{"model.gguf", 0, 0, 1234}, "bad", ""}) == "model.gguf: byte 1234: bad");
  CHECK(format_diagnostic({{"model.gguf", 0, 0, 0}, "bad", "why"}) == "model.gguf: byte 0: bad\n  hint: why");
  CHECK(format_diagnostic({{"", 0, 0, 7}, "bad", ""}) == "byte 7: bad");
}

TEST_CASE("an error's text holds all of its diagnostics") {
  const Error error(ErrorKind::bad_input, {{{"a", 1, 2}, "one", ""}, {{"a", 3, 4}, "two", "try three"}});
  CHECK(std::string(error.what()) == "a:1:2: one\na:3:4: two\n  hint: try three");
  CHECK(error.diagnostics().size() == 2);
}

TEST_CASE("the kind of an error follows from how it was made") {
  CHECK(Error::bad_input("x").kind() == ErrorKind::bad_input);
  CHECK(Error::failed("x").kind() == ErrorKind::failed);
  CHECK(std::string(Error::failed("disk full", "free some").what()) == "disk full\n  hint: free some");
}

}  // namespace llmperf::error_test
