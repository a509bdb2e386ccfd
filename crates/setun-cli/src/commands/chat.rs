//! `setun chat`: a conversation through the model's own chat template.

use std::io::{self, IsTerminal};

use setun::{Engine, Error, Event, GenerateOptions, Message};

use crate::{
    args::{self, DeviceArgs, MemoryArgs, ModelArgs, SamplingArgs},
    error::CliError,
    interrupt,
    output::Output,
};

/// Talk with a model, through its own chat template
///
/// A line is a message. Ctrl-C ends an answer, or, at the prompt, the conversation; so does the
/// end of input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,

    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let engine = args::engine(&args.model, &args.device, args.memory)?;
    if !engine.has_chat_template() {
        let expected = "a chat_template in tokenizer_config.json, or chat_template.jinja";
        let (model, what) = (engine.model_name().to_owned(), "chat template");
        return Err(Error::Missing { model, what, expected }.into());
    }
    let mut history: Vec<_> = args.system.iter().map(Message::system).collect();
    let mut output = Output::new();
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    loop {
        if is_terminal {
            output.write("> ")?;
        }
        let Some(line) = read_line()? else {
            return if is_terminal { output.write("\n") } else { Ok(()) };
        };
        if line.trim().is_empty() {
            continue;
        }
        history.push(Message::user(line));
        let text = answer(&engine, &history, args.sampling.options(), &mut output)?;
        history.push(Message::assistant(text));
    }
}

/// Prints an answer as it comes, and returns it: what there is of it, after Ctrl-C.
fn answer(
    engine: &Engine,
    history: &[Message],
    options: GenerateOptions,
    output: &mut Output,
) -> Result<String, CliError> {
    let stream = engine.chat(history, options)?;
    let _guard = interrupt::cancels(stream.cancel_handle());
    let mut text = String::new();
    for event in stream.blocking() {
        if let Event::Text(delta) = event? {
            output.write(&delta.text)?;
            text.push_str(&delta.text);
        }
    }
    output.write("\n")?;
    Ok(text)
}

/// A line without its break; none at the end of input.
fn read_line() -> Result<Option<String>, CliError> {
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned())),
        Err(error) => Err(CliError::Input(error)),
    }
}
