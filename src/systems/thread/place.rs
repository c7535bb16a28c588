//! Where results stand: each where its call needs it, and what no call takes as a text for the model.

use super::fault::{FaultKind, Remedy};
use super::form::{
    Answer, Form, Problem, Speaker, results_message, split, told_blocks, told_message, with_blocks,
};
use super::pair::Assigned;
use super::plan::Plan;
use super::steps::Piece;
use std::collections::{BTreeMap, BTreeSet};

/// Results that no call takes, as blocks, and what is wrong with them.
type Told = (Vec<String>, Vec<Problem>);

impl Plan<'_> {
    /// The places of the results in a message that answer calls of another.
    fn answers_for(&self, message: usize, calls: usize) -> Vec<usize> {
        let answers = 0..self.looked[message].answers.len();
        let is_one = |place: &usize| matches!(self.pairs.answer(message, *place), Assigned::To(at, _) if at == calls);
        answers.filter(is_one).collect()
    }

    /// The messages that hold results of the calls of this one.
    fn holders(&self, index: usize) -> BTreeSet<usize> {
        let calls = 0..self.looked[index].calls.len();
        let holder = |place| match self.pairs.call(index, place) {
            Assigned::To(message, _) => Some(message),
            _ => None,
        };
        calls.filter_map(holder).collect()
    }

    fn split(&self, index: usize) -> super::form::Split {
        let looked = &self.looked[index];
        split(&looked.text, self.form, &looked.answers)
    }

    /// Where results are messages of their own that must stand right behind their call; one may hold several.
    pub(super) fn in_messages(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // The messages whose place in the outcome is settled.
        let mut settled = BTreeSet::new();
        for index in 0..self.looked.len() {
            if self.looked[index].gone {
                continue;
            }
            if self.looked[index].answers.is_empty() {
                pieces.push(self.kept(index));
            } else {
                self.told_messages(index, &mut settled, &mut pieces);
            }
            for holder in self.holders(index) {
                let piece = self.results_in(holder, index, &mut settled);
                pieces.push(piece);
            }
            let (made, problems) = self.made(index);
            if self.form == Form::AiSdk && !made.is_empty() {
                let text = results_message(self.form, &made);
                pieces.push(Piece::put_in(text, problems, index));
                continue;
            }
            let made = made.into_iter().zip(problems);
            pieces.extend(made.map(|(text, problem)| Piece::put_in(text, vec![problem], index)));
        }
        pieces
    }

    /// The message with those of its results that answer the calls of this one.
    fn results_in(&self, holder: usize, calls: usize, settled: &mut BTreeSet<usize>) -> Piece {
        let places = self.answers_for(holder, calls);
        let looked = &self.looked[holder];
        let is_whole = places.len() == looked.answers.len() && looked.speaker == Speaker::Tool;
        if is_whole {
            settled.insert(holder);
            return self.kept(holder);
        }
        let results = self.split(holder).results;
        let blocks: Vec<String> =
            places.iter().filter_map(|place| results.get(*place).cloned()).collect();
        let told = places.first().and_then(|place| looked.answers[*place].told());
        let moved = Problem::new(FaultKind::MisplacedResult, told.as_deref(), Remedy::Moved);
        if looked.speaker == Speaker::Tool && settled.insert(holder) {
            let mut piece = self.kept(holder);
            piece.text = with_blocks(&looked.text, self.form, &blocks);
            piece.reason = Some(moved);
            return piece;
        }
        Piece::put_in(results_message(self.form, &blocks), vec![moved], holder)
    }

    /// What is left of a message of results where it stands: what else it says, and the results that no call takes.
    fn told_messages(
        &mut self,
        index: usize,
        settled: &mut BTreeSet<usize>,
        pieces: &mut Vec<Piece>,
    ) {
        if self.looked[index].speaker != Speaker::Tool {
            let others = self.split(index).others;
            settled.insert(index);
            let mut piece = self.kept(index);
            piece.text = with_blocks(&self.looked[index].text, self.form, &others);
            let moved = Problem::new(FaultKind::MisplacedResult, None, Remedy::Moved);
            if piece.text.is_some() {
                piece.problems.push(moved);
                pieces.push(piece);
            } else {
                self.note(index, moved);
            }
        }
        for place in 0..self.looked[index].answers.len() {
            let Some(unassigned) = self.unassigned(index, place) else { continue };
            if !unassigned.is_told {
                self.note(index, unassigned.problem);
                continue;
            }
            let answer = &self.looked[index].answers[place];
            let text = told_message(self.form, answer, unassigned.doubled);
            let mut piece = Piece::put_in(text, vec![unassigned.problem], index);
            // The message itself becomes the text, if nothing else of it is wanted.
            let is_alone = !(0..self.looked[index].answers.len())
                .any(|place| matches!(self.pairs.answer(index, place), Assigned::To(..)));
            if is_alone && settled.insert(index) {
                piece.source = Some(index);
            }
            pieces.push(piece);
        }
    }

    /// Where results are items that may stand anywhere behind their call.
    pub(super) fn in_items(&mut self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        // What comes behind the calls that stand together.
        let mut waiting: Vec<Piece> = Vec::new();
        for index in 0..self.looked.len() {
            if self.looked[index].gone {
                continue;
            }
            if let Some(answer) = self.looked[index].answers.first()
                && let Some(unassigned) = self.unassigned(index, 0)
            {
                if !unassigned.is_told {
                    self.note(index, unassigned.problem);
                    continue;
                }
                let text = told_message(self.form, answer, unassigned.doubled);
                let mut piece = Piece::put_in(text, vec![unassigned.problem], index);
                piece.source = Some(index);
                // Nothing may stand between reasoning and what it belongs to.
                let last = pieces.last().and_then(|piece| piece.source);
                let reasons = |source: usize| self.looked[source].speaker == Speaker::Reasoning;
                let behind = if last.is_some_and(reasons) { &mut waiting } else { &mut pieces };
                behind.push(piece);
                continue;
            }
            let is_early =
                matches!(self.pairs.answer(index, 0), Assigned::To(call, _) if call > index);
            if is_early {
                continue;
            }
            if self.looked[index].calls.is_empty()
                && self.looked[index].speaker != Speaker::Reasoning
            {
                pieces.append(&mut waiting);
            }
            pieces.push(self.kept(index));
            if let Assigned::To(result, _) = self.pairs.call(index, 0)
                && result < index
            {
                waiting.push(self.kept(result));
            }
            let (made, problems) = self.made(index);
            let made = made.into_iter().zip(problems);
            waiting.extend(made.map(|(text, problem)| Piece::put_in(text, vec![problem], index)));
        }
        pieces.append(&mut waiting);
        pieces
    }

    /// Where results are blocks of the message right behind the call's.
    pub(super) fn in_blocks(&mut self) -> Vec<Piece> {
        let hosts = self.hosts();
        let hosting: BTreeSet<usize> = hosts.values().copied().collect();
        let mut pieces = Vec::new();
        for index in 0..self.looked.len() {
            if self.looked[index].gone || hosting.contains(&index) {
                continue;
            }
            let mut told: Told = (Vec::new(), Vec::new());
            if self.looked[index].answers.is_empty() {
                pieces.push(self.kept(index));
            } else {
                told = self.without_results(index, &mut pieces);
            }
            pieces.extend(self.results_of(index, hosts.get(&index).copied(), told));
        }
        pieces
    }

    /// For messages with calls, the message that holds their results: the next one if it has any of them, else the
    /// first that consists of them.
    fn hosts(&self) -> BTreeMap<usize, usize> {
        let mut hosts = BTreeMap::new();
        let mut next: Option<usize> = None;
        let mut taken = vec![false; self.looked.len()];
        for index in (0..self.looked.len()).rev() {
            if self.looked[index].gone || self.vanishes(index) {
                continue;
            }
            if let Some(next) = next.filter(|_| !self.looked[index].calls.is_empty())
                && self.looked[next].speaker == Speaker::User
                && !self.answers_for(next, index).is_empty()
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
            let is_whole = |message: &usize| {
                !taken[*message]
                    && self.looked[*message].speaker == Speaker::User
                    && self.answers_for(*message, index).len()
                        == self.looked[*message].answers.len()
                    && self.split(*message).others.is_empty()
            };
            if let Some(host) = self.holders(index).into_iter().find(is_whole) {
                hosts.insert(index, host);
                taken[host] = true;
            }
        }
        hosts
    }

    /// Whether nothing of a message is wanted: it holds results alone, and others say what they say.
    fn vanishes(&self, index: usize) -> bool {
        let answers = self.looked[index].answers.len();
        answers > 0
            && (0..answers).all(|place| self.pairs.answer(index, place) == Assigned::Repeated)
            && self.split(index).others.is_empty()
    }

    /// The results of a message that no call takes, as blocks of the user.
    fn told(&self, index: usize) -> Told {
        let mut told: Told = (Vec::new(), Vec::new());
        for place in 0..self.looked[index].answers.len() {
            let Some(unassigned) = self.unassigned(index, place) else { continue };
            if unassigned.is_told {
                let answer = &self.looked[index].answers[place];
                told.0.extend(told_blocks(self.form, answer, unassigned.doubled));
            }
            told.1.push(unassigned.problem);
        }
        told
    }

    /// Adds the message without its results. Returns what is still to be told where it cannot tell it itself.
    fn without_results(&mut self, index: usize, pieces: &mut Vec<Piece>) -> Told {
        let (told, mut problems) = self.told(index);
        let moved = self.looked[index].answers.iter().enumerate();
        let moved: Vec<Problem> = moved
            .filter(|(place, _)| matches!(self.pairs.answer(index, *place), Assigned::To(..)))
            .map(|(_, answer)| misplaced(answer, index))
            .collect();
        problems.extend(moved);
        let is_user = self.looked[index].speaker == Speaker::User;
        let mut blocks = if is_user { told.clone() } else { Vec::new() };
        blocks.extend(self.split(index).others);
        let mut piece = self.kept(index);
        piece.text = with_blocks(&self.looked[index].text, self.form, &blocks);
        if piece.text.is_some() {
            piece.problems.extend(problems.iter().cloned());
            pieces.push(piece);
        } else {
            for problem in &problems {
                self.note(index, problem.clone());
            }
        }
        if is_user || told.is_empty() { (Vec::new(), Vec::new()) } else { (told, problems) }
    }

    /// The message of the results of the calls of this one, and of what is told behind it.
    fn results_of(&self, index: usize, host: Option<usize>, told: Told) -> Option<Piece> {
        let (mut more, mut problems) = self.moved_to(index, host);
        let (made, orphaned) = self.made(index);
        more.extend(made);
        problems.extend(orphaned);
        let Some(host) = host else {
            more.extend(told.0);
            let reason = told.1.into_iter().next();
            if more.is_empty() {
                return None;
            }
            let mut piece = Piece::put_in(results_message(self.form, &more), problems, index);
            piece.reason = reason;
            return Some(piece);
        };
        let (host_told, host_problems) = self.told(host);
        let parts = self.split(host);
        let kept = self.answers_for(host, index);
        let mut piece = self.kept(host);
        let is_whole = kept.len() == parts.results.len() && more.is_empty() && told.0.is_empty();
        if is_whole && parts.results_first {
            return Some(piece);
        }
        let leaving = self.looked[host].answers.iter().enumerate();
        let leaving = leaving
            .filter(|(place, _)| {
                matches!(self.pairs.answer(host, *place), Assigned::To(calls, _) if calls != index)
            })
            .map(|(_, answer)| misplaced(answer, host));
        problems.extend(leaving);
        if problems.is_empty() && host_problems.is_empty() {
            let first = kept.first().and_then(|place| self.looked[host].answers.get(*place));
            problems.extend(first.map(|answer| misplaced(answer, host)));
        }
        let kept = kept.iter().filter_map(|place| parts.results.get(*place).cloned());
        let mut blocks: Vec<String> = kept.collect();
        blocks.extend(more);
        blocks.extend(host_told);
        blocks.extend(told.0);
        blocks.extend(parts.others);
        piece.text = with_blocks(&self.looked[host].text, self.form, &blocks);
        piece.problems.extend(host_problems);
        piece.problems.extend(problems);
        piece.reason = told.1.into_iter().next();
        Some(piece)
    }

    /// The results of the calls of a message that stand elsewhere than in its host.
    fn moved_to(&self, index: usize, host: Option<usize>) -> Told {
        let mut moved: Told = (Vec::new(), Vec::new());
        for holder in self.holders(index).into_iter().filter(|holder| Some(*holder) != host) {
            let results = self.split(holder).results;
            for place in self.answers_for(holder, index) {
                moved.0.extend(results.get(place).cloned());
                moved.1.push(misplaced(&self.looked[holder].answers[place], holder));
            }
        }
        moved
    }
}

/// The problem of a result in this message that does not stand where its call needs it.
fn misplaced(answer: &Answer, holder: usize) -> Problem {
    Problem::new(FaultKind::MisplacedResult, answer.told().as_deref(), Remedy::Moved).at(holder)
}
