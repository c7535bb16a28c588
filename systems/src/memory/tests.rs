use super::exact_value::{put_nulls, take_nulls};
use super::*;
use forge_store::error::Error;
use forge_store::model::{SessionKind, Timestamp, Value};
use forge_store::store::{Store, WriteContext};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn memory(store: &Store, name: &str) -> KeyedMemory {
    KeyedMemory::new(store.clone(), name).unwrap()
}

fn act(micros: i64) -> WriteContext {
    WriteContext::asked("memory write", Timestamp::from_micros(micros))
}

fn put(key: &str, value: impl Into<Value>) -> MemoryChanges {
    MemoryChanges { puts: BTreeMap::from([(key.to_owned(), value.into())]), ..Default::default() }
}

fn keys(items: &[MemoryItem]) -> Vec<&str> {
    items.iter().map(|item| item.key.as_str()).collect()
}

/// Generates JSON values: nulls everywhere, empty lists and maps, maps that look like bytes.
fn json() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (u64::MAX / 2 + 1..).prop_map(Value::UInt),
        (-1e300..1e300).prop_map(Value::Float),
        ".{0,8}".prop_map(Value::from),
        Just(Value::from([("$bytes", "AAEC".into())])),
    ];
    plain.prop_recursive(4, 40, 5, |inner| {
        let name = prop_oneof!["[a~/0]{0,3}", Just("$bytes".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_json_value_is_read_back_unchanged(values in prop::collection::vec(json(), 1..6)) {
        let store = Store::in_memory().unwrap();
        let memory = memory(&store, "values");
        let puts = values.into_iter().enumerate().map(|(number, value)| (format!("k{number}"), value));
        let changes = MemoryChanges { puts: puts.collect(), ..Default::default() };
        memory.write(&act(1), &changes).unwrap();
        let found = memory.items(ItemQuery::default(), None).unwrap().into_iter();
        let found: BTreeMap<String, Value> = found.map(|item| (item.key, item.value)).collect();
        prop_assert_eq!(found, changes.puts);
    }

    #[test]
    fn put_nulls_restores_the_nulls_that_were_taken(value in json()) {
        let mut kept = value.clone();
        let pointers = take_nulls(&mut kept);
        prop_assert_eq!(&kept, &value.clone().without_nulls());
        put_nulls(&mut kept, pointers.iter().map(String::as_str));
        prop_assert_eq!(kept, value);
    }

    #[test]
    fn items_are_in_the_order_of_their_keys(
        known in prop::collection::btree_set("[~a/ ü\u{1}]{1,4}|a{198,202}", 0..12),
        prefix in "[~a/]{0,2}",
        after in prop::option::of("[~a/ ]{1,2}"),
        limit in prop::option::of(0_usize..6),
    ) {
        let store = Store::in_memory().unwrap();
        let memory = memory(&store, "a\nname");
        let puts = known.iter().map(|key| (key.clone(), Value::from(key.as_str())));
        memory.write(&act(1), &MemoryChanges { puts: puts.collect(), ..Default::default() }).unwrap();
        let query = ItemQuery { prefix: &prefix, after: after.as_deref(), limit };
        let found = memory.items(query, None).unwrap();
        let expected = known.iter().filter(|key| key.starts_with(&prefix));
        let expected = expected.filter(|key| after.as_ref().is_none_or(|after| *key > after));
        let expected: Vec<&str> =
            expected.map(String::as_str).take(limit.unwrap_or(usize::MAX)).collect();
        prop_assert_eq!(keys(&found), expected);
        for key in &known {
            let item = memory.get(key, None).unwrap().unwrap();
            prop_assert_eq!((&item.key, item.value), (key, Value::from(key.as_str())));
        }
    }
}

#[test]
fn the_version_counts_writes_and_a_deleted_item_begins_again() {
    let store = Store::in_memory().unwrap();
    let memory = memory(&store, "m");
    memory.write(&act(10), &put("a", 1_i64)).unwrap();
    let before = memory.session().unwrap().unwrap().head().unwrap();
    memory.write(&act(20), &put("a", 1_i64)).unwrap();
    let item = memory.get("a", None).unwrap().unwrap();
    assert_eq!((item.version, item.created_at, item.updated_at), {
        (2, Timestamp::from_micros(10), Timestamp::from_micros(20))
    });
    let item = memory.get("a", Some(&before)).unwrap().unwrap();
    assert_eq!((item.version, item.updated_at), (1, Timestamp::from_micros(10)));

    let changes = MemoryChanges { deletes: BTreeSet::from(["a".to_owned()]), ..Default::default() };
    memory.write(&act(30), &changes).unwrap();
    assert_eq!(memory.get("a", None).unwrap(), None);
    assert_eq!(keys(&memory.items(ItemQuery::default(), Some(&before)).unwrap()), ["a"]);
    memory.write(&act(40), &put("a", 2_i64)).unwrap();
    assert_eq!(memory.get("a", None).unwrap().unwrap().version, 1);
}

#[test]
fn a_write_that_expects_another_version_changes_nothing() {
    let store = Store::in_memory().unwrap();
    let memory = memory(&store, "m");
    let expecting = |changes: MemoryChanges, version: Option<u64>| MemoryChanges {
        expected: BTreeMap::from([("a".to_owned(), version)]),
        ..changes
    };
    // A write that changes nothing does not begin the session.
    let refused = memory.write(&act(1), &expecting(MemoryChanges::default(), Some(1)));
    assert!(matches!(refused, Err(Error::Conflict(_))));
    memory.write(&act(1), &expecting(MemoryChanges::default(), None)).unwrap();
    assert!(memory.session().unwrap().is_none());

    memory.write(&act(2), &expecting(put("a", 1_i64), None)).unwrap();
    let mut both = put("a", 2_i64);
    both.puts.insert("b".to_owned(), Value::Null);
    let error = memory.write(&act(3), &expecting(both.clone(), None)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the item 'a' has version 1 now, and the write expects no value: read it again"
    );
    assert_eq!(memory.get("b", None).unwrap(), None);
    memory.write(&act(3), &expecting(both, Some(1))).unwrap();
    assert_eq!(memory.get("b", None).unwrap().unwrap().value, Value::Null);
}

#[test]
fn a_dropped_memory_has_no_items_and_its_name_is_free() {
    let store = Store::in_memory().unwrap();
    let (one, long) = (memory(&store, "m"), memory(&store, &"long ".repeat(100)));
    assert!(!one.drop_all(&act(1)).unwrap());
    one.write(&act(2), &put("a", 1_i64)).unwrap();
    long.write(&act(3), &put("a", 2_i64)).unwrap();
    assert_eq!(memory_names(&store, "").unwrap(), ["long ".repeat(100), "m".to_owned()]);
    assert!(one.drop_all(&act(4)).unwrap());
    assert_eq!(memory_names(&store, "m").unwrap(), [""; 0]);
    assert_eq!(one.get("a", None).unwrap(), None);
    let dropped = store.dropped_session(SessionKind::Memory, "m").unwrap().unwrap();
    dropped.undo(&act(5), None).unwrap();
    assert_eq!(one.get("a", None).unwrap().unwrap().version, 1);
    one.drop_all(&act(5)).unwrap();
    one.write(&act(5), &put("b", 1_i64)).unwrap();
    assert_eq!(keys(&one.items(ItemQuery::default(), None).unwrap()), ["b"]);
    assert_eq!(keys(&long.items(ItemQuery::default(), None).unwrap()), ["a"]);
}

#[test]
fn keys_that_cannot_be_stored_are_refused() {
    let store = Store::in_memory().unwrap();
    let memory = memory(&store, "m");
    for key in [String::new(), "x".repeat(MAX_MEMORY_KEY_BYTES + 1)] {
        let error = memory.write(&act(1), &put(&key, 1_i64)).unwrap_err().to_string();
        assert!(error.contains("use 1 to 4096"), "{error}");
    }
    let mut both = put("a", 1_i64);
    both.deletes.insert("a".to_owned());
    let error = memory.write(&act(1), &both).unwrap_err().to_string();
    assert!(error.contains("both put and deleted"), "{error}");
    assert!(memory.session().unwrap().is_none());
}
