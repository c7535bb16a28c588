//! The tool `record_finding`: what the agent has found out.

use super::super::{McpClient, McpTool, ToolEffect, ToolReply};
use super::{WrittenAnswer, refuse_arguments, required_text, run_write, share};
use crate::commands::belief::{BeliefAddArgs, BeliefContradictArgs, BeliefUpdateArgs};
use crate::commands::evidence::EvidenceAddArgs;
use crate::commands::note::NoteAddArgs;
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::{BeliefKind, EvidenceKind};
use schemars::JsonSchema;
use serde::Deserialize;

/// `record_finding`.
pub(in crate::mcp) struct FindingTool;

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RecordedFindingKind {
    Evidence,
    Belief,
    Note,
}

/// Arguments of `record_finding`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct FindingArguments {
    /// 'evidence' is for or against a hypothesis; a 'belief' is believed to be true; a 'note' is any other remark.
    kind: RecordedFindingKind,
    /// What was found out.
    description: Option<String>,
    /// The id of an existing belief, to change it; omit it for anything new.
    id: Option<String>,
    /// The id of the hypothesis it is about. Evidence needs one.
    hypothesis: Option<String>,
    /// How strongly evidence speaks for the hypothesis, from -1 (refutes) to 1 (proves). Evidence needs it.
    #[schemars(range(min = -1, max = 1))]
    strength: Option<f64>,
    /// What kind of evidence it is.
    evidence_kind: Option<VocabularyTerm<EvidenceKind>>,
    /// What kind of belief it is.
    belief_kind: Option<VocabularyTerm<BeliefKind>>,
    /// How sure a belief is.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// The ids of the evidence for a new belief.
    #[serde(default)]
    evidence: Vec<String>,
    /// The ids of the beliefs that a new belief rests on.
    #[serde(default)]
    rests_on: Vec<String>,
    /// The id of another belief that cannot be true together with the one in 'id'.
    contradicts: Option<String>,
    /// Why they cannot both be true.
    reason: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl McpTool for FindingTool {
    const NAME: &'static str = "record_finding";
    const TITLE: &'static str = "Record a finding";
    const ABOUT: &'static str = "Record what you found out: evidence for or against a hypothesis (its confidence \
        follows), a belief with what it rests on, or a note. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = FindingArguments;
    type Found = WrittenAnswer;

    fn session(arguments: &FindingArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &FindingArguments,
        request: &mut McpRequest,
        _: &McpClient,
    ) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        match arguments.kind {
            RecordedFindingKind::Evidence => record_evidence(arguments, request),
            RecordedFindingKind::Belief if arguments.contradicts.is_some() => {
                record_contradiction(arguments, request)
            }
            RecordedFindingKind::Belief => record_belief(arguments, request),
            RecordedFindingKind::Note => record_note(arguments, request),
        }
    }
}

impl FindingArguments {
    fn belief_arguments(&self) -> [(&'static str, bool); 7] {
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

    fn evidence_arguments(&self) -> [(&'static str, bool); 2] {
        [("strength", self.strength.is_some()), ("evidence_kind", self.evidence_kind.is_some())]
    }
}

fn record_evidence(
    given: &FindingArguments,
    request: &mut McpRequest,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    refuse_arguments("evidence", &given.belief_arguments())?;
    let (Some(hypothesis), Some(strength)) = (&given.hypothesis, given.strength) else {
        return Err(CommandError::invalid("evidence needs 'hypothesis' and 'strength'").hinted(
            "name the hypothesis it is about and how strongly it speaks for it, from -1 to 1; \
             what is about none is a belief or a note",
        ));
    };
    if !(-1.0..=1.0).contains(&strength) {
        return Err(CommandError::invalid("'strength' must be a number from -1 to 1"));
    }
    let add = EvidenceAddArgs {
        description: required_text("description", given.description.as_ref())?,
        hypothesis: hypothesis.clone(),
        strength,
        kind: given.evidence_kind.map(|VocabularyTerm(kind)| kind),
        source: given.source.clone(),
        id: None,
    };
    run_write(request, "evidence", &add)
}

fn record_belief(
    given: &FindingArguments,
    request: &mut McpRequest,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    refuse_arguments("a belief", &given.evidence_arguments())?;
    refuse_arguments("a belief that contradicts none", &[("reason", given.reason.is_some())])?;
    let kind = given.belief_kind.map(|VocabularyTerm(kind)| kind);
    let confidence = given.confidence.map(share).transpose()?;
    match &given.id {
        None => {
            let add = BeliefAddArgs {
                description: required_text("description", given.description.as_ref())?,
                id: None,
                kind,
                confidence,
                source: given.source.clone(),
                hypothesis: given.hypothesis.clone(),
                evidence: given.evidence.clone(),
                on: given.rests_on.clone(),
            };
            run_write(request, "belief", &add)
        }
        Some(id) => {
            refuse_arguments(
                "a belief that is there",
                &[
                    ("hypothesis", given.hypothesis.is_some()),
                    ("evidence", !given.evidence.is_empty()),
                    ("rests_on", !given.rests_on.is_empty()),
                ],
            )?;
            let update = BeliefUpdateArgs {
                id: id.clone(),
                description: given.description.clone(),
                kind,
                confidence,
                source: given.source.clone(),
            };
            run_write(request, "belief", &update)
        }
    }
}

fn record_contradiction(
    given: &FindingArguments,
    request: &mut McpRequest,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    refuse_arguments(
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
    refuse_arguments("a contradiction", &given.evidence_arguments())?;
    let Some(id) = given.id.clone() else {
        return Err(CommandError::invalid("a contradiction needs 'id'").hinted(
            "record the belief first, then name it in 'id' and the other in 'contradicts'",
        ));
    };
    let contradict = BeliefContradictArgs {
        id,
        other: given.contradicts.clone().unwrap_or_default(),
        reason: given.reason.clone(),
    };
    run_write(request, "dependency", &contradict)
}

fn record_note(
    given: &FindingArguments,
    request: &mut McpRequest,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    refuse_arguments("a note", &given.belief_arguments())?;
    refuse_arguments("a note", &given.evidence_arguments())?;
    refuse_arguments("a note", &[("hypothesis", given.hypothesis.is_some())])?;
    let add = NoteAddArgs {
        description: required_text("description", given.description.as_ref())?,
        source: given.source.clone(),
        id: None,
    };
    run_write(request, "note", &add)
}
