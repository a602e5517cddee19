#include "cli/shell_words.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

class Splitter {
 public:
  Splitter(std::string_view flag, std::string_view line) : flag_(flag), line_(line) {}

  std::vector<std::string> split() {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == ' ' || c == '\t' || c == '\n') {
        end_word();
      } else if (c == '\'' || c == '"') {
        quoted(c);
      } else if (c == '\\') {
        escaped();
      } else {
        append(c);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error::bad_input(fmt::format("{}: {} in {}", flag_, what, quote(line_)), "write it as in a shell");
  }
  void append(char c) {
    word_ += c;
    open_ = true;
  }
  void end_word() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  void escaped() {
    if (at_ == line_.size()) fail("a backslash ends the line");
    append(line_[at_++]);
  }
  // Between double quotes a backslash escapes only quotes and itself.
  void quoted(char closing) {
    open_ = true;
    for (; at_ < line_.size() && line_[at_] != closing; ++at_) {
      const bool escapes = closing == '"' && line_[at_] == '\\' && at_ + 1 < line_.size() &&
                           (line_[at_ + 1] == '"' || line_[at_ + 1] == '\\');
      if (escapes) ++at_;
      word_ += line_[at_];
    }
    if (at_ == line_.size()) fail("a quote is not closed");
    ++at_;
  }

  std::string_view flag_;
  std::string_view line_;
  std::size_t at_ = 0;
  std::string word_;
  bool open_ = false;  // a word has begun, if only with empty quotes
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> shell_words(std::string_view flag, std::string_view line) {
  return Splitter(flag, line).split();
}

}  // namespace llmperf::cli
