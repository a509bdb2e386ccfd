/** A loaded model. */

import { type BeamSearchOptions, search } from "./beam-search.js";
import { checkBytes, checkCount, checkMessages, checkString, checkStrings } from "./check-options.js";
import type { Connection } from "./connection.js";
import {
  type CountOptions,
  countPromptTokens,
  type Embedding,
  type Embeddings,
  type EmbedOptions,
  embedTexts,
} from "./embeddings.js";
import { SetunError } from "./errors.js";
import type { GenerateOptions } from "./generate-options.js";
import { type Generation, type GenerationContext, startGenerations } from "./generation.js";
import type { Metrics } from "./metrics.js";
import type { Build } from "./pick-build.js";
import type { ChatMessage } from "./protocol.js";
import { Session } from "./session.js";
import type { ResumableGeneration } from "./shared/kept-generations.js";
import { shown } from "./shown.js";
import type {
  BeamText,
  Classification,
  DeviceReport,
  Score,
  SelfTest,
  WasmModelInfo,
  WasmPrompt,
} from "./wasm.js";

/** Options of {@link Model.generateMany}. */
export interface GenerateManyOptions extends GenerateOptions {
  /**
   * Generations from each prompt: an integer from 1 to the `maxConcurrent` of `load`.
   *
   * @defaultValue 1
   */
  n?: number;
}

/** Options of {@link Model.deviceReport}. */
export interface DeviceReportOptions {
  /** Also measures WebNN, which never runs a model. This takes a second or more, and needs memory for some matrices. */
  readonly webnn: true;
}

/** Where a model runs. */
export interface ModelHost {
  /** Base of relative URLs. */
  baseUrl(): string;
  /** A report that includes WebNN, in hosts that can have it. */
  withWebnn?(report: DeviceReport, model: Model): Promise<DeviceReport>;
}

/** Gives the generations of earlier pages. */
type OfferResumable = (context: GenerationContext) => readonly ResumableGeneration[];

/** Properties of a model, of its device and of the WebAssembly build. */
export interface ModelInfo extends WasmModelInfo {
  /** The WebAssembly build in use. */
  readonly build: Build;
  /** Whether the model runs in a worker. */
  readonly worker: boolean;
}

/**
 * A loaded model. It needs no network.
 *
 * After {@link Model.dispose} every method rejects with `disposed`.
 *
 * @example
 * ```ts
 * const model = await load();
 * for await (const { text } of model.generate("Once upon a time", { maxTokens: 100 })) output.append(text);
 * ```
 */
export class Model implements AsyncDisposable {
  /** Properties of the model and of its device. */
  readonly info: ModelInfo;
  readonly #connection: Connection;
  readonly #report: DeviceReport;
  readonly #host: ModelHost;
  readonly #offer: OfferResumable | undefined;

  /** @internal Models come from `load`. */
  constructor(
    connection: Connection,
    info: ModelInfo,
    report: DeviceReport,
    host: ModelHost,
    offer?: OfferResumable,
  ) {
    this.#offer = offer;
    this.#connection = connection;
    this.info = info;
    this.#report = report;
    this.#host = host;
  }

  /** The devices that were considered, and why this one runs. */
  deviceReport(): DeviceReport;
  /**
   * The same with entries for WebNN: the time of one product of the model's hidden size there, beside an estimate of the
   * device that runs, or why there is none. WebNN has no ternary weights, so nothing else ever runs on it.
   */
  deviceReport(options: DeviceReportOptions): Promise<DeviceReport>;
  deviceReport(options?: DeviceReportOptions): DeviceReport | Promise<DeviceReport> {
    return options?.webnn ? this.#reportWebnn() : this.#report;
  }

  /**
   * Compares the device with the reference implementation, on a small model of the same architecture.
   * Generations continue meanwhile. A difference is reported by `passed`, not thrown.
   */
  async selfTest(): Promise<SelfTest> {
    return (await this.#connection.request({ type: "self-test" }, "self-test-result")).result;
  }

  /**
   * Continues a text.
   *
   * @throws {SetunError} `bad-option` at once. Other errors reject the {@link Generation}.
   */
  generate(prompt: string, options: GenerateOptions = {}): Generation {
    checkString("prompt", prompt);
    return this.#start(prompt, options);
  }

  /**
   * Continues each of several texts or conversations, or one of them `n` times. A prompt is computed once for its `n`.
   *
   * The generations are in the order of the prompts, `n` of each. The first of a prompt equals that of {@link generate} or
   * {@link chat} with the same seed; the others differ unless they are greedy. Each is read and stopped separately.
   *
   * @throws {SetunError} `bad-option` at once. Other errors reject the {@link Generation}; `busy` those beyond the queue.
   */
  generateMany(
    prompts: string | readonly ChatMessage[] | readonly (string | readonly ChatMessage[])[],
    options: GenerateManyOptions = {},
  ): Generation[] {
    const { n = 1, ...rest } = options;
    checkCount(n);
    const all = asPrompts(prompts);
    all.forEach(checkPrompt);
    return all.flatMap((prompt) => startGenerations(this.#context(), prompt, rest, n));
  }

  /**
   * Beam search: the most likely continuations of a prompt, the best first. The beams run in one batch.
   *
   * Scores, stopping and options are those of Hugging Face's `generate`.
   *
   * @throws {SetunError} as {@link Generation}. An aborted signal rejects with its reason.
   *
   * @example
   * ```ts
   * const [best] = await model.beamSearch("The capital of France is", { numBeams: 8, maxTokens: 10 });
   * ```
   */
  async beamSearch(
    prompt: string | readonly ChatMessage[],
    options: BeamSearchOptions = {},
  ): Promise<readonly BeamText[]> {
    checkPrompt(prompt);
    return search(this.#context(), prompt, options);
  }

  /** An empty session. */
  session(): Session {
    return new Session(this.#context(), []);
  }

  /**
   * Restores a session from the bytes of {@link Session.save}.
   * Its KV cache is used if this model computed it; otherwise the tokens are computed again.
   *
   * @throws {SetunError} `bad-checkpoint` if the bytes are damaged or no session.
   */
  async restore(bytes: Uint8Array): Promise<Session> {
    checkBytes(bytes);
    const { ids } = await this.#connection.request({ type: "restore", bytes }, "tokens");
    return new Session(this.#context(), ids);
  }

  /**
   * Scores texts as continuations of a prompt, which is computed once.
   * Each text is tokenized together with the prompt.
   *
   * @throws {SetunError} `bad-option` for an empty text; `context-full` if one does not fit.
   */
  async score(prompt: string | readonly ChatMessage[], texts: readonly string[]): Promise<readonly Score[]> {
    checkPrompt(prompt);
    checkStrings("texts", texts);
    return texts.length === 0 ? [] : (await this.#classify(prompt, texts)).scores;
  }

  /**
   * Classifies a prompt: the probability of each label as its continuation.
   *
   * @throws {SetunError} as {@link score}; also `bad-option` without labels.
   */
  async classify(
    prompt: string | readonly ChatMessage[],
    labels: readonly string[],
  ): Promise<Classification> {
    checkPrompt(prompt);
    checkStrings("labels", labels);
    return this.#classify(prompt, labels);
  }

  /**
   * A text as a vector.
   *
   * @throws {SetunError} `bad-option` for an empty text; `context-full` if it does not fit.
   */
  async embed(text: string, options: EmbedOptions = {}): Promise<Embedding> {
    checkString("text", text);
    const { embeddings, usage } = await embedTexts(this.#connection, [text], options);
    return { embedding: embeddings[0] as Float32Array<ArrayBuffer>, usage };
  }

  /**
   * Texts as vectors, in their order. They run in one batch.
   *
   * @throws {SetunError} as {@link embed}, for the first text that fails.
   */
  async embedMany(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return embedTexts(this.#connection, texts, options);
  }

  /** Counters since the model was loaded, latencies, and the current memory and queue. */
  async metrics(): Promise<Metrics> {
    return (await this.#connection.request({ type: "metrics" }, "metrics")).metrics;
  }

  /** Drops all cached prefixes that no generation uses. */
  async resetPrefixCache(): Promise<void> {
    await this.#connection.request({ type: "reset-prefix-cache" }, "prefix-cache-reset");
  }

  /**
   * Releases memory of the KV cache, and returns the number of bytes. No text changes: evicted tokens are computed again.
   *
   * `"moderate"` drops cached prefixes and frees all blocks that no generation uses.
   * `"critical"` also preempts generations that nobody reads.
   * A GPU's memory returns to the device. WebAssembly memory cannot shrink, so there it becomes free for the module.
   *
   * @throws {SetunError} `bad-option` for any other value.
   */
  async releaseMemory(pressure: "moderate" | "critical"): Promise<number> {
    const critical = pressure === "critical";
    if (!critical && pressure !== "moderate") {
      const found = shown(pressure);
      throw new SetunError("bad-option", `pressure: expected "moderate" or "critical", found ${found}`);
    }
    return (await this.#connection.request({ type: "release-memory", critical }, "memory-released")).bytes;
  }

  /**
   * Answers a conversation, formatted with the model's chat template.
   *
   * @throws {SetunError} `bad-option` at once. Other errors reject the {@link Generation}, among them
   *   `unsupported-model` for a model without a chat template.
   */
  chat(messages: readonly ChatMessage[], options: GenerateOptions = {}): Generation {
    checkMessages(messages);
    return this.#start(messages, options);
  }

  /** Token ids of a text, with the special tokens that the tokenizer adds. */
  async tokenize(text: string): Promise<Uint32Array> {
    checkString("text", text);
    return (await this.#connection.request({ type: "tokenize", text }, "tokens")).ids;
  }

  /**
   * Number of tokens of a text with its special tokens, or of a conversation in the model's chat template.
   *
   * @throws {SetunError} `bad-option`; `unsupported-model` for messages without a chat template.
   */
  async countTokens(prompt: string | readonly ChatMessage[], options: CountOptions = {}): Promise<number> {
    checkPrompt(prompt);
    return countPromptTokens(this.#connection, prompt, options);
  }

  /** Text of token ids. */
  async detokenize(ids: Iterable<number>): Promise<string> {
    return (await this.#connection.request({ type: "detokenize", ids: Uint32Array.from(ids) }, "text")).text;
  }

  /**
   * Generations that this tab had not finished when it was reloaded or closed, with the option `resume` of `load`.
   * Each is offered until it is continued or discarded.
   */
  resumable(): readonly ResumableGeneration[] {
    return this.#offer?.(this.#context()) ?? [];
  }

  /** Frees the model and ends its worker. Running generations reject with `disposed`. */
  async dispose(): Promise<void> {
    this.#connection.close();
  }

  /** Same as {@link dispose}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #reportWebnn(): Promise<DeviceReport> {
    const { devices } = this.#report;
    const absent = {
      device: "webnn",
      level: "",
      verdict: "absent",
      reason: "only browsers have WebNN",
    } as const;
    return this.#host.withWebnn?.(this.#report, this) ?? { devices: [...devices, absent] };
  }

  #start(prompt: WasmPrompt, options: GenerateOptions): Generation {
    return startGenerations(this.#context(), prompt, options, 1)[0] as Generation;
  }

  async #classify(prompt: WasmPrompt, labels: readonly string[]): Promise<Classification> {
    return (await this.#connection.request({ type: "classify", prompt, labels }, "classified"))
      .classification;
  }

  #context(): GenerationContext {
    const { build, vocabSize, contextLength, worker } = this.info;
    const baseUrl = () => this.#host.baseUrl();
    return { connection: this.#connection, build, vocabSize, contextLength, worker, baseUrl };
  }
}

/** One prompt or several as a list. A list of messages is one. */
function asPrompts(
  prompts: string | readonly ChatMessage[] | readonly (string | readonly ChatMessage[])[],
): readonly (string | readonly ChatMessage[])[] {
  const isMany =
    Array.isArray(prompts) && prompts.every((each) => typeof each === "string" || Array.isArray(each));
  return isMany ? prompts : [prompts as string | readonly ChatMessage[]];
}

function checkPrompt(prompt: string | readonly ChatMessage[]): void {
  if (typeof prompt === "string") checkString("prompt", prompt);
  else checkMessages(prompt);
}
