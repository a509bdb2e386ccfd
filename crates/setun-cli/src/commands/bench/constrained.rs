//! Decoding under a JSON schema against plain decoding: the cost of the masks per token.

use serde::Serialize;
use serde_json::json;
use setun::{Engine, GenerateOptions, grammar::GrammarSpec};

use super::{Args, round, statistics::decode_median, to_usize};
use crate::{
    args,
    error::CliError,
    output::{Output, Progress, table},
};

/// Least elements of the array that the schema asks for, so that no text ends early.
const ELEMENTS: u32 = 10_000;

/// What one way of choosing tokens gave; the medians.
#[derive(Debug, Serialize)]
struct Report {
    choice: &'static str,
    tokens: usize,
    plain_tokens_per_second: f64,
    constrained_tokens_per_second: f64,
}

/// Measures both in turn, greedy and sampled.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let model = super::source(args)?.load()?;
    let engine = args::start(args::builder(model, &args.device, args.memory, 1)?)?;
    let mut sampled = GenerateOptions::new().temperature(1.0).seed(1);
    (sampled.top_p, sampled.top_k) = (Some(0.95), Some(0));
    let reports = [
        measure(args, &engine, "greedy", &GenerateOptions::new().temperature(0.0))?,
        measure(args, &engine, "sampled", &sampled)?,
    ];
    let mut output = Output::new();
    if args.json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    output.line(&reports_table(&reports))
}

fn measure(
    args: &Args,
    engine: &Engine,
    choice: &'static str,
    options: &GenerateOptions,
) -> Result<Report, CliError> {
    let generate = to_usize(args.generate);
    let prompt = [engine.tokenize("Three friends of the frog, as a list:")?];
    let constraint = engine.grammar(&GrammarSpec::JsonSchema(schema()))?;
    let mut progress = Progress::new();
    let (mut plain, mut constrained) = (vec![], vec![]);
    for repeat in 0..=args.repeat {
        progress.show(|| format!("{choice}: {repeat} of {}", args.repeat));
        let one = round::run_with(engine, &prompt, options, generate)?;
        let other = options.clone().constraint(constraint.clone());
        let other = round::run_with(engine, &prompt, &other, generate)?;
        if repeat > 0 {
            plain.extend(one.decode_tokens_per_second);
            constrained.extend(other.decode_tokens_per_second);
        }
    }
    Ok(Report {
        choice,
        tokens: generate,
        plain_tokens_per_second: decode_median(plain)?,
        constrained_tokens_per_second: decode_median(constrained)?,
    })
}

fn schema() -> serde_json::Value {
    json!({
        "type": "array",
        "minItems": ELEMENTS,
        "items": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "maxLength": 24 },
                "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                "colour": { "enum": ["green", "brown", "blue"] },
            },
            "required": ["name", "age", "colour"],
            "additionalProperties": false,
        },
    })
}

fn reports_table(reports: &[Report]) -> String {
    let title = ["choice", "plain tokens/s", "with a schema", "time per token"];
    let row = |report: &Report| {
        let Report {
            plain_tokens_per_second: plain,
            constrained_tokens_per_second: constrained,
            ..
        } = report;
        vec![
            report.choice.to_owned(),
            format!("{plain:.1}"),
            format!("{constrained:.1}"),
            format!("{:+.1} %", 100.0 * (plain / constrained - 1.0)),
        ]
    };
    let title = std::iter::once(title.map(str::to_owned).to_vec());
    table(&title.chain(reports.iter().map(row)).collect::<Vec<_>>())
}
