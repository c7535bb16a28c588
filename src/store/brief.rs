//! The brief: the few things that a person or agent needs to continue a debugging session, as plain
//! data.

mod brief_line;
mod claim_lines;
mod fact_lines;

pub use brief_line::{BriefLine, entity_title};
pub use claim_lines::HypothesisLines;

use super::check_results::{CheckResults, LastCheckResult};
use super::state::StateAt;
use crate::engine::fact::SourcedFact;
use crate::error::Result;
use crate::model::claim::VocabularyWord;
use crate::model::{Checkpoint, Kind, SessionKind, Timestamp};
use crate::shell::quoted;
use brief_line::{cut, cut_to, line};
use claim_lines::last_claims;
use fact_lines::{last_commands, last_refused, open_tasks};
use std::collections::{BTreeMap, HashSet};

/// What was known in a session at a moment, in short. The order of each list is reproducible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionBrief {
    /// The session's name.
    pub session: String,
    /// The name of the branch.
    pub branch: String,
    /// The moment; `None` if nothing has been recorded.
    pub at: Option<Timestamp>,
    /// The last checkpoint at or before the moment.
    pub checkpoint: Option<Checkpoint>,
    /// Confirmed hypotheses.
    pub confirmed: Vec<BriefLine>,
    /// Rejected hypotheses.
    pub rejected: Vec<BriefLine>,
    /// Active hypotheses, the most confident first.
    pub active: Vec<BriefLine>,
    /// Beliefs in doubt.
    pub doubted: Vec<BriefLine>,
    /// The last beliefs that are not in doubt, the latest first.
    pub beliefs: Vec<BriefLine>,
    /// The last evidence, the latest first.
    pub evidence: Vec<BriefLine>,
    /// The last notes, the latest first.
    pub notes: Vec<BriefLine>,
    /// Gaps that are open or being filled, the most critical first.
    pub gaps: Vec<BriefLine>,
    /// The last results of the checks that fail, the latest first.
    pub failing: Vec<BriefLine>,
    /// The last results of the checks that pass, the latest first. Not one of the
    /// [`lists`](Self::lists).
    pub passed: Vec<BriefLine>,
    /// The last prompts, the latest first. Only [`Story::brief`](crate::story::Story::brief) fills
    /// this list, `uncommitted` and `commits`.
    pub prompts: Vec<BriefLine>,
    /// The files with an edit that no recorded commit contains, the latest edit first.
    pub uncommitted: Vec<BriefLine>,
    /// The last commits, the latest first, each with its hash as id: those that a command made, and
    /// those that only a checkpoint since the first edit shows. This is not one of the
    /// [`lists`](Self::lists).
    pub commits: Vec<BriefLine>,
    /// The last commands, the latest first.
    pub commands: Vec<BriefLine>,
    /// The last commands and tool calls that were refused, the latest first, with the reason.
    pub refused: Vec<BriefLine>,
    /// Tasks that are not done.
    pub tasks: Vec<BriefLine>,
    /// Suggested next steps; never empty.
    pub next: Vec<String>,
    /// How many entries were left out, by the name of the list: the entries that
    /// [`Self::shortened`] cut off, and the beliefs, evidence and notes before the last few.
    pub omitted: BTreeMap<&'static str, usize>,
}

impl StateAt {
    /// Returns the brief of this moment.
    pub fn brief(&self) -> Result<SessionBrief> {
        self.brief_of(&self.facts()?)
    }

    /// Returns the brief of this moment without commands and refused calls. It is much faster in a
    /// long session, because it reads only the facts of checks and tasks.
    pub fn brief_of_open_work(&self) -> Result<SessionBrief> {
        let mut facts = self.facts_of(Kind::Verification)?;
        facts.extend(self.facts_of(Kind::Task)?);
        self.brief_of(&facts)
    }

    /// Returns the brief of this moment. `facts` are the facts of the moment.
    pub(crate) fn brief_of(&self, facts: &[SourcedFact]) -> Result<SessionBrief> {
        let hypotheses = self.hypothesis_lines()?;
        let checks = CheckResults::of_facts(facts);
        let doubted = self.doubted()?;
        let in_doubt: HashSet<&str> = doubted.iter().map(|line| line.id.as_str()).collect();
        let mut omitted = BTreeMap::new();
        let mut last = |kind: Kind, name: &'static str| -> Result<Vec<BriefLine>> {
            let mut claims = self.claims_of(kind)?;
            claims.retain(|(id, _)| kind != Kind::Belief || !in_doubt.contains(id.as_str()));
            let count = claims.len();
            let lines = last_claims(kind, claims);
            if count > lines.len() {
                omitted.insert(name, count - lines.len());
            }
            Ok(lines)
        };
        let beliefs = last(Kind::Belief, "beliefs")?;
        let evidence = last(Kind::Evidence, "evidence")?;
        let notes = last(Kind::Note, "notes")?;
        let info = self.info()?;
        let mut brief = SessionBrief {
            session: info.name,
            branch: self.current_branch()?,
            at: self.time()?,
            checkpoint: self.checkpoint()?,
            confirmed: hypotheses.confirmed,
            rejected: hypotheses.rejected,
            active: hypotheses.active,
            doubted,
            beliefs,
            evidence,
            notes,
            gaps: self.open_gaps()?,
            failing: last_results(checks.failing),
            passed: last_results(checks.passed),
            commands: last_commands(facts),
            refused: last_refused(facts),
            tasks: open_tasks(facts),
            omitted,
            ..SessionBrief::default()
        };
        brief.next = next_steps(&brief, &hypotheses.settled_parents, info.kind);
        Ok(brief)
    }

    /// Returns the last result of each check.
    pub fn checks(&self) -> Result<CheckResults> {
        Ok(CheckResults::of_facts(&self.facts_of(Kind::Verification)?))
    }
}

/// The lists of a brief with their names, the most important first.
macro_rules! lists_of {
    ($brief:ident, $($borrow:tt)+) => {
        [
            ("confirmed", $($borrow)+ $brief.confirmed),
            ("rejected", $($borrow)+ $brief.rejected),
            ("active", $($borrow)+ $brief.active),
            ("doubted", $($borrow)+ $brief.doubted),
            ("beliefs", $($borrow)+ $brief.beliefs),
            ("gaps", $($borrow)+ $brief.gaps),
            ("failing", $($borrow)+ $brief.failing),
            ("prompts", $($borrow)+ $brief.prompts),
            ("refused", $($borrow)+ $brief.refused),
            ("uncommitted", $($borrow)+ $brief.uncommitted),
            ("tasks", $($borrow)+ $brief.tasks),
            ("notes", $($borrow)+ $brief.notes),
            ("evidence", $($borrow)+ $brief.evidence),
            ("commands", $($borrow)+ $brief.commands),
        ]
    };
}

impl SessionBrief {
    /// Returns the brief of a store without sessions.
    #[must_use]
    pub fn empty() -> Self {
        let mut brief = Self { branch: "main".to_owned(), ..Self::default() };
        brief.next = next_steps(&brief, &[], SessionKind::Debug);
        brief
    }

    /// Returns the lists with their names, the most important first.
    #[must_use]
    pub const fn lists(&self) -> [(&'static str, &Vec<BriefLine>); 14] {
        lists_of!(self, &)
    }

    /// Returns this brief with at most `entries` entries in each of its [`lists`](Self::lists), and
    /// with texts of at most `text_bytes` bytes in them.
    #[must_use]
    pub fn shortened(&self, entries: usize, text_bytes: usize) -> Self {
        let mut short = self.clone();
        let omitted = &mut short.omitted;
        for (name, list) in lists_of!(short, &mut) {
            let over = list.len().saturating_sub(entries);
            if over > 0 {
                *omitted.entry(name).or_default() += over;
                list.truncate(entries);
            }
            for line in list {
                line.text = cut_to(&line.text, text_bytes);
                line.reason = line.reason.as_deref().map(|reason| cut_to(reason, text_bytes));
                line.error = line.error.as_deref().map(|error| cut_to(error, text_bytes));
            }
        }
        short
    }

    /// Returns this brief if `fits` accepts it, otherwise the longest of several shortened versions
    /// that `fits` accepts; the shortest of them if it accepts none.
    #[must_use]
    pub fn fitting(&self, fits: impl Fn(&Self) -> bool) -> Self {
        const STEPS: [(usize, usize); 9] = [
            (50, 400),
            (20, 300),
            (10, 200),
            (7, 160),
            (5, 120),
            (3, 100),
            (2, 80),
            (1, 60),
            (0, 0),
        ];
        if fits(self) {
            return self.clone();
        }
        let mut steps = STEPS.iter().map(|(entries, bytes)| self.shortened(*entries, *bytes));
        steps.find(|short| fits(short)).unwrap_or_else(|| self.shortened(0, 0))
    }
}

/// Converts check results to lines, the latest first.
fn last_results(results: Vec<LastCheckResult>) -> Vec<BriefLine> {
    let lines = results.into_iter().map(|result| BriefLine {
        word: Some(result.status.word()),
        exit_code: result.exit_code,
        reason: result.description.as_deref().map(cut),
        ..line(Kind::Verification, result.id, Some(&result.text), result.at)
    });
    let mut lines: Vec<BriefLine> = lines.collect();
    lines.sort_by(|a, b| (b.at, &a.id).cmp(&(a.at, &b.id)));
    lines
}

/// Returns suggested next steps, the most urgent first. `settled` has each confirmed hypothesis
/// that has a parent, with that parent.
fn next_steps(
    brief: &SessionBrief,
    settled: &[(String, String)],
    kind: SessionKind,
) -> Vec<String> {
    let mut steps = Vec::new();
    if let Some(gap) = brief.gaps.first().filter(|gap| gap.word == Some("critical")) {
        steps.push(format!("fill the critical gap {}", gap.id));
    }
    if let Some(check) = brief.failing.first() {
        steps.push(format!("look into the failing verification: {}", check.text));
    }
    if let Some(belief) = brief.doubted.first() {
        steps.push(format!("check the belief {}: it is in doubt", belief.id));
    }
    let active: HashSet<&str> = brief.active.iter().map(|line| line.id.as_str()).collect();
    // If a special case of a hypothesis is confirmed, the hypothesis may be right too.
    for (child, parent) in settled {
        if active.contains(parent.as_str()) {
            steps.push(format!(
                "confirm {parent}, or say why not: {child}, a case of it, is confirmed"
            ));
        }
    }
    match brief.active.first() {
        Some(line) if line.word == Some("under_test") => {
            steps.push(format!("finish testing the hypothesis {}", line.id));
        }
        Some(line) => steps.push(format!("test the hypothesis {}", line.id)),
        None if brief.confirmed.is_empty() => {
            steps.push(if kind == SessionKind::Debug {
                "state a hypothesis: forge hypothesis add TEXT".to_owned()
            } else {
                // A brief does not list what sessions of other kinds are for, such as the items of
                // a memory. Such a session is never the current one.
                let session = quoted(&brief.session);
                format!("see everything in this session: forge --session {session} at HEAD --full")
            });
        }
        None => {}
    }
    if let Some(gap) = brief.gaps.first().filter(|gap| gap.word != Some("critical")) {
        steps.push(format!("fill the gap {}", gap.id));
    }
    if let Some(task) = brief.tasks.first() {
        steps.push(format!("continue the task: {}", task.text));
    }
    if steps.is_empty() {
        steps.push("name this moment: forge checkpoint create MESSAGE".to_owned());
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fact, FactOrigin, Key, ObjectId, TextRef, Value};
    use crate::store::{ClaimChange, NewSession, Store, WriteContext};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(1_770_000_000_000_000 + second * 1_000_000)
    }

    #[test]
    fn the_title_of_a_tool_use_names_the_tool_and_what_it_was_used_on() {
        let grep = Value::from([
            ("tool", "Grep".into()),
            ("pattern", "deadline".into()),
            ("path", "src".into()),
        ]);
        assert_eq!(entity_title(Kind::Tool, &grep), "Grep deadline src");
        assert_eq!(entity_title(Kind::Tool, &Value::from([("tool", "Skill".into())])), "Skill");
    }

    #[test]
    fn the_title_of_a_captured_state_of_the_code_has_the_message() {
        let commit = ("commit", Value::from("3e1290e61add091fc2ddbbad3478fd1634acf555"));
        let bare = Value::from([commit.clone()]);
        assert_eq!(entity_title(Kind::Code, &bare), "3e1290e61add091fc2ddbbad3478fd1634acf555");
        let named = Value::from([commit.clone(), ("description", "half done".into())]);
        assert_eq!(entity_title(Kind::Code, &named), "3e1290e61a half done");
        let edit = Value::from([commit, ("path", "a".into()), ("description", "b".into())]);
        assert_eq!(entity_title(Kind::Code, &edit), "a");
    }

    #[test]
    fn the_beginning_of_a_long_text_ends_with_a_mark() {
        let long = TextRef {
            preview: "cargo test --package ".to_owned(),
            bytes: 900,
            hash: ObjectId::from_bytes([3; 32]),
            place: None,
            pointer: String::new(),
        };
        let value = Value::from([("command", long.into_value()), ("outcome", "failed".into())]);
        assert_eq!(entity_title(Kind::Command, &value), "cargo test --package…");
        let known = SourcedFact {
            fact: Fact { kind: Kind::Command, value, ..check("c1", "failed", 1) },
            source: None,
        };
        assert_eq!(last_commands(&[known])[0].text, "cargo test --package…");
    }

    fn check(id: &str, status: &str, second: i64) -> Fact {
        let value = Value::from([("name", "unit tests".into()), ("status", status.into())]);
        Fact {
            kind: Kind::Verification,
            id: id.to_owned(),
            at: at(second),
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: at(second),
            value,
        }
    }

    #[test]
    fn an_empty_session_has_a_next_step() {
        let store = Store::in_memory().unwrap();
        let session =
            store.create_session(&WriteContext::asked("x", at(0)), NewSession::named("s")).unwrap();
        let brief = session.state(&session.head().unwrap()).unwrap().brief().unwrap();
        assert_eq!(brief.at, None);
        assert_eq!(brief.next, ["state a hypothesis: forge hypothesis add TEXT"]);
    }

    #[test]
    fn the_brief_of_a_memory_says_how_to_see_its_items() {
        let store = Store::in_memory().unwrap();
        let new = NewSession { kind: SessionKind::Memory, ..NewSession::named("ann's m") };
        let session = store.create_session(&WriteContext::asked("x", at(0)), new).unwrap();
        let brief = session.state(&session.head().unwrap()).unwrap().brief().unwrap();
        let all = r"see everything in this session: forge --session 'ann'\''s m' at HEAD --full";
        assert_eq!(brief.next, [all]);
    }

    #[test]
    fn only_the_last_result_of_a_check_counts() {
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(10));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let failing = |upto| {
            let moment = session.at_time(at(upto)).unwrap();
            session.state(&moment).unwrap().brief().unwrap().failing.len()
        };
        session
            .write(&act)
            .fact(check("v1", "failed", 1))
            .fact(check("v2", "passed", 2))
            .fact(check("v3", "timed_out", 3))
            .fact(check("v4", "skipped", 4))
            .commit()
            .unwrap();
        assert_eq!((failing(1), failing(2), failing(3), failing(4)), (1, 0, 1, 1));
    }

    #[test]
    fn a_task_that_was_begun_is_first_and_a_task_of_a_sub_agent_is_left_out() {
        let task = |id: &str, fields: [(&str, Value); 2]| Fact {
            kind: Kind::Task,
            value: Value::from(fields),
            ..check(id, "", 1)
        };
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(10));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        session
            .write(&act)
            .fact(task("1", [("subject", "fix it".into()), ("status", "pending".into())]))
            .fact(task("2", [("subject", "look".into()), ("agent", "a1".into())]))
            .fact(task("3", [("subject", "test it".into()), ("status", "in_progress".into())]))
            .fact(check("v1", "failed", 1))
            .commit()
            .unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        let brief = state.brief().unwrap();
        let tasks: Vec<&str> = brief.tasks.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(tasks, ["test it", "fix it"]);
        let open = state.brief_of_open_work().unwrap();
        assert_eq!((open.tasks.len(), open.failing.len()), (2, 1));
    }

    #[test]
    fn a_call_that_was_cancelled_or_allowed_later_is_not_refused() {
        let fact = |kind, id: &str, second, fields: &[(&str, &str)]| Fact {
            kind,
            value: Value::Map(
                fields.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            ),
            ..check(id, "", second)
        };
        let edit = |id, second, path, reason| {
            let fields =
                [("tool", "Edit"), ("path", path), ("outcome", "refused"), ("reason", reason)];
            fact(Kind::Tool, id, second, &fields)
        };
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(10));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        session
            .write(&act)
            .fact(edit("t1", 1, "/w/a.rs", "Sibling tool call errored"))
            .fact(edit("t2", 2, "/w/b.rs", "Cancelled: parallel tool call Bash(go vet) errored"))
            .fact(edit("t5", 2, "/w/e.rs", "Error: Streaming fallback - tool execution discarded"))
            .fact(edit(
                "t6",
                2,
                "/w/f.rs",
                "x is down, so auto mode cannot determine the safety of Edit.",
            ))
            .fact(edit("t3", 3, "/w/c.rs", "not like this"))
            .fact(fact(Kind::Code, "c1", 4, &[("path", "/w/c.rs")]))
            .fact(edit("t4", 5, "/w/d.rs", "keep this file"))
            .commit()
            .unwrap();
        let brief = session.state(&session.head().unwrap()).unwrap().brief().unwrap();
        let refused: Vec<&str> = brief.refused.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(refused, ["Edit /w/d.rs"]);
    }

    #[test]
    fn a_reopened_hypothesis_is_shown_without_the_reason_of_its_rejection() {
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(0));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let mut write = session.write(&act);
        for (id, status) in [("a", "under_test"), ("b", "rejected")] {
            let value = Value::from([("status", status.into()), ("reason", "too small".into())]);
            write = write.change(ClaimChange::add(Key::new(Kind::Hypothesis, id), value));
        }
        write.commit().unwrap();
        let brief = session.state(&session.head().unwrap()).unwrap().brief().unwrap();
        assert_eq!(brief.active[0].reason, None);
        assert_eq!(brief.rejected[0].reason.as_deref(), Some("too small"));
    }

    #[test]
    fn hypotheses_are_sorted_by_confidence_and_gaps_by_criticality() {
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(0));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let mut write = session.write(&act);
        for (id, confidence) in [("a", Some(0.2)), ("b", None), ("c", Some(0.9))] {
            let value =
                Value::from([("description", id.into()), ("confidence", confidence.into())]);
            write = write.change(ClaimChange::add(Key::new(Kind::Hypothesis, id), value));
        }
        for (id, criticality) in [("g1", "low"), ("g2", "critical"), ("g3", "high")] {
            let value = Value::from([("criticality", criticality.into())]);
            write = write.change(ClaimChange::add(Key::new(Kind::Gap, id), value));
        }
        write.commit().unwrap();
        let brief = session.state(&session.head().unwrap()).unwrap().brief().unwrap();
        let ids = |list: &[BriefLine]| -> Vec<String> {
            list.iter().map(|line| line.id.clone()).collect()
        };
        assert_eq!(ids(&brief.active), ["c", "b", "a"]);
        assert_eq!(ids(&brief.gaps), ["g2", "g3", "g1"]);
        let short = brief.fitting(|brief| brief.active.len() <= 2);
        assert_eq!((short.active.len(), short.omitted["active"]), (2, 1));
        assert_eq!(brief.next[0], "fill the critical gap g2");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_to("日本語", 9), "日本語");
        assert_eq!(cut_to("日本語", 8), "日…");
        assert_eq!(cut_to("日本語", 0), "…");
    }
}
