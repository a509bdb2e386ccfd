//! A file of any format up to its tensors' data, beside a configuration that not every format needs.

#![no_main]

use setun_checkpoint::{Source, files};
use setun_fuzz::{read_header, trial::Folder};

/// That of the seeds in ONNX.
const CONFIG: &[u8] =
    br#"{"model_type": "bitnet", "hidden_size": 16, "intermediate_size": 16, "vocab_size": 9,
    "num_attention_heads": 1, "num_key_value_heads": 1, "num_hidden_layers": 1,
    "max_position_embeddings": 16, "tie_word_embeddings": false}"#;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = Folder::from([("model", bytes), (files::CONFIG, CONFIG)]);
    read_header(&Source::File("model".to_owned()), &folder);
});
