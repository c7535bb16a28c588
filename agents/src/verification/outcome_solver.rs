//! Finds which outcomes of the checks in a command line agree with what is known about the run.
//!
//! For each part of the line, and for each way in which the part can end, the solver combines the
//! possible outcomes of the checks in it from the outcomes in smaller parts. Evidence (the exit
//! code, a printed code, a summary) excludes ways. A check with one remaining outcome is decided.

use super::check_plan::{
    CheckPlan, CommandListItem, ExitCodeTree, MAX_CHECKS, PipeCode, PrintedExitCode,
};
use forge_store::shell::syntax_tree::ChainOperator;
use std::collections::HashSet;

/// The outcomes of a check, as bits.
pub(super) const OK: u64 = 1;
pub(super) const FAILED: u64 = 2;
pub(super) const NOT_RUN: u64 = 4;
/// The number of bits per check in the combined outcomes.
const BITS: usize = 4;

const _: () = assert!(MAX_CHECKS * BITS <= 64);

/// The part that determined an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitCodeSource {
    Check(usize),
    Other,
}

/// One way in which a part can end: the possible outcomes of the checks in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PossibleEnd {
    outcomes: u64,
    code_source: ExitCodeSource,
}

/// The ways in which a part can end. An `exit` ends the whole line.
#[derive(Clone, Copy, Debug, Default)]
struct PossibleEnds {
    /// With exit code 0.
    zero: Option<PossibleEnd>,
    /// With another exit code.
    nonzero: Option<PossibleEnd>,
    /// By an `exit` with code 0.
    exit_zero: Option<PossibleEnd>,
    /// By an `exit` with another code.
    exit_nonzero: Option<PossibleEnd>,
}

/// What is known about a run besides the line itself.
pub(super) struct SolverEvidence<'a> {
    /// The outcomes that each check may have.
    pub(super) allowed: [u64; MAX_CHECKS],
    /// Whether exit code 0 of a check means that it passed.
    pub(super) decides: [bool; MAX_CHECKS],
    pub(super) lines: &'a [&'a str],
    /// The same lines, trimmed.
    pub(super) texts: &'a HashSet<&'a str>,
    /// Whether the output is complete: a text that it does not contain was not printed.
    pub(super) whole: bool,
    /// Whether the recorded output has all lines.
    pub(super) all_recorded: bool,
    /// Whether the recorded output has the last lines.
    pub(super) end_recorded: bool,
    /// Whether the output says that a folder could not be entered.
    pub(super) not_entered: bool,
}

/// The remaining possible outcomes of the checks.
#[derive(Debug)]
pub(super) struct RemainingOutcomes {
    outcomes: u64,
    /// The check whose exit code is the code of the line, if that is not 0.
    pub(super) failed_check: Option<usize>,
    /// The exit code of each check, if the output contains it.
    pub(super) codes: [Option<i64>; MAX_CHECKS],
}

impl RemainingOutcomes {
    /// The possible outcomes of this check.
    pub(super) fn outcomes_of(&self, check: usize) -> u64 {
        (self.outcomes >> (check * BITS)) & (OK | FAILED | NOT_RUN)
    }
}

/// Computes the outcomes that agree with the exit code of the line. There are none if the line
/// cannot have ended this way.
pub(super) fn solve(
    line: &CheckPlan,
    exit_code: Option<i64>,
    known: &SolverEvidence<'_>,
) -> Option<RemainingOutcomes> {
    let succeeded = succeeded(&line.tree, exit_code);
    let mut solver = OutcomeSolver {
        line,
        known,
        succeeded,
        is_earlier_round: false,
        codes: [None; MAX_CHECKS],
    };
    let ways = solver.part(&line.tree);
    let zero = either(ways.zero, ways.exit_zero);
    let nonzero = either(ways.nonzero, ways.exit_nonzero);
    let way = match exit_code {
        Some(0) => zero,
        Some(_) => nonzero,
        None => either(zero, nonzero),
    }?;
    let failed_check = match way.code_source {
        ExitCodeSource::Check(check) if exit_code.is_some_and(|code| code != 0) => Some(check),
        _ => None,
    };
    Some(RemainingOutcomes { outcomes: way.outcomes, failed_check, codes: solver.codes })
}

/// Returns the commands in an `&&` chain at the end of the line that never end with the exit code
/// of the line: if they ran, they ended with 0.
fn succeeded(tree: &ExitCodeTree, exit_code: Option<i64>) -> Vec<&ExitCodeTree> {
    let last = match tree {
        ExitCodeTree::List(items) => items.last(),
        _ => None,
    };
    let chain = match last.map(|item| (&item.tree, item.background)) {
        Some((ExitCodeTree::Chain(links), false)) => links.as_slice(),
        _ => &[],
    };
    let Some(exit_code) = exit_code.filter(|code| *code != 0) else { return Vec::new() };
    if chain.iter().any(|(link, _)| *link != ChainOperator::And) {
        return Vec::new();
    }
    let others = |tree: &&ExitCodeTree| match tree {
        ExitCodeTree::Codes(codes) => !codes.contains(&exit_code),
        _ => false,
    };
    chain.iter().map(|(_, tree)| tree).filter(others).collect()
}

/// Combines two ways in which a part can end: it ended in one or the other.
fn either(a: Option<PossibleEnd>, b: Option<PossibleEnd>) -> Option<PossibleEnd> {
    match (a, b) {
        (Some(a), Some(b)) => Some(PossibleEnd {
            outcomes: a.outcomes | b.outcomes,
            code_source: if a.code_source == b.code_source {
                a.code_source
            } else {
                ExitCodeSource::Other
            },
        }),
        (a, b) => a.or(b),
    }
}

/// Combines the outcomes of parts that all run, or all do not run.
fn together(mut parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.try_fold(0, |all, outcomes| Some(all | outcomes?))
}

/// Combines two parts that run in sequence: the exit code is that of the second.
fn in_sequence(first: PossibleEnd, second: Option<PossibleEnd>) -> Option<PossibleEnd> {
    second.map(|way| PossibleEnd { outcomes: first.outcomes | way.outcomes, ..way })
}

/// Adds outcomes to a way and keeps the source of its exit code.
fn with_outcomes(way: Option<PossibleEnd>, outcomes: Option<u64>) -> Option<PossibleEnd> {
    way.zip(outcomes).map(|(way, more)| PossibleEnd { outcomes: way.outcomes | more, ..way })
}

/// The end of a part without checks.
const NOTHING: PossibleEnd = PossibleEnd { outcomes: 0, code_source: ExitCodeSource::Other };

impl PossibleEnds {
    /// A part without checks that ends with 0.
    const ZERO: Self =
        Self { zero: Some(NOTHING), nonzero: None, exit_zero: None, exit_nonzero: None };

    /// Adds the ways of a part that runs after `first`.
    fn add(&mut self, first: Option<PossibleEnd>, second: &Self) {
        let Some(first) = first else { return };
        self.zero = either(self.zero, in_sequence(first, second.zero));
        self.nonzero = either(self.nonzero, in_sequence(first, second.nonzero));
        self.exit_zero = either(self.exit_zero, in_sequence(first, second.exit_zero));
        self.exit_nonzero = either(self.exit_nonzero, in_sequence(first, second.exit_nonzero));
    }

    /// The ways in which an `exit` before a part ended the line. The part did not run: `skipped`
    /// has the outcomes of its checks.
    fn exits(before: &Self, skipped: Option<u64>) -> Self {
        Self {
            exit_zero: with_outcomes(before.exit_zero, skipped),
            exit_nonzero: with_outcomes(before.exit_nonzero, skipped),
            ..Self::default()
        }
    }

    /// The ways if an `exit` ends only this part.
    fn contained(&self) -> Self {
        Self {
            zero: either(self.zero, self.exit_zero),
            nonzero: either(self.nonzero, self.exit_nonzero),
            ..Self::default()
        }
    }

    /// All ways together.
    fn all(&self) -> Option<PossibleEnd> {
        let ends = self.contained();
        either(ends.zero, ends.nonzero)
    }
}

/// Computes the ways in which the parts of a line can end.
struct OutcomeSolver<'k> {
    line: &'k CheckPlan,
    /// The commands that are known to have ended with 0 if they ran.
    succeeded: Vec<&'k ExitCodeTree>,
    known: &'k SolverEvidence<'k>,
    /// Whether a part is solved for a round of a loop before the last one. What is known about a
    /// check is about its last run, so it does not apply to such a round.
    is_earlier_round: bool,
    codes: [Option<i64>; MAX_CHECKS],
}

impl OutcomeSolver<'_> {
    /// The ways in which a part of the line can end.
    fn part(&mut self, tree: &ExitCodeTree) -> PossibleEnds {
        let any = Some(NOTHING);
        match tree {
            ExitCodeTree::Check(check) => self.check(*check),
            ExitCodeTree::Codes(_) if self.succeeded.iter().any(|it| std::ptr::eq(*it, tree)) => {
                PossibleEnds::ZERO
            }
            ExitCodeTree::Any | ExitCodeTree::Codes(_) => {
                PossibleEnds { zero: any, nonzero: any, ..PossibleEnds::default() }
            }
            ExitCodeTree::Enter if self.known.not_entered => {
                PossibleEnds { nonzero: any, ..PossibleEnds::default() }
            }
            ExitCodeTree::Zero | ExitCodeTree::Enter => PossibleEnds::ZERO,
            ExitCodeTree::Nonzero => PossibleEnds { nonzero: any, ..PossibleEnds::default() },
            ExitCodeTree::Echo(text) => {
                let printed = self.known.texts.contains(text.as_str());
                if printed || !self.known.whole {
                    PossibleEnds::ZERO
                } else {
                    PossibleEnds::default()
                }
            }
            ExitCodeTree::Exit(Some(0)) => {
                PossibleEnds { exit_zero: any, ..PossibleEnds::default() }
            }
            ExitCodeTree::Exit(Some(_)) => {
                PossibleEnds { exit_nonzero: any, ..PossibleEnds::default() }
            }
            ExitCodeTree::Exit(None) | ExitCodeTree::ExitAsBefore => {
                PossibleEnds { exit_zero: any, exit_nonzero: any, ..PossibleEnds::default() }
            }
            ExitCodeTree::List(items) => self.list(items),
            ExitCodeTree::Chain(links) => self.chain(links),
            ExitCodeTree::Pipe { parts, code } => self.pipe(parts, *code, None),
            ExitCodeTree::Not(inner) => {
                let ways = self.part(inner);
                let not = |way: Option<PossibleEnd>| {
                    way.map(|way| PossibleEnd { code_source: ExitCodeSource::Other, ..way })
                };
                PossibleEnds { zero: not(ways.nonzero), nonzero: not(ways.zero), ..ways }
            }
            ExitCodeTree::Subshell(inner) => self.part(inner).contained(),
            ExitCodeTree::If { arms, otherwise } => self.arms(arms, otherwise.as_deref()),
            ExitCodeTree::Loop { condition, body } => self.repeated(condition.as_deref(), body),
        }
    }

    fn allowed(&self, check: usize) -> u64 {
        match self.is_earlier_round {
            true => OK | FAILED | NOT_RUN,
            false => self.known.allowed.get(check).copied().unwrap_or_default(),
        }
    }

    fn check(&self, check: usize) -> PossibleEnds {
        let allowed = self.allowed(check);
        let decides = self.known.decides.get(check).copied().unwrap_or_default();
        let way = |outcomes: u64| {
            (outcomes != 0).then_some(PossibleEnd {
                outcomes: outcomes << (check * BITS),
                code_source: ExitCodeSource::Check(check),
            })
        };
        let good = if decides { OK } else { OK | FAILED };
        PossibleEnds {
            zero: way(allowed & good),
            nonzero: way(allowed & FAILED),
            ..PossibleEnds::default()
        }
    }

    /// The outcomes of the checks in a part that does not run; `None` if one is known to have run.
    fn not_run(&self, tree: &ExitCodeTree) -> Option<u64> {
        let not_run = |tree: &ExitCodeTree| self.not_run(tree);
        match tree {
            ExitCodeTree::Check(check) => {
                let allowed = self.allowed(*check);
                (allowed & NOT_RUN != 0).then_some(NOT_RUN << (check * BITS))
            }
            ExitCodeTree::List(items) => together(items.iter().map(|item| not_run(&item.tree))),
            ExitCodeTree::Chain(links) => together(links.iter().map(|(_, tree)| not_run(tree))),
            ExitCodeTree::Pipe { parts, .. } => together(parts.iter().map(not_run)),
            ExitCodeTree::Not(inner) | ExitCodeTree::Subshell(inner) => self.not_run(inner),
            ExitCodeTree::If { arms, otherwise } => {
                let arms = arms.iter().flat_map(|(when, then)| [when, then]);
                together(arms.chain(otherwise.as_deref()).map(not_run))
            }
            ExitCodeTree::Loop { condition, body } => {
                together(condition.as_deref().into_iter().chain([&**body]).map(not_run))
            }
            _ => Some(0),
        }
    }

    fn list(&mut self, items: &[CommandListItem]) -> PossibleEnds {
        let mut before = PossibleEnds::ZERO;
        for item in items {
            let mut ways = self.item(item);
            if item.background {
                ways = PossibleEnds { zero: ways.all(), ..PossibleEnds::default() };
            } else if item.ends_list {
                ways.exit_nonzero = either(ways.exit_nonzero, ways.nonzero);
                // Whether a failure of these parts ends the list is not computed. A failing command
                // inside a group has already ended the list there.
                if !matches!(
                    item.tree,
                    ExitCodeTree::Chain(_)
                        | ExitCodeTree::List(_)
                        | ExitCodeTree::Not(_)
                        | ExitCodeTree::If { .. }
                ) {
                    ways.nonzero = None;
                }
            }
            let mut after = PossibleEnds::exits(&before, self.not_run(&item.tree));
            if let ExitCodeTree::ExitAsBefore = item.tree {
                after.exit_zero = either(after.exit_zero, before.zero);
                after.exit_nonzero = either(after.exit_nonzero, before.nonzero);
            } else if item.keeps_exit_code {
                let outcomes = either(ways.zero, ways.nonzero).map(|way| way.outcomes);
                after.zero = with_outcomes(before.zero, outcomes);
                after.nonzero = with_outcomes(before.nonzero, outcomes);
                // An `exit $s` ends with the kept code, which is not computed.
                if !exits_with_unknown(&item.tree) {
                    let exits = PossibleEnds { zero: None, nonzero: None, ..ways };
                    after.add(either(before.zero, before.nonzero), &exits);
                }
            } else {
                after.add(either(before.zero, before.nonzero), &ways);
            }
            before = after;
        }
        before
    }

    /// The ways of one command of a list. If the output contains its exit code, only those with
    /// that code.
    fn item(&mut self, item: &CommandListItem) -> PossibleEnds {
        let code = item.printed.and_then(|printed| self.printed(printed));
        let (Some(code), Some(printed)) = (code, item.printed) else {
            return self.part(&item.tree);
        };
        if printed.of_first {
            match &item.tree {
                ExitCodeTree::Pipe { parts, code: decides } => {
                    return self.pipe(parts, *decides, Some(code));
                }
                // The check is its own first program.
                ExitCodeTree::Check(_) => {}
                tree => return self.part(tree),
            }
        }
        let ways = self.part(&item.tree);
        self.with_code(ways, code)
    }

    /// Limits the ways of a part to those with this code and without an `exit`.
    fn with_code(&mut self, ways: PossibleEnds, code: i64) -> PossibleEnds {
        let way = if code == 0 { ways.zero } else { ways.nonzero };
        if let Some(PossibleEnd { code_source: ExitCodeSource::Check(check), .. }) = way
            && let Some(known) = self.codes.get_mut(check)
        {
            *known = Some(code);
        }
        match code {
            0 => PossibleEnds { zero: way, ..PossibleEnds::default() },
            _ => PossibleEnds { nonzero: way, ..PossibleEnds::default() },
        }
    }

    /// The exit code that an `echo` printed. If it is the last command, it printed the last line
    /// of the output. Otherwise the lines of its form are matched, in order, with the echoes of
    /// that form; if their numbers differ, the code is not known.
    fn printed(&self, printed: PrintedExitCode) -> Option<i64> {
        let echoes = &self.line.echoes;
        let form = echoes.get(printed.echo)?;
        let lines = &self.known.lines;
        if self.line.ends_with_echo && printed.echo + 1 == echoes.len() && self.known.end_recorded {
            return form.code_in(lines.iter().rev().find(|line| !line.trim().is_empty())?);
        }
        let mut sure = echoes
            .iter()
            .enumerate()
            .filter(|(_, echo)| echo.runs_once && echo.is_code && form.may_be_printed_by(echo));
        let codes: Vec<i64> = lines.iter().filter_map(|line| form.code_in(line)).collect();
        let as_many = sure.clone().count() == codes.len();
        let place = sure.position(|(number, _)| number == printed.echo)?;
        codes.get(place).copied().filter(|_| as_many && self.known.all_recorded)
    }

    fn chain(&mut self, links: &[(ChainOperator, ExitCodeTree)]) -> PossibleEnds {
        let mut before = PossibleEnds::ZERO;
        for (link, tree) in links {
            let ways = self.part(tree);
            let skipped = self.not_run(tree);
            let mut after = PossibleEnds::exits(&before, skipped);
            let runs = match link {
                ChainOperator::And => {
                    after.nonzero = with_outcomes(before.nonzero, skipped);
                    before.zero
                }
                ChainOperator::Or => {
                    after.zero = with_outcomes(before.zero, skipped);
                    before.nonzero
                }
            };
            after.add(runs, &ways);
            before = after;
        }
        before
    }

    /// The ways of a pipeline. `first` is the exit code of its first program, if known.
    fn pipe(
        &mut self,
        parts: &[ExitCodeTree],
        decides: PipeCode,
        first: Option<i64>,
    ) -> PossibleEnds {
        let mut done: Vec<PossibleEnds> = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let ways = self.part(part).contained();
            let code = first.filter(|_| number == 0);
            done.push(code.map_or(ways, |code| self.with_code(ways, code)));
        }
        let part = match decides {
            PipeCode::First => done.split_first(),
            _ => done.split_last(),
        };
        let Some((last, others)) = part else { return PossibleEnds::ZERO };
        let any = |ways: &PossibleEnds| ways.all().map(|way| way.outcomes);
        let before = together(others.iter().map(any));
        if decides != PipeCode::AnyFailed {
            // zsh does not set `PIPESTATUS`: an `exit` with it then ends with the code 0.
            let may_be_unset = decides == PipeCode::First && first.is_none();
            let zero = if may_be_unset { either(last.zero, last.nonzero) } else { last.zero };
            return PossibleEnds {
                zero: with_outcomes(zero, before),
                nonzero: with_outcomes(last.nonzero, before),
                ..PossibleEnds::default()
            };
        }
        let zero = together(done.iter().map(|ways| ways.zero.map(|way| way.outcomes)));
        let mut nonzero = None;
        for (number, ways) in done.iter().enumerate() {
            let others = done.iter().enumerate().filter(|(other, _)| *other != number);
            let others = together(others.map(|(_, ways)| any(ways)));
            nonzero = either(nonzero, with_outcomes(ways.nonzero, others));
        }
        let zero = zero.map(|outcomes| PossibleEnd { outcomes, ..NOTHING });
        PossibleEnds { zero, nonzero, ..PossibleEnds::default() }
    }

    fn arms(
        &mut self,
        arms: &[(ExitCodeTree, ExitCodeTree)],
        otherwise: Option<&ExitCodeTree>,
    ) -> PossibleEnds {
        let mut rest = otherwise.map_or(PossibleEnds::ZERO, |tree| self.part(tree));
        let mut rest_skipped = otherwise.map_or(Some(0), |tree| self.not_run(tree));
        for (when, body) in arms.iter().rev() {
            let (condition, runs) = (self.part(when), self.part(body));
            let skipped = self.not_run(body);
            let no_more = skipped.zip(rest_skipped).map(|(body, rest)| body | rest);
            let mut ways = PossibleEnds::exits(&condition, no_more);
            ways.add(with_outcomes(condition.zero, rest_skipped), &runs);
            ways.add(with_outcomes(condition.nonzero, skipped), &rest);
            rest_skipped = no_more.zip(self.not_run(when)).map(|(rest, when)| rest | when);
            rest = ways;
        }
        rest
    }

    /// The ways of a loop. The number of rounds and the outcomes of each are not known.
    fn repeated(&mut self, condition: Option<&ExitCodeTree>, body: &ExitCodeTree) -> PossibleEnds {
        let last = self.part(body);
        let earlier = self.earlier_round(body);
        let all = |end| self.with_earlier_rounds(end, earlier);
        let ways = PossibleEnds {
            zero: all(last.zero),
            nonzero: all(last.nonzero),
            exit_zero: all(last.exit_zero),
            exit_nonzero: all(last.exit_nonzero),
        };
        let skipped = self.not_run(body).map(|outcomes| PossibleEnd { outcomes, ..NOTHING });
        let rounds = either(ways.all(), skipped);
        let before = condition.map(|condition| self.part(condition));
        let Some(before) = before else {
            // The exit code is that of the last round.
            return PossibleEnds { zero: rounds, ..ways };
        };
        let mut after = PossibleEnds::default();
        let any = PossibleEnds { zero: rounds, nonzero: rounds, ..PossibleEnds::default() };
        after.add(before.all(), &any);
        let exits_zero = ways.exit_zero.or(before.exit_zero).is_some();
        let exits_nonzero = ways.exit_nonzero.or(before.exit_nonzero).is_some();
        after.exit_zero = after.zero.filter(|_| exits_zero);
        after.exit_nonzero = after.zero.filter(|_| exits_nonzero);
        after
    }

    /// Returns the outcomes of a round that was not the last: no `exit` ended it.
    fn earlier_round(&mut self, body: &ExitCodeTree) -> u64 {
        if self.is_earlier_round {
            return 0;
        }
        let codes = self.codes;
        self.is_earlier_round = true;
        let ways = self.part(body);
        (self.is_earlier_round, self.codes) = (false, codes);
        either(ways.zero, ways.nonzero).map_or(0, |way| way.outcomes)
    }

    /// Adds the outcomes that the checks of a loop may have had before its last round. A check that
    /// failed in the last round counts as failed, whatever happened before.
    fn with_earlier_rounds(&self, last: Option<PossibleEnd>, earlier: u64) -> Option<PossibleEnd> {
        let last = last?;
        let mut outcomes = last.outcomes;
        for (check, allowed) in self.known.allowed.iter().enumerate() {
            let found = (last.outcomes >> (check * BITS)) & (OK | FAILED | NOT_RUN);
            if found != 0 && found != FAILED {
                outcomes |= earlier & (*allowed << (check * BITS));
            }
        }
        Some(PossibleEnd { outcomes, ..last })
    }
}

/// Returns whether a part has an `exit` with a code that is not known, such as `exit $s`.
fn exits_with_unknown(tree: &ExitCodeTree) -> bool {
    match tree {
        ExitCodeTree::Exit(None) | ExitCodeTree::ExitAsBefore => true,
        ExitCodeTree::List(items) => items.iter().any(|item| exits_with_unknown(&item.tree)),
        ExitCodeTree::Chain(links) => links.iter().any(|(_, tree)| exits_with_unknown(tree)),
        ExitCodeTree::Not(inner) => exits_with_unknown(inner),
        ExitCodeTree::If { arms, otherwise } => {
            let arms = arms.iter().flat_map(|(when, then)| [when, then]);
            arms.chain(otherwise.as_deref()).any(exits_with_unknown)
        }
        ExitCodeTree::Loop { condition, body } => {
            condition.as_deref().is_some_and(exits_with_unknown) || exits_with_unknown(body)
        }
        _ => false,
    }
}
