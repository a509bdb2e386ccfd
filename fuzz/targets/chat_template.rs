//! A chat template by itself or in a `tokenizer_config.json`, read and rendered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use setun_text::{ChatTemplate, ChatTemplateFiles, Message, RenderOptions};

fuzz_target!(|bytes: &[u8]| {
    let none = ChatTemplateFiles::default();
    render(ChatTemplateFiles { chat_template_jinja: Some(bytes), ..none });
    render(ChatTemplateFiles { tokenizer_config: Some(bytes), ..none });
});

fn render(files: ChatTemplateFiles<'_>) {
    if let Ok(Some(template)) = ChatTemplate::from_files(files) {
        let messages = [Message::system("S"), Message::user("Hello"), Message::assistant("Hi")];
        let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
        let _ = template.render(&messages, &options);
    }
}
