//! Scales of all layers by those of the first of each kind.

use super::targets::Targets;

impl Targets {
    /// The first linear layer in the place of another: those show how all in their places are scaled.
    pub(super) fn representative(&self, linear: usize) -> usize {
        let place = self.linears[linear].place;
        self.linears.iter().position(|first| first.place == place).unwrap_or(linear)
    }

    /// Lets the matrices of all layers be scaled as those of the first of their kind are, once those are
    /// there. Returns whether this call settled it.
    pub(super) fn settle(&mut self) -> bool {
        let firsts: Vec<_> = (0..self.linears.len()).map(|at| self.representative(at)).collect();
        let is_there = |&first: &usize| self.linears[first].is_complete();
        if !self.unsettled || !firsts.iter().all(is_there) {
            return false;
        }
        let kinds: Vec<_> =
            firsts.iter().map(|&first| self.linears[first].needed_scales()).collect();
        for (linear, kind) in self.linears.iter_mut().zip(kinds) {
            linear.scales = kind;
        }
        self.unsettled = false;
        true
    }
}
