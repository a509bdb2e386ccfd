//! Texts that commands are given, and their way through a model.

use std::{
    io::{self, ErrorKind, IsTerminal, Read},
    path::Path,
};

use setun::{
    EngineError, Model,
    forward::{Batch, Model as Forward, Outputs, PagedCache, RequestedOutput},
    text::without_mark,
};

use crate::{error::CliError, output::report};

/// Most bytes of a text.
const MAX_BYTES: u64 = 1 << 30;

/// Standard input, to its end.
pub fn standard_input() -> Result<String, CliError> {
    let mut bytes = vec![];
    io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(CliError::Input)?;
    if bytes.len() as u64 > MAX_BYTES {
        let reason = format!("it has more than {MAX_BYTES} bytes");
        return Err(CliError::Input(io::Error::new(ErrorKind::InvalidInput, reason)));
    }
    utf8("standard input", bytes)
}

/// A prompt from standard input, without its last line break.
pub(crate) fn prompt() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        report("Type the prompt, then Ctrl-D at the start of a line.\n");
    }
    let mut prompt = standard_input()?;
    if prompt.ends_with('\n') {
        prompt.pop();
        if prompt.ends_with('\r') {
            prompt.pop();
        }
    }
    Ok(prompt)
}

/// A file, or standard input where it is named `-`.
pub fn file(path: &Path) -> Result<String, CliError> {
    if path == Path::new("-") {
        return standard_input();
    }
    let bytes = setun::read_file(path, MAX_BYTES)?;
    utf8(&format!("`{}`", path.display()), bytes)
}

/// Tokens of a text, special ones as the tokenizer's post-processor says.
pub(crate) fn tokens(model: &Model, text: &str) -> Result<Vec<u32>, CliError> {
    let tokenizer = model.tokenizer()?.ok_or_else(|| EngineError::Missing {
        model: model.name().to_owned(),
        what: "tokenizer",
        expected: "tokenizer.json",
    })?;
    Ok(tokenizer.encode(text, true)?)
}

/// Runs a text through a model, some tokens a step, and calls with the model and the outputs of each step.
pub(crate) fn for_each_chunk(
    model: &mut dyn Forward,
    tokens: &[u32],
    chunk: usize,
    output: &RequestedOutput,
    mut take: impl FnMut(&dyn Forward, &Outputs) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let blocks = tokens.len().div_ceil(model.block_positions());
    let mut cache = PagedCache::for_sequences(model, blocks, 1);
    let (sequence, mut outputs) = (cache.create(), Outputs::default());
    let chunk = chunk.min(model.max_rows());
    for (index, tokens) in tokens.chunks(chunk).enumerate() {
        cache.extend(sequence, tokens.len())?;
        let mut batch = Batch::default();
        batch.push_run(sequence, index * chunk, tokens, output.clone());
        batch.rows.iter_mut().for_each(|row| row.output = output.clone());
        pollster::block_on(model.forward(&batch, &mut cache, &mut outputs))?;
        take(model, &outputs)?;
    }
    Ok(())
}

/// A text without the byte order mark that some editors and shells write before it.
fn utf8(what: &str, mut bytes: Vec<u8>) -> Result<String, CliError> {
    bytes.drain(..bytes.len() - without_mark(&bytes).len());
    String::from_utf8(bytes).map_err(|error| CliError::Encoding {
        what: what.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })
}
