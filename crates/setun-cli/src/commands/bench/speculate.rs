//! Speculative decoding against plain decoding: prompt lookup on repetitive texts and an ordinary
//! one, and a draft model on the ordinary one.

use serde::Serialize;
use setun::{Engine, GenerateOptions};

use super::{Args, round, statistics::decode_median, to_usize};
use crate::{
    args,
    error::CliError,
    output::{Output, Progress, table},
    source::ModelSource,
};

/// Most tokens that are proposed at once.
const LOOKAHEAD: usize = 12;

/// Of the first text, which is generated from a prompt that has it this often, and half of it.
const TIMES: usize = 3;

/// A sentence that is repeated often enough that the text continues it.
const REFRAIN: &str = "Tom likes the red ball. ";

/// How often.
const REFRAINS: usize = 14;

/// What one text gave; the medians.
#[derive(Debug, Serialize)]
struct Report {
    text: &'static str,
    tokens: usize,
    plain_tokens_per_second: f64,
    tokens_per_second: f64,
    /// Share of the proposed tokens.
    accepted: f64,
    tokens_per_verification: f64,
}

/// Measures both in turn. Their tokens are the same, or it fails.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let model = super::source(args)?.load()?;
    let engine = args::start(args::builder(model, &args.device, args.memory, 1)?)?;
    let generate = to_usize(args.generate);
    let ordinary = engine.tokenize("Once upon a time, there was a little")?;
    let story = greedy(&engine, &ordinary, generate, 0)?.tokens.concat();
    let whole = [&ordinary[..], &story].concat();
    let repeated = [whole.repeat(TIMES), whole[..whole.len() / 2].to_vec()].concat();
    let most = engine.context_length().saturating_sub(generate);
    let repeated = repeated[repeated.len().saturating_sub(most)..].to_vec();
    let mut reports = vec![
        measure(args, &engine, "repeats its prompt", &repeated)?,
        measure(args, &engine, "a refrain", &engine.tokenize(&REFRAIN.repeat(REFRAINS))?)?,
        measure(args, &engine, "an ordinary story", &ordinary)?,
    ];
    if let Some(model) = &args.draft {
        engine.close();
        let draft = ModelSource::find(Some(model), args.file.into())?.open()?;
        let target = super::source(args)?.load()?;
        let engine = args::builder(target, &args.device, args.memory, 1)?.draft(draft);
        let text = "an ordinary story, with a draft model";
        reports.push(measure(args, &args::start(engine)?, text, &ordinary)?);
    }
    let mut output = Output::new();
    if args.json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    output.line(&reports_table(&reports))
}

fn measure(
    args: &Args,
    engine: &Engine,
    text: &'static str,
    prompt: &[u32],
) -> Result<Report, CliError> {
    let generate = to_usize(args.generate);
    let mut progress = Progress::new();
    let (mut plain, mut speculative) = (vec![], vec![]);
    let before = pollster::block_on(engine.metrics())?;
    for repeat in 0..=args.repeat {
        progress.show(|| format!("{text}: {repeat} of {}", args.repeat));
        let one = greedy(engine, prompt, generate, 0)?;
        let other = greedy(engine, prompt, generate, LOOKAHEAD)?;
        one.check("speculative decoding", &other.tokens)?;
        if repeat > 0 {
            plain.extend(one.decode_tokens_per_second);
            speculative.extend(other.decode_tokens_per_second);
        }
    }
    let after = pollster::block_on(engine.metrics())?;
    let accepted = after.accepted_tokens - before.accepted_tokens;
    let verifications = after.drafts - before.drafts;
    Ok(Report {
        text,
        tokens: generate,
        plain_tokens_per_second: decode_median(plain)?,
        tokens_per_second: decode_median(speculative)?,
        accepted: ratio(accepted, after.draft_tokens - before.draft_tokens),
        tokens_per_verification: ratio(accepted + verifications, verifications),
    })
}

fn greedy(
    engine: &Engine,
    prompt: &[u32],
    generate: usize,
    lookahead: usize,
) -> Result<round::Round, CliError> {
    let options = GenerateOptions::new().temperature(0.0).lookahead(lookahead);
    Ok(round::run_with(engine, &[prompt.to_vec()], &options, generate)?)
}

fn reports_table(reports: &[Report]) -> String {
    let title =
        ["text", "plain tokens/s", "speculative", "ratio", "accepted", "tokens/verification"];
    let row = |report: &Report| {
        let Report { plain_tokens_per_second: plain, tokens_per_second: speculative, .. } = report;
        vec![
            report.text.to_owned(),
            format!("{plain:.1}"),
            format!("{speculative:.1}"),
            format!("{:.2}", speculative / plain),
            format!("{:.0} %", 100.0 * report.accepted),
            format!("{:.1}", report.tokens_per_verification),
        ]
    };
    let title = std::iter::once(title.map(str::to_owned).to_vec());
    table(&title.chain(reports.iter().map(row)).collect::<Vec<_>>())
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
