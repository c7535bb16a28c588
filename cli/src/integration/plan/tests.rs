use super::*;
use forge_store::shell::quoted;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A home directory with a project in it.
struct House {
    root: tempfile::TempDir,
    target: InstallTarget,
    receipts: ReceiptFolder,
}

impl House {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        let project = home.join("work/project");
        fs::create_dir_all(&project).unwrap();
        let text = home.to_str().unwrap().to_owned();
        let environment = crate::context::Environment::from([("HOME", text.as_str())]);
        let target = InstallTarget {
            config: home.join(".config"),
            claude: None,
            claude_version: None,
            codex: None,
            project,
            forge: format!("{text}/bin dir/forge"),
            word: "forge".to_owned(),
            home,
        };
        Self { root, target, receipts: ReceiptFolder::for_user(&environment).unwrap() }
    }

    fn plan(&self, agent: CodingAgent, scope: InstallScope) -> Result<InstallPlan, CommandError> {
        InstallPlan::make(agent, scope, &self.target, &self.receipts)
    }

    fn install(&self, agent: CodingAgent, scope: InstallScope) {
        self.plan(agent, scope).unwrap().install(&self.receipts).unwrap();
    }

    fn uninstall(&self, agent: CodingAgent, scope: InstallScope) -> usize {
        self.plan(agent, scope).unwrap().uninstall(&self.receipts).unwrap()
    }

    fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns every file and directory except the receipts, with permissions and content.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Option<String>)> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.target.home.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.starts_with(self.target.home.join(".local")) {
                    continue;
                }
                let about = fs::symlink_metadata(&path).unwrap();
                let text = about.is_file().then(|| fs::read_to_string(&path).unwrap());
                if about.is_dir() {
                    open.push(path.clone());
                }
                tree.insert(path, (about.permissions().mode(), text));
            }
        }
        tree
    }
}

fn every() -> impl Iterator<Item = (CodingAgent, InstallScope)> {
    CodingAgent::ALL.into_iter().flat_map(|agent| {
        InstallScope::ALL
            .into_iter()
            .filter(move |scope| agent.has_scope(*scope))
            .map(move |it| (agent, it))
    })
}

#[test]
fn without_settings_before_an_uninstall_leaves_no_file() {
    for (agent, scope) in every() {
        let house = House::new();
        let before = house.tree();
        house.install(agent, scope);
        let plan = house.plan(agent, scope).unwrap();
        assert!(plan.is_installed() && plan.left_out.is_empty(), "{agent:?} {scope:?}");
        for step in &plan.files {
            let mode = fs::metadata(&step.now.path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", step.file.display());
        }
        let there = house.tree();
        house.install(agent, scope);
        assert_eq!(house.tree(), there, "again is no change: {agent:?} {scope:?}");
        assert!(house.uninstall(agent, scope) > 0);
        assert_eq!(house.tree(), before, "{agent:?} {scope:?}");
        assert_eq!(house.uninstall(agent, scope), 0);
    }
}

#[test]
fn without_a_receipt_forges_entries_are_recognised_by_their_content() {
    for (agent, scope) in every() {
        let house = House::new();
        house.install(agent, scope);
        fs::remove_dir_all(house.target.home.join(".local")).unwrap();
        assert!(house.plan(agent, scope).unwrap().is_installed(), "{agent:?} {scope:?}");
        house.uninstall(agent, scope);
        let left: String = house.tree().into_values().filter_map(|(_, text)| text).collect();
        assert!(!left.contains("forge"), "{agent:?} {scope:?}: {left}");
    }
}

/// Regression: the rules named another path if the path of the binary contains a quote.
#[test]
fn codex_allows_the_binary_at_a_path_with_a_quote() {
    let mut house = House::new();
    house.target.forge = "/opt/the team's/forge".to_owned();
    house.target.word = quoted(&house.target.forge);
    house.install(CodingAgent::Codex, InstallScope::User);
    let rules = fs::read_to_string(house.target.home.join(".codex/rules/forge.rules")).unwrap();
    assert!(rules.contains(r#"prefix_rule(pattern=["/opt/the team's/forge", "#), "{rules}");
}

#[test]
fn an_uninstall_keeps_settings_that_were_added_after_the_install() {
    let house = House::new();
    let settings = house.target.project.join(".claude/settings.local.json");
    house.write(&settings, "{\n  // mine\n  \"model\": \"opus\"\n}\n");
    house.install(CodingAgent::Claude, InstallScope::Local);
    let with = fs::read_to_string(&settings).unwrap();
    let more = with.replacen("\"opus\",", "\"opus\",\n  \"x\": [1],", 1);
    assert_ne!(with, more);
    fs::write(&settings, more).unwrap();
    house.uninstall(CodingAgent::Claude, InstallScope::Local);
    let left = fs::read_to_string(&settings).unwrap();
    assert_eq!(left, "{\n  // mine\n  \"model\": \"opus\",\n  \"x\": [1]\n}\n");
}

#[test]
fn an_uninstall_from_rewritten_settings_removes_only_forges_entries() {
    let house = House::new();
    let settings = house.target.project.join(".claude/settings.local.json");
    let own = r#"{"permissions":{"allow":["Bash(ls)"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}"#;
    house.write(&settings, own);
    house.install(CodingAgent::Claude, InstallScope::Local);
    let values = json::values(&fs::read_to_string(&settings).unwrap()).unwrap();
    fs::write(&settings, serde_json::to_string_pretty(&values).unwrap()).unwrap();
    house.uninstall(CodingAgent::Claude, InstallScope::Local);
    let left = json::values(&fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(left, json::values(own).unwrap());
}

/// Clients rewrite their settings, with other formatting and more entries.
#[test]
fn rewritten_settings_keep_lists_that_were_empty_before_and_new_entries() {
    for (agent, scope) in every() {
        let house = House::new();
        let own = r#"{"a":{},"permissions":{"allow":[],"deny":[]},"permission":{"bash":{}},"hooks":{"Stop":[]},"mcpServers":{},"mcp":{},"tools":{"allowed":[]}}"#;
        let files: Vec<PathBuf> =
            agent.wanted_changes(scope, &house.target).into_iter().map(|it| it.file).collect();
        let is_json = |file: &&PathBuf| file.extension().is_some_and(|it| it == "json");
        for file in files.iter().filter(is_json) {
            house.write(file, own);
        }
        house.install(agent, scope);
        for file in files.iter().filter(is_json) {
            let mut values = json::values(&fs::read_to_string(file).unwrap()).unwrap();
            values["added"] = vec!["since"].into();
            fs::write(file, serde_json::to_string_pretty(&values).unwrap()).unwrap();
        }
        house.uninstall(agent, scope);
        for file in files.iter().filter(is_json) {
            let mut values = json::values(own).unwrap();
            values["added"] = vec!["since"].into();
            let left = json::values(&fs::read_to_string(file).unwrap()).unwrap();
            assert_eq!(left, values, "{agent:?} {scope:?} {}", file.display());
        }
    }
}

/// An installation replaces what earlier versions of forge wrote, and keeps the entries of a
/// person.
#[test]
fn content_of_an_earlier_forge_is_found_and_replaced() {
    let house = House::new();
    let faults = |agent, scope| -> Vec<String> {
        let found = detect::find_parts(agent, scope, &house.target).into_iter();
        found.flat_map(|it| it.faults).map(|it| it.what).collect()
    };
    let hook = |agent: &str, event: &str| {
        format!(
            r#""{event}":[{{"hooks":[{{"type":"command","command":"/old/forge hook {agent} {event}"}}]}}]"#
        )
    };
    let settings = house.target.home.join(".gemini/settings.json");
    let hooks = [hook("gemini", "PreCompress"), hook("gemini", "SessionStart")].join(",");
    house.write(
        &settings,
        &format!(
            r#"{{"hooks":{{{hooks}}},"tools":{{"allowed":["run_shell_command(forge status)","run_shell_command(ls)"]}}}}"#
        ),
    );
    let problems = faults(CodingAgent::Gemini, InstallScope::User);
    assert!(
        problems.iter().any(|it| it.contains("refuse every other shell command")),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|it| it == "these events call forge for nothing: PreCompress"),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|it| it.starts_with("these events do not call forge: BeforeAgent")),
        "{problems:?}"
    );
    house.install(CodingAgent::Gemini, InstallScope::User);
    assert_eq!(faults(CodingAgent::Gemini, InstallScope::User), <Vec<String>>::new());
    let values = json::values(&fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(values["tools"]["allowed"], serde_json::json!(["run_shell_command(ls)"]));
    assert!(values["hooks"].get("PreCompress").is_none());

    let settings = house.target.home.join(".claude/settings.json");
    let rules: Vec<String> = crate::integration::permission_rules::ALLOWED
        .iter()
        .map(|it| format!("\"Bash(forge {it} *)\""))
        .collect();
    let hooks = hook("claude", "SessionStart");
    let rules = rules.join(",");
    house.write(
        &settings,
        &format!(r#"{{"hooks":{{{hooks}}},"permissions":{{"allow":["Bash(ls)",{rules}]}}}}"#),
    );
    let problems = faults(CodingAgent::Claude, InstallScope::User);
    assert!(problems.iter().any(|it| it.contains("StopFailure")), "{problems:?}");
    assert!(
        problems.iter().any(|it| it.contains("permission rules are of an earlier forge")),
        "{problems:?}"
    );
    house.install(CodingAgent::Claude, InstallScope::User);
    assert_eq!(faults(CodingAgent::Claude, InstallScope::User), <Vec<String>>::new());
    let values = json::values(&fs::read_to_string(&settings).unwrap()).unwrap();
    let allowed = values["permissions"]["allow"].as_array().unwrap();
    assert!(allowed.len() < 60 && allowed[0] == "Bash(ls)", "{allowed:?}");
    assert!(!allowed.contains(&"Bash(forge hypothesis add *)".into()));

    let plugin = house.target.config.join("opencode/plugins/forge.js");
    house.write(
        &plugin,
        &format!("// {OWN_MARK}: passes events on\nconst FORGE = \"/old/forge\"\n"),
    );
    let problems = faults(CodingAgent::OpenCode, InstallScope::User);
    assert!(problems[0].starts_with("the plugin is of an earlier forge"), "{problems:?}");
    house.install(CodingAgent::OpenCode, InstallScope::User);
    assert_eq!(faults(CodingAgent::OpenCode, InstallScope::User), <Vec<String>>::new());
}

#[test]
fn an_older_claude_code_gets_hooks_only_for_events_that_it_knows() {
    let mut house = House::new();
    for (version, young) in [([2, 0, 64], false), ([2, 1, 101], true)] {
        house.target.claude_version = Some(version);
        let wanted = CodingAgent::Claude.wanted_changes(InstallScope::User, &house.target);
        let WantedContent::Json(edits) = &wanted[0].form else { unreachable!("hooks are in JSON") };
        let names = |edit: &json::JsonEdit| match edit {
            json::JsonEdit::Element { path, .. } => path.last().cloned(),
            json::JsonEdit::Member { .. } => None,
        };
        let events: Vec<String> = edits.iter().filter_map(names).collect();
        assert!(events.contains(&"PreCompact".to_owned()));
        assert_eq!(events.contains(&"StopFailure".to_owned()), young, "{events:?}");
        assert_eq!(events.contains(&"PostCompact".to_owned()), young, "{events:?}");
    }
}

#[test]
fn the_server_of_another_project_is_not_touched() {
    let house = House::new();
    let notes = house.target.home.join(".claude.json");
    let other = r#"{"projects": {"/other": {"mcpServers": {"forge": {"command": "/usr/bin/forge", "args": ["mcp"]}}}}}"#;
    house.write(&notes, other);
    house.install(CodingAgent::Claude, InstallScope::Local);
    fs::remove_dir_all(house.target.home.join(".local")).unwrap();
    house.uninstall(CodingAgent::Claude, InstallScope::Local);
    let left = json::values(&fs::read_to_string(&notes).unwrap()).unwrap();
    assert_eq!(left, json::values(other).unwrap());
}

#[test]
fn a_page_that_two_agents_read_keeps_its_section_until_both_are_uninstalled() {
    let house = House::new();
    let before = house.tree();
    let page = house.target.project.join("AGENTS.md");
    for (first, second) in
        [(CodingAgent::Codex, CodingAgent::OpenCode), (CodingAgent::OpenCode, CodingAgent::Codex)]
    {
        house.install(CodingAgent::Codex, InstallScope::Project);
        house.install(CodingAgent::OpenCode, InstallScope::Project);
        house.uninstall(first, InstallScope::Project);
        assert!(section::find_section(&fs::read_to_string(&page).unwrap()).is_some());
        house.uninstall(second, InstallScope::Project);
        assert_eq!(house.tree(), before);
    }
}

#[test]
fn installing_again_replaces_the_path_of_an_old_binary() {
    let mut house = House::new();
    let before = house.tree();
    house.install(CodingAgent::Claude, InstallScope::Local);
    house.target.forge = "/opt/new/forge".to_owned();
    assert!(!house.plan(CodingAgent::Claude, InstallScope::Local).unwrap().is_installed());
    house.install(CodingAgent::Claude, InstallScope::Local);
    let all: String = house.tree().into_values().filter_map(|(_, text)| text).collect();
    assert!(all.contains("/opt/new/forge") && !all.contains("bin dir"));
    house.uninstall(CodingAgent::Claude, InstallScope::Local);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_file_that_cannot_be_parsed_stops_the_installation_and_nothing_is_changed() {
    for (agent, scope) in every() {
        let house = House::new();
        let shared = |it: &WantedChange| !matches!(it.form, WantedContent::Whole(_));
        let wanted = agent.wanted_changes(scope, &house.target).into_iter().filter(shared);
        let files: Vec<PathBuf> = wanted.map(|it| it.file).collect();
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|it| it == "json" || it == "toml"))
        {
            house.write(file, "{ \"a\": ");
            let before = house.tree();
            let error = house.plan(agent, scope).unwrap_err();
            assert!(error.causes()[0].starts_with("it is not "), "{error:?}");
            assert!(error.hints()[0].starts_with("nothing was changed"));
            assert_eq!(house.tree(), before);
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn links_are_followed_at_home_and_refused_out_of_the_project() {
    let house = House::new();
    let own = house.target.home.join(".claude");
    let kept = house.target.home.join("dotfiles/claude.json");
    house.write(&kept, "{}");
    fs::create_dir(&own).unwrap();
    symlink(&kept, own.join("settings.json")).unwrap();
    house.install(CodingAgent::Claude, InstallScope::User);
    assert!(fs::symlink_metadata(own.join("settings.json")).unwrap().is_symlink());
    assert!(fs::read_to_string(&kept).unwrap().contains("PreCompact"));
    house.uninstall(CodingAgent::Claude, InstallScope::User);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{}");
    // A project from someone else must not decide which of the user's files are written.
    let elsewhere = house.root.path().join("elsewhere.md");
    fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, house.target.project.join("CLAUDE.md")).unwrap();
    let error = house.plan(CodingAgent::Claude, InstallScope::Project).unwrap_err();
    assert!(error.message().contains("leads to"), "{error}");
    fs::remove_file(house.target.project.join("CLAUDE.md")).unwrap();
    symlink("/nowhere/at/all", house.target.project.join("CLAUDE.md")).unwrap();
    let error = house.plan(CodingAgent::Claude, InstallScope::Project).unwrap_err();
    assert!(error.message().contains("a file that is not there"), "{error}");
    symlink(&own, house.target.project.join(".claude")).unwrap();
    let error = house.plan(CodingAgent::Claude, InstallScope::Local).unwrap_err();
    assert!(error.message().contains("out of"), "{error}");
}

/// Regression: a link to a directory above the project was followed if the file did not exist yet.
#[test]
fn a_link_to_a_directory_above_the_project_is_refused() {
    let house = House::new();
    let link = house.target.project.join(".claude");
    for target in [Path::new(".."), house.target.home.as_path()] {
        symlink(target, &link).unwrap();
        for scope in [InstallScope::Local, InstallScope::Project] {
            let error = house.plan(CodingAgent::Claude, scope).unwrap_err();
            assert!(error.message().contains("out of"), "{error}");
        }
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn a_file_keeps_its_permissions_and_a_plugin_of_another_program_its_content() {
    let house = House::new();
    let page = house.target.project.join("CLAUDE.md");
    house.write(&page, "# Rules\n");
    fs::set_permissions(&page, fs::Permissions::from_mode(0o644)).unwrap();
    house.install(CodingAgent::Claude, InstallScope::Project);
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o644);
    let plugin = house.target.project.join(".opencode/plugins/forge.js");
    house.write(&plugin, "export const Smithy = 1\n");
    let error = house.plan(CodingAgent::OpenCode, InstallScope::Project).unwrap_err();
    assert!(error.causes()[0].contains("another program"), "{error:?}");
}

#[test]
fn a_server_of_another_program_with_that_name_is_not_replaced() {
    let house = House::new();
    let servers = house.target.project.join(".mcp.json");
    house.write(&servers, r#"{"mcpServers": {"forge": {"command": "smithy"}}}"#);
    let error = house.plan(CodingAgent::Claude, InstallScope::Project).unwrap_err();
    assert_eq!(error.causes(), ["'mcpServers.forge' in it belongs to another program"]);
}

#[test]
fn a_server_whose_program_only_begins_like_forge_is_not_removed() {
    let house = House::new();
    let servers = house.target.project.join(".mcp.json");
    for (command, is_ours) in [
        ("/usr/bin/forgectl", false),
        ("forgery", false),
        ("/usr/bin/forge", true),
        ("/opt/forge-1.2", true),
        ("forge.exe", true),
    ] {
        let text = format!(
            r#"{{"mcpServers": {{"forge": {{"command": "{command}", "args": ["mcp"]}}}}}}"#
        );
        house.write(&servers, &text);
        if is_ours {
            house.uninstall(CodingAgent::Claude, InstallScope::Project);
        } else {
            let error = house.plan(CodingAgent::Claude, InstallScope::Project).unwrap_err();
            assert!(error.causes()[0].contains("another program"), "{command}: {error:?}");
        }
        let left = fs::read_to_string(&servers).unwrap_or_default();
        assert_eq!(left.contains(command), !is_ours, "{command}: {left}");
    }
}

#[test]
fn rules_that_cannot_be_added_are_left_out_and_all_else_is_done() {
    let house = House::new();
    let settings = house.target.project.join("opencode.jsonc");
    let own = "{ \"permission\": \"ask\" } // mine\n";
    house.write(&settings, own);
    let plan = house.plan(CodingAgent::OpenCode, InstallScope::Project).unwrap();
    assert_eq!(plan.left_out.len(), 1);
    plan.install(&house.receipts).unwrap();
    assert!(fs::read_to_string(&settings).unwrap().contains("\"mcp\""));
    house.uninstall(CodingAgent::OpenCode, InstallScope::Project);
    assert_eq!(fs::read_to_string(&settings).unwrap(), own);
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_others_as_they_were() {
    let house = House::new();
    let before = house.tree();
    let plan = house.plan(CodingAgent::Claude, InstallScope::Project).unwrap();
    // Another program creates the last file in the meantime.
    let last = house.target.project.join("CLAUDE.md");
    house.write(&last, "quick\n");
    let error = plan.install(&house.receipts).unwrap_err();
    assert!(error.message().ends_with("was changed by another program just now"), "{error}");
    fs::remove_file(&last).unwrap();
    assert_eq!(house.tree(), before);
}

/// Settings with any formatting, and a page.
fn settings() -> impl Strategy<Value = (String, String, String)> {
    let json = prop_oneof![
        Just("{}"),
        Just(""),
        Just("{\n\t\"hooks\": {},\n\t\"permissions\": {\"allow\": [], \"deny\": [\"x\"]}\n}"),
        Just("// top\n{ \"mcpServers\": { /* none */ }, \"hooks\": { \"Stop\": [ ] }, }\n"),
        Just(
            "{\"version\":1,\"hooks\":{\"preCompact\":[{\"command\":\"x\"},],},\"tools\":{\"allowed\":[\"a\",\n\"b\"]}}"
        ),
        Just(
            "\u{feff}{\r\n  \"mcp\": {\"other\": {}}, // é\r\n  \"permission\": {\"bash\": {\"*\": \"ask\"}}\r\n}\r\n"
        ),
    ];
    let toml = prop_oneof![
        Just(""),
        Just("model = \"x\""),
        Just("# a\n[mcp_servers.b]\ncommand = 'c'\n\n# end"),
        Just("[mcp_servers]\n[tui]\na = [1,\n2]\n"),
    ];
    let page = prop_oneof![Just(""), Just("# Mine"), Just("a\r\n\r\nb\r\n"), Just("\n\n")];
    (json.prop_map(str::to_owned), toml.prop_map(str::to_owned), page.prop_map(str::to_owned))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn install_then_uninstall_restores_every_byte(
        (json, toml, page) in settings(),
        which in 0_usize..11,
    ) {
        if let Some((agent, scope)) = every().nth(which) {
            let house = House::new();
            for wanted in agent.wanted_changes(scope, &house.target) {
                match (&wanted.form, wanted.file.extension().and_then(|it| it.to_str())) {
                    (WantedContent::Whole(_), _) => {}
                    (_, Some("json")) => house.write(&wanted.file, &json),
                    (_, Some("toml")) => house.write(&wanted.file, &toml),
                    _ => house.write(&wanted.file, &page),
                }
            }
            let before = house.tree();
            house.install(agent, scope);
            let after = house.tree();
            prop_assert_ne!(&after, &before);
            house.install(agent, scope);
            prop_assert_eq!(house.tree(), after);
            house.uninstall(agent, scope);
            prop_assert_eq!(house.tree(), before);
        }
    }
}
