//! `setun logits`: the logits of every token of a text, written to a file.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use setun::{
    DeviceOptions, EngineError, Error, HeadType,
    checkpoint::{
        Dtype,
        write::{NewTensor, layout},
    },
    forward::{Batch, Model as Forward, Outputs, PagedCache, RequestedOutput, SequenceId},
};

use crate::{
    args::{DeviceArgs, FileArgs, Kv},
    error::CliError,
    input,
    output::Progress,
    source::ModelSource,
    synth::noise,
};

/// Write the logits of every token of a text
///
/// OUT has one tensor, `logits`, f32 [tokens, vocab]. It does not depend on the instruction set,
/// the threads, the chunks or the other sequences: these options exist to check that.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout, or the name of a
    /// pulled model
    #[arg(long, value_name = "MODEL")]
    model: String,

    #[command(flatten)]
    file: FileArgs,

    #[command(flatten)]
    input: Input,

    /// The file to write, in the safetensors format
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    device: DeviceArgs,

    /// Element type of the KV cache
    #[arg(long, value_enum, default_value_t = Kv::F32)]
    kv: Kv,

    /// Tokens per step: a number, or `all`
    #[arg(long, value_name = "N", default_value = "64")]
    chunk: Chunk,

    /// Number of random sequences of other lengths that run in the same steps
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=MAX_OTHERS))]
    batch_with: u16,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Token ids
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    ids: Option<Vec<u32>>,

    /// Text; the tokenizer's post-processor adds special tokens
    #[arg(long)]
    text: Option<String>,
}

/// Other sequences leave at least half of a step's rows to the text.
const MAX_OTHERS: i64 = 256;

/// Bytes between writes.
const BUFFER: usize = 1 << 20;

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let device = args.device.device()?; // before the work of loading
    let model = ModelSource::find(Some(&args.model), args.file.into())?.load()?;
    let tokens = match (&args.input.ids, &args.input.text) {
        (Some(ids), _) => ids.clone(),
        (None, text) => input::tokens(&model, text.as_deref().unwrap_or_default())?,
    };
    let threads = args.device.threads();
    let cache = args.kv.into();
    let options = DeviceOptions {
        device,
        threads,
        cache,
        head: HeadType::Stored,
        ..DeviceOptions::default()
    };
    let model = model.load_onto(options)?.model;
    check(&tokens, &*model)?;
    let steps = Steps::new(model, tokens, args.chunk, args.batch_with);
    let file = File::create(&args.out).map_err(|source| write_error(&args.out, source))?;
    let written = steps.write(&args.out, &mut BufWriter::with_capacity(BUFFER, file));
    if written.is_err() && args.out.is_file() {
        // Half a file helps nobody; that it cannot be removed is no news after the first error.
        let _ = fs::remove_file(&args.out);
    }
    written
}

fn write_error(path: &Path, source: std::io::Error) -> CliError {
    CliError::Write { path: path.to_owned(), source }
}

fn check(tokens: &[u32], model: &dyn Forward) -> Result<(), Error> {
    let bad = |found, expected| -> Error {
        EngineError::BadOption { option: "prompt", found, expected }.into()
    };
    let (vocab, context) = (model.vocab_size(), model.context_length());
    if tokens.is_empty() {
        return Err(bad("empty".into(), "one token or more".into()));
    }
    if tokens.len() > context {
        return Err(EngineError::ContextFull { tokens: tokens.len(), context }.into());
    }
    match tokens.iter().find(|&&token| token as usize >= vocab) {
        Some(token) => Err(bad(format!("token {token}"), format!("tokens below {vocab}"))),
        None => Ok(()),
    }
}

/// A text on its way through a model, among others.
struct Steps {
    model: Box<dyn Forward>,
    cache: PagedCache,
    tokens: Vec<u32>,
    chunk: usize,
    sequence: SequenceId,
    others: Vec<OtherSequence>,
}

/// A random text. When it is through it begins anew.
struct OtherSequence {
    sequence: SequenceId,
    tokens: Vec<u32>,
    done: usize,
}

impl Steps {
    fn new(model: Box<dyn Forward>, tokens: Vec<u32>, chunk: Chunk, others: u16) -> Self {
        let (context, vocab) = (model.context_length(), model.vocab_size());
        let sequences = usize::from(others) + 1;
        let blocks = context.div_ceil(model.block_positions()) * sequences;
        let mut cache = PagedCache::new(model.block_positions(), blocks);
        let sequence = cache.create();
        let others = (1..=u64::from(others))
            .map(|index| {
                let tokens = random_tokens(index, vocab, context);
                OtherSequence { sequence: cache.create(), tokens, done: 0 }
            })
            .collect::<Vec<_>>();
        let most = model.max_rows().saturating_sub(others.len()).max(1);
        let chunk = match chunk {
            Chunk::All => most,
            Chunk::Rows(rows) => rows.min(most),
        };
        Self { model, cache, tokens, chunk, sequence, others }
    }

    /// Writes the file as its rows are computed.
    fn write(mut self, path: &Path, file: &mut impl Write) -> Result<(), CliError> {
        let (rows, vocab) = (self.tokens.len(), self.model.vocab_size());
        let tensor =
            NewTensor { name: "logits".into(), dtype: Dtype::F32, shape: vec![rows, vocab] };
        let name = path.display().to_string();
        let header = layout(&name, &[tensor], &BTreeMap::new())?.header;
        file.write_all(&header).map_err(|source| write_error(path, source))?;
        let (mut outputs, mut progress) = (Outputs::default(), Progress::new());
        for start in (0..rows).step_by(self.chunk) {
            progress.show(|| format!("{start} of {rows} tokens"));
            let end = rows.min(start + self.chunk);
            let before = self.step(start, end, &mut outputs)?;
            for value in &outputs.logits()[before * vocab..(before + end - start) * vocab] {
                file.write_all(&value.to_le_bytes()).map_err(|source| write_error(path, source))?;
            }
        }
        file.flush().map_err(|source| write_error(path, source))
    }

    /// Runs the tokens from `start` to `end`, with half of the others before them and half
    /// after; returns how many rows of logits come before the text's.
    fn step(&mut self, start: usize, end: usize, outputs: &mut Outputs) -> Result<usize, CliError> {
        let mut batch = Batch::default();
        let half = self.others.len() / 2;
        let (before, after) = self.others.split_at_mut(half);
        before.iter_mut().try_for_each(|other| other.push(&mut self.cache, &mut batch))?;
        let wanted_before = batch.wanted();
        self.cache.extend(self.sequence, end - start)?;
        let first = batch.rows.len();
        batch.push_run(self.sequence, start, &self.tokens[start..end], RequestedOutput::Logits);
        batch.request_logits(first);
        after.iter_mut().try_for_each(|other| other.push(&mut self.cache, &mut batch))?;
        pollster::block_on(self.model.forward(&batch, &mut self.cache, outputs))?;
        Ok(wanted_before)
    }
}

impl OtherSequence {
    /// Adds the next token; every other one's logits are wanted, and dropped.
    fn push(&mut self, cache: &mut PagedCache, batch: &mut Batch) -> Result<(), CliError> {
        if self.done == self.tokens.len() {
            cache.remove(self.sequence);
            self.sequence = cache.create();
            self.done = 0;
        }
        cache.extend(self.sequence, 1)?;
        let next = &self.tokens[self.done..=self.done];
        let wants = if self.done.is_multiple_of(2) {
            RequestedOutput::Logits
        } else {
            RequestedOutput::Nothing
        };
        batch.push_run(self.sequence, self.done, next, wants);
        self.done += 1;
        Ok(())
    }
}

/// A text of 3 to 99 tokens.
fn random_tokens(index: u64, vocab: usize, context: usize) -> Vec<u32> {
    let length = usize::try_from(3 + noise(index, 0) % 97).unwrap_or(3).min(context);
    let token = |at| u32::try_from(noise(index, at) % vocab as u64).unwrap_or(0);
    (1..=length as u64).map(token).collect()
}

/// Tokens of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    All,
    Rows(usize),
}

impl FromStr for Chunk {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            _ if text == "all" => Ok(Self::All),
            Ok(rows) if rows > 0 => Ok(Self::Rows(rows)),
            _ => Err("a number of 1 or more, or `all`"),
        }
    }
}
