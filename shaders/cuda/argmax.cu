// argmax: the greedy token of each requested row, and in the step's words what the next step takes in
//
// Twin:      crates/setun-ops/src/argmax.rs
// Order:     by (logit descending, id ascending), −0 and 0 being equal
// Grid:      one block for SLICE tokens (x) of a requested row (y); then one a requested row (x), which folds them

struct Shape {
    u32 vocab;
    u32 slices;     // of the vocabulary
    u32 touched;    // room for touched tokens
    u32 biases;     // room for biases
    u32 folds;      // 0: a slice; 1: the slices of a row
};

const u32 NOT_FINITE_KEY = 0xffffffffu;
const u32 NO_PENALTY = 0x3f800000u;     // 1

// The words of a request, after which come the touched tokens, the biases' tokens and the biases.
struct Choice {
    u32 penalty;
    u32 touched;
    u32 biases;
    u32 made;       // steps
};

__device__ __forceinline__ bool is_finite(float value)
{
    return (__float_as_uint(value) & 0x7fffffffu) < 0x7f800000u;
}

// A number that orders as the logit does; 0 is less than any.
__device__ __forceinline__ u32 key_of(float logit)
{
    const u32 bits = __float_as_uint(logit);
    if (!is_finite(logit)) {
        return NOT_FINITE_KEY;
    }
    if ((bits & 0x80000000u) == 0 || bits == 0x80000000u) {
        return (bits & 0x7fffffffu) + 0x80000000u;
    }
    return ~bits;
}

// Keys and tokens.
__device__ __forceinline__ uint2 better(uint2 a, uint2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

__device__ uint2 best_over_block(u32 lane, uint2 own)
{
    const u32 key = greatest_over_block(lane, own.x);
    return make_uint2(key, ~greatest_over_block(lane, own.x == key ? ~own.y : 0u));
}

__device__ uint2 argmax_of_slice(const Shape& shape, const Choice& choice, float* logits, u32 slice, u32 lane)
{
    const u32* touched = (const u32*)(&choice + 1);
    const u32* biased = touched + shape.touched;
    const u32* biases = biased + shape.biases;
    const u32 first = slice * SLICE, end = min_of(first + SLICE, shape.vocab);
    const float penalty = __uint_as_float(choice.penalty);
    for (u32 i = lane; i < choice.touched; i += LANES) {
        const u32 token = touched[i];
        if (token >= first && token < end) {
            logits[token] = logits[token] < 0.0f ? logits[token] * penalty : logits[token] / penalty;
        }
    }
    __syncthreads();
    for (u32 i = lane; i < choice.biases; i += LANES) {
        const u32 token = biased[i];
        if (token >= first && token < end) {
            logits[token] += __uint_as_float(biases[i]);
        }
    }
    __syncthreads();
    uint2 best = make_uint2(0, NOT_A_TOKEN);
    for (u32 token = first + lane; token < end; token += LANES) {
        best = better(best, make_uint2(key_of(logits[token]), token));
    }
    return best_over_block(lane, best);
}

// What the next step takes in.
__device__ void next_step(const Shape& shape, u32* words, u32 row, u32 token, bool is_known, u32* chosen)
{
    const Step step{words};
    Choice& choice = *(Choice*)(words + words[10] + row * words[11]);
    chosen[choice.made * step.wanted_rows() + row] = token;
    choice.made += 1;
    const u32 batch_row = step.wanted_row(row);
    words[words[3] + batch_row] += 1;
    if (token == NOT_A_TOKEN) {
        return;
    }
    words[words[2] + batch_row] = token;
    if (choice.penalty != NO_PENALTY && !is_known && choice.touched < shape.touched) {
        ((u32*)(&choice + 1))[choice.touched] = token;
        choice.touched += 1;
    }
}

extern "C" __global__ void __launch_bounds__(LANES) argmax(
    const Shape shape, u32* words,
    float* all_logits,                      // [rows, vocab]
    uint2* of_slices,                       // [rows, slices]: key, token
    u32* chosen)                            // [steps, rows of this step]
{
    const Step step{words};
    const u32 lane = threadIdx.x, row = shape.folds == 0 ? blockIdx.y : blockIdx.x;
    if (row >= step.wanted_rows()) {
        return;
    }
    const Choice& choice = *(const Choice*)(words + words[10] + row * words[11]);
    uint2* own = of_slices + (size_t)row * shape.slices;
    if (shape.folds == 0) {
        float* logits = all_logits + (size_t)row * shape.vocab;
        const uint2 best = argmax_of_slice(shape, choice, logits, blockIdx.x, lane);
        if (lane == 0) {
            own[blockIdx.x] = best;
        }
        return;
    }
    uint2 best = make_uint2(0, NOT_A_TOKEN);
    for (u32 i = lane; i < shape.slices; i += LANES) {
        best = better(best, own[i]);
    }
    best = best_over_block(lane, best);
    const u32 token = best.x == NOT_FINITE_KEY ? NOT_A_TOKEN : best.y;
    const u32* touched = (const u32*)(&choice + 1);
    u32 is_known = 0;
    for (u32 i = lane; i < choice.touched; i += LANES) {
        is_known = greatest_of(is_known, touched[i] == token ? 1u : 0u);
    }
    is_known = greatest_over_block(lane, is_known);
    if (lane == 0) {
        next_step(shape, words, row, token, is_known != 0, chosen);
    }
}
