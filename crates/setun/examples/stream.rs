//! Two texts that are read as they come, side by side; one is ended from elsewhere.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example stream [MODEL]
//! ```

use std::error::Error;

use futures::{StreamExt, stream::select};
use setun::{Engine, Event, FinishReason, GenerateOptions, Model};

/// Tokens of the left text after which the right one is ended.
const PATIENCE: usize = 20;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let model = path.map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model).buffer(8).build()?; // tokens that may wait for us
    let options = || GenerateOptions::new().max_tokens(40).seed(1);
    let left = engine.generate("Once upon a time", options())?;
    let right = engine.generate("The little dog", options().max_tokens(400))?;
    let cancel = right.cancel_handle(); // to drop the stream ends it, too

    let mut texts = [String::new(), String::new()];
    let mut tokens = [0, 0];
    let mut ends = [None, None];
    let mut events = select(left.map(|event| (0, event)), right.map(|event| (1, event)));
    while let Some((side, event)) = pollster::block_on(events.next()) {
        match event? {
            Event::Text(delta) => {
                texts[side].push_str(&delta.text); // whole characters, no part of a stop string
                tokens[side] += 1;
            }
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Done(done) => ends[side] = Some(done.finish_reason),
        }
        if tokens[0] == PATIENCE {
            cancel.cancel();
        }
    }
    println!("Once upon a time{}\n\nThe little dog{}\n", texts[0], texts[1]);
    if ends != [Some(FinishReason::Length), Some(FinishReason::Aborted)] {
        return Err(format!("the streams ended by {ends:?}").into());
    }
    println!("left: {} tokens, {:?}", tokens[0], FinishReason::Length);
    println!("right: ended after {} tokens", tokens[1]);
    Ok(())
}
