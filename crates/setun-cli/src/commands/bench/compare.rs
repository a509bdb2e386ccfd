//! Decoding in one way against plain decoding: prompt lookup, a draft model, drafts of known quality, a JSON schema.

use std::sync::PoisonError;

use serde::Serialize;
use serde_json::json;
use setun::{CustomModel, Engine, GenerateOptions, grammar::GrammarSpec};

use super::{
    Args,
    known_draft::{KnownDraft, KnownText, SharedText},
    round::{self, decode_median},
    to_usize,
};
use crate::{
    args,
    error::CliError,
    output::{Output, Progress, titled},
};

/// Most tokens that are proposed at once.
const LOOKAHEAD: usize = 12;

/// Of the first text, which is generated from a prompt that has it this often, and half of it.
const TIMES: usize = 3;

/// A sentence that is repeated often enough that the text continues it.
const REFRAIN: &str = "Tom likes the red ball. ";

/// How often.
const REFRAINS: usize = 14;

/// Least elements of the array that the schema requests, so that no text ends early.
const ELEMENTS: u32 = 10_000;

/// What one text gave; the medians.
#[derive(Debug, Serialize)]
struct Report {
    text: String,
    tokens: usize,
    plain_tokens_per_second: f64,
    tokens_per_second: f64,
    /// Share of the proposed tokens. None where none was proposed.
    accepted: Option<f64>,
    tokens_per_verification: Option<f64>,
}

/// `--speculate`: equal texts with and without proposed tokens.
pub(super) fn speculation(args: &Args) -> Result<(), CliError> {
    let engine = engine(args, None)?;
    let generate = to_usize(args.generate);
    let [plain, lookahead] = [0, LOOKAHEAD].map(|tokens| greedy().lookahead(tokens));
    let ordinary = engine.tokenize("Once upon a time, there was a little")?;
    let story = round::run_with(&engine, std::slice::from_ref(&ordinary), &plain, generate)?
        .tokens
        .concat();
    let whole = [&ordinary[..], &story].concat();
    let repeated = [whole.repeat(TIMES), whole[..whole.len() / 2].to_vec()].concat();
    let most = engine.context_length().saturating_sub(generate);
    let repeated = repeated[repeated.len().saturating_sub(most)..].to_vec();
    let refrain = engine.tokenize(&REFRAIN.repeat(REFRAINS))?;
    let ways = [&plain, &lookahead];
    let mut reports = vec![
        compare(args, &engine, "repeats its prompt", repeated, ways, true)?,
        compare(args, &engine, "a refrain", refrain, ways, true)?,
        compare(args, &engine, "an ordinary story", ordinary.clone(), ways, true)?,
    ];
    if let Some(draft) = &args.draft {
        engine.close();
        let engine = self::engine(args, Some(draft))?;
        let text = "an ordinary story, with a draft model";
        reports.push(compare(args, &engine, text, ordinary, ways, true)?);
    }
    print(args, &reports)
}

/// `--accept`: the same text with drafts that are right so often, which take no time themselves.
pub(super) fn known_drafts(args: &Args) -> Result<(), CliError> {
    let model = super::files(args)?.open()?;
    let (vocabulary, context) = (model.config().vocab_size, model.config().context_length);
    let known = SharedText::default();
    let draft = KnownDraft::new(vocabulary, context, SharedText::clone(&known));
    let builder = args::builder(model, &args.device, &args.memory, 1)?;
    let engine = args::start(builder.custom_draft(CustomModel::new("known text", draft)))?;
    let prompt = round::prompts(vocabulary, to_usize(args.prompt), 1).concat();
    let [plain, drafted] = [0, LOOKAHEAD].map(|tokens| greedy().lookahead(tokens));
    let round =
        round::run_with(&engine, std::slice::from_ref(&prompt), &plain, to_usize(args.generate))?;
    let tokens = [&prompt[..], &round.tokens.concat()].concat();
    let mut reports = vec![];
    for &rate in &args.accept {
        *known.lock().unwrap_or_else(PoisonError::into_inner) =
            KnownText { tokens: tokens.clone(), rate: f64::from(rate) };
        let text = format!("right with probability {rate}");
        reports.push(compare(args, &engine, text, prompt.clone(), [&plain, &drafted], true)?);
    }
    print(args, &reports)
}

/// `--constrained`: the same number of tokens with and without masks, greedy and sampled.
pub(super) fn constraint(args: &Args) -> Result<(), CliError> {
    let engine = engine(args, None)?;
    let prompt = engine.tokenize("Three friends of the frog, as a list:")?;
    let schema = engine.grammar(&GrammarSpec::JsonSchema(schema()))?;
    let mut sampled = GenerateOptions::new().temperature(1.0).seed(1);
    (sampled.top_p, sampled.top_k) = (Some(0.95), Some(0));
    let mut reports = vec![];
    for (name, plain) in [("greedy", greedy()), ("sampled", sampled)] {
        let constrained = plain.clone().constraint(schema.clone());
        reports.push(compare(args, &engine, name, prompt.clone(), [&plain, &constrained], false)?);
    }
    print(args, &reports)
}

fn engine(args: &Args, draft: Option<&str>) -> Result<Engine, CliError> {
    let builder = args::builder(super::files(args)?.open()?, &args.device, &args.memory, 1)?;
    args::start(match draft {
        Some(draft) => builder.draft(args.model.files_of(draft)?.open()?),
        None => builder,
    })
}

fn greedy() -> GenerateOptions {
    GenerateOptions::new().temperature(0.0)
}

/// Measures two ways in turn. Where their tokens are to be the same, it fails if they are not.
fn compare(
    args: &Args,
    engine: &Engine,
    text: impl Into<String>,
    prompt: Vec<u32>,
    ways: [&GenerateOptions; 2],
    same: bool,
) -> Result<Report, CliError> {
    let (text, tokens, prompts) = (text.into(), to_usize(args.generate), [prompt]);
    let mut progress = Progress::new();
    let (mut plain, mut other) = (vec![], vec![]);
    let before = pollster::block_on(engine.metrics())?;
    for repeat in 0..=args.repeat {
        progress.show(|| format!("{text}: {repeat} of {}", args.repeat));
        let first = round::run_with(engine, &prompts, ways[0], tokens)?;
        let second = round::run_with(engine, &prompts, ways[1], tokens)?;
        if same {
            first.check("speculative decoding", &second.tokens)?;
        }
        if repeat > 0 {
            plain.extend(first.decode_tokens_per_second);
            other.extend(second.decode_tokens_per_second);
        }
    }
    let after = pollster::block_on(engine.metrics())?;
    let accepted = after.accepted_tokens - before.accepted_tokens;
    let verifications = after.drafts - before.drafts;
    Ok(Report {
        text,
        tokens,
        plain_tokens_per_second: decode_median(plain)?,
        tokens_per_second: decode_median(other)?,
        accepted: ratio(accepted, after.draft_tokens - before.draft_tokens),
        tokens_per_verification: ratio(accepted + verifications, verifications),
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

fn print(args: &Args, reports: &[Report]) -> Result<(), CliError> {
    let mut output = Output::new();
    if args.json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    let title = ["text", "plain tokens/s", "tokens/s", "ratio", "accepted", "tokens/verification"];
    let rows = reports.iter().map(|report| {
        let Report { plain_tokens_per_second: plain, tokens_per_second: other, .. } = report;
        let number = |number: Option<f64>, digits: usize| {
            number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
        };
        vec![
            report.text.clone(),
            format!("{plain:.1}"),
            format!("{other:.1}"),
            format!("{:.2}", other / plain),
            number(report.accepted, 2),
            number(report.tokens_per_verification, 1),
        ]
    });
    output.line(&titled(title, rows))
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
