//! Texts that are given directly, as a file, or on standard input.

use crate::args::stdin_text::{self, TextFailure};
use crate::context::Context;
use crate::error::CommandError;
use crate::transcript::open_plain;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The source of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextArg {
    Text(String),
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl FromStr for TextArg {
    type Err = std::convert::Infallible;

    /// Parses an argument. `-` is standard input, `@FILE` is a file, and anything else is the text
    /// itself. `@@` at its beginning means a text that begins with one `@`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match (text, text.strip_prefix('@')) {
            ("-", _) => Self::Stdin,
            (_, Some(rest)) if !rest.starts_with('@') && !rest.is_empty() => {
                Self::File(rest.into())
            }
            (_, Some(rest)) if rest.starts_with('@') => Self::Text(rest.to_owned()),
            _ => Self::Text(text.to_owned()),
        })
    }
}

impl TextArg {
    /// Reads the text.
    pub fn read(&self, context: &Context) -> Result<String, CommandError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => read_file(&context.cwd.join(path)),
            Self::Stdin => read_text(io::stdin().lock(), "standard input"),
        }
    }
}

/// Reads the text of a file.
pub fn read_file(path: &Path) -> Result<String, CommandError> {
    let shown = path.display().to_string();
    read_text(open_plain(path)?.0, &shown)
}

fn read_text(source: impl Read, shown: &str) -> Result<String, CommandError> {
    stdin_text::read_text(source).map_err(|failure| match failure {
        TextFailure::Unreadable(error) => CommandError::io(&format!("cannot read {shown}"), error),
        TextFailure::TooLong => CommandError::invalid(format!("{shown} has more than 256 MiB"))
            .hinted("keep it as a file and give its path as the text"),
        TextFailure::NotUtf8(error) => CommandError::invalid(format!("{shown} is not UTF-8"))
            .caused_by(error)
            .hinted("convert it to UTF-8, such as with 'iconv'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_of_a_text_argument_selects_stdin_or_a_file() {
        let given = |text: &str| text.parse::<TextArg>().unwrap();
        assert_eq!(given("-"), TextArg::Stdin);
        assert_eq!(given("@a/b"), TextArg::File("a/b".into()));
        assert_eq!(given("@@b"), TextArg::Text("@b".to_owned()));
        for text in ["", "x @y", "@", "--"] {
            assert_eq!(given(text), TextArg::Text(text.to_owned()));
        }
    }

    /// Regression: the error did not say what to do next.
    #[test]
    fn a_text_in_another_encoding_is_refused_with_what_to_do() {
        let error = read_text(&b"caf\xe9"[..], "standard input").unwrap_err();
        assert_eq!(error.message(), "standard input is not UTF-8");
        assert_eq!(error.hints(), ["convert it to UTF-8, such as with 'iconv'"]);
    }
}
