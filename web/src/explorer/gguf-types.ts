/** Types of GGUF tensors: their blocks, and where the codes of ternary ones are. */

import { base3Fraction, type Digits, type Run, twoBits } from "./codes.js";
import { elements } from "./tensor.js";

/** A tensor's type with its shape. */
export interface Block {
  readonly name: string;
  /** Size of the tensor, if the type is known. */
  readonly bytes: number | undefined;
  /** Period of the runs. */
  readonly blockBytes: number;
  /** Bytes that hold ternary codes. */
  readonly runs: readonly Run[];
  /** Bytes at the end of the tensor that hold no codes. */
  readonly tail: number;
  readonly problems: readonly string[];
}

/** Rows of blocks. */
interface Rows {
  readonly name: string;
  readonly elements: number;
  readonly bytes: number;
  /** Bytes before the blocks of a row. */
  readonly before?: number;
  readonly runs?: readonly Run[];
}

const run = (from: number, to: number, digits: Digits): Run => ({ from, to, digits });
const five = base3Fraction([0, 1, 2, 3, 4]);

/** Types that setun reads, by number. `I2_S` and `Q2_0` are below. */
const TYPES: Readonly<Record<number, Rows>> = {
  0: { name: "F32", elements: 1, bytes: 4 },
  1: { name: "F16", elements: 1, bytes: 2 },
  2: { name: "Q4_0", elements: 32, bytes: 18 },
  8: { name: "Q8_0", elements: 32, bytes: 34 },
  12: { name: "Q4_K", elements: 256, bytes: 144 },
  14: { name: "Q6_K", elements: 256, bytes: 210 },
  26: { name: "I32", elements: 1, bytes: 4 },
  30: { name: "BF16", elements: 1, bytes: 2 },
  34: {
    ...{ name: "TQ1_0", elements: 256, bytes: 54 },
    runs: [run(0, 48, five), run(48, 52, base3Fraction([0, 1, 2, 3]))],
  },
  35: { name: "TQ2_0", elements: 256, bytes: 66, runs: [run(0, 64, twoBits)] },
  134: {
    ...{ name: "IQ1_BN", elements: 64, bytes: 13, before: 2 },
    runs: [run(0, 12, five), run(12, 13, base3Fraction([1, 2, 3, 4]))],
  },
  135: { name: "IQ2_BN", elements: 64, bytes: 16, before: 4, runs: [run(0, 16, twoBits)] },
  142: { name: "PQ2_0", elements: 128, bytes: 34, runs: [run(2, 34, twoBits)] },
  143: {
    ...{ name: "PTQ1_0", elements: 128, bytes: 28 },
    runs: [run(0, 24, five), run(24, 26, base3Fraction([0, 1, 2, 3]))],
  },
};

/** `Q2_0` has blocks of two sizes under one number. */
const Q2_0 = 42;
const Q2_0_ROWS: readonly Rows[] = [
  { name: "Q2_0 (64)", elements: 64, bytes: 18, runs: [run(2, 18, twoBits)] },
  { name: "Q2_0 (128)", elements: 128, bytes: 34, runs: [run(2, 34, twoBits)] },
];

/** Codes over the whole tensor, then a scale. */
const I2_S = 36;
const I2_S_TAIL = 32;

/** Names of types that setun does not read. */
const OTHERS: Readonly<Record<number, string>> = { 3: "Q4_1", 38: "TL1", 39: "TL2 or MXFP4", 41: "Q1_0" };

/** The type of a number; `fits` says whether the next tensor begins where a size ends. */
export function blockOf(type: number, shape: readonly number[], fits: (bytes: number) => boolean): Block {
  if (type === I2_S) {
    const bytes = elements(shape) / 4 + I2_S_TAIL;
    return { name: "I2_S", bytes, blockBytes: 1, runs: [run(0, 1, twoBits)], tail: I2_S_TAIL, problems: [] };
  }
  const kinds = type === Q2_0 ? Q2_0_ROWS : [TYPES[type]].filter((kind) => kind !== undefined);
  const blocks = kinds.map((kind) => rowsOf(kind, shape));
  const block = blocks.find(({ bytes }) => bytes !== undefined && fits(bytes)) ?? blocks[0];
  if (block !== undefined) return block;
  const name = OTHERS[type] ?? `type ${type}`;
  const problems = [`setun does not read this type (${type}).`];
  return { name, bytes: undefined, blockBytes: 1, runs: [], tail: 0, problems };
}

function rowsOf(
  { name, elements: per, bytes, before = 0, runs = [] }: Rows,
  shape: readonly number[],
): Block {
  const columns = shape.at(-1) ?? 1;
  const blocks = columns / per;
  if (!Number.isInteger(blocks)) {
    const problems = [`Its rows of ${columns} are no whole blocks of ${per}.`];
    return { name, bytes: undefined, blockBytes: 1, runs: [], tail: 0, problems };
  }
  const rowBytes = before + blocks * bytes;
  const whole = columns === 0 ? 0 : (elements(shape) / columns) * rowBytes;
  if (before === 0) return { name, bytes: whole, blockBytes: bytes, runs, tail: 0, problems: [] };
  const starts = Array.from({ length: blocks }, (_, block) => before + block * bytes);
  const all = starts.flatMap((start) =>
    runs.map(({ from, to, digits }) => run(start + from, start + to, digits)),
  );
  return { name, bytes: whole, blockBytes: rowBytes, runs: all, tail: 0, problems: [] };
}
