//! `setun run`: a prompt in, its continuation out.

use std::io::{self, IsTerminal};

use setun::{Done, Event, FinishReason};

use crate::{
    args::GenerateArgs,
    error::CliError,
    input, interrupt,
    output::{Output, tell},
};

/// Continue a text: prints the generated text only
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The text to continue [default: standard input, without its last line break]
    prompt: Option<String>,

    #[command(flatten)]
    generate: GenerateArgs,

    /// Print the events instead, one JSON object a line
    #[arg(long)]
    json: bool,

    /// Tell on standard error what ran, how fast, and with which seed
    #[arg(long, short)]
    verbose: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let engine = args.generate.engine()?;
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None => read_prompt()?,
    };
    let stream = engine.generate(prompt, args.generate.options(&engine)?)?;
    let guard = interrupt::cancels(stream.cancel_handle());
    let mut output = Output::new();
    let mut done = None;
    for event in stream.blocking() {
        let event = event.or_else(|error| output.fail(error))?;
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
            tell(&summary(&done));
        }
        if done.finish_reason == FinishReason::Aborted {
            return Err(CliError::Interrupted);
        }
    }
    Ok(())
}

fn summary(done: &Done) -> String {
    format!(
        "{} on {} ({}), {} tokens, {:.1} tokens/s, first after {:.0} ms, seed {}\n",
        done.model,
        done.backend,
        done.level,
        done.usage.generated_tokens,
        done.timings.tokens_per_second,
        done.timings.first_token_seconds * 1e3,
        done.seed,
    )
}

fn read_prompt() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        tell("Type the prompt, then Ctrl-D at the start of a line.\n");
    }
    let mut prompt = input::standard_input()?;
    if prompt.ends_with('\n') {
        prompt.pop();
        if prompt.ends_with('\r') {
            prompt.pop();
        }
    }
    Ok(prompt)
}
