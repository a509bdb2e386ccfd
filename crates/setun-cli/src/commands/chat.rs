//! `setun chat`: a conversation through the model's own chat template.

use std::io::{self, BufRead, IsTerminal, Read, StdinLock};

use setun::{
    Engine, EngineError, Error, Event, FinishReason, GenerateOptions, Message,
    text::{TemplateVariables, ToolCall, ToolCallDelta},
};

use crate::{
    args::{GenerateArgs, ToolArgs},
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
/// When a conversation exceeds the context, its oldest questions and answers are dropped, until
/// --max-tokens or a quarter of the context is free for the answer. The system message stays. A
/// message that is longer than the context, or is not UTF-8, is skipped. Standard error reports
/// each.
///
/// A special token that a message spells stays text, unless --parse-special is given.
///
/// With --tools the model may call functions. Each call is a line, `call NAME ARGUMENTS`; the next
/// line of input is its result, which may be empty. Calls of one answer get their results in order.
/// After the last result the model answers again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// System message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,

    /// More variables of the chat template, such as `{"enable_thinking": false}`
    #[arg(long, value_name = "JSON", value_parser = object)]
    chat_template_kwargs: Option<TemplateVariables>,

    #[command(flatten)]
    tools: ToolArgs,

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
    args.tools.add_to(&mut options)?;
    let mut history = History::new(args.system.as_deref());
    let mut lines = Lines::new();
    let mut output = Output::new();
    while let Some(line) = lines.next("> ", &mut output)? {
        if line.trim().is_empty() {
            continue;
        }
        let begun = history.messages.len();
        history.messages.push(Message::user(line));
        if !history.make_room(&engine, &options)? {
            history.messages.truncate(begun);
        } else if !converse(&engine, &mut history, options.clone(), &mut lines, &mut output)? {
            break;
        }
    }
    if lines.is_terminal { output.write("\n") } else { Ok(()) }
}

/// Answers the last message, with the calls that the model makes before. False at the end of
/// input.
fn converse(
    engine: &Engine,
    history: &mut History,
    mut options: GenerateOptions,
    lines: &mut Lines,
    output: &mut Output,
) -> Result<bool, CliError> {
    loop {
        let Answer { text, calls, is_whole } =
            answer(engine, &history.messages, options.clone(), output)?;
        if !is_whole || calls.is_empty() {
            history.messages.push(Message::assistant(text));
            return Ok(true);
        }
        let begun = history.messages.len();
        history.messages.push(Message::calls(text, &calls));
        for call in &calls {
            let prompt = format!("result of {}> ", call.name);
            let Some(result) = lines.next(&prompt, output)? else { return Ok(false) };
            history.messages.push(Message::tool(call, result));
        }
        if !history.make_room(engine, &options)? {
            history.messages.truncate(begun);
            return Ok(true);
        }
        // A choice that was forced again would never come to an answer.
        options.tool_choice = options.tool_choice.filter(|choice| !choice.begins_with_call());
    }
}

/// Standard input, line by line.
struct Lines {
    input: StdinLock<'static>,
    is_terminal: bool,
}

impl Lines {
    fn new() -> Self {
        let input = io::stdin().lock();
        let is_terminal = input.is_terminal() && io::stdout().is_terminal();
        Self { input, is_terminal }
    }

    /// The next line that is text, which a terminal is asked for; none at the end.
    fn next(&mut self, prompt: &str, output: &mut Output) -> Result<Option<String>, CliError> {
        loop {
            if self.is_terminal {
                output.write(prompt)?;
            }
            match read_line(&mut self.input).map_err(CliError::Input)? {
                None => return Ok(None),
                Some(Ok(line)) => return Ok(Some(line)),
                Some(Err(reason)) => {
                    report(&format!("setun: the message is skipped: {reason}\n"));
                }
            }
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

    /// Place of the second question from a place on, if there is one.
    fn next_question(&self, first: usize) -> Option<usize> {
        let is_question = |place: &usize| self.messages[*place].role == "user";
        (first + 1..self.messages.len()).find(is_question)
    }

    /// Forgets the oldest questions and answers until there is room for another answer, and
    /// says so. False where the last message does not fit even alone.
    fn make_room(&mut self, engine: &Engine, options: &GenerateOptions) -> Result<bool, Error> {
        let context = engine.context_length();
        let room = (context / ROOM).min(options.max_tokens.unwrap_or(usize::MAX)).max(1);
        let mut first = self.kept;
        let mut tokens = engine.tokenize_chat(&self.messages, options)?.len();
        while let Some(next) = self.next_question(first).filter(|_| tokens + room > context) {
            first = next;
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

/// What the model said.
struct Answer {
    text: String,
    calls: Vec<ToolCall>,
    /// Whether it came to its end.
    is_whole: bool,
}

/// Prints an answer as it comes, each call on a line, and returns it: what there is of it, after
/// Ctrl-C. Another signal ends the conversation.
fn answer(
    engine: &Engine,
    history: &[Message],
    options: GenerateOptions,
    output: &mut Output,
) -> Result<Answer, CliError> {
    let stream = engine.chat(history, options)?;
    let _guard = interrupt::cancels(vec![stream.cancel_handle()]);
    let mut answer = Answer { text: String::new(), calls: vec![], is_whole: true };
    for event in stream.blocking() {
        match event.or_else(|error| output.fail(error))? {
            Event::Text(delta) => {
                output.write(&delta.text)?;
                answer.text.push_str(&delta.text);
                for piece in &delta.tool_calls {
                    write_piece(piece, answer.text.is_empty(), output)?;
                    ToolCall::join(&mut answer.calls, piece);
                }
            }
            Event::Done(done) => {
                answer.is_whole =
                    answer.calls.is_empty() || done.finish_reason == FinishReason::ToolCalls;
            }
            _ => {}
        }
    }
    output.write("\n")?;
    if interrupt::is_terminated() { Err(interrupt::interrupted()) } else { Ok(answer) }
}

/// Prints what comes next of a call.
fn write_piece(
    piece: &ToolCallDelta,
    is_first_line: bool,
    output: &mut Output,
) -> Result<(), CliError> {
    if let Some(name) = &piece.name {
        let line = if piece.index == 0 && is_first_line { "" } else { "\n" };
        output.write(&format!("{line}call {name} "))?;
    }
    output.write(&piece.arguments)
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
