//! Finds in the output of a failed check the tests that failed and the first line of an error.

use super::gist::one_line;

/// The maximum length of the line of an error, in characters.
const LINE_CHARS: usize = 160;
/// The maximum number of failed tests that are named.
const TESTS_NAMED: usize = 5;

/// Returns what failed, in one line: `TestA, TestB: panicked at src/a.rs:3`. `None` if the output
/// contains neither a failed test nor an error.
pub(super) fn failure_text(output: &str) -> Option<String> {
    let mut tests: Vec<&str> = Vec::new();
    for test in output.lines().filter_map(failed_test) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let more = tests.len().saturating_sub(TESTS_NAMED);
    let mut named = tests.iter().take(TESTS_NAMED).copied().collect::<Vec<_>>().join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let first = |is_it: fn(&str) -> bool| {
        let lines = output.lines().map(str::trim);
        lines.filter(|line| failed_test(line).is_none()).find(|line| is_it(line))
    };
    let error = first(is_error).or_else(|| first(says_missing));
    match (named.is_empty(), error) {
        (true, None) => None,
        (true, Some(error)) => Some(one_line(error, LINE_CHARS)),
        (false, None) => Some(one_line(&named, LINE_CHARS)),
        (false, Some(error)) => Some(format!("{named}: {}", one_line(error, LINE_CHARS))),
    }
}

/// Returns the name of the test that failed according to a line of a test runner.
fn failed_test(line: &str) -> Option<&str> {
    let line = line.trim();
    // go, and pytest
    let pytest = || line.strip_prefix("FAILED ").filter(|rest| rest.contains("::"));
    if let Some(rest) = line.strip_prefix("--- FAIL: ").or_else(pytest) {
        return rest.split_whitespace().next();
    }
    // cargo test
    if let Some(rest) = line.strip_prefix("test ").and_then(|it| it.strip_suffix(" ... FAILED")) {
        return Some(rest);
    }
    // unittest
    let name = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
    let (name, class) = name.split_once(" (")?;
    (class.ends_with(')') && !name.contains(' ')).then_some(name)
}

/// Returns whether a line reports an error, in the forms of compilers and test runners.
fn is_error(line: &str) -> bool {
    const BEGINS: [&str; 8] =
        ["error", "Error", "ERROR", "E   ", "panic: ", "fatal: ", "not ok ", "✗ "];
    const CONTAINS: [&str; 5] =
        [" panicked at ", "Error: ", ": error", "assertion failed", "AssertionError"];
    BEGINS.iter().any(|begin| line.starts_with(begin))
        || CONTAINS.iter().any(|part| line.contains(part))
        || is_located(line)
}

/// Returns whether a line says that something is missing that the check needs: a program, a module
/// or a target. The line of make for a recipe that failed says nothing.
fn says_missing(line: &str) -> bool {
    const CONTAINS: [&str; 3] = [": command not found", ": No module named ", "Missing script: "];
    const ENDS: [&str; 2] = [": not found", ": No such file or directory"];
    (line.contains(": *** ") && line.ends_with("Stop."))
        || CONTAINS.iter().any(|part| line.contains(part))
        || ENDS.iter().any(|end| line.ends_with(end))
}

/// Returns whether a line begins with a place in a file: `src/a.go:12:3: undefined`.
fn is_located(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (Some(file), Some(number), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    file.contains('.') && !file.contains(' ') && is_number && rest.len() > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_tests_and_the_first_error_are_named() {
        for (output, expected) in [
            (
                "=== RUN TestA\n    a_test.go:12: got 1, want 2\n--- FAIL: TestA (0.00s)\nFAIL\n",
                Some("TestA: a_test.go:12: got 1, want 2"),
            ),
            (
                "test a::b ... ok\ntest a::c ... FAILED\n\nthread 'a::c' panicked at src/a.rs:3:5:\n",
                Some("a::c: thread 'a::c' panicked at src/a.rs:3:5:"),
            ),
            ("E   assert 1 == 2\nFAILED t/a.py::b - assert", Some("t/a.py::b: E   assert 1 == 2")),
            ("FAIL: test_x (t.Case)\n", Some("test_x")),
            ("# pkg\nx/y.go:3:1: undefined: foo\n", Some("x/y.go:3:1: undefined: foo")),
            ("error[E0308]: mismatched types\n", Some("error[E0308]: mismatched types")),
            (
                "make: *** No rule to make target 'lint'.  Stop.\n",
                Some("make: *** No rule to make target 'lint'. Stop."),
            ),
            ("sh: 1: ruff: not found\n", Some("sh: 1: ruff: not found")),
            ("✓ says 404: not found (3 ms)\nmake: *** [Makefile:2: a] Error 1\n", None),
            ("ls: a: No such file or directory\nError: b\n", Some("Error: b")),
            ("12:30: all good\n214 passed", None),
            ("", None),
        ] {
            let expected = expected.map(|text| text.replace("E   ", "E "));
            assert_eq!(failure_text(output), expected, "{output}");
        }
        let many: String = (0..7).map(|test| format!("--- FAIL: T{test} (0s)\n")).collect();
        assert_eq!(failure_text(&many).as_deref(), Some("T0, T1, T2, T3, T4 and 2 more"));
    }
}
