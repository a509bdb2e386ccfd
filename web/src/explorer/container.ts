/** The manifest of a `.setun` container, as docs/formats.md describes it. */

import { base3, type Coding, everyByte } from "./codes.js";
import {
  bad,
  type Contents,
  checkedShape,
  elements,
  MAX_HEADER_BYTES,
  parseObject,
  plainBytes,
  readBytes,
  type Tensor,
} from "./tensor.js";

const HEADER_BYTES = 48;
const VERSION = 1;

/** A chunk as the manifest lists it. */
interface Chunk {
  readonly part?: number;
  readonly offset: number;
  readonly stored: number;
  readonly bytes: number;
  readonly encoding?: string;
}

/** A piece of the joined content; without `data` it is compressed or its file is missing. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly data: Blob | undefined;
}

/** Reads the first file of a container; `beside` has its other parts. */
export async function readContainer(
  name: string,
  file: Blob,
  beside: ReadonlyMap<string, Blob>,
): Promise<Contents> {
  const view = new DataView(await readBytes(name, file, 0, HEADER_BYTES));
  const version = view.getUint16(6, true);
  if (version !== VERSION) throw bad(name, `version ${version} of the container; version ${VERSION} is read`);
  const length = Number(view.getBigUint64(8, true));
  if (length > MAX_HEADER_BYTES)
    throw bad(name, `its manifest would have ${length} bytes, at most ${MAX_HEADER_BYTES}`);
  const manifest = parseObject(name, await readBytes(name, file, HEADER_BYTES, HEADER_BYTES + length));
  if (typeof manifest.part === "number")
    throw bad(name, `this is part ${manifest.part} of a container; choose its first file as well`);
  const [parts, files, listed] = ["parts", "files", "tensors"].map((field) => list(name, manifest, field));
  const blobs = (parts ?? []).map((part, at) => (at === 0 ? file : beside.get(String(part.file))));
  const pieces = piecesOf(list(name, manifest, "chunks") as unknown as Chunk[], blobs);
  let start = (files ?? []).reduce((sum, { bytes }) => sum + (typeof bytes === "number" ? bytes : 0), 0);
  const tensors = (listed ?? []).map((entry) => {
    const tensor = readTensor(name, entry, start, pieces);
    start += tensor.bytes;
    return tensor;
  });
  return { tensors, files: (files ?? []).map((entry) => String(entry.name)) };
}

function list(name: string, manifest: Record<string, unknown>, field: string): Record<string, unknown>[] {
  const found = manifest[field];
  if (Array.isArray(found) && found.every((entry) => typeof entry === "object" && entry !== null))
    return found;
  throw bad(name, `manifest: expected a list of objects as ${field}`);
}

function piecesOf(chunks: readonly Chunk[], blobs: readonly (Blob | undefined)[]): Piece[] {
  let start = 0;
  return chunks.map(({ part = 0, offset, stored, bytes, encoding }) => {
    const isPlain = encoding === undefined && stored === bytes;
    const blob = isPlain ? blobs[part] : undefined;
    const isWhole = blob !== undefined && offset + bytes <= blob.size;
    const piece = {
      start,
      end: start + bytes,
      data: isWhole ? blob.slice(offset, offset + bytes) : undefined,
    };
    start = piece.end;
    return piece;
  });
}

function readTensor(
  file: string,
  entry: Record<string, unknown>,
  start: number,
  pieces: readonly Piece[],
): Tensor {
  const [name, dtype] = [String(entry.name), String(entry.dtype)];
  const shape = checkedShape(file, name, entry.shape);
  const columns = shape.at(-1) ?? 1;
  const rows = columns === 0 ? 0 : elements(shape) / columns;
  const isTernary = dtype === "TRITS";
  const bytes = isTernary ? rows * Math.ceil(columns / 5) : plainBytes(dtype, shape);
  if (bytes === undefined) throw bad(file, `tensor "${name}": unknown type ${dtype}`);
  const data = joined(start, start + bytes, pieces);
  // A row's last byte is filled up with weights of 0.
  const coding: Coding | undefined = isTernary ? everyByte(base3, bytes * 5 - elements(shape)) : undefined;
  const problems =
    data === undefined ? ["Its bytes are compressed, or their file is missing or cut off."] : [];
  return { name, dtype, shape, bytes, problems, ...(data && { data }), ...(coding && { coding }) };
}

/** Some bytes of the content, if all of them can be read. */
function joined(start: number, end: number, pieces: readonly Piece[]): Blob | undefined {
  const found = pieces.filter((piece) => piece.start < end && piece.end > start);
  const parts = found.map((piece) =>
    piece.data?.slice(Math.max(0, start - piece.start), Math.min(piece.end, end) - piece.start),
  );
  const data = new Blob(parts.filter((part) => part !== undefined));
  return data.size === end - start ? data : undefined;
}
