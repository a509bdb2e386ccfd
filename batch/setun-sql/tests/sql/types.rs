//! Strings of every type, NULLs, and files.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, DictionaryArray, LargeStringArray, StringArray, StringViewArray},
        datatypes::Int32Type,
        record_batch::RecordBatch,
    },
    dataframe::DataFrameWriteOptions,
};

use crate::support::{context, query};

const PROMPTS: [Option<&str>; 4] = [Some("A dog"), None, Some("A cat"), Some("A dog")];

const SQL: &str =
    r#"SELECT generate(prompt, '{"temperature": 0, "max_tokens": 4}') AS result FROM "#;

#[tokio::test]
async fn every_type_of_strings_has_the_same_results() {
    let context = context();
    let columns: [ArrayRef; 4] = [
        Arc::new(StringArray::from(PROMPTS.to_vec())),
        Arc::new(LargeStringArray::from(PROMPTS.to_vec())),
        Arc::new(StringViewArray::from(PROMPTS.to_vec())),
        Arc::new(DictionaryArray::<Int32Type>::from_iter(PROMPTS)),
    ];
    let mut found = vec![];
    for (number, column) in columns.into_iter().enumerate() {
        let batch = RecordBatch::try_from_iter([("prompt", column)]).expect("a batch");
        let table = format!("t{number}");
        context.register_batch(&table, batch).expect("a table");
        let mut rows = query(&context, &format!("{SQL} {table}")).await;
        for row in &mut rows {
            row["result"].as_object_mut().expect("a result").remove("cached_tokens");
        }
        found.push(rows);
    }
    assert_eq!(found[0][1]["result"]["error"], "the prompt is NULL");
    assert_eq!(found[0][0], found[0][3]);
    assert!(found[0][0]["result"]["text"].is_string());
    assert!(found.iter().all(|rows| *rows == found[0]));
}

/// Files of more than a megabyte are read in parts, which do not begin inside quotes.
#[tokio::test]
async fn line_breaks_in_quotes_divide_no_row() {
    const ROWS: usize = 30_000;
    let (context, folder) = (context(), tempfile::tempdir().expect("a folder"));
    context.state_ref().write().config_mut().options_mut().execution.target_partitions = 4;
    let row = |id: usize| format!("{id},\"It was,\nas I said,\n\n{id} times, a day\"\n");
    let text = format!("id,review\n{}", (0..ROWS).map(row).collect::<String>());
    assert!(text.len() > 1 << 20, "{} bytes", text.len());
    let path = folder.path().join("reviews.csv");
    std::fs::write(&path, text).expect("it is written");
    let sql = format!(
        "SELECT count(*) AS rows, count(DISTINCT id) AS ids, sum(length(review)) AS length \
         FROM '{}'",
        path.display()
    );
    let found = query(&context, &sql).await;
    let length: usize = (0..ROWS).map(|id| row(id).len() - id.to_string().len() - 4).sum();
    assert_eq!(found[0], serde_json::json!({"rows": ROWS, "ids": ROWS, "length": length}));
}

#[tokio::test]
async fn files_and_folders_are_tables() {
    let (context, folder) = (context(), tempfile::tempdir().expect("a folder"));
    let batch: ArrayRef = Arc::new(StringArray::from(PROMPTS.to_vec()));
    let batch = RecordBatch::try_from_iter([("prompt", batch)]).expect("a batch");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let one = || DataFrameWriteOptions::new().with_single_file_output(true);
    let rows = || context.read_batch(batch.clone()).expect("rows");
    rows().write_parquet(&path("p.parquet"), one(), None).await.expect("it is written");
    rows().write_json(&path("p.json"), one(), None).await.expect("it is written");
    rows().write_csv(&path("p.csv"), one(), None).await.expect("it is written");
    std::fs::create_dir(path("folder")).expect("a folder");
    rows().write_parquet(&path("folder/1.parquet"), one(), None).await.expect("it is written");
    for name in ["p.parquet", "p.json", "p.csv", "folder/"] {
        let found = query(&context, &format!("{SQL} '{}'", path(name))).await;
        let texts = found.iter().filter(|row| row["result"]["text"].is_string()).count();
        assert_eq!((found.len(), texts), (4, 3), "{name}");
    }
}
