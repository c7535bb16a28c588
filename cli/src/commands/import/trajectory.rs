//! `forge import swe-agent`, `mini-swe-agent` and `openhands`.

use super::{
    MiniSweAgentImport, OpenHandsImport, SweAgentImport, TrajectoryImportArgs, next_command,
};
use crate::config::key;
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::import::TrajectoryImportReport;
use crate::transcript::{ImportFile, unpack_folder, wrong_format};
use crate::verb::Verb;
use crate::workspace::{self, StoreAccess};
use forge_agents::trajectory::{self, TrajectoryAuthor};
use forge_agents::{FileFormat, TranscriptPiece};
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::MomentBase;
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    NewSession, RedactedSource, Session, SourceBookmark, SourceChange, SourceChunk, Store,
};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The maximum number of attempts to import. An attempt fails if another process imports the same
/// run in the meantime.
const MAX_ATTEMPTS: usize = 8;
/// The maximum size of a trajectory in bytes. It is kept in memory.
const MAX_BYTES: u64 = 256 << 20;

pub(super) fn import_trajectory(
    author: TrajectoryAuthor,
    args: &TrajectoryImportArgs,
    context: &mut Context,
) -> Result<TrajectoryImportReport, CommandError> {
    for _ in 1..MAX_ATTEMPTS {
        match import_once(author, args, context) {
            Err(error) if error.kind() == CommandErrorKind::Conflict => {}
            done => return done,
        }
    }
    import_once(author, args, context)
}

fn import_once(
    author: TrajectoryAuthor,
    args: &TrajectoryImportArgs,
    context: &mut Context,
) -> Result<TrajectoryImportReport, CommandError> {
    let started_at = match &args.started_at {
        None => Timestamp::default(),
        Some(moment) => match context.moment(moment)?.base {
            MomentBase::Time(time) => time.time,
            _ => return Err(CommandError::invalid("'--started-at' takes a time")),
        },
    };
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let shown = args.file.display().to_string();
    let content = read_trajectory(author, &args.file, &unpack_folder(&store))?;
    let clean = store.redact_source(&content, TextForm::Json, PartEnding::End);
    let infer = context.config.is_on(key::INFERENCE_ENABLED);
    let piece = trajectory::read(author, clean.bytes(), started_at, context.now, infer);
    let piece = piece.map_err(|error| {
        let wanted = FileFormat::Trajectory(author);
        match FileFormat::detect(&content, Some(wanted)) {
            Some(found) if found != wanted => wrong_format(&args.file, wanted, found),
            _ => CommandError::invalid(format!("cannot import '{shown}'")),
        }
        .caused_by(error)
    })?;
    let draft = piece.session.clone().unwrap_or_default();
    let source = format!("{}:{}", author.name(), draft.agent_session);
    let session = match store.agent_session(&draft.agent_session)? {
        Some(session) => session,
        None => begin_session(author, context, &store, &args.file, &piece)?,
    };
    let known = session.bookmark(&source)?;
    let mut report = TrajectoryImportReport {
        file: shown,
        session: session.summary()?.info.name,
        facts: BTreeMap::new(),
        unchanged: known.as_ref().is_some_and(|known| is_same(&store, known, &clean)),
        has_no_time: args.started_at.is_none()
            && piece.facts.iter().all(|fact| fact.value.field("synthetic").is_some()),
        next: None,
    };
    if !report.unchanged {
        let again = known.is_some();
        import_piece(
            author,
            context,
            &store,
            &session,
            (&source, again),
            (piece, clean),
            &mut report,
        )?;
    }
    report.next = next_command(&store, Some(&report.session))?;
    workspace::catch_up_index(&store);
    Ok(report)
}

/// Reads the whole file, after a check of its format and size.
fn read_trajectory(
    author: TrajectoryAuthor,
    path: &Path,
    folder: &Path,
) -> Result<Vec<u8>, CommandError> {
    let wanted = FileFormat::Trajectory(author);
    let opened = ImportFile::new(path, Some(wanted), folder)?;
    opened.check(path, wanted)?;
    if opened.bytes > MAX_BYTES {
        return Err(CommandError::invalid(format!(
            "'{}' has {} bytes: a trajectory of more than {MAX_BYTES} is not read",
            path.display(),
            opened.bytes
        )));
    }
    let mut content = Vec::new();
    let mut file = opened.file;
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.take(MAX_BYTES).read_to_end(&mut content))
        .map_err(|error| CommandError::io_at("cannot read", path, error))?;
    Ok(content)
}

/// Whether a file equals the one that was imported before. A later file of the same run is longer.
fn is_same(store: &Store, known: &SourceBookmark, clean: &RedactedSource<'_>) -> bool {
    let source = clean.source();
    known.bytes == source.len() as u64
        && known.compare(store.hash_key(), 0, source) == SourceChange::Kept
}

fn import_piece(
    author: TrajectoryAuthor,
    context: &Context,
    store: &Store,
    session: &Session,
    (source, again): (&str, bool),
    (piece, clean): (TranscriptPiece, RedactedSource<'_>),
    report: &mut TrajectoryImportReport,
) -> Result<(), CommandError> {
    let facts = if again { session.unknown_facts(piece.facts)? } else { piece.facts };
    for fact in &facts {
        *report.facts.entry(fact.kind.plural()).or_default() += 1;
    }
    let lines = clean.source().iter().filter(|byte| **byte == b'\n').count() as u64;
    let drafts = piece.checkpoints.into_iter().map(Into::into).collect();
    let checkpoints = crate::compaction::match_hook_compactions(session, &facts, drafts)?;
    let taken = SourceChunk {
        bytes: clean,
        lines,
        keep: true,
        rereads: again,
        facts,
        checkpoints,
        ..SourceChunk::default()
    };
    let act = workspace::write_context(context, verb(author));
    session.import_chunk(&act, store.new_operation()?, source, taken)?;
    store.sync()?;
    Ok(())
}

pub(super) const fn verb(author: TrajectoryAuthor) -> &'static str {
    match author {
        TrajectoryAuthor::SweAgent => SweAgentImport::NAME,
        TrajectoryAuthor::MiniSweAgent => MiniSweAgentImport::NAME,
        TrajectoryAuthor::OpenHands => OpenHandsImport::NAME,
    }
}

fn begin_session(
    author: TrajectoryAuthor,
    context: &Context,
    store: &Store,
    file: &Path,
    piece: &TranscriptPiece,
) -> Result<Session, CommandError> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let draft = piece.session.clone().unwrap_or_default();
    let new = NewSession {
        agent: Some(author.name().to_owned()),
        agent_session: Some(draft.agent_session),
        started_at: draft.started_at,
        ..NewSession::imported(workspace::session_name_of(&stem, author.name()))
    };
    Ok(store.session_for_agent(&workspace::write_context(context, verb(author)), new)?)
}
