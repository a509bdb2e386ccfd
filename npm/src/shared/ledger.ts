/**
 * The ledger of a tab: requests that are not answered yet, and the tokens of each generation so far.
 *
 * Random numbers follow from seed and position alone, and computed tokens do not depend on how they came into the KV
 * cache (docs/numerics.md). So a generation goes on elsewhere with the same text: from its prompt and its tokens.
 */

import type { FromHost, ToHost } from "../protocol.js";
import type { RequestOptions } from "../response-format.js";
import { joinCalls, type ToolCall } from "../tools.js";
import type { WasmEvent } from "../wasm.js";

/** A request of generations. */
export type Generate = Extract<ToHost, { type: "generate" }>;

/** A generation that has not ended. */
export interface OpenGeneration {
  /** The request of this generation alone, from its first token, with its seed. */
  readonly request: Generate;
  /** When it was requested, in milliseconds. */
  readonly begun: number;
  text: string;
  reasoning: string;
  readonly tokens: number[];
  readonly toolCalls: ToolCall[];
}

interface Entry {
  readonly message: ToHost;
  readonly generation: OpenGeneration | undefined;
  /** Batches that the host may still send. */
  credit: number;
  isStopped: boolean;
  hasPrompt: boolean;
  /** Tokens that come again and are known. */
  repeated: number;
  /** Times that it was sent again since the last answer. */
  restarts: number;
}

/** Hosts that one request may end before it fails. */
const MAX_RESTARTS = 4;

const ENDED_ITS_TABS = "every tab that ran this request has ended";

/** Requests that are not answered. */
export class Ledger {
  readonly #entries = new Map<number, Entry>();
  /** Called when a generation begins, goes on or ends. */
  onChange: () => void = () => undefined;
  /** Called when nobody waits any more. */
  onEnd: () => void = () => undefined;

  /** Generations that have not ended, in the order of their requests. */
  get generations(): OpenGeneration[] {
    return [...this.#entries.values()].flatMap(({ generation, isStopped }) =>
      generation === undefined || isStopped ? [] : [generation],
    );
  }

  /**
   * Notes a message to the host, and returns it as it is to be sent: a generation has a seed then, and goes on from the
   * tokens that are known.
   */
  sent(message: ToHost): ToHost {
    if (message.type === "generate") return this.#begin(message);
    const entry = this.#entries.get(message.id);
    if (message.type === "credit") {
      if (entry !== undefined) entry.credit += message.turns;
    } else if (message.type === "stop") {
      if (entry !== undefined) entry.isStopped = true;
      this.onChange();
    } else {
      this.#entries.set(message.id, newEntry(message, undefined, 0));
    }
    return message;
  }

  #begin({ known, ...message }: Generate): Generate {
    const { id, count } = message;
    const options = { ...message.options, seed: message.options.seed ?? randomSeed() };
    const first = options.sampleIndex ?? 0;
    for (let index = 0; index < count; index += 1) {
      const own = index === 0 ? options : { ...options, sampleIndex: first + index };
      const request = { ...message, id: id + index, count: 1, options: own };
      const { text = "", reasoning = "", tokens = [], toolCalls = [], begun = Date.now() } = known ?? {};
      const generation = { request, begun, text, reasoning, tokens: [...tokens], toolCalls: [...toolCalls] };
      const entry = newEntry(request, generation, message.credit);
      this.#entries.set(id + index, entry);
      if (known !== undefined) return again(entry) as Generate;
    }
    this.onChange();
    return { ...message, options };
  }

  /**
   * Notes an answer. Returns what is new in it, or else the message that asks for more.
   */
  received(message: FromHost): { readonly news?: FromHost; readonly reply?: ToHost } {
    const entry = this.#entries.get(message.id);
    if (entry === undefined || message.type === "progress") return { news: message };
    entry.restarts = 0;
    if (message.type !== "events" || entry.generation === undefined) {
      this.#entries.delete(message.id);
      this.onChange();
      return { news: message };
    }
    const events = message.events.filter((event) => isNew(event, entry));
    for (const event of events) note(event, entry, entry.generation);
    if (message.events.at(-1)?.type === "done") this.#entries.delete(message.id);
    this.onChange();
    if (events.length === 0) return { reply: { type: "credit", id: message.id, turns: 1 } };
    entry.credit -= 1;
    return { news: { ...message, events } };
  }

  /** Forgets all, as nobody waits any more. */
  end(): void {
    this.#entries.clear();
    this.onChange();
    this.onEnd();
  }

  /** The messages with which another host goes on; and the failures of requests that no host survives. */
  resume(): { readonly requests: ToHost[]; readonly failures: FromHost[] } {
    const requests: ToHost[] = [];
    const failures: FromHost[] = [];
    for (const [id, entry] of this.#entries) {
      // One that waits for its reader has no part in the end of its host.
      if (entry.generation === undefined || entry.credit > 0) entry.restarts += 1;
      if (entry.restarts > MAX_RESTARTS) {
        this.#entries.delete(id);
        const error = { code: "device-lost", name: "SetunError", message: ENDED_ITS_TABS, cause: undefined };
        failures.push({ type: "failed", id, error } as FromHost);
        continue;
      }
      requests.push(again(entry));
      if (entry.isStopped) requests.push({ type: "stop", id });
    }
    this.onChange();
    return { requests, failures };
  }
}

function newEntry(message: ToHost, generation: OpenGeneration | undefined, credit: number): Entry {
  return { message, generation, credit, isStopped: false, hasPrompt: false, repeated: 0, restarts: 0 };
}

/** Whether an event was not received before, from another host. */
function isNew(event: WasmEvent, entry: Entry): boolean {
  if (event.type === "prompt") return !entry.hasPrompt;
  if (event.type !== "text" || entry.repeated === 0) return true;
  entry.repeated -= 1;
  return false;
}

function note(event: WasmEvent, entry: Entry, generation: OpenGeneration): void {
  if (event.type === "prompt") entry.hasPrompt = true;
  if (event.type !== "text") return;
  generation.text += event.text;
  generation.reasoning += event.reasoning ?? "";
  generation.tokens.push(event.token);
  if (event.toolCalls) joinCalls(generation.toolCalls, event.toolCalls);
}

/** The request from where it was. */
function again(entry: Entry): ToHost {
  const { message, generation, credit } = entry;
  if (generation === undefined) return message;
  const { request, tokens } = generation;
  const options = optionsAfter(generation);
  const isWhole = isRunAgain(options) || tokens.length === 0;
  entry.repeated = isWhole ? tokens.length : 0;
  if (isWhole) return { ...request, options, credit };
  entry.hasPrompt = true;
  const { promptLogprobs: _, promptProgress: __, generatedTokens = [], ...rest } = options;
  return { ...request, options: { ...rest, generatedTokens: [...generatedTokens, ...tokens] }, credit };
}

/** Its options with what is left of its time. */
function optionsAfter({ request, begun }: OpenGeneration): RequestOptions {
  const { timeout } = request.options;
  if (timeout === undefined) return request.options;
  return { ...request.options, timeout: Math.max(0, timeout - (Date.now() - begun)) };
}

/** Whether the sampler has a state that the tokens do not tell, so that all of it is generated again. */
function isRunAgain({ mirostatTau = 0 }: RequestOptions): boolean {
  return mirostatTau > 0;
}

/** A seed that a number holds exactly, as the engine's own. */
function randomSeed(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low;
}
