/** The header of a safetensors file: 8 bytes of length, then JSON. */

import { type Coding, everyByte, twoBits } from "./codes.js";
import {
  bad,
  type Contents,
  checkedShape,
  MAX_HEADER_BYTES,
  parseObject,
  plainBytes,
  readBytes,
  type Tensor,
} from "./tensor.js";

/** Metadata keys of files that a lone file carries. */
const CARRIED = "setun.file/";

export async function readSafetensors(name: string, file: Blob): Promise<Contents> {
  const length = Number(new DataView(await readBytes(name, file, 0, 8)).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES)
    throw bad(
      name,
      `no safetensors file: its header would have ${length} bytes, at most ${MAX_HEADER_BYTES}`,
    );
  const dataStart = 8 + length;
  const { __metadata__: metadata, ...entries } = parseObject(name, await readBytes(name, file, 8, dataStart));
  const names = new Set(Object.keys(entries));
  const data = file.slice(dataStart);
  const tensors = Object.entries(entries).map(([tensor, entry]) =>
    readEntry(name, data, tensor, entry, names),
  );
  const files = Object.keys(metadata ?? {}).filter((key) => key.startsWith(CARRIED));
  return { tensors, files: files.map((key) => key.slice(CARRIED.length)) };
}

function readEntry(
  file: string,
  data: Blob,
  name: string,
  given: unknown,
  names: ReadonlySet<string>,
): Tensor {
  const { dtype, shape: givenShape, data_offsets: offsets } = (given ?? {}) as Record<string, unknown>;
  if (typeof dtype !== "string")
    throw bad(file, `tensor "${name}": expected a text as dtype, found ${JSON.stringify(dtype)}`);
  const shape = checkedShape(file, name, givenShape);
  const [start, end] = Array.isArray(offsets) ? offsets : [];
  const areOffsets = Number.isSafeInteger(start) && Number.isSafeInteger(end) && 0 <= start && start <= end;
  if (!areOffsets)
    throw bad(file, `tensor "${name}": expected two data_offsets, found ${JSON.stringify(offsets)}`);
  const bytes = end - start;
  const problems: string[] = [];
  const expected = plainBytes(dtype, shape);
  if (expected === undefined) problems.push(`Unknown type ${dtype}.`);
  else if (expected !== bytes) problems.push(`It has ${bytes} bytes; its type and shape need ${expected}.`);
  if (end > data.size)
    problems.push(`The file is cut off: the tensor ends ${end - data.size} bytes behind its end.`);
  const coding = codingOf(name, dtype, shape, names);
  if (coding !== undefined && dtype === "U8" && !names.has(`${name}_scale`))
    problems.push("It has no weight_scale beside it.");
  return {
    ...{ name, dtype, shape, bytes, problems },
    ...(end <= data.size && { data: data.slice(start, end) }),
    ...(coding !== undefined && { coding }),
  };
}

/** Packed weights: `U8 [out/4, in]` of Hugging Face's BitNet, `U32 [out, in/16]` of MLX. */
function codingOf(
  name: string,
  dtype: string,
  shape: readonly number[],
  names: ReadonlySet<string>,
): Coding | undefined {
  if (!name.endsWith(".weight") || shape.length !== 2) return undefined;
  const isMlx = dtype === "U32" && names.has(name.replace(/weight$/, "scales"));
  return dtype === "U8" || isMlx ? everyByte(twoBits) : undefined;
}
