//! What becomes of each message of a history, of its calls and of its results.

use super::fault::{FaultKind, Remedy};
use super::form::{
    Answer, Call, CallResult, Cut, Form, Looked, Problem, Sort, Speaker, pair_server_tools,
    result_message, without_calls,
};
use super::ids;
use super::pair::{Assigned, Pairs};
use super::sanitise::{Options, Orphans, Sanitised};
use super::steps::{Piece, Reasons, Steps};
use std::borrow::Cow;

pub(super) struct Plan<'a> {
    pub(super) form: Form,
    pub(super) looked: Vec<Looked<'a>>,
    pub(super) pairs: Pairs,
    options: &'a Options,
    /// Why a message is not part of the outcome.
    pub(super) why: Reasons,
    /// The last message in which somebody speaks: calls there may wait for a person.
    last_turn: usize,
}

impl<'a> Plan<'a> {
    pub(super) fn new(form: Form, mut looked: Vec<Looked<'a>>, options: &'a Options) -> Self {
        pair_server_tools(form, &mut looked);
        let pairs = Pairs::new(form, &looked);
        ids::renew(form, &mut looked, &pairs);
        let mut plan = Self { form, looked, pairs, options, why: Reasons::new(), last_turn: 0 };
        plan.last_turn = (0..plan.looked.len()).rev().find(|at| plan.is_turn(*at)).unwrap_or(0);
        plan
    }

    /// Whether somebody speaks in a message, or is told a result that no call takes.
    fn is_turn(&self, index: usize) -> bool {
        let one = &self.looked[index];
        let told = |place| self.unassigned(index, place).is_some_and(|lone| lone.is_told);
        !one.gone && (one.speaker != Speaker::Tool || (0..one.answers.len()).any(told))
    }

    /// What is made of the history.
    pub(super) fn outcome(mut self) -> Sanitised {
        self.cut_calls();
        let mut pieces = match self.form {
            Form::Anthropic | Form::Bedrock | Form::Gemini => self.in_blocks(),
            Form::OpenaiResponses => self.in_items(),
            _ => self.in_messages(),
        };
        self.settle_ends(&mut pieces);
        let (actions, faults) = Steps::find(&self.looked, self.why, &pieces);
        let reset = pieces.is_empty() && !self.looked.is_empty();
        let renamed = self.looked.iter().enumerate().flat_map(|(index, one)| {
            let given = |call: &Call| Some((index, call.given.clone()?, call.id.clone()));
            one.calls.iter().filter_map(given).collect::<Vec<_>>()
        });
        let renamed = renamed.collect();
        let mut messages = Vec::with_capacity(pieces.len());
        let mut sources = Vec::with_capacity(pieces.len());
        for piece in pieces {
            sources.push(piece.source);
            let kept = piece.source.map(|source| self.looked[source].text.to_string());
            messages.push(piece.text.or(kept).unwrap_or_default());
        }
        Sanitised { form: self.form, messages, sources, actions, faults, reset, renamed }
    }

    /// The result to put in for a call of this message that has none; `None` if the call is to be cut.
    pub(super) fn made_result(&self, index: usize, call: &Call) -> Option<String> {
        if self.waits(index, call) {
            return None;
        }
        let known = self.options.results.get(call.given.as_ref().unwrap_or(&call.id));
        let known = known.or_else(|| self.options.results.get(call.told()));
        match (known, self.options.orphans) {
            (Some(result), _) => result_message(self.form, call, result),
            (None, Orphans::Answer) => result_message(self.form, call, &CallResult::unknown()),
            (None, Orphans::Remove | Orphans::Leave) => None,
        }
    }

    /// Whether a call needs no result yet.
    fn waits(&self, index: usize, call: &Call) -> bool {
        call.sort == Sort::Approval || call.waits && index >= self.last_turn
    }

    /// Cuts the calls that cannot or are not to be answered.
    fn cut_calls(&mut self) {
        for index in 0..self.looked.len() {
            let mut cut: Vec<Problem> = Vec::new();
            let mut places = vec![false; self.looked[index].calls.len()];
            for (place, call) in self.looked[index].calls.iter().enumerate() {
                let fault = match self.pairs.call(index, place) {
                    Assigned::Doubled => FaultKind::DoubledCall,
                    Assigned::Nothing
                        if self.options.orphans != Orphans::Leave
                            && !self.waits(index, call)
                            && self.made_result(index, call).is_none() =>
                    {
                        FaultKind::OrphanedCall
                    }
                    _ => continue,
                };
                places[place] = true;
                cut.push(Problem::new(fault, Some(call.told()), Remedy::Removed));
            }
            if !cut.is_empty() {
                self.cut(index, places, cut);
            }
        }
    }

    /// Cuts these calls out of a message, and the questions whether they may run.
    fn cut(&mut self, index: usize, mut places: Vec<bool>, problems: Vec<Problem>) {
        let looked = &self.looked[index];
        let calls = || looked.calls.iter().zip(&places);
        let ids: Vec<&str> =
            calls().filter(|(_, cut)| **cut).map(|(call, _)| call.id.as_str()).collect();
        let is_asked =
            |call: &Call| call.sort == Sort::Approval && ids.contains(&call.arguments.as_str());
        let asked: Vec<bool> = looked.calls.iter().map(is_asked).collect();
        let cut = Cut { ids, places: places.clone() };
        let left = without_calls(&looked.text, self.form, &cut);
        for (place, asked) in places.iter_mut().zip(asked) {
            *place |= asked;
        }
        let kept: Vec<bool> = places.iter().map(|cut| !cut).collect();
        self.pairs.keep_calls(index, &kept);
        let looked = &mut self.looked[index];
        let mut keep = kept.iter();
        looked.calls.retain(|_| *keep.next().unwrap_or(&true));
        looked.problems.extend(problems);
        match left {
            Some(text) => {
                shift(&mut looked.answers, &looked.text, &text, self.form);
                looked.text = Cow::Owned(text);
            }
            None => looked.gone = true,
        }
    }

    pub(super) fn note(&mut self, index: usize, problem: Problem) {
        self.why.entry(index).or_default().push(problem);
    }

    /// What is wrong with a result that no call takes; whether it is kept as a text, and whether its call has another.
    pub(super) fn unassigned(&self, index: usize, place: usize) -> Option<Unassigned> {
        let answer = &self.looked[index].answers[place];
        let (fault, doubled) = match self.pairs.answer(index, place) {
            Assigned::To(..) => return None,
            Assigned::Repeated | Assigned::Doubled => (FaultKind::DoubledResult, true),
            Assigned::Nothing => (FaultKind::ResultWithoutCall, false),
        };
        let is_told =
            self.pairs.answer(index, place) != Assigned::Repeated && answer.sort != Sort::Approval;
        let remedy = if is_told { Remedy::KeptAsText } else { Remedy::Removed };
        let problem = Problem::new(fault, answer.told().as_deref(), remedy);
        Some(Unassigned { problem, doubled, is_told })
    }

    /// The results to put in for the calls of this message that have none.
    pub(super) fn made(&self, index: usize) -> (Vec<String>, Vec<Problem>) {
        let calls = self.looked[index].calls.iter().enumerate();
        calls
            .filter(|(place, _)| self.pairs.call(index, *place) == Assigned::Nothing)
            .filter_map(|(_, call)| {
                let result = self.made_result(index, call)?;
                let problem =
                    Problem::new(FaultKind::OrphanedCall, Some(call.told()), Remedy::Answered);
                Some((result, problem.at(index)))
            })
            .unzip()
    }

    /// The piece of this message.
    pub(super) fn kept(&self, index: usize) -> Piece {
        Piece::kept(index, &self.looked[index])
    }
}

/// A result that no call takes.
pub(super) struct Unassigned {
    pub(super) problem: Problem,
    pub(super) doubled: bool,
    pub(super) is_told: bool,
}

/// Finds the results again in a message that calls were cut out of.
fn shift(answers: &mut [Answer], before: &str, after: &str, form: Form) {
    if answers.is_empty()
        || !matches!(form, Form::Anthropic | Form::Bedrock | Form::Gemini | Form::AiSdk)
    {
        return;
    }
    let blocks = |text: &str| -> Vec<String> {
        let split = super::form::split(text, form, &[]);
        split.others
    };
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
