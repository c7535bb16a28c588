//! Opens the store of a command, and finds its session and the moments and claims that it names.

use crate::args::value::{MomentArg, to_micros};
use crate::config::key;
use crate::context::Context;
use crate::database;
use crate::error::{CommandError, CommandErrorKind};
use crate::hook::agent_process::{self, AgentProcess};
use crate::id_match::{match_id, nearest_hint, nearest_names};
use crate::output::time::local;
use crate::report::session::OTHER_SESSIONS;
use crate::text::count_text;
use chrono::TimeZone;
use forge_agents::hook::HookAgent;
use forge_store::error::Error;
use forge_store::model::time_grammar::{self, MomentBase, parse_time};
use forge_store::model::{Key, Kind, SessionKind, Timestamp, claim};
use forge_store::redact::{Redactor, TextForm};
use forge_store::shell::quoted;
use forge_store::store::{
    APPLY_BYTES, CheckpointFilter, IDLE_TAIL_BYTES, NewSession, Options, ResolvedMoment,
    SealStatus, Session, StateAt, Store, WriteContext,
};
use forge_store::store_place::STORE_FOLDER;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a command uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// Read from one snapshot. Works even if nothing can be written.
    Read,
    /// Read, including what other processes write in the meantime.
    Follow,
    Write,
}

/// What a command does if there is no session yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionNeed {
    /// It needs an existing session.
    Existing,
    /// It creates one, named after the project's directory.
    OrNew,
}

/// The name of a new session if the directory's name cannot be one.
const UNNAMED: &str = "project";

pub fn open_store(context: &Context, access: StoreAccess) -> Result<Store, CommandError> {
    let path = context.store_directory()?;
    if access == StoreAccess::Write {
        crate::git::private_repository::remove_leftovers(&path);
    }
    let store = Store::open(&path, store_options(context, access))?;
    if access == StoreAccess::Read {
        store.hold();
    }
    warn_unverified(context, &store)?;
    Ok(store)
}

/// What to do about writes without the store's seal.
pub const UNSEALED_REMEDY: &str = "'forge adopt' accepts such writes; or remove their files";

/// Says how many writes in the spool are left out because they do not have the store's seal.
pub fn unsealed_text(count: u64) -> String {
    let writes = count_text(count, "write");
    format!("left out of what is read: {writes} in the spool without the store's seal")
}

/// Warns about data that cannot be verified, and notes it for the exit code.
fn warn_unverified(context: &Context, store: &Store) -> Result<(), CommandError> {
    let missing = match store.seal_status() {
        SealStatus::Unsealed => return Ok(()),
        SealStatus::Sealed => None,
        SealStatus::NoKey => Some(match store.damaged_key() {
            Some(error) => error.to_string(),
            None => "the store's key is not on this machine".to_owned(),
        }),
        SealStatus::NoWitness => Some("the store's witness is not on this machine".to_owned()),
    };
    if let Some(missing) = &missing {
        context.out.warn(&format!(
            "{missing}: what is read cannot be fully verified, and only notes, facts and \
            checkpoints can be saved, in the spool ('forge key import' restores the key, \
            'forge adopt' accepts the store as it is)"
        ));
    }
    let unsealed = store.spool_status()?.unsealed.len();
    if unsealed > 0 {
        context.out.warn(&format!("{} ({UNSEALED_REMEDY})", unsealed_text(unsealed as u64)));
    }
    if missing.is_some() || unsealed > 0 {
        context.unverified.set(true);
    }
    Ok(())
}

/// Returns the options with which a command opens a store.
pub fn store_options(context: &Context, access: StoreAccess) -> Options {
    Options::default()
        .lock_timeout(context.lock_timeout())
        .read_only(access != StoreAccess::Write)
        .redaction(redactor(context).map(Arc::new))
        .keyring(context.environment.keyring())
        // A command ends soon, so caching more would have no benefit.
        .head_bytes(64 << 20)
        .connector(database::connector(context))
}

/// Returns the redactor, with the exceptions of the settings and flags; `None` if secrets are to be
/// stored.
pub fn redactor(context: &Context) -> Option<Redactor> {
    let config = &context.config;
    config.is_on(key::REDACT_ENABLED).then(|| {
        Redactor::new()
            .allow(config.words(key::REDACT_ALLOW))
            .allow(&context.global.redact_allow)
            .keep_variables(config.words(key::REDACT_VARIABLES).iter().cloned())
    })
}

/// Refuses a text that contains a probable secret and cannot be stored without it.
pub fn refuse_secret(context: &Context, what: &str, text: &str) -> Result<(), CommandError> {
    match redactor(context).and_then(|redactor| redactor.secret_in_name(text)) {
        None => Ok(()),
        Some(kind) => {
            let message = format!("the {what} holds what looks like a secret ({kind})");
            Err(CommandError::invalid(message)
                .hinted("choose another; 'forge redact' shows what is taken for a secret"))
        }
    }
}

/// Returns the text without probable secrets.
pub fn redact(context: &Context, text: &str) -> String {
    redactor(context).map_or_else(
        || text.to_owned(),
        |redactor| redactor.clean(text, TextForm::Plain).into_owned(),
    )
}

/// Updates the index if much was written since its last update. Call it after the result was
/// printed. A failure loses nothing.
pub fn catch_up_index(store: &Store) {
    update_index(store, APPLY_BYTES);
}

/// Updates the index at the end of an agent's turn, also if less was written: every hook of the
/// next turn reads what is not in the index. A failure loses nothing.
pub fn index_turn(store: &Store) {
    update_index(store, IDLE_TAIL_BYTES);
}

/// Updates the index after an import, even if little was written: the imported data is read next.
/// A failure loses nothing.
pub fn index_import(store: &Store) {
    update_index(store, 1);
}

/// Updates the index if reading the journal's tail costs more than reading `tail_cost` bytes.
fn update_index(store: &Store, tail_cost: u64) {
    let applied = store.maintain(tail_cost).and_then(|applied| {
        if applied {
            store.keep_reserve()?;
        }
        Ok(applied)
    });
    match applied {
        Ok(true) => tracing::info!("the index was brought up to date"),
        Ok(false) => {}
        Err(error) => tracing::info!(%error, "the index was left as it is"),
    }
}

/// Returns the session of a command: the one that was given, or else the session of the agent that
/// runs this process, or else the current one. In the second case, a note names the agent.
///
/// # Errors
///
/// Not found if there is no such session, or no session at all and one is needed.
pub fn choose_session(
    context: &Context,
    store: &Store,
    need: SessionNeed,
) -> Result<Session, CommandError> {
    if let Some(name) = context.session() {
        return match named_session(store, name) {
            // The variables of an agent's shell name its session before it has recorded anything.
            Err(error) if need == SessionNeed::OrNew && is_of_agent(context, store, name) => {
                first_agent_session(context, store, name, None).map_err(|_| error)
            }
            found => found,
        };
    }
    if let Some(process) = agent_around(store) {
        let known = store.agent_session(&process.session)?;
        let session = match (known, need) {
            (Some(session), _) => Some(session),
            (None, SessionNeed::OrNew) => {
                Some(first_agent_session(context, store, &process.session, Some(&process.agent))?)
            }
            (None, SessionNeed::Existing) => None,
        };
        if let Some(session) = session {
            context.out.note_agent_session(&process.agent, &session.summary()?.info.name);
            return Ok(session);
        }
    }
    if let Some(session) = store.current_session()? {
        return Ok(session);
    }
    match need {
        SessionNeed::Existing if store.latest_sessions(&SessionKind::ALL, 1)?.is_empty() => {
            Err(CommandError::not_found("this store has no session yet")
                .hinted("the first thing you record begins one; 'forge session new NAME' too"))
        }
        SessionNeed::Existing => {
            Err(CommandError::not_found("this store has no debugging session yet")
                .hinted(OTHER_SESSIONS))
        }
        SessionNeed::OrNew => first_session(context, store),
    }
}

/// Returns the session that [`choose_session`] chooses for a command that only reads, without a
/// note about the agent; `None` if there is no session yet.
pub fn session_to_read(context: &Context, store: &Store) -> Result<Option<Session>, CommandError> {
    if let Some(name) = context.session() {
        return named_session(store, name).map(Some);
    }
    let of_agent = agent_around(store).map(|process| store.agent_session(&process.session));
    match of_agent.transpose()?.flatten() {
        Some(session) => Ok(Some(session)),
        None => Ok(store.current_session()?),
    }
}

/// Returns the agent's own id of the session that this command is called from.
pub fn agent_session(context: &Context, store: &Store) -> Result<String, CommandError> {
    if let Some(name) = context.session() {
        if is_of_agent(context, store, name) {
            return Ok(name.to_owned());
        }
        let info = named_session(store, name)?.summary()?.info;
        return info.agent_session.ok_or_else(|| {
            CommandError::invalid(format!("'{name}' is not a session of an agent"))
                .hinted("'forge session list' shows whose each is")
        });
    }
    agent_around(store).map(|process| process.session).ok_or_else(|| {
        CommandError::invalid("this is not called from an agent whose hooks run here")
            .hinted("'--session' names the agent's own session, by the agent's id of it")
            .hinted("'forge session use NAME' chooses the session for your own commands")
    })
}

/// Returns the process of the agent that runs this process, if a hook of this store recorded it.
pub fn agent_around(store: &Store) -> Option<AgentProcess> {
    store.notes().as_deref().and_then(agent_process::ancestor_agent)
}

/// Whether this name is an agent's own id of its session. Either that agent runs this process, or
/// FORGE_SESSION has the name and a hook has recorded the agent.
fn is_of_agent(context: &Context, store: &Store, name: &str) -> bool {
    agent_around(store).is_some_and(|process| process.session == name)
        || (context.is_session_of_shell(name)
            && agent_process::is_noted(store.notes().as_deref(), name))
}

/// Creates the session of an agent that has recorded nothing yet.
fn first_agent_session(
    context: &Context,
    store: &Store,
    id: &str,
    agent: Option<&str>,
) -> Result<Session, CommandError> {
    let agent = agent.and_then(HookAgent::from_word).map(|agent| agent.session_word().to_owned());
    let id = store.without_secrets(id);
    let name = id.chars().take(8).collect::<String>();
    let new = NewSession { agent, agent_session: Some(id), ..NewSession::imported(name) };
    Ok(store.session_for_agent(&write_context(context, "session new"), new)?)
}

/// Finds the session with this name or id.
pub fn named_session(store: &Store, name: &str) -> Result<Session, CommandError> {
    store.session(name).map_err(|error| match error {
        Error::NotFound { .. } => CommandError::from(error)
            .hinted("'forge session list' names them, 'forge session new NAME' begins one"),
        other => other.into(),
    })
}

/// Checks that commands find the session that `--session` or FORGE_SESSION names, if one does. An
/// agent's session that has recorded nothing yet is made by the first command that writes.
pub fn check_session(context: &Context, store: &Store) -> Result<(), CommandError> {
    match context.session() {
        Some(name) if !is_of_agent(context, store, name) => named_session(store, name).map(|_| ()),
        _ => Ok(()),
    }
}

/// Finds the sessions with these names or ids, each once.
pub fn named_sessions(store: &Store, names: &[String]) -> Result<Vec<Session>, CommandError> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for name in names {
        let session = named_session(store, name)?;
        if known.insert(session.summary()?.info.id) {
            found.push(session);
        }
    }
    Ok(found)
}

/// Finds the session with this name or id; without a name, the existing one of the command.
pub fn named_or_chosen_session(
    context: &Context,
    store: &Store,
    name: Option<&str>,
) -> Result<Session, CommandError> {
    match name {
        Some(name) => named_session(store, name),
        None => choose_session(context, store, SessionNeed::Existing),
    }
}

fn first_session(context: &Context, store: &Store) -> Result<Session, CommandError> {
    let name = project_name(context, store);
    let act = write_context(context, "session new");
    match begin_session(context, store, &act, NewSession::named(name.clone())) {
        // Another process created it first.
        Err(Error::Duplicate { .. }) => Ok(store.session(&name)?),
        made => Ok(made?),
    }
}

/// Creates a session, with the checkpoint schedule of the settings.
pub fn begin_session(
    context: &Context,
    store: &Store,
    act: &WriteContext,
    new: NewSession,
) -> Result<Session, Error> {
    let session = store.create_session(act, new)?;
    if let Some(every) = context.config.duration(key::SCHEDULE_EVERY) {
        session.schedule(act, Some(to_micros(every)))?;
    }
    Ok(session)
}

/// Returns the name of the directory that contains `.forge`, or of the current directory if the
/// store is not a folder of this name.
fn project_name(context: &Context, store: &Store) -> String {
    let beside = store.path().filter(|path| path.file_name().is_some_and(|n| n == STORE_FOLDER));
    let project = beside.and_then(|path| path.parent()).unwrap_or(&context.cwd);
    let name = project.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    session_name_of(&name, UNNAMED).to_owned()
}

/// Returns the name of a file as the name of a session; `otherwise` if it cannot be one, because
/// it is too long, blank, or has control characters.
pub fn session_name_of<'n>(file: &'n str, otherwise: &'n str) -> &'n str {
    let name = file.trim();
    if claim::check_id(name).is_ok() { name } else { otherwise }
}

/// Returns the context of a write that a person or agent asked for now.
pub fn write_context(context: &Context, verb: &str) -> WriteContext {
    WriteContext::asked(verb, context.now)
}

/// Resolves a moment; `None` means the head.
pub fn moment_or_head(
    context: &Context,
    session: &Session,
    moment: Option<&MomentArg>,
) -> Result<ResolvedMoment, CommandError> {
    match moment {
        Some(moment) => resolved_moment(context, session, moment),
        None => Ok(session.head()?),
    }
}

/// Parses a moment in this session: a number that is no tag, branch or id prefix here can be a
/// time. A note about an ambiguous local time is printed to stderr.
pub fn parsed_moment(
    context: &Context,
    session: &Session,
    moment: &MomentArg,
) -> Result<time_grammar::MomentExpression, CommandError> {
    let moment = session.resolve_ambiguous(context.moment(moment)?)?;
    if let MomentBase::Time(time) | MomentBase::BranchAt { time, .. } = &moment.base
        && let Some(note) = &time.note
    {
        context.out.warn(&note.to_string());
    }
    Ok(moment)
}

/// Resolves a moment in this session. A note about an ambiguous local time is printed to stderr.
pub fn resolved_moment(
    context: &Context,
    session: &Session,
    moment: &MomentArg,
) -> Result<ResolvedMoment, CommandError> {
    let resolved = unhinted_moment(context, session, moment);
    resolved.map_err(|error| hint_moment(session, moment, error))
}

/// Resolves a text that may be something else than a moment. The error is that of
/// [`resolved_moment`] without the hint of [`hint_moment`], for which all facts are read.
pub fn unhinted_moment(
    context: &Context,
    session: &Session,
    text: &MomentArg,
) -> Result<ResolvedMoment, CommandError> {
    resolve_here(context, session, &parsed_moment(context, session, text)?)
}

/// Adds a hint to the error about a moment if it is the message of a checkpoint, or the id of a
/// claim, also of a removed one.
pub fn hint_moment(session: &Session, moment: &MomentArg, error: CommandError) -> CommandError {
    let text = moment.as_str();
    let all = session.checkpoints(&CheckpointFilter::default()).unwrap_or_default();
    if let Some(one) = all.iter().find(|one| one.message.eq_ignore_ascii_case(text)) {
        return error.hinted(format!("the checkpoint '#{}' has this message", one.sequence));
    }
    let Ok(state) = session.head().and_then(|head| session.state(&head)) else { return error };
    match kind_of_id(&state, text) {
        Ok(Some(kind)) if kind.is_claim() => error.hinted(format!(
            "'{text}' is of the kind {kind}: 'forge log {text}' shows its changes, each with its \
             moment"
        )),
        Ok(None) => match removed_claim(session, state.moment(), Kind::claims(), text) {
            Some(key) => error.hinted(removed_hint(&key)),
            None => error,
        },
        _ => error,
    }
}

/// Resolves a parsed moment in a session, at the time and in the zone of the command.
///
/// # Errors
///
/// See [`resolve`].
pub fn resolve_here(
    context: &Context,
    session: &Session,
    moment: &time_grammar::MomentExpression,
) -> Result<ResolvedMoment, CommandError> {
    resolve(session, moment, context.now, &context.zone, context.forge())
}

/// Resolves a parsed moment in a session. A command in a hint begins with `forge`.
///
/// # Errors
///
/// Not found; ambiguous. The hints name other possible meanings.
pub fn resolve<Z: TimeZone>(
    session: &Session,
    moment: &time_grammar::MomentExpression,
    now: Timestamp,
    zone: &Z,
    forge: &str,
) -> Result<ResolvedMoment, CommandError> {
    session.resolve(moment).map_err(|error| match error {
        Error::NothingAt { time, session, earliest, other } => {
            let [time, earliest] = [time, earliest].map(|time| local(time, zone));
            let message =
                format!("nothing is known at {time}: the session '{session}' begins at {earliest}");
            let error = CommandError::not_found(message);
            match other {
                Some(other) => error.hinted(format!(
                    "another session has data for that time: forge --session {} ...",
                    quoted(&other)
                )),
                None => error.hinted("'start' names the first moment"),
            }
        }
        Error::NotFound { what: "revision or checkpoint", ref name } => {
            let number = name.strip_prefix('#').and_then(|number| number.parse::<u64>().ok());
            let last = session.summary().map(|summary| summary.last_sequence);
            let error = CommandError::from(error);
            match last {
                // Numbers have no gaps.
                Ok(last) if number.is_some_and(|number| (1..=last).contains(&number)) => error
                    .hinted(format!(
                        "the checkpoint of that number was pruned or undone: '{forge} log \
                        --operations' names the operation"
                    )),
                Ok(last) if last > 0 => error.hinted(format!("the last is #{last}")),
                _ => error,
            }
        }
        Error::NotFound { what: "earlier revision", .. } => {
            CommandError::from(error).hinted("'start' names the first moment")
        }
        Error::NotFound { what: what @ ("hypothesis" | "gap"), .. } => {
            CommandError::from(error).hinted(format!("'{forge} {what} list' lists them"))
        }
        Error::NotFound { what: "moment at which", .. } => match &moment.base {
            MomentBase::ClaimBecame { id, .. } => CommandError::from(error)
                .hinted(format!("'{forge} log {id} --all' shows what it became on each branch")),
            _ => error.into(),
        },
        Error::NotFound { what: "commit", .. } => CommandError::from(error).hinted(format!(
            "'{forge} checkpoint list --tag commit' lists those that are recorded"
        )),
        Error::NotFound { what: "checkpoint or revision whose id begins with", .. } => {
            CommandError::from(error)
                .hinted(format!("'{forge} log --all' lists them with their numbers, such as '#42'"))
        }
        Error::NotFound { what: "compaction", .. } => CommandError::not_found(
            "no compaction has been recorded in this session",
        )
        .hinted("a compaction is recorded by the agent's hooks, or imported with its transcript"),
        Error::NotFound { what: what @ ("tag, branch or id" | "tag" | "branch"), ref name } => {
            let names = branch_and_tag_names(session).unwrap_or_default();
            let nearest = nearest_names(name, &names);
            let mut hints = Vec::new();
            if !nearest.is_empty() {
                hints.push(nearest_hint(&nearest));
            }
            // The unknown word may have been meant as a time.
            if what == "tag, branch or id"
                && let Err(no_time) = parse_time(name, now, zone)
            {
                hints.push(no_time.to_string());
            }
            if hints.is_empty() {
                let list = if what == "branch" { "branch list --all" } else { "checkpoint list" };
                hints.push(format!("'{forge} {list}' lists them"));
            }
            hints.into_iter().fold(error.into(), CommandError::hinted)
        }
        other => other.into(),
    })
}

/// Returns the id of the claim of this kind with this name: its full id or a unique prefix.
///
/// # Errors
///
/// Not found, with the nearest ids; ambiguous.
pub fn claim_id(state: &StateAt, kind: Kind, name: &str) -> Result<String, CommandError> {
    let known = state.claims_of(kind)?.into_iter().map(|(id, _)| id);
    match_id_in(state, kind, name, known)
}

/// Finds a name among the known ids of this kind. If it is the id of an entity of another kind, or
/// of a claim that was removed, the error says so instead of naming the nearest ids.
///
/// # Errors
///
/// Not found; ambiguous.
pub fn match_id_in(
    state: &StateAt,
    kind: Kind,
    name: &str,
    known: impl IntoIterator<Item = String>,
) -> Result<String, CommandError> {
    match_id(kind, name, known).or_else(|error| {
        if error.kind() != CommandErrorKind::NotFound {
            return Err(error);
        }
        if let Some(other) = kind_of_id(state, name)? {
            return Err(error.with_only_hint(format!(
                "'{name}' is of the kind {other}; 'forge {kind} list' lists the {}",
                kind.plural()
            )));
        }
        Err(match removed_claim(state.session(), state.moment(), [kind], name) {
            Some(key) => error.with_only_hint(removed_hint(&key)),
            None => error,
        })
    })
}

/// Returns the key of a claim of one of these kinds that has this whole id in the history of a
/// moment. Case is ignored.
pub fn removed_claim(
    session: &Session,
    moment: &ResolvedMoment,
    kinds: impl IntoIterator<Item = Kind>,
    id: &str,
) -> Option<Key> {
    let upper_case = id.to_ascii_uppercase();
    let spelled = [id, upper_case.as_str()];
    let mut keys = kinds.into_iter().flat_map(|kind| spelled.map(|id| Key::new(kind, id)));
    keys.find(|key| session.history(moment, key).is_ok())
}

/// Returns the hint that names the log of a removed claim.
pub fn removed_hint(key: &Key) -> String {
    let (kind, id) = (key.kind, &key.id);
    format!("the {kind} {id} was removed: 'forge log {kind}:{id}' shows its history")
}

/// Returns the kind of the claim or fact with this id. Case is ignored.
fn kind_of_id(state: &StateAt, id: &str) -> Result<Option<Kind>, CommandError> {
    let upper_case = id.to_ascii_uppercase();
    for kind in Kind::claims() {
        if state.claim(kind, id)?.is_some() || state.claim(kind, &upper_case)?.is_some() {
            return Ok(Some(kind));
        }
    }
    let facts = state.facts()?;
    let found = facts.iter().find(|known| known.fact.id.eq_ignore_ascii_case(id));
    Ok(found.map(|known| known.fact.kind))
}

fn branch_and_tag_names(session: &Session) -> Result<Vec<String>, CommandError> {
    let branches = session.branches(&session.head()?)?.into_iter().map(|branch| branch.name);
    let checkpoints = session.checkpoints(&CheckpointFilter::default())?;
    let tags = checkpoints.into_iter().flat_map(|checkpoint| checkpoint.tags);
    let names: BTreeSet<String> = branches.chain(tags).collect();
    Ok(names.into_iter().collect())
}
