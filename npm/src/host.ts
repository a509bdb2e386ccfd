/** The model's end of the protocol, in a worker or on the page's thread. */

import { ActiveRequest, type Credit } from "./active-request.js";
import { asSetunError, SetunError, toWire } from "./errors.js";
import { GrammarCache } from "./grammar-cache.js";
import { HostModel } from "./host-model.js";
import type { HostPlatform } from "./host-platform.js";
import { LoadedProcessors } from "./host-processors.js";
import type { FromHost, ToHost } from "./protocol.js";
import { toolGrammar, withToolText } from "./tools.js";
import type { WasmEvent, WasmGenerateOptions, WasmGeneration, WasmModel } from "./wasm.js";

type Message<Type extends ToHost["type"]> = Extract<ToHost, { type: Type }>;

/** Owner of one model and of its generations. */
export class Host {
  readonly #send: (message: FromHost) => void;
  readonly #loaded: HostModel;
  readonly #running = new Map<number, ActiveRequest>();
  readonly #grammars: GrammarCache;

  constructor(platform: HostPlatform, send: (message: FromHost) => void) {
    this.#loaded = new HostModel(platform, send);
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
        return this.#loaded.probe(message);
      case "estimate":
        return this.#loaded.estimate(message);
      case "open":
        return this.#loaded.open(message);
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

  async #generate({ id, prompt, options, processors, count, credit }: Message<"generate">): Promise<void> {
    const { grammar, tools, timeout } = options;
    const all = new Map(Array.from({ length: count }, (_, index) => [id + index, new ActiveRequest(credit)]));
    for (const [each, running] of all) this.#running.set(each, running);
    try {
      // Without either there is no wait, so generations start in the order of their requests.
      const loaded = processors && (await LoadedProcessors.load(processors));
      const source = tools ? toolGrammar(tools, this.#model().toolFormat, grammar) : grammar;
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
    const translateErrors = this.#loaded.opened?.bytes.originalError(thrown) ?? thrown;
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
    this.#loaded.stop(id);
    this.#running.get(id)?.stop();
  }

  async #dispose(id: number): Promise<void> {
    const ending = [...this.#running.values()].map(({ ended }) => ended);
    this.#loaded.abort();
    for (const running of this.#running.values()) running.stop();
    await Promise.allSettled(ending);
    this.#grammars.free();
    await this.#loaded.free();
    this.#send({ type: "disposed", id });
  }

  #model(): WasmModel {
    const { opened } = this.#loaded;
    if (opened === undefined) throw new SetunError("disposed", "the model has been disposed");
    return opened.model;
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
