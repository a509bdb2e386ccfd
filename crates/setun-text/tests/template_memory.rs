//! A template that requests gigabytes is refused before it gets them.
//!
//! The one test of this binary counts what is allocated; a second would count along with it, and so would a harness
//! beside it.

#![expect(clippy::print_stdout, reason = "a test says that it passed")]

#[path = "../../../tests/support/memory.rs"]
mod memory;

use memory::{live, peak_of};
use setun_text::{ChatTemplate, ChatTemplateFiles, Message, RenderOptions, TextError};

/// Reads and renders a template.
fn render(source: &str) -> Result<String, TextError> {
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files)?.expect("there is a template");
    template.render(&[Message::user("hello")], &RenderOptions::default())
}

const MIB: usize = 1 << 20;

fn main() {
    what_is_refused_is_not_allocated_and_nothing_is_kept();
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

fn what_is_refused_is_not_allocated_and_nothing_is_kept() {
    render("{{ range(300)|join }}").expect("tables that are made once");
    // Most bytes that a template may hold, and those that it had before it was refused.
    for (most, source) in [
        (4 * MIB, "{{ range(100000)|join('a'*100000) }}"),
        (MIB, "{{ 'a'*999999999 }}"),
        (MIB, "{{ ('a'*99999)|replace('','a'*99999) }}"),
        (MIB, "{{ 'a'|indent(999999999) }}"),
        (MIB, "{{ '%999999999d'|format(1) }}"),
        (MIB, "{{ '{:>999999999}'.format(1) }}"),
        (MIB, "{{ [1]|batch(999999999, 0) }}"),
        (MIB, "{{ [1]|slice(999999999) }}"),
        (MIB, "{{ [1]*99999999 }}"),
        (MIB, "{% for i in range(999999999) %}{% endfor %}"),
        (4 * MIB, "{{ raise_exception('a'*999999) }}"),
        (4 * MIB, "{% set l = ['a'*99999]*9999 %}{{ l }}"),
        (4 * MIB, "{% set l = ['a'*99999]*9999 %}{{ l ~ l }}"),
        (4 * MIB, "{% set l = ['a'*99999]*9999 %}{{ l|join }}"),
        (4 * MIB, "{% set l = ['a'*99999]*9999 %}{{ l|sort }}"),
        // These grow until they reach the limit, and hold what is copied twice.
        (300 * MIB, "{% set l = ['a'*99999]*9999 %}{{ l|tojson }}"),
        (
            300 * MIB,
            "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        ),
        (
            300 * MIB,
            "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        ),
        (300 * MIB, "{% for i in range(99999) %}{{ 'a'*99999 }}{% endfor %}"),
        (
            300 * MIB,
            "{% for i in range(99999) %}{% set x %}{{ 'a'*9999 }}{% endset %}{{ x }}{% endfor %}",
        ),
    ] {
        let before = live();
        let (rendered, peak) = peak_of(|| render(source));
        let error = rendered.map(|text| text.len()).expect_err(source);
        assert!(peak <= most, "{source}: {peak} bytes");
        let is_limit = matches!(error, TextError::TemplateLimit { .. });
        assert!(is_limit || source.contains("raise_exception"), "{source}: {error}");
        drop(error);
        assert_eq!(live(), before, "bytes after {source}");
    }
    // What could come to contain itself would stay for ever.
    for source in [
        "{% set ns = namespace(big='a'*999999) %}{% macro m() %}{{ ns.big|length }}{% endmacro %}{% set ns.m = m %}{{ m() }}",
        "{% set ns = namespace(big='a'*999999) %}{% for n in [0, 0, ns, 0] %}{% set ns.x = loop %}{% endfor %}",
        "{% set ns = namespace(big='a'*999999) %}{% set ns.x = [{}]|map(attribute='a', default=ns)|list %}",
        "{% set ns = namespace(big='a'*999999) %}{% set ns.x = [{}]|groupby('a', default=ns) %}",
        "{% for a in [1, 2] recursive %}{{ loop.changed(loop) }}{% set big = 'a'*999999 %}{% endfor %}",
    ] {
        let before = live();
        drop(render(source));
        assert_eq!(live(), before, "bytes after {source}");
    }
}
