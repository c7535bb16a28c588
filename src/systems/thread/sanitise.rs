//! Makes a history such that its provider takes it: everything valid is kept, in its order.

use super::action::{Action, ActionKind};
use super::fault::{Fault, FaultKind};
use super::form::{
    self, Call, CallResult, Evidence, Form, Looked, Problem, Speaker, evidence, look,
    result_message, without_calls,
};
use super::json::{Object, without_halves};
use super::pair::{Assigned, Pairs};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What becomes of a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// It gets one that says that none was recorded.
    #[default]
    Answer,
    /// It is cut out.
    Remove,
    /// It stays as it is: for where the call may still be running.
    Leave,
}

/// How to sanitise.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What becomes of a call without a result.
    pub orphans: Orphans,
    /// Results that are known from elsewhere, by the id of their call.
    pub results: BTreeMap<String, CallResult>,
}

/// Messages that cannot be of one history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "message {first} is of the form {} and message {second} of the form {}: give messages of one form", forms.0.word(), forms.1.word()
)]
pub struct MixedForms {
    /// A message of the first form, counted from 0.
    pub first: usize,
    /// A message of the second.
    pub second: usize,
    /// The two forms.
    pub forms: (Form, Form),
}

/// A history that was made valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitised {
    /// The form of its messages.
    pub form: Form,
    /// The messages, as JSON.
    pub messages: Vec<String>,
    /// Which message of the history each is or was made of; `None` for those put in.
    pub sources: Vec<Option<usize>>,
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// What was wrong, in the order of the messages.
    pub faults: Vec<Fault>,
    /// Whether nothing could be saved.
    pub reset: bool,
}

impl Sanitised {
    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.actions.is_empty()
    }
}

/// The form of a history: that which its messages show.
///
/// # Errors
/// [`MixedForms`] if they show several.
pub fn form_of<T: AsRef<str>>(messages: &[T]) -> Result<Form, MixedForms> {
    let parsed: Vec<_> = messages.iter().map(|text| Object::parse(text.as_ref())).collect();
    shown_form(&parsed)
}

/// The form that these messages show.
pub(super) fn shown_form(objects: &[Option<Object<'_>>]) -> Result<Form, MixedForms> {
    let (mut strong, mut weak): (Option<(usize, Form)>, Option<Form>) = (None, None);
    for (index, object) in objects.iter().enumerate() {
        match object.as_ref().map_or(Evidence::None, evidence) {
            Evidence::Strong(form) => match strong {
                Some((first, known)) if known != form => {
                    return Err(MixedForms { first, second: index, forms: (known, form) });
                }
                Some(_) => {}
                None => strong = Some((index, form)),
            },
            Evidence::Weak(form) => weak = weak.or(Some(form)),
            Evidence::Any | Evidence::None => {}
        }
    }
    Ok(strong.map(|(_, form)| form).or(weak).unwrap_or_default())
}

/// Makes a history valid.
///
/// ```
/// use forge_store::systems::thread::{Options, sanitise};
///
/// let history = [
///     r#"{"role":"user","content":"weather?"}"#,
///     r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{}"}}]}"#,
///     r#"{"role":"user","content":"are you there?"}"#,
/// ];
/// let sanitised = sanitise(&history, &Options::default())?;
/// assert_eq!(sanitised.messages.len(), 4);
/// assert_eq!(sanitised.actions[0].tool_call_id.as_deref(), Some("c1"));
/// assert!(sanitised.messages[2].contains(r#""role":"tool""#));
/// # Ok::<(), forge_store::systems::thread::MixedForms>(())
/// ```
///
/// # Errors
/// [`MixedForms`] if the messages are of several forms.
pub fn sanitise<T: AsRef<str>>(messages: &[T], options: &Options) -> Result<Sanitised, MixedForms> {
    let whole: Vec<_> = messages.iter().map(|text| without_halves(text.as_ref())).collect();
    let objects: Vec<_> = whole.iter().map(|text| Object::parse(text)).collect();
    let form = shown_form(&objects)?;
    let last = messages.len().saturating_sub(1);
    let looked: Vec<Looked<'_>> = (messages.iter().zip(objects).enumerate())
        .map(|(index, (text, object))| look(text.as_ref(), object, form, index == last))
        .collect();
    let mut plan = Plan::new(form, looked, options);
    let pieces = plan.pieces();
    Ok(plan.finish(pieces))
}

/// A message of the outcome.
struct Piece {
    /// The message of the history that it is or was made of.
    source: Option<usize>,
    /// The new text; `None` if it is the message as it was.
    text: Option<String>,
    /// Why it is new or changed.
    problems: Vec<Problem>,
    /// Of one put in: the message that called for it.
    caller: usize,
}

impl Piece {
    fn kept(source: usize, looked: &Looked<'_>) -> Self {
        let text = match &looked.text {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text.clone()),
        };
        Self { source: Some(source), text, problems: looked.problems.clone(), caller: source }
    }
}

struct Plan<'a> {
    form: Form,
    looked: Vec<Looked<'a>>,
    pairs: Pairs,
    options: &'a Options,
    /// Why a message is not part of the outcome, or not as it was.
    why: BTreeMap<usize, Vec<Problem>>,
}

impl<'a> Plan<'a> {
    fn new(form: Form, looked: Vec<Looked<'a>>, options: &'a Options) -> Self {
        let pairs = Pairs::new(form, &looked);
        Self { form, looked, pairs, options, why: BTreeMap::new() }
    }

    /// The result to put in for a call that has none; `None` if the call is to be cut.
    fn made_result(&self, call: &Call) -> Option<String> {
        match (self.options.results.get(&call.id), self.options.orphans) {
            (Some(result), _) => result_message(self.form, call, result),
            (None, Orphans::Answer) => result_message(self.form, call, &CallResult::unknown()),
            (None, Orphans::Remove | Orphans::Leave) => None,
        }
    }

    fn pieces(&mut self) -> Vec<Piece> {
        self.cut_calls();
        let mut pieces = match self.form {
            Form::Anthropic => self.in_blocks(),
            Form::OpenaiResponses => self.in_items(),
            _ => self.in_messages(),
        };
        if self.form == Form::OpenaiResponses {
            self.drop_lone_reasoning(&mut pieces);
        }
        pieces
    }

    /// Cuts the calls that cannot or are not to be answered.
    fn cut_calls(&mut self) {
        for index in 0..self.looked.len() {
            let mut cut: Vec<Problem> = Vec::new();
            for (place, call) in self.looked[index].calls.iter().enumerate() {
                match self.pairs.call(index, place) {
                    Assigned::Doubled => cut.push((FaultKind::DoubledCall, Some(call.id.clone()))),
                    Assigned::Nothing
                        if self.options.orphans != Orphans::Leave
                            && self.made_result(call).is_none() =>
                    {
                        cut.push((FaultKind::OrphanedCall, Some(call.id.clone())));
                    }
                    Assigned::Nothing | Assigned::To(..) => {}
                }
            }
            if cut.is_empty() {
                continue;
            }
            let ids: Vec<&str> = cut.iter().filter_map(|(_, id)| id.as_deref()).collect();
            let looked = &self.looked[index];
            let left = without_calls(&looked.text, self.form, &ids);
            let kept: Vec<bool> =
                looked.calls.iter().map(|call| !ids.contains(&call.id.as_str())).collect();
            self.pairs.keep_calls(index, &kept);
            let looked = &mut self.looked[index];
            let mut keep = kept.iter();
            looked.calls.retain(|_| *keep.next().unwrap_or(&true));
            looked.problems.extend(cut);
            match left {
                Some(text) => looked.text = Cow::Owned(text),
                None => looked.gone = true,
            }
        }
    }

    fn note(&mut self, index: usize, problem: Problem) {
        self.why.entry(index).or_default().push(problem);
    }

    /// Notes why this message, a result alone, is left out, if it is.
    fn drop_unassigned(&mut self, index: usize) -> bool {
        let Some(answer) = self.looked[index].answers.first() else { return false };
        let fault = match self.pairs.answer(index, 0) {
            Assigned::To(..) => return false,
            Assigned::Doubled => FaultKind::DoubledResult,
            Assigned::Nothing => FaultKind::ResultWithoutCall,
        };
        let problem = (fault, Some(answer.id.clone()));
        self.note(index, problem);
        true
    }

    /// The pieces put in for the calls of this message that have no result.
    fn made(&self, index: usize) -> Vec<Piece> {
        let calls = self.looked[index].calls.iter().enumerate();
        calls
            .filter(|(place, _)| self.pairs.call(index, *place) == Assigned::Nothing)
            .filter_map(|(_, call)| {
                let problems = vec![(FaultKind::OrphanedCall, Some(call.id.clone()))];
                let text = Some(self.made_result(call)?);
                Some(Piece { source: None, text, problems, caller: index })
            })
            .collect()
    }

    /// Where results are messages of their own that must stand right behind their call.
    fn in_messages(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for index in 0..self.looked.len() {
            let looked = &self.looked[index];
            if looked.gone || self.drop_unassigned(index) {
                continue;
            }
            let looked = &self.looked[index];
            if !looked.answers.is_empty() {
                continue;
            }
            pieces.push(Piece::kept(index, looked));
            let mut results: Vec<usize> = (0..looked.calls.len())
                .filter_map(|place| match self.pairs.call(index, place) {
                    Assigned::To(message, _) => Some(message),
                    _ => None,
                })
                .collect();
            results.sort_unstable();
            pieces.extend(results.into_iter().map(|at| Piece::kept(at, &self.looked[at])));
            pieces.extend(self.made(index));
        }
        pieces
    }

    /// Where results are items that may stand anywhere behind their call.
    fn in_items(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // What comes behind the calls that stand together.
        let mut waiting: Vec<Piece> = Vec::new();
        for index in 0..self.looked.len() {
            if self.looked[index].gone || self.drop_unassigned(index) {
                continue;
            }
            let looked = &self.looked[index];
            let early =
                matches!(self.pairs.answer(index, 0), Assigned::To(call, _) if call > index);
            if !looked.answers.is_empty() && early {
                continue;
            }
            if looked.calls.is_empty() {
                pieces.append(&mut waiting);
            }
            pieces.push(Piece::kept(index, looked));
            if let Assigned::To(result, _) = self.pairs.call(index, 0)
                && result < index
            {
                waiting.push(Piece::kept(result, &self.looked[result]));
            }
            waiting.extend(self.made(index));
        }
        pieces.append(&mut waiting);
        pieces
    }

    /// Takes out reasoning that the item it belongs to does not follow.
    fn drop_lone_reasoning(&mut self, pieces: &mut Vec<Piece>) {
        let mut followed = false;
        let mut keep = vec![true; pieces.len()];
        for (place, piece) in pieces.iter().enumerate().rev() {
            match piece.source.map(|source| self.looked[source].speaker) {
                Some(Speaker::Reasoning) if !followed => {
                    keep[place] = false;
                    self.why
                        .entry(piece.caller)
                        .or_default()
                        .push((FaultKind::ReasoningWithoutItem, None));
                }
                Some(Speaker::Reasoning) => {}
                speaker => followed = speaker == Some(Speaker::Assistant),
            }
        }
        let mut kept = keep.into_iter();
        pieces.retain(|_| kept.next().unwrap_or(true));
    }

    /// Where results are blocks of the message right behind the call's.
    fn in_blocks(&mut self) -> Vec<Piece> {
        let hosts = self.hosts();
        let host_of: BTreeMap<usize, usize> =
            hosts.iter().map(|(calls, host)| (*host, *calls)).collect();
        let mut pieces = Vec::new();
        for index in 0..self.looked.len() {
            if self.looked[index].gone || host_of.contains_key(&index) {
                continue;
            }
            if self.looked[index].answers.is_empty() {
                pieces.push(Piece::kept(index, &self.looked[index]));
            } else {
                pieces.extend(self.emptied(index));
            }
            if !self.looked[index].calls.is_empty() {
                pieces.extend(self.results_of(index, hosts.get(&index).copied()));
            }
        }
        pieces
    }

    /// For messages with calls, the message that holds their results: the next one if it has any of them, else the
    /// first that consists of them.
    fn hosts(&self) -> BTreeMap<usize, usize> {
        let mut hosts = BTreeMap::new();
        let is_left = |index: usize| {
            let looked = &self.looked[index];
            !looked.gone && !self.vanishes(index)
        };
        let mut next: Option<usize> = None;
        let mut taken = vec![false; self.looked.len()];
        for index in (0..self.looked.len()).rev() {
            if !is_left(index) {
                continue;
            }
            if let Some(next) = next.filter(|_| !self.looked[index].calls.is_empty())
                && self.answers_for(next, index).next().is_some()
            {
                hosts.insert(index, next);
                taken[next] = true;
            }
            next = Some(index);
        }
        for index in 0..self.looked.len() {
            if hosts.contains_key(&index) || self.looked[index].gone {
                continue;
            }
            let holders = (0..self.looked[index].calls.len()).filter_map(|place| {
                match self.pairs.call(index, place) {
                    Assigned::To(message, _) => Some(message),
                    _ => None,
                }
            });
            let whole = |message: &usize| {
                !taken[*message]
                    && self.answers_for(*message, index).count()
                        == self.looked[*message].answers.len()
                    && form::without_results(&self.looked[*message].text).0.is_none()
            };
            if let Some(host) = holders.filter(whole).min() {
                hosts.insert(index, host);
                taken[host] = true;
            }
        }
        hosts
    }

    /// Whether a message holds nothing but results that answer nothing.
    fn vanishes(&self, index: usize) -> bool {
        let answers = self.looked[index].answers.len();
        answers > 0
            && (0..answers)
                .all(|place| !matches!(self.pairs.answer(index, place), Assigned::To(..)))
            && form::without_results(&self.looked[index].text).0.is_none()
    }

    /// The places of the results in a message that answer calls of another.
    fn answers_for(&self, message: usize, calls: usize) -> impl Iterator<Item = usize> {
        (0..self.looked[message].answers.len()).filter(
            move |place| matches!(self.pairs.answer(message, *place), Assigned::To(at, _) if at == calls),
        )
    }

    /// Why the results of this message that do not answer the calls of `host_for` are not in it any more.
    fn leaving(&self, index: usize, host_for: Option<usize>) -> Vec<Problem> {
        let answers = self.looked[index].answers.iter().enumerate();
        answers
            .filter_map(|(place, answer)| {
                let fault = match self.pairs.answer(index, place) {
                    Assigned::To(calls, _) if Some(calls) == host_for => return None,
                    Assigned::To(..) => FaultKind::MisplacedResult,
                    Assigned::Doubled => FaultKind::DoubledResult,
                    Assigned::Nothing => FaultKind::ResultWithoutCall,
                };
                Some((fault, Some(answer.id.clone())))
            })
            .collect()
    }

    /// The message without its results, all of which belong elsewhere or nowhere.
    fn emptied(&mut self, index: usize) -> Option<Piece> {
        let leaving = self.leaving(index, None);
        let (rest, _) = form::without_results(&self.looked[index].text);
        let Some(rest) = rest else {
            for problem in leaving {
                self.note(index, problem);
            }
            return None;
        };
        let mut piece = Piece::kept(index, &self.looked[index]);
        piece.text = Some(rest);
        piece.problems.extend(leaving);
        Some(piece)
    }

    /// The message of the results of the calls of this one.
    fn results_of(&self, index: usize, host: Option<usize>) -> Option<Piece> {
        let mut more = Vec::new();
        let mut problems = Vec::new();
        let mut moved: Vec<(usize, usize)> = Vec::new();
        let mut made = Vec::new();
        for (place, call) in self.looked[index].calls.iter().enumerate() {
            match self.pairs.call(index, place) {
                Assigned::To(message, _) if Some(message) == host => {}
                Assigned::To(message, place) => {
                    problems.push((FaultKind::MisplacedResult, Some(call.id.clone())));
                    moved.push((message, place));
                }
                _ => {
                    if let Some(result) = self.made_result(call) {
                        problems.push((FaultKind::OrphanedCall, Some(call.id.clone())));
                        made.push(result);
                    }
                }
            }
        }
        moved.sort_unstable();
        for (message, place) in moved {
            more.extend(form::without_results(&self.looked[message].text).1.get(place).cloned());
        }
        more.extend(made);
        let Some(host) = host else {
            let text = Some(form::results_message(&more));
            return (!more.is_empty()).then_some(Piece {
                source: None,
                text,
                problems,
                caller: index,
            });
        };
        let mut piece = Piece::kept(host, &self.looked[host]);
        let kept: Vec<usize> = self.answers_for(host, index).collect();
        if let Some(text) = form::with_results(&self.looked[host].text, &kept, &more) {
            problems.extend(self.leaving(host, Some(index)));
            if problems.is_empty() {
                let first = kept.first().and_then(|place| self.looked[host].answers.get(*place));
                problems.push((FaultKind::MisplacedResult, first.map(|answer| answer.id.clone())));
            }
            piece.text = Some(text);
            piece.problems.extend(problems);
        }
        Some(piece)
    }

    /// The outcome, and the steps that lead to it.
    fn finish(mut self, pieces: Vec<Piece>) -> Sanitised {
        let mut steps = Steps::new(&self.looked, &mut self.why, &pieces);
        for (place, piece) in pieces.iter().enumerate() {
            steps.piece(place, piece);
        }
        steps.rest(pieces.len());
        let (actions, mut faults) = (steps.actions, steps.faults);
        faults.sort_by_key(|fault| fault.index);
        let reset = pieces.is_empty() && !self.looked.is_empty();
        let mut messages = Vec::with_capacity(pieces.len());
        let mut sources = Vec::with_capacity(pieces.len());
        for piece in pieces {
            sources.push(piece.source);
            let kept = piece.source.map(|source| &self.looked[source].text);
            messages
                .push(piece.text.or_else(|| kept.map(|text| text.to_string())).unwrap_or_default());
        }
        Sanitised { form: self.form, messages, sources, actions, faults, reset }
    }
}

/// Finds the steps from the history to the outcome, from the front to the back.
struct Steps<'p, 'a> {
    looked: &'p [Looked<'a>],
    why: &'p mut BTreeMap<usize, Vec<Problem>>,
    /// Whether a message is part of the outcome.
    wanted: Vec<bool>,
    /// Whether a message stands further in front already.
    done: Vec<bool>,
    /// The first message that may still stand behind what is done.
    next: usize,
    actions: Vec<Action>,
    faults: Vec<Fault>,
}

impl<'p, 'a> Steps<'p, 'a> {
    fn new(
        looked: &'p [Looked<'a>],
        why: &'p mut BTreeMap<usize, Vec<Problem>>,
        pieces: &[Piece],
    ) -> Self {
        let mut wanted = vec![false; looked.len()];
        for source in pieces.iter().filter_map(|piece| piece.source) {
            wanted[source] = true;
        }
        let done = vec![false; looked.len()];
        Self { looked, why, wanted, done, next: 0, actions: Vec::new(), faults: Vec::new() }
    }

    fn fault(&mut self, index: usize, (fault, tool_call_id): &Problem) {
        let message_id = self.looked.get(index).and_then(|looked| looked.id.clone());
        let tool_call_id = tool_call_id.clone();
        self.faults.push(Fault { fault: *fault, index, message_id, tool_call_id });
    }

    fn action(&mut self, kind: ActionKind, index: usize, problem: &Problem, source: Option<usize>) {
        let message_id = source.and_then(|source| self.looked[source].id.clone());
        self.actions.push(Action {
            action: kind,
            index,
            to: None,
            message_id,
            tool_call_id: problem.1.clone(),
            reason: problem.0,
            message: None,
        });
    }

    fn insert(&mut self, place: usize, piece: &Piece, problem: &Problem) {
        self.action(ActionKind::Insert, place, problem, piece.source);
        if let Some(action) = self.actions.last_mut() {
            action.message = piece.text.clone();
        }
    }

    fn remove(&mut self, place: usize, source: usize) {
        let looked = &self.looked[source];
        let mut problems = looked.problems.clone();
        problems.extend(self.why.remove(&source).unwrap_or_default());
        if problems.is_empty() {
            problems.push((FaultKind::NotAMessage, None));
        }
        self.action(ActionKind::Remove, place, &problems[0], Some(source));
        for problem in &problems {
            self.fault(source, problem);
        }
    }

    /// The next message that still stands where it was.
    fn skip_done(&mut self) -> Option<usize> {
        while self.done.get(self.next).copied().unwrap_or(false) {
            self.next += 1;
        }
        (self.next < self.looked.len()).then_some(self.next)
    }

    fn piece(&mut self, place: usize, piece: &Piece) {
        let Some(source) = piece.source else {
            let problem = piece.problems[0].clone();
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
            self.done[next] = true;
        }
        if self.skip_done() != Some(source) {
            let before = (self.next..source).filter(|at| !self.done[*at]).count();
            let id = self.looked[source].answers.first().map(|answer| answer.id.clone());
            let id = id.or_else(|| self.looked[source].calls.first().map(|call| call.id.clone()));
            let problem = (FaultKind::MisplacedResult, id);
            self.action(ActionKind::Move, place + before, &problem, Some(source));
            if let Some(action) = self.actions.last_mut() {
                action.to = Some(place);
            }
            self.fault(source, &problem);
        }
        self.done[source] = true;
        if piece.text.is_some() {
            let problem = piece.problems.first().cloned().unwrap_or((FaultKind::NotAMessage, None));
            self.action(ActionKind::Remove, place, &problem, Some(source));
            self.insert(place, piece, &problem);
            for problem in &piece.problems {
                self.fault(source, problem);
            }
        }
    }

    /// What is left behind the last piece goes.
    fn rest(&mut self, place: usize) {
        while let Some(next) = self.skip_done() {
            self.remove(place, next);
            self.done[next] = true;
        }
    }
}
