// attention: each row over the positions of its sequence up to its own, span by span
//
// Twin:      crates/setun-ops/src/attention.rs
// Grid:      one block a head (x) and QUERIES rows (y); a thread for each position of some spans

const u32 SPAN = 64;
const u32 SPANS = LANES / SPAN;                     // at a time
const u32 MAX_HEAD_DIM = 256;
const u32 COLUMNS_EACH = (MAX_HEAD_DIM + LANES - 1) / LANES;
const u32 KEPT = 4096;                              // scores that need not be computed a second time
const u32 BLOCKS_AT_ONCE = QUERIES == 1 ? 1 : 2;    // of a processor: how many registers a thread may have

// What a thread requests before it adds: memory answers late.
const u32 SIXTEENS_AHEAD = QUERIES == 1 ? 4 : 1;
const u32 VALUES_AHEAD = 16;

struct Shape {
    u32 heads;
    u32 kv_heads;
    u32 head_dim;
    u32 block_positions;
    float inverse_sqrt;
};

// Of a block.
struct Memory {
    alignas(16) float queries[QUERIES * MAX_HEAD_DIM];
    alignas(16) float kept[KEPT];                           // scores: [positions, rows]
    alignas(16) float weights[LANES * QUERIES];             // of some spans: [positions, rows]
    alignas(16) float scaled_weights[LANES * QUERIES];
    u32 vectors[LANES];
    float span_totals[SPANS * QUERIES];
    float span_sums[SPANS * QUERIES * MAX_HEAD_DIM];
    float of_warps[QUERIES * LANES / 32];
};

struct Keys {
    const Shape& shape;
    const Step& step;
    const u32* cache;
    u32 kv_head;
    u32 slot;

    __device__ u32 vector(u32 position) const
    {
        const u32 block = step.block(slot, position / shape.block_positions);
        return (block * shape.kv_heads + kv_head) * shape.block_positions + position % shape.block_positions;
    }

    // Of one key with each of the queries.
    template <u32 COUNT>
    __device__ __forceinline__ void scores(const float* queries, u32 vector, float (&found)[COUNT]) const
    {
        const u32 d = shape.head_dim;
        float sums[COUNT][FOLD] = {};
        // As many columns as the fold has lanes.
        const u32 whole = d % FOLD == 0 ? d : 0;
#pragma unroll SIXTEENS_AHEAD
        for (u32 first = 0; first < whole; first += FOLD) {
            float key[FOLD];
            cache_sixteen(cache, vector, d, first, key);
#pragma unroll
            for (u32 q = 0; q < COUNT; q += 1) {
#pragma unroll
                for (u32 i = 0; i < FOLD; i += 4) {
                    const float4 query = *(const float4*)(queries + q * MAX_HEAD_DIM + first + i);
                    sums[q][i] += query.x * key[i];
                    sums[q][i + 1] += query.y * key[i + 1];
                    sums[q][i + 2] += query.z * key[i + 2];
                    sums[q][i + 3] += query.w * key[i + 3];
                }
            }
        }
        for (u32 first = whole; first < d; first += FOLD) {
#pragma unroll
            for (u32 i = 0; i < FOLD; i += 1) {
                for (u32 q = 0; q < COUNT && first + i < d; q += 1) {
                    sums[q][i] += queries[q * MAX_HEAD_DIM + first + i] * cache_one(cache, vector, d, first + i);
                }
            }
        }
        const float scale = cache_scale(cache, vector, d);
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
#pragma unroll
            for (u32 width = FOLD / 2; width > 0; width /= 2) {
                for (u32 i = 0; i < width; i += 1) {
                    sums[q][i] += sums[q][i + width];
                }
            }
            found[q] = sums[q][0] * scale * shape.inverse_sqrt;
        }
    }
};

// The greater of two scores; a NaN wins, so that it shows.
__device__ __forceinline__ float greater(float a, float b) { return a != a || a > b ? a : b; }

template <u32 COUNT>
__device__ __forceinline__ void greatest_over_block(Memory& memory, u32 lane, float (&scores)[COUNT])
{
    const u32 warps = LANES / 32;
#pragma unroll
    for (u32 q = 0; q < COUNT; q += 1) {
#pragma unroll
        for (u32 width = 16; width > 0; width /= 2) {
            scores[q] = greater(scores[q], __shfl_xor_sync(ALL, scores[q], width));
        }
        if (lane % 32 == 0) {
            memory.of_warps[q * warps + lane / 32] = scores[q];
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 q = 0; q < COUNT; q += 1) {
        scores[q] = memory.of_warps[q * warps];
        for (u32 warp = 1; warp < warps; warp += 1) {
            scores[q] = greater(scores[q], memory.of_warps[q * warps + warp]);
        }
    }
}

// Adds up what each span from `first` on comes to, of each row.
template <u32 COUNT>
__device__ __forceinline__ void sum_spans(
    Memory& memory, const u32* values, u32 d, u32 lane, u32 first, const u32 (&ends)[COUNT], u32 end)
{
    for (u32 item = lane; item < SPANS * FOLD * COUNT; item += LANES) {
        const u32 q = item / (SPANS * FOLD), span = item / FOLD % SPANS;
        float sum = 0.0f;
#pragma unroll
        for (u32 i = 0; i < SPAN; i += FOLD) {
            sum += memory.weights[(span * SPAN + i + item % FOLD) * COUNT + q];
        }
        sum = fold_lanes(sum);
        if (item % FOLD == 0) {
            memory.span_totals[span * COUNT + q] = sum;
        }
    }
    const u32 pairs = (d + 1) / 2;
    for (u32 item = lane; item < SPANS * pairs; item += LANES) {
        const u32 span = item / pairs, i = item % pairs * 2;
        if (first + span * SPAN >= end) {
            break;
        }
        // Spans that end with no row's last position need not look where each row ends.
        bool is_whole = true;
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
            is_whole = is_whole && first + (span + 1) * SPAN <= ends[q];
        }
        float2 sums[COUNT] = {};
#pragma unroll VALUES_AHEAD
        for (u32 j = span * SPAN; j < (span + 1) * SPAN; j += 1) {
            const float2 value = cache_two(values, memory.vectors[j], d, i);
#pragma unroll
            for (u32 q = 0; q < COUNT; q += 1) {
                if (is_whole || first + j < ends[q]) {
                    sums[q].x += memory.scaled_weights[j * COUNT + q] * value.x;
                    sums[q].y += memory.scaled_weights[j * COUNT + q] * value.y;
                }
            }
        }
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
            memory.span_sums[(span * COUNT + q) * MAX_HEAD_DIM + i] = sums[q].x;
            memory.span_sums[(span * COUNT + q) * MAX_HEAD_DIM + i + 1] = sums[q].y;
        }
    }
}

// Neighbouring rows of one sequence, which share what is read of the cache: `ends` are their numbers of positions.
template <u32 COUNT>
__device__ void attend(
    Memory& memory, const Keys& keys, const u32* values, const float* queries, u32 lane, const u32 (&ends)[COUNT],
    float* out)
{
    const Shape& shape = keys.shape;
    const u32 d = shape.head_dim, end = ends[COUNT - 1], kept = KEPT / COUNT;
    float greatest[COUNT], total[COUNT] = {}, sums[COUNT][COLUMNS_EACH] = {};
#pragma unroll
    for (u32 q = 0; q < COUNT; q += 1) {
        greatest[q] = __uint_as_float(0xff800000u);
    }
    for (u32 position = lane; position < end; position += LANES) {
        float scores[COUNT];
        keys.scores(queries, keys.vector(position), scores);
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
            if (position < kept) {
                memory.kept[position * COUNT + q] = scores[q];
            }
            greatest[q] = position < ends[q] ? greater(greatest[q], scores[q]) : greatest[q];
        }
    }
    greatest_over_block(memory, lane, greatest);
    for (u32 first = 0; first < end; first += LANES) {
        const u32 position = first + lane;
        // Beyond the end nothing is added, but something is read.
        const u32 vector = keys.vector(min_of(position, end - 1));
        float scores[COUNT];
        if (position >= kept && position < end) {
            keys.scores(queries, vector, scores);
        }
        memory.vectors[lane] = vector;
        const float scale = cache_scale(values, vector, d);
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
            const float score = position < kept ? memory.kept[position * COUNT + q] : scores[q];
            const float weight = position < ends[q] ? exp_f32(score - greatest[q]) : 0.0f;
            memory.weights[lane * COUNT + q] = weight;
            memory.scaled_weights[lane * COUNT + q] = weight * scale;
        }
        __syncthreads();
        sum_spans(memory, values, d, lane, first, ends, end);
        __syncthreads();
#pragma unroll 4
        for (u32 span = 0; span < SPANS; span += 1) {
#pragma unroll
            for (u32 q = 0; q < COUNT; q += 1) {
                if (first + span * SPAN >= ends[q]) {
                    continue;
                }
                total[q] += memory.span_totals[span * COUNT + q];
#pragma unroll
                for (u32 k = 0; k < COLUMNS_EACH; k += 1) {
                    if (k * LANES + lane < d) {
                        sums[q][k] += memory.span_sums[(span * COUNT + q) * MAX_HEAD_DIM + k * LANES + lane];
                    }
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 q = 0; q < COUNT; q += 1) {
#pragma unroll
        for (u32 k = 0; k < COLUMNS_EACH; k += 1) {
            const u32 i = k * LANES + lane;
            if (i < d) {
                out[(size_t)q * shape.heads * d + i] = sums[q][k] / total[q];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS_AT_ONCE) attention(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ qkv,          // [rows, (heads + 2 kv_heads) × head_dim]
    const u32* __restrict__ keys, const u32* __restrict__ values,
    const float* __restrict__ chunks,       // its twin's; nothing here
    float* __restrict__ out)                // [rows, heads × head_dim]
{
    __shared__ Memory memory;
    const Step step{step_words};
    const u32 head = blockIdx.x, first_row = blockIdx.y * QUERIES, lane = threadIdx.x;
    if (first_row >= step.rows()) {
        return;
    }
    const u32 count = min_of(step.rows() - first_row, QUERIES);
    const u32 d = shape.head_dim;
    for (u32 i = lane; i < count * d; i += LANES) {
        const u32 q = i / d, column = i % d;
        const size_t vector = (size_t)(first_row + q) * (shape.heads + 2 * shape.kv_heads) + head;
        memory.queries[q * MAX_HEAD_DIM + column] = qkv[vector * d + column];
    }
    __syncthreads();
    // Rows of one sequence follow each other.
    const u32 first_end = step.position(first_row) + 1;
    bool is_run = count == QUERIES;
    u32 ends[QUERIES];
#pragma unroll
    for (u32 q = 0; q < QUERIES; q += 1) {
        ends[q] = first_end + q;
        is_run = is_run && step.slot(first_row + q) == step.slot(first_row)
            && step.position(first_row + q) + 1 == ends[q];
    }
    const u32 kv_head = head / (shape.heads / shape.kv_heads);
    float* const own = out + ((size_t)first_row * shape.heads + head) * d;
    if (is_run) {
        const Keys run{shape, step, keys, kv_head, step.slot(first_row)};
        attend(memory, run, values, memory.queries, lane, ends, own);
        return;
    }
    for (u32 q = 0; q < count; q += 1) {
        const Keys alone{shape, step, keys, kv_head, step.slot(first_row + q)};
        const u32 end[1] = {step.position(first_row + q) + 1};
        attend(memory, alone, values, memory.queries + q * MAX_HEAD_DIM, lane, end, own + (size_t)q * shape.heads * d);
    }
}
