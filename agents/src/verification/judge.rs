//! Decides the status of each check of a command line by the evidence, in the order of
//! `docs/checks.md`.

use super::check_call::RunLimits;
use super::check_plan::{CheckPlan, MAX_CHECKS, PlacedCheck};
use super::outcome_solver::{self, FAILED, NOT_RUN, OK, RemainingOutcomes, SolverEvidence};
use super::runner_failure;
use super::summary::{self, SummaryMatches};
use super::summary_table::{self, SummaryPatterns};
use super::target::names_package;
use super::tools::ExitCodeMeaning;
use super::visibility::{OutputFilter, OutputVisibility};
use super::{CheckKind, RecordedCommandEnd};
use std::collections::HashSet;

/// Returns the status of each check of a command line; `None` for a check that did not run.
pub(super) fn statuses(
    plan: &CheckPlan,
    ended: &RecordedCommandEnd<'_>,
) -> Vec<Option<&'static str>> {
    let all = |status| vec![status; plan.checks.len()];
    match ended.outcome {
        "refused" => return all(None),
        "background" => return all(Some("unknown")),
        _ => {}
    }
    let texts = summary::lines(ended.output);
    let lines: Vec<&str> = texts.iter().map(|line| &**line).collect();
    // Some shells print the option of `echo -e` too.
    let without_option = lines.iter().filter_map(|line| line.trim().strip_prefix("-e "));
    let texts = lines.iter().map(|line| line.trim()).chain(without_option).collect();
    let judge =
        CheckJudge { plan, ended, visible: recorded_visibility(&lines), lines: &lines, texts };
    if judge.not_parsed() {
        return all(None);
    }
    if matches!(ended.outcome, "interrupted" | "timed_out") {
        return judge.stopped();
    }
    judge.decided()
}

/// Returns the status that the exit code of a check means.
fn status_of_exit_code(exit: ExitCodeMeaning, code: i64) -> &'static str {
    match (exit, code) {
        (_, 0) => "passed",
        // `cmd` ends with 9009 if it does not find a program.
        (ExitCodeMeaning::Pytest, 3 | 4) | (_, 126 | 127 | 9009) => "error",
        // Pytest was interrupted or found no tests, or a signal stopped the check: SIGHUP, SIGINT,
        // SIGQUIT, SIGKILL, SIGPIPE, SIGTERM, or on Windows Ctrl-C.
        (ExitCodeMeaning::Pytest, 2 | 5)
        | (_, ..=-1 | 129 | 130 | 131 | 137 | 141 | 143 | 0xC000_013A) => "unknown",
        _ => "failed",
    }
}

/// Returns which ends of an output are visible. A program that shortens an output before it is
/// recorded leaves a mark, such as `12 lines omitted` or `[... output truncated ...]`.
fn recorded_visibility(lines: &[&str]) -> OutputVisibility {
    // These may follow the mark at the end of an output.
    let follows = |line: &&str| {
        let text = line.trim();
        text.is_empty() || text.starts_with('<') || text.starts_with("Full output ")
    };
    let last = lines.iter().rposition(|line| !follows(line));
    let mut seen = OutputVisibility::ALL;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("<persisted-output>") {
            return OutputVisibility { beginning: false, end: false };
        }
        if is_mark_of_shortening(line) {
            seen.beginning = false;
            seen.end &= last > Some(number);
        }
    }
    seen
}

/// Returns the name of the program with which a message begins, without its folder.
fn program_of_message(line: &str) -> &str {
    let program = line.split(':').next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default()
}

/// The number of lines in which an error of PowerShell's parser has its category.
const PARSER_ERROR_LINES: usize = 12;

/// Whether these lines begin with an error of PowerShell's parser about a command line. About a
/// script, it names the file. The category is not translated.
fn is_parser_error(lines: &[&str]) -> bool {
    match lines {
        ["ParserError:", "Line |", ..] => true,
        [place, shown, rest @ ..] if shown.starts_with("+ ") && !place.contains(".ps1") => {
            let category = rest.iter().find(|line| line.starts_with("+ CategoryInfo"));
            category.is_some_and(|line| line.contains(": ParserError: "))
        }
        _ => false,
    }
}

/// Whether this line stands for lines that were left out: it counts them, or has the form of such a
/// mark.
fn is_mark_of_shortening(line: &str) -> bool {
    const WORDS: [&str; 7] =
        ["truncated", "left out", "omitted", "elided", "clipped", "dropped", "hidden"];
    const STARTS: [&str; 5] = [
        "[showing ", "output is truncated", "output truncated", "output too long",
        "<output too long",
    ];
    const UNITS: [&str; 5] = ["tokens ", "characters ", "chars ", "lines ", "bytes "];
    const SUBJECTS: [&str; 6] = ["line", "char", "output", "observation", "content", "response"];
    let low = line.trim().to_ascii_lowercase();
    if STARTS.iter().any(|start| low.starts_with(start)) {
        return true;
    }
    let Some(word) = WORDS.iter().find(|word| low.contains(**word)) else { return false };
    let counts = UNITS.iter().any(|unit| low.contains(&format!("{unit}{word}")))
        && low.bytes().any(|byte| byte.is_ascii_digit());
    let is_bare = low.trim_matches(|it: char| !it.is_ascii_alphanumeric()) == *word;
    let is_mark = low.starts_with(['[', '<', '(', '.', '…'])
        && SUBJECTS.iter().any(|subject| low.contains(subject));
    // These words are also in the text of pages and logs.
    let is_common = matches!(*word, "dropped" | "hidden");
    counts || !is_common && (is_bare || is_mark) || low.contains("tool truncated output")
}

/// Returns an example of the line with which a tool reports that too little of the code is covered.
fn coverage_failure(tool: &str) -> &'static str {
    match tool {
        "pytest" => "FAIL Required test coverage of 90% not reached. Total coverage: 80.00%",
        "jest" | "react-scripts" => {
            "Jest: \"global\" coverage threshold for lines (90%) not met: 80%"
        }
        _ => "ERROR: Coverage for lines (80%) does not meet global threshold (90%)",
    }
}

/// What is known about the run of a command line.
struct CheckJudge<'a> {
    plan: &'a CheckPlan,
    ended: &'a RecordedCommandEnd<'a>,
    /// The lines of the output.
    lines: &'a [&'a str],
    /// The same lines, trimmed, and those that begin with `-e ` also without it.
    texts: HashSet<&'a str>,
    /// Which ends of the output were recorded.
    visible: OutputVisibility,
}

/// The status of a check, `None` if it did not run; `Err` if the evidence does not decide it.
type CheckDecision = Result<Option<&'static str>, ()>;

impl CheckJudge<'_> {
    fn failed(&self) -> bool {
        self.ended.exit_code.is_some_and(|code| code != 0)
    }

    /// Whether the shell could not parse the command line, so that nothing ran.
    fn not_parsed(&self) -> bool {
        const MESSAGES: [&str; 6] = [
            "syntax error near unexpected token",
            "syntax error: unexpected end of file",
            "unexpected EOF while looking for matching",
            ": Syntax error: ",
            ": parse error near ",
            ": unmatched ",
        ];
        // A message that begins with the name of a script is about the script, not about the
        // command line.
        let says = |line: &&str| {
            let by = program_of_message(line);
            MESSAGES.iter().any(|message| line.contains(message))
                && matches!(by, "bash" | "sh" | "zsh" | "dash" | "ksh" | "eval" | "(eval)")
        };
        let filled = self.lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let filled: Vec<&str> = filled.take(PARSER_ERROR_LINES).collect();
        // If a check reports a failure, a script that it runs has the error.
        self.failed()
            && (filled.first().is_some_and(says) || is_parser_error(&filled))
            && !self.reports_failure()
    }

    /// Whether a check of the line reports a failure, so it ran.
    fn reports_failure(&self) -> bool {
        let reports = |(check, place): (usize, &PlacedCheck)| {
            self.found(check, place).is_some_and(|found| !found.failed.is_empty())
        };
        self.plan.checks.iter().enumerate().any(reports)
    }

    /// Whether one of the first three lines is an error of a command that could not enter a folder,
    /// or read or change a file.
    fn not_entered(&self) -> bool {
        const COMMANDS: [&str; 18] = [
            "cd:", "cat:", "head:", "tail:", "sed:", "awk:", "source:", "bash:", "zsh:", ": .:",
            ":.:", "rm:", "mkdir:", "cp:", "mv:", "touch:", "ln:", "chmod:",
        ];
        const REASONS: [&str; 9] = [
            "no such file", "not a directory", "can't cd to", "permission denied", "cannot ",
            "can't open", "file exists", "missing operand", "source: not found",
        ];
        // What a shell says about these of its own commands is an error, in any language.
        let is_of_shell = |low: &str| {
            let by = program_of_message(low);
            matches!(by, "bash" | "-bash" | "sh" | "zsh" | "dash" | "ksh" | "(eval)")
                && [" cd:", ":cd:", " pushd:", ":pushd:"].iter().any(|name| low.contains(name))
        };
        // With these exit codes, the message may be about the program of the check.
        let may_be_of_check = matches!(self.ended.exit_code, Some(126 | 127));
        let counts = |name: &&&str| !(may_be_of_check && matches!(**name, "bash:" | "zsh:"));
        let complains = |line: &&str| {
            let low = line.to_ascii_lowercase();
            is_of_shell(&low)
                || low.starts_with("cd: the directory ")
                || low == "the system cannot find the path specified."
                || COMMANDS.iter().filter(counts).any(|command| low.contains(command))
                    && REASONS.iter().any(|reason| low.contains(reason))
        };
        let is_of_script = || self.plan.checks.len() == 1 && self.reports_failure();
        self.failed() && self.lines.iter().take(3).any(complains) && !is_of_script()
    }

    fn solve(&self, allowed: [u64; MAX_CHECKS]) -> Option<RemainingOutcomes> {
        let mut known = SolverEvidence {
            allowed,
            decides: [true; MAX_CHECKS],
            lines: self.lines,
            texts: &self.texts,
            whole: self.ended.exit_code.is_some() && self.visible == OutputVisibility::ALL,
            all_recorded: self.visible == OutputVisibility::ALL,
            end_recorded: self.visible.end,
            not_entered: self.not_entered(),
        };
        for (decides, place) in known.decides.iter_mut().zip(&self.plan.checks) {
            *decides = place.call.exit != ExitCodeMeaning::OnlyOutput && !place.call.detached;
        }
        if let Some(left) = outcome_solver::solve(self.plan, self.ended.exit_code, &known) {
            return Some(left);
        }
        // No outcome agrees with the output, so the output is ignored.
        known.lines = &[];
        known.whole = false;
        outcome_solver::solve(self.plan, self.ended.exit_code, &known)
    }

    /// Decides the status of a check if only one outcome is possible.
    fn decision(
        &self,
        left: &RemainingOutcomes,
        check: usize,
        place: &PlacedCheck,
    ) -> CheckDecision {
        match left.outcomes_of(check) {
            OK => Ok(Some("passed")),
            NOT_RUN => Ok(None),
            FAILED => {
                let own = self.ended.exit_code.filter(|_| left.failed_check == Some(check));
                let printed = left.codes.get(check).copied().flatten().filter(|code| *code != 0);
                let code = printed.or(own);
                let status = code.map_or("failed", |code| {
                    let runner = runner_failure::is_runner_code(&place.call, code);
                    if runner && !self.counted(check, place) {
                        return "error";
                    }
                    if runner_failure::is_stop_code(&place.call, code) {
                        return "unknown";
                    }
                    status_of_exit_code(place.call.exit, code)
                });
                Ok(Some(status))
            }
            _ => Err(()),
        }
    }

    fn decided(&self) -> Vec<Option<&'static str>> {
        let every = OK | FAILED | NOT_RUN;
        let checks = &self.plan.checks;
        let first = self.solve([every; MAX_CHECKS]);
        let decide = |left: Option<&RemainingOutcomes>| -> Vec<CheckDecision> {
            let each = checks.iter().enumerate();
            each.map(|(check, place)| self.decision(left.ok_or(())?, check, place)).collect()
        };
        let mut decisions = decide(first.as_ref());
        let printed = first.as_ref().map_or([None; MAX_CHECKS], |left| left.codes);
        if printed.contains(&Some(0)) {
            self.contradict_printed(&mut decisions, &printed);
        }
        if decisions.iter().any(|it| matches!(it, Err(()) | Ok(Some("unknown")))) {
            let evidence = self.evidence(&decisions);
            let mut allowed = [every; MAX_CHECKS];
            for ((check, place), allowed) in checks.iter().enumerate().zip(&mut allowed) {
                let left = first.as_ref().map_or(every, |left| left.outcomes_of(check));
                // No output proves nothing about a check that may not have run.
                let ran = || {
                    left & NOT_RUN == 0
                        || self.found(check, place).is_some_and(|found| !found.runs.is_empty())
                };
                *allowed = match (decisions.get(check), evidence.get(check).copied().flatten()) {
                    (Some(Err(())), Some(true)) if ran() => OK,
                    (Some(Err(()) | Ok(Some("unknown"))), Some(false))
                        if printed.get(check) != Some(&Some(0)) =>
                    {
                        FAILED
                    }
                    _ => left,
                };
            }
            let again = decide(self.solve(allowed).as_ref());
            let each = decisions.iter_mut().zip(again).zip(evidence).zip(&printed);
            for (((decision, again), evidence), code) in each {
                match decision {
                    Err(()) => *decision = again,
                    Ok(Some("unknown")) if evidence == Some(false) && *code != Some(0) => {
                        *decision = Ok(Some("failed"));
                    }
                    Ok(_) => {}
                }
            }
        }
        let each = decisions.into_iter().zip(checks).enumerate();
        // Whether the line certainly came to this check.
        let reached =
            |check: usize| first.as_ref().is_none_or(|left| left.outcomes_of(check) & NOT_RUN == 0);
        let status = |(check, (decision, place)): (usize, (CheckDecision, &PlacedCheck))| {
            let status = decision.unwrap_or(Some("unknown"));
            match status {
                Some("failed") if self.ran_nothing(check, place) => Some("unknown"),
                // The exit code is that of the runner.
                Some("failed") if place.call.detached && !self.counted(check, place) => {
                    Some("unknown")
                }
                Some("failed" | "unknown") if self.never_ran(check, place, reached(check)) => {
                    Some("error")
                }
                Some("passed") if self.may_not_have_run(check, place) => Some("unknown"),
                status => status,
            }
        };
        each.map(status).collect()
    }

    /// Whether the output says that the check could not be run.
    fn never_ran(&self, check: usize, place: &PlacedCheck, reached: bool) -> bool {
        let alone = self.plan.checks.len() == 1;
        let failing = place.call.summary.map_or("", |summary| summary.failing());
        let ends = self.visible_of(place, &[failing]).end;
        place.file.is_none()
            && runner_failure::says_not_started(&place.call, self.lines, alone, ends, reached)
            && !self.counted(check, place)
    }

    /// Whether the only check of the line failed because there was nothing to run.
    fn ran_nothing(&self, check: usize, place: &PlacedCheck) -> bool {
        let says = |lines: &[&str]| runner_failure::says_nothing_ran(&place.call, lines);
        // What failed before the message did run. Gradle and Maven report the failure first.
        let reports_first = matches!(place.call.tool, "gradle" | "mvn");
        let is_first = || {
            let found = self.found(check, place).filter(|_| !reports_first);
            let failed = found.and_then(|found| found.failed.first().copied());
            failed.is_none_or(|failed| self.lines.get(..failed).is_some_and(says))
        };
        self.plan.checks.len() == 1
            && place.file.is_none()
            && says(self.lines)
            && is_first()
            && !self.counted(check, place)
    }

    /// Whether the line may have succeeded because there was nothing to run.
    fn may_not_have_run(&self, check: usize, place: &PlacedCheck) -> bool {
        let says =
            || place.file.is_none() && runner_failure::says_nothing_ran(&place.call, self.lines);
        // If lines are hidden, another summary of the same run may be among them.
        let whole = place.filters.is_empty() && self.visible == OutputVisibility::ALL;
        let empty = || {
            whole
                && place.file.is_none()
                && place.call.summary.is_some()
                && runner_failure::has_empty_run(self.lines)
        };
        let is_run = |line: &usize| {
            self.lines.get(*line).is_some_and(|line| !runner_failure::is_empty_run(line))
        };
        let ran = || {
            // Another line than the summary of the run says that there were no tests.
            let tests = self.lines.iter().filter_map(|line| runner_failure::tests_of_run(line));
            let fewest = if place.call.summary.is_some() { tests.min() } else { tests.max() };
            fewest != Some(0)
                && self.found(check, place).is_some_and(|found| found.runs.iter().any(is_run))
        };
        let checked_nothing = || {
            self.plan.checks.len() == 1
                && place.file.is_none()
                && (runner_failure::says_nothing_checked(&place.call, self.lines)
                    || whole && runner_failure::says_no_part_has_tests(&place.call, self.lines))
        };
        checked_nothing() || (place.call.may_not_run || says() || empty()) && !ran()
    }

    /// Whether the summary of the check's own tool is visible.
    fn counted(&self, check: usize, place: &PlacedCheck) -> bool {
        let found = place.call.summary.and_then(|_| self.found(check, place));
        found.is_some_and(|found| !found.failed.is_empty() || !found.runs.is_empty())
    }

    /// Sets checks to `unknown` that passed by a printed exit code although their summaries report
    /// a failure.
    fn contradict_printed(&self, decisions: &mut [CheckDecision], codes: &[Option<i64>]) {
        let evidence = self.evidence(decisions);
        for ((decision, code), evidence) in decisions.iter_mut().zip(codes).zip(evidence) {
            if *code == Some(0) && evidence == Some(false) && *decision == Ok(Some("passed")) {
                *decision = Ok(Some("unknown"));
            }
        }
    }

    /// Returns the statuses for a command line that was stopped. What the summaries report counts,
    /// but a pass of the last check does not. The other checks are `unknown`; if there is only one
    /// and the line took too long, it is `timed_out`.
    fn stopped(&self) -> Vec<Option<&'static str>> {
        let checks = self.plan.checks.len();
        let evidence = self.evidence(&vec![Err(()); checks]);
        let last = checks.saturating_sub(1);
        let reported = evidence.iter().enumerate().map(|(check, evidence)| match evidence {
            Some(false) => Some("failed"),
            Some(true) if check < last => Some("passed"),
            _ => None,
        });
        let reported: Vec<_> = reported.collect();
        let one = reported.iter().filter(|it| it.is_none()).count() == 1;
        let rest = if one && self.ended.outcome == "timed_out" { "timed_out" } else { "unknown" };
        reported.into_iter().map(|it| it.or(Some(rest))).collect()
    }

    /// Returns what the summaries say about each check: passed, failed, or nothing. A failure that
    /// may belong to several checks counts for none of them. Passes that may belong to several
    /// checks count for a check if it has more lines of passes than there are such other checks.
    fn evidence(&self, decisions: &[CheckDecision]) -> Vec<Option<bool>> {
        let checks = &self.plan.checks;
        let found: Vec<Option<SummaryMatches>> =
            checks.iter().enumerate().map(|(check, place)| self.found(check, place)).collect();
        let others = |check: usize, ran: bool| {
            let each = found.iter().zip(decisions).enumerate();
            each.filter(move |(other, (_, decision))| {
                let out = matches!(decision, Ok(None))
                    || (!ran && matches!(decision, Ok(Some("passed"))));
                *other != check && !out
            })
            .filter_map(|(_, (found, _))| found.as_ref())
        };
        let of = |check: usize| -> Option<bool> {
            let own = found.get(check)?.as_ref()?;
            let alone =
                |line: &usize| others(check, false).all(|other| !other.failed.contains(line));
            if own.failed.iter().any(alone) {
                return Some(false);
            }
            let shares =
                |other: &&SummaryMatches| own.runs.iter().any(|line| other.runs.contains(line));
            let sharing = others(check, true).filter(shares).count();
            // A script may print any number of summaries, so their number proves nothing.
            let counted = checks.get(check)?.call.summary.is_some() && own.runs.len() > sharing;
            (own.passed && (sharing == 0 || counted)).then_some(true)
        };
        (0..checks.len()).map(of).collect()
    }

    /// Returns which ends of a check's output its filters and the record leave visible. `failures`
    /// are examples of lines that a failed run prints.
    fn visible_of(&self, place: &PlacedCheck, failures: &[&str]) -> OutputVisibility {
        let through = OutputVisibility::through(&place.filters, self.lines.len(), failures);
        OutputVisibility {
            beginning: through.beginning && self.visible.beginning,
            end: through.end && self.visible.end,
        }
    }

    /// Returns what the lines of the output say about a check; `None` if its output is not visible.
    fn found(&self, check: usize, place: &PlacedCheck) -> Option<SummaryMatches> {
        if place.file.is_some() {
            return None;
        }
        let call = &place.call;
        // These tools end with the same lines, whatever their goals run.
        let of_script = match call.tool {
            "mvn" => summary_table::find("maven"),
            "gradle" => summary_table::find("gradle"),
            _ => None,
        };
        let mut failing = vec![call.summary.or(of_script).map_or("", |summary| summary.failing())];
        failing.extend(call.summary.into_iter().flat_map(SummaryPatterns::also_failing));
        // Go and Deno have no minimum.
        if call.limits == RunLimits::Coverage && !matches!(call.tool, "go" | "deno") {
            failing.push(coverage_failure(call.tool));
        }
        let mut seen = self.visible_of(place, &failing);
        if place.errors_hidden {
            seen = OutputVisibility { beginning: false, end: false };
        }
        let range = self.plan.output_range(check, self.lines);
        let printed = range.as_ref().and_then(|range| self.lines.get(range.clone()));
        // Of a line with a number it is not known which program printed it.
        let is_blank = |line: &&str| {
            let text = line.trim();
            text.is_empty() || self.plan.prints(line) && text.parse::<i64>().is_err()
        };
        // A tool that took too long also prints nothing.
        let limited = call.runners.iter().any(|it| matches!(it.as_str(), "timeout" | "gtimeout"));
        // Its findings may go to a file, or a filter may leave them out.
        let is_report = |word: &String| word.starts_with("-o ") || word.starts_with("=--output-");
        let hidden = call.tool != "go" && call.target.iter().any(is_report)
            || place.filters.iter().any(OutputFilter::leaves_out_lines);
        let silent = call.summary.is_some_and(|summary| summary.silent) && !limited && !hidden;
        if silent
            && printed.is_some_and(|lines| lines.iter().all(is_blank))
            && !place.goes_on
            && !call.detached
            && seen == OutputVisibility::ALL
            && self.ended.exit_code == Some(0)
        {
            return Some(SummaryMatches { passed: true, ..SummaryMatches::default() });
        }
        let range = range.unwrap_or_default();
        let mut own = self.lines.to_vec();
        for (number, line) in own.iter_mut().enumerate() {
            if !range.contains(&number) {
                *line = "";
            }
        }
        let one_package = call.tool == "go" && one_package(&call.target);
        let mut found = match call.summary {
            Some(summary) => summary::tool_matcher(summary)?.read(&own, seen, 0, one_package),
            None => {
                // It is not known what a script runs: a pass counts only at the end of the output.
                let matcher = summary::script_matcher()?;
                let from = matcher.ending(&own, |line| self.plan.prints(line));
                if !seen.end {
                    seen.beginning = false;
                }
                matcher.read(&own, seen, from, false)
            }
        };
        if call.summary.is_none() {
            found.passed &= seen.end;
        }
        // A program under test may have printed the line of a failure. Elsewhere, one of several
        // runs failed.
        let is_one_run_of_tests =
            call.summary.is_some() && call.check == CheckKind::Test && !place.repeats;
        found.passed &= !found.mixed || is_one_run_of_tests;
        let shows = |text: &str| self.lines.iter().any(|line| line.starts_with(text));
        found.passed &= !place.goes_on && !call.detached;
        found.passed &= match call.limits {
            RunLimits::None => true,
            // The end of the coverage table must be visible: a missed limit is reported after it.
            RunLimits::Coverage => {
                seen == OutputVisibility::ALL
                    || shows("TOTAL ")
                    || self.lines.iter().any(|line| line.contains("-|-"))
            }
            RunLimits::Threshold => {
                let none = |line: &usize| {
                    self.lines.get(*line).is_some_and(|line| line.contains("0 warnings"))
                };
                found.runs.iter().any(none)
                    || self.lines.iter().any(|line| {
                        line.starts_with("Required test coverage of") && line.contains(" reached")
                    })
            }
        };
        // A script runner that ignores failures reports its own success also after a failure.
        let ignores = call.summary.is_none() && call.exit == ExitCodeMeaning::OnlyOutput;
        if place.repeats || ignores {
            found.passed &= seen == OutputVisibility::ALL;
        }
        Some(found)
    }
}

/// Whether a run of Go tests covers only the package of one folder: the summary has one line.
fn one_package(target: &[String]) -> bool {
    let mut packages = target.iter().filter(|word| names_package(word));
    let first = packages.next();
    first.is_some_and(|word| word == "." || word.ends_with("/.")) && packages.next().is_none()
}
