//! Parses the addresses of pages.

use forge_report::html::served::path_part;
use percent_encoding::percent_decode_str;

/// What the path and the query of a request name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageAddress {
    /// The list of sessions.
    Sessions,
    /// A session, as it is now or as of a moment.
    Session {
        session: String,
        at: Option<String>,
    },
    /// One claim or fact, whole.
    Entity {
        session: String,
        name: String,
    },
    /// The changes between two moments.
    Diff {
        session: String,
        from: String,
        to: String,
    },
    Search {
        session: String,
        words: String,
    },
    /// The stream of changes of a session's page, after a position of the journal.
    Events {
        session: String,
        after: u64,
    },
    /// A redirect to this path, from the address that a form is sent to.
    Moved(String),
}

impl PageAddress {
    /// Parses a path and a query; `None` if they name no page.
    pub(super) fn parse(path: &str, query: Option<&str>) -> Option<Self> {
        let mut parts = path.split('/').skip(1).map(decoded);
        let mut next = || parts.next();
        let first = next().flatten()?;
        if first.is_empty() {
            return next().is_none().then_some(Self::Sessions);
        }
        if first != "s" {
            return None;
        }
        let session = next().flatten().filter(|session| !session.is_empty())?;
        let here = format!("/s/{}", path_part(&session));
        let Some(what) = next() else { return Some(Self::Session { session, at: None }) };
        let (one, two, rest) = (next(), next(), next());
        let given = |name: &str, otherwise: &str| {
            let text = parameter(query, name).unwrap_or_default();
            let text = text.trim();
            if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
        };
        let found = match (what?.as_str(), one, two, rest) {
            ("", None, None, None) => Self::Session { session, at: None },
            ("at", Some(at), None, None) => Self::Session { session, at: Some(at?) },
            ("at", None, None, None) => {
                Self::Moved(format!("{here}/at/{}", path_part(&given("t", "HEAD"))))
            }
            ("e", Some(name), None, None) => Self::Entity { session, name: name? },
            ("diff", Some(from), Some(to), None) => Self::Diff { session, from: from?, to: to? },
            ("diff", None, None, None) => {
                let (from, to) = (given("a", "start"), given("b", "HEAD"));
                Self::Moved(format!("{here}/diff/{}/{}", path_part(&from), path_part(&to)))
            }
            ("search", None, None, None) => Self::Search { session, words: given("q", "") },
            ("events", None, None, None) => {
                let after = given("after", "0").parse().unwrap_or(0);
                Self::Events { session, after }
            }
            _ => return None,
        };
        Some(found)
    }

    /// Returns the name or id of the session that the page is about.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Self::Session { session, .. }
            | Self::Entity { session, .. }
            | Self::Diff { session, .. }
            | Self::Search { session, .. }
            | Self::Events { session, .. } => Some(session),
            Self::Sessions | Self::Moved(_) => None,
        }
    }
}

fn decoded(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned())
}

pub(super) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query?.as_bytes());
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &str) -> Option<PageAddress> {
        let (path, query) =
            path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        PageAddress::parse(path, query)
    }

    #[test]
    fn each_valid_path_has_its_page() {
        let session = || "ab".to_owned();
        for (path, address) in [
            ("/", PageAddress::Sessions),
            ("/s/ab", PageAddress::Session { session: session(), at: None }),
            ("/s/ab/at/%2342", PageAddress::Session { session: session(), at: Some("#42".into()) }),
            (
                "/s/ab/at?t=2025-03-11+10%3A45",
                PageAddress::Moved("/s/ab/at/2025-03-11%2010:45".into()),
            ),
            (
                "/s/ab/e/note:N%2F1",
                PageAddress::Entity { session: session(), name: "note:N/1".into() },
            ),
            ("/s/ab/diff?a=&b=x", PageAddress::Moved("/s/ab/diff/start/x".into())),
            (
                "/s/ab/diff/a/b",
                PageAddress::Diff { session: session(), from: "a".into(), to: "b".into() },
            ),
            (
                "/s/ab/search?q=clock+skew",
                PageAddress::Search { session: session(), words: "clock skew".into() },
            ),
            ("/s/ab?moment=3&hide=edits", PageAddress::Session { session: session(), at: None }),
            ("/s/ab/events?after=12", PageAddress::Events { session: session(), after: 12 }),
        ] {
            assert_eq!(parsed(path), Some(address), "{path}");
        }
    }

    #[test]
    fn unknown_paths_have_no_page() {
        for path in
            ["", "/x", "/s", "/s/", "//", "/s/ab/at/1/2", "/s/%ff", "/s/ab/e", "/s/ab/x", "/../etc"]
        {
            assert_eq!(parsed(path), None, "{path}");
        }
    }
}
