//! The words with which a program checks nothing, such as `--help`.

use super::call_arguments::has_make_flag;

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
pub(super) fn is_non_checking(program: &str, option: &str) -> bool {
    let mut others = OTHER_MEANINGS.iter().filter(|(programs, _)| programs.contains(&program));
    NON_CHECKING_OPTIONS.contains(&option) && !others.any(|(_, other)| *other == option)
}

/// Returns whether this program checks nothing if it gets these arguments besides its subcommand.
pub(super) fn checks_nothing(program: &str, call: &str, rest: &[&str]) -> bool {
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
