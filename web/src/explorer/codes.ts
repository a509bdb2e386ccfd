/** Ternary codes in stored bytes, counted by a histogram of the bytes. */

/** Weights of a matrix by value. */
export interface Counts {
  readonly minus: number;
  readonly zero: number;
  readonly plus: number;
  /** Codes that stand for no weight. */
  readonly invalid: number;
}

/** Reads the codes of a byte: 0, 1, 2 for −1, 0, +1. */
export type Digits = (byte: number) => readonly number[];

/** Bytes of a block that hold codes. */
export interface Run {
  readonly from: number;
  readonly to: number;
  readonly digits: Digits;
}

/** Where the codes of a tensor are: blocks of equal length, in them runs of bytes. */
export interface Coding {
  readonly blockBytes: number;
  readonly runs: readonly Run[];
  /** Codes of weight 0 that only fill up rows. */
  readonly padding: number;
}

/** Bytes read at once. The page answers between two reads. */
const READ_BYTES = 4 << 20;

/** Magnitudes of a float matrix that is ternary: one for each shard of a training run. */
const MAX_MAGNITUDES = 6;

export const twoBits: Digits = (byte) => [byte & 3, (byte >> 2) & 3, (byte >> 4) & 3, byte >> 6];

/** Five codes in base 3, the first lowest. Bytes from 243 on stand for none. */
export const base3: Digits = (byte) =>
  byte < 243 ? [1, 3, 9, 27, 81].map((power) => Math.trunc(byte / power) % 3) : [3, 3, 3, 3, 3];

/** Codes in base 3 as GGUF's types store them: a fraction of 256, the first digit highest. */
export function base3Fraction(digits: readonly number[]): Digits {
  return (byte) => digits.map((digit) => ((((byte * 3 ** digit) & 255) * 3) >> 8) & 3);
}

/** Codes in every byte. */
export function everyByte(digits: Digits, padding = 0): Coding {
  return { blockBytes: 1, runs: [{ from: 0, to: 1, digits }], padding };
}

/** Called with each number of bytes that were read. */
export type OnBytes = (bytes: number) => void;

/** Counts the codes of a tensor. */
export async function countCodes(
  data: Blob,
  { blockBytes, runs, padding }: Coding,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<Counts> {
  const histograms = new Map(runs.map(({ digits }) => [digits, new Float64Array(256)]));
  const blocks = Math.max(1, Math.floor(READ_BYTES / blockBytes));
  for await (const buffer of portions(data, blocks * blockBytes, signal)) {
    const bytes = new Uint8Array(buffer);
    for (const { from, to, digits } of runs) {
      const histogram = histograms.get(digits) as Float64Array;
      for (let block = 0; block < bytes.length; block += blockBytes)
        addBytes(histogram, bytes, block + from, block + to);
    }
    onBytes(bytes.length);
  }
  const codes = [0, 0, 0, 0];
  for (const [digits, histogram] of histograms) {
    for (const [byte, count] of histogram.entries())
      if (count > 0) for (const code of digits(byte)) codes[code] = (codes[code] ?? 0) + count;
  }
  const [minus = 0, zero = 0, plus = 0, invalid = 0] = codes;
  return { minus, zero: zero - padding, plus, invalid };
}

function addBytes(histogram: Float64Array, bytes: Uint8Array, from: number, to: number): void {
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] as number;
    histogram[byte] = (histogram[byte] as number) + 1;
  }
}

/** Counts the signs of 16-bit floats; `undefined` if they have more magnitudes than a ternary matrix. */
export async function countFloats(
  data: Blob,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<Counts | undefined> {
  const histogram = new Float64Array(1 << 16);
  for await (const buffer of portions(data, READ_BYTES, signal)) {
    const values = new Uint16Array(buffer);
    for (const value of values) histogram[value] = (histogram[value] as number) + 1;
    onBytes(buffer.byteLength);
    if (magnitudes(histogram) > MAX_MAGNITUDES) return undefined;
  }
  const sum = (from: number, to: number) =>
    histogram.subarray(from, to).reduce((all, count) => all + count, 0);
  // Zero has two signs.
  const zero = sum(0, 1) + sum(0x8000, 0x8001);
  return { minus: sum(0x8001, 0x1_0000), zero, plus: sum(1, 0x8000), invalid: 0 };
}

/** Number of magnitudes other than zero. */
function magnitudes(histogram: Float64Array): number {
  let found = 0;
  for (let magnitude = 1; magnitude < 0x8000; magnitude += 1) {
    if (histogram[magnitude] || histogram[magnitude + 0x8000]) found += 1;
  }
  return found;
}

async function* portions(data: Blob, bytes: number, signal: AbortSignal): AsyncGenerator<ArrayBuffer> {
  for (let start = 0; start < data.size; start += bytes) {
    signal.throwIfAborted();
    yield await data.slice(start, start + bytes).arrayBuffer();
  }
}
