//! Stores: creation, status, sessions, maintenance, verification and repair.

use crate::environment::{Environment, mode};
use insta::assert_snapshot;

#[test]
fn a_second_init_does_not_change_an_existing_store() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["init"]), @r"
    Made the store $ROOT/project/.forge
    Next: forge hypothesis add 'what might explain the problem'
    ");
    assert_snapshot!(environment.forge(["init"]), @"There is a store already: $ROOT/project/.forge; nothing was changed");
    assert_eq!(mode(&environment.path("project/.forge")), 0o700);
    assert_eq!(environment.read("project/.forge/.gitignore"), "*\n");
    assert_snapshot!(environment.forge(["init", "--json", "--store", "../other", "--name", "one"]), @r#"{"schema":"forge.init/1","session":"one","encrypted":false}"#);
    assert_snapshot!(environment.forge(["init", "sub"]), @r"
    Made the store $ROOT/project/sub/.forge
    Commands there use it instead of the store above: $ROOT/project/.forge
    Next: forge hypothesis add 'what might explain the problem'
    ");
    assert!(environment.path("project/sub/.forge/FORMAT").exists());
    let beside = environment.forge(["init", "../beside"]).success();
    assert!(!beside.contains("above"), "{beside}");
}

#[test]
fn a_file_in_the_place_of_a_store_is_kept() {
    let environment = Environment::new();
    environment.write("project/.forge/mine", "text");
    assert_snapshot!(environment.forge(["init"]), @r"
    [stderr]
    error: $ROOT/project/.forge is not empty and is not a forge store: name another folder
    [exit 2]
    ");
    assert_eq!(environment.read("project/.forge/mine"), "text");
    environment.write("project/file", "text");
    let output = environment.forge(["init", "--store", "file"]);
    assert_ne!(output.code, 0, "{output}");
    assert_eq!(environment.read("project/file"), "text");
}

#[test]
fn a_dropped_session_is_in_no_list_until_it_is_restored() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "the work"]).success();
    environment.forge(["session", "new", "by mistake"]).success();
    environment.forge(["note", "add", "x"]).success();
    assert_snapshot!(environment.forge(["session", "drop", "by mistake"]), @r"
    Dropped session by mistake (current from now on: project)
    'forge session restore 'by mistake'' brings it back
    ");
    let names = || {
        let list = environment.forge(["session", "list", "--json"]).json();
        let sessions = list["sessions"].as_array().unwrap().iter();
        let named = sessions.map(|one| (one["name"].clone(), one["current"].clone()));
        named.collect::<Vec<_>>()
    };
    assert_eq!(names(), [("project".into(), true.into())]);
    let again = environment.forge(["session", "drop", "by mistake"]);
    assert_eq!(again.code, 3, "{again}");
    environment.forge(["note", "add", "more work"]).success();
    environment.forge(["session", "restore", "by mistake"]).success();
    assert_eq!(names(), [("project".into(), true.into()), ("by mistake".into(), false.into())]);
    let notes = environment.forge(["--session", "by mistake", "note", "list", "--json"]).json();
    assert_eq!(notes["notes"].as_array().unwrap().len(), 1, "{notes}");
}

/// Regression: the one that was dropped first never came back, because its name brought the other
/// one back.
#[test]
fn a_dropped_session_comes_back_by_its_id_if_another_one_had_its_name() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let drop_with_note = |text| {
        environment.forge(["note", "add", text]).success();
        let dropped = environment.finished_raw(["session", "drop", "project", "--json"]);
        let dropped: serde_json::Value = serde_json::from_str(&dropped).unwrap();
        dropped["id"].as_str().unwrap().to_owned()
    };
    let first = drop_with_note("first");
    drop_with_note("second");
    environment.forge(["session", "restore", "project"]).success();
    let note = || environment.forge(["note", "list", "--json"]).json()["notes"][0].clone();
    assert_eq!(note()["description"], "second");
    assert_snapshot!(environment.forge(["session", "restore", &first]), @r"
    [stderr]
    error: another session 'project' has replaced it since: drop that one first
    hint: then 'forge session restore <id1>' brings this one back
    [exit 4]
    ");
    environment.forge(["session", "drop", "project"]).success();
    environment.forge(["session", "restore", &first]).success();
    assert_eq!(note()["description"], "first");
}

#[test]
fn status_shows_store_session_and_branch() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["status"]), @r"
    Store $ROOT/project/.forge (0 sessions)
    No session has been begun yet.
    'forge session new NAME' or the first thing you record does.
    ");
    let empty = environment.forge(["status", "--json"]).json();
    assert_eq!((&empty["sessions"], &empty["session"]), (&0.into(), &serde_json::Value::Null));
    environment.forge(["note", "add", "x"]).success();
    environment.forge(["checkpoint", "create", "here", "--tags", "t"]).success();
    let text = environment.forge(["status"]).success();
    let without_size: Vec<&str> = text.lines().skip(1).collect();
    assert_snapshot!(without_size.join("\n"), @r"
    Session project on branch main, at #1
      begun: 2026-02-01 13:00:03 +01:00 (2 s ago)
      last event: 2026-02-01 13:00:04 +01:00 (1 s ago)
      claims: 1 (hypotheses, evidence, beliefs, gaps, notes)
      facts: 0 (commands, checks, edits, messages)
      checkpoints: 1
      checkpoint <id1> #2 here [t], 1 s ago
    'forge brief' shows what is known, 'forge log' what happened.
    ");
    let mut json = environment.forge(["status", "--json"]).json();
    assert!(json["tail_bytes"].take().as_u64().is_some_and(|bytes| bytes > 0));
    assert_snapshot!(json, @r#"{"branch":"main","head":1,"last_checkpoint":{"id":"<id1>","message":"here","sequence":2,"tags":["t"],"time":"2026-02-01T12:00:04Z","trigger":"manual"},"schema":"forge.status/1","session":"project","sessions":1,"summary":{"agent":null,"agent_session":null,"branch":"main","branches":1,"checkpoints":1,"claims":1,"current":true,"facts":0,"first_event":"2026-02-01T12:00:03Z","id":"<id2>","kind":"debug","last_checkpoint":"2026-02-01T12:00:04Z","last_event":"2026-02-01T12:00:04Z","last_sequence":2,"name":"project","schedule_seconds":null,"sources":[],"started_at":"2026-02-01T12:00:03Z"},"tail_bytes":null}"#);
}

/// A store of an agent framework or a workflow may have no debugging session at all.
#[test]
fn a_store_without_a_debugging_session_says_where_the_others_are() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["run", "start", "--run", "nightly"]).success();
    assert_snapshot!(environment.forge(["status"]), @r"
    Store $ROOT/project/.forge (1 session)
    No debugging session has been begun yet.
    'forge session list --all' lists the others, and '--session NAME' chooses one.
    ");
    assert_snapshot!(environment.forge(["session", "show"]), @r"
    [stderr]
    error: this store has no debugging session yet
    hint: 'forge session list --all' lists the others, and '--session NAME' chooses one
    [exit 3]
    ");
    // Regression: the list of all sessions did not say what they are.
    assert_snapshot!(environment.forge(["session", "list", "--all"]), @r"
    Session  Agent  Branch  Claims  Facts  Checkpoints  Last     Kind
    nightly  -      main         1      0            0  3 s ago  run
    ");
}

#[test]
fn sessions_are_created_listed_and_chosen() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["session", "list"]), @r"
    No session has been begun yet.
    The first thing you record begins one.
    ");
    assert_snapshot!(environment.forge(["session", "show"]), @r"
    [stderr]
    error: this store has no session yet
    hint: the first thing you record begins one; 'forge session new NAME' too
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["session", "new", "slow build", "--agent", "me"]), @"Began session slow build (current from now on)");
    assert_snapshot!(environment.forge(["session", "new", "second", "--json"]), @r#"{"schema":"forge.session.new/1","session":"second","name":"second","id":"<id1>","kind":"debug","current":true,"agent":null,"agent_session":null,"started_at":"2026-02-01T12:00:04Z","first_event":null,"last_event":null,"branch":"main","branches":1,"last_sequence":0,"checkpoints":0,"last_checkpoint":null,"claims":0,"facts":0,"schedule_seconds":null,"sources":[]}"#);
    environment.forge(["note", "add", "x", "--session", "slow build"]).success();
    assert_snapshot!(environment.forge(["session", "list"]), @r"
       Session     Agent  Branch  Claims  Facts  Checkpoints  Last
    *  slow build  me     main         1      0            0  1 s ago
       second      -      main         0      0            0  -
    ");
    assert_snapshot!(environment.forge(["session", "use", "second"]), @"Chose session second (current from now on)");
    environment.forge(["note", "add", "y", "--session", "slow build"]).success();
    assert_snapshot!(environment.forge(["session", "show"]), @r"
    second (<id1>, current)
      begun: 2026-02-01 13:00:04 +01:00 (5 s ago)
      branch: main
      claims: 0
      facts: 0
      checkpoints: 0
      hypotheses tested: 0
      verifications run: 0
      gaps filled: 0
      time in debugging: 0 s
    ");
    assert_snapshot!(environment.forge(["session", "show", "slow build", "--json"]), @r#"{"schema":"forge.session.show/1","session":"slow build","name":"slow build","id":"<id2>","kind":"debug","current":false,"agent":"me","agent_session":null,"started_at":"2026-02-01T12:00:03Z","first_event":"2026-02-01T12:00:05Z","last_event":"2026-02-01T12:00:08Z","branch":"main","branches":1,"last_sequence":2,"checkpoints":0,"last_checkpoint":null,"claims":2,"facts":0,"schedule_seconds":null,"sources":[],"metrics":{"checkpoints_created":0,"hypotheses_tested":0,"verifications_run":0,"gaps_filled":0,"time_in_debugging_seconds":3.0}}"#);
    assert_snapshot!(environment.forge(["session", "list", "--limit", "1", "--json"]), @r#"{"schema":"forge.session.list/1","sessions":[{"name":"slow build","id":"<id2>","kind":"debug","current":false,"agent":"me","agent_session":null,"started_at":"2026-02-01T12:00:03Z","first_event":"2026-02-01T12:00:05Z","last_event":"2026-02-01T12:00:08Z","branch":"main","branches":1,"last_sequence":2,"checkpoints":0,"last_checkpoint":null,"claims":2,"facts":0,"schedule_seconds":null,"sources":[]}],"more":1,"others":0}"#);
    assert_snapshot!(environment.forge(["session", "new", "third"]), @"Began session third (current from now on)");
    assert!(environment.forge(["status"]).success().contains("Session third"));
    assert_snapshot!(environment.forge(["session", "new", "third"]), @r"
    [stderr]
    error: there is a session 'third' already
    hint: use 'forge session use third' to continue it, or choose another name
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["session", "use", "nothing"]), @r"
    [stderr]
    error: there is no session 'nothing'
    hint: 'forge session list' names them, 'forge session new NAME' begins one
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["note", "add", "x", "--session", "nothing"]), @r"
    [stderr]
    error: there is no session 'nothing'
    hint: 'forge session list' names them, 'forge session new NAME' begins one
    [exit 3]
    ");
    let named = Environment::new().with("FORGE_SESSION", "mine");
    named.forge(["init", "--name", "mine"]).success();
    assert_snapshot!(named.forge(["session", "new", "other"]), @"Began session other (current from now on, but commands here use mine)");
    assert_snapshot!(named.forge(["session", "use", "mine"]), @"Chose session mine (current from now on)");
    assert_eq!(named.forge(["note", "add", "x", "--json"]).json()["session"], "mine");
}

#[test]
fn an_empty_list_of_sessions_counts_the_sessions_that_it_omits() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/history.jsonl", r#"{"role":"user","content":"hello"}"#);
    environment.forge(["thread", "append", "--thread", "t", "history.jsonl"]).success();
    assert_snapshot!(environment.forge(["session", "list"]), @r"
    No session of this kind has been begun yet.
    1 of other kinds with '--all'
    ");
    environment.forge(["note", "add", "x"]).success();
    assert_snapshot!(environment.forge(["session", "list", "--limit", "0"]), @r"
    1 more with a greater '--limit'
    1 of other kinds with '--all'
    ");
}

#[test]
fn the_schedule_of_the_settings_applies_to_new_sessions() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["config", "set", "schedule.every", "10m"]).success();
    environment.forge(["note", "add", "x"]).success();
    let schedule = environment.forge(["checkpoint", "schedule", "--json"]).json();
    assert_eq!(schedule["every_seconds"], 600);
}

#[test]
fn maintain_brings_the_index_up_to_date_and_nothing_changes() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "x".repeat(5000).as_str()]).success();
    let report = environment.forge(["maintain", "--json"]).json();
    assert_eq!(report["schema"], "forge.maintain/1");
    assert_eq!(report["applied"], true);
    assert!(report["tail_bytes"].as_u64() < report["tail_bytes_before"].as_u64());
    let again = environment.forge(["maintain", "--json"]).json();
    assert_eq!((&again["applied"], &again["compacted"]), (&false.into(), &true.into()));
    let status = environment.forge(["status", "--json"]).json();
    assert_eq!((&status["head"], &status["summary"]["claims"]), (&1.into(), &1.into()));
    assert_eq!(environment.forge(["note", "add", "y", "--json"]).json()["id"], "N2");
}

/// Regression: of a store whose revisions are not in the index yet, `forge rebuild` said that it had
/// rebuilt 0 rows.
#[test]
fn a_rebuild_without_an_index_reports_that_there_is_nothing_to_rebuild() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    let message = environment.forge(["rebuild"]).success();
    assert_eq!(message, "The index has no revision yet: nothing had to be rebuilt.\n");
    assert_eq!(environment.forge(["note", "list", "--json"]).json()["notes"][0]["id"], "N1");
}

/// Regression: the copy was made inside the store.
#[test]
fn a_backup_into_the_store_itself_is_refused() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    assert_snapshot!(environment.forge(["backup", ".forge/copy"]), @r"
    [stderr]
    error: $ROOT/project/.forge/copy is inside the store: name a folder outside it for the copy
    [exit 2]
    ");
    assert!(!environment.path("project/.forge/copy").exists());
    assert_eq!(environment.forge(["backup", "../project/.forge/a/b"]).code, 2);
    assert_eq!(environment.forge(["backup", ".forge-copy"]).code, 0);
}

#[test]
fn verify_rebuild_and_repair_report_damage_and_losses() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for text in ["one", "two", "three"] {
        environment.forge(["note", "add", text]).success();
    }
    environment.forge(["maintain"]).success();
    environment.forge(["note", "add", "four"]).success();
    let clean = environment.forge(["verify", "--read-data", "--json"]);
    assert_eq!((clean.code, &clean.json()["outcome"]), (0, &"clean".into()));
    let rebuilt = environment.forge(["rebuild", "--json"]).json();
    assert_eq!(rebuilt["revisions"], 3);
    assert_eq!(environment.forge(["verify"]).code, 0);

    // One wrong bit in the journal is corrected, because a hash shows the original.
    let journal = environment.path("project/.forge/journal");
    let mut entry = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let segment = entry.find(|path| path.extension().is_some_and(|one| one == "log"));
    let segment = segment.unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 4;
    std::fs::write(&segment, &bytes).unwrap();
    let document = |stdout: &str| serde_json::from_str::<serde_json::Value>(stdout).unwrap();
    let damaged = environment.forge(["verify", "--json"]);
    assert_eq!((damaged.code, &document(&damaged.stdout)["outcome"]), (1, &"repairable".into()));
    let repaired = environment.forge(["repair", "../repaired", "--json"]);
    assert_eq!((repaired.code, &repaired.json()["mended"]), (0, &1.into()));
    let store = environment.path("repaired");
    let store = store.to_str().unwrap();
    let status = environment.forge(["status", "--store", store, "--json"]).json();
    assert_eq!(status["summary"]["claims"], 4);

    // Many wrong bits cannot be corrected: the loss is reported, and the rest is saved.
    bytes[last - 60..].fill(0);
    std::fs::write(&segment, &bytes).unwrap();
    let damaged = environment.forge(["verify"]);
    assert_eq!(damaged.code, 2, "{damaged}");
    assert!(damaged.stdout.contains("bytes of the journal"), "{damaged}");
    let repaired = environment.forge(["repair", "../again", "--json"]);
    assert_eq!((repaired.code, &document(&repaired.stdout)["revisions"]), (2, &3.into()));
    let store = environment.path("again");
    let store = store.to_str().unwrap();
    let status = environment.forge(["status", "--store", store, "--json"]).json();
    assert_eq!(status["summary"]["claims"], 3);
    // Regression: 'verify' said nothing of what the repair had listed if it was no revision.
    let verified = environment.forge(["verify", "--store", store, "--json"]).json();
    assert!(status["lost_in_repair"].as_u64() >= Some(1), "{status}");
    assert_eq!(verified["lost_in_repair"], status["lost_in_repair"]);
    let verified = environment.forge(["verify", "--store", store]).success();
    assert!(verified.contains(" named by an earlier repair.\nClean.\n"), "{verified}");
    // The damaged store is unchanged, and nothing is written to it.
    assert_eq!(std::fs::read(&segment).unwrap(), bytes);
    assert_eq!(environment.forge(["repair", "../again"]).code, 2);
}
