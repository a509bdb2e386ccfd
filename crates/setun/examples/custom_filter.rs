//! A custom filter: it shows whole sentences only, and ends a text that repeats one.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example custom_filter [PROMPT [MODEL]]
//! ```

use std::{collections::HashSet, error::Error};

use setun::{
    ContentFilter, Engine, Event, FinishReason, GenerateOptions, Model, SharedFilter,
    text::{FilterState, FilterStep, TextError},
};

/// Lets this many sentences through.
struct Sentences {
    most: usize,
}

impl ContentFilter for Sentences {
    fn begin(&self) -> Box<dyn FilterState> {
        Box::new(Told { most: self.most, held: String::new(), known: HashSet::new() })
    }
}

/// One text.
struct Told {
    most: usize,
    held: String,
    known: HashSet<String>,
}

impl FilterState for Told {
    fn push(&mut self, text: &str) -> Result<FilterStep, TextError> {
        self.held.push_str(text);
        let mut shown = String::new();
        while let Some(end) = self.held.find(['.', '!', '?']) {
            let rest = self.held.split_off(end + 1); // these are of one byte
            let sentence = std::mem::replace(&mut self.held, rest);
            if !self.known.insert(sentence.trim().to_lowercase()) {
                return Ok(FilterStep::stop(shown));
            }
            shown.push_str(&sentence);
            if self.known.len() == self.most {
                return Ok(FilterStep::stop(shown));
            }
        }
        Ok(FilterStep::show(shown))
    }

    /// A sentence that has no end is not shown.
    fn finish(&mut self) -> Result<FilterStep, TextError> {
        Ok(FilterStep::default())
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".into());
    let model = arguments.next().map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model).build()?;
    let filter = SharedFilter::new(Sentences { most: 3 });
    let options = GenerateOptions::new().temperature(0.8).seed(1).filter(filter);
    println!("{prompt}");
    for event in engine.generate(prompt.as_str(), options)?.blocking() {
        match event? {
            Event::Text(delta) if delta.text.is_empty() => {} // held back
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Text(delta) => println!("> {}", delta.text.trim()),
            Event::Done(done) if done.finish_reason == FinishReason::ContentFilter => {
                println!("ended by the filter after {} tokens", done.usage.completion_tokens);
            }
            Event::Done(done) => println!("ended by {:?}", done.finish_reason),
        }
    }
    Ok(())
}
