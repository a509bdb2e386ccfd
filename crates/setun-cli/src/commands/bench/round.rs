//! One measured round: a batch of sequences through the engine.

use std::time::Instant;

use futures::{StreamExt, stream::select_all};
use setun::{Engine, Error, Event, GenerateOptions};

use crate::{error::CliError, synth::noise};

/// Seed of the prompts.
const PROMPT_SEED: u64 = 0;

/// What a round gave.
#[derive(Debug)]
pub(super) struct Round {
    /// Generated tokens, sequence by sequence.
    pub(super) tokens: Vec<Vec<u32>>,
    /// All sequences together.
    pub(super) prefill_tokens_per_second: f64,
    /// All sequences together, after the last one's first token.
    pub(super) decode_tokens_per_second: Option<f64>,
}

/// Random prompts, a pure function of these numbers.
pub(super) fn prompts(vocab: usize, tokens: usize, batch: usize) -> Vec<Vec<u32>> {
    let prompt = |sequence| {
        let key = noise(PROMPT_SEED, sequence);
        let token = |index| u32::try_from(noise(key, index) % vocab as u64).unwrap_or(0);
        (0..tokens as u64).map(token).collect()
    };
    (0..batch as u64).map(prompt).collect()
}

/// Generates `count` tokens, or as many as fit, after each prompt.
///
/// Sequences of a batch enter one after the other, so the first ones decode while the last ones
/// are still prompts. Decoding is therefore timed from the moment that all decode until all have
/// `count` tokens, the early ones going on; and prefill, in a batch, in a pass of its own.
pub(super) fn run(engine: &Engine, prompts: &[Vec<u32>], count: usize) -> Result<Round, Error> {
    run_with(engine, prompts, &GenerateOptions::new().temperature(0.0), count)
}

/// The same with other options.
pub(super) fn run_with(
    engine: &Engine,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
    count: usize,
) -> Result<Round, Error> {
    let is_batch = prompts.len() > 1;
    let prefill = if is_batch { Some(pass(engine, prompts, options, (1, 0))?) } else { None };
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    // Each step has a row of a prompt at least: the first decodes at most this number of tokens before
    // the last one's first.
    let pass = pass(engine, prompts, options, (count, if is_batch { prompt_tokens } else { 0 }))?;
    let prefill_seconds = prefill.as_ref().unwrap_or(&pass).prefill_seconds;
    Ok(Round {
        prefill_tokens_per_second: speed(prompt_tokens, prefill_seconds).unwrap_or(0.0),
        decode_tokens_per_second: speed(pass.decoded, pass.decode_seconds),
        tokens: pass.tokens,
    })
}

impl Round {
    /// Fails unless these tokens are the round's own, or begin them.
    pub(super) fn check(&self, what: &'static str, tokens: &[Vec<u32>]) -> Result<(), CliError> {
        for (sequence, (expected, found)) in self.tokens.iter().zip(tokens).enumerate() {
            if !expected.starts_with(found) {
                let same = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
                return Err(CliError::Unsteady { what, sequence, token: same });
            }
        }
        Ok(())
    }

    /// A number for all tokens, in order: FNV-1a of 64 bits over their little-endian bytes, with
    /// each sequence's length before it.
    pub(super) fn tokens_hash(&self) -> String {
        hash(&self.tokens)
    }

    /// The same of the first sequence alone.
    pub(super) fn first_tokens_hash(&self) -> String {
        hash(&self.tokens[..self.tokens.len().min(1)])
    }
}

fn hash(sequences: &[Vec<u32>]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |number: u32| {
        for byte in number.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for sequence in sequences {
        take(u32::try_from(sequence.len()).unwrap_or(u32::MAX));
        sequence.iter().copied().for_each(&mut take);
    }
    format!("{hash:016x}")
}

/// What came when.
pub(super) struct Pass {
    tokens: Vec<Vec<u32>>,
    prefill_seconds: f64, // until every sequence had its first token
    decode_seconds: f64,  // from then until every one had all
    decoded: usize,       // tokens of that time
}

/// Generates `count` tokens after each prompt, and up to `ahead` more where others lag behind.
pub(super) fn pass(
    engine: &Engine,
    prompts: &[Vec<u32>],
    options: &GenerateOptions,
    (count, ahead): (usize, usize),
) -> Result<Pass, Error> {
    let begun = Instant::now();
    let options = options.clone().max_tokens(count + ahead);
    let streams = prompts.iter().map(|prompt| engine.generate(prompt.clone(), options.clone()));
    let streams = streams.collect::<Result<Vec<_>, _>>()?.into_iter().enumerate();
    let mut events = select_all(streams.map(|(index, stream)| stream.map(move |e| (index, e))));

    let mut tokens = vec![vec![]; prompts.len()];
    let (mut to_start, mut to_finish) = (prompts.len(), prompts.len());
    let (mut all_decode, mut decoded) = (None, 0);
    while to_finish > 0
        && let Some((index, event)) = pollster::block_on(events.next())
    {
        let tokens: &mut Vec<u32> = &mut tokens[index];
        match event? {
            Event::Text(delta) => {
                tokens.push(delta.token);
                decoded += usize::from(all_decode.is_some());
                to_start -= usize::from(tokens.len() == 1);
                to_finish -= usize::from(tokens.len() == count);
                if to_start == 0 {
                    all_decode.get_or_insert_with(Instant::now);
                }
            }
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Done(_) => to_finish -= usize::from(tokens.len() < count),
        }
    }
    let all_decode = all_decode.unwrap_or_else(Instant::now);
    let decode_seconds = all_decode.elapsed().as_secs_f64();
    for tokens in &mut tokens {
        tokens.truncate(count);
    }
    let prefill_seconds = (all_decode - begun).as_secs_f64();
    Ok(Pass { tokens, prefill_seconds, decode_seconds, decoded })
}

/// None where there is nothing to divide.
#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
pub(super) fn speed(tokens: usize, seconds: f64) -> Option<f64> {
    (tokens > 0 && seconds > 0.0).then(|| tokens as f64 / seconds)
}

/// The median of decode rates. There is none where only the first token was generated.
pub(super) fn decode_median(rates: Vec<f64>) -> Result<f64, CliError> {
    median(rates).ok_or_else(|| {
        CliError::Usage(
            "--generate: nothing was decoded after the first token, expected 2 or more".into(),
        )
    })
}

/// The middle one, or the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let lower = if values.len().is_multiple_of(2) { values[middle - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use setun::{Model, Prompt};

    use super::*;

    fn engine() -> Engine {
        let folder = "../../tests/fixtures/golden/bitnet-h64/packed";
        let model = Model::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
        Engine::builder(model).build().unwrap()
    }

    /// What is timed is what `setun run --temperature 0` would print.
    #[test]
    fn tokens_are_those_of_untimed_generations() {
        let engine = engine();
        for batch in [1, 2, 5] {
            let prompts = prompts(engine.vocab_size(), 19, batch);
            let round = run(&engine, &prompts, 12).unwrap();
            let alone: Vec<_> = prompts
                .into_iter()
                .map(|prompt| {
                    let options = GenerateOptions::new().temperature(0.0).max_tokens(12);
                    engine.complete(Prompt::Tokens(prompt), options).unwrap().tokens
                })
                .collect();
            assert_eq!(round.tokens, alone, "batch {batch}");
            let untimed = Round { tokens: alone, ..round };
            let again = run(&engine, &super::prompts(engine.vocab_size(), 19, batch), 12).unwrap();
            assert_eq!(again.tokens_hash(), untimed.tokens_hash());
            assert!(again.prefill_tokens_per_second > 0.0);
        }
    }

    #[test]
    fn other_tokens_are_reported() {
        let round = Round {
            tokens: vec![vec![1, 2, 3], vec![4, 5, 6]],
            prefill_tokens_per_second: 1.0,
            decode_tokens_per_second: None,
        };
        let check = |tokens: [&[u32]; 2]| {
            let found = round.check("a repeat", &tokens.map(<[u32]>::to_vec));
            found.map_err(|error| error.to_string())
        };
        assert_eq!(check([&[1, 2, 3], &[4, 5, 6]]), Ok(()));
        assert_eq!(check([&[1, 2], &[4, 5]]), Ok(()), "a shorter round");
        let error = check([&[1, 2, 3], &[4, 9, 6]]).expect_err("another token");
        assert!(error.starts_with("a repeat gave other tokens than the first round"), "{error}");
        assert!(error.contains("sequence 1, from token 1 on"), "{error}");
        assert!(check([&[1, 2, 3], &[4, 5, 6, 7]]).is_err(), "more than there were");
    }

    #[test]
    fn hashes_distinguish_token_lists() {
        let hash = |tokens: &[&[u32]]| {
            let tokens = tokens.iter().map(|tokens| tokens.to_vec()).collect();
            Round { tokens, prefill_tokens_per_second: 1.0, decode_tokens_per_second: None }
                .tokens_hash()
        };
        let lists: [&[&[u32]]; 4] =
            [&[&[1, 2], &[3]], &[&[1], &[2, 3]], &[&[1, 2, 3]], &[&[1, 3, 2]]];
        let mut hashes: Vec<_> = lists.into_iter().map(hash).collect();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), lists.len());
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
