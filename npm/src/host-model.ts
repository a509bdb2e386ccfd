/** The model of a host: probed, opened with its draft, and freed. */

import { headWarning, refuseTooLarge } from "./backend-fit.js";
import { ModelAndDraftBytes, shareStoreFolder } from "./draft-bytes.js";
import { type ReservedMemory, reserveSharedMemory } from "./features.js";
import { prepareEstimate } from "./host-estimate.js";
import type { HostPlatform } from "./host-platform.js";
import { ProgressReporter } from "./load-progress.js";
import { ModelBytes, type ReadOperation } from "./model-bytes.js";
import { openLoader } from "./open-loader.js";
import { mayUseGpu } from "./pick-build.js";
import type { FromHost, ModelRequest, ToHost } from "./protocol.js";
import type { WasmLoader, WasmModel } from "./wasm.js";
import { startWasm } from "./wasm-instance.js";

type Message<Type extends ToHost["type"]> = Extract<ToHost, { type: Type }>;

/** A probed model, whose weights are not read yet, and its files. */
interface Probed {
  readonly bytes: ModelBytes;
  readonly loader: WasmLoader;
}

/** A running model, and its files, which are read again after a lost device. */
interface Opened {
  readonly bytes: ReadOperation;
  readonly model: WasmModel;
}

export class HostModel {
  readonly #platform: HostPlatform;
  readonly #send: (message: FromHost) => void;
  readonly #loads = new Map<number, ReadOperation>();
  #probed: Probed | undefined;
  #opened: Opened | undefined;
  /** The memory of a threaded build. */
  #shared: ReservedMemory | undefined;
  /** The threads of the build, which a model needs as soon as it has weights. */
  #threads: Promise<void> | undefined;
  #disposed = false;
  #headWarning: string | undefined;

  constructor(platform: HostPlatform, send: (message: FromHost) => void) {
    this.#platform = platform;
    this.#send = send;
  }

  get opened(): Opened | undefined {
    return this.#opened;
  }

  /** Reads all but the weights, and finds the device. */
  async probe(message: Message<"probe">): Promise<void> {
    const { id, backend, threads } = message;
    const bytes = this.#createBytes(message, true);
    this.#reportProgress(message, bytes);
    await this.#whileReading(id, bytes, async () => {
      const loader = await this.#retryOnChange(bytes, () => this.#openLoader(message, bytes));
      const report = await loader.probe({ backend, threads }).catch((thrown: unknown) => {
        loader.free();
        throw thrown;
      });
      if (this.#disposed) return loader.free();
      this.#probed = { bytes, loader };
      this.#send({ type: "probed", id, report });
    });
  }

  /** Estimates memory and download of a model, from its headers. */
  async estimate({ id, source, fetchOptions, headType }: Message<"estimate">): Promise<void> {
    const { bytes, estimate } = prepareEstimate(this.#platform, source, fetchOptions, headType);
    await this.#whileReading(id, bytes, async () =>
      this.#send({ type: "estimated", id, ...(await estimate()) }),
    );
  }

  /** Reads the weights, of what was probed if anything was. */
  async open(message: Message<"open">): Promise<void> {
    const { id, draft } = message;
    const probed = this.#probed;
    this.#probed = undefined;
    const modelBytes = probed?.bytes ?? this.#createBytes(message, true);
    // A draft proposes token ids.
    const draftBytes = draft && this.#createBytes(draft, false);
    const bytes = draftBytes ? new ModelAndDraftBytes(modelBytes, draftBytes) : modelBytes;
    const progress = this.#reportProgress(message, bytes);
    let known = probed?.loader;
    const load = async () => {
      const loader = known ?? (await this.#openLoader(message, modelBytes));
      known = undefined;
      const model = await this.#finish(message, loader, modelBytes, draftBytes);
      await bytes.commit().catch((thrown: unknown) => {
        model.free();
        throw thrown;
      });
      return model;
    };
    await this.#whileReading(id, bytes, async () => {
      const model = await this.#retryOnChange(bytes, load);
      bytes.onProgress = undefined;
      if (bytes.isAborted || this.#disposed) return model.free();
      this.#opened = { bytes, model };
      progress.ready();
      const { info, deviceReport: report } = model;
      const warnings = [...info.warnings, ...(this.#headWarning ? [this.#headWarning] : [])];
      this.#send({ type: "opened", id, info: { ...info, warnings }, report });
    });
  }

  /** Opens the draft model, if there is one, and reads the weights: those of the model first. */
  async #finish(
    message: Message<"open">,
    loader: WasmLoader,
    modelBytes: ModelBytes,
    draftBytes: ModelBytes | undefined,
  ): Promise<WasmModel> {
    const { backend, threads, limits } = message;
    let head = {};
    const prepare = async () => {
      // Those for a GPU pass through one by one.
      if (backend !== "webgpu") {
        const pages = this.#shared?.maximum;
        const headType = refuseTooLarge(message.source.name, loader, pages, limits.headType);
        if (headType !== "auto") head = { headType };
        this.#headWarning = headWarning(headType, limits.headType);
      }
      await modelBytes.prefetch();
      return draftBytes && this.#openDraft(message, modelBytes, draftBytes);
    };
    const [draftLoader] = await Promise.all([prepare(), this.#threads]).catch((thrown: unknown) => {
      loader.free();
      throw thrown;
    });
    return loader.finish({ backend, threads, ...limits, ...head }, draftLoader);
  }

  async #openDraft(
    message: Message<"open">,
    modelBytes: ModelBytes,
    draftBytes: ModelBytes,
  ): Promise<WasmLoader> {
    // A folder of the store is locked until its download is complete.
    if (message.draft && (await shareStoreFolder(message, message.draft))) {
      await modelBytes.commit();
      modelBytes.close();
    }
    const loader = await this.#openLoader(message, draftBytes);
    await draftBytes.prefetch();
    // The weights of the model come first, and a server closes an idle connection.
    await draftBytes.pause();
    return loader;
  }

  /** Starts again when files have changed while they were read, or were damaged in the store. */
  async #retryOnChange<Result>(bytes: ReadOperation, work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        if (!bytes.hasChanged(thrown) && !(await bytes.repair(thrown))) throw thrown;
      }
    }
  }

  #createBytes({ source, fetchOptions }: ModelRequest, needsTokenizer: boolean): ModelBytes {
    const { openModel } = this.#platform;
    return new ModelBytes((...rest) => openModel(source, fetchOptions, ...rest), needsTokenizer);
  }

  /** Sends the progress of a read operation from now on. */
  #reportProgress(
    { id, source }: Message<"probe"> | Message<"open">,
    bytes: ReadOperation,
  ): ProgressReporter {
    const reporter = new ProgressReporter((progress) => this.#send({ type: "progress", id, progress }));
    bytes.onProgress = reporter.report;
    reporter.report({ phase: "connecting", loadedBytes: 0, file: source.name });
    return reporter;
  }

  async #openLoader(message: Message<"probe"> | Message<"open">, bytes: ModelBytes): Promise<WasmLoader> {
    const pages = "memory" in message ? message.memory : undefined;
    // A memory that the page made would outlive this worker.
    this.#shared ??= pages && reserveSharedMemory(pages);
    // The files are looked up while the module compiles.
    const started = startWasm(this.#platform.build, this.#shared?.memory, message.threads);
    const [entry, running] = await Promise.all([bytes.start(), started]);
    this.#threads = running.threads;
    bytes.signal.throwIfAborted();
    return openLoader(this.#platform, entry, bytes, {
      onProcessor: !mayUseGpu(message.backend),
      memoryPages: this.#shared?.maximum,
      headType: "limits" in message ? message.limits.headType : undefined,
      pretokenizer: message.fetchOptions.pretokenizer,
    });
  }

  /** Runs a read operation, which can be stopped. It fails with the error of the files, not with the engine's copy of it. */
  async #whileReading(id: number, bytes: ReadOperation, work: () => Promise<void>): Promise<void> {
    this.#loads.set(id, bytes);
    try {
      await work();
    } catch (thrown) {
      await bytes.end(thrown);
      throw bytes.originalError(thrown);
    } finally {
      this.#loads.delete(id);
    }
  }

  /** Stops the load of a request. */
  stop(id: number): void {
    this.#loads.get(id)?.abort();
  }

  /** Stops all loads, now and later. A reload after a lost device would keep generations waiting. */
  abort(): void {
    this.#disposed = true;
    for (const load of this.#loads.values()) load.abort();
    this.#opened?.bytes.abort();
  }

  /** Frees what was opened or probed. */
  async free(): Promise<void> {
    this.#opened?.model.free();
    this.#opened = undefined;
    this.#probed?.loader.free();
    await this.#probed?.bytes.end();
    this.#probed = undefined;
  }
}
