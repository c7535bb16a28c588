//! Colours and characters by meaning. No meaning is shown by colour alone.

use forge_store::model::{Key, Kind};
use ratatui::style::{Color, Modifier, Style};

/// The meaning of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextTone {
    /// Nothing special.
    #[default]
    Plain,
    /// A title.
    Heading,
    /// Of less interest.
    Dim,
    /// A name or id.
    Id,
    /// Passed, confirmed, filled.
    Good,
    /// Failed, rejected.
    Bad,
    /// In doubt, worth a look.
    Warning,
    /// New in a comparison.
    Added,
    /// Removed in a comparison.
    Removed,
    Tag,
    /// What a person said, and the landmarks of the work.
    Accent,
    Edit,
    /// A line that a patch adds.
    PatchAdded,
    /// A line that a patch removes.
    PatchRemoved,
    /// A hypothesis, in one of eight hues.
    Hypothesis(u8),
}

impl TextTone {
    /// Returns the tone of the hypothesis with this id. The same id has the same tone everywhere.
    #[must_use]
    pub fn of_hypothesis(id: &str) -> Self {
        let digits = id.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let number = digits.parse::<u64>().unwrap_or_else(|_| {
            id.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
        });
        Self::Hypothesis((number.wrapping_sub(1) % 8) as u8)
    }

    /// Returns the tone of the id of an entity.
    #[must_use]
    pub fn of_key(key: &Key) -> Self {
        if key.kind == Kind::Hypothesis { Self::of_hypothesis(&key.id) } else { Self::Id }
    }
}

impl From<forge_store::story::StoryTone> for TextTone {
    fn from(tone: forge_store::story::StoryTone) -> Self {
        use forge_store::story::StoryTone;
        match tone {
            StoryTone::Plain => Self::Plain,
            StoryTone::Heading => Self::Heading,
            StoryTone::Dim => Self::Dim,
            StoryTone::Id => Self::Id,
            StoryTone::Good => Self::Good,
            StoryTone::Bad => Self::Bad,
            StoryTone::Warning => Self::Warning,
            StoryTone::Added => Self::Added,
            StoryTone::Removed => Self::Removed,
        }
    }
}

/// The hues of hypotheses: on a dark background, on a light one, and in the terminal's own colours.
/// None is red or green, which mean failed and passed.
const HUES: [(u8, u8, Color); 8] = [
    (75, 25, Color::Blue),
    (179, 130, Color::Yellow),
    (176, 90, Color::Magenta),
    (80, 30, Color::Cyan),
    (141, 55, Color::LightBlue),
    (223, 94, Color::LightYellow),
    (212, 126, Color::LightMagenta),
    (117, 24, Color::LightCyan),
];

/// The colours of a theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// 256 colours, for a dark background.
    Dark,
    /// 256 colours, for a light background.
    Light,
    /// The terminal's own sixteen colours.
    #[default]
    Sixteen,
    /// No colour at all.
    None,
}

/// The appearance on one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// The colours.
    pub name: ThemeName,
    /// Whether only ASCII characters are drawn.
    pub ascii: bool,
}

impl Theme {
    #[must_use]
    pub fn style(self, tone: TextTone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        if self.name == ThemeName::None {
            return match tone {
                TextTone::Heading | TextTone::Bad | TextTone::Accent => bold,
                TextTone::Dim => plain.add_modifier(Modifier::DIM),
                TextTone::Warning => plain.add_modifier(Modifier::UNDERLINED),
                _ => plain,
            };
        }
        let pick = |dark: u8, light: u8, sixteen: Color| match self.name {
            ThemeName::Dark => Color::Indexed(dark),
            ThemeName::Light => Color::Indexed(light),
            ThemeName::Sixteen | ThemeName::None => sixteen,
        };
        match tone {
            TextTone::Plain => plain,
            TextTone::Heading => bold,
            TextTone::Dim if self.name == ThemeName::Sixteen => plain.add_modifier(Modifier::DIM),
            TextTone::Dim => plain.fg(pick(245, 242, Color::DarkGray)),
            TextTone::Id => plain.fg(pick(80, 30, Color::Cyan)),
            TextTone::Good | TextTone::Added => plain.fg(pick(114, 28, Color::Green)),
            TextTone::Bad => bold.fg(pick(203, 160, Color::Red)),
            TextTone::Removed => plain.fg(pick(203, 160, Color::Red)),
            TextTone::Warning => plain.fg(pick(221, 130, Color::Yellow)),
            TextTone::Tag => plain.fg(pick(176, 90, Color::Magenta)),
            TextTone::Accent => bold.fg(pick(173, 130, Color::Yellow)),
            TextTone::Edit => plain.fg(pick(75, 25, Color::Blue)),
            TextTone::PatchAdded => self.tinted(pick(114, 28, Color::Green), 22, 194),
            TextTone::PatchRemoved => self.tinted(pick(210, 160, Color::Red), 52, 224),
            TextTone::Hypothesis(hue) => {
                let (dark, light, sixteen) =
                    HUES.get(usize::from(hue) % HUES.len()).copied().unwrap_or(HUES[0]);
                plain.fg(pick(dark, light, sixteen))
            }
        }
    }

    /// Returns the style of a line of a patch: a colour, with a background in themes of 256
    /// colours.
    const fn tinted(self, colour: Color, dark: u8, light: u8) -> Style {
        match self.name {
            ThemeName::Dark => Style::new().fg(colour).bg(Color::Indexed(dark)),
            ThemeName::Light => Style::new().fg(colour).bg(Color::Indexed(light)),
            ThemeName::Sixteen | ThemeName::None => Style::new().fg(colour),
        }
    }

    /// Returns the style of the selected line: a bar of one colour. Without 256 colours, the line
    /// in a pane without focus is only bold.
    #[must_use]
    pub fn cursor(self, focused: bool) -> Style {
        let ground = match (self.name, focused) {
            (ThemeName::Dark, true) => 238,
            (ThemeName::Dark, false) => 235,
            (ThemeName::Light, true) => 253,
            (ThemeName::Light, false) => 255,
            (ThemeName::Sixteen | ThemeName::None, true) => {
                let even = Style::new().fg(Color::Reset).bg(Color::Reset);
                return even.remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED);
            }
            (ThemeName::Sixteen | ThemeName::None, false) => {
                return Style::new().add_modifier(Modifier::BOLD);
            }
        };
        Style::new().bg(Color::Indexed(ground))
    }

    /// Returns the style of the selected column of a chart.
    #[must_use]
    pub const fn column(self) -> Style {
        match self.name {
            ThemeName::Dark => Style::new().bg(Color::Indexed(237)),
            ThemeName::Light => Style::new().bg(Color::Indexed(254)),
            ThemeName::Sixteen | ThemeName::None => Style::new(),
        }
    }

    /// Returns the style of a pane's frame.
    #[must_use]
    pub fn frame(self, focused: bool) -> Style {
        match (self.name, focused) {
            (ThemeName::Dark, true) => Style::new().fg(Color::Indexed(255)),
            (ThemeName::Light, true) => Style::new().fg(Color::Indexed(232)),
            (_, true) => Style::new().add_modifier(Modifier::BOLD),
            (ThemeName::Dark, false) => Style::new().fg(Color::Indexed(239)),
            (ThemeName::Light, false) => Style::new().fg(Color::Indexed(250)),
            (_, false) => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// Returns the style of the letters that match a search.
    #[must_use]
    pub const fn matched(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED.union(Modifier::BOLD))
    }

    /// Returns one of two characters, depending on whether the terminal supports only ASCII.
    #[must_use]
    pub const fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }
}
