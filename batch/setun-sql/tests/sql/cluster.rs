//! Batch jobs on a cluster whose processes talk by TLS.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use setun_sql::{
    BatchJob, BatchStatus, Cluster, Conversation, Error, Executor, ModelHandle, Scheduler, Tls,
    Workers, run_batch,
};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use crate::support::engine;

/// An authority, and processes with certificates of it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Files of a process in a folder.
    fn process(&self, folder: &Path) -> Result<Tls, Error> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        let [authority, cert, pem] =
            ["ca.pem", "cert.pem", "key.pem"].map(|name| folder.join(name));
        fs::write(&authority, &self.certificate).expect("it is written");
        fs::write(&cert, certificate).expect("it is written");
        fs::write(&pem, key.serialize_pem()).expect("it is written");
        Tls::read(&authority, &cert, &pem)
    }
}

async fn start(tls: &Tls, folder: &Path) -> (String, Vec<JoinHandle<Result<(), Error>>>) {
    let (tell, told) = oneshot::channel();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let scheduler = Scheduler { listen, executor_timeout: 10, tls: Some(tls.clone()) };
    let scheduler = tokio::spawn(scheduler.run(|address| _ = tell.send(address)));
    let port = told.await.expect("it listens").port();
    let executor = Executor {
        scheduler: format!("localhost:{port}"),
        listen,
        advertise: Some("localhost".into()),
        slots: 2,
        probes: None,
        folder: folder.join("results"),
        tls: Some(tls.clone()),
    };
    fs::create_dir_all(&executor.folder).expect("a folder");
    let model = ModelHandle::from(engine());
    let executor = tokio::spawn(async move { executor.run(&model).await });
    (format!("localhost:{port}"), vec![scheduler, executor])
}

async fn run(job: &BatchJob, workers: &Workers) -> Result<BatchStatus, Error> {
    let ended = timeout(Duration::from_mins(1), run_batch(job, workers, |_| ()));
    ended.await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_with_certificates_of_one_authority_work_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let tls = authority.process(folder.path()).expect("files that fit");
    let (address, processes) = start(&tls, folder.path()).await;
    fs::write(path("in.jsonl"), "{\"prompt\": \"One\"}\n{\"prompt\": \"Two\"}")
        .expect("it is written");
    let job = |out: &str| BatchJob {
        input: path("in.jsonl"),
        output: path(out),
        conversation: Conversation::Prompt("prompt".into()),
        key: None,
        options: Some(r#"{"max_tokens": 8}"#.into()),
        seed: 3,
        chunk_rows: 10,
        shard_rows: 1,
    };
    let by = |tls| Workers::Cluster(Cluster::new(&address, tls));
    assert!(run(&job("by-tls"), &by(Some(tls))).await.expect("it runs").is_complete());
    let local = Workers::from(ModelHandle::from(engine()));
    run(&job("local"), &local).await.expect("it runs");
    let file = |out: &str| fs::read(path(out) + "/00000-0000000000.parquet").expect("a file");
    assert_eq!(file("by-tls"), file("local"));
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    for tls in [None, Some(stranger.process(&other).expect("files that fit"))] {
        let refused = run(&job("refused"), &by(tls)).await;
        let refused = refused.expect_err("it has no certificate of the authority");
        assert!(matches!(refused, Error::Cluster { .. }), "{refused}");
    }
    processes.iter().for_each(JoinHandle::abort);
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let (one, two) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let authority = Authority::new();
    authority.process(one.path()).expect("files that fit");
    authority.process(two.path()).expect("files that fit");
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| one.path().join(name));
    let other_key = two.path().join("key.pem");
    let swapped = Tls::read(&ca, &cert, &other_key).expect_err("the key of another");
    assert!(swapped.to_string().contains("cert.pem"), "{swapped}");
    let missing = Tls::read(&ca, &cert, &one.path().join("none.pem")).expect_err("no file");
    assert!(missing.to_string().contains("none.pem"), "{missing}");
    let no_key = Tls::read(&ca, &cert, &cert).expect_err("a certificate is no key");
    assert!(matches!(no_key, Error::Tls { .. }), "{no_key}");
    Tls::read(&ca, &cert, &key).expect("as they were");
}
