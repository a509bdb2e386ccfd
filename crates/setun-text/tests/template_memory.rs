//! A template that requests gigabytes is refused before it gets them.
//!
//! The one test of this binary counts what is allocated; a second would count along with it.

#![expect(unsafe_code, reason = "a global allocator can only be written so")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use setun_text::{ChatTemplate, ChatTemplateFiles, Message, RenderOptions, TextError};

/// The system's allocator, with a count of live bytes and its highest value.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Most bytes allocated at once while a template is read and rendered, and its error.
fn refused(source: &str) -> (TextError, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let rendered = ChatTemplate::from_files(files).and_then(|template| {
        let template = template.expect("there is a template");
        template.render(&[Message::user("hello")], &RenderOptions::default())
    });
    let error = rendered.map(|text| text.len()).expect_err(source);
    (error, PEAK.load(Relaxed) - before)
}

const MIB: usize = 1 << 20;

#[test]
fn what_is_refused_is_not_allocated() {
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
        let (error, peak) = refused(source);
        assert!(peak <= most, "{source}: {peak} bytes");
        let is_limit = matches!(error, TextError::TemplateLimit { .. });
        assert!(is_limit || source.contains("raise_exception"), "{source}: {error}");
    }
}
