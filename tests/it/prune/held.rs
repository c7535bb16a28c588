//! A moment that is held while other processes write, prune, sweep and compact: it stays the same
//! to the last byte, and what is no longer held is removed.

use super::{act, all, bare, create, open, revise, time};
use forge_store::model::{Fact, FactOrigin, Key, Kind, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, Session, StateAt, Store,
};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FOLDER: &str = "FORGE_HELD_FOLDER";
const ROLE: &str = "FORGE_HELD_ROLE";
/// The moments that are held: two in the index, and the head, whose end is only in the journal.
const MOMENTS: [u64; 3] = [7, 20, LAST];
const LAST: u64 = 40;

/// Forty revisions with a fact and a value each, some of them large; the last five are only in the
/// journal.
fn history(store: &Store) -> Session {
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for minute in 1..=LAST {
        let act = act(minute as i64);
        let long = format!("{minute} ").repeat(if minute % 4 == 0 { 3000 } else { 300 });
        let key = Key::new(Kind::Note, format!("n{}", minute % 9));
        let fact = Fact {
            kind: Kind::Message,
            id: format!("f{minute}"),
            at: act.now,
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: act.now,
            value: Value::from([("text", format!("said at {minute}").into())]),
        };
        let change = ClaimChange::put(key, Value::from([("description", long.into())]));
        session.write(&act).change(change).fact(fact).commit().unwrap();
        if minute == LAST - 5 {
            store.maintain(0).unwrap();
        }
    }
    session
}

fn hold(session: &Session) -> Vec<StateAt> {
    let at = |number: &u64| session.state(&session.at_sequence(*number).unwrap()).unwrap();
    MOMENTS.iter().map(at).collect()
}

/// The results of all queries about these moments.
fn content_of(held: &[StateAt]) -> String {
    let mut text = String::new();
    for one in held {
        let entries: Vec<_> = one.claims().entries().map(Result::unwrap).collect();
        writeln!(text, "{:?} {entries:?}", one.info().unwrap()).unwrap();
        for kind in Kind::facts() {
            writeln!(text, "{:?}", one.facts_of(kind).unwrap()).unwrap();
        }
        writeln!(text, "{:?} {:?}", one.time().unwrap(), one.distance_micros().unwrap()).unwrap();
        writeln!(text, "{:?} {:?}", one.checkpoint().unwrap(), one.revision().unwrap()).unwrap();
        writeln!(text, "{:?} {:?}", one.branches().unwrap(), one.current_branch().unwrap())
            .unwrap();
        writeln!(text, "{:?}", one.metrics().unwrap()).unwrap();
    }
    text
}

/// Does the work of other processes: they write more, prune everything that is held, sweep it and
/// rewrite the index, more than once.
fn others(path: &Path) {
    let store = open(path);
    let session = store.session("s").unwrap();
    for round in 0..3 {
        let minute = 100 + 10 * round;
        for id in 0..9 {
            let text = Some(format!("after it {round} {id}"));
            revise(&session, minute, &[(&format!("n{id}"), text)]);
        }
        session
            .create_branch(&act(minute), &format!("b{round}"), None, Default::default())
            .unwrap();
        let wanted = NewCheckpoint::manual(format!("c{round}"));
        session.write(&act(minute)).checkpoint(wanted).commit().unwrap();
        session.prune(&act(minute + 1), &bare()).unwrap();
        store.maintain(0).unwrap();
        store.sweep(time(minute + 2), time(minute + 2)).unwrap();
        store.maintain(0).unwrap();
        store.compact().unwrap();
    }
}

/// The existing generations of the index.
fn generations(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path.join("index")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter_map(|name| Some(name.strip_suffix(".lease")?.to_owned())).collect();
    names.sort();
    names
}

/// Not a test: the body of the processes.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let path = PathBuf::from(folder);
    if std::env::var(ROLE).unwrap() == "others" {
        return others(&path);
    }
    let store = Store::open(&path, Options::default().read_only(true)).unwrap();
    let session = store.session("s").unwrap();
    let (held, unread) = (hold(&session), hold(&session));
    let say = |word: &str, held: &[StateAt]| {
        let hash = blake3::hash(content_of(held).as_bytes()).to_hex();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{word} {hash}").unwrap();
        out.flush().unwrap();
    };
    say("held", &held);
    std::io::stdin().read_line(&mut String::new()).unwrap();
    say("still", &held);
    say("unread", &unread);
}

fn process(role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["prune::held::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, path)
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The output of a process about what it holds.
fn heard(output: &mut impl BufRead, word: &str) -> String {
    let answer = output
        .lines()
        .map(Result::unwrap)
        .find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()));
    answer.expect("it says what it holds")
}

/// Checks that the moments no longer exist, for a new reader and on disk.
fn assert_removed(path: &Path, before: &[String]) {
    let store = open(path);
    store.maintain(0).unwrap();
    store.compact().unwrap();
    let session = store.session("s").unwrap();
    let seen = all(&session);
    assert!(MOMENTS.iter().all(|number| !seen.contains_key(number)), "{:?}", seen.keys());
    drop((session, store));
    let left = generations(path);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!before.contains(&left[0]));
}

#[test]
fn a_held_moment_is_unchanged_while_another_handle_writes_prunes_and_compacts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    history(&create(&path));
    let store = open(&path);
    let session = store.session("s").unwrap();
    let (held, unread) = (hold(&session), hold(&session));
    let (before, at_first) = (content_of(&held), generations(&path));
    others(&path);
    assert!(generations(&path).contains(&at_first[0]), "what is read stays");
    // A new query, also by the same handle, is answered from the current state.
    assert!(session.at_sequence(MOMENTS[0]).is_err());
    assert_eq!(content_of(&held), before);
    assert_eq!(content_of(&unread), before);
    drop((held, unread, session, store));
    assert_removed(&path, &at_first);
}

#[test]
fn a_held_moment_is_unchanged_while_other_processes_write_prune_and_compact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    history(&create(&path));
    let at_first = generations(&path);
    let mut reader = process("reader", &path);
    let mut output = BufReader::new(reader.stdout.take().unwrap());
    let before = heard(&mut output, "held");
    let mut done = process("others", &path);
    assert!(done.wait().unwrap().success());
    assert!(generations(&path).contains(&at_first[0]), "what is read stays");
    reader.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(heard(&mut output, "still"), before);
    assert_eq!(heard(&mut output, "unread"), before);
    assert!(reader.wait().unwrap().success());
    assert_removed(&path, &at_first);
}
