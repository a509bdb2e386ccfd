//! Strongly connected components of a small graph.

use std::collections::{BTreeMap, BTreeSet};

/// The sets of two or more nodes that reach each other, each in order.
pub(super) fn components(edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let nodes: BTreeSet<usize> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        nodes.iter().map(|&node| (node, reachable(node, edges))).collect();
    let mut components = BTreeSet::new();
    for (&node, from) in &reached {
        let component: Vec<usize> =
            from.iter().copied().filter(|other| reached[other].contains(&node)).collect();
        if component.len() > 1 {
            components.insert(component);
        }
    }
    components.into_iter().collect()
}

/// Every node at the end of a path of one edge or more.
fn reachable(node: usize, edges: &[(usize, usize)]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        let next = edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| *to);
        waiting.extend(next.filter(|to| found.insert(*to)));
    }
    found
}
