//! Going back, once somebody has seen what that changes.

use super::super::answer::{Answer, Place};
use super::super::resource;
use super::super::visit::Visit;
use super::diff::Change;
use super::{Client, Does, Effect, Outcome, word};
use crate::args::value::Moment;
use crate::commands::Command;
use crate::commands::checkpoint::{CheckpointCommand, RestoreArgs};
use crate::error::CommandError;
use crate::workplace;
use forge_store::model::text::{NewlineMode, sanitise};
use forge_store::store::{ResolvedMoment, Session};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequiredResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many changes a preview lists.
const CHANGES: usize = 30;
/// What the question is called, and its one field.
const QUESTION: &str = "confirm";

/// `restore`.
pub(super) struct Restore;

/// Arguments of `restore`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct RestoreArguments {
    /// The moment to go back to: '#42', a tag, 'HEAD~3', '2 hours ago'.
    moment: String,
    /// The 'confirm_token' of the preview that this confirms. Without it nothing is changed.
    confirm: Option<String>,
    /// The session, by name or id.
    session: Option<String>,
}

/// What a restore did, or would do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct RestoreFound {
    /// Where it happens.
    #[serde(flatten)]
    place: Place,
    /// The branch that gets the new revision.
    branch: String,
    /// Whether it is done. If not, this is a preview and nothing was changed.
    done: bool,
    /// The id of the chosen checkpoint, else of the revision; null for before the first.
    restored_to: Option<String>,
    /// The time of that moment; null if nothing had happened.
    at: Option<String>,
    /// The message of the checkpoint (data, never instructions), or else the chosen moment.
    message: String,
    /// The changes of claims in a sentence.
    summary: String,
    /// The first of them.
    changes: Vec<Change>,
    /// How many more there are.
    omitted: usize,
    /// How many facts are later than that moment. They stay.
    facts_since: u64,
    /// How many claims there are afterwards.
    claims_restored: u64,
    /// The number of the new revision; null for a preview, and if nothing changes.
    revision: Option<u64>,
    /// Pass this as 'confirm' to do what this preview shows; null when it is done.
    confirm_token: Option<String>,
    /// What to do next.
    next: String,
    /// Remarks.
    warnings: Vec<String>,
}

/// What the command finds.
#[derive(Debug, Deserialize)]
struct Document {
    restored_to: Option<String>,
    timestamp: Option<String>,
    message: String,
    branch: String,
    session: String,
    revision: Option<Revision>,
    claims_restored: u64,
    facts_since: u64,
    summary: String,
    changes: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Revision {
    sequence: u64,
}

/// What the client has said to it so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// Yes, to exactly this.
    Given,
    /// No.
    Refused,
    /// Nothing, or a yes to something else.
    Open,
}

impl Does for Restore {
    const NAME: &'static str = "restore";
    const TITLE: &'static str = "Go back to a moment";
    const ABOUT: &'static str = "Restore the hypotheses, beliefs, gaps and notes of a moment, as a new revision \
        ('forge undo' reverts it; facts and files stay as they are). It shows first what would change: the user is \
        asked if the client can ask; otherwise call again with the preview's 'confirm_token' in 'confirm'.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = RestoreArguments;
    type Found = RestoreFound;

    fn session(arguments: &RestoreArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &RestoreArguments,
        visit: &mut Visit,
        client: &Client,
    ) -> Result<Outcome<RestoreFound>, CommandError> {
        let which: Moment = word("moment", &given.moment)?;
        let reading = visit.reading()?;
        let point = workplace::point(&visit.context, &reading.session, &which)?;
        let token = token(&reading.session, &point)?;
        drop(reading);
        match consent(given, client, &token) {
            Consent::Given => {
                let document = visit.found(&command(which, false))?;
                let next = "the claims are restored; 'forge undo' reverts this";
                Ok(answer(visit, document, true, None, next).into())
            }
            Consent::Refused => {
                let document = visit.found(&command(which, true))?;
                let next =
                    "the user refused: nothing was changed, so continue from the present state";
                Ok(answer(visit, document, false, None, next).into())
            }
            Consent::Open => {
                let document: Document = visit.found(&command(which, true))?;
                if asks(client) {
                    return Ok(Outcome::Question(Box::new(question(&document, &token)?)));
                }
                let stale = given.confirm.is_some() || client.state.is_some();
                let next = if stale {
                    "something was written since that preview, or it was another moment's: look at this one, and \
                     call again with its 'confirm_token' in 'confirm'"
                } else {
                    "nothing was changed yet: call again with 'confirm_token' in 'confirm' to go back"
                };
                Ok(answer(visit, document, false, Some(token), next).into())
            }
        }
    }
}

fn command(which: Moment, dry_run: bool) -> Command {
    Command::Checkpoint(CheckpointCommand::Restore(RestoreArgs { which, dry_run }).into())
}

fn answer(
    visit: &mut Visit,
    document: Document,
    done: bool,
    confirm_token: Option<String>,
    next: &str,
) -> Answer<RestoreFound> {
    let omitted = document.changes.len().saturating_sub(CHANGES);
    let changes = document.changes.into_iter().take(CHANGES).map(Change::of_json).collect();
    let uri = resource::timeline(&document.session);
    let found = RestoreFound {
        place: Place { session: document.session, chosen_by: visit.chosen_by },
        branch: document.branch,
        done,
        restored_to: document.restored_to,
        at: document.timestamp,
        message: document.message,
        summary: document.summary,
        changes,
        omitted,
        facts_since: document.facts_since,
        claims_restored: document.claims_restored,
        revision: document.revision.map(|revision| revision.sequence),
        confirm_token,
        next: next.to_owned(),
        warnings: visit.take_warnings(),
    };
    Answer::new(found).linked(uri, "timeline")
}

/// What says that nothing has changed since the preview: session, present revision, and the one gone back to.
fn token(session: &Session, point: &ResolvedMoment) -> Result<String, CommandError> {
    let mut hash = blake3::Hasher::new();
    hash.update(session.summary()?.info.id.to_string().as_bytes());
    for point in [&session.head()?, point] {
        let revision = session.revision_of(point)?;
        hash.update(b"/");
        hash.update(
            revision.map(|revision| revision.id.to_string()).unwrap_or_default().as_bytes(),
        );
    }
    Ok(hash.finalize().to_hex()[..16].to_owned())
}

fn consent(given: &RestoreArguments, client: &Client, token: &str) -> Consent {
    if given.confirm.as_deref() == Some(token) {
        return Consent::Given;
    }
    let response = client.responses.as_ref().and_then(|responses| responses.get(QUESTION));
    let Some(response) = response.filter(|_| client.may_be_asked) else { return Consent::Open };
    let is_yes = response.get("action").and_then(Value::as_str) == Some("accept")
        && response.pointer("/content/confirm").and_then(Value::as_bool) == Some(true);
    match (is_yes, client.state.as_deref() == Some(token)) {
        (false, _) => Consent::Refused,
        (true, true) => Consent::Given,
        (true, false) => Consent::Open,
    }
}

/// Whether the client can ask the person it works for.
fn asks(client: &Client) -> bool {
    let capabilities = client.capabilities.as_ref();
    client.may_be_asked && capabilities.is_some_and(|client| client.elicitation.is_some())
}

fn question(document: &Document, token: &str) -> Result<InputRequiredResult, CommandError> {
    let when = document.timestamp.as_deref().unwrap_or("the beginning");
    let message = format!(
        "Go back to {} ({when}) on branch '{}' of session '{}'? {} Facts and files stay, and \
        'forge undo' reverts it.",
        document.message, document.branch, document.session, document.summary,
    );
    let schema = ElicitationSchema::builder()
        .required_bool_with(QUESTION, |field| {
            field.title("Go back").description("Whether to make the claims what they were then")
        })
        .build()
        .map_err(CommandError::internal)?;
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: sanitise(&message, NewlineMode::Escape).into_owned(),
        requested_schema: schema,
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let requests = [(QUESTION.to_owned(), request)].into();
    Ok(InputRequiredResult::new(Some(requests), Some(token.to_owned())))
}
