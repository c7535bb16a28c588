use super::*;

fn name(line: &str) -> Option<String> {
    Verification::of(line).map(|found| found.name)
}

fn status(line: &str, exit_code: Option<i64>, output: &str) -> &'static str {
    Verification::of(line).unwrap().status(exit_code, output)
}

#[test]
fn known_commands_are_found_wherever_they_stand() {
    for (line, expected) in [
        ("cargo test --release", Some("cargo test")),
        ("cargo +nightly clippy", Some("cargo clippy")),
        ("cd a && RUST_BACKTRACE=1 cargo nextest run | tail", Some("cargo nextest")),
        ("timeout 60 go test ./...", Some("go test")),
        ("sudo -E env A=1 /usr/bin/make -j4 check", Some("make check")),
        ("npm run test:unit", Some("npm run test:unit")),
        ("npx jest a.test.js", Some("jest")),
        ("python3 -m pytest -q", Some("pytest")),
        ("uv run ruff check .", Some("ruff check")),
        ("mise run fmt && mise run lint", Some("mise run lint")),
        ("mise run lint; mise run test:ci", Some("mise run lint && mise run test:ci")),
        ("cmake --build out", Some("cmake --build")),
        ("ls; git status", None),
        ("echo 'cargo test'", None),
        ("go run -", None),
        ("cargo fmt", None),
        ("make", None),
        ("git commit -m \"$(cat <<'EOF'\ncargo test\nEOF\n)\"", None),
    ] {
        assert_eq!(name(line).as_deref(), expected, "{line}");
    }
}

#[test]
fn the_most_telling_check_names_the_tool() {
    let found = Verification::of("cargo build && go test && mise run lint").unwrap();
    assert_eq!((found.check, found.tool.as_str()), (Test, "go"));
}

#[test]
fn an_exit_code_decides_only_where_it_is_the_checks_own() {
    assert_eq!(status("cargo test", Some(0), ""), "passed");
    assert_eq!(status("cd x && cargo test && echo ok | tee log", Some(0), ""), "passed");
    assert_eq!(status("true; cargo test", Some(0), ""), "passed");
    assert_eq!(status("cargo test | tail", Some(0), ""), "unknown");
    assert_eq!(status("cargo test || true", Some(0), ""), "unknown");
    assert_eq!(status("cargo test; true", Some(0), ""), "unknown");
    assert_eq!(status("cargo test && ls; true", Some(0), ""), "unknown");
    assert_eq!(status("cargo test", None, ""), "unknown");
    assert_eq!(status("cargo test", Some(101), "test result: ok. 1 passed"), "failed");
}

#[test]
fn the_output_decides_where_the_exit_code_does_not() {
    assert_eq!(status("cargo test | tail", Some(0), "x\ntest result: ok. 1 passed"), "passed");
    assert_eq!(status("go test ./... | tail", Some(0), "--- FAIL: TestA\nok  \tb\t1s"), "failed");
    assert_eq!(status("go test ./... | tail", Some(0), "ok  \tb\t1s"), "passed");
    assert_eq!(status("mise run lint 2>&1 | head", Some(0), "[lint] $ x\n0 issues."), "passed");
    assert_eq!(status("pytest | cat", Some(0), "=== 1 failed in 2s ==="), "failed");
    assert_eq!(status("go test ./...", Some(0), "    --- SKIP\nno FAIL here"), "passed");
}
