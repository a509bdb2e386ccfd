//! Types and ranges of options.

use std::{borrow::Cow, fmt};

use super::OptionValue;
use crate::SamplingStep;

/// The lowest temperature besides 0. Anything below is greedy in all but name, and logits
/// divided by much less overflow.
pub const MIN_TEMPERATURE: f32 = 1e-6;

/// The largest `f32` below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// Longest time that an option can give, in seconds.
const MAX_SECONDS: f32 = 1e9;

/// The type of an option's values, and which of them it takes. Displays as what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionKind {
    /// A number with a fraction.
    Number(NumberRange),
    /// An integer.
    Integer(IntegerRange),
    /// A seed of 64 bits. JavaScript has a bigint for those beyond 2⁵³ − 1.
    Seed,
    /// A time: seconds in Rust, TOML and on the command line, milliseconds in JavaScript.
    Time(NumberRange),
    /// True or false.
    Flag,
    /// A string that is not empty.
    Text,
    /// Strings, none of them empty.
    Strings,
    /// Ids of tokens.
    Tokens,
    /// A number for each of some tokens.
    Biases,
    /// Names of sampling steps, each at most once.
    Steps,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A list of names that its type reads: what they name.
    Names(&'static str),
    /// An object that each surface reads in its own way.
    Structured(&'static str),
}

/// A range of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    /// The smallest number.
    pub min: f32,
    /// The largest number.
    pub max: f32,
    /// Whether 0 is taken, too.
    pub or_zero: bool,
}

/// A range of integers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    /// The smallest number.
    pub min: i64,
    /// The largest number; [`u64::MAX`] where there is no limit.
    pub max: u64,
}

impl OptionKind {
    /// From 0 to 1.
    pub const SHARE: Self = Self::number(0.0, 1.0);
    /// Above 0, up to 1.
    pub const FRACTION: Self = Self::number(f32::MIN_POSITIVE, 1.0);
    /// Above 0, below 1.
    pub const PROPER_FRACTION: Self = Self::number(f32::MIN_POSITIVE, BELOW_ONE);
    /// From 0 to 0.5.
    pub const HALF: Self = Self::number(0.0, 0.5);
    /// 0 or more, below 1.
    pub const CUTOFF: Self = Self::number(0.0, BELOW_ONE);
    /// 0 or more.
    pub const NON_NEGATIVE: Self = Self::number(0.0, f32::MAX);
    /// Above 0.
    pub const POSITIVE: Self = Self::number(f32::MIN_POSITIVE, f32::MAX);
    /// 1 or more.
    pub const FROM_ONE: Self = Self::number(1.0, f32::MAX);
    /// From −2 to 2.
    pub const PENALTY: Self = Self::number(-2.0, 2.0);
    /// Any finite number.
    pub const FINITE: Self = Self::number(f32::MIN, f32::MAX);
    /// 0, or [`MIN_TEMPERATURE`] or more.
    pub const TEMPERATURE: Self =
        Self::Number(NumberRange { min: MIN_TEMPERATURE, max: f32::MAX, or_zero: true });
    /// An integer of 0 or more.
    pub const COUNT: Self = Self::integer(0, u64::MAX);
    /// An integer of 1 or more.
    pub const POSITIVE_COUNT: Self = Self::integer(1, u64::MAX);
    /// A time of 0 or more.
    pub const TIME: Self = Self::Time(NumberRange { min: 0.0, max: MAX_SECONDS, or_zero: false });

    /// A time of up to an hour.
    pub const WAIT: Self = Self::Time(NumberRange { min: 0.0, max: 3600.0, or_zero: false });

    /// A number of a range, both ends included.
    #[must_use]
    pub const fn number(min: f32, max: f32) -> Self {
        Self::Number(NumberRange { min, max, or_zero: false })
    }

    /// An integer of a range, both ends included.
    #[must_use]
    pub const fn integer(min: i64, max: u64) -> Self {
        Self::Integer(IntegerRange { min, max })
    }

    /// Turns an integer into text where the option is a choice of names, such as `32`.
    pub(super) fn named(self, value: &OptionValue) -> Cow<'_, OptionValue> {
        match (self, value) {
            (Self::Choice(_), OptionValue::Integer(number)) => {
                Cow::Owned(OptionValue::Text(number.to_string()))
            }
            _ => Cow::Borrowed(value),
        }
    }

    /// Whether the option takes a value.
    #[must_use]
    pub fn accepts(&self, value: &OptionValue) -> bool {
        use OptionValue as Value;
        match self {
            Self::Number(range) | Self::Time(range) => {
                value.number().is_some_and(|number| range.contains(number))
            }
            Self::Integer(range) => value.integer().is_some_and(|number| range.contains(number)),
            Self::Seed => value.integer().is_some_and(|number| u64::try_from(number).is_ok()),
            Self::Flag => matches!(value, Value::Flag(_)),
            Self::Choice(names) => value.name().is_some_and(|name| names.contains(&name)),
            Self::Text => is_text(value),
            Self::Strings | Self::Names(_) => value.all(is_text),
            Self::Tokens => value.all(|token| token.token().is_some()),
            Self::Biases => value.biases().is_some(),
            Self::Steps => value.steps().is_some_and(|steps| SamplingStep::ordered(&steps).is_ok()),
            Self::Structured(_) => false,
        }
    }
}

fn is_text(value: &OptionValue) -> bool {
    value.text().is_some_and(|text| !text.is_empty())
}

impl NumberRange {
    /// Whether a number is in the range. None that is not finite is.
    #[must_use]
    pub fn contains(&self, number: f32) -> bool {
        (self.min..=self.max).contains(&number) || (self.or_zero && number == 0.0)
    }

    /// The words for a unit of which one second, or one of any other quantity, is `factor`.
    #[must_use]
    pub fn describe(&self, noun: &str, factor: f32) -> String {
        let zero = if self.or_zero { "0, or " } else { "" };
        let [min, max] = [self.min, self.max].map(|end| end * factor);
        let a = if self.max == f32::MAX { "a finite" } else { "a" };
        let range = match (self.min, self.max) {
            (f32::MIN, f32::MAX) => String::new(),
            (f32::MIN_POSITIVE, f32::MAX) => " above 0".to_owned(),
            (f32::MIN_POSITIVE, BELOW_ONE) => " above 0, below 1".to_owned(),
            (f32::MIN_POSITIVE, _) => format!(" above 0, up to {max}"),
            (_, f32::MAX) => format!(" of {min} or more"),
            (_, BELOW_ONE) => format!(" of {min} or more, below 1"),
            _ => format!(" from {min} to {max}"),
        };
        format!("{zero}{a} {noun}{range}")
    }
}

impl IntegerRange {
    /// Whether a number is in the range.
    #[must_use]
    pub fn contains(&self, number: i128) -> bool {
        (i128::from(self.min)..=i128::from(self.max)).contains(&number)
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.describe("number", 1.0))
    }
}

impl fmt::Display for IntegerRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { min, max: u64::MAX } => write!(formatter, "an integer of {min} or more"),
            Self { min, max } => write!(formatter, "an integer from {min} to {max}"),
        }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(range) => range.fmt(formatter),
            Self::Integer(range) => range.fmt(formatter),
            Self::Time(range) => formatter.write_str(&range.describe("number of seconds", 1.0)),
            Self::Seed => formatter.write_str("an integer from 0 to 2^64 - 1"),
            Self::Flag => formatter.write_str("true or false"),
            Self::Choice(names) => write!(formatter, "one of {}", names.join(", ")),
            Self::Text => formatter.write_str("a non-empty string"),
            Self::Strings => formatter.write_str("a list of non-empty strings"),
            Self::Tokens => formatter.write_str("a list of token ids"),
            Self::Biases => formatter.write_str("finite numbers by token id"),
            Self::Steps => formatter.write_str("a list of distinct sampling steps"),
            Self::Names(expected) | Self::Structured(expected) => formatter.write_str(expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(kind: OptionKind) -> String {
        kind.to_string()
    }

    #[test]
    fn ranges_say_what_they_take() {
        assert_eq!(words(OptionKind::SHARE), "a number from 0 to 1");
        assert_eq!(words(OptionKind::PENALTY), "a number from -2 to 2");
        assert_eq!(words(OptionKind::CUTOFF), "a number of 0 or more, below 1");
        assert_eq!(words(OptionKind::POSITIVE), "a finite number above 0");
        assert_eq!(words(OptionKind::FROM_ONE), "a finite number of 1 or more");
        let temperature = "0, or a finite number of 0.000001 or more";
        assert_eq!(words(OptionKind::TEMPERATURE), temperature);
        assert_eq!(words(OptionKind::COUNT), "an integer of 0 or more");
        assert_eq!(words(OptionKind::integer(0, 255)), "an integer from 0 to 255");
        assert_eq!(words(OptionKind::TIME), "a number of seconds from 0 to 1000000000");
    }

    #[test]
    fn one_of_some_names_is_taken() {
        let choice = OptionKind::Choice(&["true", "false", "never"]);
        assert_eq!(words(choice), "one of true, false, never");
        let taken = [OptionValue::Flag(true), OptionValue::Text("never".into())];
        assert!(taken.iter().all(|value| choice.accepts(value)));
        assert!(!choice.accepts(&OptionValue::Text("always".into())));
        assert!(!choice.accepts(&OptionValue::Integer(1)));
        let numbers = OptionKind::Choice(&["row", "32"]);
        let is_taken = |value| numbers.accepts(&numbers.named(&value));
        assert!(is_taken(OptionValue::Integer(32)) && is_taken(OptionValue::Text("row".into())));
        assert!(!is_taken(OptionValue::Integer(-32)) && !is_taken(OptionValue::Number(32.5)));
    }

    #[test]
    fn numbers_are_taken_as_single_precision() {
        let share = OptionKind::SHARE;
        assert!(share.accepts(&OptionValue::Number(1.0)));
        assert!(share.accepts(&OptionValue::Integer(1)));
        assert!(!share.accepts(&OptionValue::Number(1.000_001)));
        assert!(!share.accepts(&OptionValue::Number(f64::NAN)));
        assert!(!share.accepts(&OptionValue::Text("1".into())));
        assert!(!OptionKind::NON_NEGATIVE.accepts(&OptionValue::Number(1e39)));
        assert!(OptionKind::TEMPERATURE.accepts(&OptionValue::Number(1e-6)));
        assert!(!OptionKind::TEMPERATURE.accepts(&OptionValue::Number(9.9e-7)));
    }

    #[test]
    fn numbers_that_are_no_integers_show_it() {
        let shown = |number| OptionValue::Number(number).to_string();
        let large = 9_007_199_254_740_994.0; // beyond what a number holds exactly
        assert!(!OptionKind::Seed.accepts(&OptionValue::Number(large)));
        assert_eq!(shown(large), "9007199254740994.0");
        assert_eq!([1e300, 1.5, 42.0].map(shown), ["1e300", "1.5", "42"]);
    }

    #[test]
    fn integers_have_no_fraction() {
        assert!(!OptionKind::COUNT.accepts(&OptionValue::Number(1.5)));
        assert!(!OptionKind::COUNT.accepts(&OptionValue::Integer(-1)));
        assert!(OptionKind::Seed.accepts(&OptionValue::Integer(u64::MAX.into())));
        assert!(!OptionKind::Seed.accepts(&OptionValue::Integer(i128::from(u64::MAX) + 1)));
    }

    #[test]
    fn lists_are_checked_item_by_item() {
        let text = |text: &str| OptionValue::Text(text.into());
        let list = |values: &[OptionValue]| OptionValue::List(values.to_vec());
        assert!(OptionKind::Strings.accepts(&list(&[text("a"), text("b")])));
        assert!(!OptionKind::Strings.accepts(&list(&[text("")])));
        assert!(!OptionKind::Strings.accepts(&text("a")));
        assert!(OptionKind::Text.accepts(&text("a")) && !OptionKind::Text.accepts(&text("")));
        assert!(OptionKind::Tokens.accepts(&list(&[OptionValue::Integer(u32::MAX.into())])));
        assert!(!OptionKind::Tokens.accepts(&list(&[OptionValue::Integer(1 << 32)])));
        assert!(OptionKind::Steps.accepts(&list(&[text("topK"), text("min_p")])));
        assert!(!OptionKind::Steps.accepts(&list(&[text("topK"), text("top_k")])));
        let biases =
            |key: &str, bias| OptionValue::Map(vec![(key.to_owned(), OptionValue::Number(bias))]);
        assert!(OptionKind::Biases.accepts(&biases("3", -100.0)));
        assert!(!OptionKind::Biases.accepts(&biases("a", 1.0)));
        assert!(!OptionKind::Biases.accepts(&biases("3", f64::INFINITY)));
    }
}
