// Norm and gate of what the recurrence gave, in place; and the history of the states that are written.
// Grid:      one workgroup a value head (x) and a row (y); the first also a key head (x) and a sequence (y)

const LANES: u32 = 64u;

fn run(group: vec3<u32>, lane: u32) {
    let row = group.y;
    if row >= batch_rows() {
        return;
    }
    if row < state_sequences() && group.x < shape.key_heads {
        write_history(row, group.x, lane);
    }
    let key_head = group.x / group_heads();
    let index = group.x % group_heads();
    let width = shape.value_heads * shape.value_dim;
    let first = row * width + head_place(shape.tiled_output, key_head, index) * shape.value_dim;
    let z = row * input_width() + channels() + head_place(shape.tiled, key_head, index) * shape.value_dim;
    var squares = 0.0;
    for (var i = lane; i < shape.value_dim; i += LANES) {
        squares = fma(out[first + i], out[first + i], squares);
    }
    let inverse = 1.0 / sqrt(sum_over_lanes(lane, squares) / f32(shape.value_dim) + shape.eps);
    for (var i = lane; i < shape.value_dim; i += LANES) {
        out[first + i] = gated(x[z + i], out[first + i] * inverse * vector[i]);
    }
}

// A row of the ring is the last of this step that belongs there, or as it was. The last state has tentative rows too.
fn write_history(sequence: u32, key_head: u32, lane: u32) {
    let loaded = loaded_state(sequence);
    let first_row = first_row_of(sequence);
    let first = position_of(first_row);
    let stored = stored_count(sequence);
    for (var index = 0u; index < stored; index += 1u) {
        let state = stored_state(sequence, index);
        let all = first + rows_of_sequence(sequence);
        let end = select(stored_after(sequence, index), all, index + 1u == stored);
        for (var slot = 0u; slot < shape.ring; slot += 1u) {
            // The last position before the end with this slot; none is below zero.
            let back = (end + shape.ring - 1u - slot) % shape.ring + 1u;
            let is_new = end >= first + back;
            if !is_new && loaded == state + 1u {
                continue;
            }
            for (var number = lane; number < history_of_key_head(); number += LANES) {
                var value = 0.0;
                if is_new {
                    let row = first_row + end - back - first;
                    value = x[row * input_width() + input_column(key_head, number)];
                } else if loaded != 0u {
                    value = history[history_at(loaded - 1u, slot, key_head, number)];
                }
                history[history_at(state, slot, key_head, number)] = value;
            }
        }
    }
}
