//! `setun verify`: full check of a checkpoint.

mod blank;
mod magnitudes;

use blank::Blank;
use magnitudes::Magnitudes;
use serde::Serialize;
use setun::{
    checkpoint::{Answer, Reader, TensorInfo},
    forward::Contents,
};

use crate::{
    args::FileArgs,
    error::CliError,
    output::{Output, Progress},
    source::{ModelFiles, percent},
};

/// Check every byte of a model
///
/// Checks hashes where the format has them, that every weight is ternary and every other value a
/// number, and that configuration, tensors, tokenizer and chat template agree. Tokenizer and
/// template are tried on short texts and on conversations with and without tools. The exit status
/// is 1 if something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout, or the name of a
    /// pulled model
    model: String,

    #[command(flatten)]
    file: FileArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was looked at.
#[derive(Debug, Default, Serialize)]
struct Report {
    model: String,
    tensors: usize,
    bytes: u64,
    ternary_weights: u64,
    tokens: Option<usize>,
    warnings: Vec<String>,
    unused: Vec<String>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let source = ModelFiles::find(Some(&args.model), args.file.into())?;
    let mut report = Report { model: source.name().to_owned(), ..Report::default() };
    let file = source.file();
    check_tensors(source, &mut report)?;
    if let Some(file) = file {
        setun::check_weight_image(file)?;
    }
    check_texts(ModelFiles::find(Some(&args.model), args.file.into())?, &mut report)?;
    let mut output = Output::new();
    if args.json { output.json(&report) } else { output.line(&report.text()) }
}

/// Reads and unpacks every tensor.
fn check_tensors(mut source: ModelFiles, report: &mut Report) -> Result<(), CliError> {
    let mut reader = Reader::with_options(source.layout(), source.options());
    let (mut contents, mut magnitudes, mut bytes) = (None, None, vec![]);
    let mut blank = Blank::default();
    let (mut total, mut progress) = (0, Progress::new());
    while let Some(want) = reader.next_read() {
        let found = source.read(&want, &mut bytes)?;
        reader.give(if found { Answer::Bytes(&bytes) } else { Answer::Missing })?;
        let (Some(config), Some(tensors)) = (reader.config(), reader.tensors()) else { continue };
        if contents.is_none() {
            total = tensors.iter().map(TensorInfo::bytes).sum();
            report.tensors = tensors.len();
            contents = Some(Contents::new(config, tensors)?);
        } else {
            report.bytes += bytes.len() as u64;
        }
        let (name, activation) = (source.name(), config.activation);
        progress.show(|| format!("checking {name}: {} %", percent(report.bytes, total)));
        while let (Some(contents), Some(tensor)) = (&mut contents, reader.take()) {
            for (name, content) in contents.add(tensor)? {
                blank.add(&name, &content);
                magnitudes
                    .get_or_insert_with(|| Magnitudes::new(activation))
                    .add(&name, &content)?;
                report.ternary_weights += content.ternary_weights();
            }
        }
    }
    magnitudes.map_or(Ok(()), Magnitudes::finish)?;
    report.unused = contents.map(|contents| contents.unused().to_vec()).unwrap_or_default();
    report.warnings = reader.warnings().iter().map(ToString::to_string).collect();
    report.warnings.extend(blank.warning());
    Ok(())
}

/// Reads tokenizer and template, tries them, and holds them against the configuration.
fn check_texts(source: ModelFiles, report: &mut Report) -> Result<(), CliError> {
    let header = source.header()?;
    report.tokens = header.tokenizer()?.map(|tokenizer| tokenizer.vocab_size());
    report.warnings.extend(header.vocabulary_warnings()?);
    report.warnings.extend(header.try_texts()?);
    Ok(())
}

impl Report {
    fn text(&self) -> String {
        let mut lines = vec![format!(
            "{}: {} tensors, {} bytes, {} ternary weights: sound",
            self.model, self.tensors, self.bytes, self.ternary_weights
        )];
        match self.tokens {
            Some(tokens) => lines.push(format!("tokenizer: {tokens} tokens")),
            None => lines.push("tokenizer: none".to_owned()),
        }
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.unused.iter().map(|name| format!("unused: {name}")));
        lines.join("\n")
    }
}
