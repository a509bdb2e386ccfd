//! The way of a text through the stages of a tokenizer, and back.
//!
//! The stages and their order are those of the `tokenizers` crate. They are called one by one, so
//! that each is known to have room and to find a text that it can align; and ids alone are kept.

use std::cell::{Cell, RefCell};

use tokenizers::{
    Decoder as _, DecoderWrapper, Model as _, NormalizedString, Normalizer, NormalizerWrapper,
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _, PreTokenizerWrapper,
    Token, normalizer::Range,
};

use super::byte_level::pre_tokenize_ascii;
use super::growth::{Room, of_decoder, of_normalizer, of_pre_tokenizer};
use crate::spellings::{Spellings, parts};

/// The ids of a text without its marks, or why it cannot be encoded. A special token with a mark
/// inside its spelling stays text.
pub(super) fn ids(
    tokenizer: &tokenizers::Tokenizer,
    text: &str,
    mark: Option<char>,
) -> Result<Vec<u32>, String> {
    let added = tokenizer.get_added_vocabulary();
    let room = Room::new(text.len());
    let normalizer = BoundedNormalizer::new(tokenizer.get_normalizer(), &room);
    let mut text = added.extract_and_normalize(Some(&normalizer), text);
    normalizer.refusal.take().map_or(Ok(()), Err)?;
    if let Some(mark) = mark {
        remove(mark, &mut text)?;
    }
    if let Some(stage) = tokenizer.get_pre_tokenizer() {
        pre_tokenize(stage, &mut text, &room)?;
    }
    let special = mark.map(|_| Spellings::new(special_tokens(tokenizer)));
    let mut ids = vec![];
    for (piece, _, added) in pieces(&text) {
        match (added, &special) {
            (Some(tokens), _) => ids.extend(ids_of(tokens)),
            (None, Some(special)) => ids.extend(plain_ids(tokenizer, piece, special)?),
            (None, None) => ids.extend(ids_of(&model_tokens(tokenizer, piece)?)),
        }
    }
    Ok(ids)
}

/// The spellings of the special tokens.
pub(super) fn special_tokens(tokenizer: &tokenizers::Tokenizer) -> impl Iterator<Item = &str> {
    let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder();
    added.values().filter(|token| token.special).map(|token| token.content.as_str())
}

/// Removes a mark from what is text.
fn remove(mark: char, text: &mut PreTokenizedString) -> Result<(), String> {
    let without = |piece: &mut NormalizedString| {
        piece.filter(|character| character != mark);
        Ok(())
    };
    text.normalize(without).map_err(|error| error.to_string())
}

/// The ids of a piece that stays text. A model may have special tokens in its own vocabulary, and
/// find them there; such a piece is cut inside of them.
fn plain_ids(
    tokenizer: &tokenizers::Tokenizer,
    piece: &str,
    special: &Spellings<'_>,
) -> Result<Vec<u32>, String> {
    if piece.is_empty() {
        return Ok(vec![]); // it was a mark alone
    }
    let whole = model_tokens(tokenizer, piece)?;
    let is_special = |token: &Token| {
        let (start, end) = token.offsets;
        piece.get(start..end).is_some_and(|spelling| special.is_at_start_of(spelling))
    };
    if !whole.iter().any(is_special) {
        return Ok(ids_of(&whole).collect());
    }
    let mut ids = vec![];
    for part in parts(piece, special.cuts(piece)) {
        ids.extend(ids_of(&model_tokens(tokenizer, part)?));
    }
    Ok(ids)
}

fn ids_of(tokens: &[Token]) -> impl Iterator<Item = u32> {
    tokens.iter().map(|token| token.id)
}

fn model_tokens(tokenizer: &tokenizers::Tokenizer, piece: &str) -> Result<Vec<Token>, String> {
    tokenizer.get_model().tokenize(piece).map_err(|error| error.to_string())
}

/// The text of ids, or why they cannot be decoded.
pub(super) fn text(
    tokenizer: &tokenizers::Tokenizer,
    ids: &[u32],
    skip_special: bool,
) -> Result<String, String> {
    let added = tokenizer.get_added_vocabulary();
    let is_shown = |token: &String| !skip_special || !added.is_special_token(token);
    let tokens = ids.iter().filter_map(|&id| tokenizer.id_to_token(id).filter(is_shown));
    let tokens: Vec<String> = tokens.collect();
    let Some(decoder) = tokenizer.get_decoder() else { return Ok(tokens.join(" ")) };
    let room = Room::new(bytes(&tokens));
    Ok(decode(decoder, tokens, &room)?.concat())
}

/// Bytes that the normalizer makes of a text, or why it cannot be normalised.
pub(super) fn normalised_length(
    tokenizer: &tokenizers::Tokenizer,
    text: &str,
) -> Result<usize, String> {
    let room = Room::new(text.len());
    let normalizer = BoundedNormalizer::new(tokenizer.get_normalizer(), &room);
    let mut text = NormalizedString::from(text);
    normalizer.run(&mut text).map(|()| text.len())
}

/// A normalizer whose stages are checked. Its caller drops errors, so the first is kept here.
struct BoundedNormalizer<'a> {
    stage: Option<&'a NormalizerWrapper>,
    room: &'a Room,
    /// Bytes of the pieces so far.
    bytes: Cell<usize>,
    refusal: RefCell<Option<String>>,
}

impl<'a> BoundedNormalizer<'a> {
    fn new(stage: Option<&'a NormalizerWrapper>, room: &'a Room) -> Self {
        Self { stage, room, bytes: Cell::new(0), refusal: RefCell::new(None) }
    }

    fn run(&self, text: &mut NormalizedString) -> Result<(), String> {
        self.stage.map_or(Ok(()), |stage| self.run_stage(stage, text))?;
        self.bytes.set(self.bytes.get() + text.len());
        Ok(())
    }

    fn run_stage(
        &self,
        stage: &NormalizerWrapper,
        text: &mut NormalizedString,
    ) -> Result<(), String> {
        if let NormalizerWrapper::Sequence(stages) = stage {
            return stages.as_ref().iter().try_for_each(|stage| self.run_stage(stage, text));
        }
        if text.is_empty() {
            return Ok(());
        }
        self.room.check("normalizer", self.bytes.get(), text.len(), of_normalizer(stage))?;
        if !matches!(stage, NormalizerWrapper::Replace(_) | NormalizerWrapper::Prepend(_)) {
            check_alignment(text)?;
        }
        stage.normalize(text).map_err(|error| error.to_string())
    }
}

impl Normalizer for BoundedNormalizer<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        if self.refusal.borrow().is_none() {
            self.refusal.replace(self.run(text).err());
        }
        Ok(())
    }
}

fn pre_tokenize(
    stage: &PreTokenizerWrapper,
    text: &mut PreTokenizedString,
    room: &Room,
) -> Result<(), String> {
    if let PreTokenizerWrapper::Sequence(stages) = stage {
        return stages.as_ref().iter().try_for_each(|stage| pre_tokenize(stage, text, room));
    }
    let bytes = pieces(text).iter().map(|(piece, ..)| piece.len()).sum();
    room.check("pre-tokenizer", 0, bytes, of_pre_tokenizer(stage))?;
    if let PreTokenizerWrapper::ByteLevel(byte_level) = stage {
        // An empty piece, which was a mark alone, has nothing to align.
        let check = |piece: &mut NormalizedString| {
            if piece.is_empty() { Ok(()) } else { check_alignment(piece).map_err(Into::into) }
        };
        text.normalize(check).map_err(|error| error.to_string())?;
        if pieces(text).iter().all(|(piece, _, added)| added.is_some() || piece.is_ascii()) {
            return pre_tokenize_ascii(*byte_level, text).map_err(|error| error.to_string());
        }
    }
    stage.pre_tokenize(text).map_err(|error| error.to_string())
}

fn decode(stage: &DecoderWrapper, tokens: Vec<String>, room: &Room) -> Result<Vec<String>, String> {
    if let DecoderWrapper::Sequence(stages) = stage {
        let mut stages = stages.get_decoders().iter();
        return stages.try_fold(tokens, |tokens, stage| decode(stage, tokens, room));
    }
    if tokens.is_empty() {
        return Ok(tokens);
    }
    room.check("decoder", 0, bytes(&tokens), of_decoder(stage))?;
    stage.decode_chain(tokens).map_err(|error| error.to_string())
}

/// Fails where the characters are no longer those of the whole original text. What transforms a
/// text goes from the place of the one to the place of the other, and would go beyond its end.
fn check_alignment(text: &NormalizedString) -> Result<(), String> {
    match text.convert_offsets(Range::Original(..)) {
        Some(range) if range == (0..text.len()) => Ok(()),
        _ => Err("a normalizer put text where there was none, and another changes it".to_owned()),
    }
}

type Piece<'a> = (&'a str, (usize, usize), &'a Option<Vec<Token>>);

fn pieces(text: &PreTokenizedString) -> Vec<Piece<'_>> {
    text.get_splits(OffsetReferential::Normalized, OffsetType::None)
}

/// Bytes of tokens, where each counts as one more.
fn bytes(tokens: &[String]) -> usize {
    tokens.iter().map(|token| token.len() + 1).sum()
}
