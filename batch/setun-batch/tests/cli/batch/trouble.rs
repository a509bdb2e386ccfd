//! Jobs beside disks that are full and stores that fail.

use std::{fs, path::Path};

use super::{
    CHUNK, Job, ROWS, read_manifest,
    store::{BUCKET, Conditions, Store},
    strings,
};
use crate::{
    models::other_time,
    small_disk::Mounted,
    support::{Outcome, command, with_template},
};

/// What a job ends with.
fn summary() -> String {
    format!("{} chunks: {ROWS} rows, {} tokens\n", ROWS / CHUNK, 24 * ROWS)
}

#[test]
fn a_full_disk_is_named_and_the_job_continued() {
    let job = Job::new();
    assert_eq!(job.run("whole", &[]).text(), summary());
    let out = job.path("small");
    fs::create_dir(&out).expect("a folder");
    let Some(disk) = Mounted::new(Path::new(&out), "64k") else { return };
    let full = job.run("small", &[]).failure();
    assert!(full.contains("No space left on device") && full.contains("small"), "{full}");
    let done = read_manifest(Path::new(&out)).len(); // each is whole
    assert!((1..ROWS / CHUNK).contains(&done), "{done} chunks fit");
    disk.resize("8m");
    assert_eq!(job.run("small", &[]).text(), summary());
    assert_eq!(job.files("small"), job.files("whole"));
}

/// A job whose input and output are in a store.
fn run_in(store: &Store, job: &Job) -> Outcome {
    run_with(store, job, &[])
}

fn run_with(store: &Store, job: &Job, more: &[&str]) -> Outcome {
    let address = |name: &str| format!("s3://{BUCKET}/{name}");
    let (input, out) = (address("in/"), address("out"));
    let args = job.args("unused", &[&["--in", &input, "--out", &out], more].concat());
    let output = command(&strings(&args)).envs(store.environment()).output().expect("its output");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

fn filled(failing: u64, lie: i64, job: &Job) -> Store {
    filled_with(Store::start(failing, lie, Conditions::Kept), job)
}

fn filled_with(store: Store, job: &Job) -> Store {
    let bytes = fs::read(job.path("in.jsonl")).expect("the input");
    store.objects().insert("in/in.jsonl".to_owned(), bytes);
    store
}

/// The output in a store has the files of the job that ran here.
fn has_files_of_whole(store: &Store, job: &Job) {
    let objects = store.objects();
    for (name, bytes) in job.files("whole") {
        assert!(objects.get(&format!("out/{name}")) == Some(&bytes), "{name}");
    }
    let entries = objects.keys().filter(|key| key.starts_with("out/_manifest/chunks/"));
    assert_eq!(entries.count(), ROWS / CHUNK);
}

#[test]
fn a_store_that_fails_now_and_then_changes_nothing() {
    let job = Job::new();
    assert_eq!(job.run("whole", &[]).text(), summary());
    let store = filled(30, 0, &job);
    assert_eq!(run_in(&store, &job).text(), summary());
    assert!(store.failures() > 10, "{} failures", store.failures());
    has_files_of_whole(&store, &job);
}

#[test]
fn a_store_that_replaces_what_is_there_keeps_a_job() {
    let job = Job::new();
    let store = filled_with(Store::start(0, 0, Conditions::Ignored), &job);
    assert_eq!(run_in(&store, &job).text(), summary());
    let before = store.objects().clone();
    let other = run_with(&store, &job, &["--seed", "6"]).failure();
    assert!(other.contains("seed"), "{other}");
    assert!(*store.objects() == before, "another job changes nothing");
    assert_eq!(run_in(&store, &job).text(), summary());
}

/// S3 refuses a put beside another one of the same object, of which nothing may come.
#[test]
fn a_put_that_a_store_refuses_for_another_is_tried_again() {
    let job = Job::new();
    assert_eq!(job.run("whole", &[]).text(), summary());
    let store = filled_with(Store::start(0, 0, Conditions::Conflicting), &job);
    assert_eq!(run_in(&store, &job).text(), summary());
    has_files_of_whole(&store, &job);
}

/// Templates that write the date have that of the job's beginning.
#[test]
fn a_job_that_goes_on_another_day_has_the_texts_of_the_first() {
    let Some(library) = other_time() else {
        eprintln!("skipped: there is no libfaketime");
        return;
    };
    let job = Job::of_talks(3 * CHUNK);
    let (_keep, model) = with_template("{{ strftime_now('%d %B %Y') }} {{ messages[0].content }}");
    let run = |out: &str, day: &str| {
        let args = job.args_of_talks(out, &["--model", &model]);
        let environment = [("LD_PRELOAD", library.as_str()), ("FAKETIME", day)];
        let mut command = command(&strings(&args));
        let output = command.envs(environment).env("DONT_FAKE_MONOTONIC", "1").output();
        let output = output.expect("its output");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        job.files(out)
    };
    let whole = run("whole", "@2026-03-04 12:00:00");
    assert_ne!(whole, run("other", "@2027-05-06 12:00:00"), "the date is in the prompt");
    let chunk = format!("00000-{CHUNK:010}");
    for name in [format!("{chunk}.parquet"), format!("_manifest/chunks/{chunk}.json")] {
        fs::remove_file(Path::new(&job.path("whole")).join(name)).expect("it is there");
    }
    assert!(whole == run("whole", "@2027-05-06 12:00:00"));
}

#[test]
fn a_store_that_lies_about_lengths_is_refused_before_any_token() {
    for lie in [-40, 40] {
        let job = Job::new();
        let store = filled(0, lie, &job);
        let words = run_in(&store, &job).failure();
        assert!(words.contains("in.jsonl"), "{words}");
        assert!(!store.objects().keys().any(|key| key.starts_with("out/")), "{words}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named_at_once() {
    let job = Job::new();
    let words = run_in(&Store::start(0, 0, Conditions::Kept), &job).failure();
    assert!(words.contains("no file, expected names that end in"), "{words}");
}
