//! Which outcomes of the checks in a command line agree with what is known of it.
//!
//! For each part of the line, and for each way it can end, the outcomes that every check can have had are put
//! together from those of its parts. What is known (the exit code, a code that was printed, a summary) leaves ways
//! out; a check of which one outcome is left is decided.

use super::plan::{Item, MAX_CHECKS, Plan, Printed};
use crate::shell::tree::Link;
use std::collections::HashSet;

/// Outcomes of a check, as bits.
pub(super) const OK: u64 = 1;
pub(super) const FAILED: u64 = 2;
pub(super) const NOT_RUN: u64 = 4;
/// Bits of a check in the outcomes of all.
const BITS: usize = 4;

const _: () = assert!(MAX_CHECKS * BITS <= 64);

/// Whose exit code the code of a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    Check(usize),
    Other,
}

/// A way in which a part can end: the possible outcomes of the checks in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    outcomes: u64,
    author: Author,
}

/// The ways in which a part can end. By `exit` it ends everything.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    zero: Option<Way>,
    nonzero: Option<Way>,
    exit_zero: Option<Way>,
    exit_nonzero: Option<Way>,
}

/// What is known besides the line itself.
pub(super) struct Known<'a> {
    /// The outcomes that each check may have.
    pub(super) allowed: [u64; MAX_CHECKS],
    /// Whether the exit code 0 of a check says that it passed.
    pub(super) decides: [bool; MAX_CHECKS],
    pub(super) lines: &'a [&'a str],
    /// The same lines without the blanks around them.
    pub(super) texts: &'a HashSet<&'a str>,
    /// Whether the output is whole, so that a text that is not in it was not printed.
    pub(super) whole: bool,
    /// Whether it says that a folder could not be entered.
    pub(super) not_entered: bool,
}

/// What is left of the outcomes of the checks.
#[derive(Debug)]
pub(super) struct Left {
    outcomes: u64,
    /// The check whose own exit code the line's code is.
    pub(super) author: Option<usize>,
    /// The exit codes of checks that the output holds.
    pub(super) codes: [Option<i64>; MAX_CHECKS],
}

impl Left {
    /// The possible outcomes of this check.
    pub(super) fn of(&self, check: usize) -> u64 {
        (self.outcomes >> (check * BITS)) & (OK | FAILED | NOT_RUN)
    }
}

/// The outcomes that agree with the exit code of the line. There are none if the line cannot have ended so.
pub(super) fn solve(plan: &Plan, exit_code: Option<i64>, known: &Known<'_>) -> Option<Left> {
    let mut solver = Solver { known, codes: [None; MAX_CHECKS] };
    let ways = solver.part(plan);
    let zero = either(ways.zero, ways.exit_zero);
    let nonzero = either(ways.nonzero, ways.exit_nonzero);
    let way = match exit_code {
        Some(0) => zero,
        Some(_) => nonzero,
        None => either(zero, nonzero),
    }?;
    let author = match way.author {
        Author::Check(check) if exit_code.is_some_and(|code| code != 0) => Some(check),
        _ => None,
    };
    Some(Left { outcomes: way.outcomes, author, codes: solver.codes })
}

fn either(a: Option<Way>, b: Option<Way>) -> Option<Way> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Way {
            outcomes: a.outcomes | b.outcomes,
            author: if a.author == b.author { a.author } else { Author::Other },
        }),
        (a, b) => a.or(b),
    }
}

/// The outcomes of parts that all run, or that all do not.
fn together(mut parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.try_fold(0, |all, outcomes| Some(all | outcomes?))
}

/// One part after another: the code is that of the second.
fn then(first: Way, second: Option<Way>) -> Option<Way> {
    second.map(|way| Way { outcomes: first.outcomes | way.outcomes, ..way })
}

/// A part whose outcomes come to those of a way, which keeps its code.
fn beside(way: Option<Way>, outcomes: Option<u64>) -> Option<Way> {
    way.zip(outcomes).map(|(way, more)| Way { outcomes: way.outcomes | more, ..way })
}

const NOTHING: Way = Way { outcomes: 0, author: Author::Other };

impl Ways {
    const ZERO: Self =
        Self { zero: Some(NOTHING), nonzero: None, exit_zero: None, exit_nonzero: None };

    /// Adds the ways of a part that runs after `first`.
    fn add(&mut self, first: Option<Way>, second: &Self) {
        let Some(first) = first else { return };
        self.zero = either(self.zero, then(first, second.zero));
        self.nonzero = either(self.nonzero, then(first, second.nonzero));
        self.exit_zero = either(self.exit_zero, then(first, second.exit_zero));
        self.exit_nonzero = either(self.exit_nonzero, then(first, second.exit_nonzero));
    }

    /// The exits of what is before a part, which then does not run.
    fn exits(before: &Self, skipped: Option<u64>) -> Self {
        Self {
            exit_zero: beside(before.exit_zero, skipped),
            exit_nonzero: beside(before.exit_nonzero, skipped),
            ..Self::default()
        }
    }

    /// Where an `exit` ends only this part.
    fn contained(&self) -> Self {
        Self {
            zero: either(self.zero, self.exit_zero),
            nonzero: either(self.nonzero, self.exit_nonzero),
            ..Self::default()
        }
    }

    fn all(&self) -> Option<Way> {
        let ends = self.contained();
        either(ends.zero, ends.nonzero)
    }
}

struct Solver<'k> {
    known: &'k Known<'k>,
    codes: [Option<i64>; MAX_CHECKS],
}

impl Solver<'_> {
    fn part(&mut self, plan: &Plan) -> Ways {
        let any = Some(NOTHING);
        match plan {
            Plan::Check(check) => self.check(*check),
            Plan::Any => Ways { zero: any, nonzero: any, ..Ways::default() },
            Plan::Enter if self.known.not_entered => Ways { nonzero: any, ..Ways::default() },
            Plan::Zero | Plan::Enter => Ways::ZERO,
            Plan::Nonzero => Ways { nonzero: any, ..Ways::default() },
            Plan::Echo(text) => {
                let printed = self.known.texts.contains(text.as_str());
                if printed || !self.known.whole { Ways::ZERO } else { Ways::default() }
            }
            Plan::Exit(Some(0)) => Ways { exit_zero: any, ..Ways::default() },
            Plan::Exit(Some(_)) => Ways { exit_nonzero: any, ..Ways::default() },
            Plan::Exit(None) | Plan::ExitAsBefore => {
                Ways { exit_zero: any, exit_nonzero: any, ..Ways::default() }
            }
            Plan::List(items) => self.list(items),
            Plan::Chain(links) => self.chain(links),
            Plan::Pipe { parts, pipefail } => self.pipe(parts, *pipefail, None),
            Plan::Not(inner) => {
                let ways = self.part(inner);
                let not = |way: Option<Way>| way.map(|way| Way { author: Author::Other, ..way });
                Ways { zero: not(ways.nonzero), nonzero: not(ways.zero), ..ways }
            }
            Plan::Subshell(inner) => self.part(inner).contained(),
            Plan::If { arms, otherwise } => self.arms(arms, otherwise.as_deref()),
            Plan::Loop { condition, body } => self.repeated(condition.as_deref(), body),
        }
    }

    fn check(&self, check: usize) -> Ways {
        let allowed = self.known.allowed.get(check).copied().unwrap_or_default();
        let decides = self.known.decides.get(check).copied().unwrap_or_default();
        let way = |outcomes: u64| {
            (outcomes != 0).then_some(Way {
                outcomes: outcomes << (check * BITS),
                author: Author::Check(check),
            })
        };
        let good = if decides { OK } else { OK | FAILED };
        Ways { zero: way(allowed & good), nonzero: way(allowed & FAILED), ..Ways::default() }
    }

    /// The outcomes of the checks in a part that does not run; `None` if one is known to have run.
    fn not_run(&self, plan: &Plan) -> Option<u64> {
        let not_run = |plan: &Plan| self.not_run(plan);
        match plan {
            Plan::Check(check) => {
                let allowed = self.known.allowed.get(*check).copied().unwrap_or_default();
                (allowed & NOT_RUN != 0).then_some(NOT_RUN << (check * BITS))
            }
            Plan::List(items) => together(items.iter().map(|item| not_run(&item.plan))),
            Plan::Chain(links) => together(links.iter().map(|(_, plan)| not_run(plan))),
            Plan::Pipe { parts, .. } => together(parts.iter().map(not_run)),
            Plan::Not(inner) | Plan::Subshell(inner) => self.not_run(inner),
            Plan::If { arms, otherwise } => {
                let arms = arms.iter().flat_map(|(when, then)| [when, then]);
                together(arms.chain(otherwise.as_deref()).map(not_run))
            }
            Plan::Loop { condition, body } => {
                together(condition.as_deref().into_iter().chain([&**body]).map(not_run))
            }
            _ => Some(0),
        }
    }

    fn list(&mut self, items: &[Item]) -> Ways {
        let mut before = Ways::ZERO;
        for item in items {
            let mut ways = self.item(item);
            let mut after = Ways::exits(&before, self.not_run(&item.plan));
            if let Plan::ExitAsBefore = item.plan {
                after.exit_zero = either(after.exit_zero, before.zero);
                after.exit_nonzero = either(after.exit_nonzero, before.nonzero);
            } else if item.keeps {
                let outcomes = ways.all().map(|way| way.outcomes);
                after.zero = beside(before.zero, outcomes);
                after.nonzero = beside(before.nonzero, outcomes);
            } else {
                if item.background {
                    ways = Ways { zero: ways.all(), ..Ways::default() };
                } else if item.ends {
                    ways.exit_nonzero = either(ways.exit_nonzero, ways.nonzero);
                    // Which failures of a chain end the list is not followed.
                    if !matches!(item.plan, Plan::Chain(_) | Plan::Not(_) | Plan::If { .. }) {
                        ways.nonzero = None;
                    }
                }
                after.add(either(before.zero, before.nonzero), &ways);
            }
            before = after;
        }
        before
    }

    /// One command of a list, with the exit code of it that the output holds.
    fn item(&mut self, item: &Item) -> Ways {
        let code = item.printed.as_ref().and_then(|printed| self.printed(printed));
        let (Some(code), Some(printed)) = (code, &item.printed) else {
            return self.part(&item.plan);
        };
        if printed.of_first {
            return match &item.plan {
                Plan::Pipe { parts, pipefail } => self.pipe(parts, *pipefail, Some(code)),
                plan => self.part(plan),
            };
        }
        let ways = self.part(&item.plan);
        self.with_code(ways, code)
    }

    /// The ways of a part that ended with this code and did not end everything.
    fn with_code(&mut self, ways: Ways, code: i64) -> Ways {
        if code == 0 {
            return Ways { zero: ways.zero, ..Ways::default() };
        }
        if let Some(Way { author: Author::Check(check), .. }) = ways.nonzero
            && let Some(known) = self.codes.get_mut(check)
        {
            *known = Some(code);
        }
        Ways { nonzero: ways.nonzero, ..Ways::default() }
    }

    /// The exit code in the last line of this form.
    fn printed(&self, printed: &Printed) -> Option<i64> {
        let of = |line: &&str| {
            let rest = line.trim().strip_prefix(printed.before.as_str())?;
            let code = rest.strip_suffix(printed.after.as_str())?;
            code.bytes().all(|byte| byte.is_ascii_digit()).then(|| code.parse().ok())?
        };
        let mut lines = self.known.lines.iter().rev().filter(|line| !line.trim().is_empty());
        if printed.before.is_empty() && printed.after.is_empty() {
            // A number alone may be anything; at the end it is what was printed last.
            return lines.next().and_then(of);
        }
        lines.find_map(of)
    }

    fn chain(&mut self, links: &[(Link, Plan)]) -> Ways {
        let mut before = Ways::ZERO;
        for (link, plan) in links {
            let ways = self.part(plan);
            let skipped = self.not_run(plan);
            let mut after = Ways::exits(&before, skipped);
            let runs = match link {
                Link::And => {
                    after.nonzero = beside(before.nonzero, skipped);
                    before.zero
                }
                Link::Or => {
                    after.zero = beside(before.zero, skipped);
                    before.nonzero
                }
            };
            after.add(runs, &ways);
            before = after;
        }
        before
    }

    /// A pipeline. `first` is the exit code of its first program, if that is known.
    fn pipe(&mut self, parts: &[Plan], pipefail: bool, first: Option<i64>) -> Ways {
        let mut done: Vec<Ways> = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let ways = self.part(part).contained();
            let code = first.filter(|_| number == 0);
            done.push(code.map_or(ways, |code| self.with_code(ways, code)));
        }
        let Some((last, others)) = done.split_last() else { return Ways::ZERO };
        let any = |ways: &Ways| ways.all().map(|way| way.outcomes);
        let before = together(others.iter().map(any));
        if !pipefail {
            return Ways {
                zero: beside(last.zero, before),
                nonzero: beside(last.nonzero, before),
                ..Ways::default()
            };
        }
        let zero = together(done.iter().map(|ways| ways.zero.map(|way| way.outcomes)));
        let mut nonzero = None;
        for (number, ways) in done.iter().enumerate() {
            let others = done.iter().enumerate().filter(|(other, _)| *other != number);
            let others = together(others.map(|(_, ways)| any(ways)));
            nonzero = either(nonzero, beside(ways.nonzero, others));
        }
        let zero = zero.map(|outcomes| Way { outcomes, ..NOTHING });
        Ways { zero, nonzero, ..Ways::default() }
    }

    fn arms(&mut self, arms: &[(Plan, Plan)], otherwise: Option<&Plan>) -> Ways {
        let mut rest = otherwise.map_or(Ways::ZERO, |plan| self.part(plan));
        let mut rest_skipped = otherwise.map_or(Some(0), |plan| self.not_run(plan));
        for (when, body) in arms.iter().rev() {
            let (condition, runs) = (self.part(when), self.part(body));
            let skipped = self.not_run(body);
            let no_more = skipped.zip(rest_skipped).map(|(body, rest)| body | rest);
            let mut ways = Ways::exits(&condition, no_more);
            ways.add(beside(condition.zero, rest_skipped), &runs);
            ways.add(beside(condition.nonzero, skipped), &rest);
            rest_skipped = no_more.zip(self.not_run(when)).map(|(rest, when)| rest | when);
            rest = ways;
        }
        rest
    }

    /// A loop, of which neither the number of rounds nor all their outcomes are known.
    fn repeated(&mut self, condition: Option<&Plan>, body: &Plan) -> Ways {
        let ways = self.part(body);
        let skipped = self.not_run(body).map(|outcomes| Way { outcomes, ..NOTHING });
        let rounds = either(ways.all(), skipped);
        let before = condition.map(|condition| self.part(condition));
        let Some(before) = before else {
            // The code of the last round; a check that failed in it failed.
            return Ways { zero: rounds, ..ways };
        };
        let mut after = Ways::default();
        let any = Ways { zero: rounds, nonzero: rounds, ..Ways::default() };
        after.add(before.all(), &any);
        after.exit_zero = rounds.and_then(|_| after.zero.filter(|_| ways.exit_zero.is_some()));
        after.exit_nonzero = after.zero.filter(|_| ways.exit_nonzero.is_some());
        after
    }
}
