//! `forge config` and the layers of settings.

use crate::environment::{Environment, mode};
use insta::assert_snapshot;

#[test]
fn config_list_shows_values_and_their_origins() {
    let environment = Environment::new().with("FORGE_LOCK_TIMEOUT", "0.5");
    environment.write("config/forge/config.toml", "pager = \"more\"\ncolor = \"never\"\n");
    environment.write("project/.forge/config.toml", "[schedule]\nevery = \"1h30m\"\n");
    assert_snapshot!(environment.forge(["config", "list", "--color", "auto"]).success(), @r"
    Setting                                     Value  From
    lock_timeout                                0.5    environment
    color                                       auto   flag
    pager                                       more   user
    redact.enabled                              true   default
    redact.allow                                -      default
    redact.variables                            -      default
    inference.enabled                           true   default
    schedule.every                              1h30m  project
    keep.last                                   -      default
    keep.within                                 -      default
    keep.days                                   -      default
    keep.hourly                                 -      default
    keep.daily                                  -      default
    keep.weekly                                 -      default
    keep.tags                                   -      default
    keep.revisions                              7d     default
    keep.sessions                               -      default
    keep.transcripts                            -      default
    keep.undo                                   14d    default
    prune.automatic                             false  default
    push.kinds                                  debug  default
    sync.hooks                                  true   default
    sync.wait                                   false  default
    auto_checkpoint.enabled                     true   default
    auto_checkpoint.significant_time            5m     default
    auto_checkpoint.hypothesis_status_change    true   default
    auto_checkpoint.new_contradiction_detected  true   default
    auto_checkpoint.verification_complete       true   default
    auto_checkpoint.branch_switch               true   default
    auto_checkpoint.gap_filled                  true   default
    auto_checkpoint.code_modified               true   default
    auto_checkpoint.significant_time_passed     true   default
    auto_checkpoint.context_compaction_warning  true   default
    ");
}

#[test]
fn config_get_and_set_print_json() {
    let environment = Environment::new();
    environment.make_directory("project/.forge");
    let set = environment.forge(["config", "set", "keep.last", "100", "--json"]).success();
    assert_snapshot!(set, @r#"{"schema":"forge.config.set/1","key":"keep.last","value":"100","to":"project","overridden":null}"#);
    let get = environment.forge(["--json", "config", "get", "keep.last"]).success();
    assert_snapshot!(get, @r#"{"schema":"forge.config.get/1","key":"keep.last","value":"100","from":"project"}"#);
    let get = environment.forge(["config", "get", "schedule.every", "--json"]).json();
    assert_eq!(get["value"], serde_json::Value::Null);
    // Regression: an empty line was all that was printed.
    assert_snapshot!(environment.forge(["config", "get", "schedule.every"]), @r"
    [stderr]
    'schedule.every' is not set.
    ");
    let list = environment.forge(["config", "list", "--json"]).json();
    assert_eq!(list["schema"], "forge.config.list/1");
    assert_eq!(list["settings"][0]["key"], "lock_timeout");
}

#[test]
fn set_keeps_comments_and_makes_private_files() {
    let environment = Environment::new();
    environment.write("project/.forge/config.toml", "# ours\ncolor = 'never' # dull\n");
    let output = environment.forge(["config", "set", "color", "auto"]).success();
    assert_eq!(output, "Set color to auto for this project\n");
    let text = environment.read("project/.forge/config.toml");
    assert_eq!(text, "# ours\ncolor = \"auto\" # dull\n");
    let output = environment.forge(["config", "set", "--user", "color", "never"]);
    assert_snapshot!(output, @r"
    Set color to never for you
    It has no effect here: the project's file sets another value.
    ");
    assert_eq!(environment.read("config/forge/config.toml"), "color = \"never\"\n");
    assert_eq!(mode(&environment.path("config/forge")), 0o700);
    assert_eq!(mode(&environment.path("config/forge/config.toml")), 0o600);
    assert_eq!(mode(&environment.path("project/.forge/config.toml")), 0o600);
}

#[test]
fn unset_removes_a_setting_and_keeps_the_rest() {
    let environment = Environment::new();
    let text = "# ours\ncolor = 'auto' # dull\nschedule.every = '1h'\n";
    environment.write("project/.forge/config.toml", text);
    environment.write("config/forge/config.toml", "color = \"never\"\n");
    assert_snapshot!(environment.forge(["config", "unset", "color", "--json"]).success(), @r#"{"schema":"forge.config.unset/1","unset_in":"project","key":"color","value":"never","from":"user"}"#);
    assert_snapshot!(environment.forge(["config", "unset", "schedule.every"]), @r"
    Unset schedule.every for this project
      it has no value now
    ");
    assert_eq!(environment.read("project/.forge/config.toml"), "# ours\n");
    assert_snapshot!(environment.forge(["config", "unset", "color", "--user"]), @r"
    Unset color for you
      it is auto now (default)
    ");
    assert_snapshot!(environment.forge(["config", "unset", "color"]), @r"
    [stderr]
    error: 'color' is not set in '$ROOT/project/.forge/config.toml'
    hint: 'forge config list' says where 'color' comes from
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["config", "unset", "colour"]), @r"
    [stderr]
    error: there is no setting 'colour'
    hint: did you mean 'color'?
    [exit 2]
    ");
}

#[test]
fn unknown_settings_are_refused_and_change_nothing() {
    let environment = Environment::new();
    environment.make_directory("project/.forge");
    assert_snapshot!(environment.forge(["config", "set", "lock_timout", "3"]), @r"
    [stderr]
    error: there is no setting 'lock_timout'
    hint: did you mean 'lock_timeout'?
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["config", "set", "lock_timeout", "-3"]), @r"
    [stderr]
    error: 'lock_timeout' must be a number of seconds, such as 5 or 0.5, not '-3'
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["config", "set", "pager", "more"]), @r"
    [stderr]
    error: a project may not set 'pager', as it runs a program
    hint: 'forge config set --user pager VALUE' sets it for you
    [exit 2]
    ");
    assert!(!environment.path("project/.forge/config.toml").exists());
    environment.write("project/.forge/config.toml", "[keep]\nlasst = 1\n");
    assert_snapshot!(environment.forge(["config", "list"]), @r"
    [stderr]
    error: '$ROOT/project/.forge/config.toml' cannot be used
    Caused by: there is no setting 'keep.lasst'
    hint: did you mean 'keep.last'?
    hint: correct the file, or move it away
    [exit 2]
    ");
}

#[test]
fn without_a_store_only_user_settings_can_be_set() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["config", "set", "color", "never"]), @r"
    [stderr]
    error: no store in '$ROOT/project' or any directory above it
    hint: 'forge init' makes one
    hint: '--store PATH' or FORGE_STORE names one elsewhere
    hint: '--user' changes your own file
    [exit 3]
    ");
}

#[test]
fn a_linked_worktree_has_the_settings_of_the_main_checkout() {
    let environment = Environment::new();
    environment.write("main/.git/worktrees/w/commondir", "../..\n");
    environment.write("main/.git/worktrees/w/gitdir", "../../../../w/.git\n");
    environment.write("w/.git", "gitdir: ../main/.git/worktrees/w\n");
    environment.write("main/.forge/config.toml", "lock_timeout = 3\n");
    environment.make_directory("w/src");
    let output = environment.forge_in("w/src", ["config", "get", "lock_timeout"]).success();
    assert_eq!(output, "3\n");
}

#[test]
fn a_named_store_has_priority_over_the_nearest_one() {
    let environment = Environment::new().with("FORGE_STORE", "../other/.forge");
    environment.write("project/.forge/config.toml", "lock_timeout = 1\n");
    environment.write("other/.forge/config.toml", "lock_timeout = 2\n");
    environment.write("third/.forge/config.toml", "lock_timeout = 3\n");
    assert_eq!(environment.forge(["config", "get", "lock_timeout"]).success(), "2\n");
    let output =
        environment.forge(["config", "get", "lock_timeout", "--store", "../third"]).success();
    assert_eq!(output, "3\n");
}

/// Regression: clap refused an empty FORGE_STORE, FORGE_THEME and FORGE_NOTIFY.
#[test]
fn an_empty_variable_counts_as_not_set() {
    for name in ["STORE", "SESSION", "THEME", "NOTIFY", "COLOR", "PAGER", "LOCK_TIMEOUT"] {
        let environment = Environment::new().with(&format!("FORGE_{name}"), "");
        environment.forge(["init", "--name", "s"]).success();
        environment.forge(["note", "one"]).success();
        environment.forge(["brief"]).success();
        let browser = environment.forge(["tui"]);
        assert!(browser.stderr.contains("terminal"), "{name}: {browser}");
    }
}

/// Regression: the note that a store is the user's own contained its path, with a token in it.
#[test]
fn a_token_in_the_path_of_a_store_is_not_written_to_any_file() {
    let environment = Environment::new();
    let token = format!("ghp_{}", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
    let store = format!("{token}/store");
    environment.forge(["--store", &store, "init", "--name", "s"]).success();
    environment.forge(["--store", &store, "config", "set", "redact.enabled", "false"]).success();
    let (mut folders, mut files) = (vec![environment.path("")], 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                files += 1;
                let is_there = bytes.windows(token.len()).any(|part| part == token.as_bytes());
                assert!(!is_there, "{}", path.display());
            }
        }
    }
    assert!(files > 5, "{files}");
}
