//! Words that mean something for some programs: `program_words.tsv`.

use forge_store::const_table::{count, rows};

const LINES: &str = include_str!("program_words.tsv");
static ROWS: [[&str; 3]; count(LINES)] = rows(LINES);

/// Returns the words of a list for a program.
pub(super) fn words_of(list: &str, program: &str) -> Vec<&'static str> {
    let is_of_program = |[known, programs, _]: &&[&str; 3]| {
        *known == list && programs.split(' ').any(|name| name == program)
    };
    ROWS.iter().filter(is_of_program).flat_map(|[_, _, words]| words.split(' ')).collect()
}
