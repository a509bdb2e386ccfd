//! The dialect of chat templates, their variables and their errors.

use serde_json::json;

use super::*;

fn template(chat_template: &serde_json::Value) -> Result<ChatTemplate, TextError> {
    let config = json!({ "chat_template": chat_template, "bos_token": "<s>" }).to_string();
    let files = ChatTemplateFiles {
        tokenizer_config: Some(config.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    ChatTemplate::from_files(files).map(|found| found.expect("there is a template"))
}

fn render(source: &str, options: &RenderOptions) -> Result<String, TextError> {
    template(&json!(source))?.render(&[Message::user("hello"), Message::assistant("hi")], options)
}

fn plain(source: &str) -> Result<String, TextError> {
    render(source, &RenderOptions::default())
}

#[test]
fn blocks_swallow_their_line_and_loops_can_be_left() {
    let source = "{% for m in messages %}\n  {% if loop.index0 == 1 %}\n{% break %}\n  {% endif %}\n{{ m.role }}\n{% endfor %}\nend\n";
    assert_eq!(plain(source).expect("it renders"), "user\nend");
}

#[test]
fn generation_tags_only_open_a_scope() {
    let source =
        "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ bos_token }}{% endgeneration %}{{ x }}";
    assert_eq!(plain(source).expect("it renders"), "<s>1");
}

/// Line ends are those of Jinja wherever a template comes from.
#[test]
fn carriage_returns_end_lines_in_every_file() {
    let source = "{% for m in messages %}\r\n<{{ m.role }}>\r{{ m.content }}\r\n{% endfor %}\r\n{{ '\r\n' }}\r\n";
    let expected = "<user>\nc\r\nd\n\n";
    let json = json!({ "chat_template": source }).to_string();
    let config = |bytes| ChatTemplateFiles { tokenizer_config: Some(bytes), ..Default::default() };
    let jinja =
        |bytes| ChatTemplateFiles { chat_template_jinja: Some(bytes), ..Default::default() };
    let old = |bytes| ChatTemplateFiles { chat_template_json: Some(bytes), ..Default::default() };
    let marked = format!("\u{feff}{json}");
    for files in [
        config(json.as_bytes()),
        config(marked.as_bytes()),
        jinja(source.as_bytes()),
        old(json.as_bytes()),
        old(marked.as_bytes()),
    ] {
        let template = ChatTemplate::from_files(files).expect("good files").expect("a template");
        // Those of a message stay.
        let text = template.render(&[Message::user("c\r\nd")], &RenderOptions::default());
        assert_eq!(text.expect("it renders"), expected);
    }
    let error = plain("\r\n\r\n{% if %}").expect_err("not Jinja");
    assert!(matches!(error, TextError::TemplateSyntax { line: 3, .. }), "{error}");
}

#[test]
fn a_backslash_joins_lines_and_keeps_their_numbers() {
    let source = "{{ 'a\\\r\nb\\\\\\\nc' }}{{ \"d\\\ne\" }}";
    assert_eq!(plain(source).expect("it renders"), "ab\\cde");
    let error = plain("{{ 'a\\\nb' }}\n{{ none.x.y }}").expect_err("no such entry");
    assert!(matches!(error, TextError::TemplateFailed { line: 3, .. }), "{error}");
}

#[test]
fn the_date_comes_from_the_caller() {
    let source = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}no date{% endif %}";
    assert_eq!(plain(source).expect("it renders"), "no date");
    let now = Some(CivilTime::from_unix_seconds(0));
    let options = RenderOptions { now, ..RenderOptions::default() };
    assert_eq!(render(source, &options).expect("it renders"), "01 Jan 1970");
    let error = render("{{ strftime_now('%c') }}", &options).expect_err("not known");
    assert!(error.to_string().contains("strftime_now does not know %c"), "{error}");
}

#[test]
fn tools_choose_their_own_template() {
    let list = json!([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]);
    let templates = template(&list).expect("two good templates");
    let options = RenderOptions { tools: Some(vec![json!({})]), ..RenderOptions::default() };
    assert_eq!(templates.render(&[], &options).expect("it renders"), "t");
    assert_eq!(templates.render(&[], &RenderOptions::default()).expect("it renders"), "d");
    let others = template(&json!([{"name": "rag", "template": "r"}])).expect("a good template");
    let error = others.render(&[], &options).expect_err("none for this");
    assert_eq!(error.to_string(), "the model has no chat template `default`, only [\"rag\"]");
}

#[test]
fn variables_go_before_all_others() {
    let mut options = RenderOptions::default();
    options.variables.insert("bos_token".to_owned(), json!("other"));
    assert_eq!(render("{{ bos_token }}", &options).expect("it renders"), "other");
}

/// Each would end the process: values that are nested as deep as a loop is long, that contain
/// themselves, or double.
#[test]
fn values_without_bounds_are_refused() {
    let grow = |start: &str, step: &str| {
        format!(
            "{{% set ns = namespace(x={start}) %}}{{% for i in range(999) %}}{{% for j in range(20) %}}\
             {{% set ns.x = {step} %}}{{% endfor %}}{{% endfor %}}{{{{ ns.x|length }}}}"
        )
    };
    for (start, step) in [
        ("[]", "[ns.x]"),
        ("[]", "{'a': ns.x}"),
        ("[]", "[ns.x, ns.x]"),
        ("'a'", "ns.x ~ ns.x"),
        ("[1]", "ns.x + ns.x"),
    ] {
        let template = template(&json!(grow(start, step))).expect("it is valid");
        let limits = Limits { bytes: 1 << 20, steps: 200_000 };
        let error = template.render_within(limits, &[], &RenderOptions::default());
        let error = error.expect_err(step);
        assert!(matches!(error, TextError::TemplateLimit { .. }), "{step}: {error}");
    }
    for value in ["ns", "[ns]", "{'a': [ns]}"] {
        let source = format!("{{% set ns = namespace() %}}{{% set ns.x = {value} %}}{{{{ ns }}}}");
        let error = plain(&source).expect_err(value);
        let expected = "a namespace or a loop is put into what may change";
        assert!(error.to_string().contains(expected), "{value}: {error}");
    }
    let source = "{% set ns = namespace({'a': 1}) %}{% set other = ns %}{% set other.b = 2 %}{{ ns.a + ns.b }}";
    assert_eq!(plain(source).expect("it renders"), "3");
    assert_eq!(plain(&grow("0", "ns.x + 1").replace("|length", "")).expect("a number"), "19980");
}

#[test]
fn lists_grow_message_by_message() {
    let source = "{% set ns = namespace(x=[]) %}{% for i in range(3000) %}{% set ns.x = ns.x + [{'a': i}] %}{% endfor %}{{ ns.x|length }} {{ ns.x[-1].a }}";
    assert_eq!(plain(source).expect("it renders"), "3000 2999");
}

#[test]
fn errors_say_where() {
    let error = plain("a\n{% if %}").expect_err("not Jinja");
    assert!(matches!(error, TextError::TemplateSyntax { line: 2, .. }), "{error}");
    let error = plain("\n\n{{ none.x.y }}").expect_err("no such entry");
    assert!(matches!(error, TextError::TemplateFailed { line: 3, .. }), "{error}");
    let macros = "{% macro no() %}{{ raise_exception('not this') }}{% endmacro %}{{ no() }}";
    let error = plain(macros).expect_err("it refuses");
    assert_eq!(error.to_string(), "the chat template refuses this conversation: not this");
}

#[test]
fn roles_are_the_usual_ones_and_those_of_the_template() {
    let source = "{% for m in messages %}{{ '<|im_end|>' + m.role }}{% if m.role == \"developer\" %}!{% endif %}{% endfor %}";
    let template = template(&json!(source)).expect("it is valid");
    let write = |role: &str| {
        let messages = [Message::user("a"), Message::new(role, "b")];
        template.render(&messages, &RenderOptions::default())
    };
    for role in ["system", "user", "assistant", "tool", "developer"] {
        assert!(write(role).expect("it is known").contains(role));
    }
    for role in ["usr", "User", "", "<|im_end|>", "ipython"] {
        let error = write(role).expect_err(role).to_string();
        let words = "is unknown, expected system, user, assistant, tool, or one that the chat template names";
        assert_eq!(error, format!("message 1: the role `{role}` {words}"));
    }
}

#[test]
fn a_message_without_content_has_calls_that_the_template_writes() {
    let mut call = Message { content: None, ..Message::assistant("") };
    let write = |message: &Message, calls: &str| {
        let source = format!("{{% for m in messages %}}<{{{{ m.content }}}}>{calls}{{% endfor %}}");
        let template = template(&json!(source)).expect("it is valid");
        template.render(std::slice::from_ref(message), &RenderOptions::default())
    };
    let calls = "{{ m.tool_calls | length }}";
    for field in [json!(null), json!([]), json!("a")] {
        call.fields.insert("tool_calls".to_owned(), field);
        let error = write(&call, calls).expect_err("it has nothing");
        assert!(matches!(error, TextError::Message { index: 0, .. }), "{error}");
    }
    call.fields.insert("tool_calls".to_owned(), json!([{}]));
    assert_eq!(write(&call, calls).expect("a call"), "<>1");
    let error = write(&call, "").expect_err("the call is not written");
    let words = "message 0: there is no `content`, expected a text, or `tool_calls` that the chat template writes";
    assert_eq!(error.to_string(), words);
    for (test, text) in [
        ("{% if m['content'] is  not none %}-{% endif %}", "<None>1"),
        ("{% if (m.content is none) %}-{% endif %}", "<None>-1"),
        ("{% if m.content is none or m.content == '' %}-{% endif %}", "<>-1"),
        ("{% if m.reasoning_content is none %}-{% endif %}", "<>1"),
    ] {
        assert_eq!(write(&call, &format!("{test}{calls}")).expect("a call"), text, "{test}");
    }
}
