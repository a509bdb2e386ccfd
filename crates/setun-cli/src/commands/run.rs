//! `setun run`: text generation from one prompt.

mod beams;

use std::iter;

use futures::stream::{StreamExt, select_all};
use serde::Serialize;
use setun::{Done, EngineError, Event, FinishReason, GenerationStream};

use super::{profile::TimingArgs, unfinished};
use crate::{
    args::{BeamArgs, GenerateArgs, TemplateArgs},
    error::CliError,
    input, interrupt,
    output::{Output, counted, report},
};

/// Fewest tokens that a rate is reported of: fewer say nothing about speed.
const MIN_RATE_TOKENS: usize = 8;

/// Most texts that can be requested.
const MAX_SAMPLES: i64 = 1024;

/// Generate text from a prompt
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prompt [default: standard input, without its last line break]
    prompt: Option<String>,

    #[command(flatten)]
    generate: GenerateArgs<false>,

    /// Print events, one JSON object per line
    #[arg(long)]
    json: bool,

    /// Number of texts to generate from the prompt, which is computed once. Standard error has the
    /// number of each; with --json events have an `index`, from 0
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_SAMPLES))]
    n: Option<u16>,

    #[command(flatten)]
    timing: TimingArgs,

    /// Print model, device, speed and seed to standard error
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    template: TemplateArgs,

    #[command(flatten)]
    beams: BeamArgs,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let BeamArgs(beams) = args.beams;
    let num_beams = beams.map(|beams| beams.num_beams);
    let count = args.n.map(usize::from).or(num_beams).unwrap_or(1);
    args.timing.check()?;
    let given = args.template.prompt()?.or_else(|| args.prompt.clone());
    let engine = args.generate.engine(count)?;
    let prompt = given.map_or_else(input::prompt, Ok)?;
    args.timing.begin(&engine)?;
    let options = args.generate.options(&engine)?;
    let ends = match beams {
        Some(beams) => vec![beams::run(engine.beams(prompt, beams, options)?, args.json)?],
        None => print_samples(args, engine.generate_many(prompt, options, count)?)?,
    };
    args.timing.end(&engine)?;
    if args.verbose {
        for done in &ends {
            report(&summary(done));
        }
    }
    if ends.iter().any(|done| done.finish_reason == FinishReason::Aborted) {
        return Err(interrupt::interrupted());
    }
    unfinished::check(&ends)
}

/// Prints streams to their ends.
fn print_samples(args: &Args, streams: Vec<GenerationStream>) -> Result<Vec<Done>, CliError> {
    let _guard = interrupt::cancels(streams.iter().map(GenerationStream::cancel_handle).collect());
    if args.json { print_events(args, streams) } else { print_texts(streams) }
}

/// An event of one of several texts.
#[derive(Serialize)]
struct Numbered<'a> {
    #[serde(flatten)]
    event: &'a Event,
    index: usize,
}

/// Prints events as they come.
fn print_events(args: &Args, streams: Vec<GenerationStream>) -> Result<Vec<Done>, CliError> {
    let (mut output, mut ends) = (Output::new(), vec![]);
    for (index, event) in together(streams) {
        let event = event.or_else(|error| output.fail(error))?;
        match args.n {
            Some(_) => output.json(&Numbered { event: &event, index })?,
            None => output.json(&event)?,
        }
        if let Event::Done(done) = event {
            ends.push(done);
        }
    }
    Ok(ends)
}

/// Prints one text as it comes, and each of the others once those before it have ended.
fn print_texts(streams: Vec<GenerationStream>) -> Result<Vec<Done>, CliError> {
    let (mut output, mut ends) = (Output::new(), vec![]);
    let count = streams.len();
    let mut waiting: Vec<Vec<Result<Event, EngineError>>> = (0..count).map(|_| vec![]).collect();
    heading(0, count);
    for (index, event) in together(streams) {
        waiting[index].push(event);
        while let Some(events) = waiting.get_mut(ends.len()).filter(|events| !events.is_empty()) {
            for event in std::mem::take(events) {
                match event.or_else(|error| output.fail(error))? {
                    Event::Progress(_) => {}
                    Event::Prompt(prompt) => {
                        prompt.tokens.iter().try_for_each(|delta| output.write(&delta.text))?;
                    }
                    Event::Text(delta) => output.write(&delta.text)?,
                    Event::Done(done) => {
                        output.write("\n")?;
                        ends.push(done);
                        heading(ends.len(), count);
                    }
                }
            }
        }
    }
    Ok(ends)
}

/// Names the text that comes next, where there are several.
fn heading(index: usize, count: usize) {
    if count > 1 && index < count {
        report(&format!("sample {} of {count}:\n", index + 1));
    }
}

/// The events of all streams as they come, each with the number of its stream from 0 on.
fn together(
    streams: Vec<GenerationStream>,
) -> impl Iterator<Item = (usize, Result<Event, EngineError>)> {
    let numbered =
        |(index, stream): (usize, GenerationStream)| stream.map(move |event| (index, event));
    let mut all = select_all(streams.into_iter().enumerate().map(numbered));
    iter::from_fn(move || pollster::block_on(all.next()))
}

fn summary(done: &Done) -> String {
    let tokens = done.usage.completion_tokens;
    let rate = if tokens < MIN_RATE_TOKENS {
        String::new()
    } else {
        format!(", {:.1} tokens/s", done.timings.tokens_per_second)
    };
    format!(
        "{} on {} ({}), {}{rate}, first after {:.0} ms, seed {}\n",
        done.model,
        done.backend,
        done.level,
        counted(tokens, "token"),
        done.timings.first_token_seconds * 1e3,
        done.seed,
    )
}
