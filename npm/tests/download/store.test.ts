/** The store during downloads: quota, locks and visibility. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { modelsOn } from "../../src/store/models.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { gate } from "../gate.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const content = bytes(6 * CHUNK, 1);

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  server.put("/m.gguf", content, '"e"');
  store = new StoreFixture();
});
afterEach(() => server.stop());

const load = (signal?: AbortSignal) => store.load(server.at("/m.gguf"), ["m.gguf"], signal);
const models = () =>
  modelsOn({ openStorage: async () => store.storage, withLock: store.withLock, baseUrl: () => server.url });

it("downloads once for two concurrent loads", async () => {
  const read = await Promise.all([load(), load(), load()]);
  expect(read.flat().map(digest)).toEqual([digest(content), digest(content), digest(content)]);
  expect(server.starts("/m.gguf")).toHaveLength(6);
});

it("ends a wait whose signal aborts", async () => {
  const { opened: after, open: goOn } = gate();
  server.ruleAt("/m.gguf", 5 * CHUNK, 1, { after });
  const first = load();
  const controller = new AbortController();
  const second = expect(load(controller.signal)).rejects.toBe("no");
  await expect.poll(() => store.lockRequests).toBe(2);
  controller.abort("no");
  await second;
  goOn();
  expect((await first).map(digest)).toEqual([digest(content)]);
});

it("lists nothing as complete before it is", async () => {
  const model = await store.open(server.at("/m.gguf"));
  const { files } = await model.open();
  model.prefetch();
  await files().read("m.gguf", undefined);
  expect(await models().has(server.at("/m.gguf"))).toBe(false);
  expect(await models().list()).toMatchObject([{ complete: false }]);
  await model.commit();
  expect(await models().has(server.at("/m.gguf"))).toBe(true);
  expect(await models().list()).toMatchObject([{ complete: true, bytes: content.length }]);
});

it("reads the same bytes from the store as during the download", async () => {
  const model = await store.open(server.at("/m.gguf"));
  const first = (await model.open()).files();
  const read = first.read("m.gguf", { start: CHUNK - 5, end: CHUNK + 5 });
  expect(await read).toEqual(content.slice(CHUNK - 5, CHUNK + 5));
  // Only what was requested has come.
  expect(server.starts("/m.gguf")).toEqual([0, CHUNK]);
  await model.commit();
  server.takeRequests();
  const second = (await model.open()).files();
  expect(await second.read("m.gguf", { start: 5 * CHUNK, end: 7 * CHUNK })).toEqual(content.slice(5 * CHUNK));
  expect(await first.read("m.gguf", { start: 0, end: 5 })).toEqual(content.slice(0, 5));
  expect(server.requests).toEqual([]);
});

it("downloads first what is read", async () => {
  store.settings = { ...store.settings, connections: 1 };
  const model = await store.open(server.at("/m.gguf"));
  const files = (await model.open()).files();
  model.prefetch();
  await files.read("m.gguf", { start: 4 * CHUNK, end: 4 * CHUNK + 8 });
  await model.commit();
  const order = server.requests
    .filter(({ start }) => start !== undefined)
    .map(({ start }) => (start ?? 0) / CHUNK);
  expect(order.indexOf(4)).toBeLessThanOrEqual(1);
  expect(order[order.indexOf(4) + 1]).toBe(5);
});

it("reports missing room, and keeps stored chunks", async () => {
  store.storage.room = 4 * CHUNK;
  store.settings = { ...store.settings, connections: 1 };
  const message = expect.stringMatching(/no room .*m\.gguf.*store: false/);
  await expect(load()).rejects.toMatchObject({ code: "storage-full", message });
  expect(store.storage.parts.size).toBe(0);
  store.storage.room = Number.POSITIVE_INFINITY;
  server.takeRequests();
  expect((await load()).map(digest)).toEqual([digest(content)]);
  expect(server.starts("/m.gguf").length).toBeLessThan(6);
});

it("completes a download that lacks only its manifest", async () => {
  await load();
  const path = [...store.storage.files.keys()].find((file) => file.endsWith("manifest.json")) ?? "";
  const text = (await store.storage.readText(path)) ?? "";
  await store.storage.writeText(path, text.replace('"complete": true', '"complete": false'));
  server.takeRequests();
  expect((await load()).map(digest)).toEqual([digest(content)]);
  expect(server.starts("/m.gguf")).toEqual([]);
  expect(await models().has(server.at("/m.gguf"))).toBe(true);
});

it("reports progress of a download, then its check", async () => {
  await load();
  const loaded = store.progress.map(({ loadedBytes }) => loadedBytes);
  expect(loaded.at(-1)).toBe(content.length);
  expect([...loaded].sort((a, b) => a - b)).toEqual(loaded);
  expect(store.progress.every(({ totalBytes }) => totalBytes === content.length)).toBe(true);
  const phases = store.progress.map(({ phase }) => phase);
  expect([...new Set(phases)]).toEqual(["downloading", "checking"]);
  expect(phases.filter((phase) => phase === "checking")).toHaveLength(1);
});

it("removes a refused model if the disk has damaged it", async () => {
  const address = server.at("/m.gguf");
  await load();
  await (await store.open(address)).discard();
  expect(await models().has(address)).toBe(true);
  const stored = store.stored("m.gguf");
  stored?.fill(0, 100, 200);
  await (await store.open(address)).discard();
  expect(await models().has(address)).toBe(false);
  expect((await load()).map(digest)).toEqual([digest(content)]);
});
