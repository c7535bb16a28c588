//! `forge report`.

use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::page::{PageReport, WrittenFile};
use crate::session_page::read_page;
use crate::session_reader::SessionReader;
use crate::verb::{EitherReport, OpenedStore, RawReport, Verb, VerbResult};
use crate::workspace;
use forge_report::PageZone;
use forge_report::html::{HtmlOptions, write_page};
use forge_report::markdown::write_markdown;
use forge_report::model::{ReportLimits, ReportModel};
use forge_store::error::Error;
use forge_store::model::SessionKind;
use forge_store::shell::quoted;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The maximum size of a page in bytes, if no other one is given.
pub(super) const MAX_BYTES: usize = 2_000_000;
/// The maximum length of the session's name in a file name, in characters.
const NAME_CHARS: usize = 60;

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct ReportArgs {
    /// Session to write about, or two moments 'A..B' of the current one; all of the current one by
    /// default
    #[arg(value_name = "SESSION|A..B")]
    pub of: Option<String>,

    /// File to write, '-' for standard output; 'forge-report-SESSION.html' by default
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write Markdown for a pull request instead of HTML; a FILE that ends in .md does too
    #[arg(long)]
    pub markdown: bool,

    /// Leave out outputs, patches, summaries and reports of sub-agents
    #[arg(long)]
    pub share: bool,

    /// Moment at which it was known
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Earliest moment of the story, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Leave out the script: then there is no slider
    #[arg(long)]
    pub no_script: bool,

    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,

    /// Largest size, such as 300k; raw material is left out until the page fits
    #[arg(long, value_name = "N", value_parser = parse_size, conflicts_with = "markdown")]
    pub max_size: Option<usize>,

    /// Leave out the story, for print
    #[arg(long)]
    pub brief: bool,

    /// Zone of the times: utc, local or a distance from UTC such as +01:00
    #[arg(long, value_name = "ZONE", default_value = "utc", value_parser = parse_zone)]
    pub zone: PageZone,
}

/// Parses a size in bytes, with `k` or `M` for thousands or millions.
fn parse_size(text: &str) -> Result<usize, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1_000),
        Some((end, 'm' | 'M')) => (&text[..end], 1_000_000),
        _ => (text, 1),
    };
    let size = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    size.ok_or_else(|| "a size is a number of bytes, such as 300k or 2M".to_owned())
}

pub(super) fn parse_zone(text: &str) -> Result<PageZone, String> {
    PageZone::parse(text)
        .ok_or_else(|| "a zone is 'utc', 'local' or an offset such as +01:00".to_owned())
}

impl Verb for ReportArgs {
    const NAME: &'static str = "report";
    type Opened = OpenedStore;
    type Report = EitherReport<RawReport, PageReport>;

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        if self.open && self.output.as_deref() == Some(Path::new("-")) {
            return Err(CommandError::invalid(
                "what is written to standard output cannot be opened",
            )
            .hinted("leave out '-o -', or '--open'"));
        }
        Ok(())
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let (reading, range) = self.chosen(opened, context)?;
        let at = range.as_ref().map(|range| &range.1).or(self.at.as_ref());
        let since = range.as_ref().map(|range| &range.0).or(self.since.as_ref());
        let (since, moment) = reading.story_range(context, since, at)?;
        let limits = ReportLimits {
            zone: self.zone,
            shared: self.share,
            since,
            as_of: at.and(moment.time()),
        };
        let redactor = workspace::redactor(context).unwrap_or_default();
        let model = read_page(&reading.session, &moment, &redactor, limits)?;
        let about = reading.session.summary()?.info;
        if about.kind != SessionKind::Debug {
            let (name, kind) = (quoted(&about.name), about.kind.name());
            context.out.warn(&format!(
                "a report shows what was found out, and little of a session of kind '{kind}': \
                 'forge --session {name} at HEAD --full' shows everything in it"
            ));
        }
        let (text, left_out) = self.written(&model);
        if !self.is_markdown() && text.len() > self.max_bytes() {
            let most = self.max_bytes();
            context.out.warn(&format!(
                "the page is larger than {most} bytes: '--brief', '--no-script' or a shorter range \
                 'A..B' make it smaller"
            ));
        }
        if self.output.as_deref() == Some(Path::new("-")) {
            return Ok(EitherReport::First(RawReport(text.into_bytes())));
        }
        let path = self.output.clone().unwrap_or_else(|| self.default_path(&model));
        let whole_path = context.cwd.join(&path);
        std::fs::write(&whole_path, &text)
            .map_err(|error| CommandError::io_at("cannot write", &path, error))?;
        if self.open {
            open_in_browser(context, &whole_path.to_string_lossy());
        }
        Ok(EitherReport::Second(PageReport {
            session: model.session.as_str().to_owned(),
            file: WrittenFile { path: path.display().to_string(), bytes: text.len() as u64 },
            format: if self.is_markdown() { "markdown" } else { "html" },
            left_out,
        }))
    }
}

impl ReportArgs {
    /// Returns the session, and the two moments if the argument is a range.
    fn chosen(
        &self,
        opened: &OpenedStore,
        context: &Context,
    ) -> Result<(SessionReader, Option<(MomentArg, MomentArg)>), CommandError> {
        let store = opened.store.clone();
        let of = self.of.as_deref();
        // The name of a session may contain two dots.
        let is_unknown = |of: &&str| matches!(store.session(of), Err(Error::NotFound { .. }));
        let range = of.filter(is_unknown).and_then(MomentArg::range);
        let named = of.filter(|_| range.is_none());
        let session = workspace::named_or_chosen_session(context, &store, named)?;
        if range.is_some() && (self.at.is_some() || self.since.is_some()) {
            return Err(CommandError::invalid("a range 'A..B' already has both moments")
                .hinted("leave out '--at' and '--since'"));
        }
        Ok((SessionReader { store, session }, range))
    }

    /// Returns the text of the page, and the kinds of content that were left out of it.
    fn written(&self, model: &ReportModel) -> (String, Vec<&'static str>) {
        if self.is_markdown() {
            return (write_markdown(model, self.brief), Vec::new());
        }
        let options = HtmlOptions {
            script: !self.no_script,
            brief: self.brief,
            max_bytes: Some(self.max_bytes()),
            served: None,
        };
        let page = write_page(model, None, &options);
        (page.html, page.left_out)
    }

    fn is_markdown(&self) -> bool {
        let ending = self.output.as_deref().and_then(Path::extension);
        self.markdown || ending.is_some_and(|ending| ending == "md")
    }

    /// Returns the maximum size of an HTML page.
    fn max_bytes(&self) -> usize {
        self.max_size.unwrap_or(MAX_BYTES)
    }

    fn default_path(&self, model: &ReportModel) -> PathBuf {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let name: String = model
            .session
            .as_str()
            .chars()
            .take(NAME_CHARS)
            .map(|letter| if is_plain(letter) { letter } else { '-' })
            .collect();
        let ending = if self.markdown { "md" } else { "html" };
        PathBuf::from(format!("forge-report-{name}.{ending}"))
    }
}

/// Opens a file or an address in the browser of this machine. A failure is only a warning.
pub fn open_in_browser(context: &Context, what: &str) {
    if let Err(error) = start_browser(what) {
        context.out.warn(&format!("cannot open a browser ({error}): open {what}"));
    }
}

/// Starts the browser of this machine with a file or an address.
///
/// # Errors
///
/// The reason why the browser cannot be started.
pub(super) fn start_browser(what: &str) -> Result<(), String> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(what)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map(drop).map_err(|error| format!("{program}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit() {
        for (text, size) in [("300k", 300_000), ("2M", 2_000_000), ("1234", 1234)] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "k", "-1", "3 kB", "99999999999999999999", "18446744073709551615k"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
