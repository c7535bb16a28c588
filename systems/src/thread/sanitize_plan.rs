//! Decides what happens to each message of a history, its calls and its results.

use super::action_builder::{ActionBuilder, PlannedMessage, RemovalReasons};
use super::call_pairs::{CallResultPairs, PairAssignment};
use super::fault::{FaultKind, Remedy};
use super::message_form::{
    CallRemoval, CallResult, CheckedMessage, MessageForm, MessageProblem, MessageRole,
    ToolCallKind, ToolCallPart, ToolResultPart, refers_to_item, result_message, tidy_together,
    without_calls,
};
use super::repair_ids;
use super::sanitize::{OrphanPolicy, SanitizeOptions, SanitizedHistory};
use std::borrow::Cow;

/// A history while it is sanitised: its messages, and why some of them are removed.
pub(super) struct SanitizePlan<'a> {
    pub(super) form: MessageForm,
    pub(super) messages: Vec<CheckedMessage<'a>>,
    pub(super) pairs: CallResultPairs,
    options: &'a SanitizeOptions,
    /// Why messages are not part of the outcome.
    pub(super) removal_reasons: RemovalReasons,
    /// The index of the first message that refers to an item that the provider stored.
    first_reference: Option<usize>,
    /// The index of the last message that is a turn, or 0. Calls from there on may wait for a
    /// person.
    last_turn: usize,
}

impl<'a> SanitizePlan<'a> {
    pub(super) fn new(
        form: MessageForm,
        mut checked: Vec<CheckedMessage<'a>>,
        options: &'a SanitizeOptions,
    ) -> Self {
        tidy_together(form, &mut checked, options.marks);
        let pairs = CallResultPairs::new(form, &checked);
        repair_ids::rename_ids(form, &mut checked, &pairs);
        let first_reference = checked.iter().position(|one| refers_to_item(form, &one.text));
        let mut plan = Self {
            form,
            first_reference,
            messages: checked,
            pairs,
            options,
            removal_reasons: RemovalReasons::new(),
            last_turn: 0,
        };
        plan.last_turn = (0..plan.messages.len()).rev().find(|at| plan.is_turn(*at)).unwrap_or(0);
        plan
    }

    /// Returns whether a message is a turn: it is usable, and it has more than results of tools or
    /// has a result that is not paired with a call and is kept as text.
    fn is_turn(&self, index: usize) -> bool {
        let one = &self.messages[index];
        let is_text =
            |place| self.unassigned(index, place).is_some_and(|lone| lone.is_kept_as_text);
        !one.is_unusable && (one.role != MessageRole::Tool || (0..one.answers.len()).any(is_text))
    }

    /// Builds the sanitised history.
    pub(super) fn outcome(mut self) -> SanitizedHistory {
        self.cut_calls();
        let mut planned = match self.form {
            MessageForm::Anthropic | MessageForm::Bedrock | MessageForm::Gemini => self.in_blocks(),
            MessageForm::OpenaiResponses => self.in_items(),
            _ => self.in_messages(),
        };
        self.apply_turn_rules(&mut planned);
        let (actions, faults) = ActionBuilder::find(&self.messages, self.removal_reasons, &planned);
        let reset = planned.is_empty() && !self.messages.is_empty();
        let renamed = self.messages.iter().enumerate().flat_map(|(index, one)| {
            let given = one.calls.iter().filter(|call| call.given.is_some());
            let given = given.map(|call| (index, call.display_name().to_owned(), call.id.clone()));
            given.collect::<Vec<_>>()
        });
        let renamed = renamed.collect();
        let mut messages = Vec::with_capacity(planned.len());
        let mut sources = Vec::with_capacity(planned.len());
        for piece in planned {
            sources.push(piece.source);
            let kept = piece.source.map(|source| self.messages[source].text.to_string());
            messages.push(piece.text.or(kept).unwrap_or_default());
        }
        SanitizedHistory { form: self.form, messages, sources, actions, faults, reset, renamed }
    }

    /// Returns the result to insert for a call that has none, as a message; `None` if no result is
    /// inserted.
    fn inserted_result(&self, index: usize, call: &ToolCallPart) -> Option<String> {
        if self.waits(index, call) {
            return None;
        }
        match (self.options.results.get(call.display_name()), self.options.orphans) {
            (Some(result), _) => result_message(self.form, call, result),
            (None, OrphanPolicy::Answer) => result_message(self.form, call, &CallResult::unknown()),
            (None, OrphanPolicy::Remove | OrphanPolicy::Leave) => None,
        }
    }

    /// Returns whether a call may be without a result, because a person must answer first.
    fn waits(&self, index: usize, call: &ToolCallPart) -> bool {
        call.kind == ToolCallKind::Approval || call.waits && index >= self.last_turn
    }

    /// Removes calls without a result: calls that repeat an earlier call, and calls for which no
    /// result is inserted, unless they may stay without one.
    fn cut_calls(&mut self) {
        for index in 0..self.messages.len() {
            let mut cut: Vec<MessageProblem> = Vec::new();
            let mut places = vec![false; self.messages[index].calls.len()];
            for (place, call) in self.messages[index].calls.iter().enumerate() {
                let fault = match self.pairs.call(index, place) {
                    PairAssignment::Doubled => FaultKind::DoubledCall,
                    PairAssignment::Nothing
                        if self.options.orphans != OrphanPolicy::Leave
                            && !self.waits(index, call)
                            && self.inserted_result(index, call).is_none() =>
                    {
                        FaultKind::OrphanedCall
                    }
                    _ => continue,
                };
                places[place] = true;
                cut.push(MessageProblem::new(fault, Some(call.display_name()), Remedy::Removed));
            }
            if !cut.is_empty() {
                self.cut(index, places, cut);
            }
        }
    }

    /// Removes these calls, and the requests to approve them, from a message. A message without
    /// other content becomes unusable.
    fn cut(&mut self, index: usize, mut places: Vec<bool>, problems: Vec<MessageProblem>) {
        let checked = &self.messages[index];
        let calls = || checked.calls.iter().zip(&places);
        let ids: Vec<&str> =
            calls().filter(|(_, cut)| **cut).map(|(call, _)| call.id.as_str()).collect();
        let requests_approval = |call: &ToolCallPart| {
            call.kind == ToolCallKind::Approval && ids.contains(&call.arguments.as_str())
        };
        let approvals: Vec<bool> = checked.calls.iter().map(requests_approval).collect();
        let cut = CallRemoval { ids, places: places.clone() };
        let left = without_calls(&checked.text, self.form, &cut);
        for (place, is_approval) in places.iter_mut().zip(approvals) {
            *place |= is_approval;
        }
        let kept: Vec<bool> = places.iter().map(|cut| !cut).collect();
        self.pairs.keep_calls(index, &kept);
        let checked = &mut self.messages[index];
        let mut keep = kept.iter();
        checked.calls.retain(|_| *keep.next().unwrap_or(&true));
        checked.problems.extend(problems);
        match left {
            Some(text) => {
                update_block_indexes(&mut checked.answers, &checked.text, &text, self.form);
                checked.text = Cow::Owned(text);
            }
            None => checked.is_unusable = true,
        }
    }

    /// Adds a reason why a message is not part of the outcome.
    pub(super) fn note(&mut self, index: usize, problem: MessageProblem) {
        self.removal_reasons.entry(index).or_default().push(problem);
    }

    /// Returns whether the call of a result may be an item that the provider stored.
    fn may_have_stored_call(&self, index: usize, answer: &ToolResultPart) -> bool {
        let is_referred = self.first_reference.is_some_and(|reference| reference < index);
        self.form == MessageForm::OpenaiResponses
            && !answer.id.is_empty()
            && (self.options.continues || is_referred)
    }

    /// Returns what is wrong with a result that is not paired with a call; `None` if it is paired,
    /// or if the provider may have stored its call.
    pub(super) fn unassigned(&self, index: usize, place: usize) -> Option<UnmatchedResult> {
        let answer = &self.messages[index].answers[place];
        let (fault, doubled) = match self.pairs.answer(index, place) {
            PairAssignment::To(..) => return None,
            PairAssignment::Repeated | PairAssignment::Doubled => (FaultKind::DoubledResult, true),
            PairAssignment::Nothing if self.may_have_stored_call(index, answer) => return None,
            PairAssignment::Nothing => (FaultKind::ResultWithoutCall, false),
        };
        let is_kept_as_text = self.pairs.answer(index, place) != PairAssignment::Repeated
            && answer.kind != ToolCallKind::Approval;
        let remedy = if is_kept_as_text { Remedy::KeptAsText } else { Remedy::Removed };
        let problem = MessageProblem::new(fault, answer.display_name().as_deref(), remedy);
        Some(UnmatchedResult { problem, doubled, is_kept_as_text })
    }

    /// Returns the results to insert for those calls of a message that have none, and the problems
    /// that the insertions repair.
    pub(super) fn inserted_results(&self, index: usize) -> (Vec<String>, Vec<MessageProblem>) {
        let calls = self.messages[index].calls.iter().enumerate();
        calls
            .filter(|(place, _)| self.pairs.call(index, *place) == PairAssignment::Nothing)
            .filter_map(|(_, call)| {
                let result = self.inserted_result(index, call)?;
                let id = Some(call.display_name());
                let problem = MessageProblem::new(FaultKind::OrphanedCall, id, Remedy::Answered);
                Some((result, problem.at(index)))
            })
            .unzip()
    }

    /// Returns a message of the history, as far as it is valid, as a part of the outcome.
    pub(super) fn kept(&self, index: usize) -> PlannedMessage {
        PlannedMessage::kept(index, &self.messages[index])
    }
}

/// A result that is not paired with a call.
pub(super) struct UnmatchedResult {
    pub(super) problem: MessageProblem,
    /// Whether its call has another result.
    pub(super) doubled: bool,
    /// Whether its content becomes a text of the user; otherwise it is removed.
    pub(super) is_kept_as_text: bool,
}

/// Updates the index of each result among the blocks of its message, after blocks with calls were
/// removed from the message.
fn update_block_indexes(
    answers: &mut [ToolResultPart],
    before: &str,
    after: &str,
    form: MessageForm,
) {
    if answers.is_empty()
        || !matches!(
            form,
            MessageForm::Anthropic
                | MessageForm::Bedrock
                | MessageForm::Gemini
                | MessageForm::AiSdk
        )
    {
        return;
    }
    let blocks = |text: &str| super::message_form::split(text, form, &[]).others;
    let (before, after) = (blocks(before), blocks(after));
    let mut next = 0;
    for answer in answers {
        let Some(block) = before.get(answer.at) else { continue };
        if let Some(at) = after.iter().skip(next).position(|other| other == block) {
            answer.at = next + at;
            next = answer.at + 1;
        }
    }
}
