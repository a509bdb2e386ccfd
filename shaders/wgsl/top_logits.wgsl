// top_logits: the touched tokens with their logits, then the best others, best first
//
// Twin:      crates/setun-ops/src/top_logits.rs
// Order:     by (logit descending, id ascending), −0 and 0 being equal
// Grid:      one workgroup a requested row

const LANES: u32 = 256u;

struct Shape {
    vocab: u32,
    capacity: u32,  // tokens of a row of the result
    sorted: u32,    // a power of two, at least the capacity
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read_write> logits: array<u32>;      // [rows, vocab], bits
@group(0) @binding(3) var<storage, read_write> sorting: array<vec2<u32>>;  // [rows, sorted]: key, token
@group(0) @binding(4) var<storage, read_write> out: array<vec2<u32>>;   // [rows, capacity]: token, logit

const MAX_LOGIT: u32 = 0x5f800000u;     // 2^64
const MIN_LOGIT: u32 = 0xff800000u;    // −∞, in padding
const TAKEN: u32 = 0xffffffffu;          // in place of a touched token's logit
const DIGITS: u32 = 256u;

var<workgroup> counts: array<atomic<u32>, DIGITS>;
var<workgroup> chosen: vec2<u32>;        // a digit, and how many are still to be found below it
var<workgroup> places: atomic<u32>;
var<workgroup> lane_counts: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= wanted_rows() {
        return;
    }
    for (var i = lane; i < shape.capacity; i += LANES) {
        out[row * shape.capacity + i] = vec2<u32>(NOT_A_TOKEN, MIN_LOGIT);
    }
    for (var i = lane; i < shape.sorted; i += LANES) {
        sorting[row * shape.sorted + i] = vec2<u32>(0u, NOT_A_TOKEN);
    }
    var most = 0u;
    for (var token = lane; token < shape.vocab; token += LANES) {
        most = max(most, logits[row * shape.vocab + token] & 0x7fffffffu);
    }
    most = workgroup_word(lane, greatest_over_lanes(lane, most));
    if most > MAX_LOGIT {
        return;
    }
    let touched = request_touched(row);
    for (var i = lane; i < touched; i += LANES) {
        let token = request_token(row, i);
        out[row * shape.capacity + i] = vec2<u32>(token, logits[row * shape.vocab + token]);
        logits[row * shape.vocab + token] = TAKEN;
    }
    storageBarrier();
    let k = request_k(row);
    collect(row, k, lane);
    sort(row, lane);
    let best = logit_of(sorting[row * shape.sorted].x);
    for (var i = lane; i < k; i += LANES) {
        let found = sorting[row * shape.sorted + i];
        if request_asks(row, best, logit_of(found.x)) {
            out[row * shape.capacity + touched + i] = vec2<u32>(found.y, logits[row * shape.vocab + found.y]);
        }
    }
}

// A number that orders as the logit does; 0 for those that are taken.
fn key_of(bits: u32) -> u32 {
    if bits == TAKEN {
        return 0u;
    }
    if (bits & 0x80000000u) == 0u || bits == 0x80000000u {
        return (bits & 0x7fffffffu) + 0x80000000u;
    }
    return ~bits;
}

fn logit_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key - 0x80000000u, key >= 0x80000000u));
}

// The k greatest keys, the lowest ids among equal ones, in any order.
fn collect(row: u32, k: u32, lane: u32) {
    var prefix = 0u;
    var missing = k;
    for (var shift = 24u; ; shift -= 8u) {
        atomicStore(&counts[lane], 0u);
        workgroupBarrier();
        for (var token = lane; token < shape.vocab; token += LANES) {
            let key = key_of(logits[row * shape.vocab + token]);
            if shift == 24u || key >> (shift + 8u) == prefix >> (shift + 8u) {
                atomicAdd(&counts[(key >> shift) & 0xffu], 1u);
            }
        }
        workgroupBarrier();
        if lane == 0u {
            var digit = DIGITS - 1u;
            var left = missing;
            while digit > 0u && atomicLoad(&counts[digit]) < left {
                left -= atomicLoad(&counts[digit]);
                digit -= 1u;
            }
            chosen = vec2<u32>(digit, left);
        }
        let found = workgroupUniformLoad(&chosen);
        prefix |= found.x << shift;
        missing = found.y;
        if shift == 0u {
            break;
        }
    }
    // `prefix` is the least key that belongs to them, `missing` how many have just this one.
    let each = (shape.vocab + LANES - 1u) / LANES;
    let end = min((lane + 1u) * each, shape.vocab);
    var equal = 0u;
    for (var token = lane * each; token < end; token += 1u) {
        equal += select(0u, 1u, key_of(logits[row * shape.vocab + token]) == prefix);
    }
    lane_counts[lane] = equal;
    if lane == 0u {
        atomicStore(&places, 0u);
    }
    workgroupBarrier();
    var before = 0u;
    for (var i = 0u; i < lane; i += 1u) {
        before += lane_counts[i];
    }
    for (var token = lane * each; token < end; token += 1u) {
        let key = key_of(logits[row * shape.vocab + token]);
        let belongs = key > prefix || (key == prefix && before < missing);
        before += select(0u, 1u, key == prefix);
        if belongs {
            sorting[row * shape.sorted + atomicAdd(&places, 1u)] = vec2<u32>(key, token);
        }
    }
    storageBarrier();
}

// Bitonic, the greatest first.
fn sort(row: u32, lane: u32) {
    let first = row * shape.sorted;
    for (var run = 2u; run <= shape.sorted; run *= 2u) {
        for (var apart = run / 2u; apart > 0u; apart /= 2u) {
            for (var i = lane; i < shape.sorted / 2u; i += LANES) {
                let a = first + (i / apart) * apart * 2u + i % apart;
                let x = sorting[a];
                let y = sorting[a + apart];
                let ahead = x.x > y.x || (x.x == y.x && x.y < y.y);
                let descends = ((a - first) & run) == 0u;
                if ahead != descends {
                    sorting[a] = y;
                    sorting[a + apart] = x;
                }
            }
            storageBarrier();
        }
    }
}

fn workgroup_word(lane: u32, word: u32) -> u32 {
    lane_counts[lane] = word;
    return workgroupUniformLoad(&lane_counts[0]);
}
