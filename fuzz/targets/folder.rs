//! A folder in Hugging Face's layout: `config.json`, `generation_config.json`, the index, each up
//! to a byte of zero and absent where it is empty, then the weights' file, which is every shard.

#![no_main]

use libfuzzer_sys::fuzz_target;
use setun_checkpoint::{Source, files};
use setun_fuzz::{read, trial::Folder};

fuzz_target!(|bytes: &[u8]| {
    let parts: Vec<_> = bytes.splitn(4, |byte| *byte == 0).collect();
    let names = [files::CONFIG, files::GENERATION_CONFIG, files::INDEX];
    let mut folder: Folder<'_> = names.into_iter().zip(parts.iter().copied()).collect();
    folder.retain(|_, bytes| !bytes.is_empty());
    if let Some(weights) = parts.get(3) {
        let has_index = folder.contains_key(files::INDEX);
        folder.insert(if has_index { "a.safetensors" } else { files::WEIGHTS }, weights);
    }
    read(&Source::Folder, &folder);
});
