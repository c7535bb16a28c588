//! Command lines of commands that are given as lists of words.

use forge_store::shell::{quoted, shell_line};

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
    let file_name = name.rsplit(['/', '\\']).next();
    matches!(file_name, Some("apply_patch" | "applypatch" | "apply_patch.bat"))
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
