//! Progress bar and messages of a pull.

use std::{
    io::{self, IsTerminal},
    sync::{
        Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use setun::hub::PullEvent;

use crate::{output::report, terminal::escaped};

/// How often the bar is redrawn, so that its clock advances.
const TICK: Duration = Duration::from_millis(200);

/// Time after which a pull that has not begun says so: a host's name may take long to be resolved.
const SILENCE: Duration = Duration::from_secs(1);

/// A bar on a terminal; elsewhere only what a user has to know.
pub(crate) struct PullProgress {
    bar: Option<ProgressBar>,
    /// Dropped when something has happened, which takes the line back that is due after the silence.
    waiting: Mutex<Option<Sender<()>>>,
}

impl PullProgress {
    pub(crate) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            // No length yet: indicatif shows a bar of 0 bytes as full.
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let line = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} \
                        {decimal_bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(line) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, waiting: Mutex::default() }
    }

    /// Shows an event.
    pub(crate) fn show(&self, event: PullEvent) {
        self.wait(None);
        match event {
            PullEvent::Connecting { address } => {
                let text = format!("connecting to {}", escaped(&address));
                match &self.bar {
                    Some(bar) => bar.set_message(text),
                    None => self.wait(Some(line_after_silence(text))),
                }
            }
            PullEvent::Planned { bytes, .. } => self.bar(|bar| {
                if bytes > 0 {
                    bar.set_length(bytes);
                }
                bar.set_position(0);
            }),
            PullEvent::FileStarted { file, present, .. } => self.bar(|bar| {
                bar.set_message(escaped(&file).into_owned());
                bar.inc(present);
                bar.reset_eta();
            }),
            PullEvent::Received { bytes, .. } => self.bar(|bar| bar.inc(bytes)),
            PullEvent::Discarded { bytes, .. } => {
                self.bar(|bar| bar.set_position(bar.position().saturating_sub(bytes)));
            }
            PullEvent::Verifying { file } => {
                self.bar(|bar| bar.set_message(format!("verifying {}", escaped(&file))));
            }
            PullEvent::WaitingForLock { .. } => {
                self.say("another process pulls this model: waiting");
            }
            PullEvent::AlreadyStored { model, .. } => {
                self.note(&format!("{model} is in the store already"));
            }
            PullEvent::Retry { file, reason, wait } => {
                let wait = wait.as_secs_f64();
                self.say(&format!("{file}: {reason}; retrying in {wait:.1} s"));
            }
            PullEvent::SourceChanged { file, reason } => {
                self.say(&format!("{file} has changed ({reason}): downloading it again"));
            }
            PullEvent::Corrupt { file, chunks } => {
                let what =
                    if chunks.is_empty() { String::new() } else { format!(", chunks {chunks:?}") };
                self.say(&format!("{file} has wrong bytes{what}: downloading them again"));
            }
            PullEvent::RangesUnsupported { file } => {
                self.say(&format!(
                    "{file}: the server has no range requests, so the download cannot resume"
                ));
            }
            _ => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.wait(None);
        self.bar(ProgressBar::finish_and_clear);
    }

    fn wait(&self, line: Option<Sender<()>>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    fn bar(&self, show: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &self.bar {
            show(bar);
        }
    }

    /// Shown on a terminal only.
    fn note(&self, text: &str) {
        self.bar(|bar| bar.println(escaped(text)));
    }

    /// Shown everywhere.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(escaped(text)),
            None => report(&format!("{text}\n")),
        }
    }
}

/// Reports a line after the silence, unless the sender is dropped before.
fn line_after_silence(line: String) -> Sender<()> {
    let (sender, dropped) = channel();
    thread::spawn(move || {
        if dropped.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
            report(&format!("{line}\n"));
        }
    });
    sender
}
