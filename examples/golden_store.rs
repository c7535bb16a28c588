//! Creates a golden store: a store with data of every kind, and its manifest.
//!
//! `cargo run --release --example golden_store tests/fixtures/v2` creates the folder `store/` and
//! the file `manifest.json` there. Do this once for each released format, and never again for the
//! same one.

#[path = "../tests/it/golden/manifest.rs"]
mod manifest;

use forge_store::model::{
    AutoTrigger, BranchStatus, CheckpointTrigger, Fact, FactOrigin, Key, Kind, Timestamp, Value,
};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, Session, SourceBookmark, SourceChunk, Store,
    WriteContext,
};
use std::error::Error;
use std::path::Path;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let folder = std::env::args().nth(1).ok_or("name the folder: tests/fixtures/VERSION")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let path = folder.join("store");
    let store = Store::create(&path, Options::default())?;
    let session = store.create_session(&act(0), NewSession::named("debug"))?;
    claims(&session)?;
    facts(&session)?;
    large(&session)?;
    source(&session)?;
    let run =
        NewSession { kind: forge_store::model::SessionKind::Run, ..NewSession::imported("run 1") };
    store
        .create_session(&act(300), run)?
        .write(&act(301))
        .change(note("n", "in a run"))
        .commit()?;
    store.maintain(0)?;
    // Data that is only in the journal.
    session.write(&act(400)).change(note("late", "after the index")).commit()?;
    session.write(&act(401)).event(AutoTrigger::GapFilled).commit()?;
    session.undo(&act(402), None)?;
    // With this file, git would ignore the whole store.
    std::fs::remove_file(path.join(".gitignore"))?;
    let manifest = manifest::manifest(&store)?;
    std::fs::write(folder.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    Ok(())
}

fn time(minute: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000)
}

fn act(minute: i64) -> WriteContext {
    WriteContext::asked("golden", time(minute))
}

fn note(id: &str, text: &str) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), Value::from([("description", text.into())]))
}

/// Writes every kind of change of claims, checkpoints and branches.
fn claims(session: &Session) -> Outcome {
    let idea = |status: &str, confidence: f64| {
        let value = Value::from([
            ("description", "the cache is stale".into()),
            ("status", status.into()),
            ("confidence", confidence.into()),
        ]);
        ClaimChange::put(Key::new(Kind::Hypothesis, "H1"), value)
    };
    session.write(&act(1)).change(idea("active", 0.5)).change(note("n1", "first")).commit()?;
    let named = NewCheckpoint::manual("one idea").tags(["start", "idea"]);
    session.write(&act(2)).change(idea("under_test", 0.625)).checkpoint(named).commit()?;
    let first = session.at_sequence(1)?;
    session.create_branch(&act(3), "try/other", Some(&first), Default::default())?;
    session.switch_branch(&act(4), "try/other", false)?;
    session.write(&act(5)).change(note("n2", "on the branch")).commit()?;
    session.switch_branch(&act(6), "main", true)?;
    session.update_branch(&act(7), "try/other", |status, metadata| {
        *status = BranchStatus::Abandoned;
        metadata.results.push("nothing came of it".to_owned());
    })?;
    session.write(&act(8)).change(ClaimChange::remove(Key::new(Kind::Note, "n1"))).commit()?;
    let past = NewCheckpoint::manual("as it was").tags(["past"]).at(time(5));
    let made =
        session.write(&act(9)).checkpoint(past).commit()?.checkpoint.ok_or("no checkpoint")?;
    session.tag(&act(10), &made.id, &["kept".to_owned()], &["past".to_owned()])?;
    session.restore(&act(11), &first)?;
    session.write(&act(12)).change(idea("rejected", 0.125)).commit()?;
    session.undo(&act(13), None)?;
    session.redo(&act(14))?;
    session.schedule(&act(15), Some(3_600_000_000))?;
    let scheduled = NewCheckpoint::new("by hand", CheckpointTrigger::Scheduled);
    session.write(&act(16)).checkpoint(scheduled).commit()?;
    Ok(())
}

/// Writes facts out of order. One has two versions: an imported one replaces that of a hook.
/// Another one has a text so long that it is stored outside the fact.
fn facts(session: &Session) -> Outcome {
    let act = act(100);
    let fact = |kind, id: &str, minute, origin, value| Fact {
        kind,
        id: id.to_owned(),
        at: time(minute),
        origin,
        place: 7,
        recorded_at: act.now,
        value,
    };
    let mut write = session.write(&act);
    let long = write.text(&"a line of output\n".repeat(1000));
    let command =
        Value::from([("command", "make".into()), ("exit_code", 2_i64.into()), ("output", long)]);
    let prompt = |text: &str| Value::from([("text", text.into())]);
    write
        .fact(fact(Kind::Command, "c1", 90, FactOrigin::Recorded, command))
        .fact(fact(Kind::Prompt, "p1", 20, FactOrigin::Hook, prompt("why does it fail?")))
        .fact(fact(Kind::Prompt, "p1", 21, FactOrigin::Imported, prompt("why does it fail??")))
        .fact(fact(Kind::Prompt, "p2", 3, FactOrigin::Imported, prompt("earlier")))
        .commit()?;
    Ok(())
}

/// Writes enough changes for a keyframe, and a claim so long that it is stored as a blob.
fn large(session: &Session) -> Outcome {
    session.write(&act(150)).change(note("long", &"0123456789abcdef".repeat(600))).commit()?;
    for minute in 151..=158_i64 {
        let text = format!("{:04}", minute * minute % 9973).repeat(900);
        let notes = (0..60).map(|id| note(&format!("n{id:02}"), &text));
        session.write(&act(minute)).changes(notes).commit()?;
    }
    Ok(())
}

/// Imports a source in parts, and stores it byte for byte.
fn source(session: &Session) -> Outcome {
    let act = act(200);
    let mut bookmark = SourceBookmark::default();
    let line =
        |number| format!("{{\"line\":{number},\"text\":\"much the same as the one before\"}}\n");
    let mut before = Vec::new();
    for part in 0..3 {
        let bytes: Vec<u8> =
            (0..100).flat_map(|number| line(part * 100 + number).into_bytes()).collect();
        let open = usize::try_from(bookmark.bytes - bookmark.open_block())?;
        let taken = SourceChunk {
            open: &before[before.len() - open..],
            bookmark,
            bytes: session.store().redact_source(&bytes, TextForm::Json, PartEnding::End),
            lines: 100,
            keep: true,
            ..SourceChunk::default()
        };
        let operation = forge_store::model::OperationId::from_bytes([part as u8 + 1; 16]);
        bookmark = session.import_chunk(&act, operation, "log.jsonl", taken)?.1;
        before.extend_from_slice(&bytes);
    }
    session.store().sync()?;
    Ok(())
}
