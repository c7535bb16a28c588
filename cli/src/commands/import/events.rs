//! `forge import events`.

use super::EventsImportArgs;
use crate::context::Context;
use crate::error::CommandError;
use crate::output::progress::ProgressIndicator;
use crate::report::import::EventsImportReport;
use crate::transcript::open_plain;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::StreamImportRequest;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// The maximum size of standard input, which is kept in memory while it is imported.
const MAX_STDIN_BYTES: u64 = 1 << 30;
const BUFFER_BYTES: usize = 1 << 20;

/// The input, which can be read several times.
enum EventInput {
    File(File),
    Bytes(Vec<u8>),
}

impl EventInput {
    fn open(&mut self) -> io::Result<Box<dyn BufRead>> {
        Ok(match self {
            Self::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(0))?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, file))
            }
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
        })
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
        let (mut input, bytes, source, name) = if self.file == Path::new("-") {
            let bytes = standard_input()?;
            // Another stream is another source; a stream that has grown begins with the same line.
            let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            let source = format!("events:-{:016x}", fnv_1a(first));
            let length = bytes.len() as u64;
            (EventInput::Bytes(bytes), length, source, "stdin".to_owned())
        } else {
            let (file, bytes) = open_plain(&self.file)?;
            let part = |name: Option<&std::ffi::OsStr>| {
                let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                workspace::redact(context, &name)
            };
            let source = format!("events:{}", part(self.file.file_name()));
            (EventInput::File(file), bytes, source, part(self.file.file_stem()))
        };
        let stream =
            StreamImportRequest { source: &source, name: name.trim(), session: context.session() };
        let progress = ProgressIndicator::new(&context.out, "importing", Some(bytes));
        let taken = store
            .import_events(&opened.write_context, stream, &mut || input.open(), &|bytes| {
                progress.reach(bytes);
            })
            .map_err(|error| {
                CommandError::from(error).with_context(format!("cannot import '{shown}'"))
            })?;
        drop(progress);
        store.sync()?;
        Ok(EventsImportReport {
            file: shown,
            unchanged: taken.lines == 0,
            sessions: taken.sessions,
            lines: taken.lines,
            bytes: taken.bytes,
            revisions: taken.revisions,
            checkpoints: taken.checkpoints,
            facts: taken.facts,
            waiting_bytes: taken.waiting_bytes,
        })
    }
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

/// A hash that is the same in all versions of forge (FNV-1a, 64 bits).
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
