// `llmperf completion`: scripts of shells, and what may come next on a command line, which they ask.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "descriptor/catalog.h"
#include "report/document.h"

namespace llmperf::cli {
namespace {

struct Candidate {
  std::string word;   // in place of the whole word, "--hw=rtx4090" for "--hw=rt"
  std::string about;  // may be empty
};
struct Candidates {
  enum class Sort { words, items, files, folders };  // items: the list may go on, so no space behind it
  Sort sort = Sort::words;
  std::vector<Candidate> words;  // without those that do not go on from what is typed; none of files
};

// Where the words before the last have led to.
struct Place {
  Command* command;
  std::vector<const Flag*> given;
  std::vector<std::string> arguments;
  const Flag* waiting = nullptr;  // the flag whose value comes next
  bool only_arguments = false;    // behind "--"
};

void step(Place& place, const std::string& word) {
  if (place.waiting != nullptr) {
    place.waiting = nullptr;
  } else if (word == "--") {
    place.only_arguments = true;
  } else if (is_flag(word) && !place.only_arguments) {
    const std::string name = known_flag(*place.command, word);
    const Flag* flag = place.command->find(name);
    if (flag == nullptr) return;
    place.given.push_back(flag);
    if (flag->takes_value() && name.size() == word.size()) place.waiting = flag;
  } else if (Command* command = place.command->find_command(word); command != nullptr && place.arguments.empty()) {
    place = {.command = command, .given = {}, .arguments = {}};
  } else {
    place.arguments.push_back(word);
  }
}

void offer(Candidates& out, const std::string& typed, const std::string& word, const std::string& about = {}) {
  if (word.starts_with(typed)) out.words.push_back({word, about});
}

std::vector<std::string> names_of(const Place& place, const Flag& flag) {
  // NAME of `llmperf show KIND NAME`.
  if (place.command->name == "show" && place.arguments.size() == 1 && flag.values.sort == Values::Sort::paths) {
    using descriptor::Kind;
    const std::string& kind = place.arguments.front();
    return descriptor::names(kind.starts_with("model")      ? Kind::model
                             : kind.starts_with("scenario") ? Kind::scenario
                             : kind.starts_with("runtime")  ? Kind::runtime
                                                            : Kind::device);
  }
  return flag.offered();
}

// `before`: what of the word stands in front of the value, "--hw=".
Candidates values_of(const Place& place, const Flag& flag, const std::string& before, const std::string& typed) {
  const Values& values = flag.values;
  Candidates out;
  if (values.sort == Values::Sort::folders) out.sort = Candidates::Sort::folders;
  if (values.sort == Values::Sort::files) out.sort = Candidates::Sort::files;
  if (values.sort == Values::Sort::free || out.sort != Candidates::Sort::words) return out;
  std::string list;  // the items before the last
  if (values.sort == Values::Sort::items) {
    out.sort = Candidates::Sort::items;
    list = typed.substr(0, typed.rfind(',') + 1);
  }
  const std::vector<std::string_view> taken = split(list, ',');
  const bool off = typed.substr(list.size()).starts_with("no_");
  for (const std::string& name : names_of(place, flag)) {
    if (contains(taken, name)) continue;
    if (name.starts_with("no_") && !off) continue;  // as many again
    offer(out, before + typed, before + list + name);
  }
  const bool path = values.sort == Values::Sort::paths || (list.empty() && typed.find('/') != std::string::npos);
  if (out.words.empty() && path) out.sort = Candidates::Sort::files;
  return out;
}

Candidates flags_of(const Place& place, const std::string& typed) {
  Candidates out;
  for (const Flag& flag : place.command->flags) {
    if (flag.is_argument()) continue;
    const bool given = contains(place.given, &flag);
    if (flag.repeats || !given) offer(out, typed, flag.name, flag.about);
  }
  offer(out, typed, "--help", "print the help");
  return out;
}

Candidates arguments_of(const Place& place, const std::string& typed) {
  Candidates out;
  if (!place.only_arguments && place.arguments.empty()) {
    for (const Command& command : place.command->commands) {
      if (!command.hidden) offer(out, typed, command.name, command.about);
    }
  }
  std::size_t index = place.arguments.size();
  for (const Flag& flag : place.command->flags) {
    if (!flag.is_argument()) continue;
    if (index == 0 || flag.repeats) return values_of(place, flag, "", typed);
    --index;
  }
  if (out.words.empty() && typed.empty() && !place.only_arguments) return flags_of(place, typed);
  return out;
}

// `words`: those behind the program's name; the last is the one to complete, and may be empty.
Candidates candidates(Command& root, std::span<const std::string> words) {
  Place place{.command = &root.described(), .given = {}, .arguments = {}};
  if (words.empty()) return arguments_of(place, "");
  for (const std::string& word : words.first(words.size() - 1)) step(place, word);
  const std::string& typed = words.back();
  if (place.waiting != nullptr) return values_of(place, *place.waiting, "", typed);
  if (place.only_arguments || !typed.starts_with("-")) return arguments_of(place, typed);
  const std::string name = is_flag(typed) ? known_flag(*place.command, typed) : typed;
  const Flag* flag = name.size() < typed.size() ? place.command->find(name) : nullptr;
  if (flag == nullptr) return flags_of(place, typed);
  if (!flag->takes_value()) return {};
  const std::size_t equals = typed[name.size()] == '=' ? 1 : 0;
  return values_of(place, *flag, typed.substr(0, name.size() + equals), typed.substr(name.size() + equals));
}

// As the scripts read them: the sort on a line, then a candidate per line, a tab before what it is.
std::string to_text(const Candidates& candidates) {
  constexpr const char* kSorts[] = {"words", "items", "files", "folders"};
  std::string text = std::string(kSorts[static_cast<std::size_t>(candidates.sort)]) + "\n";
  for (const Candidate& c : candidates.words) {
    text += report::single_line(c.word);
    if (!c.about.empty()) text += "\t" + report::single_line(c.about);
    text += "\n";
  }
  return text;
}

}  // namespace

// The scripts, which are thin: what may come next they ask the program. The files in completion/, embedded.
std::string_view bash_script();
std::string_view zsh_script();
std::string_view fish_script();

void describe_completion(Command& command) {
  using Script = std::pair<const char*, std::string_view>;
  for (const auto& [shell, script] :
       {Script("bash", bash_script()), Script("zsh", zsh_script()), Script("fish", fish_script())}) {
    command.add_command(shell, fmt::format("script for {}", shell)).action = [script = script](const Context&) {
      write_stdout(std::string(script));
      return kExitDone;
    };
  }
  // What the scripts ask; of no use to a person, so not in the help.
  Command& asked = command.add_command("candidates", "what may stand in place of the last of these words");
  asked.hidden = true;
  auto& words = asked.runs(+[](const std::vector<std::string>& typed, const Context&) {
    Command root = all_commands();
    write_stdout(to_text(candidates(root, typed)));
    return kExitDone;
  });
  asked.add("words", words, "", "behind --: the command line without the program's name");
}

}  // namespace llmperf::cli
