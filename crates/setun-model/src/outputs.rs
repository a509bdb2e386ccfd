//! Outputs of a step.

use setun_ops::{OpsError, top_logits::Ranked};

/// The requested rows of a step, in order. Their memory is kept from step to step.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    rows: usize,
    width: usize,
    kind: Kind,
    logits: Vec<f32>,    // [rows, vocab], or states [rows, hidden]
    ranked: Vec<Ranked>, // [rows, capacity]
}

/// What rows are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Logits,
    Ranked,
    States,
}

/// One requested row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row<'a> {
    /// All logits, `[vocab]`. A row that requested less may get these too.
    Logits(&'a [f32]),
    /// The entries that were requested, in the order of [`setun_ops::top_logits`]: touched tokens, the
    /// best others, where requested those by logit and the sum. Empty where the row cannot be ranked:
    /// then all logits are to be had of [`head_logits`](crate::Model::head_logits).
    Ranked(&'a [Ranked]),
    /// The hidden state, `[hidden]`, of a row that wants it.
    HiddenState(&'a [f32]),
}

impl Outputs {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.rows).filter_map(|row| self.row(row))
    }

    /// The row of this number.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        if row >= self.rows {
            return None;
        }
        let range = row * self.width..(row + 1) * self.width;
        Some(match self.kind {
            Kind::Logits => Row::Logits(&self.logits[range]),
            Kind::States => Row::HiddenState(&self.logits[range]),
            Kind::Ranked => {
                let row = &self.ranked[range];
                let tokens = row.iter().position(|ranked| !ranked.is_token());
                Row::Ranked(&row[..tokens.unwrap_or(row.len())])
            }
        })
    }

    /// All logits of all rows, `[rows, vocab]`; none where the step ranked them, which it does
    /// only if no row requested all, or gave states.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        if self.kind == Kind::Logits { &self.logits } else { &[] }
    }

    /// Makes room for the logits of this many rows.
    ///
    /// # Errors
    ///
    /// If there is no memory for them.
    pub fn logits_mut(&mut self, rows: usize, vocab: usize) -> Result<&mut [f32], OpsError> {
        let logits = resized(&mut self.logits, rows, vocab, 0.0)?;
        (self.rows, self.width, self.kind) = (rows, vocab, Kind::Logits);
        Ok(logits)
    }

    /// Makes room for the hidden states of this many rows.
    ///
    /// # Errors
    ///
    /// If there is no memory for them.
    pub fn states_mut(&mut self, rows: usize, hidden: usize) -> Result<&mut [f32], OpsError> {
        let states = resized(&mut self.logits, rows, hidden, 0.0)?;
        (self.rows, self.width, self.kind) = (rows, hidden, Kind::States);
        Ok(states)
    }

    /// Makes room for this many ranked rows of one capacity.
    ///
    /// # Errors
    ///
    /// If there is no memory for them.
    pub fn ranked_mut(&mut self, rows: usize, capacity: usize) -> Result<&mut [Ranked], OpsError> {
        let ranked = resized(&mut self.ranked, rows, capacity, Ranked::PADDING)?;
        (self.rows, self.width, self.kind) = (rows, capacity, Kind::Ranked);
        Ok(ranked)
    }
}

/// `[rows, width]` values in the same memory, as far as it reaches.
fn resized<T: Clone>(
    values: &mut Vec<T>,
    rows: usize,
    width: usize,
    padding: T,
) -> Result<&mut [T], OpsError> {
    let len = rows.saturating_mul(width);
    let bytes = len.saturating_mul(size_of::<T>());
    let out_of_memory = |_| OpsError::OutOfMemory { what: "the outputs of a step", bytes };
    values.try_reserve(len.saturating_sub(values.len())).map_err(out_of_memory)?;
    values.resize(len, padding);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_their_padding() {
        let pair = |token| Ranked { token, logit: 1.0 };
        let mut outputs = Outputs::default();
        let padding = Ranked::PADDING;
        let ranked = [pair(4), pair(2), pair(7), padding, padding, padding];
        outputs.ranked_mut(3, 2).unwrap().copy_from_slice(&ranked);
        let rows: Vec<_> = outputs.rows().collect();
        let expected: [&[Ranked]; 3] = [&[pair(4), pair(2)], &[pair(7)], &[]];
        assert_eq!(rows, expected.map(Row::Ranked));
        assert!(outputs.logits().is_empty());

        outputs.logits_mut(1, 3).unwrap().copy_from_slice(&[1.0, 2.0, 3.0]);
        assert_eq!(outputs.rows().collect::<Vec<_>>(), [Row::Logits(&[1.0, 2.0, 3.0])]);
        outputs.states_mut(2, 1).unwrap().copy_from_slice(&[4.0, 5.0]);
        assert_eq!(
            outputs.rows().collect::<Vec<_>>(),
            [Row::HiddenState(&[4.0]), Row::HiddenState(&[5.0])]
        );
        assert!(outputs.logits().is_empty());
    }

    #[test]
    fn rows_that_find_no_memory_are_an_error_and_leave_the_others() {
        let mut outputs = Outputs::default();
        outputs.logits_mut(1, 2).unwrap().copy_from_slice(&[1.0, 2.0]);
        for rows in [usize::MAX / 2, usize::MAX / 8] {
            let error = outputs.logits_mut(rows, 3).unwrap_err();
            assert!(matches!(error, OpsError::OutOfMemory { .. }), "{error}");
            assert!(outputs.ranked_mut(rows, 3).is_err() && outputs.states_mut(rows, 3).is_err());
        }
        assert_eq!(outputs.rows().collect::<Vec<_>>(), [Row::Logits(&[1.0, 2.0])]);
    }
}
