//! A small session that the tests of reading commands use, written by the commands themselves.

use crate::environment::Environment;

/// Makes a store with a hypothesis with evidence, two beliefs and a gap; a checkpoint `baseline`; a
/// branch `alt` on which the hypothesis is rejected; on `main` a failing command and a
/// verification.
pub(crate) fn example_session() -> Environment {
    write_example(Environment::new())
}

pub(crate) fn write_example(environment: Environment) -> Environment {
    let steps: [&[&str]; 14] = [
        &["init", "--name", "tensor"],
        &["hypothesis", "add", "the layout is wrong", "--id", "H1", "--confidence", "0.4"],
        &[
            "evidence", "add", "strides swap", "--hypothesis", "H1", "--strength", "0.8", "--id",
            "E1",
        ],
        &["belief", "add", "row major everywhere", "--id", "B1", "--hypothesis", "H1"],
        &["belief", "add", "kernels assume it", "--id", "B2", "--on", "B1"],
        &["gap", "add", "who sets strides?", "--id", "G1", "--criticality", "critical"],
        &["gap", "add", "which version?", "--id", "G2"],
        &["checkpoint", "create", "before the split", "--tags", "baseline,kept"],
        &["branch", "create", "alt"],
        &["branch", "switch", "alt"],
        &["hypothesis", "reject", "H1", "--reason", "the layout is fine"],
        &["branch", "switch", "main"],
        &["verification", "add", "unit tests", "--status", "failed", "--id", "v1"],
        &["note", "add", "日本語 wide\u{1b}[2J\ntext", "--id", "N1"],
    ];
    for step in steps {
        let output = environment.finished(&mut environment.command(step));
        assert_eq!(output.code, 0, "{step:?}: {output}");
    }
    environment
}
