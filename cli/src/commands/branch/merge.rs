//! `forge branch merge`.

use crate::args::value::{NameArg, parse_degree, parse_strength};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::branch::with_branch_names;
use crate::report::merge::{BranchMergeReport, conflict_name};
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::verb::{Opened, Verb, VerbResult};
use crate::workspace::StoreAccess;
use forge_store::diff::{ClaimConflict, ConflictResolution, MergeSide};
use forge_store::model::{AutoTrigger, Value};
use forge_store::store::{MergeReport, MergeRequest, Session};

#[derive(Debug, clap::Args)]
pub struct BranchMergeArgs {
    /// Branch whose changes are merged
    #[arg(value_name = "SOURCE")]
    pub source: NameArg,

    /// Branch to merge into; the current one by default
    #[arg(long, value_name = "TARGET")]
    pub into: Option<NameArg>,

    /// Resolve conflicts with the value of the branch that is merged into
    #[arg(long, conflicts_with = "theirs")]
    pub ours: bool,

    /// Resolve conflicts with the value of the merged branch
    #[arg(long)]
    pub theirs: bool,

    /// Resolution of one conflict: KIND/ID.FIELD=ours, =theirs or =VALUE, KIND/ID=ours or =theirs;
    /// can be repeated
    #[arg(long, value_name = "CONFLICT=WHAT")]
    pub resolve: Vec<String>,

    /// Show what would be done, without changing anything
    #[arg(long)]
    pub dry_run: bool,
}

/// A session to preview a merge in, or to merge in.
pub enum OpenedMerge {
    /// Nothing is written.
    Preview(SessionReader),
    Merge(SessionWriter),
}

impl Opened for OpenedMerge {
    fn open<V: Verb>(verb: &V, context: &Context) -> Result<Self, CommandError> {
        Ok(match verb.access() {
            StoreAccess::Write => Self::Merge(SessionWriter::open(verb, context)?),
            _ => Self::Preview(SessionReader::open(verb, context)?),
        })
    }

    fn finish(&self, context: &Context) {
        match self {
            Self::Preview(reading) => reading.finish(context),
            Self::Merge(writing) => writing.finish(context),
        }
    }
}

impl Verb for BranchMergeArgs {
    const NAME: &'static str = "branch merge";
    type Opened = OpenedMerge;
    type Report = BranchMergeReport;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedMerge, _context: &mut Context) -> VerbResult<Self> {
        let mut merging = MergeRequest {
            source: self.source.as_str().to_owned(),
            target: self.into.as_ref().map(|name| name.as_str().to_owned()),
            prefer: match (self.ours, self.theirs) {
                (true, _) => Some(MergeSide::Ours),
                (_, true) => Some(MergeSide::Theirs),
                (false, false) => None,
            },
            ..MergeRequest::default()
        };
        let writing = match opened {
            OpenedMerge::Preview(reading) => {
                read_resolutions(&reading.session, &mut merging, &self.resolve)?;
                let found = preview(&reading.session, &merging)?;
                return report(found, &reading.session, self);
            }
            OpenedMerge::Merge(writing) => writing,
        };
        merging.without_checkpoint = !writing.makes_checkpoint(AutoTrigger::BranchSwitch);
        read_resolutions(&writing.session, &mut merging, &self.resolve)?;
        let merge = || writing.session.merge(&writing.write_context, &merging);
        let found = merge().map_err(|error| with_branch_names(error, &writing.session))?;
        report(found, &writing.session, self)
    }
}

fn preview(session: &Session, merging: &MergeRequest) -> Result<MergeReport, CommandError> {
    session.merge_preview(merging).map_err(|error| with_branch_names(error, session))
}

fn report(
    found: MergeReport,
    session: &Session,
    args: &BranchMergeArgs,
) -> Result<BranchMergeReport, CommandError> {
    let summary = session.summary()?;
    let source_is_current = summary.branch == found.source;
    Ok(BranchMergeReport::new(summary.info.name, found, args, source_is_current))
}

/// Parses the texts that settle conflicts into the request. The existing conflicts show where an id
/// ends, because an id may contain any characters. A resolution can cause another conflict, so the
/// conflicts are computed again until all texts are parsed.
fn read_resolutions(
    session: &Session,
    merging: &mut MergeRequest,
    given: &[String],
) -> Result<(), CommandError> {
    let mut left: Vec<&str> = given.iter().map(String::as_str).collect();
    while !left.is_empty() {
        let conflicts = preview(session, merging)?.conflicts;
        let conflicts: Vec<ClaimConflict> = conflicts.into_iter().map(|one| one.conflict).collect();
        let unknown = settle_known(&left, &conflicts, merging)?;
        if let Some(text) = unknown.first().filter(|_| unknown.len() == left.len()) {
            return Err(unknown_conflict(text, &conflicts));
        }
        left = unknown;
    }
    Ok(())
}

/// Adds the resolutions of these conflicts to the request. Returns the texts that name none of
/// them.
fn settle_known<'a>(
    given: &[&'a str],
    conflicts: &[ClaimConflict],
    merging: &mut MergeRequest,
) -> Result<Vec<&'a str>, CommandError> {
    let mut unknown = Vec::new();
    for &text in given {
        let named = |conflict: &&ClaimConflict| value_of(text, conflict).is_some();
        let longest =
            conflicts.iter().filter(named).max_by_key(|conflict| conflict_name(conflict).len());
        let Some((conflict, value)) = longest.and_then(|one| Some((one, value_of(text, one)?)))
        else {
            unknown.push(text);
            continue;
        };
        let settled = match (value, &conflict.field) {
            ("ours", _) => ConflictResolution::Side(MergeSide::Ours),
            ("theirs", _) => ConflictResolution::Side(MergeSide::Theirs),
            (value, Some(_)) => ConflictResolution::Value(field_value(value, conflict)),
            (_, None) => {
                return Err(CommandError::invalid(format!(
                    "'{text}' settles a claim as a whole: use {0}=ours or {0}=theirs",
                    conflict_name(conflict)
                )));
            }
        };
        let place = (conflict.key.clone(), conflict.field.clone());
        if merging.settled.insert(place, settled).is_some() {
            return Err(CommandError::invalid(format!(
                "{} is settled twice",
                conflict_name(conflict)
            )));
        }
    }
    Ok(unknown)
}

fn value_of<'a>(text: &'a str, conflict: &ClaimConflict) -> Option<&'a str> {
    text.strip_prefix(&conflict_name(conflict))?.strip_prefix('=')
}

/// Parses a confidence and a strength as their options do, and the value of another field as JSON.
/// If that fails, the value is the text itself; also if the field is a text on any side, and the
/// JSON is neither a text nor null.
fn field_value(text: &str, conflict: &ClaimConflict) -> Value {
    let degree = match conflict.field.as_deref() {
        Some("confidence") => parse_degree(text, 0.0, 1.0).ok(),
        Some("strength") => parse_strength(text).ok(),
        _ => None,
    };
    if let Some(degree) = degree {
        return degree.into();
    }
    let json = serde_json::from_str::<Value>(text).ok();
    let sides = [&conflict.base, &conflict.ours, &conflict.theirs];
    let is_text = sides.into_iter().flatten().any(|value| value.as_text().is_some());
    match json {
        // In quotes, the value can be any text, even `ours`.
        Some(value) if !is_text || value.as_text().is_some() || value == Value::Null => value,
        _ => text.into(),
    }
}

fn unknown_conflict(text: &str, conflicts: &[ClaimConflict]) -> CommandError {
    let names: Vec<String> = conflicts.iter().take(8).map(conflict_name).collect();
    let error = CommandError::invalid(format!("'{text}' names no conflict"));
    match names.as_slice() {
        [] => error.hinted("there is no conflict: omit '--resolve'"),
        names => error.hinted(format!("in conflict: {}", names.join(", "))),
    }
}
