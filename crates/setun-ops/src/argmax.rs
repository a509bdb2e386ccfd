//! `argmax`: the greedy token of a row, and what the step after it takes in.
//!
//! A row's logits are those of [`head`](crate::head). Of each `touched` token the logit is divided
//! by the `penalty` if it is not negative, and multiplied by it if it is; then `biases` are added.
//! The token is the one with the largest result, −0 and 0 being equal, of equal ones the lowest
//! id; [`NONE`] where a result is not finite, so that its reader takes all logits to see why.
//!
//! A plan that ends in `argmax` can be run several times without the host between, where a
//! backend has [multi-steps](crate::Backend::max_multi_steps): [`BatchInputs::advance`] defines what comes
//! in next.
//!
//! [`BatchInputs::advance`]: crate::BatchInputs::advance

use crate::{
    dense::DenseMatrix,
    error::OpsError,
    head::head_logit,
    op::{Agreement, ArgmaxCapacity},
};

/// See [`Agreement`]. The choice follows from the logits exactly, and a GPU's logits may differ.
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 16 };

/// In place of a token where there is none to choose.
pub const NONE: u32 = u32::MAX;

/// How a row chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgmaxRequest {
    /// The repetition penalty; a normal number above 0, and 1 for none.
    pub penalty: f32,
    /// Ids that it applies to, ascending.
    pub touched: Vec<u32>,
    /// Ids, ascending, and what is added to their logits.
    pub biases: Vec<(u32, f32)>,
}

impl Default for ArgmaxRequest {
    fn default() -> Self {
        Self { penalty: 1.0, touched: vec![], biases: vec![] }
    }
}

impl ArgmaxRequest {
    /// Room for this request before `steps` steps.
    #[must_use]
    pub fn room(&self, steps: usize) -> ArgmaxCapacity {
        let more = if self.penalty == 1.0 { 0 } else { steps.saturating_sub(1) };
        ArgmaxCapacity { touched: self.touched.len() + more, biases: self.biases.len() }
    }

    /// The token has been chosen: from now on it is touched.
    pub fn touch(&mut self, token: u32) {
        if self.penalty != 1.0
            && token != NONE
            && let Err(place) = self.touched.binary_search(&token)
        {
            self.touched.insert(place, token);
        }
    }

    /// Checks ranges and order.
    pub(crate) fn check(&self, vocab: usize, room: ArgmaxCapacity) -> Result<(), OpsError> {
        let bound = |what, found, limit: usize| {
            let expected = limit.saturating_sub(1);
            if found < limit { Ok(()) } else { Err(OpsError::Inputs { what, expected, found }) }
        };
        bound("touched tokens of a request", self.touched.len(), room.touched + 1)?;
        bound("biases of a request", self.biases.len(), room.biases + 1)?;
        if !self.penalty.is_normal() || self.penalty < 0.0 {
            return Err(OpsError::Penalty { found: self.penalty });
        }
        for pair in self.touched.windows(2) {
            bound("touched token (ascending)", pair[0] as usize, pair[1] as usize)?;
        }
        for pair in self.biases.windows(2) {
            bound("token of a bias (ascending)", pair[0].0 as usize, pair[1].0 as usize)?;
        }
        self.touched.iter().try_for_each(|&token| bound("touched token", token as usize, vocab))?;
        for (index, &(token, found)) in self.biases.iter().enumerate() {
            bound("token of a bias", token as usize, vocab)?;
            if !found.is_finite() {
                return Err(OpsError::NotFinite { what: "bias", index, found });
            }
        }
        Ok(())
    }
}

/// The choice from all logits of a row, `[vocab]`, which penalty and biases change.
///
/// # Panics
///
/// If the request names a token beyond them.
pub fn argmax(logits: &mut [f32], request: &ArgmaxRequest) -> u32 {
    let penalty = request.penalty;
    for &token in &request.touched {
        let logit = &mut logits[token as usize];
        *logit = if *logit < 0.0 { *logit * penalty } else { *logit / penalty };
    }
    for &(token, bias) in &request.biases {
        logits[token as usize] += bias;
    }
    let mut best = (NONE, f32::NEG_INFINITY);
    for (token, &logit) in (0..NONE).zip(logits.iter()) {
        if !logit.is_finite() {
            return NONE;
        }
        if logit > best.1 {
            best = (token, logit);
        }
    }
    best.0
}

/// The choice of a row. `x` is `[hidden]`.
///
/// # Panics
///
/// If the request names a token beyond the table, or a length differs from its columns.
#[must_use]
pub fn argmax_row(table: &DenseMatrix, x: &[f32], request: &ArgmaxRequest) -> u32 {
    let mut scratch = vec![0.0; x.len()];
    let logit = |token| head_logit(table, token, x, &mut scratch);
    let mut logits: Vec<f32> = (0..table.rows()).map(logit).collect();
    argmax(&mut logits, request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(logits: &[f32], request: &ArgmaxRequest) -> u32 {
        argmax(&mut logits.to_vec(), request)
    }

    #[test]
    fn the_largest_and_of_equal_ones_the_first() {
        let plain = ArgmaxRequest::default();
        assert_eq!(chosen(&[0.5, 3.0, -1.0, 3.0], &plain), 1);
        assert_eq!(chosen(&[-0.0, 0.0], &plain), 0);
        assert_eq!(chosen(&[f32::MIN, -3e38], &plain), 1);
        assert_eq!(chosen(&[f32::MIN], &plain), 0);
    }

    #[test]
    fn the_penalty_acts_before_biases() {
        let request = |touched: &[u32], biases: &[(u32, f32)]| ArgmaxRequest {
            penalty: 2.0,
            touched: touched.to_vec(),
            biases: biases.to_vec(),
        };
        assert_eq!(chosen(&[3.0, 2.0, -1.0], &request(&[0], &[])), 1);
        assert_eq!(chosen(&[-3.0, -2.0], &request(&[1], &[])), 0, "negative ones grow");
        // 3 / 2 + 1 against 2: the other order would give 2, and the first id.
        assert_eq!(chosen(&[2.0, 3.0], &request(&[1], &[(1, 1.0)])), 1);
        assert_eq!(chosen(&[2.0, 3.0], &request(&[], &[(0, 1.0)])), 0);
    }

    #[test]
    fn no_choice_where_a_number_is_missing() {
        let plain = ArgmaxRequest::default();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(chosen(&[1.0, bad], &plain), NONE);
        }
        let overflows = ArgmaxRequest { penalty: 0.5, touched: vec![1], biases: vec![] };
        assert_eq!(chosen(&[1.0, f32::MAX], &overflows), NONE);
    }

    #[test]
    fn requests_are_checked() {
        let room = ArgmaxCapacity { touched: 2, biases: 1 };
        let check = |penalty, touched: &[u32], biases: &[(u32, f32)]| {
            let (touched, biases) = (touched.to_vec(), biases.to_vec());
            ArgmaxRequest { penalty, touched, biases }.check(5, room)
        };
        assert_eq!(check(1.5, &[0, 4], &[(4, 1.0)]), Ok(()));
        assert_eq!(check(0.0, &[], &[]), Err(OpsError::Penalty { found: 0.0 }));
        for (touched, biases) in [
            (&[0, 1, 2][..], &[][..]),
            (&[1, 1], &[]),
            (&[5], &[]),
            (&[], &[(0, 1.0), (1, 1.0)]),
            (&[], &[(5, 1.0)]),
            (&[], &[(0, f32::NAN)]),
        ] {
            assert!(check(1.5, touched, biases).is_err(), "{touched:?}, {biases:?}");
        }
    }
}
