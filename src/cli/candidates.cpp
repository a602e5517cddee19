#include "cli/candidates.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/flag_values.h"
#include "cli/words.h"
#include "report/single_line.h"

namespace llmperf::cli {
namespace {

// Where the words before the last have led to.
struct Place {
  const CLI::App* command;
  std::vector<const CLI::Option*> given;
  std::vector<std::string> arguments;
  const CLI::Option* waiting = nullptr;  // the flag whose value comes next
  bool only_arguments = false;           // behind "--"
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

void step(Place& place, const std::string& word) {
  if (place.waiting != nullptr) {
    place.waiting = nullptr;
  } else if (word == "--") {
    place.only_arguments = true;
  } else if (is_flag(word) && !place.only_arguments) {
    const std::string flag = flag_of(word);
    const CLI::Option* option = place.command->get_option_no_throw(flag);
    if (option == nullptr) return;
    place.given.push_back(option);
    if (takes_value(*option) && flag.size() == word.size()) place.waiting = option;
  } else if (const CLI::App* command = find_subcommand(*place.command, word); command && place.arguments.empty()) {
    place = {.command = command, .given = {}, .arguments = {}};
  } else {
    place.arguments.push_back(word);
  }
}

void add(Candidates& out, const std::string& typed, const std::string& word, const std::string& about = {}) {
  if (word.starts_with(typed)) out.words.push_back({word, about});
}

// `before`: what of the word stands in front of the value, "--hw=".
Candidates values(const Place& place, const CLI::Option& option, const std::string& before, const std::string& typed) {
  const FlagValues values = flag_values(*place.command, option, place.arguments);
  Candidates out;
  if (values.sort == FlagValues::Sort::folders) out.sort = Candidates::Sort::folders;
  if (values.sort == FlagValues::Sort::files) out.sort = Candidates::Sort::files;
  if (values.sort == FlagValues::Sort::free || out.sort != Candidates::Sort::words) return out;
  std::string list;  // the items before the last
  if (values.sort == FlagValues::Sort::items) {
    out.sort = Candidates::Sort::items;
    list = typed.substr(0, typed.rfind(',') + 1);
  }
  const std::vector<std::string_view> taken = split(list, ',');
  const bool off = typed.substr(list.size()).starts_with("no_");
  for (const std::string& name : values.names) {
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) continue;
    if (name.starts_with("no_") && !off) continue;  // as many again
    add(out, before + typed, before + list + name);
  }
  const bool path = values.sort == FlagValues::Sort::paths || (list.empty() && typed.find('/') != std::string::npos);
  if (out.words.empty() && path) out.sort = Candidates::Sort::files;
  return out;
}

Candidates flags(const Place& place, const std::string& typed) {
  Candidates out;
  for (const CLI::Option* option : place.command->get_options()) {
    const bool again = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (option->get_group().empty() || option->get_lnames().empty()) continue;
    if (!again && std::find(place.given.begin(), place.given.end(), option) != place.given.end()) continue;
    add(out, typed, "--" + option->get_lnames().front(), option->get_description());
  }
  return out;
}

Candidates arguments(const Place& place, const std::string& typed) {
  Candidates out;
  if (!place.only_arguments && place.arguments.empty()) {
    for (const CLI::App* command : place.command->get_subcommands({})) {
      if (!command->get_group().empty()) add(out, typed, command->get_name(), command->get_description());
    }
  }
  std::size_t index = place.arguments.size();
  for (const CLI::Option* option : place.command->get_options()) {
    if (!option->get_positional()) continue;
    if (index == 0 || option->get_items_expected_max() > 1) return values(place, *option, "", typed);
    --index;
  }
  if (out.words.empty() && typed.empty() && !place.only_arguments) return flags(place, typed);
  return out;
}

}  // namespace

Candidates candidates(const CLI::App& root, std::span<const std::string> words) {
  Place place{.command = &root, .given = {}, .arguments = {}};
  if (words.empty()) return arguments(place, "");
  for (const std::string& word : words.first(words.size() - 1)) step(place, word);
  const std::string& typed = words.back();
  if (place.waiting != nullptr) return values(place, *place.waiting, "", typed);
  if (place.only_arguments || !typed.starts_with("-")) return arguments(place, typed);
  const std::string flag = is_flag(typed) ? flag_of(typed) : typed;
  const CLI::Option* option = flag.size() < typed.size() ? place.command->get_option_no_throw(flag) : nullptr;
  if (option == nullptr) return flags(place, typed);
  if (!takes_value(*option)) return {};
  const std::size_t equals = typed[flag.size()] == '=' ? 1 : 0;
  return values(place, *option, typed.substr(0, flag.size() + equals), typed.substr(flag.size() + equals));
}

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

}  // namespace llmperf::cli
