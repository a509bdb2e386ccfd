//! Browsers: found for the checks of the page, or opened for people.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::machine::{Missing, install_packages, may_install};
use crate::shell::{find_program, program, succeeds};

/// Names of Chromium and its kin in `PATH`.
const CHROME_NAMES: [&str; 7] = [
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "chrome",
    "microsoft-edge",
    "msedge",
];

/// Where installers put them on macOS and Windows; the latter below a folder for programs.
const MAC_PATHS: [&str; 3] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];
const WINDOWS_PATHS: [&str; 2] =
    [r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe"];

const NO_CHROME: Missing = Missing {
    what: "The check needs Chrome, Chromium or Edge (or $CHROME naming one), and none is here",
    debian: "apt-get install chromium   (as root)",
    fedora: "dnf install chromium   (as root)",
    macos: "brew install --cask google-chrome",
    windows: "winget install Google.Chrome",
};

const NO_FIREFOX: Missing = Missing {
    what: "The browser tests need Firefox (or $FIREFOX naming it), and it is not here",
    debian: "apt-get install firefox-esr   (as root)",
    fedora: "dnf install firefox   (as root)",
    macos: "brew install --cask firefox",
    windows: "winget install Mozilla.Firefox",
};

/// Chrome, Chromium or Edge: `$CHROME`, an installed one, playwright's own, else a package where
/// packages may be installed.
pub(crate) fn chrome() -> Result<PathBuf> {
    if let Some(path) = named_by("CHROME")? {
        return Ok(path);
    }
    if let Some(path) = installed_chrome().or_else(playwright_chrome) {
        return Ok(path);
    }
    if may_install() {
        install_packages(&["chromium"])?;
    }
    find_program("chromium").ok_or_else(|| NO_CHROME.error())
}

/// Chrome, Chromium or Edge, if it is here; installs nothing.
pub(crate) fn installed() -> Option<PathBuf> {
    named_by("CHROME").ok().flatten().or_else(installed_chrome).or_else(playwright_chrome)
}

/// Firefox: `$FIREFOX`, an installed one, else a package where packages may be installed.
pub(crate) fn firefox() -> Result<PathBuf> {
    if let Some(path) = named_by("FIREFOX")? {
        return Ok(path);
    }
    let installed = || {
        let in_path = ["firefox", "firefox-esr"].into_iter().find_map(find_program);
        let on_mac = PathBuf::from("/Applications/Firefox.app/Contents/MacOS/firefox");
        in_path.or_else(|| on_mac.is_file().then_some(on_mac))
    };
    if installed().is_none() && may_install() {
        install_packages(&["firefox-esr"])?;
    }
    installed().ok_or_else(|| NO_FIREFOX.error())
}

/// `WebKit`'s driver: `$WEBKIT_DRIVER`, Debian's, which is installed where packages may be, or none.
pub(crate) fn webkit_driver() -> Result<Option<PathBuf>> {
    if let Some(path) = named_by("WEBKIT_DRIVER")? {
        return Ok(Some(path));
    }
    if may_install() {
        install_packages(&["webkit2gtk-driver", "xvfb", "xauth"])?;
    }
    Ok(find_program("WebKitWebDriver"))
}

/// Opens `address` in the user's browser; false if nothing here can.
pub(crate) fn open(address: &str) -> bool {
    if cfg!(target_os = "macos") {
        succeeds(program("open").arg(address))
    } else if cfg!(windows) {
        succeeds(program("cmd").args(["/C", "start", "", address]))
    } else {
        succeeds(program("xdg-open").arg(address))
    }
}

fn named_by(variable: &str) -> Result<Option<PathBuf>> {
    let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(value);
    ensure!(path.is_file(), "${variable} names {}, which is no file", path.display());
    Ok(Some(path))
}

fn installed_chrome() -> Option<PathBuf> {
    let in_path = CHROME_NAMES.into_iter().find_map(find_program);
    let on_mac = || MAC_PATHS.map(PathBuf::from).into_iter().find(|path| path.is_file());
    let on_windows = || {
        ["ProgramFiles", "ProgramFiles(x86)", "LocalAppData"]
            .into_iter()
            .filter_map(env::var_os)
            .flat_map(|folder| WINDOWS_PATHS.map(|path| Path::new(&folder).join(path)))
            .find(|path| path.is_file())
    };
    in_path.or_else(on_mac).or_else(on_windows)
}

/// The newest Chromium that playwright has downloaded.
fn playwright_chrome() -> Option<PathBuf> {
    let home = || env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from);
    let cache = match env::var_os("PLAYWRIGHT_BROWSERS_PATH") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => home()?.join("Library/Caches/ms-playwright"),
        None if cfg!(windows) => PathBuf::from(env::var_os("LOCALAPPDATA")?).join("ms-playwright"),
        None => home()?.join(".cache/ms-playwright"),
    };
    newest_chrome_in(&cache)
}

fn newest_chrome_in(cache: &Path) -> Option<PathBuf> {
    const INSIDE: [&str; 5] = [
        "chrome-linux64/chrome",
        "chrome-linux/chrome",
        "chrome-mac/Chromium.app/Contents/MacOS/Chromium",
        "chrome-win64/chrome.exe",
        "chrome-win/chrome.exe",
    ];
    let mut revisions: Vec<(u64, PathBuf)> = cache
        .read_dir()
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix("chromium-")?.parse().ok()?, entry.path()))
        })
        .collect();
    revisions.sort();
    revisions.into_iter().rev().find_map(|(_, folder)| {
        INSIDE.into_iter().map(|path| folder.join(path)).find(|path| path.is_file())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_newest_download_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        for revision in ["chromium-999", "chromium-1187", "chromium_headless_shell-2000"] {
            let folder = cache.path().join(revision).join("chrome-linux");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("chrome"), "").unwrap();
        }
        let found = newest_chrome_in(cache.path()).unwrap();
        assert_eq!(found, cache.path().join("chromium-1187/chrome-linux/chrome"));
        assert_eq!(newest_chrome_in(&cache.path().join("nothing")), None);
    }
}
