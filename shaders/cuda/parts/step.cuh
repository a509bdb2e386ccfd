// The inputs of a step. Its first words say where the rest lies; crates/setun-gpu/src/step_inputs.rs writes it.

const u32 NOT_A_TOKEN = 0xffffffffu;

struct Step {
    const u32* words;

    __device__ u32 rows() const { return words[0]; }
    __device__ u32 wanted_rows() const { return words[1]; }
    __device__ u32 token(u32 row) const { return words[words[2] + row]; }
    __device__ u32 position(u32 row) const { return words[words[3] + row]; }
    __device__ u32 slot(u32 row) const { return words[words[4] + row]; }
    __device__ u32 wanted_row(u32 index) const { return words[words[5] + index]; }
    __device__ u32 block(u32 slot, u32 index) const { return words[words[6] + slot * words[7] + index]; }

    // Rows of a buffer that holds the wanted ones, or all.
    __device__ u32 rows_of(u32 wanted) const { return wanted != 0 ? wanted_rows() : rows(); }

    // What a requested row asks of `top_logits`: k, whether and how far within, then its touched tokens.
    __device__ const u32* request(u32 row) const { return words + words[8] + row * words[9]; }
};
