//! Files that import each other in a ring cannot be read or changed one by one: rings stay small.
//!
//! Imports are read from the source: paths that begin at `crate`, `self` or `super`, followed through re-exports. A
//! file and its submodules count as one, so an import between them is no arrow.

use crate::layering::{paths, unfold};
use crate::source::{files, without_comments, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Largest number of files in a ring.
const MAX_RING: usize = 5;

type ModulePath = Vec<String>;

/// The modules of one crate, with what each imports and re-exports.
#[derive(Default)]
struct CrateImports {
    /// The source of each module.
    files: BTreeMap<ModulePath, String>,
    code: BTreeMap<ModulePath, String>,
    /// By module and name: the path that the module re-exports under that name.
    reexports: BTreeMap<(ModulePath, String), ModulePath>,
}

impl CrateImports {
    /// Reads files by their paths relative to the crate's source folder.
    fn read<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (file, code) in sources {
            let mut module: ModulePath =
                file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            all.files.insert(module.clone(), file.to_owned());
            all.code.insert(module, without_tests(&without_comments(code)));
        }
        for (module, code) in &all.code {
            for statement in reexport_statements(code) {
                let mut found = Vec::new();
                unfold("", statement, &mut found);
                for path in found {
                    let path = path.trim_start_matches("::");
                    let name = path.rsplit("::").next().unwrap_or_default().to_owned();
                    let path = absolute(module, path);
                    // What a module re-exports from itself leads nowhere else.
                    if !path.is_empty()
                        && path != [module.as_slice(), std::slice::from_ref(&name)].concat()
                    {
                        all.reexports.insert((module.clone(), name), path);
                    }
                }
            }
        }
        all
    }

    /// The module that a path leads to, through re-exports.
    fn module_of(&self, path: &[String], steps: usize) -> Option<ModulePath> {
        let length =
            (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        if let Some((name, deeper)) = rest.split_first()
            && let Some(target) = self.reexports.get(&(module.to_vec(), name.clone()))
            && steps > 0
        {
            return self.module_of(&[target.as_slice(), deeper].concat(), steps - 1);
        }
        Some(module.to_vec())
    }

    /// The modules that each module imports from; none above or below itself.
    fn arrows(&self) -> BTreeMap<&ModulePath, BTreeSet<ModulePath>> {
        let mut arrows: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (module, code) in &self.code {
            for root in ["crate", "self", "super"] {
                for path in paths(code, root) {
                    let path = absolute(module, &path);
                    let Some(target) = self.module_of(&path, 5) else { continue };
                    if !module.starts_with(&target) && !target.starts_with(module) {
                        arrows.entry(module).or_default().insert(target);
                    }
                }
            }
        }
        arrows
    }

    /// The rings of several files, each sorted: groups of modules that all reach each other.
    fn rings(&self) -> Vec<Vec<&str>> {
        let arrows = self.arrows();
        let reach = |from: &ModulePath| {
            let mut seen: BTreeSet<&ModulePath> = BTreeSet::new();
            let mut open = vec![from];
            while let Some(module) = open.pop() {
                for next in arrows.get(module).into_iter().flatten() {
                    if seen.insert(next) {
                        open.push(next);
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&ModulePath, _> =
            self.files.keys().map(|module| (module, reach(module))).collect();
        let mut rings = BTreeSet::new();
        for (module, below) in &reached {
            let back =
                |other: &&&ModulePath| reached.get(**other).is_some_and(|up| up.contains(*module));
            let ring: Vec<&str> = below
                .iter()
                .filter(back)
                .filter_map(|one| self.files.get(*one))
                .map(String::as_str)
                .collect();
            if ring.len() > 1 {
                rings.insert(ring);
            }
        }
        rings.into_iter().collect()
    }
}

/// The text after `pub use` or `pub(..) use` of each re-export.
fn reexport_statements(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("use ").filter_map(|(at, _)| {
        let before = code[..at].trim_end();
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
        let public = line == "pub" || line.starts_with("pub(") && line.ends_with(')');
        public.then(|| &code[at + "use ".len()..])
    })
}

/// The path from the crate's root that `path` means in a module.
fn absolute(module: &[String], path: &str) -> ModulePath {
    let mut at = module.to_vec();
    for (index, part) in path.split("::").enumerate() {
        match part {
            "crate" if index == 0 => at.clear(),
            "super" => {
                at.pop();
            }
            "self" => {}
            name => at.push(name.to_owned()),
        }
    }
    at
}

/// The source folders of the crates with several files: of the project's root, and of each folder in it.
fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("src")];
    for entry in std::fs::read_dir(root).expect("the project's folder is readable") {
        let folder = entry.expect("a listed entry is readable").path();
        let src = folder.join("src");
        if folder.join("Cargo.toml").exists() && src.exists() && files(&src, "rs").len() > 10 {
            found.push(src);
        }
    }
    assert!(found.len() > 3, "found only {found:?}");
    found
}

fn read_crate(src: &Path) -> CrateImports {
    let mut sources = Vec::new();
    for file in files(src, "rs") {
        let name = file.strip_prefix(src).expect("files lists what is inside");
        let name = name.to_string_lossy().into_owned();
        if !name.ends_with("tests.rs") && !name.contains("tests/") {
            sources.push((name, std::fs::read_to_string(&file).expect("a source is readable")));
        }
    }
    CrateImports::read(sources.iter().map(|(name, code)| (name.as_str(), code.as_str())))
}

#[test]
fn no_ring_of_imports_is_large() {
    let mut faults = Vec::new();
    for folder in crates() {
        let imports = read_crate(&folder);
        assert!(!imports.arrows().is_empty(), "no imports were found in {}", folder.display());
        for ring in imports.rings() {
            if ring.len() > MAX_RING {
                faults.push(format!(
                    "{} files of {} import each other, at most {MAX_RING} may: {}",
                    ring.len(),
                    folder.display(),
                    ring.join(" ")
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "\n{}\n`scripts/readability --rings` lists all rings",
        faults.join("\n")
    );
}

#[test]
fn a_ring_is_found_however_it_is_imported() {
    for (a, b, c) in [
        ("use super::b::B;", "use super::c::C;", "use super::a::A;"),
        (
            "use crate::room::b;",
            "use crate::room::{c::C, d::D};",
            "fn f() -> crate::room::a::A { todo() }",
        ),
        ("use super::{b, d};", "use self::super::c;", "use super::super::room::a::{self, A};"),
        // Through a re-export of the room, and of the crate.
        ("use super::TypeB;", "use crate::TypeC as Other;", "use crate::room::{d, a::A};"),
    ] {
        let imports = CrateImports::read([
            ("lib.rs", "pub mod room;\npub use room::c::TypeC;"),
            ("room/mod.rs", "mod a;\nmod b;\npub use b::{self, TypeB};\npub(crate) use d::D;"),
            ("room/a.rs", a),
            ("room/b.rs", b),
            ("room/c.rs", c),
            (
                "room/d.rs",
                "use std::fmt;\n// use super::a;\n#[cfg(test)]\nmod tests { use super::super::a; }",
            ),
        ]);
        assert_eq!(imports.rings(), [vec!["room/a.rs", "room/b.rs", "room/c.rs"]], "{a} {b} {c}");
    }
}

#[test]
fn a_file_and_its_submodules_are_no_ring() {
    let imports = CrateImports::read([
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "mod inner;\nuse self::inner::X;\nuse crate::a::inner;"),
        ("a/inner.rs", "use super::A;\nuse crate::b::B;"),
        ("b.rs", "use std::fmt;"),
    ]);
    assert_eq!(imports.rings(), Vec::<Vec<&str>>::new());
}
