//! The line that `git commit` prints about the commit that it made.

/// The parts of the line `[branch sha] subject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitCommitLine<'o> {
    /// The branch, or `detached HEAD`.
    pub branch: &'o str,
    /// The abbreviated hash.
    pub sha: &'o str,
    /// The first line of the message.
    pub subject: &'o str,
}

impl<'o> GitCommitLine<'o> {
    /// Parses a line; `None` if it does not have this form.
    #[must_use]
    pub fn parse(line: &'o str) -> Option<Self> {
        let (inside, subject) = line.strip_prefix('[')?.split_once("] ")?;
        let (branch, sha) = inside.rsplit_once(' ')?;
        let branch = branch.strip_suffix(" (root-commit)").unwrap_or(branch);
        let is_sha =
            (7..=64).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_sha.then_some(Self { branch, sha, subject })
    }

    /// Returns the last such line of an output.
    #[must_use]
    pub fn last_in(output: &'o str) -> Option<Self> {
        output.lines().rev().find_map(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_from_the_output_of_git() {
        for (line, expected) in [
            ("[main 49f6518] feat: a [b] c", Some(("main", "49f6518", "feat: a [b] c"))),
            ("[a/b (root-commit) 0123456789] x", Some(("a/b", "0123456789", "x"))),
            ("[detached HEAD 49f6518] y", Some(("detached HEAD", "49f6518", "y"))),
            ("[test] $ go test ./...", None),
            ("[main 49f651] too short", None),
            (" 2 files changed", None),
        ] {
            let found = GitCommitLine::parse(line).map(|it| (it.branch, it.sha, it.subject));
            assert_eq!(found, expected, "{line}");
        }
        let output = "[main 0000001] first\n 1 file changed\n[main 0000002] second\nEnumerating";
        assert_eq!(GitCommitLine::last_in(output).map(|it| it.sha), Some("0000002"));
    }
}
