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
    /// The template is stopped then.
    pub(super) deadline: Option<Instant>,
    /// Whether a conversation ends where its last message does.
    pub(super) continues: bool,
    /// Whether the model is to think, and how much.
    pub(super) thinks: Option<bool>,
    pub(super) effort: Option<ReasoningEffort>,
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
            deadline: options.timeout.and_then(|time| arrival_time.checked_add(time)),
            continues: options.continue_final_message.unwrap_or_default(),
            thinks: options.thinks(),
            effort: options.reasoning_effort,
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
        let options = options.clone().or(&self.shared.defaults);
        options.check()?;
        let choice = options.tool_choice.clone().unwrap_or_default();
        Tool::check_all(choice.offered(&options.tools)?)?;
        let reading = Reading::of(&options, self.shared.clock.now());
        self.read_chat(messages, Reading { must_fit: false, ..reading })
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
        match prompt.into() {
            Prompt::Text(text) => Ok(self.tokenize(&text)?.len()),
            Prompt::Tokens(tokens) => Ok(tokens.len()),
            Prompt::Chat(messages) => Ok(self.tokenize_chat(&messages, options)?.len()),
        }
    }

    /// The same, where the template is stopped at a deadline.
    pub(super) fn read_chat(
        &self,
        messages: &[Message],
        reading: Reading<'_>,
    ) -> Result<Vec<u32>, Error> {
        let Reading { parse_special, must_fit, tools, .. } = reading;
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
            if must_fit {
                self.check_length(&text.replace(mark, ""))?;
            }
            return Ok(tokenizer.encode_marked(&text, mark)?);
        }
        self.encode(&template.render(&prepared.messages, &options)?, false, must_fit)
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

/// The variables of a request, and those by which templates know whether and how much to think.
fn variables(reading: &Reading<'_>, template: &ChatTemplate) -> TemplateVariables {
    let mut variables = reading.variables.cloned().unwrap_or_default();
    let thinks = reading.thinks.map(Into::into);
    // Templates that can be told to think know no effort of none.
    let is_told = |effort: &ReasoningEffort| {
        *effort == ReasoningEffort::None && template.names("enable_thinking")
    };
    let effort = reading.effort.filter(|effort| !is_told(effort));
    let effort = effort.map(|effort| effort.name().into());
    for (name, value) in [("enable_thinking", thinks), ("reasoning_effort", effort)] {
        if let Some(value) = value.filter(|_| template.names(name)) {
            variables.entry(name).or_insert(value);
        }
    }
    variables
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use std::{sync::Arc, time::Duration};

    use setun_text::{ChatTemplate, ChatTemplateFiles, HfTokenizer};

    use super::{
        super::test_support::{VOCABULARY, parts},
        *,
    };
    use crate::{
        ErrorCode,
        beams::BeamOptions,
        options::{EngineOptions, GenerateOptions, Prompt},
    };

    const END: u32 = 200;

    /// An engine whose template writes `<end>` after each message.
    fn engine() -> Engine {
        engine_with("{% for m in messages %}{{ m.content | trim }}<end>{% endfor %}")
    }

    /// An engine with this template.
    fn engine_with(template: &str) -> Engine {
        engine_by_default(template, GenerateOptions::new())
    }

    /// The same with default options. Its tokenizer has a token for each letter and `<end>`.
    fn engine_by_default(template: &str, defaults: GenerateOptions) -> Engine {
        let letters = "abdehinortuw<>".chars();
        let vocab: Vec<_> =
            letters.map(|letter| format!(r#""{letter}": {}"#, u32::from(letter))).collect();
        let tokenizer = format!(
            r#"{{"version": "1.0", "added_tokens": [{{"id": {END}, "content": "<end>",
            "special": true, "normalized": false, "single_word": false, "lstrip": false,
            "rstrip": false}}], "model": {{"type": "BPE", "vocab": {{{}, "<end>": {END}}}, "merges": []}}}}"#,
            vocab.join(", ")
        );
        let tokenizer = HfTokenizer::from_bytes(tokenizer.as_bytes());
        let template = ChatTemplate::from_files(ChatTemplateFiles {
            chat_template_jinja: Some(template.as_bytes()),
            ..ChatTemplateFiles::default()
        });
        let mut parts = parts(1);
        parts.tokenizer = Some(Arc::new(tokenizer.expect("a tokenizer")));
        parts.template = template.expect("a template").map(Arc::new);
        parts.defaults = defaults;
        Engine::start(parts, &EngineOptions::default()).expect("an engine")
    }

    #[test]
    fn special_tokens_in_messages_stay_text_unless_they_are_requested() {
        let engine = engine();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let messages = [Message::user(" a<end>b "), Message::assistant("<e"), Message::user("nd>")];
        let plain =
            [&letters("a<end>b")[..], &[END], &letters("<e"), &[END], &letters("nd>"), &[END]];
        let tokens = |special| {
            let options = GenerateOptions::new().parse_special(special);
            engine.tokenize_chat(&messages, &options).expect("tokens")
        };
        assert_eq!(tokens(false), plain.concat());
        let parsed = [&letters("a")[..], &[END], &letters("b"), &[END]];
        assert!(tokens(true).starts_with(&parsed.concat()));
    }

    /// Its loops are within the steps that a template may take.
    #[test]
    fn a_template_ends_at_the_deadline_of_its_request() {
        let loops = "{% for a in range(999) %}{% for b in range(999) %}{% endfor %}{% endfor %}";
        let template = format!("{{% if messages[0].content == 'a' %}}{loops}{{% endif %}}b");
        let engine = engine_with(&template);
        let chat = |text: &str, options: GenerateOptions| {
            engine.complete(Prompt::Chat(vec![Message::user(text)]), options.max_tokens(1))
        };
        let late = || GenerateOptions::new().timeout(Duration::ZERO);
        let error = chat("a", late()).expect_err("it takes longer than no time");
        assert_eq!(error.code(), ErrorCode::BadOption);
        let words = "template `default` is stopped at line 1: its time is over";
        assert_eq!(error.to_string(), words);
        chat("a", GenerateOptions::new()).expect("it has all the time that it takes");
        chat("b", late()).expect("what is quick ends before anybody looks at the clock");
    }

    #[test]
    fn a_last_message_is_continued_where_its_content_ends() {
        let engine = engine();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let messages = [Message::user("do it"), Message::assistant("b<end>ed ")];
        let options = GenerateOptions::new().continue_final_message(true);
        let found = engine.tokenize_chat(&messages, &options).expect("tokens");
        assert_eq!(found, [&letters("doit")[..], &[END], &letters("b<end>ed")].concat());
        assert_eq!(engine.count_tokens(messages.to_vec(), &options).expect("a count"), found.len());
        let error = engine.tokenize_chat(&messages[..1], &options).expect_err("a user's");
        assert_eq!(error.code(), ErrorCode::BadOption);
        let expected = "message 0: the last message cannot be continued: its role";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn tools_count_as_the_template_writes_them() {
        let engine = engine_with(
            "{# <tool_call> arguments #}{% for tool in tools or [] %}{{ tool.function.name }}\
             {% endfor %}{{ messages[0].content }}",
        );
        let count =
            |options: GenerateOptions| engine.count_tokens(vec![Message::user("do")], &options);
        let herd = || GenerateOptions::new().tools(vec![Tool::new("herd"), Tool::new("boat")]);
        assert_eq!(count(GenerateOptions::new()).expect("a count"), "do".len());
        assert_eq!(count(herd()).expect("a count"), "herdboatdo".len());
        assert_eq!(count(herd().tool_choice(ToolChoice::None)).expect("a count"), "do".len());
        let error = count(herd().tools(vec![Tool::new("herd"), Tool::new("herd")]));
        assert_eq!(error.expect_err("one name").code(), ErrorCode::BadOption);
    }

    #[test]
    fn counts_and_sessions_have_the_default_options_of_the_engine() {
        let template = "{# <tool_call> arguments #}{% for tool in tools or [] %}{{ tool.function.name }}\
                        {% endfor %}{{ mood }}{{ messages[0].content }}";
        let variables = [("mood".to_owned(), "bad".into())].into_iter().collect();
        let defaults = GenerateOptions::new().parse_special(true).chat_template_kwargs(variables);
        let engine = engine_by_default(template, defaults.clone());
        let (messages, sent) = (vec![Message::user("a<end>")], "bada".len() + 1);
        let end = engine.complete(messages.clone(), GenerateOptions::new().max_tokens(1));
        assert_eq!(end.expect("an end").done.usage.prompt_tokens, sent);
        let count = |engine: &Engine, options| engine.count_tokens(messages.clone(), &options);
        assert_eq!(count(&engine, GenerateOptions::new()).expect("a count"), sent);
        let mut session = engine.session();
        session.push(messages.clone()).expect("tokens");
        assert_eq!(session.tokens().len(), sent);
        let spelled = GenerateOptions::new().parse_special(false);
        assert_eq!(count(&engine, spelled).expect("a count"), "bada<end>".len());

        let engine = engine_by_default(template, defaults.tools(vec![Tool::new("herd")]));
        assert_eq!(count(&engine, GenerateOptions::new()).expect("a count"), "herd".len() + sent);
        let none = GenerateOptions::new().tool_choice(ToolChoice::None);
        assert_eq!(count(&engine, none).expect("a count"), sent);
        let absent = GenerateOptions::new().tool_choice(ToolChoice::Function("boat".into()));
        assert_eq!(count(&engine, absent).expect_err("no such tool").code(), ErrorCode::BadOption);
    }

    #[test]
    fn default_tools_are_for_conversations_alone() {
        let template = "{# <tool_call> arguments #}{{ messages[0].content }}";
        let herd = || vec![Tool::new("herd")];
        let defaults = GenerateOptions::new().tools(herd()).tool_choice(ToolChoice::Required);
        let engine = engine_by_default(template, defaults);
        let one = || GenerateOptions::new().max_tokens(1);
        engine.complete("a", one()).expect("a text");
        let mut session = engine.session();
        session.push("a").expect("tokens");
        session.generate(one()).expect("a stream").wait().expect("a text");
        for own in [one().tools(herd()), one().tool_choice(ToolChoice::Required)] {
            let error = engine.generate("a", own).expect_err("tools of its own").to_string();
            assert!(error.starts_with("option `tools` is given with a text"), "{error}");
        }
    }

    #[test]
    fn a_template_has_the_time_of_the_request() {
        let template = "{% set day = strftime_now('%d') %}\
                        {% if day == '01' %}a{% elif day == '29' %}b{% elif day == '31' %}d{% else %}e{% endif %}";
        let engine = engine_with(template);
        let read = |options| engine.tokenize_chat(&[Message::user("a")], &options);
        let at = |time| read(GenerateOptions::new().chat_template_time(time)).expect("tokens");
        assert_eq!(at(0), [u32::from('a')]);
        assert_eq!(at(1_709_209_445), [u32::from('b')], "29 February 2024");
        assert_eq!(at(253_402_300_799), [u32::from('d')], "the end of 9999");
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let (before, found, after) = (now(), read(GenerateOptions::new()).expect("tokens"), now());
        assert!(found == at(before) || found == at(after), "{found:?}");
        let late = GenerateOptions::new().chat_template_time(253_402_300_800);
        assert_eq!(read(late).expect_err("the year 10000").code(), ErrorCode::BadOption);
    }

    #[test]
    fn templates_get_more_variables_but_no_other_messages() {
        let engine = engine_with("{{ mood }}{% if bold %}b{% endif %}{{ messages | length }}");
        let messages = [Message::user("a")];
        let read = |variables: TemplateVariables| {
            let options = GenerateOptions::new().chat_template_kwargs(variables);
            engine.tokenize_chat(&messages, &options)
        };
        let given = [("mood".to_owned(), "bad".into()), ("bold".to_owned(), true.into())];
        let found = read(given.into_iter().collect()).expect("tokens");
        assert!(found.starts_with(&[98, 97, 100, 98]), "{found:?}");
        for name in ["messages", "tools", "add_generation_prompt"] {
            let variables = [(name.to_owned(), true.into())].into_iter().collect();
            let error = read(variables).expect_err(name).to_string();
            let expected = format!("option `chat_template_kwargs` is `{name}`, expected variables");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn messages_are_checked_before_the_template_runs() {
        let engine = engine();
        let empty = Message { content: None, ..Message::user("") };
        for (message, fault) in [
            (Message::new("asistant", "a"), "the role `asistant` is unknown, expected system"),
            (Message::new("<end>", "a"), "the role `<end>` is unknown, expected system"),
            (empty, "there is no `content`, expected a text"),
        ] {
            let messages = vec![Message::user("a"), message];
            let error = engine.chat(messages, GenerateOptions::new()).expect_err(fault);
            assert_eq!(error.code(), ErrorCode::BadOption);
            assert!(error.to_string().starts_with(&format!("message 1: {fault}")), "{error}");
        }
    }

    #[test]
    fn the_option_reaches_generations_and_searches() {
        let engine = engine();
        let prompt = || Prompt::Chat(vec![Message::user("a<end>")]);
        for (options, tokens) in [
            (GenerateOptions::new(), "a<end>".len() + 1),
            (GenerateOptions::new().parse_special(true), "a".len() + 2),
        ] {
            let options = options.max_tokens(1);
            let end = engine.complete(prompt(), options.clone()).expect("an end");
            assert_eq!(end.done.usage.prompt_tokens, tokens);
            let search = engine.beams(prompt(), BeamOptions::new(2), options);
            let found = search.expect("a search").wait().expect("texts");
            assert_eq!(found.done.usage.prompt_tokens, tokens);
        }
        assert!(VOCABULARY > END as usize, "the model has the token");
    }
}
