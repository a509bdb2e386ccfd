//! Batch jobs: results, restarts, and two runs at once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use datafusion::{
    arrow::{
        array::{ArrayRef, Int64Array, StringArray},
        record_batch::RecordBatch,
    },
    dataframe::DataFrameWriteOptions,
    prelude::SessionContext,
};
use setun::{Engine, GenerateOptions, Model};
use setun_sql::{
    BatchJob, BatchStatus, Conversation, Error, ModelHandle, Settings, Workers, batch_status,
};

use crate::support::{context, engine, query};

const OPTIONS: &str = r#"{"max_tokens": 6, "temperature": 1.0}"#;

/// A run with the model of this process.
async fn run_batch(
    job: &BatchJob,
    model: &ModelHandle,
    report: impl FnMut(&BatchStatus) + Send,
) -> Result<BatchStatus, Error> {
    setun_sql::run_batch(job, &Workers::from(model.clone()), report).await
}

/// A folder with files of prompts.
struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    async fn new(files: &[&[Option<&str>]]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("in")).expect("a folder");
        for (number, prompts) in files.iter().enumerate() {
            let path = folder.path().join(format!("in/{number}.parquet"));
            write(&path, prompts).await;
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn job(&self, output: &str) -> BatchJob {
        BatchJob {
            input: self.path("in/"),
            output: self.path(output),
            conversation: Conversation::Prompt("prompt".into()),
            key: Some("id".into()),
            options: Some(OPTIONS.into()),
            seed: 5,
            chunk_rows: 4,
            shard_rows: 2,
        }
    }

    fn files(&self, output: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        files(Path::new(&self.path(output)))
    }
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let below = files(&path);
            found.extend(below.into_iter().map(|(name, bytes)| (path.join(name), bytes)));
        } else {
            found
                .insert(path.file_name().expect("a name").into(), fs::read(&path).expect("a file"));
        }
    }
    found
}

/// Files by their names, and of the job all but when it was begun.
fn named(files: BTreeMap<PathBuf, Vec<u8>>) -> Vec<(OsString, Vec<u8>)> {
    let named = files.into_iter().map(|(path, bytes)| {
        let name = path.file_name().expect("a name").to_owned();
        let bytes = if name == "job.json" { without_time(&bytes) } else { bytes };
        (name, bytes)
    });
    named.collect()
}

fn without_time(bytes: &[u8]) -> Vec<u8> {
    let mut job: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
    let time = job.as_object_mut().expect("an object").remove("time");
    assert!(time.is_some_and(|time| time.is_u64()));
    job.to_string().into_bytes()
}

async fn write(path: &Path, prompts: &[Option<&str>]) {
    let ids: ArrayRef = Arc::new((0_i64..).take(prompts.len()).collect::<Int64Array>());
    let prompts: ArrayRef = Arc::new(StringArray::from(prompts.to_vec()));
    let rows = RecordBatch::try_from_iter([("id", ids), ("prompt", prompts)]).expect("rows");
    let one = DataFrameWriteOptions::new().with_single_file_output(true);
    let rows = SessionContext::new().read_batch(rows).expect("rows");
    rows.write_parquet(path.to_str().expect("UTF-8"), one, None).await.expect("it is written");
}

const PROMPTS: [Option<&str>; 10] = [
    Some("A dog"),
    Some("A cat"),
    None,
    Some("Once upon a time"),
    Some(""),
    Some("A dog"),
    Some("The sun"),
    Some("A cat sat"),
    Some("Zoe"),
    Some("Anna"),
];

#[tokio::test]
async fn results_stand_beside_their_rows() {
    let job = Job::new(&[&PROMPTS, &PROMPTS[..3]]).await;
    let mut reports = vec![];
    let model = ModelHandle::from(engine());
    let status = run_batch(&job.job("out"), &model, |now| reports.push(now.entries().len())).await;
    let status = status.expect("it runs");
    assert_eq!(reports, [0, 1, 2, 3, 4]);
    assert!(status.is_complete());
    assert_eq!((status.chunks, status.rows), (4, 13));
    assert_eq!((status.total(|entry| entry.rows), status.total(|entry| entry.errors)), (13, 3));
    assert_eq!(status.total(|entry| entry.completion_tokens), 60);
    assert_eq!(batch_status(&job.path("out")).await.expect("it is there"), status);

    let sql = format!(
        "SELECT id, prompt, result['text'] AS text, result['error'] AS error FROM '{}' ",
        job.path("out/")
    );
    let rows = query(&context(), &sql).await;
    assert_eq!(rows.len(), 13);
    let settings = Settings::new(5);
    for row in rows {
        let key = row["id"].as_i64().expect("an id").to_string();
        match row["prompt"].as_str() {
            None => assert_eq!(row["error"], "the prompt is NULL"),
            Some("") => assert_eq!(row["error"], "the prompt is empty"),
            Some(prompt) => {
                let options = GenerateOptions::new().max_tokens(6).temperature(1.0);
                let options = options.seed(settings.row_seed(&key));
                let alone = engine().complete(prompt, options).expect("a text");
                assert_eq!(row["text"], alone.text, "{prompt}");
            }
        }
    }
    let order = format!("SELECT id FROM '{}'", job.path("out/00000-0000000004.parquet"));
    let ids: Vec<_> =
        query(&context(), &order).await.iter().map(|row| row["id"].as_i64()).collect();
    assert_eq!(ids, [4, 5, 6, 7].map(Some));
}

#[tokio::test]
async fn a_restart_does_what_is_missing_and_leaves_the_same_bytes() {
    let job = Job::new(&[&PROMPTS, &PROMPTS[..3]]).await;
    let model = ModelHandle::from(engine());
    run_batch(&job.job("whole"), &model, |_| ()).await.expect("it runs");
    let whole = job.files("whole");
    // Any state that a killed run leaves: files without entries, no files, all of it.
    for missing in 0..4_usize {
        let name = format!("part{missing}");
        run_batch(&job.job(&name), &ModelHandle::from(engine()), |_| ()).await.expect("it runs");
        let folder = PathBuf::from(job.path(&name));
        let chunk =
            ["00000-0000000000", "00000-0000000004", "00000-0000000008", "00001-0000000000"]
                [missing];
        fs::remove_file(folder.join(format!("_manifest/chunks/{chunk}.json")))
            .expect("it is there");
        if missing % 2 == 0 {
            fs::remove_file(folder.join(format!("{chunk}.parquet"))).expect("it is there");
        }
        let again = ModelHandle::from(engine());
        run_batch(&job.job(&name), &again, |_| ()).await.expect("it runs");
        assert!(again.counts().rows <= 4, "{:?}", again.counts());
        assert!(named(job.files(&name)) == named(whole.clone()), "{name}");
    }
    let done = ModelHandle::from(engine());
    run_batch(&job.job("whole"), &done, |_| ()).await.expect("nothing is left");
    assert_eq!(done.counts().rows, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cut_off_goes_on_and_two_at_once_agree() {
    let job = Job::new(&[&PROMPTS, &PROMPTS]).await;
    let (first, second) = (ModelHandle::from(engine()), ModelHandle::from(engine()));
    let job_once = job.job("out");
    let cut = AtomicUsize::new(0);
    {
        let run = run_batch(&job_once, &first, |_| _ = cut.fetch_add(1, Ordering::Relaxed));
        tokio::pin!(run);
        while cut.load(Ordering::Relaxed) < 3 {
            tokio::select! {
                _ = &mut run => panic!("it has six chunks"),
                () = tokio::time::sleep(std::time::Duration::from_millis(1)) => {}
            }
        }
    }
    let before = batch_status(&job.path("out")).await.expect("a job").entries().len();
    assert!((2..6).contains(&before), "{before}");
    let again = job_once.clone();
    let (one, two) =
        tokio::join!(run_batch(&job_once, &first, |_| ()), run_batch(&again, &second, |_| ()),);
    assert!(one.expect("it runs").is_complete() && two.expect("it runs").is_complete());
    run_batch(&job.job("alone"), &first, |_| ()).await.expect("it runs");
    let [together, alone] = ["out", "alone"].map(|name| named(job.files(name)));
    assert!(together == alone);
}

#[tokio::test]
async fn what_is_wrong_is_an_error_before_any_token() {
    let job = Job::new(&[&PROMPTS]).await;
    let model = ModelHandle::from(engine());
    let error = async |change: fn(&mut BatchJob), job: BatchJob| -> Error {
        let mut changed = job;
        change(&mut changed);
        run_batch(&changed, &model, |_| ()).await.expect_err("it is wrong")
    };
    for (change, expected) in [
        (
            (|job| job.conversation = Conversation::Prompt("text".into())) as fn(&mut BatchJob),
            "no column `text`, expected one of id, prompt",
        ),
        (
            |job| job.conversation = Conversation::Prompt("id".into()),
            "has the type Int64, expected strings",
        ),
        (|job| job.key = Some("key".into()), "no column `key`"),
        (|job| job.options = Some(r#"{"max_tokens": 0}"#.into()), "`max_tokens` is 0"),
        (
            |job| job.options = Some(r#"{"json_schema": {"type": "thing"}}"#.into()),
            "expected a type or a list of types",
        ),
        (|job| job.conversation = Conversation::Messages("prompt".into()), "no chat template"),
        (|job| job.input += "none/", "no file, expected names that end in .parquet"),
        (|job| job.chunk_rows = 0, "0 rows, expected 1 or more"),
        (|job| job.options = Some(r#"{"timeout": 5}"#.into()), "`timeout` is unknown"),
        (|job| job.output = format!("{}out", job.input), "it is in the input"),
        (|job| job.output = job.input.clone(), "it is in the input"),
        (|job| job.output += "[1]", "expected a folder"),
        (|job| job.output = "/proc/out".into(), "output `/proc/out/_manifest/job.json`"),
    ] {
        let error = error(change, job.job("out")).await.to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(model.counts().rows, 0);
    let missing = ModelHandle::lazy(Box::new(|| Err("no file `x.setun`".into())));
    let error = run_batch(&job.job("out"), &missing, |_| ()).await.expect_err("no model");
    assert!(error.to_string().contains("no file `x.setun`"), "{error}");
}

#[tokio::test]
async fn another_job_in_the_folder_is_refused() {
    let job = Job::new(&[&PROMPTS[..2]]).await;
    let model = ModelHandle::from(engine());
    run_batch(&job.job("out"), &model, |_| ()).await.expect("it runs");
    for (change, field) in [
        ((|job| job.seed = 6) as fn(&mut BatchJob), "`seed` is 5, expected 6"),
        (|job| job.options = None, "`options`"),
        (|job| job.key = None, "`key`"),
        (|job| job.chunk_rows = 5, "`chunk_rows`"),
    ] {
        let mut other = job.job("out");
        change(&mut other);
        let error = run_batch(&other, &model, |_| ()).await.expect_err("another job").to_string();
        assert!(error.contains(field), "{error}");
    }
    write(&job.folder.path().join("in/1.parquet"), &PROMPTS).await;
    let error = run_batch(&job.job("out"), &model, |_| ()).await.expect_err("another input");
    assert!(error.to_string().contains("`files`"), "{error}");
    fs::write(job.path("out/_manifest/job.json"), "{").expect("it is written");
    let error = batch_status(&job.path("out")).await.expect_err("no JSON").to_string();
    assert!(error.contains("_manifest/job.json"), "{error}");
}

/// Equal sizes hide nothing, and neither does another name of the model.
#[tokio::test]
async fn a_job_is_told_by_its_rows_and_its_model() {
    let job = Job::new(&[]).await;
    let input = job.folder.path().join("in/rows.jsonl");
    let rows = |word: &str| format!("{{\"id\": 1, \"prompt\": \"A {word}\"}}\n");
    fs::write(&input, rows("dog")).expect("it is written");
    let model = ModelHandle::from(engine());
    run_batch(&job.job("out"), &model, |_| ()).await.expect("it runs");
    fs::write(&input, rows("cat")).expect("it is written");
    let error = run_batch(&job.job("out"), &model, |_| ()).await.expect_err("another input");
    assert!(error.to_string().contains("`files`"), "{error}");
    fs::write(&input, rows("dog")).expect("it is written");
    fs::rename(job.path("in"), job.path("moved")).expect("it is moved");
    let mut same = job.job("out");
    same.input = job.path("moved/");
    run_batch(&same, &model, |_| ()).await.expect("the same job");
    fs::rename(job.path("moved"), job.path("in")).expect("it is moved");
    let shorter = Engine::builder(Model::embedded().expect("it is compiled in"));
    let shorter = shorter.context_length(64).build().expect("an engine");
    let error =
        run_batch(&job.job("out"), &shorter.into(), |_| ()).await.expect_err("another model");
    assert!(error.to_string().contains("`fingerprint`"), "{error}");
}

#[tokio::test]
async fn files_of_every_name_and_in_folders_are_read() {
    let job = Job::new(&[]).await;
    let folder = job.folder.path().join("in");
    fs::create_dir(folder.join("more")).expect("a folder");
    fs::create_dir(folder.join("_manifest")).expect("a folder");
    let names = ["a#b.jsonl", "a b.jsonl", "a%20b.jsonl", "a?b.jsonl", "a[1].jsonl", "more/c.json"];
    for name in names {
        fs::write(folder.join(name), r#"{"id": 1, "prompt": "A dog"}"#).expect("it is written");
    }
    fs::write(folder.join("_manifest/job.json"), "{").expect("it is written");
    fs::write(folder.join("notes.txt"), "no rows").expect("it is written");
    let status = run_batch(&job.job("out"), &engine().into(), |_| ()).await.expect("it runs");
    assert_eq!((status.rows, status.total(|entry| entry.errors)), (6, 0));
}

/// Types are those of all rows, and a column of results is never lost.
#[tokio::test]
async fn columns_are_those_of_the_whole_file() {
    let job = Job::new(&[]).await;
    let input = job.folder.path().join("in/rows.csv");
    let numbers: Vec<_> = (1..=1100).map(|id| format!("{id},")).collect();
    fs::write(&input, format!("id,prompt\n{}\nA17,A dog\n", numbers.join("\n")))
        .expect("it is written");
    let mut whole = job.job("out");
    whole.chunk_rows = 2000;
    let status = run_batch(&whole, &engine().into(), |_| ()).await.expect("it runs");
    assert_eq!((status.rows, status.total(|entry| entry.errors)), (1101, 1100));
    fs::write(&input, "id,prompt,result\n1,A dog,2\n").expect("it is written");
    let error =
        run_batch(&job.job("other"), &engine().into(), |_| ()).await.expect_err("a name twice");
    assert!(error.to_string().contains("it has a column `result`"), "{error}");
}
