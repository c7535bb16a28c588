//! Paths in `file:` URLs.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Returns the decoded path of a `file:` URL; any other text is returned as it is.
pub(crate) fn path_from_url(url: &str) -> String {
    let Some(rest) = url.strip_prefix("file://") else { return url.to_owned() };
    // A `file:` URL may name a host before the path.
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest);
    let decoded = percent_decode_str(path).decode_utf8();
    let decoded = decoded.map_or_else(|_| path.to_owned(), Cow::into_owned);
    // `/C:/x` is a Windows path.
    match decoded.as_bytes() {
        [b'/', letter, b':'] | [b'/', letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => {
            decoded.trim_start_matches('/').to_owned()
        }
        _ => decoded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_in_a_file_url_is_decoded() {
        for (url, path) in [
            ("file:///w/a.rs", "/w/a.rs"),
            ("file:///w/my%20app/%5Bslug%5D.ts", "/w/my app/[slug].ts"),
            ("file://host/w/a.rs", "/w/a.rs"),
            ("file:///c%3A/w/a.rs", "c:/w/a.rs"),
            ("file:///C:", "C:"),
            ("file:///a:b", "/a:b"),
            ("file:///1:/b", "/1:/b"),
            ("file:///w/100%.txt", "/w/100%.txt"),
            ("file:///w/%ff", "/w/%ff"),
            // A sign is no digit.
            ("file:///w/%+f", "/w/%+f"),
            ("/w/a%20b", "/w/a%20b"),
        ] {
            assert_eq!(path_from_url(url), path, "{url}");
        }
    }
}
