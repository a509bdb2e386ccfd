//! A choice among 128,256 tokens whose logits are normal, by what the first step looks at.

use divan::Bencher;
use setun_text::{Draw, Sampler, SamplerOptions, SamplerState, Step};

fn main() {
    divan::main();
}

/// As many as Llama 3 has.
const VOCABULARY: u64 = 128_256;

#[derive(Debug)]
enum First {
    Temperature,
    TopP,
    TopK,
    MinP,
}

#[divan::bench(args = [First::Temperature, First::TopP, First::TopK, First::MinP])]
fn sample(bencher: Bencher, first: &First) {
    let mut options = SamplerOptions { temperature: 0.8, ..SamplerOptions::default() };
    match first {
        First::Temperature => {}
        First::TopP => options.top_p = 0.95,
        First::TopK => options.top_k = 40,
        First::MinP => options.min_p = 0.05,
    }
    let sampler = Sampler::new(options).expect("valid options");
    let logits = logits();
    let mut state = SamplerState::default();
    let mut index = 0;
    bencher.bench_local(|| {
        index += 1;
        let step = Step::new(&[], 0, Draw { seed: 1, sequence: 0, index });
        sampler.sample(&logits, &step, &mut state).expect("finite logits").token
    });
}

/// Twice the sum of twelve uniform numbers less their mean: nearly normal, deviation 2.
#[expect(clippy::cast_possible_truncation, reason = "a logit")]
fn logits() -> Vec<f32> {
    let uniform = |index, number| Draw { seed: 2, sequence: 0, index }.uniform(number);
    let logit =
        |index| (2.0 * ((0..12).map(|number| uniform(index, number)).sum::<f64>() - 6.0)) as f32;
    (0..VOCABULARY).map(logit).collect()
}
