//! Finds cycles of parents: no hypothesis may be below itself.

use super::session::Session;
use crate::error::Result;
use crate::model::{Key, Kind, Value};

impl Session {
    /// Returns the cycle that arises on the current branch if `parent` becomes the parent of the
    /// hypothesis `id`: the ids from `id` upwards to `id` again. `None` if there is no cycle.
    pub fn parent_cycle(&self, id: &str, parent: &str) -> Result<Option<Vec<String>>> {
        let head = self.head()?;
        let mut path = vec![id.to_owned()];
        let mut next = Some(parent.to_owned());
        while let Some(here) = next {
            if here == id {
                path.push(here);
                return Ok(Some(path));
            }
            // This cycle was there before: it does not contain `id`.
            if path.contains(&here) {
                break;
            }
            path.push(here.clone());
            let entry = self.claim(&head, &Key::new(Kind::Hypothesis, here))?;
            next = entry.and_then(|entry| {
                entry.value.field("parent").and_then(Value::as_text).map(str::to_owned)
            });
        }
        Ok(None)
    }
}
