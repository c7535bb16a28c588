//! A disk without free space: reading works, errors give advice, and pruning frees space.

use crate::environment::Environment;
use forge_testkit::skip::skipped;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A private file system, which is unmounted when it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system of this size. Reports a skip and returns `None` if this is not allowed.
    fn tmpfs(test: &str, size: &str, place: PathBuf) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"]).arg(&place);
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        if !mounted {
            skipped(test, "cannot mount (needs root)");
        }
        mounted.then_some(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{}", self.0.display());
    }
}

/// Returns a transcript of one day, of about this many megabytes that hardly compress.
fn transcript(id: &str, megabytes: u64, day: &str) -> String {
    let line = |number: u64| {
        let noise: String = (0..60)
            .map(|part| {
                blake3::hash(format!("{id} {number} {part}").as_bytes()).to_hex().to_string()
            })
            .collect();
        let line = json!({
            "type": "user",
            "uuid": format!("{id} {number}"),
            "sessionId": id,
            "timestamp": format!("{day}T20:00:00Z"),
            "message": { "content": noise },
        });
        format!("{line}\n")
    };
    (0..megabytes * 256).map(line).collect()
}

fn fill(store: &Path) {
    let mut ballast = File::create(store.join("ballast")).unwrap();
    while ballast.write_all(&[1; 4096]).is_ok() {}
}

fn empty(store: &Path) {
    fs::remove_file(store.join("ballast")).unwrap();
}

fn import(environment: &Environment, id: &str, megabytes: u64, day: &str) {
    environment.write(&format!("project/{id}.jsonl"), &transcript(id, megabytes, day));
    environment.forge(["import", "claude-code", &format!("{id}.jsonl")]).success();
}

const NOW: [&str; 6] = ["checkpoint", "prune", "--transcripts", "1d", "--now", "--yes"];

/// Makes a store on a full disk of 24 MB. Its index takes 10 MB, and pruning can free 6 MB.
fn full(test: &str, reserve: bool) -> Option<(Environment, Mounted)> {
    let environment = Environment::new();
    let store = environment.path("project/.forge");
    let mounted = Mounted::tmpfs(test, "24m", store.clone())?;
    environment.forge(["init", "--name", "work"]).success();
    import(&environment, "long-ago", 12, "2026-01-01");
    import(&environment, "lately", 6, "2026-01-31");
    environment.forge(["session", "use", "work"]).success();
    environment.forge(["note", "add", "the pool has 5 connections"]).success();
    environment.forge(["maintain"]).success();
    let kept = store.join("reserve").metadata().unwrap().len();
    assert!((256 << 10..512 << 10).contains(&kept), "{kept}");
    if !reserve {
        fs::remove_file(store.join("reserve")).unwrap();
    }
    fill(&store);
    Some((environment, mounted))
}

#[test]
fn on_a_full_disk_without_a_reserve_reads_work_and_refused_writes_name_a_remedy() {
    let test = "a full disk without room that was kept";
    let Some((environment, mounted)) = full(test, false) else { return };
    environment.forge(["status"]).success();
    environment.forge(["log"]).success();
    let read = [
        ["note", "list"],
        ["session", "list"],
        ["checkpoint", "list"],
        ["search", "connections"],
        ["verify", "--read-data"],
    ];
    for command in read {
        environment.forge(command).success();
    }
    environment.write("project/more.jsonl", &transcript("more", 1, "2026-01-31"));
    let refused = environment.forge(["import", "claude-code", "more.jsonl"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("'forge checkpoint prune --now --yes'"), "{refused}");
    // Without a reserve, pruning cannot free space either.
    let refused = environment.forge(NOW);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("hint: pruning needs some room too"), "{refused}");
    assert!(!refused.stderr.contains("'forge checkpoint prune"), "{refused}");
    environment.forge(["verify", "--read-data"]).success();
    empty(&mounted.0);
    environment.forge(["maintain"]).success();
    assert!(mounted.0.join("reserve").exists(), "it is kept again once there is room");
    environment.forge(["verify", "--read-data"]).success();
}

/// The kept part of the index is ten times the reserve, so the index cannot be rewritten at once.
#[test]
fn on_a_full_disk_pruning_frees_space_with_the_help_of_the_reserve() {
    let Some((environment, mounted)) = full("prune on a full disk", true) else { return };
    environment.forge(NOW).success();
    let mut more = File::create(mounted.0.join("more")).unwrap();
    more.write_all(&vec![1; 4 << 20]).unwrap();
    assert!(mounted.0.join("reserve").exists());
    environment.forge(["verify", "--read-data"]).success();
    environment.forge(["note", "add", "there is room"]).success();
}
