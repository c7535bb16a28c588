//! Which result belongs to which call.

use super::form::{Form, Looked, NO_RESULT, Sort};
use std::collections::HashMap;

/// What a call or a result has been found to belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// To the result or call at this place of this message.
    To(usize, usize),
    /// To nothing: there is none.
    Nothing,
    /// To nothing: there is another one of the same id.
    Doubled,
}

/// Calls and results, each with what it belongs to.
#[derive(Debug)]
pub(super) struct Pairs {
    calls: Vec<Vec<Assigned>>,
    answers: Vec<Vec<Assigned>>,
}

type Id<'l> = (&'l str, Sort);

impl Pairs {
    /// A result belongs to the last call of its id before it; failing that, to the first behind it. Of several results
    /// the first counts, unless it only says that there was none.
    pub(super) fn new(form: Form, looked: &[Looked<'_>]) -> Self {
        let nothing = |count: usize| vec![Assigned::Nothing; count];
        let mut pairs = Self {
            calls: looked.iter().map(|one| nothing(one.calls.len())).collect(),
            answers: looked.iter().map(|one| nothing(one.answers.len())).collect(),
        };
        let mut first: HashMap<Id<'_>, (usize, usize)> = HashMap::new();
        let mut latest: HashMap<Id<'_>, (usize, usize)> = HashMap::new();
        let mut early = Vec::new();
        for (index, one) in looked.iter().enumerate().filter(|(_, one)| !one.gone) {
            for (place, answer) in one.answers.iter().enumerate() {
                match latest.get(&(answer.id.as_str(), answer.sort)) {
                    Some(call) => pairs.assign(looked, *call, (index, place)),
                    None => early.push((index, place)),
                }
            }
            for (place, call) in one.calls.iter().enumerate() {
                let id = (call.id.as_str(), call.sort);
                let known = latest.get(&id).map(|(at, place)| pairs.calls[*at][*place]);
                // Anthropic wants every id but once; an item's result may stand anywhere, so that it must be answered
                // before its id is used again.
                let doubled = match form {
                    Form::Anthropic => known.is_some(),
                    Form::OpenaiResponses => known == Some(Assigned::Nothing),
                    _ => false,
                };
                if doubled {
                    pairs.calls[index][place] = Assigned::Doubled;
                    continue;
                }
                first.entry(id).or_insert((index, place));
                latest.insert(id, (index, place));
            }
        }
        for (index, place) in early {
            let answer = &looked[index].answers[place];
            if let Some(call) = first.get(&(answer.id.as_str(), answer.sort)) {
                pairs.assign(looked, *call, (index, place));
            }
        }
        pairs
    }

    fn assign(&mut self, looked: &[Looked<'_>], call: (usize, usize), answer: (usize, usize)) {
        let is_made_up = |(index, _): (usize, usize)| {
            looked[index].answers.len() == 1 && looked[index].text.contains(NO_RESULT)
        };
        if let Assigned::To(index, place) = self.calls[call.0][call.1] {
            if !is_made_up((index, place)) || is_made_up(answer) {
                self.answers[answer.0][answer.1] = Assigned::Doubled;
                return;
            }
            self.answers[index][place] = Assigned::Doubled;
        }
        self.calls[call.0][call.1] = Assigned::To(answer.0, answer.1);
        self.answers[answer.0][answer.1] = Assigned::To(call.0, call.1);
    }

    /// What the call at this place of this message belongs to.
    pub(super) fn call(&self, message: usize, place: usize) -> Assigned {
        self.calls[message].get(place).copied().unwrap_or(Assigned::Doubled)
    }

    /// What the result at this place of this message belongs to.
    pub(super) fn answer(&self, message: usize, place: usize) -> Assigned {
        self.answers[message].get(place).copied().unwrap_or(Assigned::Nothing)
    }

    /// Forgets the calls of a message that were cut; none of them has a result.
    pub(super) fn keep_calls(&mut self, message: usize, kept: &[bool]) {
        let mut keep = kept.iter();
        self.calls[message].retain(|_| *keep.next().unwrap_or(&true));
    }
}
