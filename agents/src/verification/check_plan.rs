//! The plan of a command line: its checks, and the structure that determines its exit code.

use super::check_call::CheckCall;
use super::visibility::OutputFilter;
use forge_store::shell::syntax_tree::ChainOperator;
use std::collections::BTreeMap;

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
    /// A command that changes the directory or reads a file: it failed only if the output says so.
    Enter,
    /// An `echo` of a fixed text: if the output does not contain the text, the `echo` did not run.
    Echo(String),
    /// `exit`, with its code if that is known.
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

/// A command of a list, which `;` or a line break separates from the next one.
#[derive(Debug)]
pub(super) struct CommandListItem {
    pub(super) tree: ExitCodeTree,
    pub(super) background: bool,
    /// Whether the list ends if this command fails (`set -e`).
    pub(super) ends_list: bool,
    /// Whether a later `exit $NAME` returns the code of the command before this one.
    pub(super) keeps_exit_code: bool,
    /// The `echo` that prints its exit code.
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

/// The last line that an `echo`, or a `printf` with one value, prints.
#[derive(Debug)]
pub(super) struct EchoedLine {
    pub(super) before: String,
    /// The text after the variable; `None` if there is no variable.
    pub(super) after: Option<String>,
    /// Whether it certainly runs exactly once, and in its place in the order of the echoes.
    pub(super) runs_once: bool,
    /// Whether the variable is known to be an exit code.
    pub(super) is_code: bool,
}

impl EchoedLine {
    /// Returns the exit code in a line of this form.
    pub(super) fn code_in(&self, line: &str) -> Option<i64> {
        let rest = line.trim().strip_prefix(self.before.as_str())?;
        let code = rest.strip_suffix(self.after.as_deref()?)?;
        code.bytes().all(|byte| byte.is_ascii_digit()).then(|| code.parse().ok())?
    }

    /// Whether the other `echo` may print a line of this form.
    pub(super) fn may_be_printed_by(&self, other: &Self) -> bool {
        match other.after {
            Some(_) => self.before == other.before && self.after == other.after,
            None => self.code_in(&other.before).is_some(),
        }
    }
}

/// A part of a command line that writes to its output.
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
    /// The programs that its output is piped through, in order.
    pub(super) filters: Vec<OutputFilter>,
    /// The file that its output goes to, as long as nothing shows that file.
    pub(super) file: Option<String>,
    /// Other files that its output goes to.
    pub(super) copies: Vec<String>,
    /// Whether another program shows its output, from a file.
    pub(super) shown_later: bool,
    /// Whether that program runs only if the check failed.
    pub(super) shown_if_failed: bool,
    /// Whether its error output goes to a file.
    pub(super) errors_hidden: bool,
    /// Whether all that it prints comes between what the commands before and after it print: its
    /// error output goes to where its output goes, and it does not run in the background.
    pub(super) in_order: bool,
    /// Whether it may still run when the line ends.
    pub(super) goes_on: bool,
    /// Whether it may run more than once.
    pub(super) repeats: bool,
}

impl PlacedCheck {
    /// Returns the files that its output goes to.
    fn files(&self) -> impl Iterator<Item = String> {
        self.copies.iter().chain(&self.file).map(|file| file_name(file))
    }
}

/// Returns a function that tests whether an event shows only files that none of these checks wrote.
pub(super) fn foreign_to(checks: &[PlacedCheck]) -> impl Fn(&OutputEvent) -> bool {
    let files: Vec<String> = checks.iter().flat_map(PlacedCheck::files).collect();
    move |event: &OutputEvent| match event {
        OutputEvent::Reader(words) => !words.iter().any(|word| files.contains(&file_name(word))),
        _ => false,
    }
}

/// The maximum number of checks in a line; later ones are ignored.
pub(super) const MAX_CHECKS: usize = 12;

/// A command line with its checks.
#[derive(Debug)]
pub(super) struct CheckPlan {
    pub(super) tree: ExitCodeTree,
    pub(super) checks: Vec<PlacedCheck>,
    pub(super) echoes: Vec<EchoedLine>,
    /// The parts that write to the output, in the order of the line.
    pub(super) events: Vec<OutputEvent>,
    /// Whether the last of the echoes is the last command of the line.
    pub(super) ends_with_echo: bool,
}

impl CheckPlan {
    /// Returns the range of the lines that may be the output of a check; `None` if it cannot be
    /// determined. These are all lines, unless another program shows a file that no check wrote, or
    /// the line prints fixed texts between several checks.
    pub(super) fn output_range(
        &self,
        check: usize,
        lines: &[&str],
    ) -> Option<std::ops::Range<usize>> {
        let all = 0..lines.len();
        let foreign = foreign_to(&self.checks);
        let in_order = |place: &PlacedCheck| {
            place.in_order && !place.repeats && !place.shown_later && place.file.is_none()
        };
        let apart = self.checks.len() > 1 && self.checks.iter().all(in_order);
        let divides = apart || self.events.iter().any(&foreign);
        let Some(place) = self.checks.get(check).filter(|_| divides) else { return Some(all) };
        let files: Vec<String> = place.files().collect();
        let is_own = |event: &OutputEvent| match event {
            OutputEvent::Check(number) => *number == check && !place.shown_later,
            OutputEvent::Reader(words) => {
                place.shown_later && words.iter().any(|word| files.contains(&file_name(word)))
            }
            OutputEvent::Marker(_) => false,
        };
        let at = self.events.iter().position(is_own)?;
        // The output of the check is between the last marker before it and the first one after it.
        let marked = self.marked_lines(lines);
        let line_of = |number: usize| marked.get(number).copied().flatten();
        let marker_before = (0..at).rev().find_map(|number| Some((number, line_of(number)?)));
        let mut later = at + 1..self.events.len();
        let marker_after = later.find_map(|number| Some((number, line_of(number)?)));
        let first = marker_before.map_or(0, |(number, _)| number);
        let end = marker_after.map_or(self.events.len(), |(number, _)| number);
        let events_before = self.events.get(first..at).unwrap_or_default();
        let events_after = self.events.get(at + 1..end).unwrap_or_default();
        let range = marker_before.map_or(0, |(_, line)| line + 1)
            ..marker_after.map_or(lines.len(), |(_, line)| line);
        if events_after.iter().any(&foreign) || range.start > range.end {
            return None;
        }
        if !events_before.iter().any(&foreign) {
            return Some(range);
        }
        // Another program prints before the check. The last lines are lines of the check if it
        // certainly printed them.
        let is_last = !events_after
            .iter()
            .any(|event| matches!(event, OutputEvent::Check(_) | OutputEvent::Reader(_)));
        let certainly_prints = place
            .call
            .summary
            .is_some_and(|summary| !summary.silent && summary.shapes().next().is_some());
        match place.filters.last().and_then(OutputFilter::tail_lines) {
            Some(count) if is_last && certainly_prints => {
                let is_marker = |event: &&OutputEvent| matches!(event, OutputEvent::Marker(_));
                let markers = events_after.iter().filter(is_marker).count();
                let end = range.end.saturating_sub(markers).max(range.start);
                Some(end.saturating_sub(count).max(range.start)..end)
            }
            _ => None,
        }
    }

    /// Returns the number of the line of each event that prints a fixed text. Events with the same
    /// text get the lines with this text in order. They get none if there are more or fewer such
    /// lines than events.
    fn marked_lines(&self, lines: &[&str]) -> Vec<Option<usize>> {
        let mut events: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, event) in self.events.iter().enumerate() {
            if let OutputEvent::Marker(text) = event {
                events.entry(text.as_str()).or_default().push(number);
            }
        }
        let mut printed: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, line) in lines.iter().enumerate() {
            if events.contains_key(line.trim()) {
                printed.entry(line.trim()).or_default().push(number);
            }
        }
        let mut marked = vec![None; self.events.len()];
        for (text, events) in events {
            let printed = printed.remove(text).unwrap_or_default();
            if printed.len() != events.len() {
                continue;
            }
            for (event, line) in events.into_iter().zip(printed) {
                if let Some(marked) = marked.get_mut(event) {
                    *marked = Some(line);
                }
            }
        }
        marked
    }

    /// Whether an `echo` of the command line prints this line.
    pub(super) fn prints(&self, line: &str) -> bool {
        self.echoes.iter().any(|echo| match echo.after {
            Some(_) => echo.code_in(line).is_some(),
            None => echo.before == line.trim(),
        })
    }
}

/// Returns the form of a file name in which `./NAME` equals `NAME`, and `${NAME}` equals `$NAME`.
pub(super) fn file_name(name: &str) -> String {
    let braced = name.strip_prefix("${").and_then(|name| name.strip_suffix('}'));
    braced.map_or_else(|| name.trim_start_matches("./").to_owned(), |name| format!("${name}"))
}
