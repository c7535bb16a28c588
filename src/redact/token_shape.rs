//! Token shapes: regular expressions that are matched in time linear in the text, even if a match
//! is tried at every offset.
//!
//! Only a subset of regular expressions is allowed: bytes, classes of bytes, repetitions of one
//! class, groups, at most 8 repetitions of a group, and alternatives. A test checks for every shape
//! that what follows a repetition begins with no byte that the repetition could match, so matching
//! never backtracks. Long runs of one class are cached ([`ScanMemory`]).

use super::{MAX_SECRET_BYTES, work_counter};
use regex_syntax::hir::{Hir, HirKind};
use std::ops::Range;

/// A set of bytes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct ByteClass([u64; 4]);

impl ByteClass {
    pub(super) const fn of(bytes: &[u8]) -> Self {
        let mut class = Self([0; 4]);
        let mut at = 0;
        while at < bytes.len() {
            class.0[(bytes[at] >> 6) as usize] |= 1 << (bytes[at] & 63);
            at += 1;
        }
        class
    }

    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    #[cfg(test)]
    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(one, other)| one & other != 0)
    }
}

/// What is cached about a text while it is scanned from beginning to end.
#[derive(Default)]
pub(super) struct ScanMemory {
    /// The last long run of each class.
    runs: Vec<(ByteClass, Range<usize>)>,
    /// The last run of bytes that a named value may consist of.
    pub(super) value: Range<usize>,
    /// The last judgement under each key: the number of a rule, or the key for named values.
    judged: Vec<JudgedCandidate>,
    /// For each rule, the offset up to which it was tried.
    tried: Vec<(usize, usize)>,
}

struct JudgedCandidate {
    key: usize,
    /// End of the whole run that the candidate is taken from.
    run_end: usize,
    /// Number of bytes from the start of the candidate to that end.
    length: usize,
    /// End of the candidate, if it is a secret.
    secret_end: Option<usize>,
}

impl ScanMemory {
    /// Returns the end of the run of this class that begins at an offset.
    pub(super) fn end(&mut self, text: &[u8], at: usize, class: &ByteClass) -> usize {
        const SHORT: usize = 64;
        let rest = text.get(at..).unwrap_or_default();
        let length = rest.iter().take(SHORT).take_while(|byte| class.has(**byte)).count();
        work_counter::add(length + 1);
        if length < SHORT {
            return at + length;
        }
        let known = self.runs.iter_mut().find(|(other, _)| other == class);
        if let Some((_, run)) = &known
            && run.contains(&at)
        {
            return run.end;
        }
        let length = rest.iter().take_while(|byte| class.has(**byte)).count();
        work_counter::add(length);
        let run = at..at + length;
        match known {
            Some((_, known)) => *known = run.clone(),
            None => self.runs.push((*class, run.clone())),
        }
        run.end
    }

    /// Returns the offset up to which this rule was tried, and sets it to `until`.
    pub(super) fn tried(&mut self, rule: usize, until: usize) -> usize {
        match self.tried.iter_mut().find(|tried| tried.0 == rule) {
            Some(tried) => std::mem::replace(&mut tried.1, until),
            None => {
                self.tried.push((rule, until));
                0
            }
        }
    }

    /// Returns whether a candidate has to be judged under this key. Candidates from one run may
    /// overlap, as in `token=token=token=...`. So that judging them takes linear time, one with
    /// more than 256 bytes up to the end of the run is judged only if these are at most half as
    /// many as for the last one. Part of a secret is not judged again.
    pub(super) fn should_judge(&self, key: usize, start: usize, run_end: usize) -> bool {
        const ALWAYS: usize = 256;
        let known = self.judged.iter().find(|known| known.key == key && known.run_end == run_end);
        known.is_none_or(|known| match known.secret_end {
            Some(end) => start >= end,
            None => run_end - start <= ALWAYS.max(known.length / 2),
        })
    }

    /// Records the judgement of a candidate.
    pub(super) fn judged(
        &mut self,
        key: usize,
        range: &Range<usize>,
        run_end: usize,
        is_secret: bool,
    ) {
        work_counter::add(range.len());
        let length = run_end - range.start;
        let now =
            JudgedCandidate { key, run_end, length, secret_end: is_secret.then_some(range.end) };
        match self.judged.iter_mut().find(|known| known.key == key) {
            Some(known) => *known = now,
            None => self.judged.push(now),
        }
    }
}

#[derive(Clone, Debug)]
enum ShapeStep {
    /// A repetition of a class, with minimum and maximum.
    Run(ByteClass, usize, usize),
    /// The beginning of the secret.
    Open,
    /// The end of the secret.
    Close,
}

/// A compiled shape: alternatives, tried in this order. The first match counts.
#[derive(Clone, Debug)]
pub(super) struct TokenShape(Vec<Vec<ShapeStep>>);

/// A match: the range of the secret, and the end of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenMatch {
    pub(super) secret: Range<usize>,
    pub(super) end: usize,
    /// The furthest end of the runs of bytes that the parts are taken from.
    pub(super) run_end: usize,
}

impl TokenShape {
    /// Compiles a shape.
    ///
    /// # Errors
    /// Returns a description of the construct that is not allowed.
    pub(super) fn new(shape: &str) -> Result<Self, String> {
        let parsed =
            regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(shape);
        let hir = parsed.map_err(|error| error.to_string())?;
        Ok(Self(alternatives(&hir)?))
    }

    /// Matches the token that begins at an offset.
    pub(super) fn find(
        &self,
        text: &[u8],
        start: usize,
        runs: &mut ScanMemory,
    ) -> Option<TokenMatch> {
        self.0.iter().find_map(|steps| follow(steps, text, start, runs))
    }

    /// Returns whether there is a repetition that could also match what follows it.
    #[cfg(test)]
    pub(super) fn can_backtrack(&self) -> bool {
        self.0.iter().any(|steps| {
            (0..steps.len()).any(|place| match &steps[place] {
                ShapeStep::Run(class, min, max) if min < max => {
                    let mut next = steps[place + 1..].iter();
                    next.by_ref()
                        .filter_map(|step| match step {
                            ShapeStep::Run(next, min, _) => Some((next, *min)),
                            _ => None,
                        })
                        .scan(false, |is_over, (next, min)| {
                            (!std::mem::replace(is_over, min > 0)).then_some(next)
                        })
                        .any(|next| class.meets(next))
                }
                _ => false,
            })
        })
    }

    /// Generates a shortest token of the first alternative, with bytes chosen by `choose`.
    #[cfg(test)]
    pub(super) fn example(&self, choose: &mut dyn FnMut(&[u8]) -> u8) -> String {
        let mut token = Vec::new();
        for step in self.0.first().into_iter().flatten() {
            if let ShapeStep::Run(class, min, _) = step {
                let bytes: Vec<u8> = (0..=255).filter(|byte| class.has(*byte)).collect();
                token.extend((0..*min).map(|_| choose(&bytes)));
            }
        }
        String::from_utf8(token).unwrap()
    }
}

fn follow(
    steps: &[ShapeStep],
    text: &[u8],
    start: usize,
    runs: &mut ScanMemory,
) -> Option<TokenMatch> {
    let limit = text.len().min(start + MAX_SECRET_BYTES);
    let (mut at, mut from, mut to) = (start, start, None);
    let mut run_end = start;
    for step in steps {
        match step {
            ShapeStep::Run(class, 1, 1) => {
                work_counter::add(1);
                if at >= limit || !class.has(*text.get(at)?) {
                    return None;
                }
                at += 1;
            }
            ShapeStep::Run(class, min, max) => {
                let whole = runs.end(text, at, class);
                run_end = run_end.max(whole);
                let end = whole.min(limit);
                if end < at + min {
                    return None;
                }
                at = end.min(at.saturating_add(*max));
            }
            ShapeStep::Open => from = at,
            ShapeStep::Close => to = Some(at),
        }
    }
    let run_end = run_end.max(at);
    Some(TokenMatch { secret: from..to.unwrap_or(at), end: at, run_end })
}

fn alternatives(hir: &Hir) -> Result<Vec<Vec<ShapeStep>>, String> {
    Ok(match hir.kind() {
        HirKind::Empty => vec![Vec::new()],
        HirKind::Literal(literal) => {
            let bytes = literal.0.iter();
            vec![bytes.map(|byte| ShapeStep::Run(ByteClass::of(&[*byte]), 1, 1)).collect()]
        }
        HirKind::Class(_) => vec![vec![ShapeStep::Run(class(hir)?, 1, 1)]],
        HirKind::Repetition(repetition) => {
            let (min, max) = (repetition.min as usize, repetition.max.map(|max| max as usize));
            if let Ok(class) = class(&repetition.sub) {
                return Ok(vec![vec![ShapeStep::Run(class, min, max.unwrap_or(usize::MAX))]]);
            }
            let max = max.filter(|max| *max <= 8).ok_or("more than 8 repetitions of a group")?;
            let once = alternatives(&repetition.sub)?;
            let mut all = Vec::new();
            for count in (min..=max).rev() {
                let times = std::iter::repeat_n(once.clone(), count);
                all.extend(times.fold(vec![Vec::new()], |all, once| joined(&all, &once)));
            }
            all
        }
        HirKind::Capture(capture) => {
            let open = vec![vec![ShapeStep::Open]];
            joined(&joined(&open, &alternatives(&capture.sub)?), &[vec![ShapeStep::Close]])
        }
        HirKind::Concat(parts) => {
            let mut all = vec![Vec::new()];
            for part in parts {
                all = joined(&all, &alternatives(part)?);
            }
            all
        }
        HirKind::Alternation(parts) => {
            let parts: Result<Vec<_>, String> = parts.iter().map(alternatives).collect();
            parts?.concat()
        }
        HirKind::Look(_) => return Err("an assertion".to_owned()),
    })
}

fn joined(fronts: &[Vec<ShapeStep>], backs: &[Vec<ShapeStep>]) -> Vec<Vec<ShapeStep>> {
    let pairs = fronts.iter().flat_map(|front| backs.iter().map(move |back| (front, back)));
    pairs.map(|(front, back)| [front.as_slice(), back.as_slice()].concat()).collect()
}

/// Returns the bytes of a class, or of a one-byte literal.
fn class(hir: &Hir) -> Result<ByteClass, String> {
    let mut bytes = ByteClass::default();
    match hir.kind() {
        HirKind::Class(regex_syntax::hir::Class::Bytes(class)) => {
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            all.for_each(|byte| bytes.add(byte));
        }
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            for next in all {
                bytes.add(u8::try_from(next).map_err(|_| "a class beyond bytes")?);
            }
        }
        HirKind::Literal(literal) if literal.0.len() == 1 => return Ok(ByteClass::of(&literal.0)),
        _ => return Err("no class of bytes".to_owned()),
    }
    Ok(bytes)
}
