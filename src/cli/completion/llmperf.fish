# fish completion of llmperf. For one session:  llmperf completion fish | source
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
