//! Options of sampling, for a tokenizer and a vocabulary.

use setun_text::{SamplingStep, TextError};

use super::*;

/// A token a character.
struct Letters;

impl Tokenizer for Letters {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.chars().map(u32::from).collect())
    }

    fn decode(&self, _: &[u32], _: bool) -> Result<String, TextError> {
        Ok(String::new())
    }

    fn vocab_size(&self) -> usize {
        128
    }

    fn token_to_id(&self, _: &str) -> Option<u32> {
        None
    }

    fn id_to_token(&self, _: u32) -> Option<String> {
        None
    }
}

fn sampler(options: &GenerateOptions, defaults: &SamplerOptions) -> Result<Sampler, String> {
    let tokenizer: Option<&dyn Tokenizer> = Some(&Letters);
    let meaning = Meaning { defaults, tokenizer, end_tokens: &[2, 900], vocabulary: 128 };
    options.sampler(&meaning).map_err(|error| error.to_string())
}

#[test]
fn what_is_not_given_is_the_models_own() {
    let defaults = SamplerOptions {
        temperature: 0.6,
        top_k: 40,
        repetition_penalty: 1.1,
        ..SamplerOptions::default()
    };
    let same = sampler(&GenerateOptions::new(), &defaults).expect("in range");
    let expected = SamplerOptions { end_tokens: vec![2, 900], ..defaults.clone() };
    assert_eq!(same.options(), &expected);
    let given = GenerateOptions::new().top_k(3).mirostat_tau(2.0).logit_bias([(7, 1.5)]);
    let found = sampler(&given, &defaults).expect("in range");
    let expected =
        SamplerOptions { top_k: 3, mirostat_tau: 2.0, logit_bias: [(7, 1.5)].into(), ..expected };
    assert_eq!(found.options(), &expected);
}

#[test]
fn texts_become_tokens() {
    let options = GenerateOptions::new().bad_words(["no"]).dry_multiplier(0.8);
    let found = sampler(&options, &SamplerOptions::default()).expect("in range");
    let (n, o, space) = (u32::from('n'), u32::from('o'), u32::from(' '));
    assert_eq!(found.options().banned_sequences, [vec![n, o], vec![space, n, o]]);
    let breakers = ['\n', '"', '*', ':'].map(u32::from);
    assert_eq!(found.options().dry_breakers, breakers);
    let own = options.dry_breakers(vec!["b;".to_owned()]);
    let found = sampler(&own, &SamplerOptions::default()).expect("in range");
    assert_eq!(found.options().dry_breakers, [u32::from(';')]);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |options: GenerateOptions| {
        sampler(&options, &SamplerOptions::default()).expect_err("it cannot be")
    };
    assert!(
        refused(GenerateOptions::new().typical_p(1.5)).starts_with("option `typical_p` is 1.5")
    );
    let beyond = refused(GenerateOptions::new().banned_tokens([128_u32]));
    assert_eq!(beyond, "banned_tokens names token 128, expected an id below 128");
    let order = [SamplingStep::TopK, SamplingStep::TopK];
    assert!(refused(GenerateOptions::new().sampling_order(order)).contains("`top_k` twice"));

    let defaults = SamplerOptions::default();
    let meaning = Meaning { defaults: &defaults, tokenizer: None, end_tokens: &[], vocabulary: 9 };
    let error =
        GenerateOptions::new().bad_words(["x"]).sampler(&meaning).expect_err("no tokenizer");
    assert!(error.to_string().starts_with("option `bad_words` is given"), "{error}");
    let error = GenerateOptions::new().min_tokens(5).max_tokens(4).check().expect_err("too many");
    assert!(error.to_string().starts_with("option `min_tokens` is 5"), "{error}");
    assert!(GenerateOptions::new().bad_words([""]).check().is_err());
}
