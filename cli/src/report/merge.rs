//! Reports of merges and their previews.

use super::diff::{print_changes, print_some_changes, readable};
use super::entity;
use super::entity_write::{MadeCheckpoint, MadeRevision};
use crate::commands::branch::merge::BranchMergeArgs;
use crate::error::{EXIT_NO, EXIT_OK};
use crate::output::{Report, Screen, Tone};
use crate::text::with_previews;
use forge_store::diff::{
    ClaimConflict, ConflictResolution, MergeSide, TypedChange, describe, summary,
};
use forge_store::model::{Key, Kind, OperationId, Value};
use forge_store::shell::quoted;
use forge_store::store::{MergeConflict, MergeReport, MergeResult, entity_title};
use serde::Serialize;

/// The maximum number of changes of a kind that are shown for a finished merge; its summary counts
/// all.
const CHANGES_SHOWN: usize = 10;

/// The result of a merge, or its preview.
#[derive(Debug, Serialize)]
pub struct BranchMergeReport {
    pub session: String,
    /// The branch that is merged (*theirs*).
    pub source: String,
    /// The branch that it is merged into (*ours*).
    pub target: String,
    pub result: MergeResult,
    pub dry_run: bool,
    /// The numbers of the merge bases, newest first.
    pub bases: Vec<u64>,
    /// The operation, for `forge undo`; null if nothing was written.
    pub operation: Option<OperationId>,
    pub revision: Option<MadeRevision>,
    pub checkpoint: Option<MadeCheckpoint>,
    pub conflicts: Vec<ConflictJson>,
    pub changes: Vec<TypedChange>,
    /// A summary in one sentence.
    pub summary: String,
    #[serde(skip)]
    command: Vec<String>,
    #[serde(skip)]
    source_is_current: bool,
}

#[derive(Debug, Serialize)]
pub struct ConflictJson {
    /// The name of the conflict for `--resolve`.
    pub name: String,
    pub kind: Kind,
    pub id: String,
    /// The field in conflict; null if it is the claim as a whole.
    pub field: Option<String>,
    /// The value in the merge base; null if it was absent.
    pub base: Option<Value>,
    /// The value in the target branch; null if it is absent.
    pub ours: Option<Value>,
    /// The value in the source branch; null if it is absent.
    pub theirs: Option<Value>,
    /// The claims that refer to this one, and are removed or kept with it.
    pub needed_by: Vec<Key>,
    /// `ours`, `theirs` or `value`; null if it is not settled.
    pub settled: Option<&'static str>,
}

impl From<MergeConflict> for ConflictJson {
    fn from(found: MergeConflict) -> Self {
        let name = conflict_name(&found.conflict);
        let ClaimConflict { key, field, base, ours, theirs, needed_by } = found.conflict;
        let [base, ours, theirs] =
            [base, ours, theirs].map(|value| value.map(|value| with_previews(&value)));
        Self {
            name,
            kind: key.kind,
            id: key.id,
            field,
            base,
            ours,
            theirs,
            needed_by,
            settled: found.settled.map(|settled| match settled {
                ConflictResolution::Side(MergeSide::Ours) => "ours",
                ConflictResolution::Side(MergeSide::Theirs) => "theirs",
                ConflictResolution::Value(_) => "value",
            }),
        }
    }
}

/// Returns the name of a conflict for `--resolve`: `hypothesis/H1.status`, or `note/N1` for the
/// whole claim.
pub fn conflict_name(conflict: &ClaimConflict) -> String {
    let Key { kind, id } = &conflict.key;
    match &conflict.field {
        Some(field) => format!("{kind}/{id}.{field}"),
        None => format!("{kind}/{id}"),
    }
}

impl BranchMergeReport {
    /// Creates the report of a merge.
    pub fn new(
        session: String,
        found: MergeReport,
        args: &BranchMergeArgs,
        source_is_current: bool,
    ) -> Self {
        let changes = describe(&found.changes);
        let mut command = vec!["branch".to_owned(), "merge".to_owned(), quoted(&found.source)];
        if let Some(target) = &args.into {
            command.extend(["--into".to_owned(), quoted(target.as_str())]);
        }
        command.extend(args.ours.then(|| "--ours".to_owned()));
        command.extend(args.theirs.then(|| "--theirs".to_owned()));
        for given in &args.resolve {
            command.extend(["--resolve".to_owned(), quoted(given)]);
        }
        Self {
            session,
            source: found.source,
            target: found.target,
            result: found.result,
            dry_run: args.dry_run,
            bases: found.bases,
            operation: found.operation,
            revision: found.revision.map(|(sequence, id)| MadeRevision { sequence, id }),
            checkpoint: found.checkpoint.as_ref().map(MadeCheckpoint::from),
            conflicts: found.conflicts.into_iter().map(Into::into).collect(),
            summary: summary(&changes, None),
            changes: changes.into_iter().map(readable).collect(),
            command,
            source_is_current,
        }
    }

    fn unsettled(&self) -> impl Iterator<Item = &ConflictJson> {
        self.conflicts.iter().filter(|conflict| conflict.settled.is_none())
    }

    fn print_conflicts(&self, screen: &mut Screen) {
        let left = self.unsettled().count();
        let things = if left == 1 { "one thing".to_owned() } else { format!("{left} things") };
        let Self { source, target, session, .. } = self;
        screen.put(Tone::Bad, if self.dry_run { "Would not merge" } else { "Did not merge" });
        let text = format!(" {source} into {target}: both changed {things} differently");
        screen.put(Tone::Plain, &text);
        screen.dim(&format!(" (session {session})"));
        self.unsettled().for_each(|conflict| conflict.print(screen));
        screen.gap();
        screen.plain("Nothing was changed. Settle each, or the rest by '--ours' or '--theirs':");
        let mut command = self.command.clone();
        for conflict in self.unsettled() {
            command.extend(["--resolve".to_owned(), quoted(&format!("{}=ours", conflict.name))]);
        }
        screen.line(Tone::Id, &format!("  {} {}", screen.forge(), command.join(" ")));
        let has_fields = self.unsettled().any(|conflict| conflict.field.is_some());
        let value =
            if has_fields { ", '=theirs' or, of a field, '=VALUE'" } else { " or '=theirs'" };
        screen.dim(&format!("with '=ours'{value}"));
    }
}

impl ConflictJson {
    fn print(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("  {} ", self.kind));
        screen.put(Tone::Id, &self.id);
        let field = self.field.as_ref().map(|field| format!(" {}", field.replace('_', " ")));
        screen.plain(&field.unwrap_or_default());
        let none = |side: &Option<Value>| match side {
            None if self.base.is_some() => "removed",
            _ => "not there",
        };
        let show = |value: &Option<Value>| match (value, &self.field) {
            (None, _) => none(value).to_owned(),
            (Some(value), Some(field)) => entity::field_text(field, value),
            (Some(value), None) => entity_title(self.kind, value),
        };
        if self.base.is_some() {
            screen.short_line(&[(Tone::Dim, "    before  "), (Tone::Plain, &show(&self.base))]);
        }
        screen.short_line(&[(Tone::Dim, "    ours    "), (Tone::Plain, &show(&self.ours))]);
        screen.short_line(&[(Tone::Dim, "    theirs  "), (Tone::Plain, &show(&self.theirs))]);
        if !self.needed_by.is_empty() {
            let ids: Vec<&str> = self.needed_by.iter().map(|one| one.id.as_str()).collect();
            let text = format!("{} (kept or removed together with it)", ids.join(", "));
            screen.short_line(&[(Tone::Dim, "    needed by "), (Tone::Plain, &text)]);
        }
    }
}

impl Report for BranchMergeReport {
    fn exit_code(&self) -> u8 {
        if self.result == MergeResult::Conflicts { EXIT_NO } else { EXIT_OK }
    }

    fn human(&self, screen: &mut Screen) {
        let Self { source, target, session, .. } = self;
        let did = if self.dry_run { "Would merge" } else { "Merged" };
        match self.result {
            MergeResult::Conflicts => return self.print_conflicts(screen),
            MergeResult::AlreadyMerged => {
                screen.put(Tone::Plain, &format!("{target} has all of {source} already"));
                return screen.dim(&format!(" (session {session})"));
            }
            MergeResult::FastForward | MergeResult::Merged => {
                screen.put(Tone::Plain, &format!("{did} {source} into "));
                screen.put(Tone::Id, target);
            }
        }
        let number = self.revision.as_ref().map(|revision| format!(", #{}", revision.sequence));
        let number = number.unwrap_or_default();
        screen.dim(&format!(" (session {session}{number})"));
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.print(screen);
        }
        if self.result == MergeResult::FastForward {
            let text =
                format!("  nothing was done on {target} since: it gets the claims as they are");
            screen.plain(&text);
        }
        for conflict in &self.conflicts {
            let settled = conflict.settled.unwrap_or_default();
            let text = format!("  {} settled by {settled}", conflict.name);
            screen.short_line(&[(Tone::Warning, &text)]);
        }
        screen.line(Tone::Heading, &self.summary);
        if self.dry_run {
            print_changes(&self.changes, screen);
        } else {
            print_some_changes(&self.changes, CHANGES_SHOWN, "'--json' has all", screen);
            screen.gap();
            screen.dim(&format!("'{} undo' reverts this.", screen.forge()));
            if self.source_is_current {
                let text = format!(
                    "{source} is still checked out: '{} branch switch {target}'",
                    screen.forge()
                );
                screen.dim(&text);
            }
        }
    }
}
