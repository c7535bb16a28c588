//! Recognises runs in which the check never started because the program that should run it failed.

use super::CheckKind;
use super::check_call::CheckCall;
use forge_store::const_table::{count, rows};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

const MESSAGE_LINES: &str = include_str!("runner_messages.tsv");
/// The messages with which programs report that they ran nothing: what it says, the programs, the
/// pattern of the line.
static MESSAGES: [[&str; 3]; count(MESSAGE_LINES)] = rows(MESSAGE_LINES);

/// The patterns of what shells, in any language, and runners say about a program that they cannot
/// run.
const NOT_FOUND: [&str; 7] = [
    r"^(?:\S*sh: (?:line )?(?:\d+: )?)?(?:\S*/)?{}: (?:(?:command )?not found|No such file or directory|Permission denied)$",
    r"^-?(?:\S*/)?(?:ba|da|k|z)?sh: (?:\S+ \d+ ?: )?{} ?: \S",
    r"^(?:\S*sh|\(eval\)):(?:\d+:)? (?:command not found|no such file or directory|permission denied): (?:\S*/)?{}$",
    r"^fish: Unknown command: {}$|^(?:\S.*)?exec: .{}.: executable file not found in ",
    r"^'?{}'?(?: is not recognized as | ?: The term )|\| The term '{}' is not recognized as ",
    r": ObjectNotFound: \({}:String\) \[\], CommandNotFoundException|^{} ?: .*[/\\]{}\.ps1\b",
    r"^(?:timeout|gtimeout|env|nice|nohup|stdbuf|setsid|xargs|time|pyenv|rbenv): (?:failed to run command |cannot run )?['‘]?(?:\S*/)?{}['’]?: (?:No such file or directory|command not found)$",
];

/// What `cmd` says, in its languages, about a program that it does not find. It ends with 1 then.
const NOT_FOUND_BY_CMD: &str = r#"^(?:(?:Der Befehl|Název|Nazwa) )?['"]{}['"](?: is not recognized as an internal| n.est pas reconnu en tant que| no se reconoce como un comando| não é reconhecido como um comando| ist entweder falsch geschrieben| non è riconosciuto come comando| is niet herkend als een interne| känns inte igen som| nie jest rozpoznawana jako| není názvem vnitřního| iç ya da dış komut| не является внутренней|은\(는\) 내부| ?は、内部コマンド| ?不是内部或外部命令| ?不是內部或外部命令)"#;

/// The patterns of what tools say about an option that they do not know.
const UNKNOWN_OPTION: &str = r"^(?:\S+ )*{}(?: \S+)*: error: (?:unrecognized arguments: |the following arguments are required: |argument -|ambiguous option: )|^{}: (?:unrecognized|invalid|illegal|unknown) option ";
/// The same without the name of the tool.
const UNKNOWN_OPTIONS: &str = r#"^error: (?:unexpected argument|unknown option|Unknown option|Found argument) ['`]|^Error: (?:unknown (?:shorthand )?flag|No such option): |^flag provided but not defined: |^CACError: Unknown option |^● Unrecognized CLI Parameter|^(?:Invalid|Unknown|invalid) option:? ['"]?-|^Unknown option: |^\s*The "-\S+" option does not exist|^Could not find an option named "|^ERROR: \S+ :: Unrecognized option: "#;

/// What programs that choose the version of a tool say if there is none.
const NO_VERSION: &str = r"^(?:rbenv|pyenv|nodenv|goenv|jenv): version [`'‘]|^No version is set for command |^Volta error: |^xcrun: error: invalid active developer path|^xcode-select: (?:error|note): |^You have not agreed to the Xcode |^Python was not found; run without arguments ";

/// What npm prints if the package with the tool could not be downloaded.
const NO_PACKAGE: &str = r"^npm (?:ERR!|error) code (?:ENOTFOUND|EAI_AGAIN|E[45]\d\d|ECONN[A-Z]+|ETIMEDOUT|ENOTCACHED|EACCES|EPERM|EROFS)$";

/// The messages with which `make`, `task` and `mise` report that they ran nothing for a target. If
/// there is a folder with the name of a target of tests that is not in `.PHONY`, `make` finds it up
/// to date.
const UP_TO_DATE: &str = r#"^g?make: (?:Nothing to be done for ['‘`]{}['’]|['‘`]{}['’] is up to date)\.$|^task: Task "{}" is up to date$|^\[{}\] sources up-to-date, skipping$"#;

/// Messages with which a build tool reports that a part of the project has no tests, each before
/// the pattern of the lines that it prints about a part with tests.
const NO_TESTS_IN_PART: &[(&[&str], &str, &str)] = &[
    (
        &["mvn", "mvnw", "mvnd"],
        r"^\[INFO\] (?:No tests to run|Tests are skipped)\.$",
        r"^\[\S+\] Tests run: [1-9]",
    ),
    (
        &["gradle", "gradlew"],
        r"^> Task \S*[Tt]est NO-SOURCE$",
        r"^> Task \S*[Tt]est(?: UP-TO-DATE| FROM-CACHE)?$",
    ),
    (
        &["sbt"],
        r"^\[info\] No tests (?:to run for |were executed)",
        r"^\[info\] Passed: Total [1-9]",
    ),
    (
        &["xcodebuild"],
        r"^\s*Executed 0 tests, with 0 failures",
        r"^\s*Executed [1-9]|^Test [Cc]ase '.+' (?:passed|failed)|Test run with [1-9]",
    ),
];

/// The patterns of the summary lines of runs whose filter matched no test, each after a part of the
/// line. Only a line that has the part is compared with the pattern.
static EMPTY_RUNS: [[&str; 2]; count(EMPTY_RUN_LINES)] = rows(EMPTY_RUN_LINES);
const EMPTY_RUN_LINES: &str = include_str!("empty_runs.tsv");

/// Returns the number of tests that ran, if this line counts them but does not say whether they
/// passed.
pub(super) fn tests_of_run(line: &str) -> Option<u64> {
    let counts = ["Ran ", "# tests ", "ℹ tests "];
    let rest = counts.iter().find_map(|count| line.strip_prefix(*count))?;
    let (number, unit) = rest.split_once(' ').unwrap_or((rest, "test"));
    number.parse().ok().filter(|_| unit.starts_with("test") && !unit.starts_with("test suite"))
}

/// Returns whether one of these lines is the summary of a run whose filter matched no test.
pub(super) fn has_empty_run(lines: &[&str]) -> bool {
    // Most outputs have none of the parts: one search in all lines is faster than one in each.
    let text = lines.join("\n");
    let mut likely = EMPTY_RUNS.iter().filter(|[part, _]| text.contains(part));
    likely.any(|row| lines.iter().any(|line| is_summary_of(row, line)))
}

/// Returns whether this is the summary of a run whose filter matched no test.
pub(super) fn is_empty_run(line: &str) -> bool {
    EMPTY_RUNS.iter().any(|row| is_summary_of(row, line))
}

/// Returns whether a line is a summary by a row of [`EMPTY_RUNS`].
fn is_summary_of([part, pattern]: &[&'static str; 2], line: &str) -> bool {
    line.contains(part) && any_name(pattern).is_some_and(|regex| regex.is_match(line))
}

/// The exit codes with which programs report their own failure, not that of the command they run.
const RUNNER_CODES: &[(&[&str], &[i64])] = &[
    (&["ssh"], &[255]),
    (&["docker", "docker-compose", "podman"], &[125]),
    (&["timeout", "gtimeout", "env", "nice", "nohup", "stdbuf", "chroot", "xvfb-run"], &[125]),
    // The tools themselves: wrong options, data or configuration, or an error of their own.
    (&["actionlint"], &[2, 3]),
    (&["bandit"], &[2]),
    (&["bazel", "bazelisk"], &[2, 36, 37]),
    (&["eslint"], &[2]),
    (&["flutter", "dart"], &[64]),
    (&["golangci-lint"], &[3, 6]),
    (&["luacheck"], &[4]),
    (&["markdownlint-cli2"], &[2]),
    (&["pre-commit"], &[3]),
    (&["pyright", "basedpyright"], &[2, 3, 4]),
    (&["rubocop", "standardrb"], &[2]),
    (&["ruff"], &[2]),
    (&["sqlfluff"], &[2]),
    (&["stylelint"], &[64, 78]),
    (&["tox"], &[254]),
    (&["vale"], &[2]),
    (&["robot", "pabot"], &[252, 255]),
    (&["pylint"], &[32]),
    (&["shellcheck"], &[3, 4]),
];

/// The exit codes with which tools report that the user stopped them.
const STOP_CODES: &[(&[&str], &[i64])] =
    &[(&["bazel", "bazelisk"], &[8]), (&["robot", "pabot"], &[253])];

/// The number of non-blank lines, from the first one on, that are searched for a message without a
/// name.
const FIRST_LINES: usize = 4;

/// Returns whether one of these programs is the check's own program or runs it.
fn is_run_by(call: &CheckCall, programs: &[&str]) -> bool {
    let own = call.name.split(' ').next().unwrap_or_default();
    let own = own.rsplit('/').next().unwrap_or_default();
    let of = |known: &&str| {
        *known == own
            || call.runners.iter().any(|runner| {
                runner == known || (*known == "python" && runner.starts_with("python"))
            })
    };
    programs.iter().any(of)
}

/// Returns whether this exit code is the code with which a runner of the check reports its own
/// failure.
pub(super) fn is_runner_code(call: &CheckCall, code: i64) -> bool {
    RUNNER_CODES.iter().any(|(programs, codes)| codes.contains(&code) && is_run_by(call, programs))
}

/// Returns whether with this exit code the check reports that the user stopped it.
pub(super) fn is_stop_code(call: &CheckCall, code: i64) -> bool {
    STOP_CODES.iter().any(|(programs, codes)| codes.contains(&code) && is_run_by(call, programs))
}

/// Returns the compiled pattern of a message with any text in place of the names. A pattern with
/// the names is compiled only if a line matches this one.
fn any_name(message: &'static str) -> Option<Arc<Regex>> {
    static COMPILED: Mutex<BTreeMap<&str, Arc<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = compiled.get(message) {
        return Some(Arc::clone(regex));
    }
    let regex = Regex::new(&super::summary::ascii(message).replace("{}", ".+")).ok()?;
    let regex = Arc::new(regex);
    compiled.insert(message, Arc::clone(&regex));
    Some(regex)
}

/// Returns whether one of these lines is a message, with one of these names (a pattern) as `{}`.
fn is_said<'l>(message: &'static str, names: &str, lines: impl Iterator<Item = &'l str>) -> bool {
    let Some(regex) = any_name(message) else { return false };
    let mut similar = lines.filter(|line| regex.is_match(line)).peekable();
    let found = similar.peek().is_some();
    if !found || !message.contains("{}") {
        return found;
    }
    // The names are inserted after the call of `ascii`, which would replace a `\d` in a path.
    let pattern = super::summary::ascii(message).replace("{}", names);
    Regex::new(&pattern).is_ok_and(|regex| similar.any(|line| regex.is_match(line)))
}

/// Returns whether the output says that a runner, or the tool itself, could not run the check. A
/// message without the name of the check counts only in the first lines, and only if the command
/// line has no other check (`alone`). Unless the end with the summary is visible (`ends`), a
/// program under test may have printed a message about an option. Unless the line certainly came
/// to the check (`reached`), a program before it may have printed a message about a package or a
/// version.
pub(super) fn says_not_started(
    call: &CheckCall,
    lines: &[&str],
    alone: bool,
    ends: bool,
    reached: bool,
) -> bool {
    let own = call.name.split(' ').next().unwrap_or_default();
    let first = call.call.split(' ').next().unwrap_or_default();
    let any_of = |names: &[&str]| {
        let names = names.iter().filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(|name| regex::escape(name)).collect();
        names.dedup();
        format!("(?:{})", names.join("|"))
    };
    // A shell looks for the program. What the program runs is not the check.
    let programs = any_of(&[own, call.tool]);
    let names = any_of(&[own, call.tool, call.call.as_str(), first]);
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    // zsh does not run a command with a pattern of files that matches none.
    let mut shown = filled.clone();
    let (only, more) = (shown.next(), shown.next());
    let is_no_match =
        |line: &&str| line.starts_with("zsh:") && line.contains(" no matches found: ");
    if alone && more.is_none() && only.is_some_and(is_no_match) {
        return true;
    }
    // The names of the programs that a script runs are not known.
    let any = r"[^'\x22]+".to_owned();
    let known = messages_of(call, "failure").map(|message| (message, &names));
    let known = known.chain(NOT_FOUND.map(|message| (message, &programs)));
    let known = known.chain([(NOT_FOUND_BY_CMD, &programs)]);
    // In the output of a script, the tool that does not know an option may be any of several.
    let options = call.summary.filter(|_| ends).map(|_| (UNKNOWN_OPTIONS, &names));
    // A script with more output went on without the tool.
    let ended = call.summary.is_some() || filled.clone().count() <= FIRST_LINES;
    let version = (reached && ended).then_some((NO_VERSION, &names));
    let of_script = (alone && ended && call.summary.is_none()).then_some((NOT_FOUND_BY_CMD, &any));
    let package = (reached && is_run_by(call, &["npx"])).then_some((NO_PACKAGE, &names));
    let known = known.chain([(UNKNOWN_OPTION, &programs)]).chain(version).chain(of_script);
    let mut known = known.chain(package).chain(options);
    known.any(|(message, names)| {
        let named = message.contains("{}");
        if !named && !alone {
            return false;
        }
        let count = if named { usize::MAX } else { FIRST_LINES };
        is_said(message, names, filled.clone().take(count).copied())
    })
}

/// Returns whether the output says that there was nothing to run.
pub(super) fn says_nothing_ran(call: &CheckCall, lines: &[&str]) -> bool {
    // What is built may really be up to date.
    let is_up_to_date = || {
        call.check != CheckKind::Build
            && is_run_by(call, &["make", "gmake", "task", "go-task", "mise", "rtx"])
            && is_said(UP_TO_DATE, &regex::escape(&call.call), lines.iter().copied())
    };
    says_any("nothing-ran", call, lines) || is_up_to_date()
}

/// Returns whether the whole output of a build tool says that no part of the project has tests.
pub(super) fn says_no_part_has_tests(call: &CheckCall, lines: &[&str]) -> bool {
    let says = |message: &'static str| is_said(message, "", lines.iter().copied());
    let none = |&(programs, message, other): &(&[&str], &'static str, &'static str)| {
        is_run_by(call, programs) && says(message) && !says(other)
    };
    call.call.to_ascii_lowercase().contains("test") && NO_TESTS_IN_PART.iter().any(none)
}

/// Returns whether the output says that there was nothing to check, whatever its summary is.
pub(super) fn says_nothing_checked(call: &CheckCall, lines: &[&str]) -> bool {
    says_any("nothing-checked", call, lines)
}

/// Returns the patterns with which the programs of a check say this.
fn messages_of(call: &CheckCall, says: &str) -> impl Iterator<Item = &'static str> {
    let is_of_call = move |[known, programs, _]: &&[&str; 3]| {
        *known == says && programs.split(' ').any(|program| is_run_by(call, &[program]))
    };
    MESSAGES.iter().filter(is_of_call).map(|[_, _, pattern]| *pattern)
}

fn says_any(says: &str, call: &CheckCall, lines: &[&str]) -> bool {
    messages_of(call, says).any(|message| is_said(message, "", lines.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_a_runner_failure_is_a_valid_pattern() {
        let compiled = |message: &str| {
            let pattern = super::super::summary::ascii(message).replace("{}", "(?:a|b)");
            Regex::new(&pattern).unwrap()
        };
        assert!(compiled(NOT_FOUND[0]).is_match("sh: 1: a: not found"));
        let general =
            [UNKNOWN_OPTION, UNKNOWN_OPTIONS, NO_VERSION, NO_PACKAGE, UP_TO_DATE, NOT_FOUND_BY_CMD];
        let of_parts = NO_TESTS_IN_PART.iter().flat_map(|(_, message, other)| [*message, *other]);
        for message in NOT_FOUND.into_iter().chain(general).chain(of_parts) {
            compiled(message);
            assert!(any_name(message).is_some(), "{message}");
        }
        for [says, programs, pattern] in &MESSAGES {
            compiled(pattern);
            assert!(any_name(pattern).is_some(), "{pattern}");
            assert!(["failure", "nothing-ran", "nothing-checked"].contains(says), "{says}");
            assert!(programs.split(' ').all(|program| !program.is_empty()), "{pattern}");
            assert_eq!(*pattern, pattern.trim(), "an editor removes the blanks");
        }
    }

    #[test]
    fn every_form_of_an_empty_run_is_seen() {
        let lines = [
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.00s",
            "ok  \tacme/a\t0.002s [no tests to run]",
            "Tests:       4 skipped, 4 total",
            "      Tests  4 skipped (4)",
            "  0 passing (1ms)",
            "0 examples, 0 failures",
            "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
            "ok | 0 passed | 0 failed (2ms)",
            "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "✔ Test run with 0 tests in 0 suites passed after 0.001 seconds.",
            "SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 4 Skipped",
            "DONE 2 runs, 0 tests in 0.1s",
            "0 features passed, 0 failed, 1 skipped",
            "0 scenarios",
            "All 0 tests passed (0.01s)",
            "0 files inspected, no offenses detected",
            "     Summary [   0.000s] 0 tests run: 0 passed, 2 skipped",
            "Result: NOTESTS",
            "1..0",
            "0 tests, 0 failures",
            "0 passed, no failures",
            "Chrome 120.0.0.0 (Linux): Executed 0 of 0 SUCCESS (0.002 secs / 0 secs)",
            "0 successes / 0 failures / 0 errors / 0 pending : 0.0 seconds",
            "Success! 0 passed, 0 failed.",
            "12:00:01  Done. PASS=0 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=0",
            "Tests:       0 passed, 0 total",
            "ruff.................................................(no files to check)Skipped",
            "0 tests, 0 passed, 0 warnings, 0 failures, 0 exceptions",
            "PASS: 0/0",
            "Success: no issues found in 0 source files",
            "Done linting! Found 0 violations, 0 serious in 0 files.",
            "Linting: 0 file(s)",
            "CSpell: Files checked: 0, Issues found: 0 in 0 files.",
        ];
        for ([part, pattern], line) in EMPTY_RUNS.iter().zip(lines) {
            assert!(line.contains(part) && any_name(pattern).unwrap().is_match(line), "{line}");
        }
        assert_eq!(lines.len(), EMPTY_RUNS.len());
        assert!(!is_empty_run("1 examples, 0 failures") && !has_empty_run(&["0", "passing ("]));
        assert!(has_empty_run(&["a", "  0 passing (2ms)", "b"]));
    }
}
