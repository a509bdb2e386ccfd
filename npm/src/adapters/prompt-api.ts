/**
 * `setun/prompt-api`: the class `LanguageModel` of the Prompt API over a model of setun, in pages, workers and Node.
 *
 * `docs/adapters.md` has the rules, and what differs from browsers' own.
 *
 * @module setun/prompt-api
 */

import { following } from "./core.js";
import { checkCore, checkPrompt, samplingOf } from "./prompt-api-checks.js";
import { SharedModel } from "./prompt-api-model.js";
import { CreateMonitor } from "./prompt-api-monitor.js";
import { asException, Conversation, formatOf } from "./prompt-api-session.js";
import { isOpenLoop, toolsOf } from "./prompt-api-tools.js";
import * as api from "./prompt-api-types.js";

export type { AdapterModel } from "./core.js";
export type { CreateMonitor } from "./prompt-api-monitor.js";
export * from "./prompt-api-types.js";

type Operation<Result> = (signal: AbortSignal) => Promise<Result>;
type Format = ReturnType<typeof formatOf>;

let shared: SharedModel | undefined;

/**
 * Sets the model of {@link LanguageModel}, or the function that loads it when the first session is created.
 * `defaults` are options of all answers.
 */
export function provideModel(source: api.ModelSource, defaults: api.SessionDefaults = {}): void {
  shared = new SharedModel(source, defaults);
}

/**
 * Sets `globalThis.LanguageModel` and its classes of tools where it is absent, or always with `force`.
 * Returns whether it did.
 *
 * @example
 * ```ts
 * install((options) => load("hf:owner/name", options));
 * const session = await LanguageModel.create();
 * ```
 */
export function install(source: api.ModelSource, options: api.InstallOptions = {}): boolean {
  if ("LanguageModel" in globalThis && !options.force) return false;
  provideModel(source, options.defaults);
  const { LanguageModelToolCall, LanguageModelToolSuccess, LanguageModelToolError } = api;
  const tools = { LanguageModelToolCall, LanguageModelToolSuccess, LanguageModelToolError };
  for (const [name, value] of Object.entries({ LanguageModel, ...tools }))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  return true;
}

/** A conversation with the model. `Answer` is `OpenAnswer` where the application runs the tools. */
export class LanguageModel<Answer = string> extends EventTarget {
  readonly #conversation: Conversation;
  readonly #mode: api.SamplingMode | null;
  readonly #destroyed = new AbortController();
  /** The end of the last operation; they run in order. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Called when messages have been dropped. */
  oncontextoverflow: ((event: Event) => void) | null = null;

  private constructor(conversation: Conversation, mode: api.SamplingMode | null) {
    super();
    this.#conversation = conversation;
    this.#mode = mode;
    conversation.onOverflow = () => {
      const event = new Event("contextoverflow");
      this.oncontextoverflow?.(event);
      this.dispatchEvent(event);
    };
  }

  /** Whether sessions with these options can be created, and whether the model is loaded. */
  static async availability(options: api.CoreOptions = {}): Promise<api.Availability> {
    isOpenLoop(options);
    const isPossible = checkCore(options);
    return shared === undefined || !isPossible ? "unavailable" : shared.availability;
  }

  /** Sampling defaults of the loaded model; `null` without one. */
  static async params(): Promise<api.LanguageModelParams | null> {
    const info = shared?.loaded?.info;
    if (info === undefined) return null;
    const { topK: defaultTopK, temperature: defaultTemperature } = info.defaults;
    const maxTemperature = Number.POSITIVE_INFINITY;
    return { defaultTopK, maxTopK: info.vocabSize, defaultTemperature, maxTemperature };
  }

  /** A new session. It loads the model if no session has. */
  static async create<Answer = string>(options: api.CreateOptions = {}): Promise<LanguageModel<Answer>> {
    const { signal, initialPrompts = [], monitor, tools = [] } = options;
    const isOpen = isOpenLoop(options);
    const isPossible = checkCore(options);
    const calls = isOpen || tools.length > 0 ? new Map() : undefined;
    const initial = initialPrompts.length === 0 ? undefined : checkPrompt(initialPrompts, true, calls);
    if (initial?.isPrefixed) throw new DOMException("initialPrompts: prefix is for prompts", "SyntaxError");
    signal?.throwIfAborted();
    if (shared === undefined)
      throw new DOMException("there is no model: call provideModel or install", "NotSupportedError");
    if (!isPossible) throw new DOMException("the model reads and writes text only", "NotSupportedError");
    const source = shared;
    const target = new CreateMonitor();
    monitor?.(target);
    target.report(0);
    return settled(following(signal), async (running) => {
      const model = await source.load((share) => running.aborted || target.report(share));
      running.throwIfAborted();
      target.report(1);
      const [mode, sampling] = samplingOf(options);
      const own = { ...source.defaults, ...sampling, ...toolsOf(tools) };
      const conversation = new Conversation({ model, tools: [...tools], isOpen, options: own });
      if (initial !== undefined) await conversation.begin(initial.messages, running);
      const session = new LanguageModel<Answer>(conversation, mode);
      signal?.addEventListener("abort", () => session.#destroyed.abort(signal.reason), { once: true });
      return session;
    });
  }

  /** Tokens in use. */
  get contextUsage(): number {
    return this.#conversation.usage;
  }

  /** Tokens of the model's context. */
  get contextWindow(): number {
    return this.#conversation.window;
  }

  /** The mode that the session was created with; `null` with `topK` or `temperature`. */
  get samplingMode(): api.SamplingMode | null {
    return this.#mode;
  }

  /** Answers a prompt. The answer joins the session; an aborted or failed prompt leaves it as it was. */
  async prompt(input: api.Prompt, options: api.PromptOptions = {}): Promise<Answer> {
    const format = formatOf(options);
    let text = "";
    const calls: unknown[] = [];
    await this.#answer(input, format, this.#controllerOf(options), (piece) => {
      if (typeof piece === "string") text += piece;
      else calls.push(piece);
    });
    if (calls.length > 0 && text !== "") calls.unshift({ type: "text", value: text });
    return (calls.length > 0 ? calls : text) as Answer;
  }

  /** Answers a prompt in pieces. Cancelling the stream leaves the session as it was. */
  promptStreaming(input: api.Prompt, options: api.PromptOptions = {}): ReadableStream<api.Piece<Answer>> {
    const format = formatOf(options);
    const controller = this.#controllerOf(options);
    controller.signal.throwIfAborted();
    let isCancelled = false;
    return new ReadableStream({
      start: (stream) => {
        const onPiece = (piece: unknown) => isCancelled || stream.enqueue(piece as api.Piece<Answer>);
        this.#answer(input, format, controller, onPiece).then(
          () => isCancelled || stream.close(),
          (error) => stream.error(error),
        );
      },
      cancel: () => {
        isCancelled = true;
        controller.abort();
      },
    });
  }

  /** Adds messages and computes them, without an answer. */
  async append(input: api.Prompt, options: { signal?: AbortSignal } = {}): Promise<void> {
    const append = (signal: AbortSignal) => this.#conversation.append(this.#check(input).messages, signal);
    return this.#inTurn(this.#controllerOf(options), append);
  }

  /** Tokens that a prompt would add. */
  async measureContextUsage(input: api.Prompt, options: api.PromptOptions = {}): Promise<number> {
    formatOf(options);
    const measure = async () => this.#conversation.measure(this.#check(input).messages);
    return settled(this.#controllerOf(options), measure);
  }

  /** A session with the same messages. Their KV cache is shared. */
  async clone({ signal }: { signal?: AbortSignal } = {}): Promise<LanguageModel<Answer>> {
    this.#destroyed.signal.throwIfAborted();
    signal?.throwIfAborted();
    return new LanguageModel(new Conversation(this.#conversation.parts, this.#conversation), this.#mode);
  }

  /** Ends the session: what runs rejects with an `AbortError`. The model stays loaded. */
  destroy(): void {
    this.#destroyed.abort(new DOMException("the session has been destroyed", "AbortError"));
  }

  #answer(input: api.Prompt, format: Format, controller: AbortController, onPiece: (piece: unknown) => void) {
    return this.#inTurn(controller, (signal) =>
      this.#conversation.reply(this.#check(input), format, signal, onPiece),
    );
  }

  #check(input: api.Prompt) {
    return checkPrompt(input, this.#conversation.isEmpty, this.#conversation.calls);
  }

  /** Runs an operation after those before it. */
  #inTurn(controller: AbortController, operation: Operation<void>): Promise<void> {
    return settled(controller, (signal) => {
      const run = this.#queue.then(() => {
        signal.throwIfAborted();
        return operation(signal);
      });
      this.#queue = run.catch(() => undefined);
      return run;
    });
  }

  #controllerOf({ signal }: { signal?: AbortSignal }): AbortController {
    return following(this.#destroyed.signal, signal);
  }
}

/** What an operation gives, or an exception of the platform. An abort rejects at once. */
async function settled<Result>(controller: AbortController, operation: Operation<Result>): Promise<Result> {
  const { signal } = controller;
  signal.throwIfAborted();
  try {
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return await Promise.race([operation(signal), aborted]);
  } catch (thrown) {
    throw asException(thrown, signal);
  } finally {
    controller.abort(); // Takes its listeners off the signals that it follows.
  }
}
