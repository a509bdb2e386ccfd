//! Speed of each operation alone, on shapes of real models and every level of this machine:
//! `cargo bench -p setun-cpu --bench ops -- attention`, `-- avx2`, `-- 2B-4T`.
//!
//! A line is a step of some repetitions of one operation on one thread (`step::REPEATS`, or as
//! many as its own module says), so read the bytes or the multiply-adds (`item`) per second. What
//! fits is hot: these are limits of the kernels, not of memory, except where a module says so.
//! `ternary_matmul` has a bench of its own; `ternary_dot` and `ternary_panel` are in it and in
//! `gate`, `column_sums` in its matrices kept by columns, `screen_dot` in `top_logits`.

mod attention;
mod embed;
mod gate;
mod head;
mod head_norm;
mod quantize;
mod rms_norm;
mod rope_append;
mod step;
mod top_logits;

fn main() {
    divan::main();
}
