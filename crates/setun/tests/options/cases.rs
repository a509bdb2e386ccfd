//! Values at the ends of each option's range and just outside.

use serde_json::{Value, json};
use setun::{
    BeamOptions, GenerateOptions,
    text::{NumberRange, OptionKind, OptionSpec},
};

/// Values that an option accepts, and that it refuses.
pub(crate) struct Cases {
    pub(crate) accepted: Vec<Value>,
    pub(crate) refused: Vec<Value>,
}

impl Cases {
    /// Those of a kind; none of a structured one.
    pub(crate) fn of(kind: OptionKind) -> Self {
        let (accepted, refused) = match kind {
            OptionKind::Number(range) | OptionKind::Time(range) => return Self::of_numbers(range),
            OptionKind::Integer(range) => {
                let max = if range.max == u64::MAX { 1 << 32 } else { range.max };
                let above = if range.max == u64::MAX { json!(0.5) } else { json!(range.max + 1) };
                (vec![json!(range.min), json!(max)], vec![json!(range.min - 1), above])
            }
            OptionKind::Seed => (vec![json!(0), json!(9_007_199_254_740_991_i64)], vec![json!(-1)]),
            OptionKind::Flag => (vec![json!(true)], vec![json!(1)]),
            OptionKind::Choice(names) => {
                (names[2..].iter().map(|name| json!(name)).collect(), vec![json!("maybe")])
            }
            OptionKind::Text => (vec![json!("a")], vec![json!(""), json!(1)]),
            OptionKind::Strings => (vec![json!(["a"])], vec![json!([""])]),
            OptionKind::Tokens => {
                let beyond = 1_i64 << 32;
                (vec![json!([0, beyond - 1])], vec![json!([-1]), json!([beyond])])
            }
            OptionKind::Biases => {
                (vec![json!({"3": -100.5})], vec![json!({"a": 1}), json!({"3": 1e39})])
            }
            OptionKind::Steps => (
                vec![json!(["topP", "temperature"])],
                vec![json!(["topQ"]), json!(["topK", "topK"])],
            ),
            _ => (vec![], vec![]),
        };
        Self { accepted, refused }
    }

    fn of_numbers(range: NumberRange) -> Self {
        let NumberRange { min, max, or_zero } = range;
        // As decimals, so that the files show what a person would write.
        let [min, max] = [min, max].map(|end| end.to_string().parse::<f64>().expect("a number"));
        let min = min.max(-1e38);
        let below = if min == -1e38 {
            -1e39
        } else if min.abs() < 0.01 {
            min - min.max(1e-3)
        } else {
            min - min.abs() * 1e-3
        };
        let above = if max > 1e30 { 1e39 } else { max * 1.001 };
        let mut accepted = vec![json!(min)];
        if max < 1e30 {
            accepted.push(json!(max));
        }
        if or_zero {
            accepted.push(json!(0));
        }
        let below = if or_zero { min * 0.9 } else { below };
        Self { accepted, refused: vec![json!(below), json!(above)] }
    }
}

/// The cases of all options for the tests of other surfaces.
pub(crate) fn json() -> String {
    let case = |spec: &OptionSpec| {
        let Cases { accepted, refused } = Cases::of(spec.kind);
        json!({
            "name": spec.name,
            "flags": spec.flags(),
            "key": spec.javascript_key(),
            "expected": spec.kind.to_string(),
            "isTime": matches!(spec.kind, OptionKind::Time(_)),
            "isFlag": spec.kind == OptionKind::Flag,
            "accepted": accepted,
            "refused": refused,
        })
    };
    let cases: Vec<Value> =
        GenerateOptions::SPECS.iter().chain(BeamOptions::SPECS).map(case).collect();
    serde_json::to_string_pretty(&cases).expect("JSON") + "\n"
}
