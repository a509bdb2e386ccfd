/** A loaded model. */

import { type BeamOptions, search } from "./beam-search.js";
import type { Connection } from "./connection.js";
import { SetunError } from "./errors.js";
import { type Generation, type GenerationContext, startGenerations } from "./generation.js";
import type { Metrics } from "./metrics.js";
import {
  checkBytes,
  checkCount,
  checkMessages,
  checkString,
  checkStrings,
  type GenerateOptions,
} from "./options.js";
import type { Build } from "./pick-build.js";
import type { ChatMessage } from "./protocol.js";
import { Session } from "./session.js";
import type {
  BeamText,
  Classification,
  DeviceReport,
  Score,
  SelfTest,
  WasmModelInfo,
  WasmPrompt,
} from "./wasm.js";

/** What is known of a model, and what runs it. */
export interface ModelInfo extends WasmModelInfo {
  /** The WebAssembly build in use. */
  readonly build: Build;
  /** Whether it runs in a worker. */
  readonly worker: boolean;
}

/**
 * A model, ready to run. It needs no network any more.
 *
 * After {@link Model.dispose} everything rejects with `disposed`.
 */
export class Model implements AsyncDisposable {
  readonly info: ModelInfo;
  readonly #connection: Connection;
  readonly #report: DeviceReport;
  readonly #baseUrl: () => string;

  /** @internal Models come from `load`. */
  constructor(connection: Connection, info: ModelInfo, report: DeviceReport, baseUrl: () => string) {
    this.#connection = connection;
    this.info = info;
    this.#report = report;
    this.#baseUrl = baseUrl;
  }

  /** Why this device runs, and others do not. */
  deviceReport(): DeviceReport {
    return this.#report;
  }

  /**
   * Compares what the device computes with the definitions, on a small model of this one's kind. Generations under way
   * go on. A device that differs is no error, but `passed` says so.
   */
  async selfTest(): Promise<SelfTest> {
    return (await this.#connection.request({ type: "self-test" }, "self-tested")).result;
  }

  /**
   * Continues a text.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  generate(prompt: string, options: GenerateOptions = {}): Generation {
    checkString("prompt", prompt);
    return this.#start(prompt, options);
  }

  /**
   * Goes on `count` times from one text or conversation, which is computed once: at most as many times as generations
   * may run at once. The first is what {@link generate} gives with the same seed; the others differ from it, if they are
   * not greedy. Each is read, and ends, by itself.
   *
   * @throws {SetunError} `bad-option` at once; everything else when a generation is read.
   */
  samples(
    prompt: string | readonly ChatMessage[],
    count: number,
    options: GenerateOptions = {},
  ): Generation[] {
    checkPrompt(prompt);
    checkCount(count);
    return startGenerations(this.#context(), prompt, options, count);
  }

  /**
   * The likeliest texts after a prompt, the best first, by a search that runs several hypotheses in one batch; nothing is
   * sampled.
   *
   * @throws {SetunError} `bad-option`; else as a generation. An aborted signal rejects with its reason.
   *
   * @example
   * ```ts
   * const [likeliest] = await model.beams("The capital of France is", { beams: 8, maxTokens: 10 });
   * ```
   */
  async beams(
    prompt: string | readonly ChatMessage[],
    options: BeamOptions = {},
  ): Promise<readonly BeamText[]> {
    checkPrompt(prompt);
    return search(this.#context(), prompt, options);
  }

  /** A text that can be gone on with, forked and saved; without tokens at first. */
  session(): Session {
    return new Session(this.#context(), []);
  }

  /**
   * The session that {@link Session.save} gave these bytes of. What they hold of the cache is used if this is the
   * model that computed it; else it is computed again.
   *
   * @throws {SetunError} `bad-checkpoint` if the bytes are damaged or no session.
   */
  async restore(bytes: Uint8Array): Promise<Session> {
    checkBytes(bytes);
    const { ids } = await this.#connection.request({ type: "restore", bytes }, "tokens");
    return new Session(this.#context(), ids);
  }

  /**
   * How likely the model finds each of these texts as what comes after a prompt, which is computed once. A text is scored in
   * the tokens that it has together with its prompt.
   *
   * @throws {SetunError} `bad-option` if there is an empty one; `context-full` if one does not fit.
   */
  async score(prompt: string | readonly ChatMessage[], texts: readonly string[]): Promise<readonly Score[]> {
    checkPrompt(prompt);
    checkStrings("texts", texts);
    return texts.length === 0 ? [] : (await this.#classify(prompt, texts)).scores;
  }

  /**
   * Which of these labels the model goes on with after a prompt, and how surely.
   *
   * @throws {SetunError} As {@link score}; also `bad-option` if there are no labels.
   */
  async classify(
    prompt: string | readonly ChatMessage[],
    labels: readonly string[],
  ): Promise<Classification> {
    checkPrompt(prompt);
    checkStrings("labels", labels);
    return this.#classify(prompt, labels);
  }

  /** What the model has done since it was loaded, and what is there now. */
  async metrics(): Promise<Metrics> {
    return (await this.#connection.request({ type: "metrics" }, "counted")).metrics;
  }

  /** Forgets what is kept in the cache for prompts that begin as others did. Generations under way go on. */
  async forgetPrefixes(): Promise<void> {
    await this.#connection.request({ type: "forget-prefixes" }, "forgotten");
  }

  /**
   * Gives memory back where it is short, and tells how many bytes of the cache that came to. No text changes: what is
   * needed again is computed again. `"moderate"` forgets what is kept for prompts that begin as others did, and gives
   * back all of the cache that no generation holds; `"critical"` also has generations that nobody reads give up what
   * they hold. WebAssembly keeps its memory, so there it becomes free for other use by the same module; a GPU's goes
   * back to the device.
   *
   * @throws {SetunError} `bad-option` if it is another word.
   */
  async relieve(pressure: "moderate" | "critical"): Promise<number> {
    const critical = pressure === "critical";
    if (!critical && pressure !== "moderate") {
      const found = String(pressure);
      throw new SetunError("bad-option", `pressure: expected moderate or critical, found ${found}`);
    }
    return (await this.#connection.request({ type: "relieve", critical }, "relieved")).bytes;
  }

  /**
   * Answers a conversation, put into words by the model's own chat template.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  chat(messages: readonly ChatMessage[], options: GenerateOptions = {}): Generation {
    checkMessages(messages);
    return this.#start(messages, options);
  }

  /** The ids of a text's tokens, special ones included as the tokenizer says. */
  async tokenize(text: string): Promise<Uint32Array> {
    checkString("text", text);
    return (await this.#connection.request({ type: "tokenize", text }, "tokens")).ids;
  }

  /** The text of tokens. */
  async detokenize(ids: Iterable<number>): Promise<string> {
    return (await this.#connection.request({ type: "detokenize", ids: Uint32Array.from(ids) }, "text")).text;
  }

  /** Frees the model and ends its worker. Running generations reject with `disposed`. */
  async dispose(): Promise<void> {
    this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #start(prompt: WasmPrompt, options: GenerateOptions): Generation {
    return startGenerations(this.#context(), prompt, options, 1)[0] as Generation;
  }

  async #classify(prompt: WasmPrompt, labels: readonly string[]): Promise<Classification> {
    return (await this.#connection.request({ type: "classify", prompt, labels }, "classified"))
      .classification;
  }

  #context(): GenerationContext {
    const { build, vocabSize, worker } = this.info;
    return { connection: this.#connection, build, vocabSize, worker, baseUrl: this.#baseUrl };
  }
}

function checkPrompt(prompt: string | readonly ChatMessage[]): void {
  if (typeof prompt === "string") checkString("prompt", prompt);
  else checkMessages(prompt);
}
