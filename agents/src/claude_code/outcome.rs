//! Results of tool calls: commands, edits and checks that happened.

use super::carry::{Asked, OpenCall};
use super::command::{self, REFUSED, Ran};
use super::line::{Content, Said};
use super::message::parsed;
use super::scene::{Scene, Work, fields, flag};
use crate::lenient::{Flag, Name, Whole, Word};
use crate::patch::Edit;
use forge_store::model::{Kind, Map, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A result as a call's facts see it.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) error: bool,
    /// What the agent was told, and the pointer to it.
    pub(crate) told: Option<Said<'a>>,
    /// What the program that runs the tools noted.
    pub(crate) noted: Noted<'a>,
}

#[derive(Debug)]
pub(crate) enum Noted<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Object(&'a RawValue),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(borrow)]
    stdout: Word<'a>,
    #[serde(borrow)]
    stderr: Word<'a>,
    interrupted: Flag,
    background_task_id: Name,
    duration_ms: Whole,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Edited<'a> {
    user_modified: Flag,
    #[serde(borrow)]
    original_file: Word<'a>,
    #[serde(borrow)]
    original_file_contents: Word<'a>,
    #[serde(borrow, rename = "original_file")]
    original_notebook: Word<'a>,
    #[serde(borrow)]
    error: Word<'a>,
}

impl Work<'_> {
    /// Closes the call a result belongs to. Says whether it was one whose result is a fact of its own.
    pub(crate) fn result(
        &mut self,
        scene: &Scene<'_>,
        id: &str,
        error: bool,
        content: &Content<'_>,
        result: Option<&RawValue>,
        at: &str,
    ) -> bool {
        let Some(call) = self.carry.calls.remove(id) else { return false };
        let noted = match result.map(|raw| (raw.get().as_bytes().first(), raw)) {
            Some((Some(b'{'), raw)) => Noted::Object(raw),
            Some((Some(b'"'), raw)) => {
                let text: Word<'_> = parsed(Some(raw)).unwrap_or_default();
                text.0.map_or(Noted::Nothing, Noted::Text)
            }
            _ => Noted::Nothing,
        };
        let told = content.said().map(|(text, pointer)| (text, format!("{at}/content{pointer}")));
        let answer = Answer { error, told, noted };
        match &call.asked {
            Asked::Command { .. } => self.command(scene, id, &call, &answer),
            Asked::Edit { .. } => self.edit(scene, id, &call, &answer),
            Asked::Agent { .. } => self.agent_done(scene, id, &call, &answer),
            Asked::NewTask { .. } | Asked::TaskChange { .. } | Asked::Todos { .. } => {
                self.tasks(scene, &call, &answer);
            }
            // No call of Claude Code's.
            Asked::Patch { .. } => {}
        }
        true
    }

    fn command(&mut self, scene: &Scene<'_>, id: &str, call: &OpenCall, answer: &Answer<'_>) {
        let Asked::Command { command, description, background, commit, verification } = &call.asked
        else {
            return;
        };
        let printed: Printed<'_> = answer.object();
        let merged = if matches!(answer.noted, Noted::Object(_)) { None } else { answer.text() };
        let (code, start) =
            answer.text().map_or((None, 0), |(text, _)| exit_code(&text, answer.error));
        let interrupted = printed.interrupted.0
            || (answer.error && answer.says(|text| text.contains("[Request interrupted by user")));
        let background = *background || printed.background_task_id.0.is_some();
        let (outcome, exit_code) = if answer.refused() {
            (REFUSED, None)
        } else if interrupted {
            ("interrupted", code)
        } else if answer.error {
            (if code == Some(0) { "finished" } else { "failed" }, code)
        } else if background {
            ("background", None)
        } else {
            ("finished", Some(0))
        };
        let mut output = String::new();
        let streams = match merged {
            Some((text, pointer)) if text.len() > start => {
                output.push_str(text.get(start..).unwrap_or_default());
                command::merged(scene, outcome, &text, start..text.len(), pointer)
            }
            _ => {
                let stdout = printed.stdout.text();
                let stderr = printed.stderr.text();
                output.push_str(stdout.unwrap_or_default());
                if let Some(text) = stderr {
                    output.push('\n');
                    output.push_str(text);
                }
                let shown = |text: Option<&str>, pointer: &str| {
                    Value::from(text.map(|text| scene.text(text, pointer)))
                };
                fields([
                    ("stdout_preview", shown(stdout, "/toolUseResult/stdout")),
                    ("stderr_preview", shown(stderr, "/toolUseResult/stderr")),
                ])
            }
        };
        let mut more = fields([
            ("working_dir", call.cwd.clone().into()),
            ("called_at", call.called_at.to_string().into()),
            ("duration_ms", printed.duration_ms.0.into()),
            ("interrupted", flag(interrupted)),
            ("background_task", printed.background_task_id.0.into()),
        ]);
        more.extend(streams);
        let ran = Ran {
            command: command.clone(),
            description: description.clone(),
            exit_code,
            outcome,
            more,
            output: &output,
            verification: verification.as_ref(),
            commits: *commit && !answer.error,
        };
        self.ran(scene, id, ran);
    }

    fn edit(&mut self, scene: &Scene<'_>, id: &str, call: &OpenCall, answer: &Answer<'_>) {
        let Asked::Edit { path, patch, added, removed } = &call.asked else { return };
        if answer.error {
            return;
        }
        let mut value = fields([
            ("tool", call.tool.as_str().into()),
            ("path", path.clone().into()),
            ("patch", patch.clone()),
            ("lines_added", (*added).into()),
            ("lines_removed", (*removed).into()),
            ("agent", scene.agent.clone().into()),
            ("cwd", call.cwd.clone().into()),
            ("git_branch", scene.git_branch.into()),
            ("user_modified", false.into()),
        ]);
        match answer.noted {
            // It says why nothing was changed.
            Noted::Text(_) => return,
            Noted::Nothing => {}
            Noted::Object(raw) => {
                let edited: Edited<'_> = parsed(Some(raw)).unwrap_or_default();
                if edited.error.text().is_some() {
                    return;
                }
                value.insert("user_modified".to_owned(), edited.user_modified.0.into());
                for (name, original) in [
                    ("originalFile", &edited.original_file),
                    ("originalFileContents", &edited.original_file_contents),
                    ("original_file", &edited.original_notebook),
                ] {
                    if let Some(text) = original.text() {
                        let original = scene.text(text, format!("/toolUseResult/{name}"));
                        value.insert("original_file".to_owned(), original);
                    }
                }
                described(scene, raw, &mut value);
            }
        }
        self.facts.push(scene.fact(Kind::Code, id, value));
    }
}

/// Puts what the result says of the change in the place of what the call said.
fn described(scene: &Scene<'_>, raw: &RawValue, value: &mut Map) {
    let edit: Edit<'_> = parsed(Some(raw)).unwrap_or_default();
    if let Some(path) = edit.path() {
        value.insert("path".to_owned(), path.into());
    }
    if let Some(patch) = edit.patch() {
        value.insert("patch".to_owned(), scene.text(&patch.text, "/toolUseResult"));
        value.insert("lines_added".to_owned(), patch.added.into());
        value.insert("lines_removed".to_owned(), patch.removed.into());
    }
}

impl<'a> Answer<'a> {
    /// What was said about the run in one text: noted, else told.
    fn text(&self) -> Option<(Cow<'_, str>, &str)> {
        match &self.noted {
            Noted::Text(text) => Some((Cow::Borrowed(text), "/toolUseResult")),
            _ => {
                self.told.as_ref().map(|(text, pointer)| (Cow::Borrowed(&**text), pointer.as_str()))
            }
        }
    }

    fn says(&self, what: impl Fn(&str) -> bool) -> bool {
        let noted = if let Noted::Text(text) = &self.noted { Some(&**text) } else { None };
        let told = self.told.as_ref().map(|(text, _)| &**text);
        noted.into_iter().chain(told).any(what)
    }

    /// Whether the user, or a rule the user set, did not let the call run.
    pub(crate) fn refused(&self) -> bool {
        self.error && self.says(is_refusal)
    }

    /// The object that was noted, read leniently.
    pub(crate) fn object<T: Deserialize<'a> + Default>(&self) -> T {
        match self.noted {
            Noted::Object(raw) => parsed(Some(raw)).unwrap_or_default(),
            _ => T::default(),
        }
    }
}

/// Whether a text says that the user refused a call.
pub(crate) fn is_refusal(text: &str) -> bool {
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    text.starts_with("The user doesn't want to proceed with this tool use")
        || text.starts_with("The user doesn't want to take this action")
        || text.starts_with("User rejected tool use")
        || (text.starts_with("Permission to use ") && text.contains(" has been denied"))
}

/// The exit code an error begins with, and where the output behind it starts.
fn exit_code(text: &str, error: bool) -> (Option<i64>, usize) {
    if !error {
        return (None, 0);
    }
    let body = text.strip_prefix("Error: ").unwrap_or(text);
    let start = text.len() - body.len();
    let code = body.strip_prefix("Exit code ").and_then(|rest| {
        let end = rest.find('\n').unwrap_or(rest.len());
        let code = rest.get(..end)?.trim().parse().ok()?;
        Some((code, text.len() - rest.len() + end))
    });
    let Some((code, end)) = code else { return (None, start) };
    // Behind the line break.
    (Some(code), (end + 1).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::exit_code;

    #[test]
    fn an_exit_code_leads_an_error() {
        for (text, expected) in [
            ("Exit code 1\nout", (Some(1), 12)),
            ("Error: Exit code 127\nout", (Some(127), 21)),
            ("Exit code 2", (Some(2), 11)),
            ("Error: Sibling tool call errored", (None, 7)),
            ("Exit code none", (None, 0)),
        ] {
            assert_eq!(exit_code(text, true), expected, "{text}");
        }
        assert_eq!(exit_code("Exit code 1\nprinted", false), (None, 0));
    }
}
