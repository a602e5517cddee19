#compdef llmperf
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
