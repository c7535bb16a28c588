//! Finds which check the words of a command run.

use super::CheckKind;
use super::summary::SummaryPatterns;
use super::target;
use super::tools::{
    CHECK_WORDS, CheckTool, DirectNames, ExitCodeMeaning, FORMAT_WORDS, MAKING_WORDS, OTHER_WORDS,
    SCRIPT_WORDS, SCRIPTS, ScriptTool, TOOLS,
};
use super::wrapper::{self, InnerCommand};
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
    fn new(
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

/// Whether a tool with these arguments exits with 0 also if it found something.
fn ignores_failures(tool: &str, arguments: &[&str]) -> bool {
    let has = |options: &[&str]| arguments.iter().any(|word| options.contains(word));
    let is_zero = |option: &str| {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        pairs.any(|(word, value)| *word == option && *value == "0")
            || arguments.iter().any(|word| word.strip_prefix(option) == Some("=0"))
    };
    match tool {
        "make" => has(&["--ignore-errors"]) || has_make_flag(arguments, &['i']),
        "mvn" => {
            let ignores = |word: &&str| {
                word.starts_with("-Dmaven.test.failure.ignore") && !word.ends_with("=false")
            };
            has(&["-fn", "--fail-never"]) || arguments.iter().any(ignores)
        }
        "golangci-lint" => is_zero("--issues-exit-code"),
        "rspec" => is_zero("--failure-exit-code"),
        "robot" => has(&["--nostatusrc", "--NoStatusRC"]),
        "hadolint" => has(&["--no-fail"]),
        "ng" => has(&["--force"]),
        _ => has(&["--exit-zero"]),
    }
}

/// Whether one of these flags of `make` is set, alone or with others in one word (`-kn`).
fn has_make_flag(arguments: &[&str], flags: &[char]) -> bool {
    // The letters of options that take the rest of the word as their value.
    const VALUED: [char; 9] = ['C', 'f', 'I', 'j', 'l', 'o', 'O', 'W', 'E'];
    arguments.iter().filter_map(|word| word.strip_prefix('-')).any(|word| {
        let mut set = word.chars().take_while(|flag| !VALUED.contains(flag));
        !word.starts_with('-') && set.any(|flag| flags.contains(&flag))
    })
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
}

impl RunSurroundings {
    /// Adds the words of a runner before the command that it runs.
    fn add(&mut self, words: &[&str]) {
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
    fn add_runner(&mut self, words: &[&str]) {
        self.runners.extend(words.first().map(|program| program_name(program).to_owned()));
        self.places.extend(wrapper::place_of(words).map(|place| format!("={place}")));
        self.detached |= wrapper::detaches(words);
        let skips = |word: &&str| {
            **word == *"--no-run-if-empty"
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('r'))
        };
        self.may_not_run |= words.first().is_some_and(|program| program_name(program) == "xargs")
            && words.iter().any(skips);
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
    }

    /// Adds the surroundings to a check.
    pub(super) fn apply(self, call: &mut CheckCall) {
        call.runners.splice(0..0, self.runners);
        call.may_not_run |= self.may_not_run;
        call.detached |= self.detached;
        call.target.extend(self.places);
        if let Some(limits) = self.limits.filter(|_| call.limits == RunLimits::None) {
            call.limits = limits;
        }
        call.target.sort_unstable();
        call.target.dedup();
    }
}

/// The command that a list of words runs.
pub(super) enum ClassifiedCommand {
    Check(Box<CheckCall>),
    /// A command line that another shell runs.
    Line(String, RunSurroundings),
    Other,
}

/// The maximum number of nested runners.
const MAX_RUNNERS: usize = 8;
/// Options with which a tool does not check anything.
const NON_CHECKING_OPTIONS: &[&str] = &[
    "--help", "-h", "--version", "-V", "--collect-only", "--co", "--list", "-list", "--listTests",
    "--list-tests", "--dry-run", "--just-print", "--showConfig", "--show-config", "--print-config",
    "--init", "--fixtures", "--markers", "--clearCache", "--show-files", "--show-settings",
    "-help", "-version",
];

/// Programs for which one of these options means something else.
const OTHER_MEANINGS: &[(&[&str], &str)] = &[
    // It prints the version, or more, and the run goes on. For Robot Framework it names a file.
    (&["ctest", "gradle", "gradlew", "mvn", "mvnd", "mvnw", "pabot", "robot"], "-V"),
    // It names a host.
    (&["pg_prove"], "-h"),
];

/// More words with which these programs check nothing: options, and subcommands of programs that
/// also check without one.
const NON_CHECKING_WORDS: &[(&[&str], &[&str])] = &[
    (&["actionlint"], &["-init-config"]),
    (&["ava"], &["--reset-cache"]),
    (&["bats"], &["--count", "-c"]),
    (&["bazel", "bazelisk"], &["--nobuild"]),
    (&["behave"], &["-d", "--steps-catalog"]),
    (&["clang-tidy"], &["--list-checks", "-list-checks", "--dump-config", "-dump-config"]),
    (&["clang-tidy"], &["--explain-config", "-explain-config", "--verify-config"]),
    (&["cspell"], &["init", "link", "suggestions", "trace", "dictionaries", "cache"]),
    (&["elm-test"], &["init", "install", "make", "watch"]),
    (&["cargo", "cross"], &["--build-plan", "--unit-graph"]),
    // Subcommands of `cargo deny` and `cargo llvm-cov`.
    (&["cargo", "cross"], &["clean", "fetch", "init", "list", "report", "show-env"]),
    (&["ctest"], &["-N", "--show-only"]),
    (&["deno"], &["--no-run"]),
    (&["detekt"], &["--generate-config"]),
    (&["dmypy"], &["start", "restart", "stop", "status", "kill", "suggest", "inspect", "hang"]),
    (&["dotnet"], &["-t"]),
    (&["eslint"], &["--env-info"]),
    (&["ginkgo"], &["bootstrap", "build", "generate", "help", "labels", "outline", "unfocus"]),
    (&["ginkgo"], &["version", "watch"]),
    (&["go"], &["-n"]),
    (&["gofmt", "gofumpt", "goimports"], &["-w"]),
    (
        &["golangci-lint"],
        &["cache", "completion", "config", "custom", "fmt", "formatters", "help", "linters"],
    ),
    (&["golangci-lint"], &["migrate", "version"]),
    (&["gotestsum"], &["help", "tool"]),
    (&["gradle", "gradlew"], &["-m", "--task"]),
    (&["jasmine"], &["init", "examples", "version"]),
    (&["just"], &["-n", "-l", "-s", "--show", "--summary", "--evaluate", "--dump"]),
    (&["mise", "rtx"], &["-n"]),
    (&["ninja"], &["-n", "-t", "clean"]),
    (&["nox"], &["-l", "--list-sessions"]),
    (&["phpunit"], &["--list-suites", "--list-groups", "--list-test-files", "--check-version"]),
    (&["phpunit"], &["--generate-configuration", "--migrate-configuration"]),
    (&["prove"], &["--dry", "-D"]),
    (&["pylint"], &["--list-msgs", "--list-msgs-enabled", "--help-msg", "--generate-rcfile"]),
    (&["pylint"], &["--generate-toml-config", "--list-extensions"]),
    (&["pyright", "basedpyright"], &["--createstub"]),
    (&["pytest", "py.test"], &["--setup-plan", "--setup-only", "--cache-show"]),
    (&["pytest", "py.test"], &["--fixtures-per-test"]),
    (&["rake"], &["-n", "-T", "-P", "-W", "--tasks", "--prereqs"]),
    (&["robot", "pabot"], &["--dryrun"]),
    (&["rubocop"], &["-L", "--list-target-files", "--show-cops", "--auto-gen-config"]),
    (&["staticcheck"], &["-explain", "-list-checks"]),
    (&["swift"], &["list"]),
    (&["swiftlint"], &["docs", "generate-docs", "rules", "version"]),
    (&["testcafe", "nightwatch"], &["-b", "--list-browsers", "--info"]),
    (&["tap"], &["config", "debug", "dump-config", "list", "plugin", "report", "versions"]),
    (&["task", "go-task"], &["-n", "-l", "--dry", "--summary", "--status"]),
    (
        &["tox"],
        &["-l", "-a", "--listenvs", "--listenvs-all", "--notest", "list", "config", "devenv"],
    ),
    (&["tox"], &["l", "c", "d", "q", "quickstart", "de", "depends", "e", "exec", "schema"]),
    (&["tsc", "vue-tsc", "tsgo"], &["-v", "--clean", "--dry"]),
    (&["turbo"], &["--dry", "--graph"]),
    (&["vitest"], &["list", "init"]),
    (&["xcodebuild"], &["-dry-run", "-n", "-showBuildSettings"]),
    (&["zig"], &["-l", "--list-steps"]),
    // The option for their version. For other programs it means that they print more.
    (&["bats", "eslint", "hadolint", "jasmine", "jest", "kubeconform", "luacheck"], &["-v"]),
    (&["rspec", "rubocop", "stylelint", "tflint", "tslint", "vale", "vitest", "yamllint"], &["-v"]),
];

/// Whether a program with this option prints something and checks nothing.
fn is_non_checking(program: &str, option: &str) -> bool {
    let mut others = OTHER_MEANINGS.iter().filter(|(programs, _)| programs.contains(&program));
    NON_CHECKING_OPTIONS.contains(&option) && !others.any(|(_, other)| *other == option)
}

/// Returns whether this program checks nothing if it gets these arguments besides its subcommand.
fn checks_nothing(program: &str, call: &str, rest: &[&str]) -> bool {
    let known = NON_CHECKING_WORDS.iter().filter(|(programs, _)| programs.contains(&program));
    let known: Vec<&str> = known.flat_map(|(_, words)| words.iter().copied()).collect();
    let options = rest.iter().take_while(|word| **word != "--");
    let mut options = options.filter(|word| word.starts_with('-'));
    let has_more = matches!(call, "" | "deny" | "llvm-cov") || program == "swift";
    let first = rest.first().filter(|_| has_more);
    let makes = matches!(program, "make" | "gmake");
    options.any(|word| {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        is_non_checking(program, name) || known.contains(&name)
    }) || first.is_some_and(|word| known.contains(word))
        || (makes && (rest.contains(&"--question") || rest.contains(&"--touch")))
        || (makes && has_make_flag(rest, &['n', 'q', 't']))
        || (program == "go" && call == "test" && rest.contains(&"-c"))
        || (program == "cmake"
            && rest.windows(2).any(|pair| matches!(pair, ["--target" | "-t", "clean"])))
}

/// Returns what these words run, after the runners before it: at most [`MAX_RUNNERS`].
pub(super) fn classify_words(words: &[&str]) -> ClassifiedCommand {
    let mut words: Vec<&str> = words.to_vec();
    let mut directory = None;
    let mut around = RunSurroundings::default();
    for _ in 0..MAX_RUNNERS {
        if let Some(mut call) = matched(&words) {
            call.directory = match (directory, call.directory) {
                (Some(outer), Some(inner)) => Some(target::joined(outer, &inner)),
                (outer, inner) => inner.or(outer.map(str::to_owned)),
            };
            around.apply(&mut call);
            return ClassifiedCommand::Check(Box::new(call));
        }
        let mut scratch = Vec::new();
        let next = match wrapper::inner(&words, &mut scratch) {
            None => return ClassifiedCommand::Other,
            Some(InnerCommand::Line(line)) => {
                around.add_runner(&words);
                return ClassifiedCommand::Line(line, around);
            }
            Some(InnerCommand::Words(inner, changed)) => {
                directory = changed.or(directory);
                inner.to_vec()
            }
        };
        let before = if scratch.is_empty() { &words } else { &scratch };
        around.add(before.get(..before.len().saturating_sub(next.len())).unwrap_or_default());
        if next.is_empty() || next == words {
            return ClassifiedCommand::Other;
        }
        words = next;
    }
    ClassifiedCommand::Other
}

/// Returns the name of a program without its folder, its version and script extensions.
pub(super) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name =
        name.split_once('@').map_or(name, |(name, _)| if name.is_empty() { word } else { name });
    let endings = [".exe", ".cmd", ".bat", ".phar", ".js", ".mjs", ".cjs"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

fn matched(words: &[&str]) -> Option<CheckCall> {
    let (first, arguments) = words.split_first()?;
    let program = program_name(first);
    let commands: Vec<&str>;
    let arguments = if program == "sbt" {
        commands = sbt_arguments(arguments);
        &commands
    } else {
        arguments
    };
    let tools = TOOLS.iter().filter(|tool| tool.programs.contains(&program));
    let mut found = tools.flat_map(|tool| tool.calls.iter().map(move |call| (tool, *call)));
    let found =
        found.find_map(|(tool, call)| Some((tool, call, rest_of(program, call, arguments)?)));
    if let Some((tool, call, rest)) = found {
        let mut found = tool_call(tool, program, call, &rest)?;
        let toolchain = arguments.first().filter(|word| word.starts_with('+'));
        found.target.extend(toolchain.map(|word| format!("={word}")));
        return Some(found);
    }
    if let Some(scripts) = SCRIPTS.iter().find(|scripts| scripts.programs.contains(&program)) {
        return script_call(scripts, program, arguments);
    }
    script_file_call(words)
}

/// Returns the arguments of the last check among the commands of sbt. A command is one word, or is
/// between semicolons. A failed command ends the run, so all checks passed if the last one passed.
fn sbt_arguments<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    const TASKS: [&str; 5] = ["test", "testOnly", "testQuick", "compile", "Test/compile"];
    let (options, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|word| word.starts_with(['-', '+']));
    let (mut project, mut found) = (None, None);
    for command in words.iter().flat_map(|word| word.split(';')) {
        let mut parts = command.split_whitespace();
        let name = parts.next().unwrap_or_default();
        if name == "project" {
            project = parts.next();
            continue;
        }
        let (scope, task) = name.rsplit_once(['/', ':']).unwrap_or(("", name));
        let configuration = scope.rsplit(['/', ':']).next().unwrap_or_default();
        let of_tests = task == "compile" && configuration.eq_ignore_ascii_case("test");
        let task = if of_tests { "Test/compile" } else { task };
        if TASKS.contains(&task) {
            let scope = Some(scope).filter(|scope| !scope.is_empty());
            found = Some(
                [task].into_iter().chain(parts).chain(project).chain(scope).collect::<Vec<_>>(),
            );
        }
    }
    let mut all = options;
    all.extend(found.unwrap_or(words));
    all
}

/// Returns the arguments without the words of this call; `None` if it is another call.
fn rest_of<'a>(program: &str, call: &str, arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut rest: Vec<&str> = arguments.to_vec();
    if rest.first().is_some_and(|first| first.starts_with('+')) {
        rest.remove(0);
    }
    for wanted in call.split(' ').filter(|wanted| !wanted.is_empty()) {
        let at = if wanted.starts_with('-') {
            rest.iter().position(|word| {
                wanted.split('|').any(|option| {
                    *word == option
                        || word.strip_prefix(option).is_some_and(|value| value.starts_with('='))
                })
            })?
        } else {
            let at = first_plain(program, &rest)?;
            if rest.get(at) != Some(&wanted) {
                return None;
            }
            at
        };
        rest.remove(at);
    }
    Some(rest)
}

/// Returns the index of the first word that is neither an option nor the value of one.
fn first_plain(program: &str, words: &[&str]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = words.get(at)?;
        if target::VALUED.iter().any(|(name, options)| *name == program && options.contains(word)) {
            at += 2;
        } else if word.starts_with(['-', '+']) {
            at += 1;
        } else {
            return Some(at);
        }
    }
}

fn tool_call(
    tool: &'static CheckTool,
    program: &str,
    call: &str,
    rest: &[&str],
) -> Option<CheckCall> {
    if rest.contains(&"--list") || checks_nothing(program, call, rest) {
        return None;
    }
    let call = call.split('|').next()?;
    let name = if call.is_empty() { program.to_owned() } else { format!("{program} {call}") };
    let found = CheckCall::new(tool.check, tool.programs.first()?, call, name, rest);
    let exit = match found.exit {
        ExitCodeMeaning::OnlyOutput => ExitCodeMeaning::OnlyOutput,
        _ => tool.exit,
    };
    Some(CheckCall { exit, summary: Some(tool.summary), ..found })
}

fn script_call(
    scripts: &'static ScriptTool,
    program: &str,
    arguments: &[&str],
) -> Option<CheckCall> {
    // These pass the words after the name of the script on to it.
    let passes_on = matches!(program, "just" | "mise" | "rtx");
    let own = arguments.iter().take_while(|word| !passes_on || script_check(word).is_none());
    let own: Vec<&str> = own.copied().collect();
    let listed = arguments.iter().any(|word| is_non_checking(program, word));
    if listed || checks_nothing(program, "script", &own) {
        return None;
    }
    let tool = scripts.programs.first()?;
    let run = scripts.runs.iter().find_map(|run| Some((*run, rest_of(tool, run, arguments)?)));
    let (run, rest) = run.map_or((None, arguments.to_vec()), |(run, rest)| (Some(run), rest));
    let many = matches!(run, Some("run-many" | "affected"));
    // These also run programs, whose words and summaries are known.
    let runs_programs = match program {
        "pnpm" => run.is_none(),
        "yarn" | "bun" | "hatch" | "pdm" | "pixi" | "devbox" | "rye" | "poetry" => true,
        _ => false,
    };
    let mut plain = plain_words(tool, &rest, many);
    let at = plain.iter().position(|(_, word)| {
        let direct = match scripts.direct {
            _ if runs_programs && is_tool(word) => false,
            _ if run.is_some() => true,
            DirectNames::All => !matches!(*word, "ci" if matches!(*tool, "pnpm" | "yarn")),
            DirectNames::Only(names) => names.contains(word),
        };
        direct && check_of(scripts, word).is_some()
    })?;
    // Before the name there is another word, such as a subcommand: it decides what the name means.
    if at > 0 && (run.is_some() || !RUN_MANY.contains(tool)) && !many {
        return None;
    }
    let (index, script) = plain.remove(at);
    let skips_tests = |word: &&str| {
        (word.starts_with("-DskipTests") || word.starts_with("-Dmaven.test.skip"))
            && !word.ends_with("=false")
    };
    let check = if *tool == "mvn" && arguments.iter().any(skips_tests) {
        CheckKind::Build
    } else {
        check_of(scripts, script)?
    };
    let name = match run {
        Some(run) => format!("{program} {run} {script}"),
        None => format!("{program} {script}"),
    };
    let mut rest = rest;
    rest.remove(index);
    let found = CheckCall::new(check, tool, full_name(scripts, script), name, &rest);
    Some(CheckCall { may_not_run: arguments.contains(&"--if-present"), ..found })
}

/// Whether this is the name of a program in the table of tools.
fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.programs.contains(&name))
}

/// The tools that accept several names and run each of them.
const RUN_MANY: [&str; 12] = [
    "make", "just", "mise", "task", "mvn", "gradle", "rake", "ant", "gulp", "grunt", "turbo",
    "npm-run-all",
];

/// Returns the words that are not options, each with its index. With `many` (as in `nx run-many`),
/// an option names the target.
fn plain_words<'a>(tool: &str, words: &[&'a str], many: bool) -> Vec<(usize, &'a str)> {
    let valued = target::VALUED.iter().filter(|(name, _)| *name == tool);
    let valued: Vec<&str> = valued.flat_map(|(_, options)| options.iter().copied()).collect();
    let mut plain = Vec::new();
    let mut at = 0;
    // Words after `--` belong to the script.
    while let Some(word) = words.get(at).filter(|word| **word != "--") {
        if many && (word.starts_with("--target=") || word.starts_with("--targets=")) {
            plain.push((at, word.split_once('=').map_or(*word, |(_, target)| target)));
        } else if valued.contains(word) && !(many && matches!(*word, "-t" | "--target")) {
            at += 1;
        } else if !word.starts_with('-') && !word.contains('=') {
            plain.push((at, *word));
        }
        at += 1;
    }
    // `yarn workspace NAME test`
    if tool == "yarn" && plain.first().is_some_and(|(_, word)| *word == "workspace") {
        plain.drain(..2.min(plain.len()));
        if plain.first().is_some_and(|(_, word)| *word == "run") {
            plain.remove(0);
        }
    }
    // `yarn workspaces foreach -A run test`
    if tool == "yarn"
        && plain.first().is_some_and(|(_, word)| *word == "workspaces")
        && let Some(run) = plain.iter().position(|(_, word)| *word == "run")
    {
        plain.drain(..=run);
    }
    plain
}

/// Returns the full name of a script. npm and pnpm have short names for `test`.
fn full_name<'n>(scripts: &ScriptTool, name: &'n str) -> &'n str {
    match name {
        "t" | "tst" if scripts.programs.contains(&"npm") => "test",
        "t" if scripts.programs.contains(&"pnpm") => "test",
        name => name,
    }
}

fn check_of(scripts: &ScriptTool, name: &str) -> Option<CheckKind> {
    let name = full_name(scripts, name);
    // The path of a project does not say what its task does. A task of nx may have a colon in its
    // name: `test:integration`.
    let name = match (scripts.programs.first(), name.split_once(':')) {
        (Some(&"gradle"), _) => name.rsplit(':').next().unwrap_or(name),
        (Some(&"nx"), Some((project, task))) if script_word(project).is_none() => {
            task.split(':').next().unwrap_or(task)
        }
        _ => name,
    };
    let own = scripts.names.iter().find(|(own, _)| *own == name);
    own.map(|(_, check)| *check).or_else(|| script_check(name))
}

/// Returns the kind of check that a word in a script's name means, if it means one.
fn script_word(word: &str) -> Option<CheckKind> {
    SCRIPT_WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(check, _)| *check)
}

/// Returns the kind of check that the words in a script's name mean, if they mean one.
pub(super) fn script_check(name: &str) -> Option<CheckKind> {
    let parts = parts(name);
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
    let checks = has(CHECK_WORDS);
    if has(OTHER_WORDS) || !checks && has(MAKING_WORDS) {
        return None;
    }
    let known = parts.iter().filter_map(|part| script_word(part));
    let format = (checks && has(FORMAT_WORDS)).then_some(CheckKind::Lint);
    let check = known.max().or(format);
    // A word such as `type` makes a check only together with `check`.
    let only_kind = parts.iter().all(|part| matches!(part.as_str(), "type" | "types" | "style"));
    let check = check.filter(|_| !only_kind).or(checks.then_some(CheckKind::Test))?;
    Some(if only_builds(&parts) { CheckKind::Build } else { check })
}

/// Whether these words of a script's name mean that it builds what the other words name:
/// `compileTestKotlin`, `testClasses`, `build:test`. `build-and-test` also tests.
fn only_builds(parts: &[String]) -> bool {
    let is = |part: Option<&String>, words: &[&str]| {
        part.is_some_and(|part| words.contains(&part.as_str()))
    };
    (is(parts.first(), &["assemble", "build", "compile"]) || is(parts.last(), &["classes"]))
        && !parts.iter().any(|part| part == "and")
}

/// Splits a name such as `test:unit`, `lint-all` or `:app:testDebugUnitTest` into words in lower
/// case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split([':', '-', '_', '.', '/', '+', '@']) {
        let mut part = String::new();
        for character in piece.chars() {
            if character.is_ascii_uppercase() && part.ends_with(|c: char| c.is_ascii_lowercase()) {
                parts.push(std::mem::take(&mut part));
            }
            part.push(character.to_ascii_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// Whether the name of a script begins with `test` or `lint` (`test-all`), or is that of a kind of
/// tests (`unit_tests`).
fn is_name_of_tests(name: &str) -> bool {
    const TESTS: [&str; 3] = ["test", "tests", "e2e"];
    const KINDS: [&str; 9] = [
        "all", "unit", "integration", "e2e", "smoke", "system", "functional", "acceptance",
        "regression",
    ];
    let parts = parts(name);
    let is = |part: Option<&String>, words: &[&str]| {
        part.is_some_and(|part| words.contains(&part.as_str()))
    };
    is(parts.first(), &TESTS)
        || is(parts.first(), &["lint"])
        || is(parts.first(), &KINDS) && is(parts.last(), &TESTS)
}

/// Returns the check of a project script whose file is named after a check: `./scripts/test.sh`,
/// `ci.sh`.
fn script_file_call(words: &[&str]) -> Option<CheckCall> {
    let (file, rest) = words.split_first()?;
    let name = file.rsplit(['/', '\\']).next()?;
    let endings = [".sh", ".bash", ".ps1", ".bat", ".cmd"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
    if stem.is_none() && (name.contains('.') || !file.contains(['/', '\\'])) {
        return None;
    }
    let stem = stem.unwrap_or(name);
    let word = stem.strip_prefix("run-").or_else(|| stem.strip_prefix("run_")).unwrap_or(stem);
    let known = script_word(word).is_some()
        || CHECK_WORDS.contains(&word)
        || (stem.len() < name.len() && is_name_of_tests(word) && script_check(word).is_some());
    // `/usr/bin/test` does not check a project.
    if !known || is_tool(name) || file.starts_with("/usr/") || file.starts_with("/bin/") {
        return None;
    }
    let check = script_check(word).unwrap_or(CheckKind::Test);
    let call = file.trim_start_matches("./").trim_start_matches(".\\");
    Some(CheckCall::new(check, "script", call, (*file).to_owned(), rest))
}
