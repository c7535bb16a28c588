//! Checks in the source that no layer uses a higher one.

use crate::source::{files, without_comments, without_tests};
use std::path::Path;

/// The layers of `src/` and their height. A layer may use lower layers, and itself.
const LAYERS: [(&str, u8); 12] = [
    ("admin", 5),
    ("story", 5),
    ("store", 4),
    ("engine", 3),
    ("error", 2),
    ("diff", 1),
    ("format", 1),
    ("backend", 1),
    ("redact", 1),
    ("model", 0),
    ("shell", 0),
    ("const_table", 0),
];

/// Permitted uses between layers of one height: from, to. None may be used in the other direction.
/// The keys in `format` name the tables of the interface in `backend`.
const SIDEWAYS: [(&str, &str); 1] = [("format", "backend")];

/// Layers without side effects.
const PURE: [&str; 6] = ["model", "diff", "format", "redact", "shell", "const_table"];

/// Paths that a layer without side effects must not use, with everything below them.
const IMPURE: [&str; 7] = [
    "std::fs", "std::thread", "std::env", "std::net", "std::time::SystemTime",
    "std::time::Instant", "tracing",
];

fn height(layer: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, height)| *height)
}

/// The layer of a file under `src/`: its folder there, or its own name. `lib.rs` belongs to none.
fn layer(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then(|| name.to_owned())
}

/// Every path in the code that begins with `root`, with nested imports expanded: `a::{b, c::d}` is
/// `a::b` and `a::c::d`.
pub(crate) fn paths(code: &str, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    let start = format!("{root}::");
    for (at, _) in code.match_indices(&start) {
        let inside_a_name = code[..at]
            .chars()
            .next_back()
            .is_some_and(|before| before.is_alphanumeric() || before == '_' || before == ':');
        if !inside_a_name {
            unfold(root, &code[at + start.len()..], &mut found);
        }
    }
    found
}

/// Adds the paths that begin with `prefix` and continue with `rest`; returns the text after them.
pub(crate) fn unfold<'a>(prefix: &str, rest: &'a str, found: &mut Vec<String>) -> &'a str {
    let rest = rest.trim_start();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = unfold(prefix, inside, found).trim_start();
            if let Some(after) = inside.strip_prefix('}') {
                return after;
            }
            let Some(next) = inside.strip_prefix(',') else { return inside };
            inside = next;
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() {
        return after;
    }
    let path = format!("{prefix}::{name}");
    if let Some(deeper) = after.strip_prefix("::")
        && deeper.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{')
    {
        return unfold(&path, deeper, found);
    }
    found.push(path);
    // An alias belongs to the path before it.
    let alias = after.trim_start().strip_prefix("as ").map(str::trim_start);
    alias.map_or(after, |alias| alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The imports of this code that do not point to a lower layer.
fn upward(layer: &str, code: &str) -> Vec<String> {
    let Some(own) = height(layer) else {
        return vec![format!(
            "'{layer}' is no known layer: give it a height in tests/it/layering.rs"
        )];
    };
    let mut faults = Vec::new();
    for path in paths(code, "crate") {
        let used = path.split("::").nth(1).unwrap_or_default();
        match height(used) {
            _ if used == layer => {}
            Some(height) if height < own => {}
            Some(_) if SIDEWAYS.contains(&(layer, used)) => {}
            Some(_) => faults.push(format!("{layer} uses {path}, which is not below it")),
            None => faults.push(format!("{layer} uses {path}: import it from its layer")),
        }
    }
    faults
}

/// The paths in this code that a layer without side effects must not use.
fn impure(layer: &str, code: &str) -> Vec<String> {
    if !PURE.contains(&layer) {
        return Vec::new();
    }
    let code = without_tests(code);
    paths(&code, "std")
        .into_iter()
        .chain(paths(&code, "tracing"))
        .filter(|path| IMPURE.iter().any(|impure| path.starts_with(impure)))
        .map(|path| format!("{layer} is pure and uses {path}"))
        .collect()
}

fn faults(layer: &str, code: &str) -> Vec<String> {
    [upward(layer, code), impure(layer, code)].concat()
}

#[test]
fn no_layer_uses_a_higher_one_and_pure_layers_stay_pure() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults_found = Vec::new();
    let mut layers_seen = 0;
    for file in files(&src, "rs") {
        let relative = file.strip_prefix(&src).expect("files lists what is inside");
        let Some(layer) = layer(relative) else { continue };
        layers_seen += 1;
        let code = without_comments(&std::fs::read_to_string(&file).expect("a source is readable"));
        let name = relative.to_string_lossy();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        let found = if is_test { upward(&layer, &code) } else { faults(&layer, &code) };
        faults_found.extend(found.into_iter().map(|fault| format!("src/{name}: {fault}")));
    }
    assert!(
        layers_seen > 10,
        "found only {layers_seen} files of layers: is {} right?",
        src.display()
    );
    assert!(faults_found.is_empty(), "\n{}", faults_found.join("\n"));
}

/// The crates that use what every other program can use of the library. A build of the whole workspace has the feature
/// `internals`, and would not notice.
const CLIENTS: [&str; 6] = ["agents", "cli", "remote", "report", "systems", "tui"];

#[test]
fn no_client_uses_items_that_are_public_only_with_feature_internals() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for file in CLIENTS.iter().flat_map(|client| files(&root.join(client).join("src"), "rs")) {
        let code = std::fs::read_to_string(&file).expect("a source is readable");
        let used = paths(&without_comments(&without_tests(&code)), "forge_store");
        let hidden = ["forge_store::backend", "forge_store::format"];
        let found = used.iter().filter(|path| hidden.iter().any(|one| path.starts_with(one)));
        faults.extend(found.map(|path| format!("{}: {path}", file.display())));
    }
    assert!(faults.is_empty(), "not public:\n{}", faults.join("\n"));
}

/// The library offers its users a function that reads the clock, and does not call it itself.
#[test]
fn the_library_reads_no_clock() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let reads = |file: &Path| {
        let code = std::fs::read_to_string(file).expect("a source is readable");
        without_comments(&without_tests(&code)).contains("Timestamp::now(")
    };
    let found: Vec<_> = files(&src, "rs").into_iter().filter(|file| reads(file)).collect();
    assert!(found.is_empty(), "these read the clock: {found:?}");
}

#[test]
fn an_upward_import_is_found_in_any_form() {
    for (layer, code) in [
        ("model", "use crate::store::Store;"),
        ("engine", "use crate::{model::{Key, Kind as K}, store::Store};"),
        ("format", "use crate::{\n    diff as difference,\n    model,\n};"),
        ("backend", "fn f() -> crate::error::Error { todo() }"),
        ("backend", "use crate::format::key;"),
        ("diff", "use crate::Error;"),
        ("cellar", "use crate::model::Key;"),
        ("model", "use std::{collections::BTreeMap, fs::File};"),
        ("diff", "fn now() { std::time::SystemTime::now(); }"),
        ("format", "tracing::debug!(\"x\");"),
    ] {
        assert_eq!(faults(layer, code).len(), 1, "{layer}: {code}: {:?}", faults(layer, code));
    }
}

#[test]
fn lower_layers_may_be_used() {
    for (layer, code) in [
        ("store", "use crate::{engine::commit, error::{Error, ErrorKind}, model::*};"),
        ("backend", "use crate::backend::{Log, Index};\npub(crate) fn f() {}"),
        ("model", "use std::time::Duration;\n#[cfg(test)]\nmod tests { use std::fs; }"),
        ("format", "use crate::backend::Table;"),
        ("engine", "use std::time::Instant;\nuse tracing::debug;"),
    ] {
        assert_eq!(faults(layer, code), Vec::<String>::new(), "{layer}: {code}");
    }
}
