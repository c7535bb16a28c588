//! Finds out whether the words of a command run a check, another command line or neither.

use super::call_arguments::{program_name, rest_of, sbt_arguments};
use super::check_call::{CheckCall, RunSurroundings};
use super::non_checking::checks_nothing;
use super::script_call::{script_call, script_file_call};
use super::summary_table;
use super::target;
use super::tools::{CheckTool, ExitCodeMeaning, SCRIPTS, tools_of};
use super::wrapper::{self, InnerCommand};

/// The command that a list of words runs.
pub(super) enum ClassifiedCommand {
    Check(Box<CheckCall>),
    /// A command line that another shell runs.
    Line(String, RunSurroundings),
    Other,
}

/// The maximum number of nested runners.
const MAX_RUNNERS: usize = 8;

/// Returns what these words run, after the runners before it: at most [`MAX_RUNNERS`].
pub(super) fn classify_words(words: &[&str]) -> ClassifiedCommand {
    let mut words: Vec<&str> = words.to_vec();
    let mut directory = None;
    let mut around = RunSurroundings::default();
    for _ in 0..MAX_RUNNERS {
        if let Some(mut call) = direct_check(&words) {
            call.directory = match (directory, call.directory) {
                (Some(outer), Some(inner)) => Some(target::joined(outer, &inner)),
                (outer, inner) => inner.or(outer.map(str::to_owned)),
            };
            around.apply(&mut call);
            return ClassifiedCommand::Check(Box::new(call));
        }
        let mut scratch = Vec::new();
        let next = match wrapper::inner(&words, &mut scratch) {
            None => return ClassifiedCommand::Other,
            Some(InnerCommand::Line(line)) => {
                around.add_runner(&words);
                return ClassifiedCommand::Line(line, around);
            }
            Some(InnerCommand::Words(inner, changed)) => {
                directory = changed.or(directory);
                inner.to_vec()
            }
        };
        let before = if scratch.is_empty() { &words } else { &scratch };
        around.add(before.get(..before.len().saturating_sub(next.len())).unwrap_or_default());
        if next.is_empty() || next == words {
            return ClassifiedCommand::Other;
        }
        words = next;
    }
    ClassifiedCommand::Other
}

/// Returns the check that these words run, if they run one without a runner before it.
fn direct_check(words: &[&str]) -> Option<CheckCall> {
    let (first, arguments) = words.split_first()?;
    let program = program_name(first);
    let commands: Vec<&str>;
    let arguments = if program == "sbt" {
        commands = sbt_arguments(arguments);
        &commands
    } else {
        arguments
    };
    let mut found = tools_of(program).flat_map(|tool| tool.calls().map(move |call| (tool, call)));
    let found =
        found.find_map(|(tool, call)| Some((tool, call, rest_of(program, call, arguments)?)));
    if let Some((tool, call, rest)) = found {
        let mut found = tool_call(&tool, program, call, &rest)?;
        let toolchain = arguments.first().filter(|word| word.starts_with('+'));
        found.target.extend(toolchain.map(|word| format!("={word}")));
        return Some(found);
    }
    if let Some(scripts) = SCRIPTS.iter().find(|scripts| scripts.programs.contains(&program)) {
        return script_call(scripts, program, arguments);
    }
    script_file_call(words)
}

/// Returns the check that a tool runs with this subcommand, unless its arguments check nothing.
fn tool_call(tool: &CheckTool, program: &str, call: &str, rest: &[&str]) -> Option<CheckCall> {
    if rest.contains(&"--list") || checks_nothing(program, call, rest) {
        return None;
    }
    let call = call.split('|').next()?;
    let name = if call.is_empty() { program.to_owned() } else { format!("{program} {call}") };
    let found = CheckCall::new(tool.check, tool.programs().next()?, call, name, rest);
    let exit = match found.exit {
        ExitCodeMeaning::OnlyOutput => ExitCodeMeaning::OnlyOutput,
        _ => tool.exit,
    };
    Some(CheckCall { exit, summary: summary_table::find(tool.summary), ..found })
}
