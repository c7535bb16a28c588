//! A disk without any room left: reading goes on, refusals say what to do, and pruning makes room.

use crate::environment::{Environment, Output};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own, unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, loudly, where this is not allowed.
    fn tmpfs(test: &str, size: &str, place: PathBuf) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"]).arg(&place);
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        if !mounted {
            writeln!(std::io::stderr(), "SKIPPED {test}: cannot mount (needs root)").unwrap();
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

/// A transcript of long ago, such as does not compress, of about so many megabytes.
fn transcript(id: &str, megabytes: u64) -> String {
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
            "timestamp": "2026-01-01T00:00:00Z",
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

fn import(environment: &Environment, id: &str, megabytes: u64) {
    environment.write(&format!("project/{id}.jsonl"), &transcript(id, megabytes));
    environment.forge(["import", "claude-code", &format!("{id}.jsonl")]).success();
}

const NOW: [&str; 6] = ["checkpoint", "prune", "--transcripts", "1d", "--now", "--yes"];

#[test]
fn on_a_full_disk_all_is_read_and_pruning_makes_room_with_the_room_that_was_kept() {
    let environment = Environment::new();
    let store = environment.path("project/.forge");
    let Some(_mounted) = Mounted::tmpfs("prune on a full disk", "24m", store.clone()) else {
        return;
    };
    environment.forge(["init", "--name", "work"]).success();
    import(&environment, "long-ago", 16);
    environment.forge(["session", "use", "work"]).success();
    environment.forge(["note", "add", "the pool has 5 connections"]).success();
    environment.forge(["maintain"]).success();
    let reserve = store.join("reserve");
    assert!(reserve.metadata().unwrap().len() >= 256 << 10);

    // Without the room that is kept there is no way but to make some.
    fs::remove_file(&reserve).unwrap();
    fill(&store);
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
    let text = transcript("text", 1);
    let said = |refused: &Output| {
        assert_eq!(refused.code, 4, "{refused}");
        assert!(refused.stderr.contains("'forge checkpoint prune --now --yes'"), "{refused}");
    };
    environment.write("project/long.txt", &text);
    said(&environment.forge(["import", "claude-code", "long.txt"]));
    said(&environment.forge(NOW));
    environment.forge(["verify", "--read-data"]).success();

    // With it there is.
    empty(&store);
    environment.forge(["maintain"]).success();
    assert!(reserve.exists(), "it is kept again once there is room");
    fill(&store);
    environment.forge(NOW).success();
    let mut more = File::create(store.join("more")).unwrap();
    more.write_all(&vec![1; 6 << 20]).unwrap();
    environment.forge(["verify", "--read-data"]).success();
    environment.forge(["note", "add", "there is room"]).success();
}
