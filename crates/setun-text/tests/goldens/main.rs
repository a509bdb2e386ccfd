//! setun-text against outputs of Hugging Face's libraries and templates of real models.

mod chat_template;
mod continued;
mod expressions;
mod qwen35;
mod sampling;
mod stream_decoder;
mod support;
mod tokenizer;
mod tool_calls;
