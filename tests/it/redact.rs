//! Secrets: what is found, what is left alone, and that no secret reaches a store's files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use forge_store::diff::ConflictResolution;
use forge_store::error::Error;
use forge_store::format::KeyFile;
use forge_store::format::remote::{
    EarlierSecret, RemoteGrant, RemoteKeyFile, RotatedKey, SeenRef, SessionKey,
};
use forge_store::model::rule::RuleOutcome;
use forge_store::model::{
    BranchMetadata, Checkpoint, Fact, FactOrigin, Key, Kind, RefLink, SessionHandle, SessionId,
    Timestamp, Value,
};
use forge_store::redact::{PartEnding, Redactor, TextForm};
use forge_store::store::{
    CheckpointFilter, ClaimChange, MergeRequest, MergeResult, NewCheckpoint, NewSession, Options,
    Session, SourceBookmark, SourceChunk, Store, StreamImportRequest, WriteContext,
};
use forge_systems::program::{CheckpointReference, Program};
use forge_systems::progress::{ItemReport, PipelineExecution, ProgressDocument};
use forge_systems::run::{NextStep, RunStatus, StepRecord, WorkflowRun};
use forge_systems::thread::{AppendOptions, CallResult, Thread};
use forge_testkit::files::files_below;
use forge_testkit::secret::{FakeSecret, fake_secrets, shape_count};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Regression: an agent that printed a key file or a grant left the key in its transcript.
#[test]
fn keys_and_grants_of_forge_are_found() {
    let [key, other] = [(); 2].map(|()| RemoteKeyFile::generate().unwrap());
    let grant = RemoteGrant {
        remote: key.remote,
        session: SessionId::from_bytes(*other.remote.as_bytes()),
        handle: SessionHandle::from_bytes(*other.remote.as_bytes()),
        key: SessionKey::from_bytes(key.secret),
        seen: SeenRef { version: 1, link: RefLink::from_bytes(other.secret) },
    };
    let digits: String = key.secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let earlier = Some(EarlierSecret::Left(key.secret));
    let rotated = Some(RotatedKey { names: other.secret, earlier });
    let rotated = RemoteKeyFile { rotated, ..other };
    let (secret, cipher) = (key.secret, Some(key.secret));
    let store = KeyFile { store: [1; 16], secret, cipher, adopted: None, witness: None };
    for text in [
        key.encode(),
        key.encode().replace('\n', " "),
        rotated.encode(),
        grant.encode(),
        store.encode(),
    ] {
        let json = json!({ "output": text }).to_string();
        for (text, form) in [(text, TextForm::Plain), (json, TextForm::Json)] {
            assert!(text.contains(&digits), "{text}");
            let clean = Redactor::new().clean(&text, form).into_owned();
            assert!(!clean.contains(&digits), "{clean}");
        }
    }
}

#[test]
fn invented_secrets_of_every_format_are_found_in_text_and_json() {
    assert!(shape_count() >= 40);
    let redactor = Redactor::new();
    let mut missed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for fake in fake_secrets(25) {
        let json = serde_json::json!({ "text": fake.text }).to_string();
        let nested = serde_json::json!({ "text": json }).to_string();
        for (text, form) in
            [(&fake.text, TextForm::Plain), (&json, TextForm::Json), (&nested, TextForm::Json)]
        {
            let clean = redactor.clean(text, form);
            if clean.contains(&fake.secret) {
                missed.entry(fake.shape).or_default().push(text.clone());
            }
            if form == TextForm::Json {
                serde_json::from_str::<serde_json::Value>(&clean)
                    .unwrap_or_else(|error| panic!("{}: {error}: {clean}", fake.shape));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Text before, between and after secrets.
const GLUE: [&str; 52] = [
    "",
    " ",
    "=",
    ": ",
    "_",
    "-",
    ".",
    "\"",
    "', '",
    "\n",
    "\\n",
    "&",
    "@",
    "/",
    ":",
    "] = \"",
    "\" = \"",
    " password ",
    "login me ",
    "login a password ",
    " token=",
    "_token: ",
    "API_KEY=",
    "\"apiToken\": \"",
    "public_",
    "_id=",
    "Bearer ",
    "basic ",
    "-u me:",
    "https://u:",
    "@host ",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----END RSA PRIVATE KEY-----",
    "tokens",
    "xxxx",
    "example",
    "(",
    ")",
    "[",
    "]",
    " = ",
    "&str = \"",
    "%3D",
    "x",
    "8q~",
    "eyJ",
    "key-",
    "--user a:",
    "secret ",
    "[redacted:token]",
    "[redacted:",
    "redacted",
];

/// Invented secrets, complete, cut, and without their context, among texts that may identify them.
fn littered() -> impl Strategy<Value = String> {
    let fakes = fake_secrets(25);
    let piece = (0_u8..8, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let text = move |(what, which, place): (u8, prop::sample::Index, prop::sample::Index)| {
        let fake = which.get(&fakes);
        match what {
            0 => fake.text.clone(),
            1 | 2 => fake.secret.clone(),
            3 => fake.text[..place.index(fake.text.len())].to_owned(),
            _ => (*which.get(&GLUE)).to_owned(),
        }
    };
    prop::collection::vec(piece.prop_map(text), 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn redacting_a_redacted_text_changes_nothing(text in littered(), json: bool) {
        let form = if json { TextForm::Json } else { TextForm::Plain };
        let once = Redactor::new().clean(&text, form);
        prop_assert_eq!(Redactor::new().clean(&once, form), &*once);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn redacting_a_redacted_value_changes_nothing(
        fields in prop::collection::btree_map(littered(), littered(), 0..4),
        variables in prop::collection::btree_map("PATH|HOME|[A-Z]{3,6}_TOKEN", littered(), 0..3),
    ) {
        let map = |texts: BTreeMap<String, String>| {
            Value::Map(texts.into_iter().map(|(name, text)| (name, text.into())).collect())
        };
        let list = Value::List(fields.values().map(|text| text.as_str().into()).collect());
        let mut value = Value::from([
            ("env_vars", map(variables)),
            ("fields", map(fields)),
            ("api_token", list),
        ]);
        Redactor::new().clean_value(&mut value);
        let once = value.clone();
        prop_assert_eq!(Redactor::new().clean_value(&mut value), BTreeMap::new());
        prop_assert_eq!(value, once);
    }
}

const FACT: &str = "what happened";

fn act(second: i64) -> WriteContext {
    let start = Timestamp::parse_rfc3339("2026-03-01T10:00:00Z").unwrap();
    WriteContext::asked("test", start.plus_micros(second * 1_000_000))
}

/// Returns one word: the secret alone if its format identifies it, otherwise the name of the format.
fn word(fake: &FakeSecret) -> String {
    if fake.has_secret_shape() { fake.secret.clone() } else { fake.shape.replace(' ', "-") }
}

/// Writes an invented secret with every verb that takes text from outside.
fn plant(store: &Store, fakes: &[FakeSecret]) {
    let session = NewSession {
        agent: Some(fakes[0].text.clone()),
        agent_session: Some(word(&fakes[0])),
        ..NewSession::named(word(&fakes[0]))
    };
    let session = store.create_named(&act(0), session).unwrap();
    let mut transcript = Vec::new();
    let mut stream = String::new();
    for (second, fake) in (0..).zip(fakes) {
        let act = act(second);
        let text = || Value::from(fake.text.as_str());
        let id = format!("n{second}");
        let name = fake.text.clone();
        let note = Value::Map([("description".to_owned(), text()), (name, 1_i64.into())].into());
        let long = format!("{}{}", fake.text, " and so on".repeat(500));
        let mut write = session.write(&act);
        if second >= 3 {
            // One sync for all of them.
            write = write.imported();
        }
        let output = write.text(&long);
        let fact = Fact {
            kind: Kind::Command,
            id: id.clone(),
            at: act.now,
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: act.now,
            value: Value::from([
                ("command", text()),
                ("stdout_preview", output),
                (
                    "env_vars",
                    Value::from([("NOT_LISTED", fake.secret.as_str().into()), ("PATH", text())]),
                ),
            ]),
        };
        let checkpoint = NewCheckpoint {
            body: Value::from([("said", text())]),
            // The same event twice would be one checkpoint.
            key: Some(format!("{second} {}", fake.text)),
            ..NewCheckpoint::manual(fake.text.clone())
        };
        let made = write
            .change(ClaimChange::add(Key::new(Kind::Note, id.clone()), note))
            .rule(|_| {
                let value = Value::from([("description", FACT.into()), ("reason", text())]);
                let changes = vec![(Key::new(Kind::Hypothesis, format!("h{second}")), value)];
                Ok(RuleOutcome { changes, ..RuleOutcome::default() })
            })
            .fact(fact)
            .checkpoint(checkpoint)
            .commit()
            .unwrap();
        // These are the slowest, and a few secrets per format are enough.
        if second < 3 {
            by_rarer_verbs(&session, &act, fake, &made.checkpoint.unwrap(), second);
            by_merging(&session, &act, fake, second);
            by_systems(store, &act, fake, second);
        }
        transcript.extend_from_slice(
            format!("{}\n", json!({ "text": fake.text, "n": second })).as_bytes(),
        );
        let at = act.now.to_string();
        for event in [
            json!({"at": at, "put": {"kind": "note", "id": format!("s{second}"), "value": {"description": fake.text}}}),
            json!({"at": at, "put": {"kind": "message", "id": format!("m{second}"), "value": {"text": fake.text, "env_vars": {"NOT_LISTED": fake.secret}}}}),
            json!({"at": at, "checkpoint": {"message": fake.text, "tags": ["x"]}}),
        ] {
            stream.push_str(&format!("{event}\n"));
        }
    }
    // A transcript comes in pieces that end anywhere.
    let mut bookmark = SourceBookmark::default();
    let mut raw = Vec::new();
    for piece in transcript.chunks(9973) {
        raw.extend_from_slice(piece);
        let from = bookmark.bytes as usize;
        let ends = raw.len() == transcript.len();
        let clean = store.redact_source(
            &raw[from..],
            TextForm::Json,
            if ends { PartEnding::End } else { PartEnding::More },
        );
        let open = raw[bookmark.open_block() as usize..from].to_vec();
        let taken = SourceChunk {
            bookmark,
            open: &open,
            bytes: clean,
            keep: true,
            ..SourceChunk::default()
        };
        bookmark =
            session.import_chunk(&act(90), store.new_operation().unwrap(), "log", taken).unwrap().1;
    }
    assert_eq!(bookmark.bytes, transcript.len() as u64);
    let name = format!("stream of {}", fakes[0].shape);
    let source = format!("events:{name}");
    let stream = stream.into_bytes();
    store
        .import_events(
            &act(95),
            StreamImportRequest { source: &source, name: &name, session: None },
            &mut || Ok(Box::new(std::io::Cursor::new(stream.clone()))),
            &|_| {},
        )
        .unwrap();
    store.sync().unwrap();
}

/// Plants the secret with verbs that name things, and with a write that replaces a kind.
fn by_rarer_verbs(
    session: &Session,
    act: &WriteContext,
    fake: &FakeSecret,
    checkpoint: &Checkpoint,
    number: i64,
) {
    let text = || Value::from(fake.text.as_str());
    let word = word(fake);
    // Longer ones are not valid tags.
    let _ = session.tag(act, &checkpoint.id, std::slice::from_ref(&word), &[]);
    let metadata = BranchMetadata {
        hypothesis: Some(fake.text.clone()),
        approach: Some(fake.text.clone()),
        success_criteria: vec![fake.text.clone()],
        results: vec![fake.text.clone()],
        extra: Value::from([("more", text())]),
    };
    session.create_branch(act, &format!("b{number}"), None, metadata.clone()).unwrap();
    session.update_branch(act, &format!("b{number}"), |_, new| new.clone_from(&metadata)).unwrap();
    let _ = session.create_branch(act, &word, None, metadata);
    let change = ClaimChange::add(Key::new(Kind::Note, fake.text.replace('\n', " ")), text());
    let _ = session.write(act).change(change).commit();
    let whole = vec![(Key::new(Kind::Gap, "g"), Value::from([("description", text())]))];
    session.write(act).replace_kinds([Kind::Gap].into(), whole).commit().unwrap();
}

/// Plants the secret as the resolution of a merge conflict.
fn by_merging(session: &Session, act: &WriteContext, fake: &FakeSecret, number: i64) {
    let (key, branch) = (Key::new(Kind::Note, format!("m{number}")), format!("m{number}"));
    let put = |on: &str, text: &str| {
        let value = Value::from([("description", text.into())]);
        session.write(act).on(on).change(ClaimChange::put(key.clone(), value)).commit().unwrap();
    };
    put("main", "before");
    session.create_branch(act, &branch, None, BranchMetadata::default()).unwrap();
    put("main", "ours");
    put(&branch, "theirs");
    let field = (key.clone(), Some("description".to_owned()));
    let settled = BTreeMap::from([(field, ConflictResolution::Value(fake.text.as_str().into()))]);
    let merging = MergeRequest { source: branch, settled, ..MergeRequest::default() };
    assert_eq!(session.merge(act, &merging).unwrap().result, MergeResult::Merged);
}

/// Plants the secret with the systems on top of a store: runs, progress, programs, threads.
fn by_systems(store: &Store, act: &WriteContext, fake: &FakeSecret, number: i64) {
    let (text, name) = (fake.text.as_str(), format!("{}-{number}", fake.shape.replace(' ', "-")));
    let run = WorkflowRun::open_or_create(store, act, &name).unwrap();
    run.start(act, Some(&Value::from([("goal", text.into())]))).unwrap();
    let record = StepRecord {
        item: "i".to_owned(),
        step: "s".to_owned(),
        output: text.to_owned(),
        next: NextStep::Unknown,
        order: None,
        name: Some(text.to_owned()),
        data: Some(Value::from([("said", text.into())])),
        row: None,
    };
    run.record(act, &record).unwrap();
    run.end(act, RunStatus::Failed, Some(text)).unwrap();

    let execution = PipelineExecution::open_or_create(store, act, &name, "e").unwrap();
    let document = json!({"stage": "searching", "context": {"query": text}, "more": [text]});
    let document = ProgressDocument::read(serde_json::from_value(document).unwrap(), None).unwrap();
    execution.save(act, &document).unwrap();
    let failed = ItemReport::Failed { class: None, error: Some(text.to_owned()) };
    execution.report(act, "searching", "i", &failed).unwrap();

    let program = Program::open_or_create(store, act, &name).unwrap();
    let agents = BTreeMap::from([("agent".to_owned(), CheckpointReference::from_name(text))]);
    program.checkpoint(act, &agents, Some(text)).unwrap();

    let thread = Thread::open_or_create(store, act, &name).unwrap();
    let arguments = json!({ "query": text }).to_string();
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let messages = [
        json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
    ];
    let messages = messages.map(|message| message.to_string());
    thread.append(act, &messages, &AppendOptions::default()).unwrap();
    thread.start_call(act, "c").unwrap();
    let result = CallResult { content: text.to_owned(), is_error: false };
    thread.finish_call(act, "c", &result).unwrap();
    thread.put_result(act, "c", None).unwrap();
}

fn message(id: &str, at: Timestamp, text: &str) -> Fact {
    let value = Value::from([("text", text.into())]);
    let (kind, origin) = (Kind::Message, FactOrigin::Hook);
    Fact { kind, id: id.to_owned(), at, origin, place: 0, recorded_at: at, value }
}

/// Spools secrets with writers that cannot get the lock, and with hooks. Returns the bytes of the
/// spooled writes.
fn aside(store: &Store, path: &Path, options: &Options, fakes: &[FakeSecret]) -> Vec<u8> {
    let session = store.every_session().unwrap().pop().unwrap().summary().unwrap().info;
    let journal = std::fs::File::open(path.join("journal/append.lock")).unwrap();
    journal.lock().unwrap();
    let options = options.clone().lock_timeout(std::time::Duration::ZERO);
    let beside = Store::open(path, options).unwrap();
    for (number, fake) in fakes.iter().enumerate().take(3) {
        let (act, text) = (act(80), || Value::from(fake.text.as_str()));
        let note = ClaimChange::add(
            Key::new(Kind::Note, format!("late{number}")),
            Value::from([("description", text())]),
        );
        let session = beside.session(&session.id.to_string()).unwrap();
        assert!(session.write(&act).change(note).commit().unwrap().spooled);
        let fact = message(&format!("late{number}"), act.now, &fake.text);
        let new = NewSession {
            agent: Some(fake.text.clone()),
            agent_session: Some(format!("{} {number}", fake.shape)),
            ..NewSession::named(format!("aside {} {number}", fake.shape))
        };
        let wanted = NewCheckpoint {
            body: Value::from([("said", text())]),
            ..NewCheckpoint::manual(fake.text.clone())
        };
        let description = Value::from([("description", text())]);
        let kept = beside.spooled_write(&act, new).unwrap().fact(fact).note("said", description);
        assert!(kept.checkpoint(wanted).save().unwrap().spooled);
    }
    let paths = files_below(&path.join("spool"));
    assert_eq!(paths.len(), 2 * fakes.len().min(3), "each waits by itself");
    paths.iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
}

/// Everything that the store returns, and the raw content of its files.
fn everything(store: &Store, folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for summary in store.sessions().unwrap() {
        let session = store.session(&summary.info.id.to_string()).unwrap();
        all.extend_from_slice(format!("{summary:?}").as_bytes());
        let head = session.head().unwrap();
        all.extend_from_slice(format!("{:?}", session.branches(&head).unwrap()).as_bytes());
        all.extend_from_slice(
            format!("{:?}", session.checkpoints(&CheckpointFilter::default()).unwrap()).as_bytes(),
        );
        let whole = |_: &[u8], _: &str| None;
        session
            .export_events::<Error>(&whole, &mut |line| {
                all.extend_from_slice(line);
                Ok(())
            })
            .unwrap();
        if session.bookmark("log").unwrap().is_some() {
            session
                .write_source::<Error>("log", &mut |part| {
                    all.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
        }
    }
    let paths = files_below(folder);
    assert!(paths.len() > 2);
    for path in paths {
        all.extend_from_slice(&std::fs::read(path).unwrap());
    }
    all
}

fn planted(redaction: Option<Arc<Redactor>>, of_each: u64) -> (Vec<FakeSecret>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = Options::default().redaction(redaction);
    let store = Store::create(&path, options.clone()).unwrap();
    let fakes = fake_secrets(of_each);
    let mut half = Vec::new();
    for of_one_shape in fakes.chunks(of_each as usize) {
        plant(&store, of_one_shape);
        half.extend(aside(&store, &path, &options, of_one_shape));
        store.drain().unwrap();
        store.maintain(forge_store::store::APPLY_BYTES).unwrap();
    }
    half.extend(everything(&store, &path));
    // The same after the index holds the journal's content.
    store.maintain(0).unwrap();
    let all = [half, everything(&store, &path)].concat();
    (fakes, all)
}

/// The formats that are still found, with their counts: literally, as JSON writes them, and as JSON
/// inside JSON.
fn left(fakes: &[FakeSecret], all: &[u8]) -> BTreeMap<&'static str, usize> {
    let quoted = |text: &str| {
        let quoted = json!(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let forms = |fake: &FakeSecret| {
        let forms = [fake.secret.clone(), quoted(&fake.secret), quoted(&quoted(&fake.secret))];
        // Most are the same in all forms.
        let different: BTreeSet<String> = forms.into();
        different.into_iter().map(|form| (form, fake.shape)).collect::<Vec<_>>()
    };
    let (forms, shapes): (Vec<String>, Vec<&str>) = fakes.iter().flat_map(forms).unzip();
    let search = aho_corasick::AhoCorasick::new(forms).unwrap();
    let mut left = BTreeMap::new();
    for found in search.find_overlapping_iter(all) {
        *left.entry(shapes[found.pattern().as_usize()]).or_default() += 1;
    }
    left
}

#[test]
fn no_secret_reaches_the_files_by_any_verb() {
    let (fakes, all) = planted(Some(Arc::new(Redactor::new())), 25);
    assert_eq!(fakes.len(), 25 * shape_count());
    assert_eq!(left(&fakes, &all), BTreeMap::new());
}

#[test]
fn without_redaction_the_same_search_finds_every_format() {
    let (fakes, all) = planted(None, 1);
    let left = left(&fakes, &all);
    let verbs = left.values().min().copied().unwrap_or_default();
    assert_eq!(left.len(), shape_count());
    assert!(verbs > 40, "{left:?}");
}

#[test]
fn redactions_are_reported_and_names_that_are_secrets_are_refused() {
    let options = Options::default().redaction(Arc::new(Redactor::new()));
    let store = Store::in_memory_with(options).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let fake = &fake_secrets(1).into_iter().find(|fake| fake.shape == "github").unwrap();
    let act = act(1);
    let note = Value::from([("description", fake.text.as_str().into())]);
    let add = |id: &str| ClaimChange::add(Key::new(Kind::Note, id), note.clone());
    let done = session.write(&act).change(add("n")).commit().unwrap();
    assert_eq!(done.warnings, ["1 secret was removed before storing: github-token"]);
    let value = done.changed[0].1.clone().unwrap();
    assert_eq!(
        value.field("description"),
        Some(&"it answered with [redacted:github-token] and went on".into())
    );
    for refused in [
        session.write(&act).change(add(&fake.secret)).commit().unwrap_err(),
        session.create_branch(&act, &fake.secret, None, BranchMetadata::default()).unwrap_err(),
    ] {
        let message = refused.to_string();
        assert!(message.contains("looks like a secret (github-token)"), "{message}");
        assert!(!message.contains(&fake.secret), "{message}");
    }
}

/// Regression: the report of a write that was spooled did not say that a secret was removed.
#[test]
fn redactions_of_a_write_that_waits_in_the_spool_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = Options::default().redaction(Arc::new(Redactor::new()));
    let store = Store::create(&path, options.clone()).unwrap();
    store.create_session(&act(0), NewSession::named("s")).unwrap();
    let journal = std::fs::File::open(path.join("journal/append.lock")).unwrap();
    journal.lock().unwrap();
    let options = options.lock_timeout(std::time::Duration::ZERO);
    let session = Store::open(&path, options).unwrap().session("s").unwrap();
    let fake = &fake_secrets(1).into_iter().find(|fake| fake.shape == "github").unwrap();
    let act = act(1);
    let note = Value::from([("description", fake.text.as_str().into())]);
    let write = session.write(&act).add_next(Kind::Note, "N", note);
    let write = write.fact_of_next(|id| Some(message(id, act.now, &fake.text)));
    let done = write.commit().unwrap();
    assert!(done.spooled);
    let warning = "2 secrets were removed before storing: github-token";
    assert_eq!(done.warnings.last().unwrap(), warning);
}
