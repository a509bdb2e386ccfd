//! A custom model and a custom tokenizer, pairs of bytes counted in a text, through all that an
//! engine does: streams in one batch, beams, a given form.
//!
//! ```text
//! cargo run --release -p setun --features grammar --example bigram
//! ```

use std::error::Error;

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    BeamOptions, CustomModel, Engine, GenerateOptions, GrammarSpec,
    forward::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, RequestedOutput},
    text::{TextError, Tokenizer},
};

const TEXT: &str = "the setun was a ternary computer, the first and the last that was made in \
                    numbers; a trit is one of three, and the setun had eighteen trits a word. ";

/// Ends a text; the other tokens are the bytes.
const END: u32 = 256;

/// How often a byte follows another, as logits.
struct Bigrams(Vec<[f32; 257]>);

impl Bigrams {
    fn of(text: &[u8]) -> Self {
        let mut counts = vec![[0.0001_f32; 257]; 257];
        for pair in text.windows(2) {
            counts[usize::from(pair[0])][usize::from(pair[1])] += 1.0;
        }
        Self(counts.into_iter().map(|row| row.map(libm::logf)).collect())
    }

    fn write_logits(&self, batch: &Batch, outputs: &mut Outputs) -> Result<(), ModelError> {
        let wanted = batch.rows.iter().filter(|row| row.output != RequestedOutput::Nothing);
        let logits = outputs.logits_mut(batch.wanted(), 257)?;
        for (row, logits) in wanted.zip(logits.chunks_exact_mut(257)) {
            logits.copy_from_slice(&self.0[row.token as usize]);
        }
        Ok(())
    }
}

impl Model for Bigrams {
    fn vocab_size(&self) -> usize {
        257
    }

    fn context_length(&self) -> usize {
        4096
    }

    fn block_positions(&self) -> usize {
        32
    }

    fn block_bytes(&self) -> usize {
        0 // what was said before the last byte does not matter
    }

    fn max_rows(&self) -> usize {
        512
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { body: size_of_val(&*self.0), ..MemoryUse::default() }
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        cache.copies_made();
        ready(self.write_logits(batch, outputs)).boxed_local()
    }
}

/// A token for each byte.
struct Bytes;

impl Tokenizer for Bytes {
    fn encode(&self, text: &str, _add_special: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn decode(&self, ids: &[u32], _skip_special: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn vocab_size(&self) -> usize {
        257
    }

    fn token_to_id(&self, _token: &str) -> Option<u32> {
        None
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        u8::try_from(id).ok().map(|byte| char::from(byte).to_string())
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        u8::try_from(id).ok().map(|byte| vec![byte])
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let model = CustomModel::new("bigrams", Bigrams::of(TEXT.as_bytes()));
    let engine = Engine::builder(model.tokenizer(Bytes).eos_tokens([END])).build()?;

    let mut options = GenerateOptions::new().seed(7).max_tokens(60);
    options.temperature = Some(0.7);
    let streams = engine.generate_many("the ", options.clone(), 3)?;
    for stream in streams {
        println!("the {}", stream.wait()?.text);
    }

    let greedy = GenerateOptions::new().temperature(0.0).max_tokens(12);
    for beam in engine.beams("the ", BeamOptions::new(3), greedy)?.wait()?.texts {
        println!("{:.2} the {}", beam.score, beam.text);
    }

    let schema = r#"{"type": "object", "properties": {"trits": {"enum": [9, 18]}},
                     "required": ["trits"], "additionalProperties": false}"#;
    let form = engine.grammar(&GrammarSpec::JsonSchema(serde_json::from_str(schema)?))?;
    println!("{}", engine.complete("the setun had ", options.constraint(form))?.text);
    Ok(())
}
