use super::*;
use forge_store::model::{Kind, Timestamp, claim};
use forge_store::redact::Redactor;
use forge_store::store::{Options, Store};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A graph in memory, and the clock of the test.
struct Graph {
    store: GraphStore,
    now: i64,
}

fn typed(text: &str) -> TypedBytes {
    TypedBytes { encoding: "msgpack".to_owned(), bytes: text.as_bytes().to_vec().into() }
}

/// A MessagePack list of texts.
fn list(items: &[&str]) -> TypedBytes {
    let texts = items
        .iter()
        .flat_map(|item| [vec![0xd9, item.len() as u8], item.as_bytes().to_vec()].concat());
    let mut bytes = vec![0xdc, 0, items.len() as u8];
    bytes.extend(texts);
    TypedBytes { encoding: "msgpack".to_owned(), bytes: bytes.into() }
}

fn channel(name: &str, version: u64, value: TypedBytes) -> NewChannel {
    NewChannel {
        name: name.to_owned(),
        version: version.to_string(),
        is_new: true,
        value: NewValue::Given(value),
    }
}

fn kept(name: &str, version: u64) -> NewChannel {
    NewChannel { is_new: false, value: NewValue::Held, ..channel(name, version, typed("")) }
}

fn write(task: &str, slot: i64, channel: &str, value: &str) -> PendingWrite {
    PendingWrite {
        task: task.to_owned(),
        path: String::new(),
        slot,
        channel: channel.to_owned(),
        value: typed(value),
    }
}

impl Graph {
    fn new() -> Self {
        Self { store: GraphStore::new(Store::in_memory().unwrap()), now: 0 }
    }

    fn tick(&mut self) -> Timestamp {
        self.now += 1000;
        Timestamp::from_micros(self.now)
    }

    fn step(&self, thread: &str, namespace: &str, id: &str, parent: Option<&str>) -> NewStep {
        NewStep {
            thread: thread.to_owned(),
            namespace: namespace.to_owned(),
            id: id.to_owned(),
            parent: parent.map(str::to_owned),
            head: typed(&format!("head of {id}")),
            metadata: typed(&format!("metadata of {id}")),
            notes: StepNotes { message: format!("step {id}"), ..StepNotes::default() },
            ..NewStep::default()
        }
    }

    fn put(&mut self, new: &NewStep) -> PutOutcome {
        let now = self.tick();
        self.store.put(now, new).unwrap()
    }

    /// Puts a checkpoint with one channel `c`, and returns its branch.
    fn put_plain(
        &mut self,
        thread: &str,
        namespace: &str,
        id: &str,
        parent: Option<&str>,
    ) -> String {
        let mut new = self.step(thread, namespace, id, parent);
        new.channels = vec![channel("c", 1, typed(id))];
        match self.put(&new) {
            PutOutcome::Written { branch, .. } => branch,
            other => panic!("{other:?}"),
        }
    }

    fn writes(&mut self, thread: &str, namespace: &str, id: &str, writes: &[PendingWrite]) {
        let (thread, namespace, id) = (thread.to_owned(), namespace.to_owned(), id.to_owned());
        let address = StepAddress { thread, namespace, id };
        let now = self.tick();
        self.store.put_writes(now, &address, (&writes[0].task, &writes[0].path), writes).unwrap();
    }

    fn get(&self, thread: &str, namespace: &str, id: Option<&str>) -> Option<StoredStep> {
        self.store.get(thread, namespace, id).unwrap()
    }

    fn value(&self, thread: &str, id: &str, channel: &str) -> Option<Vec<u8>> {
        let step = self.get(thread, "", Some(id)).unwrap();
        step.channels.get(channel).map(|value| value.bytes.to_vec())
    }

    fn listed(&self, thread: Option<&str>, namespace: Option<&str>) -> Vec<String> {
        let found = self.store.list(thread, namespace, None, None).unwrap();
        found
            .into_iter()
            .map(|one| format!("{}/{}/{}", one.thread, one.namespace, one.id))
            .collect()
    }

    fn claims(&self, thread: &str, kind: Kind) -> Vec<String> {
        let session = self.store.session(thread).unwrap().unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        state.claims().entries_of_kind(kind).map(|entry| entry.unwrap().0.id).collect()
    }
}

#[test]
fn a_checkpoint_of_a_graph_is_read_back_as_it_was_put() {
    let mut graph = Graph::new();
    assert_eq!(graph.get("t", "", None), None);
    let items = list(&["a message of some length", "another message of that kind", "third"]);
    let mut new = graph.step("t", "", "1", None);
    new.channels = vec![
        channel("messages", 1, items.clone()),
        channel("odd name/\u{7}", 1, typed("\u{1}")),
        NewChannel { value: NewValue::None, ..channel("none", 1, typed("")) },
    ];
    let written = PutOutcome::Written { branch: "main".to_owned(), is_fork: false };
    assert_eq!(graph.put(&new), written);
    let step = graph.get("t", "", None).unwrap();
    assert_eq!((step.id.as_str(), step.parent.as_ref()), ("1", None));
    assert_eq!((step.head, step.metadata), (new.head.clone(), new.metadata.clone()));
    let wanted = BTreeMap::from([
        ("messages".to_owned(), items),
        ("odd name/\u{7}".to_owned(), typed("\u{1}")),
    ]);
    assert_eq!(step.channels, wanted);
    // A second handle has nothing in memory.
    let other = GraphStore::new(graph.store.store().clone());
    assert_eq!(other.get("t", "", Some("1")).unwrap().unwrap().channels, wanted);
    assert_eq!(other.get("t", "", Some("2")).unwrap(), None);
    assert_eq!(other.get("u", "", None).unwrap(), None);
}

#[test]
fn a_channel_value_is_reused_by_its_version_and_requested_if_it_is_unknown() {
    let mut graph = Graph::new();
    let mut first = graph.step("t", "", "1", None);
    first.channels = vec![channel("a", 1, typed("a1")), channel("b", 1, typed("b1"))];
    graph.put(&first);
    let mut second = graph.step("t", "", "2", Some("1"));
    second.channels = vec![kept("a", 1), kept("b", 2)];
    assert_eq!(graph.put(&second), PutOutcome::NeedsValues(vec!["b".to_owned()]));
    assert_eq!(graph.get("t", "", Some("2")), None);
    second.channels[1].value = NewValue::Given(typed("b2"));
    graph.put(&second);
    assert_eq!(graph.value("t", "2", "a").unwrap(), b"a1");
    assert_eq!(graph.value("t", "2", "b").unwrap(), b"b2");
    // `b` has no value with another version, and `a` is not named: both have no value.
    let mut third = graph.step("t", "", "3", Some("2"));
    third.channels = vec![NewChannel { value: NewValue::None, ..kept("b", 3) }];
    graph.put(&third);
    assert!(graph.get("t", "", None).unwrap().channels.is_empty());
    assert!(graph.claims("t", Kind::ChannelElement).is_empty());
    assert_eq!(graph.value("t", "2", "b").unwrap(), b"b2");
}

#[test]
fn a_second_checkpoint_after_the_same_one_is_a_branch() {
    let mut graph = Graph::new();
    assert_eq!(graph.put_plain("t", "", "1", None), "main");
    assert_eq!(graph.put_plain("t", "", "2", Some("1")), "main");
    assert_eq!(graph.put_plain("t", "", "3", Some("1")), "fork-3");
    assert_eq!(graph.put_plain("t", "", "4", Some("3")), "fork-3");
    assert_eq!(graph.put_plain("t", "", "5", Some("2")), "main");
    for id in ["1", "2", "3", "4", "5"] {
        assert_eq!(graph.value("t", id, "c").unwrap(), id.as_bytes());
    }
    let mut refused = graph.step("t", "", "6", Some("1"));
    refused.fork = ForkPolicy::Refuse;
    assert_eq!(graph.put(&refused), PutOutcome::WouldFork);
    assert_eq!(graph.get("t", "", None).unwrap().id, "5");
}

/// Regression: redaction took the operation of a step for a secret, so steps could not be
/// distinguished.
#[test]
fn a_store_that_redacts_keeps_branches_apart() {
    let redactor = Some(Arc::new(Redactor::new()));
    let options = Options::default().redaction(redactor);
    let store = GraphStore::new(Store::in_memory_with(options).unwrap());
    let mut graph = Graph { store, now: 0 };
    let mut parents = vec![None];
    let ids: Vec<String> = (10..50).map(|number| number.to_string()).collect();
    for (number, id) in ids.iter().enumerate() {
        let mut new = graph.step("t", "", id, parents[number / 2]);
        let items: Vec<&str> = ids[..=number].iter().step_by(2).map(String::as_str).collect();
        new.channels = vec![channel("c", number as u64, list(&items))];
        graph.put(&new);
        parents.push(Some(id.as_str()));
    }
    graph.store = GraphStore::new(graph.store.store().clone());
    for (number, id) in ids.iter().enumerate() {
        let items: Vec<&str> = ids[..=number].iter().step_by(2).map(String::as_str).collect();
        assert_eq!(graph.value("t", id, "c").unwrap(), *list(&items).bytes, "{id}");
    }
}

#[test]
fn steps_of_subgraphs_do_not_begin_a_branch() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    assert_eq!(graph.put_plain("t", "a:x", "2", None), "main");
    assert_eq!(graph.put_plain("t", "memory", "3", None), "main");
    assert_eq!(graph.put_plain("t", "a:x", "4", Some("2")), "main");
    assert_eq!(graph.claims("t", Kind::Channel), ["a:x/c", "graph/c", "memory/c"]);
    assert_eq!(graph.put_plain("t", "", "5", Some("1")), "main");
    // The call of `a:x` has ended. The subgraph `memory` continues.
    assert_eq!(graph.claims("t", Kind::Channel), ["graph/c", "memory/c"]);
    assert_eq!(graph.claims("t", Kind::GraphStep), ["graph", "memory"]);
    assert_eq!(graph.get("t", "a:x", None).unwrap().channels["c"], typed("4"));
    assert_eq!(graph.put_plain("t", "memory", "6", Some("3")), "main");
    // A step of the past calls the subgraph again: the branch begins with the subgraph's step.
    let mut again = graph.step("t", "a:y", "7", None);
    again.notes.root = Some("1".to_owned());
    let PutOutcome::Written { branch, is_fork } = graph.put(&again) else { panic!() };
    assert_eq!((branch.as_str(), is_fork), ("fork-7", true));
    assert_eq!(graph.put_plain("t", "", "8", Some("1")), "fork-7");
}

/// Regression: the step of the root graph ended the calls that it makes, if they came before it.
/// Then the next step of the subgraph was taken for a fork.
#[test]
fn a_call_of_a_subgraph_may_come_before_the_step_that_makes_it() {
    let mut graph = Graph::new();
    let call = |graph: &mut Graph, namespace: &str, id: &str, parent: Option<&str>, root: &str| {
        let mut new = graph.step("t", namespace, id, parent);
        new.channels = vec![channel("c", 1, typed(id))];
        new.notes.root = Some(root.to_owned());
        new.fork = ForkPolicy::Refuse;
        graph.put(&new)
    };
    let written = PutOutcome::Written { branch: "main".to_owned(), is_fork: false };
    graph.put_plain("t", "", "1", None);
    assert_eq!(call(&mut graph, "a:x", "4", None, "3"), written);
    assert_eq!(graph.put_plain("t", "", "2", Some("1")), "main");
    assert_eq!(graph.put_plain("t", "", "3", Some("2")), "main");
    assert_eq!(call(&mut graph, "a:x", "5", Some("4"), "3"), written);
    assert_eq!(call(&mut graph, "b:y", "7", None, "6"), written);
    // The call of step 3 ends, and not that of step 6.
    assert_eq!(graph.put_plain("t", "", "6", Some("3")), "main");
    assert_eq!(graph.claims("t", Kind::GraphStep), ["b:y", "calls/", "graph"]);
    assert_eq!(call(&mut graph, "b:y", "8", Some("7"), "6"), written);
    assert_eq!(graph.put_plain("t", "", "9", Some("6")), "main");
    assert_eq!(graph.claims("t", Kind::GraphStep), ["graph"]);
    assert_eq!(graph.get("t", "a:x", None).unwrap().channels["c"], typed("5"));
}

/// Regression: the list of fields, which a purge protects, had another name for `operation`.
#[test]
fn every_field_of_a_step_is_in_the_list_of_its_kind() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    graph.put_plain("t", "a:x", "2", None);
    let session = graph.store.session("t").unwrap().unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    let known: Vec<&str> = claim::fields(Kind::GraphStep).iter().map(|field| field.name).collect();
    for entry in state.claims().entries_of_kind(Kind::GraphStep) {
        let value = entry.unwrap().1.value;
        for name in value.as_map().unwrap().keys() {
            assert!(known.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_put_again_is_replaced() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    graph.put_plain("t", "", "2", Some("1"));
    let mut again = graph.step("t", "", "2", None);
    again.channels = vec![channel("d", 5, typed("other"))];
    again.metadata = typed("new metadata");
    graph.put(&again);
    let step = graph.get("t", "", Some("2")).unwrap();
    assert_eq!((step.parent, step.metadata), (None, typed("new metadata")));
    assert_eq!(step.channels, BTreeMap::from([("d".to_owned(), typed("other"))]));
    assert_eq!(graph.listed(Some("t"), Some("")), ["t//2", "t//1"]);
}

#[test]
fn writes_may_come_first_and_belong_to_their_checkpoint() {
    let mut graph = Graph::new();
    graph.writes("t", "", "1", &[write("a", 0, "c", "early"), write("a", -1, "__error__", "e1")]);
    assert_eq!(graph.get("t", "", None), None);
    graph.put_plain("t", "", "1", None);
    graph.writes("t", "", "1", &[write("a", 0, "c", "late"), write("a", -1, "__error__", "e2")]);
    let step = graph.get("t", "", Some("1")).unwrap();
    assert_eq!(step.writes, [write("a", -1, "__error__", "e2"), write("a", 0, "c", "early")]);
    graph.put_plain("t", "", "2", Some("1"));
    assert!(graph.get("t", "", None).unwrap().writes.is_empty());
}

#[test]
fn lists_of_graph_checkpoints_are_separated_by_thread_and_namespace() {
    let mut graph = Graph::new();
    for (thread, namespace, id) in
        [("t", "", "1"), ("t", "a", "2"), ("u", "", "3"), ("a\nb", "", "4"), ("~x", "b:1|c:2", "5")]
    {
        graph.put_plain(thread, namespace, id, None);
    }
    assert_eq!(graph.listed(Some("t"), Some("")), ["t//1"]);
    assert_eq!(graph.listed(Some("t"), None), ["t/a/2", "t//1"]);
    let all = ["~x/b:1|c:2/5", "a\nb//4", "u//3", "t/a/2", "t//1"];
    assert_eq!(graph.listed(None, None), all);
    let found = graph.store.list(None, None, Some("3"), None).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(graph.store.list(Some("t"), None, None, Some("2")).unwrap()[0].id, "1");
}

#[test]
fn a_history_follows_the_parents_to_the_value() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    graph.writes("t", "", "1", &[write("a", 0, "c", "w1"), write("a", 1, "d", "x1")]);
    for (id, parent) in [("2", "1"), ("3", "2")] {
        let new = graph.step("t", "", id, Some(parent));
        graph.put(&new);
        graph.writes("t", "", id, &[write("a", 0, "c", &format!("w{id}"))]);
    }
    let names = ["c".to_owned(), "d".to_owned()];
    let found = graph.store.history("t", "", Some("3"), &names).unwrap();
    let texts = |name: &str| -> Vec<Vec<u8>> {
        found[name].writes.iter().map(|write| write.value.bytes.to_vec()).collect()
    };
    assert_eq!(texts("c"), [b"w1", b"w2"]);
    assert_eq!(found["c"].seed, Some(typed("1")));
    assert_eq!((texts("d"), found["d"].seed.as_ref()), (vec![b"x1".to_vec()], None));
    assert_eq!(graph.store.history("none", "", None, &names).unwrap()["c"], Default::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Lists that change anywhere, on branches: every checkpoint keeps its values.
    #[test]
    fn every_checkpoint_of_a_branched_history_keeps_its_values(
        steps in proptest::collection::vec(
            (any::<prop::sample::Index>(), proptest::collection::vec("[a-d]{12}", 0..20), any::<bool>()),
            1..14),
    ) {
        let mut graph = Graph::new();
        let mut wanted: Vec<TypedBytes> = Vec::new();
        for (number, (parent, items, stays)) in steps.iter().enumerate() {
            let parent = (number > 0).then(|| parent.index(number));
            let value = list(&items.iter().map(String::as_str).collect::<Vec<_>>());
            let name = parent.map(|parent| format!("{parent:03}"));
            let mut new = graph.step("t", "", &format!("{number:03}"), name.as_deref());
            let stays = *stays && parent.is_some();
            // Versions as a framework gives them: a new value has a new one.
            let mut one = channel("c", number as u64, value.clone());
            if let Some(parent) = parent.filter(|_| stays) {
                let known = graph.get("t", "", Some(&format!("{parent:03}"))).unwrap();
                prop_assert_eq!(&known.channels["c"], &wanted[parent]);
                one = channel("c", number as u64, wanted[parent].clone());
            }
            wanted.push(if stays { wanted[parent.unwrap()].clone() } else { value });
            new.channels = vec![one];
            graph.put(&new);
        }
        let fresh = GraphStore::new(graph.store.store().clone());
        for (number, value) in wanted.iter().enumerate() {
            let step = fresh.get("t", "", Some(&format!("{number:03}"))).unwrap().unwrap();
            prop_assert_eq!(&step.channels["c"], value);
        }
    }
}

/// Adds a step in which channel `c` has only the writes of tasks, and one such write.
fn delta_step(graph: &mut Graph, id: &str, parent: Option<&str>, run: &str) {
    let mut new = graph.step("t", "", id, parent);
    new.notes.delta = vec!["c".to_owned()];
    new.notes.run_id = Some(run.to_owned());
    graph.put(&new);
    graph.writes("t", "", id, &[write("a", 0, "c", &format!("w{id}"))]);
}

fn history_of(graph: &Graph, thread: &str, id: &str) -> Vec<String> {
    history_in(&graph.store, thread, id)
}

fn history_in(graphs: &GraphStore, thread: &str, id: &str) -> Vec<String> {
    let found = graphs.history(thread, "", Some(id), &["c".to_owned()]).unwrap();
    let writes = found["c"].writes.iter();
    writes.map(|write| String::from_utf8(write.value.bytes.to_vec()).unwrap()).collect()
}

#[test]
fn pruning_keeps_histories() {
    let mut graph = Graph::new();
    for (id, parent) in [("1", None), ("2", Some("1")), ("3", Some("2")), ("4", Some("3"))] {
        delta_step(&mut graph, id, parent, "r");
    }
    let before = history_of(&graph, "t", "4");
    assert_eq!(before, ["w1", "w2", "w3"]);
    let now = graph.tick();
    graph.store.prune(now, &["t".to_owned(), "none".to_owned()], KeepStrategy::Latest).unwrap();
    assert_eq!(graph.listed(Some("t"), None), ["t//4"]);
    assert_eq!(graph.get("t", "", None).unwrap().parent, None);
    assert_eq!(history_of(&graph, "t", "4"), before);
    delta_step(&mut graph, "5", Some("4"), "r");
    assert_eq!(history_of(&graph, "t", "5"), ["w1", "w2", "w3", "w4"]);
    let now = graph.tick();
    graph.store.copy_thread(now, "t", "u").unwrap();
    assert_eq!(history_of(&graph, "u", "5"), ["w1", "w2", "w3", "w4"]);
    let other = GraphStore::new(Store::in_memory().unwrap());
    graph.store.copy_thread_to(now, "t", &other, "u").unwrap();
    assert_eq!(history_in(&other, "u", "5"), ["w1", "w2", "w3", "w4"]);
    // A new checkpoint with the id of a dropped one has none of its writes.
    graph.put_plain("t", "", "2", None);
    assert!(graph.get("t", "", Some("2")).unwrap().writes.is_empty());
}

#[test]
fn the_checkpoints_of_a_run_are_deleted_in_all_threads() {
    let mut graph = Graph::new();
    for (id, parent, run) in [("1", None, "a"), ("2", Some("1"), "b\n"), ("3", Some("2"), "a")] {
        delta_step(&mut graph, id, parent, run);
    }
    let now = graph.tick();
    graph.store.copy_thread(now, "t", "u").unwrap();
    graph.store.delete_for_runs(now, &["b\n".to_owned(), "none".to_owned()]).unwrap();
    assert_eq!(graph.listed(None, None), ["t//3", "u//3", "t//1", "u//1"]);
    assert_eq!(history_of(&graph, "t", "3"), ["w1", "w2"]);
    assert_eq!(graph.get("u", "", Some("3")).unwrap().parent, None);
}

#[test]
fn a_deleted_thread_begins_empty() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    graph.put_plain("t", "a:x", "1", None);
    graph.writes("t", "", "9", &[write("a", 0, "c", "early")]);
    let now = graph.tick();
    graph.store.delete_thread(now, "t").unwrap();
    graph.store.delete_thread(now, "none").unwrap();
    assert!(graph.listed(None, None).is_empty());
    assert_eq!(graph.get("t", "", Some("1")), None);
    graph.put_plain("t", "", "9", None);
    let step = graph.get("t", "", None).unwrap();
    assert_eq!((step.writes.len(), step.channels["c"].clone()), (0, typed("9")));
}

#[test]
fn a_copy_has_everything_and_can_be_repeated() {
    let mut graph = Graph::new();
    graph.put_plain("t", "", "1", None);
    graph.put_plain("t", "", "2", Some("1"));
    graph.put_plain("t", "", "3", Some("1"));
    graph.put_plain("t", "a:x|b", "4", None);
    graph.writes("t", "", "3", &[write("a", 0, "c", "w")]);
    let now = graph.tick();
    graph.store.copy_thread(now, "none", "u").unwrap();
    assert!(graph.store.session("u").unwrap().is_none());
    let other = GraphStore::new(Store::in_memory().unwrap());
    graph.store.copy_thread_to(now, "t", &other, "t").unwrap();
    for one in graph.store.list(Some("t"), None, None, None).unwrap() {
        let copy = other.get("t", &one.namespace, Some(&one.id)).unwrap();
        assert_eq!(copy, graph.get("t", &one.namespace, Some(&one.id)));
    }
    for target in ["u", "u", "t"] {
        graph.store.copy_thread(now, "t", target).unwrap();
        for one in graph.store.list(Some("t"), None, None, None).unwrap() {
            let copy = graph.get(target, &one.namespace, Some(&one.id));
            assert_eq!(copy, graph.get("t", &one.namespace, Some(&one.id)));
        }
        assert_eq!(graph.listed(Some(target), None).len(), 4);
    }
}

/// Regression: a copy lacked the pending writes of checkpoints that did not exist yet. The copy of
/// a thread with nothing else was empty.
#[test]
fn a_copy_has_the_pending_writes_of_checkpoints_that_follow() {
    let mut graph = Graph::new();
    let early = [write("a", 0, "c", "w")];
    graph.writes("t", "", "1", &early);
    let now = graph.tick();
    graph.store.copy_thread(now, "t", "u").unwrap();
    graph.put_plain("u", "", "1", None);
    assert_eq!(graph.get("u", "", Some("1")).unwrap().writes, early);
    graph.writes("u", "", "2", &early);
    let now = graph.tick();
    graph.store.copy_thread(now, "u", "v").unwrap();
    graph.put_plain("v", "", "2", Some("1"));
    for id in ["1", "2"] {
        assert_eq!(graph.get("v", "", Some(id)).unwrap().writes, early, "{id}");
    }
}

#[test]
fn the_latest_step_is_found_after_puts_and_deletions() {
    let mut graph = Graph::new();
    let other = GraphStore::new(graph.store.store().clone());
    let latest = |graph: &Graph, wanted: Option<&str>| {
        for store in [&graph.store, &other, &GraphStore::new(graph.store.store().clone())] {
            let found = store.get("t", "", None).unwrap().map(|step| step.id);
            assert_eq!(found.as_deref(), wanted);
        }
    };
    latest(&graph, None);
    graph.put_plain("t", "", "2", None);
    latest(&graph, Some("2"));
    // An older id is written later; another namespace has a greater one.
    graph.put_plain("t", "", "1", Some("2"));
    graph.put_plain("t", "a", "9", None);
    latest(&graph, Some("2"));
    graph.put_plain("t", "", "3", Some("2"));
    latest(&graph, Some("3"));
    let mut run = graph.step("t", "", "4", Some("3"));
    run.notes.run_id = Some("r".to_owned());
    graph.put(&run);
    latest(&graph, Some("4"));
    let now = graph.tick();
    graph.store.delete_for_runs(now, &["r".to_owned()]).unwrap();
    graph.put_plain("t", "a", "99", Some("9"));
    latest(&graph, Some("3"));
    let now = graph.tick();
    graph.store.delete_thread(now, "t").unwrap();
    latest(&graph, None);
    graph.put_plain("t", "", "1", None);
    latest(&graph, Some("1"));
}
