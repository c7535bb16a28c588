//! `forge export bundle`, `forge import bundle`, `forge backup`.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::bundle::{ExportedBundleReport, StoreBackupReport};
use crate::transcript::open_plain;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::error::Error;
use forge_store::store::{BundleExportReport as Written, BundleImportReport, BundleRange, Store};
use std::fs;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The name for standard input or output.
const STANDARD: &str = "-";

#[derive(Debug, clap::Args)]
pub struct BundleExportArgs {
    /// File to write; '-' is standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Names or ids of sessions; the current one by default
    #[arg(value_name = "SESSION", conflicts_with = "all")]
    pub sessions: Vec<String>,

    /// Export all sessions
    #[arg(long)]
    pub all: bool,

    /// Number after which to begin: the importing store has everything up to it
    #[arg(long, value_name = "N", value_parser = parse_sequence, default_value = "0", hide_default_value = true)]
    pub from: u64,

    /// Number at which to end
    #[arg(long, value_name = "N", value_parser = parse_sequence)]
    pub to: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct BundleImportArgs {
    /// File to import; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Name of its session in this store
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// Directory for the copy, which must be empty or not exist
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,
}

fn parse_sequence(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits
        .parse()
        .map_err(|_| "give the number of a revision or checkpoint, as in '#42'".to_owned())
}

impl Verb for BundleExportArgs {
    const NAME: &'static str = "export bundle";
    type Opened = OpenedStore;
    type Report = Option<ExportedBundleReport>;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let sessions = if self.all {
            store.every_session()?
        } else if self.sessions.is_empty() {
            vec![workspace::choose_session(context, store, SessionNeed::Existing)?]
        } else {
            workspace::named_sessions(store, &self.sessions)?
        };
        let range = |session| BundleRange { session, from: self.from, to: self.to };
        let ranges: Vec<_> = sessions.into_iter().map(range).collect();
        if self.file == Path::new(STANDARD) {
            store.export_bundle(&ranges, &mut |bytes| context.out.raw(bytes))?;
            return Ok(None);
        }
        let path = context.cwd.join(&self.file);
        // A pipe or a device is not replaced by a file, and may be where the report would go.
        if fs::metadata(&path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
            let failed = |error| CommandError::io_at("cannot write", &path, error);
            let mut to = fs::OpenOptions::new().write(true).open(&path).map_err(failed)?;
            store.export_bundle(&ranges, &mut |bytes| to.write_all(bytes).map_err(failed))?;
            return Ok(None);
        }
        let written = write(store, &ranges, &path)?;
        Ok(Some(ExportedBundleReport::new(&path, written)))
    }
}

/// Writes a bundle to a temporary file, which gets its name only when it is complete. A link to a
/// file stays a link.
fn write(store: &Store, ranges: &[BundleRange], path: &Path) -> Result<Written, CommandError> {
    let failed = |error| CommandError::io_at("cannot write", path, error);
    let path = &*fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    // A temporary file is readable only by its owner, as the content of a store is private.
    let folder = path.parent().unwrap_or(path);
    let unfinished = tempfile::Builder::new()
        .prefix(&name)
        .suffix(".new")
        .tempfile_in(folder)
        .map_err(failed)?;
    let mut file = BufWriter::with_capacity(1 << 20, unfinished);
    let written =
        store.export_bundle(ranges, &mut |bytes| file.write_all(bytes).map_err(failed))?;
    let unfinished = file.into_inner().map_err(|error| failed(error.into_error()))?;
    unfinished.as_file().sync_all().map_err(failed)?;
    unfinished.persist(path).map_err(|error| failed(error.error))?;
    Ok(written)
}

impl Verb for BundleImportArgs {
    const NAME: &'static str = "import bundle";
    type Opened = OpenedStore;
    type Report = BundleImportReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let failed = |error| CommandError::io_at("cannot read", &self.file, error);
        let mut file = if self.file == Path::new(STANDARD) {
            spool_to_file(store.path(), &mut std::io::stdin().lock()).map_err(failed)?
        } else {
            BufReader::new(open_plain(&context.cwd.join(&self.file))?.0)
        };
        // A report of an unfinished import names this path, perhaps in another working directory.
        let path = match self.file.to_str() {
            Some(STANDARD) => String::new(),
            _ => context.cwd.join(&self.file).display().to_string(),
        };
        let name = self.name.as_deref();
        let taken = store.import_bundle_file(&opened.write_context, &mut file, &path, name);
        taken.map_err(|error| {
            let holds_secrets = matches!(error, Error::Secrets { .. });
            let is_name_taken = matches!(error, Error::Duplicate { .. });
            let refused = CommandError::from(error);
            let purge = "'forge purge' removes them from the store that it came from; export it \
                         again from there";
            match refused.kind() {
                _ if holds_secrets => refused.hinted(purge),
                _ if is_name_taken => {
                    refused.hinted("'--as NAME' gives the session of the bundle another name")
                }
                CommandErrorKind::NotFound => {
                    refused.hinted("import the bundle that has that part before this one")
                }
                CommandErrorKind::Corrupt | CommandErrorKind::Invalid => {
                    refused.hinted("'forge export bundle FILE' writes one")
                }
                CommandErrorKind::Conflict => {
                    refused.hinted("'--store PATH' imports it into another store, beside this one")
                }
                _ => refused,
            }
        })
    }
}

/// Copies an input that cannot be read twice to a private temporary file without a name, which
/// vanishes with the process.
fn spool_to_file(
    store: Option<&Path>,
    input: &mut dyn Read,
) -> std::io::Result<BufReader<fs::File>> {
    let folder = store.map_or_else(std::env::temp_dir, Path::to_owned);
    let mut file = tempfile::tempfile_in(folder)?;
    std::io::copy(input, &mut file)?;
    Ok(BufReader::new(file))
}

impl Verb for BackupArgs {
    const NAME: &'static str = "backup";
    type Opened = ();
    type Report = StoreBackupReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let to = context.cwd.join(&self.to);
        let from = context.store_directory()?;
        let keyring = context.environment.keyring();
        let done = Store::backup(&from, &to, context.now, keyring.as_deref())?;
        Ok(StoreBackupReport::new(&from, &to, done))
    }
}
