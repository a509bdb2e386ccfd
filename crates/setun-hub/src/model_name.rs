//! Model names, and the store's folder for each.

use std::fmt;

use crate::{
    digest::Digest,
    error::Error,
    url::{last_segment, parts, unsigned},
};

/// What a name may be.
const EXPECTED: &str = "owner/name, owner/name@revision, owner/name:file, each also with `hf:` before it, an alias, or an address \
                        that begins with https://";

/// Begins a name as the npm package has it.
const HUB: &str = "hf:";

/// Most bytes of a part of a name.
const MAX_BYTES: usize = 96;

/// Hexadecimal digits that keep apart what the same folder name would be given to.
const APART: usize = 8;

/// Ends of the names of files that are a model by themselves.
pub(crate) const LONE: [&str; 4] = [".setun", ".safetensors", ".gguf", ".onnx"];

/// A name of a model, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelName {
    pub(crate) source: Source,
    /// The file of it that is meant.
    pub(crate) file: Option<String>,
}

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A repository of a hub; of the endpoint's where no host is named.
    Hub { host: Option<String>, owner: String, name: String, revision: Option<String> },
    /// A file or a folder at an address.
    Address(String),
    /// One word, which only an alias can be.
    Alias(String),
}

impl ModelName {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::InvalidName { name: text.into(), expected: EXPECTED };
        if text.starts_with("https://") || text.starts_with("http://") {
            let address = text.split('#').next().unwrap_or(text);
            parts(address).ok_or_else(bad)?;
            return Ok(Self { source: Source::Address(address.into()), file: None });
        }
        let (is_hub, text) = match text.strip_prefix(HUB) {
            Some(name) => (true, name),
            None => (false, text),
        };
        let (text, file) = match text.split_once(':') {
            Some((text, file)) => (text, Some(file)),
            None => (text, None),
        };
        if file.is_some_and(|file| !is_safe_file(file)) {
            return Err(bad());
        }
        let file = file.map(str::to_owned);
        let (path, revision) = match text.split_once('@') {
            Some((path, revision)) => (path, Some(revision)),
            None => (text, None),
        };
        if revision
            .is_some_and(|revision| revision.is_empty() || revision.contains(char::is_control))
        {
            return Err(bad());
        }
        let segments: Vec<&str> = path.split('/').collect();
        if !segments.iter().all(|segment| is_plain(segment)) {
            return Err(bad());
        }
        let hub = |host: Option<&str>, owner: &str, name: &str| Source::Hub {
            host: host.map(str::to_owned),
            owner: owner.into(),
            name: name.into(),
            revision: revision.map(str::to_owned),
        };
        let source = match segments[..] {
            [alias] if revision.is_none() && !is_hub => Source::Alias(alias.into()),
            [owner, name] => hub(None, owner, name),
            [host, owner, name] => hub(Some(host), owner, name),
            _ => return Err(bad()),
        };
        Ok(Self { source, file })
    }
}

/// The folders of a model, from the outermost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId {
    /// Host that it came from, with its port, or `local`.
    pub host: String,
    /// Who made it; of an address the folders that lead to it.
    pub owner: String,
    /// What it is called.
    pub name: String,
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

impl ModelId {
    /// A model of a hub.
    pub(crate) fn of_hub(endpoint: &str, owner: &str, name: &str) -> Self {
        let host = parts(endpoint)
            .map_or_else(|| folder_name(endpoint), |parts| host_name(&parts.authority));
        Self { host, owner: owner.into(), name: name.into() }
    }

    /// A model at an address.
    pub(crate) fn of_address(address: &str) -> Self {
        let parts = parts(address).unwrap_or_default();
        let path = parts.path.trim_matches('/');
        let (owner, name) = path.rsplit_once('/').unwrap_or(("_", path));
        // A query may select a file, and may be a secret. A signature is new each time and selects nothing.
        let name = match parts.query.and_then(|query| unsigned(&query)) {
            Some(query) => format!("{name}-{}", &Digest::of(query.as_bytes()).hex()[..APART]),
            None => name.to_owned(),
        };
        let (owner, name) = (folder_name(&owner.replace('/', "--")), folder_name(&name));
        Self { host: host_name(&parts.authority), owner, name }
    }
}

/// A host, with `_` before its port.
fn host_name(authority: &str) -> String {
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains('_') && !port.is_empty() && is_plain(host) => {
            folder_name(&format!("{host}_{port}"))
        }
        None if !authority.contains('_') => folder_name(authority),
        _ => format!(
            "{}-{}",
            folder_name(authority),
            &Digest::of(authority.as_bytes()).hex()[..APART]
        ),
    }
}

/// A text as the name of a folder, on any system. Texts that differ get names that differ.
pub(crate) fn folder_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let name: String = text.chars().map(plain).take(MAX_BYTES).collect();
    if name == text && is_plain(&name) {
        return name;
    }
    let kept = name.trim_matches('.');
    format!("{kept}-{}", &Digest::of(text.as_bytes()).hex()[..APART])
}

/// True for what is a part of a name as it is, and a folder on any system.
fn is_plain(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let device = text.split('.').next().unwrap_or(text).to_ascii_lowercase();
    (1..=MAX_BYTES).contains(&text.len())
        && text.chars().all(letters)
        && !text.starts_with('.')
        && !text.ends_with('.')
        && !is_device(&device)
}

/// Names that Windows gives to devices.
fn is_device(name: &str) -> bool {
    let numbered = |prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|end: &str| end.len() == 1 && end.as_bytes()[0].is_ascii_digit())
    };
    ["con", "prn", "aux", "nul"].contains(&name) || numbered("com") || numbered("lpt")
}

/// True for a file's name that stays in its folder, on any system, and is none of the store's own.
pub(crate) fn is_safe_file(name: &str) -> bool {
    let segment = |part: &str| {
        let device = part.split('.').next().unwrap_or(part).to_ascii_lowercase();
        !part.is_empty()
            && part.len() <= 2 * MAX_BYTES
            && !part.starts_with('.')
            && !part.ends_with(['.', ' '])
            && !part.contains(|c: char| c.is_control() || "\\:*?\"<>|".contains(c))
            && !is_device(&device)
    };
    // Some file systems make no difference between large and small letters.
    let small = name.to_ascii_lowercase();
    let own = small == "manifest.json"
        || [".part", ".chunks", ".tmp"].iter().any(|end| small.ends_with(end));
    name.split('/').all(segment) && name.split('/').count() <= 4 && !own
}

/// True for an address of one file that is a model.
pub(crate) fn is_lone_file(address: &str) -> bool {
    is_lone_name(last_segment(address))
}

/// True for the name of a file that is a model by itself.
pub(crate) fn is_lone_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LONE.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let hub = |host: Option<&str>, revision: Option<&str>| Source::Hub {
            host: host.map(str::to_owned),
            owner: "o".into(),
            name: "n-1.58".into(),
            revision: revision.map(str::to_owned),
        };
        let cases = [
            ("o/n-1.58", hub(None, None), None),
            ("o/n-1.58@refs/pr/1", hub(None, Some("refs/pr/1")), None),
            ("o/n-1.58:a/b.gguf", hub(None, None), Some("a/b.gguf")),
            ("o/n-1.58@v1:b.gguf", hub(None, Some("v1")), Some("b.gguf")),
            ("hf:o/n-1.58@v1:b.gguf", hub(None, Some("v1")), Some("b.gguf")),
            ("h.org_80/o/n-1.58", hub(Some("h.org_80"), None), None),
            ("small", Source::Alias("small".into()), None),
            ("http://h:80/a/b", Source::Address("http://h:80/a/b".into()), None),
        ];
        for (text, source, file) in cases {
            let found = ModelName::parse(text).unwrap();
            assert_eq!(found, ModelName { source, file: file.map(str::to_owned) }, "{text}");
        }
        for bad in [
            "",
            "/",
            "a/",
            "../b",
            "a/..",
            "a/b/c/d",
            "a b/c",
            "a/b:",
            "a/b:../c",
            "a/con",
            "https://",
            "a/b@",
            "hf:",
            "hf:small",
            "hf:hf:a/b",
            "hf:https://h/a",
        ] {
            assert!(ModelName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn folders_of_addresses_differ_and_are_plain() {
        let of = |address| ModelId::of_address(address).to_string();
        assert_eq!(of("http://127.0.0.1:80/models/x.gguf"), "127.0.0.1_80/models/x.gguf");
        assert_eq!(of("https://h/x/"), "h/_/x");
        assert_eq!(of("https://h/a/b/c"), "h/a--b/c");
        let many = [
            "https://h/a b",
            "https://h/a_b",
            "https://h/a%20b",
            "https://h/a?b",
            "https://h/a?c",
            "https://h/..",
            "https://h/con",
            "https://h/a/",
            "https://h:1/a",
            "https://h_1/a",
        ];
        assert_eq!(of("https://h/d?X-Amz-Signature=1"), of("https://h/d?X-Amz-Signature=2"));
        let mut names: Vec<_> = many.iter().map(|address| of(address)).collect();
        for name in &names {
            assert!(name.split('/').all(is_plain), "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), many.len(), "{names:?}");
    }

    #[test]
    fn files_stay_in_their_folder() {
        for good in ["config.json", "onnx/model.onnx", "model-00001-of-00002.safetensors"] {
            assert!(is_safe_file(good), "{good}");
        }
        for bad in [
            "",
            "..",
            "../x",
            "a/../b",
            "/a",
            "a//b",
            "a\\b",
            "c:x",
            ".git",
            "manifest.json",
            "Manifest.JSON",
            "x.part",
            "x.PART",
            "nul.txt",
            "a/b/c/d/e",
        ] {
            assert!(!is_safe_file(bad), "{bad}");
        }
    }
}
