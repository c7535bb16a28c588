//! Changes of a text, recorded so that exactly these can be undone.

use serde::{Deserialize, Serialize};

/// One change of a text: at an offset, one part was removed and another was inserted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSplice {
    /// The byte offset.
    pub at: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub removed: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inserted: String,
}

impl TextSplice {
    /// Returns the one change from `old` to `new`; `None` if they are equal.
    pub fn between(old: &str, new: &str) -> Option<Self> {
        if old == new {
            return None;
        }
        let mut at = common(old.bytes().zip(new.bytes()));
        while !(old.is_char_boundary(at) && new.is_char_boundary(at)) {
            at -= 1;
        }
        let (old_rest, new_rest) = (&old[at..], &new[at..]);
        let mut after = common(old_rest.bytes().rev().zip(new_rest.bytes().rev()));
        while !(old_rest.is_char_boundary(old_rest.len() - after)
            && new_rest.is_char_boundary(new_rest.len() - after))
        {
            after -= 1;
        }
        Some(Self {
            at,
            removed: old_rest[..old_rest.len() - after].to_owned(),
            inserted: new_rest[..new_rest.len() - after].to_owned(),
        })
    }

    /// Undoes this change; `None` if the inserted text is not at its offset.
    pub fn undo(&self, text: &str) -> Option<String> {
        let rest = text.get(self.at..)?.strip_prefix(self.inserted.as_str())?;
        Some([&text[..self.at], &self.removed, rest].concat())
    }

    /// Undoes this change wherever the inserted text is now; `None` if it is blank, or does not
    /// occur exactly once.
    pub fn find_and_undo(&self, text: &str) -> Option<String> {
        if self.inserted.trim().is_empty() {
            return None;
        }
        let mut places = text.match_indices(self.inserted.as_str());
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        Self { at, ..self.clone() }.undo(text)
    }
}

fn common(pairs: impl Iterator<Item = (u8, u8)>) -> usize {
    pairs.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn undoing_a_splice_restores_every_byte(old in "[aé ß\n]{0,12}", new in "[aé ß\n]{0,12}") {
            match TextSplice::between(&old, &new) {
                None => prop_assert_eq!(old, new),
                Some(splice) => prop_assert_eq!(splice.undo(&new), Some(old)),
            }
        }
    }

    #[test]
    fn a_splice_that_moved_is_undone_unless_it_occurs_twice() {
        let splice = TextSplice::between("{}", "{ours}").unwrap();
        assert_eq!(splice.find_and_undo("{x, ours}").as_deref(), Some("{x, }"));
        assert_eq!(splice.find_and_undo("{ours, ours}"), None);
        assert_eq!(splice.find_and_undo("{}"), None);
    }
}
