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
    fn put<const N: usize>(&mut self, key: &str, kind: u32, value: [u8; N]) {
        self.count += 1;
        text(&mut self.bytes, key);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(value);
    }

    pub(super) fn u32(&mut self, key: &str, value: u32) {
        self.put(key, U32, value.to_le_bytes());
    }

    /// A size, which is below 2^32 wherever a configuration has one.
    pub(super) fn size(&mut self, key: &str, value: usize) {
        self.u32(key, u32::try_from(value).unwrap_or(u32::MAX));
    }

    pub(super) fn f32(&mut self, key: &str, value: f32) {
        self.put(key, F32, value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, key: &str, value: f64) {
        self.put(key, F64, value.to_le_bytes());
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.put(key, FLAG, [u8::from(value)]);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.put(key, TEXT, []);
        text(&mut self.bytes, value);
    }

    /// No key at all where the list is empty.
    fn list<T>(&mut self, key: &str, kind: u32, values: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
        if values.is_empty() {
            return;
        }
        self.put(key, ARRAY, kind.to_le_bytes());
        self.bytes.extend((values.len() as u64).to_le_bytes());
        for value in values {
            put(&mut self.bytes, value);
        }
    }

    pub(super) fn texts(&mut self, key: &str, values: &[String]) {
        self.list(key, TEXT, values, |bytes, value| text(bytes, value));
    }

    pub(super) fn i32s(&mut self, key: &str, values: &[i32]) {
        self.list(key, I32, values, |bytes, value| bytes.extend(value.to_le_bytes()));
    }

    pub(super) fn flags(&mut self, key: &str, values: &[bool]) {
        self.list(key, FLAG, values, |bytes, value| bytes.push(u8::from(*value)));
    }

    pub(super) fn f32s(&mut self, key: &str, values: &[f32]) {
        self.list(key, F32, values, |bytes, value| bytes.extend(value.to_le_bytes()));
    }
}

/// A length and a text.
pub(super) fn text(bytes: &mut Vec<u8>, value: &str) {
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(value.as_bytes());
}
