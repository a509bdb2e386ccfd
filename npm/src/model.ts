/** A loaded model. */

import { type BeamOptions, search } from "./beams.js";
import { SetunError } from "./errors.js";
import { type Generation, type Place, startGenerations } from "./generation.js";
import type { ChatMessage } from "./messages.js";
import type { Metrics } from "./metrics.js";
import {
  checkBytes,
  checkCount,
  checkMessages,
  checkText,
  checkTexts,
  type GenerateOptions,
} from "./options.js";
import type { Build } from "./pick-build.js";
import type { Session } from "./session.js";
import { TextSession } from "./text-session.js";
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
  readonly #session: Session;
  readonly #report: DeviceReport;
  readonly #baseUrl: () => string;

  /** @internal Models come from `load`. */
  constructor(session: Session, info: ModelInfo, report: DeviceReport, baseUrl: () => string) {
    this.#session = session;
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
    return (await this.#session.ask({ type: "self-test" }, "self-tested")).result;
  }

  /**
   * Continues a text.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  generate(prompt: string, options: GenerateOptions = {}): Generation {
    checkText("prompt", prompt);
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
    return startGenerations(this.#place(), prompt, options, count);
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
    return search(this.#place(), prompt, options);
  }

  /** A text that can be gone on with, forked and saved; without tokens at first. */
  session(): TextSession {
    return new TextSession(this.#place(), []);
  }

  /**
   * The session that {@link TextSession.save} gave these bytes of. What they hold of the cache is used if this is the
   * model that computed it; else it is computed again.
   *
   * @throws {SetunError} `bad-checkpoint` if the bytes are damaged or no session.
   */
  async restore(bytes: Uint8Array): Promise<TextSession> {
    checkBytes(bytes);
    const { ids } = await this.#session.ask({ type: "restore", bytes }, "tokens");
    return new TextSession(this.#place(), ids);
  }

  /**
   * How likely the model finds each of these texts as what comes after a prompt, which is computed once. A text is scored in
   * the tokens that it has together with its prompt.
   *
   * @throws {SetunError} `bad-option` if there is an empty one; `context-full` if one does not fit.
   */
  async score(prompt: string | readonly ChatMessage[], texts: readonly string[]): Promise<readonly Score[]> {
    checkPrompt(prompt);
    checkTexts("texts", texts);
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
    checkTexts("labels", labels);
    return this.#classify(prompt, labels);
  }

  /** What the model has done since it was loaded, and what is there now. */
  async metrics(): Promise<Metrics> {
    return (await this.#session.ask({ type: "metrics" }, "counted")).metrics;
  }

  /** Forgets what is kept in the cache for prompts that begin as others did. Generations under way go on. */
  async forgetPrefixes(): Promise<void> {
    await this.#session.ask({ type: "forget-prefixes" }, "forgotten");
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
    return (await this.#session.ask({ type: "relieve", critical }, "relieved")).bytes;
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
    checkText("text", text);
    return (await this.#session.ask({ type: "tokenize", text }, "tokens")).ids;
  }

  /** The text of tokens. */
  async detokenize(ids: Iterable<number>): Promise<string> {
    return (await this.#session.ask({ type: "detokenize", ids: Uint32Array.from(ids) }, "text")).text;
  }

  /** Frees the model and ends its worker. Running generations reject with `disposed`. */
  async dispose(): Promise<void> {
    this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #start(prompt: WasmPrompt, options: GenerateOptions): Generation {
    return startGenerations(this.#place(), prompt, options, 1)[0] as Generation;
  }

  async #classify(prompt: WasmPrompt, labels: readonly string[]): Promise<Classification> {
    return (await this.#session.ask({ type: "classify", prompt, labels }, "classified")).classification;
  }

  #place(): Place {
    const { build, vocabSize, worker } = this.info;
    return { session: this.#session, build, vocabSize, worker, baseUrl: this.#baseUrl };
  }
}

function checkPrompt(prompt: string | readonly ChatMessage[]): void {
  if (typeof prompt === "string") checkText("prompt", prompt);
  else checkMessages(prompt);
}
