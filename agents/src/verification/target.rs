//! The target of a check, as words by which two runs can be compared.
//!
//! A word that begins with `+` widens a run (`+--workspace`), one that begins with `-` narrows it
//! (`-p a`), and one that begins with `=` makes it another run (`=--release`, `=ssh host`). Any
//! other word is a file, a folder, a package or a name to which the run is limited. Options that
//! change only what is printed are left out.

use super::program_words::words_of;

/// Options that change what is printed or the speed, not what is checked. Options with a value are
/// in [`NOISE_VALUED`].
const NOISE: &[&str] = &[
    "-v", "-vv", "-vvv", "-V", "-VV", "-q", "-qq", "-s", "-x", "-sv", "-vs", "-xvs", "-vx", "-xv",
    "-i", "-w", "-e", "-B", "--quiet", "--verbose", "--silent", "--exitfirst", "--no-header",
    "--no-summary", "--nocapture", "--no-capture", "--show-output", "--locked", "--offline",
    "--frozen", "--no-fail-fast", "--fail-fast", "--bail", "--run", "--ci", "--no-color",
    "--color", "--colors", "--no-colors", "--forceExit", "--detectOpenHandles", "--runInBand",
    "--no-coverage", "--coverage", "--no-cov", "--pretty", "--noEmit", "--batch-mode", "-ntp",
    "--no-daemon", "--stacktrace", "--info", "--no-warn", "--cached", "-trimpath", "--no-cache",
    "--cache", "--no-watch", "--single-run", "--no-progress", "--output-on-failure",
    "--if-present", "--ff", "-ra", "-rA", "-rf", "-rs", "-l", "--keep-going",
];
const NOISE_VALUED: &[&str] = &[
    "-j", "--jobs", "-n", "--maxfail", "--tb", "--durations", "-timeout", "--timeout",
    "--reporter", "--test-threads", "--message-format", "--output-format", "--maxWorkers",
    "-count", "--format", "--cov", "--cov-report", "-coverprofile", "-covermode", "-coverpkg",
];
/// Options that widen the run.
const WIDENS: &[&str] = &[
    "--workspace", "--all", "--all-files", "--all-targets", "-race", "--strict", "-r",
    "--recursive", "--include-ignored",
];
/// Options that narrow the run.
const NARROWS: &[&str] = &[
    "-p", "--package", "-k", "-m", "--test", "--tests", "--lib", "--bin", "--bins", "--example",
    "--examples", "--bench", "--benches", "--doc", "--exclude", "-E", "--filterset",
    "--filter-expr", "-run", "-skip", "--skip", "--exact", "--ignored", "-short", "-t",
    "--testNamePattern", "--testPathPattern", "--testPathPatterns", "--testPathIgnorePatterns",
    "--grep", "--fgrep", "-g", "-f", "--filter", "-F", "--project", "--projects", "-pl", "--scope",
    "--since", "--changed", "--onlyChanged", "--changedSince", "--findRelatedTests", "--related",
    "-o", "--shard", "--partition", "--only", "--ignore", "--deselect", "--lf", "--last-failed",
    "--sw", "--stepwise", "--files", "--from-ref", "--to-ref", "--staged", "--tag", "--tags",
    "--group", "--testsuite", "--suite", "--spec", "-R", "-L", "-only-testing", "-skip-testing",
    "--testfile", "--workspace-filter", "-Dtest", "-am",
];
const WIDENS_VALUED: &[&str] = &["-D", "--max-warnings", "--cov-fail-under"];
/// Options of Go that never take the next word as their value, without their dashes.
const GO_SWITCHES: &[&str] =
    &["a", "asan", "benchmem", "cover", "failfast", "fullpath", "json", "msan", "short", "work"];

/// Returns the target of a run with these arguments, and the directory that they name.
pub(super) fn normalized_target(
    tool: &str,
    call: &str,
    arguments: &[&str],
) -> (Vec<String>, Option<String>) {
    let mut words = Vec::new();
    let mut directory = None;
    let mut arguments = arguments.iter().copied().filter(|word| *word != "--").peekable();
    let directories = words_of("directory", tool);
    while let Some(argument) = arguments.next() {
        let (option, mut value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with('-') => (option, Some(value)),
            _ => (argument, None),
        };
        if !option.starts_with('-') {
            words.extend(path(tool, argument));
            continue;
        }
        if NOISE.contains(&option) {
            if argument == "--color" {
                // For some tools this is a switch, without a value.
                arguments
                    .next_if(|next| matches!(*next, "always" | "never" | "auto" | "yes" | "no"));
            }
            continue;
        }
        let targets = matches!(option, "--tests" | "--examples" | "--benches");
        let flag = WIDENS.contains(&option) || (targets && tool == "cargo" && call != "test");
        let switch = tool == "go" && GO_SWITCHES.contains(&option.trim_start_matches('-'));
        if value.is_none() && !flag && !switch {
            value = arguments.next_if(|next| !next.starts_with('-'));
        }
        if directories.contains(&option) {
            directory = value.map(folder);
        } else if NOISE_VALUED.iter().any(|noise| option == *noise || is_number_of(noise, option)) {
            // This option does not change what is checked.
        } else {
            let widens = flag || WIDENS_VALUED.contains(&option);
            let other_build = tool == "go" && option == "--tags";
            let narrows = targets || (NARROWS.contains(&option) && !other_build);
            let sign = match (widens, narrows) {
                (true, _) => "+",
                (_, true) => "",
                _ => "=",
            };
            let value = value.map_or(String::new(), |value| format!(" {value}"));
            words.push(format!("{sign}{option}{value}"));
        }
    }
    if tool == "go" && call == "test" && !words.iter().any(|word| names_package(word)) {
        words.push(".".to_owned());
    }
    words.sort_unstable();
    words.dedup();
    (words, directory)
}

/// Variables that change what is printed, the speed or where files are, not what is checked.
const NOISE_VARIABLES: &[&str] = &[
    "RUST_BACKTRACE", "RUST_LOG", "RUST_LIB_BACKTRACE", "RUST_TEST_THREADS", "CARGO_TERM_",
    "CARGO_INCREMENTAL", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_HOME", "CARGO_NET_",
    "NEXTEST_", "CI", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES", "PATH",
    "HOME", "PWD", "TMPDIR", "TEMP", "PAGER", "GIT_PAGER", "LOG_LEVEL", "DEBUG", "VERBOSE",
    "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "UV_CACHE_DIR",
    "NPM_CONFIG_", "npm_config_", "GOCACHE", "GOMAXPROCS", "GOTMPDIR", "MAKEFLAGS", "DISPLAY",
];

/// Whether an assignment sets a variable that does not change what is checked.
pub(super) fn is_noise_variable(assignment: &str) -> bool {
    let name = assignment.split('=').next().unwrap_or_default();
    NOISE_VARIABLES
        .iter()
        .any(|known| name == *known || (known.ends_with('_') && name.starts_with(known)))
}

/// Whether a word is an option with a number, such as `-j4` for `-j`.
fn is_number_of(option: &str, word: &str) -> bool {
    let rest = word.strip_prefix(option).unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a path as a word of a target; `None` for the working directory. For Go, `a/...` becomes
/// `a`, the one package `a` becomes `a/.`, and the working directory stays `.`.
fn path(tool: &str, word: &str) -> Option<String> {
    let plain = word.trim_start_matches("./").trim_end_matches('/');
    if tool == "go" {
        return Some(match plain.strip_suffix("...") {
            Some("") => "+...".to_owned(),
            Some(folder) => folder.trim_end_matches('/').to_owned(),
            None if plain.is_empty() || plain == "." => ".".to_owned(),
            None => format!("{plain}/."),
        });
    }
    (!plain.is_empty() && plain != ".").then(|| plain.to_owned())
}

/// Whether a word of a Go target names packages: a path, or `+...` for all of them. The others come
/// from options, such as `-run TestA`, `=-tags e2e` and `+-race`.
pub(super) fn names_package(word: &str) -> bool {
    !word.starts_with(['-', '=']) && !word.starts_with("+-")
}

/// Returns the directory that an option names, by itself or by a file in it.
fn folder(path: &str) -> String {
    let file = ["Cargo.toml", "pom.xml"].iter().find_map(|name| path.strip_suffix(name));
    let folder = file.unwrap_or(path).trim_end_matches('/');
    if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }
}

/// Joins a folder and a path, and resolves `.` and `..` where possible.
pub(super) fn joined(folder: &str, path: &str) -> String {
    let has_drive = matches!(
        path.as_bytes(),
        [drive, b':'] | [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic()
    );
    let is_whole = path.starts_with(['/', '~']) || has_drive;
    let whole = if is_whole { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if whole.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
