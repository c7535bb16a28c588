//! Pairs the calls of a history with their results.

use super::message_form::{
    CheckedMessage, MessageForm, MessageRole, NO_RESULT, ToolCallKind, ToolResultPart,
};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// The partner of a call or a result, or why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairAssignment {
    /// The result or call at this position of this message.
    To(usize, usize),
    /// There is no partner.
    Nothing,
    /// No partner, because it is a call without a result that repeats an earlier call verbatim, or
    /// another result of a call with different content.
    Doubled,
    /// No partner, because it is a result that adds nothing to another result of the same call.
    Repeated,
}

/// The position of a call or result: the index of its message, and its index among the calls or
/// results of that message.
type PartPosition = (usize, usize);

/// The partners of all calls and results, by message and by index in it.
#[derive(Debug)]
pub(super) struct CallResultPairs {
    calls: Vec<Vec<PairAssignment>>,
    answers: Vec<Vec<PairAssignment>>,
}

/// Calls that may be answered together, because no result or user message is between them; with the
/// results after them that may belong to them although no earlier call has the ids of the results.
#[derive(Debug, Default)]
struct CallGroup {
    calls: Vec<PartPosition>,
    without_call: Vec<PartPosition>,
}

/// The calls with one id and kind.
#[derive(Debug, Default)]
struct CallQueue {
    calls: Vec<PartPosition>,
    /// How many of the first calls have a result.
    answered: usize,
}

/// What a result must have in common with its call: the call id, or the tool name; and the kind.
type CallKey<'l> = (&'l str, ToolCallKind);

impl CallResultPairs {
    /// Pairs calls and results.
    ///
    /// - A result with an id belongs to an earlier call with this id: to the first unanswered one
    ///   in the most recent group that has the id, of the tool that the result names if there is
    ///   one. If there is none, it belongs to the first later call with this id.
    /// - Calls with a result after them in their own message are a group without earlier calls.
    /// - If a call has several results, the first one counts, unless it only says that no result
    ///   was recorded.
    /// - In items of the Responses API, a result that has no call yet may belong to a call without
    ///   a result: to one of another kind with its id, or to an earlier one whose item has its id.
    /// - A result without an id belongs to the group of calls directly before it: to the call whose
    ///   id its message has as its own, to a call of the same tool or, if equally many calls and
    ///   results are left, to the call at the same place.
    pub(super) fn new(form: MessageForm, checked: &[CheckedMessage<'_>]) -> Self {
        let nothing = |count: usize| vec![PairAssignment::Nothing; count];
        let mut pairs = Self {
            calls: checked.iter().map(|one| nothing(one.calls.len())).collect(),
            answers: checked.iter().map(|one| nothing(one.answers.len())).collect(),
        };
        let (groups, early) = pairs.by_id(form, checked);
        pairs.assign_anywhere(checked, &early);
        if form == MessageForm::OpenaiResponses {
            pairs.by_id_of_another_kind(checked);
            pairs.by_id_of_item(checked);
        }
        for group in &groups {
            pairs.by_own_id(checked, group);
            pairs.by_name(checked, group);
            pairs.by_order(checked, group);
        }
        if form == MessageForm::Gemini {
            let calls = groups.iter().flat_map(|group| &group.calls).copied().collect();
            let without_call =
                groups.iter().flat_map(|group| &group.without_call).copied().collect();
            pairs.by_name(checked, &CallGroup { calls, without_call });
        }
        for group in &groups {
            pairs.mark_doubled(checked, group);
        }
        pairs
    }

    /// Assigns the results with the id of an earlier call. Returns the groups of calls, and the
    /// results with an id that no earlier call has.
    fn by_id(
        &mut self,
        form: MessageForm,
        checked: &[CheckedMessage<'_>],
    ) -> (Vec<CallGroup>, Vec<PartPosition>) {
        // For each id and kind: the most recent group that has it, and its calls there.
        let mut latest: HashMap<CallKey<'_>, (usize, CallQueue)> = HashMap::new();
        let mut groups = vec![CallGroup::default()];
        let mut early = Vec::new();
        let mut ended = false;
        for (index, one) in checked.iter().enumerate().filter(|(_, one)| !one.is_unusable) {
            let has_own_results = one.answers.last().is_some_and(|answer| answer.calls_before > 0);
            ended |= has_own_results || one.role == MessageRole::User;
            let mut own_calls = one.calls.iter().enumerate().peekable();
            // Goes through calls and results in the order of the message. The last round handles
            // the calls after the last result.
            for place in 0..=one.answers.len() {
                let answer = one.answers.get(place);
                let until = answer.map_or(usize::MAX, |answer| answer.calls_before);
                while let Some((at, call)) = own_calls.next_if(|(at, _)| *at < until) {
                    if std::mem::take(&mut ended) {
                        groups.push(CallGroup::default());
                    }
                    let number = groups.len() - 1;
                    groups[number].calls.push((index, at));
                    let known = latest.entry((call.id.as_str(), call.kind)).or_default();
                    if known.0 != number {
                        *known = (number, CallQueue::default());
                    }
                    known.1.calls.push((index, at));
                }
                let Some(answer) = answer else { break };
                ended = true;
                let calls = latest.get_mut(&(answer.id.as_str(), answer.kind));
                match calls.filter(|_| !answer.id.is_empty()) {
                    Some((_, calls)) => self.assign_first_open(checked, calls, (index, place)),
                    None => {
                        // Gemini accepts calls without ids whose results have one.
                        if let Some(group) = groups.last_mut()
                            && (answer.id.is_empty() || form == MessageForm::Gemini)
                        {
                            group.without_call.push((index, place));
                        }
                        if !answer.id.is_empty() {
                            early.push((index, place));
                        }
                    }
                }
            }
        }
        (groups, early)
    }

    /// Assigns a result to the first of these calls that has none: to one of the tool that the
    /// result names, if there is one. If all calls have a result, marks this one as repeated or
    /// doubled, or lets it replace a result that only says that none was recorded.
    fn assign_first_open(
        &mut self,
        checked: &[CheckedMessage<'_>],
        queue: &mut CallQueue,
        answer: PartPosition,
    ) {
        let result = &checked[answer.0].answers[answer.1];
        while let Some(call) = queue.calls.get(queue.answered) {
            if self.calls[call.0][call.1] == PairAssignment::Nothing {
                let of_tool = self.open_call_of_tool(checked, queue, result.name.as_deref());
                return self.assign(of_tool.unwrap_or(*call), answer);
            }
            queue.answered += 1;
        }
        for call in &queue.calls {
            let PairAssignment::To(message, place) = self.calls[call.0][call.1] else { continue };
            let known = &checked[message].answers[place];
            if is_made_up(result) || known.content == result.content {
                self.answers[answer.0][answer.1] = PairAssignment::Repeated;
                return;
            }
            if is_made_up(known) {
                self.answers[message][place] = PairAssignment::Repeated;
                return self.assign(*call, answer);
            }
        }
        self.answers[answer.0][answer.1] = PairAssignment::Doubled;
    }

    /// Returns the first of these calls that has no result and is of this tool.
    fn open_call_of_tool(
        &self,
        checked: &[CheckedMessage<'_>],
        queue: &CallQueue,
        tool: Option<&str>,
    ) -> Option<PartPosition> {
        // A bound, so that the time stays linear if very many calls have one id.
        const MOST: usize = 64;
        let tool = tool?;
        let mut open = queue
            .calls
            .iter()
            .skip(queue.answered)
            .take(MOST)
            .filter(|call| self.calls[call.0][call.1] == PairAssignment::Nothing);
        open.find(|call| checked[call.0].calls[call.1].name == tool).copied()
    }

    /// Makes a call and a result partners.
    fn assign(&mut self, call: PartPosition, answer: PartPosition) {
        self.calls[call.0][call.1] = PairAssignment::To(answer.0, answer.1);
        self.answers[answer.0][answer.1] = PairAssignment::To(call.0, call.1);
    }

    /// Assigns results to calls with their id anywhere in the history.
    fn assign_anywhere(&mut self, checked: &[CheckedMessage<'_>], answers: &[PartPosition]) {
        if answers.is_empty() {
            return;
        }
        let mut calls: HashMap<CallKey<'_>, CallQueue> = HashMap::new();
        for (index, one) in checked.iter().enumerate().filter(|(_, one)| !one.is_unusable) {
            for (place, call) in one.calls.iter().enumerate() {
                let known = calls.entry((call.id.as_str(), call.kind)).or_default();
                known.calls.push((index, place));
            }
        }
        for answer in answers {
            let result = &checked[answer.0].answers[answer.1];
            if let Some(calls) = calls.get_mut(&(result.id.as_str(), result.kind)) {
                self.assign_first_open(checked, calls, *answer);
            }
        }
    }

    /// Assigns the results that are left to unanswered calls of another kind with the same id: to
    /// the last of them before the result, else to the first one after it. A repeated or doubled
    /// result is only assigned to a call before it.
    fn by_id_of_another_kind(&mut self, checked: &[CheckedMessage<'_>]) {
        let mut open: HashMap<&str, BTreeSet<PartPosition>> = HashMap::new();
        for (index, one) in checked.iter().enumerate().filter(|(_, one)| !one.is_unusable) {
            for (place, call) in one.calls.iter().enumerate() {
                if self.calls[index][place] == PairAssignment::Nothing && !call.id.is_empty() {
                    open.entry(&call.id).or_default().insert((index, place));
                }
            }
        }
        for (index, one) in checked.iter().enumerate().filter(|(_, one)| !one.is_unusable) {
            for (place, answer) in one.answers.iter().enumerate() {
                let assigned = self.answers[index][place];
                let Some(calls) = open.get_mut(answer.id.as_str()) else { continue };
                if matches!(assigned, PairAssignment::To(..)) {
                    continue;
                }
                let at = (index, place);
                let fits =
                    |call: &&PartPosition| checked[call.0].calls[call.1].kind.takes_result(answer);
                let before = calls.range(..at).rev().find(fits);
                let after = || calls.range(at..).find(fits);
                let is_lone = assigned == PairAssignment::Nothing;
                let call = before.or_else(|| after().filter(|_| is_lone)).copied();
                if let Some(call) = call {
                    calls.remove(&call);
                    self.assign(call, at);
                }
            }
        }
    }

    /// Assigns the results without a call to unanswered calls before them whose items have, as
    /// their own ids, the ids of the results: the two ids of an item are easily confused.
    fn by_id_of_item(&mut self, checked: &[CheckedMessage<'_>]) {
        let mut open: HashMap<&str, PartPosition> = HashMap::new();
        for (index, one) in checked.iter().enumerate().filter(|(_, one)| !one.is_unusable) {
            for (place, answer) in one.answers.iter().enumerate() {
                let is_lone = self.answers[index][place] == PairAssignment::Nothing;
                let call = open.get(answer.id.as_str()).copied().filter(|_| is_lone);
                let takes = |at: &PartPosition| checked[at.0].calls[at.1].kind.takes_result(answer);
                if let Some(call) = call.filter(takes) {
                    open.remove(answer.id.as_str());
                    self.assign(call, (index, place));
                }
            }
            if let Some(id) = one.id.as_deref()
                && self.calls[index].first() == Some(&PairAssignment::Nothing)
            {
                open.insert(id, (index, 0));
            }
        }
    }

    /// Assigns the results without an id of a group to its unanswered calls by the own ids of their
    /// messages: some programs write the id of the call there.
    fn by_own_id(&mut self, checked: &[CheckedMessage<'_>], group: &CallGroup) {
        let own_id = |at: &PartPosition| {
            let one = &checked[at.0];
            let is_lone = one.answers.len() == 1 && one.answers[at.1].id.is_empty();
            one.id.as_deref().filter(|_| is_lone)
        };
        if group.without_call.iter().all(|at| own_id(at).is_none()) {
            return;
        }
        let mut free: HashMap<CallKey<'_>, PartPosition> = HashMap::new();
        for at in &group.calls {
            let call = &checked[at.0].calls[at.1];
            if self.calls[at.0][at.1] == PairAssignment::Nothing && !call.id.is_empty() {
                free.entry((call.id.as_str(), call.kind)).or_insert(*at);
            }
        }
        for at in &group.without_call {
            let kind = checked[at.0].answers[at.1].kind;
            if let Some(call) = own_id(at).and_then(|id| free.remove(&(id, kind))) {
                self.assign(call, *at);
            }
        }
    }

    /// Assigns the unassigned results of a group to its unanswered calls of the same tool and kind.
    /// A result with an id is only assigned to a call without an id.
    fn by_name(&mut self, checked: &[CheckedMessage<'_>], group: &CallGroup) {
        let is_free =
            |pairs: &Self, at: &PartPosition| pairs.calls[at.0][at.1] == PairAssignment::Nothing;
        let is_lone =
            |pairs: &Self, at: &PartPosition| pairs.answers[at.0][at.1] == PairAssignment::Nothing;
        if !group.without_call.iter().any(|at| is_lone(self, at)) {
            return;
        }
        // The unanswered calls, by name, kind, and whether they have no id.
        let mut free: HashMap<(CallKey<'_>, bool), VecDeque<PartPosition>> = HashMap::new();
        for at in group.calls.iter().filter(|at| is_free(self, at)) {
            let call = &checked[at.0].calls[at.1];
            let key = (call.name.as_str(), call.kind);
            free.entry((key, call.id.is_empty())).or_default().push_back(*at);
        }
        for at in
            group.without_call.iter().filter(|at| is_lone(self, at)).copied().collect::<Vec<_>>()
        {
            let answer = &checked[at.0].answers[at.1];
            let Some(name) = &answer.name else { continue };
            let key = (name.as_str(), answer.kind);
            // A result and a call with different ids do not belong together.
            let fits = |has_no_id: &bool| *has_no_id || answer.id.is_empty();
            let first = |has_no_id: bool| Some((*free.get(&(key, has_no_id))?.front()?, has_no_id));
            let call = [true, false].into_iter().filter(fits).filter_map(first).min();
            if let Some((call, has_no_id)) = call {
                free.entry((key, has_no_id)).or_default().pop_front();
                self.assign(call, at);
            }
        }
    }

    /// Assigns the results without an id that are left of a group to its unanswered calls in order,
    /// if there are equally many. The tool names are not compared.
    fn by_order(&mut self, checked: &[CheckedMessage<'_>], group: &CallGroup) {
        let calls = group.calls.iter();
        let calls = calls.filter(|at| self.calls[at.0][at.1] == PairAssignment::Nothing);
        let calls: Vec<PartPosition> = calls.copied().collect();
        let is_lone = |at: &&PartPosition| {
            self.answers[at.0][at.1] == PairAssignment::Nothing
                && checked[at.0].answers[at.1].id.is_empty()
        };
        let answers: Vec<PartPosition> =
            group.without_call.iter().filter(is_lone).copied().collect();
        if calls.len() == answers.len() {
            for (call, answer) in calls.into_iter().zip(answers) {
                if checked[call.0].calls[call.1].kind == checked[answer.0].answers[answer.1].kind {
                    self.assign(call, answer);
                }
            }
        }
    }

    /// Marks the calls without a result that repeat an earlier call of their group verbatim.
    fn mark_doubled(&mut self, checked: &[CheckedMessage<'_>], group: &CallGroup) {
        let mut known = HashSet::new();
        for (message, place) in &group.calls {
            let call = &checked[*message].calls[*place];
            let is_new = known.insert((&call.id, call.kind, &call.name, &call.arguments));
            let assigned = &mut self.calls[*message][*place];
            if !is_new && !call.id.is_empty() && *assigned == PairAssignment::Nothing {
                *assigned = PairAssignment::Doubled;
            }
        }
    }

    /// Returns the partner of the call at this position of this message.
    pub(super) fn call(&self, message: usize, place: usize) -> PairAssignment {
        self.calls[message].get(place).copied().unwrap_or(PairAssignment::Doubled)
    }

    /// Returns the partner of the result at this position of this message.
    pub(super) fn answer(&self, message: usize, place: usize) -> PairAssignment {
        self.answers[message].get(place).copied().unwrap_or(PairAssignment::Nothing)
    }

    /// Removes the calls of a message that are not kept, and updates the results of all its calls.
    pub(super) fn keep_calls(&mut self, message: usize, kept: &[bool]) {
        for (assigned, _) in self.calls[message].iter().zip(kept).filter(|(_, kept)| !**kept) {
            if let PairAssignment::To(index, place) = *assigned {
                self.answers[index][place] = PairAssignment::Nothing;
            }
        }
        let mut keep = kept.iter();
        self.calls[message].retain(|_| *keep.next().unwrap_or(&true));
        for (place, assigned) in self.calls[message].iter().enumerate() {
            if let PairAssignment::To(index, answer) = *assigned {
                self.answers[index][answer] = PairAssignment::To(message, place);
            }
        }
    }
}

/// Returns whether a result only says that none was recorded: [`NO_RESULT`], perhaps with a little
/// JSON around it.
fn is_made_up(answer: &ToolResultPart) -> bool {
    answer.content.len() < NO_RESULT.len() + 80 && answer.content.contains(NO_RESULT)
}
