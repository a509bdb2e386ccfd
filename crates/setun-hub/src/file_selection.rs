//! Selection of the files of a repository that make up a model.

use crate::{
    error::Error,
    model_name::{is_lone_name, is_safe_file},
};

/// What is looked for, in the order of preference.
pub(crate) const EXPECTED: &str = "a .setun file, model.safetensors or its index and shards with \
                                   config.json, or a .gguf file";

/// The list of a checkpoint's shards, and a checkpoint in one file.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";

/// Small files that belong to a model whatever its weights are in.
pub(crate) const BESIDE: [&str; 19] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "hadamard.json",
    "quantize_config.json",
    "quantization_config.json",
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
    "LICENCE",
    "NOTICE",
    "NOTICE.txt",
];

/// Types of GGUF that keep every code, the ones that setun reads best first.
const GGUF: [&str; 6] = ["i2_s", "tq2_0", "tq1_0", "pq2_0", "q2_0", "ptq1_0"];

/// The type of ONNX that keeps every code.
const ONNX: [&str; 1] = ["q2"];

/// Folders in which a repository may have its weights, below its other files.
pub(crate) const WEIGHT_FOLDERS: [&str; 2] = ["gguf", "onnx"];

/// Files that are a model together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSelection {
    /// Those with the weights.
    pub(crate) weights: Vec<String>,
    /// Those that come with them.
    pub(crate) beside: Vec<String>,
}

impl FileSelection {
    /// What to open: a file's name, or `None` for the folder.
    pub(crate) fn entry(&self) -> Option<&str> {
        let [first, ..] = self.weights.as_slice() else { return None };
        let is_set = |name: &str| name.ends_with(".safetensors");
        let has_config = self.beside.iter().any(|name| name == "config.json");
        if is_set(first) && has_config && is_default_set(first) { None } else { Some(first) }
    }
}

/// Chooses among the names of a repository's files; `asked` is the file that is wanted.
pub(crate) fn choose(
    model: &str,
    address: &str,
    names: &[String],
    asked: Option<&str>,
) -> Result<FileSelection, Error> {
    let names: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| is_safe_file(name)).collect();
    let no_model =
        |expected| Error::NoModel { address: address.into(), expected, found: in_words(&names) };
    let mut beside: Vec<String> =
        BESIDE.iter().filter(|name| names.contains(name)).map(ToString::to_string).collect();
    let weights = match asked {
        Some(asked) if names.contains(&asked) => with_parts(asked, &names),
        Some(_) => return Err(no_model("the file that is named")),
        None => preferred(model, &names)?.ok_or_else(|| no_model(EXPECTED))?,
    };
    if weights.iter().any(|name| is_default_set(name)) && names.contains(&INDEX) {
        beside.push(INDEX.into());
    }
    Ok(FileSelection { weights, beside })
}

fn preferred(model: &str, names: &[&str]) -> Result<Option<Vec<String>>, Error> {
    let ending = |end: &str| -> Vec<&str> {
        names.iter().copied().filter(|name| name.to_ascii_lowercase().ends_with(end)).collect()
    };
    let one_of = |found: Vec<&str>| match heads(&found)[..] {
        [] => Ok(None),
        [one] => Ok(Some(with_parts(one, names))),
        ref several => Err(Error::AmbiguousFile {
            name: model.into(),
            files: several.iter().map(ToString::to_string).collect(),
        }),
    };
    let containers = ending(".setun");
    if !containers.is_empty() {
        return one_of(containers);
    }
    let set: Vec<String> =
        names.iter().filter(|name| is_default_set(name)).map(ToString::to_string).collect();
    let has = |name| names.contains(&name);
    if !set.is_empty() && has("config.json") {
        // Where both are there, they are the same weights twice.
        let one = has(WEIGHTS).then(|| vec![WEIGHTS.to_owned()]);
        return Ok(Some(one.unwrap_or(set)));
    }
    let by_kind = [(".gguf", &GGUF[..]), (".safetensors", &[]), (".onnx", &ONNX)];
    for (end, kinds) in by_kind {
        let files = ending(end);
        let preferred = kinds.iter().find_map(|kind| {
            let of_kind: Vec<_> =
                files.iter().copied().filter(|name| has_word(name, kind)).collect();
            (!of_kind.is_empty()).then_some(of_kind)
        });
        if let Some(found) = one_of(preferred.unwrap_or(files))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a name has a type in it that is not the end of another's: `q2_0` is not `pq2_0`.
fn has_word(name: &str, kind: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.match_indices(kind)
        .any(|(start, _)| !name[..start].ends_with(|before: char| before.is_ascii_alphanumeric()))
}

/// `model.safetensors`, or `model-00001-of-00002.safetensors`.
fn is_default_set(name: &str) -> bool {
    name == WEIGHTS
        || split_name(name)
            .is_some_and(|split| (split.stem, split.end) == ("model", ".safetensors"))
}

/// A name of a part: `STEM-00001-of-00002.END`.
pub(crate) struct SplitName<'a> {
    pub(crate) stem: &'a str,
    pub(crate) part: u32,
    count: &'a str,
    end: &'a str,
}

pub(crate) fn split_name(name: &str) -> Option<SplitName<'_>> {
    let (stem, end) = name.split_at(name.rfind('.')?);
    let (stem, count) = stem.rsplit_once("-of-")?;
    let (stem, part) = stem.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = part.parse().ok().filter(|_| digits(part) && digits(count))?;
    Some(SplitName { stem, part, count, end })
}

/// What the parts of a file have in common.
fn split_of(name: &str) -> Option<(&str, &str, &str)> {
    split_name(name).map(|split| (split.stem, split.count, split.end))
}

/// Of a split file its first part alone.
fn heads<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup_by_key(|name| split_of(name).unwrap_or((*name, "", "")));
    names
}

/// A file and, where it is split, its other parts; of ONNX its data beside it.
fn with_parts(name: &str, names: &[&str]) -> Vec<String> {
    let mut parts: Vec<&str> = match split_of(name) {
        Some(split) => names.iter().copied().filter(|name| split_of(name) == Some(split)).collect(),
        None => vec![name],
    };
    parts.sort_unstable();
    if std::path::Path::new(name).extension().is_some_and(|end| end == "onnx") {
        let data = [format!("{name}_data"), format!("{name}.data")];
        parts.extend(names.iter().filter(|name| data.iter().any(|data| data == *name)));
    }
    parts.into_iter().map(str::to_owned).collect()
}

/// The choice among files that are there already.
pub(crate) fn choose_stored(
    model: &str,
    address: &str,
    names: &[String],
    asked: Option<&str>,
) -> Result<FileSelection, Error> {
    // One file that was asked for once need not be named again.
    let lone: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| is_lone_name(name)).collect();
    let asked = match (asked, heads(&lone).as_slice()) {
        (None, [only]) => Some(*only),
        (asked, _) => asked,
    };
    choose(model, address, names, asked)
}

/// Some names, for an error.
fn in_words(names: &[&str]) -> String {
    const MAX: usize = 8;
    match names.len() {
        0 => "no file".into(),
        count if count > MAX => format!("{} and {} more", names[..MAX].join(", "), count - MAX),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], asked: Option<&str>) -> Result<Vec<String>, String> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let choice =
            choose("o/n", "https://h/o/n", &names, asked).map_err(|error| error.to_string())?;
        let mut all: Vec<_> = choice.weights.iter().chain(&choice.beside).cloned().collect();
        all.sort();
        all.push(choice.entry().unwrap_or("/").to_owned());
        Ok(all)
    }

    #[test]
    fn the_files_that_a_model_needs_are_taken() {
        let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
        let cases: [(&[&str], Option<&str>, &[&str]); 14] = [
            (&["config.json", "m.setun", WEIGHTS], None, &["config.json", "m.setun", "m.setun"]),
            (
                &["config.json", WEIGHTS, "pytorch_model.bin", "a.gguf"],
                None,
                &["config.json", WEIGHTS, "/"],
            ),
            (
                &["config.json", INDEX, shards[0], shards[1]],
                None,
                &["config.json", shards[0], shards[1], INDEX, "/"],
            ),
            (&["a.gguf", "README.md"], None, &["a.gguf", "a.gguf"]),
            (&["a-f16.gguf", "a-I2_S.gguf", "a-TQ2_0.gguf"], None, &["a-I2_S.gguf", "a-I2_S.gguf"]),
            (&["a-f16.gguf", "a-tq2_0.gguf"], None, &["a-tq2_0.gguf", "a-tq2_0.gguf"]),
            (&["a-f16.gguf", "a-tq2_0.gguf"], Some("a-f16.gguf"), &["a-f16.gguf", "a-f16.gguf"]),
            (
                &["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"],
                None,
                &["a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "a-00001-of-00002.gguf"],
            ),
            (
                &["x.onnx", "x.onnx_data", "config.json"],
                None,
                &["config.json", "x.onnx", "x.onnx_data", "x.onnx"],
            ),
            // As repositories of ONNX decoders are laid out.
            (
                &[
                    "config.json",
                    "tokenizer.json",
                    "onnx/model.onnx",
                    "onnx/model_q4.onnx",
                    "onnx/model_q2f16.onnx",
                    "onnx/model_q2f16.onnx_data",
                ],
                None,
                &[
                    "config.json",
                    "onnx/model_q2f16.onnx",
                    "onnx/model_q2f16.onnx_data",
                    "tokenizer.json",
                    "onnx/model_q2f16.onnx",
                ],
            ),
            (
                &["README.md", "gguf/a-F16.gguf", "gguf/a-I2_S.gguf"],
                None,
                &["gguf/a-I2_S.gguf", "gguf/a-I2_S.gguf"],
            ),
            // As repositories of Ternary Bonsai are laid out.
            (
                &["a-F16.gguf", "a-PQ2_0.gguf", "a-Q2_0.gguf", "a-Q2_0_g64.gguf"],
                None,
                &["a-PQ2_0.gguf", "a-PQ2_0.gguf"],
            ),
            (&["a-F16.gguf", "a-Q2_0.gguf"], None, &["a-Q2_0.gguf", "a-Q2_0.gguf"]),
            (&["a-PTQ1_0.gguf", "a-F16.gguf"], None, &["a-PTQ1_0.gguf", "a-PTQ1_0.gguf"]),
        ];
        for (names, asked, expected) in cases {
            assert_eq!(chosen(names, asked).unwrap(), expected, "{names:?}");
        }
    }

    #[test]
    fn what_cannot_be_chosen_is_listed() {
        let several = chosen(&["a-q8.gguf", "b-q8.gguf"], None).unwrap_err();
        assert!(
            several.contains("a-q8.gguf, b-q8.gguf") && several.contains("o/n:FILE"),
            "{several}"
        );
        let none = chosen(&["pytorch_model.bin", "config.json"], None).unwrap_err();
        assert!(none.contains("found pytorch_model.bin, config.json"), "{none}");
        assert!(chosen(&["a.gguf"], Some("b.gguf")).unwrap_err().contains("found a.gguf"));
    }
}
