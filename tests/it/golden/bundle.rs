//! Golden bytes of a bundle.

use super::golden;
use forge_store::format::{
    BegunOperation, BundleChain, BundleContents, BundleEnd, BundleItemKind, BundleSession,
    bundle_header, item_header,
};
use forge_store::model::{OperationId, SessionId, SessionKind, SessionMetadata, Timestamp};

#[test]
fn the_golden_bundle_is_written_and_read_unchanged() {
    let info = SessionMetadata {
        id: SessionId::from_bytes([7; 16]),
        name: "slow start".to_owned(),
        kind: SessionKind::Debug,
        agent: Some("claude-code".to_owned()),
        agent_session: None,
        started_at: Timestamp::from_micros(1_767_261_600_000_000),
    };
    let begun = vec![BegunOperation { operation: OperationId::from_bytes([9; 16]), effects: 2 }];
    let range = BundleSession { info, from: 3, to: 42, begun, continues: None };
    check("bundle", &BundleContents { sessions: vec![range.clone()] });
    let continuing = BundleSession { continues: Some(2), ..range };
    check("bundle-continuing", &BundleContents { sessions: vec![continuing] });
}

fn check(name: &str, contents: &BundleContents) {
    let end = BundleEnd { objects: 1, records: 0 };
    let header = bundle_header(contents);
    let mut chain = BundleChain::begin(&header).unwrap();
    let items = [
        chain.item(BundleItemKind::Contents, &contents.encode()),
        chain.item(BundleItemKind::Object, b"an object"),
        chain.item(BundleItemKind::End, &end.encode()),
    ];
    let kept = golden(name, &[&header[..], &items.concat()].concat());
    let mut rest = kept.as_slice();
    let (begin, after) = rest.split_first_chunk().unwrap();
    let mut chain = BundleChain::begin(begin).unwrap();
    rest = after;
    let mut read = Vec::new();
    while let Some((start, after)) = rest.split_first_chunk() {
        let (kind, length) = item_header(*start).unwrap();
        let (content, after) = after.split_at(length);
        let (check, after) = after.split_at(16);
        assert_eq!(chain.next(start[0], content), check);
        read.push((kind, content.to_vec()));
        rest = after;
    }
    assert_eq!(BundleContents::decode(&read[0].1).unwrap(), *contents);
    assert_eq!(read[1], (BundleItemKind::Object, b"an object".to_vec()));
    assert_eq!(BundleEnd::decode(&read[2].1).unwrap(), end);
}
