//! `forge import events`.

use super::{EventsImportArgs, next_command};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::output::progress::ProgressIndicator;
use crate::report::import::EventsImportReport;
use crate::transcript::open_plain;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::{Store, StreamImportRequest};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The maximum size of standard input, which is kept in memory while it is imported.
const MAX_STDIN_BYTES: u64 = 1 << 30;
const BUFFER_BYTES: usize = 1 << 20;
/// The name of a session if the name of the file cannot be one.
const UNNAMED: &str = "events";

/// The input, which several readers can read at the same time.
enum EventInput {
    File(Arc<File>),
    Bytes(Arc<[u8]>),
}

impl EventInput {
    fn open(&self) -> Box<dyn BufRead> {
        match self {
            Self::File(file) => {
                let reader = FileReader { file: Arc::clone(file), offset: 0 };
                Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
            }
            Self::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        }
    }
}

/// Reads a file from its own offset, because all readers of a [`File`] share the file's offset.
struct FileReader {
    file: Arc<File>,
    offset: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.offset)?;
        self.offset += length as u64;
        Ok(length)
    }
}

impl Verb for EventsImportArgs {
    const NAME: &'static str = "import events";
    type Opened = OpenedStore;
    type Report = EventsImportReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let shown = self.file.display().to_string();
        let (input, bytes, source, name) = if self.file == Path::new("-") {
            let bytes = standard_input()?;
            // The source is named by the first line, which stays the same if the stream grows.
            let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            let source = format!("events:-{:016x}", fnv_1a(first));
            let length = bytes.len() as u64;
            (EventInput::Bytes(bytes.into()), length, source, "stdin".to_owned())
        } else {
            let (file, bytes) = open_plain(&self.file)?;
            let part = |name: Option<&std::ffi::OsStr>| {
                let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                workspace::redact(context, &name)
            };
            let source = format!("events:{}", part(self.file.file_name()));
            (EventInput::File(Arc::new(file)), bytes, source, part(self.file.file_stem()))
        };
        let name = workspace::session_name_of(&name, UNNAMED);
        let session = context.session().map(|given| session_name(store, given)).transpose()?;
        let stream = StreamImportRequest { source: &source, name, session: session.as_deref() };
        let progress = ProgressIndicator::new(&context.out, "importing", Some(bytes));
        let done = store
            .import_events(&opened.write_context, stream, &mut || Ok(input.open()), &|bytes| {
                progress.set_finished(bytes);
            })
            .map_err(|error| {
                let error = CommandError::from(error);
                let is_wrong = error.kind() == CommandErrorKind::Invalid;
                let error = error.with_context(format!("cannot import '{shown}'"));
                let hint = "correct the line and import again ('forge export events' shows the \
                            form); transcripts of agents are imported by 'forge import FILE'";
                if is_wrong { error.hinted(hint) } else { error }
            })?;
        drop(progress);
        store.sync()?;
        let next = next_command(store, done.sessions.first())?;
        Ok(EventsImportReport { file: shown, unchanged: done.lines == 0, done, next })
    }
}

/// Returns the name of the session that `given` names: by its whole id or by an agent's own id, as
/// for other commands, or else by its name. A session with this name need not exist.
fn session_name(store: &Store, given: &str) -> Result<String, CommandError> {
    let of_agent = store.agent_session(given)?.map(|session| session.summary()).transpose()?;
    if let Some(found) = of_agent {
        return Ok(found.info.name);
    }
    let named = store.session(given).and_then(|session| session.summary()).ok();
    let by_id = named.filter(|found| found.info.id.to_string().eq_ignore_ascii_case(given));
    Ok(by_id.map_or_else(|| given.to_owned(), |found| found.info.name))
}

fn standard_input() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_STDIN_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::io("cannot read standard input", error))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(CommandError::invalid("standard input has more than a gigabyte")
            .hinted("write it to a file and import that"));
    }
    Ok(bytes)
}

/// Returns the FNV-1a hash (64 bits), which is the same in all versions of forge.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
