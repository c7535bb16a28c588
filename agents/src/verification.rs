//! Which commands are tests, builds or lints, and how they went.

use crate::shell::{self, Joint, Simple};
use forge_store::model::Value;
use serde::{Deserialize, Serialize};

/// What a check checks. The more telling one names a command that does several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Check {
    Lint,
    Build,
    Test,
}

/// A command line that verifies something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verification {
    pub(crate) check: Check,
    /// The program, as in the table.
    pub(crate) tool: String,
    /// What was run, as people would name it: `cargo test`, `mise run lint`; several joined by ` && `.
    pub(crate) name: String,
    /// Whether exit code 0 means that every check passed.
    decisive: bool,
}

/// How a tool is called and what its output says. Marks stand at the beginning of a line, those with `*` anywhere.
struct Tool {
    program: &'static str,
    /// The subcommand that makes it a check; `""` for any call of the program.
    calls: &'static [(&'static str, Check)],
    failed: &'static [&'static str],
    passed: &'static [&'static str],
}

use Check::{Build, Lint, Test};

const fn tool(
    program: &'static str,
    calls: &'static [(&'static str, Check)],
    failed: &'static [&'static str],
    passed: &'static [&'static str],
) -> Tool {
    Tool { program, calls, failed, passed }
}

const SCRIPTS: &[(&str, Check)] = &[
    ("test", Test),
    ("tests", Test),
    ("check", Test),
    ("ci", Test),
    ("verify", Test),
    ("e2e", Test),
    ("build", Build),
    ("compile", Build),
    ("typecheck", Build),
    ("type-check", Build),
    ("lint", Lint),
    ("clippy", Lint),
    ("vet", Lint),
];

/// The known tools. [docs/transcripts.md] shows them.
const TOOLS: &[Tool] = &[
    tool(
        "go",
        &[("test", Test), ("build", Build), ("install", Build), ("vet", Lint)],
        &["--- FAIL", "FAIL", "*[build failed]", "*[setup failed]"],
        &["ok  \t", "PASS"],
    ),
    tool(
        "cargo",
        &[
            ("test", Test),
            ("nextest", Test),
            ("bench", Test),
            ("build", Build),
            ("check", Build),
            ("clippy", Lint),
            ("doc", Build),
        ],
        &["test result: FAILED", "error: could not compile", "error[E", "error: test run failed"],
        &["test result: ok", "    Finished "],
    ),
    tool("golangci-lint", &[("", Lint)], &["*.go:"], &["0 issues."]),
    tool("staticcheck", &[("", Lint)], &["*.go:"], &[]),
    tool(
        "pytest",
        &[("", Test)],
        &["FAILED ", "ERROR ", "* failed in ", "* failed, "],
        &["* passed in "],
    ),
    tool("py.test", &[("", Test)], &["FAILED ", "ERROR ", "* failed in "], &["* passed in "]),
    tool("unittest", &[("", Test)], &["FAILED (", "FAIL: ", "ERROR: "], &["OK"]),
    tool("tox", &[("", Test)], &["*FAIL "], &["  congratulations"]),
    tool("nox", &[("", Test)], &["*failed"], &[]),
    tool("mypy", &[("", Lint)], &["Found "], &["Success: "]),
    tool("pyright", &[("", Lint)], &["* error: "], &["0 errors"]),
    tool("ruff", &[("check", Lint)], &["Found "], &["All checks passed!"]),
    tool("flake8", &[("", Lint)], &[], &[]),
    tool("pylint", &[("", Lint)], &[], &["Your code has been rated at 10.00/10"]),
    tool("jest", &[("", Test)], &["FAIL ", "*Test Suites: 1 failed"], &["Tests: "]),
    tool("vitest", &[("", Test)], &[" FAIL ", "FAIL "], &["*Tests  "]),
    tool("mocha", &[("", Test)], &["* failing"], &["* passing"]),
    tool("playwright", &[("test", Test)], &["* failed"], &["* passed"]),
    tool("tsc", &[("", Build)], &["*error TS"], &[]),
    tool("eslint", &[("", Lint)], &["*✖ "], &[]),
    tool("shellcheck", &[("", Lint)], &["In "], &[]),
    tool("make", SCRIPTS, &["make: *** ", "make[1]: *** "], &[]),
    tool("just", SCRIPTS, &["error: Recipe "], &[]),
    tool("mise", SCRIPTS, &["*ERROR task failed"], &[]),
    tool("task", SCRIPTS, &["task: Failed to run task"], &[]),
    tool("npm", SCRIPTS, &["npm ERR!", "npm error"], &[]),
    tool("pnpm", SCRIPTS, &["* ELIFECYCLE "], &[]),
    tool("yarn", SCRIPTS, &["error Command failed"], &[]),
    tool("bun", SCRIPTS, &["error: script "], &[]),
    tool("deno", &[("test", Test), ("check", Build), ("lint", Lint)], &["FAILED |"], &["ok |"]),
    tool(
        "mvn",
        &[("test", Test), ("verify", Test), ("package", Build), ("compile", Build)],
        &["[ERROR] BUILD FAILURE", "[INFO] BUILD FAILURE"],
        &["[INFO] BUILD SUCCESS"],
    ),
    tool(
        "gradle",
        &[("test", Test), ("check", Test), ("build", Build)],
        &["BUILD FAILED"],
        &["BUILD SUCCESSFUL"],
    ),
    tool(
        "gradlew",
        &[("test", Test), ("check", Test), ("build", Build)],
        &["BUILD FAILED"],
        &["BUILD SUCCESSFUL"],
    ),
    tool(
        "dotnet",
        &[("test", Test), ("build", Build)],
        &["Failed!", "Build FAILED"],
        &["Passed!", "Build succeeded"],
    ),
    tool("ctest", &[("", Test)], &["The following tests FAILED"], &["100% tests passed"]),
    tool("ninja", &[("", Build)], &["FAILED: ", "ninja: build stopped"], &[]),
    tool("cmake", &[("--build", Build)], &["FAILED: "], &[]),
    tool(
        "bazel",
        &[("test", Test), ("build", Build)],
        &["*FAILED"],
        &["INFO: Build completed successfully"],
    ),
    tool("rspec", &[("", Test)], &["rspec ./"], &["*, 0 failures"]),
    tool("rake", SCRIPTS, &["rake aborted!"], &[]),
    tool("rubocop", &[("", Lint)], &[], &["*no offenses detected"]),
    tool("phpunit", &[("", Test)], &["FAILURES!", "ERRORS!"], &["OK ("]),
    tool("mix", &[("test", Test), ("compile", Build)], &[], &["*, 0 failures"]),
    tool("swift", &[("test", Test), ("build", Build)], &["*error: "], &["Build complete!"]),
    tool("bats", &[("", Test)], &["not ok "], &[]),
    tool("pre-commit", &[("run", Lint)], &["*...Failed"], &[]),
];

/// Words in front of a command that run what follows them.
const RUNNERS: &[&[&str]] = &[
    &["sudo"],
    &["env"],
    &["time"],
    &["nice"],
    &["exec"],
    &["command"],
    &["nohup"],
    &["npx"],
    &["bunx"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["hatch", "run"],
    &["rye", "run"],
    &["pdm", "run"],
    &["bundle", "exec"],
    &["pnpm", "exec"],
    &["npm", "exec"],
    &["yarn", "exec"],
    &["python", "-m"],
    &["python3", "-m"],
    &["mise", "exec", "--"],
    &["direnv", "exec", "."],
];

impl Verification {
    /// What a command line verifies, if it does.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let commands = shell::split(line);
        let mut found: Option<Self> = None;
        for (index, command) in commands.iter().enumerate() {
            let Some((check, tool, name)) = matched(&command.words) else { continue };
            let decisive = commands.get(index..).is_some_and(decides);
            found = Some(match found.take() {
                None => Self { check, tool, name, decisive },
                Some(before) => Self {
                    tool: if check >= before.check { tool } else { before.tool },
                    check: check.max(before.check),
                    name: format!("{} && {name}", before.name),
                    decisive: before.decisive && decisive,
                },
            });
        }
        found
    }

    /// The status of a run that ended with this exit code and said this.
    pub(crate) fn status(&self, exit_code: Option<i64>, output: &str) -> &'static str {
        if exit_code.is_some_and(|code| code != 0) || self.says(output, |tool| tool.failed) {
            "failed"
        } else if exit_code == Some(0) && (self.decisive || self.says(output, |tool| tool.passed)) {
            "passed"
        } else {
            "unknown"
        }
    }

    /// Whether a line of the output bears one of these marks of the tool. What a script runs is not known: any
    /// tool's mark counts for it.
    fn says(&self, output: &str, marks: impl Fn(&Tool) -> &'static [&'static str]) -> bool {
        let Some(own) = TOOLS.iter().find(|tool| tool.program == self.tool) else { return false };
        let script = std::ptr::eq(own.calls, SCRIPTS);
        let borrowed =
            TOOLS.iter().filter(|_| script).filter(|tool| GENERAL.contains(&tool.program));
        let all: Vec<&str> =
            std::iter::once(own).chain(borrowed).flat_map(marks).copied().collect();
        output.lines().any(|line| {
            all.iter().any(|mark| match mark.strip_prefix('*') {
                Some(inside) => line.contains(inside),
                None => line.starts_with(mark),
            })
        })
    }

    /// The fields of a fact about it.
    pub(crate) fn fields(&self) -> [(&'static str, Value); 3] {
        let check = match self.check {
            Lint => "lint",
            Build => "build",
            Test => "test",
        };
        [
            ("name", self.name.as_str().into()),
            ("tool", self.tool.as_str().into()),
            ("check", check.into()),
        ]
    }
}

/// Tools whose marks are telling enough to be believed in the output of any script.
const GENERAL: &[&str] = &["go", "cargo", "pytest", "jest", "tsc", "golangci-lint"];

/// Whether success of the whole line means success of its first command.
fn decides(commands: &[Simple]) -> bool {
    let mut after = commands.iter();
    let first = after.next().map(|command| command.joint);
    match first {
        Some(Joint::End) => true,
        Some(Joint::And) => after.all(|command| command.joint != Joint::Other),
        _ => false,
    }
}

fn matched(words: &[String]) -> Option<(Check, String, String)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = without_runners(&words);
    let (program, arguments) = words.split_first()?;
    let program = program.rsplit('/').next()?;
    let tool = TOOLS.iter().find(|tool| tool.program == program)?;
    if let [("", check)] = tool.calls {
        return Some((*check, program.to_owned(), program.to_owned()));
    }
    let mut plain = arguments.iter().copied().filter(|word| {
        !word.starts_with(['-', '+']) || tool.calls.iter().any(|(call, _)| call == word)
    });
    let script = std::ptr::eq(tool.calls, SCRIPTS);
    let mut called = plain.next()?;
    let mut name = format!("{program} {called}");
    if script && matches!(called, "run" | "r" | "run-script") {
        called = plain.next()?;
        name = format!("{name} {called}");
    }
    let check = tool.calls.iter().find_map(|(call, check)| {
        let same =
            *call == called || (script && called.split([':', '-', '_']).any(|part| part == *call));
        same.then_some(*check)
    })?;
    Some((check, program.to_owned(), name))
}

fn without_runners<'w, 'a>(mut words: &'w [&'a str]) -> &'w [&'a str] {
    loop {
        let runner = RUNNERS.iter().find(|runner| words.starts_with(runner));
        let skip = match (runner, words.first()) {
            (Some(runner), _) => runner.len(),
            (None, Some(&"timeout")) => 2,
            _ => return words,
        };
        words = words.get(skip..).unwrap_or_default();
        // Their own options and assignments.
        while words.first().is_some_and(|word| word.starts_with('-') || word.contains('=')) {
            words = words.get(1..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
