/** `load` with stored downloads and a fake module. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { openStored } from "../../src/download/open-stored.js";
import { SharedProgress } from "../../src/download/shared-progress.js";
import { connectLocal } from "../../src/host-links.js";
import { type Load, loadOn } from "../../src/load.js";
import type { LoadProgress } from "../../src/load-progress.js";
import type { OpenSource } from "../../src/open-model.js";
import { isDownload } from "../../src/sources.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { emptyLog, type FakeOptions, fakeBuild, type Log } from "../fake-wasm.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const content = bytes(4 * CHUNK, 1);

let server: FaultyServer;
let store: StoreFixture;
let log: Log;
let seen: boolean[];

beforeEach(async () => {
  server = await startFaultyServer();
  server.put("/a.safetensors", content, '"e"');
  store = new StoreFixture();
  log = emptyLog();
  seen = [];
});
afterEach(() => server.stop());

/** A platform whose workers run on this thread. */
function loadWith(options: FakeOptions = {}): Load {
  const openModel: OpenSource = async (source, fetchOptions, signal, onProgress) => {
    seen.push(fetchOptions.store);
    if (!isDownload(source)) throw new Error("expected an address");
    const { storage, withLock, settings } = store;
    return openStored(source, fetchOptions, { storage, withLock, settings }, signal, onProgress);
  };
  return loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: true,
    baseUrl: () => server.url,
    embeddedModel: () => new URL("/a.safetensors", server.url),
    connect: async () => connectLocal({ build: fakeBuild(log, options), openModel }),
  });
}

it("resolves when everything is stored, after the reader is done", async () => {
  const progress: number[] = [];
  const onProgress = ({ loadedBytes }: { loadedBytes: number }) => progress.push(loadedBytes);
  const model = await loadWith()("/a.safetensors", { onProgress });
  expect(store.digest("a.safetensors")).toBe(digest(content));
  expect(store.files()).toEqual(["a.safetensors", "manifest.json"]);
  expect(progress.at(-1)).toBe(content.length);
  await store.free();
  // A device that is lost has the weights read again, from the store.
  server.takeRequests();
  expect(await model.generate("lost", { maxTokens: 5 }).text()).toBe("0 1 2 3 4 ");
  expect(server.requests).toEqual([]);
  expect(seen).toEqual([true]);
});

it("asks whether a missing folder is a model of the Hub", async () => {
  await expect(loadWith()("owner/name")).rejects.toMatchObject({
    code: "not-found",
    message: expect.stringMatching(/no model: .*; a model of the Hub is "hf:owner\/name"$/),
  });
  server.manners.pages = true;
  const options = { store: false };
  await expect(loadWith()("owner/name", options)).rejects.toThrow(/HTML page.*"hf:owner\/name"$/);
  await expect(loadWith()("./owner/name")).rejects.toThrow(/check the path$/);
});

it("suggests a short name for a missing folder that is spelled like it", async () => {
  await expect(loadWith()("bitnet-2b4t")).rejects.toMatchObject({
    code: "not-found",
    message: expect.stringMatching(/no model: .*; did you mean "bitnet-2b-4t"\?$/),
  });
  await expect(loadWith()("./bitnet-2b4t")).rejects.toThrow(/^((?!did you mean).)*$/s);
  await expect(loadWith()("stories")).rejects.toThrow(/^((?!did you mean).)*$/s);
});

it("reads changed files again", async () => {
  const next = bytes(4 * CHUNK, 2);
  server.ruleAt("/a.safetensors", 2 * CHUNK, 1, { become: { bytes: next, etag: '"f"' } });
  await loadWith()("/a.safetensors");
  expect(store.digest("a.safetensors")).toBe(digest(next));
  expect(log.freed.filter((what) => what === "model").length).toBeLessThanOrEqual(1);
});

it("gives up on files that keep changing", async () => {
  store.settings = { ...store.settings, connections: 1 };
  for (const seed of [2, 3, 4, 5, 6]) {
    const become = { bytes: bytes(4 * CHUNK, seed), etag: `"${seed}"` };
    server.ruleAt("/a.safetensors", 2 * CHUNK, 1, { become });
  }
  const message = expect.stringContaining("keeps changing during the download");
  await expect(loadWith()("/a.safetensors")).rejects.toMatchObject({ code: "network", message });
});

it("fails with the download, and frees the model", async () => {
  let made = () => {};
  const after = new Promise<void>((resolve) => {
    made = resolve;
  });
  server.ruleAt("/a.safetensors", 3 * CHUNK, Infinity, { status: 403, after });
  await expect(loadWith({ onModel: () => made() })("/a.safetensors")).rejects.toMatchObject({
    code: "network",
    message: expect.stringContaining("403"),
  });
  await store.free();
  expect(log.freed).toEqual(["model"]);
  expect(store.storage.parts.size).toBe(0);
});

it("ends the download if the model cannot run", async () => {
  server.ruleAt("/a.safetensors", 3 * CHUNK, Infinity, { stall: 10 });
  const refusal = Object.assign(new Error("there is no room"), { code: "out-of-memory" });
  await expect(loadWith({ refusal })("/a.safetensors")).rejects.toMatchObject({ code: "out-of-memory" });
  await store.free();
  expect(store.storage.parts.size).toBe(0);
});

it("deletes the chunks of an invalid file", async () => {
  server.ruleAt("/a.safetensors", 3 * CHUNK, Infinity, { stall: 10 });
  const refusal = Object.assign(new Error("an odd shape"), { code: "bad-checkpoint" });
  await expect(loadWith({ refusal })("/a.safetensors")).rejects.toMatchObject({ code: "bad-checkpoint" });
  await store.free();
  expect(store.files()).toEqual([]);
});

it("ends at once when it is aborted", async () => {
  server.ruleAt("/a.safetensors", 3 * CHUNK, Infinity, { stall: 10 });
  const controller = new AbortController();
  const loading = loadWith()("/a.safetensors", { signal: controller.signal });
  const ended = expect(loading).rejects.toBe("enough");
  await expect.poll(() => server.starts("/a.safetensors")).toContain(3 * CHUNK);
  controller.abort("enough");
  await ended;
  await store.free();
  expect(store.storage.parts.size).toBe(0);
  expect(store.files()).not.toContain("a.safetensors");
});

it("does not wait for another tab if the module cannot start", async () => {
  const { host } = new URL(server.url);
  const other = new AbortController();
  const held = store.withLock(`${host.replace(":", "_")}/_/a.safetensors`, other.signal, async () => {
    await new Promise((resolve) => other.signal.addEventListener("abort", resolve));
  });
  const compile = async () => {
    await expect.poll(() => store.lockRequests).toBe(2);
    throw Object.assign(new Error("no code"), { code: "network" });
  };
  await expect(loadWith({ compile })("/a.safetensors")).rejects.toMatchObject({ message: "no code" });
  other.abort();
  await held;
});

it("reports the progress of another tab while it waits", async () => {
  const lock = `${new URL(server.url).host.replace(":", "_")}/_/a.safetensors`;
  const other = new SharedProgress(lock);
  const held = store.withLock(lock, new AbortController().signal, async () => {
    await expect.poll(() => progress.map(({ phase }) => phase)).toContain("waiting");
    const told = () => {
      other.tell({ phase: "downloading", loadedBytes: 5, totalBytes: 9, file: "a.safetensors" });
      return progress.some(({ phase, loadedBytes }) => phase === "waiting" && loadedBytes === 5);
    };
    await expect.poll(told).toBe(true);
    other.close();
  });
  const progress: LoadProgress[] = [];
  await loadWith()("/a.safetensors", { onProgress: (report) => progress.push(report) });
  await held;
  expect(progress).toContainEqual({ phase: "waiting", loadedBytes: 0, file: "a.safetensors" });
  expect(progress.map(({ phase }) => phase)).toEqual(expect.arrayContaining(["downloading", "ready"]));
});

it.each([
  ["/a.safetensors", { store: false }, false],
  ["/a.safetensors", { worker: false }, false],
  [undefined, {}, false],
  ["/a.safetensors", { store: true }, true],
])("stores only what it should: %j, %j", async (source, options, kept) => {
  await loadWith()(source, options);
  expect(seen).toEqual([kept]);
});

it("deletes an invalid draft model, and keeps its model", async () => {
  server.put("/draft/a.safetensors", content, '"d"');
  const isModelFile = (path: string) => path.endsWith("/a.safetensors") && !path.includes("/draft/");
  const draftRefusal = async () => {
    // Otherwise the error would end the model's download too.
    await expect.poll(() => [...store.storage.files.keys()].some(isModelFile)).toBe(true);
    return Object.assign(new Error("an odd shape"), { code: "bad-checkpoint" });
  };
  const options = { speculative: { draft: "/draft/a.safetensors" } };
  const loading = loadWith({ draftRefusal })("/a.safetensors", options);
  await expect(loading).rejects.toMatchObject({ code: "bad-checkpoint" });
  await store.free();
  expect(store.files()).toEqual(["a.safetensors", "manifest.json"]);
  expect(server.starts("/draft/a.safetensors")).toContain(0);
  server.takeRequests();
  await loadWith()("/a.safetensors", options);
  await store.free();
  expect(server.starts("/a.safetensors")).toEqual([]);
  expect(server.starts("/draft/a.safetensors")).toContain(0);
});

it("downloads a draft model after its model if they share a folder", async () => {
  const model = await loadWith()("/a.safetensors", { speculative: { draft: "/a.safetensors" } });
  await store.free();
  expect(store.files()).toEqual(["a.safetensors", "manifest.json"]);
  expect(new Set(server.starts("/a.safetensors")).size).toBe(server.starts("/a.safetensors").length);
  expect(await model.generate("x", { maxTokens: 3 }).text()).toBe("0 1 2 ");
  expect(log.freed).not.toContain("model");
});
