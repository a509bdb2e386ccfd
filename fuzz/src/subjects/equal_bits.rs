//! A random small model on two devices: the reference implementation, alone and at once, and the
//! processor, in cuts, beside another sequence and with a screened head. All bits are equal.

use std::collections::BTreeMap;

use setun::{
    CacheType, Device, DeviceOptions, HeadType, Level, Model, Source,
    forward::{
        Batch, Model as Forward, Outputs, PagedCache, RequestedOutput, SequenceId, outputs::Row,
    },
    ops::top_logits::{TopLogitsRequest, can_rank},
};

use crate::{
    MemoryBound, run_bounded,
    subjects::{
        input::Input,
        random_model::{Shape, files},
    },
};

/// A model that may be smaller than what is fixed, on two devices.
const MEMORY: MemoryBound = MemoryBound { fixed: 64 << 20, each: 0 };

/// Most tokens of a text: more than a block of the cache has positions.
const MAX_TOKENS: usize = 40;

/// Compares the devices.
///
/// # Panics
///
/// If a bit differs.
pub fn run(bytes: &[u8]) {
    run_bounded(bytes.len(), MEMORY, || compare(Input(bytes)));
}

fn compare(mut input: Input<'_>) {
    let shape = Shape::choose(&mut input);
    let model = files(&shape, u64::from_le_bytes([0; 8].map(|_: u8| input.byte())));
    let vocabulary = shape.vocabulary;
    let mut text = |most: usize| -> Vec<u32> {
        let count = input.between(1, most);
        (0..count).map(|_| input.token(vocabulary)).collect()
    };
    let texts = [text(MAX_TOKENS), text(MAX_TOKENS)];
    let cache = input.pick(&[CacheType::F32, CacheType::F16, CacheType::Int8]);
    let reference = DeviceOptions { device: Device::Scalar, cache, ..DeviceOptions::default() };
    let mut reference = Runner::new(&model, DeviceOptions { head: HeadType::Stored, ..reference });
    let expected = texts.each_ref().map(|text| reference.whole(text));

    let head = input.pick(&[HeadType::Screened, HeadType::Stored]);
    let device = Device::Level(input.pick(&Level::available()));
    let threads = Some(input.between(1, 3));
    let options = DeviceOptions { device, threads, cache, head, ..DeviceOptions::default() };
    let mut runner = Runner::new(&model, options.clone());
    let found = runner.in_cuts(&texts, &mut input);
    assert!(found == expected, "{options:?} and {texts:?}");
    let request = TopLogitsRequest { k: input.between(1, vocabulary), ..<_>::default() };
    let row = expected[0].last().expect("a row for each token");
    runner.compare_ranked(&texts[0], request, row);
}

/// Logits as bits, a row for each token.
type Rows = Vec<Vec<u32>>;

struct Runner {
    model: Box<dyn Forward>,
    cache: PagedCache,
}

impl Runner {
    fn new(model: &BTreeMap<&str, Vec<u8>>, options: DeviceOptions) -> Self {
        let files = model.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        let model = Model::from_files(Source::Folder, "random", &files).expect("a sound model");
        let model = model.load_onto(options).expect("a device that is here").model;
        Self { cache: PagedCache::new(model.block_positions(), 64), model }
    }

    /// All rows of a text in one step.
    fn whole(&mut self, text: &[u32]) -> Rows {
        let sequence = self.cache.create();
        let rows = self.step(&[(sequence, text)]);
        self.cache.remove(sequence);
        rows
    }

    /// All rows of texts that are cut, each step with a piece of both while there is one.
    fn in_cuts(&mut self, texts: &[Vec<u32>; 2], input: &mut Input<'_>) -> [Rows; 2] {
        let sequences = [self.cache.create(), self.cache.create()];
        let mut rest = texts.each_ref().map(Vec::as_slice);
        let mut rows = [vec![], vec![]];
        while rest.iter().any(|rest| !rest.is_empty()) {
            let pieces = rest.each_mut().map(|rest| {
                let (piece, after) = rest.split_at(input.between(1, MAX_TOKENS).min(rest.len()));
                *rest = after;
                piece
            });
            let runs: Vec<_> = sequences.into_iter().zip(pieces).collect();
            let mut found = self.step(&runs).into_iter();
            for (rows, piece) in rows.iter_mut().zip(pieces) {
                rows.extend(found.by_ref().take(piece.len()));
            }
        }
        for sequence in sequences {
            self.cache.remove(sequence);
        }
        rows
    }

    /// Tokens of some sequences; bits of the logits of all.
    fn step(&mut self, runs: &[(SequenceId, &[u32])]) -> Rows {
        let mut batch = Batch::default();
        for &(sequence, tokens) in runs {
            let position = self.cache.len(sequence).expect("a sequence");
            self.cache.extend(sequence, tokens.len()).expect("room for small texts");
            batch.push_run(sequence, position, tokens, RequestedOutput::Logits);
        }
        batch.request_logits(0);
        let outputs = self.forward(&batch);
        let rows = outputs.logits().chunks_exact(self.model.vocab_size());
        rows.map(|row| row.iter().map(|logit| bits(*logit)).collect()).collect()
    }

    /// Compares the best logits after a text with a row of all logits.
    fn compare_ranked(&mut self, text: &[u32], request: TopLogitsRequest, row: &[u32]) {
        let sequence = self.cache.create();
        self.cache.extend(sequence, text.len()).expect("room for small texts");
        let (mut batch, k) = (Batch::default(), request.k);
        batch.push_run(sequence, 0, text, RequestedOutput::TopLogits(request));
        let outputs = self.forward(&batch);
        let logits: Vec<f32> = row.iter().map(|bits| f32::from_bits(*bits)).collect();
        match outputs.rows().next().expect("a requested row") {
            Row::Ranked([]) => assert!(!logits.iter().all(|&logit| can_rank(logit))),
            Row::Ranked(found) => {
                let mut best: Vec<_> = (0_u32..).zip(&logits).collect();
                best.sort_by(|(_, a), (_, b)| b.partial_cmp(a).expect("finite logits"));
                let best = best.into_iter().take(k).map(|(token, logit)| (token, bits(*logit)));
                let found = found.iter().map(|ranked| (ranked.token, bits(ranked.logit)));
                assert!(found.eq(best), "the {k} best after {text:?}");
            }
            Row::Logits(found) => assert!(found.iter().map(|logit| bits(*logit)).eq(row.to_vec())),
            Row::HiddenState(_) => panic!("states were not requested"),
        }
        drop(outputs);
        self.cache.remove(sequence);
    }

    fn forward(&mut self, batch: &Batch) -> Outputs {
        let mut outputs = Outputs::default();
        let step = self.model.forward(batch, &mut self.cache, &mut outputs);
        pollster::block_on(step).expect("a step of a sound model");
        outputs
    }
}

/// Bits of a number, the same for every NaN.
fn bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}
