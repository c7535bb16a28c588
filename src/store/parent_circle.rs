//! Hypotheses that would be parts of themselves.

use super::session::Session;
use crate::error::Result;
use crate::model::{Key, Kind, Value};

impl Session {
    /// Returns the circle that the hypothesis `id` closes on the current branch if it becomes a
    /// part of `parent`: the ids from `id` up to `id` again. `None` if it closes none.
    pub fn parent_circle(&self, id: &str, parent: &str) -> Result<Option<Vec<String>>> {
        let head = self.head()?;
        let mut way = vec![id.to_owned()];
        let mut next = Some(parent.to_owned());
        while let Some(here) = next {
            if here == id {
                way.push(here);
                return Ok(Some(way));
            }
            // A circle above it, without it, is another's.
            if way.contains(&here) {
                break;
            }
            way.push(here.clone());
            let above = self.claim(&head, &Key::new(Kind::Hypothesis, here))?;
            next = above.and_then(|entry| {
                entry.value.field("parent").and_then(Value::as_text).map(str::to_owned)
            });
        }
        Ok(None)
    }
}
