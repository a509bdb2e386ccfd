//! The ways to split text that `tokenizer.ggml.pre` names.
//!
//! The patterns are those of the models' own `tokenizer.json`. Each cuts the pieces that the one
//! before has left, into its matches and what lies between them.

use std::{fmt, str::FromStr};

use crate::CheckpointError;

/// A way to split text before it is tokenized, by a name that `tokenizer.ggml.pre` may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pretokenizer(&'static str);

impl Pretokenizer {
    /// All names. Some mean the same.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        known_pre_tokenizers()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl FromStr for Pretokenizer {
    type Err = CheckpointError;

    fn from_str(name: &str) -> Result<Self, CheckpointError> {
        let row = named(name)?;
        let known = row.names.iter().find(|known| **known == name);
        Ok(Self(known.copied().unwrap_or(DEFAULT)))
    }
}

impl fmt::Display for Pretokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// A way to split text.
pub(crate) struct PreTokenizer {
    /// Its names; the first is the one to write.
    pub(crate) names: &'static [&'static str],
    /// The patterns, one after the other.
    pub(crate) patterns: &'static [&'static str],
    /// Other patterns with the same results, found in a `tokenizer.json`.
    pub(crate) alternative: &'static [&'static str],
    /// Whether a piece that is a token stays whole, whatever the merges say.
    pub(crate) ignore_merges: bool,
    /// Whether a text begins with the BOS token where the file does not say.
    pub(crate) add_bos: bool,
    /// Whether text is brought into Unicode's form NFC.
    pub(crate) nfc: bool,
}

/// The name for files that give none.
pub(crate) const DEFAULT: &str = "default";
/// The name of Llama 3's way.
pub(crate) const LLAMA_3: &str = "llama-bpe";

/// GPT-2's pattern, which the byte-level pre-tokenizer brings along.
pub(crate) const GPT_2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
pub(crate) const DIGIT: &str = r"\p{N}";
pub(crate) const DIGITS: &str = r"\p{N}+";
/// Runs of punctuation, as Unicode or ASCII have it.
pub(crate) const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]+";

const THREE_DIGITS: &str = "[0-9][0-9][0-9]";
const LLAMA_3_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with marks joined to letters.
const QWEN_35_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Letters of two cases, spelt as numbers because normalisation would change some of them.
const DEEPSEEK_LETTERS: &str = r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+";
const DEEPSEEK_SIGNS: &str = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
const DEEPSEEK_CJK: &str = "[一-龥ࠀ-一가-퟿]+";
const DEEPSEEK_3_WORDS: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const TEKKEN_WORDS: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT_4O_WORDS: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const PLAIN: PreTokenizer = PreTokenizer {
    names: &[],
    patterns: &[],
    alternative: &[],
    ignore_merges: false,
    add_bos: false,
    nfc: false,
};

/// All that are known.
pub(crate) const TABLE: [PreTokenizer; 14] = [
    PreTokenizer {
        names: &[LLAMA_3, "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        patterns: &[LLAMA_3_WORDS],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer { names: &["smaug-bpe", "dbrx"], patterns: &[LLAMA_3_WORDS], ..PLAIN },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen"],
        patterns: &[QWEN_2_WORDS],
        nfc: true,
        ..PLAIN
    },
    PreTokenizer { names: &["qwen35"], patterns: &[QWEN_35_WORDS], nfc: true, ..PLAIN },
    PreTokenizer { names: &["stablelm2", "grok-2"], patterns: &[QWEN_2_WORDS], ..PLAIN },
    PreTokenizer { names: &["gpt-2", "phi-2"], patterns: &[GPT_2], ..PLAIN },
    PreTokenizer { names: &["mpt", "olmo"], patterns: &[GPT_2], nfc: true, ..PLAIN },
    PreTokenizer {
        names: &["falcon"],
        patterns: &[PUNCTUATION, GPT_2, THREE_DIGITS],
        alternative: &[PUNCTUATION, GPT_2, DIGITS, THREE_DIGITS],
        ..PLAIN
    },
    PreTokenizer { names: &["starcoder", "refact", "smollm"], patterns: &[DIGIT, GPT_2], ..PLAIN },
    PreTokenizer {
        names: &["deepseek-llm"],
        patterns: &["[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, r"\s+$", DEEPSEEK_CJK, DIGITS],
        alternative: &["[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, r"\s+$", DEEPSEEK_CJK, DIGIT],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-v3"],
        patterns: &[r"\p{N}{1,3}", "[一-龥\u{3040}-ゟ゠-ヿ]+", DEEPSEEK_3_WORDS],
        ..PLAIN
    },
    PreTokenizer {
        names: &["tekken"],
        patterns: &[TEKKEN_WORDS],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer { names: &["gpt-4o", "llama4"], patterns: &[GPT_4O_WORDS], ..PLAIN },
    PreTokenizer {
        names: &[DEFAULT],
        patterns: &[r"[\p{P}\$\+<=>\^~\|]+", GPT_2, DIGITS, THREE_DIGITS],
        ..PLAIN
    },
];

/// The names that are known, of ways to split text.
pub(crate) fn known_pre_tokenizers() -> Vec<&'static str> {
    TABLE.iter().flat_map(|row| row.names).copied().collect()
}

/// The way with a name.
pub(crate) fn named(name: &str) -> Result<&'static PreTokenizer, CheckpointError> {
    TABLE.iter().find(|row| row.names.contains(&name)).ok_or_else(|| {
        CheckpointError::UnsupportedTokenizer {
            file: "the GGUF vocabulary".to_owned(),
            what: "tokenizer.ggml.pre",
            found: name.to_owned(),
            supported: known_pre_tokenizers().join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_is_there_once_and_a_description_too() {
        let names = known_pre_tokenizers();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for (at, row) in TABLE.iter().enumerate() {
            let same = |other: &PreTokenizer| {
                (other.patterns, other.ignore_merges, other.nfc)
                    == (row.patterns, row.ignore_merges, row.nfc)
            };
            assert_eq!(TABLE.iter().position(same), Some(at), "{:?}", row.names);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_known() {
        let Err(error) = named("martian") else { panic!("no such name") };
        let text = error.to_string();
        assert!(text.contains("`martian`") && text.contains("llama-bpe, llama3"), "{text}");
    }
}
