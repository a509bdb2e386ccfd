//! `setun chat`: a conversation through the model's own chat template.

use std::io::{self, BufRead, IsTerminal, Read};

use setun::{Engine, EngineError, Error, Event, GenerateOptions, Message, text::TemplateVariables};

use crate::{
    args::GenerateArgs,
    error::CliError,
    interrupt,
    output::{Output, report},
};

/// Divisor of the context that gives the positions kept free for an answer.
const ROOM: usize = 4;

/// Most bytes of a message: more than any context holds.
const MAX_LINE: u64 = 1 << 24;

/// Chat with a model through its chat template
///
/// Each line is a message. Ctrl-C stops an answer; at the prompt it ends the conversation, as does
/// the end of input.
///
/// When a conversation exceeds the context, its oldest messages are dropped, two at a time, until
/// --max-tokens or a quarter of the context is free for the answer. The system message stays. A
/// message that is longer than the context, or is not UTF-8, is skipped. Standard error reports
/// each.
///
/// A special token that a message spells stays text, unless --parse-special is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// System message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,

    /// More variables of the chat template, such as `{"enable_thinking": false}`
    #[arg(long, value_name = "JSON", value_parser = object)]
    chat_template_kwargs: Option<TemplateVariables>,

    #[command(flatten)]
    generate: GenerateArgs<true>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let engine = args.generate.engine(1)?;
    if !engine.has_chat_template() {
        let expected = "a chat_template in tokenizer_config.json, or chat_template.jinja; \
            a model for chats: setun models pull bitnet-2b-4t; more: setun models search chat";
        let (model, what) = (engine.model_name().to_owned(), "chat template");
        return Err(EngineError::Missing { model, what, expected }.into());
    }
    let mut options = args.generate.options(&engine)?;
    options.chat_template_kwargs.clone_from(&args.chat_template_kwargs);
    let mut history = History::new(args.system.as_deref());
    let mut output = Output::new();
    let mut input = io::stdin().lock();
    let is_terminal = input.is_terminal() && io::stdout().is_terminal();
    loop {
        if is_terminal {
            output.write("> ")?;
        }
        let line = match read_line(&mut input).map_err(CliError::Input)? {
            None => return if is_terminal { output.write("\n") } else { Ok(()) },
            Some(Ok(line)) if line.trim().is_empty() => continue,
            Some(Ok(line)) => line,
            Some(Err(reason)) => {
                report(&format!("setun: the message is skipped: {reason}\n"));
                continue;
            }
        };
        history.messages.push(Message::user(line));
        if history.make_room(&engine, &options)? {
            let text = answer(&engine, &history.messages, options.clone(), &mut output)?;
            history.messages.push(Message::assistant(text));
        } else {
            history.messages.pop();
        }
    }
}

fn object(text: &str) -> Result<TemplateVariables, String> {
    serde_json::from_str(text).map_err(|error| format!("expected a JSON object: {error}"))
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
        let mut first = self.kept;
        let mut tokens = engine.tokenize_chat(&self.messages, options)?.len();
        while tokens + room > context && first + 2 < self.messages.len() {
            first += 2;
            let rest = [&self.messages[..self.kept], &self.messages[first..]].concat();
            tokens = engine.tokenize_chat(&rest, options)?.len();
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

/// Prints an answer as it comes, and returns it: what there is of it, after Ctrl-C. Another signal
/// ends the conversation.
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
    if interrupt::is_terminated() { Err(interrupt::interrupted()) } else { Ok(text) }
}

/// A line without its break, or why it is no message; none at the end of input.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = vec![];
    let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 > MAX_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(Some(Err(format!("it has more than {MAX_LINE} bytes"))));
    }
    let line = String::from_utf8(line).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        format!("it is not UTF-8: byte {offset} starts no character")
    });
    Ok(Some(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_message_is_left_behind_and_the_next_is_read() {
        let most = usize::try_from(MAX_LINE).expect("a small number");
        let [whole, longer] = [most, most + 1].map(|length| "a".repeat(length));
        let text = [b"\xc3\xa9\r\n\nab\xff\n", whole.as_bytes(), b"\n", longer.as_bytes()];
        let text = [&text.concat(), &b"\nlast"[..]].concat();
        let mut input = &text[..];
        let mut next = || read_line(&mut input).expect("memory");
        assert_eq!(next(), Some(Ok("é".into())));
        assert_eq!(next(), Some(Ok(String::new())));
        let reason = "it is not UTF-8: byte 2 starts no character";
        assert_eq!(next(), Some(Err(reason.into())));
        assert!(next() == Some(Ok(whole)), "as many bytes as may be");
        assert_eq!(next(), Some(Err("it has more than 16777216 bytes".into())));
        assert_eq!(next(), Some(Ok("last".into())));
        assert_eq!(next(), None);
    }
}
