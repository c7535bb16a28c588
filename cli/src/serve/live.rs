//! Sends the changed parts of an open page as server-sent events.

use super::pages::{self, PageParts};
use super::{PageServer, error_page};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// The time between two reads of the store's position.
const INTERVAL: Duration = Duration::from_millis(400);

/// The events of one open page.
struct PartEvents(mpsc::Receiver<Event>);

impl Stream for PartEvents {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(task).map(|event| event.map(Ok))
    }
}

/// Answers with a stream of the changes of a page after a position of the store.
pub(super) async fn events(server: &PageServer, session: String, after: u64) -> Response {
    let (name, reader) = (session.clone(), server.clone());
    // If the session cannot be read, the answer is an error page instead of a stream.
    let first = match server.read(move |parts| pages::parts_of_now(parts, &name)).await {
        Ok(first) => first,
        Err(error) => return error_page(server, &error, None).await,
    };
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        send_changes(&reader, &session, (first, after), &sender).await;
    });
    Sse::new(PartEvents(receiver)).keep_alive(KeepAlive::default()).into_response()
}

/// Sends the changed parts until the page is closed, a read fails, or the server ends.
async fn send_changes(
    server: &PageServer,
    session: &str,
    start: (PageParts, u64),
    sender: &mpsc::Sender<Event>,
) {
    let (first, after) = start;
    let mut position = after;
    // If the store was written after the page was read, the parts that the page shows are not
    // known: all are sent.
    let mut shown: Option<BTreeMap<&'static str, String>> =
        (server.inner.store.position().ok() == Some(after)).then(|| first.into_iter().collect());
    let mut stopping = server.inner.stopping.clone();
    loop {
        let now = server.inner.store.position().unwrap_or(position);
        if now != position || shown.is_none() {
            position = now;
            let name = session.to_owned();
            let read = server.read(move |parts| pages::parts_of_now(parts, &name)).await;
            // The session may have been removed. A page that is still open connects again.
            let Ok(parts) = read else { return };
            let parts: BTreeMap<&'static str, String> = parts.into_iter().collect();
            if let Some(event) = event(shown.as_ref(), &parts)
                && sender.send(event).await.is_err()
            {
                return;
            }
            shown = Some(parts);
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = sender.closed() => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Returns the event with the parts that differ; `None` if none does.
fn event(
    shown: Option<&BTreeMap<&'static str, String>>,
    parts: &BTreeMap<&'static str, String>,
) -> Option<Event> {
    if let Some(shown) = shown
        && !shown.keys().eq(parts.keys())
    {
        // A section was added or removed: only a new page has a place for it.
        return Some(Event::default().event("reload").data("sections"));
    }
    let is_new = |id: &&'static str| shown.is_none_or(|shown| shown.get(*id) != parts.get(*id));
    let changed: BTreeMap<&str, &String> =
        parts.iter().filter(|(id, _)| is_new(id)).map(|(id, html)| (*id, html)).collect();
    if changed.is_empty() {
        return None;
    }
    Some(Event::default().event("parts").data(serde_json::to_string(&changed).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pairs: &[(&'static str, &str)]) -> BTreeMap<&'static str, String> {
        pairs.iter().map(|(id, html)| (*id, (*html).to_owned())).collect()
    }

    fn sent(
        shown: Option<&[(&'static str, &str)]>,
        now: &[(&'static str, &str)],
    ) -> Option<String> {
        let shown = shown.map(parts);
        event(shown.as_ref(), &parts(now)).map(|event| format!("{event:?}"))
    }

    #[test]
    fn only_changed_parts_of_a_page_are_sent_to_the_browser() {
        let page = [("story", "a"), ("checks", "b")];
        assert_eq!(sent(Some(&page), &page), None);
        let text = sent(Some(&page), &[("story", "c"), ("checks", "b")]).unwrap();
        assert!(
            text.contains("parts") && text.contains("story") && !text.contains("checks"),
            "{text}"
        );
        let text = sent(Some(&page), &[("story", "a")]).unwrap();
        assert!(text.contains("reload"), "{text}");
        let text = sent(None, &page).unwrap();
        assert!(text.contains("story") && text.contains("checks"), "{text}");
    }
}
