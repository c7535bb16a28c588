//! A test that cannot run here passes, and the harness hides its output: `scripts/test` prints the
//! skips at its end.

use forge_testkit::skip::skipped;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SKIPS: &str = "FORGE_TEST_SKIPS";

/// Not a test: the body of the test that is skipped.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    if std::env::var_os(SKIPS).is_some() {
        skipped("a test", "there is no moon");
        skipped("a test", "there is no moon");
    }
}

/// The last lines of `scripts/test`, run with a cargo that has nextest or not, and with one test
/// that is skipped or not.
fn said_last(nextest: bool, skips: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let cargo = folder.path().join("cargo");
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in\n\
         *--version*) exit {} ;;\n\
         *--doc*) exit 0 ;;\n\
         esac\n\
         '{}' skip::child --exact --ignored --test-threads=2 >/dev/null 2>&1\n\
         echo 'test result: ok. 1 passed; 0 failed'\n\
         echo 'Summary 1 test run: 1 passed, 0 skipped'\n",
        i32::from(!nextest),
        std::env::current_exe().unwrap().display(),
    );
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut test = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/test"));
    test.arg("--rust");
    test.env("PATH", format!("{}:{path}", folder.path().display()));
    // The variables of the run that this test is a part of.
    test.env_remove(forge_testkit::skip::FILE);
    if skips {
        test.env(SKIPS, "");
    }
    let output = test.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text.rsplit_once("\n\n").unwrap().1.to_owned()
}

#[test]
fn skipped_tests_are_listed_at_the_end_with_their_reasons() {
    for nextest in [true, false] {
        assert_eq!(said_last(nextest, false), "forge: 1 passed, 0 failed, 0 skipped\n");
        let wanted = "Skipped: 1, counted as passed:\n  skip::child: there is no moon\n\
                      forge: 1 passed, 0 failed, 0 skipped\n";
        assert_eq!(said_last(nextest, true), wanted);
    }
}
