//! Recording: what the agent holds possible, has found out, has checked, and does not know.

use super::super::answer::{Answer, Named, Place};
use super::super::resource;
use super::super::schema::Term;
use super::super::visit::Visit;
use super::{Client, Does, Effect, Outcome, word, word_if};
use crate::args::value::{Name, said};
use crate::commands::Command;
use crate::commands::belief::{self, BeliefCommand};
use crate::commands::evidence::{self, EvidenceCommand};
use crate::commands::gap::{self, GapCommand, GapFields};
use crate::commands::hypothesis::{self, HypothesisCommand};
use crate::commands::note::{self, NoteCommand};
use crate::commands::verification::{self, VerificationCommand};
use crate::error::CommandError;
use forge_store::model::claim::{
    BeliefKind, Criticality, Effort, EvidenceKind, FillStrategy, GapStatus, GapType,
    HypothesisStatus, VerificationStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many other changes an answer names.
const ALSO: usize = 20;

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct Written {
    /// Where it went.
    #[serde(flatten)]
    place: Place,
    /// The branch it went to.
    branch: String,
    /// What it is.
    kind: String,
    /// Its id: name it by this from now on.
    id: String,
    /// Whether anything changed; what was recorded already changes nothing.
    changed: bool,
    /// The operation, which 'forge undo' takes back; null if nothing changed.
    operation: Option<String>,
    /// The number of the revision that claims came to; null for facts.
    revision: Option<u64>,
    /// The checkpoint that was made along with it; null if none was.
    checkpoint: Option<Made>,
    /// What changed along with it, such as the children of a rejected hypothesis.
    also_changed: Vec<Named>,
    /// How many more changed than are named.
    also_omitted: usize,
    /// What does not go together, and other things to look at.
    warnings: Vec<String>,
    /// Its address.
    uri: String,
}

/// A checkpoint.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct Made {
    /// Its id.
    id: String,
    /// Its number in the session's one count: '#7' names it.
    sequence: u64,
    /// The moment it names.
    time: String,
    /// What it says.
    message: String,
    /// Words it is found by.
    tags: Vec<String>,
}

/// What commands that write find.
#[derive(Debug, Deserialize)]
struct Document {
    session: String,
    branch: String,
    operation: Option<String>,
    id: Option<String>,
    revision: Option<Revision>,
    checkpoint: Option<Made>,
    changed: Vec<Named>,
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Revision {
    sequence: u64,
}

/// Runs a command that writes, and says what it wrote.
pub(super) fn written(
    visit: &mut Visit,
    kind: &str,
    command: &Command,
) -> Result<Outcome<Written>, CommandError> {
    let document: Document = visit.found(command)?;
    let id = document.id.unwrap_or_default();
    let mut also: Vec<Named> = document.changed;
    also.retain(|changed| changed.kind != kind || changed.id != id);
    let also_omitted = also.len().saturating_sub(ALSO);
    also.truncate(ALSO);
    let mut warnings = document.warnings;
    warnings.extend(visit.take_warnings());
    let uri = if kind == "checkpoint" {
        resource::checkpoint(&id)
    } else {
        resource::entity(&document.session, kind, &id)
    };
    let place = Place { session: document.session, chosen_by: visit.chosen_by };
    let name = format!("{kind} {id}");
    let found = Written {
        place,
        branch: document.branch,
        kind: kind.to_owned(),
        id,
        changed: document.operation.is_some(),
        operation: document.operation,
        revision: document.revision.map(|revision| revision.sequence),
        checkpoint: document.checkpoint,
        also_changed: also,
        also_omitted,
        warnings,
        uri: uri.clone(),
    };
    Ok(Answer::new(found).linked(uri, name).into())
}

/// The text that says it, which may not be empty.
fn text(argument: &str, given: Option<&String>) -> Result<String, CommandError> {
    let Some(given) = given else {
        return Err(CommandError::invalid(format!("'{argument}' is missing"))
            .hinted(format!("say it in '{argument}'")));
    };
    said(given).map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Refuses arguments that mean nothing here.
fn refuse(what: &str, given: &[(&str, bool)]) -> Result<(), CommandError> {
    let names: Vec<String> =
        given.iter().filter(|(_, given)| *given).map(|(name, _)| format!("'{name}'")).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(CommandError::invalid(format!("{what} takes no {}", names.join(", ")))
        .hinted("leave these out, or give them in a call of their own"))
}

fn names(argument: &str, given: &[String]) -> Result<Vec<Name>, CommandError> {
    given.iter().map(|name| word(argument, name)).collect()
}

/// `record_hypothesis`.
pub(super) struct Hypothesis;

/// Arguments of `record_hypothesis`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct HypothesisArguments {
    /// The id of a hypothesis that is there already; leave it out to state a new one.
    id: Option<String>,
    /// What might explain the problem.
    description: Option<String>,
    /// How likely it is.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// Where the work on it stands. 'confirmed' and 'rejected' settle one that is there, with what follows from it.
    status: Option<Term<HypothesisStatus>>,
    /// Why it is confirmed or rejected.
    reason: Option<String>,
    /// The id of the hypothesis that it is a part of.
    parent: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// Words it is found by.
    #[serde(default)]
    tags: Vec<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Hypothesis {
    const NAME: &'static str = "record_hypothesis";
    const TITLE: &'static str = "Record a hypothesis";
    const ABOUT: &'static str = "Record what you believe might explain the problem, as soon as you believe it; later \
        change it by its id, and confirm or reject it when it is settled, with the reason. Rejecting one rejects its \
        parts. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = HypothesisArguments;
    type Found = Written;

    fn session(arguments: &HypothesisArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &HypothesisArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        written(visit, "hypothesis", &Command::Hypothesis(hypothesis_command(arguments)?))
    }
}

fn hypothesis_command(given: &HypothesisArguments) -> Result<HypothesisCommand, CommandError> {
    let settles = given.status.map(|Term(status)| status).filter(|status| {
        matches!(status, HypothesisStatus::Confirmed | HypothesisStatus::Rejected)
    });
    let confidence = given.confidence.map(share).transpose()?;
    let status = given.status.map(|Term(status)| status);
    let tags = names("tags", &given.tags)?;
    if settles.is_none() && given.reason.is_some() {
        return Err(CommandError::invalid("'reason' says why a hypothesis is settled")
            .hinted("give it with 'status' confirmed or rejected"));
    }
    let Some(id) = given.id.clone() else {
        if settles.is_some() {
            return Err(CommandError::invalid("a new hypothesis is not settled yet")
                .hinted("state it first, then settle it by its 'id'"));
        }
        return Ok(HypothesisCommand::Add(hypothesis::AddArgs {
            description: text("description", given.description.as_ref())?,
            id: None,
            confidence,
            status,
            parent: given.parent.clone(),
            source: given.source.clone(),
            tags,
        }));
    };
    refuse("a hypothesis that is there", &[("source", given.source.is_some())])?;
    if let Some(status) = settles {
        refuse(
            "settling a hypothesis",
            &[
                ("description", given.description.is_some()),
                ("confidence", confidence.is_some()),
                ("parent", given.parent.is_some()),
                ("tags", !tags.is_empty()),
            ],
        )?;
        let settle = hypothesis::SettleArgs { id, reason: given.reason.clone() };
        return Ok(match status {
            HypothesisStatus::Confirmed => HypothesisCommand::Confirm(settle),
            _ => HypothesisCommand::Reject(settle),
        });
    }
    Ok(HypothesisCommand::Update(hypothesis::UpdateArgs {
        id,
        description: given.description.clone(),
        confidence,
        status,
        parent: given.parent.clone(),
        add_tags: tags,
        remove_tags: Vec::new(),
    }))
}

fn share(share: f64) -> Result<f64, CommandError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(CommandError::invalid("'confidence' must be a number from 0 to 1"))
}

/// `record_finding`.
pub(super) struct Finding;

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum FindingKind {
    Evidence,
    Belief,
    Note,
}

/// Arguments of `record_finding`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct FindingArguments {
    /// 'evidence' speaks for or against a hypothesis; a 'belief' is held to be true; a 'note' is any other remark.
    kind: FindingKind,
    /// What was found out.
    description: Option<String>,
    /// The id of a belief that is there already, to change it; leave it out for anything new.
    id: Option<String>,
    /// The id of the hypothesis it is about. Evidence needs one.
    hypothesis: Option<String>,
    /// How strongly evidence speaks for the hypothesis, from -1 (refutes) to 1 (proves). Evidence needs it.
    #[schemars(range(min = -1, max = 1))]
    strength: Option<f64>,
    /// What kind of evidence it is.
    evidence_kind: Option<Term<EvidenceKind>>,
    /// What kind of belief it is.
    belief_kind: Option<Term<BeliefKind>>,
    /// How sure a belief is.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// The ids of the evidence for a new belief.
    #[serde(default)]
    evidence: Vec<String>,
    /// The ids of the beliefs that a new belief rests on.
    #[serde(default)]
    rests_on: Vec<String>,
    /// The id of another belief that cannot be true beside the one in 'id'.
    contradicts: Option<String>,
    /// Why they cannot both be true.
    reason: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Finding {
    const NAME: &'static str = "record_finding";
    const TITLE: &'static str = "Record a finding";
    const ABOUT: &'static str = "Record what you found out: evidence for or against a hypothesis (its confidence \
        follows), a belief with what it rests on, or a note. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = FindingArguments;
    type Found = Written;

    fn session(arguments: &FindingArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &FindingArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        let (kind, command) = match arguments.kind {
            FindingKind::Evidence => ("evidence", evidence_command(arguments)?),
            FindingKind::Belief if arguments.contradicts.is_some() => {
                ("dependency", contradiction(arguments)?)
            }
            FindingKind::Belief => ("belief", belief_command(arguments)?),
            FindingKind::Note => ("note", note_command(arguments)?),
        };
        written(visit, kind, &command)
    }
}

impl FindingArguments {
    fn of_beliefs(&self) -> [(&'static str, bool); 7] {
        [
            ("id", self.id.is_some()),
            ("belief_kind", self.belief_kind.is_some()),
            ("confidence", self.confidence.is_some()),
            ("evidence", !self.evidence.is_empty()),
            ("rests_on", !self.rests_on.is_empty()),
            ("contradicts", self.contradicts.is_some()),
            ("reason", self.reason.is_some()),
        ]
    }

    fn of_evidence(&self) -> [(&'static str, bool); 2] {
        [("strength", self.strength.is_some()), ("evidence_kind", self.evidence_kind.is_some())]
    }
}

fn evidence_command(given: &FindingArguments) -> Result<Command, CommandError> {
    refuse("evidence", &given.of_beliefs())?;
    let (Some(hypothesis), Some(strength)) = (&given.hypothesis, given.strength) else {
        return Err(CommandError::invalid("evidence needs 'hypothesis' and 'strength'").hinted(
            "name the hypothesis it is about and how strongly it speaks for it, from -1 to 1; \
             what is about none is a belief or a note",
        ));
    };
    if !(-1.0..=1.0).contains(&strength) {
        return Err(CommandError::invalid("'strength' must be a number from -1 to 1"));
    }
    Ok(Command::Evidence(EvidenceCommand::Add(evidence::AddArgs {
        description: text("description", given.description.as_ref())?,
        hypothesis: hypothesis.clone(),
        strength,
        kind: given.evidence_kind.map(|Term(kind)| kind),
        source: given.source.clone(),
        id: None,
    })))
}

fn belief_command(given: &FindingArguments) -> Result<Command, CommandError> {
    refuse("a belief", &given.of_evidence())?;
    refuse("a belief that contradicts none", &[("reason", given.reason.is_some())])?;
    let kind = given.belief_kind.map(|Term(kind)| kind);
    let confidence = given.confidence.map(share).transpose()?;
    Ok(Command::Belief(match &given.id {
        None => BeliefCommand::Add(belief::AddArgs {
            description: text("description", given.description.as_ref())?,
            id: None,
            kind,
            confidence,
            source: given.source.clone(),
            hypothesis: given.hypothesis.clone(),
            evidence: given.evidence.clone(),
            on: given.rests_on.clone(),
        }),
        Some(id) => {
            refuse(
                "a belief that is there",
                &[
                    ("hypothesis", given.hypothesis.is_some()),
                    ("evidence", !given.evidence.is_empty()),
                    ("rests_on", !given.rests_on.is_empty()),
                ],
            )?;
            BeliefCommand::Update(belief::UpdateArgs {
                id: id.clone(),
                description: given.description.clone(),
                kind,
                confidence,
                source: given.source.clone(),
            })
        }
    }))
}

fn contradiction(given: &FindingArguments) -> Result<Command, CommandError> {
    refuse(
        "a contradiction",
        &[
            ("description", given.description.is_some()),
            ("belief_kind", given.belief_kind.is_some()),
            ("confidence", given.confidence.is_some()),
            ("hypothesis", given.hypothesis.is_some()),
            ("evidence", !given.evidence.is_empty()),
            ("rests_on", !given.rests_on.is_empty()),
            ("source", given.source.is_some()),
        ],
    )?;
    refuse("a contradiction", &given.of_evidence())?;
    let Some(id) = given.id.clone() else {
        return Err(CommandError::invalid("a contradiction needs 'id'").hinted(
            "record the belief first, then name it in 'id' and the other in 'contradicts'",
        ));
    };
    Ok(Command::Belief(BeliefCommand::Contradict(belief::ContradictArgs {
        id,
        other: given.contradicts.clone().unwrap_or_default(),
        reason: given.reason.clone(),
    })))
}

fn note_command(given: &FindingArguments) -> Result<Command, CommandError> {
    refuse("a note", &given.of_beliefs())?;
    refuse("a note", &given.of_evidence())?;
    refuse("a note", &[("hypothesis", given.hypothesis.is_some())])?;
    Ok(Command::Note(NoteCommand::Add(note::AddArgs {
        description: text("description", given.description.as_ref())?,
        source: given.source.clone(),
        id: None,
    })))
}

/// `record_verification`.
pub(super) struct Verification;

/// Arguments of `record_verification`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct VerificationArguments {
    /// What was checked: the name of a test, a build, a linter.
    name: String,
    /// How it ended.
    status: Term<VerificationStatus>,
    /// The command that checked it.
    command: Option<String>,
    /// The code with which that command exited.
    exit_code: Option<i64>,
    /// How long it took, in milliseconds.
    duration_ms: Option<u64>,
    /// What it printed, as far as it matters.
    output: Option<String>,
    /// What it means.
    description: Option<String>,
    /// Where it comes from: a file and line, a document.
    source: Option<String>,
    /// When it ended, if not now: '10m', 'yesterday 14:30', RFC 3339.
    at: Option<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Verification {
    const NAME: &'static str = "record_verification";
    const TITLE: &'static str = "Record a test result";
    const ABOUT: &'static str = "Record the result of a test, build or check that hooks do not see, as it happened: a \
        fact, the same on every branch. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = VerificationArguments;
    type Found = Written;

    fn session(arguments: &VerificationArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &VerificationArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        let Term(status) = given.status;
        let command = VerificationCommand::Add(verification::AddArgs {
            name: text("name", Some(&given.name))?,
            status,
            command: given.command.clone(),
            duration: given.duration_ms.map(Duration::from_millis),
            output: given.output.clone(),
            exit_code: given.exit_code,
            description: given.description.clone(),
            source: given.source.clone(),
            at: word_if("at", given.at.as_ref())?,
            id: None,
        });
        written(visit, "verification", &Command::Verification(command))
    }
}

/// `record_gap`.
pub(super) struct Gap;

/// Arguments of `record_gap`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct GapArguments {
    /// The id of a gap that is there already; leave it out to name a new one.
    id: Option<String>,
    /// What is not known and should be.
    description: Option<String>,
    /// How much depends on it.
    criticality: Option<Term<Criticality>>,
    /// What kind of gap it is.
    #[serde(rename = "type")]
    gap_type: Option<Term<GapType>>,
    /// The ids of the hypotheses it holds up, or 'all' or 'none' alone.
    #[serde(default)]
    blocking: Vec<String>,
    /// How it could be filled.
    fill_strategy: Option<Term<FillStrategy>>,
    /// How much work that is.
    effort: Option<Term<Effort>>,
    /// What has become of it. 'filled' needs 'resolution'.
    status: Option<Term<GapStatus>>,
    /// What was found out; of a gap that is unfillable or obsolete, why.
    resolution: Option<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Gap {
    const NAME: &'static str = "record_gap";
    const TITLE: &'static str = "Record an open question";
    const ABOUT: &'static str = "Record what you do not know and need to find out or ask; later fill it by its id with \
        what was found out. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = GapArguments;
    type Found = Written;

    fn session(arguments: &GapArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &GapArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        written(visit, "gap", &Command::Gap(gap_command(arguments)?))
    }
}

fn gap_command(given: &GapArguments) -> Result<GapCommand, CommandError> {
    let fields = GapFields {
        gap_type: given.gap_type.map(|Term(word)| word),
        criticality: given.criticality.map(|Term(word)| word),
        blocking: given.blocking.clone(),
        fill_strategy: given.fill_strategy.map(|Term(word)| word),
        effort: given.effort.map(|Term(word)| word),
    };
    let status = given.status.map(|Term(status)| status);
    let Some(id) = given.id.clone() else {
        refuse(
            "a new gap",
            &[
                ("status", status.is_some_and(|status| status != GapStatus::Open)),
                ("resolution", given.resolution.is_some()),
            ],
        )?;
        let description = text("description", given.description.as_ref())?;
        return Ok(GapCommand::Add(gap::AddArgs { description, id: None, fields }));
    };
    if status == Some(GapStatus::Filled) {
        refuse(
            "filling a gap",
            &[
                ("description", given.description.is_some()),
                ("criticality", fields.criticality.is_some()),
                ("type", fields.gap_type.is_some()),
                ("blocking", !fields.blocking.is_empty()),
                ("fill_strategy", fields.fill_strategy.is_some()),
                ("effort", fields.effort.is_some()),
            ],
        )?;
        let resolution = text("resolution", given.resolution.as_ref())?;
        return Ok(GapCommand::Fill(gap::FillArgs { id, resolution }));
    }
    let (description, resolution) = (given.description.clone(), given.resolution.clone());
    Ok(GapCommand::Update(gap::UpdateArgs { id, description, status, resolution, fields }))
}
