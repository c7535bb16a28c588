//! Tests of forge-store from the outside, and of the rules for the project's files. One binary, one
//! module per topic.

#[cfg(test)]
mod after;
mod backend;
mod browse;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod capture;
#[cfg(test)]
mod crash;
mod docs;
#[cfg(test)]
mod drop;
#[cfg(test)]
mod encryption;
#[cfg(test)]
mod fault;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod hostile;
mod import_rings;
#[cfg(test)]
mod integrity;
#[cfg(test)]
mod journal;
mod layering;
#[cfg(test)]
mod merge;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod model;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod prune;
#[cfg(test)]
mod purge;
#[cfg(test)]
mod recover;
mod redact;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod rot;
#[cfg(test)]
mod skip;
mod source;
#[cfg(test)]
mod spool;
mod store;
mod stream;
#[cfg(test)]
mod together;
#[cfg(test)]
mod typed;
#[cfg(test)]
mod unfinished;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Adds the file and all files that its `mod` lines lead to.
fn reach(file: &Path, inside: &Path, reached: &mut BTreeSet<PathBuf>) {
    reached.insert(file.to_owned());
    let code = std::fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    // A module with a `path` attribute is elsewhere.
    let mut elsewhere = false;
    let modules = code.lines().map(str::trim).filter_map(|line| {
        elsewhere |= line.starts_with("#[path");
        let module = line.trim_start_matches("pub(crate) ").strip_prefix("mod ")?;
        let module = module.strip_suffix(';')?;
        (!std::mem::take(&mut elsewhere)).then_some(module)
    });
    for module in modules {
        let folder = inside.join(module);
        let flat = inside.join(format!("{module}.rs"));
        let file = if flat.exists() { flat } else { folder.join("mod.rs") };
        reach(&file, &folder, reached);
    }
}

#[test]
fn every_file_of_these_folders_is_part_of_the_tests() {
    for folder in ["tests/it", "systems/tests/it"] {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut reached = BTreeSet::new();
        reach(&here.join("main.rs"), &here, &mut reached);
        let forgotten = source::files(&here, "rs")
            .into_iter()
            .filter(|file| !reached.contains(file))
            .collect::<Vec<_>>();
        assert!(forgotten.is_empty(), "no 'mod' line leads to {forgotten:?}");
    }
}
