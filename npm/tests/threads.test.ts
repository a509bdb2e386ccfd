import { afterEach, describe, expect, it, vi } from "vitest";
import { connectWorker } from "../src/host-links.js";
import type { ToHost } from "../src/protocol.js";
import type { ThreadsStarted } from "../src/threads.js";

/** A worker that records its messages. Tests send its answers. */
class FakeWorker extends EventTarget {
  readonly told: unknown[] = [];
  terminated = false;

  postMessage(message: unknown): void {
    this.told.push(message);
  }

  terminate(): void {
    this.terminated = true;
  }

  say(data: unknown): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
}

/** A host that has requested two threads. */
function start() {
  const workers: FakeWorker[] = [];
  const received: unknown[] = [];
  const failed: Error[] = [];
  const link = connectWorker(() => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker as unknown as Worker;
  })(
    (message) => received.push(message),
    (error) => failed.push(error),
  );
  const { port1, port2: reply } = new MessageChannel();
  const answer = new Promise<ThreadsStarted>((resolve) => {
    port1.onmessage = ({ data }) => {
      port1.close();
      resolve(data);
    };
  });
  const thread = { type: "setun-thread", receiver: 7 };
  const ask = () => workers[0]?.say({ type: "setun-start-threads", count: 2, thread, reply });
  return { workers, received, failed, link, answer, thread, ask, port: port1 };
}

describe("the threads of a worker", () => {
  it("are workers of the page, and the worker is told when all are ready", async () => {
    const { workers, received, answer, thread, ask, link } = start();
    ask();
    const [host, ...threads] = workers;
    expect(threads.map(({ told }) => told)).toEqual([[thread], [thread]]);
    for (const worker of threads) worker.say({ type: "setun-thread-ready" });
    expect(await answer).toEqual({});
    expect(received).toEqual([]);
    host?.say({ type: "opened", id: 1 });
    expect(received).toEqual([{ type: "opened", id: 1 }]);
    link.close();
    expect(workers.map(({ terminated }) => terminated)).toEqual([true, true, true]);
  });

  it("all end if one fails, and the worker gets the reason", async () => {
    const { workers, answer, ask } = start();
    ask();
    const [host, ready, failing] = workers;
    ready?.say({ type: "setun-thread-ready" });
    failing?.say({ type: "setun-thread-failed", message: "no memory" });
    expect(await answer).toEqual({ failure: "no memory" });
    expect([host, ready, failing].map((worker) => worker?.terminated)).toEqual([false, true, true]);
  });

  it("are not started for a terminated worker", () => {
    const { workers, ask, link, port } = start();
    link.close();
    ask();
    port.close();
    expect(workers).toHaveLength(1);
  });
});

describe("the worker of a load", () => {
  afterEach(() => vi.useRealTimers());

  const open = { type: "open", id: 3 } as ToHost;
  const stop = { type: "stop", id: 3 } as const;

  it("ends at once unless it was stopped", () => {
    const { workers, link } = start();
    link.send(open);
    link.close();
    expect(workers[0]?.terminated).toBe(true);
  });

  it("ends when a stopped load has stored what has arrived", () => {
    const { workers, link, received } = start();
    link.send(open);
    link.send(stop);
    link.close();
    workers[0]?.say({ type: "progress", id: 3 });
    expect(workers[0]?.terminated).toBe(false);
    workers[0]?.say({ type: "failed", id: 3 });
    expect(workers[0]?.terminated).toBe(true);
    expect(received).toEqual([]);
  });

  it.each([
    [true, /could not be loaded: its server cannot be reached, a bundler .*Vite/],
    [false, /could not be loaded: this browser is offline$/],
  ])("that cannot be loaded says why, online: %s", (onLine, message) => {
    vi.stubGlobal("navigator", { onLine });
    const { workers, failed } = start();
    workers[0]?.dispatchEvent(new Event("error"));
    expect(failed).toEqual([expect.objectContaining({ code: "network" })]);
    expect(failed[0]?.message).toMatch(message);
    vi.unstubAllGlobals();
  });

  it("ends without an answer too", () => {
    vi.useFakeTimers();
    const { workers, link } = start();
    link.send(open);
    link.send(stop);
    link.close();
    vi.runAllTimers();
    expect(workers[0]?.terminated).toBe(true);
  });
});
