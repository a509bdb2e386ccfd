//! Bounds of the lists of a generation, each of which is copied, and looked through for each token.

use super::GenerateOptions;
use crate::error::Error;

/// Most tokens that a list may name: no vocabulary is much larger.
const MAX_TOKENS: usize = 1 << 18;

/// The bound of a list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListBound {
    /// The option.
    pub option: &'static str,
    /// Most items.
    pub items: usize,
    /// Most bytes of all its strings together; none of a list of tokens.
    pub bytes: Option<usize>,
    length: fn(&GenerateOptions) -> Length,
}

/// Items, and bytes of strings.
type Length = (usize, usize);

impl GenerateOptions {
    /// The bounds of all lists.
    pub const LIST_BOUNDS: &[ListBound] = &[
        strings("stop", 256, 16 << 10, |options| length(&options.stop)),
        strings("dry_breakers", 256, 16 << 10, |options| {
            options.dry_breakers.as_deref().map_or((0, 0), length)
        }),
        strings("bad_words", 1024, 64 << 10, |options| length(&options.bad_words)),
        tokens("stop_token_ids", 1024, |options| (options.stop_token_ids.len(), 0)),
        tokens("logit_bias", MAX_TOKENS, |options| (options.logit_bias.len(), 0)),
        tokens("allowed_tokens", MAX_TOKENS, |options| {
            (options.allowed_tokens.as_ref().map_or(0, Vec::len), 0)
        }),
        tokens("banned_tokens", MAX_TOKENS, |options| (options.banned_tokens.len(), 0)),
        tokens("generated_tokens", 1 << 20, |options| (options.generated_tokens.len(), 0)),
    ];

    /// Checks the length of a list by its name. Any other name passes.
    ///
    /// # Errors
    ///
    /// If it is too long; the error names it.
    pub fn check_list(&self, name: &str) -> Result<(), Error> {
        let mut bounds = Self::LIST_BOUNDS.iter().filter(|bound| bound.option == name);
        bounds.try_for_each(|bound| bound.check(self))
    }

    pub(super) fn check_lists(&self) -> Result<(), Error> {
        Self::LIST_BOUNDS.iter().try_for_each(|bound| bound.check(self))
    }
}

impl ListBound {
    fn check(&self, options: &GenerateOptions) -> Result<(), Error> {
        let (items, bytes) = (self.length)(options);
        let refused = |found: usize, most: usize, unit: &str| Error::BadOption {
            option: self.option,
            found: format!("a list of {found} {unit}"),
            expected: format!("at most {most} {unit}"),
        };
        match self.bytes {
            _ if items > self.items => Err(refused(items, self.items, "items")),
            Some(most) if bytes > most => Err(refused(bytes, most, "bytes")),
            _ => Ok(()),
        }
    }
}

const fn strings(
    option: &'static str,
    items: usize,
    bytes: usize,
    length: fn(&GenerateOptions) -> Length,
) -> ListBound {
    ListBound { option, items, bytes: Some(bytes), length }
}

const fn tokens(
    option: &'static str,
    items: usize,
    length: fn(&GenerateOptions) -> Length,
) -> ListBound {
    ListBound { option, items, bytes: None, length }
}

fn length(texts: &[String]) -> Length {
    (texts.len(), texts.iter().map(String::len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_a_bound_and_the_error_names_it() {
        let texts = |count: usize, length: usize| vec!["a".repeat(length); count];
        let refused = |options: GenerateOptions| options.check().expect_err("too long").to_string();
        let named = |name: &str, found: &str, most: usize| {
            let unit = found.split_once(' ').expect("a unit").1;
            format!("option `{name}` is a list of {found}, expected at most {most} {unit}")
        };
        let new = GenerateOptions::new;
        assert_eq!(refused(new().stop(texts(257, 1))), named("stop", "257 items", 256));
        assert_eq!(refused(new().stop(texts(1, 16385))), named("stop", "16385 bytes", 16384));
        new().stop(texts(256, 64)).check().expect("at the bounds");
        let words = new().bad_words(texts(1025, 1));
        assert_eq!(refused(words), named("bad_words", "1025 items", 1024));
        let breakers = new().dry_breakers(texts(257, 1));
        assert_eq!(refused(breakers.clone()), named("dry_breakers", "257 items", 256));
        assert!(breakers.check_list("stop").is_ok() && breakers.check_list("seed").is_ok());
        let ends = new().stop_token_ids(vec![1_u32; 1025]);
        assert_eq!(refused(ends), named("stop_token_ids", "1025 items", 1024));
        for options in [
            new().allowed_tokens(vec![1; MAX_TOKENS + 1]),
            new().banned_tokens(vec![1_u32; MAX_TOKENS + 1]),
            new().logit_bias((0..=1 << 18).map(|token| (token, 1.0))),
        ] {
            assert!(refused(options).ends_with("262145 items, expected at most 262144 items"));
        }
    }
}
