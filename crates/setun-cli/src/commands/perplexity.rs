//! `setun perplexity`: perplexity of a model on a text.

use std::path::PathBuf;

use serde::Serialize;
use setun::{
    CacheType, EngineError, HeadType,
    forward::{Model as Forward, RequestedOutput},
};

use crate::{
    args::{ActivationArgs, DeviceArgs, MemoryArgs, ModelArgs, value},
    error::CliError,
    input,
    output::{Output, Progress},
};

/// Measure the perplexity of a model on a text
///
/// The text is cut into separate windows of N tokens, each with the model's first token. The
/// perplexity is the exponential of the mean, over all tokens but the first of each window, of
/// −ln p(token | the tokens before it in its window). A last window of one token is left out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// File with the text; `-` is standard input
    #[arg(long, value_name = "FILE")]
    text: PathBuf,

    /// Tokens per window [default: the model's context, at most 2048]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    context: Option<u32>,

    #[command(flatten)]
    device: DeviceArgs,

    /// Element type of the KV cache
    #[arg(long, default_value_t = CacheType::F32, value_parser = value::<CacheType>("cache_type"))]
    kv: CacheType,

    /// Representation of the output head in memory
    #[arg(long, default_value_t = HeadType::Stored, value_parser = value::<HeadType>("head_type"))]
    head: HeadType,

    #[command(flatten)]
    activations: ActivationArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Longest window that is taken without being requested.
const USUAL_WINDOW: usize = 2048;

/// Tokens of a step.
const CHUNK: usize = 64;

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    tokens: usize,
    windows: usize,
    context: usize,
    counted: usize,
    mean_nll: f64,
    perplexity: f64,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let (kv, head) = (Some(args.kv), Some(args.head));
    let memory = MemoryArgs { kv, head, activations: args.activations, ..MemoryArgs::default() };
    let options = args.device.options(&memory)?; // before the work of loading
    let text = input::file(&args.text)?;
    let model = args.model.files()?.load()?;
    let tokens = input::tokens(&model, &text)?;
    let bos = input::tokens(&model, "")?;
    let name = model.name().to_owned();
    let mut model = model.load_onto(options)?.model;
    let most = model.context_length();
    let context = args.context.map_or(most.min(USUAL_WINDOW), |context| context as usize);
    if context > most || context <= bos.len() + 1 {
        let found = context.to_string();
        let expected = format!("{} to {most} tokens", bos.len() + 2);
        return Err(EngineError::BadOption { option: "--context", found, expected }.into());
    }
    let windows = windows(&tokens, &bos, context);
    let (mut sum, mut counted, mut progress) = (0.0, 0, Progress::new());
    for (index, window) in windows.iter().enumerate() {
        sum += nll(&mut *model, window)?;
        counted += window.len() - 1;
        progress.show(|| format!("window {} of {}", index + 1, windows.len()));
    }
    drop(progress);
    if counted == 0 {
        let (found, expected) = ("one token or none".into(), "two tokens or more".into());
        return Err(EngineError::BadOption { option: "--text", found, expected }.into());
    }
    #[expect(clippy::cast_precision_loss, reason = "fewer tokens than 2^52")]
    let mean = sum / counted as f64;
    let report = Report {
        model: name,
        tokens: tokens.len(),
        windows: windows.len(),
        context,
        counted,
        mean_nll: mean,
        perplexity: mean.exp(),
    };
    let mut output = Output::new();
    if args.json {
        return output.json(&report);
    }
    output.line(&format!(
        "perplexity {:.4} over {counted} tokens in {} windows of {context}",
        report.perplexity, report.windows
    ))
}

/// Runs of tokens, each beginning with what begins a text.
fn windows(tokens: &[u32], bos: &[u32], context: usize) -> Vec<Vec<u32>> {
    let text = tokens.strip_prefix(bos).unwrap_or(tokens);
    let cut = text.chunks((context - bos.len()).max(1));
    cut.map(|run| [bos, run].concat()).filter(|window| window.len() > 1).collect()
}

/// Sum of −ln p over the tokens of a window but its first, in double precision.
fn nll(model: &mut dyn Forward, window: &[u32]) -> Result<f64, CliError> {
    let (last, mut next) = (window.len() - 1, window[1..].iter());
    let mut sum = 0.0;
    input::for_each_chunk(
        model,
        &window[..last],
        CHUNK,
        &RequestedOutput::Logits,
        |model, outputs| {
            let rows = outputs.logits().chunks_exact(model.vocab_size());
            sum +=
                rows.zip(next.by_ref()).map(|(logits, &next)| surprise(logits, next)).sum::<f64>();
            Ok(())
        },
    )?;
    Ok(sum)
}

/// −ln of the probability of a token.
fn surprise(logits: &[f32], token: u32) -> f64 {
    let greatest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - greatest).exp()).sum();
    greatest + sum.ln() - f64::from(logits[token as usize])
}
