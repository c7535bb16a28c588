//! Programs: the agents are sessions of the store.

use crate::environment::Environment;
use insta::assert_snapshot;

fn place() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for (agent, tag) in [("1000", "1000_ckpt_3"), ("1001", "1001_ckpt_9")] {
        environment.forge(["session", "new", agent]).success();
        environment
            .forge(["checkpoint", "create", "waiting", "--tags", tag, "--session", agent])
            .success();
    }
    let agents =
        ["--agent", "1000=1000_ckpt_3", "--agent", "1001=HEAD", "--agent", "gone=gone_ckpt_2"];
    let mut command = environment.command(["program", "checkpoint", "--program", "p"]);
    let saved = environment.finished(command.args(agents));
    // Regression: an agent without a session was saved without a word.
    let warned =
        "warning: the agent 'gone' has no session: 'forge program resume' cannot resume it\n";
    assert_eq!((saved.code, saved.stderr.as_str()), (0, warned), "{saved}");
    environment
}

#[test]
fn a_program_is_resumed_with_the_latest_checkpoint_of_each_agent() {
    let environment = place();
    environment
        .forge(["checkpoint", "create", "on", "--tags", "1000_ckpt_7", "--session", "1000"])
        .success();
    let resume = environment.forge(["program", "resume", "--program", "p", "--json"]).json();
    assert_eq!(resume["agents"][0]["checkpoint"], "1000_ckpt_7");
    assert_eq!(
        resume["agents"][0]["notice"],
        "using latest checkpoint 1000_ckpt_7 for agent 1000 (program checkpoint had 1000_ckpt_3)"
    );
    assert_eq!(resume["agents"][1]["checkpoint"], "1001_ckpt_9", "HEAD was that checkpoint");
    assert_eq!(resume["missing"][0]["agent"], "gone");
    let exact =
        environment.forge(["program", "resume", "--program", "p", "--exact", "--json"]).json();
    assert_eq!(exact["agents"][0]["checkpoint"], "1000_ckpt_3");
}

#[test]
fn invalid_program_commands_are_refused() {
    let environment = place();
    let code = |args: &[&str]| {
        let mut command = environment.command(["program"]);
        environment.finished(command.args(args)).code
    };
    assert_eq!(code(&["checkpoint", "--program", "q"]), 2);
    assert_eq!(code(&["checkpoint", "--program", "q", "--agent", "1000"]), 2);
    assert_eq!(code(&["checkpoint", "--program", "q", "--agent", "1000=none"]), 3);
    assert_eq!(
        code(&["checkpoint", "--program", "q", "--agent", "1000=#1", "--agent", "1000=#1"]),
        2
    );
    assert_eq!(code(&["resume", "--program", "q"]), 3, "none of it was begun");
    assert_eq!(code(&["message", "m", "--program", "p", "--received"]), 3);
    assert_eq!(code(&["message", "m", "--program", "p", "--from", "1000"]), 2);
    // Neither of these creates a program.
    assert_eq!(code(&["message", "m", "--program", "q", "--received"]), 3);
    assert_eq!(code(&["message", "m", "--program", "q", "--from", "1000", "--to", "1000"]), 2);
    let refused = environment.forge(["program", "show", "--program", "q"]);
    assert_snapshot!(refused, @r"
    [stderr]
    error: there is no program 'q'
    hint: 'forge session list --kind program' lists the programs
    [exit 3]
    ");
}

/// Regression: `HEAD` was refused after the agent's last checkpoint was undone, and for an agent
/// that had recorded nothing; `HEAD~1` was taken for `HEAD`.
#[test]
fn an_agent_is_where_it_last_recorded_something_that_is_still_there() {
    let environment = place();
    let number = |moment: &str| {
        let agent = format!("new={moment}");
        let args = ["program", "checkpoint", "--program", "q", "--agent", &agent, "--json"];
        environment.forge(args).json()["agents"][0]["sequence"].clone()
    };
    environment.forge(["session", "new", "new"]).success();
    assert_eq!(number("HEAD"), 0);
    environment.forge(["note", "add", "a plan", "--session", "new"]).success();
    environment.forge(["checkpoint", "create", "planned", "--session", "new"]).success();
    environment.forge(["checkpoint", "create", "too early", "--session", "new"]).success();
    assert_eq!(number("HEAD"), 3);
    environment.forge(["undo", "--session", "new"]).success();
    assert_eq!(number("HEAD"), 2, "the checkpoint before it");
    environment.forge(["undo", "--session", "new"]).success();
    assert_eq!(number("HEAD"), 1, "the note");
    environment.forge(["note", "add", "another plan", "--session", "new"]).success();
    assert_eq!((number("HEAD"), number("HEAD~1")), (4.into(), 1.into()));
    // Regression: it was the last number, also that of a checkpoint of an earlier moment.
    let early = ["checkpoint", "create", "at first", "--at", "#1", "--session", "new"];
    environment.forge(early).success();
    assert_eq!(number("HEAD"), 4);
}

#[test]
fn a_message_is_sent_once_and_before_it_is_received() {
    let environment = place();
    let message = |more: &[&str]| {
        let mut command = environment.command(["program", "message", "m", "--program", "p"]);
        environment.finished(command.args(more))
    };
    assert_snapshot!(message(&["--received"]), @r"
    [stderr]
    error: there is no message 'm'
    hint: record first that it is sent, with '--from' and '--to'
    [exit 3]
    ");
    // Regression: a number that the agent had not come to was stored, and 'resume' was wrong.
    let early = message(&["--from", "1000", "--to", "1001", "--after", "99"]);
    assert!(early.code == 2 && early.stderr.contains("#99 is not there yet"), "{early}");
    message(&["--from", "1000", "--to", "1001"]).success();
    // Regression: the hint said to update the message, which no command does.
    assert_snapshot!(message(&["--from", "1000", "--to", "1001"]), @r"
    [stderr]
    error: there is a message 'm' already
    hint: another message needs another id
    [exit 2]
    ");
}
