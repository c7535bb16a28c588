//! Cuts through the checkpoints of several agents: which messages a cut tears apart, and the latest cut that has no
//! effect without its cause.
//!
//! A cut is consistent if every message it has received it has sent too (Chandy and Lamport, 1985). From the latest
//! checkpoints, whoever has received what was not sent goes back to before that, until nobody has: no consistent cut
//! within these is later for any agent (Randell's domino effect, 1975, at worst leads to the beginning).

use std::collections::BTreeMap;

/// A message from one agent to another. Its ends are positions in the sessions of the two: the number that the last
/// revision or checkpoint there had then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// Its id.
    pub id: String,
    /// Who sent it.
    pub from: String,
    /// To whom.
    pub to: String,
    /// Behind which number it was sent.
    pub sent: u64,
    /// Behind which number it was received; `None` if it was not.
    pub received: Option<u64>,
}

/// The checkpoint that each agent is taken at, by its number; 0 is before the first.
pub type CheckpointCut = BTreeMap<String, u64>;

/// What becomes of a message at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// Neither or both of its ends are in the cut.
    Whole,
    /// It is sent and not received: unless it is delivered again, it is lost.
    Lost,
    /// It is received and not sent: its sender sends it again, and it is delivered twice.
    Twice,
}

impl AgentMessage {
    /// What becomes of it at a cut. Of agents that are not part of the cut nothing is known.
    #[must_use]
    pub fn fate(&self, cut: &CheckpointCut) -> MessageFate {
        let (Some(from), Some(to)) = (cut.get(&self.from), cut.get(&self.to)) else {
            return MessageFate::Whole;
        };
        let sent = self.sent < *from;
        let received = self.received.is_some_and(|received| received < *to);
        match (sent, received) {
            (true, false) => MessageFate::Lost,
            (false, true) => MessageFate::Twice,
            (true, true) | (false, false) => MessageFate::Whole,
        }
    }
}

/// The latest consistent cut: of these checkpoints of each agent, in the order of their numbers, or of the beginning.
#[must_use]
pub fn consistent(
    checkpoints: &BTreeMap<String, Vec<u64>>,
    messages: &[AgentMessage],
) -> CheckpointCut {
    let latest = |numbers: &Vec<u64>| numbers.last().copied().unwrap_or(0);
    let mut cut: CheckpointCut =
        checkpoints.iter().map(|(agent, numbers)| (agent.clone(), latest(numbers))).collect();
    loop {
        let torn = messages.iter().find(|message| message.fate(&cut) == MessageFate::Twice);
        let Some((message, received)) = torn.and_then(|torn| Some((torn, torn.received?))) else {
            return cut;
        };
        let before = checkpoints[&message.to].iter().rfind(|number| **number <= received);
        cut.insert(message.to.clone(), before.copied().unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(id: &str, from: (&str, u64), to: (&str, Option<u64>)) -> AgentMessage {
        let (id, sent, received) = (id.to_owned(), from.1, to.1);
        AgentMessage { id, from: from.0.to_owned(), to: to.0.to_owned(), sent, received }
    }

    #[test]
    fn one_that_received_what_was_not_sent_goes_back_and_may_take_others_along() {
        let checkpoints = [("a", vec![1, 2]), ("b", vec![1, 2, 3]), ("c", vec![1])]
            .map(|(a, n)| (a.to_owned(), n));
        let checkpoints = BTreeMap::from(checkpoints);
        // a sends after its last checkpoint; b receives before its own and tells c.
        let messages = [
            sent("1", ("a", 2), ("b", Some(1))),
            sent("2", ("b", 1), ("c", Some(0))),
            sent("3", ("a", 0), ("b", None)),
        ];
        let cut = consistent(&checkpoints, &messages);
        assert_eq!(cut.values().copied().collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(
            messages.map(|message| message.fate(&cut)),
            [MessageFate::Whole, MessageFate::Whole, MessageFate::Lost]
        );
    }

    proptest! {
        #[test]
        fn no_consistent_cut_is_later_for_any_agent(
            counts in prop::collection::vec(0..4_u64, 3),
            messages in prop::collection::vec((0..3_usize, 0..3_usize, 0..4_u64, prop::option::of(0..4_u64)), 0..6),
        ) {
            let names = ["a", "b", "c"];
            let checkpoints: BTreeMap<String, Vec<u64>> = names
                .iter()
                .zip(&counts)
                .map(|(name, count)| ((*name).to_owned(), (1..=*count).collect()))
                .collect();
            let messages: Vec<AgentMessage> = messages
                .into_iter()
                .filter(|(from, to, ..)| from != to)
                .map(|(from, to, at, received)| sent("m", (names[from], at), (names[to], received)))
                .collect();
            let found = consistent(&checkpoints, &messages);
            let is_consistent = |cut: &CheckpointCut| messages.iter().all(|m| m.fate(cut) != MessageFate::Twice);
            prop_assert!(is_consistent(&found));
            for a in 0..=counts[0] {
                for b in 0..=counts[1] {
                    for c in 0..=counts[2] {
                        let cut: CheckpointCut = names.iter().map(|n| (*n).to_owned()).zip([a, b, c]).collect();
                        if is_consistent(&cut) {
                            prop_assert!(cut.iter().all(|(agent, number)| found[agent] >= *number));
                        }
                    }
                }
            }
        }
    }
}
