//! Frames of protobuf fields.

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Eight,
    Length,
    Four,
}

/// A field, up to its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) number: u64,
    pub(super) wire: Wire,
    /// Bytes before the payload.
    pub(super) header: u64,
    /// Bytes of the payload.
    pub(super) payload: u64,
}

impl Field {
    /// The field at the start of some bytes; none while they do not reach its payload.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some((tag, tag_bytes)) = varint(bytes)? else {
            return Ok(None);
        };
        let number = tag >> 3;
        if number == 0 {
            return Err("a field has number 0");
        }
        let rest = &bytes[tag_bytes..];
        let field = |wire, header: usize, payload| {
            Ok(Some(Self { number, wire, header: header as u64, payload }))
        };
        match tag & 7 {
            0 => match varint(rest)? {
                None => Ok(None),
                Some((_, value_bytes)) => field(Wire::Varint, tag_bytes, value_bytes as u64),
            },
            1 => field(Wire::Eight, tag_bytes, 8),
            2 => match varint(rest)? {
                None => Ok(None),
                Some((length, bytes)) => field(Wire::Length, tag_bytes + bytes, length),
            },
            5 => field(Wire::Four, tag_bytes, 4),
            _ => Err("a field's wire type is not one of protobuf's"),
        }
    }

    /// All bytes of the field; none where their number overflows.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.header.checked_add(self.payload)
    }
}

/// A number of seven bits a byte, lowest first, and how many bytes it takes; none while it has not
/// ended.
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, &'static str> {
    const MOST: usize = 10;
    let mut value = 0;
    for (place, byte) in bytes.iter().take(MOST).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((value, place + 1)));
        }
    }
    if bytes.len() < MOST { Ok(None) } else { Err("a number has more than ten bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        assert_eq!(varint(&[0xac, 0x02, 9]), Ok(Some((300, 2))));
        assert_eq!(varint(&[0xac]), Ok(None));
        assert!(varint(&[0xff; 10]).is_err());
        let field = Field::read(&[0x3a, 0x80, 0x01]).unwrap().unwrap();
        let expected = Field { number: 7, wire: Wire::Length, header: 3, payload: 128 };
        assert_eq!(field, expected);
        let field = Field::read(&[0x08, 0x0a]).unwrap().unwrap();
        assert_eq!((field.wire, field.bytes()), (Wire::Varint, Some(2)));
        assert_eq!(Field::read(&[0x3a, 0x80]), Ok(None));
        assert_eq!(Field::read(&[]), Ok(None));
        assert!(Field::read(&[0x07]).is_err());
        assert!(Field::read(&[0x0b]).is_err(), "groups");
    }
}
