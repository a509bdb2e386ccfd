// The recurrence: convolution, norms and the delta rule, row after row.
// Order:     rows i of a column go to part i / ROWS_EACH in ascending order, then parts ascend
// Grid:      one workgroup for COLUMNS columns (z) of a value head (x) of a sequence (y); PARTS lanes a column

const LANES: u32 = 128u;
const COLUMNS: u32 = 32u;
const PARTS: u32 = 4u;
const ROWS_EACH: u32 = (KEY_DIM + 3u) / 4u;
const PADDED: u32 = PARTS * ROWS_EACH;      // zeros beyond the key

var<workgroup> queries: array<f32, PADDED>;
var<workgroup> keys: array<f32, PADDED>;
var<workgroup> column_values: array<f32, COLUMNS>;
var<workgroup> projected: array<f32, LANES>;
var<workgroup> results: array<f32, LANES>;

struct Sequence {
    loaded: u32,        // one more than the state's number
    first: u32,         // position of the first row
    first_row: u32,
    key_head: u32,
}

fn run(group: vec3<u32>, lane: u32) {
    let sequence = group.y;
    if sequence >= state_sequences() {
        return;
    }
    let first_row = first_row_of(sequence);
    let key_head = group.x / group_heads();
    let index = group.x % group_heads();
    let own = Sequence(loaded_state(sequence), position_of(first_row), first_row, key_head);
    let end = own.first + rows_of_sequence(sequence);
    let first_column = group.z * COLUMNS;
    let column = first_column + lane % COLUMNS;
    let first_key = lane / COLUMNS * ROWS_EACH;
    let head = head_place(shape.tiled, key_head, index);
    let output = head_place(shape.tiled_output, key_head, index) * shape.value_dim + column;
    let is_column = column < shape.value_dim;
    let stored = stored_count(sequence);
    var state: array<f32, ROWS_EACH>;
    if own.loaded != 0u && is_column {
        for (var i = 0u; i < ROWS_EACH && first_key + i < KEY_DIM; i += 1u) {
            state[i] = matrices[matrix_at(own.loaded - 1u, group.x, first_key + i, column)];
        }
    }
    var next = 0u;
    let base = base_of(sequence);
    for (var position = base; position < end; position += 1u) {
        while next < stored && stored_after(sequence, next) == position {
            store_state(&state, stored_state(sequence, next), group.x, first_key, column);
            next += 1u;
        }
        let squares = take_in(own, position, index, first_column, lane);
        let query_factor = 1.0 / sqrt(squares.x + 1e-6);
        let key_factor = 1.0 / sqrt(squares.y + 1e-6);
        let numbers = 2u * KEY_DIM + group_heads() * shape.value_dim + index;
        let b = input_at(own, position, numbers);
        let a = input_at(own, position, numbers + group_heads());
        let decay = exp_f32(decays[head] * softplus(a + dt_bias[head]));
        let beta = sigmoid(b);
        var sum = 0.0;
        for (var i = 0u; i < ROWS_EACH; i += 1u) {
            state[i] *= decay;
            sum = fma(state[i], keys[first_key + i] * key_factor, sum);
        }
        projected[lane] = sum;
        workgroupBarrier();
        sum = 0.0;
        for (var part = 0u; part < PARTS; part += 1u) {
            sum += projected[part * COLUMNS + lane % COLUMNS];
        }
        let delta = (column_values[lane % COLUMNS] - sum) * beta;
        sum = 0.0;
        for (var i = 0u; i < ROWS_EACH; i += 1u) {
            let kept = fma(keys[first_key + i] * key_factor, delta, state[i]);
            state[i] = kept;
            sum = fma(kept, queries[first_key + i] * query_factor * shape.query_scale, sum);
        }
        results[lane] = sum;
        workgroupBarrier();
        if position >= own.first && lane < COLUMNS && is_column {
            sum = 0.0;
            for (var part = 0u; part < PARTS; part += 1u) {
                sum += results[part * COLUMNS + lane];
            }
            let row = first_row + position - own.first;
            out[row * shape.value_heads * shape.value_dim + output] = sum;
        }
    }
    while next < stored && stored_after(sequence, next) <= end {
        if stored_after(sequence, next) == end {
            store_state(&state, stored_state(sequence, next), group.x, first_key, column);
        }
        next += 1u;
    }
}

// Queries, keys and the values of these columns, and the sums of squares of queries and of keys.
fn take_in(own: Sequence, position: u32, index: u32, first_column: u32, lane: u32) -> vec4<f32> {
    var squares = vec4<f32>();
    for (var i = lane; i < 2u * KEY_DIM + COLUMNS; i += LANES) {
        if i < KEY_DIM {
            let query = channel(own, position, i);
            queries[i] = query;
            squares.x = fma(query, query, squares.x);
        } else if i < 2u * KEY_DIM {
            let key = channel(own, position, i);
            keys[i - KEY_DIM] = key;
            squares.y = fma(key, key, squares.y);
        } else if first_column + i - 2u * KEY_DIM < shape.value_dim {
            let values = 2u * KEY_DIM + index * shape.value_dim + first_column;
            column_values[i - 2u * KEY_DIM] = channel(own, position, values + i - 2u * KEY_DIM);
        }
    }
    return sum_four_over_lanes(lane, squares);
}

// A channel after its convolution.
fn channel(own: Sequence, position: u32, number: u32) -> f32 {
    let column = input_column(own.key_head, number);
    var sum = 0.0;
    let before = min(shape.kernel - 1u, position);
    for (var back = before + 1u; back > 0u; back -= 1u) {
        let tap = vector[(shape.kernel - back) * channels() + column];
        sum = fma(input_at(own, position + 1u - back, number), tap, sum);
    }
    return gated(sum, 1.0);
}

// A number of a row of this step, or of one before it.
fn input_at(own: Sequence, position: u32, number: u32) -> f32 {
    if position >= own.first {
        let row = own.first_row + position - own.first;
        return x[row * input_width() + input_column(own.key_head, number)];
    }
    if own.loaded == 0u {
        return 0.0;
    }
    return history[history_at(own.loaded - 1u, position % shape.ring, own.key_head, number)];
}

fn matrix_at(state: u32, place: u32, key: u32, column: u32) -> u32 {
    return ((state * shape.value_heads + place) * KEY_DIM + key) * shape.value_dim + column;
}

fn store_state(state: ptr<function, array<f32, ROWS_EACH>>, number: u32, place: u32, first_key: u32, column: u32) {
    for (var i = 0u; i < ROWS_EACH && first_key + i < KEY_DIM && column < shape.value_dim; i += 1u) {
        matrices[matrix_at(number, place, first_key + i, column)] = (*state)[i];
    }
}
