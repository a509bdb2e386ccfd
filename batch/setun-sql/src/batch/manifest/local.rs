//! Files that stay where the power fails: written and synced before they have their names.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use object_store::PutPayload;
use tokio::task::spawn_blocking;

/// Makes a file where there is none; false where there is one.
pub(super) async fn create(path: PathBuf, bytes: PutPayload) -> io::Result<bool> {
    spawn_blocking(move || create_now(&path, &bytes)).await.map_err(io::Error::other)?
}

fn create_now(path: &Path, bytes: &PutPayload) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let is_new = if path.try_exists()? {
        false // its name may be of a process that has not synced it
    } else {
        make_folders(folder)?;
        put(path, bytes)?
    };
    sync_folder(folder)?;
    Ok(is_new)
}

fn put(path: &Path, bytes: &PutPayload) -> io::Result<bool> {
    let (file, staged) = stage(path)?;
    let linked = write(file, bytes).and_then(|()| link(&staged, path));
    let removed = fs::remove_file(&staged);
    let is_new = linked?;
    removed.map(|()| is_new)
}

fn write(mut file: File, bytes: &PutPayload) -> io::Result<()> {
    bytes.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

fn link(staged: &Path, path: &Path) -> io::Result<bool> {
    match fs::hard_link(staged, path) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::AlreadyExists => Ok(false),
            kind @ (ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
                let expected = "expected a file system that has hard links";
                Err(io::Error::new(kind, format!("{error}, {expected}")))
            }
            _ => Err(error),
        },
    }
}

/// Makes a file beside another one, under a name of its own. Lists of objects leave out names that end in digits
/// after `#`, as that of what a killed process leaves.
fn stage(path: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    stage_from(path, &format!("{}{}", now.as_nanos(), process::id()), &COUNT)
}

fn stage_from(path: &Path, digits: &str, count: &AtomicU64) -> io::Result<(File, PathBuf)> {
    loop {
        let mut staged = path.as_os_str().to_owned();
        staged.push(format!("#{digits}{}", count.fetch_add(1, Ordering::Relaxed)));
        match OpenOptions::new().write(true).create_new(true).open(&staged) {
            Ok(file) => return Ok((file, staged.into())),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {} // another process has it
            Err(error) => return Err(error),
        }
    }
}

/// Makes a folder and those above it, whose names stay too.
fn make_folders(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists()).count();
    fs::create_dir_all(folder)?;
    folder.ancestors().skip(1).take(missing).try_for_each(sync_folder)
}

/// Syncs the names in a folder, where the system does that.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if [ErrorKind::InvalidInput, ErrorKind::Unsupported].contains(&error.kind()) => {
            Ok(())
        }
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> PutPayload {
        PutPayload::from_static(b"one")
    }

    #[test]
    fn a_file_is_made_once_and_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b/c.json");
        assert!(create_now(&path, &one()).expect("it is made"));
        let two = PutPayload::from_static(b"two");
        assert!(!create_now(&path, &two).expect("it is there"));
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        let names = fs::read_dir(folder.path().join("a/b")).expect("a folder").count();
        assert_eq!(names, 1, "nothing is left beside it");
    }

    #[test]
    fn what_a_killed_process_has_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.json");
        for left in ["c.json#70", "c.json#71"] {
            fs::write(folder.path().join(left), "a part").expect("it is written");
        }
        let (_, staged) = stage_from(&path, "7", &AtomicU64::new(0)).expect("a name is free");
        assert_eq!(staged, folder.path().join("c.json#72"));
        assert_eq!(fs::read(folder.path().join("c.json#70")).expect("it stays"), b"a part");
    }

    #[test]
    fn where_no_file_can_be_made_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), "a file").expect("it is written");
        assert!(create_now(&folder.path().join("a/b.json"), &one()).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn of_many_that_make_a_file_at_once_one_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.json");
        let make = || create_now(&path, &one()).expect("it is there");
        let made: usize = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            all.into_iter().map(|one| usize::from(one.join().expect("no panic"))).sum()
        });
        assert_eq!(made, 1);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
