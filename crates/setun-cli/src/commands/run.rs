//! `setun run`: a prompt in, its continuation out.

use std::io::{self, IsTerminal, Read};

use setun::{Done, Event, FinishReason};

use crate::{
    args::{self, DeviceArgs, MemoryArgs, ModelArgs, SamplingArgs},
    error::CliError,
    interrupt,
    output::Output,
};

/// Continue a text: prints the generated text only
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The text to continue [default: standard input, without its last line break]
    prompt: Option<String>,

    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// Print the events instead, one JSON object a line
    #[arg(long)]
    json: bool,

    /// Tell on standard error what ran, how fast, and with which seed
    #[arg(long, short)]
    verbose: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let engine = args::engine(&args.model, &args.device, args.memory)?;
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None => read_prompt()?,
    };
    let stream = engine.generate(prompt, args.sampling.options())?;
    let guard = interrupt::cancels(stream.cancel_handle());
    let mut output = Output::new();
    let mut done = None;
    for event in stream.blocking() {
        let event = event?;
        match &event {
            _ if args.json => output.json(&event)?,
            Event::Text(delta) => output.write(&delta.text)?,
            Event::Done(_) => output.write("\n")?,
        }
        if let Event::Done(end) = event {
            done = Some(end);
        }
    }
    drop(guard);
    if let Some(done) = done {
        if args.verbose {
            tell(&done);
        }
        if done.finish_reason == FinishReason::Aborted {
            return Err(CliError::Interrupted);
        }
    }
    Ok(())
}

fn tell(done: &Done) {
    eprintln!(
        "{} on {} ({}), {} tokens, {:.1} tokens/s, first after {:.0} ms, seed {}",
        done.model,
        done.backend,
        done.level,
        done.usage.generated_tokens,
        done.timings.tokens_per_second,
        done.timings.first_token_seconds * 1e3,
        done.seed,
    );
}

fn read_prompt() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        eprintln!("Type the prompt, then Ctrl-D at the start of a line.");
    }
    let mut bytes = vec![];
    io::stdin().read_to_end(&mut bytes).map_err(CliError::Input)?;
    let mut prompt = String::from_utf8(bytes)
        .map_err(|error| CliError::Encoding { offset: error.utf8_error().valid_up_to() })?;
    if prompt.ends_with('\n') {
        prompt.pop();
        if prompt.ends_with('\r') {
            prompt.pop();
        }
    }
    Ok(prompt)
}
