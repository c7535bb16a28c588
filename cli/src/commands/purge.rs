//! `forge purge`.

use crate::context::Context;
use crate::error::{CommandError, EXIT_NOT_YET};
use crate::output::progress::Progress;
use crate::report::purge::Purged;
use crate::transcript::open_plain;
use crate::workplace::{self, Access};
use forge_store::redact::{InvalidSecret, KnownSecrets, MIN_SECRET_BYTES, SecretDetector};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What stands for standard input.
const STANDARD: &str = "-";
/// A secret is no longer than this.
const MAX_BYTES: u64 = 64 << 10;

/// Arguments of `forge purge`. Exit code 0: nothing of it is left within reach; 8: not yet, since somebody still holds files of
/// before.
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    /// Read the secret from this file, a line break at its end left out; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Take the secret from this environment variable
    #[arg(long, value_name = "NAME")]
    pub env: Option<String>,

    /// Purge all that matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub pattern: Option<String>,

    /// Purge what the rules of 'forge redact' find in what is stored already
    #[arg(long)]
    pub rules: bool,

    /// Say where it stands, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Say yes to what cannot be taken back
    #[arg(long)]
    pub yes: bool,

    /// Note why, for 'forge log --operations'
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Does it.
pub fn run(args: &PurgeArgs, context: &mut Context) -> Result<(), CommandError> {
    if args.file.is_none() && args.env.is_none() && args.pattern.is_none() && !args.rules {
        let said = "what is to be purged? Name a FILE with the secret, or '--env', '--pattern' or '--rules'";
        return Err(CommandError::invalid(said));
    }
    if !args.yes && !args.dry_run {
        return Err(CommandError::invalid("a purge cannot be taken back")
            .hinted("'--dry-run' says where it stands, and '--yes' takes it out"));
    }
    let mut secrets = BTreeSet::new();
    if let Some(file) = &args.file {
        secrets.insert(read(context, file)?);
    }
    if let Some(name) = &args.env {
        let value = context.environment.text(name).map(str::to_owned);
        secrets.insert(value.ok_or_else(|| {
            CommandError::not_found(format!(
                "the environment variable '{name}' is not set, or no text"
            ))
        })?);
    }
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let store = workplace::open(context, access)?;
    let act = workplace::act(context, "purge");
    let progress = Progress::new(&context.out, "MB searched", None);
    let read = &|bytes: u64| progress.reach(bytes / 1_000_000);
    if let Some(pattern) = &args.pattern {
        let seek = SecretDetector::pattern(pattern).map_err(CommandError::invalid)?;
        let found = store.secrets(&act, &seek, read)?;
        let short = found.iter().filter(|text| is_short(text)).count();
        if short > 0 {
            return Err(too_short(short));
        }
        secrets.extend(found);
    }
    let mut left = 0;
    if args.rules {
        let redactor = workplace::redactor(context).unwrap_or_default();
        let found = store.secrets(&act, &SecretDetector::Rules(redactor), read)?;
        let (short, found): (BTreeSet<_>, BTreeSet<_>) =
            found.into_iter().partition(|text| is_short(text));
        left = short.len() as u64;
        secrets.extend(found);
    }
    let count = secrets.len() as u64;
    let known = KnownSecrets::new(&secrets).map_err(unfit)?;
    let resolve = &forge_agents::resolve;
    let purged = if args.dry_run {
        store.purge_preview(&act, &known, resolve, read)?
    } else {
        store.purge(&act, &known, args.reason.as_deref(), resolve, read)?
    };
    drop(progress);
    if !args.dry_run && !purged.is_done() {
        context.exit_code = EXIT_NOT_YET;
    }
    let folder = context.store_directory()?;
    context.out.emit(&Purged::of(purged, &folder, (args.dry_run, count, left)))
}

/// Whether a secret is too short to be purged wherever it stands.
const fn is_short(text: &str) -> bool {
    text.len() < MIN_SECRET_BYTES
}

/// Refuses a pattern that matches what is too short: purging the rest would leave what was asked for.
fn too_short(count: usize) -> CommandError {
    let texts = if count == 1 { "one text" } else { "texts" };
    CommandError::invalid(format!(
        "the pattern matches {texts} shorter than {MIN_SECRET_BYTES} bytes: nothing was purged, since so short a text \
         stands elsewhere by chance"
    ))
    .hinted("let the pattern match more of what stands around it, such as 'pin is 48[0-9]{3}'")
}

/// The secret in a file.
fn read(context: &Context, file: &Path) -> Result<String, CommandError> {
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
            "'{shown}' is larger than {MAX_BYTES} bytes: that is no secret"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CommandError::invalid(format!("'{shown}' is no text in UTF-8")))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn unfit(why: InvalidSecret) -> CommandError {
    CommandError::invalid(match why {
        InvalidSecret::Short => format!(
            "a secret shorter than {MIN_SECRET_BYTES} bytes stands in texts by chance: name more of what stands around it"
        ),
        InvalidSecret::Mark => "it cannot be told from what would stand in its place".to_owned(),
    })
}
