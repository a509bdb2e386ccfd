/** Files that change during a download or between two downloads. */

import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { gate, turns } from "../gate.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const PATH = "/models/m.gguf";

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
});
afterEach(() => server.stop());

const load = () => store.load(server.at(PATH), ["m.gguf"]).then((read) => read.map(digest));

/** Stored revisions, complete or not. */
const revisions = () => new Set([...store.storage.files.keys()].map((path) => path.split("/")[4]));

it.each([5, 3])("restarts for a file that changes during the download: %d chunks", async (chunks) => {
  const next = bytes(chunks * CHUNK, 2);
  server.put(PATH, bytes(5 * CHUNK, 1), '"first"');
  server.ruleAt(PATH, 2 * CHUNK, 1, { become: { bytes: next, etag: '"second"' } });
  expect(await load()).toEqual([digest(next)]);
  expect(store.digest("m.gguf")).toBe(digest(next));
  expect(store.files()).toEqual(["m.gguf", "manifest.json"]);
});

it("sends If-Range to the page's own server only", async () => {
  server.put(PATH, bytes(3 * CHUNK, 1), '"first"');
  await load();
  expect(server.requests.some(({ headers }) => headers["if-range"] !== undefined)).toBe(false);
  const own = new StoreFixture();
  own.settings = { ...own.settings, pageOrigin: server.url };
  server.takeRequests();
  await own.load(server.at(PATH), ["m.gguf"]);
  const parts = server.requests.filter(({ start }) => start !== undefined);
  expect(parts.map(({ headers }) => headers["if-range"])).toEqual(['"first"', '"first"', '"first"']);
});

it("sends no weak entity tag in If-Range", async () => {
  server.put(PATH, bytes(3 * CHUNK, 1), 'W/"first"');
  store.settings = { ...store.settings, pageOrigin: server.url };
  await load();
  expect(server.starts(PATH)).toEqual([0, CHUNK, 2 * CHUNK]);
  expect(server.requests.some(({ headers }) => headers["if-range"] !== undefined)).toBe(false);
});

it("restarts for a file that changed between two downloads", async () => {
  server.put(PATH, bytes(5 * CHUNK, 1), '"first"');
  server.ruleAt(PATH, 3 * CHUNK, Infinity, { breakAfter: 0 });
  store.settings = { ...store.settings, attempts: 2, connections: 1 };
  await expect(load()).rejects.toMatchObject({ code: "network" });
  server.clearRules();
  const next = bytes(5 * CHUNK, 2);
  server.put(PATH, next, '"second"');
  server.takeRequests();
  expect(await load()).toEqual([digest(next)]);
  expect(server.sent).toBe(next.length);
  expect(revisions().size).toBe(1);
});

it("keeps the complete model until the changed one is complete", async () => {
  const [old, next] = [bytes(3 * CHUNK, 1), bytes(3 * CHUNK, 2)];
  server.put(PATH, old, '"first"');
  store.settings = { ...store.settings, attempts: 2, connections: 1 };
  await load();
  server.put(PATH, next, '"second"');
  server.ruleAt(PATH, CHUNK, Infinity, { breakAfter: 0 });
  await expect(load()).rejects.toMatchObject({ code: "network" });
  expect(store.digest("m.gguf")).toBe(digest(old));
  expect(revisions().size).toBe(2);
  server.clearRules();
  expect(await load()).toEqual([digest(next)]);
  expect(store.digest("m.gguf")).toBe(digest(next));
  expect(revisions().size).toBe(1);
});

it("gives up on a file that keeps changing", async () => {
  server.put(PATH, bytes(2 * CHUNK, 0), '"0"');
  for (const seed of [1, 2, 3, 4, 5]) {
    server.ruleAt(PATH, CHUNK, 1, { become: { bytes: bytes(2 * CHUNK, seed), etag: `"${seed}"` } });
  }
  store.settings = { ...store.settings, connections: 1 };
  await expect(load()).rejects.toMatchObject({
    code: "network",
    message: expect.stringContaining("keeps changing"),
  });
  expect(store.files()).not.toContain("m.gguf");
  expect(store.storage.parts.size).toBe(0);
});

it("accepts no range of another file", async () => {
  const next = bytes(4 * CHUNK, 2);
  server.put(PATH, bytes(4 * CHUNK, 1), '"first"');
  const become = { bytes: next, etag: '"second"' };
  server.ruleAt(PATH, 3 * CHUNK, 1, { become, ignoreCondition: true });
  store.settings = { ...store.settings, connections: 1, pageOrigin: server.url };
  expect(await load()).toEqual([digest(next)]);
});

it("recognizes another file by its size without an entity tag", async () => {
  server.manners.etags = false;
  const next = bytes(5 * CHUNK, 2);
  server.put(PATH, bytes(4 * CHUNK, 1));
  server.ruleAt(PATH, 2 * CHUNK, 1, { become: { bytes: next } });
  store.settings = { ...store.settings, connections: 1 };
  expect(await load()).toEqual([digest(next)]);
  expect(store.digest("m.gguf")).toBe(digest(next));
});

it("needs no network for a stored file", async () => {
  const content = bytes(3 * CHUNK, 1);
  server.put(PATH, content, '"first"');
  await load();
  server.ruleOfAll(PATH, Infinity, { status: 503 });
  expect(await load()).toEqual([digest(content)]);
  server.remove(PATH);
  server.clearRules();
  expect(await load()).toEqual([digest(content)]);
});

it.each([-1, 1])("corrects a wrong size without a range response: %d", async (sign) => {
  const content = bytes(4 * CHUNK, 1);
  server.manners.bare = true;
  server.put(PATH, content);
  // As of a compressed form: other sites may hide that it is one.
  server.ruleOfAll(PATH, 1, sign < 0 ? { fewer: CHUNK + 5 } : { saysMore: 5 });
  expect(await load()).toEqual([digest(content)]);
  expect(store.digest("m.gguf")).toBe(digest(content));
});

it("restarts after pending writes of the store", async () => {
  const [one, two] = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
  const next = bytes(2 * CHUNK, 3);
  server.put(`/${one}`, bytes(2 * CHUNK, 1), '"first"').put(`/${two}`, bytes(4 * CHUNK, 2), '"other"');
  const [writing, noticed] = [gate(), gate()];
  store.storage.beforeWrite = async (path) => {
    if (!path.endsWith(two)) return;
    writing.open();
    await noticed.opened;
  };
  const become = { bytes: next, etag: '"second"' };
  server.ruleAt(`/${one}`, CHUNK, 1, { after: writing.opened, become });
  const { fetch } = globalThis;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (...request) => {
    const response = await fetch(...request);
    // What the other answer starts has begun some turns later.
    if (response.headers.get("etag") === become.etag) turns(20).then(noticed.open);
    return response;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  await store.load(server.at(`/${one}`), [one, two]);
  expect(store.digest(one)).toBe(digest(next));
});
