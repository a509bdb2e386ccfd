/** Hub repositories: lists, tokens, redirects, revisions. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { openStreamed } from "../../src/open-model.js";
import { COMMIT, type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const CONFIG = '{"model_type":"bitnet"}';

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
  store.fetchOptions = { store: true, endpoint: server.url };
});
afterEach(() => server.stop());

const open = async (name: string) => {
  const model = await store.open(name);
  const { entry } = await model.open();
  await model.commit();
  return entry;
};
const text = (path: string) => store.storage.readText(path);

it("downloads a repository, and finds it by its names without a request", async () => {
  const content = bytes(3 * CHUNK, 1);
  const files = { "config.json": CONFIG, "pytorch_model.bin": "never", "README.md": "never" };
  server.putHub("o/n", { ...files, "model.safetensors": content });
  expect(await open("hf:o/n")).toEqual({ layout: "folder", name: "n" });
  expect(store.files()).toEqual(["config.json", "manifest.json", "model.safetensors", "refs.json"]);
  expect(store.digest("model.safetensors")).toBe(digest(content));
  const folder = `models/${new URL(server.url).host.replace(":", "_")}/o/n`;
  const manifest = JSON.parse((await text(`${folder}/${COMMIT}/manifest.json`)) ?? "");
  expect(manifest).toMatchObject({
    licence: "mit",
    revision: COMMIT,
    complete: true,
    source: server.at("/o/n"),
  });
  expect(manifest.files[1]).toMatchObject({ sha256: digest(content), chunk_bytes: CHUNK });
  expect(JSON.parse((await text(`${folder}/refs.json`)) ?? "")).toEqual({
    format: 1,
    revisions: { main: COMMIT },
  });
  server.takeRequests();
  for (const name of ["hf:o/n", "hf:o/n@main", `hf:o/n@${COMMIT}`]) {
    expect(await open(name)).toEqual({ layout: "folder", name: "n" });
  }
  expect(server.requests).toEqual([]);
});

it("requires a file name among several models, and downloads each", async () => {
  server.putHub("o/n", { "a-q8.gguf": bytes(CHUNK, 1), "b-q8.gguf": bytes(CHUNK, 2) });
  const message = expect.stringContaining('a-q8.gguf, b-q8.gguf; name one as "hf:o/n:FILE"');
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "bad-option", message });
  expect(await open("hf:o/n:b-q8.gguf")).toEqual({ layout: "file", name: "b-q8.gguf" });
  expect(store.files()).toEqual(["b-q8.gguf", "manifest.json", "refs.json"]);
  // One that is here alone need not be named.
  expect(await open("hf:o/n")).toEqual({ layout: "file", name: "b-q8.gguf" });
  server.takeRequests();
  await open("hf:o/n:a-q8.gguf");
  expect(server.starts(server.hubPath("o/n", "b-q8.gguf"))).toEqual([]);
  expect(store.files()).toEqual(["a-q8.gguf", "b-q8.gguf", "manifest.json", "refs.json"]);
});

it("sends the token to the Hub only", async () => {
  const blobServer = await startFaultyServer();
  const content = bytes(3 * CHUNK, 1);
  server.putHub("o/n", { "config.json": CONFIG, "model.safetensors": content });
  blobServer.put("/blob", content, '"blob"');
  const path = server.hubPath("o/n", "model.safetensors");
  server.ruleOfAll(path, Infinity, { redirect: blobServer.at("/blob") });
  store.fetchOptions = { ...store.fetchOptions, token: "secret" };
  await open("hf:o/n");
  expect(store.digest("model.safetensors")).toBe(digest(content));
  expect(server.requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
  expect(blobServer.requests.length).toBeGreaterThan(0);
  // Nor does another address hear it.
  await store.load(blobServer.at("/blob.gguf"), []).catch(() => undefined);
  expect(blobServer.requests.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
  await blobServer.stop();
});

it("requests an expired redirect again", async () => {
  const content = bytes(4 * CHUNK, 1);
  server.putHub("o/n", { "m.gguf": content });
  const path = server.hubPath("o/n", "m.gguf");
  server.put("/one", content, '"one"').put("/two", content, '"two"');
  server.ruleOfAll(path, 1, { redirect: server.at("/one") });
  server.ruleOfAll(path, Infinity, { redirect: server.at("/two") });
  await open("hf:o/n");
  expect(store.digest("m.gguf")).toBe(digest(content));
});

it("reports a missing or gated repository", async () => {
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "not-found" });
  server.rule(server.listPath("o/n", "main"), 1, { status: 401 });
  const message = expect.stringContaining("token");
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "network", message });
  server.put(server.listPath("o/n", "main"), '{"sha":"../../x","siblings":[]}', '"l"');
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "network" });
  server.put(server.listPath("o/n", "main"), "<p>", '"l"');
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "network" });
  server.putHub("o/n", { "pytorch_model.bin": "x" });
  const found = expect.stringContaining("found pytorch_model.bin");
  await expect(open("hf:o/n")).rejects.toMatchObject({ code: "not-found", message: found });
});

it("ignores names outside of the folder", async () => {
  server.putHub("o/n", { "../evil.gguf": "x", "/evil.gguf": "x", "good.gguf": "good" });
  const model = await store.open("hf:o/n");
  const { entry, files } = await model.open();
  expect(entry).toEqual({ layout: "file", name: "good.gguf" });
  expect(await files().read("../evil.gguf", undefined)).toBeUndefined();
  await model.commit();
  expect(store.files()).toEqual(["good.gguf", "manifest.json", "refs.json"]);
});

it("downloads all parts of a model", async () => {
  const parts = { "m-i2_s-00001-of-00002.gguf": "one", "m-i2_s-00002-of-00002.gguf": "two" };
  server.putHub("o/n", { ...parts, "m-q8.gguf": "no" });
  expect(await open("hf:o/n")).toEqual({ layout: "file", name: "m-i2_s-00001-of-00002.gguf" });
  expect(store.files()).toEqual([...Object.keys(parts), "manifest.json", "refs.json"]);
});

it("requests no complete file again after an interruption", async () => {
  const parts = {
    "m-00001-of-00002.gguf": bytes(2 * CHUNK, 1),
    "m-00002-of-00002.gguf": bytes(2 * CHUNK, 2),
  };
  server.putHub("o/n", parts);
  const [first = "", second = ""] = Object.keys(parts).map((name) => server.hubPath("o/n", name));
  server.ruleAt(second, CHUNK, Infinity, { breakAfter: 0 });
  store.settings = { ...store.settings, attempts: 2, connections: 1 };
  await expect(store.load("hf:o/n", Object.keys(parts))).rejects.toMatchObject({ code: "network" });
  server.clearRules();
  server.takeRequests();
  await open("hf:o/n");
  expect(server.starts(first)).toEqual([]);
  expect(server.starts(second)).toEqual([CHUNK]);
});

it("streams a Hub model without storing it", async () => {
  server.putHub("o/n", { "config.json": CONFIG, "model.safetensors": bytes(100, 1) });
  store.fetchOptions = { ...store.fetchOptions, token: "secret" };
  const { signal } = new AbortController();
  const model = await openStreamed(store.source("hf:o/n"), store.fetchOptions, signal);
  const { entry, files } = await model.open();
  expect(entry).toEqual({ layout: "folder", name: "n" });
  const opened = files();
  expect(await opened.read("config.json", undefined)).toEqual(new TextEncoder().encode(CONFIG));
  expect(await opened.read("tokenizer.json", undefined)).toBeUndefined();
  expect(await opened.read("model.safetensors", { start: 0, end: 8 })).toEqual(bytes(100, 1).slice(0, 8));
  await opened.close();
  expect(server.requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
  expect(server.requests.map(({ path }) => path)).not.toContain(server.hubPath("o/n", "tokenizer.json"));
});
