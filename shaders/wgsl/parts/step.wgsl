// The inputs of a step: `step`, array<u32> at binding 1. Its first words say where the rest lies;
// crates/setun-gpu/src/step_inputs.rs writes it.

const NOT_A_TOKEN: u32 = 0xffffffffu;

fn batch_rows() -> u32 { return step[0]; }
fn wanted_rows() -> u32 { return step[1]; }
fn token_of(row: u32) -> u32 { return step[step[2] + row]; }
fn position_of(row: u32) -> u32 { return step[step[3] + row]; }
fn slot_of(row: u32) -> u32 { return step[step[4] + row]; }
fn wanted_row(index: u32) -> u32 { return step[step[5] + index]; }
fn block_of(slot: u32, index: u32) -> u32 { return step[step[6] + slot * step[7] + index]; }

// Rows of a buffer that holds the wanted ones, or all.
fn rows_of(wanted: u32) -> u32 { return select(batch_rows(), wanted_rows(), wanted != 0u); }

// What a requested row asks of `top_logits`: k, whether and how far within, then its touched tokens.
fn request_at(row: u32) -> u32 { return step[8] + row * step[9]; }
fn request_k(row: u32) -> u32 { return step[request_at(row)]; }
fn request_touched(row: u32) -> u32 { return step[request_at(row) + 3u]; }
fn request_token(row: u32, index: u32) -> u32 { return step[request_at(row) + 4u + index]; }

fn request_asks(row: u32, best: f32, logit: f32) -> bool {
    return step[request_at(row) + 1u] == 0u || logit >= best - bitcast<f32>(step[request_at(row) + 2u]);
}
