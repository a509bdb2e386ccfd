/** A model's bytes, as the engine asks for them. */

import { SetunError } from "./errors.js";
import type { LoadProgress } from "./messages.js";
import type { ModelFiles } from "./model-files.js";
import type { WasmFiles } from "./wasm.js";

/** Reads a model's files: once, and again where the engine has lost its device. Files open when they are read from. */
export class ModelBytes implements WasmFiles {
  /** Told as bytes arrive. */
  onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly #openFiles: (signal: AbortSignal) => ModelFiles;
  readonly #controller = new AbortController();
  #files: ModelFiles | undefined;
  #loadedBytes = 0;
  #failure: { readonly thrown: unknown } | undefined;

  constructor(openFiles: (signal: AbortSignal) => ModelFiles) {
    this.#openFiles = openFiles;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends what is being read, and all that would be read later. */
  abort(): void {
    this.#controller.abort();
  }

  async read(
    file: string,
    start: number | undefined,
    end: number | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined> {
    try {
      const range = start === undefined || end === undefined ? undefined : { start, end };
      return await this.#read(file, range, required);
    } catch (thrown) {
      this.#failure = { thrown };
      throw thrown;
    }
  }

  rewind(): void {
    this.close();
    this.#loadedBytes = 0;
    this.#failure = undefined;
  }

  close(): void {
    const files = this.#files;
    this.#files = undefined;
    // Nothing is wanted of these files any more, not even their complaints.
    files?.close().catch(() => undefined);
  }

  /** What {@link read} threw, if that is what an error of the engine tells of: it keeps the message alone. */
  explain(error: unknown): unknown {
    const isOfFiles = error instanceof Error && "code" in error && error.code === "network";
    return isOfFiles && this.#failure !== undefined ? this.#failure.thrown : error;
  }

  async #read(
    file: string,
    range: { start: number; end: number } | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined> {
    this.signal.throwIfAborted();
    this.#files ??= this.#openFiles(this.signal);
    const files = this.#files;
    const bytes = await files.read(file, range);
    this.signal.throwIfAborted();
    if (bytes === undefined) {
      if (required) throw new SetunError("not-found", `${files.where(file)}: no such file`);
      return undefined;
    }
    this.#loadedBytes += bytes.length;
    const totalBytes = files.totalBytes();
    const loadedBytes = this.#loadedBytes;
    this.onProgress?.({ loadedBytes, file, ...(totalBytes !== undefined && { totalBytes }) });
    return bytes;
  }
}
