//! The summary lines of each tool, passing and failing. `docs/checks.md` shows an example of each.

use super::summary::LineVerdict::{Counts, Failed, OneFailure, Passed};
use super::summary::VerdictScope::{Part, Run, SoFar};
use super::summary::{LineVerdict, SummaryPatterns};

const fn summary(
    shapes: &'static [(&'static str, LineVerdict)],
    failing: &'static str,
) -> SummaryPatterns {
    SummaryPatterns { shapes, silent: false, in_scripts: true, failing, also_failing: &[] }
}

/// The patterns of a tool that prints nothing if nothing is wrong.
const fn silent(
    shapes: &'static [(&'static str, LineVerdict)],
    failing: &'static str,
) -> SummaryPatterns {
    SummaryPatterns { silent: true, ..summary(shapes, failing) }
}

impl SummaryPatterns {
    /// The same patterns, which do not count in the output of a script.
    const fn outside_scripts(self) -> Self {
        Self { in_scripts: false, ..self }
    }
}

/// The patterns of a tool that is judged only by its exit code.
pub(super) static EXIT_CODE: SummaryPatterns = summary(&[], "").outside_scripts();

/// What coverage tools print if too little of the code is covered.
const COVERAGE: &str = r"^ERROR: Coverage for \S+ \([\d.]+%\) does not meet ";

/// What cargo prints about a test binary that a signal stopped or that exited by itself.
const CRASHED: &str = r"^\s*process didn't exit successfully: .* \((?:signal|exit status): \d";

/// How the Rust compiler reports an error with `--message-format short`.
const RUST_ERROR: &str = r"^\S+\.rs:\d+:\d+: error(?:\[E\d+\])?: ";

/// What `SimpleCov` prints after the summary if too little of the code is covered.
const RUBY_COVERAGE: &str =
    r"^SimpleCov failed with exit \d|^\S+ coverage .* is below the expected minimum coverage";

/// How compilers report an error in a file.
const FILE_ERROR: &str =
    r"^\S+\.(?:[chm]|cc|cpp|cxx|hh|hpp|mm|cu|java|swift|zig|hs):\d+(?::\d+)?: (?:fatal )?error: ";

/// How Go reports an error in a file. The C compiler also prints `warning:` and `note:` about lines
/// of these files.
const GO_ERROR: &str = r"^(?:vet: )?\S+\.go:\d+:\d+: (?:[^wn]|w[^a]|n[^o]|no[^t]|not[^e])";

/// The last line of a run of unittest that failed.
const UNITTEST_FAILED: &str =
    r"^FAILED \((?:failures|errors|unexpected successes|skipped|SKIP|expected failures)=\d+";

/// What Node prints when it has no memory left.
const OUT_OF_MEMORY: &str = r"^FATAL ERROR: .*JavaScript heap out of memory";

/// How `make` reports a failed target, in any language: `make: *** [Makefile:3: test] Error 1`.
const MAKE_ERROR: &str =
    r"^g?make(?:\[\d+\])?: \*\*\* (?:\[.+\] \S+ \d+|.+(?:Error \d+|Stop\.|\(core dumped\)))$";

/// How .NET and MSVC report an error: `a.cs(3,5): error CS0103: `. `MSBUILD : error MSB1003: ` says
/// that nothing was built.
const NUMBERED_ERROR: &str = r"(?:^|[^ ]: |[^D] : )error [A-Z]{1,8}\d{1,5}: ";

/// How MSBuild reports an error: with the project at the end.
const PROJECT_ERROR: &str = r": error [A-Z]{1,8}\d{1,5}: .*\[[^\]]+proj(?:::[^\]]*)?\]$";

/// What tools print after the summary of a run.
pub(super) static TRAILERS: &[&str] = &[
    // Jest, Vitest, node, Bun
    r"^\s*(?:Tests|Snapshots|Time|Test Suites):\s+\S",
    r"^Ran all test suites",
    r"^\s*(?:Tests|Snapshots|Start at|Duration|Type Errors)  +\S",
    r"^(?:#|ℹ) (?:tests|suites|pass|cancelled|skipped|todo|duration_ms) [\d.]+$",
    r"^\s*\d+ (?:pass|skip|todo|filtered out|expect\(\) calls)$",
    r"^Ran \d+ tests? across \d+ files?",
    r"^(?:Force exiting Jest: |Jest did not exit |'?This usually means that there are asynchronous )",
    // Gradle, Maven, .NET, Bazel
    r"^\d+ actionable tasks?:",
    r"^(?:Configuration cache entry |Consider enabling configuration cache )",
    r"^(?:Publishing [Bb]uild [Ss]can|https://\S+/s/[a-z0-9]+$)",
    r"^\[INFO\]\s*(?:-+|Total time: .*|Finished at: .*|Final Memory: .*)?$",
    r"^Time Elapsed ",
    r"^Total Test time \(real\) =",
    r"^\s*0 (?:Warning|Error)\(s\)$",
    r"^Executed \d+ out of \d+ tests?: \d+ tests? pass(?:es)?\.$",
    r"^//\S+\s+(?:\(cached\) )?PASSED in ",
    // RSpec, Pest
    r"^(?:Finished in |Randomized with seed \d)",
    r"^(?:Coverage report generated for |(?:Line|Branch) Coverage: )",
    r"^\s*Duration: +[\d.]+",
    // Script runners and make
    r"^\s*Nx read the output from the cache ",
    r"^\s*(?:Cached|Time): +\S",
    r"^(?:✨ +)?Done in [\d.]+ ?m?s",
    r"^(?:\[[^\]]+\] )?Finished in [\d.]+",
    r"^g?make(?:\[\d+\])?: Leaving directory ",
    r"^npm notice",
    r"^[-=─]+$",
    // `time`
    r"^(?:real|user|sys)\s+(?:\d+m)?[\d.]+s?$",
];

macro_rules! summaries {
    ($($(#[$doc:meta])* $name:ident = $summary:expr;)*) => {
        $($(#[$doc])* pub(super) static $name: SummaryPatterns = $summary;)*
        /// The patterns of all tools.
        pub(super) static SUMMARIES: &[&SummaryPatterns] = &[$(&$name),*];
    };
}

summaries! {
    CARGO_TEST = summary(
        &[
            (r"^error\[E\d+\]: ", OneFailure),
            (RUST_ERROR, OneFailure),
            (r"^test .+ \.\.\. FAILED$", OneFailure),
            (r"^test result: FAILED\.", Failed),
            (r"^error: (?:test|doctest|bench) failed", Failed),
            (r"^error: \d+ targets? failed:", Failed),
            (r"^error: could not compile ", Failed),
            (CRASHED, Failed),
            // cargo runs the next test binary only if this one passed.
            (r"^test result: ok\. \d+ passed", Passed(SoFar)),
        ],
        "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
    );
    /// `cargo test --no-fail-fast`, which also runs the binaries after one that failed.
    CARGO_TEST_ALL = summary(
        &[
            (r"^error\[E\d+\]: ", OneFailure),
            (RUST_ERROR, OneFailure),
            (r"^test .+ \.\.\. FAILED$", OneFailure),
            (r"^test result: FAILED\.", Failed),
            (r"^error: (?:test|doctest|bench) failed", Failed),
            (r"^error: \d+ targets? failed:", Failed),
            (r"^\[cargo-make\] ERROR - ", Failed),
            (CRASHED, Failed),
            (r"^test result: ok\. \d+ passed", Passed(Part)),
        ],
        "error: 1 target failed:",
    );
    NEXTEST = summary(
        &[
            (r"^error\[E\d+\]: ", OneFailure),
            (RUST_ERROR, OneFailure),
            // A failure before a retry begins with `TRY 1`.
            (r"^\s+FAIL \[ *[\d.]+s\] ", OneFailure),
            (r"^\s*Summary \[[^\]]*\] .*tests? run: .*\b[1-9]\d* (?:exec )?(?:failed|timed out)\b", Failed),
            // A run that was stopped counts its tests as `3/5 tests run`.
            (
                r"^\s*Summary \[[^\]]*\] (?:.*[ :])?\d+ tests? run: [1-9]\d* passed(?: \([^)]*\))?(?:, \d+ skipped)?$",
                Passed(Run),
            ),
            (r"^error: (?:test run failed|could not compile )", Failed),
        ],
        "     Summary [   0.102s] 3 tests run: 2 passed, 1 failed, 0 skipped",
    );
    CARGO_BUILD = summary(
        &[
            (r"^error: could not compile ", Failed),
            (r"^error\[E\d+\]: ", OneFailure),
            (RUST_ERROR, OneFailure),
            (r"^\s*Finished .*target\(s\) in ", Passed(Run)),
        ],
        "error: could not compile `a` (lib) due to 1 previous error",
    );
    /// The commands of cargo that run no program of the project. Not every error is of the check:
    /// cargo also reports with `error: ` that it cannot run it.
    CARGO_CHECK = summary(
        &[
            (r"^error\[E\d+\]: ", OneFailure),
            (RUST_ERROR, OneFailure),
            (r"^error: (?:could not compile|aborting due to|unused|unreachable|these) ", Failed),
            (r"^error: (?:use of|called|redundant|needless|unneeded|expected) ", Failed),
            (r"^\s*Finished .*target\(s\) in ", Passed(Run)),
        ],
        "error: could not compile `a` (lib) due to 1 previous error",
    ).outside_scripts();
    CARGO_FMT = silent(&[(r"^Diff in .+:\d+:?$|^Diff in .+ at line \d+:$", Failed)], "Diff in /w/src/lib.rs:3:");
    CARGO_DENY = summary(
        &[
            (r"\b(?:advisories|bans|licenses|sources) FAILED\b", Failed),
            (r"^(?:(?:advisories|bans|licenses|sources) ok(?:, )?)+$", Passed(Run)),
        ],
        "advisories FAILED, bans ok, licenses ok, sources ok",
    );
    GO_TEST = summary(
        &[
            (r"^panic: (?:test timed out after |runtime error: )", OneFailure),
            (r#"^\{"Time":.*"Action":"fail""#, OneFailure),
            (GO_ERROR, OneFailure),
            (r"^FAIL$", Failed),
            (r"^FAIL\t\S+", Failed),
            (r"^\s*--- FAIL: \S+ \(\d", Failed),
            (r"^ok  \t\S+", Passed(Part)),
        ],
        "FAIL\texample.com/a\t0.102s",
    );
    GOTESTSUM = summary(
        &[(
            r"^DONE (?:\d+ runs, )?\d+ tests?(?:, \d+ skipped)?(?:, (\d+) failures?)?(?:, (\d+) errors?)? in ",
            Counts(Run),
        )],
        "DONE 3 tests, 1 failure in 0.102s",
    );
    GINKGO = summary(
        &[
            // A suite whose setup failed or that was interrupted has no failed tests.
            (r"^FAIL! -", Failed),
            (r"^SUCCESS! -- \d+ Passed \| (\d+) Failed ", Counts(Part)),
        ],
        "FAIL! -- 2 Passed | 1 Failed | 0 Pending | 0 Skipped",
    );
    GO_BUILD = silent(&[(GO_ERROR, Failed)], "./a.go:3:2: undefined: b");
    GOFMT = silent(&[(r"^(?:diff (?:-u )?)?\S+\.go(?:\.orig \S+)?$", Failed)], "a.go").outside_scripts();
    GOLANGCI = SummaryPatterns {
        silent: true,
        ..summary(
            &[
                (r"^[1-9]\d* issues:$", Failed),
                (r"^\S+\.go:\d+(?::\d+: |: (?:File is not |line is )).* \([a-z]+\)$", Failed),
                (r"^0 issues\.?$", Passed(Run)),
            ],
            "1 issues:",
        )
    };
    GO_LINT = silent(&[(GO_ERROR, Failed)], "a.go:3:2: this value is never used (SA4006)");
    PYTEST = summary(
        &[
            (r"^=+ (?:FAILURES|ERRORS) =+$", OneFailure),
            (r"^\S+\.py::.* (?:FAILED|ERROR)(?: +\[ *\d+%\])?$", OneFailure),
            (r"^Fatal Python error: ", OneFailure),
            (r"^(?:=+ )?(?:\d+ [a-z ]+, )*[1-9]\d* (?:(?:subtests )?failed|errors?)(?:, \d+ [a-z ]+)* in \d[\d.]*(?:s| seconds)", Failed),
            (r"^(?:=+ )?(?:\d+ [a-z ]+, )*[1-9]\d* passed(?:, \d+ [a-z ]+)* in \d[\d.]*(?:s| seconds)", Passed(Run)),
            (r"^(?:FAILED|ERROR) \S+\.py(?:::\S+| - )", Failed),
            (r"^(?:FAIL|ERROR: )\s*(?:Required test coverage|Coverage failure)", Failed),
        ],
        "============ 1 failed, 2 passed in 0.10s ============",
    );
    UNITTEST = summary(
        &[
            (r"^(?:FAIL|ERROR): (?:test|setUp|tearDown)[A-Za-z0-9_]* \(\S+\.\S+\)", OneFailure),
            (r"^ERROR: \S+ \(unittest\.loader\._FailedTest", OneFailure),
            (UNITTEST_FAILED, Failed),
            (r"^OK(?: \((?:(?:skipped|SKIP|expected failures)=\d+(?:, )?)+\))?$", Passed(SoFar)),
        ],
        "FAILED (failures=1)",
    ).outside_scripts();
    NOX = summary(
        &[
            (r"^nox > (?:\* \S+: failed|Session \S+ (?:failed|aborted))", Failed),
            (r"^nox > (?:\* \S+: success|Session \S+ was successful)", Passed(Part)),
        ],
        "nox > * tests: failed",
    );
    TOX = summary(
        &[
            (r"^ERROR:\s+\S+: commands failed", Failed),
            (r"^\s*evaluation failed :\(", Failed),
            (r"^\s*\S+: (?:FAIL|ERROR)\b.*(?:code \d+|\(\d)", Failed),
            (r"^\s*congratulations :\)", Passed(Run)),
        ],
        "  evaluation failed :( (1.20 seconds)",
    );
    MYPY = summary(
        &[
            (r"^\S+\.pyi?:\d+(?::\d+)?: error: ", OneFailure),
            (r"^Found [1-9]\d* errors? in \d+ files?", Failed),
            (r"^Success: no issues found in \d+ source files?", Passed(Run)),
        ],
        "Found 1 error in 1 file (checked 3 source files)",
    );
    PYRIGHT = summary(
        &[
            (r"^\s+\S+:\d+:\d+ - error: ", OneFailure),
            (r"^(\d+) errors?, \d+ warnings?", Counts(Run)),
        ],
        "1 error, 0 warnings, 0 informations",
    );
    PYREFLY = summary(&[(r"^\s*INFO ([\d,]+) errors?\b", Counts(Run))], " INFO 1 error");
    RUFF = summary(
        &[
            (r"^\S+\.pyi?:\d+:\d+: [A-Z]+\d+ ", OneFailure),
            (r"^[A-Z]{1,5}\d{3,4} \[\*\] ", OneFailure),
            (r"^Found [1-9]\d* errors?\.?$", Failed),
            (r"^Found \d+ errors? \(\d+ fixed, (\d+) remaining\)", Counts(Run)),
            (r"^\[\*\] [1-9]\d* fixable with the `--fix` option|^No fixes available \([1-9]", Failed),
            (r"^All checks passed!$", Passed(Run)),
        ],
        "Found 1 error.",
    );
    TY = summary(
        &[
            // `Found 1 diagnostic` also counts warnings.
            (r"^error\[[a-z-]+\]: ", Failed),
            (r"^\S+:\d+:\d+: error\[[a-z-]+\] ", Failed),
            (r"^All checks passed!$", Passed(Run)),
        ],
        "error[unresolved-import]: Cannot resolve imported module `b`",
    );
    RUFF_FORMAT = summary(
        &[
            (r"^\d+ files? would be reformatted", Failed),
            (r"^error: Failed to (?:parse|read|format) ", Failed),
            // The tool also prints this line if a file cannot be parsed.
            (r"^\d+ files? already formatted$", Passed(Part)),
        ],
        "1 file would be reformatted, 2 files already formatted",
    );
    BLACK = summary(
        &[
            (r"^\d+ files? would be reformatted", Failed),
            (r"^would reformat \S+", Failed),
            (r"^error: cannot format \S+", Failed),
            (r"^(?:\d+ .*, )?\d+ files? would fail to reformat\b", Failed),
            (r"^\d+ files? would be left unchanged\.$", Passed(Run)),
        ],
        "1 file would be reformatted, 2 files would be left unchanged.",
    );
    ISORT = silent(
        &[(r"^ERROR: .+ Imports are incorrectly sorted", Failed)],
        "ERROR: /w/a.py Imports are incorrectly sorted and/or formatted.",
    );
    FLAKE8 = silent(&[(r"^\S+\.py:\d+:\d+: [A-Z]+\d+ ", Failed)], "./a.py:3:1: F401 'os' imported but unused");
    PYLINT = summary(
        &[
            (r"^\S+\.py:\d+:\d+: [CRWEF]\d{4}: ", Failed),
            // The rating is rounded: few messages in much code leave it at 10.00.
            (r"^Your code has been rated at 10\.00/10", Passed(Part)),
        ],
        "a.py:3:0: W0611: Unused import os (unused-import)",
    ).outside_scripts();
    BANDIT = summary(
        &[(r"^>> Issue: \[B\d+", Failed), (r"^\s*No issues identified\.$", Passed(Run))],
        ">> Issue: [B101:assert_used] Use of assert detected.",
    ).outside_scripts();
    JEST = SummaryPatterns { also_failing: &["Test Suites: 1 failed, 1 total"], ..summary(
        &[
            (r"^\s*Snapshots: +[1-9]\d* failed", Failed),
            (OUT_OF_MEMORY, OneFailure),
            (r"^\s*Test Suites: +[1-9]\d* failed", Failed),
            (r"^\s*Tests: +[1-9]\d* failed", Failed),
            (r"^FAIL +(?:\S+ )?\S+\.[cm]?[jt]sx?\b", Failed),
            (r"^Jest: .*threshold .*not met", Failed),
            // A run that was stopped counts its suites as `1 passed, 1 of 3 total`. All of its tests
            // can pass, as they can if a suite could not be loaded.
            (r"^\s*Test Suites: +[1-9]\d* passed(?:, \d+ total|$)", Passed(Run)),
            (r"^\s*Test Suites: +(?:\d+ (?:skipped|todo), )+[1-9]\d* passed", Passed(Run)),
        ],
        "Tests:       2 failed, 3 passed, 5 total",
    ) };
    VITEST = SummaryPatterns { also_failing: &[" Test Files  1 failed (1)", "     Errors  1 error"], ..summary(
        &[
            (r"^\s*FAIL  (?:\|\S+\| )?\S+\.[cm]?[jt]sx?\b", OneFailure),
            (r"^\s*❯ .+ \(\d+ tests? \| .*\b[1-9]\d* failed\b", OneFailure),
            (r"^\s*(?:Snapshots +[1-9]\d* failed|Type Errors +[1-9]\d* errors?)", Failed),
            (OUT_OF_MEMORY, OneFailure),
            (COVERAGE, Failed),
            (r"^\s*Test Files +[1-9]\d* failed", Failed),
            (r"^\s*Tests +[1-9]\d* failed", Failed),
            (r"^\s*Errors +[1-9]\d* errors?", Failed),
            (r"^\s*Test Files +[1-9]\d* passed", Passed(SoFar)),
            (r"^\s*Tests +[1-9]\d* passed", Passed(Part)),
        ],
        "      Tests  1 failed | 2 passed (3)",
    ) };
    MOCHA = summary(
        &[
            (r"^\s*[1-9]\d* failing$", Failed),
            (COVERAGE, Failed),
            (r"^\s*[1-9]\d* passing \(\d", Passed(SoFar)),
        ],
        "  1 failing",
    );
    PLAYWRIGHT = summary(
        &[
            (r"^\s*Timed out waiting \S+ for the (?:test suite to run|entire test run)", Failed),
            (r"^\s*[1-9]\d* (?:failed|interrupted|did not run)$", Failed),
            (r"^\s*[1-9]\d* errors? (?:was|were) not a part of any test", Failed),
            (r"^\s*[1-9]\d* passed \(\d[\d.]*(?:ms|s|m|h)\)$", Passed(Part)),
        ],
        "  1 failed",
    );
    CYPRESS = summary(
        &[
            (r"^\s*✖\s+\d+ of \d+ failed", Failed),
            (r"^\s*✔\s+All specs passed!", Passed(Run)),
        ],
        "    ✖  1 of 2 failed (50%)                      00:01        3        2        1        -        -",
    );
    NODE_TEST = SummaryPatterns { also_failing: &["# cancelled 1"], ..summary(
        &[
            (r"^(?:#|ℹ) (?:fail|cancelled) [1-9]\d*$", Failed),
            (COVERAGE, Failed),
            (r"^(?:#|ℹ) fail 0$", Passed(SoFar)),
        ],
        "# fail 1",
    ) };
    AVA = summary(
        &[
            (r"^\s*[1-9]\d* (?:tests? failed|uncaught exceptions?|unhandled rejections?)$", Failed),
            (r"^\s*[1-9]\d* tests? passed$", Passed(Part)),
        ],
        "  1 test failed",
    ).outside_scripts();
    TAP = summary(
        &[
            (r"^(?:Suites|Asserts): .*\b[1-9]\d* failed\b", Failed),
            (r"^not ok \d+(?: [^#]*)?$", Failed),
            (r"^# failed [1-9]\d* ", Failed),
            (r"^# fail +[1-9]\d*$", Failed),
            (r"^Bail out!", Failed),
            (r"^Result: FAIL$", Failed),
            (r"^Result: PASS$", Passed(Run)),
            (r"^ok \d+", Passed(Part)),
        ],
        "not ok 1 - adds",
    );
    BATS = summary(
        &[
            (r"^not ok \d+(?: [^#]*)?$", Failed),
            (r"^\d+ tests?, (\d+) failures?(?:, \d+ skipped)?$", Counts(Run)),
            (r"^ok \d+", Passed(Part)),
        ],
        "3 tests, 1 failure",
    );
    BEHAVE = summary(
        &[
            (r"^\d+ (?:features?|scenarios?) passed, (\d+) failed(?:, (\d+) errors?)?, \d+ skipped", Counts(Run)),
            (r"^\d+ steps? passed, (\d+) failed(?:, (\d+) errors?)?, \d+ skipped(?:, (\d+) undefined)?", Counts(Run)),
        ],
        "2 scenarios passed, 1 failed, 0 skipped",
    );
    CUCUMBER = summary(
        &[
            (r"^\d+ scenarios? \((?:.*, )?[1-9]\d* (?:failed|undefined|ambiguous|pending|unknown)\b", Failed),
            (r"^\d+ scenarios? \(\d+ passed\)$", Passed(Run)),
        ],
        "3 scenarios (1 failed, 2 passed)",
    );
    ROBOT = summary(
        &[(r"^\d+ tests?, \d+ passed, (\d+) failed", Counts(SoFar))],
        "3 tests, 2 passed, 1 failed",
    );
    JASMINE = summary(
        &[(r"^(?:Executed )?\d+ specs?, (\d+) failures?", Counts(SoFar))],
        "3 specs, 1 failure",
    );
    KARMA = summary(
        &[
            (r"Executed \d+ of \d+ .*\([1-9]\d* FAILED\)", Failed),
            (r"^TOTAL: [1-9]\d* FAILED", Failed),
            (r"Executed \d+ of \d+ (?:.* )?(?:DISCONNECTED|ERROR)\b", Failed),
            (r"Executed \d+ of \d+ .*\bSUCCESS\b", Passed(SoFar)),
        ],
        "Chrome 120.0.0.0 (Linux): Executed 3 of 3 (1 FAILED) (0.1 secs / 0.05 secs)",
    );
    BUN = summary(
        &[
            (r"^\s*[1-9]\d* (?:fail|errors?)$", Failed),
            (r"^\s*0 fail$", Passed(SoFar)),
        ],
        " 1 fail",
    );
    DENO = summary(
        &[
            (r"^FAILED \| \d+ passed|^error: Test failed$", Failed),
            (r"^ok \| \d+ passed(?: \([^)]*\))? \| (\d+) failed(?: \((\d+) steps?\))?", Counts(Run)),
        ],
        "FAILED | 2 passed | 1 failed (10ms)",
    );
    DENO_LINT = summary(
        &[
            (r"^(?:error: )?Found [1-9]\d* (?:problems?|not formatted files?)\b", Failed),
            (r"^Checked \d+ files?$", Passed(SoFar)),
        ],
        "Found 1 problem",
    );
    TSC = silent(
        &[
            (r"\berror TS\d+: ", Failed),
            (r"^Found [1-9]\d* errors?(?: in|\.|$)", Failed),
            (r"^Found 0 errors\.", Passed(SoFar)),
        ],
        "a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    );
    SVELTE_CHECK = summary(
        &[(r"svelte-check found (\d+) errors? and \d+ warnings?", Counts(Run))],
        "svelte-check found 1 error and 0 warnings in 1 file",
    );
    ESLINT = silent(
        &[
            (r"^\s+\d+:\d+\s+error\s+\S", OneFailure),
            (r"^✖ \d+ problems? \((\d+) errors?, \d+ warnings?\)", Counts(Run)),
            (r"^ESLint found too many warnings \(maximum: \d+\)", Failed),
        ],
        "✖ 2 problems (1 error, 1 warning)",
    );
    PRETTIER = summary(
        &[
            (r"^\[warn\] Code style issues (?:found|in)", Failed),
            (r"^\[error\] \S+: \S*Error: ", Failed),
            (r"^\[error\] No (?:files matching|parser could be inferred)", Failed),
            (r"^Error occurred when checking code style in", Failed),
            // The tool also prints this line if a file cannot be parsed.
            (r"^All matched files use Prettier code style!", Passed(Part)),
        ],
        "[warn] Code style issues found in the above file. Run Prettier with --write to fix.",
    );
    BIOME = summary(
        &[
            (r"^Found [1-9]\d* errors?\.", Failed),
            (r"^Checked \d+ files? in \S+\.", Passed(SoFar)),
        ],
        "Found 1 error.",
    );
    OXLINT = summary(
        &[(r"^Found \d+ warnings? and (\d+) errors?\.", Counts(Run))],
        "Found 0 warnings and 1 error.",
    );
    MAVEN = summary(
        &[
            (r"^\[ERROR\] (?:COMPILATION ERROR|\S+\.(?:java|kt|scala|groovy):\[\d+,\d+\])", OneFailure),
            (r"^\[(?:INFO|ERROR)\] BUILD FAILURE", Failed),
            (r"^\[ERROR\] Failed to execute goal ", Failed),
            (r"^(?:\[\S+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, .*<<< (?:FAILURE|ERROR)!", Failed),
            (r"^\[(?:ERROR|WARNING)\] Tests run: \d+, Failures: (\d+), Errors: (\d+)", Counts(Part)),
            (r"^\[INFO\] BUILD SUCCESS", Passed(Run)),
        ],
        "[INFO] BUILD FAILURE",
    );
    GRADLE = summary(
        &[
            (r"^> Task \S+ FAILED$", OneFailure),
            (r"^e: (?:file://)?\S+\.kts?:", OneFailure),
            (r"^BUILD FAILED in ", Failed),
            (r"^FAILURE: Build failed with an exception\.", Failed),
            (r"^\d+ tests? completed, [1-9]\d* failed", Failed),
            (r"^BUILD SUCCESSFUL in ", Passed(Run)),
        ],
        "BUILD FAILED in 3s",
    );
    ANT = summary(
        &[(r"^BUILD FAILED$", Failed), (r"^BUILD SUCCESSFUL$", Passed(Run))],
        "BUILD FAILED",
    );
    DOTNET_TEST = summary(
        &[
            (PROJECT_ERROR, Failed),
            (NUMBERED_ERROR, OneFailure),
            (r"^\s+Failed \S.* \[(?:< )?\d+ m?s\]$", OneFailure),
            (r"^(?:Passed|Failed)!\s+- Failed:\s+(\d+), Passed:\s+\d+", Counts(Part)),
            (r"^Test summary: total: \d+, failed: (\d+)", Counts(SoFar)),
            (r"^Test Run Failed\.", Failed),
            (r"^Test run summary: Failed!", Failed),
            (r"^Test run summary: Passed!", Passed(Part)),
            (r"^\s*Build failed with \d+ error", Failed),
        ],
        "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 10 ms - a.dll (net9.0)",
    );
    DOTNET_BUILD = summary(
        &[
            (PROJECT_ERROR, Failed),
            (NUMBERED_ERROR, OneFailure),
            (r"^\s*Build (?:FAILED\.|failed with \d+ error)", Failed),
            (r"^\s*Build succeeded(?:\.| in | with \d+ warning)", Passed(Run)),
            (r"^\s*[1-9]\d* Error\(s\)$", Failed),
        ],
        "Build FAILED.",
    );
    CTEST = summary(
        &[
            (r"^The following tests FAILED:", Failed),
            (r"^\d+% tests passed, (\d+) tests? failed out of \d+", Counts(Run)),
            (r"^Errors while running CTest", Failed),
            (r"^ninja: build stopped: ", Failed),
        ],
        "67% tests passed, 1 tests failed out of 3",
    );
    MESON = SummaryPatterns { also_failing: &["Timeout:            1"], ..summary(
        &[
            (r"^(?:Fail|Timeout|Unexpected Pass):\s+[1-9]\d*$", Failed),
            (r"^Fail:\s+0$", Passed(SoFar)),
        ],
        "Fail:               1",
    ) };
    NINJA = summary(
        &[
            (FILE_ERROR, OneFailure),
            (NUMBERED_ERROR, OneFailure),
            (r"^(?:collect2|ld|clang(?:\+\+)?): (?:fatal )?error: ", OneFailure),
            (r"^ninja: build stopped: ", Failed),
            // The name of a file: test programs count with `FAILED: 0`.
            (r"^FAILED: (?:\[code=\d+\] )?[A-Za-z_./]\S*[./]\S+", Failed),
            (MAKE_ERROR, Failed),
        ],
        "ninja: build stopped: subcommand failed.",
    );
    MAKE = summary(
        &[
            (MAKE_ERROR, Failed),
            // Automake
            (r"^# (?:FAIL|XPASS|ERROR): +[1-9]\d*$", Failed),
        ],
        "make: *** [Makefile:3: test] Error 1",
    );
    BAZEL = summary(
        &[
            (r"^//\S+\s+(?:FAILED|TIMEOUT|NO STATUS)\b", OneFailure),
            (r"^(?:INFO|FAILED|ERROR): Build (?:did NOT complete|completed, \d+ tests? FAILED)", Failed),
            (r"^Executed \d+ out of \d+ tests?: .*\bfail", Failed),
            (r"^INFO: Build completed successfully", Passed(Run)),
            (r"^Executed \d+ out of \d+ tests?: \d+ tests? pass(?:es)?\.$", Passed(Run)),
        ],
        "INFO: Build completed, 1 test FAILED, 3 total actions",
    );
    RSPEC = summary(
        &[
            (r"^rspec '?\./\S+ # ", OneFailure),
            (RUBY_COVERAGE, Failed),
            (
                r"^\d+ examples?, (\d+) failures?(?:, (\d+) errors)?(?:, \d+ pending)?(?:, (\d+) errors? occurred outside of examples)?",
                Counts(SoFar),
            ),
        ],
        "3 examples, 1 failure",
    );
    MINITEST = summary(
        &[
            (r"^(?:bin/)?rails test \S+:\d+$", OneFailure),
            (RUBY_COVERAGE, Failed),
            (r"^\d+ (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors", Counts(SoFar)),
        ],
        "3 runs, 5 assertions, 1 failures, 0 errors, 0 skips",
    );
    RUBOCOP = summary(
        &[
            // Offenses that were corrected are no failures.
            (r"^\d+ files? inspected, [1-9]\d* offenses? detected(?:, \d+ offenses? auto-?correctable)?$", Failed),
            (r"^\d+ files? inspected, .* \d+ more offenses? can be corrected", Failed),
            (r"^[1-9]\d* errors? occurred:$", Failed),
            (r"^\d+ files? inspected, no offenses detected", Passed(Run)),
        ],
        "3 files inspected, 1 offense detected",
    );
    PHPUNIT = summary(
        &[
            (r"^There (?:was|were) [1-9]\d* (?:failures?|errors?):$", Failed),
            (r"^(?:FAILURES|ERRORS)!$", Failed),
            (r"^Tests: \d+, Assertions: \d+,(?:.*,)? (?:PHPUnit )?(?:Errors|Failures): [1-9]", Failed),
            // Warnings fail the run in older versions, and in newer ones if the project says so.
            (
                r"^Tests: \d+, Assertions: \d+(?:, (?:PHPUnit )?(?:Deprecations|Notices|Skipped|Incomplete|Risky): \d+)*\.$",
                Passed(Run),
            ),
            (r"^OK \(\d+ tests?, \d+ assertions?\)", Passed(Run)),
        ],
        "Tests: 3, Assertions: 5, Failures: 1.",
    );
    PEST = summary(
        &[
            (r"^\s*Tests: +(?:\d+ [a-z]+, )*[1-9]\d* failed\b", Failed),
            (r"^\s*Tests: +(?:\d+ [a-z]+, )*\d+ passed \(\d+ assertions?\)", Passed(Run)),
        ],
        "  Tests:    1 failed, 2 passed (5 assertions)",
    );
    PHPSTAN = summary(
        &[
            (r"^\s*\[ERROR\] Found \d+ errors?", Failed),
            (r"^\s*\[OK\] No errors", Passed(Run)),
        ],
        " [ERROR] Found 1 error",
    );
    MIX = summary(
        &[
            (r"^\s+\d+\) (?:test|doctest|property) .+ \([A-Z]\S*\)$", OneFailure),
            // Tests whose setup failed are `invalid`, and no failures.
            (r"^(?:\d+ (?:doctests?|propert(?:y|ies)), )*\d+ tests?, \d+ failures?,.*\b[1-9]\d* invalid\b", Failed),
            // Warnings that count as errors, and a low coverage, are reported after the counts.
            (r"^(?:ERROR! Test suite aborted |Coverage test failed, )", Failed),
            (r"^(?:\d+ (?:doctests?|propert(?:y|ies)), )*\d+ tests?, (\d+) failures?", Counts(SoFar)),
        ],
        "3 tests, 1 failure",
    );
    SWIFT_TEST = summary(
        &[
            (FILE_ERROR, OneFailure),
            (r"^Test (?:Case|Suite) '.+' failed (?:\(|at )", OneFailure),
            (r"^✘ Test ", OneFailure),
            (r"^\s*Executed \d+ tests?, with (?:\d+ tests? skipped and )?(\d+) failures?", Counts(Part)),
            (r"Test run with \d+ tests?(?: in \d+ suites?)? failed after ", Failed),
            (r"Test run with \d+ tests?(?: in \d+ suites?)? passed after ", Passed(Part)),
        ],
        "\t Executed 3 tests, with 1 failure (0 unexpected) in 0.010 (0.012) seconds",
    );
    SWIFT_BUILD = summary(
        &[
            (FILE_ERROR, OneFailure),
            (r"^Build complete!", Passed(Run)),
        ],
        "/w/a.swift:3:7: error: cannot find 'b' in scope",
    );
    XCODEBUILD = summary(
        &[
            (FILE_ERROR, OneFailure),
            (r"^Test (?:Case|Suite) '.+' failed (?:\(|at )", OneFailure),
            (r"^\*\* (?:TEST|BUILD|ANALYZE)(?: EXECUTE| BUILD)? FAILED \*\*", Failed),
            (r"^\s*Executed \d+ tests?, with (?:\d+ tests? skipped and )?[1-9]\d* failures?", Failed),
            (r"^\*\* (?:TEST|BUILD|ANALYZE)(?: EXECUTE| BUILD)? SUCCEEDED \*\*", Passed(Run)),
        ],
        "** TEST FAILED **",
    );
    FLUTTER_TEST = summary(
        &[
            (r"^\d+:\d+ \+\d+.* -\d+: Some tests failed\.", Failed),
            (r"^\d+:\d+ \+\d+(?: ~\d+)?: All (?:other )?tests passed!", Passed(Run)),
        ],
        "00:01 +2 -1: Some tests failed.",
    );
    DART_ANALYZE = summary(
        &[
            // Other programs print `error - TEXT`.
            (r"^\s*error (?:•|-) .*\.(?:dart|yaml):\d+:\d+ (?:•|-) ", Failed),
            (r"^No issues found!", Passed(Run)),
        ],
        "  error • Undefined name 'b' • lib/a.dart:3:7 • undefined_identifier",
    );
    SBT = summary(
        &[
            (r"^\[error\] (?:-- .*Error: )?\S+\.scala:\d+:\d+", OneFailure),
            (r"^\[error\] (?:Failed: Total \d+|Total time: \d|\([^)]*\) .*(?:unsuccessful|failed))", Failed),
            (r"^\[info\] Passed: Total \d+, Failed 0, Errors 0", Passed(Part)),
            (r"^\[success\] Total time: ", Passed(Run)),
        ],
        "[error] Failed: Total 3, Failed 1, Errors 0, Passed 2",
    );
    LEIN = summary(
        &[(r"^(\d+) failures?, (\d+) errors?\.$", Counts(Part))],
        "1 failures, 0 errors.",
    );
    CABAL = summary(
        &[
            (r"^Test suite \S+: FAIL", Failed),
            (r"^\d+ out of \d+ tests failed", Failed),
            (r"^0 of \d+ test suites \(\d+ of \d+ test cases\) passed\.$", Failed),
            (r"^\d+ examples?, [1-9]\d* failures?", Failed),
            (r"^(?:cabal: )?Tests failed for ", Failed),
            (r"^Test suite \S+: PASS", Passed(Part)),
        ],
        "Test suite a-test: FAIL",
    );
    ALCOTEST = summary(
        &[
            (r"^[1-9]\d* failures?! in ", Failed),
            (r"^Test Successful in ", Passed(Part)),
        ],
        "1 failure! in 0.001s. 3 tests run.",
    ).outside_scripts();
    ZIG = summary(
        &[
            (FILE_ERROR, OneFailure),
            (r"^Build Summary: .*\b\d+ failed", Failed),
            (r"^\d+ passed; \d+ skipped; [1-9]\d* failed\.", Failed),
            (r"^Build Summary: \d+/\d+ steps succeeded; \d+/\d+ tests passed", Passed(Run)),
            (r"^All \d+ tests passed\.$", Passed(Run)),
        ],
        "Build Summary: 1/3 steps succeeded; 1 failed; 2/3 tests passed; 1 failed",
    );
    FOUNDRY = summary(
        &[
            (
                r"^Ran \d+ test suites? in .*: \d+ tests? passed, (\d+) failed, \d+ skipped",
                Counts(Run),
            ),
            (r"^Suite result: FAILED\.", Failed),
            (r"^Encountered a total of [1-9]\d* failing tests?", Failed),
            (r"^Suite result: ok\.", Passed(Part)),
        ],
        "Ran 2 test suites in 10.20ms (12.30ms CPU time): 2 tests passed, 1 failed, 0 skipped (3 total tests)",
    );
    GLEAM = summary(
        &[(r"^\d+ passed, (\d+) failures?", Counts(Run)), (r"^\d+ (?:tests?|passed), no failures$", Passed(Run))],
        "2 passed, 1 failures",
    ).outside_scripts();
    SHELLCHECK = silent(&[(r"^In \S+ line \d+:$", Failed)], "In a.sh line 3:");
    HADOLINT = silent(&[(r"^\S+:\d+ (?:DL|SC)\d+ error", Failed)], "Dockerfile:3 DL3008 error: Pin versions in apt get install");
    YAMLLINT = silent(&[(r"^\s+\d+:\d+\s+error\s", Failed)], "  3:1       error    syntax error: expected <block end> (syntax)");
    ACTIONLINT = silent(
        &[(r"^\S+\.ya?ml:\d+:\d+: .+ \[[a-z-]+\]$", Failed)],
        ".github/workflows/a.yml:3:1: unexpected key \"on2\" [syntax-check]",
    );
    CODESPELL = silent(&[(r"^\S+:\d+: \S+ ==> \S+", Failed)], "a.md:3: teh ==> the");
    CLANG_FORMAT = silent(
        &[(r"^\S+:\d+:\d+: error: code should be clang-formatted", Failed)],
        "a.c:3:1: error: code should be clang-formatted [-Wclang-format-violations]",
    );
    TERRAFORM = summary(
        &[
            (r"^(?:│ )?Error: ", Failed),
            (r"^Success! The configuration is valid", Passed(Run)),
        ],
        "│ Error: Unsupported argument",
    ).outside_scripts();
    HELM = summary(
        &[(r"^(?:Error: )?\d+ chart\(s\) linted, (\d+) chart\(s\) failed", Counts(Run))],
        "1 chart(s) linted, 1 chart(s) failed",
    );
    PRE_COMMIT = summary(
        &[
            // The line has at least 79 columns.
            (r"^.{60,}\.\.\.Failed$", Failed),
            (r"^.{60,}\.\.\.Passed$", Passed(Part)),
        ],
        "ruff.....................................................................Failed",
    );
    TURBO = summary(
        &[
            (r"^\s*Failed:\s+\S+#\S+", Failed),
            (r"^\s*ERROR\s+run failed: command", Failed),
            (r"^\s*Tasks:\s+\d+ successful, [1-9]\d* total", Passed(SoFar)),
        ],
        "Failed:    web#build",
    );
    NX = summary(
        &[
            (r"^\s*(?:NX|>)?\s*Ran targets? .+ for .+\bfailed\b|^\s*(?:✖|×)\s+\d+/\d+ (?:targets )?failed", Failed),
            (r"^\s*(?:NX|>)\s+Running targets? .+ for .+ failed$", Failed),
            (r"^\s*(?:NX|>)\s+Successfully ran targets? ", Passed(Run)),
        ],
        " ✖  1/2 targets failed, including the following:",
    );
    LERNA = summary(
        &[
            (r"^lerna ERR! ", Failed),
            (r"^lerna success run Ran npm script ", Passed(Run)),
        ],
        "lerna ERR! npm run test exited 1 in 'web'",
    );
    /// Test programs of C and C++: GoogleTest, Catch2, doctest, Boost.
    CPP_TEST = summary(
        &[
            (r"^\[  FAILED  \] \d+ tests?, listed below:$", Failed),
            (r"^\[  FAILED  \] ", OneFailure),
            (r"^(?:\[doctest\] )?test cases: .*\b[1-9]\d* failed(?: \||$)", Failed),
            (r"^\*\*\* [1-9]\d* failures? (?:is|are) detected ", Failed),
            (r"^\[  PASSED  \] [1-9]\d* tests?\.$", Passed(SoFar)),
            (r"^All tests passed \(\d+ assertions? in \d+ test cases?\)$", Passed(SoFar)),
            (r"^\[doctest\] Status: SUCCESS!$", Passed(SoFar)),
        ],
        "[  FAILED  ] 1 test, listed below:",
    );
    BUNDLER = summary(
        &[
            (r"^Failed to compile\.?$", Failed),
            (r"^error during build:$", Failed),
            (r"^(?:✗|x) Build failed in ", Failed),
            (r"^webpack \S+ compiled with [1-9]\d* errors?", Failed),
            (OUT_OF_MEMORY, OneFailure),
            (r"^✓ built in \d", Passed(SoFar)),
            (r"^webpack \S+ compiled (?:successfully|with \d+ warnings?) in ", Passed(SoFar)),
        ],
        "Failed to compile.",
    );
    TERRAFORM_TEST = summary(
        &[(r"^(?:Success|Failure)! \d+ passed, (\d+) failed", Counts(Run))],
        "Failure! 2 passed, 1 failed.",
    );
    DBT = summary(
        &[(r"^(?:\d+:\d+:\d+ +)?Done\. PASS=\d+ WARN=\d+ ERROR=(\d+) ", Counts(Run))],
        "Done. PASS=2 WARN=0 ERROR=1 SKIP=0 TOTAL=3",
    );
    /// What script runners print after a failed script.
    SCRIPT_RUNNERS = summary(
        &[
            (r"^npm (?:ERR!|error)\s+(?:code ELIFECYCLE|Test failed|Lifecycle script|command failed)", Failed),
            (r"^\s*ELIFECYCLE\s+(?:Command|Test) failed", Failed),
            (r"^error Command failed with exit code \d+\.", Failed),
            (r"^\s*ERR_PNPM_RECURSIVE_(?:RUN_FIRST_FAIL|EXEC_FIRST_FAIL|FAIL)\b", Failed),
            (r"^Script .+ handling the \S+ event returned with error code \d+", Failed),
            (r#"^error: (?:script )?".+" exited with code [1-9]"#, Failed),
            (r#"^ERROR: ".+" exited with [1-9]"#, Failed),
            (r"^❌ \[.+\] Failed with exit status \d", Failed),
            (r"^Error: Sequence aborted after failed subtask ", Failed),
            (r"^error: [Rr]ecipe `.+` failed ", Failed),
            (r"^(?:\[\S+\] )?ERROR task failed$", Failed),
            (r"^task: Failed to run task ", Failed),
            // unittest, whose `OK` proves nothing about a script
            (UNITTEST_FAILED, Failed),
            (r"^rake aborted!$", Failed),
        ],
        "npm error Lifecycle script `test` failed with error:",
    );
}
