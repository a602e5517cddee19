#include <algorithm>

#include "base/text.h"
#include "study/study.h"

namespace llmperf::study {

std::vector<Flag> merged(const std::vector<Flag>& under, const std::vector<Flag>& over) {
  std::vector<Flag> all = under;
  for (const Flag& flag : over) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Flag& f) { return f.name.text == flag.name.text; });
    if (same == all.end()) {
      all.push_back(flag);
    } else {
      *same = flag;
    }
  }
  return all;
}

std::vector<std::string> words_of(const std::vector<Flag>& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : flags) {
    if (flag.kind == Flag::Kind::off) continue;
    const std::string name = "--" + flag.name.text;
    if (flag.kind == Flag::Kind::on) {
      words.push_back(name);
    } else if (flag.value.starts_with('-')) {
      words.push_back(name + "=" + flag.value);  // apart it would be read as a flag
    } else {
      words.insert(words.end(), {name, flag.value});
    }
  }
  return words;
}

std::vector<std::string> paragraphs(const std::string& text) {
  std::vector<std::string> found;
  bool open = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view words = trim(line);
    if (words.empty()) {
      open = false;
    } else if (open) {
      found.back() += " " + std::string(words);
    } else {
      found.emplace_back(words);
      open = true;
    }
  }
  return found;
}

}  // namespace llmperf::study
