// peak: sums[lane] = Σ of the lane's chains, which grow by products in each round
//
// Twin:      crates/setun-gpu/src/peak.rs
// Grid:      any

struct Shape {
    u32 rounds;
    u32 codes;          // four of 0..=2
    u32 activations;    // four int8
};

const u32 CHAINS = 8;

extern "C" __global__ void __launch_bounds__(LANES) peak(
    const Shape shape, const u32* __restrict__ step_words,
    u32* __restrict__ sums)                 // [blocks × LANES]
{
    sums[blockIdx.x * LANES + threadIdx.x] = sum_of_chains<CHAINS>(shape.rounds, shape.codes, shape.activations);
}
