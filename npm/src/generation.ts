/** A generation as its reader sees it. */

import type { Connection, Listener } from "./connection.js";
import { engineOptions, type GenerateOptions } from "./options.js";
import type { Build } from "./pick-build.js";
import { type ProcessorContext, toSentProcessors } from "./processors.js";
import type { FromHost } from "./protocol.js";
import type { DoneEvent, TextDelta, WasmEvent, WasmPrompt } from "./wasm.js";

/** Why a generation ended, and what it cost. */
export interface GenerationResult extends Omit<DoneEvent, "type"> {
  /** The whole text. */
  readonly text: string;
  /** Ids of all tokens, one that ended the text included. */
  readonly tokens: readonly number[];
  /** The WebAssembly build that ran. */
  readonly build: Build;
}

/**
 * A running generation. Iterable once; leaving the loop stops the model and frees its cache at once.
 *
 * @throws {SetunError} `context-full` if the prompt alone exceeds the context; `disposed` if the model is disposed
 *   meanwhile; `busy` if too many wait already. An aborted signal rejects with its reason.
 *
 * @example
 * ```ts
 * for await (const { text } of model.generate("The Setun was")) output.append(text);
 * ```
 */
export interface Generation extends AsyncIterable<TextDelta> {
  /**
   * The tokens of the prompt, with the option `echo`, as soon as it was read; else none. The first token of a text has no
   * log-probability: nothing comes before it.
   */
  readonly prompt: Promise<readonly TextDelta[]>;
  /** The whole text, once finished. */
  text(): Promise<string>;
  /** Why it ended, and what it cost. Without a loop, the generation goes on to its end by itself. */
  readonly result: Promise<GenerationResult>;
  /** Ends normally, with `finishReason: "aborted"`. */
  stop(): void;
}

/** Turns of events on their way while the reader is busy: enough to hide the way to the worker and back. */
const CREDIT = 4;

/** Where generations run. */
export interface GenerationContext extends ProcessorContext {
  readonly connection: Connection;
  readonly build: Build;
  /** Number of the model's tokens. */
  readonly vocabSize: number;
}

/**
 * Goes on so many times from one prompt.
 *
 * @throws {SetunError} `bad-option`
 */
export function startGenerations(
  context: GenerationContext,
  prompt: WasmPrompt,
  given: GenerateOptions,
  count: number,
): Generation[] {
  const options = engineOptions(given);
  const { signal, processors } = given;
  const sent = processors && { processors: toSentProcessors(processors, context) };
  const all = Array.from({ length: count }, () => new ConnectedGeneration(context));
  if (signal?.aborted) {
    for (const generation of all) generation.fail(signal.reason);
    return all;
  }
  const request = { type: "generate", prompt, options, ...sent, count, credit: CREDIT } as const;
  const first = context.connection.startAll(request, all);
  for (const [index, generation] of all.entries()) generation.started(first + index, signal);
  return all;
}

/** The {@link Generation} over a session. */
class ConnectedGeneration implements Generation, Listener {
  readonly #connection: Connection;
  readonly #build: Build;
  #id = 0;
  /** Turns received and not yet read. */
  readonly #turns: TextDelta[][] = [];
  readonly prompt: Promise<readonly TextDelta[]>;
  readonly #echoed = deferred<readonly TextDelta[]>();
  readonly #finished = deferred<GenerationResult>();
  #ending: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;
  #text = "";
  readonly #tokens: number[] = [];
  #iterated = false;
  #removeAbortListener = () => {};

  constructor({ connection, build }: GenerationContext) {
    this.#connection = connection;
    this.#build = build;
    this.prompt = this.#echoed.promise;
  }

  /** It has been asked for, by this number; it may have failed already. */
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
    this.#echoed.reject(error);
    this.#finished.reject(error);
  }

  get result(): Promise<GenerationResult> {
    // Nobody may ever iterate, so let it run to its end.
    this.#connection.send(this.#id, { type: "credit", turns: Number.POSITIVE_INFINITY });
    return this.#finished.promise;
  }

  async text(): Promise<string> {
    return (await this.result).text;
  }

  stop(): void {
    this.#connection.send(this.#id, { type: "stop" });
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

  /** The next turn's deltas; reading one permits the host another. */
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
      if (event.type === "prompt") {
        this.#echoed.resolve(event.tokens);
        continue;
      }
      // Nothing comes before it: where there is none, there will be none.
      this.#echoed.resolve([]);
      if (event.type === "done") {
        this.#turns.push(turn);
        this.#finish(event);
        return;
      }
      const { type: _, ...delta } = event;
      turn.push(delta);
      this.#text += delta.text;
      this.#tokens.push(delta.token);
    }
    this.#turns.push(turn);
    this.#wake?.();
  }

  #finish({ type: _, ...done }: DoneEvent): void {
    this.#end({});
    this.#finished.resolve({ ...done, text: this.#text, tokens: this.#tokens, build: this.#build });
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

/** A promise that is settled from outside. Whoever only iterates learns of an error there, not here. */
function deferred<Value>() {
  let settle!: { resolve(value: Value): void; reject(error: unknown): void };
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => undefined);
  return { promise, ...settle };
}
