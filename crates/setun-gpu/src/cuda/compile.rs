//! Kernels by NVIDIA's run-time compiler, whose library is looked for when it is needed.

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result, sys};

use crate::kernel::CudaSource;

/// No contraction, as that would change bits; division, square root and subnormals are IEEE's.
const OPTIONS: [&str; 5] =
    ["--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"];

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// PTX of an architecture, written as 10 × major + minor.
    Ptx(u32),
    /// Machine code of it.
    Cubin(u32),
}

impl Target {
    fn option(self) -> String {
        match self {
            Self::Ptx(architecture) => format!("--gpu-architecture=compute_{architecture}"),
            Self::Cubin(architecture) => format!("--gpu-architecture=sm_{architecture}"),
        }
    }
}

/// Machine code of a device, or of one newer than the compiler PTX of the newest that it knows,
/// from which the driver makes machine code.
pub(super) fn target_of(architecture: u32) -> Target {
    match newest_known() {
        Some(newest) if newest < architecture => Target::Ptx(newest),
        _ => Target::Cubin(architecture),
    }
}

fn newest_known() -> Option<u32> {
    let mut count = 0;
    // SAFETY: the number has a place.
    unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }.result().ok()?;
    let mut known = vec![0; usize::try_from(count).ok()?];
    // SAFETY: each number has a place.
    unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result().ok()?;
    known.into_iter().max().and_then(|newest| u32::try_from(newest).ok())
}

/// Whether the compiler's library is there.
pub(super) fn is_present() -> bool {
    // SAFETY: loading the library runs its initialisers and nothing else.
    unsafe { sys::is_culib_present() }
}

/// Compiles a kernel.
///
/// # Errors
///
/// What the compiler says, or that it is not there.
pub fn compile(source: &CudaSource, target: Target) -> Result<Vec<u8>, String> {
    if !is_present() {
        return Err(MISSING.to_owned());
    }
    let text = CString::new(source.text.as_str()).map_err(|error| error.to_string())?;
    let program = result::create_program(&text, None).map_err(|error| error.to_string())?;
    let compiled = compile_program(program, target);
    // SAFETY: `program` was made above and is used no more.
    let destroyed = unsafe { result::destroy_program(program) };
    compiled.and_then(|code| destroyed.map(|()| code).map_err(|error| error.to_string()))
}

/// What an error says where the library is not found.
pub(super) const MISSING: &str =
    "NVIDIA's run-time compiler (libnvrtc, of the CUDA toolkit) is not installed";

fn compile_program(program: sys::nvrtcProgram, target: Target) -> Result<Vec<u8>, String> {
    let architecture = target.option();
    let options: Vec<&str> = OPTIONS.into_iter().chain([architecture.as_str()]).collect();
    // SAFETY: `program` has been made and not destroyed.
    if let Err(error) = unsafe { result::compile_program(program, &options) } {
        // SAFETY: likewise.
        let log = unsafe { result::get_program_log(program) }.unwrap_or_default();
        return Err(format!("{error}: {}", String::from_utf8_lossy(&bytes(log)).trim_end()));
    }
    // SAFETY: likewise, and it has been compiled.
    let code = unsafe {
        match target {
            Target::Ptx(_) => result::get_ptx(program).map(bytes),
            Target::Cubin(_) => cubin(program),
        }
    };
    code.map_err(|error| error.to_string())
}

/// # Safety
///
/// `program` has been compiled for real machines, and not been destroyed.
unsafe fn cubin(program: sys::nvrtcProgram) -> Result<Vec<u8>, result::NvrtcError> {
    let mut len = 0;
    // SAFETY: as the caller says; the size has a place.
    unsafe { sys::nvrtcGetCUBINSize(program, &raw mut len) }.result()?;
    let mut code = vec![0u8; len];
    // SAFETY: as the caller says; the code has as much place as it wants.
    unsafe { sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()) }.result()?;
    Ok(code)
}

fn bytes(chars: Vec<c_char>) -> Vec<u8> {
    chars.into_iter().map(|char| char.to_ne_bytes()[0]).collect()
}
