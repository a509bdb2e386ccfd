//! Kinds of damage to a file.

use super::random::Random;

/// Damages a file in a few places, most of them near its beginning, where headers are.
pub(crate) fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.small(4) {
        change(bytes, random);
    }
}

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    const LONGEST_RUN: usize = 300;
    let length = bytes.len();
    let at = if random.below(2) == 0 { random.below(length) } else { random.small(length) };
    let run = at..length.min(at + 1 + random.small(LONGEST_RUN));
    match random.below(9) {
        0 => bytes.truncate(at),
        1 | 2 => overwrite(bytes, at, |byte| byte ^ (1 << (at % 8))),
        3 => {
            let byte = random.next().to_le_bytes()[0];
            overwrite(bytes, at, |_| byte);
        }
        4 => {
            let other = random.below(length);
            if at < length {
                bytes.swap(at, other);
            }
        }
        5 => drop(bytes.drain(run)),
        6 => {
            let copy = bytes[run].to_vec();
            bytes.splice(at..at, copy);
        }
        7 => {
            let copy = bytes[run].to_vec();
            let to = random.below(length);
            for (to, byte) in bytes[to..].iter_mut().zip(copy) {
                *to = byte;
            }
        }
        _ => number(bytes, at, random),
    }
}

/// Puts a number, in binary or where there are digits in decimal, that sizes are seldom.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    const NUMBERS: [u64; 8] =
        [0, 1, u64::MAX, 1 << 63, 1 << 31, u32::MAX as u64, u64::MAX / 2, 1 << 40];
    let number = NUMBERS[random.below(NUMBERS.len())];
    if bytes.get(at).is_some_and(u8::is_ascii_digit) {
        let digit = b'0' + number.to_le_bytes()[0] % 10;
        let digits = bytes[at..].iter_mut().take_while(|byte| byte.is_ascii_digit());
        digits.for_each(|byte| *byte = digit);
        return;
    }
    let width = [4, 8][random.below(2)];
    for (byte, part) in bytes[at..].iter_mut().zip(&number.to_le_bytes()[..width]) {
        *byte = *part;
    }
}

fn overwrite(bytes: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = change(*byte);
    }
}
