/** The model's end of the protocol, in a worker or on the page's thread. */

import { ActiveRequest, type Credit } from "./active-request.js";
import { refuseTooLarge } from "./backend-fit.js";
import { ModelAndDraftBytes, shareStoreFolder } from "./draft-bytes.js";
import { asSetunError, SetunError, toWire } from "./errors.js";
import { type GrammarBuild, GrammarCache } from "./grammar-cache.js";
import { prepareEstimate } from "./host-estimate.js";
import { LoadedProcessors } from "./host-processors.js";
import { ProgressReporter } from "./load-progress.js";
import { ModelBytes, type ReadOperation } from "./model-bytes.js";
import type { OnnxBuild } from "./onnx-files.js";
import { openLoader } from "./open-loader.js";
import type { OpenSource } from "./open-model.js";
import { mayUseGpu } from "./pick-build.js";
import type { FromHost, ModelRequest, ToHost } from "./protocol.js";
import { toolGrammar, withToolText } from "./tools.js";
import type { WasmEvent, WasmGenerateOptions, WasmGeneration, WasmLoader, WasmModel } from "./wasm.js";
import { startWasm, type WasmBuild } from "./wasm-instance.js";

/** What differs between a browser and Node. */
export interface HostPlatform {
  readonly build: WasmBuild;
  readonly openModel: OpenSource;
  /** The grammar module. */
  readonly grammars?: () => Promise<GrammarBuild>;
  /** The module that reads ONNX files. */
  readonly onnx?: () => Promise<OnnxBuild>;
}

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

/** Owner of one model and of its generations. */
export class Host {
  readonly #platform: HostPlatform;
  readonly #send: (message: FromHost) => void;
  readonly #loads = new Map<number, ReadOperation>();
  readonly #running = new Map<number, ActiveRequest>();
  #probed: Probed | undefined;
  #opened: Opened | undefined;
  readonly #grammars: GrammarCache;
  /** The threads of the build, which a model needs as soon as it has weights. */
  #threads: Promise<void> | undefined;
  #disposed = false;

  constructor(platform: HostPlatform, send: (message: FromHost) => void) {
    this.#platform = platform;
    this.#grammars = new GrammarCache(platform.grammars);
    this.#send = send;
  }

  /** Handles one message. Every error is answered with `failed`. */
  async receive(message: ToHost): Promise<void> {
    try {
      await this.#handle(message);
    } catch (thrown) {
      this.#fail(message.id, thrown);
    }
  }

  #fail(id: number, thrown: unknown): void {
    this.#send({ type: "failed", id, error: toWire(asSetunError(thrown)) });
  }

  async #handle(message: ToHost): Promise<void> {
    const { id } = message;
    switch (message.type) {
      case "probe":
        return this.#probe(message);
      case "estimate":
        return this.#estimate(message);
      case "open":
        return this.#open(message);
      case "generate":
        return this.#generate(message);
      case "beam-search":
        return this.#search(message);
      case "credit":
        return this.#running.get(id)?.credit.add(message.turns);
      case "stop":
        return this.#stop(id);
      case "tokenize":
        return this.#send({ type: "tokens", id, ids: this.#model().tokenize(message.text) });
      case "detokenize":
        return this.#send({ type: "text", id, text: this.#model().detokenize(message.ids) });
      case "push":
        return this.#send({ type: "tokens", id, ids: this.#model().push(message.ids, message.more) });
      case "save":
        return this.#send({ type: "saved", id, bytes: await this.#model().save(message.ids) });
      case "restore":
        return this.#send({ type: "tokens", id, ids: await this.#model().restore(message.bytes) });
      case "classify": {
        const classification = await this.#model().classify(message.prompt, message.labels);
        return this.#send({ type: "classified", id, classification });
      }
      case "count-tokens": {
        const count = this.#model().countTokens(message.prompt, withToolText(message.options, this.#model()));
        return this.#send({ type: "count", id, count });
      }
      case "embed": {
        const { mean, normalize } = message.pooling;
        const found = await this.#model().embed(message.texts, mean, normalize);
        const tokens = found.pop() as number;
        const embeddings = found as Float32Array<ArrayBuffer>[];
        return this.#send({ type: "embedded", id, embeddings, tokens });
      }
      case "metrics":
        return this.#send({ type: "metrics", id, metrics: await this.#model().metrics() });
      case "reset-prefix-cache":
        this.#model().resetPrefixCache();
        return this.#send({ type: "prefix-cache-reset", id });
      case "release-memory": {
        const bytes = await this.#model().releaseMemory(message.critical);
        return this.#send({ type: "memory-released", id, bytes });
      }
      case "self-test":
        return this.#send({ type: "self-test-result", id, result: await this.#model().selfTest() });
      case "dispose":
        return this.#dispose(id);
    }
  }

  async #probe(message: Message<"probe">): Promise<void> {
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

  async #estimate({ id, source, fetchOptions }: Message<"estimate">): Promise<void> {
    const { bytes, estimate } = prepareEstimate(this.#platform, source, fetchOptions);
    await this.#whileReading(id, bytes, async () =>
      this.#send({ type: "estimated", id, ...(await estimate()) }),
    );
  }

  async #open(message: Message<"open">): Promise<void> {
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
      this.#send({ type: "opened", id, info: model.info, report: model.deviceReport });
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
    const prepare = async () => {
      refuseTooLarge(message, loader);
      await modelBytes.prefetch();
      return draftBytes && this.#openDraft(message, modelBytes, draftBytes);
    };
    const [draftLoader] = await Promise.all([prepare(), this.#threads]).catch((thrown: unknown) => {
      loader.free();
      throw thrown;
    });
    return loader.finish({ backend, threads, ...limits }, draftLoader);
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

  /** Starts again when files have changed while they were read. */
  async #retryOnChange<Result>(bytes: ReadOperation, work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        if (!bytes.hasChanged(thrown)) throw thrown;
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
    const memory = "memory" in message ? message.memory : undefined;
    // The files are looked up while the module compiles.
    const started = startWasm(this.#platform.build, memory, message.threads);
    const [entry, running] = await Promise.all([bytes.start(), started]);
    this.#threads = running.threads;
    bytes.signal.throwIfAborted();
    return openLoader(this.#platform, entry, bytes, { onProcessor: !mayUseGpu(message.backend) });
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

  async #generate({ id, prompt, options, processors, count, credit }: Message<"generate">): Promise<void> {
    const { grammar, tools, timeout } = options;
    const all = new Map(Array.from({ length: count }, (_, index) => [id + index, new ActiveRequest(credit)]));
    for (const [each, running] of all) this.#running.set(each, running);
    try {
      // Without either there is no wait, so generations start in the order of their requests.
      const loaded = processors && (await LoadedProcessors.load(processors));
      const source = tools ? toolGrammar(tools, this.#model().toolFormat) : grammar;
      const compiled = source && (await this.#grammars.grammar(source, this.#model(), timeout));
      const whole = { ...withToolText(options, this.#model()), ...(compiled && { grammar: compiled }) };
      const generations = this.#model().generate(prompt, withProcessors(whole, loaded), count);
      const runs = [...all].map(([each, running], index) => {
        return this.#run(each, running, generations[index] as WasmGeneration, loaded);
      });
      await Promise.all(runs);
    } catch (thrown) {
      for (const failed of all.keys()) {
        this.#running.delete(failed);
        this.#fail(failed, thrown);
      }
    }
  }

  /** Runs one generation to its end. A failure does not affect the others. */
  async #run(
    id: number,
    running: ActiveRequest,
    generation: WasmGeneration,
    loaded: LoadedProcessors | undefined,
  ): Promise<void> {
    try {
      await running.begin(() => generation.stop(), this.#pump(id, generation, running.credit));
    } catch (thrown) {
      this.#fail(id, this.#explain(thrown, loaded));
    } finally {
      this.#running.delete(id);
    }
  }

  /** Runs a beam search to its end, or until it is stopped. */
  async #search({ id, prompt, beams, options, processors }: Message<"beam-search">): Promise<void> {
    const { grammar: _, tools: __, ...rest } = options; // beam search has neither
    const running = new ActiveRequest(0);
    this.#running.set(id, running);
    let loaded: LoadedProcessors | undefined;
    try {
      loaded = processors && (await LoadedProcessors.load(processors));
      const search = this.#model().beamSearch(prompt, beams, withProcessors(rest, loaded));
      const found = search.texts();
      const freed = found.catch(() => undefined).then(() => search.free());
      await running.begin(() => search.stop(), freed);
      this.#send({ type: "beam-texts", id, texts: await found });
    } catch (thrown) {
      this.#fail(id, this.#explain(thrown, loaded));
    } finally {
      this.#running.delete(id);
    }
  }

  #explain(thrown: unknown, loaded: LoadedProcessors | undefined): unknown {
    const translateErrors = this.#opened?.bytes.originalError(thrown) ?? thrown;
    return loaded?.explain(translateErrors) ?? translateErrors;
  }

  /** Sends all events. The last batch follows when the KV cache is freed. */
  async #pump(id: number, generation: WasmGeneration, credit: Credit): Promise<void> {
    let last: WasmEvent[] | undefined;
    try {
      last = await this.#sendTurns(id, generation, credit);
    } finally {
      generation.free();
    }
    if (last !== undefined) this.#send({ type: "events", id, events: last });
  }

  /** Sends batches while there is credit, and returns the last one. */
  async #sendTurns(id: number, generation: WasmGeneration, credit: Credit): Promise<WasmEvent[] | undefined> {
    for (;;) {
      await credit.take();
      const events = await nextTurn(generation);
      if (events === undefined || events.at(-1)?.type === "done") return events;
      this.#send({ type: "events", id, events });
    }
  }

  #stop(id: number): void {
    this.#loads.get(id)?.abort();
    this.#running.get(id)?.stop();
  }

  async #dispose(id: number): Promise<void> {
    this.#disposed = true;
    const ending = [...this.#running.values()].map(({ ended }) => ended);
    for (const load of this.#loads.keys()) this.#stop(load);
    for (const running of this.#running.values()) running.stop();
    // A reload after a lost device would keep generations waiting.
    this.#opened?.bytes.abort();
    await Promise.allSettled(ending);
    this.#grammars.free();
    this.#opened?.model.free();
    this.#opened = undefined;
    this.#probed?.loader.free();
    await this.#probed?.bytes.end();
    this.#probed = undefined;
    this.#send({ type: "disposed", id });
  }

  #model(): WasmModel {
    if (this.#opened === undefined) throw new SetunError("disposed", "the model has been disposed");
    return this.#opened.model;
  }
}

/** Options with the loaded processor functions. */
function withProcessors(options: WasmGenerateOptions, loaded?: LoadedProcessors): WasmGenerateOptions {
  return loaded === undefined ? options : { ...options, logitsProcessors: loaded.calls };
}

/** The next batch that is not empty; steps of a long prompt have no events. */
async function nextTurn(generation: WasmGeneration): Promise<WasmEvent[] | undefined> {
  for (;;) {
    const events = await generation.next();
    if (events === undefined || events.length > 0) return events;
  }
}
