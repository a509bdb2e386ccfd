// What a step does with the recurrent states of its sequences: crates/setun-gpu/src/step_inputs.rs writes it.

const STATE_WORDS: u32 = 6u;

fn state_sequences() -> u32 { return step[13]; }
fn state_word(sequence: u32, word: u32) -> u32 { return step[step[12] + sequence * STATE_WORDS + word]; }

// The state before the step is one less; zero where the sequence begins with the step.
fn loaded_state(sequence: u32) -> u32 { return state_word(sequence, 0u); }
// Positions that it has taken in.
fn base_of(sequence: u32) -> u32 { return state_word(sequence, 1u); }
// The sequence's rows are neighbours.
fn first_row_of(sequence: u32) -> u32 { return state_word(sequence, 2u); }
fn rows_of_sequence(sequence: u32) -> u32 { return state_word(sequence, 3u); }
// States that are written, and after how many positions, ascending.
fn stored_count(sequence: u32) -> u32 { return state_word(sequence, 4u); }
fn stored_state(sequence: u32, index: u32) -> u32 { return step[state_word(sequence, 5u) + 2u * index]; }
fn stored_after(sequence: u32, index: u32) -> u32 { return step[state_word(sequence, 5u) + 2u * index + 1u]; }
