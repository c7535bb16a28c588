//! `forge purge`.

use crate::context::Context;
use crate::error::{CommandError, EXIT_NOT_YET};
use crate::report::purge::SecretPurgeReport;
use crate::transcript::open_plain;
use crate::workspace::{self, StoreAccess};
use forge_store::redact::{InvalidSecret, KnownSecrets, MIN_SECRET_BYTES, SecretDetector};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name for standard input.
const STANDARD: &str = "-";
/// The maximum size of a secret, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Arguments of `forge purge`. Exit code 0: no secret is left in what forge can change; 8: not yet,
/// because a process still uses old files.
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    /// File that contains the secret, without a line break at its end; '-' is standard input
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

    /// Reason, for 'forge log --operations'
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Runs `forge purge`.
pub fn run(args: &PurgeArgs, context: &mut Context) -> Result<(), CommandError> {
    if args.file.is_none() && args.env.is_none() && args.pattern.is_none() && !args.rules {
        let said = "what is to be purged? Name a FILE with the secret, or '--env', '--pattern' or '--rules'";
        return Err(CommandError::invalid(said));
    }
    if !args.yes && !args.dry_run {
        return Err(CommandError::invalid("a purge cannot be undone")
            .hinted("'--dry-run' shows where the secret is, '--yes' purges it"));
    }
    let mut secrets = BTreeSet::new();
    if let Some(file) = &args.file {
        secrets.insert(read_secret(context, file)?);
    }
    if let Some(name) = &args.env {
        let value = context.environment.text(name).map(str::to_owned);
        secrets.insert(value.ok_or_else(|| {
            CommandError::not_found(format!(
                "the environment variable '{name}' is not set, or no text"
            ))
        })?);
    }
    let access = if args.dry_run { StoreAccess::Read } else { StoreAccess::Write };
    let store = workspace::open_store(context, access)?;
    let act = workspace::write_context(context, "purge");
    if let Some(pattern) = &args.pattern {
        let seek = SecretDetector::pattern(pattern).map_err(CommandError::invalid)?;
        let found = store.secrets(&act, &seek)?;
        let short = found.iter().filter(|text| is_short(text)).count();
        if short > 0 {
            return Err(too_short(short));
        }
        secrets.extend(found);
    }
    let mut left = 0;
    if args.rules {
        let redactor = workspace::redactor(context).unwrap_or_default();
        let found = store.secrets(&act, &SecretDetector::Rules(redactor))?;
        let (short, found): (BTreeSet<_>, BTreeSet<_>) =
            found.into_iter().partition(|text| is_short(text));
        left = short.len() as u64;
        secrets.extend(found);
    }
    let count = secrets.len() as u64;
    let known = KnownSecrets::new(&secrets).map_err(invalid_secret)?;
    let resolve = &forge_agents::resolve;
    let purged = if args.dry_run {
        store.purge_preview(&act, &known, resolve)?
    } else {
        store.purge(&act, &known, args.reason.as_deref(), resolve)?
    };
    if !args.dry_run && !purged.is_done() {
        context.exit_code = EXIT_NOT_YET;
    }
    let folder = context.store_directory()?;
    context.out.emit(&SecretPurgeReport::new(purged, &folder, (args.dry_run, count, left)))
}

/// Whether a secret is too short to be purged everywhere.
const fn is_short(text: &str) -> bool {
    text.len() < MIN_SECRET_BYTES
}

/// The error for a pattern that also matches texts that are too short: purging only the others
/// would leave some of what was asked for.
fn too_short(count: usize) -> CommandError {
    let texts = if count == 1 { "one text" } else { "texts" };
    CommandError::invalid(format!(
        "the pattern matches {texts} shorter than {MIN_SECRET_BYTES} bytes: nothing was purged, \
        because so short a text can occur elsewhere by chance"
    ))
    .hinted("make the pattern match more of the text around it, such as 'pin is 48[0-9]{3}'")
}

/// Reads the secret from a file.
fn read_secret(context: &Context, file: &Path) -> Result<String, CommandError> {
    let shown = file.display().to_string();
    let failed = |error| CommandError::io(&format!("cannot read '{shown}'"), error);
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
        InvalidSecret::Mark => "it cannot be distinguished from its replacement".to_owned(),
    })
}
