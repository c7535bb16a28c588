//! Marks of Anthropic's cache: blocks up to which the provider may keep the beginning of a request.

use super::CheckedMessage;
use super::blocks::replace_blocks;
use crate::thread::document::CacheMarks;
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, written_list};
use std::borrow::Cow;

pub(super) const CACHE_MARK: &str = "cache_control";
/// The maximum depth of blocks in a message whose marks count. A message can have a result with
/// search results that have texts. Without a maximum, nested blocks could overflow the stack.
const MAX_MARK_DEPTH: u8 = 4;

/// Returns whether a block of this message has a mark of the cache.
pub(in crate::thread) fn has_cache_mark(object: &RawObject<'_>) -> bool {
    let blocks = object.list("content").unwrap_or_default().into_iter();
    let mut marked = blocks.filter(|json| json.contains(CACHE_MARK)).filter_map(RawObject::parse);
    marked.any(|block| block.get(CACHE_MARK).is_some())
}

/// Removes the mark of the cache from all but the last blocks that have one: the API refuses more
/// than four, together with those outside of the messages.
pub(super) fn limit_cache_marks(checked: &mut [CheckedMessage<'_>], outside: CacheMarks) {
    let mut left = 4_usize.saturating_sub(outside.count);
    let mut limit = |object: &mut RawObject<'_>| {
        if object.get(CACHE_MARK).is_none() {
            return false;
        }
        let is_over = left == 0;
        left = left.saturating_sub(1);
        if is_over {
            object.remove(CACHE_MARK);
        }
        is_over
    };
    repair_marks(checked.iter_mut().rev(), FaultKind::CacheMarks, |object| {
        with_repaired_marks(object, MarkOrder::LastToFirst, MAX_MARK_DEPTH, &mut limit)
    });
}

/// Takes the time of an hour from marks of the cache that follow a mark of five minutes: the API
/// refuses this order.
pub(super) fn order_cache_marks(checked: &mut [CheckedMessage<'_>], outside: CacheMarks) {
    let mut is_short = outside.has_short;
    let mut shorten = |object: &mut RawObject<'_>| {
        let Some(mut mark) = object.object(CACHE_MARK) else { return false };
        let is_long = mark.text("ttl").as_deref() == Some("1h");
        let is_late = is_long && is_short;
        is_short |= !is_long;
        if is_late {
            mark.remove("ttl");
            object.set(CACHE_MARK, mark.write());
        }
        is_late
    };
    repair_marks(checked.iter_mut(), FaultKind::MalformedBlock, |object| {
        with_repaired_marks(object, MarkOrder::FirstToLast, MAX_MARK_DEPTH, &mut shorten)
    });
}

/// Replaces the messages with marks of the cache for which `repaired` returns another text, and
/// records this fault of them.
fn repair_marks<'c, 'a: 'c>(
    messages: impl Iterator<Item = &'c mut CheckedMessage<'a>>,
    fault: FaultKind,
    mut repaired: impl FnMut(RawObject<'_>) -> Option<String>,
) {
    for one in messages.filter(|one| !one.is_unusable && one.text.contains(CACHE_MARK)) {
        let text = RawObject::parse(&one.text).and_then(&mut repaired);
        if let Some(text) = text {
            one.text = Cow::Owned(text);
            one.note_repaired(fault, None);
        }
    }
}

/// The order in which marks of the cache are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkOrder {
    FirstToLast,
    LastToFirst,
}

/// Calls `repair` for the blocks in a message or a block and then for itself, or in the opposite
/// order. Returns the object if `repair` returned that it changed something. `depth` is the depth
/// of the blocks in it that are read.
fn with_repaired_marks(
    mut object: RawObject<'_>,
    order: MarkOrder,
    depth: u8,
    repair: &mut dyn FnMut(&mut RawObject<'_>) -> bool,
) -> Option<String> {
    let is_backward = order == MarkOrder::LastToFirst;
    let mut changed = is_backward && repair(&mut object);
    let blocks = if depth > 0 { object.list("content") } else { None };
    let mut blocks = blocks.unwrap_or_default();
    if is_backward {
        blocks.reverse();
    }
    let kept = replace_blocks(&blocks, |json| {
        let marked = RawObject::parse(json).filter(|_| json.contains(CACHE_MARK))?;
        with_repaired_marks(marked, order, depth - 1, repair)
    });
    if let Some(mut kept) = kept {
        if is_backward {
            kept.reverse();
        }
        object.set("content", written_list(&kept));
        changed = true;
    }
    changed |= !is_backward && repair(&mut object);
    changed.then(|| object.write())
}
