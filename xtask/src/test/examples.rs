//! Examples of `setun`, each run on the embedded model.

use anyhow::{Context, Result, ensure};

use super::stage::Check;
use crate::files::under;
use crate::shell::{built_with_tests, output, program, root, say};

const FOLDER: &str = "crates/setun/examples";

/// What an example prints, among other things, on every machine.
const EXPECTED: [(&str, &str); 13] = [
    ("batch", ": the same 4 texts\n"),
    ("bigram", " the the the the \n{"),
    ("custom_filter", "\nended by the filter after "),
    ("custom_strategy", "\n0 times the letter e\n"),
    ("devices", " scalar: prompt "),
    ("forward", "logits [2, 10, 4096]\n"),
    ("generate", "\n60 tokens after 5, ended by Length\n"),
    ("monitor", "\n300 tokens of 6 texts\n"),
    ("optimize", "\nthe screened head chose the same "),
    ("speculate", " proposed tokens accepted\n"),
    ("start", " s; 96 tokens cached, "),
    ("stream", "\nleft: 40 tokens, Length\n"),
    ("head_candidates", "setun-stories: k 48, temperature 0, 1024 steps: "),
];

pub(super) fn test(check: &mut Check) -> Result<()> {
    let folder = built_with_tests()?.join("examples");
    let files = under(&root().join(FOLDER))?;
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let expected = EXPECTED.iter().find(|(example, _)| *example == name);
        let (_, expected) =
            expected.with_context(|| format!("what does example `{name}` print?"))?;
        say(&format!("example {name}"));
        let printed = output(&mut program(folder.join(&*name)))?;
        say(printed.trim_end());
        ensure!(printed.contains(expected), "example `{name}` does not print {expected:?}");
        check.totals.passed += 1;
    }
    Ok(())
}
