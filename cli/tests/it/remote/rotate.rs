//! Rotation of the key of a remote, and the errors on machines that still have the old key.

use super::{Machine, shared};
use crate::environment::Environment;

#[test]
fn after_a_key_rotation_the_other_machines_need_the_new_key() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    let refused = first.forge(["remote", "key", "rotate"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.to_string().contains("'forge remote key rotate --yes' does it"), "{refused}");
    let rotated = first.forge(["remote", "key", "rotate", "--yes"]).success();
    insta::assert_snapshot!(rotated, @r"
    Made a new key of origin: it encrypts 1 session now
      'forge remote key export FILE' writes it for the other machines, where 'forge remote add URL --key FILE' replaces the key
      what was pushed before can still be read with the previous key
    ");
    first.forge(["note", "add", "two"]).success();
    first.forge(["push"]).success();

    second.forge(["note", "add", "meanwhile"]).success();
    for verb in ["pull", "push", "sync"] {
        let refused = second.forge([verb]);
        assert_eq!(refused.code, 7, "{refused}");
        let text = refused.to_string();
        assert!(text.contains("the key of the remote was changed"), "{text}");
        assert!(
            text.contains("'forge remote add URL NAME --key FILE' replaces the key here"),
            "{text}"
        );
    }
    assert_eq!(second.forge(["remote", "key", "rotate", "--yes"]).code, 7);
    let old = second.forge(["remote", "add", "../../shared", "again", "--key", "../../key"]);
    assert_eq!(old.code, 7, "{old}");

    first.forge(["remote", "key", "export", "../../new"]).success();
    let added = second.forge(["remote", "add", "../../shared", "--key", "../../new"]);
    assert!(added.success().starts_with("Replaced the key of the remote origin at "));
    second.forge(["push"]).success();
    first.forge(["pull"]).success();
    assert_eq!(first.notes("checkout"), second.notes("checkout"));

    // What is named by the environment is not in the keyring.
    let boxed = Machine::new(&environment, "boxed");
    boxed.forge(["init"]).success();
    let url = format!("file://{}", environment.path("shared").display());
    let mut command = boxed.command(["remote", "key", "rotate", "--yes"]);
    command.env("FORGE_REMOTE", &url).env("FORGE_REMOTE_KEY", "../../new");
    let refused = environment.finished(&mut command);
    assert_eq!(refused.code, 2, "{refused}");
    let again = first.forge(["remote", "key", "rotate", "--yes", "--json"]).json();
    assert_eq!((&again["sessions"], &again["continued"]), (&1.into(), &false.into()), "{again}");
}
