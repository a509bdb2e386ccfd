//! Requests as replicas and routers see them: hashes in place of segments.

use std::collections::HashMap;

use super::Request;
use crate::{
    error::SimulateError,
    hash::{combine, of_text},
    limits::BLOCK_TOKENS,
};

/// A request whose tokens are known by hashes of whole blocks.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Microseconds at which it may be sent.
    pub(crate) at: u64,
    /// The number of its key.
    pub(crate) key: u32,
    /// The hash of its key.
    pub(crate) key_hash: u64,
    /// Tokens of its prompt.
    pub(crate) prompt: u32,
    /// Tokens that it generates.
    pub(crate) output: u32,
    /// Hashes of the whole blocks of prompt and output, each with all blocks before it. The last
    /// token of the output is never computed, so no block has it.
    pub(crate) blocks: Vec<u64>,
    /// The request whose end it waits for.
    pub(crate) follows: Option<u32>,
}

impl Prepared {
    /// Blocks of its first `tokens` tokens that are whole.
    pub(crate) fn whole(&self, tokens: u32) -> &[u64] {
        let count = (tokens / BLOCK_TOKENS) as usize;
        &self.blocks[..count.min(self.blocks.len())]
    }
}

/// Prepares a trace for replicas whose caches have this many blocks. With other replies, those of
/// later prompts are not what was generated.
///
/// # Errors
///
/// If a request has no room in them.
pub(crate) fn prepare(
    requests: &[Request],
    cache_blocks: u64,
    other_replies: bool,
) -> Result<Vec<Prepared>, SimulateError> {
    let cache = cache_blocks * u64::from(BLOCK_TOKENS);
    let mut keys = HashMap::new();
    let mut last = HashMap::<&str, u32>::new();
    let mut prepared = Vec::<Prepared>::with_capacity(requests.len());
    let mut replies = vec![None; requests.len()];
    for (number, request) in (0_u32..).zip(requests) {
        let before = last.insert(&request.key, number);
        let follows = before.filter(|&before| request.follows(&requests[before as usize]));
        if let Some(before) = follows.filter(|_| !other_replies) {
            let reply = &request.prompt[requests[before as usize].prompt.len()].0;
            replies[before as usize] = Some(reply.as_str());
        }
        let tokens = request.prompt_tokens() + u64::from(request.output);
        if tokens > cache {
            let (request, key) = (number as usize + 1, request.key.clone());
            return Err(SimulateError::TooLong { request, key, tokens, cache });
        }
        let next = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        prepared.push(Prepared {
            at: request.at_ms.saturating_mul(1000),
            key: *keys.entry(&request.key).or_insert(next),
            key_hash: of_text(&request.key),
            prompt: u32::try_from(request.prompt_tokens()).unwrap_or(u32::MAX),
            output: request.output,
            blocks: vec![],
            follows,
        });
    }
    for (number, request) in requests.iter().enumerate() {
        let reply = replies[number].map_or_else(|| combine(u64::MAX, number as u64), of_text);
        prepared[number].blocks = chain(request, reply);
    }
    Ok(prepared)
}

/// Hashes of whole blocks of a prompt and the reply that is known by this hash.
fn chain(request: &Request, reply: u64) -> Vec<u64> {
    let prompt = request.prompt.iter().map(|(id, tokens)| (of_text(id), *tokens));
    let segments = prompt.chain([(reply, request.output - 1)]);
    let (mut blocks, mut hash, mut room) = (vec![], 0, BLOCK_TOKENS);
    for (segment, tokens) in segments {
        let mut offset = 0;
        while offset < tokens {
            let run = room.min(tokens - offset);
            hash = combine(combine(hash, segment), u64::from(offset) << 32 | u64::from(run));
            offset += run;
            room -= run;
            if room == 0 {
                blocks.push(hash);
                room = BLOCK_TOKENS;
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(prompt: &[(&str, u32)], output: u32) -> Request {
        let prompt = prompt.iter().map(|(id, tokens)| ((*id).to_owned(), *tokens)).collect();
        Request { at_ms: 0, key: "k".to_owned(), prompt, output }
    }

    fn prepared(requests: &[Request]) -> Vec<Prepared> {
        prepare(requests, 1000, false).expect("room for all")
    }

    #[test]
    fn equal_prefixes_have_equal_blocks() {
        let found = prepared(&[
            request(&[("s", 70), ("a", 40)], 1),
            request(&[("s", 70), ("b", 40)], 1),
            request(&[("s", 64)], 1),
            request(&[("a", 70)], 1),
        ]);
        let blocks: Vec<_> = found.iter().map(|request| &request.blocks[..]).collect();
        assert_eq!(blocks.iter().map(|blocks| blocks.len()).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(blocks[0][..2], blocks[1][..2]);
        assert_ne!(blocks[0][2], blocks[1][2]);
        assert_eq!(blocks[2], &blocks[0][..2]);
        assert_ne!(blocks[3][0], blocks[0][0]);
    }

    #[test]
    fn the_reply_of_a_turn_is_a_part_of_the_next_prompt() {
        let found = prepared(&[
            request(&[("s", 30)], 20),
            request(&[("s", 30), ("reply", 20), ("u", 50)], 5),
            request(&[("s", 30), ("other", 19), ("u", 50)], 5),
        ]);
        assert_eq!(found[1].follows, Some(0));
        assert_eq!(found[2].follows, None, "another length");
        assert_eq!(found[0].blocks.len(), 1, "30 of the prompt and 19 of the output");
        assert_eq!(found[0].blocks[0], found[1].blocks[0]);
        assert_ne!(found[0].blocks[0], found[2].blocks[0]);
    }

    #[test]
    fn a_request_longer_than_the_cache_is_refused() {
        let error = prepare(&[request(&[("s", 31)], 1), request(&[("s", 31)], 2)], 1, false);
        let error = error.map(|_| ()).expect_err("33 tokens in 32");
        assert_eq!(
            error.to_string(),
            "request 2 of the trace, of `k`, has 33 tokens with its output, and the cache of a \
             replica 32"
        );
    }
}
