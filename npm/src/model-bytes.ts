/** A model's bytes, as the engine asks for them. */

import { FileChangedError } from "./download/errors.js";
import { SetunError } from "./errors.js";
import type { ModelFiles } from "./model-files.js";
import type { ModelEntry } from "./model-layout.js";
import type { ModelContents, OpenModel } from "./open-model.js";
import type { LoadProgress } from "./protocol.js";
import type { WasmFiles } from "./wasm.js";

/** What is being read, or may be read again. */
export interface ReadOperation {
  /** Told as bytes arrive. */
  onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly isAborted: boolean;
  /** Ends what is being read, and all that would be read later. */
  abort(): void;
  /** Resolves once all that is to be kept is whole, checked and named. */
  commit(): Promise<void>;
  /** Whether an error says that the files became others while they were read: then they can be read once more. */
  hasChanged(thrown: unknown): boolean;
  /** Closes all, and ends what is still coming or waited for. `thrown` is why. */
  end(thrown?: unknown): Promise<void>;
  /** What reading threw, if that is what an error of the engine tells of: it keeps the message alone. */
  originalError(error: unknown): unknown;
}

/** Reads a model's files: once, and again where the engine has lost its device. Files open when they are read from. */
export class ModelBytes implements WasmFiles, ReadOperation {
  onProgress: ((progress: LoadProgress) => void) | undefined;
  /** Told before bytes are read. */
  onRead: (() => void) | undefined;
  readonly #openModel: (signal: AbortSignal) => Promise<OpenModel>;
  readonly #controller = new AbortController();
  #model: Promise<OpenModel> | undefined;
  #contents: Promise<ModelContents> | undefined;
  #files: ModelFiles | undefined;
  #loadedBytes = 0;
  #failure: { readonly thrown: unknown } | undefined;

  constructor(openModel: (signal: AbortSignal) => Promise<OpenModel>) {
    this.#openModel = openModel;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.signal.aborted;
  }

  abort(): void {
    this.#controller.abort();
  }

  /** Finds out what there is to open. */
  async start(): Promise<ModelEntry> {
    this.signal.throwIfAborted();
    this.onRead?.();
    this.rewind();
    const model = await this.#open();
    this.#contents = model.open();
    const { entry } = await this.#contents;
    this.signal.throwIfAborted();
    return entry;
  }

  /** What was begun is to go on coming, although nobody reads it at the moment. */
  async prefetch(): Promise<void> {
    const model = await this.#open();
    if (model.reportsProgress) model.onProgress = (progress) => this.onProgress?.(progress);
    model.prefetch();
  }

  async commit(): Promise<void> {
    const model = await this.#open();
    await model.commit();
    this.signal.throwIfAborted();
    // After this, files are read from where they are kept.
    this.#contents = undefined;
  }

  hasChanged(thrown: unknown): boolean {
    return (
      !this.signal.aborted &&
      (thrown instanceof FileChangedError || this.originalError(thrown) instanceof FileChangedError)
    );
  }

  async read(
    file: string,
    start: number | undefined,
    end: number | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined> {
    this.onRead?.();
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

  /** Lets go of connections and handles until more is read. */
  async pause(): Promise<void> {
    await this.#files?.close().catch(() => undefined);
  }

  async end(thrown?: unknown): Promise<void> {
    this.close();
    if (isInvalidModel(thrown)) await (await this.#model?.catch(() => undefined))?.discard();
    this.abort();
    await (await this.#model?.catch(() => undefined))?.close();
  }

  originalError(error: unknown): unknown {
    const isReadError = error instanceof Error && "code" in error && error.code === "network";
    return isReadError && this.#failure !== undefined ? this.#failure.thrown : error;
  }

  async #read(
    file: string,
    range: { start: number; end: number } | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined> {
    this.signal.throwIfAborted();
    const files = await this.#opened();
    const bytes = await files.read(file, range);
    this.signal.throwIfAborted();
    if (bytes === undefined) {
      if (required) throw new SetunError("not-found", `${files.where(file)}: no such file`);
      return undefined;
    }
    if ((await this.#open()).reportsProgress) return bytes;
    this.#loadedBytes += bytes.length;
    const totalBytes = files.totalBytes();
    const loadedBytes = this.#loadedBytes;
    this.onProgress?.({ loadedBytes, file, ...(totalBytes !== undefined && { totalBytes }) });
    return bytes;
  }

  #open(): Promise<OpenModel> {
    this.#model ??= this.#openModel(this.signal);
    return this.#model;
  }

  async #opened(): Promise<ModelFiles> {
    if (this.#files !== undefined) return this.#files;
    const model = await this.#open();
    this.#contents ??= model.open();
    const { files } = await this.#contents;
    this.#files ??= files();
    return this.#files;
  }
}

/** What the engine says of bytes that are no model, or not all of one. */
function isInvalidModel(thrown: unknown): boolean {
  const code: unknown = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  return code === "bad-checkpoint" || code === "truncated";
}
