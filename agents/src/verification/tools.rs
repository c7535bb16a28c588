//! The known tools: how each is called, and which summary it prints. `docs/checks.md` shows this
//! table.

use super::CheckKind::{self, Build, Lint, Test};
use super::summary::SummaryPatterns;
use super::summary_table::*;
use DirectNames::{All, Only};

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
#[derive(Debug)]
pub(super) struct CheckTool {
    /// Its program names; the first one is the tool's name.
    pub(super) programs: &'static [&'static str],
    /// The calls that are checks: a subcommand and required options (`|` separates alternatives),
    /// or `""` for any call.
    pub(super) calls: &'static [&'static str],
    pub(super) check: CheckKind,
    pub(super) exit: ExitCodeMeaning,
    pub(super) summary: &'static SummaryPatterns,
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

const fn tool(
    programs: &'static [&'static str],
    calls: &'static [&'static str],
    check: CheckKind,
    summary: &'static SummaryPatterns,
) -> CheckTool {
    CheckTool { programs, calls, check, exit: ExitCodeMeaning::Decides, summary }
}

/// The known tools.
pub(super) static TOOLS: &[CheckTool] = &[
    tool(
        &["cargo", "cross"],
        &[
            "test --no-run", "t --no-run", "nextest run --no-run", "bench --no-run",
            "miri test --no-run", "tarpaulin --no-run",
        ],
        Build,
        &CARGO_CHECK,
    ),
    tool(&["cargo", "cross"], &["nextest run", "nextest r", "llvm-cov nextest"], Test, &NEXTEST),
    tool(&["cargo", "cross"], &["test --no-fail-fast", "t --no-fail-fast"], Test, &CARGO_TEST_ALL),
    tool(
        &["cargo", "cross"],
        &[
            "test", "t", "bench", "miri test", "llvm-cov", "tarpaulin", "hack test",
            "careful test", "insta test",
        ],
        Test,
        &CARGO_TEST,
    ),
    tool(
        &["cargo", "cross"],
        &["build", "b", "check", "c", "doc", "rustc", "hack check", "zigbuild"],
        Build,
        &CARGO_CHECK,
    ),
    tool(&["cargo"], &["clippy"], Lint, &CARGO_CHECK),
    tool(&["cargo"], &["fmt --check"], Lint, &CARGO_FMT),
    tool(&["rustfmt"], &["--check"], Lint, &CARGO_FMT),
    tool(&["cargo"], &["deny check", "deny"], Lint, &CARGO_DENY),
    tool(&["cargo"], &["audit", "machete", "semver-checks", "udeps"], Lint, &EXIT_CODE),
    tool(
        &["cargo"],
        &["xtask test", "xtask ci", "xtask check", "make test", "make ci"],
        Test,
        &CARGO_TEST_ALL,
    ),
    tool(&["go"], &["test"], Test, &GO_TEST),
    tool(&["go"], &["build"], Build, &GO_BUILD),
    tool(&["go"], &["vet"], Lint, &GO_BUILD),
    tool(&["gotestsum"], &[""], Test, &GOTESTSUM),
    tool(&["ginkgo"], &[""], Test, &GINKGO),
    CheckTool {
        exit: ExitCodeMeaning::OnlyOutput,
        ..tool(&["gofmt", "gofumpt", "goimports"], &["-l", "-d"], Lint, &GOFMT)
    },
    tool(&["golangci-lint"], &["run", ""], Lint, &GOLANGCI),
    tool(&["staticcheck"], &[""], Lint, &GO_LINT),
    tool(&["govulncheck", "gosec", "errcheck"], &[""], Lint, &EXIT_CODE),
    CheckTool {
        exit: ExitCodeMeaning::Pytest,
        ..tool(&["pytest", "py.test"], &[""], Test, &PYTEST)
    },
    tool(&["unittest"], &[""], Test, &UNITTEST),
    tool(&["nose2", "nosetests"], &[""], Test, &UNITTEST),
    tool(&["manage.py", "django-admin"], &["test"], Test, &UNITTEST),
    tool(&["manage.py", "django-admin"], &["check"], Lint, &EXIT_CODE),
    tool(&["setup.py"], &["test"], Test, &UNITTEST),
    tool(&["runtests.py", "run_tests.py"], &[""], Test, &UNITTEST),
    tool(&["tox"], &[""], Test, &TOX),
    tool(&["nox"], &[""], Test, &NOX),
    tool(&["mypy", "dmypy"], &[""], Lint, &MYPY),
    tool(&["pyright", "basedpyright"], &[""], Lint, &PYRIGHT),
    tool(&["pyrefly"], &["check"], Lint, &PYREFLY),
    tool(&["ty"], &["check"], Lint, &TY),
    tool(&["ruff"], &["check"], Lint, &RUFF),
    tool(&["ruff"], &["format --check|--diff"], Lint, &RUFF_FORMAT),
    tool(&["black"], &["--check"], Lint, &BLACK),
    tool(&["isort"], &["--check|--check-only|-c"], Lint, &ISORT),
    tool(&["flake8"], &[""], Lint, &FLAKE8),
    tool(&["pylint"], &[""], Lint, &PYLINT),
    tool(&["bandit"], &[""], Lint, &BANDIT),
    tool(&["pycodestyle", "pydocstyle", "pyflakes"], &[""], Lint, &EXIT_CODE),
    tool(
        &["pip-audit", "vulture", "deptry", "lint-imports", "cfn-lint", "checkov"],
        &[""],
        Lint,
        &EXIT_CODE,
    ),
    tool(&["yapf"], &["--diff"], Lint, &EXIT_CODE),
    tool(&["stestr"], &["run"], Test, &EXIT_CODE),
    tool(&["py_compile", "compileall"], &[""], Build, &EXIT_CODE),
    tool(&["jest"], &[""], Test, &JEST),
    tool(&["react-scripts"], &["test"], Test, &JEST),
    tool(&["react-scripts"], &["build"], Build, &BUNDLER),
    tool(&["vitest"], &[""], Test, &VITEST),
    tool(&["mocha", "mochapack"], &[""], Test, &MOCHA),
    tool(&["hardhat"], &["test"], Test, &MOCHA),
    tool(&["playwright"], &["test"], Test, &PLAYWRIGHT),
    tool(&["cypress"], &["run"], Test, &CYPRESS),
    tool(&["node", "tsx"], &["--test"], Test, &NODE_TEST),
    tool(&["node"], &["--check", "-c"], Build, &EXIT_CODE),
    tool(&["ava"], &[""], Test, &AVA),
    tool(&["tap", "tape", "prove", "pg_prove"], &[""], Test, &TAP),
    tool(&["jasmine"], &[""], Test, &JASMINE),
    tool(&["karma"], &["start --single-run"], Test, &KARMA),
    tool(&["bun"], &["test"], Test, &BUN),
    tool(&["deno"], &["test"], Test, &DENO),
    tool(&["deno"], &["check"], Build, &TSC),
    tool(&["deno"], &["lint", "fmt --check"], Lint, &DENO_LINT),
    tool(&["tsc", "vue-tsc", "tsgo"], &[""], Build, &TSC),
    tool(&["svelte-check"], &[""], Build, &SVELTE_CHECK),
    tool(&["next", "vite", "astro", "nuxt", "nuxi"], &["build"], Build, &BUNDLER),
    tool(
        &["gatsby", "remix", "react-router", "rsbuild", "rspack", "docusaurus", "vitepress"],
        &["build"],
        Build,
        &BUNDLER,
    ),
    tool(&["vue-cli-service"], &["build"], Build, &BUNDLER),
    tool(&["vue-cli-service"], &["lint"], Lint, &EXIT_CODE),
    tool(&["vue-cli-service"], &["test:unit", "test:e2e"], Test, &EXIT_CODE),
    tool(&["wdio"], &["run"], Test, &EXIT_CODE),
    tool(&["wtr", "web-test-runner", "testcafe", "nightwatch"], &[""], Test, &EXIT_CODE),
    tool(&["astro"], &["check"], Build, &EXIT_CODE),
    tool(&["next", "expo"], &["lint"], Lint, &ESLINT),
    tool(&["eslint", "stylelint"], &[""], Lint, &ESLINT),
    tool(
        &["standard", "xo", "tslint", "htmlhint", "knip", "depcheck", "publint", "tsd"],
        &[""],
        Lint,
        &EXIT_CODE,
    ),
    tool(&["cspell"], &["lint", ""], Lint, &EXIT_CODE),
    tool(&["spectral", "redocly"], &["lint"], Lint, &EXIT_CODE),
    tool(&["prettier"], &["--check|-c|--list-different|-l"], Lint, &PRETTIER),
    tool(&["biome"], &["check", "lint", "ci"], Lint, &BIOME),
    tool(&["oxlint"], &[""], Lint, &OXLINT),
    tool(&["dprint"], &["check"], Lint, &EXIT_CODE),
    tool(&["dotnet"], &["test", "vstest"], Test, &DOTNET_TEST),
    tool(&["vstest.console"], &[""], Test, &DOTNET_TEST),
    tool(&["dotnet"], &["build", "publish", "pack", "msbuild"], Build, &DOTNET_BUILD),
    tool(&["dotnet"], &["format --verify-no-changes"], Lint, &EXIT_CODE),
    tool(&["ctest"], &[""], Test, &CTEST),
    tool(&["meson"], &["test"], Test, &MESON),
    tool(&["meson"], &["compile"], Build, &NINJA),
    tool(&["cmake"], &["--build"], Build, &NINJA),
    tool(&["ninja"], &["test"], Test, &CTEST),
    tool(&["ninja"], &[""], Build, &NINJA),
    tool(&["bazel", "bazelisk", "buck2"], &["test"], Test, &BAZEL),
    tool(&["bazel", "bazelisk"], &["coverage"], Test, &BAZEL),
    tool(&["bazel", "bazelisk", "buck2"], &["build"], Build, &BAZEL),
    tool(&["rspec"], &[""], Test, &RSPEC),
    tool(
        &["rails"],
        &[
            "test", "test:all", "test:system", "test:models", "test:controllers",
            "test:integration", "test:functionals", "test:units",
        ],
        Test,
        &MINITEST,
    ),
    tool(&["rubocop", "standardrb"], &[""], Lint, &RUBOCOP),
    tool(&["erb_lint", "erblint", "reek", "brakeman"], &[""], Lint, &EXIT_CODE),
    tool(&["srb"], &["tc"], Lint, &EXIT_CODE),
    tool(&["steep"], &["check"], Lint, &EXIT_CODE),
    tool(&["phpunit", "paratest"], &[""], Test, &PHPUNIT),
    tool(&["codecept"], &["run"], Test, &PHPUNIT),
    tool(&["pest"], &[""], Test, &PEST),
    tool(&["artisan", "sail"], &["test"], Test, &PEST),
    tool(&["phpstan"], &["analyse", "analyze"], Lint, &PHPSTAN),
    tool(&["psalm", "phpcs", "parallel-lint"], &[""], Lint, &EXIT_CODE),
    tool(&["pint"], &["--test"], Lint, &EXIT_CODE),
    tool(&["php-cs-fixer"], &["--dry-run", "check"], Lint, &EXIT_CODE),
    tool(&["php"], &["-l"], Build, &EXIT_CODE),
    tool(&["mix"], &["test"], Test, &MIX),
    tool(&["mix"], &["compile"], Build, &EXIT_CODE),
    tool(&["mix"], &["credo", "dialyzer", "format --check-formatted"], Lint, &EXIT_CODE),
    tool(&["rebar3"], &["eunit", "ct"], Test, &EXIT_CODE),
    tool(&["swift"], &["test"], Test, &SWIFT_TEST),
    tool(&["swift"], &["build"], Build, &SWIFT_BUILD),
    tool(&["swiftlint", "ktlint", "detekt"], &[""], Lint, &EXIT_CODE),
    tool(&["swift-format", "swiftformat"], &["lint", "--lint"], Lint, &EXIT_CODE),
    tool(&["xcodebuild"], &["test", "test-without-building", "clean test"], Test, &XCODEBUILD),
    tool(
        &["xcodebuild"],
        &["build", "build-for-testing", "analyze", "clean build", "clean build-for-testing"],
        Build,
        &XCODEBUILD,
    ),
    tool(&["tuist"], &["test"], Test, &EXIT_CODE),
    tool(&["flutter", "dart"], &["test"], Test, &FLUTTER_TEST),
    tool(&["flutter", "dart"], &["analyze"], Lint, &DART_ANALYZE),
    tool(&["dart"], &["format --set-exit-if-changed"], Lint, &EXIT_CODE),
    tool(&["flutter"], &["build"], Build, &EXIT_CODE),
    tool(&["sbt"], &["test", "testOnly", "testQuick"], Test, &SBT),
    tool(&["sbt"], &["compile", "Test/compile"], Build, &SBT),
    tool(&["scalafmt"], &["--check|--test"], Lint, &EXIT_CODE),
    tool(&["lein"], &["test"], Test, &LEIN),
    tool(&["stack"], &["test"], Test, &CABAL),
    tool(&["stack"], &["build"], Build, &EXIT_CODE),
    tool(&["cabal"], &["test"], Test, &CABAL),
    tool(&["cabal"], &["build"], Build, &EXIT_CODE),
    tool(&["hlint", "luacheck", "selene"], &[""], Lint, &EXIT_CODE),
    tool(&["stylua"], &["--check"], Lint, &EXIT_CODE),
    tool(&["scala-cli", "pants", "nimble", "anchor", "spago"], &["test"], Test, &EXIT_CODE),
    tool(&["pants"], &["lint", "check"], Lint, &EXIT_CODE),
    tool(&["elm-test"], &[""], Test, &EXIT_CODE),
    tool(&["ormolu", "fourmolu"], &["--mode check"], Lint, &EXIT_CODE),
    tool(&["busted"], &[""], Test, &EXIT_CODE),
    tool(&["dune"], &["test", "runtest"], Test, &ALCOTEST),
    tool(&["dune"], &["build"], Build, &EXIT_CODE),
    tool(&["zig"], &["build test", "test"], Test, &ZIG),
    tool(&["zig"], &["build"], Build, &EXIT_CODE),
    tool(&["forge"], &["test"], Test, &FOUNDRY),
    tool(&["gleam"], &["test"], Test, &GLEAM),
    tool(&["gleam"], &["check", "build"], Build, &EXIT_CODE),
    tool(&["crystal"], &["spec"], Test, &RSPEC),
    tool(&["shellspec"], &[""], Test, &RSPEC),
    tool(&["bats"], &[""], Test, &BATS),
    tool(&["behave"], &[""], Test, &BEHAVE),
    tool(&["cucumber-js", "cucumber", "behat"], &[""], Test, &CUCUMBER),
    tool(&["robot", "pabot"], &[""], Test, &ROBOT),
    tool(&["shellcheck"], &[""], Lint, &SHELLCHECK),
    tool(&["bash", "sh", "zsh"], &["-n"], Build, &EXIT_CODE),
    tool(&["shfmt"], &["-d"], Lint, &EXIT_CODE),
    tool(&["hadolint"], &[""], Lint, &HADOLINT),
    tool(&["yamllint"], &[""], Lint, &YAMLLINT),
    tool(&["actionlint"], &[""], Lint, &ACTIONLINT),
    tool(&["codespell"], &[""], Lint, &CODESPELL),
    tool(
        &["typos", "vale", "markdownlint", "markdownlint-cli2", "ansible-lint", "tflint"],
        &[""],
        Lint,
        &EXIT_CODE,
    ),
    tool(&["sqlfluff", "buf", "djlint"], &["lint"], Lint, &EXIT_CODE),
    tool(&["taplo"], &["lint", "check", "fmt --check", "format --check"], Lint, &EXIT_CODE),
    tool(&["clang-tidy"], &[""], Lint, &EXIT_CODE),
    tool(&["cppcheck"], &["--error-exitcode"], Lint, &EXIT_CODE),
    tool(&["clang-format"], &["--dry-run|-n -Werror"], Lint, &CLANG_FORMAT),
    tool(&["terraform", "tofu"], &["validate"], Lint, &TERRAFORM),
    tool(&["terraform", "tofu"], &["test"], Test, &TERRAFORM_TEST),
    tool(&["ansible-playbook"], &["--syntax-check"], Lint, &EXIT_CODE),
    tool(&["dbt"], &["test", "build"], Test, &DBT),
    tool(&["terraform", "tofu"], &["fmt -check"], Lint, &EXIT_CODE),
    tool(&["helm"], &["lint"], Lint, &HELM),
    tool(&["helm"], &["unittest"], Test, &EXIT_CODE),
    tool(&["opa", "conftest", "molecule"], &["test"], Test, &EXIT_CODE),
    tool(&["kubeconform", "kubeval"], &[""], Lint, &EXIT_CODE),
    tool(&["pre-commit", "prek"], &["run"], Lint, &PRE_COMMIT),
    tool(&["nix"], &["flake check"], Test, &EXIT_CODE),
    tool(&["nix"], &["build"], Build, &EXIT_CODE),
    tool(&["docker", "podman"], &["build", "buildx build", "compose build"], Build, &EXIT_CODE),
    tool(&["wasm-pack"], &["test"], Test, &CARGO_TEST),
    tool(&["wasm-pack", "trunk", "maturin"], &["build"], Build, &EXIT_CODE),
];

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
