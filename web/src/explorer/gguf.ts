/** The header of a GGUF file: metadata, then tensors with their types and offsets. */

import { type Block, blockOf } from "./gguf-types.js";
import { bad, type Contents, checkedShape, cutOff, MAX_HEADER_BYTES, type Tensor } from "./tensor.js";

/** Bytes of the file that are read first. */
const FIRST_BYTES = 1 << 20;

/** Bytes of a scalar value by its type's number; 8 is a text, 9 a list. */
const VALUE_BYTES: readonly number[] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const [UINT32, TEXT, LIST] = [4, 8, 9];

const DEFAULT_ALIGNMENT = 32;

/** The header goes on behind the bytes that were read. */
class Short extends Error {}

/** A tensor as the header has it. */
interface Listed {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: number;
  readonly offset: number;
}

export async function readGguf(name: string, file: Blob): Promise<Contents> {
  for (let bytes = FIRST_BYTES; ; bytes *= 4) {
    const length = Math.min(bytes, file.size);
    try {
      const header = new Header(name, await file.slice(0, length).arrayBuffer());
      return {
        tensors: header.tensors(file),
        files: ["config.json", ...(header.hasTokenizer ? ["tokenizer.json"] : [])],
      };
    } catch (error) {
      if (!(error instanceof Short)) throw error;
      if (length === file.size) throw cutOff(name, length + 1, file);
      if (length >= MAX_HEADER_BYTES) throw bad(name, `the header has more than ${MAX_HEADER_BYTES} bytes`);
    }
  }
}

class Header {
  readonly #name: string;
  readonly #view: DataView;
  readonly #listed: Listed[] = [];
  readonly #alignment: number;
  #at = 0;
  hasTokenizer = false;

  constructor(name: string, bytes: ArrayBuffer) {
    this.#name = name;
    this.#view = new DataView(bytes);
    if (this.#number(4) !== 0x4655_4747) throw bad(name, "no GGUF file: it does not begin with GGUF");
    const version = this.#number(4);
    if (version !== 2 && version !== 3) throw bad(name, `GGUF version ${version}; versions 2 and 3 are read`);
    const [tensors, values] = [this.#number(8), this.#number(8)];
    this.#alignment = this.#readValues(values);
    for (let at = 0; at < tensors; at += 1) this.#listed.push(this.#readTensor());
  }

  /** The tensors with their bytes in `file`. */
  tensors(file: Blob): Tensor[] {
    const start = this.#aligned(this.#at);
    const offsets = this.#listed.map(({ offset }) => offset).toSorted((one, other) => one - other);
    return this.#listed.map(({ name, shape, type, offset }) => {
      const next = offsets.find((other) => other > offset) ?? file.size - start;
      const block = blockOf(type, shape, (bytes) => this.#aligned(offset + bytes) === this.#aligned(next));
      const bytes = block.bytes ?? next - offset;
      const end = start + offset + bytes;
      const isWhole = end <= file.size;
      const problems = [...block.problems];
      if (!isWhole)
        problems.push(`The file is cut off: the tensor ends ${end - file.size} bytes behind its end.`);
      return {
        ...{ name, shape, bytes, problems, dtype: block.name },
        ...(isWhole && { data: file.slice(start + offset, end - block.tail) }),
        ...codingOf(block),
      };
    });
  }

  #readValues(count: number): number {
    let alignment = DEFAULT_ALIGNMENT;
    for (let at = 0; at < count; at += 1) {
      const key = this.#text();
      const type = this.#number(4);
      if (key === "tokenizer.ggml.tokens") this.hasTokenizer = true;
      if (key === "general.alignment" && type === UINT32) alignment = this.#number(4);
      else this.#skip(type);
    }
    if (alignment > 0 && alignment % 8 === 0) return alignment;
    throw bad(this.#name, `general.alignment: expected a multiple of 8, found ${alignment}`);
  }

  #readTensor(): Listed {
    const name = this.#text();
    const rank = this.#number(4);
    if (rank < 1 || rank > 4)
      throw bad(this.#name, `tensor "${name}" has ${rank} dimensions, expected 1 to 4`);
    const shape = Array.from({ length: rank }, () => this.#number(8)).reverse();
    return {
      name,
      shape: checkedShape(this.#name, name, shape),
      type: this.#number(4),
      offset: this.#number(8),
    };
  }

  #skip(type: number): void {
    if (type === TEXT) this.#take(this.#number(8));
    else if (type === LIST) this.#skipList();
    else this.#take(this.#valueBytes(type));
  }

  #skipList(): void {
    const [type, count] = [this.#number(4), this.#number(8)];
    if (type === TEXT || type === LIST) for (let at = 0; at < count; at += 1) this.#skip(type);
    else this.#take(count * this.#valueBytes(type));
  }

  #valueBytes(type: number): number {
    const bytes = VALUE_BYTES[type];
    if (bytes) return bytes;
    throw bad(this.#name, `byte ${this.#at}: expected the type of a value, found ${type}`);
  }

  #text(): string {
    const length = this.#number(8);
    const start = this.#take(length);
    return new TextDecoder().decode(new Uint8Array(this.#view.buffer, start, length));
  }

  #number(bytes: 4 | 8): number {
    const at = this.#take(bytes);
    return bytes === 4 ? this.#view.getUint32(at, true) : Number(this.#view.getBigUint64(at, true));
  }

  /** Passes some bytes, and returns where they begin. */
  #take(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#view.byteLength) throw new Short();
    this.#at = at + bytes;
    return at;
  }

  #aligned(bytes: number): number {
    return Math.ceil(bytes / this.#alignment) * this.#alignment;
  }
}

function codingOf({ runs, blockBytes }: Block): Pick<Tensor, "coding"> {
  return runs.length === 0 ? {} : { coding: { blockBytes, runs, padding: 0 } };
}
