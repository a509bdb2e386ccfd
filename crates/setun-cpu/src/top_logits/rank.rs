//! Choosing among tokens by their logits, or by bounds of these.

use setun_ops::top_logits::{Ranked, TopLogitsRequest, can_rank};

use super::{MAX_CANDIDATES, limit::Limit, noisy};

/// Values of tokens that are compared together.
const SCANNED: usize = 64;

/// Lists the touched tokens, then those that may be among the `k` best others, ascending; none
/// if they are too many. `out` is memory to work in, `[capacity]`.
pub(super) fn candidates(
    request: &TopLogitsRequest,
    limit: Limit,
    [lower, upper]: [&[f32]; 2],
    out: &mut [Ranked],
    tokens: &mut [u32],
) -> Option<usize> {
    let touched = request.touched.len();
    tokens[..touched].copy_from_slice(&request.touched);
    let (_, best) = start(request, out);
    let places = &mut tokens[touched..][..MAX_CANDIDATES];
    let (best, top) = best.split_at_mut(request.k);
    let (by_score, best) = match request.noise {
        Some(scores) => (
            {
                let limit = limit.score.map_or(f64::NEG_INFINITY, |(_, least)| least);
                noisy::candidates((scores, limit), request, [lower, upper], best, places)?
            },
            top,
        ),
        None => (0, best),
    };
    let mut count = by_score;
    if let Some(last) = best.len().checked_sub(1) {
        TopK::of_untouched(best, request, lower);
        // Nothing that is requested lies below either: lower bounds say less than their logits.
        let threshold = best[last].logit.max(request.least(best[0].logit)).max(limit.logit);
        untouched(request, upper, threshold, |token, _| {
            if places[..by_score].binary_search(&token).is_err() {
                if let Some(place) = places.get_mut(count) {
                    *place = token;
                }
                count += 1;
            }
            threshold
        });
    }
    let listed = places.get_mut(..count)?;
    if by_score > 0 {
        listed.sort_unstable();
    }
    Some(touched + count)
}

/// The tokens with the best lower bounds: as many as a request wants by score or logit, and by logit.
/// `out` is memory to work in, `[capacity]`.
pub(super) fn best_by_bounds<'a>(
    request: &TopLogitsRequest,
    lower: &[f32],
    out: &'a mut [Ranked],
) -> &'a mut [Ranked] {
    let (_, ranked) = start(request, out);
    best_of(request, lower, ranked);
    ranked
}

/// The row of the definition from all logits.
pub(super) fn rank_all(request: &TopLogitsRequest, logits: &[f32], out: &mut [Ranked]) {
    let (touched, best) = start(request, out);
    if !logits.iter().all(|&logit| can_rank(logit)) {
        return;
    }
    for (out, &token) in touched.iter_mut().zip(&request.touched) {
        *out = Ranked { token, logit: logits[token as usize] };
    }
    best_of(request, logits, best);
    if request.noise.is_none() {
        cut(request, best);
    }
}

/// The best of all tokens that a request does not name: as many as it wants by score or logit, and by
/// logit.
fn best_of(request: &TopLogitsRequest, logits: &[f32], ranked: &mut [Ranked]) {
    let (best, top) = ranked.split_at_mut(request.k);
    if let Some(scores) = request.noise {
        let is_other = |&(token, _): &(u32, f32)| request.touched.binary_search(&token).is_err();
        let all = (0..=u32::MAX).zip(logits.iter().copied());
        noisy::best(scores, best, &mut all.filter(is_other));
        if !top.is_empty() {
            TopK::of_untouched(top, request, logits);
        }
    } else {
        TopK::of_untouched(best, request, logits);
    }
}

/// The best of candidates with ascending ids, of those that are requested.
pub(super) fn rank_candidates(
    request: &TopLogitsRequest,
    best: &mut [Ranked],
    candidates: impl Iterator<Item = (u32, f32)> + Clone,
) {
    let (best, top) = best.split_at_mut(request.k);
    if let Some(scores) = request.noise {
        noisy::best(scores, best, &mut candidates.clone());
        if !top.is_empty() {
            TopK::of(top, candidates);
        }
    } else {
        TopK::of(best, candidates);
        cut(request, best);
    }
}

/// Leaves those of the `k` best that lie as near to the first as was requested.
fn cut(request: &TopLogitsRequest, best: &mut [Ranked]) {
    let least = request.least(best[0].logit);
    let kept = best.partition_point(|ranked| ranked.logit >= least);
    best[kept..].fill(Ranked::PADDING);
}

/// An empty row: the places of the touched tokens and those of the best others, by score and by logit.
pub(super) fn start<'a>(
    request: &TopLogitsRequest,
    out: &'a mut [Ranked],
) -> (&'a mut [Ranked], &'a mut [Ranked]) {
    out.fill(Ranked::PADDING);
    let (touched, rest) = out.split_at_mut(request.touched.len());
    (touched, &mut rest[..request.k + request.top])
}

/// Shows the tokens that a request does not name and whose values reach a limit, ascending.
/// `show` returns the next limit.
fn untouched(
    request: &TopLogitsRequest,
    values: &[f32],
    mut limit: f32,
    mut show: impl FnMut(u32, f32) -> f32,
) {
    for (first, values) in (0..=u32::MAX).step_by(SCANNED).zip(values.chunks(SCANNED)) {
        // Most have none. Counted, not looked for, so that compilers make vectors of it.
        if values.iter().map(|&value| u32::from(value >= limit)).sum::<u32>() == 0 {
            continue;
        }
        for (token, &value) in (first..=u32::MAX).zip(values) {
            if value >= limit && request.touched.binary_search(&token).is_err() {
                limit = show(token, value);
            }
        }
    }
}

/// The best tokens of those shown so far, best first.
struct TopK<'a> {
    ranked: &'a mut [Ranked],
    count: usize,
}

impl<'a> TopK<'a> {
    /// The best of some tokens with ascending ids, as many as there are places.
    fn of(ranked: &'a mut [Ranked], candidates: impl Iterator<Item = (u32, f32)>) {
        let mut best = Self { ranked, count: 0 };
        let mut least = f32::NEG_INFINITY;
        for (token, logit) in candidates {
            if logit >= least {
                least = best.insert(Ranked { token, logit });
            }
        }
    }

    /// The best of the tokens that a request does not name.
    fn of_untouched(ranked: &'a mut [Ranked], request: &TopLogitsRequest, logits: &[f32]) {
        let mut best = Self { ranked, count: 0 };
        untouched(request, logits, f32::NEG_INFINITY, |token, logit| {
            best.insert(Ranked { token, logit })
        });
    }

    /// Puts a token in its place, and returns what the next must reach: more than the last, as of
    /// equal logits the one with the lower id is there already.
    fn insert(&mut self, new: Ranked) -> f32 {
        let place = self.ranked[..self.count].partition_point(|old| old.logit >= new.logit);
        self.count = (self.count + 1).min(self.ranked.len());
        self.ranked[place..self.count].rotate_right(1);
        self.ranked[place] = new;
        match self.ranked.last() {
            Some(last) if self.count == self.ranked.len() => last.logit.next_up(),
            _ => f32::NEG_INFINITY,
        }
    }
}
