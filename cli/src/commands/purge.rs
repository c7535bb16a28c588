//! `forge purge`.

use super::status::or_warning;
use crate::context::Context;
use crate::error::CommandError;
use crate::output::progress::ProgressIndicator;
use crate::remote;
use crate::report::purge::SecretPurgeReport;
use crate::transcript::open_plain;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::error::Error;
use forge_store::redact::{InvalidSecret, KnownSecrets, MIN_SECRET_BYTES, SecretDetector};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name for standard input.
const STANDARD: &str = "-";
/// The maximum size of a secret, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Arguments of `forge purge`. Exit code 0: no secret is left in what forge can change; 8: one is
/// left or may be, such as in a file that is not forge's, or in old files that a process uses.
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    /// File that contains the secret (a line break at its end is ignored); '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Environment variable that contains the secret
    #[arg(long, value_name = "NAME")]
    pub env: Option<String>,

    /// Regular expression: everything that matches is purged
    #[arg(long, value_name = "REGEX")]
    pub pattern: Option<String>,

    /// Purge what the rules of 'forge redact' find in stored data
    #[arg(long)]
    pub rules: bool,

    /// Show where the secret is, without changing anything
    #[arg(long)]
    pub dry_run: bool,

    /// Confirm what cannot be undone
    #[arg(long)]
    pub yes: bool,

    /// Rewrite the tables of the store's database, so that their files keep nothing; other users of
    /// the database wait meanwhile
    #[arg(long, conflicts_with = "dry_run")]
    pub vacuum: bool,

    /// Reason, for 'forge log --operations'
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

impl Verb for PurgeArgs {
    const NAME: &'static str = "purge";
    type Opened = OpenedStore;
    type Report = SecretPurgeReport;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        if self.file.is_none() && self.env.is_none() && self.pattern.is_none() && !self.rules {
            let said = "what is to be purged? Name a FILE with the secret, or '--env', '--pattern' or '--rules'";
            return Err(CommandError::invalid(said));
        }
        if !self.yes && !self.dry_run {
            return Err(CommandError::invalid("a purge cannot be undone")
                .hinted("'--dry-run' shows where the secret is, '--yes' purges it"));
        }
        Ok(())
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let database = store.database().filter(|_| self.vacuum);
        if self.vacuum && database.is_none() {
            let said = "'--vacuum' is for a store in a database, and this one is in files";
            return Err(CommandError::invalid(said));
        }
        let mut secrets = BTreeSet::new();
        if let Some(file) = &self.file {
            secrets.insert(read_secret(context, file)?);
        }
        if let Some(name) = &self.env {
            let value = context.environment.text(name).map(str::to_owned);
            secrets.insert(value.ok_or_else(|| {
                CommandError::not_found(format!(
                    "the environment variable '{name}' is not set, or is not text"
                ))
            })?);
        }
        let progress = ProgressIndicator::new(&context.out, "MB searched", None);
        let read = &|bytes: u64| progress.set_finished(bytes / 1_000_000);
        if let Some(pattern) = &self.pattern {
            let seek = SecretDetector::pattern(pattern).map_err(CommandError::invalid)?;
            let found = store.secrets(&opened.write_context, &seek, read)?;
            let short = found.iter().filter(|text| is_short(text)).count();
            if short > 0 {
                return Err(too_short(short));
            }
            secrets.extend(found);
        }
        let mut left = 0;
        if self.rules {
            let redactor = workspace::redactor(context).unwrap_or_default();
            let found =
                store.secrets(&opened.write_context, &SecretDetector::Rules(redactor), read)?;
            let (short, found): (BTreeSet<_>, BTreeSet<_>) =
                found.into_iter().partition(|text| is_short(text));
            left = short.len() as u64;
            secrets.extend(found);
        }
        let count = secrets.len() as u64;
        let known = KnownSecrets::new(&secrets).map_err(invalid_secret)?;
        let resolve = &forge_agents::resolve;
        let mut purged = if self.dry_run {
            store.purge_preview(&opened.write_context, &known, resolve, read)?
        } else {
            store.purge(&opened.write_context, &known, self.reason.as_deref(), resolve, read)?
        };
        drop(progress);
        if purged.places.is_empty() && secrets.iter().any(|secret| secret.contains('\n')) {
            context.out.warn(
                "a secret with several lines is looked for as a whole: if each line is a secret, \
                purge each alone",
            );
        }
        if let Some(database) = database {
            database.vacuum().map_err(Error::from)?;
            purged.unvacuumed = store.keeps_purged()?;
        }
        let mut unpushed = Vec::new();
        if !self.dry_run {
            unpushed = or_warning(context, remote::unpushed_lines(context, store));
            unpushed.retain(|line| line.describe_purges().is_some());
        }
        let folder = context.store_directory()?;
        Ok(SecretPurgeReport::new(purged, &folder, (self.dry_run, count, left), unpushed))
    }
}

/// Whether a secret is too short to be purged everywhere.
const fn is_short(text: &str) -> bool {
    text.len() < MIN_SECRET_BYTES
}

/// The error for a pattern that also matches texts that are too short. Purging only the longer
/// matches would leave a part of what the pattern names.
fn too_short(count: usize) -> CommandError {
    let texts = if count == 1 { "one text" } else { "texts" };
    CommandError::invalid(format!(
        "the pattern matches {texts} shorter than {MIN_SECRET_BYTES} bytes: nothing was purged, \
        because so short a text can occur elsewhere by chance"
    ))
    .hinted("make the pattern match more of the text around it, such as 'pin is 48[0-9]{3}'")
}

/// Reads the secret from a file, without the line break at its end.
fn read_secret(context: &Context, file: &Path) -> Result<String, CommandError> {
    let shown = file.display().to_string();
    let failed = |error| CommandError::io_at("cannot read", file, error);
    let input: Box<dyn Read> = if file == Path::new(STANDARD) {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(open_plain(&context.cwd.join(file))?.0)
    };
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::invalid(format!(
            "'{shown}' is larger than {MAX_BYTES} bytes: that is not a secret"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CommandError::invalid(format!("'{shown}' is not UTF-8 text")))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn invalid_secret(why: InvalidSecret) -> CommandError {
    CommandError::invalid(match why {
        InvalidSecret::Short => format!(
            "a secret shorter than {MIN_SECRET_BYTES} bytes can occur in texts by chance: include \
            more of the text around it"
        ),
        InvalidSecret::Long => format!("a text of more than {MAX_BYTES} bytes is not a secret"),
        InvalidSecret::Mark => "it cannot be distinguished from its replacement".to_owned(),
    })
}
