# Completion of forge for bash: source <(forge completions bash)
_forge() {
    local IFS=$'\n' line
    COMPREPLY=()
    while read -r line; do
        COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
}
complete -o default -F _forge forge
