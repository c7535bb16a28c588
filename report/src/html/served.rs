//! The other pages of a server: the list of sessions, an entity, a comparison, a search, a notice.

use super::logo;
use crate::assets;
use crate::message_html::message_html;
use crate::page_text::PageText;
use forge_store::story::patch_lines;
use maud::{DOCTYPE, Markup, html};

#[derive(Clone, Debug)]
pub struct SessionCard {
    pub name: PageText,
    pub path: String,
    /// The agent that works in it.
    pub agent: Option<PageText>,
    /// The time of the last event.
    pub last: Option<String>,
    /// The last prompt.
    pub last_prompt: Option<PageText>,
    /// The names of the checks that fail.
    pub failing: Vec<PageText>,
    /// The confirmed hypotheses, with their ids.
    pub confirmed: Vec<(PageText, PageText)>,
    /// The number of open questions.
    pub open: usize,
    /// The number of uncommitted files.
    pub uncommitted: usize,
    pub current: bool,
}

/// A field of an entity.
#[derive(Clone, Debug)]
pub struct FieldRow {
    pub name: PageText,
    pub text: PageText,
    /// Whether the text is Markdown.
    pub markdown: bool,
}

/// A change between two moments.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    /// The kind of the entity.
    pub kind: &'static str,
    pub id: PageText,
    /// The path of its page, if the entity still exists.
    pub path: Option<String>,
    /// The changed field; `None` if the entity was added or removed.
    pub field: Option<PageText>,
    /// The value before.
    pub old: Option<PageText>,
    /// The value afterwards.
    pub new: Option<PageText>,
}

#[derive(Clone, Debug)]
pub struct HitRow {
    /// The kind of the entity, or `checkpoint`.
    pub kind: &'static str,
    pub id: PageText,
    pub path: Option<String>,
    /// When it first contained the words.
    pub at: String,
    /// The text around the first word.
    pub snippet: PageText,
}

/// Percent-encodes a text as one part of a path: all but letters, digits and `-_.:`.
#[must_use]
pub fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte) {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

/// Writes a list of the latest sessions; `total` is the number of all sessions.
#[must_use]
pub fn sessions_page(cards: &[SessionCard], total: usize, zone: &str) -> String {
    let body = html! {
        h1 { "Sessions" }
        @if total > cards.len() {
            p class="soft" {
                "The latest of " (super::counted(total, "session", "sessions")) ". "
                "The page of any session is " code { "/s/NAME" } "; " code { "forge session list --all" } " lists the names."
            }
        }
        @if cards.is_empty() { p class="soft" { "The store has no sessions yet." } }
        ul class="sessions" {
            @for card in cards {
                li class=(if card.failing.is_empty() { "card" } else { "card edge-bad" }) {
                    h2 { a href=(card.path) { (card.name) } @if card.current { " " span class="who" { "current" } } }
                    p class="meta" {
                        @if let Some(agent) = &card.agent { (agent.short(60)) " · " }
                        @if let Some(last) = &card.last { "last activity " (last) " " (zone) } @else { "nothing has happened yet" }
                    }
                    @if let Some(prompt) = &card.last_prompt { p { span class="who" { "Asked" } " " (prompt.short(240).inline()) } }
                    @for (id, text) in card.confirmed.iter().take(3) {
                        p { b class="good" { "✓ " (id) " confirmed: " } (text.short(200).inline()) }
                    }
                    @for name in card.failing.iter().take(3) { p { b class="bad" { "✗ failing: " } code { (name.short(90)) } } }
                    @if card.open + card.uncommitted > 0 {
                        p class="soft small" {
                            @if card.open > 0 { (super::counted(card.open, "open question", "open questions")) " " }
                            @if card.uncommitted > 0 { (super::counted(card.uncommitted, "file is not committed", "files are not committed")) }
                        }
                    }
                }
            }
        }
    };
    document("Sessions", None, &body)
}

/// Writes an entity with all its fields.
#[must_use]
pub fn entity_page(session: &str, title: &PageText, at: &str, fields: &[FieldRow]) -> String {
    let body = html! {
        h1 class="long" { (title) }
        p class="above" { (at) }
        @for field in fields {
            section {
                h2 { (field.name) }
                @if field.name.as_str() == "patch" {
                    div class="patch" { @for (kind, line) in patch_lines(field.text.as_str()) { (super::work::patch_line(kind, line)) } }
                } @else if field.markdown {
                    div class="quote" { (message_html(&field.text)) }
                } @else if field.text.as_str().contains('\n') {
                    pre { code { (field.text) } }
                } @else {
                    p { (field.text) }
                }
            }
        }
    };
    document(title.as_str(), Some(session), &body)
}

/// Writes the comparison of two moments.
#[must_use]
pub fn diff_page(
    session: &str,
    moments: (&PageText, &PageText),
    summary: &PageText,
    changes: &[ChangeRow],
    left_out: usize,
) -> String {
    let rows = html! {
        @for change in changes {
            tr {
                td {
                    span class="soft" { (change.kind) } " "
                    @match &change.path { Some(path) => { a href=(path) { (change.id) } }, None => { (change.id) } }
                }
                td { @match &change.field { Some(field) => { (field) }, None => { @if change.old.is_some() { b class="bad" { "removed" } } @else { b class="good" { "new" } } } } }
                td { @if let Some(old) = &change.old { span class="bad" { "− " } (old.short(600)) } }
                td { @if let Some(new) = &change.new { span class="good" { "+ " } (new.short(600)) } }
            }
        }
    };
    let body = html! {
        h1 class="long" { "Changes from " (moments.0) " to " (moments.1) }
        p { (summary) }
        (tools(session, &[]))
        (super::table("Table of changes", &["What", "Field", "Before", "Afterwards"], &rows))
        @if left_out > 0 { p class="soft" { (left_out) " more changes are not listed." } }
    };
    document("Changes", Some(session), &body)
}

/// Writes the hits of a search.
#[must_use]
pub fn search_page(session: &str, words: &PageText, total: Option<u64>, hits: &[HitRow]) -> String {
    let body = html! {
        h1 class="long" { "Search: " (words) }
        (tools(session, &[("q", words.as_str())]))
        p class="soft" {
            @match total {
                Some(1) => { "1 hit" },
                Some(total) => { (total) " hits" },
                None => { "Many hits" },
            }
            @if total.is_none_or(|total| total > hits.len() as u64) { ", the first " (hits.len()) " of them" }
            "."
        }
        ul class="sessions" {
            @for hit in hits {
                li class="card" {
                    p class="meta" {
                        span class="soft" { (hit.kind) } " "
                        @match &hit.path { Some(path) => { a href=(path) { (hit.id.short(80)) } }, None => { (hit.id.short(80)) } }
                        " · " (hit.at)
                    }
                    p { (hit.snippet) }
                }
            }
        }
    };
    document("Search", Some(session), &body)
}

/// Writes a page with only a title and a text.
#[must_use]
pub fn notice_page(title: &str, text: &str) -> String {
    document(title, None, &html! { h1 { (title) } p { (text) } })
}

/// Writes a page that says why another cannot be shown, with the forms of its session, if it has
/// one.
#[must_use]
pub fn failure_page(session: Option<&str>, text: &PageText, hints: &[PageText]) -> String {
    let title = "This cannot be shown";
    let body = html! {
        h1 { (title) }
        p { (text) }
        @for hint in hints { p class="soft" { "Hint: " (hint) } }
        @if let Some(session) = session { (tools(session, &[])) }
    };
    document(title, session, &body)
}

/// Returns the forms for a moment, a comparison and a search. They work without a script.
pub(crate) fn tools(session: &str, values: &[(&str, &str)]) -> Markup {
    let value =
        |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    html! {
        form class="inline" action=(format!("{session}/search")) {
            label { "Search " input type="search" name="q" value=[value("q")]; }
            button { "Find" }
        }
        form class="inline" action=(format!("{session}/at")) {
            label { "As of " input type="text" name="t" placeholder="#42, 2025-03-11 10:45, a tag"; }
            button { "Show" }
        }
        form class="inline" action=(format!("{session}/diff")) {
            label { "Changes from " input type="text" name="a" placeholder="start"; }
            label { " to " input type="text" name="b" placeholder="HEAD"; }
            button { "Compare" }
        }
    }
}

fn document(title: &str, session: Option<&str>, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (super::head(title, &assets::policy(false, true), false))
            body {
                a class="skip" href="#main" { "Skip to the content" }
                div class="page" {
                    nav aria-label="Pages" {
                        p class="brand" { a href="/" { (logo()) "forge" } }
                        ul {
                            li { a href="/" { "Sessions" } }
                            @if let Some(session) = session { li { a href=(session) { "The session" } } }
                        }
                    }
                    main id="main" { header { (body) } }
                }
            }
        }
    };
    page.into_string()
}
