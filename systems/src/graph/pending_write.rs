//! What tasks wrote after a checkpoint, before the next one.

use super::typed_bytes::TypedBytes;
use std::collections::BTreeMap;

/// One value that a task wrote to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWrite {
    /// The task that wrote it.
    pub task: String,
    /// The path of the task.
    pub path: String,
    /// The place among the writes of the task; below zero for the channels that the framework
    /// reserves.
    pub slot: i64,
    /// The channel.
    pub channel: String,
    /// The value.
    pub value: TypedBytes,
}

/// Returns one write for each slot of a task, sorted by path, task and slot. `recorded` are all
/// writes in the order in which they were recorded. A slot from 0 on keeps its first value, because
/// a task that runs again must not replace what others have seen; a slot below 0 has its last
/// value.
#[must_use]
pub fn fold_writes(recorded: impl IntoIterator<Item = PendingWrite>) -> Vec<PendingWrite> {
    let mut slots: BTreeMap<(String, i64), PendingWrite> = BTreeMap::new();
    for write in recorded {
        let slot = (write.task.clone(), write.slot);
        if write.slot < 0 || !slots.contains_key(&slot) {
            slots.insert(slot, write);
        }
    }
    let mut kept: Vec<PendingWrite> = slots.into_values().collect();
    // The map is sorted by task and slot already, and this sort is stable.
    kept.sort_by(|one, other| one.path.cmp(&other.path));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(task: &str, path: &str, slot: i64, value: u8) -> PendingWrite {
        PendingWrite {
            task: task.to_owned(),
            path: path.to_owned(),
            slot,
            channel: "c".to_owned(),
            value: TypedBytes { encoding: "msgpack".to_owned(), bytes: vec![value].into() },
        }
    }

    #[test]
    fn a_channel_keeps_its_first_pending_write_and_a_reserved_channel_the_last() {
        let recorded = [
            write("a", "", 0, 1),
            write("a", "", -1, 2),
            write("a", "", 0, 3),
            write("a", "", -1, 4),
        ];
        let values: Vec<u8> =
            fold_writes(recorded).iter().map(|write| write.value.bytes[0]).collect();
        assert_eq!(values, [4, 1]);
    }

    #[test]
    fn writes_are_sorted_by_path_then_task_then_slot() {
        let recorded = [
            write("b", "", 1, 0),
            write("d", "~2", 0, 1),
            write("b", "", 0, 2),
            write("a", "", 0, 3),
            write("c", "~1", 0, 4),
        ];
        let values: Vec<u8> =
            fold_writes(recorded).iter().map(|write| write.value.bytes[0]).collect();
        assert_eq!(values, [3, 2, 0, 4, 1]);
    }

    proptest! {
        #[test]
        fn folding_pending_writes_keeps_one_per_slot_and_is_idempotent(
            recorded in proptest::collection::vec(("[ab]", "[xy]", -2_i64..3, any::<u8>()), 0..30),
        ) {
            let recorded: Vec<PendingWrite> =
                recorded.iter().map(|(task, path, slot, value)| write(task, path, *slot, *value)).collect();
            let once = fold_writes(recorded.clone());
            prop_assert_eq!(&fold_writes(once.clone()), &once);
            for kept in &once {
                let of_slot = |one: &&PendingWrite| (&one.task, one.slot) == (&kept.task, kept.slot);
                let mut all = recorded.iter().filter(of_slot);
                let wanted = if kept.slot < 0 { all.next_back() } else { all.next() };
                prop_assert_eq!(Some(kept), wanted);
                prop_assert_eq!(once.iter().filter(of_slot).count(), 1);
            }
        }
    }
}
