//! Reads tool calls, and keeps what their results will not repeat until the results come.

use super::line::parsed;
use super::line_context::{LineContext, PieceBuilder};
use super::open_call::{CallRequest, OpenCall};
use super::{task, tool};
use crate::lenient::{LenientFlag, LenientText};
use crate::long_text;
use crate::patch::{EditDescription, UnifiedPatch};
use crate::text_hash::text_hash;
use crate::verification::CheckCommandLine;
use forge_store::model::Value;
use forge_store::shell;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CommandInput<'a> {
    command: LenientText<'a>,
    description: LenientText<'a>,
    run_in_background: LenientFlag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AgentInput<'a> {
    subagent_type: LenientText<'a>,
    description: LenientText<'a>,
    prompt: LenientText<'a>,
}

impl PieceBuilder<'_> {
    /// Keeps a call whose result will be a fact. `pointer` leads to the block of the call.
    pub(crate) fn call(&mut self, id: &str, name: &str, input: Option<&RawValue>, pointer: &str) {
        let request = match name {
            "Bash" | "PowerShell" => command_request(&self.line, input, pointer),
            "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => {
                edit_request(&self.line, input, pointer)
            }
            // These are of the oldest clients. A tool of another program may have such a name.
            "Replace" | "NotebookEditCell" => edit_request(&self.line, input, pointer)
                .filter(|request| matches!(request, CallRequest::Edit { path: Some(_), .. })),
            "Task" | "Agent" => agent_request(input),
            "TaskCreate" | "TaskUpdate" | "TodoWrite" => {
                task::task_request(&self.line, name, input, pointer)
            }
            _ => None,
        };
        // A call whose input cannot be read is also kept as the use of its tool.
        let request =
            request.unwrap_or_else(|| tool::tool_request(&self.line, name, input, pointer));
        self.keep_call(id, name, request);
    }

    /// Reads a call of a tool that the API runs. Its name says nothing about its input.
    pub(super) fn call_of_api(
        &mut self,
        id: &str,
        name: &str,
        input: Option<&RawValue>,
        pointer: &str,
    ) {
        let request = tool::tool_request(&self.line, name, input, pointer);
        self.keep_call(id, name, request);
    }

    fn keep_call(&mut self, id: &str, name: &str, request: CallRequest) {
        let call = OpenCall {
            called_at: self.line.at,
            cwd: self.line.cwd.clone(),
            tool: name.to_owned(),
            request,
        };
        self.carry.calls.insert(id.to_owned(), call);
    }
}

fn command_request(
    context: &LineContext,
    input: Option<&RawValue>,
    pointer: &str,
) -> Option<CallRequest> {
    let input: CommandInput<'_> = parsed(input).ok()?;
    let line = input.command.text().unwrap_or_default();
    let described = |text| context.text(text, format!("{pointer}/input/description"));
    Some(CallRequest::Command {
        command: context.text(line, format!("{pointer}/input/command")),
        description: input.description.text().map_or(Value::Null, described),
        background: input.run_in_background.0,
        commit: runs_git_commit(line),
        verification: CheckCommandLine::from_line(line),
    })
}

/// Whether a command line runs `git commit`.
pub(crate) fn runs_git_commit(line: &str) -> bool {
    line.contains("commit")
        && shell::split_inner(line).iter().any(|command| {
            let mut words = command.words.iter().map(String::as_str);
            if words.next() != Some("git") {
                return false;
            }
            // These options take the next word as their value: `git -C folder -c key=value commit`.
            while let Some(word) = words.next() {
                match word {
                    "-C" | "-c" | "--git-dir" | "--work-tree" => {
                        words.next();
                    }
                    option if option.starts_with('-') => {}
                    verb => return verb == "commit",
                }
            }
            false
        })
}

fn edit_request(
    context: &LineContext,
    input: Option<&RawValue>,
    pointer: &str,
) -> Option<CallRequest> {
    let input: EditDescription<'_> = parsed(input).ok()?;
    let UnifiedPatch { text, added, removed } = input.patch().unwrap_or_default();
    Some(CallRequest::Edit {
        path: input.path().map(str::to_owned),
        patch: context.text(&text, format!("{pointer}/input")),
        added,
        removed,
    })
}

fn agent_request(input: Option<&RawValue>) -> Option<CallRequest> {
    let input: AgentInput<'_> = parsed(input).ok()?;
    let short = |text: &str| long_text::beginning(text, long_text::INLINE_BYTES).to_owned();
    Some(CallRequest::Agent {
        kind: input.subagent_type.text().map(short),
        description: input.description.text().map(short),
        prompt: text_hash(input.prompt.text().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::runs_git_commit;

    #[test]
    fn a_commit_is_found_among_other_commands() {
        for line in
            ["git commit -m x", "git add . && git -C /a -c k=v commit -F -", "cd a; git commit"]
        {
            assert!(runs_git_commit(line), "{line}");
        }
        for line in ["git log commit", "echo git commit", "git -C commit status", "git show", ""] {
            assert!(!runs_git_commit(line), "{line}");
        }
    }
}
