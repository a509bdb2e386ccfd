/** Generations that outlive their page: kept in the session storage of the tab, and offered after a reload. */

import { checkSignal } from "../check-options.js";
import { continueGeneration, type Generation, type GenerationContext } from "../generation.js";
import type { ChatMessage } from "../protocol.js";
import type { ToolCall } from "../tools.js";
import type { Generate, Ledger } from "./ledger.js";
import { watchPage } from "./page-lifecycle.js";

/** A generation that ended with its page, and can go on. */
export interface ResumableGeneration {
  /** The prompt: a text, messages, or the token ids of a session. */
  readonly prompt: string | readonly ChatMessage[] | readonly number[];
  /** The text so far. */
  readonly text: string;
  /** The reasoning so far. */
  readonly reasoning: string;
  /** Ids of the tokens so far. */
  readonly tokens: readonly number[];
  /** Calls of tools so far; the last one may be a part of a call. */
  readonly toolCalls: readonly ToolCall[];
  /**
   * Goes on. The iteration has what is new, and the result the whole text, which is that of a generation without a
   * break. Call it once.
   *
   * @throws {TypeError} if it was called before, or after {@link discard}.
   */
  continue(options?: { signal?: AbortSignal }): Generation;
  /** Forgets it. */
  discard(): void;
}

/** A generation in storage. */
interface Kept {
  readonly prompt: string | readonly ChatMessage[] | { readonly tokens: readonly number[] };
  readonly options: Record<string, unknown>;
  readonly processors?: Generate["processors"];
  readonly begun: number;
  readonly text: string;
  readonly reasoning: string;
  readonly tokens: readonly number[];
  readonly toolCalls: readonly ToolCall[];
}

/** The used part of `sessionStorage`. */
export interface TextStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  removeItem(key: string): void;
}

/** Milliseconds between two writes of a running generation. After a crash its last tokens are generated again. */
const INTERVAL_MS = 1000;

/** Keeps the generations of a ledger. */
export class KeptGenerations {
  readonly #storage: TextStorage;
  readonly #key: string;
  readonly #ledger: Ledger;
  /** Of earlier pages, neither continued nor discarded. */
  readonly #offered: Set<Kept>;
  readonly #unwatch: () => void;
  #writtenAt = 0;

  /** `name` is that of the model. */
  constructor(storage: TextStorage, name: string, ledger: Ledger) {
    this.#storage = storage;
    this.#key = takeKey(name);
    this.#ledger = ledger;
    this.#offered = new Set(read(storage, this.#key));
    ledger.onChange = () => this.#changed();
    ledger.onEnd = () => this.end();
    this.#unwatch = watchPage({ hide: () => this.write() });
  }

  /** Keeps no more from now on. What was offered stays in storage. */
  end(): void {
    this.#unwatch();
    this.#ledger.onChange = () => undefined;
    keys.delete(this.#key);
  }

  /** What earlier pages have left. */
  offer(context: GenerationContext): ResumableGeneration[] {
    return [...this.#offered].map((kept) => ({
      prompt: promptOf(kept),
      text: kept.text,
      reasoning: kept.reasoning,
      tokens: kept.tokens,
      toolCalls: kept.toolCalls,
      continue: ({ signal } = {}) => {
        checkSignal(signal);
        this.#take(kept);
        const { begun, text, reasoning, tokens, toolCalls } = kept;
        const known = { begun, text, reasoning, tokens, toolCalls };
        return continueGeneration(context, requestOf(kept), known, signal);
      },
      discard: () => {
        this.#offered.delete(kept);
        this.write();
      },
    }));
  }

  #take(kept: Kept): void {
    if (this.#offered.delete(kept)) return;
    throw new TypeError("this generation has been continued or discarded");
  }

  #changed(): void {
    const isEmpty = this.#ledger.generations.length === 0;
    if (isEmpty || Date.now() - this.#writtenAt >= INTERVAL_MS) this.write();
  }

  /** Writes the generations as they are now. */
  write(): void {
    this.#writtenAt = Date.now();
    const running = this.#ledger.generations.flatMap((generation) => {
      const { request, begun, text, reasoning, tokens, toolCalls } = generation;
      const { prompt, processors } = request;
      const seed = request.options.seed;
      const options = { ...request.options, ...(typeof seed === "bigint" && { seed: `${seed}` }) };
      const kept = {
        prompt: prompt instanceof Uint32Array ? { tokens: [...prompt] } : prompt,
        options,
        ...(processors && { processors }),
        begun,
        text,
        reasoning,
        tokens,
        toolCalls,
      };
      return isJson(kept) ? [kept] : [];
    });
    const all = [...this.#offered, ...running];
    try {
      if (all.length === 0) this.#storage.removeItem(this.#key);
      else this.#storage.setItem(this.#key, JSON.stringify(all));
    } catch {
      // There is no room. What was written before is of earlier tokens, from which the text is the same.
    }
  }
}

/** Keys of the models of this page. */
const keys = new Set<string>();

/** A key of its own for each of several equal models; after a reload they have the same in the same order. */
function takeKey(name: string): string {
  let key = name;
  for (let count = 2; keys.has(key); count += 1) key = `${name}:${count}`;
  keys.add(key);
  return key;
}

function read(storage: TextStorage, key: string): Kept[] {
  try {
    return JSON.parse(storage.getItem(key) ?? "[]");
  } catch {
    return [];
  }
}

function promptOf({ prompt }: Kept): ResumableGeneration["prompt"] {
  return typeof prompt === "object" && "tokens" in prompt ? prompt.tokens : prompt;
}

function requestOf({ prompt, options, processors }: Kept): Omit<Generate, "id" | "count" | "credit"> {
  const isSession = typeof prompt === "object" && "tokens" in prompt;
  const seed = typeof options.seed === "string" ? BigInt(options.seed) : options.seed;
  return {
    type: "generate",
    prompt: isSession ? Uint32Array.from(prompt.tokens) : prompt,
    options: { ...options, ...(seed !== undefined && { seed }) } as Generate["options"],
    ...(processors && { processors }),
  };
}

/** Whether JSON keeps all of a value: options of processors may be anything. */
function isJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.values(value).every((each) => each === undefined || isJson(each));
}
