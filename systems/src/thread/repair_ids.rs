//! Renames call ids that the provider refuses, that are missing or that repeat, both in the call
//! and in its result.

use super::call_pairs::{CallResultPairs, PairAssignment};
use super::fault::{FaultKind, Remedy};
use super::message_form::{
    CallIdChanges, CallIdRule, CheckedMessage, MessageForm, MessageProblem, ResultIdChange,
    ToolCallKind, with_ids, with_result_kind,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Generates ids that no call or result of the history has.
struct CallIdGenerator {
    taken: HashSet<String>,
    /// For each id: the next suffix to try. The id with a smaller suffix is taken.
    next: HashMap<String, usize>,
    rule: CallIdRule,
}

impl CallIdGenerator {
    /// Returns an id that is not taken: `near`, changed as far as the provider requires, with a
    /// suffix if that one is taken.
    fn id(&mut self, near: &str) -> String {
        let plain = |character: char| {
            let is_allowed = !self.rule.plain_only || character.is_ascii_alphanumeric();
            if is_allowed || matches!(character, '_' | '-') { character } else { '_' }
        };
        // Leaves room for a suffix.
        let room = self.rule.max_chars.saturating_sub(8);
        let near: String = near.chars().map(plain).take(room).collect();
        let near = if near.is_empty() { "call".to_owned() } else { near };
        if self.taken.insert(near.clone()) {
            return near;
        }
        let number = self.next.entry(near.clone()).or_insert(2);
        loop {
            let id = format!("{near}_{number}");
            *number += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// Gives new ids to the calls that need one, and to their results.
pub(super) fn rename_ids(
    form: MessageForm,
    checked: &mut [CheckedMessage<'_>],
    pairs: &CallResultPairs,
) {
    convert_results(form, checked, pairs);
    let mut new = new_call_ids(form, checked, pairs);
    new_result_ids(form, checked, pairs, &mut new);
    for (one, new) in checked.iter_mut().zip(new) {
        let changed = !new.answers.is_empty() || new.calls.iter().any(|(_, new)| new.is_some());
        if !changed {
            continue;
        }
        if let Some(text) = with_ids(&one.text, form, &new) {
            one.text = Cow::Owned(text);
        }
        for (call, (old, new)) in one.calls.iter_mut().zip(new.calls) {
            if let Some(id) = new {
                call.given = Some(old);
                call.id = id;
            }
        }
    }
}

/// Changes the kind of each result to the kind of its call, if they differ.
fn convert_results(form: MessageForm, checked: &mut [CheckedMessage<'_>], pairs: &CallResultPairs) {
    for index in 0..checked.len() {
        for place in 0..checked[index].answers.len() {
            let PairAssignment::To(message, call) = pairs.answer(index, place) else { continue };
            let kind = checked[message].calls[call].kind;
            let one = &mut checked[index];
            if one.answers[place].kind == kind {
                continue;
            }
            let Some(text) = with_result_kind(&one.text, form, kind) else { continue };
            one.text = Cow::Owned(text);
            one.answers[place].kind = kind;
            let id = one.answers[place].display_name();
            one.note_repaired(FaultKind::MismatchedResult, id.as_deref());
        }
    }
}

/// Chooses the new ids of calls, and reports why a call gets one. Returns for each message its
/// calls, with their old ids and the new ones, if any.
fn new_call_ids(
    form: MessageForm,
    checked: &mut [CheckedMessage<'_>],
    pairs: &CallResultPairs,
) -> Vec<CallIdChanges> {
    let rule = form.id_rule();
    let ids = checked.iter().flat_map(|one| {
        let answers = one.answers.iter().map(|answer| &answer.id);
        one.calls.iter().map(|call| &call.id).chain(answers)
    });
    let taken = ids.cloned().collect();
    let mut fresh = CallIdGenerator { taken, next: HashMap::new(), rule: form.id_rule() };
    let mut seen: HashMap<(String, ToolCallKind), (usize, usize)> = HashMap::new();
    let mut new = Vec::with_capacity(checked.len());
    for (index, one) in checked.iter_mut().enumerate() {
        let mut named = CallIdChanges::default();
        if !one.answers.is_empty() && !rule.unique && form != MessageForm::OpenaiResponses {
            // A later call may have the id of a call before the results.
            seen.clear();
        }
        for (place, call) in one.calls.iter().enumerate() {
            let before = seen.insert((call.id.clone(), call.kind), (index, place));
            let repeats = before.is_some_and(|(message, place)| match pairs.call(message, place) {
                // In the Responses API, a later call may have the id of a call if the result is
                // between the two.
                PairAssignment::To(result, _) if form == MessageForm::OpenaiResponses => {
                    result < message || result > index
                }
                _ => true,
            });
            let repeats = repeats && !call.id.is_empty();
            let fault = match () {
                () if call.kind == ToolCallKind::Approval => None,
                () if call.id.is_empty() && rule.required => Some(FaultKind::MissingId),
                () if repeats => Some(FaultKind::DoubledCall),
                () if !rule.accepts(&call.id) => Some(FaultKind::RefusedId),
                () => None,
            };
            let id = fault.map(|_| fresh.id(&call.id));
            if let (Some(fault), Some(id)) = (fault, &id)
                && pairs.call(index, place) != PairAssignment::Doubled
            {
                let shown_id = if call.id.is_empty() { id } else { &call.id };
                one.problems.push(MessageProblem::new(fault, Some(shown_id), Remedy::Renamed));
            }
            named.calls.push((call.id.clone(), id));
        }
        new.push(named);
    }
    new
}

/// Gives results the new ids of their calls, and the name of the tool where a result needs one.
fn new_result_ids(
    form: MessageForm,
    checked: &mut [CheckedMessage<'_>],
    pairs: &CallResultPairs,
    new: &mut [CallIdChanges],
) {
    let mut names: HashMap<(usize, usize), String> = HashMap::new();
    if matches!(form, MessageForm::Gemini | MessageForm::AiSdk) {
        for (index, one) in checked.iter().enumerate() {
            let calls = one.calls.iter().enumerate();
            names.extend(calls.map(|(place, call)| ((index, place), call.name.clone())));
        }
    }
    for (index, one) in checked.iter_mut().enumerate() {
        let mut answers = Vec::new();
        for (place, answer) in one.answers.iter_mut().enumerate() {
            let PairAssignment::To(message, call) = pairs.answer(index, place) else { continue };
            let (old, given) = &new[message].calls[call];
            let id = given.as_ref().unwrap_or(old);
            // Gemini accepts a call with an id and a result without one, and the reverse.
            let loose = form == MessageForm::Gemini && (answer.id.is_empty() || id.is_empty());
            let differs = answer.id != *id && !loose;
            let name = names.get(&(message, call)).filter(|name| {
                let differs = answer.name.as_ref() != Some(name) && form == MessageForm::Gemini;
                answer.kind == ToolCallKind::Function && (answer.name.is_none() || differs)
            });
            if !differs && name.is_none() {
                continue;
            }
            let fault = match () {
                () if !differs && answer.name.is_some() => FaultKind::MismatchedResult,
                () if !differs => FaultKind::MalformedResult,
                () if answer.id.is_empty() => FaultKind::MissingId,
                () if !form.id_rule().accepts(&answer.id) => FaultKind::RefusedId,
                () if answer.id != *old => FaultKind::MismatchedResult,
                () => FaultKind::DoubledCall,
            };
            let remedy = if differs { Remedy::Renamed } else { Remedy::Changed };
            let shown_id = answer.display_name().unwrap_or_else(|| id.clone());
            one.problems.push(MessageProblem::new(fault, Some(&shown_id), remedy));
            let id = differs.then(|| id.clone());
            answers.push(ResultIdChange { at: answer.at, id: id.clone(), name: name.cloned() });
            if let Some(id) = id {
                answer.id = id;
            }
        }
        new[index].answers = answers;
    }
}
