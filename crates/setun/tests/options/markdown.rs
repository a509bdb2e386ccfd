//! The option table in Markdown.

use setun::{
    BeamOptions, EngineConfig, GenerateOptions,
    text::{OptionGroup, OptionSpec},
};

const BEGIN: &str = "<!-- options: written by `cargo xtask options` -->\n";
const END: &str = "<!-- end of options -->\n";

/// The document with the tables between its marks written anew.
pub(crate) fn with_tables(document: &str) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("a mark for the tables");
    let (_, after) = rest.split_once(END).expect("a mark for their end");
    format!("{before}{BEGIN}{}\n{END}{after}", tables())
}

fn tables() -> String {
    OptionGroup::ALL.into_iter().map(table).collect()
}

fn table(group: OptionGroup) -> String {
    let specs = EngineConfig::specs().chain(GenerateOptions::SPECS).chain(BeamOptions::SPECS);
    let rows = specs.filter(|spec| spec.group == group).map(row);
    format!(
        "\n### {}\n\n| option | command line | TOML | JavaScript | takes | default |\n\
         |---|---|---|---|---|---|\n{}",
        group.title(),
        rows.collect::<String>()
    )
}

fn row(spec: &OptionSpec) -> String {
    let code = |text: &str| if text.is_empty() { "–".to_owned() } else { format!("`{text}`") };
    let flags: Vec<_> = spec.flags().split(", ").map(code).collect();
    let toml = code(spec.toml_table().map_or("", |_| spec.name));
    let cells = [
        code(spec.name),
        flags.join(", "),
        toml,
        code(&spec.javascript_key()),
        spec.kind.to_string(),
        spec.default_words(),
    ];
    format!("| {} |\n", cells.join(" | "))
}
