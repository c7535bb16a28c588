//! The known tools: how each is called, and which summary it prints (`tools.tsv`). `docs/checks.md`
//! shows this table.

use super::CheckKind::{self, Build, Lint, Test};
use DirectNames::{All, Only};
use forge_store::const_table::{count, parts, rows};

/// The meaning of a tool's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitCodeMeaning {
    /// 0 if the check passed, another number if not.
    Decides,
    /// Like pytest: 2 also means an interruption, 3 and 4 are its own errors, 5 means that there
    /// were no tests.
    Pytest,
    /// 0 even if something was found: only the output decides.
    OnlyOutput,
}

/// A tool that is a check if it is called in a certain way.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckTool {
    programs: &'static str,
    calls: &'static str,
    pub(super) check: CheckKind,
    pub(super) exit: ExitCodeMeaning,
    /// The name of its summary.
    pub(super) summary: &'static str,
}

impl CheckTool {
    /// Reads a row of `tools.tsv`.
    fn read([programs, calls, check, summary, exit]: &[&'static str; 5]) -> Self {
        let check = match *check {
            "test" => Test,
            "build" => Build,
            _ => Lint,
        };
        let exit = match *exit {
            "" => ExitCodeMeaning::Decides,
            "pytest" => ExitCodeMeaning::Pytest,
            _ => ExitCodeMeaning::OnlyOutput,
        };
        Self { programs, calls, check, exit, summary }
    }

    /// Returns its program names; the first one is the tool's name.
    pub(super) fn programs(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.programs.split(' ')
    }

    /// Returns the calls that are checks: a subcommand and required options (`|` separates
    /// alternatives), or `""` for any call.
    pub(super) fn calls(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.calls.split(", ")
    }
}

/// A tool that runs named scripts, targets or tasks of a project.
#[derive(Debug)]
pub(super) struct ScriptTool {
    pub(super) programs: &'static [&'static str],
    /// The subcommands before a name.
    pub(super) runs: &'static [&'static str],
    pub(super) direct: DirectNames,
    /// Names that are checks for this tool besides [`SCRIPT_WORDS`].
    pub(super) names: &'static [(&'static str, CheckKind)],
}

/// Which names a tool runs without a subcommand.
#[derive(Debug)]
pub(super) enum DirectNames {
    All,
    Only(&'static [&'static str]),
}

/// Words that make a script a check of this kind if its name contains them, unless it contains one
/// of [`OTHER_WORDS`].
pub(super) const SCRIPT_WORDS: &[(CheckKind, &[&str])] = &[
    (
        Test,
        &[
            "test", "tests", "unittest", "unittests", "doctest", "runtests", "selftest", "spec",
            "specs", "e2e", "unit", "jest", "vitest", "mocha", "pytest", "rspec", "phpunit",
        ],
    ),
    (Build, &["build", "compile", "assemble", "typecheck", "type", "types", "tsc"]),
    (
        Lint,
        &[
            "lint", "linting", "eslint", "clippy", "vet", "mypy", "pyright", "ruff", "flake8",
            "pylint", "rubocop", "phpstan", "stylelint", "shellcheck", "ktlint", "detekt", "style",
            "checkstyle",
        ],
    ),
];

/// Words that make a script a check even if its name contains none of [`SCRIPT_WORDS`]: a lint with
/// one of [`FORMAT_WORDS`], otherwise a test.
pub(super) const CHECK_WORDS: &[&str] =
    &["check", "checks", "distcheck", "installcheck", "ci", "verify", "validate"];
pub(super) const FORMAT_WORDS: &[&str] =
    &["fmt", "format", "formatting", "prettier", "spotless", "scalafmt"];
/// Words that show that a script is no check, because it does something else or does not end.
pub(super) const OTHER_WORDS: &[&str] = &[
    "watch", "start", "serve", "server", "dev", "clean", "deps", "install", "setup", "update",
    "updates", "data", "env", "image", "push", "deploy", "publish", "open", "ui", "up", "down",
    "logs",
];
/// Words that show that a script makes something. It is a check only with one of [`CHECK_WORDS`]:
/// `verify-codegen`.
pub(super) const MAKING_WORDS: &[&str] = &[
    "prepare", "create", "seed", "reset", "migrate", "generate", "gen", "codegen", "download",
    "print",
];

const LINES: &str = include_str!("tools.tsv");
const ROWS: &[[&str; 5]] = &rows::<{ count(LINES) }, 5>(LINES);
/// The programs of all tools, each with the index of its tool.
static PROGRAMS: [(&str, usize); parts::<0, 5>(ROWS, b' ').1] = parts(ROWS, b' ').0;

/// Returns the known tools.
#[cfg(test)]
pub(super) fn tools() -> impl Iterator<Item = CheckTool> {
    ROWS.iter().map(CheckTool::read)
}

/// Returns the tools with this program name.
pub(super) fn tools_of(program: &str) -> impl Iterator<Item = CheckTool> {
    let known = PROGRAMS.iter().filter(move |(name, _)| *name == program);
    known.filter_map(|(_, row)| ROWS.get(*row)).map(CheckTool::read)
}

const NONE: &[&str] = &[];

const fn scripts(
    programs: &'static [&'static str],
    runs: &'static [&'static str],
    direct: DirectNames,
) -> ScriptTool {
    ScriptTool { programs, runs, direct, names: &[] }
}

const MAVEN_GOALS: &[(&str, CheckKind)] =
    &[("verify", Test), ("install", Test), ("package", Build), ("test-compile", Build)];

/// The tools that run scripts, targets and tasks by name.
pub(super) static SCRIPTS: &[ScriptTool] = &[
    scripts(&["make", "gmake"], NONE, All),
    scripts(&["just"], NONE, All),
    scripts(&["mise", "rtx"], &["run", "r", "tasks run"], All),
    scripts(&["task", "go-task"], NONE, All),
    scripts(&["npm"], &["run", "run-script", "rum", "urn"], Only(&["test", "t", "tst"])),
    scripts(&["pnpm"], &["run", "run-script"], All),
    scripts(&["yarn"], &["run"], All),
    scripts(&["bun"], &["run"], Only(&["lint", "check", "typecheck"])),
    scripts(&["deno"], &["task"], Only(&[])),
    scripts(&["node"], &["--run"], Only(&[])),
    scripts(&["composer"], &["run", "run-script"], Only(&["test", "tests", "lint", "check"])),
    scripts(&["turbo"], &["run"], All),
    scripts(&["nx"], &["run", "run-many", "affected"], All),
    scripts(&["lerna", "moon", "melos"], &["run"], Only(&[])),
    scripts(&["npm-run-all", "run-s", "run-p"], NONE, All),
    scripts(&["mill"], NONE, All),
    scripts(&["rushx", "poe", "invoke", "inv", "mage", "gulp", "grunt"], NONE, All),
    scripts(&["rush", "lage"], NONE, Only(&["test", "build", "lint"])),
    scripts(&["ng"], NONE, Only(&["test", "build", "lint", "e2e"])),
    scripts(&["hatch", "pdm"], &["run"], Only(&["test"])),
    scripts(&["pixi", "devbox", "rye", "poetry"], &["run"], Only(&["test", "lint"])),
    scripts(&["pipenv"], &["run"], Only(&[])),
    scripts(&["rake"], NONE, All),
    ScriptTool {
        names: &[("precommit", Test), ("coveralls", Test)],
        ..scripts(&["mix"], NONE, Only(&["precommit", "ci", "check", "lint", "coveralls"]))
    },
    scripts(&["ant"], NONE, All),
    scripts(&["earthly"], NONE, All),
    ScriptTool { names: MAVEN_GOALS, ..scripts(&["mvn", "mvnw", "mvnd"], NONE, All) },
    scripts(&["gradle", "gradlew"], NONE, All),
];
