/** ONNX files: a module of its own turns them into a list of tensors, which the engine reads. */

import type { ConvertedFiles, ReadFile } from "./model-bytes.js";
import type { ByteRange } from "./model-files.js";
import type { StartedModule } from "./wasm-instance.js";

/**
 * Hand-written types of the generated module of the ONNX reader.
 *
 * `crates/setun-onnx-wasm` is the other side. `scripts/build.js` checks them against the generated declarations.
 */
export interface OnnxModule {
  default(input: { module_or_path: WebAssembly.Module }): Promise<unknown>;
  /** A reader of a file, of which nothing is read. */
  OnnxReader: new (
    file: string,
  ) => WasmOnnxReader;
}

/** Reads an ONNX file. It has the files that the engine requests of a list of tensors. */
export interface WasmOnnxReader {
  /** What to give before `name` is there: `[file, start, end, required]`, without a range for a whole file. */
  // biome-ignore lint/suspicious/noExplicitAny: the generated declarations have no tuples
  nextRead(name: string): any[] | undefined;
  /** Takes these bytes; `undefined` if the file does not exist. */
  give(bytes?: Uint8Array | null): void;
  /** Bytes of a file that the engine requests, or the whole file; `undefined` if there is none. */
  read(name: string, start?: number | null, end?: number | null): Uint8Array | undefined;
  free(): void;
}

/** The generated JavaScript of the module, and its WebAssembly code. */
export type OnnxBuild = StartedModule<OnnxModule>;

/** Beginning of the names of tensors that the module puts together. Other data the engine reads from their file. */
const TENSOR = "tensor:";

/** The files that the engine reads of one ONNX file. */
export class OnnxFiles implements ConvertedFiles {
  readonly #module: OnnxModule;
  readonly #file: string;
  readonly #readFile: ReadFile;
  #reader: WasmOnnxReader | undefined;
  /** Whether tensors were put together, of which the reader has each once. */
  #hasTensors = false;

  constructor(module: OnnxModule, file: string, readFile: ReadFile) {
    this.#module = module;
    this.#file = file;
    this.#readFile = readFile;
  }

  async read(name: string, range: ByteRange | undefined, required: boolean): Promise<Uint8Array | undefined> {
    const isTensor = name.startsWith(TENSOR);
    if (range !== undefined && !isTensor) return this.#readFile(name, range, required);
    this.#hasTensors ||= isTensor;
    this.#reader ??= new this.#module.OnnxReader(this.#file);
    const reader = this.#reader;
    for (;;) {
      const next = reader.nextRead(name);
      if (next === undefined) return reader.read(name, range?.start, range?.end);
      const [file, start, end, isRequired] = next;
      const part = start === undefined ? undefined : { start, end };
      reader.give(await this.#readFile(file, part, isRequired));
    }
  }

  rewind(): void {
    if (this.#hasTensors) this.free();
  }

  free(): void {
    this.#reader?.free();
    this.#reader = undefined;
    this.#hasTensors = false;
  }
}
