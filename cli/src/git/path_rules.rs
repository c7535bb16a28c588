//! Decides which paths a recovered file may have: paths that stay inside the checkout on every
//! system and are not git's own.

use forge_store::model::text::has_hidden;

/// The maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 4096;
/// The maximum length of a name in a path, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Returns why a path must not be written to; `None` if it may be.
#[must_use]
pub fn refusal(path: &str) -> Option<&'static str> {
    let rules = [
        (path.is_empty(), "it is empty"),
        (path.len() > MAX_PATH_BYTES, "it is too long"),
        (path.contains('\0'), "it holds a NUL"),
        (has_hidden(path), "it holds control or invisible characters"),
        (path.starts_with(['/', '~']), "it is not relative"),
        // Path separators, drives and file streams on other systems.
        (path.contains(['\\', ':']), "it holds what another system takes for a separator"),
    ];
    let broken = rules.into_iter().find(|(is_broken, _)| *is_broken).map(|(_, why)| why);
    broken.or_else(|| path.split('/').find_map(name_refusal))
}

fn name_refusal(name: &str) -> Option<&'static str> {
    match name {
        "" => return Some("it holds an empty name"),
        "." | ".." => return Some("it leads out of its folder"),
        _ if name.len() > MAX_NAME_BYTES => return Some("it is too long"),
        _ if name.ends_with(['.', ' ']) || name.starts_with(' ') => {
            return Some("a name in it begins or ends with a space or ends with a dot");
        }
        _ => {}
    }
    let lower = name.to_ascii_lowercase();
    // On Windows, `git~1` is the short name of `.git`.
    let short = lower.strip_prefix("git~");
    if lower == ".git" || short.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())) {
        return Some("it is git's own");
    }
    let stem = lower.split('.').next().unwrap_or_default().trim_end();
    let numbered = |device: &str| {
        let rest = stem.strip_prefix(device).unwrap_or_default();
        matches!(rest, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    };
    let is_device = matches!(stem, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || numbered("com")
        || numbered("lpt");
    is_device.then_some("it names a device elsewhere")
}

/// Whether a link at `path` may lead out of the checkout or into git's own files, on any system.
#[must_use]
pub fn link_escapes(path: &str, target: &str) -> bool {
    if target.is_empty() || target.starts_with(['/', '~']) || has_hidden(target) {
        return true;
    }
    if target.contains(['\\', ':']) {
        return true;
    }
    let mut depth: Vec<&str> = path.split('/').collect();
    depth.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if depth.pop().is_none() {
                    return true;
                }
            }
            _ if name_refusal(name).is_some() => return true,
            _ => depth.push(name),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths that must never be written to.
    const HOSTILE: [&str; 76] = [
        "",
        "/",
        "/etc/passwd",
        "//server/share",
        "..",
        "../x",
        "../../x",
        "a/../../x",
        "a/../x",
        "a/..",
        "./x",
        ".",
        "a/./b",
        "a//b",
        "a/",
        "/a/",
        "~",
        "~/x",
        "~root/.ssh/authorized_keys",
        "a\0b",
        "\0",
        "a/b\0",
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "a/.git/config",
        ".GIT/config",
        ".Git/hooks/post-checkout",
        "a/.gIt",
        "git~1/config",
        "GIT~1",
        "git~2/hooks/x",
        ".git /config",
        ".git./config",
        ".git . /config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u{200c}it/config",
        ".gi\u{200d}t/config",
        "\u{feff}.git/config",
        ".git\u{206f}/config",
        "C:\\Windows\\x",
        "C:x",
        "c:/x",
        "\\\\server\\share\\x",
        "\\x",
        "a\\..\\..\\x",
        "..\\x",
        ".git\\config",
        "a:stream",
        "con",
        "CON",
        "aux.c",
        "nul.txt",
        "a/NUL",
        "prn.tar.gz",
        "com1",
        "COM9.log",
        "lpt1.txt",
        "com¹",
        "conin$",
        "CONOUT$.x",
        "aux .c",
        "a/b./c",
        "a /b",
        " a",
        "a/ b",
        "a...",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\u{1b}[31mb",
        "a\u{7f}b",
        "a\u{202e}txt.exe",
        "a\u{2066}b",
        "a\u{85}b",
        "a\u{200b}b",
    ];

    #[test]
    fn paths_that_lead_out_of_the_checkout_are_refused() {
        for path in HOSTILE {
            assert!(refusal(path).is_some(), "{path:?}");
        }
        assert!(refusal(&"a/".repeat(3000)).is_some());
        assert!(refusal(&"a".repeat(256)).is_some());
    }

    #[test]
    fn ordinary_paths_inside_the_checkout_are_accepted() {
        for path in [
            "a", "src/main.rs", ".gitignore", ".gitattributes", ".github/workflows/ci.yml",
            "a b/c d.txt", "…/ä.txt", "..a", "a..b", "...x", "git~x", "console.rs",
            "common/auxiliary.c", "com10", "lpt.txt", ".git2/config", "a/.gitkeep", "\u{1f600}.md",
        ] {
            assert_eq!(refusal(path), None, "{path:?}");
        }
    }

    #[test]
    fn a_link_that_leads_out_of_the_checkout_is_detected() {
        for (path, target) in [
            ("a", "/etc/passwd"),
            ("a", ".."),
            ("a", "../x"),
            ("a/b", "../../x"),
            ("a/b", "c/../../../x"),
            ("a", ".git/config"),
            ("a/b", "../.GIT"),
            ("a", "~/x"),
            ("a", "C:/x"),
            ("a", "..\\x"),
            ("a", ""),
            ("a", "b\0c"),
        ] {
            assert!(link_escapes(path, target), "{path:?} -> {target:?}");
        }
        for (path, target) in
            [("a", "b"), ("a/b", "../c"), ("a/b", "./c/d"), ("a/b/c", "../../d"), ("a", "b/../c")]
        {
            assert!(!link_escapes(path, target), "{path:?} -> {target:?}");
        }
    }
}
