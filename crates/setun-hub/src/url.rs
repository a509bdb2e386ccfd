//! URL parsing, joining and escaping, as far as pulls need it.

use std::fmt::Write;

/// An address taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) scheme: String,
    /// Host, and the port where one is written.
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
}

/// Takes an address apart; `None` if it is none of the web, or carries a name and password.
pub(crate) fn parts(address: &str) -> Option<Parts> {
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned()).filter(|query| !query.is_empty())),
        None => (rest, None),
    };
    let is_web = ["http", "https"].contains(&scheme.as_str());
    let is_host =
        !authority.is_empty() && !authority.contains(|c: char| c == '@' || c.is_whitespace());
    let authority = authority.to_ascii_lowercase();
    (is_web && is_host).then(|| Parts { scheme, authority, path: path.to_owned(), query })
}

/// Fields of a query that sign an address, of which each store has one.
const SIGNATURES: [&str; 5] =
    ["signature", "sig", "x-amz-signature", "x-goog-signature", "x-oss-signature"];

/// Beginnings of further fields of signed addresses: S3, Google Cloud and Alibaba Cloud.
const SIGNED_PREFIXES: [&str; 3] = ["x-amz-", "x-goog-", "x-oss-"];

/// Further fields of signed addresses: `CloudFront`, the older S3, Google Cloud, Alibaba Cloud, Azure.
const SIGNED_FIELDS: [&str; 28] = [
    "awsaccesskeyid",
    "expires",
    "googleaccessid",
    "hash-algorithm",
    "key-pair-id",
    "ossaccesskeyid",
    "policy",
    "saoid",
    "scid",
    "sdd",
    "se",
    "ses",
    "sip",
    "ske",
    "skoid",
    "sks",
    "skt",
    "sktid",
    "skv",
    "sp",
    "spr",
    "sr",
    "srt",
    "ss",
    "st",
    "suoid",
    "sv",
    "security-token",
];

/// A query without the fields of a signature; `None` if nothing is left. A query without a signature stays as it is.
pub(crate) fn unsigned(query: &str) -> Option<String> {
    let name = |field: &str| field.split('=').next().unwrap_or(field).to_ascii_lowercase();
    let is_signature = |field: &&str| SIGNATURES.contains(&name(field).as_str());
    if !query.split('&').any(|field| is_signature(&field)) {
        return Some(query.to_owned());
    }
    let is_kept = |field: &&str| {
        let name = name(field);
        let signs = SIGNED_FIELDS.contains(&name.as_str())
            || SIGNED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        !signs && !is_signature(field) && !field.is_empty()
    };
    let kept: Vec<_> = query.split('&').filter(is_kept).collect();
    Some(kept.join("&")).filter(|kept| !kept.is_empty())
}

/// Scheme, host and port: what a token may be sent to.
pub(crate) fn origin(address: &str) -> Option<String> {
    let Parts { scheme, authority, .. } = parts(address)?;
    let usual = if scheme == "https" { ":443" } else { ":80" };
    Some(format!("{scheme}://{}", authority.strip_suffix(usual).unwrap_or(&authority)))
}

/// Where a redirect leads that was found at `base`.
pub(crate) fn join(base: &str, location: &str) -> Option<String> {
    let location = location.split('#').next().unwrap_or(location);
    if location.contains("://") && !location.starts_with('/') {
        return parts(location).map(|_| location.to_owned());
    }
    let base = parts(base)?;
    if let Some(rest) = location.strip_prefix("//") {
        return Some(format!("{}://{rest}", base.scheme));
    }
    let origin = format!("{}://{}", base.scheme, base.authority);
    if location.starts_with('/') {
        return Some(format!("{origin}{location}"));
    }
    let folder = base.path.rfind('/').map_or("/", |end| &base.path[..=end]);
    Some(format!("{origin}{folder}{location}"))
}

/// The address of a file in a folder. What follows a question mark stays at the end.
pub(crate) fn in_folder(folder: &str, file: &str) -> String {
    let folder = folder.split('#').next().unwrap_or(folder);
    let file = escape(file);
    match folder.split_once('?') {
        Some((folder, query)) => format!("{}/{file}?{query}", folder.trim_end_matches('/')),
        None => format!("{}/{file}", folder.trim_end_matches('/')),
    }
}

/// The last part of an address' path.
pub(crate) fn last_segment(address: &str) -> &str {
    let path = address.split(['?', '#']).next().unwrap_or(address);
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// Escapes what has a meaning in an address, slashes excepted.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Undoes [`escape`]; `None` where the result is no text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_joined() {
        let base = "https://h:1/a/b?q";
        let cases = [
            ("http://x/y?z", "http://x/y?z"),
            ("//x/y", "https://x/y"),
            ("/y", "https://h:1/y"),
            ("c#d", "https://h:1/a/c"),
        ];
        for (location, expected) in cases {
            assert_eq!(join(base, location).as_deref(), Some(expected));
        }
        assert_eq!(join(base, "ftp://x/y"), None);
    }

    #[test]
    fn origins_tell_hosts_and_ports_apart() {
        assert_eq!(origin("https://H/a"), origin("https://h:443/b?c"));
        assert_ne!(origin("https://h/"), origin("http://h/"));
        assert_ne!(origin("http://h:1/"), origin("http://h:2/"));
        assert_ne!(origin("https://h.evil/"), origin("https://h/"));
        assert_eq!(origin("https://h@evil/"), None);
    }

    /// `signed-queries.json` has what the npm package keeps of the same queries.
    #[test]
    fn signatures_are_no_part_of_a_query() {
        let cases = include_str!("../../../tests/fixtures/signed-queries.json");
        let cases: Vec<(String, String)> = serde_json::from_str(cases).expect("pairs");
        for (query, kept) in cases {
            assert_eq!(unsigned(&query).unwrap_or_default(), kept, "{query}");
        }
    }

    #[test]
    fn files_are_escaped() {
        assert_eq!(in_folder("https://h/a/?x=1", "b c/d.gguf"), "https://h/a/b%20c/d.gguf?x=1");
        assert_eq!(unescape("b%20c").as_deref(), Some("b c"));
        assert_eq!(unescape("b%2"), None);
        assert_eq!(last_segment("https://h/a/b.gguf?download=true"), "b.gguf");
    }
}
