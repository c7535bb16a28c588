//! `forge import swe-agent`.

use super::SweAgentArgs;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::import::Trajectory;
use crate::transcript::open_plain;
use crate::workplace::{self, Access};
use forge_agents::swe_agent;
use forge_store::model::Timestamp;
use forge_store::model::when::MomentBase;
use forge_store::redact::{Ending, Form};
use forge_store::store::{NewSession, Session, Store, Taken};
use std::collections::BTreeMap;
use std::io::Read;

const AGENT: &str = "swe-agent";
/// A trajectory is read whole.
const MAX_BYTES: u64 = 256 << 20;

/// Does it.
pub(super) fn run(args: &SweAgentArgs, context: &mut Context) -> Result<(), CommandError> {
    let started_at = match &args.started_at {
        None => Timestamp::default(),
        Some(moment) => match context.moment(moment)?.base {
            MomentBase::Time(time) => time.time,
            _ => return Err(CommandError::invalid("'--started-at' takes a time")),
        },
    };
    let store = workplace::open(context, Access::Write)?;
    let shown = args.file.display().to_string();
    let (file, bytes) = open_plain(&args.file)?;
    if bytes > MAX_BYTES {
        return Err(CommandError::invalid(format!(
            "'{shown}' has {bytes} bytes: a trajectory of more than {MAX_BYTES} is not read"
        )));
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| CommandError::io(&format!("cannot read '{shown}'"), error))?;
    let clean = store.clean(&content, Form::Json, Ending::End);
    let piece = swe_agent::read(clean.bytes(), started_at, context.now).map_err(|error| {
        CommandError::invalid(format!("cannot import '{shown}'")).caused_by(error)
    })?;
    let draft = piece.session.clone().unwrap_or_default();
    let source = format!("{AGENT}:{}", draft.agent_session);
    let session = match store.agent_session(&draft.agent_session)? {
        Some(session) => session,
        None => begin(context, &store, &args.file, &draft.agent_session, started_at)?,
    };
    let mut report = Trajectory {
        file: shown,
        session: session.summary()?.info.name,
        facts: BTreeMap::new(),
        unchanged: session.bookmark(&source)?.is_some(),
    };
    if !report.unchanged {
        for fact in &piece.facts {
            *report.facts.entry(fact.kind.plural()).or_default() += 1;
        }
        let lines = content.iter().filter(|byte| **byte == b'\n').count() as u64;
        let taken =
            Taken { bytes: clean, lines, keep: true, facts: piece.facts, ..Taken::default() };
        let act = workplace::act(context, "import swe-agent");
        session.take(&act, store.new_operation()?, &source, taken)?;
        store.sync()?;
    }
    context.out.emit(&report)?;
    workplace::finish(&store);
    Ok(())
}

fn begin(
    context: &Context,
    store: &Store,
    file: &std::path::Path,
    id: &str,
    started_at: Timestamp,
) -> Result<Session, CommandError> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let new = NewSession {
        agent: Some(AGENT.to_owned()),
        agent_session: Some(id.to_owned()),
        started_at: Some(started_at),
        ..NewSession::imported(stem)
    };
    Ok(store.create_named(&workplace::act(context, "import swe-agent"), new)?)
}
