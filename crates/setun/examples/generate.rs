//! A text of a given length, by temperature, top-k and top-p, that ends at a string.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example generate [PROMPT [MODEL]]
//! ```

use std::error::Error;

use setun::{Engine, GenerateOptions, Model};

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".into());
    let model = arguments.next().map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model).build()?;
    let options = GenerateOptions::new()
        .max_tokens(60)
        .temperature(0.8)
        .top_k(40)
        .top_p(0.95)
        .stop(["\n\n"])
        .seed(1); // the same text every time
    let completion = engine.complete(prompt.as_str(), options)?;
    println!("{prompt}{}", completion.text);
    let (usage, reason) = (completion.done.usage, completion.done.finish_reason);
    println!(
        "{} tokens after {}, ended by {reason:?}",
        usage.completion_tokens, usage.prompt_tokens
    );
    Ok(())
}
