/** Ternary weights of a tensor by value, and what is odd about them. */

import { type Counts, countCodes, countFloats, type OnBytes } from "./codes.js";
import { elements, type Tensor } from "./tensor.js";

/** A share of weights of one sign beyond which a matrix is lopsided. */
const LOPSIDED = 0.6;

/** Whether a tensor may be ternary, so that it is read. */
export function isCounted({ coding, data, dtype, name, shape }: Tensor): boolean {
  if (data === undefined) return false;
  const isFloat = dtype === "F16" || dtype === "BF16";
  return (
    coding !== undefined || (isFloat && shape.length === 2 && /(layers|blk)[._]\d+\D.*weight$/.test(name))
  );
}

/** Counts the weights of a tensor by value; `undefined` for floats that are not ternary. */
export async function countTensor(
  { coding, data = new Blob() }: Tensor,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<Counts | undefined> {
  return coding === undefined
    ? countFloats(data, signal, onBytes)
    : countCodes(data, coding, signal, onBytes);
}

/** What looks wrong about the weights of a matrix. */
export function oddities({ minus, zero, plus, invalid }: Counts): string[] {
  const found: string[] = [];
  if (invalid > 0)
    found.push(`${invalid} codes stand for no weight: this is no ternary matrix, or it is damaged.`);
  const signed = minus + plus;
  if (signed === 0 && zero > 0) found.push("Every weight is 0.");
  else if (Math.max(minus, plus) > LOPSIDED * signed) found.push("Most of its weights have one sign.");
  return found;
}

/** Rows and columns of the matrix: a byte of a packed one has four rows, a word of MLX sixteen columns. */
export function matrixShape({ coding, dtype, shape }: Tensor): readonly number[] {
  const [rows = 0, columns = 0] = shape;
  if (coding === undefined || shape.length !== 2) return shape;
  if (dtype === "U8") return [4 * rows, columns];
  return dtype === "U32" ? [rows, 16 * columns] : shape;
}

/** Sum of counts. */
export function sum(all: readonly Counts[]): Counts {
  const total = { minus: 0, zero: 0, plus: 0, invalid: 0 };
  for (const counts of all) for (const key of KEYS) total[key] += counts[key];
  return total;
}

const KEYS = ["minus", "zero", "plus", "invalid"] as const;

/** Number of weights of all tensors. */
export function parameters(tensors: readonly Tensor[]): number {
  return tensors.reduce((all, tensor) => all + elements(matrixShape(tensor)), 0);
}
