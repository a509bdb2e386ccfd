//! Memory that this process has taken.

/// The most that was ever resident; none where the system does not tell in a file.
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
    fn reads_the_line_of_proc_5() {
        let status = "Name:\tsetun\nVmPeak:\t  9000 kB\nVmHWM:\t   1234 kB\nVmRSS:\t    99 kB\n";
        assert_eq!(peak_of(status), Some(1234 * 1024));
        assert_eq!(peak_of("Name:\tsetun\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn knows_this_process() {
        let touched = vec![1_u8; 8 << 20];
        let peak = peak_rss_bytes().expect("Linux tells");
        assert!(peak > std::hint::black_box(touched).len() as u64);
    }
}
