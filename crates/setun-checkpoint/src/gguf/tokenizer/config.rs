//! `tokenizer_config.json`.

use serde_json::{Map, Value};

use super::check::Checked;
use crate::{CheckpointError, files};

pub(super) fn write(checked: &Checked<'_>) -> Result<Vec<u8>, CheckpointError> {
    let special = checked.special;
    let mut config = Map::new();
    for (name, id) in [
        ("bos_token", special.bos),
        ("eos_token", special.eos),
        ("unk_token", special.unknown),
        ("pad_token", special.padding),
    ] {
        if let Some(id) = id {
            config.insert(name.to_owned(), checked.spelling(id).into());
        }
    }
    for (name, value) in [
        ("add_bos_token", checked.vocabulary.add_bos),
        ("add_eos_token", checked.vocabulary.add_eos),
    ] {
        config.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    config.insert("clean_up_tokenization_spaces".to_owned(), Value::Bool(false));
    config.insert("tokenizer_class".to_owned(), "PreTrainedTokenizerFast".into());
    let template = checked.vocabulary.chat_template.clone();
    config.extend(template.map(|template| ("chat_template".to_owned(), template.into())));
    crate::json::write(files::TOKENIZER_CONFIG, &config)
}
