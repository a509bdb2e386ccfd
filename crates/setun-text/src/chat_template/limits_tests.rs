//! Templates that request too much, each of which is stopped before it gets it.

use serde_json::json;

use super::budget::Limits;
use super::*;

/// Small limits, so that tests are quick: 1 MiB and 200,000 steps.
const SMALL: Limits = Limits { bytes: 1 << 20, steps: 200_000 };

fn render_within(limits: Limits, source: &str) -> Result<String, TextError> {
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files)?.expect("there is a template");
    let now = Some(CivilTime::from_unix_seconds(0));
    let options = RenderOptions { now, ..RenderOptions::default() };
    template.render_within(limits, &[Message::user("hello")], &options)
}

/// What is exceeded, with the limit.
fn exceeded(limits: Limits, source: &str) -> (&'static str, u64) {
    match render_within(limits, source) {
        Err(TextError::TemplateLimit { what, limit, found, .. }) => {
            assert!(found > limit, "{source}: {found}");
            (what, limit)
        }
        other => panic!("{source}: {:.300}", format!("{other:?}")),
    }
}

#[test]
fn what_would_take_gigabytes_is_refused_with_its_size() {
    let error = |source| render_within(Limits::default(), source).expect_err(source).to_string();
    assert_eq!(
        error("{{ range(100000)|join('a'*100000) }}"),
        "template `default` is stopped at line 1: 10002500001 bytes of text and lists, \
         at most 134217728 are allowed"
    );
    assert_eq!(
        error("\n{{ ('a'*99999999)~('a'*99999999) }}"),
        "template `default` is stopped at line 2: 200000001 bytes of text and lists, \
         at most 134217728 are allowed"
    );
    assert_eq!(
        error("{{ '%999999999d'|format(1) }}"),
        "template `default` is stopped at line 1: 999999999 characters in one field of a format, \
         at most 4096 are allowed"
    );
    assert_eq!(
        error("{% for i in range(999999999) %}{% endfor %}"),
        "template `default` is stopped at line 1: 999999999 entries of a range, \
         at most 100000 are allowed"
    );
}

/// Each with the half of a mebibyte in `s`.
#[test]
fn every_text_and_list_that_is_made_is_charged() {
    for source in [
        // operators
        "{{ s ~ s }}",
        "{{ s + s }}",
        "{{ s * 3 }}",
        "{{ 3 * s }}",
        "{{ [1] * 99999 }}",
        "{{ (1, 2) * 99999 }}",
        "{{ [1] * 30000 + [1] * 30000 }}",
        "{{ s[::2] }}",
        "{{ [s] in s ~ '' }}",
        "{{ '%s%s' % (s, s) }}",
        "{{ ('%r' % s) ~ s }}",
        // output, captures and macros
        "{{ s }}{{ s }}",
        "{% for i in range(9) %}{{ s }}{% endfor %}",
        "{% set x %}{{ s }}{{ s }}{% endset %}",
        "{% set x %}{{ s }}{% endset %}{{ x }}",
        "{% filter lower %}{{ s }}{% endfilter %}",
        "{% macro m() %}{{ s }}{% endmacro %}{{ m() ~ m() }}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ s }}{% endcall %}",
        "{% for i in range(5000) %}{% macro m() %}{{ i }}{% endmacro %}{% endfor %}",
        "{{ ('%s'|safe)|format(s) }}",
        "{{ [s, s] }}",
        "{% macro m(a) %}{% endmacro %}{% set l = range(9999) %}{{ m(*l, *l, *l, *l) }}",
        // filters
        "{{ s|upper }}",
        "{{ s|title }}",
        "{{ s|capitalize }}",
        "{{ s|e }}",
        "{{ [s, s]|safe }}",
        "{{ [s, s]|string }}",
        "{{ [s, s]|pprint }}",
        "{{ s|replace('a', 'bb') }}",
        "{{ s|replace('', 'b') }}",
        "{{ s|trim(s) }}",
        "{{ s|split('a') }}",
        "{{ ('\\n' * 40000)|lines }}",
        "{{ range(99)|join(s) }}",
        "{{ [s, s, s]|join }}",
        "{{ [{'a': s}, {'a': s}]|join(attribute='a') }}",
        "{{ 'a'|indent(9999999) }}",
        "{{ ('\\n' * 4000)|indent(400, true, true) }}",
        "{{ ('\\n' * 4000)|indent(width=400) }}",
        "{{ '%s %s'|format(s, s) }}",
        "{{ [1]|batch(99999, 0) }}",
        "{{ [1]|slice(99999) }}",
        "{{ s|list }}",
        "{{ s|batch(2) }}",
        "{{ s|reverse|reverse ~ '' }}",
        "{{ [s, s]|sort|length }}",
        "{{ [s, s]|unique|length }}",
        "{{ [s, s]|max }}",
        "{{ {s: 1, 'b': 2}|dictsort|length }}",
        "{{ [{'a': s}]|groupby('a')|length }}",
        "{{ [s]|map('upper')|length }}",
        "{{ s|tojson }}",
        "{{ [s, s]|tojson }}",
        "{{ range(9999)|tojson(indent='        ' * 99) }}",
        "{{ range(99)|tojson(separators=[s, s]) }}",
        "{{ s|truncate(600000) ~ s }}",
        "{{ s|truncate(10, end=s) ~ s }}",
        "{{ s|wordcount ~ s }}",
        "{{ 'a'|center(999999) }}",
        "{{ 'a'|center(width=999999) }}",
        // methods and functions
        "{{ 'a'.ljust(999999) }}",
        "{{ 'a'.rjust(999999) }}",
        "{{ 'a'.center(999999) }}",
        "{{ 'a'.zfill(999999) }}",
        "{{ s.rsplit('a') }}",
        "{{ s.rsplit(sep='a') }}",
        "{{ s.partition('b') ~ s }}",
        "{{ s.removeprefix('b') ~ s }}",
        "{{ s.swapcase() }}",
        "{{ ('\\x1c' * 40000).splitlines() }}",
        "{{ ('\\x1c' * 40000 ~ 'a').split() }}",
        "{% macro m() %}{% endmacro %}{% macro n() %}{{ varargs|length }}{% endmacro %}{% set l = range(9999) %}{{ n(*l, *l) }}{{ n(*l, *l) }}",
        "{% for i in range(20000) %}{{ cycler(i).current }}{% endfor %}",
        "{% for i in range(20000) %}{{ joiner()() }}{% endfor %}",
        "{{ s.upper() }}",
        "{{ s.replace('a', 'bb') }}",
        "{{ s.split('a') }}",
        "{{ ('\\n' * 40000).splitlines() }}",
        "{{ s.join(range(99)) }}",
        "{{ '{0} {0}'.format(s) }}",
        "{{ s.strip(s) }}",
        "{{ range(50000) }}",
        "{{ strftime_now('%A' * 99999) }}",
        "{{ dict(a=s)['a'] ~ s }}",
    ] {
        let source = format!("{{% set s = 'a' * 524288 %}}{source}");
        assert_eq!(exceeded(SMALL, &source), ("bytes of text and lists", 1 << 20), "{source}");
    }
}

#[test]
fn whatever_takes_long_is_charged_in_steps() {
    for source in [
        "{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}",
        "{% for a in l if a in l %}{% endfor %}",
        "{% for a in l %}{% if l == l %}{% endif %}{% endfor %}",
        "{% for a in l %}{% if 0 < l < l %}{% endif %}{% endfor %}",
        "{% for a in l %}{% if 'b' in s %}{% endif %}{% endfor %}",
        "{% for a in l %}{% if s is endingwith s %}{% endif %}{% endfor %}",
        "{% for a in l %}{{ s|length }}{% endfor %}",
        "{% for a in l %}{{ s[99999] }}{% endfor %}",
        "{% for a in l %}{% if {s: 1}[s] %}{% endif %}{% endfor %}",
        "{% for a in l %}{{ s.find('b') }}{% endfor %}",
        "{% for a in l %}{{ s.count('b') }}{% endfor %}",
        "{% for a in l %}{{ s.rfind('b', 1) }}{% endfor %}",
        "{% for a in l %}{{ l.index(998) }}{% endfor %}",
        "{% for a in l %}{{ loop.changed(s) }}{% endfor %}",
        "{% for a in l %}{{ l|sum }}{% endfor %}",
        "{% for a in l %}{{ l|first|attr(s) }}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(30) }}",
        "{% macro m(n) %}{% if n %}{% set x = m(n - 1) %}{% set x = m(n - 1) %}{% endif %}{% endmacro %}{{ m(30) }}",
        "{% for a in [[1, 2]] recursive %}{{ loop([a, a]) }}{% endfor %}",
    ] {
        let source = format!("{{% set s = 'a' * 100000 %}}{{% set l = range(999) %}}{source}");
        let (what, limit) = exceeded(SMALL, &source);
        assert!(
            what == "steps" && limit == 200_000 || what.starts_with("open"),
            "{source}: {what}"
        );
    }
}

#[test]
fn values_and_calls_are_not_nested_without_end() {
    let grow = |step: &str| {
        format!(
            "{{% set ns = namespace(x=[1]) %}}{{% for i in range(999) %}}{{% set ns.x = {step} %}}{{% endfor %}}"
        )
    };
    for source in [
        grow("[ns.x]"),
        grow("{'a': ns.x}"),
        grow("(ns.x, 1)"),
        grow("dict(a=ns.x)"),
        grow("ns.x|batch(1)"),
        grow("ns.x|slice(1)"),
        grow("[{'a': ns.x}]|map(attribute='a')|batch(1)"),
        "{% macro m(x, n) %}{% if n %}{{ m([[[[[[[[x]]]]]]]], n - 1) }}{% endif %}{% endmacro %}{{ m(1, 30) }}".to_owned(),
    ] {
        assert_eq!(exceeded(SMALL, &source), ("levels of nested values", 64), "{source}");
    }
    let forever = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert_eq!(exceeded(SMALL, forever), ("open blocks and macros", 200));
    for value in [
        "ns",
        "[ns]",
        "{'a': [ns]}",
        "(ns, 1)",
        "[x]|map('default', ns)|list",
        "dict(a=ns)",
        "namespace(a=[ns])",
        "[1]|batch(2, ns)",
        "[{}]|map(attribute='a', default=ns)",
        "[{}]|groupby('a', default=ns)",
        "cycler(1, ns)",
        "joiner(ns)",
        "joiner(sep=[ns])",
        // A loop has the entries before and behind, in time.
        "loop",
        "[{'a': loop}]",
    ] {
        let source = format!(
            "{{% set ns = namespace() %}}{{% for i in [0, 0, ns] %}}{{% set ns.x = {value} %}}{{% endfor %}}{{{{ ns }}}}"
        );
        let error = render_within(SMALL, &source).expect_err(value);
        let expected = "a namespace or a loop is put into what may change";
        assert!(error.to_string().contains(expected), "{value}: {error}");
    }
}

/// The charges of operators are filters, which `map` could apply without the operators.
#[test]
fn charges_of_operators_cannot_be_called() {
    for name in ["!+", "!read", "!list", "!tick"] {
        let source = format!("{{{{ [[1, 2]]|map('{name}')|list }}}}");
        let error = render_within(SMALL, &source).expect_err(name).to_string();
        assert!(error.contains(&format!("filter {name} is unknown")), "{error}");
    }
}

/// A brace in a field does not end it.
#[test]
fn widths_behind_braces_are_seen() {
    for source in [
        "{{ '{:}<99999}'.format(1) }}",
        "{{ '{:{<99999}'.format(1) }}",
        "{{ '{0[}]:>99999}'.format({'}': 1}) }}",
        "{{ '{0[}}]:>99999}}}'.format({'}}': 1}) }}",
        "{{ '{{{:>99999}}}'.format(1) }}",
        "{{ '%%%(a)-99999d'|format({'a': 1}) }}",
    ] {
        assert_eq!(exceeded(SMALL, source), ("characters in one field of a format", 4096));
    }
    let numbers = "{{ '{} of 20000}}, {{9999'.format(1) }}{{ '%s%% of 20000'|format(5) }}";
    assert_eq!(render_within(SMALL, numbers).expect("no width"), "1 of 20000}, {99995% of 20000");
}

#[test]
fn a_long_message_of_a_template_is_cut() {
    let source = "{{ raise_exception('ä' * 500000) }}";
    let Err(TextError::TemplateRefused { message }) = render_within(Limits::default(), source)
    else {
        panic!("it refuses");
    };
    assert_eq!((message.len(), message.ends_with("ä…")), (4096 + "…".len(), true));
    let source = "{% set l = ['a' * 999] * 999 %}{{ raise_exception([l, l, l]) }}";
    let error = render_within(Limits::default(), source).expect_err("it refuses").to_string();
    assert!(error.len() < 5000, "{} bytes", error.len());
}

#[test]
fn a_rendering_stops_when_its_caller_says_so() {
    let files = |source: &'static str| ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let long = "\n{% for a in range(999) %}{% for b in range(999) %}{% endfor %}{% endfor %}";
    let options = RenderOptions { interrupt: Some(Interrupt::new(|| true)), ..Default::default() };
    let template = ChatTemplate::from_files(files(long)).expect("good").expect("one");
    let error = template.render(&[], &options).expect_err("it takes long").to_string();
    assert_eq!(error, "template `default` is stopped at line 2: its time is over");
    // What is quick ends before anybody asks.
    let template = ChatTemplate::from_files(files("{{ messages }}")).expect("good").expect("one");
    assert_eq!(template.render(&[], &options).expect("it is quick"), "[]");
}

/// In minijinja some of these end the process.
#[test]
fn loops_are_left_from_inside_other_blocks() {
    for (source, expected) in [
        (
            "{% for i in [1, 2, 3] %}{% with a = i %}{% if a == 2 %}{% break %}{% endif %}{{ a }}{% endwith %}{% endfor %}x",
            "1x",
        ),
        (
            "{% for i in [1, 2, 3] %}{% with a = i %}{% if a == 2 %}{% continue %}{% endif %}{{ a }}{% endwith %}{% endfor %}x",
            "13x",
        ),
        (
            "{% for i in [1, 2, 3] %}{% generation %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endgeneration %}{% endfor %}x",
            "13x",
        ),
        (
            "{% for i in [1, 2, 3] %}{% set a %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endset %}{{ a }}{% endfor %}x",
            "1x",
        ),
        (
            "{% for i in [1, 2] %}{% for j in [1] %}{% with %}{% filter upper %}{% break %}{% endfilter %}{% endwith %}{% endfor %}{{ i }}{% endfor %}",
            "12",
        ),
        (
            "{% for i in [1, 2] %}{% for j in [] %}{% else %}{% with %}{% continue %}{% endwith %}{% endfor %}{{ i }}{% endfor %}x",
            "x",
        ),
    ] {
        assert_eq!(render_within(SMALL, source).expect(source), expected, "{source}");
    }
    for source in [
        "{% for i in [] %}{% else %}{% break %}{% endfor %}",
        "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}",
        "{% for i in [1] %}{{ loop.cycle(*[]) }}{% endfor %}",
        "{% autoescape true %}{% endautoescape %}",
    ] {
        let error = render_within(SMALL, source).expect_err(source);
        assert!(matches!(error, TextError::TemplateSyntax { .. }), "{source}: {error}");
    }
}

/// What the limits allow fits a stack of 1 MiB, as in WebAssembly.
#[test]
fn the_deepest_templates_fit_a_small_stack() {
    let nest = |count: usize, open: &str, inside: &str, close: &str| {
        open.repeat(count) + inside + &close.repeat(count)
    };
    let sources = [
        format!("{{{{ {} }}}}", nest(24, "(", "1", ")")),
        format!("{{{{ {} }}}}", nest(24, "[", "x", "]")),
        format!("{{{{ {} }}}}", nest(24, "f(a=", "x", ")")),
        nest(50, "{% if true %}", &format!("{{{{ {} }}}}", nest(24, "[", "x", "]")), "{% endif %}"),
        format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(49)),
        nest(50, "{% for a in [1] %}", "a", "{% endfor %}"),
        nest(50, "{% filter upper %}", "a", "{% endfilter %}"),
        nest(50, "{% set a %}", &format!("{{{{ {} }}}}", nest(24, "[", "x", "]")), "{% endset %}"),
        nest(25, "{% for a in [1] %}{% set b %}", "a", "{% endset %}{% endfor %}"),
        nest(50, "{% call m() %}", "a", "{% endcall %}"),
        format!("{{{{ 1{} }}}}", "+1".repeat(240)),
        format!("{{{{ x{} }}}}", "|default(1)".repeat(99)),
        format!("{{{{ {}x }}}}", "not ".repeat(490)),
        format!("{{{{ {}1 }}}}", "-".repeat(490)),
        format!("{{{{ 1{} }}}}", " if x else 1".repeat(120)),
        "{% macro m(n) %}{% for a in [1] %}{{ m(n + 1) }}{% endfor %}{% endmacro %}{{ m(1) }}".to_owned(),
        "{% macro m(n) %}{{ [1]|map('upper')|join }}{% call m(n + 1) %}a{% endcall %}{% endmacro %}{{ m(1) }}".to_owned(),
        "{% set ns = namespace(x=[1]) %}{% for i in range(62) %}{% set ns.x = [ns.x] %}{% endfor %}\
         {{ ns.x }}{{ ns.x|tojson }}{{ ns.x == ns.x }}{{ ns.x|pprint }}{{ [ns.x, ns.x]|sort|length }}".to_owned(),
    ];
    let work = move || {
        for source in sources {
            // Some are refused, and all end.
            let rendered = render_within(Limits::default(), &source);
            assert!(!matches!(rendered, Err(TextError::TemplateInterrupted { .. })), "{source}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work);
    thread.expect("a thread").join().expect("no overflow");
}

/// Conversations far beyond any context are rendered.
#[test]
fn long_conversations_are_within_the_limits() {
    let source = "{% set ns = namespace(system='', n=0) %}{% for m in messages %}\
        {% if m['role'] == 'user' and '</think>' not in m.content %}{% set ns.n = ns.n + 1 %}{% endif %}\
        {{ '<|' ~ m.role ~ '|>' + (m.content|trim).split('</think>')[-1] ~ m['content'][:0] }}{% endfor %}\
        {{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ ns.n }}";
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files).expect("good").expect("one");
    let messages = vec![Message::user("word ".repeat(1000)); 400]; // 2 MB, half a million tokens
    let text = template.render(&messages, &RenderOptions::default()).expect("it renders");
    assert!(text.ends_with("400 400") && text.len() > 400 * 5000, "{} bytes", text.len());
}

#[test]
fn constants_are_not_evaluated_before_they_are_charged() {
    let config = json!({ "chat_template": "{{ 'a' * 999999999 }}" }).to_string();
    let files = ChatTemplateFiles {
        tokenizer_config: Some(config.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files).expect("it is not evaluated yet").expect("one");
    let error = template.render(&[], &RenderOptions::default()).expect_err("too large");
    assert!(matches!(error, TextError::TemplateLimit { found: 1_000_000_000, .. }), "{error}");
}
