//! `setun batch` on a cluster: the files of one process, whatever is killed.

mod processes;
mod times;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    batch::{Job, read_manifest, strings},
    models::with_positions,
    small_disk::Mounted,
    support::{Outcome, command, send, setun, with_chat_template},
};
use processes::{Cluster, GENERATED, get};

/// Rows of a job, which are five chunks of several shards.
const ROWS: usize = 300;
const PIECES: [&str; 4] = ["--chunk-rows", "60", "--shard-rows", "8"];
const CHUNKS: usize = 5;

/// Tokens of a row.
const TOKENS: usize = 24;

fn run(job: &Job, cluster: &Cluster, out: &str, more: &[&str]) -> Outcome {
    let address = cluster.address();
    job.run(out, &[&PIECES[..], &["--cluster", &address], more].concat())
}

/// Standard output of a job that said nothing but what it tried again.
fn but_for_retries(outcome: Outcome) -> String {
    let is_retry = |line: &str| line.contains(" again ");
    assert!(outcome.stderr.lines().all(is_retry), "{}", outcome.stderr);
    outcome.text_with("")
}

fn summary() -> String {
    format!("{CHUNKS} chunks: {ROWS} rows, {} tokens\n", TOKENS * ROWS)
}

/// Tokens that a kill may cost: those of the chunks that run.
const TOKENS_IN_FLIGHT: u64 = (2 * (ROWS / CHUNKS) * TOKENS) as u64;

/// Bytes that an executor may have: the embedded model, caches for 64 texts of 512 positions in 6 layers of
/// 2 times 128 numbers of 2 bytes, and 200 MB.
const MEMORY: u64 = (6 << 20) + 64 * 512 * 6 * 2 * 128 * 2 + 200_000_000;

/// How often each kind of process is killed.
fn kills() -> u64 {
    if env::var_os("SETUN_LONG").is_some() { 10 } else { 2 }
}

#[test]
fn two_and_three_executors_give_the_files_of_one_process() {
    let job = Job::of(ROWS);
    assert_eq!(job.run("one", &PIECES).text(), summary());
    let whole = job.files("one");
    assert_eq!(whole.len(), CHUNKS);
    let mut cluster = Cluster::start(2);
    assert_eq!(run(&job, &cluster, "two", &[]).text(), summary());
    assert_eq!(job.files("two"), whole);
    let rows = cluster.counts("rows_total");
    assert_eq!(rows.iter().sum::<u64>(), ROWS as u64 + 1, "each once, and the check of options");
    assert!(rows.iter().all(|&rows| rows * 10 >= ROWS as u64 * 4), "both work: {rows:?}");
    cluster.add(&[]);
    assert_eq!(run(&job, &cluster, "three", &[]).text(), summary());
    assert_eq!(job.files("three"), whole);
    // A quarter of the queries fail, whose chunks are run again.
    let chaos = [
        "--cluster-setting",
        "ballista.testing.chaos_execution.enabled=true",
        "--cluster-setting",
        "ballista.testing.chaos_execution.probability=0.25",
        "--cluster-setting",
        "ballista.testing.chaos_execution.fault_type=transient",
    ];
    let chaos = run(&job, &cluster, "chaos", &chaos);
    assert_eq!(but_for_retries(chaos), summary());
    assert_eq!(job.files("chaos"), whole);
    assert_eq!(job.status("chaos"), job.status("one"));
    for out in ["two", "three", "chaos"] {
        let left = Path::new(&job.path(out)).join("_manifest/attempts").read_dir();
        let left = left.into_iter().flatten().flatten().count();
        assert_eq!(left, 0, "files of attempts are removed");
    }
    for memory in cluster.peak_memory() {
        assert!(memory < MEMORY, "{memory} bytes, expected less than {MEMORY}");
    }
    let ready = get(cluster.port, "/readyz").expect("an answer");
    assert!(ready.contains(" 200 "), "{ready}");
    let metrics = get(cluster.port, "/api/metrics").expect("an answer");
    assert!(metrics.contains("job_completed_total"), "{metrics}");
}

/// Kills something while a job runs, again and again; then the job ends complete and equal.
fn killed(kill: impl Fn(&mut Cluster, u64)) {
    let job = Job::of(ROWS);
    assert_eq!(job.run("one", &PIECES).text(), summary());
    let mut cluster = Cluster::start(2);
    let address = cluster.address();
    for moment in 0..kills() {
        let args = job.args("killed", &[&PIECES[..], &["--cluster", &address]].concat());
        let mut child = command(&strings(&args)).spawn().expect("the command is built");
        thread::sleep(Duration::from_millis(400 + 331 * moment % 1500));
        kill(&mut cluster, moment);
        if moment % 2 == 0 {
            send("-KILL", &child);
        }
        child.wait().expect("its end");
        read_manifest(Path::new(&job.path("killed"))); // all that it names is whole
    }
    // Executors that were killed may be missed in it, too.
    assert_eq!(but_for_retries(run(&job, &cluster, "killed", &[])), summary());
    assert_eq!(job.files("killed"), job.files("one"));
    // What an executor does between this question and its end is not counted.
    let (generated, bound) =
        (cluster.generated(), (TOKENS * ROWS) as u64 + kills() * TOKENS_IN_FLIGHT);
    assert!(generated <= bound, "{generated} tokens, expected at most {bound}");
}

#[test]
fn a_job_whose_process_is_killed_ends_complete() {
    killed(|_, _| ());
}

#[test]
fn a_job_whose_executors_are_killed_ends_complete() {
    killed(|cluster, _| {
        cluster.kill_executor(0);
        cluster.add(&[]);
    });
}

#[test]
fn a_job_whose_scheduler_is_killed_ends_complete() {
    killed(|cluster, _| cluster.restart_scheduler());
}

#[test]
fn another_model_is_refused_before_its_rows() {
    let job = Job::of(ROWS);
    let (_keep, model) = with_chat_template();
    let mut cluster = Cluster::start(1);
    assert_eq!(run(&job, &cluster, "out", &[]).text(), summary());
    cluster.add(&["--model", &model]);
    let mixed = run(&job, &cluster, "mixed", &[]).failure();
    assert!(mixed.contains("has the fingerprint"), "{mixed}");
    cluster.kill_executor(0);
    let refused = run(&job, &cluster, "out", &[]).failure();
    assert!(refused.contains("another job: `fingerprint`"), "{refused}");
    let missing = cluster.spawn(&["--model", "not-there.setun"]).end();
    assert_ne!(missing.0, Some(0));
    assert!(missing.1.contains("the model cannot be loaded"), "{}", missing.1);
}

/// Fifty groups of prompts, each of which begins with a text of its own.
#[test]
fn rows_that_begin_alike_are_computed_once() {
    const GROUPS: usize = 50;
    const ROWS_OF_A_GROUP: usize = 8;
    let job = Job::of(1);
    let (_keep, model) = with_positions(1024);
    let beginning = |group: usize| {
        let day = |number: usize| format!("On day {} of year {group} it rained. ", number * 7 % 31);
        (0..42).map(day).collect::<String>()
    };
    let rows: Vec<_> = (0..GROUPS * ROWS_OF_A_GROUP)
        .map(|row| {
            let story = format!("{}Then {row}", beginning(row % GROUPS));
            json!({"id": row, "story": story}).to_string()
        })
        .collect();
    fs::write(job.path("in.jsonl"), rows.join("\n")).expect("it is written");
    let mut cluster = Cluster::start(0);
    (0..2).for_each(|_| cluster.add(&["--model", &model]));
    let address = cluster.address();
    let options = r#"{"max_tokens": 1}"#;
    let more = ["--cluster", &address, "--shard-rows", "30", "--options", options];
    job.run("out", &[&more[..], &["--chunk-rows", "400"]].concat()).text();
    let total = |name| cluster.counts(name).iter().sum::<u64>();
    let (prompts, cached) = (total("prompt_tokens_total"), total("cached_tokens_total"));
    let alone = prompts / (GROUPS * ROWS_OF_A_GROUP) as u64;
    // Of a prompt the beginning is all but its last few tokens.
    let tail = 40;
    let least = GROUPS as u64 * alone + ((ROWS_OF_A_GROUP - 1) * GROUPS) as u64 * tail;
    assert!(alone >= 500 + tail, "{alone} tokens a prompt");
    assert!((prompts - cached) * 10 <= least * 11, "{} of {prompts}, {least}", prompts - cached);
}

#[test]
fn requests_are_answered_alike_on_a_cluster() {
    let job = Job::of(1);
    let request = |id: usize| {
        let (url, body) = match id % 4 {
            0 => ("embeddings", json!({"input": format!("Day {id}")})),
            1 => ("completions", json!({"prompt": format!("Day {id}"), "max_tokens": "many"})),
            _ => (
                "completions",
                json!({"prompt": format!("Day {id}"), "max_tokens": 8, "temperature": 1}),
            ),
        };
        let url = format!("/v1/{url}");
        json!({"custom_id": format!("r{id}"), "method": "POST", "url": url, "body": body})
            .to_string()
    };
    let input = job.path("requests.jsonl");
    let lines: Vec<_> = (0..40).map(request).collect();
    fs::write(&input, lines.join("\n")).expect("it is written");
    let cluster = Cluster::start(2);
    let address = cluster.address();
    let run = |out: &str, more: &[&str]| {
        let out = job.path(out);
        let args = ["run", "--requests", "--in", &input, "--out", &out, "--chunk-rows", "15"];
        setun(&[&args[..], more].concat())
    };
    run("local", &[]).text();
    run("cluster", &["--cluster", &address, "--shard-rows", "4"]).text();
    let files = job.files("local");
    assert_eq!(files.len(), 3);
    assert_eq!(job.files("cluster"), files);
    let lines = String::from_utf8(files.into_values().flatten().collect()).expect("UTF-8");
    let answers: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 40);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["custom_id"], format!("r{id}"));
        assert!(answer["error"].is_null(), "{answer}");
        let body = &answer["response"]["body"];
        let expected = if id % 4 == 1 { 400 } else { 200 };
        assert_eq!(answer["response"]["status_code"], expected, "{answer}");
        match id % 4 {
            0 => assert!(body["data"][0]["embedding"].is_array(), "{answer}"),
            1 => assert!(body["error"]["message"].is_string(), "{answer}"),
            _ => assert!(body["choices"][0]["text"].is_string(), "{answer}"),
        }
    }
    fs::write(&input, "{\"custom_id\": 1}").expect("it is written");
    let wrong = run("wrong", &[]).failure();
    assert!(wrong.contains("requests.jsonl") && wrong.contains("line 1"), "{wrong}");
}

#[test]
fn what_is_wrong_is_said_before_any_token() {
    let job = Job::of(3);
    let cluster = Cluster::start(1);
    let options = run(&job, &cluster, "out", &["--options", r#"{"max_tokens": "many"}"#]);
    let options = options.failure();
    assert!(options.contains("max_tokens"), "{options}");
    let key = run(&job, &cluster, "out", &["--key", "nothing"]).failure();
    assert!(key.contains("no column `nothing`"), "{key}");
    assert_eq!(cluster.counts(GENERATED), [0]);
    for own in [["--threads", "1"], ["--model", "a"], ["--weight-image", "a"]] {
        run(&job, &cluster, "out", &own).wrong_usage("cannot be used with");
    }
    let nowhere = job.run("out", &["--cluster", "localhost:1"]).failure();
    assert!(nowhere.contains("the cluster at localhost:1"), "{nowhere}");
}

#[test]
fn a_cluster_without_an_executor_is_said_soon() {
    let (job, cluster) = (Job::of(3), Cluster::start(0));
    let args = job.args("out", &["--cluster", &cluster.address()]);
    let mut child = command(&strings(&args)).spawn().expect("the command is built");
    let mut line = String::new();
    let words = child.stderr.as_mut().expect("a pipe");
    BufReader::new(words).read_line(&mut line).expect("UTF-8");
    assert!(line.contains("no executor has answered"), "{line}");
    send("-INT", &child);
    assert_eq!(child.wait().expect("its end").code(), Some(130));
}

#[test]
fn a_full_disk_of_an_executor_loses_nothing() {
    let job = Job::of(ROWS);
    let folder = job.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let Some(disk) = Mounted::new(Path::new(&folder), "16k") else { return };
    let mut cluster = Cluster::start(0);
    cluster.add(&["--folder", &folder]);
    let words = run(&job, &cluster, "out", &[]).stderr;
    assert!(words.contains("No space left on device"), "{words}");
    assert_eq!(job.files("out").len(), 0, "no chunk is done");
    disk.resize("32m");
    assert_eq!(run(&job, &cluster, "out", &[]).text(), summary());
    assert_eq!(job.run("one", &PIECES).text(), summary());
    assert_eq!(job.files("out"), job.files("one"));
}

#[test]
fn an_executor_ends_at_a_signal_and_others_take_its_rows() {
    let job = Job::of(ROWS);
    let mut cluster = Cluster::start(2);
    let address = cluster.address();
    let args = job.args("out", &[&PIECES[..], &["--cluster", &address]].concat());
    let mut child = command(&strings(&args)).spawn().expect("the command is built");
    while cluster.counts("rows_total")[0] < 10 {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        thread::sleep(Duration::from_millis(5));
    }
    let leaving = cluster.executors.remove(0);
    leaving.terminate();
    assert_eq!(leaving.end().0, Some(143));
    assert_eq!(child.wait().expect("its end").code(), Some(0));
    assert_eq!(job.status("out")["rows_done"], ROWS);
}

#[test]
fn what_is_interrupted_is_taken_from_the_cluster() {
    const SHARDS: usize = 100;
    let job = Job::of(SHARDS * 8);
    let cluster = Cluster::start(1);
    let address = cluster.address();
    let more = ["--cluster", &address, "--chunk-rows", "100000", "--shard-rows", "8"];
    let mut child =
        command(&strings(&job.args("out", &more))).spawn().expect("the command is built");
    while cluster.counts("rows_total")[0] < 2 {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        thread::sleep(Duration::from_millis(5));
    }
    send("-INT", &child);
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    let attempts = Path::new(&job.path("out")).join("_manifest/attempts");
    let left = attempts.read_dir().into_iter().flatten().flatten().count();
    assert_eq!(left, 0, "its shards are gone");
    let (mut before, mut now) = (0, cluster.counts("rows_total")[0]);
    while now > before {
        thread::sleep(Duration::from_secs(2));
        (before, now) = (now, cluster.counts("rows_total")[0]);
    }
    assert!(now < (SHARDS * 8) as u64, "{now} rows were run");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let cluster = Cluster::start(1);
    let taken = format!("127.0.0.1:{}", cluster.port);
    for (flag, other) in [("--listen", "--probes"), ("--probes", "--listen")] {
        let args = ["executor", "--scheduler", &taken, flag, &taken, other, "127.0.0.1:0"];
        let words = setun(&args).failure();
        assert!(words.contains(&taken), "{words}");
    }
    let words = setun(&["scheduler", "--listen", &taken]).failure();
    assert!(words.contains(&taken), "{words}");
}
