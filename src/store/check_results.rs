//! The last result of each check, and whether the check fails or passes.

use crate::engine::fact::SourcedFact;
use crate::model::claim::{FactText, VerificationResult, VerificationStatus};
use crate::model::{Fact, Kind, Timestamp};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The last result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct LastCheckResult {
    /// The id of the verification with the result.
    pub id: String,
    /// When the check ended.
    pub at: Timestamp,
    /// The status; never `unknown` or `skipped`.
    pub status: VerificationStatus,
    /// The name of the check, with its targets if several checks in the list share the name.
    pub text: String,
    /// The description of the result, if there is one.
    pub description: Option<String>,
    /// The exit code of the command.
    pub exit_code: Option<i64>,
    of: CheckIdentity,
}

/// What identifies a check.
#[derive(Clone, Debug, PartialEq)]
struct CheckIdentity {
    name: String,
    /// The command, if its tool and folder are known.
    run: Option<CheckCommand>,
    target: CheckTarget,
}

/// The tool of a check, its subcommand (empty if it has none) and the folder in which it ran.
type CheckCommand = (String, String, String);

/// The words of the target of a check, by their effect.
#[derive(Clone, Debug, Default, PartialEq)]
struct CheckTarget {
    /// All words, in their order.
    words: Vec<String>,
    /// Words that limit the run to a scope, such as a folder or a test.
    scopes: Vec<String>,
    /// Words that begin with `+`, which widen the run.
    wider: Vec<String>,
    /// Words that begin with `-`, which narrow the run.
    narrower: Vec<String>,
    /// Words that begin with `=`, which make it another run.
    exact: Vec<String>,
}

/// The last results of checks, by whether they pass. Each list is ordered by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckResults {
    /// Checks that fail.
    pub failing: Vec<LastCheckResult>,
    /// Checks that pass.
    pub passed: Vec<LastCheckResult>,
}

/// How a result compares with the earlier results of the same check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckTurn {
    /// It fails and did not fail before.
    FirstFailure,
    /// It fails again.
    StillFails,
    /// It passes after it, or a check that it covers, failed.
    PassesAgain,
    /// It is the first of its name to pass.
    FirstPass,
    /// It passes again.
    StillPasses,
    /// The result is unknown, or the check was skipped.
    Undecided,
}

impl CheckTurn {
    /// Returns whether it is the first failure, a pass after a failure, or the first pass.
    pub(crate) const fn is_news(self) -> bool {
        matches!(self, Self::FirstFailure | Self::PassesAgain | Self::FirstPass)
    }
}

/// Follows the results of checks in the order in which they happened.
#[derive(Debug, Default)]
pub(crate) struct CheckTracker {
    failing: ResultIndex,
    passed: ResultIndex,
    passed_names: BTreeSet<String>,
}

/// The last results of checks, with indexes that find those related to another check.
#[derive(Debug, Default)]
struct ResultIndex {
    /// The results by a number that grows with each result.
    results: BTreeMap<u64, LastCheckResult>,
    /// The results of each command by scope. Results without a scope have the empty text.
    scopes: BTreeMap<CheckCommand, NumbersByText>,
    /// The results by the parts of their names, in two sets: with a known command, and without.
    names: BTreeMap<bool, NumbersByText>,
    next: u64,
}

/// Numbers of results by a text.
type NumbersByText = BTreeMap<String, BTreeSet<u64>>;

impl CheckTracker {
    /// Adds the next result.
    ///
    /// A result replaces an earlier one of the same check, and of a check that it covers: a run of
    /// all tests replaces a run of some. `unknown` and `skipped` results replace nothing.
    pub(crate) fn add(&mut self, fact: &Fact, found: &VerificationResult) -> CheckTurn {
        let status = found.status.unwrap_or(VerificationStatus::Unknown);
        if matches!(status, VerificationStatus::Skipped | VerificationStatus::Unknown) {
            return CheckTurn::Undecided;
        }
        let of = CheckIdentity::of(fact, found);
        let good = status == VerificationStatus::Passed;
        let settled = self.failing.remove_related(&of, |earlier| of.covers(earlier));
        // If a part fails, a check that covers it does not pass any more.
        self.passed
            .remove_related(&of, |earlier| of.covers(earlier) || (!good && earlier.covers(&of)));
        let turn = match good {
            false if settled.iter().any(|earlier| earlier.of.covers(&of)) => CheckTurn::StillFails,
            false => CheckTurn::FirstFailure,
            true => {
                let is_new = self.passed_names.insert(of.name.clone());
                match (settled.is_empty(), is_new) {
                    (false, _) => CheckTurn::PassesAgain,
                    (true, true) => CheckTurn::FirstPass,
                    (true, false) => CheckTurn::StillPasses,
                }
            }
        };
        let list = if good { &mut self.passed } else { &mut self.failing };
        list.insert(LastCheckResult {
            id: fact.id.clone(),
            at: fact.at,
            status,
            text: of.name.clone(),
            description: display_text(&found.description).map(Cow::into_owned),
            exit_code: found.exit_code,
            of,
        });
        turn
    }

    /// Returns the names of the checks that fail now, with their targets, sorted.
    pub(crate) fn failing_labels(&self) -> Vec<String> {
        let mut names: Vec<_> = self.failing.results.values().map(|it| it.of.label()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the last result of each check.
    pub(crate) fn finish(self) -> CheckResults {
        let mut results = CheckResults {
            failing: self.failing.results.into_values().collect(),
            passed: self.passed.results.into_values().collect(),
        };
        name_apart(&mut results.failing);
        name_apart(&mut results.passed);
        results
    }
}

impl ResultIndex {
    fn insert(&mut self, result: LastCheckResult) {
        let number = self.next;
        self.next += 1;
        self.each_key(&result.of, |numbers, text| match numbers.get_mut(text) {
            Some(numbers) => drop(numbers.insert(number)),
            None => drop(numbers.insert(text.to_owned(), BTreeSet::from([number]))),
        });
        self.results.insert(number, result);
    }

    /// Removes and returns the results for whose checks `is_removed` holds, among the checks that
    /// cover this one or are covered by it.
    fn remove_related(
        &mut self,
        of: &CheckIdentity,
        is_removed: impl Fn(&CheckIdentity) -> bool,
    ) -> Vec<LastCheckResult> {
        let mut numbers = self.related(of);
        numbers.retain(|number| self.results.get(number).is_some_and(|it| is_removed(&it.of)));
        let mut removed = Vec::new();
        for number in numbers {
            if let Some(result) = self.results.remove(&number) {
                self.each_key(&result.of, |numbers, text| {
                    if let Some(of_text) = numbers.get_mut(text) {
                        of_text.remove(&number);
                        if of_text.is_empty() {
                            numbers.remove(text);
                        }
                    }
                });
                removed.push(result);
            }
        }
        removed
    }

    /// Changes the entries of a check in the indexes: calls `change` with each index, and each text
    /// that the check has in it.
    fn each_key(&mut self, of: &CheckIdentity, change: impl Fn(&mut NumbersByText, &str)) {
        let names = self.names.entry(of.run.is_some()).or_default();
        for part in of.parts() {
            change(names, part);
        }
        if let Some(run) = &of.run {
            let scopes = self.scopes.entry(run.clone()).or_default();
            for scope in of.target.indexed_scopes() {
                change(scopes, scope);
            }
        }
    }

    /// Returns the numbers of the results of checks that cover this one or are covered by it, and
    /// of some that do neither.
    fn related(&self, of: &CheckIdentity) -> BTreeSet<u64> {
        let mut numbers = BTreeSet::new();
        if let Some(scopes) = of.run.as_ref().and_then(|run| self.scopes.get(run)) {
            if of.target.scopes.is_empty() {
                numbers.extend(scopes.values().flatten());
            }
            numbers.extend(equal_to(scopes, ""));
            for scope in &of.target.scopes {
                let wider = scope.char_indices().map(|(at, _)| scope.split_at(at));
                for (folder, _) in wider.filter(|(_, rest)| begins_inside(rest)) {
                    numbers.extend(equal_to(scopes, folder));
                }
                numbers.extend(equal_to(scopes, scope));
                numbers.extend(beginning_with(scopes, format!("{scope}/")));
                numbers.extend(beginning_with(scopes, format!("{scope}::")));
            }
        }
        for (has_run, names) in &self.names {
            // Names are compared only if the command of one of the two checks is unknown.
            if !(*has_run && of.run.is_some()) {
                of.parts().for_each(|part| numbers.extend(equal_to(names, part)));
            }
        }
        numbers
    }
}

fn equal_to<'a>(numbers: &'a NumbersByText, text: &str) -> impl Iterator<Item = &'a u64> + use<'a> {
    numbers.get(text).into_iter().flatten()
}

fn beginning_with(numbers: &NumbersByText, prefix: String) -> impl Iterator<Item = &u64> {
    let range = numbers.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    range.take_while(move |(text, _)| text.starts_with(&prefix)).flat_map(|(_, numbers)| numbers)
}

/// Returns whether the text after the name of a folder or module names something inside of it.
fn begins_inside(rest: &str) -> bool {
    rest.starts_with('/') || rest.starts_with("::")
}

/// Returns the name of a check with its targets: `go test -run TestA pkg/.`.
pub(crate) fn check_label(fact: &Fact, found: &VerificationResult) -> String {
    CheckIdentity::of(fact, found).label()
}

impl CheckResults {
    /// Computes the last result of each check in these facts, which are ordered by time.
    fn of<'f>(facts: impl Iterator<Item = &'f Fact>) -> Self {
        let mut checks = CheckTracker::default();
        for fact in facts {
            if let Ok(found) = VerificationResult::from_value(&fact.value) {
                checks.add(fact, &found);
            }
        }
        checks.finish()
    }

    /// Computes the last result of each check among these facts of a state.
    #[must_use]
    pub fn of_facts(facts: &[SourcedFact]) -> Self {
        let facts = facts.iter().map(|known| &known.fact);
        Self::of(facts.filter(|fact| fact.kind == Kind::Verification))
    }
}

/// Appends the targets of a check to its name if another check has the same name.
fn name_apart(list: &mut [LastCheckResult]) {
    let names: Vec<String> = list.iter().map(|result| result.of.name.clone()).collect();
    let mut counts = BTreeMap::new();
    names.iter().for_each(|name| *counts.entry(name).or_insert(0_u32) += 1);
    for result in list {
        if counts.get(&result.of.name).is_some_and(|count| *count > 1) {
            result.of.push_targets(&mut result.text);
        }
    }
}

impl CheckIdentity {
    fn of(fact: &Fact, found: &VerificationResult) -> Self {
        let name =
            text_preview(&found.name).or_else(|| text_preview(&found.command)).unwrap_or(&fact.id);
        let run = text_preview(&found.tool).zip(text_preview(&found.working_dir));
        let call = text_preview(&found.call).unwrap_or_default();
        let run = run.map(|(tool, folder)| (tool.to_owned(), call.to_owned(), folder.to_owned()));
        let target = CheckTarget::of(found.target.clone().unwrap_or_default());
        Self { name: name.to_owned(), run, target }
    }

    /// Returns whether a result of this check replaces a result of the other one.
    fn covers(&self, other: &Self) -> bool {
        match (&self.run, &other.run) {
            (Some(run), Some(of)) => self.target.covers(&other.target) && run == of,
            _ => other.parts().all(|part| self.parts().any(|own| own == part)),
        }
    }

    /// Returns the checks that the name lists: `lint && test` lists two.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.name.split("&&").map(str::trim)
    }

    /// Returns the name with the targets.
    fn label(&self) -> String {
        let mut label = self.name.clone();
        self.push_targets(&mut label);
        label
    }

    /// Appends the targets.
    fn push_targets(&self, text: &mut String) {
        for word in &self.target.words {
            text.push(' ');
            text.push_str(word.trim_start_matches(['+', '=']));
        }
    }
}

impl CheckTarget {
    fn of(words: Vec<String>) -> Self {
        let mut target = Self::default();
        for word in &words {
            let list = match word.chars().next() {
                Some('+') => &mut target.wider,
                Some('-') => &mut target.narrower,
                Some('=') => &mut target.exact,
                _ => &mut target.scopes,
            };
            list.push(word.clone());
        }
        Self { words, ..target }
    }

    /// Returns the scopes, or the empty text if there are none.
    fn indexed_scopes(&self) -> impl Iterator<Item = &str> {
        let none = self.scopes.is_empty().then_some("");
        self.scopes.iter().map(String::as_str).chain(none)
    }

    /// Returns whether a run on this target includes the run on another. Scopes are compared first,
    /// because most targets differ in them.
    fn covers(&self, other: &Self) -> bool {
        let includes = |scope: &String| {
            self.scopes.iter().any(|folder| {
                let rest = scope.strip_prefix(folder.as_str());
                rest.is_some_and(|rest| rest.is_empty() || begins_inside(rest))
            })
        };
        let within = |some: &[String], all: &[String]| some.iter().all(|word| all.contains(word));
        let includes_scopes = self.scopes.is_empty()
            || (!other.scopes.is_empty() && other.scopes.iter().all(includes));
        includes_scopes
            && within(&self.exact, &other.exact)
            && within(&other.exact, &self.exact)
            && within(&other.wider, &self.wider)
            && within(&self.narrower, &other.narrower)
    }
}

/// Returns the beginning of a text; `None` if there is no text, or an empty one.
pub(super) fn text_preview(text: &Option<FactText>) -> Option<&str> {
    text.as_ref().map(FactText::preview).filter(|text| !text.is_empty())
}

/// Returns a text for display; `None` if there is no text, or an empty one.
pub(super) fn display_text(text: &Option<FactText>) -> Option<Cow<'_, str>> {
    text.as_ref().map(FactText::shown).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FactOrigin, Kind, Timestamp, Value};

    fn fact(number: i64, name: &str, target: &str, folder: Option<&str>, status: &str) -> Fact {
        let (tool, call) = name.split_once(' ').unwrap_or((name, ""));
        let words: Vec<String> =
            target.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let mut value = vec![("name", Value::from(name)), ("status", status.into())];
        if let Some(folder) = folder {
            value.push(("tool", tool.into()));
            value.push(("call", call.into()));
            value.push(("target", words.into()));
            value.push(("working_dir", folder.into()));
        }
        let fields = value.into_iter().map(|(field, value)| (field.to_owned(), value));
        Fact {
            kind: Kind::Verification,
            id: format!("v{number}"),
            at: Timestamp::from_micros(number),
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: Timestamp::from_micros(number),
            value: Value::Map(fields.collect()),
        }
    }

    fn failing(results: &[(&str, &str, Option<&str>, &str)]) -> Vec<String> {
        let facts = results.iter().zip(1..).map(|((name, target, folder, status), number)| {
            fact(number, name, target, *folder, status)
        });
        let facts: Vec<Fact> = facts.collect();
        let checks = CheckResults::of(facts.iter());
        checks.failing.into_iter().map(|result| result.text).collect()
    }

    const W: Option<&str> = Some("/w");

    #[test]
    fn a_wider_run_that_passed_replaces_the_failure_of_a_narrower_one() {
        for (failed, passed) in [
            ("", ""),
            ("foo", ""),
            ("-p a", ""),
            ("-p a,foo", "-p a"),
            ("", "+--workspace"),
            ("tests/a.py::b", "tests"),
            ("tests/a.py::b", "tests/a.py"),
            ("a/b/.", "+..."),
            ("a/b/.", "a"),
            ("=--release,foo", "=--release"),
        ] {
            let results =
                [("cargo test", failed, W, "failed"), ("cargo test", passed, W, "passed")];
            assert_eq!(failing(&results), [""; 0], "{failed} {passed}");
        }
        for (failed, passed) in [
            ("", "foo"),
            ("", "-p a"),
            ("+--workspace", ""),
            ("foo", "bar"),
            ("foo", "foo,-p a"),
            ("tests/ab.py", "tests/a"),
            ("a/b/.", "a/."),
            ("=--release", ""),
            ("", "=--release"),
            ("=ssh a", "=ssh b"),
        ] {
            let results =
                [("cargo test", failed, W, "failed"), ("cargo test", passed, W, "passed")];
            assert_eq!(failing(&results), ["cargo test"], "{failed} {passed}");
        }
    }

    #[test]
    fn only_a_result_of_the_same_check_replaces_a_failure() {
        let failed = ("npm lint", "", W, "failed");
        assert_eq!(failing(&[failed, ("eslint", "", W, "passed")]), ["npm lint"]);
        assert_eq!(failing(&[failed, ("npm test", "", W, "passed")]), ["npm lint"]);
        assert_eq!(failing(&[failed, ("npm lint", "", Some("/v"), "passed")]), ["npm lint"]);
        assert_eq!(failing(&[failed, ("npm lint", "", W, "unknown")]), ["npm lint"]);
        assert_eq!(failing(&[failed, ("npm lint", "", W, "passed"), failed]), ["npm lint"]);
        // A check that a person recorded has only a name.
        assert_eq!(failing(&[failed, ("npm lint", "", None, "passed")]), [""; 0]);
    }

    #[test]
    fn a_list_of_checks_that_passed_settles_each_of_them() {
        let failed = ("lint", "", None, "failed");
        assert_eq!(failing(&[failed, ("lint && test", "", None, "passed")]), [""; 0]);
        assert_eq!(failing(&[failed, ("test && doc", "", None, "passed")]), ["lint"]);
        let both = ("lint && test", "", None, "failed");
        assert_eq!(failing(&[both, ("lint", "", None, "passed")]), ["lint && test"]);
    }

    #[test]
    fn each_result_of_a_check_is_classified_as_a_change_or_a_repetition() {
        let mut checks = CheckTracker::default();
        let mut turn = |target: &str, status: &str| {
            let fact = fact(1, "cargo test", target, W, status);
            let found = VerificationResult::from_value(&fact.value).unwrap();
            checks.add(&fact, &found)
        };
        assert_eq!(turn("foo", "passed"), CheckTurn::FirstPass);
        assert_eq!(turn("foo", "failed"), CheckTurn::FirstFailure);
        assert_eq!(turn("foo", "timed_out"), CheckTurn::StillFails);
        assert_eq!(turn("bar", "failed"), CheckTurn::FirstFailure);
        assert_eq!(turn("baz", "passed"), CheckTurn::StillPasses);
        assert_eq!(turn("", "skipped"), CheckTurn::Undecided);
        assert_eq!(turn("", "passed"), CheckTurn::PassesAgain);
        assert_eq!(turn("", "passed"), CheckTurn::StillPasses);
        assert!(checks.finish().failing.is_empty());
    }

    #[test]
    fn the_failure_of_a_wider_run_replaces_that_of_a_narrower_one() {
        let results = [("cargo test", "foo", W, "failed"), ("cargo test", "", W, "timed_out")];
        assert_eq!(failing(&results), ["cargo test"]);
        let results = [("cargo test", "foo", W, "failed"), ("cargo test", "-p b", W, "failed")];
        assert_eq!(failing(&results), ["cargo test foo", "cargo test -p b"]);
    }

    /// The index finds the same results as a comparison with each earlier result.
    #[test]
    fn related_results_are_found_without_comparing_all() {
        const NAMES: [&str; 5] = ["cargo test", "npm lint", "lint", "lint && test", "test"];
        const TARGETS: [&str; 14] = [
            "", "a", "a/b", "a/b::c", "a::c", "ab", "a/b/.,d", "a,d", "/a", "-p x", "-p x,a",
            "+..", "=--release", "=--release,a/b",
        ];
        let mut seed = 1_u64;
        let mut below = |count: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % count
        };
        for _ in 0..200 {
            let mut tracker = CheckTracker::default();
            let (mut failing, mut passed) = (Vec::<CheckIdentity>::new(), Vec::new());
            for number in 0..60 {
                let folder = [W, Some("/v"), None][below(3)];
                let good = below(2) == 0;
                let status = if good { "passed" } else { "failed" };
                let fact = fact(number, NAMES[below(5)], TARGETS[below(14)], folder, status);
                let found = VerificationResult::from_value(&fact.value).unwrap();
                let of = CheckIdentity::of(&fact, &found);
                failing.retain(|earlier| !of.covers(earlier));
                passed.retain(|earlier: &CheckIdentity| {
                    !of.covers(earlier) && (good || !earlier.covers(&of))
                });
                if good { &mut passed } else { &mut failing }.push(of);
                tracker.add(&fact, &found);
            }
            let identities = |list: Vec<LastCheckResult>| {
                list.into_iter().map(|result| result.of).collect::<Vec<_>>()
            };
            let results = tracker.finish();
            assert_eq!(identities(results.failing), failing);
            assert_eq!(identities(results.passed), passed);
        }
    }
}
