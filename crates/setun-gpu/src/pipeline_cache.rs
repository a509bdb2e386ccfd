//! A cache of compiled kernels, each compiled once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::kernel::Kernel;

type Made<V> = Mutex<HashMap<Kernel, Arc<OnceLock<V>>>>;

/// Compiled kernels. What is requested ahead is made beside other work where there are threads;
/// who needs a kernel that is being made waits for it.
#[derive(Debug)]
pub(crate) struct PipelineCache<V> {
    made: Arc<Made<V>>,
    #[cfg(not(target_family = "wasm"))]
    work: Option<work::Work>,
}

impl<V> Default for PipelineCache<V> {
    fn default() -> Self {
        Self {
            made: Arc::default(),
            #[cfg(not(target_family = "wasm"))]
            work: None,
        }
    }
}

impl<V: Clone> PipelineCache<V> {
    pub(crate) fn get(&self, kernel: Kernel, make: impl FnOnce(Kernel) -> V) -> V {
        get(&self.made, kernel, make)
    }
}

fn get<V: Clone>(made: &Made<V>, kernel: Kernel, make: impl FnOnce(Kernel) -> V) -> V {
    let mut all = made.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Arc::clone(all.entry(kernel).or_default());
    drop(all); // others are made meanwhile
    place.get_or_init(|| make(kernel)).clone()
}

/// A browser compiles in a process of its own: to request all is to go ahead.
#[cfg(target_family = "wasm")]
impl<V: Clone> PipelineCache<V> {
    pub(crate) fn start(&mut self, kernels: &[Kernel], make: impl Fn(Kernel) -> V) {
        for &kernel in kernels {
            self.get(kernel, &make);
        }
    }
}

#[cfg(not(target_family = "wasm"))]
impl<V: Clone + Send + Sync + 'static> PipelineCache<V> {
    pub(crate) fn start(
        &mut self,
        kernels: &[Kernel],
        make: impl Fn(Kernel) -> V + Send + 'static,
    ) {
        let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |kernel: &&Kernel| all.get(kernel).is_none_or(|place| place.get().is_none());
        let kernels: Vec<Kernel> = kernels.iter().filter(missing).copied().collect();
        drop(all);
        if !kernels.is_empty() {
            let made = Arc::clone(&self.made);
            let each = move |kernel| drop(get(&made, kernel, &make));
            // Where there is no thread, who needs a kernel makes it.
            self.work = work::Work::start(kernels, each, self.work.take());
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod work {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread::{self, JoinHandle},
    };

    use crate::kernel::Kernel;

    /// A thread that goes through kernels. It is waited for, as a driver may not be left while it
    /// compiles, and leaves out what it has not begun.
    #[derive(Debug)]
    pub(super) struct Work {
        is_wanted: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Work {
        /// Begins after what is under way.
        pub(super) fn start(
            kernels: Vec<Kernel>,
            each: impl Fn(Kernel) + Send + 'static,
            mut before: Option<Self>,
        ) -> Option<Self> {
            let is_wanted = before.as_ref().map_or_else(
                || Arc::new(AtomicBool::new(true)),
                |work| Arc::clone(&work.is_wanted),
            );
            let first = before.as_mut().and_then(|work| work.thread.take());
            let goes_on = Arc::clone(&is_wanted);
            let builder = thread::Builder::new().name("setun-kernels".into());
            let thread = builder.spawn(move || {
                if let Some(first) = first {
                    let _ = first.join(); // what it has not made is made by who needs it
                }
                kernels.into_iter().take_while(|_| goes_on.load(Ordering::Relaxed)).for_each(each);
            });
            Some(Self { is_wanted, thread: Some(thread.ok()?) })
        }

        /// Whether it goes on.
        #[cfg(test)]
        pub(super) fn is_wanted(&self) -> Arc<AtomicBool> {
            Arc::clone(&self.is_wanted)
        }
    }

    impl Drop for Work {
        fn drop(&mut self) {
            if let Some(thread) = self.thread.take() {
                self.is_wanted.store(false, Ordering::Relaxed);
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn each_kernel_is_made_once_whoever_asks_first() {
        let made = Arc::new(AtomicUsize::new(0));
        let make = || {
            let made = Arc::clone(&made);
            move |kernel: Kernel| {
                made.fetch_add(1, Ordering::Relaxed);
                thread::yield_now(); // to another that asks
                kernel
            }
        };
        let all: Vec<Kernel> = Kernel::all().collect();
        let mut cache = PipelineCache::default();
        cache.start(&all, make());
        cache.start(&all[..10], make());
        for &kernel in all.iter().rev() {
            assert_eq!(cache.get(kernel, make()), kernel);
        }
        assert_eq!(made.load(Ordering::Relaxed), all.len());
    }

    #[test]
    fn what_is_not_begun_is_left_out_at_the_end() {
        let mut cache = PipelineCache::default();
        let (tell, begun) = std::sync::mpsc::channel();
        let (go, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        let make = move |kernel: Kernel| {
            let _ = tell.send(kernel);
            let _ended = held.lock().expect("no panic").recv();
        };
        cache.start(&Kernel::all().collect::<Vec<_>>(), make);
        begun.recv().expect("one is begun");
        let is_wanted = cache.work.as_ref().expect("it works").is_wanted();
        let ending = thread::spawn(|| drop(cache));
        while is_wanted.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        drop(go);
        ending.join().expect("no panic");
        assert_eq!(begun.iter().count(), 0);
    }
}
