//! Finds statements in an agent's sentences by rules: a hypothesis, a finding or decision, an open
//! question.
//!
//! The rules are data (`rules.txt`); no model is called. A statement never becomes a claim by
//! itself: it becomes a fact that a person or agent may promote. `docs/inference.md` gives the
//! accuracy and how it is measured.

use forge_store::model::{FieldMap, Kind, Value};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The text of the rules.
pub const RULES: &str = include_str!("rules.txt");

/// The lengths of sentences that are read, in bytes. A shorter sentence says too little; a longer
/// one would not fit in the fact itself.
const LENGTHS: std::ops::RangeInclusive<usize> = 20..=256;
/// The maximum number of statements per message.
const MAX_STATEMENTS: usize = 8;

/// A sentence that states something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredStatement {
    /// What it states: a hypothesis, a belief or a gap.
    pub kind: Kind,
    /// The name of the rule that matched.
    pub rule: &'static str,
    /// The sentence, without marks of bold text.
    pub sentence: String,
}

struct InferenceRules {
    /// The kind that each rule states (`None`: the sentence is skipped), and the name of the rule.
    labels: Vec<(Option<Kind>, &'static str)>,
    patterns: DFA,
    /// The states of the automaton that were computed so far.
    states: Mutex<Cache>,
}

impl InferenceRules {
    /// Returns the number of the first rule that matches a sentence.
    fn first_match(&self, sentence: &str) -> Option<usize> {
        let mut matches = PatternSet::new(self.labels.len());
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let input = Input::new(sentence);
        let found = self.patterns.try_which_overlapping_matches(&mut states, &input, &mut matches);
        found.expect("the search has no limit and reads every byte");
        matches.iter().next().map(|rule| rule.as_usize())
    }
}

static ALL: LazyLock<InferenceRules> = LazyLock::new(|| {
    let (mut labels, mut patterns) = (Vec::new(), Vec::new());
    for line in RULES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(char::is_whitespace).expect("a test reads every rule");
        let (name, pattern) =
            rest.trim_start().split_once(char::is_whitespace).expect("a test reads every rule");
        labels.push((kind.parse().ok(), name));
        patterns.push(pattern.trim_start());
    }
    // A set of regular expressions also prepares to find where a match begins, which is not needed
    // and is two thirds of the work of building it.
    let patterns = DFA::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false).case_insensitive(true))
        .configure(DFA::config().match_kind(MatchKind::All))
        .build_many(&patterns)
        .expect("a test compiles every rule");
    let states = Mutex::new(patterns.create_cache());
    InferenceRules { labels, patterns, states }
});

/// Returns the kind of what a sentence states, and the name of the first rule that matches. `None`
/// if it states nothing. A fragment states nothing, and a question is no belief.
#[must_use]
pub fn judge(sentence: &str) -> Option<(Kind, &'static str)> {
    if is_fragment(sentence) {
        return None;
    }
    let rules = &*ALL;
    let (kind, name) = rules.labels.get(rules.first_match(sentence)?)?;
    let kind = kind.filter(|kind| *kind != Kind::Belief || !sentence.ends_with('?'))?;
    Some((kind, *name))
}

/// Whether this is no whole sentence: the introduction of a list or quotation, a row of a table, or
/// a text that was cut.
fn is_fragment(sentence: &str) -> bool {
    const CUT: [&str; 8] = [" the", " a", " an", " of", " to", " that", " and", " is"];
    sentence.ends_with([':', ',', '(', '|', '…'])
        || sentence.contains(" | ")
        || CUT.iter().any(|end| sentence.ends_with(end))
}

/// Returns the first statements in a message, at most 8, each once. Code between fences, headings
/// and tables are skipped.
#[must_use]
pub fn read(text: &str) -> Vec<InferredStatement> {
    let mut found: Vec<InferredStatement> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced || is_heading(line) {
            continue;
        }
        let line = line.replace("**", "");
        for sentence in sentences(&line) {
            let sentence = sentence.to_owned();
            if !LENGTHS.contains(&sentence.len()) || found.iter().any(|it| it.sentence == sentence)
            {
                continue;
            }
            if let Some((kind, rule)) = judge(&sentence) {
                found.push(InferredStatement { kind, rule, sentence });
            }
            if found.len() == MAX_STATEMENTS {
                return found;
            }
        }
    }
    found
}

/// Returns the ids and the fields of the facts for the statements in a message.
pub(crate) fn inferences(message: &str, text: &str) -> Vec<(String, FieldMap)> {
    let found = read(text).into_iter().enumerate();
    found
        .map(|(number, found)| {
            let fields = [
                ("rule", found.rule.into()),
                ("message", message.into()),
                ("description", found.sentence.into()),
                ("found", Value::from([("kind", found.kind.name().into())])),
            ];
            let fields = fields.map(|(name, value)| (name.to_owned(), value));
            (format!("{message}.{}", number + 1), fields.into())
        })
        .collect()
}

/// Whether a line is a heading or a row of a table.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let is_bold = line.starts_with("**") && line.ends_with("**") && line.matches("**").count() == 2;
    line.starts_with(['#', '|']) || (is_bold && !line.trim_end_matches('*').ends_with(['.', '!']))
}

/// Returns the sentences of a line, without the marks of lists and headings.
fn sentences(line: &str) -> Vec<&str> {
    let mark = |c: char| c.is_whitespace() || c.is_ascii_digit() || "#>*-.|".contains(c);
    let mut rest = line.trim_start_matches(mark).trim_end();
    let mut sentences = Vec::new();
    let mut from = 0;
    while let Some(place) = rest.get(from..).and_then(|after| after.find(['.', '!', '?', ':'])) {
        let end = from + place + 1;
        let after = rest.get(end..).unwrap_or_default();
        let next = after.trim_start();
        let begins = next.starts_with(|c: char| c.is_ascii_uppercase() || "\"`*".contains(c));
        if after.len() > next.len() && begins {
            sentences.push(rest.get(..end).unwrap_or_default());
            rest = next;
            from = 0;
        } else {
            from = end;
        }
    }
    if !rest.is_empty() {
        sentences.push(rest);
    }
    sentences
}

#[cfg(test)]
mod tests;
