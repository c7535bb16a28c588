//! Builds the actions that turn a history into its outcome, for a program to apply to its own copy.

use super::action::{SanitizeAction, SanitizeActionKind};
use super::fault::{FaultKind, Remedy, ThreadFault};
use super::message_form::{CheckedMessage, MessageProblem};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct PlannedMessage {
    /// The source message in the history, if any.
    pub(super) source: Option<usize>,
    /// The new text; `None` if the message is unchanged.
    pub(super) text: Option<String>,
    /// Why it is new or changed.
    pub(super) problems: Vec<MessageProblem>,
    /// Whether it contains calls.
    pub(super) calls: bool,
    /// The reason, if the problem is reported for another message.
    pub(super) reason: Option<MessageProblem>,
    /// The message of the history to which its problems are attributed.
    pub(super) caller: usize,
}

impl PlannedMessage {
    /// Keeps a message, as far as it is valid.
    pub(super) fn kept(source: usize, checked: &CheckedMessage<'_>) -> Self {
        let text = match &checked.text {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(text) => Some(text.clone()),
        };
        let problems = checked.problems.clone();
        let calls = !checked.calls.is_empty();
        Self { source: Some(source), text, problems, calls, reason: None, caller: source }
    }

    /// Inserts a message.
    pub(super) const fn put_in(text: String, problems: Vec<MessageProblem>, caller: usize) -> Self {
        Self { source: None, text: Some(text), problems, calls: false, reason: None, caller }
    }
}

/// Why messages are not part of the outcome, by their index in the history.
pub(super) type RemovalReasons = BTreeMap<usize, Vec<MessageProblem>>;

/// Counts the messages that were not placed or removed yet: a Fenwick tree, so that a history in
/// which many messages move is not scanned for each of them.
struct OpenMessages(Vec<usize>);

impl OpenMessages {
    fn new(count: usize) -> Self {
        Self((1..=count).map(|node: usize| node & node.wrapping_neg()).collect())
    }

    fn close(&mut self, index: usize) {
        let mut node = index + 1;
        while let Some(count) = self.0.get_mut(node - 1) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the number of open messages before this one.
    fn before(&self, index: usize) -> usize {
        let (mut node, mut count) = (index, 0);
        while node > 0 {
            count += self.0[node - 1];
            node &= node - 1;
        }
        count
    }
}

/// Builds the actions from front to back.
pub(super) struct ActionBuilder<'p, 'a> {
    checked: &'p [CheckedMessage<'a>],
    removal_reasons: RemovalReasons,
    /// For each message, whether it is part of the outcome.
    wanted: Vec<bool>,
    /// For each message, whether it was already placed or removed.
    done: Vec<bool>,
    /// The messages that are not done, to count those before a message.
    open: OpenMessages,
    /// The first message that may not have been processed.
    next: usize,
    actions: Vec<SanitizeAction>,
    faults: Vec<ThreadFault>,
}

impl<'p, 'a> ActionBuilder<'p, 'a> {
    /// Returns the actions that produce these messages, and the faults in message order.
    pub(super) fn find(
        checked: &'p [CheckedMessage<'a>],
        why: RemovalReasons,
        planned: &[PlannedMessage],
    ) -> (Vec<SanitizeAction>, Vec<ThreadFault>) {
        let mut wanted = vec![false; checked.len()];
        for source in planned.iter().filter_map(|piece| piece.source) {
            wanted[source] = true;
        }
        let done = vec![false; checked.len()];
        let mut steps = Self {
            checked,
            removal_reasons: why,
            wanted,
            done,
            open: OpenMessages::new(checked.len()),
            next: 0,
            actions: Vec::new(),
            faults: Vec::new(),
        };
        for (place, piece) in planned.iter().enumerate() {
            steps.piece(place, piece);
        }
        steps.rest(planned.len());
        let Self { actions, mut faults, .. } = steps;
        faults.sort_by_key(|fault| fault.index);
        (actions, faults)
    }

    fn fault(&mut self, index: usize, problem: &MessageProblem) {
        let MessageProblem { fault, call, remedy, at } = problem.clone();
        let index = at.unwrap_or(index);
        let message_id = self.checked.get(index).and_then(|checked| checked.id.clone());
        self.faults.push(ThreadFault { fault, index, message_id, tool_call_id: call, remedy });
    }

    fn action(
        &mut self,
        kind: SanitizeActionKind,
        index: usize,
        problem: &MessageProblem,
        source: Option<usize>,
    ) {
        let message_id = source.and_then(|source| self.checked[source].id.clone());
        self.actions.push(SanitizeAction {
            action: kind,
            index,
            to: None,
            message_id,
            tool_call_id: problem.call.clone(),
            reason: problem.fault,
            message: None,
        });
    }

    fn insert(&mut self, place: usize, piece: &PlannedMessage, problem: &MessageProblem) {
        self.action(SanitizeActionKind::Insert, place, problem, piece.source);
        if let Some(action) = self.actions.last_mut() {
            action.message = piece.text.clone();
        }
    }

    fn remove(&mut self, place: usize, source: usize) {
        let checked = &self.checked[source];
        let mut problems = self.removal_reasons.remove(&source).unwrap_or_default();
        if problems.is_empty() || checked.is_unusable {
            problems.extend(checked.problems.iter().cloned());
        }
        if problems.is_empty() {
            problems.push(MessageProblem::new(FaultKind::NotAMessage, None, Remedy::Removed));
        }
        self.action(SanitizeActionKind::Remove, place, &problems[0], Some(source));
        for problem in &problems {
            self.fault(source, problem);
        }
    }

    /// Returns the next unprocessed message.
    fn skip_done(&mut self) -> Option<usize> {
        while self.done.get(self.next).copied().unwrap_or(false) {
            self.next += 1;
        }
        (self.next < self.checked.len()).then_some(self.next)
    }

    /// Marks a message as placed or removed.
    fn finish(&mut self, index: usize) {
        if !std::mem::replace(&mut self.done[index], true) {
            self.open.close(index);
        }
    }

    fn piece(&mut self, place: usize, piece: &PlannedMessage) {
        let unknown = || MessageProblem::new(FaultKind::NotAMessage, None, Remedy::Changed);
        let why = piece.problems.first().or(piece.reason.as_ref()).cloned();
        let Some(source) = piece.source else {
            let problem = why.unwrap_or_else(unknown);
            self.insert(place, piece, &problem);
            for problem in &piece.problems {
                self.fault(piece.caller, problem);
            }
            return;
        };
        while let Some(next) = self.skip_done()
            && !self.wanted[next]
        {
            self.remove(place, next);
            self.finish(next);
        }
        if self.skip_done() != Some(source) {
            self.move_here(place, source);
        }
        self.finish(source);
        if piece.text.is_some() {
            let problem = why.unwrap_or_else(unknown);
            self.action(SanitizeActionKind::Remove, place, &problem, Some(source));
            self.insert(place, piece, &problem);
            for problem in &piece.problems {
                self.fault(source, problem);
            }
        }
    }

    fn move_here(&mut self, place: usize, source: usize) {
        let before = self.open.before(source);
        let checked = &self.checked[source];
        let id = checked.answers.iter().find_map(super::message_form::ToolResultPart::display_name);
        let id = id.or_else(|| checked.calls.first().map(|call| call.display_name().to_owned()));
        let problem = MessageProblem::new(FaultKind::MisplacedResult, id.as_deref(), Remedy::Moved);
        self.action(SanitizeActionKind::Move, place + before, &problem, Some(source));
        if let Some(action) = self.actions.last_mut() {
            action.to = Some(place);
        }
        self.fault(source, &problem);
    }

    /// Removes the messages left after the last one of the outcome.
    fn rest(&mut self, place: usize) {
        while let Some(next) = self.skip_done() {
            self.remove(place, next);
            self.finish(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OpenMessages;

    #[test]
    fn open_messages_are_counted_like_by_a_scan() {
        for count in [0, 1, 2, 7, 16, 33] {
            let (mut open, mut scanned) = (OpenMessages::new(count), vec![true; count]);
            for step in 0..count {
                // In an order that jumps back and forth.
                let index = (step * 5 + 3) % count;
                if std::mem::replace(&mut scanned[index], false) {
                    open.close(index);
                }
                for at in 0..=count {
                    let expected = scanned[..at].iter().filter(|open| **open).count();
                    assert_eq!(open.before(at), expected, "{at} of {count}");
                }
            }
        }
    }
}
