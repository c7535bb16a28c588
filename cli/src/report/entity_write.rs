//! Reports of writes.

use crate::output::{Report, Screen, Tone};
use forge_store::model::{Checkpoint, CheckpointId, Fact, Key, Kind, OperationId, RevisionId};
use forge_store::model::{CheckpointTrigger, Timestamp, Value};
use forge_store::store::WriteReport;
use serde::Serialize;

/// The result of a write.
#[derive(Debug, Serialize)]
pub struct EntityWriteReport {
    /// What was done, as a past participle: `Added`.
    #[serde(skip)]
    done: String,
    #[serde(skip)]
    kind: Option<Kind>,
    pub session: String,
    pub branch: String,
    /// The operation, for `forge undo`; null if nothing was written.
    pub operation: Option<OperationId>,
    /// The id of the entity that the command is about.
    pub id: Option<String>,
    /// The new revision, if claims changed.
    pub revision: Option<MadeRevision>,
    /// The new checkpoint.
    pub checkpoint: Option<MadeCheckpoint>,
    /// When the fact happened; null for claims.
    pub at: Option<Timestamp>,
    /// The claims that changed and the facts that were added.
    pub changed: Vec<ChangedEntity>,
    /// Inconsistencies, and other warnings.
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct MadeRevision {
    pub sequence: u64,
    pub id: RevisionId,
}

#[derive(Clone, Debug, Serialize)]
pub struct MadeCheckpoint {
    pub id: CheckpointId,
    pub sequence: u64,
    /// The time that it is about.
    pub time: Timestamp,
    pub message: String,
    pub tags: Vec<String>,
    pub trigger: CheckpointTrigger,
}

impl From<&Checkpoint> for MadeCheckpoint {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id,
            sequence: checkpoint.sequence,
            time: checkpoint.time,
            message: checkpoint.message.clone(),
            tags: checkpoint.tags.clone(),
            trigger: checkpoint.trigger,
        }
    }
}

impl MadeCheckpoint {
    /// Writes the checkpoint in an indented line.
    pub fn print(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "  checkpoint ");
        screen.put(Tone::Id, &self.id.short());
        let tags = self.tags.join(", ");
        let tags = if tags.is_empty() { tags } else { format!(" [{tags}]") };
        let ago = Some(screen.ago(self.time)).filter(|ago| ago != "now");
        let ago = ago.map(|ago| format!(", {ago}")).unwrap_or_default();
        screen.plain(&format!(" #{} {}{tags}{ago}", self.sequence, self.message));
    }
}

#[derive(Debug, Serialize)]
pub struct ChangedEntity {
    pub kind: Kind,
    pub id: String,
    /// Its new fields; null if it was removed.
    pub value: Option<Value>,
}

impl From<Fact> for ChangedEntity {
    fn from(fact: Fact) -> Self {
        Self { kind: fact.kind, id: fact.id, value: Some(fact.value) }
    }
}

impl EntityWriteReport {
    /// Creates the report of a write. `done` is a past participle: `Added`.
    pub fn new(done: &str, committed: WriteReport) -> Self {
        let unchanged = committed.is_unchanged();
        let revision = committed.revision.map(|(sequence, id)| MadeRevision { sequence, id });
        let changed = committed.changed.into_iter();
        Self {
            done: done.to_owned(),
            kind: None,
            session: committed.session,
            branch: committed.branch,
            operation: (!unchanged).then_some(committed.operation),
            id: None,
            revision,
            checkpoint: committed.checkpoint.as_ref().map(MadeCheckpoint::from),
            at: None,
            changed: changed
                .map(|(Key { kind, id }, value)| ChangedEntity { kind, id, value })
                .collect(),
            warnings: committed.warnings,
        }
    }

    /// Sets the claim that the command is about.
    pub fn about_claim(mut self, kind: Kind, id: impl Into<String>) -> Self {
        self.kind = Some(kind);
        self.id = Some(id.into());
        self
    }

    /// Sets the checkpoint that the command is about.
    pub fn about_checkpoint(mut self, id: String) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the fact that the command is about.
    pub fn about_fact(mut self, fact: Fact) -> Self {
        let (kind, id) = (fact.kind, fact.id.clone());
        self.at = Some(fact.at);
        self.changed.push(fact.into());
        self.about_claim(kind, id)
    }

    /// Returns the report in one line, for other programs: `Recorded command c-12 (session x,
    /// branch main)`.
    pub fn line(&self) -> String {
        let (kind, id) = self.subject();
        let is_other = |one: &&ChangedEntity| Some(&one.id) != self.id.as_ref();
        let others: Vec<String> = self.changed.iter().filter(is_other).filter_map(check).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            checks => format!(": {}", checks.join(", ")),
        };
        let checkpoint = self.checkpoint.as_ref();
        let checkpoint = checkpoint.map(|made| format!(", checkpoint #{}", made.sequence));
        let checkpoint = checkpoint.unwrap_or_default();
        format!("{} {kind}{id}{others} ({}{checkpoint})", self.done, self.place())
    }

    fn subject(&self) -> (String, &str) {
        let kind = self.kind.map(|kind| format!("{kind} ")).unwrap_or_default();
        (kind, self.id.as_deref().unwrap_or_default())
    }

    fn place(&self) -> String {
        let revision = self.revision.as_ref().map(|revision| format!(", #{}", revision.sequence));
        let revision = revision.unwrap_or_default();
        format!("session {}, branch {}{revision}", self.session, self.branch)
    }
}

impl Report for EntityWriteReport {
    fn human(&self, screen: &mut Screen) {
        let (kind, id) = self.subject();
        let done = if self.operation.is_some() { &self.done } else { "Nothing to change:" };
        screen.put(Tone::Plain, done);
        if self.kind.is_some() {
            screen.put(Tone::Plain, &format!(" {kind}"));
            screen.put(Tone::Id, id);
        }
        screen.dim(&format!(" ({})", self.place()));
        if let Some(at) = self.at.filter(|at| screen.ago(*at) != "now") {
            let at = screen.time(at);
            screen.plain(&format!("  at {at}"));
        }
        for changed in &self.changed {
            let is_subject =
                self.id.as_ref() == Some(&changed.id) && self.kind == Some(changed.kind);
            if let Some(what) = change_text(changed).filter(|_| !is_subject) {
                screen.put(Tone::Plain, &format!("  {} ", changed.kind));
                screen.put(Tone::Id, &changed.id);
                screen.plain(&what);
            }
        }
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.print(screen);
        }
        for warning in &self.warnings {
            screen.put(Tone::Warning, "  warning: ");
            screen.plain(warning);
        }
    }
}

/// Describes a verification: `cargo test passed`.
fn check(changed: &ChangedEntity) -> Option<String> {
    let value = changed.value.as_ref().filter(|_| changed.kind == Kind::Verification)?;
    let text = |name| value.field(name).and_then(Value::as_text);
    let status = text("status")?;
    let unknown = status == "unknown";
    let status = if unknown { "with an unknown result".into() } else { status.replace('_', " ") };
    Some(format!("{} {status}", text("name")?))
}

/// Describes a change of another entity than the one that the command is about.
fn change_text(changed: &ChangedEntity) -> Option<String> {
    let Some(value) = &changed.value else { return Some(" is gone".to_owned()) };
    let text = |name| value.field(name).and_then(Value::as_text);
    let share = |name| value.field(name).and_then(Value::as_f64);
    match changed.kind {
        Kind::Hypothesis => {
            let status = text("status").unwrap_or("active").replace('_', " ");
            let confidence = share("confidence").map(|share| format!(", confidence {share:.2}"));
            let reason = text("reason").filter(|_| status == "rejected");
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Some(format!(" is {status}{}{reason}", confidence.unwrap_or_default()))
        }
        Kind::Belief if value.field("in_doubt").and_then(Value::as_bool) == Some(true) => {
            let reason = text("doubt_reason").map(|reason| format!(": {reason}"));
            Some(format!(" is in doubt{}", reason.unwrap_or_default()))
        }
        Kind::Verification => check(changed).map(|check| format!(": {check}")),
        _ => None,
    }
}
