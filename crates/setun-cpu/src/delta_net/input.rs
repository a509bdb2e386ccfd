//! Rows of a sequence's input: those of the step, and those before it, which the history has.

use std::ops::Range;

use setun_ops::{
    delta_net::DeltaNetShape,
    recurrent::{RecurrentSpec, StateId},
};

use crate::{split::Tile, step::Floats};

/// The rows of a sequence in a step.
pub(super) struct Rows<'a> {
    /// Input `[rows, input_width]`.
    pub(super) x: &'a Floats,
    /// Their places in the step.
    pub(super) in_step: Range<usize>,
    /// Of the first.
    pub(super) position: usize,
}

impl Rows<'_> {
    /// The position after the last.
    pub(super) fn end(&self) -> usize {
        self.position + self.in_step.len()
    }

    /// The row of a position, if the step has it.
    pub(super) fn row(&self, position: usize) -> Option<&[f32]> {
        let row = self.in_step.start + position.checked_sub(self.position)?;
        self.in_step.contains(&row).then(|| self.x.row(row))
    }
}

/// The rings of one key head: `[states × ring, history_of_key_head]`.
pub(super) struct History<'a> {
    pub(super) tile: Tile<'a, f32>,
    pub(super) ring: usize,
    pub(super) shape: DeltaNetShape,
    pub(super) key_head: usize,
}

impl<'a> History<'a> {
    pub(super) fn new(
        tile: Tile<'a, f32>,
        spec: &RecurrentSpec,
        shape: DeltaNetShape,
        key_head: usize,
    ) -> Self {
        Self { tile, ring: spec.ring(), shape, key_head }
    }

    /// Copies the columns of a position's input that the head reads, `[history_of_key_head]`.
    pub(super) fn copy_input(
        &mut self,
        rows: &Rows<'_>,
        loaded: Option<StateId>,
        position: usize,
        out: &mut [f32],
    ) {
        match (rows.row(position), loaded) {
            (Some(row), _) => self.gather(row, out),
            (None, Some(id)) => {
                out.copy_from_slice(
                    self.tile.row(id.0 as usize * self.ring + position % self.ring),
                );
            }
            (None, None) => out.fill(0.0),
        }
    }

    fn gather(&self, row: &[f32], out: &mut [f32]) {
        let mut at = 0;
        for (first, len) in self.shape.history_columns(self.key_head) {
            out[at..at + len].copy_from_slice(&row[first..first + len]);
            at += len;
        }
    }

    /// Writes the ring of a state: that of the loaded one, with the rows of the step before `end`.
    pub(super) fn store(
        &mut self,
        rows: &Rows<'_>,
        loaded: Option<StateId>,
        id: StateId,
        end: usize,
    ) {
        let first = id.0 as usize * self.ring;
        match loaded {
            Some(loaded) if loaded == id => {}
            Some(loaded) => {
                let from = loaded.0 as usize * self.ring;
                (0..self.ring).for_each(|row| self.tile.copy_row(from + row, first + row));
            }
            None => (first..first + self.ring).for_each(|row| self.tile.row(row).fill(0.0)),
        }
        for position in rows.position.max(end.saturating_sub(self.ring))..end {
            if let Some(row) = rows.row(position) {
                let (shape, head) = (self.shape, self.key_head);
                let ring = self.tile.row(first + position % self.ring);
                let mut at = 0;
                for (column, len) in shape.history_columns(head) {
                    ring[at..at + len].copy_from_slice(&row[column..column + len]);
                    at += len;
                }
            }
        }
    }
}
