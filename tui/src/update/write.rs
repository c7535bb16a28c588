//! Writes whose texts a person types.

use super::{input, selection};
use crate::app::App;
use crate::effect::WriteRequest;
use crate::panes::InputPurpose;
use crate::theme::TextTone;

/// Opens an input for a text about the selected hypothesis. `purpose` takes its id.
pub(super) fn about_hypothesis(app: &mut App, purpose: impl FnOnce(String) -> InputPurpose) {
    match selection::hypothesis(app) {
        Some(id) => input::ask(app, purpose(id), ""),
        None => app
            .say(TextTone::Warning, "no hypothesis is selected: select its line, or i states one"),
    }
}

/// Returns the write for a typed text. The error says what is wrong with the text.
pub(super) fn request_of_text(purpose: &InputPurpose, text: &str) -> Result<WriteRequest, String> {
    match purpose {
        InputPurpose::Note => Ok(WriteRequest::Note(text.to_owned())),
        InputPurpose::Hypothesis => Ok(WriteRequest::Hypothesis(text.to_owned())),
        InputPurpose::Question => Ok(WriteRequest::Gap(text.to_owned())),
        InputPurpose::Evidence { hypothesis, supports } => {
            let (number, description) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let strength = number.trim_start_matches('+').parse::<f64>().ok();
            let strength = strength.filter(|strength| (0.0..=1.0).contains(strength));
            let Some(strength) = strength.filter(|_| !description.trim().is_empty()) else {
                return Err(format!(
                    "'{text}' is not a strength from 0 to 1 and a text, such as: .7 it fails every time"
                ));
            };
            #[expect(clippy::cast_possible_truncation, reason = "0 to 100")]
            let hundredths = (strength * 100.0).round() as i8;
            Ok(WriteRequest::Evidence {
                hypothesis: hypothesis.clone(),
                hundredths: if *supports { hundredths } else { -hundredths },
                text: description.trim().to_owned(),
            })
        }
        InputPurpose::Settle { hypothesis, confirm } => Ok(WriteRequest::Settle {
            hypothesis: hypothesis.clone(),
            confirm: *confirm,
            reason: text.to_owned(),
        }),
        _ => Err("this input writes nothing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_a_strength_and_a_text() {
        let evidence = |supports| InputPurpose::Evidence { hypothesis: "H1".to_owned(), supports };
        let write = request_of_text(&evidence(false), ".7 it fails").unwrap();
        let expected = WriteRequest::Evidence {
            hypothesis: "H1".to_owned(),
            hundredths: -70,
            text: "it fails".to_owned(),
        };
        assert_eq!(write, expected);
        assert_eq!(
            write.command(),
            "forge evidence add 'it fails' --hypothesis H1 --strength=-0.7"
        );
        for text in ["", ".7", "7 it fails", "it fails", "-.7 it fails"] {
            assert!(request_of_text(&evidence(true), text).is_err(), "{text}");
        }
    }
}
