/** Fake tabs of one origin: locks, channels and a model in each, which closes, crashes or freezes with its tab. */

import { Credit } from "../../src/active-request.js";
import { Connection, type HostLink } from "../../src/connection.js";
import { startGenerations } from "../../src/generation.js";
import type { Open, Opened } from "../../src/load.js";
import type { ModelInfo } from "../../src/model.js";
import type { LoadOptions } from "../../src/options.js";
import type { FromHost, ToHost } from "../../src/protocol.js";
import { Ledger } from "../../src/shared/ledger.js";
import { joinTabs } from "../../src/shared/load-tabs.js";
import type { Channel, Place } from "../../src/shared/ports.js";
import { joinCalls, type ToolCall, type ToolCallDelta } from "../../src/tools.js";
import type { WasmEvent } from "../../src/wasm.js";
import { turns } from "../gate.js";

const NAME = "setun:test";
const INFO = { build: "simd128", backend: "cpu", vocabSize: 1000, worker: true } as ModelInfo;

/** Pseudo-random integers below a bound: a linear congruential generator with Knuth's constants. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
}

interface Waiting {
  readonly tab: FakeTab;
  readonly run: () => void;
}

/** All tabs of an origin. */
export class FakeOrigin {
  readonly channels = new Set<FakeChannel>();
  readonly locks = new Map<string, { holder: FakeTab | undefined; waiting: Waiting[] }>();
  readonly hosts = new Set<FakeHost>();
  /** Most models at once. */
  mostHosts = 0;
  loads = 0;

  openTab(): FakeTab {
    return new FakeTab(this);
  }

  /** Gives a lock to the next in line. */
  grant(name: string): void {
    const lock = this.locks.get(name);
    if (lock === undefined || lock.holder !== undefined) return;
    const next = lock.waiting.shift();
    if (next === undefined) return;
    lock.holder = next.tab;
    setImmediate(next.run);
  }

  async request(tab: FakeTab, name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    signal.throwIfAborted();
    const lock = this.locks.get(name) ?? { holder: undefined, waiting: [] };
    this.locks.set(name, lock);
    await new Promise<void>((resolve, reject) => {
      const waiting = { tab, run: resolve };
      lock.waiting.push(waiting);
      signal.addEventListener("abort", () => {
        if (!lock.waiting.includes(waiting)) return;
        lock.waiting.splice(lock.waiting.indexOf(waiting), 1);
        reject(signal.reason);
      });
      this.grant(name);
    });
    if (!tab.isAlive) return new Promise(() => undefined);
    try {
      await work();
    } finally {
      if (tab.isAlive) {
        lock.holder = undefined;
        this.grant(name);
      }
    }
  }

  releaseAll(tab: FakeTab): void {
    for (const [name, lock] of this.locks) {
      lock.waiting = lock.waiting.filter((waiting) => waiting.tab !== tab);
      if (lock.holder === tab) lock.holder = undefined;
      this.grant(name);
    }
  }
}

class FakeChannel implements Channel {
  onmessage: ((event: MessageEvent) => void) | null = null;
  readonly name: string;
  readonly #tab: FakeTab;

  constructor(tab: FakeTab, name: string) {
    this.#tab = tab;
    this.name = name;
    tab.origin.channels.add(this);
  }

  postMessage(message: unknown): void {
    const { origin } = this.#tab;
    if (!this.#tab.isAlive) return;
    if (!origin.channels.has(this)) throw new DOMException("the channel is closed", "InvalidStateError");
    const data = structuredClone(message);
    const others = [...origin.channels].filter((other) => other !== this && other.name === this.name);
    for (const other of others) {
      setImmediate(() => {
        if (other.#tab.isAlive && origin.channels.has(other)) other.onmessage?.({ data } as MessageEvent);
      });
    }
  }

  close(): void {
    this.#tab.origin.channels.delete(this);
  }

  isOf(tab: FakeTab): boolean {
    return this.#tab === tab;
  }
}

/** A tab. */
export class FakeTab {
  readonly origin: FakeOrigin;
  isAlive = true;
  host: FakeHost | undefined;
  /** Turns of the loop before a lock is asked for: browsers first look whether a page may. */
  lockDelay = 0;

  constructor(origin: FakeOrigin) {
    this.origin = origin;
  }

  /** Loads the shared model; `failure` has a load in this tab fail. */
  async load(options: LoadOptions = {}, failure?: Error): Promise<LoadedTab> {
    const place: Place = {
      openChannel: (name) => new FakeChannel(this, name),
      withLock: async (name, signal, work) => {
        for (let at = 0; at < this.lockDelay; at += 1) await new Promise((resolve) => setImmediate(resolve));
        await this.origin.request(this, name, signal, work);
      },
    };
    const open = openOf(this, undefined, failure);
    return new LoadedTab(await joinTabs(place, NAME, new Ledger(), open, options));
  }

  /** Ends it at once, as a crash does. */
  crash(): void {
    this.isAlive = false;
    this.host?.close();
    for (const channel of this.origin.channels) if (channel.isOf(this)) channel.close();
    this.origin.releaseAll(this);
  }
}

/** Loads in a tab. `onSent` hears what the host gets; `failure` has the load fail. */
export function openOf(tab: FakeTab, onSent?: (message: ToHost) => void, failure?: Error): Open {
  return async (given, wrap = (connect) => connect) => {
    tab.origin.loads += 1;
    given.onProgress?.({ phase: "downloading", loadedBytes: 1, file: "a" });
    await turns(10);
    given.signal?.throwIfAborted();
    if (failure) throw failure;
    const connect = wrap((receive, fail) => {
      const host = new FakeHost(tab, receive, fail);
      tab.host = host;
      const send = (message: ToHost) => {
        onSent?.(message);
        host.send(message);
      };
      return { send, close: () => host.close() };
    });
    return { connection: new Connection(connect), info: INFO, report: { devices: [] } };
  };
}

/** A tab with its model. */
export class LoadedTab {
  readonly connection: Connection;

  constructor({ connection }: Opened) {
    this.connection = connection;
  }

  generate(prompt: string, options: object = {}, count = 1) {
    const context = { connection: this.connection, ...INFO, baseUrl: () => "http://localhost/" };
    return startGenerations(context, prompt, options, count);
  }
}

/** The text of a prompt, as an undisturbed generation has it. */
export function textOf(prompt: string, seed: number, sample: number, count: number): string {
  return Array.from({ length: count }, (_, at) => wordOf(tokenOf(prompt, seed, sample, at))).join("");
}

function tokenOf(prompt: string, seed: number, sample: number, at: number): number {
  return randomNumbers(prompt.length * 7919 + seed * 104729 + sample * 1299709 + at)(1000);
}

const wordOf = (token: number): string => `<${token}>`;

/** A host whose tokens follow from prompt, seed, sample and position. The text of each comes with the next one. */
export class FakeHost implements HostLink {
  readonly #tab: FakeTab;
  readonly #receive: (message: FromHost) => void;
  readonly fail: (error: Error) => void;
  readonly #running = new Map<number, { credit: Credit; isStopped: boolean }>();
  #isOpen = true;
  /** Messages so far. */
  sent = 0;

  constructor(tab: FakeTab, receive: (message: FromHost) => void, fail: (error: Error) => void) {
    this.#tab = tab;
    this.#receive = receive;
    this.fail = fail;
    const { origin } = tab;
    origin.hosts.add(this);
    origin.mostHosts = Math.max(origin.mostHosts, origin.hosts.size);
  }

  send(given: ToHost): void {
    const message = structuredClone(given);
    setImmediate(() => this.#isOpen && this.#handle(message));
  }

  close(): void {
    this.#isOpen = false;
    this.#tab.origin.hosts.delete(this);
  }

  get running(): number {
    return this.#running.size;
  }

  #handle(message: ToHost): void {
    const { id } = message;
    if (message.type === "credit") this.#running.get(id)?.credit.add(message.turns);
    else if (message.type === "stop") this.#stop(id);
    else if (message.type === "tokenize") this.#answer({ type: "tokens", id, ids: Uint32Array.of(1, 2) });
    else if (message.type === "generate") {
      for (let index = 0; index < message.count; index += 1) {
        void this.#generate(id + index, (message.options.sampleIndex ?? 0) + index, message);
      }
    }
  }

  #stop(id: number): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    running.isStopped = true;
    running.credit.add(Number.POSITIVE_INFINITY);
  }

  async #generate(id: number, sample: number, message: Extract<ToHost, { type: "generate" }>): Promise<void> {
    const { maxTokens = 20, seed = 0, generatedTokens = [], mirostatTau, tools } = message.options;
    const prompt = message.prompt as string;
    if (mirostatTau && generatedTokens.length > 0) throw new Error("its state is not in the tokens");
    const running = { credit: new Credit(message.credit), isStopped: false };
    this.#running.set(id, running);
    let held = generatedTokens.length === 0 ? "" : wordOf(generatedTokens.at(-1) as number);
    for (let at = generatedTokens.length; ; at += 1) {
      await running.credit.take();
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#isOpen) return;
      const hasEnded = at >= maxTokens || running.isStopped;
      const token = tokenOf(prompt, Number(seed), sample, at);
      const isLast = hasEnded || at + 1 === maxTokens;
      const text = isLast ? held + wordOf(token) : held;
      held = wordOf(token);
      const events: WasmEvent[] = hasEnded
        ? []
        : [{ type: "text", text, token, ...(tools && { toolCalls: [pieceOf(at)] }) }];
      if (isLast) events.push(doneEvent(running.isStopped));
      if (isLast) this.#running.delete(id);
      this.#answer({ type: "events", id, events });
      if (isLast) return;
    }
  }

  #answer(message: FromHost): void {
    this.sent += 1;
    if (this.#isOpen) this.#receive(structuredClone(message));
  }
}

/** The piece of a call that comes with the token at a place. */
function pieceOf(at: number): ToolCallDelta {
  return { index: 0, ...(at === 0 && { id: "call", name: "count" }), arguments: `${at} ` };
}

/** The call of an answer of some tokens, where there are tools. */
export function callOf(tokens: number): ToolCall {
  const calls: ToolCall[] = [];
  joinCalls(
    calls,
    Array.from({ length: tokens }, (_, at) => pieceOf(at)),
  );
  return calls[0] as ToolCall;
}

function doneEvent(isStopped: boolean): WasmEvent {
  return { type: "done", finishReason: isStopped ? "aborted" : "length" } as WasmEvent;
}
