//! The channels of the steps that were last written or read, so that a put need not read them.

use super::channel_state::{ChannelState, ChannelStates};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The maximum number of steps that are kept.
const MAX_STEPS: usize = 32;

/// The maximum number of bytes that are kept, unless a single step has more.
const MAX_BYTES: usize = 64 << 20;

/// Channels by the operation that wrote their step. An operation writes one step, so entries never
/// change.
#[derive(Debug, Default)]
pub(super) struct StepCache {
    steps: HashMap<String, ChannelStates>,
    /// The operations, the last used one at the end.
    order: VecDeque<String>,
}

impl StepCache {
    pub(super) fn get(&mut self, operation: &str) -> Option<ChannelStates> {
        let found = self.steps.get(operation)?.clone();
        self.order.retain(|known| known != operation);
        self.order.push_back(operation.to_owned());
        Some(found)
    }

    pub(super) fn insert(&mut self, operation: String, channels: ChannelStates) {
        self.order.retain(|known| *known != operation);
        self.order.push_back(operation.clone());
        self.steps.insert(operation, channels);
        while self.order.len() > MAX_STEPS || (self.order.len() > 1 && self.bytes() > MAX_BYTES) {
            if let Some(oldest) = self.order.pop_front() {
                self.steps.remove(&oldest);
            }
        }
    }

    /// Returns about how many bytes the channels take. Channels that steps share count once.
    fn bytes(&self) -> usize {
        let mut counted: HashSet<*const ChannelState> = HashSet::new();
        let channels = self.steps.values().flat_map(ChannelStates::values);
        channels.filter(|one| counted.insert(Arc::as_ptr(one))).map(|one| one.size()).sum()
    }
}
