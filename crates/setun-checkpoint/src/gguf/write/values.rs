//! Metadata as bytes.

/// Keys and values, one after the other.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) count: u64,
    pub(super) bytes: Vec<u8>,
}

const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const FLAG: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const F64: u32 = 12;

impl Values {
    fn key(&mut self, key: &str, kind: u32) {
        self.count += 1;
        text(&mut self.bytes, key);
        self.put(&kind.to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn u32(&mut self, key: &str, value: u32) {
        self.key(key, U32);
        self.put(&value.to_le_bytes());
    }

    /// A size, which is below 2^32 wherever a configuration has one.
    pub(super) fn size(&mut self, key: &str, value: usize) {
        self.u32(key, u32::try_from(value).unwrap_or(u32::MAX));
    }

    pub(super) fn f32(&mut self, key: &str, value: f32) {
        self.key(key, F32);
        self.put(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, key: &str, value: f64) {
        self.key(key, F64);
        self.put(&value.to_le_bytes());
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.key(key, FLAG);
        self.put(&[u8::from(value)]);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.key(key, TEXT);
        text(&mut self.bytes, value);
    }

    fn list(&mut self, key: &str, kind: u32, length: usize) {
        self.key(key, ARRAY);
        self.put(&kind.to_le_bytes());
        self.put(&(length as u64).to_le_bytes());
    }

    /// No key at all where the list is empty.
    pub(super) fn texts(&mut self, key: &str, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.list(key, TEXT, values.len());
        for value in values {
            text(&mut self.bytes, value);
        }
    }

    /// As [`texts`](Self::texts).
    pub(super) fn i32s(&mut self, key: &str, values: &[i32]) {
        if values.is_empty() {
            return;
        }
        self.list(key, I32, values.len());
        for value in values {
            self.put(&value.to_le_bytes());
        }
    }

    /// As [`texts`](Self::texts).
    pub(super) fn f32s(&mut self, key: &str, values: &[f32]) {
        if values.is_empty() {
            return;
        }
        self.list(key, F32, values.len());
        for value in values {
            self.put(&value.to_le_bytes());
        }
    }
}

/// A length and a text.
pub(super) fn text(bytes: &mut Vec<u8>, value: &str) {
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(value.as_bytes());
}
