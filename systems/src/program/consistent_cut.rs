//! Cuts through the checkpoints of several agents: which messages a cut separates from their sender
//! or receiver, and the latest consistent cut.
//!
//! A cut is consistent if every message received in it was also sent in it (Chandy and Lamport,
//! 1985). Starting from the latest checkpoints, every agent that has received an unsent message is
//! moved back before the receipt, until there is no such agent. No consistent cut within these
//! checkpoints is later for any agent. In the worst case, the domino effect (Randell, 1975) moves
//! all agents back to the beginning.

use serde::Serialize;
use std::collections::BTreeMap;

/// A message from one agent to another. Its two ends are places in the sessions of the agents: the
/// sequence number of the last revision or checkpoint at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentMessage {
    /// The id of the message.
    pub id: String,
    /// The sending agent.
    pub from: String,
    /// The receiving agent.
    pub to: String,
    /// The sequence number after which it was sent; not serialised.
    #[serde(skip)]
    pub sent: u64,
    /// The sequence number after which it was received; `None` if it was not. Not serialised.
    #[serde(skip)]
    pub received: Option<u64>,
}

/// The checkpoint of each agent, by sequence number; 0 is before the first.
pub type CheckpointCut = BTreeMap<String, u64>;

/// What a cut does to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// Both of its ends are in the cut, or neither, or the cut lacks one of the agents.
    Whole,
    /// Sent but not received: it is lost unless it is delivered again.
    Lost,
    /// Received but not sent: its sender sends it again, and it is delivered twice.
    Twice,
}

impl AgentMessage {
    /// Returns what a cut does to this message.
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

/// Returns the latest consistent cut. `checkpoints` are the numbers of each agent's checkpoints,
/// ascending; an agent without a suitable checkpoint is at the beginning, 0.
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
    fn an_agent_goes_back_if_it_received_a_message_that_was_not_sent_yet() {
        let checkpoints = [("a", vec![1, 2]), ("b", vec![1, 2, 3]), ("c", vec![1])]
            .map(|(a, n)| (a.to_owned(), n));
        let checkpoints = BTreeMap::from(checkpoints);
        // `a` sends after its last checkpoint; `b` receives before its own and sends to `c`.
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
