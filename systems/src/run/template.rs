//! Prompt templates with placeholders such as `{conversation_3341_output}`.
//!
//! An unfilled placeholder in a prompt is worse than no prompt: a model does not reject the prompt,
//! but invents the missing text. So a template is filled completely or not at all.

use std::collections::BTreeSet;
use std::ops::Range;

/// Words that precede the step in the name of an output placeholder.
const STEP_PREFIXES: [&str; 3] = ["conversation_", "session_", "step_"];
const OUTPUT_SUFFIX: &str = "_output";

/// The result of filling a template.
pub type RenderResult = Result<String, RenderError>;

/// Why a template was not filled.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.description())]
pub struct RenderError {
    /// Placeholders without a recorded value.
    pub missing: Vec<String>,
    /// Placeholders that would remain in the result: in an inserted value, or formed by one.
    pub surviving: Vec<String>,
}

impl RenderError {
    fn description(&self) -> String {
        let list = |names: &[String]| {
            names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
        };
        let missing = format!("nothing is recorded for {}", list(&self.missing));
        let surviving = format!("{} would remain in the text", list(&self.surviving));
        match (self.missing.is_empty(), self.surviving.is_empty()) {
            (false, false) => format!("{missing}, and {surviving}"),
            (true, _) => surviving,
            (false, true) => missing,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplatePlaceholder<'a> {
    pub(super) name: &'a str,
    /// Its range, braces included.
    pub(super) at: Range<usize>,
}

/// Returns the placeholders of a text in order: `{name}`, where the name consists of letters,
/// digits, `_`, `-`, `.`, `:` and `/`, begins with a letter or `_`, and may be surrounded by
/// spaces. JSON and code in braces do not match.
pub(super) fn scan(text: &str) -> Vec<TemplatePlaceholder<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| at + from) {
        from = open + 1;
        let Some(inside) = text.get(from..) else { break };
        let Some(close) = inside.find(['{', '}']) else { break };
        let Some(name) = inside.get(..close).map(str::trim) else { break };
        if inside.get(close..).is_some_and(|rest| rest.starts_with('}')) && is_name(name) {
            found.push(TemplatePlaceholder { name, at: open..from + close + 1 });
            from += close + 1;
        }
    }
    found
}

fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_alphanumeric() || "_-.:/".contains(c))
}

/// Returns the placeholder names of a text, each once, sorted.
#[must_use]
pub fn placeholders(text: &str) -> Vec<String> {
    let names: BTreeSet<&str> = scan(text).into_iter().map(|one| one.name).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns whether a name refers to an output: `session_9_output`, `conversation_3341_output`,
/// `summary_output`.
pub(super) fn is_output(name: &str) -> bool {
    name.len() > OUTPUT_SUFFIX.len() && name.ends_with(OUTPUT_SUFFIX)
}

/// Returns the finished step whose output a placeholder refers to.
pub(super) fn step_of(name: &str, is_done: &dyn Fn(&str) -> bool) -> Option<String> {
    let base = name.strip_suffix(OUTPUT_SUFFIX)?;
    let shorter = STEP_PREFIXES.iter().filter_map(|prefix| base.strip_prefix(prefix));
    let mut candidates = shorter.chain([base]);
    candidates.find(|step| is_done(step)).map(str::to_owned)
}

/// Replaces every placeholder by its value. `{{` and `}}` around a name become single braces, and
/// the name is kept, unless it refers to an output.
///
/// # Errors
/// [`RenderError`], which lists every placeholder without a value and every one that would remain
/// in the result.
pub fn render(template: &str, value_of: &dyn Fn(&str) -> Option<String>) -> RenderResult {
    let mut text = String::with_capacity(template.len());
    let (mut missing, mut surviving) = (BTreeSet::new(), BTreeSet::new());
    // The ranges of values and escaped names in the result.
    let mut values: Vec<Range<usize>> = Vec::new();
    let mut escaped: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    for one in scan(template) {
        let before = template.get(from..one.at.start).unwrap_or_default();
        let doubled = before.ends_with('{')
            && template.get(one.at.end..).is_some_and(|rest| rest.starts_with('}'));
        if doubled && !is_output(one.name) {
            text.push_str(before);
            text.pop();
            let start = text.len();
            text.push_str(template.get(one.at.clone()).unwrap_or_default());
            escaped.push(start..text.len());
            from = one.at.end + 1;
            continue;
        }
        text.push_str(before);
        from = one.at.end;
        match value_of(one.name) {
            Some(value) => {
                values.push(text.len()..text.len() + value.len());
                text.push_str(&value);
            }
            None => {
                missing.insert(one.name.to_owned());
            }
        }
    }
    text.push_str(template.get(from..).unwrap_or_default());
    let inside = |spans: &[Range<usize>], at: &Range<usize>| {
        let place = spans.partition_point(|span| span.start <= at.start);
        let span = place.checked_sub(1).and_then(|place| spans.get(place));
        span.is_some_and(|span| at.end <= span.end)
    };
    for one in scan(&text) {
        // A value, such as a text from a model, may contain braces, but no placeholder for an
        // output or for something that has a value.
        let harmless = inside(&escaped, &one.at)
            || inside(&values, &one.at) && !is_output(one.name) && value_of(one.name).is_none();
        if !harmless {
            surviving.insert(one.name.to_owned());
        }
    }
    if missing.is_empty() && surviving.is_empty() {
        return Ok(text);
    }
    let list = |names: BTreeSet<String>| names.into_iter().collect();
    Err(RenderError { missing: list(missing), surviving: list(surviving) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(template: &str) -> RenderResult {
        render(template, &|name| match name {
            "conversation_3341_output" => Some("a fine summary".to_owned()),
            "item" => Some("123".to_owned()),
            "bad_output" => Some("based on {session_9_output}".to_owned()),
            "code_output" => Some("f\"{name}\" and {item}".to_owned()),
            "half" => Some("x".to_owned()),
            _ => None,
        })
    }

    fn refused(template: &str) -> (Vec<String>, Vec<String>) {
        let refusal = filled(template).unwrap_err();
        (refusal.missing, refusal.surviving)
    }

    #[test]
    fn a_template_is_filled_completely() {
        assert_eq!(
            filled(
                "Grade {item}: { conversation_3341_output }. Answer as {\"grade\": 1} or {{item}}."
            ),
            Ok("Grade 123: a fine summary. Answer as {\"grade\": 1} or {item}.".to_owned())
        );
    }

    #[test]
    fn every_placeholder_without_a_value_is_named() {
        let (missing, surviving) = refused("{conversation_1_output} {item} {x} {x}");
        assert_eq!(missing, ["conversation_1_output", "x"]);
        assert!(surviving.is_empty());
    }

    #[test]
    fn every_placeholder_left_in_a_rendered_template_is_named() {
        assert_eq!(refused("{bad_output}").1, ["session_9_output"], "inside an output");
        assert_eq!(refused("{code_output}").1, ["item"], "a name the template could mean");
        assert_eq!(refused("{a_{half}_output}").1, ["a_x_output"], "made by filling in");
        let doubled = refused("{{session_9_output}}");
        assert_eq!(doubled.0, ["session_9_output"], "an output cannot be escaped");
    }

    proptest! {
        #[test]
        fn a_rendered_template_has_no_placeholder_of_an_output(
            template in "([a-c {}_]|\\{a_output\\}|\\{b_output\\}|\\{\\{c\\}\\}){0,12}",
            a in "[a {}_]{0,6}|\\{b_output\\}", b in "[a-z{}_ ]{0,8}",
        ) {
            let rendered = render(&template, &|name| match name {
                "a_output" => Some(a.clone()),
                "b_output" => Some(b.clone()),
                _ => None,
            });
            if let Ok(text) = rendered {
                prop_assert!(scan(&text).iter().all(|one| !is_output(one.name)), "{text}");
            }
        }
    }
}
