//! `setun chat`: a conversation through the model's own chat template.

use std::sync::Once;

use setun::{
    Done, Engine, EngineError, Error, Event, FinishReason, GenerateOptions, Message, Prompt,
    text::{TemplateVariables, ToolCall, ToolCallDelta},
};

use super::unfinished;
use crate::{
    args::{GenerateArgs, MessageArgs, ToolArgs},
    error::CliError,
    interrupt,
    lines::Lines,
    output::{Output, report},
    source::store,
};

/// Prints the warnings about tools with the first answer alone: all answers have the same.
static WARNED: Once = Once::new();

/// Divisor of the context that gives the positions kept free for an answer.
const ROOM: usize = 4;

/// A model of the catalog for chats.
const CHAT_MODEL: &str = "bitnet-2b-4t";

/// Bytes that a token stands for at most.
const MAX_TOKEN_BYTES: usize = 256;

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
///
/// The model's reasoning is dim on a terminal; where standard output is none, it goes to standard
/// error. --thinking, --reasoning-effort and --max-thinking-tokens limit it. --preserve-thinking keeps
/// that of all earlier answers in the prompt, where the template knows it.
///
/// With --messages a conversation is read whole and answered once; calls are printed and not run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// System message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "messages")]
    system: Option<String>,

    /// More variables of the chat template, such as `{"enable_thinking": false}`
    #[arg(long, value_name = "JSON", value_parser = object)]
    chat_template_kwargs: Option<TemplateVariables>,

    #[command(flatten)]
    messages: MessageArgs,

    #[command(flatten)]
    tools: ToolArgs,

    #[command(flatten)]
    generate: GenerateArgs<true>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let messages = args.messages.read()?; // before the work of loading
    let engine = args.generate.engine(1)?;
    if !engine.has_chat_template() {
        let model = engine.model_name().to_owned();
        return Err(CliError::NoChatTemplate { model, command: suggested_command() });
    }
    let mut options = args.generate.options(&engine)?;
    options.chat_template_kwargs.clone_from(&args.chat_template_kwargs);
    args.tools.add_to(&mut options)?;
    let mut output = Output::new();
    if let Some(messages) = messages {
        let Answer { is_aborted, done, .. } = answer(&engine, &messages, options, &mut output)?;
        return if is_aborted { Err(interrupt::interrupted()) } else { unfinished::check(&done) };
    }
    let mut history = History::new(args.system.as_deref());
    let mut lines = Lines::new();
    while let Some(line) = lines.next("> ", "the message", &mut output)? {
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

/// The command that starts a chat with a model of the catalog.
fn suggested_command() -> String {
    let chat = format!("setun chat --model {CHAT_MODEL}");
    if store().resolve(CHAT_MODEL).is_ok() {
        return chat;
    }
    format!("setun models pull {CHAT_MODEL} && {chat}")
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
        let Answer { text, reasoning, calls, is_whole, is_cut, done, .. } =
            answer(engine, &history.messages, options.clone(), output)?;
        if let Some(reason) = done.as_ref().and_then(unfinished::reason).filter(|_| !is_cut) {
            report(&format!("setun: the answer is unfinished: {reason}\n"));
        }
        if !is_whole || calls.is_empty() {
            history.messages.push(Message::assistant(text).with_reasoning(reasoning));
            return Ok(true);
        }
        let begun = history.messages.len();
        history.messages.push(Message::calls(text, &calls).with_reasoning(reasoning));
        for call in &calls {
            let prompt = format!("result of {}> ", call.name);
            let Some(result) = lines.next(&prompt, "the message", output)? else {
                return Ok(false);
            };
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
        let (mut tokens, mut bound) = count(engine, self.messages.clone(), options)?;
        while let Some(next) = self.next_question(first).filter(|_| tokens + room > context) {
            first = next;
            let rest = [&self.messages[..self.kept], &self.messages[first..]].concat();
            (tokens, bound) = count(engine, rest, options)?;
        }
        if tokens >= context {
            report(&format!(
                "setun: the message is skipped: it has {bound}{tokens} tokens with what stands before \
                 it, the context holds {context} with the answer\n"
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

/// Tokens of a conversation, and whether these are a bound: one that is far longer than the context is
/// not tokenized.
fn count(
    engine: &Engine,
    messages: Vec<Message>,
    options: &GenerateOptions,
) -> Result<(usize, &'static str), Error> {
    let (context, bytes) = (engine.context_length(), messages.iter().map(length).sum::<usize>());
    // Whatever the tokenizer is: no usual vocabulary has longer tokens.
    let least = bytes / MAX_TOKEN_BYTES;
    if least > context {
        return Ok((least, "at least "));
    }
    match engine.count_tokens_within(&Prompt::Chat(messages), options, Some(context)) {
        Ok(tokens) => Ok((tokens, "")),
        Err(EngineError::PromptTooLong { tokens, .. }) => Ok((tokens, "at least ")),
        Err(error) => Err(error.into()),
    }
}

fn length(message: &Message) -> usize {
    message.content.as_deref().map_or(0, str::len)
}

/// What the model said.
#[derive(Default)]
struct Answer {
    text: String,
    /// The reasoning before it.
    reasoning: String,
    calls: Vec<ToolCall>,
    /// Whether it came to its end.
    is_whole: bool,
    /// Whether a signal ended it.
    is_aborted: bool,
    /// Whether its calls were cut off.
    is_cut: bool,
    /// The end of the answer; none while it is generated.
    done: Option<Done>,
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
    WARNED.call_once(|| {
        stream.warnings().iter().for_each(|warning| report(&format!("setun: {warning}\n")));
    });
    let _guard = interrupt::cancels(vec![stream.cancel_handle()]);
    let mut answer = Answer { is_whole: true, ..Answer::default() };
    for event in stream.blocking() {
        match event.or_else(|error| output.fail(error))? {
            Event::Text(delta) => {
                output.reasoning(delta.reasoning.as_deref().unwrap_or_default())?;
                answer.reasoning.extend(delta.reasoning.as_deref());
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
                answer.is_aborted = done.finish_reason == FinishReason::Aborted;
                answer.is_cut = done.finish_reason == FinishReason::Length && !answer.is_whole;
                answer.done = Some(done);
            }
            _ => {}
        }
    }
    output.write("\n")?;
    if answer.is_cut {
        report("setun: the last call is cut: the answer has as many tokens as it may have\n");
    }
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
