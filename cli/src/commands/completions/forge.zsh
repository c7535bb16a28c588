#compdef forge
# Completion of forge for zsh: source <(forge completions zsh)
_forge() {
    local -a found
    local line
    while IFS= read -r line; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then
        _describe -t forge forge found
    else
        _files
    fi
}
compdef _forge forge
