# Completion of forge for fish: forge completions fish | source
function __forge_complete
    set -l found (forge complete -- (commandline -opc) (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c forge -f -k -a '(__forge_complete)'
