use super::*;

fn names(line: &str) -> Vec<String> {
    let Some(found) = CheckCommandLine::from_line(line) else { return Vec::new() };
    let ended = RecordedCommandEnd { outcome: "unknown", exit_code: None, output: "" };
    found.outcomes(&ended).into_iter().map(|outcome| outcome.name).collect()
}

fn ended(line: &str, outcome: &str, exit_code: Option<i64>, output: &str) -> String {
    let Some(found) = CheckCommandLine::from_line(line) else { return "no check".to_owned() };
    let outcomes = found.outcomes(&RecordedCommandEnd { outcome, exit_code, output });
    let statuses = outcomes.iter().map(|it| format!("{}:{}", it.number + 1, it.status));
    statuses.collect::<Vec<_>>().join(" ")
}

fn status(line: &str, exit_code: impl Into<Option<i64>>, output: &str) -> String {
    let exit_code = exit_code.into();
    let all = ended(line, "finished", exit_code, output);
    all.strip_prefix("1:").filter(|rest| !rest.contains(' ')).map_or(all.clone(), str::to_owned)
}

#[test]
fn known_commands_are_found_at_any_position() {
    for (line, expected) in [
        ("cargo test --release", "cargo test"),
        ("cargo +nightly clippy", "cargo clippy"),
        ("cd a && RUST_BACKTRACE=1 cargo nextest run | tail", "cargo nextest run"),
        ("timeout 60 go test ./...", "go test"),
        ("sudo -E env A=1 /usr/bin/make -j4 check", "make check"),
        ("npm run test:unit", "npm run test:unit"),
        ("npx jest a.test.js", "jest"),
        ("python3 -m pytest -q", "pytest"),
        ("uv run ruff check .", "ruff check"),
        ("mise run fmt && mise run lint", "mise run lint"),
        ("mise run lint; mise run test:ci", "mise run lint, mise run test:ci"),
        ("cmake --build out", "cmake --build"),
        ("bash -lc \"cargo test\"", "cargo test"),
        ("sh -c 'cd a && make test'", "make test"),
        ("node --test", "node --test"),
        ("./mvnw -q test", "mvnw test"),
        ("uvx --with x pytest", "pytest"),
        ("npm t", "npm t"),
        ("python3 manage.py test", "manage.py test"),
        ("cargo fmt --all -- --check", "cargo fmt --check"),
        ("docker compose -f a.yml run --rm -e A=b web pytest -q", "pytest"),
        ("docker compose exec -T web python -m pytest", "pytest"),
        ("docker run --rm -v a:b -w /w image cargo test", "cargo test"),
        ("docker exec -it web sh -c 'cd /app && npm test'", "npm test"),
        ("timeout -k 5 60 cargo test", "cargo test"),
        ("if cargo test; then echo y; else exit 1; fi", "cargo test"),
        ("while ! make test; do sleep 1; done", "make test"),
        ("for p in a b; do go test ./$p; done", "go test"),
        ("! cargo clippy", "cargo clippy"),
        ("xvfb-run -a npm test", "npm test"),
        ("stdbuf -oL pytest", "pytest"),
        ("nix develop -c cargo test", "cargo test"),
        ("nix develop .#ci --command just test", "just test"),
        ("nix-shell --run 'make check'", "make check"),
        ("devbox run test", "devbox run test"),
        ("pixi run test", "pixi run test"),
        ("pixi run pytest tests", "pytest"),
        ("turbo run test --filter=web", "turbo run test"),
        ("npx nx test web", "nx test"),
        ("nx run-many -t test", "nx run-many test"),
        ("nx run web:test", "nx run web:test"),
        ("lerna run test", "lerna run test"),
        ("tsx --test a.ts", "tsx --test"),
        ("npx prettier --check .", "prettier --check"),
        ("black --check src", "black --check"),
        ("gofmt -l .", "gofmt -l"),
        ("clang-format --dry-run -Werror a.c", "clang-format --dry-run"),
        ("terraform validate", "terraform validate"),
        ("zig build test", "zig build test"),
        ("zig build test --summary all", "zig build test"),
        ("swift test", "swift test"),
        ("yarn workspace web test", "yarn test"),
        ("pnpm --filter web test", "pnpm test"),
        ("pnpm vitest run", "vitest"),
        ("yarn jest", "jest"),
        ("gradle :app:testDebugUnitTest", "gradle :app:testDebugUnitTest"),
        ("./gradlew clean build", "gradlew build"),
        ("mvn -B -q clean verify", "mvn verify"),
        ("bundle exec rspec spec/a_spec.rb", "rspec"),
        ("vendor/bin/phpunit --filter A", "phpunit"),
        ("node node_modules/.bin/jest", "jest"),
        ("npx tsc --noEmit && npx eslint . && npm test", "tsc, eslint, npm test"),
        ("./scripts/test.sh", "./scripts/test.sh"),
        ("bash ci/lint.sh", "ci/lint.sh"),
        ("make fmt-check", "make fmt-check"),
        ("conda run -n env pytest", "pytest"),
        ("npm run --prefix web build", "npm run build"),
        ("make -C sub test", "make test"),
        ("cargo test; rc=$?; exit $rc", "cargo test"),
        ("ssh -p 22 host 'cd a && cargo test'", "cargo test"),
        ("ls; git status", ""),
        ("echo 'cargo test'", ""),
        ("go run -", ""),
        ("cargo fmt", ""),
        ("cargo run", ""),
        ("make", ""),
        ("black .", ""),
        ("prettier --write .", ""),
        ("ruff format .", ""),
        ("pytest --version", ""),
        ("pytest --collect-only -q", ""),
        ("cargo test --help", ""),
        ("cargo test -- --list", ""),
        ("git grep pytest", ""),
        ("grep -rn 'cargo test' .", ""),
        ("pip install pytest", ""),
        ("npm install --save-dev jest", ""),
        ("npm ci", ""),
        ("npm run test:watch", ""),
        ("npm run dev", ""),
        ("command -v cargo", ""),
        ("which pytest", ""),
        ("python -c 'import pytest'", ""),
        ("cat test.sh", ""),
        ("test -f a", ""),
        ("/usr/bin/test -f a", ""),
        ("docker ps", ""),
        ("uv pip install mypy", ""),
        ("f() { cargo test; }", ""),
        ("git commit -m \"$(cat <<'EOF'\ncargo test\nEOF\n)\"", ""),
    ] {
        assert_eq!(names(line).join(", "), expected, "{line}");
    }
}

#[test]
fn the_own_exit_code_of_a_check_has_priority() {
    assert_eq!(
        status("pytest", 0, "ERROR    app:app.py:10 refused\n=== 3 passed in 0.1s ==="),
        "passed"
    );
    assert_eq!(
        status("go test -v ./...", 0, "FAIL is expected here\nFAIL\nok  \tx\t0.1s"),
        "passed"
    );
    assert_eq!(
        status("make test", 0, "--- FAIL: TestA (0.00s)\ntest result: FAILED. 1 passed"),
        "passed"
    );
    assert_eq!(status("cargo test", 101, "test result: ok. 1 passed"), "failed");
    assert_eq!(status("cd x && cargo test && echo ok | tee log", 0, "ok"), "passed");
    assert_eq!(status("true; cargo test", 0, ""), "passed");
    assert_eq!(status("cargo test", None, ""), "unknown");
    assert_eq!(status("cargo test", None, "test result: ok. 1 passed; 0 failed"), "passed");
    for (code, expected) in [
        (124, "failed"),
        (126, "error"),
        (127, "error"),
        (130, "unknown"),
        (137, "unknown"),
        (143, "unknown"),
        (-1, "unknown"),
        (134, "failed"),
        (139, "failed"),
    ] {
        assert_eq!(status("timeout 5 cargo test", code, ""), expected, "{code}");
    }
    for (code, output, expected) in [
        (1, "", "failed"),
        (2, "", "unknown"),
        (2, "=== 1 error in 0.05s ===", "failed"),
        (4, "ERROR: file not found", "error"),
        (5, "=== no tests ran in 0.01s ===", "unknown"),
    ] {
        assert_eq!(status("pytest", code, output), expected, "{code}");
    }
}

#[test]
fn an_exit_code_of_another_command_means_nothing() {
    for line in [
        "cargo test | tail",
        "cargo test || true",
        "cargo test; true",
        "cargo test && ls; true",
        "cargo test &",
        "for p in a b; do cargo test -p $p; done",
        "while ! cargo test; do sleep 1; done",
        "cargo test > log; ls",
    ] {
        assert_eq!(status(line, 0, "x"), "unknown", "{line}");
    }
    for line in
        ["npm install && npm test", "cargo test | grep x", "git pull; cargo test && git push"]
    {
        assert_eq!(status(line, 1, "x"), "unknown", "{line}");
    }
    // A check that did not run has no verification.
    assert_eq!(status("false && cargo test", 1, ""), "");
    assert_eq!(
        status("cd x && cargo test", 1, "bash: line 1: cd: x: No such file or directory"),
        ""
    );
    assert_eq!(
        status("cargo test)", 2, "bash: -c: line 1: syntax error near unexpected token `)'"),
        ""
    );
    assert_eq!(ended("cargo test", "refused", None, ""), "");
    assert_eq!(ended("cargo test", "background", None, ""), "1:unknown");
    assert_eq!(ended("cargo test", "interrupted", None, "test result: ok. 1 passed"), "1:unknown");
    assert_eq!(ended("cargo test", "timed_out", None, ""), "1:timed_out");
    // The exit code belongs to the client that stopped the command, not to the check.
    assert_eq!(ended("cargo test", "timed_out", Some(124), ""), "1:timed_out");
}

#[test]
fn an_exit_code_is_followed_through_the_line() {
    for (line, code, output, expected) in [
        ("cd x && cargo test", 101, "x", "failed"),
        ("if cargo test; then echo y; else exit 1; fi", 1, "", "failed"),
        ("if cargo test; then echo y; else exit 1; fi", 0, "y", "passed"),
        ("if cargo test; then echo good; else echo bad; fi", 0, "bad", "failed"),
        ("! cargo test", 0, "", "failed"),
        ("! cargo test", 1, "", "passed"),
        ("cargo test || exit 1", 1, "", "failed"),
        ("cargo test || exit 1; ls", 0, "", "passed"),
        ("cargo test || { echo no; exit 1; }", 0, "x", "passed"),
        ("set -e; cargo test; ls", 0, "", "passed"),
        ("set -o pipefail; cargo test | tail -3", 0, "x", "passed"),
        ("set -euo pipefail\ncargo test | tail -3", 101, "x", "failed"),
        ("bash -eo pipefail -c 'cargo test | tee log'", 0, "x", "passed"),
        ("cargo test | tail -3; echo \"exit ${PIPESTATUS[0]}\"", 0, "x\nexit 101", "failed"),
        ("cargo test | tail -3; echo \"exit ${PIPESTATUS[0]}\"", 0, "x\nexit 0", "passed"),
        ("cargo test; echo \"EXIT: $?\"", 0, "EXIT: 101", "failed"),
        ("cargo test > log 2>&1; echo $?", 0, "0", "passed"),
        ("cargo test > log 2>&1; rc=$?; tail -3 log; echo rc=$rc", 0, "x\nrc=101", "failed"),
        ("cargo test > log 2>&1; rc=$?; tail -3 log; exit $rc", 101, "x", "failed"),
        ("cargo test | tail; echo \"exit $?\"", 0, "x\nexit 0", "unknown"),
        ("echo 'exit $?'; cargo test; ls", 0, "exit 0", "unknown"),
        ("cargo test -q && echo GOOD || echo BAD", 0, "x\nBAD", "failed"),
        ("cargo test -q && echo GOOD || echo BAD", 0, "x\nGOOD", "passed"),
        ("cargo test || echo BAD", 0, "x\nBAD", "unknown"),
        ("cargo test || echo BAD", 0, "x", "passed"),
        ("for p in a b; do cargo test -p $p; done", 101, "", "failed"),
        ("for p in a b; do cargo test -p $p || exit 1; done", 1, "", "failed"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

#[test]
fn every_check_of_a_list_has_its_own_status() {
    for (line, code, output, expected) in [
        ("cargo fmt --check && cargo test", 0, "", "1:passed 2:passed"),
        ("cargo clippy && cargo test", 101, "x", "1:unknown 2:unknown"),
        (
            "cargo clippy && cargo test",
            101,
            "test result: FAILED. 1 passed; 1 failed",
            "1:passed 2:failed",
        ),
        ("ruff check . && pytest", 1, "Found 3 errors.", "1:failed"),
        ("ruff check . && pytest", 1, "All checks passed!\nx", "1:passed 2:failed"),
        ("ruff check .; pytest", 0, "Found 3 errors.\n=== 3 passed in 1s ===", "1:failed 2:passed"),
        ("npm run lint; npm test", 1, "", "1:unknown 2:failed"),
        ("cargo clippy || cargo test", 101, "", "1:failed 2:failed"),
        ("mypy a && pytest | tail -3", 0, "=== 1 failed in 1s ===", "1:passed 2:failed"),
        ("mypy a && pytest | tail -3", 0, "x", "1:passed 2:unknown"),
        ("mypy a || pytest", 0, "Success: no issues found in 3 source files", "1:passed"),
        // Which of the two printed it is not known.
        (
            "pytest a; pytest b; ls",
            0,
            "=== 1 failed in 1s ===\n=== 1 passed in 1s ===",
            "1:unknown 2:unknown",
        ),
        (
            "pytest a; pytest b; ls",
            0,
            "=== 2 passed in 1s ===\n=== 1 passed in 1s ===",
            "1:passed 2:passed",
        ),
        ("pytest a; pytest b; ls", 0, "=== 2 passed in 1s ===", "1:unknown 2:unknown"),
        // Jest prints two lines for one run.
        (
            "npm run lint; npm run test",
            0,
            "Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total",
            "1:unknown 2:passed",
        ),
        ("cargo clippy; cargo test; ls", 0, "error: could not compile `a`", "1:unknown 2:unknown"),
    ] {
        assert_eq!(ended(line, "finished", Some(code), output), expected, "{line} {code} {output}");
    }
    assert_eq!(ended("make build && make test", "timed_out", None, ""), "1:unknown 2:unknown");
}

#[test]
fn a_summary_counts_if_enough_of_it_is_visible() {
    for (line, output, expected) in [
        ("cargo test | tail", "x\ntest result: ok. 1 passed", "passed"),
        ("cargo test | tail -1", "test result: ok. 1 passed", "passed"),
        ("cargo test | head -1", "test result: ok. 1 passed", "unknown"),
        ("cargo test | head -9", "test result: ok. 1 passed", "passed"),
        ("cargo test --no-fail-fast | tail -1", "test result: ok. 1 passed", "unknown"),
        ("cargo test | grep 'test result'", "test result: ok. 1 passed", "passed"),
        ("cargo test | grep 'result: ok'", "test result: ok. 1 passed", "unknown"),
        ("go test ./... | tail -1", "ok  \tb\t1s", "unknown"),
        ("go test ./... | tail -1", "FAIL\tb\t1s", "failed"),
        ("go test ./... | tail -30", "ok  \ta\t1s\nok  \tb\t1s", "passed"),
        ("go test ./... | tail", "--- FAIL: TestA (0.00s)\nok  \tb\t1s", "failed"),
        ("go test ./b | tail -1", "ok  \tb\t1s", "passed"),
        (
            "npx jest 2>&1 | tail -3",
            "Tests:       2 failed, 3 passed, 5 total\nSnapshots: 0\nTime: 1 s",
            "failed",
        ),
        (
            "npx jest 2>&1 | tail -4",
            "Test Suites: 3 passed, 3 total\nTests: 5 passed\nSnapshots: 0\nTime: 1 s",
            "passed",
        ),
        // A suite that could not be loaded has no failed tests.
        (
            "npx jest 2>&1 | tail -3",
            "Tests:       3 passed, 3 total\nSnapshots: 0\nTime: 1 s",
            "unknown",
        ),
        (
            "npx vitest run | tail -4",
            " Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n\n",
            "failed",
        ),
        ("pytest | cat", "=== 1 failed in 2s ===", "failed"),
        ("pytest | tail -1", "3 passed, 1 warning in 0.10s", "passed"),
        ("pytest -q | tail -1", "1 failed, 3 passed in 61.20s (0:01:01)", "failed"),
        ("pytest | tail -1", "3 passed, 2 xfailed in 0.10s", "passed"),
        ("pytest | tail -1", "we passed in 3s", "unknown"),
        (
            "pytest | tail -1",
            "\u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m\u{1b}[32m in 0.10s\u{1b}[0m",
            "passed",
        ),
        ("mise run lint 2>&1 | head", "[lint] $ x\n0 issues.", "passed"),
        ("npm test | tail -5", "Tests: 1 failed, 2 passed", "failed"),
        (
            "npm test | tail -5",
            "2 passing (3ms)\nnpm error Lifecycle script `test` failed with error:",
            "failed",
        ),
        ("make test | tail -5", "make: *** [Makefile:3: test] Error 1", "failed"),
        ("make test | tail -5", "done", "unknown"),
        ("npx tsc --noEmit | head -20", "", "passed"),
        ("npx tsc --noEmit | grep src", "", "unknown"),
        ("npx tsc --noEmit > log; true", "", "unknown"),
        ("gofmt -l .", "", "passed"),
        ("gofmt -l .", "a.go", "failed"),
        ("cargo test > log 2>&1; tail -3 log", "test result: FAILED. 1 passed; 1 failed", "failed"),
        ("cargo test > log 2>&1; ls", "test result: FAILED. 1 passed; 1 failed", "unknown"),
        ("go test ./...; ls", "ok  \ta\t1s\n…120 tokens truncated…\nok  \tb\t1s", "unknown"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

#[test]
fn every_summary_is_recognised_by_its_lines() {
    for summary in summary_table::SUMMARIES {
        let Some(shapes) = summary::tool_matcher(summary) else { panic!("{:?}", summary.shapes) };
        if summary.shapes.is_empty() {
            continue;
        }
        let read = |line: &str| shapes.read(&[line], visibility::OutputVisibility::ALL, 0, false);
        let failing = read(summary.failing);
        assert!(!failing.failed.is_empty(), "{}", summary.failing);
        if !summary.passing.is_empty() {
            let passing = read(summary.passing);
            assert!(passing.passed && passing.failed.is_empty(), "{}", summary.passing);
        }
    }
    summary::script_matcher().expect("shapes compile");
}

#[test]
fn long_outputs_and_lines_are_handled() {
    let million = 300_000;
    for output in [
        "x".repeat(million),
        "\n".repeat(million),
        "ok ".repeat(million),
        "\u{1b}[".repeat(million),
    ] {
        assert_eq!(status("npm test | tail", 0, &output), "unknown");
    }
    for piece in ["cargo test; ", "cargo test && ", "a | ", "(", "$(", "bash -c ", "sudo ", "a\n"] {
        CheckCommandLine::from_line(&piece.repeat(20_000));
    }
    assert_eq!(names(&"cargo test;".repeat(100)).len(), check_plan::MAX_CHECKS);
}

fn identity(line: &str) -> String {
    let found = CheckCommandLine::from_line(line).unwrap();
    let ended = RecordedCommandEnd { outcome: "unknown", exit_code: None, output: "" };
    let outcome = found.outcomes(&ended).remove(0);
    let fields = outcome.fields(Some("/w"));
    let text = |name: &str| {
        let value = fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        match value {
            Some(Value::List(items)) => {
                items.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(",")
            }
            Some(value) => value.as_text().unwrap_or_default().to_owned(),
            None => String::new(),
        }
    };
    format!("{} [{}] {} in {}", text("tool"), text("call"), text("target"), text("working_dir"))
}

#[test]
fn targets_are_normalised() {
    for (line, expected) in [
        ("cargo test", "cargo [test]  in /w"),
        ("cargo test -q --release -- --nocapture", "cargo [test]  in /w"),
        ("cargo test -p a --test it foo", "cargo [test] --test it,-p a,foo in /w"),
        ("cargo test --workspace", "cargo [test] +--workspace in /w"),
        ("cd sub && cargo test", "cargo [test]  in /w/sub"),
        ("cargo test --manifest-path sub/Cargo.toml", "cargo [test]  in /w/sub"),
        ("make -C sub test", "make [test]  in /w/sub"),
        ("(cd sub; true); cargo test", "cargo [test]  in /w"),
        (
            "uv run --directory sub pytest -q ./tests/a.py::b -k 'x y'",
            "pytest [] -k x y,tests/a.py::b in /w/sub",
        ),
        ("python -m pytest .", "pytest []  in /w"),
        ("go test ./...", "go [test] +... in /w"),
        ("go test", "go [test] . in /w"),
        ("go test ./a ./b/...", "go [test] a/.,b in /w"),
        ("npm t", "npm [test]  in /w"),
        ("npm run test", "npm [test]  in /w"),
        ("cargo clippy -- -D warnings", "cargo [clippy] +-D warnings in /w"),
    ] {
        assert_eq!(identity(line), expected, "{line}");
    }
}

/// The rows of the page's table: the calls of a kind with the same summary, and its last lines.
fn rows() -> Vec<String> {
    let mut groups: Vec<(CheckKind, &summary::SummaryPatterns, Vec<String>)> = Vec::new();
    for tool in tools::TOOLS {
        let calls = tool.programs.iter().flat_map(|program| {
            let first = |call: &&str| call.split('|').next().unwrap_or_default().to_owned();
            tool.calls
                .iter()
                .map(first)
                .map(move |call| format!("`{}`", format!("{program} {call}").trim()))
        });
        let same = groups.iter_mut().find(|(check, summary, _)| {
            *check == tool.check && std::ptr::eq(*summary, tool.summary)
        });
        match same {
            Some((_, _, known)) => known.extend(calls),
            None => groups.push((tool.check, tool.summary, calls.collect())),
        }
    }
    let shown = |line: &str, none: &str| match line.trim() {
        "" => none.to_owned(),
        line if line.contains('`') => format!("`` {line} ``"),
        line => format!("`{}`", line.replace('|', "\\|").replace('\t', " ")),
    };
    let row = |(check, summary, calls): (CheckKind, &summary::SummaryPatterns, Vec<String>)| {
        let kind = format!("{check:?}").to_lowercase();
        let silent = if summary.silent { "nothing" } else { "" };
        let (passing, failing) = (shown(summary.passing, silent), shown(summary.failing, ""));
        format!("| {kind} | {} | {passing} | {failing} |", calls.join(", "))
    };
    groups.into_iter().map(row).collect()
}

#[test]
fn the_page_shows_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/checks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shown = page.lines().filter(|line| {
        ["| test |", "| build |", "| lint |"].iter().any(|start| line.starts_with(start))
    });
    assert_eq!(shown.collect::<Vec<_>>().join("\n"), rows().join("\n"));
    for scripts in tools::SCRIPTS {
        for program in scripts.programs {
            assert!(page.contains(&format!("`{program}`")), "{program}");
        }
    }
}
