//! `setun logits`: the logits of every token of a text, written to a file.

mod steps;

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use setun::{
    CacheType, EngineError, Error, HeadType,
    checkpoint::{
        Dtype,
        write::{NewTensor, layout},
    },
    forward::Model as Forward,
};

use steps::Steps;

use crate::{
    args::{ActivationArgs, DeviceArgs, FileArgs, MemoryArgs, value},
    destination::{check_export, export},
    error::CliError,
    input,
    output::Progress,
    source::ModelFiles,
};

/// Write the logits of every token of a text
///
/// OUT has one tensor, `logits`, f32 [tokens, vocab]. It does not depend on the instruction set, the
/// threads, the chunks or the other sequences: --backend, --threads, --chunk and --batch-with check
/// that, since files of equal bits are equal.
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

    /// Overwrite the file if it is there already
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    device: DeviceArgs,

    /// Element type of the KV cache
    #[arg(long, default_value_t = CacheType::F32, value_parser = value::<CacheType>("cache_type"))]
    kv: CacheType,

    #[command(flatten)]
    activations: ActivationArgs,

    /// Tokens a step: a number, or all for as many as a step holds
    #[arg(long, value_name = "N", default_value = "64", value_parser = chunk)]
    chunk: usize,

    /// Number of random sequences that run in the same steps, of other lengths
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=MAX_COMPANIONS))]
    batch_with: u16,
}

/// Other sequences leave at least half of a step's rows to the text.
const MAX_COMPANIONS: i64 = 256;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Token ids
    #[arg(long, value_name = "ID,…", value_delimiter = ',', allow_hyphen_values = true)]
    ids: Option<Vec<u32>>,

    /// Text; the tokenizer's post-processor adds special tokens
    #[arg(long)]
    text: Option<String>,
}

impl Input {
    /// The one that is given.
    fn flag(&self) -> &'static str {
        if self.ids.is_some() { "--ids" } else { "--text" }
    }
}

/// Reads the tokens of a step.
fn chunk(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        _ if text == "all" => Ok(usize::MAX),
        Ok(tokens) if tokens > 0 => Ok(tokens),
        _ => Err("expected a number of 1 or more, or all"),
    }
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let (kv, head) = (Some(args.kv), Some(HeadType::Stored));
    let memory = MemoryArgs { kv, head, activations: args.activations, ..MemoryArgs::default() };
    let options = args.device.options(&memory)?; // before the work of loading
    check_export(&args.out, args.force)?;
    let model = ModelFiles::find(Some(&args.model), args.file.into())?.load()?;
    let tokens = match (&args.input.ids, &args.input.text) {
        (Some(ids), _) => ids.clone(),
        (None, text) => input::tokens(&model, text.as_deref().unwrap_or_default())?,
    };
    let mut model = model.load_onto(options)?.model;
    check(&tokens, args.input.flag(), &*model)?;
    export(&args.out, args.force, |file| write(&mut *model, &tokens, args, file))
}

fn check(tokens: &[u32], option: &'static str, model: &dyn Forward) -> Result<(), Error> {
    let bad =
        |found, expected| -> Error { EngineError::BadOption { option, found, expected }.into() };
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

/// Writes the file as its rows are computed.
fn write(
    model: &mut dyn Forward,
    tokens: &[u32],
    args: &Args,
    file: &mut dyn Write,
) -> Result<(), CliError> {
    let path = &args.out;
    let failed = |source| CliError::Write { path: path.clone(), source };
    let shape = vec![tokens.len(), model.vocab_size()];
    let tensor = NewTensor { name: "logits".into(), dtype: Dtype::F32, shape };
    let header = layout(&path.display().to_string(), &[tensor], &BTreeMap::new())?.header;
    file.write_all(&header).map_err(failed)?;
    let vocab = model.vocab_size().max(1);
    let mut steps = Steps::new(model, tokens, args.chunk, args.batch_with);
    let (mut done, mut progress) = (0, Progress::new());
    while let Some(logits) = steps.next()? {
        done += logits.len() / vocab;
        progress.show(|| format!("{done} of {} tokens", tokens.len()));
        logits.iter().try_for_each(|value| file.write_all(&value.to_le_bytes())).map_err(failed)?;
    }
    Ok(())
}
