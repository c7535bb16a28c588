//! Applies the rules of a provider for the order of turns, and for the first and the last message.

use super::action_builder::PlannedMessage;
use super::fault::{FaultKind, Remedy};
use super::message_form::{
    MessageForm, MessageProblem, MessageRole, beginning, split, with_blocks, without_trailing_space,
};
use super::sanitize_plan::SanitizePlan;

impl SanitizePlan<'_> {
    /// Repairs the order of the turns, the beginning and the end of the planned messages.
    pub(super) fn apply_turn_rules(&mut self, planned: &mut Vec<PlannedMessage>) {
        match self.form {
            MessageForm::OpenaiResponses => self.drop_lone_reasoning(planned),
            MessageForm::Bedrock => self.alternate(planned),
            MessageForm::Gemini => self.join_model_turns(planned),
            _ => {}
        }
        self.begin_with_user(planned);
        self.trim_end(planned);
    }

    /// Returns the role of a planned message. An inserted message counts as the user's.
    fn role(&self, piece: &PlannedMessage) -> MessageRole {
        piece.source.map_or(MessageRole::User, |source| self.messages[source].role)
    }

    /// Returns the text that a planned message will have.
    fn text<'p>(&'p self, piece: &'p PlannedMessage) -> &'p str {
        match (&piece.text, piece.source) {
            (Some(text), _) => text,
            (None, Some(source)) => &self.messages[source].text,
            (None, None) => "",
        }
    }

    /// Removes reasoning that is not followed by an item of the assistant, to which it belongs.
    fn drop_lone_reasoning(&mut self, planned: &mut Vec<PlannedMessage>) {
        let mut followed = false;
        let mut keep = vec![true; planned.len()];
        for (place, piece) in planned.iter().enumerate().rev() {
            match piece.source.map(|source| self.messages[source].role) {
                Some(MessageRole::Reasoning) if !followed => {
                    keep[place] = false;
                    let problem =
                        MessageProblem::new(FaultKind::ReasoningWithoutItem, None, Remedy::Removed);
                    self.note(piece.caller, problem);
                }
                Some(MessageRole::Reasoning) => {}
                role => followed = role == Some(MessageRole::Assistant),
            }
        }
        let mut kept = keep.into_iter();
        planned.retain(|_| kept.next().unwrap_or(true));
    }

    /// Joins adjacent messages of one role, except instructions.
    fn alternate(&mut self, planned: &mut Vec<PlannedMessage>) {
        let repeats = |pair: &[PlannedMessage]| {
            let role = self.role(&pair[0]);
            role == self.role(&pair[1]) && role != MessageRole::Other
        };
        let mut joins = vec![false];
        joins.extend(planned.windows(2).map(repeats));
        self.join(planned, &joins);
    }

    /// Joins a model turn with calls to the model turns directly before it, because a call must
    /// come directly after a turn of the user.
    fn join_model_turns(&mut self, planned: &mut Vec<PlannedMessage>) {
        let is_model = |piece: &PlannedMessage| self.role(piece) == MessageRole::Assistant;
        let mut joins = vec![false; planned.len()];
        for at in (1..planned.len()).rev() {
            let calls = planned[at].calls || joins.get(at + 1).is_some_and(|joins| *joins);
            joins[at] = calls && is_model(&planned[at]) && is_model(&planned[at - 1]);
        }
        self.join(planned, &joins);
    }

    /// Joins each message whose entry in `joins` is true to the message before it.
    fn join(&mut self, planned: &mut Vec<PlannedMessage>, joins: &[bool]) {
        let mut joined: Vec<PlannedMessage> = Vec::with_capacity(planned.len());
        // The blocks of the last message and of the messages joined to it; empty if none was
        // joined.
        let mut blocks: Vec<String> = Vec::new();
        for (piece, joins) in planned.drain(..).zip(joins) {
            let Some(mut before) = joined.pop_if(|_| *joins) else {
                self.write_joined(&mut joined, &mut blocks);
                joined.push(piece);
                continue;
            };
            if blocks.is_empty() {
                blocks = self.blocks(&before);
            }
            blocks.extend(self.blocks(&piece));
            before.calls |= piece.calls;
            let merged = MessageProblem::new(FaultKind::RepeatedRole, None, Remedy::Merged);
            let mut problems = piece.problems;
            problems.push(merged.clone());
            if piece.source.is_some() {
                for problem in problems {
                    self.note(piece.caller, problem);
                }
            } else {
                before.problems.extend(problems);
            }
            before.reason.get_or_insert(merged);
            joined.push(before);
        }
        self.write_joined(&mut joined, &mut blocks);
        *planned = joined;
    }

    /// Replaces the blocks of the last message by `blocks`, and empties `blocks`. Does nothing if
    /// they are empty.
    fn write_joined(&self, joined: &mut [PlannedMessage], blocks: &mut Vec<String>) {
        let blocks = std::mem::take(blocks);
        if let Some(last) = joined.last_mut().filter(|_| !blocks.is_empty()) {
            last.text = with_blocks(self.text(last), self.form, &blocks);
        }
    }

    /// Returns the content blocks of a planned message.
    fn blocks(&self, piece: &PlannedMessage) -> Vec<String> {
        split(self.text(piece), self.form, &[]).others
    }

    /// Inserts a user message at the beginning if the provider refuses the first message.
    fn begin_with_user(&self, planned: &mut Vec<PlannedMessage>) {
        let at = planned.iter().position(|piece| self.role(piece) != MessageRole::Other);
        let Some((at, first)) = at.and_then(|at| Some((at, planned.get(at)?))) else { return };
        let refused = self.role(first) == MessageRole::Assistant
            && match self.form {
                MessageForm::Bedrock => true,
                MessageForm::Gemini => first.calls,
                _ => false,
            };
        if refused {
            let problem = MessageProblem::new(FaultKind::NoUserFirst, None, Remedy::Preceded);
            let caller = first.caller;
            planned.insert(at, PlannedMessage::put_in(beginning(self.form), vec![problem], caller));
        }
    }

    /// Removes the white space at the end of the last message if it is the assistant's.
    fn trim_end(&self, planned: &mut [PlannedMessage]) {
        let Some(last) = planned.last() else { return };
        if last.source.is_none() || self.role(last) != MessageRole::Assistant {
            return;
        }
        let trimmed = without_trailing_space(self.form, self.text(last));
        if let (Some(text), Some(last)) = (trimmed, planned.last_mut()) {
            last.text = Some(text);
            let problem = MessageProblem::new(FaultKind::TrailingSpace, None, Remedy::Changed);
            last.problems.push(problem);
        }
    }
}
