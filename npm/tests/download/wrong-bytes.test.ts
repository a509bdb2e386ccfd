/** Wrong bytes, found by the hashes of a Hub or a manifest. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { NotStorableError } from "../../src/download/errors.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
  store.fetchOptions = { store: true, endpoint: server.url };
});
afterEach(() => server.stop());

const load = (name: string, file: string) => store.load(name, [file]).then((read) => read.map(digest));

it("downloads a file with a wrong hash again", async () => {
  const content = bytes(4 * CHUNK, 1);
  server.putHub("o/n", { "m.gguf": content });
  const path = server.hubPath("o/n", "m.gguf");
  server.ruleAt(path, CHUNK, 1, { wrong: true });
  expect(await load("hf:o/n", "m.gguf")).toEqual([digest(content)]);
  expect(store.digest("m.gguf")).toBe(digest(content));
  expect(server.starts(path)).toHaveLength(8);
});

it("fails on a file that stays wrong, and stores nothing of it", async () => {
  const content = bytes(4 * CHUNK, 1);
  server.putHub("o/n", { "m.gguf": content });
  const path = server.hubPath("o/n", "m.gguf");
  server.ruleAt(path, CHUNK, Infinity, { wrong: true });
  server.ruleAt(path, 3 * CHUNK, 1, { wrong: true });
  // What differed between the two is known.
  const message = expect.stringMatching(/wrong bytes in chunk 3: expected SHA-256 [0-9a-f]{64}, found/);
  await expect(load("hf:o/n", "m.gguf")).rejects.toMatchObject({ code: "bad-checkpoint", message });
  expect(store.stored("m.gguf.part")).toEqual(new Uint8Array());
  expect(store.files()).not.toContain("m.gguf");
  expect(server.starts(path)).toHaveLength(8);
});

/** A folder written by a store, with its manifest, at another path. */
async function mirror(content: Uint8Array): Promise<string> {
  const first = new StoreFixture();
  first.fetchOptions = store.fetchOptions;
  server.putHub("o/n", { "config.json": "{}", "model.safetensors": content });
  await first.load("hf:o/n", []);
  for (const name of ["manifest.json", "config.json", "model.safetensors"]) {
    server.put(`/copy/${name}`, first.stored(name) ?? "", '"copy"');
  }
  server.takeRequests();
  return server.at("/copy");
}

it("downloads only a wrong chunk again", async () => {
  const content = bytes(4 * CHUNK + 5, 1);
  const address = await mirror(content);
  server.ruleAt("/copy/model.safetensors", 2 * CHUNK, 1, { wrong: true });
  store.settings = { ...store.settings, chunkBytes: 3 * CHUNK }; // the manifest's are taken
  expect(await load(address, "model.safetensors")).toEqual([digest(content)]);
  expect(store.digest("model.safetensors")).toBe(digest(content));
  const starts = [0, CHUNK, 2 * CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK];
  expect(server.starts("/copy/model.safetensors")).toEqual(starts);
});

it("limits the chunk size of a manifest", async () => {
  const address = await mirror(bytes(CHUNK, 1));
  const file = { name: "model.safetensors", bytes: 1 << 30, chunk_bytes: 1 << 30, chunks: ["0".repeat(64)] };
  const told = {
    format: 1,
    model: "a/b/c",
    revision: "r",
    source: "s",
    pulled: "",
    complete: true,
    files: [file],
  };
  server.put("/copy/manifest.json", JSON.stringify(told), '"large"');
  await expect(store.open(address)).rejects.toBeInstanceOf(NotStorableError);
});

it("fails on a chunk that stays wrong, and keeps the others", async () => {
  const content = bytes(4 * CHUNK, 1);
  const address = await mirror(content);
  server.ruleAt("/copy/model.safetensors", 2 * CHUNK, Infinity, { wrong: true });
  store.settings = { ...store.settings, connections: 1 };
  const message = expect.stringContaining("in chunk 2:");
  await expect(load(address, "model.safetensors")).rejects.toMatchObject({ code: "bad-checkpoint", message });
  server.clearRules();
  server.takeRequests();
  expect(await load(address, "model.safetensors")).toEqual([digest(content)]);
  expect(server.starts("/copy/model.safetensors")).toEqual([2 * CHUNK, 3 * CHUNK]);
});

it("finds wrong bytes of a server without range support", async () => {
  const content = bytes(4 * CHUNK, 1);
  const address = await mirror(content);
  server.rule("/copy/model.safetensors", 1, { ignoreRange: true, wrong: true });
  store.settings = { ...store.settings, connections: 1 };
  expect(await load(address, "model.safetensors")).toEqual([digest(content)]);
});

it("downloads chunks again that the disk has lost", async () => {
  const content = bytes(6 * CHUNK, 1);
  server.put("/m.gguf", content, '"e"');
  server.ruleAt("/m.gguf", 5 * CHUNK, Infinity, { breakAfter: 0 });
  store.settings = { ...store.settings, connections: 1, attempts: 2 };
  // The last two are looked at when a download goes on, the others when all is read again.
  for (const lost of [4, 0]) {
    await expect(load(server.at("/m.gguf"), "m.gguf")).rejects.toMatchObject({ code: "network" });
    const part = store.stored("m.gguf.part");
    if (part === undefined) throw new Error("no part");
    part[lost * CHUNK + 7] = (part[lost * CHUNK + 7] ?? 0) ^ 1;
  }
  server.clearRules();
  server.takeRequests();
  await load(server.at("/m.gguf"), "m.gguf").catch(() => undefined);
  expect(server.starts("/m.gguf")).toEqual([0, 5 * CHUNK]);
  expect(store.digest("m.gguf")).toBe(digest(content));
});

it("finds a wrong size in the Hub's list", async () => {
  server.putHub("o/n", { "m.gguf": bytes(2 * CHUNK, 1) });
  for (const size of [CHUNK, 3 * CHUNK]) {
    server.put(server.hubPath("o/n", "m.gguf"), bytes(size, 1), '"other"');
    const own = new StoreFixture();
    own.fetchOptions = store.fetchOptions;
    const message = expect.stringContaining(`expected ${2 * CHUNK} bytes, found ${size}`);
    await expect(own.load("hf:o/n", ["m.gguf"])).rejects.toMatchObject({ code: "truncated", message });
    expect(own.files()).not.toContain("m.gguf");
  }
});

it("deletes what the reader refuses", async () => {
  server.put("/m.gguf", bytes(4 * CHUNK, 1), '"e"');
  const model = await store.open(server.at("/m.gguf"));
  const { files } = await model.open();
  expect(await files().read("m.gguf", { start: 0, end: 8 })).toHaveLength(8);
  expect(server.starts("/m.gguf")).toEqual([0]);
  await model.discard();
  await model.close();
  await store.free();
  expect(store.files().filter((name) => name.startsWith("m.gguf"))).toEqual([]);
});
