//! Size, identity and range support of a file on a server.

use std::time::Duration;

use crate::{
    error::Error,
    http::{Http, Reply, Request, expect, text},
    options::PullOptions,
    retry::{Fault, with_retries},
};

/// What a server reports of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The address that answered, behind all redirects.
    pub(crate) address: String,
    pub(crate) bytes: Option<u64>,
    /// What the server that has the bytes knows them by, for conditions.
    pub(crate) etag: Option<String>,
    /// What the file is known by: if that is another later, so is the file.
    pub(crate) identity: Option<String>,
    /// Whether the server says that it gives parts.
    pub(crate) ranges: bool,
}

/// Asks for what comes before a file's bytes; `None` where there is no file.
pub(crate) fn probe(
    http: &Http,
    address: &str,
    options: &PullOptions,
    on_retry: &dyn Fn(String, Duration),
) -> Result<Option<Probe>, Error> {
    with_retries(address, options, on_retry, || probe_once(http, address))
}

fn probe_once(http: &Http, address: &str) -> Result<Option<Probe>, Fault> {
    let answer = http.send(address, &Request { head: true, ..Request::default() })?;
    match answer.response.status().as_u16() {
        200 => return Ok(Some(of_whole(&answer))),
        404 | 410 => return Ok(None),
        // Addresses that are signed are so for one method, and some servers know no other.
        400 | 401 | 403 | 405 | 501 => {}
        _ => {
            expect(&answer.address, answer.response, &[200])?;
        }
    }
    let answer = http.send(address, &Request { range: Some(0..1), ..Request::default() })?;
    match answer.response.status().as_u16() {
        404 | 410 => Ok(None),
        206 => {
            let mut found = of_whole(&answer);
            found.bytes = total(answer.response.headers());
            found.ranges = true;
            Ok(Some(found))
        }
        // A file without a byte has no first one.
        416 if total(answer.response.headers()) == Some(0) => {
            let mut found = of_whole(&answer);
            found.bytes = Some(0);
            Ok(Some(found))
        }
        _ => {
            let address = answer.address.clone();
            let found = of_whole(&answer);
            expect(&address, answer.response, &[200])?;
            Ok(Some(found))
        }
    }
}

fn of_whole(answer: &Reply) -> Probe {
    let headers = answer.response.headers();
    let etag = text(headers, "etag");
    // A hub's redirects lead to one of several servers, each of which has an etag of its own.
    let identity = answer.linked_etag.clone().or_else(|| etag.clone());
    let identity = identity.or_else(|| text(headers, "last-modified"));
    Probe {
        address: answer.address.clone(),
        bytes: text(headers, "content-length").and_then(|length| length.parse().ok()),
        etag,
        identity: identity.map(|identity| identity.trim_start_matches("W/").to_owned()),
        ranges: text(headers, "accept-ranges").is_some_and(|ranges| ranges.contains("bytes")),
    }
}

/// The size of the whole file, of a part's `Content-Range: bytes 0-1/2`.
pub(crate) fn total(headers: &ureq::http::HeaderMap) -> Option<u64> {
    text(headers, "content-range")?.rsplit_once('/')?.1.parse().ok()
}

/// Where a part begins, and the size of the whole file.
pub(crate) fn content_range(headers: &ureq::http::HeaderMap) -> Option<(u64, u64, Option<u64>)> {
    let text = text(headers, "content-range")?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()))
}

/// An etag that a condition may be made of: weak ones say nothing about bytes.
pub(crate) fn strong(etag: Option<&str>) -> Option<&str> {
    etag.filter(|etag| etag.starts_with('"'))
}
