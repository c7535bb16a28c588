//! The history of channels whose value is stored only at some checkpoints.
//!
//! At the other checkpoints, the value is computed from the nearest earlier value (the seed) and
//! from everything that tasks have written to the channel since.

use super::pending_write::PendingWrite;
use super::typed_bytes::TypedBytes;
use std::collections::{BTreeMap, BTreeSet};

/// What a task wrote to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryWrite {
    /// The task that wrote it.
    pub task: String,
    /// The value.
    pub value: TypedBytes,
}

/// The history of one channel before a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelHistory {
    /// Everything written since the seed, the oldest first.
    pub writes: Vec<HistoryWrite>,
    /// The value to begin with; `None` if no earlier checkpoint has one.
    pub seed: Option<TypedBytes>,
}

/// Histories by the name of the channel.
pub type ChannelHistories = BTreeMap<String, ChannelHistory>;

/// A checkpoint on the way back through the history.
#[derive(Clone, Debug, Default)]
pub struct HistoryNode {
    /// The checkpoint before it.
    pub parent: Option<String>,
    /// The histories that were stored with it when checkpoints before it were dropped.
    pub carried: ChannelHistories,
}

/// Reads the checkpoints of one namespace.
pub trait HistorySource {
    /// The error of a read.
    type Error;

    /// Returns a checkpoint; `None` if there is none with this id.
    fn node(&self, id: &str) -> Result<Option<HistoryNode>, Self::Error>;

    /// Returns the writes after a checkpoint, as [`fold_writes`](super::fold_writes) returns them.
    fn writes(&self, id: &str) -> Result<Vec<PendingWrite>, Self::Error>;

    /// Returns the values that these channels have at a checkpoint.
    fn values(
        &self,
        id: &str,
        channels: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, TypedBytes>, Self::Error>;
}

/// Returns the histories of channels before a checkpoint, each back to its seed. It follows the
/// parents, since ids need not be in the order of age, and ends if they form a cycle.
///
/// # Errors
/// Fails if the source does.
pub fn delta_history<S: HistorySource>(
    source: &S,
    target: &str,
    channels: &[String],
) -> Result<ChannelHistories, S::Error> {
    let mut found: ChannelHistories =
        channels.iter().map(|name| (name.clone(), ChannelHistory::default())).collect();
    let mut left: BTreeSet<String> = channels.iter().cloned().collect();
    let mut seen = BTreeSet::from([target.to_owned()]);
    let mut node = source.node(target)?;
    while let Some(mut known) = node {
        for (name, history) in std::mem::take(&mut known.carried) {
            if left.remove(&name) {
                let entry = found.entry(name).or_default();
                entry.writes.extend(history.writes.into_iter().rev());
                entry.seed = history.seed;
            }
        }
        let Some(parent) = known.parent.filter(|_| !left.is_empty()) else { break };
        if !seen.insert(parent.clone()) {
            break;
        }
        node = source.node(&parent)?;
        if node.is_none() {
            break;
        }
        for write in source.writes(&parent)?.into_iter().rev() {
            if left.contains(&write.channel)
                && let Some(history) = found.get_mut(&write.channel)
            {
                history.writes.push(HistoryWrite { task: write.task, value: write.value });
            }
        }
        for (name, value) in source.values(&parent, &left)? {
            if left.remove(&name) {
                found.entry(name).or_default().seed = Some(value);
            }
        }
    }
    for history in found.values_mut() {
        history.writes.reverse();
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    #[derive(Clone, Debug, Default)]
    struct Step {
        parent: Option<String>,
        carried: ChannelHistories,
        writes: Vec<PendingWrite>,
        values: BTreeMap<String, TypedBytes>,
    }

    #[derive(Clone, Debug, Default)]
    struct Steps(BTreeMap<String, Step>);

    impl HistorySource for Steps {
        type Error = Infallible;

        fn node(&self, id: &str) -> Result<Option<HistoryNode>, Infallible> {
            Ok(self.0.get(id).map(|step| HistoryNode {
                parent: step.parent.clone(),
                carried: step.carried.clone(),
            }))
        }

        fn writes(&self, id: &str) -> Result<Vec<PendingWrite>, Infallible> {
            Ok(self.0.get(id).map(|step| step.writes.clone()).unwrap_or_default())
        }

        fn values(
            &self,
            id: &str,
            channels: &BTreeSet<String>,
        ) -> Result<BTreeMap<String, TypedBytes>, Infallible> {
            let values = self.0.get(id).map(|step| step.values.clone()).unwrap_or_default();
            Ok(values.into_iter().filter(|(name, _)| channels.contains(name)).collect())
        }
    }

    fn value(number: u8) -> TypedBytes {
        TypedBytes { encoding: "msgpack".to_owned(), bytes: vec![number].into() }
    }

    fn write(channel: &str, number: u8) -> PendingWrite {
        PendingWrite {
            task: format!("t{number}"),
            path: String::new(),
            slot: 0,
            channel: channel.to_owned(),
            value: value(number),
        }
    }

    fn numbers(history: &ChannelHistory) -> Vec<u8> {
        history.writes.iter().map(|write| write.value.bytes[0]).collect()
    }

    fn history(steps: &Steps, target: &str, channel: &str) -> ChannelHistory {
        delta_history(steps, target, &[channel.to_owned()]).unwrap().remove(channel).unwrap()
    }

    /// Id, parent, writes, values.
    type StepParts<'a> = (&'a str, Option<&'a str>, Vec<PendingWrite>, &'a [(&'a str, u8)]);

    fn chain(steps: Vec<StepParts<'_>>) -> Steps {
        let steps = steps.into_iter().map(|(id, parent, writes, values)| {
            let values =
                values.iter().map(|(name, number)| ((*name).to_owned(), value(*number))).collect();
            let parent = parent.map(str::to_owned);
            (id.to_owned(), Step { parent, writes, values, carried: ChannelHistories::new() })
        });
        Steps(steps.collect())
    }

    #[test]
    fn the_history_of_a_channel_ends_at_its_seed_and_includes_the_writes_there() {
        let steps = chain(vec![
            ("1", None, vec![write("c", 1)], &[]),
            ("2", Some("1"), vec![write("c", 2), write("d", 9), write("c", 3)], &[("c", 7)]),
            ("3", Some("2"), vec![write("c", 4)], &[]),
            ("4", Some("3"), vec![write("c", 5)], &[("c", 8)]),
        ]);
        let found = history(&steps, "4", "c");
        assert_eq!((numbers(&found), found.seed), (vec![2, 3, 4], Some(value(7))));
        let other = history(&steps, "4", "d");
        assert_eq!((numbers(&other), other.seed), (vec![9], None));
        assert_eq!(delta_history(&steps, "4", &[]).unwrap(), ChannelHistories::new());
        assert_eq!(history(&steps, "none", "c"), ChannelHistory::default());
    }

    #[test]
    fn cyclic_parents_end_the_history_of_a_channel() {
        let steps = chain(vec![
            ("1", Some("2"), vec![write("c", 1)], &[]),
            ("2", Some("1"), vec![write("c", 2)], &[]),
        ]);
        assert_eq!(numbers(&history(&steps, "2", "c")), [1]);
        let own = chain(vec![("1", Some("1"), vec![write("c", 1)], &[])]);
        assert_eq!(numbers(&history(&own, "1", "c")), Vec::<u8>::new());
    }

    proptest! {
        /// Dropping checkpoints changes no history of the others, if each checkpoint whose parent
        /// is dropped is given its history.
        #[test]
        fn dropping_checkpoints_keeps_the_histories_of_the_others(
            parents in proptest::collection::vec(any::<prop::sample::Index>(), 1..12),
            written in proptest::collection::vec(proptest::collection::vec("[cd]", 0..3), 13),
            seeded in proptest::collection::vec(proptest::option::weighted(0.2, "[cd]"), 13),
            rounds in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 13), 1..3),
        ) {
            let mut steps = Steps::default();
            for number in 0..=parents.len() {
                let parent = number.checked_sub(1).map(|last| parents[last].index(number).to_string());
                let mut step = Step { parent, ..Step::default() };
                step.writes = written[number].iter().zip(0..)
                    .map(|(name, at)| write(name, number as u8 * 8 + at)).collect();
                step.values = seeded[number].iter().map(|name| (name.clone(), value(200))).collect();
                steps.0.insert(number.to_string(), step);
            }
            let channels = ["c".to_owned(), "d".to_owned()];
            let all = |steps: &Steps, id: &str| delta_history(steps, id, &channels).unwrap();
            let before: BTreeMap<String, ChannelHistories> =
                steps.0.keys().map(|id| (id.clone(), all(&steps, id))).collect();
            for drops in rounds {
                let dropped: BTreeSet<String> = steps.0.keys()
                    .filter(|id| drops[id.parse::<usize>().unwrap()]).cloned().collect();
                let orphans: Vec<String> = steps.0.iter()
                    .filter(|(id, step)| !dropped.contains(*id)
                        && step.parent.as_ref().is_some_and(|parent| dropped.contains(parent)))
                    .map(|(id, _)| id.clone()).collect();
                for id in orphans {
                    let carried = all(&steps, &id);
                    let step = steps.0.get_mut(&id).unwrap();
                    step.carried.extend(carried);
                    step.parent = None;
                }
                steps.0.retain(|id, _| !dropped.contains(id));
            }
            for id in steps.0.keys() {
                prop_assert_eq!(&all(&steps, id), &before[id]);
            }
        }
    }
}
