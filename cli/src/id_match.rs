//! Finds ids by a typed name, and names the nearest ids in hints.

use crate::error::CommandError;
use forge_store::error::Error;
use forge_store::model::Kind;
use strsim::levenshtein;

/// The maximum number of ids in a hint.
const NEAREST: usize = 3;

/// Finds a name among the known ids: a full id or a unique prefix.
///
/// # Errors
///
/// Not found, with the nearest ids in the hint; ambiguous if several ids begin with the name.
pub fn match_id(
    kind: Kind,
    name: &str,
    known: impl IntoIterator<Item = String>,
) -> Result<String, CommandError> {
    let known: Vec<String> = known.into_iter().collect();
    let begins = ids_beginning_with(name, known.iter(), |id| id);
    match begins.as_slice() {
        [id] => return Ok((*id).clone()),
        [] => {}
        several => {
            let prefix = name.to_owned();
            let matches = several.iter().map(|id| (*id).clone()).collect();
            return Err(Error::Ambiguous { prefix, matches }.into());
        }
    }
    let error = CommandError::from(Error::not_found(kind.name(), name));
    Err(match nearest_names(name, &known).as_slice() {
        [] if known.is_empty() => {
            let verb = if kind.plural() == kind.name() { "is" } else { "are" };
            error.hinted(format!("there {verb} no {}", kind.plural()))
        }
        [] => error.hinted(format!("'forge {kind} list' lists them")),
        shown => error.hinted(nearest_hint(shown)),
    })
}

/// Returns the elements whose id begins with a name. Case is ignored if no id begins with the name
/// as it is written: then `h1` finds `H1`. If the name is a whole id, longer ids are left out. An
/// empty name, such as an unset variable of the shell, is the beginning of no id. A numbered id is
/// not the beginning of another one: if there is no `H1`, it is not `H10`.
pub fn ids_beginning_with<T>(
    name: &str,
    known: impl IntoIterator<Item = T>,
    id: impl Fn(&T) -> &str,
) -> Vec<T> {
    let has_prefix = |id: &str| {
        let beginning = id.get(..name.len()).filter(|beginning| !beginning.is_empty());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(name))
            && !(is_numbered(name) && has_longer_number(name, id))
    };
    let mut found: Vec<T> = known.into_iter().filter(|one| has_prefix(id(one))).collect();
    let whole = |one: &T| id(one) == name;
    let exact = |one: &T| id(one).starts_with(name);
    let whole_in_other_case = |one: &T| id(one).eq_ignore_ascii_case(name);
    if found.iter().any(whole) {
        found.retain(whole);
    } else if found.iter().any(exact) {
        found.retain(exact);
    } else if found.iter().any(whole_in_other_case) {
        found.retain(whole_in_other_case);
    }
    found
}

/// Whether an id is a letter and a number, such as `H1`, as forge gives them to claims.
fn is_numbered(id: &str) -> bool {
    let number = id.strip_prefix(|letter: char| letter.is_ascii_alphabetic());
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Whether an id has a number with more digits than the name: `H10` and `H10-41c9` for `H1`. The
/// second form is that of a claim whose id two machines gave.
fn has_longer_number(name: &str, id: &str) -> bool {
    let numbered = id.split_once('-').map_or(id, |(numbered, _)| numbered);
    numbered.len() > name.len() && is_numbered(numbered)
}

/// Names the nearest ids in a hint.
pub fn nearest_hint(nearest: &[&str]) -> String {
    let verb = if nearest.len() == 1 { "is" } else { "are" };
    format!("the nearest {verb} {}", nearest.join(", "))
}

/// Returns at most 3 ids that are most similar to a name, the nearest first. An id is left out
/// if its edit distance is more than half of the longer text.
pub fn nearest_names<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let length = |text: &str| text.chars().count();
    let mut nearest: Vec<(usize, &String)> = known
        .iter()
        .map(|id| (levenshtein(&name.to_lowercase(), &id.to_lowercase()), id))
        .filter(|(distance, id)| distance * 2 <= length(name).max(length(id)))
        .collect();
    nearest.sort();
    nearest.iter().take(NEAREST).map(|(_, id)| id.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<String> {
        ["H1", "H2", "H10", "cache"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_whole_id_has_priority_over_ids_that_begin_with_it() {
        assert_eq!(match_id(Kind::Hypothesis, "H1", known()).unwrap(), "H1");
        assert_eq!(match_id(Kind::Hypothesis, "ca", known()).unwrap(), "cache");
    }

    /// Regression: `forge hypothesis reject "$ID"` without a value rejected the only hypothesis.
    #[test]
    fn an_empty_name_is_refused_also_if_there_is_only_one_id() {
        let error = match_id(Kind::Hypothesis, "", ["H1".to_owned()]).unwrap_err();
        assert_eq!(error.message(), "there is no hypothesis ''");
        assert_eq!(error.hints()[0], "'forge hypothesis list' lists them");
    }

    /// Regression: `forge note retract N1`, run twice, also retracted `N10`.
    #[test]
    fn a_numbered_id_is_not_the_beginning_of_another_one() {
        let known = || ["N10", "N12-41c9", "N2-41c9", "n3x"].map(str::to_owned);
        let error = match_id(Kind::Note, "n1", known()).unwrap_err();
        assert_eq!(error.message(), "there is no note 'n1'");
        assert_eq!(error.hints()[0], "the nearest is N10");
        assert_eq!(match_id(Kind::Note, "N2", known()).unwrap(), "N2-41c9");
        assert_eq!(match_id(Kind::Note, "n3", known()).unwrap(), "n3x");
    }

    #[test]
    fn an_unknown_id_is_refused_with_the_nearest_ids() {
        let error = match_id(Kind::Hypothesis, "cahce", known()).unwrap_err();
        assert_eq!(error.message(), "there is no hypothesis 'cahce'");
        assert!(error.hints()[0].starts_with("the nearest is cache"), "{error:?}");
        let error = match_id(Kind::Hypothesis, "H", known()).unwrap_err();
        assert_eq!(error.message(), "'H' is the beginning of 3 ids: H1, H2, H10");
        // Regression: the number was never more than 8.
        let many = (1..12).map(|number| format!("N{number}"));
        let error = match_id(Kind::Note, "n", many).unwrap_err();
        let first = "'n' is the beginning of 11 ids: N1, N2, N3, N4, N5, N6, N7, N8, ...";
        assert_eq!(error.message(), first);
        let hint = |kind| match_id(kind, "x", Vec::new()).unwrap_err().hints()[0].clone();
        assert_eq!(hint(Kind::Gap), "there are no gaps");
        assert_eq!(hint(Kind::Evidence), "there is no evidence");
    }
}
