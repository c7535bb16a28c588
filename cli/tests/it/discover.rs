//! The transcripts of Claude Code that are found for a directory.

use crate::environment::Environment;

/// Writes the transcript of a session that began in this directory, into a folder with this name.
fn put(place: &Environment, folder: &str, session: &str, directory: &str) {
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"u-{session}\",\"sessionId\":\"{session}\",\"cwd\":\"{directory}\",\
         \"timestamp\":\"2026-01-28T10:00:00Z\",\"message\":{{\"content\":\"hello from {session}\"}}}}\n"
    );
    place.write(&format!("home/.claude/projects/{folder}/{session}.jsonl"), &line);
}

fn found(place: &Environment, from: &str) -> Vec<String> {
    let report = place.forge_in(from, ["import", "claude-code", "--dry-run", "--json"]).json();
    let files = report["files"].as_array().unwrap().iter();
    let mut sessions: Vec<String> =
        files.map(|file| file["agent_session"].as_str().unwrap().to_owned()).collect();
    sessions.sort();
    sessions
}

#[test]
fn sessions_of_worktrees_and_subdirectories_are_found_and_no_others() {
    let place = Environment::new();
    let project = place.path("project").canonicalize().unwrap();
    let shown = project.display().to_string();
    let name: String =
        shown.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // A linked worktree elsewhere, as git creates it.
    let worktree = place.path("elsewhere").join("fix");
    place.write("project/.git/worktrees/fix/commondir", "../..\n");
    place.write("project/.git/worktrees/fix/gitdir", &format!("{}/.git\n", worktree.display()));
    place.write("elsewhere/fix/.git", &format!("gitdir: {shown}/.git/worktrees/fix\n"));
    place.make_directory("project/sub/deep");
    place.make_directory("project/other/.forge");
    assert_eq!(place.forge(["init", "-q"]).code, 0);
    let fix = worktree.display().to_string();
    let of_fix: String =
        fix.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    put(&place, &name, "s1", &shown);
    put(&place, &of_fix, "s2", &fix);
    put(&place, &format!("{name}-sub-deep"), "s3", &format!("{shown}/sub/deep"));
    // Other directories with similar names, and a subdirectory with its own store.
    put(&place, &name, "s4", &format!("{shown}-"));
    put(&place, &format!("{name}-2"), "s5", &format!("{shown}-2"));
    put(&place, &format!("{name}-other"), "s6", &format!("{shown}/other"));
    for from in ["project", "elsewhere/fix"] {
        assert_eq!(found(&place, from), ["s1", "s2", "s3"], "{from}");
    }
}
