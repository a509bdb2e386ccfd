//! Options of a generation, from a JavaScript object.

use std::{collections::BTreeMap, time::Duration};

use js_sys::{Object, Reflect};
use serde::de::DeserializeOwned;
use setun::{GenerateOptions, SamplingStep};
use wasm_bindgen::{JsCast, JsValue};

use crate::{content_filter::filter, context_strategy, error::bad_option, processors};

/// The options that the engine has by the same name.
macro_rules! names {
    ($($name:ident = $key:literal,)*) => {
        const NAMES: &[&str] = &[$($key),*];

        fn read_named(given: &Given, options: &mut GenerateOptions) -> Result<(), JsValue> {
            $(options.$name = given.get($key)?;)*
            Ok(())
        }
    };
}

names! {
    max_tokens = "maxTokens",
    temperature = "temperature",
    dynamic_temperature = "dynamicTemperature",
    dynamic_temperature_exponent = "dynamicTemperatureExponent",
    top_n_sigma = "topNSigma",
    top_k = "topK",
    top_p = "topP",
    min_p = "minP",
    typical_p = "typicalP",
    epsilon_cutoff = "epsilonCutoff",
    eta_cutoff = "etaCutoff",
    xtc_probability = "xtcProbability",
    xtc_threshold = "xtcThreshold",
    mirostat_tau = "mirostatTau",
    mirostat_eta = "mirostatEta",
    repetition_penalty = "repetitionPenalty",
    frequency_penalty = "frequencyPenalty",
    presence_penalty = "presencePenalty",
    no_repeat_ngram = "noRepeatNgram",
    dry_multiplier = "dryMultiplier",
    dry_base = "dryBase",
    dry_allowed_length = "dryAllowedLength",
    dry_range = "dryRange",
    dry_breakers = "dryBreakers",
    allowed_tokens = "allowedTokens",
    min_tokens = "minTokens",
    seed = "seed",
}

/// Those that it has in another form.
const OTHERS: &[&str] = &[
    "bannedTokens",
    "ban",
    "stop",
    "filter",
    "grammar",
    "logitBias",
    "samplingOrder",
    "processors",
    "logprobs",
    "topLogprobs",
    "promptLogprobs",
    "lookahead",
    "contextStrategy",
    "priority",
    "deadline",
];

/// Reads options of a model with `vocabulary` tokens; unknown ones are refused by name.
pub(crate) fn parse(options: JsValue, vocabulary: usize) -> Result<GenerateOptions, JsValue> {
    let given = Given(options);
    given.check()?;
    let mut options = GenerateOptions::new().logprobs(given.get("logprobs")?.unwrap_or(false));
    read_named(&given, &mut options)?;
    options.banned_tokens = given.get("bannedTokens")?.unwrap_or_default();
    options.ban = given.get("ban")?.unwrap_or_default();
    options.stop = given.get("stop")?.unwrap_or_default();
    options.filter = given.get("filter")?.map(filter).transpose()?;
    #[cfg(target_family = "wasm")]
    {
        options.form = crate::grammar::constraint(given.value("grammar")?);
    }
    options.logit_bias = biases(given.get("logitBias")?.unwrap_or_default())?;
    let order: Vec<String> = given.get("samplingOrder")?.unwrap_or_default();
    let step = |name: String| name.parse::<SamplingStep>();
    let order: Result<_, _> = order.into_iter().map(step).collect();
    options.sampling_order = order.map_err(|error| bad_option(&error.to_string()))?;
    options.top_logprobs = given.get("topLogprobs")?.unwrap_or_default();
    options.echo = given.get("promptLogprobs")?.unwrap_or_default();
    options.lookahead = given.get("lookahead")?.unwrap_or_default();
    options.context = context_strategy::strategy(given.value("contextStrategy")?)?;
    options.priority = given.get("priority")?.unwrap_or_default();
    options.deadline = given.get("deadline")?.map(milliseconds).transpose()?;
    processors::add(&given.value("processors")?, vocabulary, options)
}

/// An object with options, or nothing.
struct Given(JsValue);

impl Given {
    fn check(&self) -> Result<(), JsValue> {
        let Some(object) = self.0.dyn_ref::<Object>() else { return Ok(()) };
        for key in Object::keys(object).iter().filter_map(|key| key.as_string()) {
            let given = Reflect::get(object, &key.as_str().into())?;
            let is_known = NAMES.iter().chain(OTHERS).any(|name| *name == key);
            if !is_known && !given.is_undefined() {
                let names = [NAMES, OTHERS].concat().join(", ");
                return Err(bad_option(&format!("unknown option `{key}`, expected {names}")));
            }
        }
        Ok(())
    }

    /// An option as it is given, or `undefined`.
    fn value(&self, key: &str) -> Result<JsValue, JsValue> {
        if self.0.is_undefined() {
            Ok(JsValue::UNDEFINED)
        } else {
            Reflect::get(&self.0, &key.into())
        }
    }

    /// An option, if it is given.
    fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, JsValue> {
        let read = serde_wasm_bindgen::from_value(self.value(key)?);
        read.map_err(|error| bad_option(&format!("option `{key}`: {error}")))
    }
}

/// A time, of which JavaScript gives milliseconds.
fn milliseconds(given: f64) -> Result<Duration, JsValue> {
    let time = Duration::try_from_secs_f64(given / 1e3);
    time.map_err(|error| bad_option(&format!("option `deadline`: {error}")))
}

/// Biases by token. The keys of an object are texts.
fn biases(given: BTreeMap<String, f32>) -> Result<BTreeMap<u32, f32>, JsValue> {
    let bias = |(token, bias): (String, f32)| Some((token.parse().ok()?, bias));
    let biases: Option<_> = given.into_iter().map(bias).collect();
    biases.ok_or_else(|| bad_option("option `logitBias`: expected ids of tokens as names"))
}
