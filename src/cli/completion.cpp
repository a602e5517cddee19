// `llmperf completion`: scripts of shells, and what may come next on a command line, which they ask.
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

// ---- The scripts, which are thin: what may come next they ask the program.

// bash has split the words at = and : (COMP_WORDBREAKS). They are joined again for the program, and of its answers bash
// wants what goes into the last piece only.
constexpr std::string_view kBash =
    R"script(# bash completion of llmperf. For one session:  eval "$(llmperf completion bash)"
_llmperf() {
  local program=${COMP_WORDS[0]/#\~\//$HOME/} words=() piece glued= i
  for ((i = 1; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    if [[ ${#words[@]} -gt 0 && ( $glued || $piece == [=:]* ) ]]; then
      words[${#words[@]}-1]+=$piece
    else
      words+=("$piece")
    fi
    glued=
    [[ $piece == *[=:] ]] && glued=1
  done
  local word=${words[${#words[@]}-1]} before
  [[ $piece == [=:] ]] && piece=
  before=${word%"$piece"}
  word=${word#[\"\']}
  words[${#words[@]}-1]=$word

  local sort candidate flag=
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    if [[ ! $sort ]]; then sort=$candidate; else COMPREPLY+=("${candidate#"$before"}"); fi
  done < <("$program" completion candidates -- "${words[@]}" 2>/dev/null)
  case $sort in
    items) compopt -o nospace ;;
    files | folders)
      [[ $word == --*=* ]] && flag=${word%%=*}=
      [[ $sort == files ]] && i=-f || i=-d
      while IFS= read -r candidate; do
        candidate=$flag$candidate
        COMPREPLY+=("${candidate#"$before"}")
      done < <(compgen $i -- "${word#"$flag"}")
      compopt -o filenames
      ;;
  esac
} 2>/dev/null
complete -F _llmperf llmperf
)script";

constexpr std::string_view kZsh = R"script(#compdef llmperf
# zsh completion of llmperf. For one session:  source <(llmperf completion zsh)
_llmperf() {
  local program=${${(Q)words[1]}/#\~\//$HOME/} sort line
  local -a typed lines described
  typed=("${(@Q)words[2,-1]}")
  typed=("${(@)typed[1,CURRENT-2]}" "${(Q)PREFIX}")
  (( CURRENT == 2 )) && typed=("${(Q)PREFIX}")
  lines=("${(@f)$(command $program completion candidates -- "${typed[@]}" 2>/dev/null)}")
  sort=$lines[1]
  shift lines
  case $sort in
    files | folders)
      compset -P '--*='
      if [[ $sort == folders ]]; then _files -/; else _files; fi
      return
      ;;
  esac
  for line in $lines; do
    if [[ $line == *$'\t'* ]]; then
      described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    else
      described+=("${line//:/\\:}")
    fi
  done
  if [[ $sort == items ]]; then
    _describe -V llmperf described -S ''
  else
    _describe -V llmperf described
  fi
}
if [[ $funcstack[1] == _llmperf ]]; then
  _llmperf "$@"
else
  compdef _llmperf llmperf
fi
)script";

constexpr std::string_view kFish =
    R"script(# fish completion of llmperf. For one session:  llmperf completion fish | source
function __llmperf_candidates
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines (command $program completion candidates -- $words[2..-1] "$word" 2>/dev/null)
    set -l flag (string match -r -- '^--[^=]*=' "$word")
    set -l value (string replace -- "$flag" "" "$word")
    switch "$lines[1]"
        case files
            string replace -r -- '^' "$flag" (__fish_complete_path "$value")
        case folders
            string replace -r -- '^' "$flag" (__fish_complete_directories "$value" "")
        case '*'
            test (count $lines) -gt 1; and printf '%s\n' $lines[2..-1]
    end
end
complete -c llmperf -f -k -a '(__llmperf_candidates)'
)script";

struct Shell {
  const char* name;
  const char* about;
  std::string_view script;
};
constexpr Shell kShells[] = {
    {"bash", "script for bash", kBash}, {"zsh", "script for zsh", kZsh}, {"fish", "script for fish", kFish}};

}  // namespace

void describe_completion(Command& command) {
  for (const Shell& shell : kShells) {
    command.add_command(shell.name, shell.about).action = [&shell](const Context&) {
      write_stdout(std::string(shell.script));
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
