//! `top_logits` over a table that workers share: requests of each part, and their rows merged.

use std::ops::Range;

use setun_ops::top_logits::{NoisyScores, Ranked, TopLogitsRequest};

use super::message::{Message, Words};
use setun_ops::{OpsError, noise::Noise};

/// What the part with some of the tokens is asked, so that its answer has all of them that may be
/// in the whole one's.
pub(crate) fn request_of(request: &TopLogitsRequest, tokens: &Range<u32>) -> TopLogitsRequest {
    let TopLogitsRequest { k, within, noise, top, ref touched } = *request;
    let within_part = touched.iter().filter(|token| tokens.contains(token));
    let mut touched: Vec<u32> = within_part.map(|token| token - tokens.start).collect();
    // At least one token is requested by rank.
    if touched.len() == tokens.len() {
        touched.pop();
    }
    let others = tokens.len() - touched.len();
    if k + top > others {
        return TopLogitsRequest { k: others, touched, ..<_>::default() };
    }
    let noise =
        noise.map(|noisy| NoisyScores { noise: noisy.noise.starting_at(tokens.start), ..noisy });
    TopLogitsRequest { k, within, noise, top, touched }
}

/// One row of the whole result, from those of the parts, which begin at some tokens.
pub(crate) fn merge(request: &TopLogitsRequest, parts: &[(u32, &[Ranked])], out: &mut [Ranked]) {
    out.fill(Ranked::PADDING);
    // A part that is not ranked has a logit that is too large.
    if parts.iter().any(|(_, part)| !part.first().is_some_and(|ranked| ranked.is_token())) {
        return;
    }
    let mut all: Vec<Ranked> = vec![];
    for &(first, part) in parts {
        let tokens = part.iter().filter(|ranked| ranked.is_token());
        all.extend(tokens.map(|ranked| Ranked { token: first + ranked.token, ..*ranked }));
    }
    sort(&mut all, &|ranked| -f64::from(ranked.token));
    all.dedup_by_key(|ranked| ranked.token);
    let (touched, best) = out.split_at_mut(request.touched.len());
    for (out, token) in touched.iter_mut().zip(&request.touched) {
        if let Ok(index) = all.binary_search_by_key(token, |ranked| ranked.token) {
            *out = all[index];
        }
    }
    all.retain(|ranked| request.touched.binary_search(&ranked.token).is_err());
    let (best, top) = best.split_at_mut(request.k);
    sort(&mut all, &|ranked| f64::from(ranked.logit));
    top.iter_mut().zip(&all).take(request.top).for_each(|(out, ranked)| *out = *ranked);
    let least = all.first().map_or(f32::NEG_INFINITY, |ranked| request.least(ranked.logit));
    if let Some(noisy) = request.noise {
        sort(&mut all, &|ranked| noisy.score(ranked.token, ranked.logit));
    }
    let asked = all.iter().filter(|ranked| ranked.logit >= least);
    best.iter_mut().zip(asked).for_each(|(out, ranked)| *out = *ranked);
}

/// The highest score first, of equal ones the smaller id; −0 becomes 0 to be compared.
fn sort(tokens: &mut [Ranked], score: &dyn Fn(&Ranked) -> f64) {
    let score = |ranked: &Ranked| score(ranked) + 0.0;
    tokens.sort_unstable_by(|a, b| score(b).total_cmp(&score(a)).then(a.token.cmp(&b.token)));
}

pub(crate) fn push_request(request: &TopLogitsRequest, message: &mut Words) {
    let TopLogitsRequest { k, within, noise, top, touched } = request;
    message.push_size(*k);
    message.push_size(*top);
    message.push(u32::from(within.is_some()) | u32::from(noise.is_some()) << 1);
    message.push(within.unwrap_or_default().to_bits());
    if let Some(NoisyScores { noise, temperature }) = noise {
        let [low, high]: [u32; 2] = bytemuck::cast(noise.key());
        for word in [low, high, temperature.to_bits()] {
            message.push(word);
        }
    }
    message.push_size(touched.len());
    for &token in touched {
        message.push(token);
    }
}

pub(crate) fn read_request(message: &mut Message<'_>) -> Result<TopLogitsRequest, OpsError> {
    let (k, top, flags, within) =
        (message.size()?, message.size()?, message.word()?, f32::from_bits(message.word()?));
    let noise = if flags & 2 == 0 {
        None
    } else {
        let key = bytemuck::cast([message.word()?, message.word()?]);
        let temperature = f32::from_bits(message.word()?);
        Some(NoisyScores { noise: Noise::new(key), temperature })
    };
    let count = message.size()?;
    let touched = (0..count).map(|_| message.word()).collect::<Result<_, _>>()?;
    let within = (flags & 1 != 0).then_some(within);
    Ok(TopLogitsRequest { k, within, noise, top, touched })
}
