//! The story model in the formats of other engines, for `cargo xtask bench-browser --rivals`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, root, run, target};
use crate::stamp::{Inputs, if_changed};

/// What every engine continues.
pub(crate) const PROMPT: &str = "Once upon a time, there was a little girl named Lily. She loved to \
    play outside in the park with her dog. One day, they found a big red ball under a tree.";

/// The story model as files.
pub(crate) struct Story {
    /// In Hugging Face's layout.
    pub(crate) folder: PathBuf,
    /// As llama.cpp reads it.
    pub(crate) gguf: PathBuf,
}

/// The `setun` command, as users build it.
pub(crate) fn setun(arguments: &[&str]) -> Command {
    let mut setun = cargo();
    setun.args(["run", "--quiet", "--release", "--locked", "--package", "setun-cli", "--"]);
    setun.args(arguments);
    setun
}

/// Writes the story model's files once.
///
/// llama.cpp has `BitNet` with `SiLU` alone, so its file says that: the same weights and work, other
/// texts.
pub(crate) fn story() -> Result<Story> {
    let embedded = root().join("crates/setun/embedded/stories.safetensors");
    let place = target().join("bench-browser");
    let story = Story { folder: place.join("stories"), gguf: place.join("stories.gguf") };
    let inputs = Inputs::default().files([embedded.clone()])?;
    let config = story.folder.join("config.json");
    if_changed("bench-stories", &[&config, &story.gguf], &inputs, || {
        let other = place.join("stories-silu");
        for folder in [&story.folder, &other] {
            fs::create_dir_all(folder)?;
            convert(&embedded, folder, "hf")?;
        }
        let text = fs::read_to_string(&config)?;
        let changed = text.replace("relu2", "silu");
        fs::write(other.join("config.json"), changed).context("the other configuration")?;
        convert(&other, &story.gguf, "gguf-tq2_0")
    })?;
    Ok(story)
}

fn convert(from: &Path, to: &Path, format: &str) -> Result<()> {
    run(setun(&["convert", "--to", format, "--force"]).arg(from).arg(to))
}
