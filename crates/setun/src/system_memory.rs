//! Available memory of the system, as a signal for engines.

use std::{
    fs,
    path::{Path, PathBuf},
};

use setun_engine::{Error, MemoryMonitor, Pressure};

/// Watches how much memory is available: the share of main memory, or of what a control group of
/// the process may have, whichever is least. Only Linux reports it (`/proc/meminfo`, and `memory.max`
/// and `memory.high` of cgroup v2).
#[derive(Debug)]
pub struct SystemMemory {
    least: f64,
    proc: PathBuf,
    groups: Vec<PathBuf>, // from that of the process to the one that has all others
}

impl SystemMemory {
    /// Where less than this share is available, above 0 and below 1, memory is short; where less
    /// than half of it is, [critically](Pressure::Critical).
    ///
    /// # Errors
    ///
    /// If the share is out of its range, or the system does not report.
    pub fn new(min_available: f64) -> Result<Self, Error> {
        Self::below(Path::new("/"), min_available)
    }

    /// Of a system whose files are below this folder.
    fn below(root: &Path, least: f64) -> Result<Self, Error> {
        let bad = |found: String, expected: &str| {
            let expected = expected.into();
            Err(Error::BadOption { option: "min_available", found, expected })
        };
        if !(least > 0.0 && least < 1.0) {
            return bad(least.to_string(), "a number above 0, below 1");
        }
        let proc = root.join("proc");
        let groups = groups(&proc, &root.join("sys/fs/cgroup"));
        let watch = Self { least, proc, groups };
        if watch.available().is_none() {
            let expected = "none where the system does not report available memory";
            return bad(least.to_string(), expected);
        }
        Ok(watch)
    }

    /// The share that is available now, 0 to 1; none where that cannot be read.
    #[must_use]
    pub fn available(&self) -> Option<f64> {
        let shares = self.groups.iter().filter_map(|group| available_to(group));
        shares.chain(available_to_all(&self.proc)).min_by(f64::total_cmp)
    }
}

impl MemoryMonitor for SystemMemory {
    fn pressure(&mut self) -> Option<Pressure> {
        let available = self.available()?;
        if available < self.least / 2.0 {
            Some(Pressure::Critical)
        } else {
            (available < self.least).then_some(Pressure::Moderate)
        }
    }
}

/// Bytes of memory that this process can still take: of main memory, or of what a control group of
/// it may have, whichever is less. None where the system does not report it; only Linux does.
#[must_use]
pub fn available_memory() -> Option<u64> {
    available_bytes(Path::new("/"))
}

/// Of a system whose files are below this folder.
fn available_bytes(root: &Path) -> Option<u64> {
    let proc = root.join("proc");
    let lines = fs::read_to_string(proc.join("meminfo")).ok()?;
    let all = number_after(&lines, "MemAvailable:")?.saturating_mul(1024); // it is in KiB
    let groups = groups(&proc, &root.join("sys/fs/cgroup"));
    let of_groups = groups.iter().filter_map(|group| bytes_of(group)).map(|(free, _)| free);
    Some(of_groups.fold(all, u64::min))
}

/// The folders of the process's control group and of those that have it.
fn groups(proc: &Path, all: &Path) -> Vec<PathBuf> {
    let lines = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let Some(path) = lines.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return vec![];
    };
    let own = all.join(path);
    own.ancestors().take_while(|group| group.starts_with(all)).map(Path::to_path_buf).collect()
}

fn available_to_all(proc: &Path) -> Option<f64> {
    let lines = fs::read_to_string(proc.join("meminfo")).ok()?;
    share(number_after(&lines, "MemAvailable:")?, number_after(&lines, "MemTotal:")?)
}

/// None for a group without a limit. Pages of files that were not used lately count as available:
/// the system takes them where it needs memory.
fn available_to(group: &Path) -> Option<f64> {
    let (free, most) = bytes_of(group)?;
    share(free, most)
}

/// What is left for a group, and what it may have.
fn bytes_of(group: &Path) -> Option<(u64, u64)> {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let most = [number("memory.max"), number("memory.high")].into_iter().flatten().min()?;
    let files = read("memory.stat").and_then(|lines| number_after(&lines, "inactive_file "));
    let used = number("memory.current")?.saturating_sub(files.unwrap_or(0));
    Some((most.saturating_sub(used), most))
}

/// The number of a line; its unit, if it has one, is that of all lines.
fn number_after(lines: &str, name: &str) -> Option<u64> {
    let rest = lines.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "a share of memory need not be exact")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use setun_engine::ErrorCode;

    use super::*;

    /// A system of 16 GB of which this many are available, as Linux reports it it.
    fn system(available: u64) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        write(&root, "proc/self/cgroup", "0::/user/app\n");
        let memory = format!(
            "MemTotal:       16000000 kB\nMemFree:          100 kB\nMemAvailable:    {available} kB\n"
        );
        write(&root, "proc/meminfo", &memory);
        root
    }

    fn write(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn main_memory_is_watched() {
        let root = system(4_000_000);
        let mut watch = SystemMemory::below(root.path(), 0.2).expect("a watch");
        assert_eq!(available_bytes(root.path()), Some(4_096_000_000));
        assert_eq!((watch.available(), watch.pressure()), (Some(0.25), None));
        watch.least = 0.3;
        assert_eq!(watch.pressure(), Some(Pressure::Moderate));
        watch.least = 0.6;
        assert_eq!(watch.pressure(), Some(Pressure::Critical));
    }

    #[test]
    fn the_least_of_all_groups_counts_and_old_pages_of_files_are_available() {
        let root = system(12_000_000);
        for (path, text) in [
            ("sys/fs/cgroup/user/app/memory.max", "max\n"),
            ("sys/fs/cgroup/user/app/memory.high", "1000\n"),
            ("sys/fs/cgroup/user/app/memory.current", "900\n"),
            ("sys/fs/cgroup/user/app/memory.stat", "anon 500\ninactive_file 400\n"),
            ("sys/fs/cgroup/user/memory.max", "4000\n"),
            ("sys/fs/cgroup/user/memory.high", "max\n"),
            ("sys/fs/cgroup/user/memory.current", "3000\n"),
        ] {
            write(&root, path, text);
        }
        let watch = SystemMemory::below(root.path(), 0.2).expect("a watch");
        assert_eq!(watch.available(), Some(0.25));
        assert_eq!(available_bytes(root.path()), Some(500));
        write(&root, "sys/fs/cgroup/user/memory.current", "1000\n");
        assert_eq!(watch.available(), Some(0.5));
        write(&root, "sys/fs/cgroup/user/app/memory.current", "5000\n");
        assert_eq!(watch.available(), Some(0.0));
    }

    #[test]
    fn a_share_out_of_range_and_a_silent_system_are_refused() {
        let root = system(1);
        for least in [0.0, 1.0, f64::NAN, -1.0] {
            let error = SystemMemory::below(root.path(), least).expect_err("refused");
            assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
        }
        let silent = tempfile::tempdir().expect("a folder");
        assert_eq!(available_bytes(silent.path()), None);
        let error = SystemMemory::below(silent.path(), 0.5).expect_err("refused");
        assert!(error.to_string().contains("does not report available memory"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_system_tells() {
        let available = SystemMemory::new(0.5).expect("a watch").available();
        assert!(available.is_some_and(|share| (0.0..=1.0).contains(&share)), "{available:?}");
    }
}
