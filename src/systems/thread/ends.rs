//! What a provider wants of the order of the turns, of the first message and of the last.

use super::fault::{FaultKind, Remedy};
use super::form::{Form, Problem, Speaker, beginning, split, with_blocks, without_trailing_space};
use super::plan::Plan;
use super::steps::Piece;

impl Plan<'_> {
    /// Puts right what is wrong with the order of the turns, the beginning and the end.
    pub(super) fn settle_ends(&mut self, pieces: &mut Vec<Piece>) {
        match self.form {
            Form::OpenaiResponses => self.drop_lone_reasoning(pieces),
            Form::Bedrock => self.alternate(pieces),
            Form::Gemini => self.join_model_turns(pieces),
            _ => {}
        }
        self.begin_with_user(pieces);
        self.trim_end(pieces);
    }

    fn speaker(&self, piece: &Piece) -> Speaker {
        piece.source.map_or(Speaker::User, |source| self.looked[source].speaker)
    }

    fn text<'p>(&'p self, piece: &'p Piece) -> &'p str {
        match (&piece.text, piece.source) {
            (Some(text), _) => text,
            (None, Some(source)) => &self.looked[source].text,
            (None, None) => "",
        }
    }

    /// Takes out reasoning that the item it belongs to does not follow.
    fn drop_lone_reasoning(&mut self, pieces: &mut Vec<Piece>) {
        let mut followed = false;
        let mut keep = vec![true; pieces.len()];
        for (place, piece) in pieces.iter().enumerate().rev() {
            match piece.source.map(|source| self.looked[source].speaker) {
                Some(Speaker::Reasoning) if !followed => {
                    keep[place] = false;
                    let problem =
                        Problem::new(FaultKind::ReasoningWithoutItem, None, Remedy::Removed);
                    self.note(piece.caller, problem);
                }
                Some(Speaker::Reasoning) => {}
                speaker => followed = speaker == Some(Speaker::Assistant),
            }
        }
        let mut kept = keep.into_iter();
        pieces.retain(|_| kept.next().unwrap_or(true));
    }

    /// Joins messages of one role that follow each other.
    fn alternate(&mut self, pieces: &mut Vec<Piece>) {
        let repeats = |pair: &[Piece]| {
            let role = self.speaker(&pair[0]);
            role == self.speaker(&pair[1]) && role != Speaker::Other
        };
        let mut joins = vec![false];
        joins.extend(pieces.windows(2).map(repeats));
        self.join(pieces, &joins);
    }

    /// Joins the turns of the model before a call, which must come right behind a turn of the user.
    fn join_model_turns(&mut self, pieces: &mut Vec<Piece>) {
        let is_model = |piece: &Piece| self.speaker(piece) == Speaker::Assistant;
        let mut joins = vec![false; pieces.len()];
        for at in (1..pieces.len()).rev() {
            let calls = pieces[at].calls || joins.get(at + 1).is_some_and(|joins| *joins);
            joins[at] = calls && is_model(&pieces[at]) && is_model(&pieces[at - 1]);
        }
        self.join(pieces, &joins);
    }

    /// Makes each of these messages part of the one before it.
    fn join(&mut self, pieces: &mut Vec<Piece>, joins: &[bool]) {
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        // The blocks of the last message and of those that become part of it.
        let mut blocks: Vec<String> = Vec::new();
        for (piece, joins) in pieces.drain(..).zip(joins) {
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
            let merged = Problem::new(FaultKind::RepeatedRole, None, Remedy::Merged);
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
        *pieces = joined;
    }

    /// Gives the last message these blocks, if there are any.
    fn write_joined(&self, joined: &mut [Piece], blocks: &mut Vec<String>) {
        let blocks = std::mem::take(blocks);
        if let Some(last) = joined.last_mut().filter(|_| !blocks.is_empty()) {
            last.text = with_blocks(self.text(last), self.form, &blocks);
        }
    }

    fn blocks(&self, piece: &Piece) -> Vec<String> {
        split(self.text(piece), self.form, &[]).others
    }

    /// Puts a message of the user before a beginning that the provider refuses.
    fn begin_with_user(&self, pieces: &mut Vec<Piece>) {
        let at = pieces.iter().position(|piece| self.speaker(piece) != Speaker::Other);
        let Some((at, first)) = at.and_then(|at| Some((at, pieces.get(at)?))) else { return };
        let refused = self.speaker(first) == Speaker::Assistant
            && match self.form {
                Form::Bedrock => true,
                Form::Gemini => first.calls,
                _ => false,
            };
        if refused {
            let problem = Problem::new(FaultKind::NoUserFirst, None, Remedy::Preceded);
            let caller = first.caller;
            pieces.insert(at, Piece::put_in(beginning(self.form), vec![problem], caller));
        }
    }

    /// Takes white space from the end of the last answer.
    fn trim_end(&self, pieces: &mut [Piece]) {
        let Some(last) = pieces.last() else { return };
        if last.source.is_none() || self.speaker(last) != Speaker::Assistant {
            return;
        }
        let trimmed = without_trailing_space(self.form, self.text(last));
        if let (Some(text), Some(last)) = (trimmed, pieces.last_mut()) {
            last.text = Some(text);
            last.problems.push(Problem::new(FaultKind::TrailingSpace, None, Remedy::Changed));
        }
    }
}
