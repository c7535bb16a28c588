//! A program outside of this repository: `tests/outside` is built against the library alone, and run.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn an_outside_program_is_built_on_the_public_names_and_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Built in the folder that cargo keeps for tests: next to the sources it would leave a lock file. The library's own
    // lock file names versions that are here already.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = scratch.join("outside");
    fs::create_dir_all(program.join("src")).unwrap();
    let manifest = fs::read_to_string(root.join("tests/outside/Cargo.toml")).unwrap();
    let path = format!("path = {:?}", root.display().to_string());
    let manifest = manifest.replace("path = \"../..\"", &path);
    assert!(manifest.contains(&path), "{manifest}");
    // With the same profile, so that what the library needs is not compiled again.
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let profile = workspace.find("[profile.release]").map_or("", |at| &workspace[at..]);
    // The library is compiled once more, without the feature `internals`: not optimised, it is done in seconds.
    let quick = "[profile.release.package.forge-store]\nopt-level = 0\ndebug = false";
    fs::write(program.join("Cargo.toml"), format!("{manifest}\n{profile}\n{quick}\n")).unwrap();
    fs::copy(root.join("Cargo.lock"), program.join("Cargo.lock")).unwrap();
    let main = "src/main.rs";
    fs::copy(root.join("tests/outside").join(main), program.join(main)).unwrap();

    let store = tempfile::tempdir().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--manifest-path"]).arg(program.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(scratch.parent().expect("it is in the folder for results"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    // From the root, where cargo finds the settings of this repository.
    let done = cargo.arg("--").arg(store.path().join("store")).current_dir(root).output().unwrap();
    let (stdout, problem) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{stdout}{problem}");
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(
        lines.get(..8),
        Some(
            &[
                "revision Some(3)",
                "0 and 1 pieces of evidence",
                "1 commands",
                "Some(0.5) before",
                "more now: true",
                "confidence of H1 0.50 → 0.85, 1 piece of evidence added, 1 belief added, 1 note added; at the same time",
                "unknown: true",
                "sound: true",
            ][..]
        ),
        "{stdout}"
    );
}
