//! Finds programs on the path, and their versions in their files.

use crate::context::Environment;
use forge_store::plain_file;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the first program with this name in the absolute folders of `PATH`.
pub fn on_path(environment: &Environment, name: &str) -> Option<PathBuf> {
    let path = environment.value("PATH")?;
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

/// Whether there is an executable file.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the version of a program without running it: the name of its file if that is a version
/// (`versions/2.1.332`), or else the version in the nearest `package.json` above it whose package
/// name contains the program's name.
pub fn version_of(environment: &Environment, name: &str) -> Option<[u32; 3]> {
    let file = on_path(environment, name)?.canonicalize().ok()?;
    let named = file.file_name().and_then(|name| version(name.to_str()?));
    named.or_else(|| file.ancestors().skip(1).find_map(|folder| package_version(folder, name)))
}

/// The maximum size of a `package.json`, in bytes.
const MOST_BYTES: u64 = 4 << 20;

fn package_version(folder: &Path, name: &str) -> Option<[u32; 3]> {
    let text = plain_file::read_text(&folder.join("package.json"), MOST_BYTES).ok()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    let is_package = package.get("name")?.as_str()?.contains(name);
    is_package.then(|| version(package.get("version")?.as_str()?))?
}

fn version(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.split(['.', '-']).map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_version_is_distinguished_from_the_files_of_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let (bin, package) = (folder.path().join("bin"), folder.path().join("claude-code"));
        for folder in [&bin, &package.join("bin"), &folder.path().join("versions")] {
            fs::create_dir_all(folder).unwrap();
        }
        let program = |path: &Path| {
            fs::write(path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let environment = Environment::from([("PATH", bin.to_str().unwrap())]);
        let found = || version_of(&environment, "claude");
        assert_eq!(found(), None);
        let (by_npm, by_itself) =
            (package.join("bin/claude.exe"), folder.path().join("versions/2.1.9"));
        program(&by_npm);
        program(&by_itself);
        std::os::unix::fs::symlink(&by_npm, bin.join("claude")).unwrap();
        assert_eq!(found(), None);
        let text = r#"{"name":"@anthropic-ai/claude-code","version":"2.0.64"}"#;
        fs::write(package.join("package.json"), text).unwrap();
        assert_eq!(found(), Some([2, 0, 64]));
        fs::remove_file(bin.join("claude")).unwrap();
        std::os::unix::fs::symlink(&by_itself, bin.join("claude")).unwrap();
        assert_eq!(found(), Some([2, 1, 9]));
    }
}
