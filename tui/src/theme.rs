//! How things look: by what they mean. Nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};

/// What a text means.
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
    /// Gone in a comparison.
    Removed,
    /// A tag.
    Tag,
}

/// For which terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// Many colours on black.
    Dark,
    /// Many colours on white.
    Light,
    /// The terminal's own sixteen colours.
    #[default]
    Sixteen,
    /// No colour at all.
    None,
}

/// How things look on one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Which colours.
    pub name: ThemeName,
    /// Whether only ASCII is drawn.
    pub ascii: bool,
}

impl Theme {
    /// How a text of this meaning looks.
    #[must_use]
    pub fn style(self, tone: TextTone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        if self.name == ThemeName::None {
            return match tone {
                TextTone::Heading | TextTone::Bad => bold,
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
        }
    }

    /// How the line looks that a person stands on.
    #[must_use]
    pub fn cursor(self, focused: bool) -> Style {
        if focused {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        }
    }

    /// One character or another: the terminal may know only ASCII.
    #[must_use]
    pub const fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }
}
