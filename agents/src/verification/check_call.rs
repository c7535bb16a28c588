//! A check in a command line, with the runners around it.

use super::CheckKind;
use super::call_arguments::{has_make_flag, program_name, sets_option};
use super::summary_table::SummaryPatterns;
use super::target;
use super::tools::ExitCodeMeaning;
use super::wrapper;
use forge_store::shell::is_assignment;

/// A check in a command line.
#[derive(Clone, Debug)]
pub(super) struct CheckCall {
    pub(super) check: CheckKind,
    /// The tool's name in the table of tools.
    pub(super) tool: &'static str,
    /// The subcommand, script or target.
    pub(super) call: String,
    /// The display name of what was run: `cargo test`, `mise run lint`.
    pub(super) name: String,
    /// What it was run on, in normalised words: see [`target`].
    pub(super) target: Vec<String>,
    pub(super) directory: Option<String>,
    pub(super) exit: ExitCodeMeaning,
    /// The programs that run it, outermost first.
    pub(super) runners: Vec<String>,
    /// The limits by which it can fail although its summary counts no failure.
    pub(super) limits: RunLimits,
    /// Whether the line also succeeds without running it: then only a summary shows that it ran.
    pub(super) may_not_run: bool,
    /// Whether a runner starts it and does not wait for its end.
    pub(super) detached: bool,
    /// The summary patterns of the tool; `None` for a script, whose content is not known.
    pub(super) summary: Option<&'static SummaryPatterns>,
}

impl CheckCall {
    /// Creates the check of a script or target, whose content is not known.
    pub(super) fn new(
        check: CheckKind,
        tool: &'static str,
        call: &str,
        name: String,
        arguments: &[&str],
    ) -> Self {
        let (target, directory) = target::normalized_target(tool, call, arguments);
        let ignores = ignores_failures(tool, arguments);
        let exit = if ignores { ExitCodeMeaning::OnlyOutput } else { ExitCodeMeaning::Decides };
        Self {
            check,
            tool,
            call: call.to_owned(),
            name,
            target,
            directory,
            exit,
            runners: Vec::new(),
            limits: RunLimits::of(arguments),
            may_not_run: false,
            detached: false,
            summary: None,
        }
    }
}

/// The limits by which a run can fail although its summary counts no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunLimits {
    None,
    /// The run measures coverage, for which its configuration may set a minimum.
    Coverage,
    /// An option limits the warnings or sets a minimum coverage.
    Threshold,
}

impl RunLimits {
    fn of(arguments: &[&str]) -> Self {
        const THRESHOLDS: [&str; 14] = [
            "--max-warnings", "--warnings", "--cov-fail-under", "--fail-under", "--fail-on",
            "--failOn", "--error-on-warnings", "--deny-warnings", "--check-coverage",
            "--coverageThreshold", "--coverage.thresholds", "--threshold", "--minimum", "--fatal-",
        ];
        let has = |options: &[&str]| {
            arguments.iter().any(|word| options.iter().any(|option| word.starts_with(option)))
        };
        if has(&THRESHOLDS) {
            Self::Threshold
        } else if has(&["--cov"]) && !has(&["--coverage=false"]) {
            Self::Coverage
        } else {
            Self::None
        }
    }
}

/// Options with which a tool exits with 0 also if it found something.
const NEVER_FAILS: &[&str] = &[
    "--exit-zero", "--fix-only", "--ignore-exit-status", "--lenient", "--mute-exit-status",
    "--no-exit-code", "--no-exit-on-warn", "--no-fail", "--nofail", "-no-fail", "--soft-fail",
];
/// Options that set the exit code of a tool that found something.
const EXIT_CODES: &[&str] = &["--exit-status", "--failure-exit-code", "--issues-exit-code"];

/// Whether a tool with these arguments exits with 0 also if it found something.
fn ignores_failures(tool: &str, arguments: &[&str]) -> bool {
    let has = |options: &[&str]| arguments.iter().any(|word| options.contains(word));
    // Whether an option has a value that satisfies `is`.
    let sets = |options: &[&str], is: fn(&str) -> bool| {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        let mut joined = arguments.iter().filter_map(|word| word.split_once('='));
        pairs.any(|(word, value)| options.contains(word) && is(value))
            || joined.any(|(word, value)| options.contains(&word) && is(value))
    };
    match tool {
        "make" => has(&["--ignore-errors"]) || has_make_flag(arguments, &['i']),
        "mvn" => {
            let ignores = |word: &&str| {
                word.starts_with("-Dmaven.test.failure.ignore") && !word.ends_with("=false")
            };
            has(&["-fn", "--fail-never"]) || arguments.iter().any(ignores)
        }
        "robot" => has(&["--nostatusrc", "--NoStatusRC"]),
        "ng" => has(&["--force"]),
        _ => {
            has(NEVER_FAILS)
                || sets(EXIT_CODES, |value| value == "0")
                || sets(&["--non-zero-exit-code"], |value| value == "none")
                // Of `tflint` and `vale`, `phpcs`, and `govulncheck`, which share their rows with
                // other tools.
                || tool == "typos" && has(&["--force", "--no-exit"])
                || tool == "psalm" && has(&["ignore_errors_on_exit"])
                || tool == "govulncheck" && has(&["-json"])
                || tool == "govulncheck" && sets(&["-format"], |value| value != "text")
        }
    }
}

/// The runners and assignments before the words of a check.
#[derive(Clone, Debug, Default)]
pub(super) struct RunSurroundings {
    /// The programs that run the check, outermost first.
    pub(super) runners: Vec<String>,
    /// The host, the toolchain and the variables, as words of a target.
    pub(super) places: Vec<String>,
    /// The limits that a runner sets.
    limits: Option<RunLimits>,
    /// Whether a runner does not run the check if its own input is empty.
    may_not_run: bool,
    /// Whether a runner does not wait for the end of the check.
    detached: bool,
    /// Whether a runner ends with 0 whatever the exit code of the check is.
    hides_code: bool,
}

impl RunSurroundings {
    /// Adds the words of a runner before the command that it runs.
    pub(super) fn add(&mut self, words: &[&str]) {
        let Some(program) = words.first() else { return };
        self.add_runner(words);
        self.add_variables(words.iter().copied());
        if matches!(program_name(program), "nyc" | "c8") {
            let limits = RunLimits::of(words);
            let none = limits == RunLimits::None;
            self.limits = Some(if none { RunLimits::Coverage } else { limits });
        }
    }

    /// Adds the program in these words, and where it runs the check.
    pub(super) fn add_runner(&mut self, words: &[&str]) {
        self.runners.extend(words.first().map(|program| program_name(program).to_owned()));
        self.places.extend(wrapper::place_of(words).map(|place| format!("={place}")));
        self.detached |= wrapper::detaches(words);
        self.hides_code |= wrapper::hides_exit_code(words);
        self.may_not_run |= words.first().is_some_and(|program| program_name(program) == "xargs")
            && words.iter().any(|word| sets_option(word, 'r', "--no-run-if-empty"));
    }

    /// Adds the assignments among these words.
    pub(super) fn add_variables<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        let variables = words.filter(|word| is_assignment(word));
        let variables = variables.filter(|word| !target::is_noise_variable(word));
        self.places.extend(variables.map(|word| format!("={word}")));
    }

    /// Adds the surroundings of a command line inside this one.
    pub(super) fn extend(&mut self, inner: Self) {
        self.runners.extend(inner.runners);
        self.places.extend(inner.places);
        self.limits = inner.limits.or(self.limits);
        self.may_not_run |= inner.may_not_run;
        self.detached |= inner.detached;
        self.hides_code |= inner.hides_code;
    }

    /// Adds the surroundings to a check.
    pub(super) fn apply(self, call: &mut CheckCall) {
        call.runners.splice(0..0, self.runners);
        call.may_not_run |= self.may_not_run;
        call.detached |= self.detached;
        if self.hides_code {
            call.exit = ExitCodeMeaning::OnlyOutput;
        }
        call.target.extend(self.places);
        if let Some(limits) = self.limits.filter(|_| call.limits == RunLimits::None) {
            call.limits = limits;
        }
        call.target.sort_unstable();
        call.target.dedup();
    }
}
