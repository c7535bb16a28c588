//! Command lines of commands that are given as lists of words.

use forge_store::shell::quoted;

/// Returns the command line of a list of words. The line of `bash -lc LINE` is the line itself. The
/// text of a patch is not quoted. In any other list, the words that a shell would split or expand
/// are quoted.
pub(crate) fn command_line_of(words: &[&str]) -> String {
    match (shell_line(words), words) {
        (Some(line), _) => line.to_owned(),
        // A patch is read as it is.
        (None, [name, text]) if is_patch_program(name) => format!("{name} {text}"),
        _ => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// Whether a program applies the patch that is its only argument.
pub(crate) fn is_patch_program(name: &str) -> bool {
    matches!(file_name(name), "apply_patch" | "applypatch" | "apply_patch.bat")
}

fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the line that a shell is called with, as in `bash -lc LINE`. Before the line, the call
/// may have only options that do not change what the line does.
pub(crate) fn shell_line<'a>(words: &[&'a str]) -> Option<&'a str> {
    let [program, options @ .., flag, line] = words else { return None };
    let program = file_name(program).to_ascii_lowercase();
    let only = |known: &[&str]| {
        options.iter().all(|option| known.iter().any(|it| it.eq_ignore_ascii_case(option)))
    };
    let is_line = match program.strip_suffix(".exe").unwrap_or(&program) {
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "csh" | "tcsh" | "fish" => {
            let has_line = flag.starts_with('-') && !flag.starts_with("--") && flag.contains('c');
            has_line && only(&["-l", "--login"])
        }
        "pwsh" | "powershell" => {
            let has_line = flag.eq_ignore_ascii_case("-c") || flag.eq_ignore_ascii_case("-command");
            has_line
                && only(&["-NoProfile", "-NoLogo", "-NonInteractive", "-ExecutionPolicy", "Bypass"])
        }
        "cmd" => flag.eq_ignore_ascii_case("/c") && only(&["/d", "/s"]),
        _ => false,
    };
    is_line.then_some(*line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_arguments_becomes_a_quoted_command_line() {
        let lists: [(&[&str], &str); 15] = [
            (&["bash", "-lc", "make && ls"], "make && ls"),
            (&["/bin/sh", "-c", "make"], "make"),
            (&["bash", "-l", "-c", "make"], "make"),
            (&["pwsh", "-Command", "make"], "make"),
            (&["C:\\W\\powershell.exe", "-NoProfile", "-Command", "make"], "make"),
            (&["cmd.exe", "/d", "/c", "make"], "make"),
            (&["powershell", "-File", "-Command", "make"], "powershell -File -Command make"),
            (&["bash", "-x", "run.sh"], "bash -x run.sh"),
            (&["bash", "-e", "-c", "cargo test"], "bash -e -c 'cargo test'"),
            (&["ssh", "-oBatchMode=yes", "host"], "ssh -oBatchMode=yes host"),
            (&["git", "commit", "-m", "fix; cargo test"], "git commit -m 'fix; cargo test'"),
            (&["rg", "it's|cargo test", ""], r"rg 'it'\''s|cargo test' ''"),
            (&["ls", "-l", "a/b.rs"], "ls -l a/b.rs"),
            (&["apply_patch", "+it's"], "apply_patch +it's"),
            (&[], ""),
        ];
        for (words, line) in lists {
            assert_eq!(command_line_of(words), line);
        }
    }
}
