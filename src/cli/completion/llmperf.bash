# bash completion of llmperf. For one session:  eval "$(llmperf completion bash)"
# bash has split the words at = and : (COMP_WORDBREAKS). They are joined again for the program, and of its answers bash wants
# what goes into the last piece only.
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
