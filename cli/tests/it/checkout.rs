//! Checkouts from other people: programs that their repository configures are not run.

use crate::environment::Environment;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A way to make git run a program: its name, the shell lines that set it up, and whether [`PLAIN`]
/// runs the program. `$M` is the program that writes a mark.
type Way = (&'static str, &'static str, bool);

const WAYS: [Way; 45] = [
    ("filter clean", "echo '*.rs filter=x' > .gitattributes; git config filter.x.clean $M", true),
    (
        "filter smudge",
        "echo '* filter=x' > .gitattributes; git add .; git commit -qm a; git config filter.x.smudge $M",
        true,
    ),
    (
        "filter process",
        "echo '*.rs filter=x' > .gitattributes; git config filter.x.process $M",
        true,
    ),
    (
        "required filter",
        "echo '*.rs filter=x' > .gitattributes; git config filter.x.clean $M; git config filter.x.required true",
        true,
    ),
    (
        "filter of a new file",
        "echo '* filter=x' > .gitattributes; git config filter.x.clean $M; echo n > new",
        true,
    ),
    (
        "filter of committed attributes",
        "echo '* filter=x' > .gitattributes; git add .gitattributes; git commit -qm a; git config filter.x.smudge $M; git config filter.x.clean $M",
        true,
    ),
    (
        "attributes in the index alone",
        "echo '* filter=x' > .gitattributes; git add .gitattributes; rm .gitattributes; git config filter.x.clean $M",
        true,
    ),
    (
        "attributes in info",
        "echo '* filter=x' > .git/info/attributes; git config filter.x.clean $M; git config filter.x.smudge $M",
        true,
    ),
    (
        "core.attributesFile",
        "echo '* filter=x' > $R/attributes; git config core.attributesFile $R/attributes; git config filter.x.clean $M",
        true,
    ),
    (
        "attr.tree",
        "echo '* filter=x' > .gitattributes; git add .gitattributes; git commit -qm a; git config attr.tree HEAD; git config filter.x.clean $M",
        true,
    ),
    (
        "include.path",
        "echo '* filter=x' > .gitattributes; printf '[filter \"x\"]\\nclean = %s\\n' $M > inc; git config include.path ../inc",
        true,
    ),
    (
        "includeIf gitdir",
        "echo '* filter=x' > .gitattributes; printf '[filter \"x\"]\\nclean = %s\\n' $M > inc; git config includeIf.gitdir:/.path $R/project/inc",
        true,
    ),
    (
        "includeIf onbranch",
        "echo '* filter=x' > .gitattributes; printf '[filter \"x\"]\\nclean = %s\\n' $M > inc; git config 'includeIf.onbranch:**.path' ../inc",
        true,
    ),
    (
        "worktree configuration",
        "echo '* filter=x' > .gitattributes; git config extensions.worktreeConfig true; git config --worktree filter.x.clean $M",
        true,
    ),
    (
        "a name with dots and spaces",
        "echo '* filter=a.b' > .gitattributes; git config 'filter.a.b.clean' $M",
        true,
    ),
    ("core.fsmonitor", "git config core.fsmonitor $M", true),
    (
        "core.fsmonitor by worktree configuration",
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $M",
        true,
    ),
    (
        "core.hooksPath",
        "mkdir h; for n in post-index-change post-checkout reference-transaction; do cp $M h/$n; done; git config core.hooksPath h",
        true,
    ),
    ("hook post-index-change", "cp $M .git/hooks/post-index-change", true),
    ("hook post-checkout", "cp $M .git/hooks/post-checkout", true),
    ("hook reference-transaction", "cp $M .git/hooks/reference-transaction", true),
    (
        "hook pre-auto-gc",
        "cp $M .git/hooks/pre-auto-gc; git config gc.auto 1; git config gc.autoPackLimit 1",
        false,
    ),
    (
        "hook fsmonitor-watchman",
        "cp $M .git/hooks/fsmonitor-watchman; git config core.fsmonitor .git/hooks/fsmonitor-watchman",
        true,
    ),
    ("diff.external", "git config diff.external $M", true),
    ("diff textconv", "echo '* diff=x' > .gitattributes; git config diff.x.textconv $M", true),
    ("diff command", "echo '* diff=x' > .gitattributes; git config diff.x.command $M", true),
    (
        "core.pager",
        "git config core.pager $M; git config pager.diff $M; git config pager.config $M",
        false,
    ),
    ("core.editor", "git config core.editor $M; git config sequence.editor $M", false),
    (
        "core.sshCommand",
        "git config core.sshCommand $M; git config remote.origin.url ssh://localhost/x",
        true,
    ),
    (
        "core.gitProxy",
        "git config core.gitProxy $M; git config remote.origin.url git://localhost/x",
        true,
    ),
    (
        "credential.helper",
        "git config credential.helper $M; git config remote.origin.url https://localhost:1/x",
        false,
    ),
    ("core.askPass", "git config core.askPass $M", false),
    (
        "gpg.program",
        "git config gpg.program $M; git config commit.gpgSign true; git config tag.gpgSign true; git config log.showSignature true",
        false,
    ),
    (
        "uploadpack.packObjectsHook",
        "git config uploadpack.packObjectsHook $M; git config remote.origin.url .",
        false,
    ),
    (
        "remote.uploadpack",
        "git config remote.origin.url $R/project; git config remote.origin.uploadpack $M",
        true,
    ),
    (
        "remote.vcs",
        "git config remote.origin.vcs ext; git config remote.origin.url \"$M %S\"; git config protocol.ext.allow always",
        true,
    ),
    (
        "protocol.ext",
        "git config remote.origin.url \"ext::$M %S\"; git config protocol.ext.allow always",
        true,
    ),
    (
        "merge driver",
        "echo '* merge=x' > .gitattributes; git config merge.x.driver $M; git config merge.default x",
        false,
    ),
    (
        "alias",
        "for n in add diff config rev-parse worktree update-index status; do git config alias.$n \"!$M\"; done",
        false,
    ),
    (
        "trace2",
        "git config trace2.normalTarget $R/marks; git config trace2.eventTarget $R/marks",
        false,
    ),
    (
        "core.alternateRefsCommand",
        "git config core.alternateRefsCommand $M; git init -q --bare $R/alt; echo $R/alt/objects > .git/objects/info/alternates",
        false,
    ),
    (
        "a submodule's own fsmonitor",
        "git init -q s; git -C s commit -q --allow-empty -m s; git add s; git commit -qm s; git -C s config core.fsmonitor $M; echo x > s/f",
        true,
    ),
    (
        "a submodule's update command",
        "git init -q s; git -C s commit -q --allow-empty -m s; git add s; git commit -qm s; git config submodule.s.update \"!$M\"; git config submodule.recurse true",
        false,
    ),
    (
        "an embedded bare repository",
        "git init -q --bare bare; git -C bare config core.fsmonitor $M; git -C bare config core.worktree ..",
        false,
    ),
    (
        "a promisor remote",
        "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config protocol.ext.allow always; git config remote.origin.url \"ext::$M %S\"; id=$(git rev-parse HEAD:a.rs); rm .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)",
        true,
    ),
];

/// Commands that a person runs in a checkout.
const PLAIN: &str = "git status; git diff HEAD; touch a.rs; git add -A; git log -1 -p; git checkout -q -b plain; \
    git worktree add ../plain-worktree HEAD; git fetch origin; git gc --auto; true";

/// Makes a checkout with a commit, a captured state, and the program that writes marks.
fn checkout() -> Environment {
    let environment = Environment::new();
    // The program writes a mark when it is run, and copies its input to its output as a filter
    // does.
    let program = "#!/bin/sh\necho \"$0 $*\" >> MARKS\nexec cat\n";
    let marks = environment.path("marks");
    environment.write("mark", &program.replace("MARKS", &marks.to_string_lossy()));
    fs::set_permissions(environment.path("mark"), PermissionsExt::from_mode(0o755)).unwrap();
    environment.write("project/a.rs", "one\n");
    shell(&environment, "git init -q -b trunk; git add .; git commit -qm first");
    environment.forge(["init"]).success();
    environment.write("project/a.rs", "one\ntwo\n");
    environment.forge(["code", "capture"]).success();
    environment
}

/// Runs shell lines in the project, without forge, for at most 5 seconds. Returns whether the last
/// command succeeded.
fn shell(environment: &Environment, lines: &str) -> bool {
    // Plain git would wait for ever for a program that does not answer its protocol.
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", "5", "sh", "-c", lines])
        .current_dir(environment.path("project"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", environment.path("home"))
        .env("M", environment.path("mark"))
        .env("R", environment.path(""))
        .envs([("GIT_AUTHOR_NAME", "me"), ("GIT_AUTHOR_EMAIL", "me@localhost")])
        .envs([("GIT_COMMITTER_NAME", "me"), ("GIT_COMMITTER_EMAIL", "me@localhost")])
        .env("GIT_TERMINAL_PROMPT", "0");
    command.output().unwrap().status.success()
}

/// Runs a capture, the hook before a compaction, and a recovery into a worktree. Returns the names
/// of those that failed.
fn use_forge(environment: &Environment) -> Vec<&'static str> {
    let capture = environment.finished(&mut environment.command(["code", "capture", "--json"]));
    let input = json!({
        "session_id": "5e55", "cwd": environment.path("project"), "hook_event_name": "PreCompact",
        "trigger": "auto",
    });
    environment.write("input", &input.to_string());
    let hook = environment
        .finished(&mut environment.shell("forge hook claude-code PreCompact < ../input"));
    let again = ["recover", "--step", "1", "--yes", "--worktree", "../again", "--json"];
    let recover = environment.finished(&mut environment.command(again));
    let ended = [("capture", capture), ("hook", hook), ("recover", recover)];
    ended.into_iter().filter(|(_, done)| done.code != 0).map(|(name, _)| name).collect()
}

fn marks(environment: &Environment) -> Option<String> {
    fs::read_to_string(environment.path("marks")).ok()
}

#[test]
fn no_program_that_a_repository_configures_is_run() {
    let mut faults = Vec::new();
    for (way, lines, is_taken) in WAYS {
        let environment = checkout();
        shell(&environment, lines);
        environment.write("project/a.rs", "one\nthree\n");
        // Marks that the setup itself wrote do not count.
        let _ = fs::remove_file(environment.path("marks"));
        let failed = use_forge(&environment);
        // With a promisor remote an object is missing, and nothing may fetch it.
        if !failed.is_empty() && way != "a promisor remote" {
            faults.push(format!("{way}: {failed:?} failed"));
        }
        if let Some(marks) = marks(&environment) {
            faults.push(format!("{way}: forge ran {marks}"));
        }
        let _ = fs::remove_file(environment.path("marks"));
        shell(&environment, PLAIN);
        if is_taken != marks(&environment).is_some() {
            faults.push(format!("{way}: plain git is seen to take it: {}", !is_taken));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_capture_says_that_filters_were_not_applied() {
    let environment = checkout();
    shell(&environment, "echo '* filter=x' > .gitattributes; git config filter.x.clean $M");
    environment.write("project/a.rs", "one\nfour\n");
    let captured = environment.forge(["code", "capture", "--json"]).success();
    assert!(captured.contains("filters of this repository were not applied"), "{captured}");
    assert_eq!(marks(&environment), None);
}

/// Regression: a capture did not use the user's attributes. All lines of a file with other line
/// ends had changed, and the skipped filters were not reported.
#[test]
fn a_capture_uses_the_attributes_of_the_user() {
    let environment = checkout();
    environment.write("attributes", "*.win text eol=crlf\n*.rs filter=x\n");
    shell(
        &environment,
        "git config core.attributesFile $R/attributes; printf 'a\\r\\nb\\r\\n' > a.win; git add a.win; \
         git commit -qm second; git config filter.x.clean $M",
    );
    environment.write("project/a.win", "a\r\nchanged\r\n");
    let captured = environment.forge(["code", "capture", "--json"]).json();
    let patches = captured["changed"][0]["value"]["patches"].to_string();
    assert!(patches.contains(r" a\n-b\n+changed\n"), "{patches}");
    let warnings = captured["warnings"].to_string();
    assert!(warnings.contains("filters of this repository were not applied"), "{warnings}");
    assert_eq!(marks(&environment), None);
}

#[test]
fn a_capture_that_misses_an_object_names_it_and_fetches_nothing() {
    let environment = checkout();
    let lose = "id=$(git rev-parse HEAD:a.rs); rm -f .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)";
    shell(&environment, lose);
    environment.write("project/a.rs", "one\nfour\n");
    let failed = environment.finished(&mut environment.command(["code", "capture"]));
    assert_eq!(failed.code, 4, "{}", failed.stderr);
    assert!(failed.stderr.contains("forge fetches nothing"), "{}", failed.stderr);
}

#[test]
fn a_checkout_below_a_folder_with_a_colon_is_captured() {
    let environment = Environment::new();
    fs::create_dir(environment.path("project/a:b")).unwrap();
    shell(
        &environment,
        "cd a:b; git init -q -b trunk; echo one > f; git add .; git commit -qm first",
    );
    shell(&environment, "cd a:b; echo two >> f; echo new > g");
    environment.forge(["init"]).success();
    let line = "cd a:b && forge code capture && forge checkpoint at now --kind code --json";
    let shown = environment.finished(&mut environment.shell(line));
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("+two") && shown.stdout.contains("+new"), "{}", shown.stdout);
}

#[test]
fn leftovers_of_a_killed_capture_are_removed_by_the_next_command() {
    let environment = checkout();
    let left = environment.path("project/.forge/git/work-0123456789abcdef");
    fs::create_dir_all(left.join("objects")).unwrap();
    fs::write(left.join("index"), "names of files").unwrap();
    fs::write(left.join("lock"), "").unwrap();
    environment.forge(["code", "capture"]).success();
    assert!(!left.exists());
}

/// Ways to make a checkout use another checkout's repository. `$R` is the folder above both.
const FOREIGN: [(&str, &str); 6] = [
    ("commondir", "echo $R/other/.git > .git/commondir"),
    ("a relative commondir", "echo ../../other/.git > .git/commondir"),
    ("a link in the place of .git", "rm -rf .git; ln -s $R/other/.git .git"),
    (
        "a link in the place of the objects",
        "rm -rf .git/objects; ln -s $R/other/.git/objects .git/objects",
    ),
    ("a link in the place of the refs", "rm -rf .git/refs; ln -s $R/other/.git/refs .git/refs"),
    (
        "a worktree's folder that is not in the repository",
        "mkdir fake; cp -r $R/other/.git/HEAD $R/other/.git/index fake; echo $R/other/.git > fake/commondir; \
         echo $PWD/.git > fake/gitdir; rm -rf .git; echo gitdir: fake > .git",
    ),
];

/// Regression: a `commondir` file in a real `.git` folder led into another project's repository.
#[test]
fn a_repository_of_another_checkout_is_not_captured() {
    for (way, lines) in FOREIGN {
        let environment = checkout();
        shell(
            &environment,
            "mkdir ../other; cd ../other; git init -q -b trunk; echo secret > s; git add .; git commit -qm o",
        );
        assert!(shell(&environment, lines), "{way}");
        let captured = environment
            .finished(&mut environment.command(["--store", ".forge", "code", "capture"]));
        assert_eq!(captured.code, 2, "{way}: {captured}");
        assert!(
            captured.stderr.contains("leads to the repository of another"),
            "{way}: {captured}"
        );
        let events = environment.forge(["--store", ".forge", "export", "events"]).success();
        assert!(!events.contains("secret"), "{way}: {events}");
    }
}

/// A repository may be outside of the checkout if git itself put it there.
#[test]
fn a_worktree_a_submodule_and_a_separate_repository_are_captured() {
    let environment = checkout();
    let lines = "git worktree add -q ../tree; git init -q --separate-git-dir ../apart.git ../apart; \
        git init -q ../sub; cd ../sub; echo s > s; git add .; git commit -qm s; \
        cd ../project; git -c protocol.file.allow=always submodule add -q ../sub sub";
    assert!(shell(&environment, lines));
    for folder in ["../tree", "../apart", "sub"] {
        environment.write(&format!("project/{folder}/new"), "new\n");
        let line = format!("cd {folder} && forge code capture --store $OLDPWD/.forge");
        let captured = environment.finished(&mut environment.shell(&line));
        assert_eq!(captured.code, 0, "{folder}: {captured}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_that_git_reads_is_named() {
    let names = [
        ".git/config",
        ".git/HEAD",
        ".git/refs/heads/trunk",
        ".git/packed-refs",
        ".git/commondir",
        ".git/objects/info/alternates",
        ".git/objects/pack/pack-11.idx",
        ".gitignore",
        ".gitattributes",
    ];
    let environment = checkout();
    for name in names {
        assert!(shell(&environment, &format!("mv {name} ../saved; mkfifo {name}")), "{name}");
        let captured = environment.finished(&mut environment.command(["code", "capture"]));
        assert_eq!(captured.code, 2, "{name}: {captured}");
        assert!(captured.stderr.contains("is a pipe instead of a file"), "{name}: {captured}");
        assert!(captured.stderr.contains(name), "{name}: {captured}");
        shell(&environment, &format!("rm {name}; mv ../saved {name}"));
    }
    // Some people replace a list by a link to `/dev/null`.
    assert!(shell(&environment, "ln -s /dev/null .gitignore"));
    environment.forge(["code", "capture"]).success();
}

/// Only git finds this pipe, because its configuration includes it.
#[test]
fn a_git_that_waits_for_a_pipe_is_ended() {
    let environment = checkout();
    assert!(shell(&environment, "mkfifo ../pipe; git config include.path $R/pipe"));
    let captured = environment.finished(&mut environment.command(["code", "capture"]));
    assert_eq!(captured.code, 4, "{captured}");
    assert!(captured.stderr.contains("git config did nothing for 10 seconds"), "{captured}");
}
