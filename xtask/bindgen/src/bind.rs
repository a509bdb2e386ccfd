//! Runs wasm-bindgen, and gives a threaded module our own JavaScript for its threads.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::scan::scan;

/// Writes `setun.js`, `setun.d.ts` and `setun_bg.wasm` into `folder`; for a module with shared
/// memory also `threads.js`, which starts its threads, and `memory.js`, which says how large a
/// memory it must be given.
///
/// # Errors
///
/// Fails if `module` was compiled against another version of wasm-bindgen, or if a file cannot
/// be read or written.
pub fn bind(module: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder)?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("setun").typescript(true);
    // wasm-opt sorts functions by their names, and removes the names.
    bindgen.demangle(false).remove_producers_section(true);
    bindgen.web(true)?;
    bindgen.generate(folder).with_context(|| format!("cannot bind {}", module.display()))?;

    let memory = scan(&fs::read(folder.join("setun_bg.wasm"))?)?["memory"].clone();
    if memory["shared"] == true {
        let (Some(initial), Some(maximum)) =
            (memory["initial"].as_u64(), memory["maximum"].as_u64())
        else {
            bail!("{}: its shared memory has no bounds", module.display());
        };
        fs::write(folder.join("threads.js"), include_str!("threads.js"))?;
        fs::write(folder.join("threads.d.ts"), include_str!("threads.d.ts"))?;
        write_memory(folder, initial, maximum)?;
    }
    Ok(())
}

/// The shared memory is JavaScript's to make: its `initial` must be at least, its `maximum` at
/// most what the module says.
fn write_memory(folder: &Path, initial: u64, maximum: u64) -> Result<()> {
    let constants = [
        ("initialPages", initial, "Least pages of 64 KiB that the module accepts."),
        ("maximumPages", maximum, "Most pages of 64 KiB that the module accepts as a maximum."),
    ];
    let mut script = String::new();
    let mut types = String::new();
    for (name, value, meaning) in constants {
        script += &format!("export const {name} = {value};\n");
        types += &format!("/** {meaning} */\nexport const {name}: number;\n");
    }
    fs::write(folder.join("memory.js"), script)?;
    fs::write(folder.join("memory.d.ts"), types)?;
    Ok(())
}
