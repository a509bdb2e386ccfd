import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Estimate, estimateOn } from "../src/estimate.js";
import { openHeaders } from "../src/header-source.js";
import { connectLocal } from "../src/host-links.js";
import { addressSource } from "../src/sources.js";
import { revisionPath, urlModelId } from "../src/store/names.js";
import { currentRevision, writeManifest } from "../src/store/revisions.js";
import { countedModel, emptyLog, fakeBuild, type Log } from "./fake-wasm.js";
import { MemoryStorage } from "./memory-storage.js";

/** What a server has. */
const served: Record<string, Uint8Array> = {
  "/m/config.json": new Uint8Array(10),
  "/m/tokenizer.json": new Uint8Array(1000),
  "/m/model.safetensors": new Uint8Array(5000),
  "/a.safetensors": new Uint8Array(5000),
};
let requests: string[];
const server = createServer(({ url = "", method }, response) => {
  requests.push(`${method} ${url}`);
  const bytes = served[url];
  if (bytes === undefined) return response.writeHead(404).end();
  response.writeHead(200, { "content-length": bytes.length, etag: '"1"' });
  return response.end(method === "HEAD" ? undefined : bytes);
});
const address = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => void server.close());

let log: Log;
let estimate: Estimate;
beforeEach(() => {
  requests = [];
  log = emptyLog();
  estimate = estimateOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: true,
    baseUrl: () => address("/"),
    embeddedModel: () => new URL(address("/a.safetensors")),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const memory = {
  ...{ weights: 1000, cache: 200, state: 50, steps: 100, total: 1400 },
  ...{ largestWeight: 400, largestBuffer: 300 },
};

describe("estimate", () => {
  it("reads headers, frees all resources, and reports memory", async () => {
    const found = await estimate({ "a.safetensors": new Uint8Array(16) });
    expect(found).toEqual({
      bytes: 0,
      storedBytes: 0,
      memory,
      headType: "auto",
      context: 512,
      storage: undefined,
      backends: [
        { backend: "simd128", build: "simd128", fits: true, reason: expect.stringMatching(/67 MB/) },
      ],
    });
    expect(log).toMatchObject({ opened: 1, closed: 1, freed: ["loader"], turns: 0 });
  });

  it.each([
    [5200, true],
    [4000, false],
  ])("reports the download size, and whether it fits into %d bytes", async (quota, fits) => {
    vi.stubGlobal("navigator", { storage: { estimate: async () => ({ quota, usage: 100 }) } });
    const found = await estimate("a.safetensors");
    expect(found).toMatchObject({ bytes: 5000, storedBytes: 0, storage: { quota, usage: 100, fits } });
    expect((await estimate("a.safetensors", { store: false })).storage).toBeUndefined();
  });

  it("rejects like load", async () => {
    const signal = AbortSignal.abort("mine");
    await expect(estimate("a.safetensors", { signal })).rejects.toBe("mine");
    await expect(estimate("b.safetensors")).rejects.toMatchObject({ code: "not-found" });
    const options = { threads: 1 } as never;
    await expect(estimate("a.safetensors", options)).rejects.toMatchObject({ code: "bad-option" });
    expect(log.freed).toEqual([]);
  });
});

describe("outline", () => {
  const { signal } = new AbortController();
  const fetchOptions = { store: true };

  it("adds up the files of a folder, and never reads the tokenizer", async () => {
    const storage = new MemoryStorage();
    const source = addressSource(address("/m/"), address("/"));
    const found = await openHeaders(source, fetchOptions, { openModel: countedModel(log), storage }, signal);
    expect(found).toMatchObject({ bytes: 6010, storedBytes: 0 });
    const files = (await found.model.open()).files();
    requests = [];
    expect(await files.read("tokenizer.json", undefined)).toBeUndefined();
    expect(requests).toEqual([]);
    expect(await files.read("config.json", undefined)).toHaveLength(10);
    await files.close();
  });

  it("reads a stored model from the store", async () => {
    const storage = new MemoryStorage();
    const source = addressSource(address("/a.safetensors"), address("/"));
    const id = await urlModelId(address("/a.safetensors"));
    const folder = await revisionPath(id, "0123456789abcdef");
    storage.files.set(`${folder}/a.safetensors`, new Uint8Array(5000));
    await writeManifest(storage, folder, {
      ...{ model: `${id.host}/${id.owner}/${id.name}`, revision: "0123456789abcdef" },
      ...{ source: address("/a.safetensors"), pulled: "2026-11-21T17:00:00Z", complete: true },
      files: [
        {
          name: "a.safetensors",
          bytes: 5000,
          etag: '"1"',
          sha256: "0".repeat(64),
          chunkBytes: 8192,
          chunks: ["0".repeat(64)],
        },
      ],
    });
    expect(await currentRevision(storage, id)).toBeDefined();
    const openModel = () => Promise.reject(new Error("no other files are read"));
    const found = await openHeaders(source, fetchOptions, { openModel, storage }, signal);
    expect(found).toMatchObject({ bytes: 5000, storedBytes: 5000 });
    const files = (await found.model.open()).files();
    expect(await files.read("a.safetensors", { start: 8, end: 16 })).toHaveLength(8);
    expect(requests).toEqual(["HEAD /a.safetensors"]);
  });
});
