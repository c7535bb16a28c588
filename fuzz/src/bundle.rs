//! Bundles, which come from other stores.

use forge_store::format::{
    BUNDLE_HEADER_BYTES, BundleChain, BundleContents, BundleEnd, BundleItemKind, ITEM_CHECK_BYTES,
    bundle_header, item_header,
};
use forge_store::model::Timestamp;
use forge_store::store::{Store, WriteContext};
use std::io::Cursor;

const NOW: Timestamp = Timestamp::from_micros(1_770_000_000_000_000);

/// Whether or not a bundle is accepted, the head of each session that it brought can be read. A
/// second import of an accepted bundle adds nothing.
pub fn bundle(data: &[u8]) {
    import(data);
    // With a wrong checksum, no other fault in the bytes would be found.
    import(&with_right_checksums(data));
}

/// Returns a bundle with the items in these bytes, and with correct checksums and counts.
fn with_right_checksums(data: &[u8]) -> Vec<u8> {
    let header = bundle_header(&BundleContents::default());
    let mut chain = BundleChain::begin(&header).expect("a header");
    let mut bytes = header.to_vec();
    let mut end = BundleEnd::default();
    let mut rest = data.get(BUNDLE_HEADER_BYTES..).unwrap_or_default();
    while let Some((start, after)) = rest.split_first_chunk() {
        let Ok((kind, length)) = item_header(*start) else { break };
        let (content, after) = after.split_at(length.min(after.len()));
        match kind {
            BundleItemKind::Object => end.objects += 1,
            BundleItemKind::Record => end.records += 1,
            BundleItemKind::Contents => {}
            BundleItemKind::End => break,
        }
        bytes.extend(chain.item(kind, content));
        rest = after.get(ITEM_CHECK_BYTES..).unwrap_or_default();
    }
    bytes.extend(chain.item(BundleItemKind::End, &end.encode()));
    bytes
}

fn import(bytes: &[u8]) {
    let store = Store::in_memory().expect("a store");
    let act = WriteContext::asked("import", NOW);
    let take = || store.import_bundle(&act, &mut Cursor::new(bytes), None);
    let taken = take();
    for session in store.every_session().expect("the sessions") {
        let head = session.head().expect("a head");
        session.state(&head).expect("what came in can be read");
    }
    if taken.is_ok() {
        let again = take().expect("what was taken can be read again");
        assert_eq!(again.records, 0, "taken twice: {taken:?}");
    }
}
