//! `forge session`.

use crate::args::value::Name;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::session::{Joined, Line, One, Sessions};
use crate::workplace::{self, Access, Need};
use forge_store::model::SessionKind;
use forge_store::store::NewSession;

/// Begin, choose and list debugging sessions.
#[derive(Debug, clap::Subcommand)]
pub enum SessionCommand {
    /// Begin a session and make it the current one
    New(NewArgs),
    /// List sessions, the last written one first
    List(ListArgs),
    /// Show one session with its metrics
    Show(ShowArgs),
    /// Make a session the current one until another is chosen
    Use(UseArgs),
    /// Make the agent session of this command part of another session
    Join(JoinArgs),
}

/// Arguments of `forge session new`.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Name
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Agent that works in it
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<Name>,
}

/// Arguments of `forge session list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Also list runs, progress, programs and threads
    #[arg(long)]
    pub all: bool,

    /// Largest number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Arguments of `forge session show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name or id; the current one by default
    #[arg(value_name = "SESSION")]
    pub which: Option<String>,
}

/// Arguments of `forge session use`.
#[derive(Debug, clap::Args)]
pub struct UseArgs {
    /// Name or id
    #[arg(value_name = "SESSION")]
    pub which: String,
}

/// Arguments of `forge session join`.
#[derive(Debug, clap::Args)]
pub struct JoinArgs {
    /// Name or id of the session
    #[arg(value_name = "OTHER")]
    pub other: String,
}

/// Runs `forge session`.
pub fn run(command: &SessionCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        SessionCommand::New(args) => new(args, context),
        SessionCommand::List(args) => list(args, context),
        SessionCommand::Show(args) => show(args, context),
        SessionCommand::Use(args) => use_session(args, context),
        SessionCommand::Join(args) => join(args, context),
    }
}

fn new(args: &NewArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let act = workplace::act(context, "session new");
    let new = NewSession {
        agent: args.agent.as_ref().map(|agent| agent.as_str().to_owned()),
        ..NewSession::named(args.name.as_str())
    };
    let session = workplace::begin_session(context, &store, &act, new)?;
    if !session.summary()?.current {
        store.pin_session(&act, Some(&session))?;
    }
    context.out.emit(&One::of(&session)?.after("forge.session.new/1", "Began"))?;
    workplace::finish(&store);
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let mut sessions = store.sessions()?;
    let all = sessions.len();
    sessions.retain(|session| args.all || session.info.kind == SessionKind::Debug);
    let others = all - sessions.len();
    sessions.sort_by_key(|session| {
        let last = session.last_event.unwrap_or(session.info.started_at);
        (std::cmp::Reverse(last), session.info.name.clone())
    });
    let more = args.limit.map_or(0, |limit| sessions.len().saturating_sub(limit));
    sessions.truncate(args.limit.unwrap_or(usize::MAX));
    let sessions = sessions.into_iter().map(Line::from).collect();
    context.out.emit(&Sessions { sessions, more, others })
}

fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let session = match &args.which {
        Some(which) => workplace::named_session(&store, which)?,
        None => workplace::session(context, &store, Need::Existing)?,
    };
    context.out.emit(&One::of(&session)?.with_metrics(&session)?)
}

fn use_session(args: &UseArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let session = workplace::named_session(&store, &args.which)?;
    if session.summary()?.info.kind != SessionKind::Debug {
        return Err(CommandError::invalid(format!(
            "'{}' is not a debugging session, so it cannot be the current one",
            args.which
        ))
        .hinted("'forge session list' names those that can"));
    }
    store.pin_session(&workplace::act(context, "session use"), Some(&session))?;
    context.out.emit(&One::of(&session)?.after("forge.session.use/1", "Chose"))?;
    workplace::finish(&store);
    Ok(())
}

fn join(args: &JoinArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let agent = workplace::agent_session(context, &store)?;
    let other = workplace::named_session(&store, &args.other)?;
    other.join(&workplace::act(context, "session join"), &agent)?;
    context.out.emit(&Joined { session: other.summary()?.info.name, agent_session: agent })?;
    workplace::finish(&store);
    Ok(())
}
