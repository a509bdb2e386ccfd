//! An order of functions in which a compressor finds what they share.

use std::collections::HashMap;

/// Bytes of a piece. Functions are alike that share pieces.
const PIECE: usize = 5;

/// Most pieces of a function that are compared: those of a large one are a sample.
const MAX_PIECES: usize = 1000;

/// A piece of more functions than this says nothing of any.
const MAX_FUNCTIONS: usize = 2000;

/// The share of pieces below which the next function is the next in the order of bodies.
const MIN_SHARE: f64 = 0.02;

/// Indices of `bodies` such that like ones have neighbouring places.
///
/// Each function is followed by that of the rest which is most like it and the one before it. The order depends on
/// the bodies alone.
pub fn order(bodies: &[&[u8]]) -> Vec<usize> {
    let mut by_body: Vec<usize> = (0..bodies.len()).collect();
    by_body.sort_by_key(|&index| bodies[index]);
    let sorted: Vec<&[u8]> = by_body.iter().map(|&index| bodies[index]).collect();
    Likeness::of(&sorted).path().into_iter().map(|place| by_body[place]).collect()
}

/// Pieces of functions, to find those that are alike.
struct Likeness {
    /// The pieces of each function.
    pieces: Vec<Vec<u64>>,
    /// The functions of each piece.
    functions: HashMap<u64, Vec<usize>>,
}

impl Likeness {
    fn of(bodies: &[&[u8]]) -> Self {
        let pieces: Vec<Vec<u64>> = bodies.iter().map(|body| pieces(body)).collect();
        let mut functions: HashMap<u64, Vec<usize>> = HashMap::new();
        for (function, pieces) in pieces.iter().enumerate() {
            for &piece in pieces {
                functions.entry(piece).or_default().push(function);
            }
        }
        functions.retain(|_, functions| (2..=MAX_FUNCTIONS).contains(&functions.len()));
        Self { pieces, functions }
    }

    /// All functions, from one to that which is most like it.
    fn path(&self) -> Vec<usize> {
        let mut path: Vec<usize> = vec![];
        let mut rest = vec![true; self.pieces.len()];
        let mut shared = vec![0; self.pieces.len()];
        let mut first = 0;
        while path.len() < rest.len() {
            let next = self.most_alike(&path, &rest, &mut shared).unwrap_or_else(|| {
                first += rest[first..].iter().position(|&is_left| is_left).unwrap_or(0);
                first
            });
            rest[next] = false;
            path.push(next);
        }
        path
    }

    /// Which of `rest` is most like the end of `path`; `shared` is zero before and after.
    fn most_alike(&self, path: &[usize], rest: &[bool], shared: &mut [u32]) -> Option<usize> {
        let mut met = vec![];
        for (&function, weight) in path.iter().rev().zip([2, 1]) {
            let functions = self.pieces[function].iter().filter_map(|it| self.functions.get(it));
            for &other in functions.flatten().filter(|other| rest[**other]) {
                if shared[other] == 0 {
                    met.push(other);
                }
                shared[other] += weight;
            }
        }
        let last = self.pieces[*path.last()?].len() as f64;
        let mut best = (MIN_SHARE, usize::MAX);
        for other in met {
            let both = f64::from(std::mem::take(&mut shared[other])) / 2.0;
            let of_other = self.pieces[other].len() as f64;
            let share = both / (of_other + last - both.min(of_other - 0.5));
            if share > best.0 || (share == best.0 && other < best.1) {
                best = (share, other);
            }
        }
        (best.1 != usize::MAX).then_some(best.1)
    }
}

/// The different pieces of `body`, or a sample that does not depend on their places.
fn pieces(body: &[u8]) -> Vec<u64> {
    let number =
        |piece: &[u8]| piece.iter().fold(1, |number: u64, &byte| number << 8 | u64::from(byte));
    // Odd, so different pieces stay different.
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut pieces: Vec<u64> = body.windows(PIECE).map(|it| spread(number(it))).collect();
    if pieces.is_empty() {
        pieces.push(spread(number(body)));
    }
    pieces.sort_unstable();
    pieces.dedup();
    pieces.truncate(MAX_PIECES);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_lie_beside_those_that_are_most_like_them() {
        let bodies: [&[u8]; 5] =
            [b"a first body", b"z other words", b"b first body", b"c", b"y other words"];
        assert_eq!(order(&bodies), [0, 2, 3, 4, 1]);
    }

    #[test]
    fn all_functions_have_a_place_whatever_they_are() {
        let large: Vec<u8> = (0..40_000_u32).map(|it| (it * it % 251) as u8).collect();
        let bodies: [&[u8]; 5] = [b"", &large, b"abcdef", b"", &large[1..]];
        let mut found = order(&bodies);
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4]);
        assert!(order(&[]).is_empty());
    }
}
