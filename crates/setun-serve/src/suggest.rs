//! The served model that a misspelled name is nearest to.

use strsim::levenshtein;

/// Letters by which a misspelled name may differ from the one that is meant.
const MAX_ERRORS: usize = 2;

/// Most bytes of a name that is compared with others.
const MAX_BYTES: usize = 200;

/// The nearest name, if it is near and the only one. A name without its owner is near, and so is one
/// with another tag.
pub(crate) fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    if name.len() > MAX_BYTES {
        return None;
    }
    let name = name.to_lowercase();
    let most = MAX_ERRORS.min(name.len() / 3);
    let apart = |known: &'a String| {
        let full = known.to_lowercase();
        let model = full.rsplit('/').next().unwrap_or(&full);
        let untagged = name.split(':').next().unwrap_or(&name);
        let compared = if name.contains('/') { &full } else { model };
        let least = levenshtein(&name, compared).min(levenshtein(untagged, compared));
        (least, known.as_str())
    };
    let mut near: Vec<_> = known.iter().map(apart).filter(|(apart, _)| *apart <= most).collect();
    near.sort_unstable();
    match near[..] {
        [(best, known), (next, _), ..] if best < next => Some(known),
        [(_, known)] => Some(known),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_suggests_the_nearest() {
        let known = ["stories", "microsoft/bitnet-b1.58-2B-4T", "falcon3-1b", "falcon3-3b"];
        let known = known.map(str::to_owned);
        for (name, expected) in [
            ("storys", Some("stories")),
            ("Stories", Some("stories")),
            ("stories:8b", Some("stories")),
            ("storie:latest", Some("stories")),
            ("bitnet-b1.58-2b4t", Some("microsoft/bitnet-b1.58-2B-4T")),
            ("Microsoft/bitnet-b1.58-2B-4T", Some("microsoft/bitnet-b1.58-2B-4T")),
            ("falcon3-8b", None), // two are as near
            ("gpt-4o", None),
            ("", None),
            (&"s".repeat(100_000), None),
        ] {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
    }
}
