// Products by groups of columns, of weights or of activations: lanes have the terms of a run each, then these are added up
// in ascending order. They go through the workgroup's memory, so no compiler fuses the two. Another matrix beside may have
// one scale a row, as have its activations: its terms are integers.

fn products(side: u32, first_output: u32, first_row: u32, lane: u32) -> array<f32, VALUES> {
    var values: array<f32, VALUES>;
    var dots: array<i32, VALUES>;
    let runs = shape.runs[side];
    let grouped = shape.grouped[side] != 0u;
    for (var first = 0u; first < runs; first += LANES_EACH) {
        put_terms(side, first_output + first_of(lane), first_row, min(first + lane % LANES_EACH, runs - 1u), lane);
        workgroupBarrier();
        for (var k = 0u; k < VALUES; k += 1u) {
            let at = partial_at(lane, k);
            for (var i = 0u; i < min(LANES_EACH, runs - first); i += 1u) {
                let term = partial[at.x + i][at.y];
                if grouped {
                    values[k] += bitcast<f32>(term);
                } else {
                    dots[k] += term;
                }
            }
        }
        workgroupBarrier();
    }
    for (var k = 0u; k < VALUES; k += 1u) {
        let row = first_row + row_of(lane, k) % COLUMNS;
        let addend = addend_at(row, first_output + output_of(lane, k));
        let output = min(first_output + output_of(lane, k), shape.outputs - 1u);
        if !grouped {
            values[k] = scaled(side, output, row, dots[k], addend);
        } else if shape.bias[side] == BIAS_AFTER_SCALE {
            values[k] = values[k] + bias_at(side, output) + addend;
        } else {
            values[k] += addend;
        }
    }
    return values;
}

// The terms of a run of four outputs and each row.
fn put_terms(side: u32, first_output: u32, first_row: u32, run: u32, lane: u32) {
    let rows = w_rows(side, first_output);
    let w = run_scales(side, first_output, run / shape.w_runs[side]);
    for (var column = 0u; column < COLUMNS; column += 1u) {
        let row = first_row + column;
        var terms = vec4<i32>(
            run_dot(side, rows.x, row, run), run_dot(side, rows.y, row, run),
            run_dot(side, rows.z, row, run), run_dot(side, rows.w, row, run));
        if shape.grouped[side] != 0u {
            terms = bitcast<vec4<i32>>(vec4<f32>(terms) * (x_scale(side, row, run / shape.x_runs[side]) * w));
        }
        partial[column * LANES + lane] = terms;
    }
}

fn run_scales(side: u32, first_output: u32, group: u32) -> vec4<f32> {
    var scales: vec4<f32>;
    for (var i = 0u; i < 4u; i += 1u) {
        scales[i] = w_scale(side, min(first_output + i, shape.outputs - 1u), group);
    }
    return scales;
}

fn run_dot(side: u32, first_quad: u32, row: u32, run: u32) -> i32 {
    let planes = shape.run_planes[side];
    var sum = 0;
    for (var plane = run * planes; plane < (run + 1u) * planes; plane += 1u) {
        for (var half = 0u; half < PLANE_QUADS; half += 1u) {
            let packed = w_quad(side, first_quad + plane / PLANES * BLOCK_QUADS + half);
            let acts = x_quad(side, row, plane * PLANE_QUADS + half);
            sum += dot_quads(codes_of(packed, plane % PLANES), acts) - dot_quads(vec4<u32>(ONES), acts);
        }
    }
    return sum;
}
