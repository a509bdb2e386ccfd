import { afterEach, describe, expect, it, vi } from "vitest";
import type { ToHost } from "../src/protocol.js";
import { startWorkerAt } from "../src/start-worker.js";
import type { ThreadsStarted } from "../src/threads.js";
import { connectWorker } from "../src/worker-link.js";

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
  const channels = [new MessageChannel(), new MessageChannel()];
  const sources = channels.map(({ port2 }) => port2);
  const ask = () => workers[0]?.say({ type: "setun-start-threads", sources, reply });
  const end = () => {
    for (const port of [port1, ...channels.map((channel) => channel.port1)]) port.close();
  };
  return { workers, received, failed, link, answer, sources, ask, end };
}

describe("the threads of a worker", () => {
  it("are workers of the page, and the worker is told when all are ready", async () => {
    const { workers, received, answer, sources, ask, link, end } = start();
    ask();
    const [host, ...threads] = workers;
    expect(threads.map(({ told }) => told)).toEqual(
      sources.map((source) => [{ type: "setun-thread", source }]),
    );
    for (const worker of threads) worker.say({ type: "setun-thread-ready" });
    expect(await answer).toEqual({});
    expect(received).toEqual([]);
    host?.say({ type: "opened", id: 1 });
    expect(received).toEqual([{ type: "opened", id: 1 }]);
    link.close();
    expect(workers.map(({ terminated }) => terminated)).toEqual([true, true, true]);
    end();
  });

  it("all end if one fails, and the worker gets the reason", async () => {
    const { workers, answer, ask, end } = start();
    ask();
    const [host, ready, failing] = workers;
    ready?.say({ type: "setun-thread-ready" });
    failing?.say({ type: "setun-thread-failed", message: "no memory" });
    expect(await answer).toEqual({ failure: "no memory" });
    expect([host, ready, failing].map((worker) => worker?.terminated)).toEqual([false, true, true]);
    end();
  });

  it("are not started for a terminated worker", () => {
    const { workers, ask, link, end } = start();
    link.close();
    ask();
    end();
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

describe("a worker that does not start", () => {
  const ADDRESS = "https://app.example/dist/worker-relaxed.js";

  afterEach(() => vi.unstubAllGlobals());

  /** Starts a worker by its address. `refusals`: how many of the first workers the browser refuses at once. */
  function startAt(refusals = 0) {
    const workers: FakeWorker[] = [];
    const addresses: string[] = [];
    class BrowserWorker extends FakeWorker {
      constructor(address: string | URL) {
        super();
        addresses.push(`${address}`);
        if (addresses.length <= refusals) throw new TypeError("refused");
        workers.push(this);
      }
    }
    vi.stubGlobal("Worker", BrowserWorker);
    vi.stubGlobal("origin", "https://app.example");
    const failed: Error[] = [];
    const connect = connectWorker((imported) => startWorkerAt(new URL(ADDRESS), "setun", imported));
    const link = connect(
      () => undefined,
      (error) => failed.push(error),
    );
    return { workers, addresses, failed, link };
  }

  const open = { type: "open", id: 3 } as ToHost;

  it("is started by a module with the page's headers, and gets the same messages", () => {
    const { workers, addresses, failed, link } = startAt();
    link.send(open);
    workers[0]?.dispatchEvent(new Event("error"));
    expect(addresses).toEqual([ADDRESS, expect.stringMatching(/^blob:/)]);
    expect(workers.map(({ told, terminated }) => [told.at(-1), terminated])).toEqual([
      [open, true],
      [open, false],
    ]);
    expect(failed).toEqual([]);
    link.close();
  });

  it("is trusted by a policy of its own", () => {
    const createPolicy = vi.fn((_name: string, rules: object) => rules);
    vi.stubGlobal("trustedTypes", { createPolicy });
    const { addresses, link } = startAt(1);
    expect(addresses).toEqual([ADDRESS, expect.stringMatching(/^blob:/)]);
    expect(createPolicy).toHaveBeenCalledWith("setun", expect.anything());
    link.close();
  });

  it("says what the browser said of the second attempt", () => {
    expect(() => startAt(2)).toThrow(
      expect.objectContaining({ code: "network", message: expect.stringMatching(/: refused$/) }),
    );
  });

  it.each<[string, boolean, Partial<Response> | undefined, RegExp]>([
    ["offline", false, undefined, /could not be loaded: this browser is offline$/],
    ["unreached", true, undefined, /worker-relaxed\.js: the request failed$/],
    ["missing", true, { ok: false, status: 404 }, /is not there \(404\): a bundler .*Vite/],
    [
      "a page",
      true,
      { ok: true, status: 200, headers: new Headers({ "content-type": "text/html" }) },
      /is not there/,
    ],
    [
      "of another type",
      true,
      { ok: true, status: 200, headers: new Headers({ "content-type": "text/plain" }) },
      /has text\/plain, expected/,
    ],
    [
      "refused",
      true,
      { ok: true, status: 200, headers: new Headers({ "content-type": "text/javascript" }) },
      /gives no reason$/,
    ],
  ])("names one cause: %s", async (_, onLine, response, message) => {
    vi.stubGlobal("navigator", { onLine });
    vi.stubGlobal("fetch", async () => {
      if (response === undefined) throw new TypeError("failed");
      return { headers: new Headers(), ...response };
    });
    const { workers, failed, link } = startAt();
    for (const worker of [0, 1]) workers[worker]?.dispatchEvent(new Event("error"));
    await vi.waitFor(() => expect(failed).toHaveLength(1));
    expect(failed[0]).toMatchObject({ code: "network", message: expect.stringMatching(message) });
    link.close();
  });
});
