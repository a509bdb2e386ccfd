//! The same logits bits for any cut of a prompt, any batch mates, any number of threads, on
//! every device that is here, for each cache type and head type.

use proptest::prelude::*;
use setun::{CacheType, Device, DeviceOptions, HeadType, Model};
use setun_tests::{
    golden::{Golden, MODELS},
    long_or,
    run::{Bits, Runner, bits, devices},
};

const CACHES: [CacheType; 3] = [CacheType::F32, CacheType::F16, CacheType::Int8];
const HEADS: [HeadType; 3] = [HeadType::Stored, HeadType::Screened, HeadType::Int8];

fn runner(model: &str, options: DeviceOptions) -> Runner {
    Runner::new(Model::open(Golden::read(model).folder).expect("a golden model"), options)
}

fn scalar(cache: CacheType, head: HeadType) -> DeviceOptions {
    DeviceOptions { device: Device::Scalar, cache, head, ..DeviceOptions::default() }
}

#[test]
fn every_device_thread_count_and_chunk() {
    for (index, model) in MODELS.into_iter().enumerate() {
        let ids = Golden::read(model).ids("p130.ids");
        for (cache, head) in cached(index) {
            let expected = bits(&runner(model, scalar(cache, head)).logits(&ids, ids.len()));
            for device in devices() {
                // The definitions have one thread, and take their time.
                let ways: &[(usize, usize)] = match device {
                    Device::Scalar => &[(1, 7)],
                    _ => &[(1, 1), (2, 7), (3, 64), (7, 130)],
                };
                for &(threads, chunk) in ways {
                    let threads = Some(threads);
                    let options = DeviceOptions {
                        device: device.clone(),
                        threads,
                        cache,
                        head,
                        ..DeviceOptions::default()
                    };
                    let found = bits(&runner(model, options).logits(&ids, chunk));
                    assert!(
                        found == expected,
                        "{model} on {device}, {threads:?} threads, chunks of {chunk}, {cache:?}, {head:?}"
                    );
                }
            }
        }
    }
}

/// Every cache with every head in the long run; else three of these nine pairs for each model, in which are all
/// caches and all heads, and others for the next model.
fn cached(index: usize) -> Vec<(CacheType, HeadType)> {
    let pair = |(cache, shift)| (CACHES[cache], HEADS[(cache + shift) % HEADS.len()]);
    let shifts = long_or(0, index)..long_or(HEADS.len(), index + 1);
    shifts.flat_map(|shift| (0..CACHES.len()).map(move |cache| (cache, shift))).map(pair).collect()
}

/// Decodes several texts at once, with prompts cut anywhere, next to forks and truncations.
#[test]
fn batch_mates_change_nothing() {
    for model in MODELS {
        let golden = Golden::read(model);
        let texts: Vec<Vec<u32>> =
            ["p33", "r24", "p7", "z7"].map(|p| golden.ids(&format!("{p}.ids"))).to_vec();
        for device in devices() {
            for (cache, head, chunks) in [
                (CacheType::F16, HeadType::Auto, [1, 3, 5].as_slice()),
                (CacheType::F32, HeadType::Stored, &[4]),
                (CacheType::Int8, HeadType::Int8, &[2]),
            ] {
                let options = DeviceOptions {
                    device: device.clone(),
                    threads: Some(2),
                    cache,
                    head,
                    ..DeviceOptions::default()
                };
                let mut runner = runner(model, options.clone());
                let alone: Vec<Vec<Bits>> =
                    texts.iter().map(|text| bits(&runner.logits(text, text.len()))).collect();
                for &chunk in chunks {
                    let together = interleaved(&mut runner, &texts, chunk);
                    assert!(together == alone, "{model}, {options:?}, chunks of {chunk}");
                }
            }
        }
    }
}

fn interleaved(runner: &mut Runner, texts: &[Vec<u32>], chunk: usize) -> Vec<Vec<Bits>> {
    let sequences: Vec<_> = texts.iter().map(|_| runner.sequence()).collect();
    let mut rows = vec![vec![]; texts.len()];
    for start in (0..texts.iter().map(Vec::len).max().unwrap_or(0)).step_by(chunk) {
        let runs: Vec<_> = (0..texts.len())
            .filter(|&i| start < texts[i].len())
            .map(|i| (i, &texts[i][start..texts[i].len().min(start + chunk)]))
            .collect();
        let step: Vec<_> = runs.iter().map(|&(i, tokens)| (sequences[i], tokens)).collect();
        let mut found = bits(&runner.step(&step)).into_iter();
        for (i, tokens) in runs {
            rows[i].extend(found.by_ref().take(tokens.len()));
        }
    }
    rows
}

#[test]
fn forks_and_rollbacks_change_nothing() {
    for model in MODELS {
        let ids = Golden::read(model).ids("p130.ids");
        for device in devices() {
            let options = DeviceOptions {
                device: device.clone(),
                threads: Some(2),
                ..DeviceOptions::default()
            };
            let mut runner = runner(model, options.clone());
            let expected = bits(&runner.logits(&ids, ids.len()));
            let trunk = runner.sequence();
            runner.step(&[(trunk, &ids[..45])]);
            let branch = runner.fork(trunk);
            runner.step(&[(branch, &ids[..20])]); // overwrites what it shares, in a copy
            runner.truncate(branch, 45);
            let rest = runner.step(&[(trunk, &ids[45..]), (branch, &ids[45..])]);
            let (a, b) = rest.split_at(ids.len() - 45);
            assert!(bits(a) == expected[45..], "{model} on {device}: the trunk");
            assert!(bits(b) == expected[45..], "{model} on {device}: the branch");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any cut of any text.
    #[test]
    fn any_chunks(
        tokens in prop::collection::vec(0..263u32, 1..90),
        cuts in prop::collection::vec(1..40usize, 1..10),
    ) {
        for device in devices() {
            let options = DeviceOptions { device: device.clone(), threads: Some(3), ..DeviceOptions::default() };
            let mut runner = runner("bitnet-h64/packed", options);
            let whole = bits(&runner.logits(&tokens, tokens.len()));
            let sequence = runner.sequence();
            let (mut found, mut rest) = (vec![], tokens.as_slice());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (head, tail) = rest.split_at(rest.len().min(*cut));
                found.extend(bits(&runner.step(&[(sequence, head)])));
                rest = tail;
            }
            prop_assert!(found == whole);
        }
    }
}
