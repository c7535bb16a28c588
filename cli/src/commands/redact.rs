//! `forge redact`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::redact::{FoundSecret, RedactReport};
use crate::transcript::open_plain;
use crate::verb::{Verb, VerbResult};
use crate::workspace;
use forge_agents::FileFormat;
use forge_store::redact::{PartEnding, Redactor, TextForm};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How many bytes are read before they are searched and the clean part is printed.
const PART_BYTES: usize = 1 << 20;

/// How many of the first bytes show that a file is compressed or in UTF-16.
const MAGIC_BYTES: u64 = 16;

#[derive(Debug, clap::Args)]
pub struct RedactArgs {
    /// File to read; '-' is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,

    /// List the line, kind and size of each secret instead of printing the text
    #[arg(long)]
    pub list: bool,

    /// Read the text as lines of JSON, and keep them valid
    #[arg(long)]
    pub json_lines: bool,
}

impl Verb for RedactArgs {
    const NAME: &'static str = "redact";
    type Opened = ();
    type Report = Option<RedactReport>;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let failed = |error| CommandError::io_at("cannot read", &self.file, error);
        let mut input: Box<dyn Read> = if self.file == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(open_plain(&self.file)?.0)
        };
        let redactor = workspace::redactor(context).unwrap_or_default();
        let form = if self.json_lines { TextForm::Json } else { TextForm::Plain };
        let mut report = RedactReport::default();
        let mut held = Vec::new();
        input.by_ref().take(MAGIC_BYTES).read_to_end(&mut held).map_err(failed)?;
        refuse_packed(&self.file, &held)?;
        let mut line = 1;
        loop {
            let length = held.len();
            input.by_ref().take(PART_BYTES as u64).read_to_end(&mut held).map_err(failed)?;
            let ending = if held.len() == length { PartEnding::End } else { PartEnding::More };
            let taken =
                redact_part(&redactor, &held, (form, ending), &mut line, &mut report, |bytes| {
                    if self.list || context.global.json { Ok(()) } else { context.out.raw(bytes) }
                })?;
            held.drain(..taken);
            if ending == PartEnding::End {
                break;
            }
        }
        if self.list || context.global.json {
            return Ok(Some(report));
        }
        if !report.found.is_empty() {
            let secrets = crate::text::count_text(report.found.len() as u64, "secret");
            context.out.warn(&format!("removed {secrets}"));
        }
        Ok(None)
    }
}

/// Returns an error if a file with these first bytes is compressed or in UTF-16: no secret in it
/// would be found.
fn refuse_packed(path: &Path, head: &[u8]) -> Result<(), CommandError> {
    let Some(found) = FileFormat::packed(head) else { return Ok(()) };
    let command = match found {
        FileFormat::Packed(_, Some(command)) => command,
        FileFormat::Zstd => "unzstd",
        _ => return Ok(()),
    };
    let shown = path.display();
    Err(CommandError::invalid(format!("'{shown}' seems to be {}", found.title()))
        .hinted(format!("'{command} {shown}' makes it readable: redact the result")))
}

/// Redacts the next bytes of the input, prints the result, and adds what was found to the report.
/// `line` is the line at which the bytes begin, and is advanced. Returns how many bytes are done.
fn redact_part(
    redactor: &Redactor,
    text: &[u8],
    (form, ending): (TextForm, PartEnding),
    line: &mut u64,
    report: &mut RedactReport,
    print: impl FnOnce(&[u8]) -> Result<(), CommandError>,
) -> Result<usize, CommandError> {
    let part = redactor.clean_part(text, form, ending);
    let breaks = |from: usize, to: usize| {
        let passed = text.get(from..to).unwrap_or_default();
        passed.iter().filter(|byte| **byte == b'\n').count() as u64
    };
    let mut at = 0;
    for finding in &part.findings {
        *line += breaks(at, finding.range.start);
        at = finding.range.start;
        report.found.push(FoundSecret {
            kind: finding.kind,
            line: *line,
            bytes: finding.range.len() as u64,
        });
    }
    *line += breaks(at, part.taken);
    print(&part.bytes)?;
    Ok(part.taken)
}
