/** The model's end of the protocol: in a worker, or beside the page's end on the same thread. */

import { Credit } from "./credit.js";
import { asSetunError, SetunError, toWire } from "./errors.js";
import type { FromHost, ToHost } from "./messages.js";
import type { ModelFiles } from "./model-files.js";
import { readModel } from "./read-model.js";
import type { ModelSource } from "./sources.js";
import type { WasmEvent, WasmGeneration, WasmModel } from "./wasm.js";
import { startWasm, type WasmBuild } from "./wasm-instance.js";

/** What differs between a browser and Node. */
export interface HostPlatform {
  readonly build: WasmBuild;
  openFiles(source: ModelSource, signal: AbortSignal): ModelFiles;
}

type Message<Type extends ToHost["type"]> = Extract<ToHost, { type: Type }>;

interface Running {
  readonly generation: WasmGeneration;
  readonly credit: Credit;
  readonly ended: Promise<void>;
}

/** Owns one model and its generations. */
export class Host {
  readonly #platform: HostPlatform;
  readonly #send: (message: FromHost) => void;
  readonly #loads = new Map<number, AbortController>();
  readonly #running = new Map<number, Running>();
  #model: WasmModel | undefined;
  #disposed = false;

  constructor(platform: HostPlatform, send: (message: FromHost) => void) {
    this.#platform = platform;
    this.#send = send;
  }

  /** Takes one message; whatever goes wrong is answered as `failed`. */
  async receive(message: ToHost): Promise<void> {
    try {
      await this.#handle(message);
    } catch (thrown) {
      this.#send({ type: "failed", id: message.id, error: toWire(asSetunError(thrown)) });
    }
  }

  async #handle(message: ToHost): Promise<void> {
    const { id } = message;
    switch (message.type) {
      case "open":
        return this.#open(message);
      case "generate":
        return this.#generate(message);
      case "credit":
        return this.#running.get(id)?.credit.add(message.turns);
      case "stop":
        return this.#stop(id);
      case "tokenize":
        return this.#send({ type: "tokens", id, ids: this.#opened().tokenize(message.text) });
      case "detokenize":
        return this.#send({ type: "text", id, text: this.#opened().detokenize(message.ids) });
      case "dispose":
        return this.#dispose(id);
    }
  }

  async #open({ id, source, backend, threads, memory }: Message<"open">): Promise<void> {
    const controller = new AbortController();
    this.#loads.set(id, controller);
    try {
      await startWasm(this.#platform.build, memory, threads);
      controller.signal.throwIfAborted();
      const model = await this.#load(id, source, { backend, threads }, controller.signal);
      if (controller.signal.aborted || this.#disposed) return model.free();
      this.#model = model;
      this.#send({ type: "opened", id, info: model.info });
    } finally {
      this.#loads.delete(id);
    }
  }

  async #load(
    id: number,
    source: ModelSource,
    options: { backend: string; threads: number },
    signal: AbortSignal,
  ): Promise<WasmModel> {
    const files = this.#platform.openFiles(source, signal);
    const loader = new this.#platform.build.glue.Loader(source.layout, source.name);
    try {
      await readModel(loader, files, (progress) => this.#send({ type: "progress", id, progress }), signal);
    } catch (thrown) {
      loader.free();
      throw thrown;
    } finally {
      await files.close();
    }
    return loader.finish(options);
  }

  async #generate({ id, input, options, credit: turns }: Message<"generate">): Promise<void> {
    const model = this.#opened();
    const generation =
      input.kind === "prompt" ? model.generate(input.prompt, options) : model.chat(input.messages, options);
    const credit = new Credit(turns);
    const ended = this.#pump(id, generation, credit);
    this.#running.set(id, { generation, credit, ended });
    try {
      await ended;
    } finally {
      this.#running.delete(id);
    }
  }

  /** Sends turn after turn; whoever hears of the end finds the cache freed. */
  async #pump(id: number, generation: WasmGeneration, credit: Credit): Promise<void> {
    let last: WasmEvent[] | undefined;
    try {
      last = await this.#sendTurns(id, generation, credit);
    } finally {
      generation.free();
    }
    if (last !== undefined) this.#send({ type: "events", id, events: last });
  }

  /** All turns but the last, which is returned, while there is credit. */
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
    const running = this.#running.get(id);
    running?.generation.stop();
    // The last turn reports the end whether or not anybody is still reading.
    running?.credit.add(Number.POSITIVE_INFINITY);
  }

  async #dispose(id: number): Promise<void> {
    this.#disposed = true;
    const ending = [...this.#running.values()].map(({ ended }) => ended);
    for (const load of this.#loads.keys()) this.#stop(load);
    for (const generation of this.#running.keys()) this.#stop(generation);
    await Promise.allSettled(ending);
    const model = this.#model;
    this.#model = undefined;
    model?.free();
    this.#send({ type: "disposed", id });
  }

  #opened(): WasmModel {
    if (this.#model === undefined) throw new SetunError("disposed", "the model has been disposed");
    return this.#model;
  }
}

/** The next turn that brings something: those of a long prompt bring nothing. */
async function nextTurn(generation: WasmGeneration): Promise<WasmEvent[] | undefined> {
  for (;;) {
    const events = await generation.next();
    if (events === undefined || events.length > 0) return events;
  }
}
