//! Tokens of conversations.

use setun_clock::{Clock, Instant};
use setun_text::{
    ChatTemplate, CivilTime, Interrupt, Message, RenderOptions, TemplateVariables, Tool, ToolChoice,
};
use web_time::{SystemTime, UNIX_EPOCH};

use super::Engine;
use crate::{
    error::Error,
    options::{GenerateOptions, Prompt, ReasoningEffort},
};

/// How the prompt of a request is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Whether special tokens that messages spell are tokens.
    pub(super) parse_special: bool,
    /// Whether it is refused where it is far beyond the context.
    pub(super) must_fit: bool,
    /// Most tokens in place of the context's.
    pub(super) most_tokens: Option<usize>,
    /// The template is stopped then.
    pub(super) deadline: Option<Instant>,
    /// Whether a conversation ends where its last message does.
    pub(super) continues: bool,
    /// Whether the model is to think, and how much.
    pub(super) thinks: Option<bool>,
    pub(super) effort: Option<ReasoningEffort>,
    /// Whether the reasoning of earlier answers is kept.
    pub(super) preserves: Option<bool>,
    /// More variables of the template.
    pub(super) variables: Option<&'a TemplateVariables>,
    /// What the template has as now, in seconds of Unix time.
    pub(super) time: Option<u64>,
    /// What a conversation offers the model.
    pub(super) tools: &'a [Tool],
}

impl<'a> Reading<'a> {
    /// As the options of a request say that has arrived at this time.
    pub(super) fn of(options: &'a GenerateOptions, arrival_time: Instant) -> Self {
        Self {
            parse_special: options.parse_special.unwrap_or_default(),
            must_fit: options.context_overflow.is_none(),
            most_tokens: None,
            deadline: options.timeout.and_then(|time| arrival_time.checked_add(time)),
            continues: options.continue_final_message.unwrap_or_default(),
            thinks: options.thinks(),
            effort: options.reasoning_effort,
            preserves: options.preserve_thinking,
            variables: options.chat_template_kwargs.as_ref(),
            time: options.chat_template_time,
            tools: match options.tool_choice {
                Some(ToolChoice::None) => &[],
                _ => &options.tools,
            },
        }
    }
}

impl Engine {
    /// Tokens that a conversation takes, with what the template puts before the answer, as
    /// [`chat`](Self::chat) reads it with these options: `parse_special`, tools, and what concerns
    /// the template. What is not given is the engine's default.
    ///
    /// # Errors
    ///
    /// If the model has no chat template or tokenizer, one of them fails, or a tool is refused.
    pub fn tokenize_chat(
        &self,
        messages: &[Message],
        options: &GenerateOptions,
    ) -> Result<Vec<u32>, Error> {
        self.tokenize_chat_within(messages, options, None)
    }

    fn tokenize_chat_within(
        &self,
        messages: &[Message],
        options: &GenerateOptions,
        most_tokens: Option<usize>,
    ) -> Result<Vec<u32>, Error> {
        let options = options.clone().or(&self.shared.defaults);
        options.check()?;
        let choice = options.tool_choice.clone().unwrap_or_default();
        Tool::check_all(choice.offered(&options.tools)?)?;
        let reading = Reading::of(&options, self.shared.clock.now());
        self.read_chat(messages, Reading { must_fit: false, most_tokens, ..reading })
    }

    /// Number of tokens that a prompt has in a request with these options.
    ///
    /// # Errors
    ///
    /// If the model lacks what the prompt needs, or the prompt is refused.
    pub fn count_tokens(
        &self,
        prompt: impl Into<Prompt>,
        options: &GenerateOptions,
    ) -> Result<usize, Error> {
        self.count_tokens_within(&prompt.into(), options, None)
    }

    /// As [`count_tokens`](Self::count_tokens). A prompt that has more tokens than `most` by its bytes
    /// alone is refused before it is tokenized.
    ///
    /// # Errors
    ///
    /// The same, and if the prompt is that long.
    pub fn count_tokens_within(
        &self,
        prompt: &Prompt,
        options: &GenerateOptions,
        most: Option<usize>,
    ) -> Result<usize, Error> {
        Ok(match prompt {
            Prompt::Text(text) => self.encode(text, true, most)?.len(),
            Prompt::Tokens(tokens) => tokens.len(),
            Prompt::Chat(messages) => self.tokenize_chat_within(messages, options, most)?.len(),
        })
    }

    /// The same, where the template is stopped at a deadline.
    pub(super) fn read_chat(
        &self,
        messages: &[Message],
        reading: Reading<'_>,
    ) -> Result<Vec<u32>, Error> {
        let Reading { parse_special, tools, .. } = reading;
        let most = self.most_tokens(reading);
        let template = self.shared.template.as_ref().ok_or_else(|| {
            let expected = "a chat_template in tokenizer_config.json, or chat_template.jinja";
            self.missing("chat template", expected)
        })?;
        let tokenizer = self.tokenizer()?;
        let mut prepared = template.prepare_tools(messages, tools)?;
        let mut options = RenderOptions {
            tools: prepared.tools.clone(),
            ..render_options(&reading, template, &self.shared.clock)
        };
        template.check(&prepared.messages, &options)?; // before marks change a role
        if !parse_special && let Some(mark) = prepared.mark(&tokenizer.special_tokens())? {
            options.tools = prepared.tools;
            let text = template.render(&prepared.messages, &options)?;
            if most.is_some() {
                self.check_length(&text.replace(mark, ""), most)?;
            }
            return Ok(tokenizer.encode_marked(&text, mark)?);
        }
        self.encode(&template.render(&prepared.messages, &options)?, false, most)
    }

    /// Most tokens of a prompt that is tokenized at all.
    pub(super) fn most_tokens(&self, reading: Reading<'_>) -> Option<usize> {
        let context = reading.must_fit.then_some(self.shared.context_length);
        reading.most_tokens.or(context)
    }
}

/// Variables of chat templates: whether an answer comes next, and the date (UTC).
fn render_options(reading: &Reading<'_>, template: &ChatTemplate, clock: &Clock) -> RenderOptions {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(reading.time.unwrap_or_else(now)).unwrap_or(0);
    RenderOptions {
        add_generation_prompt: !reading.continues,
        continue_final_message: reading.continues,
        now: Some(CivilTime::from_unix_seconds(seconds)),
        variables: variables(reading, template),
        interrupt: reading.deadline.map(|end| {
            let clock = clock.clone();
            Interrupt::new(move || end <= clock.now())
        }),
        ..RenderOptions::default()
    }
}

/// The variables of a request, and those by which templates know whether and how much to think, and
/// what to keep of it.
fn variables(reading: &Reading<'_>, template: &ChatTemplate) -> TemplateVariables {
    let mut variables = reading.variables.cloned().unwrap_or_default();
    // Templates that can be told to think know no effort of none.
    let is_told = |effort: &ReasoningEffort| {
        *effort == ReasoningEffort::None && template.names("enable_thinking")
    };
    let effort = reading.effort.filter(|effort| !is_told(effort));
    let effort = effort.map(|effort| effort.name().into());
    for (name, value) in [
        ("enable_thinking", reading.thinks.map(Into::into)),
        ("preserve_thinking", reading.preserves.map(Into::into)),
        ("reasoning_effort", effort),
    ] {
        if let Some(value) = value.filter(|_| template.names(name)) {
            variables.entry(name).or_insert(value);
        }
    }
    variables
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests;
