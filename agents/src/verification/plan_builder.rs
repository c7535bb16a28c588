//! Parses a command line into a plan of its checks.

use super::call_arguments::program_name;
use super::check_call::{CheckCall, RunSurroundings};
use super::check_plan::{
    CheckPlan, CommandListItem, EchoedLine, ExitCodeTree, MAX_CHECKS, OutputEvent, PipeCode,
    PlacedCheck, PrintedExitCode, file_name, foreign_to,
};
use super::command_classifier::{ClassifiedCommand, classify_words};
use super::command_words::{
    self, FAILURE_CODES, FILE_COMMANDS, HARDLY_FAIL, collect_readers, echoed_line,
    exit_code_variable, is_echo, is_first_code, is_variable, printed_code, program_of,
    shows_other_output, words,
};
use super::target;
use super::visibility::OutputFilter;
use forge_store::shell::syntax_tree::{self, ChainOperator, ShellCommand, ShellNode};
use std::collections::HashSet;

/// The maximum number of shells inside each other, such as `sh -c` in `$(...)`.
const MAX_SHELL_DEPTH: u32 = 4;
/// The maximum number of programs after a check that are examined in a pipeline.
const MAX_FILTERS: usize = 8;

/// Returns the plan of a command line; `None` if the line cannot be parsed.
pub(super) fn parse_line(line: &str) -> Option<CheckPlan> {
    let mut planner = CheckPlanBuilder::default();
    let node = syntax_tree::read(line)?;
    let tree = planner.node(&node, &mut ShellContext::default());
    let ends_with_echo = match &node {
        ShellNode::List(items) => matches!(
            items.last(),
            Some((ShellNode::Command(command), false))
                if words(command).first().is_some_and(|it| is_echo(it)) && !command.redirected
        ),
        _ => false,
    };
    let CheckPlanBuilder { mut checks, echoes, events, others_print, .. } = planner;
    // If the check passed, the lines are of the other programs.
    if others_print || events.iter().any(foreign_to(&checks)) {
        let shown = checks.iter_mut().filter(|check| check.shown_if_failed);
        shown.for_each(|check| check.file = Some(String::new()));
    }
    Some(CheckPlan { tree, checks, echoes, events, ends_with_echo })
}

/// The state of the shell at a command.
#[derive(Clone, Debug, Default)]
struct ShellContext {
    directory: Option<String>,
    filters: Vec<OutputFilter>,
    /// Whether the output goes to another program, so that a printed text may be missing from the
    /// output of the line.
    piped: bool,
    pipefail: bool,
    errexit: bool,
    /// Whether a failure does not end a list even with `set -e`, because the exit code is tested.
    is_tested: bool,
    repeats: bool,
    /// Whether the command may not run at all, or runs in the background.
    uncertain: bool,
    /// Whether the output goes to a file.
    redirected: bool,
    /// Whether an `exec` redirected it there, and not the command itself.
    is_in_file: bool,
    /// Whether the input comes from another program.
    fed: bool,
    around: RunSurroundings,
}

impl ShellContext {
    /// Whether a printed line can reach the output, and is unchanged if it does.
    fn prints(&self) -> bool {
        let keeps = |filter: &OutputFilter| {
            let program = filter.words.first().map_or("", |word| program_name(word));
            matches!(program, "tail" | "head" | "cat" | "tee" | "grep" | "egrep")
        };
        !self.redirected && self.filters.iter().all(keeps)
    }

    /// Whether this command prints to the output of the line, not to a file or another program.
    fn shows(&self, command: &ShellCommand) -> bool {
        !command.redirected && !self.redirected && !self.piped
    }
}

#[derive(Default)]
struct CheckPlanBuilder {
    checks: Vec<PlacedCheck>,
    echoes: Vec<EchoedLine>,
    events: Vec<OutputEvent>,
    /// The variables that may hold a text that no check of the line printed.
    other_texts: HashSet<String>,
    /// The files that the line emptied, removed or began, so that they have no older content.
    begun_files: HashSet<String>,
    /// Whether a program that is no check may print what looks like the output of a check.
    others_print: bool,
    shell_depth: u32,
}

impl CheckPlanBuilder {
    fn node(&mut self, node: &ShellNode, context: &mut ShellContext) -> ExitCodeTree {
        match node {
            ShellNode::Command(command) => self.command(command, context),
            ShellNode::List(items) => self.list(items, context),
            ShellNode::Chain(links) => {
                // A failure before `&&` or `||` does not end a list.
                let errexit = std::mem::take(&mut context.errexit);
                let uncertain = context.uncertain;
                let is_tested = context.is_tested;
                let numbered = |(number, (link, node)): (usize, &(ChainOperator, ShellNode))| {
                    context.is_tested = is_tested || number + 1 < links.len();
                    let first = self.checks.len();
                    let tree = self.node(node, context);
                    context.uncertain = true;
                    // What follows the next `||` certainly runs if the check failed.
                    let later = links.iter().skip(number + 1);
                    let alternatives = later.filter(|(link, _)| *link == ChainOperator::Or);
                    self.shown_from(first, &alternatives.map(|(_, node)| node).take(1), true);
                    (*link, tree)
                };
                let trees = links.iter().enumerate().map(numbered).collect();
                context.errexit |= errexit;
                context.uncertain = uncertain;
                context.is_tested = is_tested;
                ExitCodeTree::Chain(trees)
            }
            ShellNode::Pipe(parts) => self.pipe(parts, context),
            ShellNode::Not(inner) => {
                ExitCodeTree::Not(Box::new(self.without_errexit(inner, context)))
            }
            ShellNode::Subshell(inner) => {
                ExitCodeTree::Subshell(Box::new(self.node(inner, &mut context.clone())))
            }
            ShellNode::Redirected(inner, file) => {
                let first = self.checks.len();
                let outer = std::mem::replace(&mut context.redirected, true);
                let tree = self.node(inner, context);
                context.redirected = outer;
                self.begin_file(file, context);
                for check in self.checks.get_mut(first..).unwrap_or_default() {
                    check.file.get_or_insert_with(|| file.clone());
                }
                tree
            }
            ShellNode::If { arms, otherwise } => {
                let uncertain = context.uncertain;
                let is_only = arms.len() == 1;
                let arm = |(when, then): &(ShellNode, ShellNode)| {
                    let first = self.checks.len();
                    let condition = self.condition(when, context);
                    let otherwise = otherwise.as_deref().filter(|_| is_only);
                    let failed = if is_negated(when) { Some(then) } else { otherwise };
                    self.shown_from(first, &failed.into_iter(), true);
                    // Only the first condition certainly runs.
                    context.uncertain = true;
                    (condition, self.node(then, context))
                };
                let arms = arms.iter().map(arm).collect();
                let otherwise = otherwise.as_ref().map(|node| Box::new(self.node(node, context)));
                context.uncertain = uncertain;
                ExitCodeTree::If { arms, otherwise }
            }
            ShellNode::Loop { condition, body } => {
                let mut inside = ShellContext {
                    repeats: true,
                    uncertain: true,
                    errexit: false,
                    ..context.clone()
                };
                let condition =
                    condition.as_ref().map(|node| Box::new(self.condition(node, &mut inside)));
                ExitCodeTree::Loop { condition, body: Box::new(self.node(body, &mut inside)) }
            }
        }
    }

    /// Parses a part whose failure does not end the list that contains it.
    fn without_errexit(&mut self, node: &ShellNode, context: &mut ShellContext) -> ExitCodeTree {
        let errexit = std::mem::take(&mut context.errexit);
        let tree = self.node(node, context);
        context.errexit = errexit;
        tree
    }

    fn condition(&mut self, node: &ShellNode, context: &mut ShellContext) -> ExitCodeTree {
        let is_tested = std::mem::replace(&mut context.is_tested, true);
        let tree = self.without_errexit(node, context);
        context.is_tested = is_tested;
        tree
    }

    fn list(&mut self, items: &[(ShellNode, bool)], context: &mut ShellContext) -> ExitCodeTree {
        // With `set -e` a failure ends the list before its exit code is tested.
        let joined = (!context.errexit).then(|| command_words::join_tests(items)).flatten();
        let items = joined.as_deref().unwrap_or(items);
        let mut done: Vec<CommandListItem> = Vec::new();
        // Whether each item contains checks and runs in the foreground.
        let mut checked: Vec<bool> = Vec::new();
        // The variable that holds the exit code of an item, the number of that item, and whether
        // the code is that of the first program of a pipeline.
        let mut holder: Option<(String, usize, bool)> = None;
        for (number, (node, background)) in items.iter().enumerate() {
            let first = self.checks.len();
            let echoed = self.echoes.len();
            let uncertain = context.uncertain;
            context.uncertain |= *background;
            let tree = self.node(node, context);
            context.uncertain = uncertain;
            let waits = |(node, _): &(ShellNode, bool)| program_of(node) == Some("wait");
            if *background {
                let goes_on = !items.iter().skip(number + 1).any(waits);
                for check in self.checks.get_mut(first..).unwrap_or_default() {
                    check.goes_on |= goes_on;
                    check.in_order = false;
                }
            }
            let ends = context.errexit && !context.is_tested && !*background;
            if let Some((name, of_first)) = exit_code_variable(items.get(number + 1)) {
                holder = Some((name, number, of_first));
            }
            let item = CommandListItem {
                tree,
                background: *background,
                ends_list: ends,
                keeps_exit_code: false,
                printed: None,
            };
            done.push(item);
            checked.push(self.checks.len() > first && !*background);
            let later = items.iter().skip(number + 1).map(|(node, _)| node);
            self.shown_from(first, &later, false);
            let ShellNode::Command(command) = node else { continue };
            let held = holder.as_ref().map(|(name, of, first)| (name.as_str(), *of, *first));
            if matches!(words(command).first(), Some(&("exit" | "return"))) {
                let code = words(command).get(1).copied().unwrap_or_default();
                let held = held.filter(|(name, ..)| is_variable(Some(&code), name));
                let before = number.checked_sub(1).filter(|_| is_first_code(code));
                let again = held.map(|(_, of, first)| (of, first));
                if let Some((of, first)) = again.or(before.map(|of| (of, true))) {
                    for item in done.iter_mut().take(number).skip(of + 1) {
                        item.keeps_exit_code = true;
                    }
                    if let Some(item) = done.last_mut() {
                        item.tree = ExitCodeTree::ExitAsBefore;
                    }
                    if let Some(ExitCodeTree::Pipe { code, .. }) =
                        done.get_mut(of).map(|item| &mut item.tree).filter(|_| first)
                    {
                        *code = PipeCode::First;
                    }
                }
            } else if self.echoes.len() > echoed {
                let before = number.checked_sub(1).map(|before| ("?", before, false));
                for (name, of, first) in
                    before.into_iter().chain(held.filter(|(_, of, _)| *of < number))
                {
                    let Some(of_first) = printed_code(command, name) else { continue };
                    if let Some(item) = done.get_mut(of).filter(|_| checked.get(of) == Some(&true))
                    {
                        let of_first = of_first || first;
                        if let Some(echo) = self.echoes.get_mut(echoed) {
                            echo.is_code = true;
                        }
                        item.printed.get_or_insert(PrintedExitCode { echo: echoed, of_first });
                    }
                }
            }
        }
        ExitCodeTree::List(done)
    }

    /// Finds the later programs that show the file to which the output of a check goes. `first` is
    /// the first check to look at. `later` is read only for an output in a file. With `if_failed`,
    /// these programs run only if the check failed.
    fn shown_from<'n>(
        &mut self,
        first: usize,
        later: &(impl Iterator<Item = &'n ShellNode> + Clone),
        if_failed: bool,
    ) {
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        for check in checks {
            let Some(file) = check.file.take() else { continue };
            let mut readers = Vec::new();
            later.clone().for_each(|node| collect_readers(node, &file, &mut readers));
            if readers.is_empty() {
                check.file = Some(file);
            } else {
                check.copies.push(file);
                check.shown_later = true;
                check.shown_if_failed = if_failed;
                check.filters.extend(readers);
            }
        }
    }

    fn pipe(&mut self, parts: &[ShellNode], context: &mut ShellContext) -> ExitCodeTree {
        let trees = parts.iter().enumerate().map(|(number, part)| {
            let after = parts.get(number + 1..).unwrap_or_default();
            let mut inside = context.clone();
            inside
                .filters
                .splice(0..0, after.iter().take(MAX_FILTERS).map(OutputFilter::from_node));
            inside.piped |= !after.is_empty();
            inside.fed |= number > 0;
            inside.errexit = false;
            self.node(part, &mut inside)
        });
        let code = if context.pipefail { PipeCode::AnyFailed } else { PipeCode::Last };
        ExitCodeTree::Pipe { parts: trees.collect(), code }
    }

    fn command(&mut self, command: &ShellCommand, context: &mut ShellContext) -> ExitCodeTree {
        let words = words(command);
        if command.redirected && !command.appends {
            if matches!(words.first(), None | Some(&(":" | "true" | "echo"))) {
                self.begin_file(&command.file, context);
            } else {
                // It may print what looks like the output of a check.
                self.begun_files.remove(&file_name(&command.file));
            }
        }
        let Some((program, arguments)) = words.split_first() else {
            return self.assignment(command, context);
        };
        if *program == "rm" {
            arguments.iter().for_each(|file| self.begin_file(file, context));
        }
        if !context.fed && !command.redirected && !context.redirected && shows_other_output(&words)
        {
            let words = words.iter().map(|word| (*word).to_owned());
            self.events.push(OutputEvent::Reader(words.collect()));
        }
        if !command.redirected && context.prints() {
            self.echoes.extend(echoed_line(command, !context.uncertain));
        }
        match *program {
            // The output of `exec > >(tee log)` has no file: it may be shown.
            "exec" if arguments.is_empty() && !command.file.is_empty() => {
                context.redirected = true;
                context.is_in_file = true;
                return ExitCodeTree::Zero;
            }
            "set" | "setopt" => {
                set(arguments, context);
                return ExitCodeTree::Zero;
            }
            "cd" | "pushd" => {
                if let Some(path) = arguments.iter().find(|word| !word.starts_with('-')) {
                    let from = context.directory.as_deref().unwrap_or(".");
                    // No system has longer paths.
                    let directory = target::joined(from, path);
                    context.directory = Some(directory).filter(|path| path.len() <= 4096);
                }
                return ExitCodeTree::Enter;
            }
            "exit" | "return" => {
                return match arguments.first() {
                    None | Some(&("$?" | "${?}")) => ExitCodeTree::ExitAsBefore,
                    Some(code) => ExitCodeTree::Exit(code.parse().ok()),
                };
            }
            "export" => {
                context.around.add_variables(arguments.iter().copied());
                return ExitCodeTree::Zero;
            }
            "false" => return ExitCodeTree::Nonzero,
            name if is_echo(name) => {
                let mut plain = command.words.iter().all(|word| !word.expands);
                let visible = context.shows(command);
                let text = arguments.join(" ");
                let text = command_words::last_line_of_echo(&text);
                // Some shells replace escapes also without `-e`.
                plain &= !text.contains('\\');
                let printed = text.trim();
                // The output is compared line by line, so a text with a line break is not found.
                let is_line = plain && visible && !printed.is_empty() && !printed.contains('\n');
                if is_line && !context.repeats {
                    self.events.push(OutputEvent::Marker(printed.to_owned()));
                }
                // The arguments of a cmdlet may have options and several values.
                return match is_line && name == "echo" && !text.starts_with('-') {
                    true => ExitCodeTree::Echo(printed.to_owned()),
                    false => ExitCodeTree::Zero,
                };
            }
            "printf" => {
                let printed = command_words::last_line_of_printf(command);
                let printed = printed.filter(|_| context.shows(command) && !context.repeats);
                self.events.extend(printed.map(OutputEvent::Marker));
                return ExitCodeTree::Zero;
            }
            _ if FILE_COMMANDS.contains(program) => return ExitCodeTree::Enter,
            _ if HARDLY_FAIL.contains(program) => return ExitCodeTree::Zero,
            _ => {}
        }
        match classify_words(&words) {
            ClassifiedCommand::Check(call) if self.checks.len() < MAX_CHECKS => {
                self.check(*call, command, context)
            }
            ClassifiedCommand::Line(line, around) if self.shell_depth < MAX_SHELL_DEPTH => {
                let mut inside = context.clone();
                let variables = command.assignments.iter().map(|word| word.text.as_str());
                inside.around.add_variables(variables);
                inside.around.extend(around);
                self.inner(&line, command, &inside)
            }
            _ => {
                let program = program.rsplit('/').next().unwrap_or_default();
                let known = FAILURE_CODES.iter().find(|(programs, _)| programs.contains(&program));
                self.others_print |= known.is_none() && !command.redirected && !context.redirected;
                known.map_or(ExitCodeTree::Any, |(_, codes)| ExitCodeTree::Codes(codes))
            }
        }
    }

    fn check(
        &mut self,
        mut call: CheckCall,
        command: &ShellCommand,
        context: &ShellContext,
    ) -> ExitCodeTree {
        call.directory = match (context.directory.as_deref(), call.directory) {
            (Some(outer), Some(inner)) => Some(target::joined(outer, &inner)),
            (outer, inner) => inner.or(outer.map(str::to_owned)),
        };
        let mut around = context.around.clone();
        around.add_variables(command.assignments.iter().map(|word| word.text.as_str()));
        around.apply(&mut call);
        let copied = context
            .filters
            .iter()
            .filter(|filter| filter.words.first().is_some_and(|program| program == "tee"));
        let copies = copied.flat_map(|filter| filter.words.iter().skip(1).cloned()).collect();
        let file = self.output_file(command, context);
        let file = file.or_else(|| context.is_in_file.then(String::new));
        self.events.push(OutputEvent::Check(self.checks.len()));
        self.checks.push(PlacedCheck {
            call,
            filters: context.filters.clone(),
            file,
            copies,
            shown_later: false,
            shown_if_failed: false,
            errors_hidden: command.errors_redirected,
            in_order: command.errors_merged,
            goes_on: false,
            repeats: context.repeats,
        });
        ExitCodeTree::Check(self.checks.len() - 1)
    }

    /// Parses assignments. The last one may assign the output of a line: `out=$(cargo test)`. The
    /// variable is treated like a file to which the output is redirected.
    fn assignment(&mut self, command: &ShellCommand, context: &ShellContext) -> ExitCodeTree {
        let mut tree = ExitCodeTree::Zero;
        for (number, word) in command.assignments.iter().enumerate() {
            let Some((name, value)) = word.text.split_once('=') else { continue };
            let (name, appends) = match name.strip_suffix('+') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let is_last = number + 1 == command.assignments.len();
            let line = value.strip_prefix("$(").and_then(|line| line.strip_suffix(')'));
            let first = self.checks.len();
            if let Some(line) = line.filter(|_| is_last && self.shell_depth < MAX_SHELL_DEPTH) {
                // After another text in the variable, it is not known which lines are the check's.
                let is_mixed = appends && self.other_texts.contains(name);
                let file = if is_mixed { String::new() } else { format!("${name}") };
                let command = ShellCommand { redirected: true, file, ..ShellCommand::default() };
                tree = match self.inner(line, &command, context) {
                    ExitCodeTree::Any => ExitCodeTree::Zero,
                    tree => tree,
                };
            }
            if !value.is_empty() && self.checks.len() == first {
                self.other_texts.insert(name.to_owned());
            } else if !appends && !context.uncertain && self.shell_depth == 0 {
                self.other_texts.remove(name);
            }
        }
        tree
    }

    /// Notes that a file has no content from before this command, if the command certainly runs.
    fn begin_file(&mut self, file: &str, context: &ShellContext) {
        if !context.uncertain {
            self.begun_files.insert(file_name(file));
        }
    }

    /// Returns the file that the output of a check goes to, if there is one. The name is empty if
    /// the output is appended to a file that may have older content: then it is not known which
    /// lines are the check's.
    fn output_file(&mut self, command: &ShellCommand, context: &ShellContext) -> Option<String> {
        if !command.redirected {
            return None;
        }
        if !command.appends {
            self.begin_file(&command.file, context);
        } else if !self.begun_files.contains(&file_name(&command.file)) {
            return Some(String::new());
        }
        Some(command.file.clone())
    }

    /// Parses a line that another shell runs.
    fn inner(
        &mut self,
        line: &str,
        command: &ShellCommand,
        context: &ShellContext,
    ) -> ExitCodeTree {
        let Some(node) = syntax_tree::read(line) else { return ExitCodeTree::Any };
        let first = self.checks.len();
        let mut inside =
            ShellContext { errexit: false, is_tested: false, pipefail: false, ..context.clone() };
        inside.redirected |= command.redirected;
        self.shell_depth += 1;
        let tree = self.node(&node, &mut inside);
        self.shell_depth -= 1;
        if self.checks.len() == first {
            return ExitCodeTree::Any;
        }
        let file = self.output_file(command, context);
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        for check in checks {
            if check.file.is_none() {
                check.file.clone_from(&file);
            }
            check.errors_hidden |= command.errors_redirected;
            check.in_order |= command.errors_merged;
        }
        ExitCodeTree::Subshell(Box::new(tree))
    }
}

/// Whether a condition is one part with `!` before it.
fn is_negated(condition: &ShellNode) -> bool {
    match condition {
        ShellNode::List(items) => matches!(items.as_slice(), [(ShellNode::Not(_), false)]),
        _ => false,
    }
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
