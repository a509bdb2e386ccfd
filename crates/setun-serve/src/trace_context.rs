//! The trace that a request belongs to: the header `traceparent` of W3C Trace Context.

use axum::http::HeaderMap;

/// Bytes of `00-`, a trace id of 32 digits, a parent id of 16 and the flags.
const LENGTH: usize = 55;

/// A trace and the span in it that a client began.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceContext(String);

impl TraceContext {
    /// What the headers name, if it is valid: one header, with ids that are not all zero. Of later
    /// versions the same beginning is read.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all("traceparent").iter();
        let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
        let parts: Vec<_> = value.get(..LENGTH)?.split('-').collect();
        let [version, trace, parent, flags] = parts[..] else { return None };
        let is_hex = |part: &str, length| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.len() == length && part.bytes().all(is_digit)
        };
        let is_end = match value.as_bytes().get(LENGTH) {
            None => true,
            Some(b'-') => version != "00",
            Some(_) => false,
        };
        let has_ids = is_hex(trace, 32) && is_hex(parent, 16);
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let is_valid = is_hex(version, 2) && version != "ff" && is_hex(flags, 2) && is_end;
        let is_valid = is_valid && has_ids && !is_zero(trace) && !is_zero(parent);
        is_valid.then(|| Self(value.to_owned()))
    }

    /// Whether the client's span is recorded.
    pub(crate) fn is_sampled(&self) -> bool {
        u8::from_str_radix(&self.0[53..LENGTH], 16).is_ok_and(|flags| flags & 1 == 1)
    }

    pub(crate) fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    pub(crate) fn parent_id(&self) -> &str {
        &self.0[36..52]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(values: &[&str]) -> Option<TraceContext> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("traceparent", value.parse().expect("a value"));
        }
        TraceContext::of(&headers)
    }

    #[test]
    fn a_valid_header_names_a_trace_and_its_span() {
        let trace = read(&[VALID]).expect("it is valid");
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.parent_id(), "00f067aa0ba902b7");
        let unsampled = VALID.replace("b7-01", "b7-02");
        assert!(trace.is_sampled() && read(&[&unsampled]).is_some_and(|trace| !trace.is_sampled()));
        assert!(read(&[&VALID.replace("00-4", "cc-4")]).is_some());
        assert!(read(&[&(VALID.replace("00-4", "cc-4") + "-more")]).is_some());
    }

    #[test]
    fn other_headers_name_none() {
        let no_trace = VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        let no_parent = VALID.replace("00f067aa0ba902b7", &"0".repeat(16));
        for value in [
            "",
            &VALID[1..],
            &VALID.to_uppercase(),
            &VALID.replace("00-4", "ff-4"),
            &VALID.replace('-', "_"),
            &(VALID.to_owned() + "-more"),
            &(VALID.to_owned() + "1"),
            &no_trace,
            &no_parent,
        ] {
            assert_eq!(read(&[value]), None, "{value}");
        }
        assert_eq!(read(&[VALID, VALID]), None, "two are none");
    }
}
