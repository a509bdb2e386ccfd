//! Room for what normalizers, pre-tokenizers and decoders make of a text.
//!
//! Each stage may put several bytes in the place of one, and a chain of them grows by powers. So
//! before a stage runs, the most that it can make of what is there must fit. Published tokenizers
//! make four bytes of one, and 33 of rare characters.

use tokenizers::{DecoderWrapper, NormalizerWrapper, PreTokenizerWrapper};

use super::charsmap;

/// Bytes that the stages may make of one, beside some for short texts.
const GROWTH: usize = 256;
const SPARE: usize = 1 << 16;

/// The most bytes that a text may become on its way.
pub(super) struct Room {
    limit: usize,
}

impl Room {
    /// Of a text by its bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { limit: bytes.saturating_mul(GROWTH).saturating_add(SPARE) }
    }

    /// Fails if a stage could make more than fits of its bytes, beside what is there.
    pub(super) fn check(
        &self,
        stage: &str,
        there: usize,
        bytes: usize,
        growth: usize,
    ) -> Result<(), String> {
        match bytes.saturating_mul(growth).saturating_add(there) {
            needed if needed <= self.limit => Ok(()),
            needed => {
                let limit = self.limit;
                Err(format!("a {stage} could make {needed} bytes of it, expected at most {limit}"))
            }
        }
    }
}

/// Bytes that a normalizer makes of one at most.
pub(super) fn of_normalizer(stage: &NormalizerWrapper) -> usize {
    match stage {
        NormalizerWrapper::Replace(replace) => 1 + replace.content.len(),
        NormalizerWrapper::Prepend(prepend) => 1 + prepend.prepend.len(),
        NormalizerWrapper::Precompiled(_) => charsmap::MAX_TEXT,
        NormalizerWrapper::ByteLevel(_) => 2,
        NormalizerWrapper::NFC(_) | NormalizerWrapper::NFD(_) | NormalizerWrapper::Lowercase(_) => {
            3
        }
        NormalizerWrapper::NFKC(_)
        | NormalizerWrapper::NFKD(_)
        | NormalizerWrapper::BertNormalizer(_) => 12,
        NormalizerWrapper::StripNormalizer(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::Nmt(_)
        | NormalizerWrapper::Sequence(_) => 1,
    }
}

/// Bytes that a pre-tokenizer makes of one at most, with what it puts before each piece.
pub(super) fn of_pre_tokenizer(stage: &PreTokenizerWrapper) -> usize {
    match stage {
        PreTokenizerWrapper::ByteLevel(_) => 4,
        PreTokenizerWrapper::Metaspace(_) => 8,
        _ => 1,
    }
}

/// Bytes that a decoder makes of one at most, where each token counts as one more.
pub(super) fn of_decoder(stage: &DecoderWrapper) -> usize {
    match stage {
        DecoderWrapper::Replace(replace) => 1 + replace.content.len(),
        DecoderWrapper::ByteLevel(_) => 3,
        DecoderWrapper::BPE(_) | DecoderWrapper::CTC(_) | DecoderWrapper::WordPiece(_) => 2,
        DecoderWrapper::Metaspace(_)
        | DecoderWrapper::Sequence(_)
        | DecoderWrapper::Fuse(_)
        | DecoderWrapper::Strip(_)
        | DecoderWrapper::ByteFallback(_) => 1,
    }
}
