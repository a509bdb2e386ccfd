//! `setun bench`

use serde_json::Value;

use crate::support::{TINY, model, setun};

fn reports(args: &[&str]) -> Vec<Value> {
    let text = setun(&[&["bench", "--json", "--repeat", "1"], args].concat()).text();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_line_for_each_batch_size_has_the_fixed_fields() {
    let folder = model(TINY);
    let size = ["--prompt", "20", "--generate", "6", "--batch", "1,3", "--threads", "2"];
    let reports = reports(&[&["--model", &folder], &size[..]].concat());
    assert_eq!(reports.len(), 2);
    for (report, batch) in reports.iter().zip([1, 3]) {
        let fields: Vec<_> = report.as_object().expect("an object").keys().collect();
        assert_eq!(
            fields,
            [
                "backend",
                "level",
                "threads",
                "batch",
                "shape",
                "head",
                "repeats",
                "tokens_hash",
                "prefill_tokens_per_second",
                "decode_tokens_per_second",
                "weight_bytes_per_token",
                "read_bandwidth_gb_per_second",
                "peak_rss_bytes",
            ]
        );
        assert_eq!(report["batch"], batch);
        assert_eq!(report["repeats"], 1);
        assert_eq!(report["head"], "stored");
        for rate in ["prefill_tokens_per_second", "decode_tokens_per_second"] {
            assert!(report[rate].as_f64().expect(rate) > 0.0);
        }
    }
    let bytes = |report: &Value| report["weight_bytes_per_token"].as_u64().expect("bytes");
    assert_eq!(bytes(&reports[0]) / 3, bytes(&reports[1]), "a batch shares what it reads");
}

#[test]
fn tokens_do_not_depend_on_how_they_are_computed() {
    let folder = model(TINY);
    let hash = |more: &[&str]| {
        let size = ["--model", &folder, "--prompt", "30", "--generate", "8", "--batch", "2"];
        reports(&[&size[..], more].concat())[0]["tokens_hash"].clone()
    };
    let expected = hash(&[]);
    assert_eq!(hash(&["--backend", "scalar"]), expected);
    assert_eq!(hash(&["--threads", "3"]), expected);
    let longer =
        reports(&["--model", &folder, "--prompt", "31", "--generate", "8", "--batch", "2"]);
    assert_ne!(longer[0]["tokens_hash"], expected);
}

#[test]
fn without_json_it_is_a_table() {
    let folder = model(TINY);
    let args = ["bench", "--model", &folder, "--prompt", "5", "--generate", "3", "--repeat", "1"];
    let text = setun(&args).text();
    assert!(text.contains("median of 1") && text.contains("prefill tokens/s"), "{text}");
}
