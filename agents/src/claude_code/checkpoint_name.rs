//! Names a checkpoint that is made because time has passed, by what happened since the last one.

use forge_store::model::claim::{CodeState, FactText, Message, Prompt, VerificationResult};
use forge_store::model::claim::{ExecutedCommand, VerificationStatus, VocabularyWord};
use forge_store::model::text::one_line;
use forge_store::model::{Checkpoint, Fact, Kind};
use serde::{Deserialize, Serialize};

/// The maximum length of a name in characters, without the `…` at the end of a cut one.
const NAME_CHARS: usize = 100;
/// The maximum number of files in a name.
const FILES_NAMED: usize = 3;

/// What happened since the last checkpoint, as far as its name needs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RecentEvents {
    /// The last prompt that is not a slash command.
    prompt: Option<String>,
    /// The names of the first edited files: at most one more than a checkpoint name contains.
    files: Vec<String>,
    /// The last check that did not pass, or else the last one that passed: whether it did not
    /// pass, and its name with its status. Skipped checks and unknown results are ignored.
    check: Option<(bool, String)>,
    /// The last command line.
    command: Option<String>,
    /// The last message of the main agent.
    message: Option<String>,
}

impl RecentEvents {
    /// Notes what a fact says.
    pub(crate) fn add(&mut self, fact: &Fact) {
        let value = &fact.value;
        match fact.kind {
            Kind::Prompt => {
                let Ok(prompt) = Prompt::from_value(value) else { return };
                let is_slash = prompt.tags.is_some_and(|it| it.iter().any(|tag| tag == "slash"));
                if !is_slash {
                    replace_text(&mut self.prompt, prompt.text.as_ref());
                }
            }
            Kind::Code => {
                let path = CodeState::from_value(value).ok().and_then(|code| code.path);
                let path = path.as_ref().map_or("", FactText::preview);
                let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                if !name.is_empty()
                    && self.files.len() <= FILES_NAMED
                    && !self.files.contains(&name)
                {
                    self.files.push(name);
                }
            }
            Kind::Verification => {
                let Ok(found) = VerificationResult::from_value(value) else { return };
                let has_result = |it: &VerificationStatus| {
                    !matches!(it, VerificationStatus::Skipped | VerificationStatus::Unknown)
                };
                let Some(status) = found.status.filter(has_result) else { return };
                let failed = status != VerificationStatus::Passed;
                let name = found.name.as_ref().map_or("", FactText::preview);
                if failed || self.check.as_ref().is_none_or(|(failed, _)| !failed) {
                    let word = status.word().replace('_', " ");
                    self.check = Some((failed, one_line(&format!("{name} {word}"), NAME_CHARS)));
                }
            }
            Kind::Command => {
                let line = ExecutedCommand::from_value(value).ok().and_then(|ran| ran.command);
                replace_text(&mut self.command, line.as_ref());
            }
            Kind::Message => {
                let Ok(message) = Message::from_value(value) else { return };
                let role = message.role.as_ref().map(FactText::preview);
                if role == Some("assistant") && message.agent.is_none() {
                    replace_text(&mut self.message, message.text.as_ref());
                }
            }
            _ => {}
        }
    }

    /// Returns the name: the prompt, else the edited files, else the check, else the command, else
    /// the agent's message. If there is none of these, it says that time has passed.
    pub(crate) fn name(&self) -> String {
        let edited = (!self.files.is_empty()).then(|| {
            let named = self.files.iter().take(FILES_NAMED).cloned().collect::<Vec<_>>();
            let more = if self.files.len() > FILES_NAMED { " and others" } else { "" };
            format!("edited {}{more}", named.join(", "))
        });
        let check = self.check.as_ref().map(|(_, check)| check.clone());
        let command = self.command.as_ref().map(|line| format!("$ {line}"));
        let names = [self.prompt.clone(), edited, check, command, self.message.clone()];
        let name = names.into_iter().flatten().next();
        name.map_or_else(|| Checkpoint::TIME_PASSED.to_owned(), |name| one_line(&name, NAME_CHARS))
    }
}

/// Replaces a text by the beginning of another one, on one line, unless that is empty.
fn replace_text(text: &mut Option<String>, new: Option<&FactText>) {
    let new = new.map(|new| one_line(new.preview(), NAME_CHARS)).filter(|new| !new.is_empty());
    *text = new.or(text.take());
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::{FactOrigin, Timestamp, Value};

    fn fact(kind: Kind, fields: &[(&str, &str)]) -> Fact {
        let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
        let at = Timestamp::from_micros(0);
        Fact {
            kind,
            id: "f".to_owned(),
            at,
            origin: FactOrigin::Imported,
            place: 0,
            recorded_at: at,
            value: Value::Map(fields.collect()),
        }
    }

    #[test]
    fn a_skipped_check_neither_failed_nor_passed() {
        let mut recent = RecentEvents::default();
        let steps = [
            ("lint", "skipped", Checkpoint::TIME_PASSED),
            ("test", "passed", "test passed"),
            ("build", "skipped", "test passed"),
            ("test", "timed_out", "test timed out"),
            ("build", "skipped", "test timed out"),
        ];
        for (name, status, expected) in steps {
            recent.add(&fact(Kind::Verification, &[("name", name), ("status", status)]));
            assert_eq!(recent.name(), expected);
        }
    }

    #[test]
    fn a_checkpoint_is_named_after_the_most_important_recent_event() {
        let mut recent = RecentEvents::default();
        assert_eq!(recent.name(), Checkpoint::TIME_PASSED);
        let steps = [
            (Kind::Message, &[("role", "user"), ("text", "no")][..], Checkpoint::TIME_PASSED),
            (Kind::Message, &[("role", "assistant"), ("text", "I look")], "I look"),
            (Kind::Command, &[("command", "ls\n-l")], "$ ls -l"),
            (Kind::Verification, &[("name", "lint"), ("status", "failed")], "lint failed"),
            (Kind::Verification, &[("name", "test"), ("status", "passed")], "lint failed"),
            (Kind::Code, &[("path", "/w/a.rs")], "edited a.rs"),
            (Kind::Code, &[("path", "/w/b.rs")], "edited a.rs, b.rs"),
            (Kind::Code, &[("path", "c.rs")], "edited a.rs, b.rs, c.rs"),
            (Kind::Code, &[("path", "d.rs")], "edited a.rs, b.rs, c.rs and others"),
            (Kind::Prompt, &[("text", "why?")], "why?"),
        ];
        for (kind, fields, expected) in steps {
            recent.add(&fact(kind, fields));
            assert_eq!(recent.name(), expected);
        }
    }
}
