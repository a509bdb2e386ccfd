/**
 * Workers that share a model's weights without shared memory: both ends of their ports.
 *
 * The page starts them, as it starts threads. The engine's messages pass unread. A worker that waits for the next one sends
 * messages to itself for a while, because waking a worker takes longer than an exchange.
 */

import type { ThreadsStarted, ThreadsWanted } from "./threads.js";
import type { WasmModule } from "./wasm.js";
import { type StartedModule, startWasm } from "./wasm-instance.js";
import type { WasmShards } from "./wasm-shards.js";

/** Milliseconds after a message in which a worker stays awake. */
const AWAKE_MS = 20;

/** First message to a worker that is to share weights. */
export interface ShardMessage {
  readonly type: "setun-shard";
  /** The way to the model's worker. */
  readonly port: MessagePort;
}

/** To a worker: bytes of the engine, or the question whether it still serves. */
type ToShard = Uint8Array | "ready";

/** From a worker: an answer of the engine, or why it cannot serve; none if it can. */
type FromShard = Uint8Array | { readonly failure: string | undefined };

type Receiver = { resolve(answer: Uint8Array): void; reject(reason: Error): void };

/** The model's ends of the ports. */
export class Shards implements WasmShards {
  readonly workers: number;
  readonly #ends: readonly ShardEnd[];
  readonly #awake = new Awake();

  constructor(ports: readonly MessagePort[]) {
    this.workers = ports.length;
    this.#ends = ports.map((port) => new ShardEnd(port));
  }

  send(worker: number, message: Uint8Array<ArrayBuffer>): void {
    this.#awake.extend();
    this.#end(worker).send(message);
  }

  receive(worker: number): Promise<Uint8Array> {
    return this.#end(worker).receive();
  }

  /** Resolves when all weights are where they belong. */
  async ready(): Promise<void> {
    await Promise.all(this.#ends.map((end) => end.ready()));
  }

  /** No worker answers any more. */
  fail(failure: string): void {
    for (const end of this.#ends) end.fail(failure);
  }

  #end(worker: number): ShardEnd {
    return this.#ends[worker] as ShardEnd;
  }
}

/** One of them. */
class ShardEnd {
  readonly #port: MessagePort;
  readonly #answers: Uint8Array[] = [];
  readonly #receivers: Receiver[] = [];
  readonly #asking: Receiver[] = [];
  #failure: Error | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
    port.onmessage = ({ data }: MessageEvent<FromShard>) => this.#take(data);
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#port.postMessage(message, [message.buffer]);
  }

  receive(): Promise<Uint8Array> {
    const answer = this.#answers.shift();
    if (answer !== undefined) return Promise.resolve(answer);
    return this.#wait(this.#receivers);
  }

  async ready(): Promise<void> {
    this.#port.postMessage("ready" satisfies ToShard);
    await this.#wait(this.#asking);
  }

  fail(failure: string): void {
    this.#failure ??= new Error(failure);
    for (const { reject } of [...this.#receivers.splice(0), ...this.#asking.splice(0)]) reject(this.#failure);
    this.#port.close();
  }

  #wait(receivers: Receiver[]): Promise<Uint8Array> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => receivers.push({ resolve, reject }));
  }

  #take(data: FromShard): void {
    if (!("failure" in data)) {
      const receiver = this.#receivers.shift();
      if (receiver === undefined) this.#answers.push(data);
      else receiver.resolve(data);
    } else if (data.failure === undefined) this.#asking.shift()?.resolve(new Uint8Array());
    else this.fail(data.failure);
  }
}

/** Keeps a worker from sleeping while messages come one after the other. */
class Awake {
  readonly #channel = new MessageChannel();
  #until = 0;
  #isAwake = false;

  constructor() {
    this.#channel.port1.onmessage = () => {
      this.#isAwake = performance.now() < this.#until;
      if (this.#isAwake) this.#channel.port2.postMessage(0);
    };
  }

  extend(): void {
    this.#until = performance.now() + AWAKE_MS;
    if (!this.#isAwake) this.#channel.port2.postMessage(0);
    this.#isAwake = true;
  }
}

/** Has the page start workers. After a failure none is left. */
export function startShards(
  count: number,
  askPage: (wanted: ThreadsWanted, transfer: readonly MessagePort[]) => void,
): Promise<Shards> {
  const channels = Array.from({ length: count }, () => new MessageChannel());
  const { port1: port, port2: reply } = new MessageChannel();
  const ports = channels.map(({ port2 }) => port2);
  return new Promise((resolve, reject) => {
    let shards: Shards | undefined;
    port.onmessage = ({ data: { failure } }: MessageEvent<ThreadsStarted>) => {
      if (shards !== undefined) return shards.fail(failure ?? "a worker ended");
      if (failure !== undefined) return reject(new Error(failure));
      shards = new Shards(channels.map(({ port1 }) => port1));
      resolve(shards);
    };
    const thread = { type: "setun-shard" } satisfies Omit<ShardMessage, "port">;
    askPage({ type: "setun-start-threads", count, thread, ports, reply }, [reply, ...ports]);
  });
}

/** Makes this worker one that shares weights. */
export async function serveShard(
  build: StartedModule<WasmModule>,
  { port }: ShardMessage,
  answer: (message: { readonly type: string; readonly message?: string }) => void,
): Promise<void> {
  try {
    await startWasm(build);
    const { ShardWorker } = build.glue;
    if (ShardWorker === undefined) throw new Error("this build has threads instead");
    const shard = new ShardWorker();
    const awake = new Awake();
    port.onmessage = ({ data }: MessageEvent<ToShard>) => {
      try {
        if (data === "ready") return port.postMessage({ failure: shard.failure() } satisfies FromShard);
        awake.extend();
        const found = shard.handle(data) as Uint8Array<ArrayBuffer> | undefined;
        if (found !== undefined) port.postMessage(found, [found.buffer]);
      } catch (thrown) {
        port.postMessage({ failure: String(thrown) } satisfies FromShard);
      }
    };
    answer({ type: "setun-thread-ready" });
  } catch (thrown) {
    answer({ type: "setun-thread-failed", message: String(thrown) });
  }
}
