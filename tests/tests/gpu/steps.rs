//! Launches and reads of a step, and steps over more positions than one workgroup takes.

use std::{collections::BTreeMap, fs};

use setun::{
    Model, Source,
    forward::{
        Batch, Model as Forward, Outputs, PagedCache, RequestedOutput, SequenceId, Transformer,
        TransformerOptions,
    },
    ops::{argmax::ArgmaxRequest, top_logits::TopLogitsRequest},
};
use setun_gpu::{Api, GpuBackend, RecordedCalls, Recorder, Wgpu};
use setun_tests::{
    golden::Golden,
    run::{Bits, bits},
};

const MODEL: &str = "bitnet-hd128/packed";
/// Launches of a step beside those of its layers: embed, the last norm, head, best.
const BESIDE_LAYERS: usize = 4;
/// Likewise where the step chooses, the best of slices and then of all.
const BESIDE_LAYERS_CHOOSING: usize = 5;
/// Bytes of a chosen token.
const TOKEN_BYTES: usize = 4;
/// Bytes of the least ranked row: 16 tokens with their logits.
const RANKED_BYTES: usize = 16 * 8;

type Gpu = Transformer<GpuBackend<Recorder<Wgpu>>>;

/// A golden model that serves 2048 positions.
fn gpu(ranked: bool) -> Gpu {
    let folder = Golden::read(MODEL).folder;
    let entries = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file"));
    let files: BTreeMap<String, Vec<u8>> = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect();
    let config = String::from_utf8(files["config.json"].clone()).expect("text");
    let config =
        config.replace("\"max_position_embeddings\": 512", "\"max_position_embeddings\": 2048");
    let mut files: BTreeMap<&str, &[u8]> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    files.insert("config.json", config.as_bytes());
    let model = Model::from_files(Source::Folder, "long", &files).expect("a model");
    assert_eq!(model.config().context_length, 2048);
    let device = pollster::block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let backend = GpuBackend::new(Recorder::new(device)).expect("memory");
    let options = TransformerOptions { ranked, ..TransformerOptions::default() };
    Transformer::new(backend, model.config().clone(), model.weights().clone(), options)
        .expect("a model")
}

/// A sequence on a device.
struct Session {
    gpu: Gpu,
    cache: PagedCache,
    sequence: SequenceId,
    outputs: Outputs,
}

impl Session {
    fn new(ranked: bool) -> Self {
        let gpu = gpu(ranked);
        let mut cache = PagedCache::new(gpu.block_positions(), 1 << 10);
        let sequence = cache.create();
        Self { gpu, cache, sequence, outputs: Outputs::default() }
    }

    fn step(&mut self, tokens: &[u32], wants: RequestedOutput) {
        let mut batch = Batch::default();
        let position = self.cache.len(self.sequence).expect("a sequence");
        self.cache.extend(self.sequence, tokens.len()).expect("room");
        batch.push_run(self.sequence, position, tokens, wants);
        pollster::block_on(self.gpu.forward(&batch, &mut self.cache, &mut self.outputs))
            .expect("a step");
    }

    /// Logits after each chunk.
    fn logits(&mut self, tokens: &[u32], chunk: usize) -> Vec<Bits> {
        let chunks = tokens.chunks(chunk);
        chunks
            .map(|chunk| {
                self.step(chunk, RequestedOutput::Logits);
                bits(&[self.outputs.logits().to_vec()]).concat()
            })
            .collect()
    }

    /// What one step of one token requests, its choice being greedy.
    fn greedy_step(&mut self, token: u32) -> RecordedCalls {
        let best =
            RequestedOutput::TopLogits(TopLogitsRequest { k: 1, ..TopLogitsRequest::default() });
        self.recorded(|session| session.step(&[token], best))
    }

    /// Steps that follow each other, the first of them with these tokens, and what they choose:
    /// `[steps, sequences]`.
    fn multi_step(&mut self, rows: &[(SequenceId, u32, ArgmaxRequest)], steps: usize) -> Vec<u32> {
        let mut batch = Batch::default();
        for (sequence, token, request) in rows {
            let position = self.cache.len(*sequence).expect("a sequence");
            self.cache.extend(*sequence, steps).expect("room");
            batch.push_run(
                *sequence,
                position,
                &[*token],
                RequestedOutput::Argmax(request.clone()),
            );
        }
        let mut tokens = vec![];
        pollster::block_on(self.gpu.run_multi_step(&batch, &mut self.cache, steps, &mut tokens))
            .expect("steps");
        tokens
    }

    fn recorded(&mut self, work: impl FnOnce(&mut Self)) -> RecordedCalls {
        let before = self.gpu.backend().executor().calls;
        work(self);
        let after = self.gpu.backend().executor().calls;
        RecordedCalls {
            created: after.created - before.created,
            kernels: after.kernels - before.kernels,
            written: after.written - before.written,
            played: after.played - before.played,
            launches: after.launches - before.launches,
            read: after.read - before.read,
        }
    }
}

/// Tokens of no meaning.
fn text(len: u32, vocab: usize) -> Vec<u32> {
    let vocab = u32::try_from(vocab).expect("a small vocabulary");
    (0..len).map(|i| i.wrapping_mul(2_654_435_761) % vocab).collect()
}

#[test]
fn a_step_creates_nothing_and_reads_few_bytes() {
    let mut session = Session::new(true);
    let layers = session.gpu.config().layers.len();
    let tokens = text(600, session.gpu.vocab_size());
    session.greedy_step(tokens[0]); // memory and lists are made by the first step
    let short = session.greedy_step(tokens[1]);
    assert_eq!((short.created, short.kernels, short.played), (0, 0, 1));
    assert_eq!(short.launches, 6 * layers + BESIDE_LAYERS);
    assert_eq!(short.read, RANKED_BYTES);
    for tokens in tokens[2..].chunks(200) {
        session.step(tokens, RequestedOutput::Nothing);
    }
    session.greedy_step(tokens[0]); // the cache has grown
    let long = session.greedy_step(tokens[0]);
    assert_eq!((long.created, long.played), (0, 1));
    assert_eq!(long.launches, 7 * layers + BESIDE_LAYERS);
    assert_eq!(long.read, RANKED_BYTES);
}

#[test]
fn a_multi_step_is_one_submission_and_read_four_bytes_a_token() {
    let mut session = Session::new(true);
    let layers = session.gpu.config().layers.len();
    let (sequence, steps) = (session.sequence, session.gpu.max_multi_steps());
    assert_eq!(steps, 16);
    let tokens = text(600, session.gpu.vocab_size());
    let run = |session: &mut Session, steps| {
        session.recorded(|session| {
            session.multi_step(&[(sequence, 1, ArgmaxRequest::default())], steps);
        })
    };
    run(&mut session, 1); // memory and lists are made by the first step
    for steps in [1, 5, steps] {
        let short = run(&mut session, steps);
        assert_eq!((short.created, short.played), (0, 1), "{steps} steps");
        assert_eq!(short.launches, steps * (6 * layers + BESIDE_LAYERS_CHOOSING));
        assert_eq!(short.read, steps * TOKEN_BYTES);
    }
    for tokens in tokens.chunks(200) {
        session.step(tokens, RequestedOutput::Nothing);
    }
    run(&mut session, 1); // the cache has grown
    let long = run(&mut session, steps);
    assert_eq!((long.created, long.played), (0, 1));
    assert_eq!(long.launches, steps * (7 * layers + BESIDE_LAYERS_CHOOSING));
    assert_eq!(long.read, steps * TOKEN_BYTES);
}

/// Several sequences at different positions, with and without a penalty; one of them comes to
/// more positions than a workgroup takes while steps follow each other.
#[test]
fn multi_step_chooses_what_single_steps_choose() {
    const STEPS: usize = 13;
    let penalties = [1.0, 1.3, 0.9];
    let chosen = |steps_at_once: usize| {
        let mut session = Session::new(true);
        let tokens = text(700, session.gpu.vocab_size());
        let mut rows = vec![];
        for (length, penalty) in [3, 505, 64].into_iter().zip(penalties) {
            session.sequence = session.cache.create();
            session.step(&tokens[..length], RequestedOutput::Nothing);
            let mut request = ArgmaxRequest { penalty, ..ArgmaxRequest::default() };
            if penalty != 1.0 {
                tokens[..=length].iter().for_each(|&token| request.touch(token));
            }
            rows.push((session.sequence, tokens[length], request));
        }
        let mut all = vec![];
        while all.len() < STEPS * rows.len() {
            let steps = steps_at_once.min(STEPS - all.len() / rows.len());
            let tokens = session.multi_step(&rows, steps);
            for (index, &token) in tokens.iter().enumerate() {
                let row = &mut rows[index % penalties.len()];
                row.1 = token;
                row.2.touch(token);
            }
            all.extend(tokens);
        }
        all
    };
    let expected = chosen(1);
    for steps in [2, 5, STEPS] {
        assert_eq!(chosen(steps), expected, "{steps} at once");
    }
    let different: std::collections::BTreeSet<_> = expected.iter().collect();
    assert!(different.len() > 2 * penalties.len(), "{expected:?}");
}

/// Few rows over many positions are shared out among workgroups, many rows are not.
#[test]
fn sharing_out_positions_changes_nothing() {
    let mut expected = Session::new(false);
    let tokens = text(1101, expected.gpu.vocab_size());
    expected.logits(&tokens[..1010], 505);
    let expected = expected.logits(&tokens[1010..], 13);
    let mut found = Session::new(false);
    found.logits(&tokens[..1010], 101);
    let found = found.logits(&tokens[1010..], 1);
    assert_eq!(expected.len(), 7);
    for (index, expected) in expected.iter().enumerate() {
        assert!(*expected == found[13 * index + 12], "position {}", 1010 + 13 * index + 12);
    }
}
