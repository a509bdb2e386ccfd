//! The catalog of models in TypeScript and Markdown.

use std::fmt::Write as _;

use serde_json::Value;

const BEGIN: &str = "<!-- catalog: written by `cargo xtask options` -->\n";
const END: &str = "<!-- end of the catalog -->\n";

/// A cell without a value.
const NONE: &str = "–";

const HEAD: &str = r#"/**
 * Public models with short names.
 *
 * Written by `cargo xtask options` from the catalog of `setun-hub`; do not edit.
 */

import type { CatalogEntry } from "./catalog.js";

export const CATALOG: readonly CatalogEntry[] = [
"#;

/// Fields and their names in JavaScript, in order.
const FIELDS: [(&str, &str); 12] = [
    ("name", "name"),
    ("title", "title"),
    ("family", "family"),
    ("parameters", "parameters"),
    ("repository", "repository"),
    ("file", "file"),
    ("format", "format"),
    ("bytes", "bytes"),
    ("memory", "memory"),
    ("licence", "licence"),
    ("context_length", "contextLength"),
    ("chat_template", "chatTemplate"),
];

/// The file `catalog-entries.ts`.
pub(crate) fn typescript(table: &str) -> String {
    let entries: String = entries(table).iter().map(object).collect();
    format!("{HEAD}{entries}];\n")
}

fn entries(table: &str) -> Vec<Value> {
    let table: Value = serde_json::from_str(table).expect("valid JSON");
    table["models"].as_array().expect("models").clone()
}

fn object(entry: &Value) -> String {
    let mut text = "  {\n".to_owned();
    for (name, key) in FIELDS {
        if !entry[name].is_null() {
            let _ = writeln!(text, "    {key}: {},", entry[name]);
        }
    }
    if let Some(sampling) = entry["sampling"].as_object() {
        let option = |(name, value): (&String, &Value)| format!("{}: {value}", camel_case(name));
        let options: Vec<_> = sampling.iter().map(option).collect();
        let _ = writeln!(text, "    sampling: {{ {} }},", options.join(", "));
    }
    text + "  },\n"
}

/// `top_p` as `topP`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_uppercase() + rest
    })
}

/// The document with the table between its marks written anew.
pub(crate) fn with_table(document: &str, table: &str) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("a mark for the table");
    let (_, after) = rest.split_once(END).expect("a mark for its end");
    let rows: String = entries(table).iter().map(row).collect();
    format!(
        "{before}{BEGIN}\n\
         | name | repository | download | memory | context | licence | template | sampling |\n\
         |---|---|---:|---:|---:|---|---|---|\n{rows}\n{END}{after}"
    )
}

fn row(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().expect("a text").to_owned();
    let bytes = |name: &str| gigabytes(entry[name].as_u64().expect("a number"));
    let context = entry["context_length"].as_u64().map_or(NONE.to_owned(), |of| of.to_string());
    let template = entry["chat_template"].as_str().unwrap_or(NONE).to_owned();
    let sampling = ["temperature", "top_p", "top_k"].map(|name| &entry["sampling"][name]);
    let sampling = match sampling {
        [Value::Null, Value::Null, Value::Null] => NONE.to_owned(),
        options => {
            options.map(|it| if it.is_null() { NONE.into() } else { it.to_string() }).join(", ")
        }
    };
    let cells = [
        format!("`{}`", text("name")),
        format!("`{}`", text("repository")),
        bytes("bytes"),
        bytes("memory"),
        context,
        text("licence"),
        template,
        sampling,
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// Bytes with two decimals: `1.18 GB`.
fn gigabytes(bytes: u64) -> String {
    let hundredths = (bytes + 5_000_000) / 10_000_000;
    format!("{}.{:02} GB", hundredths / 100, hundredths % 100)
}
