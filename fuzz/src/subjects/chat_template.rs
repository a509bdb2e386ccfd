//! A chat template by itself, in a `tokenizer_config.json`, and as a prompt's template.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use setun_text::{
    ChatTemplate, ChatTemplateFiles, Interrupt, Message, PromptTemplate, RenderOptions,
};

use crate::{MemoryBound, run_bounded};

/// A rendering may hold 128 MiB, and twice that while it copies.
const MEMORY: MemoryBound = MemoryBound { fixed: 320 << 20, each: 1 << 10 };

/// Questions, one every 65,536 steps, after which a rendering is stopped: a tenth of its limit.
const QUESTIONS: usize = 76;

/// Parses and renders the template.
///
/// # Panics
///
/// If that exceeds its bounds.
pub fn run(bytes: &[u8]) {
    run_bounded(bytes.len(), MEMORY, || {
        let none = ChatTemplateFiles::default();
        render(ChatTemplateFiles { chat_template_jinja: Some(bytes), ..none });
        render(ChatTemplateFiles { tokenizer_config: Some(bytes), ..none });
        // It reaches what the first does, with other checks before.
        let _ = PromptTemplate::parse(&String::from_utf8_lossy(bytes));
    });
}

fn render(files: ChatTemplateFiles<'_>) {
    let Ok(Some(template)) = ChatTemplate::from_files(files) else { return };
    let asked = AtomicUsize::new(0);
    let interrupt = Interrupt::new(move || asked.fetch_add(1, Relaxed) >= QUESTIONS);
    let messages = [Message::system("S"), Message::user("Hello"), Message::assistant("Hi")];
    let options = RenderOptions {
        add_generation_prompt: true,
        interrupt: Some(interrupt),
        ..RenderOptions::default()
    };
    let _ = template.render(&messages, &options);
    let _ = template.tool_format();
}
