//! Measures the hot functions one by one: `cargo bench --bench rooms [-- FILTER]`. Each takes about
//! three seconds.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use forge_store::backend::WriteAheadLog;
use forge_store::backend::journal::Journal;
use forge_store::diff;
use forge_store::format::{
    Delta, DeltaChange, DeltaSide, ObjectKind, StateChunk, decode_entry, decode_object,
    encode_entry, encode_key, encode_object, entry_hash,
};
use forge_store::model::{ClaimEntry, Key, Kind, StateDigest, Timestamp, Value, claim};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, ResolvedMoment, Session, Store, WriteContext,
};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

const CLAIMS: usize = 10_000;
const STEPS: usize = 200;
const CHANGES: usize = 25;

fn act(step: usize) -> WriteContext {
    let start = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").expect("a time");
    WriteContext::asked("bench", start.plus_micros(60_000_000 * step as i64))
}

/// A claim of about 300 bytes, with pseudo-random words.
fn claim(place: usize, step: usize) -> (Key, Value) {
    const WORDS: [&str; 16] = [
        "tensor", "layer", "offset", "kernel", "cache", "stale", "lock", "retry", "race", "buffer",
        "index", "hash", "branch", "parse", "token", "scale",
    ];
    let mut seed = (place * 1_000_003 + step) as u64;
    let mut word = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(seed >> 60) as usize]
    };
    let words: Vec<&str> = (0..40).map(|_| word()).collect();
    let value = Value::from([
        ("description", words.join(" ").into()),
        ("confidence", ((place * 7 + step * 13) as f64 % 1000.0 / 1000.0).into()),
        ("tags", vec![word(), word(), word()].into()),
    ]);
    (Key::new(Kind::Belief, format!("b{place:06}")), value)
}

fn entry(place: usize, step: usize) -> (Key, ClaimEntry) {
    let (key, value) = claim(place, step);
    (key, ClaimEntry { added_at: act(0).now, value })
}

fn formats(c: &mut Criterion) {
    let side = |place, step| DeltaSide::Inline(encode_entry(&entry(place, step).1));
    let changes = (0..CHANGES).map(|place| DeltaChange {
        key: encode_key(&claim(place, 0).0),
        old: side(place, 0),
        new: side(place, 1),
    });
    let delta = Delta { changes: changes.collect() };
    let content = delta.encode([7; 16]);
    let (_, encoded) = encode_object(ObjectKind::Delta, &content);
    let mut group = c.benchmark_group("format");
    group.throughput(Throughput::Bytes(content.len() as u64));
    group.bench_function("encode a delta", |b| b.iter(|| black_box(&delta).encode([7; 16])));
    group.bench_function("scan a delta", |b| b.iter(|| Delta::scan(black_box(&content))));
    group.bench_function("encode the object of a delta", |b| {
        b.iter(|| encode_object(ObjectKind::Delta, black_box(&content)));
    });
    group.bench_function("decode the object of a delta", |b| {
        b.iter(|| decode_object(ObjectKind::Delta, black_box(&encoded)).expect("it opens"));
    });
    let mut chunk = StateChunk::default();
    for place in 0..200 {
        chunk.push(&encode_key(&claim(place, 0).0), &encode_entry(&entry(place, 0).1));
    }
    let content = chunk.encode();
    let (_, encoded) = encode_object(ObjectKind::Chunk, &content);
    group.throughput(Throughput::Bytes(content.len() as u64));
    group.bench_function("decode the object of a chunk", |b| {
        b.iter(|| decode_object(ObjectKind::Chunk, black_box(&encoded)).expect("it opens"));
    });
    group.bench_function("scan a chunk", |b| b.iter(|| StateChunk::decode(black_box(&content))));
    group.finish();
}

fn entries(c: &mut Criterion) {
    let (key, one) = entry(1, 1);
    let (key_bytes, bytes) = (encode_key(&key), encode_entry(&one));
    let mut group = c.benchmark_group("entry");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("check", |b| {
        b.iter(|| claim::is_checked(Kind::Belief, black_box(&one.value)));
    });
    group.bench_function("encode", |b| b.iter(|| encode_entry(black_box(&one))));
    group.bench_function("decode", |b| b.iter(|| decode_entry(black_box(&bytes))));
    group.bench_function("add to the digest", |b| {
        b.iter(|| StateDigest::EMPTY.plus(&entry_hash(black_box(&key_bytes), &bytes)));
    });
    group.finish();
}

fn differences(c: &mut Criterion) {
    let old: diff::ClaimMap = (0..1000).map(|place| entry(place, 0)).collect();
    let new: diff::ClaimMap =
        (0..1000).map(|place| entry(place, usize::from(place % 40 == 0))).collect();
    c.bench_function("compare two states of 1000 claims", |b| {
        b.iter(|| diff::compare(black_box(&old), black_box(&new)).len());
    });
}

fn journal(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::create(&folder.path().join("journal")).expect("a journal");
    let payload = vec![7; 4500];
    let mut end = 0;
    c.bench_function("append to the journal, without a sync", |b| {
        b.iter(|| {
            let mut build = |_: &_| Some(payload.clone());
            let appended = journal.append(end, Duration::from_secs(5), &mut build);
            end = appended.expect("it appends").expect("a record").end;
        });
    });
}

fn history(path: &Path) -> Session {
    let store = Store::create(path, Options::default()).expect("a store");
    let session = store.create_session(&act(0), NewSession::named("s")).expect("a session");
    for step in 0..STEPS {
        let places = if step == 0 { 0..CLAIMS } else { 0..CHANGES };
        let changes = places.map(|n| {
            let (key, value) = claim((step * 977 + n * 41) % CLAIMS, step);
            ClaimChange::put(key, value)
        });
        let act = act(step);
        let write = session.write(&act).changes(changes).checkpoint(NewCheckpoint::manual("c"));
        write.imported().commit().expect("a checkpoint");
    }
    store.sync().expect("a sync");
    store.maintain(0).expect("maintenance");
    session
}

fn store(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let session = history(&path);
    let moments: Vec<ResolvedMoment> =
        (0..STEPS).map(|step| session.at_time(act(step).now).expect("a moment")).collect();
    let middle = &moments[STEPS / 2];
    let mut group = c.benchmark_group("store of 10000 claims");
    group.bench_function("materialize", |b| {
        b.iter(|| session.state(middle).expect("a state").claims().len());
    });
    group.bench_function("materialize with nothing read before", |b| {
        let fresh = || {
            let store = Store::open(&path, Options::default()).expect("the store");
            let session = store.session("s").expect("the session");
            session.revision_of(middle).expect("a revision");
            session
        };
        b.iter_batched(
            fresh,
            |session| session.state(middle).expect("a state").claims().len(),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("diff of neighbours", |b| {
        let from = &moments[STEPS / 2 - 1];
        b.iter(|| session.changed_claims(from, middle).expect("a diff").len());
    });
    group.bench_function("diff of first and last", |b| {
        b.iter(|| session.changed_claims(&moments[0], &moments[STEPS - 1]).expect("a diff").len());
    });
    let key = Key::new(Kind::Belief, "b000042");
    group.bench_function("one claim", |b| b.iter(|| session.claim(middle, &key).expect("a claim")));
    group.finish();
}

criterion_group! {
    name = rooms;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = formats, entries, differences, journal, store
}
criterion_main!(rooms);
