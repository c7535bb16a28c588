//! Text for people, line by line. Every text passes the sanitiser first.

use super::table::{self, TextTable};
use super::time;
use anstyle::{AnsiColor, Style};
use chrono::Local;
use forge_store::model::Timestamp;
use forge_store::model::text::{NewlineMode, sanitise};
use forge_store::model::time_grammar::{clock_time, day_name};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The meaning of a text, which determines its colour; colour is never the only sign.
pub use forge_store::story::StoryTone as Tone;

/// Returns the style of a text with this meaning.
pub(super) fn style_of(tone: Tone, colored: bool) -> Style {
    if !colored {
        return Style::new();
    }
    match tone {
        Tone::Plain => Style::new(),
        Tone::Heading => Style::new().bold(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Id => AnsiColor::Cyan.on_default(),
        Tone::Good | Tone::Added => AnsiColor::Green.on_default(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Removed => AnsiColor::Red.on_default(),
        Tone::Warning => AnsiColor::Yellow.on_default(),
    }
}

/// Text for people that is being built.
#[derive(Debug)]
pub struct Screen {
    text: String,
    width: Option<usize>,
    height: usize,
    colored: bool,
    zone: Local,
    now: Timestamp,
    forge: String,
}

impl Screen {
    /// Creates an empty screen with this many columns (unlimited if `None`).
    pub fn new(width: Option<usize>, colored: bool, zone: Local, now: Timestamp) -> Self {
        let (text, forge) = (String::new(), "forge".to_owned());
        Self { text, width, height: usize::MAX, colored, zone, now, forge }
    }

    /// Sets the number of lines that are visible at once. The text may have more.
    pub fn with_height(self, height: usize) -> Self {
        Self { height, ..self }
    }

    /// Sets the beginning of a suggested command.
    pub fn with_forge(self, forge: String) -> Self {
        Self { forge, ..self }
    }

    /// Returns the beginning of a suggested command: `forge`, with the session that was named.
    pub fn forge(&self) -> &str {
        &self.forge
    }

    /// Returns the number of lines of a report that are visible at once: all but one for the
    /// prompt.
    pub fn usable_lines(&self) -> usize {
        self.height.saturating_sub(1)
    }

    /// Returns the number of lines so far.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns an empty screen with the same properties, to measure a text.
    pub fn blank(&self) -> Self {
        Self { text: String::new(), forge: self.forge.clone(), ..*self }
    }

    /// Appends the text of another screen.
    pub fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
    }

    /// Formats a time in full, without the distance from now.
    pub fn local_time(&self, time: Timestamp) -> String {
        time::local(time, &self.zone)
    }

    /// Formats a time for a column of a list: in short, but in full if the width is unlimited,
    /// because then a program may read it.
    pub fn column_time(&self, time: Timestamp) -> String {
        match self.width {
            Some(_) => time::short(time, self.now, &self.zone),
            None => self.local_time(time),
        }
    }

    /// Writes a line of several parts, each with its tone, shortened to the width of the screen.
    pub fn short_line(&mut self, parts: &[(Tone, &str)]) {
        let mut room = self.width.unwrap_or(usize::MAX);
        for (tone, text) in parts {
            let safe = sanitise(text, NewlineMode::Escape);
            let shown = table::shortened(&safe, room);
            push_styled(&mut self.text, style_of(*tone, self.colored), &shown);
            // Parts after a shortened one would not be visible.
            room = if shown == safe { room - shown.width().min(room) } else { 0 };
            if room == 0 {
                break;
            }
        }
        self.end_line();
    }

    /// Returns the number of columns, if it is limited.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Appends a text to the line.
    pub fn put(&mut self, tone: Tone, text: &str) {
        let shown = sanitise(text, NewlineMode::Escape);
        push_styled(&mut self.text, style_of(tone, self.colored), &shown);
    }

    pub fn end_line(&mut self) {
        self.text.push('\n');
    }

    /// Appends a text to the line and ends the line.
    pub fn line(&mut self, tone: Tone, text: &str) {
        self.put(tone, text);
        self.end_line();
    }

    pub fn plain(&mut self, text: &str) {
        self.line(Tone::Plain, text);
    }

    pub fn dim(&mut self, text: &str) {
        self.line(Tone::Dim, text);
    }

    pub fn good(&mut self, text: &str) {
        self.line(Tone::Good, text);
    }

    pub fn warning(&mut self, text: &str) {
        self.line(Tone::Warning, text);
    }

    /// Writes an empty line, unless the screen is empty or just had one.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.end_line();
        }
    }

    /// Writes a title, with an empty line before it.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.line(Tone::Heading, text);
    }

    /// Writes a text of several lines, wrapped to the width of the screen and indented by this many
    /// columns.
    pub fn paragraph(&mut self, tone: Tone, indent: usize, text: &str) {
        let shown = sanitise(text, NewlineMode::Keep);
        let style = style_of(tone, self.colored);
        for line in shown.lines() {
            let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(10));
            for part in wrapped(line, room) {
                if !part.is_empty() {
                    self.text.extend(std::iter::repeat_n(' ', indent));
                }
                push_styled(&mut self.text, style, part);
                self.text.push('\n');
            }
        }
    }

    pub fn table(&mut self, table: &TextTable) {
        table::draw(table, self.width, self.colored, &mut self.text);
    }

    /// Formats a time: local, with its zone, and how long ago.
    pub fn time(&self, time: Timestamp) -> String {
        time::with_distance(time, self.now, &self.zone)
    }

    /// Formats a time of day in the local zone.
    pub fn clock(&self, time: Timestamp) -> String {
        clock_time(time, &self.zone)
    }

    /// Formats a day in the local zone, with the year if it is not this year.
    pub fn day(&self, time: Timestamp) -> String {
        day_name(time, self.now, &self.zone)
    }

    /// Formats how long before now a time is.
    pub fn ago(&self, time: Timestamp) -> String {
        time::relative(time, self.now)
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Appends a text that is already sanitised, in this style.
pub(super) fn push_styled(to: &mut String, style: Style, text: &str) {
    if style == Style::new() || text.is_empty() {
        to.push_str(text);
    } else {
        to.push_str(&style.render().to_string());
        to.push_str(text);
        to.push_str(&style.render_reset().to_string());
    }
}

/// Splits a line into parts of at most this many columns, at spaces if there are any; its
/// indentation stays.
fn wrapped(line: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while rest.width() > room {
        let fits = table::prefix_within(rest, room).len();
        let blank = rest[..fits].trim_start().find(' ').and_then(|_| rest[..fits].rfind(' '));
        // The part that fits may end directly before a space.
        let cut = match blank {
            _ if rest[fits..].starts_with(' ') => fits,
            Some(place) if place > 0 => place,
            _ => fits.max(rest.graphemes(true).next().map_or(0, str::len)),
        };
        parts.push(rest[..cut].trim_end());
        rest = rest[cut..].trim_start_matches(' ');
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::text::has_hidden;

    fn screen(width: usize, colored: bool) -> Screen {
        Screen::new(Some(width), colored, Local, Timestamp::from_micros(0))
    }

    #[test]
    fn nothing_reaches_the_screen_unsanitised() {
        let mut all = screen(40, true);
        all.put(Tone::Bad, "a\u{1b}[31m\n");
        all.plain("b\u{202e}");
        all.heading("c\u{7}");
        all.paragraph(Tone::Plain, 2, "d\u{9b}1m\ne\u{0}");
        let mut table = TextTable::new(&["f\u{1b}"]);
        table.row(vec![super::super::TableCell::plain("g\u{8}\nh")]);
        all.table(&table);
        let text = all.into_text();
        let own = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[0m", "\u{1b}[2m"];
        let rest = own.iter().fold(text, |text, escape| text.replace(escape, ""));
        assert!(!has_hidden(&rest.replace('\n', "")), "{rest:?}");
        assert_eq!(rest.lines().count(), 7, "{rest}");
    }

    #[test]
    fn paragraphs_wrap_at_spaces_and_split_long_words() {
        let mut all = screen(20, false);
        all.paragraph(Tone::Plain, 4, "the quick brown fox jumps\n\nabcdefghijklmnopqrstuvwxyz");
        assert_eq!(
            all.into_text(),
            "    the quick brown\n    fox jumps\n\n    abcdefghijklmnop\n    qrstuvwxyz\n"
        );
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(wrapped("日本語日本語", 5), ["日本", "語日", "本語"]);
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(wrapped(&family.repeat(3), 5), [family.repeat(2), family.to_owned()]);
        assert_eq!(wrapped(family, 1), [family, ""]);
    }
}
