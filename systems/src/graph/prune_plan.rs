//! Decides which checkpoints of a thread are dropped, and which others lose their parent.

use std::collections::{BTreeMap, BTreeSet};

/// The name of a checkpoint in a thread: its namespace and its id.
pub type StepName = (String, String);

/// What the plan needs to know of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneNode {
    /// Its namespace and id.
    pub name: StepName,
    /// The id of the checkpoint before it in its namespace.
    pub parent: Option<String>,
    /// The checkpoint of the root graph that it belongs to, if its namespace is that of a subgraph.
    pub root: Option<String>,
}

/// Returns the checkpoints to drop if the latest of each namespace is kept. The whole namespace of
/// a call of a subgraph is dropped if it belongs to a step of the root graph that is dropped.
#[must_use]
pub fn older_checkpoints(nodes: &[PruneNode]) -> BTreeSet<StepName> {
    let mut latest: BTreeMap<&str, &PruneNode> = BTreeMap::new();
    for node in nodes {
        let entry = latest.entry(&node.name.0).or_insert(node);
        if entry.name.1 < node.name.1 {
            *entry = node;
        }
    }
    let root = latest.get("").map(|node| node.name.1.clone());
    let known: BTreeSet<&str> = nodes
        .iter()
        .filter(|node| node.name.0.is_empty())
        .map(|node| node.name.1.as_str())
        .collect();
    latest.retain(|namespace, node| {
        !is_call(namespace)
            || node
                .root
                .as_ref()
                .is_none_or(|of| Some(of) == root.as_ref() || !known.contains(of.as_str()))
    });
    let kept: BTreeSet<&StepName> = latest.values().map(|node| &node.name).collect();
    nodes.iter().map(|node| &node.name).filter(|name| !kept.contains(name)).cloned().collect()
}

/// Returns whether a namespace is that of a single call of a subgraph: the last part of its name
/// then contains the id of a task. A subgraph that remembers between calls has no task id there.
#[must_use]
pub fn is_call(namespace: &str) -> bool {
    namespace.rsplit('|').next().is_some_and(|last| last.contains(':'))
}

/// Returns the checkpoints that stay but lose their parent. They must be given the history that
/// they need of it.
#[must_use]
pub fn orphans<'a>(nodes: &'a [PruneNode], removed: &BTreeSet<StepName>) -> Vec<&'a PruneNode> {
    let is_removed =
        |namespace: &str, id: &str| removed.contains(&(namespace.to_owned(), id.to_owned()));
    nodes
        .iter()
        .filter(|node| !removed.contains(&node.name))
        .filter(|node| node.parent.as_ref().is_some_and(|parent| is_removed(&node.name.0, parent)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(namespace: &str, id: &str, parent: Option<&str>, root: Option<&str>) -> PruneNode {
        PruneNode {
            name: (namespace.to_owned(), id.to_owned()),
            parent: parent.map(str::to_owned),
            root: root.map(str::to_owned),
        }
    }

    fn names(found: impl IntoIterator<Item = StepName>) -> Vec<String> {
        found.into_iter().map(|(namespace, id)| format!("{namespace}/{id}")).collect()
    }

    #[test]
    fn pruning_keeps_the_latest_step_of_each_namespace_and_removes_calls_with_their_step() {
        let nodes = [
            node("", "1", None, None),
            node("", "2", Some("1"), None),
            node("", "3", Some("2"), None),
            node("memory", "5", None, Some("1")),
            node("memory", "6", Some("5"), Some("2")),
            node("a:t1", "1", None, Some("2")),
            node("a:t2", "1", None, Some("3")),
            node("a:t2", "2", Some("1"), Some("3")),
            node("a:t2|memory", "1", None, Some("2")),
            node("b:t3", "1", None, None),
        ];
        let removed = older_checkpoints(&nodes);
        assert_eq!(names(removed.clone()), ["/1", "/2", "a:t1/1", "a:t2/1", "memory/5"]);
        let left = orphans(&nodes, &removed).into_iter().map(|node| node.name.clone());
        assert_eq!(names(left), ["/3", "memory/6", "a:t2/2"]);
    }

    #[test]
    fn pruning_keeps_a_call_whose_step_is_missing() {
        let nodes = [node("", "3", None, None), node("a:t", "1", None, Some("9"))];
        assert!(older_checkpoints(&nodes).is_empty());
        assert!(older_checkpoints(&[]).is_empty());
    }

    #[test]
    fn only_a_namespace_with_a_task_is_a_call() {
        assert!(is_call("a:t") && is_call("memory|a:t"));
        assert!(!is_call("") && !is_call("memory") && !is_call("a:t|memory"));
    }
}
