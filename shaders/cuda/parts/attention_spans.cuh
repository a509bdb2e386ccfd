// Scores of a block's queries with keys, and sums over spans of positions.

const u32 SPAN = 64;
const u32 SPANS = LANES / SPAN;     // at a time
const u32 MAX_HEAD_DIM = 256;

struct Shape {
    u32 heads;
    u32 kv_heads;
    u32 head_dim;
    u32 block_positions;
    float inverse_sqrt;
    u32 mode;
    u32 chunks;             // of positions, of each row
    u32 chunk_positions;    // whole spans
};

// Of a block.
struct Memory {
    alignas(16) float queries[QUERIES * MAX_HEAD_DIM];
    alignas(16) float weights[LANES * QUERIES];     // of some spans: [positions, rows]
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
