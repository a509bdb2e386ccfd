/** Beginnings of chunks that an ended download keeps. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { completeLines, readJournal } from "../../src/store/journal.js";
import { modelsOn } from "../../src/store/models.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const PATH = "/models/m.gguf";
const COUNT = 5;
const content = bytes(COUNT * CHUNK, 1);
const MIRROR = "/mirror/m.gguf";

let server: FaultyServer;
let store: StoreFixture;
/** Bytes that the downloads have received. */
let received: number;

beforeEach(async () => {
  server = await startFaultyServer();
  server.put(PATH, content, '"first"');
  store = new StoreFixture();
  received = 0;
  const { fetch } = globalThis;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (...request) => {
    const response = await fetch(...request);
    const count = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(piece, controller) {
        received += piece.length;
        controller.enqueue(piece);
      },
    });
    return new Response(response.body?.pipeThrough(count) ?? null, response);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  return server.stop();
});

const load = (path = PATH, signal?: AbortSignal) =>
  store.load(server.at(path), ["m.gguf"], signal).then((read) => read.map(digest));

const journal = () => readJournal(completeLines(store.stored("m.gguf.chunks") ?? new Uint8Array()).lines);

const listed = async () => {
  const platform = { openStorage: async () => store.storage, withLock: store.withLock, baseUrl: () => "" };
  return (await modelsOn(platform).list()).map(({ bytes: stored, complete }) => [stored, complete]);
};

/** Bytes after which each chunk stalls. Parallel requests begin when the first chunk has arrived. */
const STALLED = [CHUNK, 1000, 40_000, CHUNK - 1, 0];
const SAVED = STALLED.reduce((a, b) => a + b, 0);
/** Where the requests of the next download begin. */
const RESUMED = STALLED.map((stalled, chunk) => chunk * CHUNK + stalled).slice(1);

/** Each chunk stalls; then the download is aborted. */
async function abortStalled(path = PATH, source = path): Promise<void> {
  const controller = new AbortController();
  for (const [chunk, stall] of STALLED.entries())
    if (chunk > 0) server.ruleAt(path, chunk * CHUNK, 1, { stall });
  const failed = expect(load(source, controller.signal)).rejects.toBe("enough");
  const hasStalled = () => received >= SAVED && server.starts(path).length === COUNT;
  await expect.poll(hasStalled).toBe(true);
  controller.abort("enough");
  await failed;
  server.clearRules();
  server.takeRequests();
  store.progress.length = 0;
}

describe("an aborted download", () => {
  it("keeps what has arrived of each chunk, and requests the rest", async () => {
    await abortStalled();
    expect(store.storage.parts.size).toBe(0);
    expect(await listed()).toEqual([[SAVED, false]]);
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual(RESUMED);
    expect(server.sent).toBe(content.length - SAVED);
    expect(store.progress[0]).toMatchObject({ loadedBytes: SAVED, totalBytes: content.length });
    expect(store.digest("m.gguf")).toBe(digest(content));
    expect(await listed()).toEqual([[content.length, true]]);
  });

  it("continues a beginning that was continued before", async () => {
    await abortStalled();
    const controller = new AbortController();
    const before = received;
    for (const start of RESUMED) server.ruleAt(PATH, start, 1, { stall: start === CHUNK + 1000 ? 500 : 0 });
    store.settings = { ...store.settings, connections: 1 };
    const failed = expect(load(PATH, controller.signal)).rejects.toBe("enough");
    await expect.poll(() => received - before).toBe(500);
    controller.abort("enough");
    await failed;
    expect(await listed()).toEqual([[SAVED + 500, false]]);
    server.clearRules();
    server.takeRequests();
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual([CHUNK + 1500, ...RESUMED.slice(1)]);
  });

  it("requests a chunk again whose beginning is damaged on the disk", async () => {
    await abortStalled();
    const part = store.stored("m.gguf.part");
    if (part) part[CHUNK + 5] = (part[CHUNK + 5] ?? 0) ^ 1;
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual([CHUNK, ...RESUMED.slice(1)]);
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it("starts over if the file has changed since", async () => {
    await abortStalled();
    const other = bytes(content.length, 2);
    server.put(PATH, other, '"second"');
    expect(await load()).toEqual([digest(other)]);
    expect(server.starts(PATH)).toEqual([0, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK]);
  });

  it("takes the full file of a server without range support", async () => {
    await abortStalled();
    server.manners.ranges = false;
    expect(await load()).toEqual([digest(content)]);
    expect(store.digest("m.gguf")).toBe(digest(content));
    expect(Math.max(...store.progress.map(({ loadedBytes }) => loadedBytes))).toBe(content.length);
  });
});

describe("a download that fails", () => {
  it("keeps what has arrived", async () => {
    store.settings = { ...store.settings, connections: 1, attempts: 1 };
    server.ruleAt(PATH, CHUNK, 1, { breakAfter: 40_000 });
    await expect(load()).rejects.toMatchObject({ code: "network" });
    const stored = journal()?.prefixes.get(1)?.bytes ?? 0;
    expect(stored).toBeGreaterThan(0);
    server.takeRequests();
    expect(await load()).toEqual([digest(content)]);
    expect(server.starts(PATH)).toEqual([CHUNK + stored, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK]);
  });
});

describe("a chunk with a known hash", () => {
  beforeEach(() => {
    const chunks = Array.from({ length: COUNT }, (_, i) =>
      digest(content.subarray(i * CHUNK, (i + 1) * CHUNK)),
    );
    const file = {
      name: "m.gguf",
      bytes: content.length,
      sha256: digest(content),
      chunk_bytes: CHUNK,
      chunks,
    };
    const about = {
      model: "h/o/n",
      revision: "r",
      source: "s",
      pulled: "2026-11-21T17:00:00Z",
      complete: true,
    };
    server.put("/mirror/manifest.json", JSON.stringify({ format: 1, ...about, files: [file] }));
    server.put(MIRROR, content, '"first"');
  });

  it("is continued", async () => {
    await abortStalled(MIRROR, "/mirror/");
    expect(await load("/mirror/")).toEqual([digest(content)]);
    expect(server.starts(MIRROR)).toEqual(RESUMED);
  });

  it("is requested again if its beginning was wrong", async () => {
    server.put(
      MIRROR,
      content.map((byte, i) => byte ^ (i === CHUNK + 5 ? 1 : 0)),
      '"first"',
    );
    await abortStalled(MIRROR, "/mirror/");
    server.put(MIRROR, content, '"first"');
    expect(await load("/mirror/")).toEqual([digest(content)]);
    expect(server.starts(MIRROR)).toEqual([CHUNK, ...RESUMED]);
  });
});
