//! Placement of results: moves each result to the place after its call that the form requires,
//! and turns results without a call into text for the model.

use super::action_builder::PlannedMessage;
use super::call_pairs::PairAssignment;
use super::fault::{FaultKind, Remedy};
use super::message_form::{
    MessageForm, MessageProblem, MessageRole, ToolResultPart, rest_of_message, rest_of_result,
    result_as_user_blocks, result_as_user_message, results_message, split, with_blocks,
};
use super::sanitize_plan::SanitizePlan;
use std::collections::{BTreeMap, BTreeSet};

/// Results as blocks, and their problems.
type ResultBlocks = (Vec<String>, Vec<MessageProblem>);

impl SanitizePlan<'_> {
    /// Returns the positions of the results in `message` that answer calls of the message `calls`.
    fn answers_for(&self, message: usize, calls: usize) -> Vec<usize> {
        let answers = 0..self.messages[message].answers.len();
        let is_one = |place: &usize| matches!(self.pairs.answer(message, *place), PairAssignment::To(at, _) if at == calls);
        answers.filter(is_one).collect()
    }

    /// Returns the messages that hold results of the calls of this message.
    fn holders(&self, index: usize) -> BTreeSet<usize> {
        let calls = 0..self.messages[index].calls.len();
        let holder = |place| match self.pairs.call(index, place) {
            PairAssignment::To(message, _) => Some(message),
            _ => None,
        };
        calls.filter_map(holder).collect()
    }

    fn split(&self, index: usize) -> super::message_form::SplitMessage {
        let checked = &self.messages[index];
        split(&checked.text, self.form, &checked.answers)
    }

    /// Builds the outcome for forms in which results are separate messages directly after their
    /// call. Such a message may hold several results.
    pub(super) fn in_messages(&mut self) -> Vec<PlannedMessage> {
        let mut planned = Vec::new();
        // The messages whose position in the outcome is settled.
        let mut settled = BTreeSet::new();
        for index in 0..self.messages.len() {
            if self.messages[index].is_unusable {
                continue;
            }
            if self.messages[index].answers.is_empty() {
                planned.push(self.kept(index));
            } else {
                self.push_unmatched_results(index, &mut settled, &mut planned);
            }
            for holder in self.holders(index) {
                let piece = self.results_in(holder, index, &mut settled);
                planned.push(piece);
            }
            let (made, problems) = self.inserted_results(index);
            if self.form == MessageForm::AiSdk && !made.is_empty() {
                let text = results_message(self.form, &made);
                planned.push(PlannedMessage::put_in(text, problems, index));
                continue;
            }
            let made = made.into_iter().zip(problems);
            planned.extend(
                made.map(|(text, problem)| PlannedMessage::put_in(text, vec![problem], index)),
            );
            for holder in self.holders(index) {
                planned.extend(self.rest_of_result(holder));
            }
            planned.extend(self.rest_of_message(index));
        }
        planned
    }

    /// Returns a user message with the content of a result that the result's own message cannot
    /// hold.
    fn rest_of_result(&self, holder: usize) -> Option<PlannedMessage> {
        let checked = &self.messages[holder];
        let answer = checked.answers.first().filter(|_| !checked.user_blocks.is_empty())?;
        let text = rest_of_result(answer, &checked.user_blocks);
        let mut piece = PlannedMessage::put_in(text, Vec::new(), holder);
        let id = answer.display_name();
        let remedy = Remedy::Changed;
        piece.reason = Some(MessageProblem::new(FaultKind::MalformedResult, id.as_deref(), remedy));
        Some(piece)
    }

    /// Returns a user message with the content that a message other than a result cannot hold.
    fn rest_of_message(&self, index: usize) -> Option<PlannedMessage> {
        let checked = &self.messages[index];
        if checked.user_blocks.is_empty() || checked.role == MessageRole::Tool {
            return None;
        }
        let text = rest_of_message(self.form, &checked.user_blocks);
        let mut piece = PlannedMessage::put_in(text, Vec::new(), index);
        piece.reason = Some(MessageProblem::new(FaultKind::MalformedBlock, None, Remedy::Changed));
        Some(piece)
    }

    /// Returns a message with only those results of `holder` that answer calls of the message
    /// `calls`.
    fn results_in(
        &self,
        holder: usize,
        calls: usize,
        settled: &mut BTreeSet<usize>,
    ) -> PlannedMessage {
        let places = self.answers_for(holder, calls);
        let checked = &self.messages[holder];
        let is_whole = places.len() == checked.answers.len() && checked.role == MessageRole::Tool;
        if is_whole {
            settled.insert(holder);
            return self.kept(holder);
        }
        let results = self.split(holder).results;
        let blocks: Vec<String> =
            places.iter().filter_map(|place| results.get(*place).cloned()).collect();
        let name = places.first().and_then(|place| checked.answers[*place].display_name());
        let moved = MessageProblem::new(FaultKind::MisplacedResult, name.as_deref(), Remedy::Moved);
        if checked.role == MessageRole::Tool && settled.insert(holder) {
            let mut piece = self.kept(holder);
            piece.text = with_blocks(&checked.text, self.form, &blocks);
            piece.reason = Some(moved);
            return piece;
        }
        PlannedMessage::put_in(results_message(self.form, &blocks), vec![moved], holder)
    }

    /// Adds what remains at the place of a message with results: its other content, and its results
    /// without a call as text.
    fn push_unmatched_results(
        &mut self,
        index: usize,
        settled: &mut BTreeSet<usize>,
        planned: &mut Vec<PlannedMessage>,
    ) {
        if self.messages[index].role != MessageRole::Tool {
            let others = self.split(index).others;
            settled.insert(index);
            let mut piece = self.kept(index);
            piece.text = with_blocks(&self.messages[index].text, self.form, &others);
            let moved = MessageProblem::new(FaultKind::MisplacedResult, None, Remedy::Moved);
            if piece.text.is_some() {
                piece.problems.push(moved);
                planned.push(piece);
            } else {
                self.note(index, moved);
            }
        }
        for place in 0..self.messages[index].answers.len() {
            let Some(unassigned) = self.unassigned(index, place) else { continue };
            if !unassigned.is_kept_as_text {
                self.note(index, unassigned.problem);
                continue;
            }
            let answer = &self.messages[index].answers[place];
            let text = result_as_user_message(self.form, answer, unassigned.doubled);
            let mut piece = PlannedMessage::put_in(text, vec![unassigned.problem], index);
            // The text replaces the message, unless a call needs another result in it.
            let is_alone = !(0..self.messages[index].answers.len())
                .any(|place| matches!(self.pairs.answer(index, place), PairAssignment::To(..)));
            if is_alone && settled.insert(index) {
                piece.source = Some(index);
            }
            planned.push(piece);
        }
    }

    /// Builds the outcome for forms in which results are items anywhere after their call.
    pub(super) fn in_items(&mut self) -> Vec<PlannedMessage> {
        let mut planned: Vec<PlannedMessage> = Vec::new();
        // Messages to add after a group of adjacent calls.
        let mut waiting: Vec<PlannedMessage> = Vec::new();
        for index in 0..self.messages.len() {
            if self.messages[index].is_unusable {
                continue;
            }
            if let Some(answer) = self.messages[index].answers.first()
                && let Some(unassigned) = self.unassigned(index, 0)
            {
                if !unassigned.is_kept_as_text {
                    self.note(index, unassigned.problem);
                    continue;
                }
                let text = result_as_user_message(self.form, answer, unassigned.doubled);
                let mut piece = PlannedMessage::put_in(text, vec![unassigned.problem], index);
                piece.source = Some(index);
                // Nothing may separate reasoning from the item it belongs to.
                let last = planned.last().and_then(|piece| piece.source);
                let reasons = |source: usize| self.messages[source].role == MessageRole::Reasoning;
                let list = if last.is_some_and(reasons) { &mut waiting } else { &mut planned };
                list.push(piece);
                continue;
            }
            let is_early =
                matches!(self.pairs.answer(index, 0), PairAssignment::To(call, _) if call > index);
            if is_early {
                continue;
            }
            if self.messages[index].calls.is_empty()
                && self.messages[index].role != MessageRole::Reasoning
            {
                planned.append(&mut waiting);
            }
            planned.push(self.kept(index));
            if let PairAssignment::To(result, _) = self.pairs.call(index, 0)
                && result < index
            {
                waiting.push(self.kept(result));
            }
            let (made, problems) = self.inserted_results(index);
            let made = made.into_iter().zip(problems);
            waiting.extend(
                made.map(|(text, problem)| PlannedMessage::put_in(text, vec![problem], index)),
            );
            waiting.extend(self.rest_of_message(index));
        }
        planned.append(&mut waiting);
        planned
    }

    /// Builds the outcome for forms in which results are blocks of the message directly after the
    /// calls.
    pub(super) fn in_blocks(&mut self) -> Vec<PlannedMessage> {
        let hosts = self.hosts();
        let hosting: BTreeSet<usize> = hosts.values().copied().collect();
        let mut planned = Vec::new();
        for index in 0..self.messages.len() {
            if self.messages[index].is_unusable || hosting.contains(&index) {
                continue;
            }
            let mut unmatched: ResultBlocks = (Vec::new(), Vec::new());
            if self.messages[index].answers.is_empty() {
                planned.push(self.kept(index));
            } else {
                unmatched = self.without_results(index, &mut planned);
            }
            planned.extend(self.results_of(index, hosts.get(&index).copied(), unmatched));
            planned.extend(self.rest_of_message(index));
        }
        planned
    }

    /// Returns the host of each message with calls, if it has one: the user message in which the
    /// results of the calls are collected. This is the next message if it has any of the results,
    /// otherwise the first message that contains nothing else.
    fn hosts(&self) -> BTreeMap<usize, usize> {
        let mut hosts = BTreeMap::new();
        let mut next: Option<usize> = None;
        let mut taken = vec![false; self.messages.len()];
        for index in (0..self.messages.len()).rev() {
            if self.messages[index].is_unusable || self.vanishes(index) {
                continue;
            }
            if let Some(next) = next.filter(|_| !self.messages[index].calls.is_empty())
                && self.messages[next].role == MessageRole::User
                && !self.answers_for(next, index).is_empty()
            {
                hosts.insert(index, next);
                taken[next] = true;
            }
            next = Some(index);
        }
        for index in 0..self.messages.len() {
            if hosts.contains_key(&index) || self.messages[index].is_unusable {
                continue;
            }
            let is_whole = |message: &usize| {
                !taken[*message]
                    && self.messages[*message].role == MessageRole::User
                    && self.answers_for(*message, index).len()
                        == self.messages[*message].answers.len()
                    && self.split(*message).others.is_empty()
            };
            if let Some(host) = self.holders(index).into_iter().find(is_whole) {
                hosts.insert(index, host);
                taken[host] = true;
            }
        }
        hosts
    }

    /// Returns whether a message can be dropped: it holds only results that repeat others.
    fn vanishes(&self, index: usize) -> bool {
        let answers = self.messages[index].answers.len();
        answers > 0
            && (0..answers).all(|place| self.pairs.answer(index, place) == PairAssignment::Repeated)
            && self.split(index).others.is_empty()
    }

    /// Returns the results of a message that have no call, as blocks of a user message.
    fn unmatched_blocks(&self, index: usize) -> ResultBlocks {
        let mut unmatched: ResultBlocks = (Vec::new(), Vec::new());
        for place in 0..self.messages[index].answers.len() {
            let Some(unassigned) = self.unassigned(index, place) else { continue };
            if unassigned.is_kept_as_text {
                let answer = &self.messages[index].answers[place];
                unmatched.0.extend(result_as_user_blocks(self.form, answer, unassigned.doubled));
            }
            unmatched.1.push(unassigned.problem);
        }
        unmatched
    }

    /// Adds the message without its results; a user message keeps its unmatched results as text.
    /// Returns the unmatched results of a message that is not a user message.
    fn without_results(&mut self, index: usize, planned: &mut Vec<PlannedMessage>) -> ResultBlocks {
        let (unmatched, mut problems) = self.unmatched_blocks(index);
        let moved = self.messages[index].answers.iter().enumerate();
        let moved = moved
            .filter(|(place, _)| matches!(self.pairs.answer(index, *place), PairAssignment::To(..)))
            .map(|(_, answer)| misplaced(answer, index));
        problems.extend(moved);
        let is_user = self.messages[index].role == MessageRole::User;
        let mut blocks = if is_user { unmatched.clone() } else { Vec::new() };
        blocks.extend(self.split(index).others);
        let mut piece = self.kept(index);
        piece.text = with_blocks(&self.messages[index].text, self.form, &blocks);
        if piece.text.is_some() {
            piece.problems.extend(problems.iter().cloned());
            planned.push(piece);
        } else {
            for problem in &problems {
                self.note(index, problem.clone());
            }
        }
        if is_user || unmatched.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            (unmatched, problems)
        }
    }

    /// Returns the message with the results of the calls of the message `index`, and with the
    /// unmatched results after them.
    fn results_of(
        &self,
        index: usize,
        host: Option<usize>,
        unmatched: ResultBlocks,
    ) -> Option<PlannedMessage> {
        let (mut more, mut problems) = self.moved_to(index, host);
        let (made, orphaned) = self.inserted_results(index);
        more.extend(made);
        problems.extend(orphaned);
        let Some(host) = host else {
            more.extend(unmatched.0);
            let reason = unmatched.1.into_iter().next();
            if more.is_empty() {
                return None;
            }
            let mut piece =
                PlannedMessage::put_in(results_message(self.form, &more), problems, index);
            piece.reason = reason;
            return Some(piece);
        };
        let (host_unmatched, host_problems) = self.unmatched_blocks(host);
        let parts = self.split(host);
        let kept = self.answers_for(host, index);
        let mut piece = self.kept(host);
        let is_whole =
            kept.len() == parts.results.len() && more.is_empty() && unmatched.0.is_empty();
        if is_whole && parts.results_first {
            return Some(piece);
        }
        let leaving = self.messages[host].answers.iter().enumerate();
        let leaving = leaving
            .filter(|(place, _)| {
                matches!(self.pairs.answer(host, *place), PairAssignment::To(calls, _) if calls != index)
            })
            .map(|(_, answer)| misplaced(answer, host));
        problems.extend(leaving);
        if problems.is_empty() && host_problems.is_empty() {
            let first = kept.first().and_then(|place| self.messages[host].answers.get(*place));
            problems.extend(first.map(|answer| misplaced(answer, host)));
        }
        let kept = kept.iter().filter_map(|place| parts.results.get(*place).cloned());
        let mut blocks: Vec<String> = kept.collect();
        blocks.extend(more);
        blocks.extend(host_unmatched);
        blocks.extend(unmatched.0);
        blocks.extend(parts.others);
        piece.text = with_blocks(&self.messages[host].text, self.form, &blocks);
        piece.problems.extend(host_problems);
        piece.problems.extend(problems);
        piece.reason = unmatched.1.into_iter().next();
        Some(piece)
    }

    /// Returns the results for the calls of a message that are not in its host, and their problems.
    fn moved_to(&self, index: usize, host: Option<usize>) -> ResultBlocks {
        let mut moved: ResultBlocks = (Vec::new(), Vec::new());
        for holder in self.holders(index).into_iter().filter(|holder| Some(*holder) != host) {
            let results = self.split(holder).results;
            for place in self.answers_for(holder, index) {
                moved.0.extend(results.get(place).cloned());
                moved.1.push(misplaced(&self.messages[holder].answers[place], holder));
            }
        }
        moved
    }
}

fn misplaced(answer: &ToolResultPart, holder: usize) -> MessageProblem {
    MessageProblem::new(FaultKind::MisplacedResult, answer.display_name().as_deref(), Remedy::Moved)
        .at(holder)
}
