//! Closer bounds of some logits: a second pass, over fine codes.

use std::ops::Range;

use super::{Hidden, Screen, block_bounds::BLOCK_TOKENS};
use crate::ternary_dot::{TILE_OUTPUTS, TernaryDot};

/// Tokens that are listed at once.
const LISTED: usize = 64;

impl Screen {
    /// Replaces the bounds of a run of tokens, which are those of coarse codes, by closer ones
    /// where `is_left` says of a token and its upper bound that it needs them. Returns how many did.
    pub(crate) fn closer_bounds<D: TernaryDot>(
        &self,
        isa: D,
        tokens: Range<usize>,
        (hidden, planes): (&Hidden, [&[i8]; 2]),
        [lower, upper]: [&mut [f32]; 2],
        is_left: impl Fn(usize, f32) -> bool,
    ) -> usize {
        if !self.has_planes() {
            return 0;
        }
        let mut total = 0;
        for first in tokens.clone().step_by(LISTED) {
            let run = first..tokens.end.min(first + LISTED);
            let (mut left, mut count) = ([0; LISTED], 0);
            for token in run {
                if is_left(token, upper[token - tokens.start]) {
                    left[count] = token;
                    count += 1;
                }
            }
            let left = &left[..count];
            total += count;
            for at in (0..count).step_by(TILE_OUTPUTS) {
                // Beyond the last it is repeated.
                let rows = |at: usize| {
                    std::array::from_fn(|row| self.codes.fine(left[(at + row).min(count - 1)]))
                };
                let (fine, ahead) = (rows(at), rows(at + TILE_OUTPUTS));
                let high = isa.code_dots(fine, ahead, planes[0]);
                let low = isa.code_dots(fine, fine, planes[1]);
                for (&token, dots) in left[at..].iter().zip(high.into_iter().zip(low)) {
                    let place = token - tokens.start;
                    let block = &self.blocks[token / BLOCK_TOKENS];
                    let coarse = [lower[place], upper[place]];
                    let bounds = block.closer(token % BLOCK_TOKENS, hidden, dots.into(), coarse);
                    [lower[place], upper[place]] = bounds;
                }
            }
        }
        total
    }
}
