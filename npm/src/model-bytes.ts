/** A model's bytes, as the engine requests them. */

import { FileChangedError, noFileError, repairError } from "./download/errors.js";
import { partsOf, shardsOf } from "./download/plan.js";
import { SHARD_INDEX } from "./download/select-files.js";
import { SetunError } from "./errors.js";
import { refusePointer } from "./lfs-pointer.js";
import type { OnProgress } from "./load-progress.js";
import type { ByteRange, ModelFiles } from "./model-files.js";
import { isModelFile, type ModelEntry } from "./model-layout.js";
import type { ModelContents, OpenModel } from "./open-model.js";
import { type Damage, describeDamage } from "./store/damage.js";
import type { WasmFiles } from "./wasm.js";

/** The engine requests this file of models that have no tokenizer inside. */
const TOKENIZER = "tokenizer.json";

const TOKENIZER_ADVICE =
  "; texts need a tokenizer: put the tokenizer.json of the model beside its config.json";

/** The range that tells whether a file exists. */
const NOTHING = { start: 0, end: 0 };

/** A read operation, which may be repeated after a lost device. */
export interface ReadOperation {
  /** Called as bytes arrive. */
  onProgress: OnProgress | undefined;
  readonly isAborted: boolean;
  /** Ends this and all later reads. */
  abort(): void;
  /** Resolves when everything to be stored is complete, verified and named. */
  commit(): Promise<void>;
  /** Whether an error means that files changed during the read. The read can then start again. */
  hasChanged(thrown: unknown): boolean;
  /** Removes damaged files of the store, if an error may be theirs. Returns whether the read can start again. */
  repair(thrown: unknown): Promise<boolean>;
  /** Closes the files and ends the download. `thrown` is the reason. */
  end(thrown?: unknown): Promise<void>;
  /** The original error of the files, of which the engine keeps only the message. */
  originalError(error: unknown): unknown;
}

/** Opens the files of one model, and reports that it waits. */
type OpenFiles = (
  signal: AbortSignal,
  onProgress: OnProgress,
  damages: readonly Damage[],
) => Promise<OpenModel>;

/** Reads a range of a file, or the whole file. */
export type ReadFile = (
  file: string,
  range: ByteRange | undefined,
  required: boolean,
) => Promise<Uint8Array | undefined>;

/** Files that the engine reads in place of those of a model. */
export interface ConvertedFiles {
  read: ReadFile;
  /** Called when everything is read, and before it is read from the beginning. */
  rewind(): void;
  free(): void;
}

/** The files of one model. They are read again after a lost device. */
export class ModelBytes implements WasmFiles, ReadOperation {
  onProgress: OnProgress | undefined;
  /** Called before each read. */
  onRead: (() => void) | undefined;
  readonly #openModel: OpenFiles;
  readonly #needsTokenizer: boolean;
  readonly #controller = new AbortController();
  #model: Promise<OpenModel> | undefined;
  #contents: Promise<ModelContents> | undefined;
  #files: ModelFiles | undefined;
  #converted: ConvertedFiles | undefined;
  #loadedBytes = 0;
  /** Whether weights are read. Before, the sizes of the opened files say little of the model's. */
  #hasWeights = false;
  /** Files that were read, and parts that they name. */
  readonly #named = new Set<string>();
  #failure: { readonly thrown: unknown } | undefined;
  /** Whether the stored files were compared with their hashes after an error. */
  #isChecked = false;
  #damages: readonly Damage[] = [];

  /** `needsTokenizer`: a model without one is refused, as far as its files tell. */
  constructor(openModel: OpenFiles, needsTokenizer = false) {
    this.#openModel = openModel;
    this.#needsTokenizer = needsTokenizer;
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

  /** Finds the file or folder to open. */
  async start(): Promise<ModelEntry> {
    this.signal.throwIfAborted();
    this.onRead?.();
    this.#freeConverted();
    this.rewind();
    const model = await this.#open();
    this.#contents = model.open();
    const { entry } = await this.#contents;
    this.signal.throwIfAborted();
    return entry;
  }

  /** Lets the engine read other files, which are made of these. */
  convert(make: (read: ReadFile) => ConvertedFiles): void {
    this.#freeConverted();
    this.#converted = make((...request) => this.#read(...request));
  }

  /** Whether a file exists. */
  async has(file: string): Promise<boolean> {
    return (await this.#read(file, NOTHING, false)) !== undefined;
  }

  #freeConverted(): void {
    this.#converted?.free();
    this.#converted = undefined;
  }

  /** Continues the download without a reader. */
  async prefetch(): Promise<void> {
    const model = await this.#open();
    if (model.reportsProgress) await this.#checkTokenizer();
    model.prefetch();
  }

  /** Looks for a tokenizer before the weights are requested. A `.setun` file without a configuration beside it has one. */
  async #checkTokenizer(): Promise<void> {
    if ((await this.#contents)?.entry.layout === "folder" && (await this.has("config.json")))
      await this.has(TOKENIZER);
  }

  async commit(): Promise<void> {
    const model = await this.#open();
    await model.commit();
    this.signal.throwIfAborted();
    // Later reads use the stored files.
    this.#contents = undefined;
  }

  hasChanged(thrown: unknown): boolean {
    return (
      !this.signal.aborted &&
      (thrown instanceof FileChangedError || this.originalError(thrown) instanceof FileChangedError)
    );
  }

  async repair(thrown: unknown): Promise<boolean> {
    const error = this.originalError(thrown);
    if (this.isAborted || this.#isChecked || !mayBeDamage(error)) return false;
    const model = await this.#model?.catch(() => undefined);
    if (!model?.fromStore) return false;
    this.#isChecked = true;
    this.#damages = await model.discard();
    const [first] = this.#damages;
    if (first === undefined || this.isAborted) return false;
    await model.close();
    this.#model = undefined;
    this.#contents = undefined;
    this.#report({ phase: "connecting", loadedBytes: 0, file: first.name });
    return true;
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
      return await (this.#converted?.read(file, range, required) ?? this.#read(file, range, required));
    } catch (thrown) {
      this.#failure = { thrown };
      throw thrown;
    }
  }

  rewind(): void {
    this.close();
    this.#loadedBytes = 0;
    this.#hasWeights = false;
    this.#named.clear();
    this.#failure = undefined;
  }

  close(): void {
    this.#converted?.rewind();
    const files = this.#files;
    this.#files = undefined;
    // Nothing is read after this, so errors do not matter.
    files?.close().catch(() => undefined);
  }

  /** Closes connections and handles until the next read. */
  async pause(): Promise<void> {
    await this.#files?.close().catch(() => undefined);
  }

  async end(thrown?: unknown): Promise<void> {
    this.close();
    if (isInvalidModel(this.originalError(thrown))) {
      const model = await this.#model?.catch(() => undefined);
      if (!model?.fromStore) await model?.discard();
    }
    this.abort();
    this.#freeConverted();
    await (await this.#model?.catch(() => undefined))?.close();
  }

  originalError(error: unknown): unknown {
    const isReadError = error instanceof Error && "code" in error && error.code === "network";
    const original = isReadError && this.#failure !== undefined ? this.#failure.thrown : error;
    return repairError(original, this.#damages);
  }

  async #read(
    file: string,
    range: ByteRange | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined> {
    this.signal.throwIfAborted();
    const files = await this.#opened();
    const bytes = await files.read(file, range);
    this.signal.throwIfAborted();
    if (bytes === undefined) {
      const isRefused = this.#needsTokenizer && file.endsWith(TOKENIZER);
      if (!required && !isRefused) return undefined;
      const { code, message } = noFileError(files.where(file));
      throw new SetunError(code, isRefused ? message + TOKENIZER_ADVICE : message);
    }
    await refusePointer(files, file, range, bytes);
    await this.#expectParts(files, file, bytes);
    this.#loadedBytes += bytes.length;
    const model = await this.#open();
    if (!model.reportsProgress) this.#reportRead(model, files, file);
    return bytes;
  }

  /** Makes the other parts of a model in several files known to the total. */
  async #expectParts(files: ModelFiles, file: string, bytes: Uint8Array): Promise<void> {
    if (this.onProgress === undefined || this.#named.has(file)) return;
    const names = partsNamedBy(file, bytes);
    for (const name of [file, ...names]) this.#named.add(name);
    if (names.length > 1) await files.expect(names);
  }

  #reportRead({ readPhase, fromStore }: OpenModel, files: ModelFiles, file: string): void {
    this.#hasWeights ||= isModelFile(file);
    const totalBytes = this.#hasWeights ? files.totalBytes() : undefined;
    this.#report({
      phase: readPhase,
      loadedBytes: Math.min(this.#loadedBytes, totalBytes ?? this.#loadedBytes),
      ...(totalBytes !== undefined && { totalBytes }),
      file,
      ...(fromStore && { fromStore }),
    });
  }

  readonly #report: OnProgress = (progress) => {
    const damaged = this.#damages.map(describeDamage);
    this.onProgress?.(damaged.length === 0 ? progress : { ...progress, damaged });
  };

  #open(): Promise<OpenModel> {
    this.#model ??= this.#openModel(this.signal, this.#report, this.#damages).then((model) => {
      model.onProgress = this.#report;
      if (model.damages.length > 0) this.#damages = model.damages;
      return model;
    });
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

/** All parts of a model that a shard index names, or a part by its own name. */
function partsNamedBy(file: string, bytes: Uint8Array): string[] {
  if (!file.endsWith(SHARD_INDEX)) return partsOf(file);
  const folder = file.slice(0, -SHARD_INDEX.length);
  try {
    return shardsOf(file, new TextDecoder().decode(bytes)).map((name) => folder + name);
  } catch {
    return []; // The engine says what is wrong with it.
  }
}

/** Whether the engine's error means that the bytes are invalid or incomplete. */
function isInvalidModel(thrown: unknown): boolean {
  return ["bad-checkpoint", "truncated"].includes(codeOf(thrown));
}

/** Whether an error may come from a damaged copy: a name or a number in it may have become another. */
function mayBeDamage(thrown: unknown): boolean {
  return isInvalidModel(thrown) || codeOf(thrown) === "unsupported-model";
}

function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
