//! `forge session` begins, chooses, lists, shows, joins, drops and restores sessions.

use crate::args::list_format::ListFormat;
use crate::args::value::{NameArg, session_kind_parser};
use crate::context::Context;
use crate::error::CommandError;
use crate::remote::transfer::Transfer;
use crate::remote::{DEFAULT_NAME, Remotes, about};
use crate::report::formatted_list::FormattedList;
use crate::report::remote::{RemoteSessionLine, RemoteSessionListReport};
use crate::report::session::{
    SessionDropReport, SessionJoinReport, SessionLine, SessionListReport, SessionShowReport,
};
use crate::verb::{EitherReport, OpenedStore, Verb, VerbResult, commands};
use crate::workspace::{self, StoreAccess};
use forge_store::error::Error;
use forge_store::model::SessionKind;
use forge_store::shell::quoted;
use forge_store::store::{NewSession, Session, Store};

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
    /// Remove a session from all lists; 'session restore' brings it back
    Drop(SessionDropArgs),
    /// Bring back a session that was dropped
    Restore(SessionRestoreArgs),
}

#[derive(Debug, clap::Args)]
pub struct SessionNewArgs {
    /// Name
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Agent that works in it
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct SessionListArgs {
    /// Also list sessions of all other kinds
    #[arg(long)]
    pub all: bool,

    /// Kind of the listed sessions; can be repeated
    #[arg(long, value_name = "KIND", value_parser = session_kind_parser(), conflicts_with = "all")]
    pub kind: Vec<SessionKind>,

    /// Maximum number to list
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Line for each, with fields as in JSON: '{name} {last_event}'
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<ListFormat>,

    /// List the sessions on this remote instead of those here; origin by default
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = DEFAULT_NAME,
        conflicts_with_all = ["all", "kind", "limit"]
    )]
    pub remote: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct SessionShowArgs {
    /// Name or id; the current one by default
    #[arg(value_name = "SESSION")]
    pub which: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct SessionUseArgs {
    /// Name or id
    #[arg(value_name = "SESSION")]
    pub which: String,
}

#[derive(Debug, clap::Args)]
pub struct SessionJoinArgs {
    /// Name or id of the session
    #[arg(value_name = "OTHER")]
    pub other: String,
}

#[derive(Debug, clap::Args)]
pub struct SessionDropArgs {
    /// Name or id
    #[arg(value_name = "SESSION")]
    pub which: String,
}

#[derive(Debug, clap::Args)]
pub struct SessionRestoreArgs {
    /// Name that it had, or id
    #[arg(value_name = "NAME|ID")]
    pub name: String,

    /// Kind, if sessions of several kinds had the name
    #[arg(long, value_name = "KIND", value_parser = session_kind_parser())]
    pub kind: Option<SessionKind>,
}

commands!(SessionCommand: New, List, Show, Use, Join, Drop, Restore);

impl Verb for SessionNewArgs {
    const NAME: &'static str = "session new";
    type Opened = OpenedStore;
    type Report = SessionShowReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let new = NewSession {
            agent: self.agent.as_ref().map(|agent| agent.as_str().to_owned()),
            ..NewSession::named(self.name.as_str())
        };
        let session = workspace::begin_session(context, store, &opened.write_context, new)?;
        if !session.summary()?.current {
            store.pin_session(&opened.write_context, Some(&session))?;
        }
        chosen(context, store, &session, "Began")
    }
}

/// Returns the report of a command that made this session the current one.
fn chosen(
    context: &Context,
    store: &Store,
    session: &Session,
    done: &'static str,
) -> Result<SessionShowReport, CommandError> {
    let report = SessionShowReport::load(session)?.after(done);
    // FORGE_SESSION has priority over the current session: if it names another one, the report says
    // so. '--session' is ignored, because it applies only to this command.
    let named = context.session().filter(|name| context.is_session_of_shell(name));
    let Some(name) = named else { return Ok(report) };
    let named = workspace::named_session(store, name).and_then(|named| Ok(named.summary()?.info));
    Ok(match named {
        Ok(info) if info.id == report.line.id => report,
        Ok(info) => report.but_here(info.name),
        Err(_) => report.but_here(name.to_owned()),
    })
}

impl Verb for SessionListArgs {
    const NAME: &'static str = "session list";
    type Opened = OpenedStore;
    type Report =
        EitherReport<FormattedList<SessionListReport>, FormattedList<RemoteSessionListReport>>;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        if let Some(remote) = &self.remote {
            let list = sessions_on_remote(context, opened, remote)?;
            let list = FormattedList::new(list, self.format.as_ref(), |list| &list.sessions)?;
            return Ok(EitherReport::Second(list));
        }
        let kinds = match self.kind.as_slice() {
            _ if self.all => &SessionKind::ALL[..],
            [] => &[SessionKind::Debug],
            kinds => kinds,
        };
        let (mut listed, mut others) = (0_usize, 0);
        for kind in SessionKind::ALL {
            let count = store.session_count(kind)? as usize;
            *(if kinds.contains(&kind) { &mut listed } else { &mut others }) += count;
        }
        let sessions = store.latest_sessions(kinds, self.limit.unwrap_or(usize::MAX))?;
        let more = listed.saturating_sub(sessions.len());
        let sessions = sessions.into_iter().map(SessionLine::from).collect();
        let list = SessionListReport { sessions, more, others };
        let list = FormattedList::new(list, self.format.as_ref(), |list| &list.sessions)?;
        Ok(EitherReport::First(list))
    }
}

/// Lists the sessions on a remote. Reads their refs, and no packs.
fn sessions_on_remote(
    context: &Context,
    opened: &OpenedStore,
    name: &str,
) -> Result<RemoteSessionListReport, CommandError> {
    let known = Remotes::of(context, &opened.store)?.find(Some(name))?.clone();
    let transfer = Transfer::open(opened, known)?;
    let sessions = transfer.remote.sessions().map_err(|error| about(&transfer.known, error.into()));
    let sessions = sessions?;
    let failure = transfer.skipped(context, None);
    let lines = sessions.into_iter().map(|one| {
        let here = transfer.located(one.clone())?.here;
        let here = here.map(|session| session.summary()).transpose()?;
        Ok(RemoteSessionLine::new(one, here.map(|summary| summary.info.name)))
    });
    let sessions = lines.collect::<Result<_, CommandError>>()?;
    Ok(RemoteSessionListReport { remote: transfer.known.name.clone(), sessions, failure })
}

impl Verb for SessionShowArgs {
    const NAME: &'static str = "session show";
    type Opened = OpenedStore;
    type Report = SessionShowReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let which = self.which.as_deref();
        let session = workspace::named_or_chosen_session(context, &opened.store, which)?;
        SessionShowReport::load(&session)?.with_metrics(&session)
    }
}

impl Verb for SessionUseArgs {
    const NAME: &'static str = "session use";
    type Opened = OpenedStore;
    type Report = SessionShowReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let session = workspace::named_session(store, &self.which)?;
        if session.summary()?.info.kind != SessionKind::Debug {
            return Err(CommandError::invalid(format!(
                "'{}' is not a debugging session, so it cannot be the current one",
                self.which
            ))
            .hinted("'forge session list' lists the debugging sessions"));
        }
        store.pin_session(&opened.write_context, Some(&session))?;
        chosen(context, store, &session, "Chose")
    }
}

impl Verb for SessionJoinArgs {
    const NAME: &'static str = "session join";
    type Opened = OpenedStore;
    type Report = SessionJoinReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let agent = workspace::agent_session(context, store)?;
        let other = workspace::named_session(store, &self.other)?;
        other.join(&opened.write_context, &agent)?;
        Ok(SessionJoinReport { session: other.summary()?.info.name, agent_session: agent })
    }
}

impl Verb for SessionDropArgs {
    const NAME: &'static str = "session drop";
    type Opened = OpenedStore;
    type Report = SessionDropReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let session = workspace::named_session(&opened.store, &self.which)?;
        let summary = session.summary()?;
        let info = summary.info;
        opened.store.drop_session(&opened.write_context, &session)?;
        let current = opened.store.current_session()?.filter(|_| summary.current);
        let current = current.map(|session| session.summary()).transpose()?;
        let current = current.map(|summary| summary.info.name);
        let name = quoted(&info.name);
        let mut restore = format!("{} session restore {name}", context.forge());
        if info.kind != SessionKind::Debug {
            restore = format!("{restore} --kind {}", info.kind.name());
        }
        Ok(SessionDropReport { session: info.name, id: info.id, kind: info.kind, current, restore })
    }
}

impl Verb for SessionRestoreArgs {
    const NAME: &'static str = "session restore";
    type Opened = OpenedStore;
    type Report = SessionShowReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let kinds = self.kind.as_ref().map_or(&SessionKind::ALL[..], std::slice::from_ref);
        let mut dropped = Vec::new();
        for kind in kinds {
            let found = opened.store.dropped_session(*kind, &self.name)?;
            dropped.extend(found.map(|session| (*kind, session)));
        }
        match dropped.as_slice() {
            [] => Err(CommandError::not_found(format!(
                "no session '{}' was dropped, or it was permanently deleted since",
                self.name
            ))
            .hinted("'forge session list --all' lists the sessions that exist")
            .hinted("'forge undo' of a pruning brings back what it pruned")),
            [(_, session)] => {
                let id = session.summary()?.info.id;
                session.undo(&opened.write_context, None).map_err(|error| match error {
                    Error::Conflict(_) => CommandError::from(error).hinted(format!(
                        "then '{} session restore {id}' brings this one back",
                        context.forge()
                    )),
                    other => other.into(),
                })?;
                Ok(SessionShowReport::load(session)?.after("Brought back"))
            }
            several => {
                let kinds: Vec<&str> = several.iter().map(|(kind, _)| kind.name()).collect();
                let kinds = kinds.join(", ");
                let message =
                    format!("several dropped sessions are named '{}': {kinds}", self.name);
                Err(CommandError::invalid(message).hinted("choose one with '--kind'"))
            }
        }
    }
}
