//! Known names that are nearest to a misspelled one.

use crate::{catalog::catalog, model_store::ModelStore};

/// Letters by which a misspelled name may differ from the one that is meant.
const MAX_ERRORS: usize = 2;

/// Most bytes of a name that is compared with others.
const MAX_BYTES: usize = 200;

impl ModelStore {
    /// The alias, the short name of the catalog, or the `owner/name` that a misspelled name is nearest
    /// to, if it is near and the only one. A name without its owner is near.
    #[must_use]
    pub fn suggest(&self, name: &str) -> Option<String> {
        let mut known: Vec<String> =
            self.layout.aliases().unwrap_or_default().into_keys().collect();
        for entry in catalog() {
            known.extend([entry.name.clone(), entry.repository.clone()]);
        }
        for (id, _) in self.layout.models().unwrap_or_default() {
            known.push(format!("{}/{}", id.owner, id.name));
        }
        known.sort();
        known.dedup();
        nearest(name.strip_prefix("hf:").unwrap_or(name), &known).map(str::to_owned)
    }
}

fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    if name.len() > MAX_BYTES {
        return None;
    }
    let has_owner = name.contains('/');
    let name = name.to_lowercase();
    let most = MAX_ERRORS.min(name.len() / 3);
    let apart = |known: &'a String| {
        let compared = match known.rsplit_once('/') {
            Some((_, last)) if !has_owner => last,
            _ => known,
        };
        (distance(&name, &compared.to_lowercase()), known.as_str())
    };
    let mut near: Vec<_> = known.iter().map(apart).filter(|(apart, _)| *apart <= most).collect();
    near.sort_by_key(|(apart, _)| *apart);
    match near[..] {
        [(best, known), (next, _), ..] if best < next => Some(known),
        [(_, known)] => Some(known),
        _ => None,
    }
}

/// Letters to insert, remove or replace to make one text of another (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, expected) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *expected);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::StoreSettings;

    #[test]
    fn a_misspelled_name_suggests_the_nearest() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ModelStore::open(StoreSettings::new(folder.path()));
        store.alias("my-stories", Some("o/stories")).expect("an alias");
        for (name, expected) in [
            ("bitnet-2b-4t", "bitnet-2b-4t"),
            ("bitnet-2b4t", "bitnet-2b-4t"),
            ("BitNet-2B-4T", "bitnet-2b-4t"),
            ("ternary-bonsai8b", "ternary-bonsai-8b"),
            ("my-storys", "my-stories"),
            ("microsoft/bitnet-b1.58-2B4T", "microsoft/bitnet-b1.58-2B-4T"),
            ("hf:Microsoft/BitNet-b1.58-2B-4T", "microsoft/bitnet-b1.58-2B-4T"),
            ("bitnet-b1.58-2b-4t", "microsoft/bitnet-b1.58-2B-4T"),
        ] {
            assert_eq!(store.suggest(name).as_deref(), Some(expected), "{name}");
        }
        let long = "b".repeat(100_000);
        // Three Falcons are as near as each other.
        for far in ["", "stories", "gpt2", "a-model-of-mine", "falcon3-8b", "o/stories", &long] {
            assert_eq!(store.suggest(far), None, "{far}");
        }
    }
}
