//! Prompts of an engine with templates of a few words.

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
    let plain = [&letters("a<end>b")[..], &[END], &letters("<e"), &[END], &letters("nd>"), &[END]];
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
    let count = |options: GenerateOptions| engine.count_tokens(vec![Message::user("do")], &options);
    let herd = || GenerateOptions::new().tools(vec![Tool::new("herd"), Tool::new("boat")]);
    assert_eq!(count(GenerateOptions::new()).expect("a count"), "do".len());
    assert_eq!(count(herd()).expect("a count"), "herdboatdo".len());
    assert_eq!(count(herd().tool_choice(ToolChoice::None)).expect("a count"), "do".len());
    let within = |text: &str, most| {
        engine.count_tokens_within(&Prompt::Text(text.into()), &GenerateOptions::new(), most)
    };
    assert_eq!(within("dodo", Some(3)).expect("no bound of bytes is known"), 4);
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

#[test]
fn messages_of_a_session_wait_for_the_user_where_the_template_wants_one() {
    // As Llama 3 with tools and Qwen 3.5 have it.
    let engine = engine_with(
        "{% for m in messages if m.role == 'user' %}{{ m.content }}{% else %}\
         {{ raise_exception('no user') }}{% endfor %}{{ messages[0].content }}",
    );
    let mut session = engine.session();
    session.push(vec![Message::system("he")]).expect("it waits");
    assert_eq!(session.tokens(), [0_u32; 0]);
    session.push(vec![Message::assistant("no")]).expect("it waits, too");
    let waits = |result: Result<(), Error>| matches!(result, Err(Error::WaitingMessages));
    assert!(waits(session.push("a")) && waits(session.push(vec![97])));
    assert!(waits(session.generate(GenerateOptions::new()).map(drop)));
    assert!(waits(pollster::block_on(session.save()).map(drop)));
    let mut fork = session.clone();
    fork.push(vec![Message::user("we")]).expect("tokens");
    let sent = [Message::system("he"), Message::assistant("no"), Message::user("we")];
    let expected = engine.tokenize_chat(&sent, &GenerateOptions::new()).expect("tokens");
    assert_eq!(fork.tokens(), expected);
    fork.push("a").expect("tokens");
    assert_eq!(fork.tokens().len(), expected.len() + 1);
    // Messages that would be refused with one of the user as well are refused at once.
    let engine = engine_with("{{ raise_exception('never') }}");
    let refused = engine.session().push(vec![Message::system("he")]).expect_err("refused");
    assert!(refused.to_string().contains("never"), "{refused}");
    let mut session = engine.session();
    assert!(session.push_complete(vec![Message::system("he")]).is_err());
}

/// As Qwen 3.8 has it.
#[test]
fn an_effort_that_a_template_refuses_is_told_in_its_words() {
    let engine = engine_with(
        "{% if reasoning_effort|default('xhigh') not in ['xhigh', 'medium', 'low'] %}\
         {{ raise_exception('There is no effort ' ~ reasoning_effort ~ ', but xhigh, medium and low.') }}\
         {% endif %}{% if reasoning_effort|default('xhigh') != 'medium' %}{{ 'tu' if \
         reasoning_effort == 'low' else 'nu' }}{% endif %}{{ messages[0].content }}\
         {# enable_thinking #}",
    );
    let messages = || vec![Message::user("he")];
    let with = |effort| GenerateOptions::new().reasoning_effort(effort).max_tokens(1);
    let read = |options| {
        let tokens = engine.tokenize_chat(&messages(), &options).expect("tokens");
        engine.detokenize(&tokens).expect("a text").replace(' ', "")
    };
    assert_eq!(read(GenerateOptions::new()), "nuhe");
    // It is told by the other variable that the model is not to think.
    assert_eq!(read(with(ReasoningEffort::None)), "nuhe");
    for effort in [ReasoningEffort::Minimal, ReasoningEffort::High, ReasoningEffort::Max] {
        let error = engine.chat(messages(), with(effort)).expect_err("at once");
        assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
        let words = format!("There is no effort {}, but xhigh, medium and low.", effort.name());
        assert!(error.to_string().contains(&words), "{error}");
    }
    for (effort, prompt) in [
        (ReasoningEffort::Xhigh, "nuhe"),
        (ReasoningEffort::Medium, "he"),
        (ReasoningEffort::Low, "tuhe"),
    ] {
        assert_eq!(read(with(effort)), prompt);
        let answer = engine.chat(messages(), with(effort)).expect("a stream").wait();
        assert_eq!(answer.expect("an answer").tokens.len(), 1);
    }
}

#[test]
fn going_back_drops_messages_that_wait() {
    let engine = engine_with(
        "{% if messages | length == 1 and messages[0].role == 'system' %}\
         {{ raise_exception('no user') }}{% endif %}{{ messages[0].content }}",
    );
    let mut session = engine.session();
    session.push("ab").expect("tokens");
    session.push(vec![Message::system("he")]).expect("it waits");
    session.truncate(2);
    assert!(session.push("a").is_err(), "nothing was dropped");
    session.truncate(1);
    session.push("d").expect("tokens");
    assert_eq!(session.tokens(), ["a", "d"].map(|letter| u32::from(letter.as_bytes()[0])));
}
