//! An ONNX file beside the configuration of one of the models that the seeds are exports of: those of
//! the fixtures, and a small one.

#![no_main]

use setun_checkpoint::{Source, files};
use setun_fuzz::{read, trial::Folder};

const CONFIGS: [&[u8]; 3] = [
    br#"{"model_type": "bitnet", "hidden_size": 16, "intermediate_size": 16, "vocab_size": 9,
    "num_attention_heads": 1, "num_key_value_heads": 1, "num_hidden_layers": 1,
    "max_position_embeddings": 16, "tie_word_embeddings": false}"#,
    include_bytes!("../../tests/fixtures/golden/bitnet-h64/packed/config.json"),
    include_bytes!("../../tests/fixtures/golden/llama-rmsnorm-bias/packed/config.json"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for config in CONFIGS {
        let folder = Folder::from([("model.onnx", bytes), (files::CONFIG, config)]);
        read(&Source::File("model.onnx".to_owned()), &folder);
    }
});
