//! `forge session`.

use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::session::{
    SessionJoinReport, SessionLine, SessionListReport, SessionShowReport,
};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::model::SessionKind;
use forge_store::store::NewSession;

/// Begin, choose and list debugging sessions.
#[derive(Debug, clap::Subcommand)]
pub enum SessionCommand {
    /// Begin a session and make it the current one
    New(SessionNewArgs),
    /// List sessions, the last written one first
    List(SessionListArgs),
    /// Show one session with its metrics
    Show(SessionShowArgs),
    /// Make a session the current one until another is chosen
    Use(SessionUseArgs),
    /// Make the agent session of this command part of another session
    Join(SessionJoinArgs),
}

/// Arguments of `forge session new`.
#[derive(Debug, clap::Args)]
pub struct SessionNewArgs {
    /// Name
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Agent that works in it
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<NameArg>,
}

/// Arguments of `forge session list`.
#[derive(Debug, clap::Args)]
pub struct SessionListArgs {
    /// Also list runs, progress, programs and threads
    #[arg(long)]
    pub all: bool,

    /// Largest number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Arguments of `forge session show`.
#[derive(Debug, clap::Args)]
pub struct SessionShowArgs {
    /// Name or id; the current one by default
    #[arg(value_name = "SESSION")]
    pub which: Option<String>,
}

/// Arguments of `forge session use`.
#[derive(Debug, clap::Args)]
pub struct SessionUseArgs {
    /// Name or id
    #[arg(value_name = "SESSION")]
    pub which: String,
}

/// Arguments of `forge session join`.
#[derive(Debug, clap::Args)]
pub struct SessionJoinArgs {
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

fn new(args: &SessionNewArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let act = workspace::write_context(context, "session new");
    let new = NewSession {
        agent: args.agent.as_ref().map(|agent| agent.as_str().to_owned()),
        ..NewSession::named(args.name.as_str())
    };
    let session = workspace::begin_session(context, &store, &act, new)?;
    if !session.summary()?.current {
        store.pin_session(&act, Some(&session))?;
    }
    context.out.emit(&SessionShowReport::load(&session)?.after("forge.session.new/1", "Began"))?;
    workspace::catch_up_index(&store);
    Ok(())
}

fn list(args: &SessionListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let kinds = if args.all { &SessionKind::ALL[..] } else { &[SessionKind::Debug] };
    let (mut listed, mut others) = (0, 0);
    for kind in SessionKind::ALL {
        let count = store.session_count(kind)? as usize;
        *(if kinds.contains(&kind) { &mut listed } else { &mut others }) += count;
    }
    let sessions = store.latest_sessions(kinds, args.limit.unwrap_or(usize::MAX))?;
    let more = listed - sessions.len().min(listed);
    let sessions = sessions.into_iter().map(SessionLine::from).collect();
    context.out.emit(&SessionListReport { sessions, more, others })
}

fn show(args: &SessionShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let session = match &args.which {
        Some(which) => workspace::named_session(&store, which)?,
        None => workspace::choose_session(context, &store, SessionNeed::Existing)?,
    };
    context.out.emit(&SessionShowReport::load(&session)?.with_metrics(&session)?)
}

fn use_session(args: &SessionUseArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let session = workspace::named_session(&store, &args.which)?;
    if session.summary()?.info.kind != SessionKind::Debug {
        return Err(CommandError::invalid(format!(
            "'{}' is not a debugging session, so it cannot be the current one",
            args.which
        ))
        .hinted("'forge session list' names those that can"));
    }
    store.pin_session(&workspace::write_context(context, "session use"), Some(&session))?;
    context.out.emit(&SessionShowReport::load(&session)?.after("forge.session.use/1", "Chose"))?;
    workspace::catch_up_index(&store);
    Ok(())
}

fn join(args: &SessionJoinArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let agent = workspace::agent_session(context, &store)?;
    let other = workspace::named_session(&store, &args.other)?;
    other.join(&workspace::write_context(context, "session join"), &agent)?;
    context
        .out
        .emit(&SessionJoinReport { session: other.summary()?.info.name, agent_session: agent })?;
    workspace::catch_up_index(&store);
    Ok(())
}
