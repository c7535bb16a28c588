//! Colours and characters by meaning. Colour is never the only sign.

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
    /// A tag.
    Tag,
}

/// The colours of a theme.
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

/// The appearance on one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// The colours.
    pub name: ThemeName,
    /// Whether only ASCII characters are drawn.
    pub ascii: bool,
}

impl Theme {
    /// Returns the style of a text with this meaning.
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

    /// Returns the style of the selected line.
    #[must_use]
    pub fn cursor(self, focused: bool) -> Style {
        if focused {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        }
    }

    /// Returns one of two characters, depending on whether the terminal supports only ASCII.
    #[must_use]
    pub const fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }
}
