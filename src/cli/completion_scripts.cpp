#include "cli/completion_scripts.h"

namespace llmperf::cli {
namespace {

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

constexpr CompletionScript kScripts[] = {
    {"bash", "script for bash", kBash}, {"zsh", "script for zsh", kZsh}, {"fish", "script for fish", kFish}};

}  // namespace

std::span<const CompletionScript> completion_scripts() { return kScripts; }

}  // namespace llmperf::cli
