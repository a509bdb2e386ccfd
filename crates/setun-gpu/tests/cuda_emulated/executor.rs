//! An executor over the host's memory: kernels are compiled by the host's C++ compiler and loaded.

use std::{
    cell::UnsafeCell,
    collections::{HashMap, hash_map::DefaultHasher},
    ffi::c_void,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use libloading::Library;
use setun_gpu::{
    executor::{Bound, Executor},
    kernel::{CUDA_TILES, CudaSource, Kernel, Tiles},
};
use setun_ops::OpsError;

/// What stands around each buffer, to show writes beyond it.
const GUARD: u128 = 0xa5a5_a5a5_a5a5_a5a5_a5a5_a5a5_a5a5_a5a5;

/// Contractions would change bits, and a device traps where a vector is not aligned.
const FLAGS: [&str; 11] = [
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-w",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    // Libraries share no variable.
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fsanitize=alignment",
    "-fsanitize-undefined-trap-on-error",
];

/// A library has one block's memory, and tests run side by side: each has its turn.
type Turn = Arc<Mutex<()>>;

static TURNS: LazyLock<Mutex<HashMap<PathBuf, Turn>>> = LazyLock::new(Mutex::default);

/// Returns other than 0 where the arguments are not what the kernel has.
type Play = unsafe extern "C" fn(
    shape: *const u32,
    shape_words: u32,
    buffers: *const *mut c_void,
    count: u32,
    grid: *const u32,
) -> i32;

/// A device that one thread of the host plays.
#[derive(Default)]
pub(crate) struct Emulated {
    kernels: HashMap<Kernel, Rc<Compiled>>,
    /// Blocks of `top_logits` have so few threads that it must go by digits.
    has_few_threads: bool,
}

/// Memory of the host, between guards.
#[derive(Clone)]
pub(crate) struct Memory {
    quads: Rc<UnsafeCell<Vec<u128>>>,
    bytes: usize,
}

impl Memory {
    fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("few bytes").max(16);
        let mut quads = vec![0; bytes.div_ceil(16) + 2];
        quads[0] = GUARD;
        *quads.last_mut().expect("guards") = GUARD;
        Self { quads: Rc::new(UnsafeCell::new(quads)), bytes }
    }

    fn at(&self, offset: u64, bytes: usize) -> *mut u8 {
        let offset = usize::try_from(offset).expect("few bytes");
        assert!(offset + bytes <= self.bytes, "{bytes} bytes at {offset} of {}", self.bytes);
        // SAFETY: nothing else refers to the vector while its place is taken, and the offset
        // lies within it.
        unsafe { (*self.quads.get()).as_mut_ptr().add(1).cast::<u8>().add(offset) }
    }

    fn is_whole(&self) -> bool {
        // SAFETY: nothing writes to it meanwhile.
        let quads = unsafe { &*self.quads.get() };
        quads.first() == Some(&GUARD) && quads.last() == Some(&GUARD)
    }
}

/// A kernel of the host.
struct Compiled {
    library: Library,
    turn: Turn,
}

/// Launches with their kernels.
pub(crate) struct List(Vec<Launch>);

struct Launch {
    kernel: Kernel,
    compiled: Rc<Compiled>,
    shape: Vec<u32>,
    buffers: Vec<Memory>,
    grid: [u32; 3],
}

impl Emulated {
    /// One whose `top_logits` goes by digits.
    pub(crate) fn with_few_threads() -> Self {
        Self { has_few_threads: true, ..Self::default() }
    }

    /// Threads of a block in place of the kernel's own: results do not depend on them, and a fiber
    /// takes its time.
    fn fewer_threads(&self, kernel: Kernel) -> Option<u32> {
        match kernel {
            Kernel::TopLogits => self.has_few_threads.then_some(32),
            Kernel::Attention { chunks: false, .. } => Some(128), // two spans: their totals take whole warps
            _ => None,
        }
    }

    fn kernel(&mut self, kernel: Kernel) -> Rc<Compiled> {
        let fewer_threads = self.fewer_threads(kernel);
        let made = self.kernels.entry(kernel).or_insert_with(|| {
            let mut cuda = kernel.cuda();
            if let Some(few) = fewer_threads {
                let many = format!("LANES = {};", cuda.threads);
                cuda.text = cuda.text.replacen(&many, &format!("LANES = {few};"), 1);
            }
            let (path, turn) = compile(kernel, &cuda);
            // SAFETY: the library was compiled a moment ago, of sources that run nothing on loading.
            let library = unsafe { Library::new(&path) };
            let library = library.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Rc::new(Compiled { library, turn })
        });
        Rc::clone(made)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compiles a kernel behind `emulation.hpp`, unless that has been done for the same text.
fn compile(kernel: Kernel, cuda: &CudaSource) -> (PathBuf, Turn) {
    let text = format!(
        "{}\n{}\nextern \"C\" __attribute__((visibility(\"default\"))) int \
         play_kernel(\n    const u32* shape, u32 words, void* const* buffers, \
         u32 count, const u32* grid)\n{{\n    return play({}, LANES, shape, words, buffers, count, \
         grid);\n}}\n",
        include_str!("emulation.hpp"),
        cuda.text,
        cuda.name
    );
    let mut hasher = DefaultHasher::new();
    (&text, FLAGS).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_emulated");
    fs::create_dir_all(&folder).expect("a folder");
    let name = format!("{}-{:016x}", cuda.name, hasher.finish());
    let library = folder.join(format!("{name}.so"));
    let turn = Arc::clone(locked(&TURNS).entry(library.clone()).or_default());
    let compiling = locked(&turn);
    if library.is_file() {
        drop(compiling);
        return (library, turn);
    }
    let (source, unfinished) =
        (folder.join(format!("{name}.cpp")), folder.join(format!("{name}.part")));
    fs::write(&source, &text).expect("a source");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let output = Command::new(&compiler)
        .args(FLAGS)
        .arg("-o")
        .args([&unfinished, &source])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
    assert!(
        output.status.success(),
        "{kernel:?}, {}:\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(unfinished, &library).expect("a library");
    drop(compiling);
    (library, turn)
}

impl Executor for Emulated {
    type Buffer = Memory;
    type List = List;

    fn tiles(&self) -> Tiles {
        CUDA_TILES
    }

    fn create_buffer(&mut self, _what: &'static str, bytes: u64) -> Result<Memory, OpsError> {
        Ok(Memory::new(bytes))
    }

    fn max_buffer_bytes(&self) -> u64 {
        // So little that tables come in parts.
        1 << 20
    }

    fn write(&mut self, buffer: &Memory, offset: u64, data: &[u8]) -> Result<(), OpsError> {
        // SAFETY: `at` has checked the place, and `data` is memory of its own.
        unsafe { buffer.at(offset, data.len()).copy_from(data.as_ptr(), data.len()) }
        Ok(())
    }

    fn copy(
        &mut self,
        from: (&Memory, u64),
        to: (&Memory, u64),
        bytes: u64,
    ) -> Result<(), OpsError> {
        let bytes = usize::try_from(bytes).expect("few bytes");
        // SAFETY: `at` has checked both places.
        unsafe { to.0.at(to.1, bytes).copy_from(from.0.at(from.1, bytes), bytes) };
        Ok(())
    }

    fn compile(&mut self, kernels: &[Kernel]) -> Result<(), OpsError> {
        for &kernel in kernels {
            self.kernel(kernel);
        }
        Ok(())
    }

    fn record(&mut self, launches: &[Bound<'_, Memory>]) -> Result<List, OpsError> {
        let launch = |launch: &Bound<'_, Memory>| Launch {
            kernel: launch.kernel,
            compiled: self.kernel(launch.kernel),
            shape: launch.shape.to_vec(),
            buffers: launch.buffers.clone(),
            grid: launch.grid,
        };
        Ok(List(launches.iter().map(launch).collect()))
    }

    fn play(&mut self, list: &List, _chunks: u32) -> Result<(), OpsError> {
        for Launch { kernel, compiled, shape, buffers, grid } in &list.0 {
            let places: Vec<_> = buffers.iter().map(|buffer| buffer.at(0, 0).cast()).collect();
            let counts = [shape.len(), places.len()].map(|n| u32::try_from(n).expect("few"));
            let turn = locked(&compiled.turn);
            // SAFETY: the function has this signature, as `compile` writes it; it checks the
            // number of arguments.
            let failure = unsafe {
                let play = compiled.library.get::<Play>(b"play_kernel").expect("a function");
                play(shape.as_ptr(), counts[0], places.as_ptr(), counts[1], grid.as_ptr())
            };
            drop(turn);
            assert_eq!(failure, 0, "{kernel:?} has other arguments");
            let whole = buffers.iter().position(|buffer| !buffer.is_whole());
            assert_eq!(whole, None, "{kernel:?} writes beyond its argument");
        }
        Ok(())
    }

    async fn read(&mut self, buffer: &Memory, offset: u64, out: &mut [u8]) -> Result<(), OpsError> {
        // SAFETY: `at` has checked the place, and `out` is memory of its own.
        unsafe { out.as_mut_ptr().copy_from(buffer.at(offset, out.len()), out.len()) };
        Ok(())
    }
}
