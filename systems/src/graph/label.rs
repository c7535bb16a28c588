//! Names of the framework as ids of the store.
//!
//! An id has a bounded length and no control characters. A name that is too long or not plain is
//! replaced by its first plain characters and its hash; the full name is stored too.

/// The separator between the shown part of a name and its hash. A plain name never contains it.
const HASH_MARK: char = '~';

/// The maximum length of a plain name.
const MAX_PLAIN_BYTES: usize = 48;

/// The number of plain characters of a name that are shown before its hash.
const SHOWN_CHARS: usize = 24;

/// The number of hexadecimal digits of a hash: 80 bits.
const HASH_DIGITS: usize = 20;

/// Returns a name as a part of an id: the name itself if it is short and plain.
#[must_use]
pub(super) fn label(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !name.is_empty() && name.len() <= MAX_PLAIN_BYTES && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let shown: String = name.chars().filter(|c| is_plain(*c)).take(SHOWN_CHARS).collect();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{shown}{HASH_MARK}{}", &hash[..HASH_DIGITS])
}

/// Returns a namespace as a part of an id. The root graph, whose namespace is empty, is `graph`.
#[must_use]
pub(super) fn namespace_label(namespace: &str) -> String {
    const ROOT: &str = "graph";
    match namespace {
        "" => ROOT.to_owned(),
        // A subgraph with the name of the label above.
        ROOT => format!("{ROOT}{HASH_MARK}"),
        other => label(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn labels_are_short_plain_and_unique(
            names in proptest::collection::btree_set(".{0,80}|(graph|gra:ph|a/b|a){1,3}~?", 1..40),
        ) {
            for label_of in [label, namespace_label] {
                let labels: BTreeMap<String, &String> =
                    names.iter().map(|name| (label_of(name), name)).collect();
                prop_assert_eq!(labels.len(), names.len());
                for label in labels.keys() {
                    prop_assert!(label.len() <= MAX_PLAIN_BYTES && !label.contains('/'), "{label}");
                    prop_assert!(!label.is_empty() && label.chars().all(|c| c.is_ascii_graphic()));
                }
            }
        }
    }

    #[test]
    fn the_label_of_a_plain_name_is_the_name() {
        assert_eq!(label("messages"), "messages");
        assert_eq!(label("branch:to:agent"), "branch:to:agent");
        assert_eq!(namespace_label(""), "graph");
        assert!(label("a b").starts_with("ab~"));
    }
}
