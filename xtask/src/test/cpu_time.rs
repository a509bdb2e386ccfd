//! CPU time of this process and of its finished children.

use std::time::Duration;

/// Ticks of a second in files of `/proc`: the same on every Linux that Rust's targets name.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time of this process and of those it has waited for; on Linux alone.
pub(super) fn cpu_time() -> Option<Duration> {
    of_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The fields `utime`, `stime`, `cutime` and `cstime` of proc(5), in sum.
fn of_stat(stat: &str) -> Option<Duration> {
    // The name of the program may have spaces; what follows its bracket begins with field 3.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 4)
        .then(|| Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fields_are_summed() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 10 20 0 0 100 50 25 25 20 0 1 0 99 1 2";
        assert_eq!(of_stat(stat), Some(Duration::from_secs(2)));
        assert_eq!(of_stat("7 (a) S 1 7"), None);
        assert_eq!(of_stat(""), None);
        assert_eq!(cpu_time().is_some(), cfg!(target_os = "linux"));
    }
}
