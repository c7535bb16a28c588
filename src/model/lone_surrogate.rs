//! Lone surrogates in JSON texts: halves of characters, which remain where a text was cut.

use std::borrow::Cow;

/// Returns this JSON with `\ufffd` in place of every escaped lone surrogate. The text is owned only
/// if there was one.
///
/// JavaScript can cut a text between the two surrogates of a character, and then writes the one
/// that remains. A Rust string cannot hold a lone surrogate. The length and the pointers into the
/// document stay the same.
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    // Every escape of a surrogate begins so. Most texts have none.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut replaced = String::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        at += match (escaped_unit(json, at), escaped_unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                replaced.push_str(&json[kept..at]);
                replaced.push_str("\\ufffd");
                kept = at + 6;
                6
            }
            // Any other escape, such as that of a backslash, has one character after the backslash.
            _ => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(&json[kept..]);
    Cow::Owned(replaced)
}

/// Returns the UTF-16 code unit of the `\u` escape at this offset, if there is one.
fn escaped_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_is_replaced_and_whole_ones_stay() {
        for (json, expected) in [
            (r#""\ud83d\ude05 \uD83D""#, "\u{1f605} \u{fffd}"),
            (r#""\uD83D""#, "\u{fffd}"),
            (r#""\ude05\ud83dx\ud83d\ud83d\ude05""#, "\u{fffd}\u{fffd}x\u{fffd}\u{1f605}"),
            (r#""\\ud83d \\\ud83d""#, "\\ud83d \\\u{fffd}"),
            (r#""\ud8""#, "unread"),
        ] {
            let made = replace_lone_surrogates(json);
            assert_eq!(made.len(), json.len());
            let read: String = serde_json::from_str(&made).unwrap_or("unread".to_owned());
            assert_eq!(read, expected, "{json}");
        }
        // A character of several bytes after a backslash, and a backslash at the end.
        assert_eq!(replace_lone_surrogates(r"\é\ud83d\"), r"\é\ufffd\");
    }

    #[test]
    fn a_text_without_halves_is_borrowed() {
        for json in [r#""a\n\u00e9""#, r#""\ud83d\ude05""#, r#""\\ud83d""#, r#""\ud8""#, ""] {
            assert!(matches!(replace_lone_surrogates(json), Cow::Borrowed(_)), "{json}");
        }
    }
}
