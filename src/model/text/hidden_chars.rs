//! Invisible characters, and the contexts in which they belong to visible text: joiners between
//! letters that they shape, spaces without width, and the components of emoji.

const ZERO_WIDTH_SPACE: char = '\u{200b}';
const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
const COMBINING_KEYCAP: char = '\u{20e3}';
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';
/// The result of [`script`] for Mongolian.
const MONGOLIAN: u32 = 0x1800;

/// Returns each character of a text, and whether it is hidden in its context.
pub(super) fn chars_with_hidden(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut before = PrecedingContext::default();
    text.char_indices().map(move |(place, character)| {
        let rest = text.get(place + character.len_utf8()..).unwrap_or_default();
        let hidden = is_unseen(character) && !before.lets_through(character, rest);
        before.pass(character, hidden, rest);
        (character, hidden)
    })
}

/// Returns whether a character is not plainly visible: it controls the terminal, reorders, joins,
/// or has no appearance.
pub(super) fn is_unseen(character: char) -> bool {
    character.is_control()
        || is_variation_selector(character)
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a character is invisible, but can belong to the visible characters around it.
pub(super) fn belongs_to_neighbour(character: char) -> bool {
    is_variation_selector(character)
        || matches!(
            character,
            '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{e0020}'..='\u{e007f}'
        )
}

/// The text before a character, as far as it decides whether the character is hidden.
#[derive(Default)]
struct PrecedingContext {
    last: Option<char>,
    /// Whether the text ends with an emoji, including its modifiers.
    is_emoji: bool,
    /// The number of tags that still follow in a flag made of tags.
    tags: usize,
}

impl PrecedingContext {
    /// Returns whether an invisible character belongs to the visible text around it. `rest` is the
    /// text after it.
    fn lets_through(&self, character: char, rest: &str) -> bool {
        let next = rest.chars().next();
        match character {
            ZERO_WIDTH_JOINER | ZERO_WIDTH_NON_JOINER => {
                self.is_shaped_with(next)
                    || character == ZERO_WIDTH_JOINER
                        && (self.is_emoji && next.is_some_and(is_pictograph)
                            || self.last.is_some_and(is_cursive) && !next.is_some_and(is_unseen))
            }
            ZERO_WIDTH_SPACE => {
                self.last.is_some_and(has_no_spaces) && next.is_some_and(has_no_spaces)
            }
            // These select the form of a Mongolian letter.
            '\u{180b}'..='\u{180f}' => {
                self.last.is_some_and(|last| is_letter(last) && script(last) == Some(MONGOLIAN))
            }
            '\u{fe00}'..='\u{fe0f}' => match self.last {
                // The variation selector of a keycap: 1️⃣.
                Some('0'..='9' | '#' | '*') => next == Some(COMBINING_KEYCAP),
                Some(last) => has_variants(last),
                None => false,
            },
            // These variation selectors are only for ideographs.
            '\u{e0100}'..='\u{e01ef}' => self.last.is_some_and(is_ideograph),
            _ => self.tags > 0,
        }
    }

    /// Returns whether a joiner here shapes letters: between two letters of a script that uses
    /// joiners, or after a virama, where it controls how the letters around it are written. This is
    /// a simplified form of the rules of RFC 5892, appendix A.
    fn is_shaped_with(&self, next: Option<char>) -> bool {
        let Some(last) = self.last else { return false };
        if is_virama(last) {
            return !next.is_some_and(is_unseen);
        }
        is_letter(last)
            && next.is_some_and(is_letter)
            && script(last).is_some()
            && script(last) == next.and_then(script)
    }

    fn pass(&mut self, character: char, hidden: bool, rest: &str) {
        self.tags = match character {
            BLACK_FLAG => tags_of_flag(rest),
            _ => self.tags.saturating_sub(1),
        };
        let changes_look = is_variation_selector(character)
            || matches!(character, '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..=CANCEL_TAG);
        self.is_emoji = is_pictograph(character) || self.is_emoji && changes_look && !hidden;
        self.last = Some(character);
    }
}

const fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns whether a variation selector may follow a character. Letters of Latin and other
/// alphabets have none, so a selector after them would be invisible.
fn has_variants(character: char) -> bool {
    matches!(character, '\u{a9}' | '\u{ae}' | '\u{1000}'..='\u{109f}' | '\u{2030}'..)
        && !is_unseen(character)
        && !character.is_whitespace()
}

const fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns whether a character is a pictograph from which emoji are composed. The blocks also
/// contain some other visible symbols.
const fn is_pictograph(character: char) -> bool {
    matches!(
        character,
        '\u{a9}'
            | '\u{ae}'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2122}'
            | '\u{2139}'
            | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{24c2}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2934}'..='\u{2935}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
            | '\u{1f000}'..='\u{1f1e5}'
            | '\u{1f200}'..='\u{1f3fa}'
            | '\u{1f400}'..='\u{1faff}'
    )
}

/// Returns the number of tags after a black flag that make it the flag of a region such as
/// Scotland: the code of the region (Unicode Technical Standard 51) and the tag that ends it; 0 if
/// `rest` does not begin with them.
fn tags_of_flag(rest: &str) -> usize {
    const CODE: std::ops::RangeInclusive<usize> = 3..=6;
    let is_tag = |tag: &char| matches!(tag, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let code = rest.chars().take(CODE.end() + 1).take_while(is_tag).count();
    let is_ended = rest.chars().nth(code) == Some(CANCEL_TAG);
    if is_ended && CODE.contains(&code) { code + 1 } else { 0 }
}

/// Returns the script of a letter, for scripts whose letters change shape next to each other: the
/// code of the first character of its block, or of its first block.
fn script(character: char) -> Option<u32> {
    let code = u32::from(character);
    Some(match code {
        // Arabic.
        0x600..=0x6ff | 0x750..=0x77f | 0x860..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfefe => 0x600,
        // Syriac, N'Ko, Mandaic, Mongolian, Phags-pa, Adlam.
        0x700..=0x74f => 0x700,
        0x7c0..=0x7ff => 0x7c0,
        0x840..=0x85f => 0x840,
        0x1800..=0x18af => MONGOLIAN,
        0xa840..=0xa87f => 0xa840,
        0x1_e900..=0x1_e95f => 0x1_e900,
        // Devanagari, with its additions.
        0xa8e0..=0xa8ff | 0x900..=0x97f => 0x900,
        // Bengali, Gurmukhi, Gujarati, Oriya, Tamil, Telugu, Kannada, Malayalam, Sinhala, and
        // Brahmi with the scripts derived from it: blocks of 128 characters each.
        0x980..=0xdff | 0x1_1000..=0x1_1c7f => code & !0x7f,
        // Tibetan, Myanmar, Khmer, Balinese, Javanese.
        0xf00..=0xfff => 0xf00,
        0x1000..=0x109f | 0xaa60..=0xaa7f | 0xa9e0..=0xa9ff => 0x1000,
        0x1780..=0x17ff => 0x1780,
        0x1b00..=0x1b7f => 0x1b00,
        0xa980..=0xa9df => 0xa980,
        _ => return None,
    })
}

/// Returns whether a joiner after a character gives it the form that it has before another letter,
/// as in the abbreviation of a Persian year.
fn is_cursive(character: char) -> bool {
    matches!(script(character), Some(0x600 | 0x700 | 0x7c0 | 0x840 | MONGOLIAN | 0xa840 | 0x1_e900))
        && is_letter(character)
}

/// Returns whether a character is of a script whose words are not separated by spaces: Thai, Lao,
/// Myanmar or Khmer. A space without width between words allows a line break there.
const fn has_no_spaces(character: char) -> bool {
    matches!(
        character,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17b3}'
            | '\u{17b6}'..='\u{17ff}'
            | '\u{aa60}'..='\u{aa7f}'
    )
}

/// Returns whether a character is a letter or a mark on one. Digits and punctuation are not shaped.
fn is_letter(character: char) -> bool {
    // The nukta, a dot below that forms another letter.
    let is_nukta =
        matches!(u32::from(character), 0x93c..=0xcbc) && u32::from(character) & 0x7f == 0x3c;
    character.is_alphabetic() || is_nukta || is_virama(character)
}

/// Returns whether a sign is a virama, which removes the inherent vowel of a letter.
const fn is_virama(character: char) -> bool {
    matches!(
        character,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d3b}'
            | '\u{d3c}'
            | '\u{d4d}'
            | '\u{dca}'
            | '\u{f84}'
            | '\u{1039}'
            | '\u{103a}'
            | '\u{17d2}'
            | '\u{1b44}'
            | '\u{a8c4}'
            | '\u{a9c0}'
            | '\u{11046}'
            | '\u{110b9}'
            | '\u{11133}'
            | '\u{111c0}'
            | '\u{11235}'
            | '\u{1134d}'
            | '\u{11442}'
            | '\u{114c2}'
            | '\u{115bf}'
            | '\u{1163f}'
    )
}
