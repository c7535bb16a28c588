//! The brief: the few things that a person or agent needs to continue a debugging session, as plain
//! data.

use super::check_results::{CheckResults, LastCheckResult};
use super::state::StateAt;
use crate::engine::fact::SourcedFact;
use crate::error::Result;
use crate::model::claim::{
    Belief, CommandOutcome, Criticality, ExecutedCommand, FactText, Gap, GapStatus, Hypothesis,
    HypothesisStatus, Task, ToolOutcome, ToolUse, VocabularyWord,
};
use crate::model::{Checkpoint, ClaimEntry, Fact, Kind, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a text that a brief shows.
const TEXT_BYTES: usize = 400;
/// How many of the last commands a brief shows.
const COMMANDS: usize = 5;
/// How many of the last beliefs, notes and evidence a brief shows.
const CLAIMS: usize = 5;
/// How many of the last refusals a brief shows.
const REFUSED: usize = 5;
/// How many characters of two commands are compared, to see whether they are nearly equal.
const LIKENESS_CHARS: usize = 32;

/// An entity on one line.
#[derive(Clone, Debug, PartialEq)]
pub struct BriefLine {
    /// The kind of the entity.
    pub kind: Kind,
    /// The id of the entity.
    pub id: String,
    /// Its text, or the beginning of it.
    pub text: String,
    /// Its status, criticality or outcome, if it has one.
    pub word: Option<&'static str>,
    /// The confidence, from 0 to 1, if recorded.
    pub confidence: Option<f64>,
    /// The reason, if recorded.
    pub reason: Option<String>,
    /// The tests that failed and the first line of the error, for a failing check whose output says
    /// so.
    pub error: Option<String>,
    /// How many similar entries before this one are not listed.
    pub similar: usize,
    /// The exit code of a command.
    pub exit_code: Option<i64>,
    /// The time of the entity.
    pub at: Timestamp,
}

/// What a session knew at a moment, in short. Each list has the most important entry first, in a
/// reproducible order.
#[derive(Clone, Debug, PartialEq)]
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
    /// Beliefs that rest on something removed or contradicted.
    pub doubted: Vec<BriefLine>,
    /// The last other beliefs, the latest first.
    pub beliefs: Vec<BriefLine>,
    /// The last evidence, the latest first.
    pub evidence: Vec<BriefLine>,
    /// The last notes, the latest first.
    pub notes: Vec<BriefLine>,
    /// Gaps that are open or being filled, the most critical first.
    pub gaps: Vec<BriefLine>,
    /// Failing last results of checks, the latest first.
    pub failing: Vec<BriefLine>,
    /// The last prompts, the latest first. Only [`Story::brief`](crate::story::Story::brief) fills
    /// this list and the next one.
    pub prompts: Vec<BriefLine>,
    /// The files that were edited after the last commit, the latest edit first.
    pub uncommitted: Vec<BriefLine>,
    /// The last commands, the latest first.
    pub commands: Vec<BriefLine>,
    /// The last commands and tool calls that were refused, the latest first, with the reason.
    pub refused: Vec<BriefLine>,
    /// Tasks that are not done.
    pub tasks: Vec<BriefLine>,
    /// Suggested next steps; never empty.
    pub next: Vec<String>,
    /// How many entries were left out of each list for lack of room, by list name.
    pub omitted: BTreeMap<&'static str, usize>,
}

impl StateAt {
    /// Returns the brief of this moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn brief(&self) -> Result<SessionBrief> {
        self.brief_of(&self.facts()?)
    }

    /// Returns the brief of this moment, with these facts of it.
    pub(crate) fn brief_of(&self, facts: &[SourcedFact]) -> Result<SessionBrief> {
        let mut brief = SessionBrief {
            session: self.info()?.name,
            branch: self.current_branch()?,
            at: self.time()?,
            checkpoint: self.checkpoint()?,
            doubted: self.doubted()?,
            gaps: self.open_gaps()?,
            failing: last_results(CheckResults::of(checks(facts)).failing),
            commands: last_commands(facts),
            refused: last_refused(facts),
            tasks: open_tasks(facts),
            ..SessionBrief::empty()
        };
        let mut settled_parents = Vec::new();
        for (id, entry) in self.claims_of(Kind::Hypothesis)? {
            let Ok(found) = Hypothesis::from_value(&entry.value) else { continue };
            let status = found.status.unwrap_or(HypothesisStatus::Active);
            if let (HypothesisStatus::Confirmed, Some(parent)) = (status, &found.parent) {
                settled_parents.push((id.clone(), parent.clone()));
            }
            let list = match status {
                HypothesisStatus::Confirmed => &mut brief.confirmed,
                HypothesisStatus::Rejected => &mut brief.rejected,
                HypothesisStatus::Active | HypothesisStatus::UnderTest => &mut brief.active,
                HypothesisStatus::Archived => continue,
            };
            // A reopened hypothesis keeps the reason for which it had been settled.
            let is_settled =
                matches!(status, HypothesisStatus::Confirmed | HypothesisStatus::Rejected);
            let reason = found.reason.as_deref().filter(|_| is_settled);
            list.push(BriefLine {
                word: Some(status.word()),
                confidence: found.confidence.map(|confidence| confidence.value()),
                reason: reason.map(cut),
                ..line(Kind::Hypothesis, id, found.description.as_deref(), entry.added_at)
            });
        }
        let sureness = |line: &BriefLine| line.confidence.unwrap_or(crate::model::rule::PRIOR);
        brief.active.sort_by(|a, b| sureness(b).total_cmp(&sureness(a)));
        brief.next = next_steps(&brief, &settled_parents);
        let doubted: Vec<&str> = brief.doubted.iter().map(|line| line.id.as_str()).collect();
        let mut lists = Vec::new();
        for kind in [Kind::Belief, Kind::Evidence, Kind::Note] {
            let mut claims = self.claims_of(kind)?;
            claims.retain(|(id, _)| kind != Kind::Belief || !doubted.contains(&id.as_str()));
            lists.push((claims.len(), last_claims(kind, claims)));
        }
        let names = ["beliefs", "evidence", "notes"];
        for ((count, lines), name) in lists.into_iter().zip(names) {
            if count > lines.len() {
                brief.omitted.insert(name, count - lines.len());
            }
            match name {
                "beliefs" => brief.beliefs = lines,
                "evidence" => brief.evidence = lines,
                _ => brief.notes = lines,
            }
        }
        Ok(brief)
    }

    fn doubted(&self) -> Result<Vec<BriefLine>> {
        let mut lines = Vec::new();
        for (id, entry) in self.claims_of(Kind::Belief)? {
            let Ok(found) = Belief::from_value(&entry.value) else { continue };
            if found.in_doubt == Some(true) {
                lines.push(BriefLine {
                    confidence: found.confidence.map(|confidence| confidence.value()),
                    reason: found.doubt_reason.as_deref().map(cut),
                    ..line(Kind::Belief, id, found.description.as_deref(), entry.added_at)
                });
            }
        }
        Ok(lines)
    }

    fn open_gaps(&self) -> Result<Vec<BriefLine>> {
        let mut lines = Vec::new();
        for (id, entry) in self.claims_of(Kind::Gap)? {
            let Ok(found) = Gap::from_value(&entry.value) else { continue };
            if matches!(found.status, None | Some(GapStatus::Open | GapStatus::Filling)) {
                let criticality = found.criticality.unwrap_or(Criticality::Medium);
                let line = BriefLine {
                    word: Some(criticality.word()),
                    ..line(Kind::Gap, id, found.description.as_deref(), entry.added_at)
                };
                lines.push((criticality, line));
            }
        }
        lines.sort_by_key(|(criticality, _)| std::cmp::Reverse(*criticality));
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }

    /// Returns the last result of each check.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn checks(&self) -> Result<CheckResults> {
        Ok(CheckResults::of(self.facts_of(Kind::Verification)?.into_iter().map(|known| known.fact)))
    }
}

/// Returns the last of these claims, which are sorted by time, the latest first.
fn last_claims(kind: Kind, claims: Vec<(String, ClaimEntry)>) -> Vec<BriefLine> {
    let last = claims.into_iter().rev().take(CLAIMS);
    let lines = last.map(|(id, entry)| {
        let number = |name: &str| entry.value.field(name).and_then(Value::as_f64);
        let about = entry.value.field("hypothesis").and_then(Value::as_text);
        let about = about.filter(|_| kind == Kind::Evidence);
        let strength = number("strength").map(|strength| format!(" {strength:+.2}"));
        BriefLine {
            confidence: number("confidence"),
            reason: about.map(|about| format!("{about}{}", strength.unwrap_or_default())),
            ..line(kind, id, Some(&entity_title(kind, &entry.value)), entry.added_at)
        }
    });
    lines.collect()
}

/// Returns the verifications among these facts.
fn checks(facts: &[SourcedFact]) -> impl Iterator<Item = Fact> {
    let checks = facts.iter().filter(|known| known.fact.kind == Kind::Verification);
    checks.map(|known| known.fact.clone())
}

/// Returns the last commands, the latest first. Of commands that differ little the latest is listed.
/// Commands that only wait or ask forge are left out.
fn last_commands(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines: Vec<(String, BriefLine)> = Vec::new();
    for known in facts.iter().rev().filter(|known| known.fact.kind == Kind::Command) {
        let found = ExecutedCommand::from_value(&known.fact.value).unwrap_or_default();
        let text = text_preview(&found.command).unwrap_or_default();
        let Some(likeness) = likeness(text) else { continue };
        if let Some((_, like)) = lines.iter_mut().find(|(other, _)| *other == likeness) {
            like.similar += 1;
            continue;
        }
        if lines.len() >= COMMANDS {
            break;
        }
        let line = BriefLine {
            word: found.outcome.map(VocabularyWord::word),
            exit_code: found.exit_code,
            ..line(Kind::Command, known.fact.id.clone(), Some(text), known.fact.at)
        };
        lines.push((likeness, line));
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns what nearly equal commands have in common: the beginning without numbers. `None` for a
/// command that only waits or asks forge.
fn likeness(command: &str) -> Option<String> {
    let first = command.split_whitespace().next()?;
    if matches!(first, "sleep" | "forge") {
        return None;
    }
    let letters = command.chars().filter(|c| !c.is_ascii_digit());
    Some(letters.take(LIKENESS_CHARS).collect())
}

/// Beginnings of the reasons of calls that nobody refused: the agent cancelled them together with
/// another call that failed.
const CANCELLED: [&str; 2] = ["Sibling tool call errored", "Cancelled: "];

/// Tools that edit the file at their path.
const EDITS: [&str; 3] = ["Edit", "MultiEdit", "Write"];

/// Returns the last commands and tool calls that were refused, the latest first. Of equal ones the
/// latest is listed, and none that was allowed later or that was only cancelled.
fn last_refused(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines: Vec<BriefLine> = Vec::new();
    let mut allowed: BTreeSet<String> = BTreeSet::new();
    // An edit that took place is recorded as code.
    let mut edited: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for fact in facts.iter().map(|known| &known.fact).filter(|fact| fact.kind == Kind::Code) {
        if let Some(path) = fact.value.field("path").and_then(Value::as_text) {
            let last = edited.entry(path).or_insert(fact.at);
            *last = fact.at.max(*last);
        }
    }
    for known in facts.iter().rev() {
        let fact = &known.fact;
        let (is_refused, reason) = match fact.kind {
            Kind::Command => {
                let found = ExecutedCommand::from_value(&fact.value).unwrap_or_default();
                (found.outcome == Some(CommandOutcome::Refused), found.reason)
            }
            Kind::Tool => {
                let found = ToolUse::from_value(&fact.value).unwrap_or_default();
                let tool = text_preview(&found.tool).unwrap_or_default();
                let path = fact.value.field("path").and_then(Value::as_text);
                let last_edit = path.filter(|_| EDITS.contains(&tool)).and_then(|p| edited.get(p));
                if last_edit.is_some_and(|last_edit| *last_edit > fact.at) {
                    continue;
                }
                (found.outcome == Some(ToolOutcome::Refused), found.reason)
            }
            _ => continue,
        };
        let text = entity_title(fact.kind, &fact.value);
        if !is_refused {
            allowed.insert(text);
            continue;
        }
        let said = text_preview(&reason).unwrap_or_default();
        if CANCELLED.iter().any(|beginning| said.starts_with(beginning)) {
            continue;
        }
        if allowed.contains(&text) || lines.iter().any(|line| line.text == text) {
            continue;
        }
        let word = Some(CommandOutcome::Refused.word());
        let line = line(fact.kind, fact.id.clone(), Some(&text), fact.at);
        lines.push(BriefLine { word, reason: text_preview(&reason).map(cut), ..line });
        if lines.len() == REFUSED {
            break;
        }
    }
    lines
}

fn open_tasks(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines = Vec::new();
    for known in facts.iter().filter(|known| known.fact.kind == Kind::Task) {
        let Ok(found) = Task::from_value(&known.fact.value) else { continue };
        if found.is_open() {
            let text = text_preview(&found.subject).or_else(|| text_preview(&found.description));
            let reason = text_preview(&found.status).map(cut);
            let line = line(Kind::Task, known.fact.id.clone(), text, known.fact.at);
            lines.push(BriefLine { reason, ..line });
        }
    }
    lines
}

impl SessionBrief {
    /// Returns the brief of a store without sessions.
    #[must_use]
    pub fn empty() -> Self {
        let mut brief = Self {
            session: String::new(),
            branch: "main".to_owned(),
            at: None,
            checkpoint: None,
            confirmed: Vec::new(),
            rejected: Vec::new(),
            active: Vec::new(),
            doubted: Vec::new(),
            beliefs: Vec::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
            gaps: Vec::new(),
            failing: Vec::new(),
            prompts: Vec::new(),
            uncommitted: Vec::new(),
            commands: Vec::new(),
            refused: Vec::new(),
            tasks: Vec::new(),
            next: Vec::new(),
            omitted: BTreeMap::new(),
        };
        brief.next = next_steps(&brief, &[]);
        brief
    }

    /// Returns the lists with their names, the most important first.
    #[must_use]
    pub const fn lists(&self) -> [(&'static str, &Vec<BriefLine>); 14] {
        [
            ("confirmed", &self.confirmed),
            ("rejected", &self.rejected),
            ("active", &self.active),
            ("doubted", &self.doubted),
            ("beliefs", &self.beliefs),
            ("gaps", &self.gaps),
            ("failing", &self.failing),
            ("prompts", &self.prompts),
            ("refused", &self.refused),
            ("uncommitted", &self.uncommitted),
            ("tasks", &self.tasks),
            ("notes", &self.notes),
            ("evidence", &self.evidence),
            ("commands", &self.commands),
        ]
    }

    /// Returns this brief with at most `entries` entries in each list, and texts of at most
    /// `text_bytes` bytes.
    #[must_use]
    pub fn shortened(&self, entries: usize, text_bytes: usize) -> Self {
        let mut short = self.clone();
        let omitted = &mut short.omitted;
        let lists = [
            ("confirmed", &mut short.confirmed),
            ("rejected", &mut short.rejected),
            ("active", &mut short.active),
            ("doubted", &mut short.doubted),
            ("beliefs", &mut short.beliefs),
            ("gaps", &mut short.gaps),
            ("failing", &mut short.failing),
            ("prompts", &mut short.prompts),
            ("refused", &mut short.refused),
            ("uncommitted", &mut short.uncommitted),
            ("tasks", &mut short.tasks),
            ("notes", &mut short.notes),
            ("evidence", &mut short.evidence),
            ("commands", &mut short.commands),
        ];
        for (name, list) in lists {
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

    /// Returns the longest version of this brief that `fits` accepts; the shortest one if none is
    /// accepted.
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
#[must_use]
pub fn last_results(results: Vec<LastCheckResult>) -> Vec<BriefLine> {
    let lines = results.into_iter().map(|result| BriefLine {
        word: Some(result.status.word()),
        exit_code: result.exit_code,
        reason: result.description.as_deref().map(cut),
        ..line(Kind::Verification, result.fact.id, Some(&result.text), result.fact.at)
    });
    let mut lines: Vec<BriefLine> = lines.collect();
    lines.sort_by(|a, b| (b.at, &a.id).cmp(&(a.at, &b.id)));
    lines
}

/// Returns suggested next steps, the most urgent first. `settled` has each confirmed hypothesis that
/// has a parent, with that parent.
fn next_steps(brief: &SessionBrief, settled: &[(String, String)]) -> Vec<String> {
    let mut steps = Vec::new();
    let first = |list: &[BriefLine]| list.first().map(|line| line.id.clone());
    if let Some(gap) = brief.gaps.first().filter(|gap| gap.word == Some("critical")) {
        steps.push(format!("fill the critical gap {}", gap.id));
    }
    if let Some(check) = brief.failing.first() {
        steps.push(format!("look into the failing verification: {}", check.text));
    }
    if let Some(id) = first(&brief.doubted) {
        steps.push(format!("check the belief {id}: what it rests on is in doubt"));
    }
    // What is confirmed may settle what it is a special case of.
    for (child, parent) in settled {
        if brief.active.iter().any(|line| line.id == *parent) {
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
            steps.push("state a hypothesis: forge hypothesis add TEXT".to_owned());
        }
        None => {}
    }
    if let Some(gap) = brief.gaps.first().filter(|gap| gap.word != Some("critical")) {
        steps.push(format!("fill the gap {}", gap.id));
    }
    if let Some(id) = first(&brief.tasks) {
        steps.push(format!("continue the task {id}"));
    }
    if steps.is_empty() {
        steps.push("name this moment: forge checkpoint create MESSAGE".to_owned());
    }
    steps
}

fn line(kind: Kind, id: String, text: Option<&str>, at: Timestamp) -> BriefLine {
    BriefLine::new(kind, id, text.map(cut).unwrap_or_default(), at)
}

impl BriefLine {
    /// Creates a line that says nothing but its text.
    pub(crate) const fn new(kind: Kind, id: String, text: String, at: Timestamp) -> Self {
        Self {
            kind,
            id,
            text,
            word: None,
            confidence: None,
            reason: None,
            error: None,
            similar: 0,
            exit_code: None,
            at,
        }
    }
}

fn text_preview(text: &Option<FactText>) -> Option<&str> {
    text.as_ref().map(FactText::preview).filter(|text| !text.is_empty())
}

fn cut(text: &str) -> String {
    cut_to(text, TEXT_BYTES)
}

/// Cuts a text to at most `bytes` bytes, including a mark at the end if it was cut.
fn cut_to(text: &str, bytes: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    format!("{}{MARK}", text[..end].trim_end())
}

/// Returns the text of an entity for lists: the field that says what the entity is.
#[must_use]
pub fn entity_title(kind: Kind, value: &Value) -> String {
    let names: &[&str] = match kind {
        Kind::Message | Kind::Prompt => &["text"],
        Kind::Command => &["command"],
        Kind::Code => &["path", "commit", "description"],
        Kind::Verification | Kind::Measurement => &["name", "command", "description"],
        Kind::Task => &["subject", "description"],
        Kind::Dependency => &["reason", "description"],
        Kind::Notice => &["text", "address", "path"],
        _ => &["description", "name", "title", "text", "content"],
    };
    let text = |name: &&str| -> Option<String> {
        let field = value.field(name)?;
        let preview = match field {
            Value::Text(text) => text.as_str(),
            long => long.field(crate::model::TextRef::FIELD)?.field("preview")?.as_text()?,
        };
        Some(cut(preview))
    };
    if kind == Kind::Tool {
        let subject = ["pattern", "query", "address", "path"].iter().filter_map(text);
        let words: Vec<String> = text(&"tool").into_iter().chain(subject).collect();
        return cut(&words.join(" "));
    }
    names.iter().find_map(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fact, FactOrigin, Key};
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
    fn only_the_last_result_of_a_check_counts() {
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("x", at(10));
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let failing = |upto| {
            let point = session.at_time(at(upto)).unwrap();
            session.state(&point).unwrap().brief().unwrap().failing.len()
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
    fn hypotheses_are_sorted_by_sureness_and_gaps_by_criticality() {
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
