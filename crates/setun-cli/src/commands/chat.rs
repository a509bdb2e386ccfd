//! `setun chat`: a conversation through the model's own chat template.

use std::io::{self, IsTerminal};

use setun::{Engine, EngineError, Error, Event, GenerateOptions, Message};

use crate::{
    args::GenerateArgs,
    error::CliError,
    interrupt,
    output::{Output, report},
};

/// Divisor of the context that gives the positions kept free for an answer.
const ROOM: usize = 4;

/// Chat with a model through its chat template
///
/// Each line is a message. Ctrl-C stops an answer; at the prompt it ends the conversation, as does
/// the end of input.
///
/// When a conversation exceeds the context, its oldest messages are dropped, two at a time, until
/// --max-tokens or a quarter of the context is free for the answer. The system message stays. A
/// message that is longer than the context is skipped. Standard error reports both.
///
/// A special token that a message spells stays text, unless --parse-special is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// System message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,

    #[command(flatten)]
    generate: GenerateArgs<true>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let engine = args.generate.engine(1)?;
    if !engine.has_chat_template() {
        let expected = "a chat_template in tokenizer_config.json, or chat_template.jinja";
        let (model, what) = (engine.model_name().to_owned(), "chat template");
        return Err(EngineError::Missing { model, what, expected }.into());
    }
    let options = args.generate.options(&engine)?;
    let mut history = History::new(args.system.as_deref());
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
        history.messages.push(Message::user(line));
        if history.make_room(&engine, &options)? {
            let text = answer(&engine, &history.messages, options.clone(), &mut output)?;
            history.messages.push(Message::assistant(text));
        } else {
            history.messages.pop();
        }
    }
}

/// The part of the conversation that the model gets.
struct History {
    messages: Vec<Message>,
    kept: usize, // messages at the start that are never forgotten
}

impl History {
    fn new(system: Option<&str>) -> Self {
        let messages: Vec<_> = system.into_iter().map(Message::system).collect();
        Self { kept: messages.len(), messages }
    }

    /// Forgets the oldest questions and answers until there is room for another answer, and
    /// says so. False where the last message does not fit even alone.
    fn make_room(&mut self, engine: &Engine, options: &GenerateOptions) -> Result<bool, Error> {
        let context = engine.context_length();
        let room = (context / ROOM).min(options.max_tokens.unwrap_or(usize::MAX)).max(1);
        let special = options.parse_special.unwrap_or_default();
        let mut first = self.kept;
        let mut tokens = engine.tokenize_chat(&self.messages, special)?.len();
        while tokens + room > context && first + 2 < self.messages.len() {
            first += 2;
            let rest = [&self.messages[..self.kept], &self.messages[first..]].concat();
            tokens = engine.tokenize_chat(&rest, special)?.len();
        }
        if tokens >= context {
            report(&format!(
                "setun: the message is skipped: it has {tokens} tokens with what stands before it, \
                 the context holds {context} with the answer\n"
            ));
            return Ok(false);
        }
        let forgotten = self.messages.drain(self.kept..first).count();
        if forgotten > 0 {
            report(&format!(
                "setun: the conversation outgrew the context of {context} tokens: its oldest \
                 {forgotten} messages are forgotten\n"
            ));
        }
        Ok(true)
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
    let _guard = interrupt::cancels(vec![stream.cancel_handle()]);
    let mut text = String::new();
    for event in stream.blocking() {
        if let Event::Text(delta) = event.or_else(|error| output.fail(error))? {
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
