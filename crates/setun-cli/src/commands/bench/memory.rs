//! Memory that this process has taken, and what for.

use serde::Serialize;
use setun::forward::MemoryUse;

/// What a model keeps in memory, part by part, beside the most that the process ever had.
#[derive(Debug, Serialize)]
pub(super) struct MemoryReport {
    /// All weights but the head.
    body_bytes: usize,
    /// The head in the form in which it is kept.
    head_bytes: usize,
    /// What is kept beside the head to read less of it.
    screen_bytes: usize,
    /// As far as it has grown.
    cache_bytes: usize,
    sum_bytes: usize,
    /// The peak by the sum. None where the system does not report the peak.
    peak_by_sum: Option<f64>,
}

impl MemoryReport {
    pub(super) fn new(memory: &MemoryUse, peak: Option<u64>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let by_sum = |peak: u64| peak as f64 / memory.sum().max(1) as f64;
        Self {
            body_bytes: memory.body,
            head_bytes: memory.head,
            screen_bytes: memory.screen,
            cache_bytes: memory.cache,
            sum_bytes: memory.sum(),
            peak_by_sum: peak.map(by_sum),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let parts = [
            ("body", self.body_bytes),
            ("head", self.head_bytes),
            ("screen", self.screen_bytes),
            ("KV cache", self.cache_bytes),
        ];
        let parts = parts.map(|(name, bytes)| format!("{name} {}", megabytes(bytes as u64)));
        let peak = self.peak_by_sum.map_or(String::new(), |by_sum| {
            format!("; the peak of the process is {by_sum:.2} times that")
        });
        format!("MB: {}, together {}{peak}", parts.join(", "), megabytes(self.sum_bytes as u64))
    }
}

/// In 10⁶ bytes.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10)
}

/// The most that was ever resident; none where the system has no file for it.
pub(super) fn peak_rss_bytes() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// `VmHWM` of a Linux process's status.
fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_set_against_the_sum() {
        let memory = MemoryUse { body: 500_000, head: 300_000, screen: 150_000, cache: 50_000 };
        let report = MemoryReport::new(&memory, Some(1_200_000));
        let expected = "MB: body 0.5, head 0.3, screen 0.1, KV cache 0.0, together 1.0; \
                        the peak of the process is 1.20 times that";
        assert_eq!(report.text(), expected);
        assert_eq!(MemoryReport::new(&memory, None).peak_by_sum, None);
    }

    #[test]
    fn reads_the_line_of_proc_5() {
        let status = "Name:\tsetun\nVmPeak:\t  9000 kB\nVmHWM:\t   1234 kB\nVmRSS:\t    99 kB\n";
        assert_eq!(peak_of(status), Some(1234 * 1024));
        assert_eq!(peak_of("Name:\tsetun\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn knows_this_process() {
        let touched = vec![1_u8; 8 << 20];
        let peak = peak_rss_bytes().expect("Linux reports it");
        assert!(peak > std::hint::black_box(touched).len() as u64);
    }
}
