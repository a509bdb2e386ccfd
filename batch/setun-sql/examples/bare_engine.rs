//! The rows of a batch job by the bare engine: what the query engine, files and chunks cost beside it.
//!
//! `cargo run --release --manifest-path batch/Cargo.toml -p setun-sql --example bare_engine -- in.jsonl story schema.json`

use std::{env, error::Error, fs, time::Instant};

use futures::{StreamExt, stream};
use serde_json::Value;
use setun::{Engine, GenerateOptions, GrammarSpec, Model};
use setun_sql::Settings;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [input, column, schema] = &arguments[..] else {
        return Err("expected INPUT COLUMN SCHEMA".into());
    };
    let input = fs::read_to_string(input)?;
    let mut rows: Vec<Value> = input.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    rows.sort_by(|one, other| one[column].as_str().cmp(&other[column].as_str()));
    let engine = Engine::builder(Model::embedded()?).build()?;
    let grammar = engine.grammar(&GrammarSpec::json_schema(&fs::read_to_string(schema)?)?)?;
    let (engine, grammar, settings) = (&engine, &grammar, &Settings::new(0));
    let begun = Instant::now();
    let texts = stream::iter(rows).map(|row| async move {
        let seed = settings.row_seed(&row["id"].to_string());
        let options = GenerateOptions::new().max_tokens(60).temperature(0.8).seed(seed);
        let prompt = row[column].as_str().unwrap_or_default();
        engine.generate(prompt, options.constraint(grammar.clone()))?.finish().await
    });
    let places = 2 * engine.max_concurrent();
    let done: Vec<_> = texts.buffered(places).collect().await;
    let tokens: usize = done.iter().flatten().map(|one| one.done.usage.completion_tokens).sum();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} rows, {tokens} tokens, {seconds:.1} s", done.len());
    Ok(())
}
