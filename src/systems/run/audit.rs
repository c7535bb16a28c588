//! Looks through outputs and templates for what a prompt with holes leaves behind.

use super::template::{is_output, scan};
use crate::model::claim::words;
use std::collections::BTreeSet;

words! {
    /// What was found.
    FindingKind, "kind of finding" {
        /// A placeholder stands in the text: `{session_9_output}`.
        Placeholder = "placeholder",
        /// The text talks about a placeholder: "based on session_4_output".
        Talk = "talk",
        /// The text gives instructions instead of following them: "Craft a summary".
        Instruction = "instruction",
    }
}

/// Something found in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromptFinding {
    /// The line it stands in, from 1.
    pub line: usize,
    /// What it is.
    pub kind: FindingKind,
    /// The words that show it.
    pub found: String,
}

/// Words that talk about a hole in the prompt rather than about what should have stood there.
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

/// Words a sentence of a prompt begins with. What they ask for follows.
const ASKING: [&str; 16] = [
    "craft",
    "write",
    "generate",
    "create",
    "compose",
    "produce",
    "draft",
    "summarize",
    "summarise",
    "extract",
    "grade",
    "rate",
    "evaluate",
    "improve",
    "rewrite",
    "format",
];

/// What is asked for.
const ASKED: [&str; 9] = ["a", "an", "the", "this", "these", "following", "your", "it", "each"];

/// Words that stand in prompts only.
const PROMPT: [&str; 10] = [
    "your task is",
    "you are an expert",
    "you are a helpful",
    "you will be given",
    "based on the instructions",
    "the following instructions",
    "respond only with",
    "return only the",
    "output only the",
    "do not include any",
];

/// How much of a line is shown.
const SHOWN_CHARS: usize = 80;

/// What a text has of placeholders, of talk about them, and of leaked instructions, in order. It goes by patterns: what
/// it finds is to be looked at, and what it does not find may still be wrong.
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
            if asks(sentence) {
                note(FindingKind::Instruction, sentence);
            }
        }
    }
    found.into_iter().collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether a sentence asks for something as prompts do: "Craft a summary", "please grade this".
fn asks(sentence: &str) -> bool {
    let small = sentence.to_lowercase();
    let mut words = words(&small);
    let first = match words.next() {
        Some("please" | "now") => words.next(),
        other => other,
    };
    let asked = words.next();
    first.is_some_and(|word| ASKING.contains(&word))
        && asked.is_some_and(|word| ASKED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(FindingKind, String)> {
        audit(text).into_iter().map(|finding| (finding.kind, finding.found)).collect()
    }

    #[test]
    fn the_three_things_a_prompt_with_holes_leaves_are_found() {
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
    fn plain_outputs_are_left_alone() {
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
