//! Parses a command line into its checks and the structure that determines its exit code.

use super::check_call::{self, CheckCall, ClassifiedCommand, RunSurroundings};
use super::target;
use super::visibility::OutputFilter;
use forge_store::shell::syntax_tree::{self, ChainOperator, ShellCommand, ShellNode};

/// A part of a command line, for computing its exit code.
#[derive(Debug)]
pub(super) enum ExitCodeTree {
    /// A check, by its number.
    Check(usize),
    /// A command that may end with any code.
    Any,
    /// A command that ends with 0 or one of these codes.
    Codes(&'static [i64]),
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
        code: PipeCode,
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

/// Which program of a pipeline determines its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeCode {
    Last,
    /// The last one that failed (`pipefail`).
    AnyFailed,
    /// The first one, whose code the line takes from `PIPESTATUS`.
    First,
}

impl PlacedCheck {
    /// The files that its output goes to.
    fn files(&self) -> impl Iterator<Item = String> {
        self.copies.iter().chain(&self.file).map(|file| file_name(file))
    }
}

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

/// An `echo` whose line is an exit code: `echo "exit=$?"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrintedExitCode {
    /// Its index among the echoes of the line.
    pub(super) echo: usize,
    /// Whether it is the code of the first program of a pipeline.
    pub(super) of_first: bool,
}

/// What an `echo` prints as its last line.
#[derive(Debug)]
pub(super) struct EchoedLine {
    pub(super) before: String,
    /// The text after the variable; `None` if there is no variable.
    pub(super) after: Option<String>,
    /// Whether it certainly runs once, and in its order.
    pub(super) runs_once: bool,
    /// Whether the variable is known to be an exit code.
    pub(super) is_code: bool,
}

impl EchoedLine {
    /// The exit code in a line of this form.
    pub(super) fn code_in(&self, line: &str) -> Option<i64> {
        let rest = line.trim().strip_prefix(self.before.as_str())?;
        let code = rest.strip_suffix(self.after.as_deref()?)?;
        code.bytes().all(|byte| byte.is_ascii_digit()).then(|| code.parse().ok())?
    }

    /// Whether the other echo may print a line of this form.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match other.after {
            Some(_) => self.before == other.before && self.after == other.after,
            None => self.code_in(&other.before).is_some(),
        }
    }
}

/// What writes to the output of a line, in the order of the line.
#[derive(Debug)]
pub(super) enum OutputEvent {
    /// A check, by its number.
    Check(usize),
    /// An `echo` of a fixed text.
    Marker(String),
    /// A program that shows what other programs wrote before, such as `cat FILE`.
    Reader(Vec<String>),
}

/// A check of a command line, and its surroundings.
#[derive(Debug)]
pub(super) struct PlacedCheck {
    pub(super) call: CheckCall,
    /// The programs that its output is piped through.
    pub(super) filters: Vec<OutputFilter>,
    /// The file that its output goes to, as long as nothing shows that file.
    pub(super) file: Option<String>,
    /// Other files that its output goes to.
    copies: Vec<String>,
    /// Whether another program shows its output, from a file.
    shown_later: bool,
    /// Whether its error output goes to a file.
    pub(super) errors_hidden: bool,
    /// Whether nothing waits for its end.
    pub(super) goes_on: bool,
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
    pub(super) echoes: Vec<EchoedLine>,
    events: Vec<OutputEvent>,
    /// Whether the last of the echoes is the last command of the line.
    pub(super) ends_with_echo: bool,
}

impl CheckPlan {
    /// Returns which lines may be the output of a check, if other programs show files. There are
    /// none if that is not known.
    pub(super) fn window(&self, check: usize, lines: &[&str]) -> std::ops::Range<usize> {
        let all = 0..lines.len();
        let own_files: Vec<String> = self.checks.iter().flat_map(PlacedCheck::files).collect();
        let foreign = |event: &OutputEvent| match event {
            OutputEvent::Reader(words) => {
                !words.iter().any(|word| own_files.contains(&file_name(word)))
            }
            _ => false,
        };
        let Some(place) = self.checks.get(check).filter(|_| self.events.iter().any(foreign)) else {
            return all;
        };
        let files: Vec<String> = place.files().collect();
        let is_own = |event: &OutputEvent| match event {
            OutputEvent::Check(number) => *number == check && !place.shown_later,
            OutputEvent::Reader(words) => {
                place.shown_later && words.iter().any(|word| files.contains(&file_name(word)))
            }
            OutputEvent::Marker(_) => false,
        };
        let Some(at) = self.events.iter().position(is_own) else { return 0..0 };
        let line_of = |event: &OutputEvent| -> Option<usize> {
            let OutputEvent::Marker(text) = event else { return None };
            let mut same = lines.iter().enumerate().filter(|(_, line)| line.trim() == text);
            let (number, _) = same.next()?;
            same.next().is_none().then_some(number)
        };
        let (before, after) = self.events.split_at(at);
        let after = after.get(1..).unwrap_or_default();
        let start =
            before.iter().enumerate().rev().find_map(|(at, event)| Some((at, line_of(event)?)));
        let end = after.iter().enumerate().find_map(|(at, event)| Some((at, line_of(event)?)));
        let between = before.get(start.map_or(0, |(at, _)| at)..).unwrap_or_default();
        let follows = after.get(..end.map_or(after.len(), |(at, _)| at)).unwrap_or_default();
        let range =
            start.map_or(0, |(_, line)| line + 1)..end.map_or(lines.len(), |(_, line)| line);
        if follows.iter().any(foreign) || range.start > range.end {
            return 0..0;
        }
        if !between.iter().any(foreign) {
            return range;
        }
        // The last lines are its own if it certainly printed them.
        let ends = !follows
            .iter()
            .any(|event| matches!(event, OutputEvent::Check(_) | OutputEvent::Reader(_)));
        let prints =
            place.call.summary.is_some_and(|summary| !summary.silent && !summary.shapes.is_empty());
        let printed = self.printed_after(follows);
        match place.filters.last().and_then(OutputFilter::tail_lines) {
            Some(count) if ends && prints => {
                let end = range.end.saturating_sub(printed).max(range.start);
                end.saturating_sub(count).max(range.start)..end
            }
            _ => 0..0,
        }
    }

    /// How many lines these events print, at most.
    fn printed_after(&self, events: &[OutputEvent]) -> usize {
        events.iter().filter(|event| matches!(event, OutputEvent::Marker(_))).count()
    }

    /// Whether an `echo` of the line prints this.
    pub(super) fn prints(&self, line: &str) -> bool {
        self.echoes.iter().any(|echo| match echo.after {
            Some(_) => echo.code_in(line).is_some(),
            None => echo.before == line.trim(),
        })
    }
}

/// Parses a command line.
pub(super) fn parse_line(line: &str) -> Option<CheckPlan> {
    let mut planner = CheckPlanBuilder::default();
    let node = syntax_tree::read(line)?;
    let plan = planner.node(&node, &mut ShellContext::default());
    let ends_with_echo = match &node {
        ShellNode::List(items) => matches!(
            items.last(),
            Some((ShellNode::Command(command), false))
                if words(command).first() == Some(&"echo") && !command.redirected
        ),
        _ => false,
    };
    let CheckPlanBuilder { checks, echoes, events, .. } = planner;
    Some(CheckPlan { plan, checks, echoes, events, ends_with_echo })
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
    /// Whether it may not run, or at another time.
    uncertain: bool,
    /// Whether the output goes to a file.
    redirected: bool,
    /// Whether the input comes from another program.
    fed: bool,
    around: RunSurroundings,
}

impl ShellContext {
    /// Whether a printed line reaches the output unchanged if it reaches it at all.
    fn prints(&self) -> bool {
        let keeps = |filter: &OutputFilter| {
            let program = filter.words.first().map_or("", String::as_str);
            matches!(program, "tail" | "head" | "cat" | "tee" | "grep" | "egrep")
        };
        !self.redirected && self.filters.iter().all(keeps)
    }
}

#[derive(Default)]
struct CheckPlanBuilder {
    checks: Vec<PlacedCheck>,
    echoes: Vec<EchoedLine>,
    events: Vec<OutputEvent>,
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
                let uncertain = context.uncertain;
                let plan = |(link, node): &(ChainOperator, ShellNode)| {
                    let plan = self.node(node, context);
                    context.uncertain = true;
                    (*link, plan)
                };
                let plans = links.iter().map(plan).collect();
                context.errexit |= errexit;
                context.uncertain = uncertain;
                ExitCodeTree::Chain(plans)
            }
            ShellNode::Pipe(parts) => self.pipe(parts, context),
            ShellNode::Not(inner) => ExitCodeTree::Not(Box::new(self.apart(inner, context))),
            ShellNode::Subshell(inner) => {
                ExitCodeTree::Subshell(Box::new(self.node(inner, &mut context.clone())))
            }
            ShellNode::Redirected(inner, file) => {
                let first = self.checks.len();
                let outer = std::mem::replace(&mut context.redirected, true);
                let plan = self.node(inner, context);
                context.redirected = outer;
                for check in self.checks.get_mut(first..).unwrap_or_default() {
                    check.file.get_or_insert_with(|| file.clone());
                }
                plan
            }
            ShellNode::If { arms, otherwise } => {
                let uncertain = std::mem::replace(&mut context.uncertain, true);
                let arms = arms
                    .iter()
                    .map(|(when, then)| (self.apart(when, context), self.node(then, context)))
                    .collect();
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
        // The variable that holds the exit code of an item, the number of that item, and whether it
        // is the code of the first program of a pipeline.
        let mut holder: Option<(String, usize, bool)> = None;
        for (number, (node, background)) in items.iter().enumerate() {
            let first = self.checks.len();
            let echoed = self.echoes.len();
            let uncertain = context.uncertain;
            context.uncertain |= *background;
            let plan = self.node(node, context);
            context.uncertain = uncertain;
            let waits = |(node, _): &(ShellNode, bool)| matches!(node, ShellNode::Command(command) if words(command).first() == Some(&"wait"));
            if *background && !items.iter().skip(number + 1).any(waits) {
                let checks = self.checks.get_mut(first..).unwrap_or_default();
                checks.iter_mut().for_each(|check| check.goes_on = true);
            }
            let ends = context.errexit && !*background;
            if let Some((name, of_first)) = holder_of(items.get(number + 1)) {
                holder = Some((name, number, of_first));
            }
            let item = CommandListItem {
                plan,
                background: *background,
                ends_list: ends,
                keeps_exit_code: false,
                printed: None,
            };
            done.push(item);
            checked.push(self.checks.len() > first && !*background);
            self.shown_from(first, items.get(number + 1..).unwrap_or_default());
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
                        item.plan = ExitCodeTree::ExitAsBefore;
                    }
                    if let Some(ExitCodeTree::Pipe { code, .. }) =
                        done.get_mut(of).map(|item| &mut item.plan).filter(|_| first)
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

    /// For checks whose output goes to a file: finds the later programs that show the file.
    fn shown_from(&mut self, first: usize, later: &[(ShellNode, bool)]) {
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        for check in checks {
            let Some(file) = check.file.take() else { continue };
            let mut readers = Vec::new();
            later.iter().for_each(|(node, _)| self::readers(node, &file, &mut readers));
            if readers.is_empty() {
                check.file = Some(file);
            } else {
                check.copies.push(file);
                check.shown_later = true;
                check.filters.extend(readers);
            }
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
            inside.fed |= number > 0;
            inside.errexit = false;
            self.node(part, &mut inside)
        });
        let code = if context.pipefail { PipeCode::AnyFailed } else { PipeCode::Last };
        ExitCodeTree::Pipe { parts: plans.collect(), code }
    }

    fn command(&mut self, command: &ShellCommand, context: &mut ShellContext) -> ExitCodeTree {
        let words = words(command);
        let Some((program, arguments)) = words.split_first() else {
            return self.assignment(command, context);
        };
        if !context.fed && !command.redirected && !context.redirected && shows_other_output(&words)
        {
            let words = words.iter().map(|word| (*word).to_owned());
            self.events.push(OutputEvent::Reader(words.collect()));
        }
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
            "export" => {
                context.around.add_variables(arguments.iter().copied());
                return ExitCodeTree::Zero;
            }
            "false" => return ExitCodeTree::Nonzero,
            "echo" => {
                if !command.redirected && context.prints() {
                    let runs_once = !context.uncertain;
                    self.echoes.extend(echoed_line(command, runs_once));
                }
                let plain = command.words.iter().all(|word| !word.expands);
                let visible = !command.redirected && !context.redirected && !context.piped;
                let text = arguments.join(" ");
                if plain && visible && !context.repeats && !text.trim().is_empty() {
                    self.events.push(OutputEvent::Marker(text.trim().to_owned()));
                }
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
                self.check(*call, command, context)
            }
            ClassifiedCommand::Line(line, around) if self.shells < MAX_SHELLS => {
                let mut inside = context.clone();
                let variables = command.assignments.iter().map(|word| word.text.as_str());
                inside.around.add_variables(variables);
                inside.around.extend(around);
                self.inner(&line, command, &inside)
            }
            _ => {
                let program = program.rsplit('/').next().unwrap_or_default();
                let known = KNOWN_CODES.iter().find(|(programs, _)| programs.contains(&program));
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
        self.events.push(OutputEvent::Check(self.checks.len()));
        self.checks.push(PlacedCheck {
            call,
            filters: context.filters.clone(),
            file: command.redirected.then(|| command.file.clone()),
            copies,
            shown_later: false,
            errors_hidden: command.errors_redirected,
            goes_on: false,
            repeats: context.repeats,
        });
        ExitCodeTree::Check(self.checks.len() - 1)
    }

    /// Parses an assignment of the output of a line: `out=$(cargo test)`. The variable is to it
    /// what a file is to a redirection.
    fn assignment(&mut self, command: &ShellCommand, context: &ShellContext) -> ExitCodeTree {
        let inner = command.assignments.last().and_then(|word| {
            let (name, value) = word.text.split_once('=')?;
            let line = value.strip_prefix("$(")?.strip_suffix(')')?;
            Some((format!("${name}"), line.to_owned()))
        });
        let Some((file, line)) = inner.filter(|_| self.shells < MAX_SHELLS) else {
            return ExitCodeTree::Zero;
        };
        let command = ShellCommand { redirected: true, file, ..ShellCommand::default() };
        match self.inner(&line, &command, context) {
            ExitCodeTree::Any => ExitCodeTree::Zero,
            plan => plan,
        }
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
        let mut inside = ShellContext { errexit: false, pipefail: false, ..context.clone() };
        inside.redirected |= command.redirected;
        self.shells += 1;
        let plan = self.node(&node, &mut inside);
        self.shells -= 1;
        let checks = self.checks.get_mut(first..).unwrap_or_default();
        if checks.is_empty() {
            return ExitCodeTree::Any;
        }
        for check in checks {
            if command.redirected {
                check.file.get_or_insert_with(|| command.file.clone());
            }
            check.errors_hidden |= command.errors_redirected;
        }
        ExitCodeTree::Subshell(Box::new(plan))
    }
}

/// Commands that are assumed to succeed, so that they do not explain a failure of the line.
const HARDLY_FAIL: &[&str] = &[
    "popd", "export", "unset", "printf", "pwd", "sleep", "true", ":", "date", "ulimit", "umask",
    "shopt", "clear", "alias", "trap", "wait", "tee", "sort", "uniq", "wc", "tr", "cut", "nl",
    "ts", "hash", "local", "declare", "readonly",
];
/// Commands that fail only if a file cannot be read or changed, which the output then says.
const READERS: &[&str] = &[
    "source", ".", "cat", "head", "tail", "sed", "awk", "rm", "mkdir", "cp", "mv", "touch", "ln",
    "chmod",
];

/// The exit codes with which these programs fail.
const KNOWN_CODES: &[(&[&str], &[i64])] = &[
    (&["cmake"], &[1]),
    (&["git"], &[1, 128, 129, 141]),
    (&["test", "[", "[["], &[1, 2]),
    (&["pip", "pip3", "uv"], &[1, 2]),
];

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

/// The variable to which the next command of a list assigns the exit code (`rc=$?`), and whether it
/// is that of the first program of a pipeline.
fn holder_of(next: Option<&(ShellNode, bool)>) -> Option<(String, bool)> {
    let Some((ShellNode::Command(command), _)) = next else { return None };
    let [assignment] = command.assignments.as_slice() else { return None };
    if !command.words.is_empty() {
        return None;
    }
    let (name, value) = assignment.text.split_once('=')?;
    let first = is_first_code(value);
    (first || matches!(value, "$?" | "${?}")).then(|| (name.to_owned(), first))
}

/// The forms of the exit code of the first program of a pipeline.
const FIRST_CODES: [&str; 4] =
    ["${PIPESTATUS[0]}", "${PIPESTATUS}", "$PIPESTATUS", "${pipestatus[1]}"];

fn is_first_code(word: &str) -> bool {
    FIRST_CODES.contains(&word)
}

fn is_variable(word: Option<&&str>, name: &str) -> bool {
    let braced = |word: &str| word.strip_prefix("${")?.strip_suffix('}').map(str::to_owned);
    word.is_some_and(|word| {
        word.strip_prefix('$') == Some(name) || braced(word).as_deref() == Some(name)
    })
}

/// The text that an `echo` prints, with its variables.
fn echoed_text(command: &ShellCommand) -> Option<String> {
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
    Some(text)
}

/// The last line that this command prints, if it has at most one variable.
fn echoed_line(command: &ShellCommand, runs_once: bool) -> Option<EchoedLine> {
    let text = echoed_text(command)?;
    let text = text.rsplit("\\n").next().unwrap_or_default().trim();
    let Some((before, rest)) = text.split_once('$') else {
        return Some(EchoedLine { before: text.to_owned(), after: None, runs_once, is_code: true });
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = match (rest.strip_prefix('{'), rest.strip_prefix('?')) {
        (Some(braced), _) => braced.split_once('}')?.1,
        (None, Some(after)) => after,
        (None, None) => rest.trim_start_matches(is_name),
    };
    let before = before.trim_start().to_owned();
    let after = (!after.contains('$')).then(|| after.to_owned())?;
    let is_code = ["?", "{?}", "{PIPESTATUS", "PIPESTATUS", "{pipestatus"]
        .iter()
        .any(|name| rest.starts_with(name));
    Some(EchoedLine { before, after: Some(after), runs_once, is_code })
}

/// Whether this command prints the exit code in a variable: `Some(true)` if it is the code of the
/// first program of a pipeline.
fn printed_code(command: &ShellCommand, name: &str) -> Option<bool> {
    let text = echoed_text(command)?;
    let first = FIRST_CODES.into_iter().filter(|_| name == "?");
    let forms = [format!("${{{name}}}"), format!("${name}")];
    let forms = forms.iter().map(|form| (form.as_str(), false));
    let mut forms = forms.chain(first.map(|form| (form, true)));
    forms.find_map(|(form, of_first)| {
        let (before, after) = text.split_once(form)?;
        let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let last = !after.contains("\\n");
        let whole = last && !before.contains('$') && !after.contains('$') && !goes_on;
        whole.then_some(of_first)
    })
}

/// The form of a file name in which two names of one file are equal.
fn file_name(name: &str) -> String {
    let braced = name.strip_prefix("${").and_then(|name| name.strip_suffix('}'));
    braced.map_or_else(|| name.trim_start_matches("./").to_owned(), |name| format!("${name}"))
}

/// Whether this program shows the contents of the files in its arguments.
fn shows_files(program: &str) -> bool {
    const READERS: [&str; 12] = [
        "tail", "head", "cat", "grep", "rg", "sed", "awk", "egrep", "fgrep", "less", "more", "bat",
    ];
    READERS.contains(&program)
}

/// Whether these words show what other programs wrote before.
fn shows_other_output(words: &[&str]) -> bool {
    match words {
        ["sed", rest @ ..] => !rest.iter().any(|word| word.starts_with("-i")),
        ["git", "show", ..] | ["gh", "run", ..] | ["journalctl" | "curl" | "zcat" | "jq", ..] => {
            true
        }
        ["docker" | "podman" | "kubectl" | "docker-compose", rest @ ..] => {
            rest.iter().take(3).any(|word| *word == "logs")
        }
        [program, _, ..] => shows_files(program),
        _ => false,
    }
}

/// Collects the commands in a part that show the contents of this file.
fn readers(node: &ShellNode, file: &str, found: &mut Vec<OutputFilter>) {
    let mut each = |node: &ShellNode| readers(node, file, found);
    match node {
        ShellNode::Command(command) => {
            let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
            let shows = words.first().is_some_and(|program| {
                shows_files(program) || (file.starts_with('$') && program == "echo")
            });
            let of_file = |word: &String| file_name(word) == file_name(file);
            if shows && !file.is_empty() && words.iter().skip(1).any(of_file) {
                found.push(OutputFilter { words });
            }
        }
        ShellNode::Chain(links) => links.iter().for_each(|(_, node)| each(node)),
        ShellNode::Pipe(parts) => {
            let before = found.len();
            let first = parts.first();
            first.into_iter().for_each(|node| readers(node, file, found));
            if found.len() > before {
                let others = parts.iter().skip(1).map(|part| match part {
                    ShellNode::Command(command) => {
                        command.words.iter().map(|word| word.text.clone()).collect()
                    }
                    _ => vec!["?".to_owned()],
                });
                found.extend(others.map(|words| OutputFilter { words }));
            }
        }
        ShellNode::List(items) => items.iter().for_each(|(node, _)| each(node)),
        _ => {}
    }
}
