// What products with packed matrices share. A kernel has one matrix, or two `side`s of equal shape.
//
// Exact:     the integer sum, in any order
// Layout:    crates/setun-ops/src/ternary.rs: a block is 128 codes in four planes of 32 columns

const u32 BLOCK_WORDS = 8;            // words of a packed block: 128 codes of two bits
const u32 BLOCK_QUADS = 2;            // the same in vectors of four words
const u32 PLANES = 4;
const u32 PLANE_QUADS = 2;            // vectors of a plane's activations: 32 × int8
const u32 CODES = 0x03030303u;        // the lowest code of each of four bytes
const u32 ONES = 0x01010101u;         // code − 1 is the weight

const u32 BIAS_AFTER_SCALE = 1;
const u32 BIAS_BEFORE_SCALE = 2;

struct Shape {
    u32 outputs;
    u32 blocks;             // packed blocks of a row of a matrix
    u32 groups[2];          // scales of a row of each matrix
    u32 x_groups[2];        // and of a row of what it is multiplied with
    u32 grouped[2];         // whether either has several
    u32 runs[2];            // runs of columns of a row that have one scale of each
    u32 run_planes[2];      // planes of a run
    u32 w_runs[2];          // runs that share a scale of weights
    u32 x_runs[2];          // and one of activations
    u32 bias[2];
    u32 capacity;           // rows that x holds
    u32 wanted;
    u32 x_width;
    u32 words;              // of a row of codes of x
    u32 has_norm;
    float eps;
    u32 width;              // of a row of the result
    u32 first;              // its column that the first output goes to
    u32 residual;
};

struct Matrix {
    const uint4* quads;     // codes [outputs, blocks], then scales
    const float* bias;      // [outputs]
    u32 side;

    __device__ __forceinline__ const uint4* row(const Shape& shape, u32 output) const
    {
        return quads + (size_t)output * (shape.blocks * BLOCK_QUADS);
    }

    __device__ __forceinline__ float scale(const Shape& shape, u32 output, u32 group) const
    {
        const float* scales = (const float*)(quads + (size_t)shape.outputs * (shape.blocks * BLOCK_QUADS));
        return scales[output * shape.groups[side] + group];
    }
};

// An output of a matrix with one scale a row, from the sum of weights × activations.
__device__ __forceinline__ float scaled(const Shape& shape, const Matrix& matrix, u32 output, i32 sum, float x_scale)
{
    const float dot = (float)sum;
    const float w = matrix.scale(shape, output, 0);
    const u32 bias = shape.bias[matrix.side];
    if (bias == BIAS_BEFORE_SCALE) {
        return (dot * x_scale + matrix.bias[output]) * w;
    }
    const float y = dot * (x_scale * w);
    return bias == BIAS_AFTER_SCALE ? y + matrix.bias[output] : y;
}
