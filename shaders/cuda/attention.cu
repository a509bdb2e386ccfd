// attention: each row over the positions of its sequence up to its own, span by span
//
// Twin:      crates/setun-ops/src/attention.rs
// Grid:      one block a head (x) and a row (y); a thread for each position of some spans

const u32 SPAN = 64;
const u32 SPANS = LANES / SPAN;         // at a time
const u32 MAX_HEAD_DIM = 256;
const u32 COLUMNS_EACH = MAX_HEAD_DIM / LANES;
const u32 KEPT = 4096;                  // scores that need not be computed a second time

struct Shape {
    u32 heads;
    u32 kv_heads;
    u32 head_dim;
    u32 block_positions;
    float inverse_sqrt;
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

    __device__ float score(const float* query, u32 vector) const
    {
        const u32 d = shape.head_dim;
        float sums[FOLD] = {};
        u32 first = 0;
        // As many columns as the fold has lanes.
        for (; d % FOLD == 0 && first < d; first += FOLD) {
            float key[FOLD];
            cache_sixteen(cache, vector, d, first, key);
#pragma unroll
            for (u32 i = 0; i < FOLD; i += 1) {
                sums[i] += query[first + i] * key[i];
            }
        }
        for (; first < d; first += FOLD) {
#pragma unroll
            for (u32 i = 0; i < FOLD; i += 1) {
                if (first + i < d) {
                    sums[i] += query[first + i] * cache_one(cache, vector, d, first + i);
                }
            }
        }
#pragma unroll
        for (u32 width = FOLD / 2; width > 0; width /= 2) {
            for (u32 i = 0; i < width; i += 1) {
                sums[i] += sums[i + width];
            }
        }
        return sums[0] * cache_scale(cache, vector, d) * shape.inverse_sqrt;
    }
};

// The greater of two scores; a NaN wins, so that it shows.
__device__ __forceinline__ float greater(float a, float b) { return a != a || a > b ? a : b; }

__device__ float greatest_score_over_block(u32 lane, float score)
{
    __shared__ float of_warps[LANES / 32];
#pragma unroll
    for (u32 width = 16; width > 0; width /= 2) {
        score = greater(score, __shfl_xor_sync(ALL, score, width));
    }
    if (lane % 32 == 0) {
        of_warps[lane / 32] = score;
    }
    __syncthreads();
    float greatest = of_warps[0];
    for (u32 warp = 1; warp < LANES / 32; warp += 1) {
        greatest = greater(greatest, of_warps[warp]);
    }
    return greatest;
}

extern "C" __global__ void __launch_bounds__(LANES, 2) attention(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ qkv,          // [rows, (heads + 2 kv_heads) × head_dim]
    const u32* __restrict__ keys, const u32* __restrict__ values,
    const float* __restrict__ chunks,       // its twin's; nothing here
    float* __restrict__ out)                // [rows, heads × head_dim]
{
    __shared__ float query[MAX_HEAD_DIM];
    __shared__ float kept[KEPT];
    __shared__ float weights[LANES], scaled_weights[LANES];
    __shared__ u32 vectors[LANES];
    __shared__ float span_totals[SPANS];
    __shared__ float span_sums[SPANS * MAX_HEAD_DIM];

    const Step step{step_words};
    const u32 head = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    if (row >= step.rows()) {
        return;
    }
    const u32 d = shape.head_dim;
    for (u32 i = lane; i < d; i += LANES) {
        query[i] = qkv[((size_t)row * (shape.heads + 2 * shape.kv_heads) + head) * d + i];
    }
    __syncthreads();
    const Keys own{shape, step, keys, head / (shape.heads / shape.kv_heads), step.slot(row)};
    const u32 last = step.position(row);
    float greatest = __uint_as_float(0xff800000u);
    for (u32 position = lane; position <= last; position += LANES) {
        const float score = own.score(query, own.vector(position));
        if (position < KEPT) {
            kept[position] = score;
        }
        greatest = greater(greatest, score);
    }
    greatest = greatest_score_over_block(lane, greatest);

    float total = 0.0f;
    float sums[COLUMNS_EACH] = {};
    for (u32 first = 0; first <= last; first += LANES) {
        const u32 position = first + lane;
        const u32 count = min_of(last + 1 - first, LANES);
        weights[lane] = 0.0f;
        if (lane < count) {
            const u32 vector = own.vector(position);
            const float score = position < KEPT ? kept[position] : own.score(query, vector);
            const float weight = exp_f32(score - greatest);
            vectors[lane] = vector;
            weights[lane] = weight;
            scaled_weights[lane] = weight * cache_scale(values, vector, d);
        }
        __syncthreads();
        if (lane < SPANS * FOLD) {
            float sum = 0.0f;
            for (u32 i = lane % FOLD; i < SPAN; i += FOLD) {
                sum += weights[lane / FOLD * SPAN + i];
            }
            sum = fold_lanes(sum);
            if (lane % FOLD == 0) {
                span_totals[lane / FOLD] = sum;
            }
        }
        const u32 pairs = (d + 1) / 2;
        for (u32 item = lane; item < SPANS * pairs; item += LANES) {
            const u32 span = item / pairs, i = item % pairs * 2;
            float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 8
            for (u32 j = span * SPAN; j < min_of((span + 1) * SPAN, count); j += 1) {
                const float2 value = cache_two(values, vectors[j], d, i);
                sum.x += scaled_weights[j] * value.x;
                sum.y += scaled_weights[j] * value.y;
            }
            span_sums[span * MAX_HEAD_DIM + i] = sum.x;
            span_sums[span * MAX_HEAD_DIM + i + 1] = sum.y;
        }
        __syncthreads();
        for (u32 span = 0; span * SPAN < count; span += 1) {
            total += span_totals[span];
#pragma unroll
            for (u32 k = 0; k < COLUMNS_EACH; k += 1) {
                if (k * LANES + lane < d) {
                    sums[k] += span_sums[span * MAX_HEAD_DIM + k * LANES + lane];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 k = 0; k < COLUMNS_EACH; k += 1) {
        const u32 i = k * LANES + lane;
        if (i < d) {
            out[((size_t)row * shape.heads + head) * d + i] = sums[k] / total;
        }
    }
}
