/** Tensors of a checkpoint, as its headers list them. */

import { SetunError } from "setun";
import type { Coding } from "./codes.js";

/** A tensor of a file. */
export interface Tensor {
  readonly name: string;
  /** Element type, by its name in the format. */
  readonly dtype: string;
  /** The outermost dimension first. */
  readonly shape: readonly number[];
  readonly bytes: number;
  /** Its bytes, which are not read; absent if they are compressed. */
  readonly data?: Blob;
  /** Where its codes are, if it has ternary codes. */
  readonly coding?: Coding;
  /** What is wrong with it. */
  readonly problems: readonly string[];
}

/** Contents of a file or of several. */
export interface Contents {
  readonly tensors: readonly Tensor[];
  /** Names of files that are stored inside. */
  readonly files: readonly string[];
}

/** Longest header that is read. */
export const MAX_HEADER_BYTES = 100_000_000;

/** Bits of an element. */
const BITS: Readonly<Record<string, number>> = {
  ...{ BOOL: 8, U8: 8, I8: 8, U16: 16, I16: 16, U32: 32, I32: 32, U64: 64, I64: 64 },
  ...{ F16: 16, BF16: 16, F32: 32, F64: 64, C64: 64, F8_E5M2: 8, F8_E4M3: 8, F8_E8M0: 8 },
  ...{ F6_E2M3: 6, F6_E3M2: 6, F4: 4 },
};

/** Size of a tensor whose elements follow one another; `undefined` for an unknown type. */
export function plainBytes(dtype: string, shape: readonly number[]): number | undefined {
  const bits = BITS[dtype];
  return bits === undefined ? undefined : (bits * elements(shape)) / 8;
}

/** Number of elements of a shape. */
export function elements(shape: readonly number[]): number {
  return shape.reduce((all, size) => all * size, 1);
}

export function bad(file: string, what: string): SetunError {
  return new SetunError("bad-checkpoint", `${file}: ${what}`);
}

/** The error of a file that ends within its header. */
export function cutOff(name: string, end: number, { size }: Blob): SetunError {
  return new SetunError(
    "truncated",
    `${name}: its header ends at byte ${end} or later, but the file has ${size} bytes`,
  );
}

/** A list of dimensions, or an error. */
export function checkedShape(file: string, tensor: string, given: unknown): number[] {
  const isShape = Array.isArray(given) && given.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (isShape && Number.isSafeInteger(elements(given))) return given;
  throw bad(
    file,
    `tensor "${tensor}": expected a list of sizes as its shape, found ${JSON.stringify(given)}`,
  );
}

/** Reads bytes of a file; an error names the end of a file that is too short. */
export async function readBytes(name: string, file: Blob, start: number, end: number): Promise<ArrayBuffer> {
  if (end > file.size) throw cutOff(name, end, file);
  return file.slice(start, end).arrayBuffer();
}

/** Parses JSON that must be an object. */
export function parseObject(name: string, bytes: ArrayBuffer): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw bad(name, `the header is not JSON: ${cause instanceof Error ? cause.message : cause}`);
  }
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
    return parsed as Record<string, unknown>;
  throw bad(name, "the header is not a JSON object");
}
