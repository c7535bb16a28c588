//! Types and parsers of values on the command line.

pub use super::moment::MomentArg;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use forge_store::model::claim::VocabularyWord;
use forge_store::model::text::has_hidden;
use forge_store::model::time_grammar;
use forge_store::model::{Kind, SessionKind, Value};
use forge_store::redact::unknown_kind;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// How to find the name of a kind of secrets.
pub const SECRET_KINDS_HINT: &str = "'forge redact --list' shows the kind of each secret in a text";

/// A name that a person gives: of a session, a branch, a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameArg(String);

impl NameArg {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NameArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("a name may not be empty".into());
        }
        if text.trim() != text {
            return Err("a name may not begin or end with a space".into());
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(format!("a name may have at most {MAX_NAME_BYTES} bytes"));
        }
        if has_hidden(text) {
            return Err("a name may not contain control or invisible characters".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for NameArg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Parses a text that must not be blank; `-` is the text on standard input.
pub fn non_empty_text(text: &str) -> Result<String, String> {
    let text = if text == "-" { super::stdin_text::stdin_text()? } else { text };
    if text.trim().is_empty() {
        return Err("it may not be empty".into());
    }
    Ok(text.to_owned())
}

/// Parses the only tag that a list takes. No tag has a comma.
pub fn one_tag(text: &str) -> Result<String, String> {
    let tag: NameArg = text.parse()?;
    if text.contains(',') {
        return Err("a list takes one tag".into());
    }
    Ok(tag.0)
}

/// Parses a secret that is let through: a part of it, or `kind:NAME`.
pub fn allowed_secret(text: &str) -> Result<String, String> {
    match unknown_kind(text) {
        Some(kind) => Err(format!("there is no kind of secrets '{kind}': {SECRET_KINDS_HINT}")),
        None => Ok(text.to_owned()),
    }
}

/// An entity as typed: its id or a prefix of its id, optionally after `KIND:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityArg {
    /// The kind, if it was given.
    pub kind: Option<Kind>,
    /// The id or a prefix of it.
    pub id: String,
}

impl FromStr for EntityArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, id) = match text.split_once(':') {
            // An id may contain a colon too, so only a known kind is taken as a kind.
            Some((kind, id)) => match kind.parse() {
                Ok(kind) => (Some(kind), id),
                Err(_) => (None, text),
            },
            None => (None, text),
        };
        if id.trim().is_empty() {
            return Err("an id may not be empty".into());
        }
        Ok(Self { kind, id: id.to_owned() })
    }
}

/// Returns a parser of the words that a field may hold.
pub fn word_parser<W: VocabularyWord + Send + Sync>() -> impl TypedValueParser<Value = W> {
    parser_of_words::<W>(W::WORDS.to_vec())
}

/// Returns a parser of some of the words that a field may hold.
pub fn word_subset_parser<W: VocabularyWord + Send + Sync>(
    some: &[W],
) -> impl TypedValueParser<Value = W> {
    parser_of_words::<W>(some.iter().map(|word| word.word()).collect())
}

fn parser_of_words<W: VocabularyWord + Send + Sync>(
    words: Vec<&'static str>,
) -> impl TypedValueParser<Value = W> {
    PossibleValuesParser::new(words)
        .map(|word| W::from_word(&word).expect("clap lets only these words through"))
}

pub fn session_kind_parser() -> impl TypedValueParser<Value = SessionKind> {
    let kind = |word: String| SessionKind::ALL.into_iter().find(|kind| kind.name() == word);
    PossibleValuesParser::new(SessionKind::ALL.map(SessionKind::name))
        .map(move |word| kind(word).expect("clap lets only these words through"))
}

/// Parses the strength of evidence: -1 (refutes) to 1 (proves).
pub fn parse_strength(text: &str) -> Result<f64, String> {
    parse_degree(text, -1.0, 1.0)
}

/// The words for a confidence, each with its number.
const CONFIDENCE_WORDS: &[(&str, f64)] = &[("low", 0.2), ("even", 0.5), ("high", 0.8)];
/// The words for the strength of evidence. A hyphen before a word makes the strength negative.
const STRENGTH_WORDS: &[(&str, f64)] = &[("weak", 0.3), ("moderate", 0.5), ("strong", 0.8)];

/// Parses a strength (if `least` is negative) or a confidence: a number, a percentage or a word.
pub fn parse_degree(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let words = if least < 0.0 { STRENGTH_WORDS } else { CONFIDENCE_WORDS };
    let named = |text: &str| {
        words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, number)| *number)
    };
    let number = match (text.strip_suffix('%'), text.strip_prefix('-')) {
        (Some(percent), _) => percent.trim_end().parse::<f64>().ok().map(|number| number / 100.0),
        (None, Some(word)) if least < 0.0 && named(word).is_some() => named(word).map(|n| -n),
        (None, _) => named(text).or_else(|| text.parse().ok()),
    };
    number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let percent = if least < 0.0 { "-70%" } else { "70%" };
        let words = words.join(", ");
        format!("must be a number from {least} to {most}, a percentage such as {percent}, or one of {words}")
    })
}

/// Parses a measured value: a whole number, another number, `true` or `false`, else a text. A whole
/// number of more than 64 bits stays a text: as another number it would lose digits.
pub fn parse_scalar(text: &str) -> Result<Value, String> {
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number.into());
    }
    let is_whole = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    match (text.parse::<u64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(number), _, _) => Ok(number.into()),
        (_, Ok(_), _) if is_whole(text.trim_start_matches(['+', '-'])) => Ok(text.into()),
        (_, Ok(number), _) if number.is_finite() => Ok(number.into()),
        (_, Ok(_), _) => Err("must be a finite number".into()),
        (_, _, Ok(truth)) => Ok(truth.into()),
        _ => Ok(text.into()),
    }
}

/// Parses a number of seconds, with decimals.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "must be a number of seconds, such as 5 or 0.5".into())
}

/// Parses a duration of whole seconds: `90s`, `1h30m`, `7d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let micros = time_grammar::parse_duration(text).map_err(|error| error.to_string())?;
    let duration = Duration::from_micros(micros.unsigned_abs());
    match duration.subsec_nanos() {
        0 => Ok(duration),
        _ => Err("a duration here has whole seconds, such as 2s or 1m30s".into()),
    }
}

/// Converts a duration to microseconds; one that is too long becomes the maximum.
pub fn to_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, seconds) in
            [("90s", 90), ("10m", 600), ("1h30m", 5_400), ("7d", 604_800), ("2w", 1_209_600)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "m", "-1h", "250ms", "10mo", "1é", "99999999999999999999w"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_text_is_refused() {
        assert_eq!(non_empty_text(" x "), Ok(" x ".to_owned()));
        for text in ["", " ", "\n\t"] {
            assert!(non_empty_text(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn numbers_outside_their_range_are_refused() {
        let parse_share = |text: &str| parse_degree(text, 0.0, 1.0);
        assert_eq!(parse_share("0.7"), Ok(0.7));
        assert_eq!(parse_strength("-1"), Ok(-1.0));
        assert_eq!((parse_share("80%"), parse_share("High")), (Ok(0.8), Ok(0.8)));
        assert_eq!((parse_strength("-70%"), parse_strength("-strong")), (Ok(-0.7), Ok(-0.8)));
        assert_eq!((parse_strength("-.5"), parse_strength("weak")), (Ok(-0.5), Ok(0.3)));
        for text in ["101%", "-1%", "%", "weak", "-high", "--high"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        for text in ["1.7", "-0.1", "NaN", "inf", "x", ""] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        assert!(parse_strength("NaN").is_err());
        for text in ["inf", "NaN", "1e999"] {
            assert!(parse_scalar(text).is_err(), "{text}");
        }
        assert!(parse_seconds("-1").is_err());
        assert!(parse_seconds("1e300").is_err());
    }

    #[test]
    fn the_type_of_a_measured_value_is_guessed_from_its_text() {
        for (text, value) in [
            ("-3", Value::Int(-3)),
            ("18446744073709551615", Value::UInt(u64::MAX)),
            ("18446744073709551616", Value::Text("18446744073709551616".into())),
            ("-9223372036854775809", Value::Text("-9223372036854775809".into())),
            ("1.5e3", Value::Float(1500.0)),
            ("true", Value::Bool(true)),
            ("12 ms", Value::Text("12 ms".into())),
        ] {
            assert_eq!(parse_scalar(text), Ok(value));
        }
    }

    #[test]
    fn names_have_no_control_characters() {
        assert_eq!("näme 1".parse::<NameArg>().unwrap().as_str(), "näme 1");
        for text in ["", " ", " a", "a\n", "a\u{1b}[31m", "a\u{202e}b", "a\u{200b}"] {
            assert!(text.parse::<NameArg>().is_err(), "{text:?}");
        }
        assert!("x".repeat(201).parse::<NameArg>().is_err());
    }

    #[test]
    fn only_a_known_kind_before_a_colon_is_taken_as_a_kind() {
        let named: EntityArg = "hypothesis:h1".parse().unwrap();
        assert_eq!(named, EntityArg { kind: Some(Kind::Hypothesis), id: "h1".into() });
        let plain: EntityArg = "toolu:1".parse().unwrap();
        assert_eq!(plain, EntityArg { kind: None, id: "toolu:1".into() });
        assert!("belief:".parse::<EntityArg>().is_err());
    }
}
