/** A running generation: an async iterable of tokens, and promises of its results. */

import { engineOptions } from "./check-options.js";
import type { Connection, Listener } from "./connection.js";
import { withCounts } from "./context-strategy.js";
import type { GenerateOptions } from "./generate-options.js";
import type { Build } from "./pick-build.js";
import { type ProcessorContext, toSentProcessors } from "./processors.js";
import type { FromHost, KnownGeneration, ToHost } from "./protocol.js";
import { textsOf, toStream } from "./readable-stream.js";
import { joinCalls, type ToolCall } from "./tools.js";
import type { DoneEvent, TextDelta, WasmEvent, WasmPrompt } from "./wasm.js";

/** Result of a finished generation. */
export interface GenerationResult extends Omit<DoneEvent, "type"> {
  /** The whole text. */
  readonly text: string;
  /** What the model thought before; empty if it did not. */
  readonly reasoning: string;
  /** Ids of the generated tokens, including an end token. */
  readonly tokens: readonly number[];
  /** Calls of tools. The arguments of the last one may be cut off where the answer is `unfinished`. */
  readonly toolCalls: readonly ToolCall[];
  /** The WebAssembly build that ran. */
  readonly build: Build;
}

/**
 * A running generation. It can be iterated once; leaving the loop ends it and frees its KV cache.
 *
 * A slow reader holds the generation back. Errors reject the iteration and all promises:
 * `bad-option` for a response format or a processor that fails, `context-full` if the prompt does not fit,
 * `busy` if the queue is full, `disposed` if the model is disposed, `device-lost` if the GPU does not come back.
 * An aborted signal rejects with its reason.
 *
 * @example
 * ```ts
 * for await (const { text } of model.generate("The Setun was")) output.append(text);
 * ```
 *
 * The reasoning of an answer is apart from its text.
 *
 * @example
 * ```ts
 * for await (const { text, reasoning = "" } of model.chat(messages)) {
 *   thoughts.append(reasoning);
 *   output.append(text);
 * }
 * ```
 */
export interface Generation extends AsyncIterable<TextDelta> {
  /**
   * Tokens of the prompt with their log-probabilities, once the prompt is computed; empty without the option
   * `promptLogprobs`. The first token has none, since nothing precedes it.
   */
  readonly promptLogprobs: Promise<readonly TextDelta[]>;
  /** The whole text. Runs the generation to its end. */
  text(): Promise<string>;
  /** Text, tokens, finish reason and timings. Runs the generation to its end. */
  readonly result: Promise<GenerationResult>;
  /** The tokens as a web stream, in place of the iteration. Cancelling it ends the generation. */
  toReadableStream(): ReadableStream<TextDelta>;
  /** The text as a web stream, in place of the iteration. Cancelling it ends the generation. */
  textStream(): ReadableStream<string>;
  /** Ends the generation with `finishReason: "aborted"`. */
  stop(): void;
}

/** Batches of events that may be in flight while the reader is busy: enough to hide the latency of the worker. */
const CREDIT = 4;

/** The model that generations run on. */
export interface GenerationContext extends ProcessorContext {
  readonly connection: Connection;
  readonly build: Build;
  /** Size of the vocabulary. */
  readonly vocabSize: number;
  /** Most tokens of a text. */
  readonly contextLength: number;
}

/**
 * Starts `count` generations from one prompt.
 *
 * @throws {SetunError} `bad-option`
 */
export function startGenerations(
  context: GenerationContext,
  prompt: WasmPrompt,
  given: GenerateOptions,
  count: number,
): Generation[] {
  const { contextOverflow, ...others } = engineOptions(given);
  const strategy = contextOverflow && withCounts(contextOverflow, context.contextLength);
  const options = { ...others, ...(strategy && { contextOverflow: strategy }) };
  const { signal, logitsProcessors, onPromptProgress } = given;
  const sent = logitsProcessors && { processors: toSentProcessors(logitsProcessors, context) };
  const all = Array.from({ length: count }, () => new ConnectedGeneration(context, onPromptProgress));
  if (signal?.aborted) {
    for (const generation of all) generation.fail(signal.reason);
    return all;
  }
  const request = { type: "generate", prompt, options, ...sent, count, credit: CREDIT } as const;
  const first = context.connection.startAll(request, all);
  for (const [index, generation] of all.entries()) generation.started(first + index, signal);
  return all;
}

/** Continues a generation of an earlier page. Its result has what is known, too. */
export function continueGeneration(
  context: GenerationContext,
  request: Pick<Extract<ToHost, { type: "generate" }>, "type" | "prompt" | "options" | "processors">,
  known: KnownGeneration,
  signal: AbortSignal | undefined,
): Generation {
  const generation = new ConnectedGeneration(context, undefined, known);
  if (signal?.aborted) generation.fail(signal.reason);
  else {
    const message = { ...request, count: 1, credit: CREDIT, known } as const;
    generation.started(context.connection.start(message, generation), signal);
  }
  return generation;
}

/** A {@link Generation} over a connection to the host. */
class ConnectedGeneration implements Generation, Listener {
  readonly #connection: Connection;
  readonly #build: Build;
  readonly #onPromptProgress: GenerateOptions["onPromptProgress"];
  #id = 0;
  /** Batches of events that are received and not yet read. */
  readonly #turns: TextDelta[][] = [];
  readonly promptLogprobs: Promise<readonly TextDelta[]>;
  readonly #promptLogprobs = deferred<readonly TextDelta[]>();
  readonly #finished = deferred<GenerationResult>();
  #ending: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;
  #text: string;
  #reasoning: string;
  readonly #tokens: number[];
  readonly #toolCalls: ToolCall[];
  #iterated = false;
  #removeAbortListener = () => {};

  constructor(
    { connection, build }: GenerationContext,
    onPromptProgress: GenerateOptions["onPromptProgress"],
    { text, reasoning = "", tokens, toolCalls }: Omit<KnownGeneration, "begun"> = {
      text: "",
      tokens: [],
      toolCalls: [],
    },
  ) {
    this.#text = text;
    this.#reasoning = reasoning;
    this.#tokens = [...tokens];
    this.#toolCalls = [...toolCalls];
    this.#connection = connection;
    this.#build = build;
    this.#onPromptProgress = onPromptProgress;
    this.promptLogprobs = this.#promptLogprobs.promise;
  }

  /** Sets the number of the request, which may have failed already. */
  started(id: number, signal: AbortSignal | undefined): void {
    this.#id = id;
    if (this.#ending === undefined) this.#listenForAbort(signal);
  }

  receive(message: FromHost): void {
    if (message.type === "events") this.#receive(message.events);
  }

  fail(error: unknown): void {
    if (this.#ending !== undefined) return;
    this.#end({ error });
    this.#promptLogprobs.reject(error);
    this.#finished.reject(error);
  }

  get result(): Promise<GenerationResult> {
    // Without a reader nothing else grants credit.
    this.#connection.send(this.#id, { type: "credit", turns: Number.POSITIVE_INFINITY });
    return this.#finished.promise;
  }

  async text(): Promise<string> {
    return (await this.result).text;
  }

  stop(): void {
    this.#connection.send(this.#id, { type: "stop" });
  }

  toReadableStream(): ReadableStream<TextDelta> {
    return toStream(this, () => this.stop());
  }

  textStream(): ReadableStream<string> {
    return toStream(textsOf(this), () => this.stop());
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TextDelta, void, undefined> {
    if (this.#iterated) throw new TypeError("a generation can be iterated once");
    this.#iterated = true;
    try {
      for (;;) {
        const turn = await this.#nextTurn();
        if (turn === undefined) return;
        yield* turn;
      }
    } finally {
      this.stop();
    }
  }

  /** Tokens of the next batch. Reading one grants the host credit for another. */
  async #nextTurn(): Promise<TextDelta[] | undefined> {
    while (this.#turns.length === 0 && this.#ending === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#ending !== undefined && "error" in this.#ending) throw this.#ending.error;
    const turn = this.#turns.shift();
    if (turn !== undefined) this.#connection.send(this.#id, { type: "credit", turns: 1 });
    return turn;
  }

  #receive(events: readonly WasmEvent[]): void {
    const turn: TextDelta[] = [];
    for (const event of events) {
      if (event.type === "progress") {
        const { type: _, ...progress } = event;
        this.#onPromptProgress?.(progress);
        continue;
      }
      if (event.type === "prompt") {
        this.#promptLogprobs.resolve(event.tokens);
        continue;
      }
      // Prompt tokens come before the first text.
      this.#promptLogprobs.resolve([]);
      if (event.type === "done") {
        this.#turns.push(turn);
        this.#finish(event);
        return;
      }
      const { type: _, ...delta } = event;
      turn.push(delta);
      this.#text += delta.text;
      this.#reasoning += delta.reasoning ?? "";
      this.#tokens.push(delta.token);
      if (delta.toolCalls) joinCalls(this.#toolCalls, delta.toolCalls);
    }
    this.#turns.push(turn);
    this.#wake?.();
  }

  #finish({ type: _, ...done }: DoneEvent): void {
    this.#end({});
    const [text, reasoning, tokens, toolCalls] = [this.#text, this.#reasoning, this.#tokens, this.#toolCalls];
    this.#finished.resolve({ ...done, text, reasoning, tokens, toolCalls, build: this.#build });
  }

  #end(ending: { readonly error?: unknown }): void {
    this.#ending = ending;
    this.#removeAbortListener();
    this.#connection.remove(this.#id);
    this.#wake?.();
  }

  #listenForAbort(signal: AbortSignal | undefined): void {
    const abort = () => {
      this.stop();
      this.fail(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.#removeAbortListener = () => signal?.removeEventListener("abort", abort);
  }
}

/** A promise that is settled from outside. Its rejection is handled: a reader that only iterates gets the error there. */
function deferred<Value>() {
  let settle!: { resolve(value: Value): void; reject(error: unknown): void };
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => undefined);
  return { promise, ...settle };
}
