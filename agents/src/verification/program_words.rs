//! Words that mean something for some programs: `program_words.tsv`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The words by list and program.
static WORDS: LazyLock<BTreeMap<(&str, &str), Vec<&str>>> = LazyLock::new(|| {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in include_str!("program_words.tsv").lines() {
        let mut columns = line.splitn(3, '\t');
        let (Some(list), Some(programs), Some(words)) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        for program in programs.split(' ') {
            found.entry((list, program)).or_default().extend(words.split(' '));
        }
    }
    found
});

/// Returns the words of a list for a program.
pub(super) fn words_of<'p>(list: &'p str, program: &'p str) -> &'p [&'static str] {
    WORDS.get(&(list, program)).map(Vec::as_slice).unwrap_or_default()
}
