//! Jobs on a cluster whose processes have different times of day.

use std::{fs, path::Path, thread, time::Duration};

use super::{PIECES, ROWS, processes::Cluster, summary};
use crate::{
    batch::{Job, strings},
    models::other_time,
    support::{command, setun, with_template},
};

#[test]
fn a_time_of_day_that_jumps_changes_nothing() {
    let Some(library) = other_time() else {
        eprintln!("skipped: there is no libfaketime");
        return;
    };
    let job = Job::of(ROWS);
    let offset = job.path("offset");
    let jump = |words: &str| {
        fs::write(format!("{offset}.new"), words).expect("it is written");
        fs::rename(format!("{offset}.new"), &offset).expect("it is there");
    };
    jump("+0");
    let environment = [
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", offset.clone()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let cluster = Cluster::with(2, &environment);
    let args = job.args("jumps", &[&PIECES[..], &["--cluster", &cluster.address()]].concat());
    let mut child =
        command(&strings(&args)).envs(environment).spawn().expect("the command is built");
    let mut jumps = 0;
    for days in [3, -2, 400, -1000, 1].iter().cycle() {
        jump(&format!("{days:+}d"));
        jumps += 1;
        thread::sleep(Duration::from_millis(150));
        if child.try_wait().expect("a child").is_some() {
            break;
        }
    }
    assert!(jumps > 5, "{jumps} jumps while the job ran");
    assert_eq!(child.wait().expect("its end").code(), Some(0));
    assert_eq!(job.run("one", &PIECES).text(), summary());
    assert_eq!(job.files("jumps"), job.files("one"));
}

/// Executors render the templates, at another time.
#[test]
fn templates_have_the_time_of_the_job() {
    let job = Job::of_talks(40);
    let (_keep, model) = with_template("{{ strftime_now('%H:%M:%S') }} {{ messages[0].content }}");
    let pieces = ["--chunk-rows", "20", "--shard-rows", "5"];
    let local = job.args_of_talks("one", &[&pieces[..], &["--model", &model]].concat());
    setun(&strings(&local)).text();
    let description = |out: &str| Path::new(&job.path(out)).join("_manifest/job.json");
    fs::create_dir_all(description("two").parent().expect("a folder")).expect("it is made");
    fs::copy(description("one"), description("two")).expect("it is written");
    let mut cluster = Cluster::start(0);
    cluster.add(&["--model", &model]);
    let address = cluster.address();
    let more = [&pieces[..], &["--cluster", &address]].concat();
    setun(&strings(&job.args_of_talks("two", &more))).text();
    assert!(job.files("two") == job.files("one"));
}
