//! The option table against TOML files.

use setun::{EngineConfig, ErrorCode, GenerateOptions, text::OptionSpec};

use crate::cases::Cases;

/// The options of all tables.
fn offered() -> impl Iterator<Item = &'static OptionSpec> {
    let specs = EngineConfig::specs().chain(GenerateOptions::SPECS);
    specs.filter(|spec| spec.toml_table().is_some())
}

fn read(spec: &OptionSpec, value: &serde_json::Value) -> Result<EngineConfig, String> {
    let value = value.to_string().replace(':', " = "); // of JSON only tables differ
    let table = spec.toml_table().expect("a table");
    let text = format!("[{table}]\n\n{} = {value}\n", spec.name);
    EngineConfig::from_toml(&text).map_err(|error| {
        assert_eq!(error.code(), ErrorCode::BadOption, "{text}");
        error.to_string()
    })
}

#[test]
fn files_take_every_value_at_the_ends_of_a_range() {
    for spec in offered() {
        for value in Cases::of(spec.kind).accepted {
            let config = read(spec, &value).unwrap_or_else(|error| panic!("{value}: {error}"));
            let found = config.generation.get(spec.name).or_else(|| config.engine.get(spec.name));
            assert!(found.or_else(|| config.device.get(spec.name)).is_some(), "{}", spec.name);
        }
    }
}

#[test]
fn files_refuse_every_value_outside_a_range_with_its_line() {
    for spec in offered() {
        for value in Cases::of(spec.kind).refused {
            let error = read(spec, &value).expect_err(spec.name);
            let words = format!("`{}` is ", spec.name);
            assert!(error.contains("line 3: ") && error.contains(&words), "{value}: {error}");
            assert!(error.contains(&format!("expected {}", spec.kind)), "{value}: {error}");
        }
    }
}

#[test]
fn options_of_no_file_are_refused_by_name() {
    let structured = GenerateOptions::SPECS
        .iter()
        .filter(|spec| spec.toml_table().is_none())
        .map(|spec| spec.name);
    for name in structured.chain(["temprature"]) {
        let text = format!("[generation]\n{name} = 1\n");
        let error = EngineConfig::from_toml(&text).expect_err(name).to_string();
        assert!(error.contains(&format!("line 2: unknown option `{name}`")), "{error}");
    }
}
