//! Report of a bench.

use serde::Serialize;
use setun::DeviceKind;

use super::{
    candidates::Candidates,
    memory::{MemoryReport, megabytes},
    peer::PeerReport,
};
use crate::{
    commands::profile::ProfileReport,
    error::CliError,
    output::{Output, counted, titled},
};

/// What one batch size gave.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) backend: DeviceKind,
    pub(super) level: String,
    pub(super) threads: usize,
    pub(super) batch: usize,
    pub(super) shape: String,
    pub(super) head: &'static str,
    pub(super) repeats: usize,
    /// Of all generated tokens, sequence by sequence.
    pub(super) tokens_hash: String,
    /// Of the first sequence alone, which is the same in every batch.
    pub(super) first_tokens_hash: String,
    /// All sequences together; the median.
    pub(super) prefill_tokens_per_second: f64,
    /// All sequences together; the median. None where nothing was decoded after the first token.
    pub(super) decode_tokens_per_second: Option<f64>,
    /// Bytes of weights that a decoded token makes the processor read: those of a step, shared
    /// by the sequences of the batch. What could not matter and was not read is left out, where
    /// the device reports it (all but `scalar`).
    pub(super) weight_bytes_per_token: u64,
    /// What memory gives the same threads, of a GPU what its copies read and write together, in 10⁹
    /// bytes. None where that was not requested, or there is not enough of it.
    pub(super) read_bandwidth_gb_per_second: Option<f64>,
    /// Of a GPU's products of integers, in 10¹²; a multiply-add is two. None where that was not
    /// requested, and of a processor.
    pub(super) peak_tera_operations_per_second: Option<f64>,
    /// None where the system does not report.
    pub(super) peak_rss_bytes: Option<u64>,
    /// What the model keeps in memory.
    pub(super) memory: MemoryReport,
    /// Of the rounds in which operations were timed. None where no head was screened.
    pub(super) candidates: Option<Candidates>,
    /// What other engines reached in the same minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) peers: Vec<PeerReport>,
    /// None unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<ProfileReport>,
}

/// Prints all reports.
pub(super) fn print(reports: &[Report], json: bool) -> Result<(), CliError> {
    let mut output = Output::new();
    if json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    let Some(first) = reports.first() else { return Ok(()) };
    let head = first.memory_line();
    let title =
        ["batch", "prefill tokens/s", "decode tokens/s", "weight MB/token", "peak MB", "hash"];
    let rows = titled(title, reports.iter().map(Report::row));
    output.line(&format!("{head}\n\n{rows}"))?;
    let parts = reports.iter().map(Report::parts);
    parts.into_iter().try_for_each(|parts| output.line(&parts))?;
    let peers = reports.iter().filter(|report| !report.peers.is_empty());
    peers
        .map(|report| format!("\nbatch {}, ours by theirs\n{}", report.batch, report.peers_table()))
        .try_for_each(|peers| output.line(&peers))?;
    let profiled = reports.iter().filter_map(|report| Some((report, report.profile.as_ref()?)));
    profiled
        .map(|(report, profile)| format!("\nbatch {}\n{}", report.batch, profile.tables()))
        .try_for_each(|tables| output.line(&tables))
}

impl Report {
    fn peers_table(&self) -> String {
        let title =
            ["peer", "prefill tokens/s", "decode tokens/s", "prefill ratio", "decode ratio"];
        let number = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let row = |peer: &PeerReport| {
            vec![
                peer.name.clone(),
                number(peer.prefill_tokens_per_second, 1),
                number(peer.decode_tokens_per_second, 1),
                number(peer.prefill_ratio, 2),
                number(peer.decode_ratio, 2),
            ]
        };
        titled(title, self.peers.iter().map(row))
    }

    /// What stands below the table for each batch size.
    fn parts(&self) -> String {
        let candidates = self.candidates.as_ref().map(Candidates::text);
        let parts = [Some(self.memory.text()), candidates].into_iter().flatten();
        format!("\nbatch {}\n{}", self.batch, parts.collect::<Vec<_>>().join("\n"))
    }

    fn memory_line(&self) -> String {
        let bandwidth = self.read_bandwidth_gb_per_second;
        let bandwidth =
            bandwidth.map_or_else(String::new, |gb| format!("; memory bandwidth {gb:.1} GB/s"));
        let peak = self.peak_tera_operations_per_second;
        let peak = peak.map_or_else(String::new, |peak| format!(", peak {peak:.3} TOPS"));
        format!(
            "{} on {} ({}), {}; median of {}{bandwidth}{peak}",
            self.shape,
            self.backend,
            self.level,
            counted(self.threads, "thread"),
            self.repeats
        )
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.batch.to_string(),
            format!("{:.1}", self.prefill_tokens_per_second),
            self.decode_tokens_per_second.map_or("-".into(), |speed| format!("{speed:.1}")),
            megabytes(self.weight_bytes_per_token),
            self.peak_rss_bytes.map_or("-".into(), megabytes),
            self.tokens_hash.clone(),
        ]
    }
}
