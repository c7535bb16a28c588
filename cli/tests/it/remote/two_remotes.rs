//! A session that is on two remotes.

use super::{Machine, shared};
use crate::environment::Environment;
use std::fs;

/// Others push to both remotes: a join with one of them would make the other one unusable.
#[test]
fn a_join_that_another_remote_could_not_accept_names_a_remedy() {
    let environment = Environment::new();
    let first = shared(&environment);
    let both = Machine::joined(&environment, "both");
    both.forge(["pull", "checkout"]).success();
    fs::create_dir(environment.path("copy")).unwrap();
    both.forge(["remote", "create", "../../copy", "copy"]).success();
    both.forge(["push", "checkout", "--to", "copy"]).success();
    both.forge(["remote", "key", "export", "../../copykey", "copy"]).success();
    let third = Machine::new(&environment, "third");
    third.forge(["clone", "../../copy", ".", "--key", "../../copykey"]).success();
    third.forge(["note", "add", "three"]).success();
    third.forge(["push"]).success();
    first.forge(["note", "add", "two"]).success();
    first.forge(["push"]).success();
    both.forge(["pull", "--from", "copy"]).success();
    insta::assert_snapshot!(both.forge(["pull"]), @r"
    [stderr]
    error: the session 'checkout' was changed here and on the remote, and others push it to the remote 'copy' too: that one could not take the order of a join, and nothing was joined
    hint: exchange a session through one remote: 'forge remote remove copy' forgets that one here and leaves it as it is, and the next pull or push joins
    [exit 4]
    ");
    assert_eq!(both.notes("checkout"), ["one", "three"]);
    both.forge(["remote", "remove", "copy", "--yes"]).success();
    both.forge(["pull"]).success();
    let mut notes = both.notes("checkout");
    notes.sort_unstable();
    assert_eq!(notes, ["one", "three", "two"]);
    both.forge(["push", "checkout"]).success();
}
