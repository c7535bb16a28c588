//! Parses a command line into its checks and the structure that determines its exit code.

use super::check_call::{self, CheckCall, ClassifiedCommand};
use super::target;
use super::visibility::OutputFilter;
use crate::shell::syntax_tree::{self, ChainOperator, ShellCommand, ShellNode};

/// A part of a command line, for computing its exit code.
#[derive(Debug)]
pub(super) enum ExitCodeTree {
    /// A check, by its number.
    Check(usize),
    /// A command that may end with any code.
    Any,
    /// A command that is assumed to end with 0.
    Zero,
    Nonzero,
    /// A change of the directory, or the reading of a file: it failed only if the output says so.
    Enter,
    /// `echo` of a fixed text: if the text is missing from the output, it did not run.
    Echo(String),
    /// `exit` with a code, if that is known.
    Exit(Option<i64>),
    /// `exit` with the exit code of the command before.
    ExitAsBefore,
    List(Vec<CommandListItem>),
    Chain(Vec<(ChainOperator, ExitCodeTree)>),
    Pipe {
        parts: Vec<ExitCodeTree>,
        pipefail: bool,
    },
    Not(Box<ExitCodeTree>),
    Subshell(Box<ExitCodeTree>),
    If {
        arms: Vec<(ExitCodeTree, ExitCodeTree)>,
        otherwise: Option<Box<ExitCodeTree>>,
    },
    Loop {
        condition: Option<Box<ExitCodeTree>>,
        body: Box<ExitCodeTree>,
    },
}

/// One command of a list.
#[derive(Debug)]
pub(super) struct CommandListItem {
    pub(super) plan: ExitCodeTree,
    pub(super) background: bool,
    /// Whether the list ends if this command fails (`set -e`).
    pub(super) ends_list: bool,
    /// Whether a later `exit $NAME` returns the code of the command before this one.
    pub(super) keeps_exit_code: bool,
    /// Where the output contains its exit code.
    pub(super) printed: Option<PrintedExitCode>,
}

/// A line in which a command line prints an exit code: `echo "exit=$?"`.
#[derive(Debug)]
pub(super) struct PrintedExitCode {
    pub(super) before: String,
    pub(super) after: String,
    /// Whether it is the code of the first program of a pipeline.
    pub(super) of_first: bool,
}

/// A check of a command line, and its surroundings.
#[derive(Debug)]
pub(super) struct PlacedCheck {
    pub(super) call: CheckCall,
    /// The programs that its output is piped through.
    pub(super) filters: Vec<OutputFilter>,
    /// Whether its output goes to a file that is never shown.
    pub(super) hidden: bool,
    /// Whether it may run more than once.
    pub(super) repeats: bool,
}

/// The maximum number of checks in a line; later ones are ignored.
pub(super) const MAX_CHECKS: usize = 12;
const MAX_SHELLS: u32 = 4;
/// The maximum number of programs after a check that are examined in a pipeline.
const MAX_FILTERS: usize = 8;

/// A command line with its checks.
#[derive(Debug)]
pub(super) struct CheckPlan {
    pub(super) plan: ExitCodeTree,
    pub(super) checks: Vec<PlacedCheck>,
}

/// Parses a command line.
pub(super) fn parse_line(line: &str) -> Option<CheckPlan> {
    let mut planner = CheckPlanBuilder { checks: Vec::new(), shells: 0 };
    let node = syntax_tree::read(line)?;
    let plan = planner.node(&node, &mut ShellContext::default());
    Some(CheckPlan { plan, checks: planner.checks })
}

/// The state of the shell at a command.
#[derive(Clone, Debug, Default)]
struct ShellContext {
    directory: Option<String>,
    filters: Vec<OutputFilter>,
    /// Whether the output is not part of the line's output, so that a printed text may be missing.
    piped: bool,
    pipefail: bool,
    errexit: bool,
    repeats: bool,
}

struct CheckPlanBuilder {
    checks: Vec<PlacedCheck>,
    shells: u32,
}

impl CheckPlanBuilder {
    fn node(&mut self, node: &ShellNode, context: &mut ShellContext) -> ExitCodeTree {
        match node {
            ShellNode::Command(command) => self.command(command, context),
            ShellNode::List(items) => self.list(items, context),
            ShellNode::Chain(links) => {
                // A failure before `&&` or `||` does not end a list.
                let errexit = std::mem::take(&mut context.errexit);
                let plans =
                    links.iter().map(|(link, node)| (*link, self.node(node, context))).collect();
                context.errexit |= errexit;
                ExitCodeTree::Chain(plans)
            }
            ShellNode::Pipe(parts) => self.pipe(parts, context),
            ShellNode::Not(inner) => ExitCodeTree::Not(Box::new(self.apart(inner, context))),
            ShellNode::Subshell(inner) => {
                ExitCodeTree::Subshell(Box::new(self.node(inner, &mut context.clone())))
            }
            ShellNode::If { arms, otherwise } => {
                let arms = arms
                    .iter()
                    .map(|(when, then)| (self.apart(when, context), self.node(then, context)))
                    .collect();
                let otherwise = otherwise.as_ref().map(|node| Box::new(self.node(node, context)));
                ExitCodeTree::If { arms, otherwise }
            }
            ShellNode::Loop { condition, body } => {
                let mut inside = ShellContext { repeats: true, errexit: false, ..context.clone() };
                let condition =
                    condition.as_ref().map(|node| Box::new(self.node(node, &mut inside)));
                ExitCodeTree::Loop { condition, body: Box::new(self.node(body, &mut inside)) }
            }
        }
    }

    /// Parses a part whose failure does not end the list that contains it.
    fn apart(&mut self, node: &ShellNode, context: &mut ShellContext) -> ExitCodeTree {
        let errexit = std::mem::take(&mut context.errexit);
        let plan = self.node(node, context);
        context.errexit = errexit;
        plan
    }

    fn list(&mut self, items: &[(ShellNode, bool)], context: &mut ShellContext) -> ExitCodeTree {
        let mut done: Vec<CommandListItem> = Vec::new();
        // Whether each item contains checks.
        let mut checked: Vec<bool> = Vec::new();
        // The variable that holds the exit code of an item, and the number of that item.
        let mut holder: Option<(String, usize)> = None;
        for (number, (node, background)) in items.iter().enumerate() {
            let first = self.checks.len();
            let plan = self.node(node, context);
            let ends = context.errexit && !*background;
            if let Some(name) = holder_of(items.get(number + 1)) {
                holder = Some((name, number));
            }
            let item = CommandListItem {
                plan,
                background: *background,
                ends_list: ends,
                keeps_exit_code: false,
                printed: None,
            };
            done.push(item);
            checked.push(self.checks.len() > first);
            self.shown_from(first, items.get(number + 1..).unwrap_or_default());
            let ShellNode::Command(command) = node else { continue };
            let held = holder.as_ref().map(|(name, of)| (name.as_str(), *of));
            if words(command).first() == Some(&"exit") {
                let again = held.filter(|(name, _)| is_variable(words(command).get(1), name));
                if let Some((_, of)) = again {
                    done.iter_mut()
                        .take(number)
                        .skip(of + 1)
                        .for_each(|item| item.keeps_exit_code = true);
                    if let Some(item) = done.last_mut() {
                        item.plan = ExitCodeTree::ExitAsBefore;
                    }
                }
            } else if !command.redirected && !context.piped {
                let before = number.checked_sub(1).map(|before| ("?", before));
                for (name, of) in before.into_iter().chain(held.filter(|(_, of)| *of < number)) {
                    let Some(printed) = printed_code(command, name) else { continue };
                    if let Some(item) = done.get_mut(of).filter(|_| checked.get(of) == Some(&true))
                    {
                        item.printed.get_or_insert(printed);
                    }
                }
            }
        }
        ExitCodeTree::List(done)
    }

    /// For checks whose output goes to a file: finds the later programs that may show the file.
    fn shown_from(&mut self, first: usize, later: &[(ShellNode, bool)]) {
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        for check in checks.iter_mut().filter(|check| check.hidden) {
            let mut readers = Vec::new();
            later.iter().for_each(|(node, _)| self::readers(node, &mut readers));
            check.hidden = readers.is_empty();
            check.filters.extend(readers);
        }
    }

    fn pipe(&mut self, parts: &[ShellNode], context: &mut ShellContext) -> ExitCodeTree {
        let filter = |node: &ShellNode| match node {
            ShellNode::Command(command) => {
                OutputFilter { words: command.words.iter().map(|word| word.text.clone()).collect() }
            }
            _ => OutputFilter { words: vec!["?".to_owned()] },
        };
        let plans = parts.iter().enumerate().map(|(number, part)| {
            let after = parts.get(number + 1..).unwrap_or_default();
            let mut inside = context.clone();
            inside.filters.splice(0..0, after.iter().take(MAX_FILTERS).map(filter));
            inside.piped |= !after.is_empty();
            inside.errexit = false;
            self.node(part, &mut inside)
        });
        ExitCodeTree::Pipe { parts: plans.collect(), pipefail: context.pipefail }
    }

    fn command(&mut self, command: &ShellCommand, context: &mut ShellContext) -> ExitCodeTree {
        let words = words(command);
        let Some((program, arguments)) = words.split_first() else { return ExitCodeTree::Zero };
        match *program {
            "set" | "setopt" => {
                set(arguments, context);
                return ExitCodeTree::Zero;
            }
            "cd" | "pushd" => {
                if let Some(path) = arguments.iter().find(|word| !word.starts_with('-')) {
                    let from = context.directory.as_deref().unwrap_or(".");
                    context.directory = Some(target::joined(from, path));
                }
                return ExitCodeTree::Enter;
            }
            "exit" | "return" => {
                return match arguments.first() {
                    None | Some(&("$?" | "${?}")) => ExitCodeTree::ExitAsBefore,
                    Some(code) => ExitCodeTree::Exit(code.parse().ok()),
                };
            }
            "false" => return ExitCodeTree::Nonzero,
            "echo" => {
                let plain = command.words.iter().all(|word| !word.expands);
                let visible = !command.redirected && !context.piped;
                let text = arguments.join(" ");
                return match plain && visible && !text.trim().is_empty() && !text.starts_with('-') {
                    true => ExitCodeTree::Echo(text.trim().to_owned()),
                    false => ExitCodeTree::Zero,
                };
            }
            _ if READERS.contains(program) => return ExitCodeTree::Enter,
            _ if HARDLY_FAIL.contains(program) => return ExitCodeTree::Zero,
            _ => {}
        }
        match check_call::classify_words(&words) {
            ClassifiedCommand::Check(call) if self.checks.len() < MAX_CHECKS => {
                self.check(*call, command.redirected, context)
            }
            ClassifiedCommand::Line(line) if self.shells < MAX_SHELLS => {
                self.inner(&line, command.redirected, context)
            }
            _ => ExitCodeTree::Any,
        }
    }

    fn check(
        &mut self,
        mut call: CheckCall,
        redirected: bool,
        context: &ShellContext,
    ) -> ExitCodeTree {
        call.directory = match (context.directory.as_deref(), call.directory) {
            (Some(outer), Some(inner)) => Some(target::joined(outer, &inner)),
            (outer, inner) => inner.or(outer.map(str::to_owned)),
        };
        self.checks.push(PlacedCheck {
            call,
            filters: context.filters.clone(),
            hidden: redirected,
            repeats: context.repeats,
        });
        ExitCodeTree::Check(self.checks.len() - 1)
    }

    /// Parses a line that another shell runs.
    fn inner(&mut self, line: &str, redirected: bool, context: &ShellContext) -> ExitCodeTree {
        let Some(node) = syntax_tree::read(line) else { return ExitCodeTree::Any };
        let first = self.checks.len();
        let mut inside = ShellContext { errexit: false, pipefail: false, ..context.clone() };
        self.shells += 1;
        let plan = self.node(&node, &mut inside);
        self.shells -= 1;
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        if checks.is_empty() {
            return ExitCodeTree::Any;
        }
        checks.iter_mut().for_each(|check| check.hidden |= redirected);
        ExitCodeTree::Subshell(Box::new(plan))
    }
}

/// Commands that are assumed to succeed, so that they do not explain a failure of the line.
const HARDLY_FAIL: &[&str] = &[
    "popd", "export", "unset", "printf", "pwd", "sleep", "true", ":", "date", "ulimit", "umask",
    "shopt", "clear", "alias", "trap", "wait", "tee", "sort", "uniq", "wc", "tr", "cut", "nl",
    "ts", "hash", "local", "declare", "readonly",
];
/// Commands that fail only if a file cannot be read, which the output then says.
const READERS: &[&str] = &["source", ".", "cat", "head", "tail", "sed", "awk"];

fn words(command: &ShellCommand) -> Vec<&str> {
    command.words.iter().map(|word| word.text.as_str()).collect()
}

fn set(options: &[&str], context: &mut ShellContext) {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.strip_prefix('-') {
            Some(flags) => {
                context.errexit |= flags.contains('e');
                if flags.ends_with('o') {
                    match options.next() {
                        Some(&"pipefail") => context.pipefail = true,
                        Some(&"errexit") => context.errexit = true,
                        _ => {}
                    }
                }
            }
            None if *option == "+e" => context.errexit = false,
            None if *option == "pipefail" => context.pipefail = true,
            None => {}
        }
    }
}

/// The variable to which the next command of a list assigns the exit code: `rc=$?`.
fn holder_of(next: Option<&(ShellNode, bool)>) -> Option<String> {
    let Some((ShellNode::Command(command), _)) = next else { return None };
    let [assignment] = command.assignments.as_slice() else { return None };
    if !command.words.is_empty() {
        return None;
    }
    let (name, value) = assignment.text.split_once('=')?;
    matches!(value, "$?" | "${?}").then(|| name.to_owned())
}

fn is_variable(word: Option<&&str>, name: &str) -> bool {
    let braced = |word: &str| word.strip_prefix("${")?.strip_suffix('}').map(str::to_owned);
    word.is_some_and(|word| {
        word.strip_prefix('$') == Some(name) || braced(word).as_deref() == Some(name)
    })
}

/// The form of the line in which this command prints the exit code in a variable.
fn printed_code(command: &ShellCommand, name: &str) -> Option<PrintedExitCode> {
    let (program, arguments) = command.words.split_first()?;
    if program.text != "echo" {
        return None;
    }
    let mut text = String::new();
    for word in arguments.iter().skip_while(|word| word.text == "-e") {
        if !text.is_empty() {
            text.push(' ');
        }
        if !word.expands && word.text.contains('$') {
            return None;
        }
        text.push_str(&word.text);
    }
    let plain = [(format!("${{{name}}}"), false), (format!("${name}"), false)];
    let first = [("${PIPESTATUS[0]}".to_owned(), true), ("${pipestatus[1]}".to_owned(), true)];
    let forms = plain.into_iter().chain(first.into_iter().filter(|_| name == "?"));
    forms.into_iter().find_map(|(form, of_first)| {
        let (before, after) = text.split_once(form.as_str())?;
        let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let whole = !before.contains('$') && !after.contains('$') && !goes_on;
        // Only the last line that it prints.
        let before = before.rsplit("\\n").next().unwrap_or_default();
        let printed = PrintedExitCode {
            before: before.trim_start().to_owned(),
            after: after.trim_end().to_owned(),
            of_first,
        };
        whole.then_some(printed)
    })
}

/// Collects the commands in a part that show the contents of files.
fn readers(node: &ShellNode, found: &mut Vec<OutputFilter>) {
    match node {
        ShellNode::Command(command) => {
            let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
            let reader = words.first().is_some_and(|program| {
                matches!(
                    program.as_str(),
                    "tail" | "head" | "cat" | "grep" | "rg" | "sed" | "awk" | "egrep"
                )
            });
            if reader {
                found.push(OutputFilter { words });
            }
        }
        ShellNode::Chain(links) => links.iter().for_each(|(_, node)| readers(node, found)),
        ShellNode::Pipe(parts) => parts.iter().for_each(|node| readers(node, found)),
        ShellNode::List(items) => items.iter().for_each(|(node, _)| readers(node, found)),
        _ => {}
    }
}
