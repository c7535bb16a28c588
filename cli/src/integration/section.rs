//! The section in an agent's page of instructions that says when to record what.

/// The markers at its beginning and end.
const BEGIN: &str = "<!-- forge: begin -->";
const END: &str = "<!-- forge: end -->";

/// Returns the section, with the command for starting forge.
pub fn section_text(forge: &str) -> String {
    format!(
        "{BEGIN}\n\
         ## Debugging notes (forge)\n\
         forge keeps what is known, believed and tried here, and outlives compaction. Record as you go:\n\
         - an idea of the cause: `{forge} hypothesis add 'TEXT'`; settled: `{forge} hypothesis confirm|reject ID`\n\
         - what speaks for or against it: `{forge} evidence add 'TEXT' --hypothesis ID --strength -1..1`\n\
         - what is taken to be true: `{forge} belief add 'TEXT'`; what is not known: `{forge} gap add 'TEXT'`\n\
         - a result of a test, build or check: `{forge} verification add NAME --status passed|failed`\n\
         - before a risky step: `{forge} checkpoint create 'TEXT'`\n\
         \n\
         After a break or a compaction `{forge} brief` shows the present state, `{forge} log` how it came about.\n\
         `{forge} COMMAND --help` explains each. Ask before `restore`, `undo`, `prune` or `purge`.\n\
         {END}\n"
    )
}

/// Returns the page with the section at its end, after a blank line.
pub fn add_section(page: &str, section: &str) -> String {
    let ending = if page.contains("\r\n") { "\r\n" } else { "\n" };
    let section = section.replace('\n', ending);
    let gap = match page {
        "" => String::new(),
        page if page.ends_with('\n') => ending.to_owned(),
        _ => ending.repeat(2),
    };
    [page, &gap, &section].concat()
}

/// Returns the section in a page, with its markers, up to the end of its last line.
pub fn find_section(page: &str) -> Option<&str> {
    let from = page.find(BEGIN)?;
    let length = page[from..].find(END)? + END.len();
    let after = &page[from + length..];
    let ending = ["\r\n", "\n"].into_iter().find(|ending| after.starts_with(ending));
    Some(&page[from..from + length + ending.map_or(0, str::len)])
}

/// Returns the page without the section and the blank line before it.
pub fn remove_section(page: &str) -> String {
    let Some(section) = find_section(page) else { return page.to_owned() };
    let at = section.as_ptr() as usize - page.as_ptr() as usize;
    let (before, after) = (&page[..at], &page[at + section.len()..]);
    let before = ["\r\n\r\n", "\n\n"]
        .into_iter()
        .find_map(|gap| Some(&before[..before.strip_suffix(gap)?.len() + gap.len() / 2]))
        .unwrap_or(before);
    [before, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_added_after_a_blank_line_and_removed_without_a_trace() {
        let section = section_text("forge");
        for page in ["", "# Mine\n\nRules.\n", "# Mine\r\nRules.\r\n"] {
            let with = add_section(page, &section);
            assert_eq!(find_section(&with).unwrap().replace("\r\n", "\n"), section);
            assert_eq!(remove_section(&with), page);
        }
        let with = add_section("no end", &section) + "more\n";
        assert_eq!(remove_section(&with), "no end\nmore\n");
        assert_eq!(remove_section("nothing of forge's"), "nothing of forge's");
    }

    #[test]
    fn the_section_has_ten_lines_between_its_markers() {
        assert_eq!(section_text("forge").lines().count(), 2 + 10);
    }
}
