// What may come next on a command line: the one implementation behind the completion scripts of all shells.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace llmperf::cli {

struct Candidate {
  std::string word;   // in place of the whole word, "--hw=rtx4090" for "--hw=rt"
  std::string about;  // may be empty
};
struct Candidates {
  enum class Sort { words, items, files, folders };  // items: the list may go on, so no space behind it
  Sort sort = Sort::words;
  std::vector<Candidate> words;  // without those that do not go on from what is typed; none of files
};

// `words`: those behind the program's name; the last is the one to complete, and may be empty.
Candidates candidates(const CLI::App& root, std::span<const std::string> words);

// As the scripts read them: the sort on a line, then a candidate per line, a tab before what it is.
std::string to_text(const Candidates& candidates);

}  // namespace llmperf::cli
