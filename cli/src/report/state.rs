//! Reports of the state at a moment.

use super::brief::BriefScreen;
use super::entity::{self, EntityJson};
use super::moment::{CheckpointJson, seconds};
use crate::error::CommandError;
use crate::output::{Report, Screen, Tone};
use crate::session_reader::{KnownEntity, SessionReader, entities_of_kind};
use crate::text::{TextReader, count_text};
use forge_store::model::{BranchStatus, Kind, Timestamp, Value};
use forge_store::model::{SessionMetadata, claim::SessionMetrics};
use forge_store::store::{BranchSummary, RevisionSummary, SourcedFact, StateAt};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The order of the kinds in a document.
const ORDER: [Kind; 29] = {
    use Kind::*;
    [
        Hypothesis, Evidence, Belief, Dependency, Gap, Note, Verification, Command, Code, Message,
        Prompt, Task, Measurement, Agent, Inference, Tool, Notice, Item, Output, Progress,
        ThreadMessage, Program, Run, Thread, GraphStep, Channel, ChannelElement, MemoryItem,
        GraphWrite,
    ]
};

/// The state at a moment, as a document or for a screen.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum StateReport {
    /// The claims and facts, for programs.
    Document(Box<StateDocument>),
    /// The brief, or the requested kinds, for people.
    #[serde(skip)]
    Screen(Box<StateScreen>),
}

/// The state at a moment, for programs.
#[derive(Debug, Serialize)]
pub struct StateDocument {
    /// The last checkpoint at or before the moment, or the one that was given; null if there is
    /// none.
    pub checkpoint: Option<CheckpointJson>,
    /// The revision of the claims; null before the first.
    pub revision: Option<RevisionSummary>,
    /// The moment; null if nothing has happened.
    pub at: Option<Timestamp>,
    /// The time from the last revision or fact at or before the moment to the moment.
    pub distance_seconds: Option<f64>,
    /// The fold that contains the moment; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<FoldedJson>,
    /// The claims and facts.
    pub state: StateJson,
    /// The branch that was current then.
    pub current_branch: String,
    pub session: SessionMetadata,
    /// The session's metrics up to then.
    pub metrics: SessionMetrics,
}

/// Revisions that a pruning folded, so that the exact state at the moment is not known.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoldedJson {
    /// How many folded revisions there are between the revision that is shown and the moment.
    pub revisions: u64,
    /// The number of the revision that contains their changes.
    pub into: u64,
}

impl FoldedJson {
    /// Returns the fold between a state's revision and its moment, if there is one.
    pub fn between(state: &StateAt) -> Result<Option<Self>, CommandError> {
        let found = state.session().folded_at(state.moment())?;
        Ok(found.map(|found| Self { revisions: found.count, into: found.into }))
    }

    /// Describes it in one sentence.
    pub fn sentence(self) -> String {
        let (revisions, into) = (count_text(self.revisions, "revision"), self.into);
        format!("{revisions} up to then were folded into #{into}: this is the state before")
    }
}

/// The claims and facts: one array per kind.
#[derive(Debug)]
pub struct StateJson {
    /// The entities of each requested kind.
    pub kinds: Vec<(Kind, Vec<EntityJson>)>,
    /// The branches; absent if only some kinds were requested.
    pub branches: Option<Vec<BranchJson>>,
}

impl Serialize for StateJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (kind, entities) in &self.kinds {
            map.serialize_entry(kind.plural(), entities)?;
        }
        if let Some(branches) = &self.branches {
            map.serialize_entry("branches", branches)?;
        }
        map.end()
    }
}

/// A branch as it was at a moment. It has no sequence numbers, because these depend on how a
/// session was imported.
#[derive(Debug, Serialize)]
pub struct BranchJson {
    pub name: String,
    pub status: BranchStatus,
    /// Where it was forked; null for `main`.
    pub base: Option<BaseJson>,
    pub created_at: Timestamp,
    /// The time of its head then; null before the first revision.
    pub revision_at: Option<Timestamp>,
    /// The hypothesis that it tests.
    pub hypothesis: Option<String>,
    pub approach: Option<String>,
    /// What would count as success.
    pub success_criteria: Vec<String>,
    pub results: Vec<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Option<forge_store::model::FieldMap>,
}

/// Where a branch was forked.
#[derive(Debug, Serialize)]
pub struct BaseJson {
    /// The branch that it was forked from.
    pub branch: String,
    /// The time of the revision that it was forked from; null if there was none yet.
    pub revision_at: Option<Timestamp>,
}

impl BranchJson {
    fn new(reading: &SessionReader, branch: BranchSummary) -> Result<Self, CommandError> {
        let time = |sequence: Option<u64>| -> Result<Option<Timestamp>, CommandError> {
            let Some(sequence) = sequence else { return Ok(None) };
            Ok(reading.session.at_sequence(sequence)?.time())
        };
        let base = branch.base.map(|(branch, sequence)| {
            Ok::<_, CommandError>(BaseJson { branch, revision_at: time(sequence)? })
        });
        let extra = match branch.metadata.extra {
            Value::Map(fields) => Some(fields),
            _ => None,
        };
        Ok(Self {
            name: branch.name,
            status: branch.status,
            base: base.transpose()?,
            created_at: branch.created_at,
            revision_at: time(branch.revision)?,
            hypothesis: branch.metadata.hypothesis,
            approach: branch.metadata.approach,
            success_criteria: branch.metadata.success_criteria,
            results: branch.metadata.results,
            extra,
        })
    }
}

/// Collects the entities of some kinds; of all kinds if none is given. `facts` are all facts
/// of the state.
pub fn entities_by_kind(
    state: &StateAt,
    facts: &[SourcedFact],
    kinds: &[Kind],
    texts: &mut TextReader<'_>,
) -> Result<Vec<(Kind, Vec<EntityJson>)>, CommandError> {
    let wanted = ORDER.into_iter().filter(|kind| kinds.is_empty() || kinds.contains(kind));
    wanted
        .map(|kind| {
            let known = match kind.is_claim() {
                true => entities_of_kind(state, kind)?,
                false => {
                    let facts = facts.iter().filter(|known| known.fact.kind == kind).cloned();
                    facts.map(KnownEntity::Fact).collect()
                }
            };
            let entities = known.into_iter().map(|known| EntityJson::new(known, texts));
            Ok((kind, entities.collect::<Result<_, _>>()?))
        })
        .collect()
}

impl StateDocument {
    pub fn new(
        reading: &SessionReader,
        state: &StateAt,
        kinds: &[Kind],
        full: bool,
    ) -> Result<Self, CommandError> {
        use crate::text::TextLength;
        let session = &reading.session;
        let mut texts = reading.texts(if full { TextLength::Whole } else { TextLength::Cut });
        let branches = kinds.is_empty().then(|| {
            let branches = state.branches()?.into_iter();
            branches.map(|branch| BranchJson::new(reading, branch)).collect::<Result<Vec<_>, _>>()
        });
        let mut branches = branches.transpose()?;
        if let Some(branches) = &mut branches {
            branches.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        }
        let checkpoint = state.checkpoint()?;
        Ok(Self {
            checkpoint: checkpoint
                .map(|checkpoint| CheckpointJson::with_body(session, &checkpoint, full))
                .transpose()?,
            revision: state.revision()?,
            at: state.time()?,
            distance_seconds: state.distance_micros()?.map(seconds),
            folded: FoldedJson::between(state)?,
            state: StateJson {
                kinds: entities_by_kind(state, &state.facts()?, kinds, &mut texts)?,
                branches,
            },
            current_branch: state.current_branch()?,
            session: state.info()?,
            metrics: state.metrics()?,
        })
    }
}

/// The state at a moment, to be written to a screen: its brief, or the entities of some kinds.
#[derive(Debug)]
pub struct StateScreen {
    pub brief: BriefScreen,
    /// The requested kinds, in place of the brief.
    pub kinds: Option<Vec<(Kind, Vec<EntityJson>)>>,
    /// The fold that contains the moment.
    pub folded: Option<FoldedJson>,
    /// Whether to show all fields instead of a table.
    pub full: bool,
    /// Suggested commands, with what they do.
    pub leads: Vec<(String, &'static str)>,
}

impl Report for StateReport {
    const SCHEMA: Option<&'static str> = Some("forge.state/1");

    fn human(&self, screen: &mut Screen) {
        if let Self::Screen(shown) = self {
            shown.print(screen);
        }
    }
}

impl StateScreen {
    fn print(&self, screen: &mut Screen) {
        if let Some(folded) = self.folded {
            screen.dim(&folded.sentence());
        }
        let Some(kinds) = &self.kinds else {
            let mut below = screen.blank();
            self.print_next_commands(&mut below);
            let room = screen.usable_lines().saturating_sub(below.lines());
            self.brief.print_within(room, screen);
            return screen.append(&below);
        };
        self.brief.print_header(screen);
        for (kind, entities) in kinds.iter().filter(|(_, entities)| !entities.is_empty()) {
            screen.heading(&format!(
                "{} ({})",
                crate::text::name_title(kind.plural()),
                entities.len()
            ));
            if self.full {
                for entity in entities {
                    entity.print_fields(screen);
                }
            } else {
                entity::table(*kind, entities, screen);
            }
        }
        if kinds.iter().all(|(_, entities)| entities.is_empty()) {
            screen.gap();
            screen.plain("There is nothing of that kind at this moment.");
        }
    }

    fn print_next_commands(&self, screen: &mut Screen) {
        if self.leads.is_empty() {
            return;
        }
        screen.end_line();
        let longest = self.leads.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        // A command that is cut cannot be pasted.
        let is_wide = screen.width().is_none_or(|width| longest + 4 < width);
        for (command, what) in &self.leads {
            let text = format!("  {command:longest$}  ");
            if is_wide {
                screen.short_line(&[(Tone::Id, &text), (Tone::Dim, what)]);
            } else {
                screen.line(Tone::Id, text.trim_end());
            }
        }
    }
}
