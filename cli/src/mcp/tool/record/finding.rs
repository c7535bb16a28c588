//! The tool `record_finding`: what the agent has found out.

use super::super::{McpTool, ToolEffect, ToolReply};
use super::{
    WrittenAnswer, check_number, given_arguments, record_claim, refuse_arguments, rename_argument,
    run_write, word,
};
use crate::commands::belief::BeliefContradictArgs;
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::{Belief, BeliefKind, Evidence, EvidenceKind, Note};
use schemars::JsonSchema;
use serde::Deserialize;

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
    /// 'evidence' is for or against a hypothesis; a 'belief' is believed to be true; a 'note' is
    /// any other remark.
    kind: RecordedFindingKind,
    /// What was found out.
    description: Option<String>,
    /// The id of an existing evidence, belief or note, to correct it; omit it for anything new.
    id: Option<String>,
    /// The id of the hypothesis it is about. Evidence needs one.
    hypothesis: Option<String>,
    /// How strongly evidence speaks for the hypothesis, from -1 (refutes) to 1 (proves). Evidence
    /// needs it.
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
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

impl McpTool for FindingArguments {
    const NAME: &'static str = "record_finding";
    const TITLE: &'static str = "Record a finding";
    const ABOUT: &'static str = "Record what you found out: evidence for or against a hypothesis (its confidence \
        follows), a belief with what it rests on, or a note. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Found = WrittenAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        check_number("confidence", self.confidence, 0.0)?;
        check_number("strength", self.strength, -1.0)?;
        let mut given = given_arguments([
            ("id", self.id.clone().into()),
            ("description", self.description.clone().into()),
            ("hypothesis", self.hypothesis.clone().into()),
            ("strength", self.strength.into()),
            ("evidence_kind", word(self.evidence_kind)),
            ("belief_kind", word(self.belief_kind)),
            ("confidence", self.confidence.into()),
            ("evidence", self.evidence.clone().into()),
            ("rests_on", self.rests_on.clone().into()),
            ("contradicts", self.contradicts.clone().into()),
            ("reason", self.reason.clone().into()),
            ("source", self.source.clone().into()),
        ]);
        match self.kind {
            RecordedFindingKind::Evidence => {
                refuse_arguments("evidence", &given, EVIDENCE)?;
                given.remove("id");
                let is_missing = |name: &str| !given.contains_key(name);
                if self.id.is_none() && (is_missing("hypothesis") || is_missing("strength")) {
                    return Err(CommandError::invalid(
                        "evidence needs 'hypothesis' and 'strength'",
                    )
                    .hinted(
                        "name the hypothesis it is about and how strongly it speaks for it, \
                             from -1 to 1; record a finding about no hypothesis as a belief or a \
                             note",
                    ));
                }
                rename_argument(&mut given, "evidence_kind", "kind");
                record_claim::<Evidence>(request, self.id.clone(), given)
            }
            RecordedFindingKind::Belief if self.contradicts.is_some() => {
                refuse_arguments("a contradiction", &given, &["id", "contradicts", "reason"])?;
                let Some(id) = self.id.clone() else {
                    return Err(CommandError::invalid("a contradiction needs 'id'").hinted(
                        "record the belief first, then name it in 'id' and the other in \
                         'contradicts'",
                    ));
                };
                let other = self.contradicts.clone().unwrap_or_default();
                let reason = self.reason.clone();
                run_write(request, "dependency", &BeliefContradictArgs { id, other, reason })
            }
            RecordedFindingKind::Belief => {
                let (what, allowed) = match &self.id {
                    None => ("a belief", NEW_BELIEF),
                    Some(_) => ("an existing belief", KNOWN_BELIEF),
                };
                refuse_arguments(what, &given, allowed)?;
                given.remove("id");
                rename_argument(&mut given, "belief_kind", "kind");
                rename_argument(&mut given, "rests_on", "on");
                record_claim::<Belief>(request, self.id.clone(), given)
            }
            RecordedFindingKind::Note => {
                refuse_arguments("a note", &given, &["id", "description", "source"])?;
                given.remove("id");
                record_claim::<Note>(request, self.id.clone(), given)
            }
        }
    }
}

const EVIDENCE: &[&str] =
    &["id", "description", "hypothesis", "strength", "evidence_kind", "source"];
const NEW_BELIEF: &[&str] =
    &["description", "belief_kind", "confidence", "source", "hypothesis", "evidence", "rests_on"];
const KNOWN_BELIEF: &[&str] = &["id", "description", "belief_kind", "confidence", "source"];
