//! Finds commits, pushes and pull requests in the commands that made them.

use crate::model::claim::{CommandOutcome, ExecutedCommand, FactText};
use crate::shell::{self, CommandSeparator, GitCommitLine, SimpleCommand};

/// What a command delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The sort of delivery.
    pub kind: DeliveryKind,
    /// The first line of a commit's message, or the title of a pull request, if known.
    pub title: Option<String>,
    /// The hash of a commit as git printed it, or the address of a pull request.
    pub name: Option<String>,
}

/// The sorts of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    /// A commit.
    Commit,
    /// A push.
    Push,
    /// A pull request was opened.
    PullRequestOpened,
    /// A pull request was opened as a draft.
    DraftOpened,
    /// A draft was marked ready for review.
    PullRequestReady,
    /// A pull request was merged.
    PullRequestMerged,
}

/// Returns what a command line delivered. A command counts only if the record shows that it
/// succeeded: by the exit code, or a commit by what git printed.
pub(super) fn deliveries(command: &ExecutedCommand) -> Vec<Delivery> {
    let line = command.command.as_ref().map_or("", FactText::preview);
    // Most commands have none of these words, and need no parsing.
    if !["commit", "push", "gh "].iter().any(|word| line.contains(word)) || has_not_run(command) {
        return Vec::new();
    }
    let printed = command.stdout_preview.as_ref();
    let output = printed.map_or("", FactText::preview);
    let mut commit_lines = output.lines().filter_map(GitCommitLine::parse);
    let parts = shell::split_inner(line);
    let exited_well = command.exit_code == Some(0);
    let found = parts.iter().enumerate().filter_map(|(place, part)| {
        // An exit code of 0 says that this part succeeded if all later parts run only after
        // success.
        let later = parts.get(place..).unwrap_or_default();
        let decides = |part: &SimpleCommand| {
            matches!(part.joint, CommandSeparator::And | CommandSeparator::End)
        };
        let succeeded = exited_well && later.iter().all(decides);
        match Invocation::of(part)? {
            Invocation::Commit(arguments) => {
                let shown = commit_lines.next();
                (succeeded || shown.is_some()).then(|| commit(&arguments, shown))
            }
            Invocation::Push => {
                succeeded.then_some(Delivery { kind: DeliveryKind::Push, title: None, name: None })
            }
            Invocation::PullRequest(action, arguments) => {
                pull_request(&action, &arguments, output, succeeded)
            }
        }
    });
    found.collect()
}

/// Returns whether the record says that the command did not run, was stopped, or went on in the
/// background.
pub(super) fn has_not_run(command: &ExecutedCommand) -> bool {
    use CommandOutcome::{Background, Interrupted, Refused, TimedOut};
    matches!(command.outcome, Some(Refused | Interrupted | TimedOut | Background))
}

fn commit(arguments: &[&str], shown: Option<GitCommitLine<'_>>) -> Delivery {
    let message = option_value(arguments, &["-m", "--message"]).map(subject);
    let printed = shown.map(|line| line.subject.to_owned());
    // The stored beginning of the command or of the output may end within the subject.
    let subject = match (message, printed) {
        (Some(message), Some(printed)) if printed.starts_with(&message) => Some(printed),
        (message, printed) => message.or(printed),
    };
    Delivery {
        kind: DeliveryKind::Commit,
        title: subject.filter(|subject| !subject.is_empty()),
        name: shown.map(|line| line.sha.to_owned()),
    }
}

fn pull_request(
    action: &str,
    arguments: &[&str],
    output: &str,
    succeeded: bool,
) -> Option<Delivery> {
    let address = output.split_whitespace().find(|word| {
        word.starts_with("https://")
            && (word.contains("/pull/") || word.contains("/merge_requests/"))
    });
    let kind = match action {
        "create" if arguments.iter().any(|word| matches!(*word, "--draft" | "-d")) => {
            DeliveryKind::DraftOpened
        }
        "create" => DeliveryKind::PullRequestOpened,
        "ready" if !arguments.contains(&"--undo") => DeliveryKind::PullRequestReady,
        "merge" => DeliveryKind::PullRequestMerged,
        _ => return None,
    };
    succeeded.then(|| Delivery {
        kind,
        title: option_value(arguments, &["-t", "--title"])
            .filter(|_| action == "create")
            .map(str::to_owned),
        name: address.map(str::to_owned),
    })
}

/// A call of git or gh that may deliver something.
enum Invocation<'c> {
    Commit(Vec<&'c str>),
    Push,
    PullRequest(String, Vec<&'c str>),
}

impl<'c> Invocation<'c> {
    fn of(command: &'c SimpleCommand) -> Option<Self> {
        let mut words = command.words.iter().map(String::as_str);
        match words.next()?.rsplit('/').next()? {
            "git" => {
                let verb = git_verb(&mut words)?;
                let rest: Vec<&str> = words.collect();
                let is_trial = rest.iter().any(|word| matches!(*word, "--dry-run" | "--help"));
                match verb {
                    "commit" if !is_trial => Some(Self::Commit(rest)),
                    "push" if !is_trial && !rest.contains(&"-n") => Some(Self::Push),
                    _ => None,
                }
            }
            "gh" if words.next()? == "pr" => {
                let action = words.next()?.to_owned();
                Some(Self::PullRequest(action, words.collect()))
            }
            _ => None,
        }
    }
}

/// Returns the subcommand after git's own options.
pub(super) fn git_verb<'c>(words: &mut impl Iterator<Item = &'c str>) -> Option<&'c str> {
    loop {
        match words.next()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" => {
                words.next()?;
            }
            option if option.starts_with('-') => {}
            verb => return Some(verb),
        }
    }
}

/// Returns the value of an option with this short and this long name.
fn option_value<'c>(arguments: &[&'c str], [short, long]: &[&str; 2]) -> Option<&'c str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if let Some(value) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let is_last = |letters: &str| letters.ends_with(short.trim_start_matches('-'));
        // Short options may be written together, as in `-am`.
        if word == long || letters.is_some_and(is_last) {
            return words.next().copied();
        }
    }
    None
}

/// Returns the first line of a commit's message. The message may be a here-document.
fn subject(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    if message.trim_start().starts_with("$(") {
        lines.find(|line| line.contains("<<"));
    }
    lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(line: &str, exit_code: Option<i64>, output: &str) -> Vec<String> {
        let command = ExecutedCommand {
            command: Some(line.into()),
            exit_code,
            stdout_preview: Some(output.into()),
            ..ExecutedCommand::default()
        };
        let shown = |it: Delivery| {
            let kind = format!("{:?}", it.kind);
            [Some(kind), it.title, it.name].into_iter().flatten().collect::<Vec<_>>().join("|")
        };
        deliveries(&command).into_iter().map(shown).collect()
    }

    #[test]
    fn a_commit_has_its_subject_and_its_hash() {
        let printed = "[main 871e5dd] fix: the cache\n 2 files changed";
        let here =
            "git add a && git commit -m \"$(cat <<'EOF'\nfix: it's (the) cache\n\nMore.\nEOF\n)\"";
        for (line, output, expected) in [
            ("git commit -m 'fix: the cache'", printed, "Commit|fix: the cache|871e5dd"),
            ("git -C /w commit -qam \"fix: it\"", "", "Commit|fix: it"),
            ("/usr/bin/git commit --message='fix: it\n\nbody'", "", "Commit|fix: it"),
            ("git commit --amend --no-edit", printed, "Commit|fix: the cache|871e5dd"),
            ("git commit --amend --no-edit", "", "Commit"),
            // Only the beginning of a long command is stored.
            ("git commit -m \"$(cat <<'EOF'\nfix: the", printed, "Commit|fix: the cache|871e5dd"),
            (here, "", "Commit|fix: it's (the) cache"),
            ("bash -lc \"git add a && git commit -m 'fix: it'\"", "", "Commit|fix: it"),
            ("cd /w && sh -c \"make; git commit -m 'fix: it'\" && ls", "", "Commit|fix: it"),
        ] {
            assert_eq!(ran(line, Some(0), output), [expected], "{line}");
        }
        let both = ran("git commit -m a && git push", Some(0), "");
        assert_eq!(both, ["Commit|a", "Push"]);
    }

    #[test]
    fn only_a_commit_or_push_that_is_known_to_have_succeeded_is_a_delivery() {
        for (line, exit_code) in [
            ("git commit -m a", Some(1)),
            ("git commit -m a", None),
            ("git commit -m a | tail -n 1", Some(0)),
            ("git commit -m a; echo done", Some(0)),
            ("git push || true", Some(0)),
            ("git commit --dry-run", Some(0)),
            ("git log --grep 'git commit'", Some(0)),
            ("echo 'git commit -m a'", Some(0)),
            ("gh pr view 1", Some(0)),
            ("gh pr create --title x", Some(1)),
        ] {
            assert_eq!(ran(line, exit_code, ""), [""; 0], "{line}");
        }
        // What git printed is proof, whatever the exit code belongs to.
        let printed = "[main 871e5dd] a\n 1 file changed";
        assert_eq!(ran("git commit -m a | tail", None, printed), ["Commit|a|871e5dd"]);
        let refused = ExecutedCommand {
            command: Some("git commit -m a".into()),
            exit_code: Some(0),
            outcome: Some(CommandOutcome::Refused),
            ..ExecutedCommand::default()
        };
        assert_eq!(deliveries(&refused), []);
    }

    #[test]
    fn a_pull_request_has_its_title_and_its_address() {
        let address = "https://example.org/o/r/pull/133";
        for (line, expected) in [
            ("gh pr create --draft --title \"feat: a b\" --body x", "DraftOpened|feat: a b"),
            ("gh pr create -t 'feat: a'", "PullRequestOpened|feat: a"),
            ("gh pr ready 133", "PullRequestReady"),
            ("cd x && gh pr merge 133 --squash", "PullRequestMerged"),
        ] {
            assert_eq!(ran(line, Some(0), address), [format!("{expected}|{address}")], "{line}");
        }
        assert_eq!(ran("gh pr ready --undo", Some(0), ""), [""; 0]);
    }
}
