//! The laws of runs on random input, compared with a simple model.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Deed {
    Record {
        item: u8,
        step: u8,
        output: u8,
        next: Option<u8>,
        terminal: bool,
    },
    Forget {
        item: u8,
        step: u8,
    },
    /// Simulates the death of the process and the start of another.
    Crash,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..3_u8, 0..4_u8, 0..3_u8, proptest::option::of(0..4_u8), any::<bool>()).prop_map(
            |(item, step, output, next, terminal)| Deed::Record { item, step, output, next, terminal }
        ),
        1 => (0..3_u8, 0..4_u8).prop_map(|(item, step)| Deed::Forget { item, step }),
        1 => Just(Deed::Crash),
    ]
}

/// The expected contents of the run: the outputs and the last record of each item.
#[derive(Default)]
struct Naive {
    outputs: BTreeMap<(String, String), String>,
    terminal: BTreeMap<String, bool>,
}

fn check(run: &WorkflowRun, naive: &Naive) -> Result<(), TestCaseError> {
    let resumed = run.resume().unwrap();
    let mut held = BTreeMap::new();
    for loaded in &resumed.items {
        prop_assert_eq!(&run.load(&loaded.item.item).unwrap(), loaded, "one and all are the same");
        for output in &loaded.outputs {
            prop_assert!(loaded.is_done(&output.step));
            held.insert((output.item.clone(), output.step.clone()), output.content.clone());
        }
    }
    prop_assert_eq!(&held, &naive.outputs, "every finished step has its output, no other has one");
    let terminal: BTreeMap<String, bool> =
        resumed.items.iter().map(|one| (one.item.item.clone(), !one.item.is_active())).collect();
    prop_assert_eq!(&terminal, &naive.terminal);
    let state = run.state().unwrap();
    let ended = terminal.values().filter(|terminal| **terminal).count();
    prop_assert_eq!((state.items as usize, state.terminal as usize), (terminal.len(), ended));
    let all_ended = !terminal.is_empty() && ended == terminal.len();
    prop_assert_eq!(state.status == RunStatus::Finished, all_ended);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_resumed_run_has_all_recorded_outputs(deeds in proptest::collection::vec(deed(), 1..24)) {
        let store = Store::in_memory().unwrap();
        let mut run = run(&store);
        let mut naive = Naive::default();
        for (second, deed) in (1..).zip(deeds) {
            match deed {
                Deed::Crash => run = WorkflowRun::open(&store, "nightly").unwrap(),
                Deed::Forget { item, step } => {
                    let (item, step) = (format!("i{item}"), format!("s{step}"));
                    let known = naive.outputs.remove(&(item.clone(), step.clone())).is_some();
                    let forgotten = run.forget(&act(second), &item, std::slice::from_ref(&step));
                    prop_assert_eq!(forgotten.is_ok(), known);
                    if known {
                        naive.terminal.insert(item, false);
                    }
                }
                Deed::Record { item, step: name, output, next, terminal } => {
                    let (item, name) = (format!("i{item}"), format!("s{name}"));
                    let again = run.item(&item).is_ok_and(|known| known.step.as_ref() == Some(&name));
                    let goes = match (terminal, next) {
                        (true, _) => NextStep::Terminal,
                        (false, Some(next)) => next_step(&format!("s{next}")),
                        (false, None) => NextStep::Unknown,
                    };
                    let stays = again && goes == NextStep::Unknown;
                    let record = step(&item, &name, &output.to_string(), goes);
                    run.record(&act(second), &record).unwrap();
                    prop_assert!(run.record(&act(second + 1000), &record).unwrap().is_unchanged());
                    naive.outputs.insert((item.clone(), name), output.to_string());
                    let was = naive.terminal.get(&item).copied().unwrap_or(false);
                    naive.terminal.insert(item, if stays { was } else { terminal });
                }
            }
            check(&run, &naive)?;
        }
    }

    /// A worker does the next step, dies at any moment, and is restarted until all is done: no step
    /// is done twice once its record was acknowledged.
    #[test]
    fn a_finished_step_is_never_done_again(
        items in 1..4_usize, deaths in proptest::collection::vec(1..6_usize, 0..6),
    ) {
        const STEPS: [&str; 4] = ["extract", "grade", "improve", "format"];
        let store = Store::in_memory().unwrap();
        let first = run(&store);
        let input = (0..items).map(|item| Value::from([("item", item.to_string().into())]));
        first.start(&act(0), Some(&Value::List(input.collect()))).unwrap();
        let mut done: BTreeMap<(String, &str), usize> = BTreeMap::new();
        let mut second = 0;
        for life in deaths.into_iter().chain([usize::MAX]) {
            let mut left = life;
            let resumed = WorkflowRun::open(&store, "nightly").unwrap().resume().unwrap();
            'work: for loaded in resumed.active() {
                let place = loaded.item.next.as_deref().map_or(0, |next| {
                    STEPS.iter().position(|step| *step == next).unwrap()
                });
                for (at, name) in STEPS.iter().enumerate().skip(place) {
                    if left == 0 {
                        break 'work;
                    }
                    left -= 1;
                    second += 1;
                    prop_assert!(!loaded.is_done(name));
                    *done.entry((loaded.item.item.clone(), *name)).or_default() += 1;
                    let next = STEPS.get(at + 1).map_or(NextStep::Terminal, |next| next_step(next));
                    first.record(&act(second), &step(&loaded.item.item, name, "x", next)).unwrap();
                }
            }
        }
        prop_assert_eq!(done.len(), items * STEPS.len());
        prop_assert!(done.values().all(|times| *times == 1));
        prop_assert_eq!(first.state().unwrap().status, RunStatus::Finished);
    }

    /// Concurrent records of one item from several threads are all kept.
    #[test]
    fn concurrent_records_of_one_item_are_all_kept(steps in 2..5_usize) {
        let store = Store::in_memory().unwrap();
        let run = run(&store);
        std::thread::scope(|scope| {
            for place in 0..steps {
                let run = run.clone();
                scope.spawn(move || {
                    let name = format!("s{place}");
                    run.record(&act(1), &step("a", &name, &name, NextStep::Unknown)).unwrap();
                });
            }
        });
        prop_assert_eq!(run.load("a").unwrap().outputs.len(), steps);
    }
}
