// argmax: the greedy token of each requested row, and in the step's words what the next step takes in
//
// Twin:      crates/setun-ops/src/argmax.rs
// Order:     by (logit descending, id ascending), −0 and 0 being equal
// Grid:      one workgroup for SLICE tokens (x) of a requested row (y); then one a requested row (x), which folds them

const LANES: u32 = 256u;

struct Shape {
    vocab: u32,
    slices: u32,    // of the vocabulary
    touched: u32,   // room for touched tokens
    biases: u32,    // room for biases
    folds: u32,     // 0: a slice; 1: the slices of a row
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read_write> logits: array<u32>;          // [rows, vocab], bits
@group(0) @binding(3) var<storage, read_write> of_slices: array<vec2<u32>>; // [rows, slices]: key, token
@group(0) @binding(4) var<storage, read_write> chosen: array<u32>;          // [steps, rows of this step]

const NOT_FINITE_KEY: u32 = 0xffffffffu;
const NO_PENALTY: u32 = 0x3f800000u;    // 1

// The words of a request: the penalty, how many tokens are touched, how many biases there are, how many steps have
// been made; then the touched tokens, the biases' tokens and the biases.
fn choice_at(row: u32) -> u32 { return step[10] + row * step[11]; }
fn touched_at(row: u32) -> u32 { return choice_at(row) + 4u; }
fn biased_at(row: u32) -> u32 { return touched_at(row) + shape.touched; }

// No barrier depends on the step's words, which may be written here.
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if shape.folds == 0u {
        argmax_of_slice(group.y, group.x, lane);
    } else {
        fold_slices(group.x, lane);
    }
}

fn argmax_of_slice(row: u32, slice: u32, lane: u32) {
    let first = slice * SLICE;
    let end = min(first + SLICE, shape.vocab);
    let own = row * shape.vocab;
    let is_there = row < wanted_rows();
    let touched = select(0u, step[choice_at(row) + 1u], is_there);
    for (var i = lane; i < touched; i += LANES) {
        let token = step[touched_at(row) + i];
        if token >= first && token < end {
            logits[own + token] = penalised(logits[own + token], step[choice_at(row)]);
        }
    }
    storageBarrier();
    let biases = select(0u, step[choice_at(row) + 2u], is_there);
    for (var i = lane; i < biases; i += LANES) {
        let token = step[biased_at(row) + i];
        if token >= first && token < end && is_finite(logits[own + token]) {
            let bias = bitcast<f32>(step[biased_at(row) + shape.biases + i]);
            logits[own + token] = bitcast<u32>(bitcast<f32>(logits[own + token]) + bias);
        }
    }
    storageBarrier();
    var best = vec2<u32>(0u, NOT_A_TOKEN);
    for (var token = first + lane; token < end; token += LANES) {
        best = better(best, vec2<u32>(key_of(logits[own + token]), token));
    }
    best = best_over_lanes(lane, best);
    if lane == 0u {
        of_slices[row * shape.slices + slice] = best;
    }
}

fn fold_slices(row: u32, lane: u32) {
    var best = vec2<u32>(0u, NOT_A_TOKEN);
    for (var i = lane; i < shape.slices; i += LANES) {
        best = better(best, of_slices[row * shape.slices + i]);
    }
    best = best_over_lanes(lane, best);
    let token = select(best.y, NOT_A_TOKEN, best.x == NOT_FINITE_KEY);
    let is_there = row < wanted_rows();
    let touched = select(0u, step[choice_at(row) + 1u], is_there);
    var is_known = 0u;
    for (var i = lane; i < touched; i += LANES) {
        is_known = max(is_known, select(0u, 1u, step[touched_at(row) + i] == token));
    }
    is_known = greatest_over_lanes(lane, is_known);
    if lane == 0u && is_there {
        next_step(row, token, is_known != 0u);
    }
}

// What the next step takes in.
fn next_step(row: u32, token: u32, is_known: bool) {
    let request = choice_at(row);
    let made = step[request + 3u];
    chosen[made * wanted_rows() + row] = token;
    step[request + 3u] = made + 1u;
    let batch_row = wanted_row(row);
    step[step[3] + batch_row] += 1u;
    if token == NOT_A_TOKEN {
        return;
    }
    step[step[2] + batch_row] = token;
    let touched = step[request + 1u];
    if step[request] != NO_PENALTY && !is_known && touched < shape.touched {
        step[touched_at(row) + touched] = token;
        step[request + 1u] = touched + 1u;
    }
}

fn is_finite(bits: u32) -> bool { return (bits & 0x7fffffffu) < 0x7f800000u; }

// A number that orders as the logit does; 0 is less than any.
fn key_of(bits: u32) -> u32 {
    if !is_finite(bits) {
        return NOT_FINITE_KEY;
    }
    if (bits & 0x80000000u) == 0u || bits == 0x80000000u {
        return (bits & 0x7fffffffu) + 0x80000000u;
    }
    return ~bits;
}

fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
}

fn best_over_lanes(lane: u32, own: vec2<u32>) -> vec2<u32> {
    let key = greatest_over_lanes(lane, own.x);
    return vec2<u32>(key, ~greatest_over_lanes(lane, select(0u, ~own.y, own.x == key)));
}

fn penalised(bits: u32, penalty: u32) -> u32 {
    if !is_finite(bits) || (bits & 0x7fffffffu) == 0u {
        return bits;
    }
    if (bits & 0x80000000u) != 0u {
        return bitcast<u32>(bitcast<f32>(bits) * bitcast<f32>(penalty));
    }
    return quotient(bits, penalty);
}

// The nearest of two positive numbers' quotient, bit by bit, as division may be some units off; `b` is normal.
// Subnormal quotients become zero.
fn quotient(a: u32, b: u32) -> u32 {
    var exponent = i32(a >> 23u) - i32(b >> 23u) + 127;
    var rest = (a & 0x7fffffu) | 0x800000u;
    let divisor = (b & 0x7fffffu) | 0x800000u;
    if (a >> 23u) == 0u {
        let shift = countLeadingZeros(a) - 8u;
        rest = a << shift;
        exponent += 1 - i32(shift);
    }
    if rest < divisor {
        rest <<= 1u;
        exponent -= 1;
    }
    var digits = 0u;
    for (var i = 0u; i < 24u; i += 1u) {
        let fits = rest >= divisor;
        digits = (digits << 1u) | select(0u, 1u, fits);
        rest = (rest - select(0u, divisor, fits)) << 1u;
    }
    // `rest` has been doubled, so it compares with the divisor as what is left does with one half.
    if rest > divisor || (rest == divisor && (digits & 1u) != 0u) {
        digits += 1u;
    }
    if exponent < 1 {
        return 0u;
    }
    return min((u32(exponent) << 23u) + digits - 0x800000u, 0x7f800000u);
}
