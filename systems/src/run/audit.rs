//! Searches texts for traces of unfilled placeholders and of leaked instructions.

use super::template::{is_output, scan};
use forge_store::vocabulary;
use serde::Serialize;
use std::collections::BTreeSet;

vocabulary! {
    /// A kind of finding.
    FindingKind, "kind of finding" {
        /// A literal placeholder in the text: `{session_9_output}`.
        Placeholder = "placeholder",
        /// The text mentions a placeholder or a missing input: "based on session_4_output".
        Talk = "talk",
        /// The text repeats instructions instead of following them: "Craft a summary".
        Instruction = "instruction",
    }
}

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PromptFinding {
    /// The line number, from 1.
    pub line: usize,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The matching words.
    pub found: String,
}

/// Phrases about a missing input instead of the input itself.
const TALK: [&str; 12] = [
    "placeholder",
    "template variable",
    "as an ai language model",
    "no summary was provided",
    "no text was provided",
    "no input was provided",
    "no content was provided",
    "was not provided in the prompt",
    "since the actual",
    "without the actual",
    "please provide the",
    "i don't have access to the",
];

/// Verbs that begin an instruction in a prompt; its object follows.
const INSTRUCTION_VERBS: [&str; 16] = [
    "craft", "write", "generate", "create", "compose", "produce", "draft", "summarize",
    "summarise", "extract", "grade", "rate", "evaluate", "improve", "rewrite", "format",
];

/// Words that begin the object of an instruction.
const OBJECT_WORDS: [&str; 9] =
    ["a", "an", "the", "this", "these", "following", "your", "it", "each"];

/// Phrases of prompts.
const PROMPT: [&str; 10] = [
    "your task is", "you are an expert", "you are a helpful", "you will be given",
    "based on the instructions", "the following instructions", "respond only with",
    "return only the", "output only the", "do not include any",
];

/// Maximum number of characters of the matching words in a finding.
const SHOWN_CHARS: usize = 80;

/// Returns the placeholders, mentions of missing inputs and leaked instructions in a text, in the
/// order of the lines. The search uses patterns: a person should check the findings, and a text
/// without findings may still be wrong.
#[must_use]
pub fn audit(text: &str) -> Vec<PromptFinding> {
    let mut found = BTreeSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut note = |kind, words: &str| {
            let found_words: String = words.trim().chars().take(SHOWN_CHARS).collect();
            found.insert(PromptFinding { line: number, kind, found: found_words });
        };
        let mut bare = line.to_owned();
        for one in scan(line).into_iter().filter(|one| one.name.contains('_')) {
            note(FindingKind::Placeholder, line.get(one.at.clone()).unwrap_or_default());
            let blank = " ".repeat(one.at.len());
            bare.replace_range(one.at, &blank);
        }
        let named = |word: &&str| is_output(word) && word.chars().any(|c| c.is_ascii_digit());
        for word in words(&bare).filter(named) {
            note(FindingKind::Talk, word);
        }
        let small = bare.to_lowercase();
        for phrase in TALK.iter().filter(|phrase| small.contains(*phrase)) {
            note(FindingKind::Talk, phrase);
        }
        for phrase in PROMPT.iter().filter(|phrase| small.contains(*phrase)) {
            note(FindingKind::Instruction, phrase);
        }
        for sentence in bare.split_inclusive(['.', '!', '?', ':', '"']) {
            if is_instruction(sentence) {
                note(FindingKind::Instruction, sentence);
            }
        }
    }
    found.into_iter().collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns whether a sentence reads like an instruction of a prompt: "Craft a summary", "please
/// grade this".
fn is_instruction(sentence: &str) -> bool {
    let small = sentence.to_lowercase();
    let mut words = words(&small);
    let first = match words.next() {
        Some("please" | "now") => words.next(),
        other => other,
    };
    let second = words.next();
    first.is_some_and(|word| INSTRUCTION_VERBS.contains(&word))
        && second.is_some_and(|word| OBJECT_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(FindingKind, String)> {
        audit(text).into_iter().map(|finding| (finding.kind, finding.found)).collect()
    }

    #[test]
    fn an_audit_finds_the_three_traces_of_an_unfilled_template() {
        assert_eq!(
            kinds("Here it is: {session_9_output}"),
            [(FindingKind::Placeholder, "{session_9_output}".to_owned())]
        );
        assert_eq!(
            kinds("A solid candidate, based on session_4_output."),
            [(FindingKind::Talk, "session_4_output".to_owned())]
        );
        assert_eq!(
            kinds("Good.\nCraft a summary of the job."),
            [(FindingKind::Instruction, "Craft a summary of the job.".to_owned())]
        );
        assert_eq!(audit("Good.\nCraft a summary.")[0].line, 2);
        assert_eq!(kinds("Please grade this summary: x")[0].0, FindingKind::Instruction);
    }

    #[test]
    fn an_audit_reports_nothing_in_ordinary_outputs() {
        for text in [
            "Summary: Python developer, five years, Berlin.",
            "Grade: 8/10. The role is well described; they write a lot of tests.",
            "{\"grade\": 8, \"reason\": \"clear\"}",
            "We craft software. The format is the usual one.",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }
}
