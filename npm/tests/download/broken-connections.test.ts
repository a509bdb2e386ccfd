/** Broken connections, refusals and wrong lengths: downloads resume without a repeated byte. */

import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Act, type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { turns, until } from "../gate.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const PATH = "/models/m.gguf";
const STARTS = [0, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK, 5 * CHUNK];
const content = bytes(5 * CHUNK + 100, 1);

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  server.put(PATH, content, '"first"');
  store = new StoreFixture();
});
afterEach(() => server.stop());

/** Hashes of the files, for short failure messages. */
const load = () => store.load(server.at(PATH), ["m.gguf"]).then((read) => read.map(digest));

describe("a download", () => {
  it("requests each chunk once, and stores the file", async () => {
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual(STARTS);
    expect(server.sent).toBe(content.length);
    expect(store.files()).toEqual(["m.gguf", "manifest.json"]);
    expect(store.digest("m.gguf")).toBe(digest(content));
    server.takeRequests();
    expect(await load()).toEqual([digest(content)]);
    expect(server.requests.map(({ method }) => method)).toEqual(["HEAD"]);
    expect((await store.open(server.at(PATH))).fromStore).toBe(true);
  });

  it("resumes a broken connection", async () => {
    server.ruleAt(PATH, 2 * CHUNK, 1, { breakAfter: 40_000 });
    expect(await load()).toEqual([digest(content)]);
    const starts = server.starts(PATH);
    expect(starts).toHaveLength(7);
    expect(starts.filter((start) => !STARTS.includes(start ?? -1))[0]).toBeLessThanOrEqual(
      2 * CHUNK + 40_000,
    );
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it("gives up on a server that always breaks, and resumes later", async () => {
    server.ruleAt(PATH, 3 * CHUNK, Infinity, { breakAfter: 0 });
    store.settings = { ...store.settings, attempts: 3, connections: 1 };
    await expect(load()).rejects.toMatchObject({ code: "network" });
    expect(server.starts(PATH)).toEqual([...STARTS.slice(0, 4), 3 * CHUNK, 3 * CHUNK].sort((a, b) => a - b));
    expect(store.files()).toEqual(["m.gguf.chunks", "m.gguf.part", "manifest.json"]);
    server.clearRules();
    server.takeRequests();
    store.progress.length = 0;
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual(STARTS.slice(3));
    expect(store.progress[0]?.loadedBytes).toBeGreaterThanOrEqual(3 * CHUNK);
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it.each<Act>([{ saysMore: 10 }, { fewer: 10 }, { more: 1, chunked: true }, { chunked: true }])(
    "finds a length that lies: %j",
    async (act) => {
      server.ruleAt(PATH, CHUNK, 1, act);
      expect(await load()).toEqual([digest(content)]);
      expect(store.digest("m.gguf")).toBe(digest(content));
    },
  );

  it.each<Act>([{ more: 10 }, { more: 1, chunked: true }])(
    "fails on one that stays wrong: %j",
    async (act) => {
      server.ruleAt(PATH, CHUNK, Infinity, act);
      store.settings = { ...store.settings, attempts: 2 };
      await expect(load()).rejects.toMatchObject({
        code: "truncated",
        message: expect.stringContaining(PATH),
      });
      expect(store.files()).not.toContain("m.gguf");
    },
  );

  it("waits after a refusal", async () => {
    server.ruleAt(PATH, 0, 1, { status: 429, headers: { "retry-after": "1" } });
    server.ruleAt(PATH, CHUNK, 2, { status: 500 });
    server.ruleAt(PATH, 2 * CHUNK, 1, { status: 503, headers: { "retry-after": "0" } });
    server.ruleOfAll(PATH, 1, { status: 502 });
    const { setTimeout } = globalThis;
    const asked = () => server.starts(PATH).filter((start) => start === 0).length;
    /** Requests of the first chunk when a wait of a second begins and when it ends. */
    const around: number[][] = [];
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((work: () => void, wait: number) => {
      if (wait !== 1000) return setTimeout(work, wait);
      const before = asked();
      return setTimeout(() => {
        around.push([before, asked()]);
        work();
      }, wait);
    }) as never);
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await load()).toEqual([digest(content)]);
    expect(around).toEqual([[1, 1]]);
    expect(asked()).toBe(2);
  });

  it("fails if a server demands too long a wait", async () => {
    server.rule(PATH, 1, { status: 429, headers: { "retry-after": "3600" } });
    await expect(load()).rejects.toMatchObject({
      code: "network",
      message: expect.stringContaining("3600 s"),
    });
  });

  it("does not retry final refusals", async () => {
    server.rule(PATH, Infinity, { status: 403 });
    await expect(load()).rejects.toMatchObject({
      code: "network",
      message: expect.stringContaining("token"),
    });
    expect(server.starts(PATH)).toHaveLength(1);
  });

  it("treats an idle connection as broken", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    server.ruleAt(PATH, CHUNK, 1, { stall: 1000 });
    const loading = load();
    await until(() => store.progress.at(-1)?.loadedBytes === content.length - CHUNK + 1000);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(server.starts(PATH)).toEqual(STARTS);
    // Then another attempt after a wait of 2 ms.
    for (; server.starts(PATH).length === STARTS.length; await turns(1)) await vi.advanceTimersByTimeAsync(1);
    expect(await loading).toEqual([digest(content)]);
  });

  it("fails if a server never answers", async () => {
    store.settings = { ...store.settings, idleTimeout: 100 };
    server.ruleOfAll(PATH, Infinity, { after: new Promise(() => undefined) });
    await expect(load()).rejects.toMatchObject({
      code: "network",
      message: expect.stringContaining(`${PATH}: nothing came for too long`),
    });
  });

  it("fails at once without a server", async () => {
    await expect(store.load("http://127.0.0.1:1/m.gguf", [])).rejects.toMatchObject({ code: "network" });
  });

  it("stores an empty file", async () => {
    server.put(PATH, "", '"e"');
    expect(await load()).toEqual([digest(new Uint8Array())]);
  });
});

describe("a server without range support", () => {
  it("sends the file once", async () => {
    server.manners.ranges = false;
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual([0]);
    expect(server.sent).toBe(content.length);
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it("leaves stored chunks for a later server with range support", async () => {
    server.ruleAt(PATH, 0, 1, { ignoreRange: true, breakAfter: 2 * CHUNK + 10 });
    expect(await load()).toEqual([digest(content)]);
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it("is compared with stored chunks", async () => {
    server.ruleAt(PATH, 2 * CHUNK, Infinity, { breakAfter: 0 });
    store.settings = { ...store.settings, attempts: 2, connections: 1 };
    await expect(load()).rejects.toMatchObject({ code: "network" });
    server.clearRules();
    server.manners.ranges = false;
    const other = content.slice();
    other[5] = (other[5] ?? 0) ^ 1;
    server.put(PATH, other, '"first"');
    expect(await load()).toEqual([digest(other)]);
    expect(store.digest("m.gguf")).toBe(digest(other));
  });
});

describe("an aborted download", () => {
  it("ends before its idle timeout, releases its lock, and resumes later", async () => {
    server.ruleAt(PATH, 4 * CHUNK, 1, { stall: 10 });
    store.settings = { ...store.settings, connections: 1, idleTimeout: 30_000 };
    const controller = new AbortController();
    const loading = store.load(server.at(PATH), ["m.gguf"], controller.signal);
    const reason = new Error("enough");
    const failed = expect(loading).rejects.toBe(reason);
    await expect.poll(() => server.starts(PATH)).toContain(4 * CHUNK);
    controller.abort(reason);
    await failed;
    expect(store.storage.parts.size).toBe(0);
    server.takeRequests();
    expect(await load()).toEqual([digest(content)]);
    const [first = 0, ...others] = server.starts(PATH);
    expect(first - 4 * CHUNK).toBeGreaterThanOrEqual(0);
    expect(first - 4 * CHUNK).toBeLessThanOrEqual(10);
    expect(others).toEqual(STARTS.slice(5));
  });
});
