// top_logits: the touched tokens with their logits, then the best others, best first
//
// Twin:      crates/setun-ops/src/top_logits.rs
// Order:     by (logit descending, id ascending), −0 and 0 being equal
// Grid:      one block a requested row

struct Shape {
    u32 vocab;
    u32 capacity;   // tokens of a row of the result
    u32 sorted;     // a power of two, at least the capacity
};

const u32 MAX_LOGIT = 0x5f800000u;     // 2^64
const u32 MIN_LOGIT = 0xff800000u;    // −∞, in padding
const u32 TAKEN = 0xffffffffu;          // in place of a touched token's logit
const u32 DIGITS = 256;

// A number that orders as the logit does; 0 for those that are taken.
__device__ __forceinline__ u32 key_of(u32 bits)
{
    if (bits == TAKEN) {
        return 0;
    }
    if ((bits & 0x80000000u) == 0 || bits == 0x80000000u) {
        return (bits & 0x7fffffffu) + 0x80000000u;
    }
    return ~bits;
}

__device__ __forceinline__ float logit_of(u32 key)
{
    return __uint_as_float(key >= 0x80000000u ? key - 0x80000000u : ~key);
}

// How many threads before this one, and their values' total.
__device__ u32 total_before(u32 lane, u32 value)
{
    __shared__ u32 values[LANES];
    values[lane] = value;
    __syncthreads();
    u32 before = 0;
    for (u32 i = 0; i < lane; i += 1) {
        before += values[i];
    }
    __syncthreads();
    return before;
}

// The k greatest keys, the lowest ids among equal ones, in any order: digit by digit.
__device__ void collect_by_digits(const u32* logits, u32 vocab, uint2* sorting, u32 k, u32 lane)
{
    __shared__ u32 counts[DIGITS];
    __shared__ u32 digit, left, places;
    u32 prefix = 0, missing = k;
    for (i32 shift = 24; shift >= 0; shift -= 8) {
        for (u32 i = lane; i < DIGITS; i += LANES) {
            counts[i] = 0;
        }
        __syncthreads();
        for (u32 token = lane; token < vocab; token += LANES) {
            const u32 key = key_of(logits[token]);
            if (shift == 24 || key >> (shift + 8) == prefix >> (shift + 8)) {
                atomicAdd(&counts[key >> shift & 0xffu], 1u);
            }
        }
        __syncthreads();
        if (lane == 0) {
            digit = DIGITS - 1;
            left = missing;
            while (digit > 0 && counts[digit] < left) {
                left -= counts[digit];
                digit -= 1;
            }
            places = 0;
        }
        __syncthreads();
        prefix |= digit << shift;
        missing = left;
    }
    // `prefix` is the least key that belongs to them, `missing` how many have just this one.
    const u32 each = (vocab + LANES - 1) / LANES;
    const u32 end = min_of((lane + 1) * each, vocab);
    u32 equal = 0;
    for (u32 token = lane * each; token < end; token += 1) {
        equal += key_of(logits[token]) == prefix ? 1 : 0;
    }
    u32 before = total_before(lane, equal);
    for (u32 token = lane * each; token < end; token += 1) {
        const u32 key = key_of(logits[token]);
        const bool belongs = key > prefix || (key == prefix && before < missing);
        before += key == prefix ? 1 : 0;
        if (belongs) {
            sorting[atomicAdd(&places, 1u)] = make_uint2(key, token);
        }
    }
    __syncthreads();
}

// Bitonic, the greatest first.
__device__ void sort(uint2* sorting, u32 sorted, u32 lane)
{
    for (u32 run = 2; run <= sorted; run *= 2) {
        for (u32 apart = run / 2; apart > 0; apart /= 2) {
            for (u32 i = lane; i < sorted / 2; i += LANES) {
                const u32 a = i / apart * apart * 2 + i % apart;
                const uint2 x = sorting[a], y = sorting[a + apart];
                const bool ahead = x.x > y.x || (x.x == y.x && x.y < y.y);
                const bool descends = (a & run) == 0;
                if (ahead != descends) {
                    sorting[a] = y;
                    sorting[a + apart] = x;
                }
            }
            __syncthreads();
        }
    }
}

// The same where they are few. As many tokens as threads, each the greatest of its thread's, leave no more below
// them than the k-th of these has: what is as great is a candidate, and candidates are sorted. Without success
// where there are too many.
__device__ bool collect_candidates(const u32* logits, u32 vocab, uint2* sorting, u32 k, u32 lane)
{
    __shared__ uint2 found[LANES];
    __shared__ u32 count;
    u32 most = 0;
#pragma unroll 8
    for (u32 token = lane; token < vocab; token += LANES) {
        most = greatest_of(most, key_of(logits[token]));
    }
    found[lane] = make_uint2(most, lane);
    __syncthreads();
    sort(found, LANES, lane);
    const u32 least = found[k - 1].x;
    __syncthreads();
    found[lane] = make_uint2(0, NOT_A_TOKEN);
    if (lane == 0) {
        count = 0;
    }
    __syncthreads();
#pragma unroll 8
    for (u32 token = lane; token < vocab; token += LANES) {
        const u32 key = key_of(logits[token]);
        if (key >= least) {
            const u32 place = atomicAdd(&count, 1u);
            if (place < LANES) {
                found[place] = make_uint2(key, token);
            }
        }
    }
    __syncthreads();
    if (count > LANES) {
        return false;
    }
    sort(found, LANES, lane);
    if (lane < k) {
        sorting[lane] = found[lane];
    }
    __syncthreads();
    return true;
}

extern "C" __global__ void __launch_bounds__(LANES) top_logits(
    const Shape shape, const u32* __restrict__ step_words,
    u32* all_logits,                        // [rows, vocab], bits
    uint2* all_sorting,                     // [rows, sorted]: key, token
    uint2* all_out)                         // [rows, capacity]: token, logit
{
    const Step step{step_words};
    const u32 row = blockIdx.x, lane = threadIdx.x;
    if (row >= step.wanted_rows()) {
        return;
    }
    u32* logits = all_logits + (size_t)row * shape.vocab;
    uint2* sorting = all_sorting + (size_t)row * shape.sorted;
    uint2* out = all_out + (size_t)row * shape.capacity;
    for (u32 i = lane; i < shape.capacity; i += LANES) {
        out[i] = make_uint2(NOT_A_TOKEN, MIN_LOGIT);
    }
    for (u32 i = lane; i < shape.sorted; i += LANES) {
        sorting[i] = make_uint2(0, NOT_A_TOKEN);
    }
    u32 most = 0;
    for (u32 token = lane; token < shape.vocab; token += LANES) {
        most = greatest_of(most, logits[token] & 0x7fffffffu);
    }
    if (greatest_over_block(lane, most) > MAX_LOGIT) {
        return;
    }
    const u32* request = step.request(row);
    const u32 k = request[0], touched = request[3];
    for (u32 i = lane; i < touched; i += LANES) {
        const u32 token = request[4 + i];
        out[i] = make_uint2(token, logits[token]);
        logits[token] = TAKEN;
    }
    __syncthreads();
    if (k > LANES || !collect_candidates(logits, shape.vocab, sorting, k, lane)) {
        collect_by_digits(logits, shape.vocab, sorting, k, lane);
        sort(sorting, shape.sorted, lane);
    }
    const float best_logit = logit_of(sorting[0].x);
    const float least = best_logit - __uint_as_float(request[2]);
    for (u32 i = lane; i < k; i += LANES) {
        const uint2 found = sorting[i];
        if (request[1] == 0 || logit_of(found.x) >= least) {
            out[touched + i] = make_uint2(found.y, logits[found.y]);
        }
    }
}
