// Attention of QUERIES rows by a block, over all positions. Rows of one sequence share what is read of the cache.

const u32 BLOCKS_AT_ONCE = 2;       // of a processor: how many registers a thread may have
const u32 KEPT = 4096;              // scores that need not be computed a second time
const u32 COLUMNS_EACH = (MAX_HEAD_DIM + LANES - 1) / LANES;

// Neighbouring rows of one sequence, which share what is read of the cache: `ends` are their numbers of positions.
template <u32 COUNT>
__device__ void attend(
    Memory& memory, float* kept, const Keys& keys, const u32* values, const float* queries, u32 lane,
    const u32 (&ends)[COUNT], float* out)
{
    const Shape& shape = keys.shape;
    const u32 d = shape.head_dim, end = ends[COUNT - 1], kept_positions = KEPT / COUNT;
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
            if (position < kept_positions) {
                kept[position * COUNT + q] = scores[q];
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
        if (position >= kept_positions && position < end) {
            keys.scores(queries, vector, scores);
        }
        memory.vectors[lane] = vector;
        const float scale = cache_scale(values, vector, d);
#pragma unroll
        for (u32 q = 0; q < COUNT; q += 1) {
            const float score = position < kept_positions ? kept[position * COUNT + q] : scores[q];
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

__device__ __forceinline__ void attend_by_block(
    const Shape& shape, const Step& step, const float* qkv, const u32* keys, const u32* values, float* chunks,
    float* out)
{
    __shared__ Memory memory;
    __shared__ float kept[KEPT];
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
        attend(memory, kept, run, values, memory.queries, lane, ends, own);
        return;
    }
    for (u32 q = 0; q < count; q += 1) {
        const Keys alone{shape, step, keys, kv_head, step.slot(first_row + q)};
        const u32 end[1] = {step.position(first_row + q) + 1};
        const float* query = memory.queries + q * MAX_HEAD_DIM;
        attend(memory, kept, alone, values, query, lane, end, own + (size_t)q * shape.heads * d);
    }
}
