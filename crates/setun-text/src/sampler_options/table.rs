//! The numbers of sampling, one row an option.

/// Calls `callback! { more… rows… }` with a row, as [`option_table!`](crate::option_table) has
/// them, for each number that sampling knows.
#[macro_export]
macro_rules! sampling_options {
    ($callback:ident! { $($more:tt)* }) => { $callback! { $($more)*
        /// Divides the logits: below 1 the distribution is sharper, above 1 flatter; 0 is greedy
        /// decoding.
        temperature: f32 as TEMPERATURE = 0.0, "T", Sampling, from_model;

        /// Top-k sampling: keep the k most probable tokens, and those that tie with the last of
        /// them; 0 keeps all.
        top_k: usize as COUNT = 0, "K", Sampling, from_model;

        /// Top-p (nucleus) sampling: keep the smallest set of tokens whose probabilities sum to at
        /// least p; 1 keeps all.
        ///
        /// The most probable token always stays, so 0 is greedy decoding.
        top_p: f32 as SHARE = 1.0, "P", Sampling, from_model;

        /// Min-p sampling: keep tokens with at least this share of the best token's probability; 0
        /// keeps all.
        min_p: f32 as SHARE = 0.0, "P", Sampling, from_model;

        /// Penalty on tokens that occurred in the prompt or the output: positive logits are divided
        /// by it, negative ones multiplied; 1 is none.
        ///
        /// It counts once, however often the token occurred. Keskar et al., "CTRL", 2019.
        repetition_penalty: f32 as POSITIVE = 1.0, "R", Penalties, from_model, with_beams;

        /// Subtracted from a token's logit for each time that it was generated.
        ///
        /// The prompt does not count. As `OpenAI` and vLLM define it.
        frequency_penalty: f32 as PENALTY = 0.0, "R", Penalties, with_beams;

        /// Subtracted once from the logit of every token that was generated.
        ///
        /// The prompt does not count. As `OpenAI` and vLLM define it.
        presence_penalty: f32 as PENALTY = 0.0, "R", Penalties, with_beams;

        /// Length of token sequences that must not occur twice, prompt included; 0 allows all.
        ///
        /// As `no_repeat_ngram_size` of Hugging Face's `generate`.
        no_repeat_ngram: usize as COUNT = 0, "N", Penalties, with_beams;

        /// DRY: the penalty on a token that would extend a repetition; 0 is none.
        ///
        /// Where the last *m* tokens occurred before, the token that followed them loses
        /// *multiplier · base^(m − allowed length)*, if *m* is at least the allowed length. The
        /// longest such *m* counts, up to 50; the penalty is at most 10³⁰. Weidmann, "Don't repeat
        /// yourself", 2024.
        dry_multiplier: f32 as NON_NEGATIVE = 0.0, "R", Penalties, with_beams;

        /// DRY: the base of the penalty, which grows by this factor with each repeated token.
        dry_base: f32 as FROM_ONE = 1.75, "R", Penalties, with_beams;

        /// DRY: the length of a repetition, in tokens, that costs the multiplier alone.
        dry_allowed_length: usize as COUNT = 2, "N", Penalties, with_beams;

        /// DRY: how many tokens back repetitions are searched for, prompt included; 0 is all.
        dry_range: usize as COUNT = 0, "N", Penalties, with_beams;

        /// Fewest tokens to generate before an end-of-text token may come.
        ///
        /// Stop strings end a text before.
        min_tokens: usize as COUNT = 0, "N", Length, with_beams;

        /// Dynamic temperature: how far the temperature may move with the entropy of the
        /// candidates; 0 keeps it fixed.
        ///
        /// It lies between *max(0, t − r)* and *t + r*, at the share *(H / ln n)^exponent* of the
        /// way, where *t* is `temperature`, *r* this range and *H* the entropy of the *n* tokens
        /// that are left. At 0 the best token alone is left. As llama.cpp's `dynatemp_range`.
        dynamic_temperature: f32 as NON_NEGATIVE = 0.0, "R", MoreSampling;

        /// Dynamic temperature: the exponent of the entropy's share.
        dynamic_temperature_exponent: f32 as POSITIVE = 1.0, "E", MoreSampling;

        /// Top-nσ sampling: keep logits within n standard deviations of the best; 0 keeps all.
        ///
        /// The deviation is the root of the mean square over the tokens that are left. Tang et al.,
        /// "Top-nσ: not all logits are you need", 2024.
        top_n_sigma: f32 as NON_NEGATIVE = 0.0, "N", MoreSampling;

        /// Locally typical sampling: keep the tokens whose information is nearest to the entropy,
        /// until their probabilities sum to this; 1 keeps all.
        ///
        /// The information of a token is *−ln p*; tokens that tie with the last stay, too. Meister
        /// et al., "Locally typical sampling", 2022.
        typical_p: f32 as SHARE = 1.0, "P", MoreSampling;

        /// Epsilon sampling: keep tokens of at least this probability; 0 keeps all.
        ///
        /// The best token always stays. Hewitt, Manning and Liang, "Truncation sampling as language
        /// model desmoothing", 2022.
        epsilon_cutoff: f32 as CUTOFF = 0.0, "P", MoreSampling;

        /// Eta sampling: keep tokens of at least the probability min(η, √η · e^−H), where H is the
        /// entropy; 0 keeps all.
        ///
        /// The best token always stays. From the same paper as `epsilon_cutoff`.
        eta_cutoff: f32 as CUTOFF = 0.0, "P", MoreSampling;

        /// XTC (exclude top choices): the probability with which all of the most probable tokens
        /// but the last are dropped; 0 is never.
        ///
        /// It concerns the tokens of at least `xtc_threshold`, where there are two or more.
        /// Weidmann, "Exclude top choices", 2024.
        xtc_probability: f32 as SHARE = 0.0, "P", MoreSampling;

        /// XTC: the probability from which a token counts as a top choice.
        xtc_threshold: f32 as HALF = 0.1, "P", MoreSampling;

        /// Mirostat 2: the target surprise τ, in bits a token; 0 turns it off.
        ///
        /// A token stays while *−log₂ p ≤ μ*, and the best always does. *μ* begins at 2τ; after a
        /// token of surprise *S* it becomes *μ − η(S − τ)*. Basu et al., "Mirostat: a neural text
        /// decoding algorithm that directly controls perplexity", 2021.
        mirostat_tau: f32 as NON_NEGATIVE = 0.0, "BITS", MoreSampling;

        /// Mirostat 2: the learning rate η.
        mirostat_eta: f32 as NON_NEGATIVE = 0.1, "RATE", MoreSampling;
    } };
}
