//! Paths to the modules that they lead to, through imports and re-exports.

use std::collections::BTreeSet;

use super::modules::Crate;

/// The modules that a path in the module `from` leads to: the last one that its text names, and those
/// that re-exports lead to from there. Nothing for a path into another crate or of a local name.
pub(super) fn targets(of: &Crate, from: usize, segments: &[String]) -> BTreeSet<usize> {
    let mut search = Search { of, found: BTreeSet::new(), followed: BTreeSet::new() };
    search.follow(from, segments);
    search.found
}

struct Search<'a> {
    of: &'a Crate,
    found: BTreeSet<usize>,
    /// Names that were looked up, each with its module: imports may be a circle.
    followed: BTreeSet<(usize, String)>,
}

impl Search<'_> {
    /// Walks as long as the segments are modules, then looks the next name up where that ends.
    fn follow(&mut self, from: usize, segments: &[String]) {
        let (mut at, mut rest) = (from, segments);
        let mut named = false;
        while let [first, below @ ..] = rest {
            let next = match first.as_str() {
                "crate" => Some(0),
                "self" => Some(at),
                "super" => self.of.modules[at].parent,
                name => self.child(at, name),
            };
            let Some(next) = next else { break };
            (at, rest, named) = (next, below, true);
        }
        let is_known = self.look_up(at, rest);
        if named || is_known {
            self.found.insert(at);
        }
    }

    /// Finds the first of `names` among a module's items and imports; returns whether it is there.
    fn look_up(&mut self, at: usize, names: &[String]) -> bool {
        let Some((first, rest)) = names.split_first() else { return true };
        let module = &self.of.modules[at];
        if module.items.contains(first) {
            return true;
        }
        if !self.followed.insert((at, first.clone())) {
            return false;
        }
        let imported: Vec<Vec<String>> = module
            .imports
            .iter()
            .filter(|(name, _)| name == first)
            .map(|(_, path)| [path, rest].concat())
            .collect();
        let is_imported = !imported.is_empty();
        for path in imported {
            self.follow(at, &path);
        }
        if is_imported {
            return true;
        }
        self.look_up_in_globs(at, names)
    }

    /// A name that a glob import may bring; only where it is found it counts.
    fn look_up_in_globs(&mut self, at: usize, names: &[String]) -> bool {
        let mut is_known = false;
        for glob in self.of.modules[at].globs.clone() {
            let Some(module) = self.module(at, &glob) else { continue };
            let child = self.child(module, &names[0]);
            if let Some(child) = child {
                self.follow(child, &names[1..]);
                self.found.insert(child);
            }
            if child.is_some() || self.look_up(module, names) {
                self.found.insert(module);
                is_known = true;
            }
        }
        is_known
    }

    /// The module of a path that has no other segments than modules.
    fn module(&self, from: usize, segments: &[String]) -> Option<usize> {
        segments.iter().try_fold(from, |at, segment| match segment.as_str() {
            "crate" => Some(0),
            "self" => Some(at),
            "super" => self.of.modules[at].parent,
            name => self.child(at, name),
        })
    }

    fn child(&self, module: usize, name: &str) -> Option<usize> {
        let mut children = self.of.modules[module].children.iter().copied();
        children.find(|&child| self.of.modules[child].name == name)
    }
}
