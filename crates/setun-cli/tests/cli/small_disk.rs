//! Disks of a few kilobytes in memory.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// A small disk, for as long as the value lives.
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// A disk of this size at a folder; none where this user may not mount one.
    pub(crate) fn new(path: &'a Path, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let mounted = mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], path).then_some(Self(path));
        if mounted.is_none() {
            eprintln!("skipped: this user may not mount a small disk");
        }
        mounted
    }

    pub(crate) fn resize(&self, size: &str) {
        assert!(mount(&["-o", &format!("remount,size={size}")], self.0), "another size");
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn mount(args: &[&str], path: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(args).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
