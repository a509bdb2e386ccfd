import { afterEach, describe, expect, it, vi } from "vitest";
import { type Shards, serveShard, startShards } from "../src/shards.js";
import type { ThreadsWanted } from "../src/threads.js";
import type { WasmModule } from "../src/wasm.js";

/** Adds 1 to each byte; says `failure` once it has met a byte of 255. */
class FakeShardWorker {
  #failure: string | undefined;

  handle(message: Uint8Array): Uint8Array | undefined {
    if (message[0] === 254) throw new Error("a trap");
    if (message[0] === 255) this.#failure = "no memory";
    return message[0] === 255 ? undefined : message.map((byte) => byte + 1);
  }

  failure(): string | undefined {
    return this.#failure;
  }

  free(): void {}
}

const glue = { default: async () => undefined, ShardWorker: FakeShardWorker };
const build = () => ({
  glue: { ...glue } as unknown as WasmModule,
  compile: async () => ({}) as WebAssembly.Module,
});

const open: MessagePort[] = [];
afterEach(() => {
  for (const port of open.splice(0)) port.close();
});

/** Workers that the page has started; each serves its port. */
async function start(count: number): Promise<{ shards: Shards; wanted: ThreadsWanted }> {
  let asked: ThreadsWanted | undefined;
  const started = startShards(count, (wanted, transfer) => {
    asked = wanted;
    expect(transfer).toEqual([wanted.reply, ...(wanted.ports ?? [])]);
    open.push(...transfer);
  });
  const wanted = asked as unknown as ThreadsWanted;
  for (const port of wanted.ports ?? []) {
    const answers: unknown[] = [];
    await serveShard(build(), { type: "setun-shard", port }, (answer) => answers.push(answer));
    expect(answers).toEqual([{ type: "setun-thread-ready" }]);
  }
  wanted.reply.postMessage({});
  return { shards: await started, wanted };
}

describe("workers that share weights", () => {
  it("answer in the order of their messages, each its own", async () => {
    const { shards, wanted } = await start(2);
    expect(wanted).toMatchObject({ type: "setun-start-threads", count: 2, thread: { type: "setun-shard" } });
    expect(shards.workers).toBe(2);
    for (const worker of [0, 1, 0]) shards.send(worker, new Uint8Array([worker * 10]));
    await shards.ready();
    expect(await shards.receive(1)).toEqual(new Uint8Array([11]));
    expect(await shards.receive(0)).toEqual(new Uint8Array([1]));
    shards.send(0, new Uint8Array([7]));
    const waiting = [shards.receive(0), shards.receive(0)];
    expect(await Promise.all(waiting)).toEqual([new Uint8Array([1]), new Uint8Array([8])]);
  });

  it("say why their weights are not where they belong", async () => {
    const { shards } = await start(2);
    shards.send(1, new Uint8Array([255]));
    await expect(shards.ready()).rejects.toThrow("no memory");
    await expect(shards.receive(1)).rejects.toThrow("no memory");
    expect(() => shards.send(1, new Uint8Array([1]))).toThrow("no memory");
  });

  it("that trap fail all that is requested of them", async () => {
    const { shards } = await start(1);
    shards.send(0, new Uint8Array([254]));
    await expect(shards.receive(0)).rejects.toThrow("a trap");
  });

  it("that end later fail, too", async () => {
    const { shards, wanted } = await start(1);
    const waiting = shards.receive(0);
    wanted.reply.postMessage({ failure: "the worker has ended" });
    await expect(waiting).rejects.toThrow("the worker has ended");
  });

  it("that cannot be started are none", async () => {
    const started = startShards(1, (wanted, transfer) => {
      open.push(...transfer);
      wanted.reply.postMessage({ failure: "a policy" });
    });
    await expect(started).rejects.toThrow("a policy");
  });

  it("say that their build has none", async () => {
    const { port1, port2 } = new MessageChannel();
    open.push(port1, port2);
    const answer = vi.fn();
    const threaded = build();
    delete threaded.glue.ShardWorker;
    await serveShard(threaded, { type: "setun-shard", port: port1 }, answer);
    expect(answer).toHaveBeenCalledWith({
      type: "setun-thread-failed",
      message: expect.stringContaining("threads instead"),
    });
  });
});
