//! The folder of the project. Paths are shown relative to it, and without home directories.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The folder that the work was done in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRoot(String);

impl ProjectRoot {
    /// Returns the absolute folder that is named most often; if there are several, the shortest of
    /// them.
    pub(super) fn most_common<'a>(folders: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for folder in folders.map(|folder| folder.trim_end_matches('/')) {
            if folder.starts_with('/') {
                *counts.entry(folder).or_default() += 1;
            }
        }
        let most = counts.iter().max_by_key(|(folder, count)| (**count, usize::MAX - folder.len()));
        most.map(|(folder, _)| Self((*folder).to_owned()))
    }

    /// Returns the folder.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path relative to this folder, if it is inside.
    #[must_use]
    pub fn relative<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&self.0)?.strip_prefix('/').filter(|path| !path.is_empty())
    }
}

/// Returns a path as it is shown: relative to the project, or with `~` for a home directory.
pub(super) fn shown_path<'p>(root: Option<&ProjectRoot>, path: &'p str) -> Cow<'p, str> {
    match root.and_then(|root| root.relative(path)) {
        Some(relative) => Cow::Borrowed(relative),
        None => without_home(path),
    }
}

/// Returns a text with the paths in it relative to the project, and `~` for home directories.
pub(super) fn shown_text<'t>(root: Option<&ProjectRoot>, text: &'t str) -> Cow<'t, str> {
    let Some(root) = root.filter(|root| text.contains(root.as_str())) else {
        return without_home(text);
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(root.as_str()) {
        let (before, from) = rest.split_at(place);
        shown.push_str(before);
        let after = from.get(root.as_str().len()..).unwrap_or_default();
        let is_inner = before.chars().next_back().is_some_and(is_name);
        rest = match after.chars().next() {
            // Only a part of a longer path, or the beginning of a longer name, was found.
            next if is_inner || next.is_some_and(is_name) => {
                shown.push_str(root.as_str());
                after
            }
            Some('/') => after.get(1..).unwrap_or_default(),
            _ => {
                shown.push('.');
                after
            }
        };
    }
    shown.push_str(rest);
    Cow::Owned(without_home(&shown).into_owned())
}

/// Whether a character can be in the name of a file or directory.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || "-_.".contains(c)
}

/// Replaces `/home/NAME` and `/Users/NAME` by `~`, at the beginning of a path.
fn without_home(text: &str) -> Cow<'_, str> {
    if !["/home/", "/Users/"].iter().any(|folder| text.contains(folder)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found = ["/home/", "/Users/"]
            .iter()
            .filter_map(|folder| rest.find(folder).map(|place| (place, place + folder.len())));
        let Some((place, name_start)) = found.min() else { break };
        let (before, inside) = rest.split_at(place);
        shown.push_str(before);
        let name_start = name_start - place;
        let after = inside.get(name_start..).unwrap_or_default();
        let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let is_inner = before.chars().next_back().is_some_and(is_name);
        if end == 0 || is_inner {
            shown.push_str(inside.get(..name_start).unwrap_or_default());
            rest = after;
        } else {
            shown.push('~');
            rest = after.get(end..).unwrap_or_default();
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_folder_that_most_work_was_done_in() {
        let folders = ["/home/m/orders", "/home/m/orders/", "/home/m/orders/src", "relative", "/"];
        let root = ProjectRoot::most_common(folders.into_iter());
        assert_eq!(root.as_ref().map(ProjectRoot::as_str), Some("/home/m/orders"));
        assert_eq!(ProjectRoot::most_common(["x", "/"].into_iter()), None);
    }

    #[test]
    fn paths_are_relative_and_no_home_directory_shows() {
        let root = ProjectRoot("/home/m/orders".to_owned());
        for (path, shown) in [
            ("/home/m/orders/src/a.rs", "src/a.rs"),
            ("/home/m/orders2/a.rs", "~/orders2/a.rs"),
            ("/Users/m/x", "~/x"),
            ("/etc/hosts", "/etc/hosts"),
            ("src/a.rs", "src/a.rs"),
        ] {
            assert_eq!(shown_path(Some(&root), path), shown, "{path}");
        }
        let text = "cd /home/m/orders && ls /home/m/orders/src /home/m/orders2 /srv/home/x /home/";
        assert_eq!(shown_text(Some(&root), text), "cd . && ls src ~/orders2 /srv/home/x /home/");
        assert_eq!(shown_text(None, "ls /home/m"), "ls ~");
    }

    /// `/mnt/home/m/orders/src` was shown as `/mntsrc`.
    #[test]
    fn a_path_that_only_contains_the_project_stays_as_it_is() {
        let root = ProjectRoot("/home/m/orders".to_owned());
        let text = "diff /mnt/home/m/orders/src /mnt/home/m/orders ./home/m/orders";
        assert_eq!(shown_text(Some(&root), text), text);
        let list = "PATH=/home/m/orders/bin:/home/m/orders:/mnt/home/m/orders/bin";
        assert_eq!(shown_text(Some(&root), list), "PATH=bin:.:/mnt/home/m/orders/bin");
    }
}
