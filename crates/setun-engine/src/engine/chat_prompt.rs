//! Tokens of conversations.

use setun_text::{CivilTime, Interrupt, Message, RenderOptions, Tool};
use web_time::{Instant, SystemTime, UNIX_EPOCH};

use super::Engine;
use crate::{error::Error, options::GenerateOptions};

/// How the prompt of a request is read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading<'a> {
    /// Whether special tokens that messages spell are tokens.
    pub(super) parse_special: bool,
    /// Whether it is refused where it is far beyond the context.
    pub(super) must_fit: bool,
    /// The template is stopped then.
    pub(super) deadline: Option<Instant>,
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
            tools: &options.tools,
        }
    }
}

impl Engine {
    /// Tokens that a conversation takes, with what the template puts before the answer. A special
    /// token that a message spells stays text, unless `parse_special` says otherwise.
    ///
    /// # Errors
    ///
    /// If the model has no chat template or tokenizer, or one of them fails.
    pub fn tokenize_chat(
        &self,
        messages: &[Message],
        parse_special: bool,
    ) -> Result<Vec<u32>, Error> {
        self.tokenize_tools(messages, &[], parse_special)
    }

    /// The same of a conversation that offers the model tools.
    ///
    /// # Errors
    ///
    /// As [`tokenize_chat`](Self::tokenize_chat).
    pub fn tokenize_tools(
        &self,
        messages: &[Message],
        tools: &[Tool],
        parse_special: bool,
    ) -> Result<Vec<u32>, Error> {
        self.read_chat(messages, Reading { parse_special, tools, ..Reading::default() })
    }

    /// The same, where the template is stopped at a deadline.
    pub(super) fn read_chat(
        &self,
        messages: &[Message],
        reading: Reading<'_>,
    ) -> Result<Vec<u32>, Error> {
        let Reading { parse_special, must_fit, deadline, tools } = reading;
        let template = self.shared.template.as_ref().ok_or_else(|| {
            let expected = "a chat_template in tokenizer_config.json, or chat_template.jinja";
            self.missing("chat template", expected)
        })?;
        let tokenizer = self.tokenizer()?;
        let mut prepared = template.prepare_tools(messages, tools)?;
        let mut options =
            RenderOptions { tools: prepared.tools.clone(), ..render_options(deadline) };
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

/// Variables of chat templates: the answer comes next, and today's date (UTC).
fn render_options(deadline: Option<Instant>) -> RenderOptions {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(elapsed.as_secs()).unwrap_or(0);
    RenderOptions {
        add_generation_prompt: true,
        now: Some(CivilTime::from_unix_seconds(seconds)),
        interrupt: deadline.map(|end| Interrupt::new(move || end <= Instant::now())),
        ..RenderOptions::default()
    }
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

    /// An engine whose tokenizer has a token for each letter and `<end>`.
    fn engine_with(template: &str) -> Engine {
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
        Engine::start(parts, &EngineOptions::default()).expect("an engine")
    }

    #[test]
    fn special_tokens_in_messages_stay_text_unless_they_are_requested() {
        let engine = engine();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let messages = [Message::user(" a<end>b "), Message::assistant("<e"), Message::user("nd>")];
        let plain =
            [&letters("a<end>b")[..], &[END], &letters("<e"), &[END], &letters("nd>"), &[END]];
        let tokens = |special| engine.tokenize_chat(&messages, special).expect("tokens");
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
    fn messages_are_checked_before_the_template_runs() {
        let engine = engine();
        let empty = Message { content: None, ..Message::assistant("") };
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
