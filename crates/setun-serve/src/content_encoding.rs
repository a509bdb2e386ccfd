//! Bodies that clients have compressed.

use std::io::{self, Read};

use axum::http::{HeaderMap, header::CONTENT_ENCODING};
use ruzstd::decoding::{StreamingDecoder, errors::FrameDecoderError};

use crate::error::ApiError;

/// The largest window of a zstd frame, as RFC 9659 has it for HTTP, where the limit of bodies is
/// smaller.
const MAX_WINDOW: usize = 8 << 20;

/// Bytes that a decoder of brotli reads at a time.
const BUFFER: usize = 4096;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    Gzip,
    Brotli,
    Zstd,
}

impl ContentEncoding {
    /// The encoding that a request names; none if the body is not compressed.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let mut found = None;
        for value in headers.get_all(CONTENT_ENCODING) {
            let text = String::from_utf8_lossy(value.as_bytes());
            for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let encoding = match &*name.to_ascii_lowercase() {
                    "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "br" => Self::Brotli,
                    "zstd" => Self::Zstd,
                    _ => return Err(ApiError::unsupported_encoding(name)),
                };
                if found.replace(encoding).is_some() {
                    return Err(ApiError::unsupported_encoding(&text));
                }
            }
        }
        Ok(found)
    }

    /// The body that was compressed, of at most `limit` bytes.
    pub(crate) fn decode(self, body: &[u8], limit: usize) -> Result<Vec<u8>, ApiError> {
        let mut decoded = vec![];
        let read = match self {
            Self::Gzip => read(flate2::read::MultiGzDecoder::new(body), limit, &mut decoded),
            Self::Brotli => {
                let decoder = brotli_decompressor::Decompressor::new(body, BUFFER);
                read(decoder, limit, &mut decoded)
            }
            Self::Zstd => read_frames(body, limit, &mut decoded)?,
        };
        match read {
            Ok(()) if decoded.len() > limit => Err(ApiError::body_too_large(limit)),
            Ok(()) => Ok(decoded),
            Err(_) => Err(ApiError::broken_encoding(self.name())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Reads all, but not much more than the limit.
fn read(reader: impl Read, limit: usize, decoded: &mut Vec<u8>) -> io::Result<()> {
    let left = (limit as u64).saturating_add(1).saturating_sub(decoded.len() as u64);
    reader.take(left).read_to_end(decoded).map(drop)
}

/// Reads the frames of zstd, which may follow each other.
fn read_frames(
    mut body: &[u8],
    limit: usize,
    decoded: &mut Vec<u8>,
) -> Result<io::Result<()>, ApiError> {
    let window = MAX_WINDOW.max(limit) as u64;
    while !body.is_empty() && decoded.len() <= limit {
        let frame = match StreamingDecoder::new_with_max_window_size(&mut body, window) {
            Ok(frame) => frame,
            // It says itself that it is too large.
            Err(FrameDecoderError::WindowSizeTooBig { .. }) => {
                return Err(ApiError::body_too_large(limit));
            }
            Err(error) => return Ok(Err(io::Error::other(error))),
        };
        if let Err(error) = read(frame, limit, decoded) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::http::HeaderValue;

    use super::*;

    fn of(values: &[&'static str]) -> Result<Option<ContentEncoding>, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        ContentEncoding::of(&headers)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        encoder.write_all(bytes).expect("written");
        encoder.finish().expect("an end")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn encodings_are_those_that_are_read() {
        for values in [&[][..], &["identity"], &[""], &["identity, identity"]] {
            assert_eq!(of(values), Ok(None), "{values:?}");
        }
        assert_eq!(of(&["GZip"]), Ok(Some(ContentEncoding::Gzip)));
        assert_eq!(of(&["identity", "br"]), Ok(Some(ContentEncoding::Brotli)));
        assert_eq!(of(&["zstd"]), Ok(Some(ContentEncoding::Zstd)));
        for values in [&["deflate"][..], &["gzip, br"], &["gzip", "gzip"], &["aws-chunked"]] {
            let error = of(values).expect_err("it is refused");
            assert_eq!(error.status().as_u16(), 415, "{values:?}");
            assert!(error.message().contains(values[0]), "{error:?}");
        }
    }

    #[test]
    fn a_body_is_what_was_compressed_within_the_limit() {
        let text = "{\"a\": \"é\"}".repeat(50).into_bytes();
        let limit = text.len();
        for (encoding, body) in [
            (ContentEncoding::Gzip, gzip(&text)),
            (ContentEncoding::Gzip, [gzip(&text[..9]), gzip(&text[9..])].concat()),
            (ContentEncoding::Zstd, zstd(&text)),
            (ContentEncoding::Zstd, [zstd(&text[..9]), zstd(&text[9..])].concat()),
        ] {
            assert_eq!(encoding.decode(&body, limit), Ok(text.clone()), "{encoding:?}");
            let large = encoding.decode(&body, limit - 1).expect_err("too large");
            assert_eq!(large.status().as_u16(), 413, "{encoding:?}");
            let cut = encoding.decode(&body[..body.len() - 5], limit).expect_err("cut");
            assert_eq!(cut.status().as_u16(), 400, "{encoding:?}");
        }
        // `brotli` of "hello\n".
        let brotli = [0x8b, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x03];
        assert_eq!(ContentEncoding::Brotli.decode(&brotli, 6), Ok(b"hello\n".to_vec()));
        let large = ContentEncoding::Brotli.decode(&brotli, 5).expect_err("too large");
        assert_eq!(large.status().as_u16(), 413);
        for encoding in [ContentEncoding::Gzip, ContentEncoding::Brotli, ContentEncoding::Zstd] {
            let broken = encoding.decode(b"{\"model\": 1}", limit).expect_err("no such data");
            assert_eq!(broken.status().as_u16(), 400, "{encoding:?}");
        }
    }

    #[test]
    fn a_bomb_takes_no_more_than_the_limit() {
        let zeros = vec![0; 64 << 20];
        for (encoding, body) in
            [(ContentEncoding::Gzip, gzip(&zeros)), (ContentEncoding::Zstd, zstd(&zeros))]
        {
            assert!(body.len() < 200_000, "{encoding:?}: {}", body.len());
            let error = encoding.decode(&body, 1 << 20).expect_err("too large");
            assert_eq!(error.status().as_u16(), 413, "{encoding:?}");
        }
        // A frame of one segment that says that it has 2^40 bytes.
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1_u64 << 40).to_le_bytes()].concat();
        let error = ContentEncoding::Zstd.decode(&frame, 1 << 20).expect_err("too large");
        assert_eq!(error.status().as_u16(), 413);
    }
}
