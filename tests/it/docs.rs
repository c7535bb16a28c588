//! Checks the project's pages: their links are valid, every page is linked, and the example is up
//! to date.

use crate::source::files;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The page without fenced code, in which `[a](b)` is no link.
fn prose(page: &str) -> String {
    let mut fenced = false;
    let kept = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The targets of the links `[text](target)` of a page.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    // Code contains no links; the text of a link may be code.
    let prose: String = prose
        .split('`')
        .enumerate()
        .map(|(place, part)| if place % 2 == 0 { part } else { "" })
        .collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

/// The anchor of a heading: lower-case letters, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    prose(page).lines().any(|line| line.starts_with('#') && anchor(line) == wanted)
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The target of a link on this page: file and anchor; `None` for other hosts.
fn target(page: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) =
        link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = match (file, page.parent()) {
        ("", _) | (_, None) => page.to_owned(),
        (file, Some(folder)) => plain(&folder.join(file)),
    };
    Some((path, anchor.map(str::to_owned)))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

#[test]
fn links_between_pages_are_valid() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in files(root(), "md") {
        for link in links(&read(&page)) {
            let Some((path, anchor)) = target(&page, &link) else { continue };
            seen += 1;
            let found = path.exists()
                && anchor.is_none_or(|anchor| path.is_file() && has_anchor(&read(&path), &anchor));
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(seen > 5, "found only {seen} links");
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_reachable_from_the_readme() {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![root().join("README.md")];
    while let Some(page) = waiting.pop() {
        if !reached.insert(page.clone()) || !page.is_file() {
            continue;
        }
        if page.extension().is_some_and(|extension| extension == "md") {
            let targets = links(&read(&page)).into_iter().filter_map(|link| target(&page, &link));
            waiting.extend(targets.map(|(path, _)| path));
        }
    }
    let lost = files(&root().join("docs"), "md")
        .into_iter()
        .filter(|page| !reached.contains(page))
        .collect::<Vec<_>>();
    assert!(
        lost.is_empty(),
        "no link leads from README.md to {lost:?}: add it to the list of pages"
    );
}

#[test]
fn links_are_found_and_anchors_are_those_of_the_rendered_page() {
    let page =
        "see [a](x.md#b) and [c](../y)\n```text\n[no](link)\n```\n## What it's *for*, in short\n";
    assert_eq!(links(page), ["x.md#b", "../y"]);
    assert!(has_anchor(page, "what-its-for-in-short"));
    let page = Path::new("/p/docs/a.md");
    assert_eq!(target(page, "../README.md"), Some((PathBuf::from("/p/README.md"), None)));
    assert_eq!(target(page, "#here"), Some((page.to_owned(), Some("here".to_owned()))));
    assert_eq!(target(page, "https://example.org"), None);
}

#[test]
fn the_readme_marks_the_beginning_and_end_of_its_screen() {
    let readme = read(&root().join("README.md"));
    let marks = readme.lines().filter(|line| line.starts_with("<!-- screen:")).collect::<Vec<_>>();
    assert_eq!(marks, ["<!-- screen:begin -->", "<!-- screen:end -->"]);
}

#[test]
fn every_path_that_proves_a_promise_exists() {
    let page = read(&root().join("docs/reliability.md"));
    let (_, rest) = page.split_once("## What it promises").expect("there are promises");
    let (promises, _) = rest.split_once("\n## ").expect("something follows them");
    let rows: Vec<&str> = promises.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 8, "{rows:?}");
    for row in rows {
        let shown = row.split('|').nth(2).unwrap_or_default();
        let paths: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!paths.is_empty(), "nothing shows it: {row}");
        for path in paths {
            assert!(root().join(path).exists(), "{path} is not there: {row}");
        }
    }
}

/// Contributors look for the files that this page names.
#[test]
fn every_path_in_the_page_for_contributors_exists() {
    let page = read(&root().join("CONTRIBUTING.md"));
    let is_path = |code: &&str| {
        // `NAME` is a file that the contributor creates, `/1` the version of a JSON document.
        code.contains('/') && !code.contains(' ') && !code.contains("NAME") && !code.ends_with("/1")
    };
    let paths: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 30, "{paths:?}");
    let lost: Vec<&str> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(lost.is_empty(), "CONTRIBUTING.md names files that are not there: {lost:?}");
}

#[test]
fn the_example_is_a_stream_ordered_by_time() {
    let mut before = String::new();
    let mut put = BTreeSet::new();
    for (number, line) in (1..).zip(read(&root().join("docs/example/session.jsonl")).lines()) {
        let event = serde_json::from_str::<Value>(line)
            .unwrap_or_else(|error| panic!("line {number} is no JSON: {error}"));
        let text = |pointer| event.pointer(pointer).and_then(Value::as_str);
        let at = text("/at").unwrap_or_else(|| panic!("line {number} has no 'at'"));
        assert!(*at >= *before, "line {number} lies before the one above it");
        at.clone_into(&mut before);

        let verbs = ["/put", "/checkpoint", "/switch", "/branch/name"];
        let count = verbs.iter().filter(|verb| event.pointer(verb).is_some()).count();
        assert_eq!(count, 1, "line {number} says {count} things instead of one");
        if let (Some(kind), Some(id)) = (text("/put/kind"), text("/put/id")) {
            put.insert((kind.to_owned(), id.to_owned()));
        }
        if let Some(hypothesis) = text("/put/value/hypothesis") {
            let key = ("hypothesis".to_owned(), hypothesis.to_owned());
            assert!(put.contains(&key), "line {number} speaks of {hypothesis} before there is one");
        }
    }
    assert!(put.len() > 60, "the example has only {} entities", put.len());
}

#[test]
fn every_test_in_the_page_on_reliability_exists() {
    let page = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let code = files(root(), "rs").into_iter().map(|path| fs::read_to_string(path).unwrap());
    let code = code.collect::<Vec<_>>().join("\n");
    let is_test = |word: &&str| {
        word.matches('_').count() > 3
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 40, "{named:?}");
    for name in named {
        assert!(code.contains(&format!("fn {name}(")), "{name} is no test");
    }
}

/// A target without a description would not be run.
#[test]
fn every_fuzz_target_is_built_and_described() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (manifest, page) = (read("fuzz/Cargo.toml"), read("docs/reliability.md"));
    let targets = files(&root().join("fuzz/targets"), "rs");
    assert!(targets.len() >= 14);
    for target in targets {
        let name = target.file_stem().unwrap().to_str().unwrap();
        assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name} is not built");
        assert!(page.contains(&format!("`{name}`")), "{name} is not described");
    }
}
