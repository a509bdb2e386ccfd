// Attention of a row in chunks of positions, in three launches: scores with the greatest of each chunk, sums of spans,
// which need the greatest of all, and the sums of these in order.

const u32 BLOCKS_AT_ONCE = 3;       // of a processor: how many registers a thread may have

const u32 SCORES = 1;
const u32 SUMS = 2;
const u32 FOLDS = 3;

// What is left for the next launch, of a row and head.
struct Left {
    float* scores;      // [positions]
    float* greatest;    // [chunks]
    float* totals;      // [spans]
    float* sums;        // [spans, head_dim]

    __device__ Left(const Shape& shape, float* chunks, u32 row, u32 head)
    {
        const size_t positions = (size_t)shape.chunks * shape.chunk_positions, spans = positions / SPAN;
        const size_t each = positions + shape.chunks + spans + spans * shape.head_dim;
        scores = chunks + ((size_t)row * shape.heads + head) * each;
        greatest = scores + positions;
        totals = greatest + shape.chunks;
        sums = totals + spans;
    }
};

__device__ __forceinline__ void score_chunk(
    Memory& memory, const Keys& keys, const float* query, const Left& left, u32 lane, u32 end)
{
    const u32 d = keys.shape.head_dim, begin = blockIdx.z * keys.shape.chunk_positions;
    for (u32 i = lane; i < d; i += LANES) {
        memory.queries[i] = query[i];
    }
    __syncthreads();
    float greatest[1] = {__uint_as_float(0xff800000u)};
    for (u32 position = begin + lane; position < min_of(end, begin + keys.shape.chunk_positions); position += LANES) {
        float score[1];
        keys.scores(memory.queries, keys.vector(position), score);
        left.scores[position] = score[0];
        greatest[0] = greater(greatest[0], score[0]);
    }
    greatest_over_block(memory, lane, greatest);
    if (lane == 0) {
        left.greatest[blockIdx.z] = greatest[0];
    }
}

__device__ __forceinline__ void sum_chunk(
    Memory& memory, const Keys& keys, const u32* values, const Left& left, u32 lane, u32 end)
{
    const Shape& shape = keys.shape;
    const u32 d = shape.head_dim, begin = blockIdx.z * shape.chunk_positions;
    float greatest[1] = {__uint_as_float(0xff800000u)};
    for (u32 chunk = lane; chunk * shape.chunk_positions < end; chunk += LANES) {
        greatest[0] = greater(greatest[0], left.greatest[chunk]);
    }
    greatest_over_block(memory, lane, greatest);
    const u32 ends[1] = {end};
    for (u32 first = begin; first < min_of(end, begin + shape.chunk_positions); first += LANES) {
        const u32 position = first + lane;
        const u32 vector = keys.vector(min_of(position, end - 1));
        const float weight = position < end ? exp_f32(left.scores[position] - greatest[0]) : 0.0f;
        memory.vectors[lane] = vector;
        memory.weights[lane] = weight;
        memory.scaled_weights[lane] = weight * cache_scale(values, vector, d);
        __syncthreads();
        sum_spans(memory, values, d, lane, first, ends, end);
        __syncthreads();
        for (u32 item = lane; item < SPANS * d; item += LANES) {
            const u32 span = item / d, i = item % d;
            if (first + span * SPAN < end) {
                left.sums[(size_t)(first / SPAN + span) * d + i] = memory.span_sums[span * MAX_HEAD_DIM + i];
            }
        }
        if (lane < SPANS && first + lane * SPAN < end) {
            left.totals[first / SPAN + lane] = memory.span_totals[lane];
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void fold_chunks(u32 d, const Left& left, u32 lane, u32 end, float* out)
{
    for (u32 i = lane; i < d; i += LANES) {
        float total = 0.0f, sum = 0.0f;
#pragma unroll 8
        for (u32 span = 0; span * SPAN < end; span += 1) {
            total += left.totals[span];
            sum += left.sums[(size_t)span * d + i];
        }
        out[i] = sum / total;
    }
}

__device__ __forceinline__ void attend_by_block(
    const Shape& shape, const Step& step, const float* qkv, const u32* keys, const u32* values, float* chunks,
    float* out)
{
    __shared__ Memory memory;
    const u32 head = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    if (row >= step.rows()) {
        return;
    }
    const u32 d = shape.head_dim, end = step.position(row) + 1;
    if (shape.mode != FOLDS && blockIdx.z * shape.chunk_positions >= end) {
        return;
    }
    const Left left(shape, chunks, row, head);
    const Keys own{shape, step, keys, head / (shape.heads / shape.kv_heads), step.slot(row)};
    if (shape.mode == SCORES) {
        const float* query = qkv + ((size_t)row * (shape.heads + 2 * shape.kv_heads) + head) * d;
        score_chunk(memory, own, query, left, lane, end);
    } else if (shape.mode == SUMS) {
        sum_chunk(memory, own, values, left, lane, end);
    } else {
        fold_chunks(d, left, lane, end, out + ((size_t)row * shape.heads + head) * d);
    }
}
