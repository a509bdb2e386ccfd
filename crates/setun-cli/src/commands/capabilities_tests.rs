//! The page of capabilities against the library's functions and the command's arguments.

use clap::CommandFactory;
use setun::{
    BeamOptions, CancelHandle, Conversion, Engine, EngineBuilder, EngineConfig, GenerateOptions,
    Inferencer, Message, Model, ModelHeader, PromptTemplate, Session,
    hub::{self, ModelStore, StoredModel},
};
use setun_serve::{FileStore, ModelRegistry, ServeOptions};

use super::Setun;

const PAGE: &str = include_str!("../../../../docs/capabilities.md");

/// Functions of the library: their names, and calls of them that are compiled and never made.
macro_rules! functions {
    ($($type:ident::$function:ident($($argument:expr),*);)*) => {
        const FUNCTIONS: &[&str] =
            &[$(concat!(stringify!($type), "::", stringify!($function))),*];

        fn calls() {
            $(compiled($type::$function($($argument),*));)*
        }
    };
}

functions! {
    Engine::generate(any(), "", any());
    Engine::chat(any(), any::<Vec<Message>>(), any());
    Engine::generate_many(any(), "", any(), any());
    Engine::text_completion(any(), [""], any());
    Engine::chat_completion(any(), any::<Vec<Vec<Message>>>(), any());
    Engine::beams(any(), "", any(), any());
    Engine::complete(any(), "", any());
    Engine::tokenize(any(), any());
    Engine::tokenize_plain(any(), any());
    Engine::tokenize_chat(any(), any(), any());
    Engine::detokenize(any(), any());
    Engine::count_tokens(any(), "", any());
    Engine::prefill(any(), "", any());
    Engine::score(any(), "", &[""]);
    Engine::classify(any(), "", &[""]);
    Engine::embed(any(), [""], any(), any());
    Engine::session(any());
    Engine::restore(any(), any::<Vec<u8>>());
    Engine::model_shape(any());
    Engine::device_report(any());
    Engine::warnings(any());
    Engine::self_test(any());
    Engine::metrics(any());
    Engine::latest_metrics(any());
    Engine::start_profile(any());
    Engine::end_profile(any());
    Engine::start_timeline(any());
    Engine::release_memory(any(), any());
    Engine::limit_cache(any(), any());
    Engine::reset_prefix_cache(any());
    Engine::with_cache_salt(any(), "");
    Engine::close(any());
    EngineBuilder::draft(any(), any::<Model>());
    EngineBuilder::device(any(), any());
    EngineBuilder::head_type(any(), any());
    EngineBuilder::activation_group(any(), any());
    EngineBuilder::weight_image(any(), any::<String>());
    CancelHandle::cancel(any());
    CancelHandle::is_running(any());
    CancelHandle::tokens(any());
    PromptTemplate::parse(any());
    Inferencer::prefill(any(), any(), any(), any());
    Inferencer::decode(any(), any(), any(), any(), any());
    Session::push(any(), "");
    Session::generate(any(), any());
    Session::clone(any());
    Session::truncate(any(), any());
    Session::save(any());
    Model::open("");
    Model::open_with("", any());
    ModelStore::pull(any(), any(), any(), any());
    ModelStore::list(any());
    ModelStore::get(any(), any());
    ModelStore::remove(any(), any(), any(), any());
    StoredModel::verify(any(), any(), |_| ());
    ModelHeader::estimate(any(), any());
    Conversion::new(any(), "", any(), "");
    setun::add_weight_image("", any());
    hub::catalog();
    setun_serve::router(any::<Engine>(), any());
    ServeOptions::vllm_metrics(any(), any());
    setun_serve::serve(any(), any(), any(), any());
    setun_serve::serve_with(any(), any(), any(), any(), any());
    ModelRegistry::new(any());
    ModelRegistry::memory_budget(any(), any());
    ModelRegistry::keep_alive(any(), any());
    ServeOptions::limits(any(), any());
    ServeOptions::isolate_keys(any(), any());
    ServeOptions::spans(any(), any());
    ServeOptions::files(any(), any());
    FileStore::open("", any());
}

fn compiled<T>(_: T) {}

fn any<T>() -> T {
    unreachable!("only compiled")
}

/// The names in a column of the page's tables.
fn column(place: usize) -> Vec<&'static str> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| capab"));
    let cells = rows.filter_map(|row| row.trim_matches('|').split(" | ").nth(place));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_rust_name_is_there_and_none_is_left_out() {
    let _: fn() = calls; // compiled with this test
    let named = column(1);
    let specs =
        GenerateOptions::SPECS.iter().chain(BeamOptions::SPECS).chain(EngineConfig::specs());
    let options: Vec<_> = specs.map(|spec| spec.name).collect();
    for name in &named {
        assert!(FUNCTIONS.contains(name) || options.contains(name), "{name}");
    }
    for function in FUNCTIONS {
        assert!(named.contains(function), "{function} is not on the page");
    }
    assert!(named.len() > FUNCTIONS.len(), "the page names options, too");
}

#[test]
fn every_command_and_flag_is_there_and_no_command_that_uses_a_model_is_left_out() {
    let setun = Setun::command();
    let named = column(2);
    let of_server = column(4).into_iter().filter(|name| name.starts_with("setun "));
    for line in named.iter().copied().chain(of_server) {
        let words = line.strip_prefix("setun ").unwrap_or_else(|| panic!("{line}"));
        let command = words.split(' ').fold(&setun, |command, word| {
            let Some(flag) = word.strip_prefix("--") else {
                let found = command.find_subcommand(word);
                return found.unwrap_or_else(|| panic!("{line}: {word}"));
            };
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(flag)), "{line}");
            command
        });
        assert_ne!(command.get_name(), setun.get_name(), "{line}");
    }
    for command in setun.get_subcommands().map(clap::Command::get_name) {
        let is_named = named.iter().any(|line| line.split(' ').nth(1) == Some(command));
        let is_tool = ["batch", "bench", "help", "sql", "synth"].contains(&command);
        assert!(is_named || is_tool, "`setun {command}` is not on the page");
    }
}
