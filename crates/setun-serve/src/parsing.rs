//! Turns of bodies that are parsed: memory of the values of one body, and of all at once.
//!
//! A value of two bytes takes more than a hundred as long as a request is read. So it is estimated
//! what the values of a body will take. That has a bound, and bodies wait for each other. Small ones do
//! not wait for large ones.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{blocking::beside, error::ApiError, fields::Fields};

/// Bytes of the values of small bodies.
const SMALL: usize = 2 << 20;

/// Bytes of a place.
const PLACE: usize = 1 << 12;

/// Places of large bodies, whose values one body may have all of.
const LARGE_PLACES: u32 = 1 << 16;

/// Places of small bodies.
const SMALL_PLACES: u32 = 1 << 14;

/// The most bytes of the values of a body.
pub(crate) const MAX_BYTES: usize = LARGE_PLACES as usize * PLACE;

/// Bytes of a value behind a comma, in a list that has grown.
const VALUE: usize = 144;

/// Bytes of a list with a value.
const LIST: usize = 360;

/// Bytes of an object with a value.
const OBJECT: usize = 560;

/// The places of bodies that are parsed.
#[derive(Debug)]
pub(crate) struct Parsing {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Places of a body, until it is dropped.
#[derive(Debug)]
pub(crate) struct ParsedPlaces {
    _places: Option<OwnedSemaphorePermit>,
}

impl Default for Parsing {
    fn default() -> Self {
        let places = |places| Arc::new(Semaphore::new(places as usize));
        Self { small: places(SMALL_PLACES), large: places(LARGE_PLACES) }
    }
}

impl Parsing {
    /// Waits for the turn of a body and reads it. Its fields have its places until they are dropped.
    pub(crate) async fn read(&self, body: Vec<u8>) -> Result<Fields, ApiError> {
        let bytes = value_bytes(&body);
        if bytes > MAX_BYTES {
            return Err(ApiError::too_many_values(bytes, MAX_BYTES));
        }
        let places = self.places(bytes).await;
        let fields = if bytes > SMALL {
            beside(move || Fields::read(&body)).await
        } else {
            Fields::read(&body)
        };
        fields.map(|fields| fields.with_places(places))
    }

    async fn places(&self, bytes: usize) -> ParsedPlaces {
        let places = if bytes <= SMALL { &self.small } else { &self.large };
        let count = u32::try_from(bytes.div_ceil(PLACE)).unwrap_or(LARGE_PLACES);
        // It is never closed.
        ParsedPlaces { _places: Arc::clone(places).acquire_many_owned(count).await.ok() }
    }
}

/// Bytes that the values of a JSON text take, about, and its texts.
fn value_bytes(json: &[u8]) -> usize {
    let (mut bytes, mut is_text, mut is_escaped) = (json.len(), false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b',' => bytes += VALUE,
            b'[' => bytes += LIST,
            b'{' => bytes += OBJECT,
            _ => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn values_count_and_texts_do_not() {
        let json = br#"{"a": "[[{,\"[,\\", "b": [1, 2]}"#;
        assert_eq!(value_bytes(json), json.len() + OBJECT + LIST + 2 * VALUE);
        assert_eq!(value_bytes(b"1"), 1);
        let text = format!("{{\"prompt\": \"{}\"}}", "a, [b] ".repeat(1 << 20));
        assert!(value_bytes(text.as_bytes()) < text.len() + 1000);
    }

    #[test]
    fn the_values_of_one_body_have_a_bound() {
        let parsing = Parsing::default();
        for piece in ["0,", "[],", "[0],", "{\"\":0},", "[[[[0]]]],"] {
            let json = format!("{{\"a\": [{}0]}}", piece.repeat((8 << 20) / piece.len()));
            let read = parsing.read(json.into_bytes()).now_or_never().expect("it is not parsed");
            assert!(
                format!("{:?}", read.expect_err(piece)).contains("expected at most"),
                "{piece}"
            );
        }
    }

    /// Permits of all turns that are under way.
    #[test]
    fn large_bodies_wait_for_each_other_and_small_ones_for_neither() {
        let parsing = Parsing::default();
        let now = |bytes| parsing.places(bytes).now_or_never();
        let large = now(MAX_BYTES).expect("there is room");
        assert!(now(SMALL + 1).is_none());
        let all = SMALL_PLACES as usize * PLACE / SMALL;
        let small: Vec<_> = (0..all).map(|_| now(SMALL).expect("a place")).collect();
        assert!(now(1).is_none(), "small ones have a bound, too");
        drop((large, small));
        assert!(now(MAX_BYTES).is_some());
    }

    #[test]
    fn fields_have_the_places_until_they_are_dropped() {
        let parsing = Parsing::default();
        let mut fields =
            parsing.read(br#"{"a": {"b": 1}}"#.to_vec()).now_or_never().expect("a turn");
        let fields = fields.as_mut().expect("an object");
        let free = || parsing.small.available_permits();
        assert_eq!(free(), SMALL_PLACES as usize - 1);
        let _inner = fields.object("a").expect("an object");
        *fields = Fields::default();
        assert_eq!(free(), SMALL_PLACES as usize);
    }
}
