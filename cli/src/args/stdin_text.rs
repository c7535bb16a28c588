//! Reads texts of arguments, and the text on standard input for an argument that is `-`.

use std::io::{self, Read};
use std::string::FromUtf8Error;
use std::sync::OnceLock;

/// The maximum size of a text, in bytes.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// Why a text cannot be used.
#[derive(Debug)]
pub enum TextFailure {
    Unreadable(io::Error),
    /// It has more than 256 MiB.
    TooLong,
    NotUtf8(FromUtf8Error),
}

/// Returns the text on standard input without the line ends after it. Standard input is read only
/// once, because the same arguments may be parsed twice.
pub(super) fn stdin_text() -> Result<&'static str, String> {
    static READ: OnceLock<Result<String, String>> = OnceLock::new();
    READ.get_or_init(|| argument_of(io::stdin().lock())).as_deref().map_err(Clone::clone)
}

fn argument_of(input: impl Read) -> Result<String, String> {
    let text = read_text(input).map_err(|failure| match failure {
        TextFailure::Unreadable(error) => format!("standard input cannot be read: {error}"),
        TextFailure::TooLong => {
            "standard input has more than 256 MiB: give a shorter text".to_owned()
        }
        TextFailure::NotUtf8(error) => format!(
            "standard input is not UTF-8 ({error}): convert it to UTF-8, such as with 'iconv'"
        ),
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads a text. A byte order mark at its beginning is not a part of it.
pub fn read_text(source: impl Read) -> Result<String, TextFailure> {
    let mut bytes = Vec::new();
    let read = source.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(TextFailure::Unreadable)?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(TextFailure::TooLong);
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(TextFailure::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_left_out() {
        assert_eq!(argument_of(&b"\xef\xbb\xbfa\n"[..]), Ok("a".to_owned()));
        assert_eq!(argument_of(&b"\xef\xbb\xbf"[..]), Ok(String::new()));
    }

    #[test]
    fn line_ends_after_the_text_are_left_out() {
        assert_eq!(argument_of(&b"a\nb\r\n\n"[..]), Ok("a\nb".to_owned()));
        let error = argument_of(&b"\xff"[..]).unwrap_err();
        assert!(error.ends_with("convert it to UTF-8, such as with 'iconv'"), "{error}");
    }
}
