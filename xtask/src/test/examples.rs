//! The examples of `setun`, each run as its first lines say, on the embedded model.

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use super::totals::Totals;
use crate::shell::{cargo, output, root, say};

const FOLDER: &str = "crates/setun/examples";

/// What an example prints, among other things, on every machine.
const EXPECTED: [(&str, &str); 12] = [
    ("batch", ": the same 4 texts\n"),
    ("bigram", " the the the the \n{"),
    ("custom_filter", "\nended by the filter after "),
    ("custom_strategy", "\n0 times the letter e\n"),
    ("devices", " scalar: prompt "),
    ("forward", "logits [2, 10, 4096]\n"),
    ("generate", "\n60 tokens after 5, ended by Length\n"),
    ("monitor", "\n300 tokens of 6 texts\n"),
    ("optimize", "\nthe screened head chose the same "),
    ("speculate", " steps: the same text\n"),
    ("stream", "\nleft: 40 tokens, Length\n"),
    ("survivors", "setun-stories: k 48, 1024 steps: "),
];

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("examples", |totals| {
        let mut names = vec![];
        for entry in root().join(FOLDER).read_dir().context(FOLDER)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        names.iter().try_for_each(|name| example(name, totals))
    })
}

fn example(name: &str, totals: &mut Totals) -> Result<()> {
    let expected = EXPECTED.iter().find(|(example, _)| *example == name);
    let (_, expected) = expected.with_context(|| format!("what does example `{name}` print?"))?;
    say(&format!("example {name}"));
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked", "--package", "setun"]);
    let printed =
        output(command.args(["--features", "embedded-model,grammar", "--example", name]))?;
    say(printed.trim_end());
    ensure!(printed.contains(expected), "example `{name}` does not print {expected:?}");
    totals.passed += 1;
    Ok(())
}
