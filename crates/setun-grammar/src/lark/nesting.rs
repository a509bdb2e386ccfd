//! Depth of the recursion into a Lark grammar.

use crate::names::Names;

/// Rules and terminals with those that they name, in the order of the text.
#[derive(Default)]
pub(super) struct Nesting {
    places: Names,
    /// Of each name what its definition names, and in how many groups.
    named: Vec<Vec<(usize, usize)>>,
    /// The definition that is read.
    current: Option<usize>,
    definitions: usize,
}

impl Nesting {
    /// A definition begins. How many there are.
    pub(super) fn define(&mut self, name: &str) -> usize {
        self.current = Some(self.place(name));
        self.definitions += 1;
        self.definitions
    }

    pub(super) fn end_definition(&mut self) {
        self.current = None;
    }

    /// The definition that is read names a rule or terminal, in this many groups.
    pub(super) fn name(&mut self, name: &str, groups: usize) {
        let place = self.place(name);
        if let Some(current) = self.current {
            self.named[current].push((place, groups));
        }
    }

    fn place(&mut self, name: &str) -> usize {
        let place = self.places.number(name);
        if place == self.named.len() {
            self.named.push(Vec::new());
        }
        place
    }

    /// The most levels of rules, terminals and groups that the compiler is in at once.
    ///
    /// It goes into a name the first time that it meets it, beginning with `start`.
    pub(super) fn depth(&self) -> usize {
        let first = self.places.get("start");
        let mut seen = vec![false; self.named.len()];
        let (mut deepest, mut open) = (0, Vec::new());
        for root in first.into_iter().chain(0..self.named.len()) {
            if !std::mem::replace(&mut seen[root], true) {
                open.push((root, 0, 1));
            }
            while let Some((name, next, depth)) = open.pop() {
                deepest = deepest.max(depth);
                let Some(&(inner, groups)) = self.named[name].get(next) else { continue };
                open.push((name, next + 1, depth));
                if !std::mem::replace(&mut seen[inner], true) {
                    open.push((inner, 0, depth + groups + 1));
                }
            }
        }
        deepest
    }
}
