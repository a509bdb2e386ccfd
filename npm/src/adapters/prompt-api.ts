/**
 * `setun/prompt-api`: the class `LanguageModel` of the Prompt API over a model of setun, in pages, workers and Node.
 *
 * `docs/adapters.md` has the rules, and what differs from browsers' own.
 *
 * @module setun/prompt-api
 */

import { following } from "./core.js";
import { abortable, checkPrompt, checkTools, exception } from "./prompt-api-checks.js";
import { type ModelSource, type SessionDefaults, SharedModel } from "./prompt-api-model.js";
import { CreateMonitor } from "./prompt-api-monitor.js";
import { checkCore, type InstallOptions, samplingOf } from "./prompt-api-options.js";
import { asException, Conversation, formatOf, QuotaExceededError, toolsOf } from "./prompt-api-session.js";
import type {
  Availability,
  CoreOptions,
  CreateOptions,
  LanguageModelParams,
  Prompt,
  PromptOptions,
  SamplingMode,
} from "./prompt-api-types.js";

export type { AdapterModel } from "./core.js";
export type { LoaderOptions, ModelSource, SessionDefaults } from "./prompt-api-model.js";
export type { CreateMonitor } from "./prompt-api-monitor.js";
export type { InstallOptions } from "./prompt-api-options.js";
export type * from "./prompt-api-types.js";
export { QuotaExceededError };

let shared: SharedModel | undefined;

/**
 * Sets the model of {@link LanguageModel}, or the function that loads it when the first session is created.
 * `defaults` are options of all answers.
 */
export function provideModel(source: ModelSource, defaults: SessionDefaults = {}): void {
  shared = new SharedModel(source, defaults);
}

/**
 * Sets `globalThis.LanguageModel` where it is absent, or always with `force`. Returns whether it did.
 *
 * @example
 * ```ts
 * install((options) => load("hf:owner/name", options));
 * const session = await LanguageModel.create();
 * ```
 */
export function install(source: ModelSource, { force = false, defaults = {} }: InstallOptions = {}): boolean {
  if ("LanguageModel" in globalThis && !force) return false;
  provideModel(source, defaults);
  const property = { value: LanguageModel, writable: true, configurable: true, enumerable: false };
  Object.defineProperty(globalThis, "LanguageModel", property);
  return true;
}

/** A conversation with the model. */
export class LanguageModel extends EventTarget {
  readonly #conversation: Conversation;
  readonly #mode: SamplingMode;
  readonly #destroyed = new AbortController();
  /** The end of the last operation; they run in order. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Called when messages have been dropped. */
  oncontextoverflow: ((event: Event) => void) | null = null;

  private constructor(conversation: Conversation, mode: SamplingMode) {
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
  static async availability(options: CoreOptions = {}): Promise<Availability> {
    const isPossible = checkCore(options);
    return shared === undefined || !isPossible ? "unavailable" : shared.availability;
  }

  /** Sampling defaults of the loaded model; `null` without one. */
  static async params(): Promise<LanguageModelParams | null> {
    const info = shared?.loaded?.info;
    if (info === undefined) return null;
    const { topK: defaultTopK, temperature: defaultTemperature } = info.defaults;
    const maxTemperature = Number.POSITIVE_INFINITY;
    return { defaultTopK, maxTopK: info.vocabSize, defaultTemperature, maxTemperature };
  }

  /** A new session. It loads the model if no session has. */
  static async create(options: CreateOptions = {}): Promise<LanguageModel> {
    const { signal, initialPrompts = [], monitor } = options;
    const isPossible = checkCore(options);
    const initial = initialPrompts.length === 0 ? undefined : checkPrompt(initialPrompts, true);
    if (initial?.isPrefixed) throw exception("SyntaxError", "initialPrompts: prefix is for prompts");
    signal?.throwIfAborted();
    if (shared === undefined)
      throw exception("NotSupportedError", "there is no model: call provideModel or install");
    if (!isPossible) throw exception("NotSupportedError", "the model reads and writes text only");
    const source = shared;
    const target = new CreateMonitor();
    monitor?.(target);
    target.report(0);
    return settled(following(signal), async (running) => {
      const model = await source.load((share) => running.aborted || target.report(share));
      running.throwIfAborted();
      target.report(1);
      const [mode, sampling] = samplingOf(options);
      const tools = checkTools(options.tools);
      const own = { ...source.defaults, ...sampling, ...toolsOf(tools) };
      const conversation = new Conversation({ model, tools, options: own });
      if (initial !== undefined) await conversation.begin(initial.messages, running);
      const session = new LanguageModel(conversation, mode);
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

  /** The mode that the session was created with. */
  get samplingMode(): SamplingMode {
    return this.#mode;
  }

  /** Answers a prompt. The answer joins the session; an aborted or failed prompt leaves it as it was. */
  async prompt(input: Prompt, options: PromptOptions = {}): Promise<string> {
    const format = constraintOf(options);
    let answer = "";
    const onText = (text: string) => {
      answer += text;
    };
    await this.#answer(input, format, this.#controllerOf(options), onText);
    return answer;
  }

  /** Answers a prompt in pieces. Cancelling the stream leaves the session as it was. */
  promptStreaming(input: Prompt, options: PromptOptions = {}): ReadableStream<string> {
    const format = constraintOf(options);
    const controller = this.#controllerOf(options);
    controller.signal.throwIfAborted();
    let isCancelled = false;
    return new ReadableStream({
      start: (stream) => {
        const onText = (text: string) => isCancelled || stream.enqueue(text);
        this.#answer(input, format, controller, onText).then(
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
  async append(input: Prompt, options: { signal?: AbortSignal } = {}): Promise<void> {
    const append = (signal: AbortSignal) => this.#conversation.append(this.#check(input).messages, signal);
    return this.#inTurn(this.#controllerOf(options), append);
  }

  /** Tokens that a prompt would add. */
  async measureContextUsage(input: Prompt, options: PromptOptions = {}): Promise<number> {
    constraintOf(options);
    return settled(this.#controllerOf(options), async () =>
      this.#conversation.measure(this.#check(input).messages),
    );
  }

  /** A session with the same messages. Their KV cache is shared. */
  async clone({ signal }: { signal?: AbortSignal } = {}): Promise<LanguageModel> {
    this.#destroyed.signal.throwIfAborted();
    signal?.throwIfAborted();
    return new LanguageModel(new Conversation(this.#conversation.parts, this.#conversation), this.#mode);
  }

  /** Ends the session: what runs rejects with an `AbortError`. The model stays loaded. */
  destroy(): void {
    this.#destroyed.abort(exception("AbortError", "the session has been destroyed"));
  }

  #answer(
    input: Prompt,
    format: ReturnType<typeof formatOf>,
    controller: AbortController,
    onText: (text: string) => void,
  ): Promise<void> {
    const reply = (signal: AbortSignal) =>
      this.#conversation.reply(this.#check(input), format, signal, onText);
    return this.#inTurn(controller, reply);
  }

  #check(input: Prompt) {
    return checkPrompt(input, this.#conversation.isEmpty);
  }

  /** Runs an operation after those before it. */
  #inTurn(controller: AbortController, operation: (signal: AbortSignal) => Promise<void>): Promise<void> {
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
async function settled<Result>(
  controller: AbortController,
  operation: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { signal } = controller;
  signal.throwIfAborted();
  try {
    return await abortable(operation(signal), signal);
  } catch (thrown) {
    throw asException(thrown, signal);
  } finally {
    controller.abort(); // Takes its listeners off the signals that it follows.
  }
}

/** @throws {TypeError} */
function constraintOf({ responseConstraint, omitResponseConstraintInput }: PromptOptions) {
  if (omitResponseConstraintInput && responseConstraint === undefined)
    throw new TypeError("omitResponseConstraintInput: there is no responseConstraint");
  return formatOf(responseConstraint);
}
