//! Writes the Markdown of messages as HTML, without tags, images and unsafe links.

use crate::page_text::PageText;
use maud::{Markup, PreEscaped};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html::push_html};

/// The start of the element around a table, which lets a wide table scroll by itself.
const TABLE_BEGIN: &str = "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">";

/// Returns a message as HTML. Tags in it become text, images become their descriptions, and only
/// links to `http` and `https` addresses stay links.
pub(crate) fn message_html(text: &PageText) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut links = Vec::new();
    let mut events = Vec::new();
    for event in Parser::new_ext(text.as_str(), options) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
            Event::Start(Tag::HtmlBlock | Tag::Image { .. })
            | Event::End(TagEnd::HtmlBlock | TagEnd::Image)
            | Event::Rule => {}
            Event::Start(Tag::Link { link_type, dest_url, id, .. }) => {
                let is_safe = is_safe_address(&dest_url);
                links.push(is_safe);
                if is_safe {
                    let title = "".into();
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    events.push(Event::End(TagEnd::Link));
                }
            }
            // A heading of a message must not become a heading of the page.
            Event::Start(Tag::Heading { .. }) => {
                events.extend([Event::Start(Tag::Paragraph), Event::Start(Tag::Strong)]);
            }
            Event::End(TagEnd::Heading(_)) => {
                events.extend([Event::End(TagEnd::Strong), Event::End(TagEnd::Paragraph)]);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                events.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)));
            }
            Event::Start(Tag::Table(columns)) => {
                events.push(Event::Html(TABLE_BEGIN.into()));
                let plain = columns.iter().map(|_| pulldown_cmark::Alignment::None);
                events.push(Event::Start(Tag::Table(plain.collect())));
            }
            Event::End(TagEnd::Table) => {
                events.extend([Event::End(TagEnd::Table), Event::Html("</div>".into())]);
            }
            other => events.push(other),
        }
    }
    let mut html = String::with_capacity(text.as_str().len() * 5 / 4);
    push_html(&mut html, events.into_iter());
    PreEscaped(html)
}

/// Returns whether a link may lead to this address.
fn is_safe_address(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    let is_web = lower.starts_with("https://") || lower.starts_with("http://");
    is_web
        && !address.contains(['"', '\'', '<', '>', '`'])
        && !address.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_text::TextCleaner;
    use forge_store::redact::Redactor;

    fn shown(text: &str) -> String {
        message_html(&TextCleaner::new(&Redactor::new()).clean(text)).into_string()
    }

    #[test]
    fn the_usual_marks_are_shown() {
        let html = shown(
            "# Done\n\nThe **cache** is `a<b`.\n\n- one\n- two\n\n| a | b |\n|:-|-:|\n| 1 | 2 |",
        );
        assert!(html.starts_with("<p><strong>Done</strong></p>"), "{html}");
        assert!(html.contains("<code>a&lt;b</code>") && html.contains("<li>two</li>"), "{html}");
        assert!(html.contains("<th>a</th>") && !html.contains("style"), "{html}");
    }

    #[test]
    fn html_and_dangerous_links_in_a_message_are_escaped() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<!-- x --><svg/onload=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](data:text/html,<script>)",
            "<javascript:alert(1)>",
            "![pic](https://example.org/x.png \"t\")",
            "[x](https://example.org/\"onclick=\"alert(1))",
            "```\"><script>\n</code></pre><script>x</script>\n```",
            "[a]: javascript:alert(1)\n[a]",
            "# h {#id onclick=x}",
            "| a |\n|--|\n| <b onclick=x> |",
        ] {
            let html = shown(text);
            for bad in
                ["<script", "<img", "<svg", "<!--", "<b ", "href=\"javascript", "href=\"data"]
            {
                // Without the opening bracket or quote, the same words are harmless text.
                assert!(!html.contains(bad), "{text:?} gives {html}");
            }
        }
        let html = shown("[x](https://example.org/a?b=1&c=2 'title')");
        assert_eq!(html, "<p><a href=\"https://example.org/a?b=1&amp;c=2\">x</a></p>\n");
    }
}
