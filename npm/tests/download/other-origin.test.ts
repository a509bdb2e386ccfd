/** Models on another origin, of whose answers a page may not read all headers. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { UrlFiles } from "../../src/url-files.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

/** Headers that pages of other origins may read without permission (Fetch, "CORS-safelisted response-header name"). */
const SAFELISTED = [
  "cache-control",
  "content-language",
  "content-length",
  "content-type",
  "expires",
  "last-modified",
  "pragma",
];

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
  const plainFetch = globalThis.fetch;
  vi.stubGlobal("origin", "https://app.example");
  vi.stubGlobal("fetch", async (...request: Parameters<typeof fetch>) =>
    hidden(await plainFetch(...request)),
  );
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await server.stop();
});

/** A response as a page of another origin sees it. */
function hidden(response: Response): Response {
  const headers = new Headers([...response.headers].filter(([name]) => SAFELISTED.includes(name)));
  const { status, ok, body } = response;
  return { status, ok, body, headers } as Response;
}

const load = (path: string, names: readonly string[] = []) => store.load(server.at(path), names);

describe("a host that compresses and states the length of that", () => {
  // Compressed, the one text is longer, the other shorter.
  const texts = { "config.json": "{}", "tokenizer.json": JSON.stringify("a".repeat(50_000)) };
  const weights = bytes(3 * CHUNK, 1);

  beforeEach(() => {
    server.manners.gzip = "told";
    for (const [name, text] of Object.entries(texts)) server.put(`/m/${name}`, text);
    server.put("/m/model.safetensors", weights);
  });

  it.each([true, false])("gives whole files to the store, ranges: %s", async (ranges) => {
    server.manners.ranges = ranges;
    const read = await load("/m", Object.keys(texts));
    expect(read.map((each) => new TextDecoder().decode(each))).toEqual(Object.values(texts));
    expect(store.digest("model.safetensors")).toBe(digest(weights));
    if (!ranges) return;
    // Once more: nothing is downloaded.
    server.takeRequests();
    await load("/m");
    expect(server.requests.map(({ method, start }) => [method, start])).toEqual([
      ["HEAD", undefined],
      ["GET", 0],
    ]);
  });

  it("gives whole files without the store", async () => {
    const source = store.source(server.at("/m/"));
    if (source.kind !== "url") throw new Error("expected a URL");
    const files = new UrlFiles(source, new AbortController().signal);
    for (const [name, text] of Object.entries(texts))
      expect(new TextDecoder().decode(await files.read(name, undefined))).toBe(text);
    expect(await files.read("model.safetensors", undefined)).toEqual(weights);
    await files.close();
  });
});

describe("a host that answers GET alone", () => {
  it.each([400, 403, 405, 501])("states the size all the same: HEAD %i", async (head) => {
    server.manners.head = head;
    const weights = bytes(3 * CHUNK, 1);
    server.put("/m.gguf", weights);
    await load("/m.gguf", ["m.gguf"]);
    expect(store.digest("m.gguf")).toBe(digest(weights));
    server.takeRequests();
    await load("/m.gguf");
    // A byte, and the headers of the whole.
    expect(server.requests.map(({ method, start }) => [method, start])).toEqual([
      ["HEAD", undefined],
      ["GET", 0],
      ["GET", 0],
    ]);
  });
});

describe("a signed URL", () => {
  it("is stored once, whatever its signature", async () => {
    const weights = bytes(3 * CHUNK, 1);
    const signed = ["/m.gguf?X-Amz-Date=1&X-Amz-Signature=a", "/m.gguf?X-Amz-Date=2&X-Amz-Signature=b"];
    for (const path of signed) server.put(path, weights);
    for (const path of signed) await load(path, ["m.gguf"]);
    expect(server.starts(signed[1] ?? "")).toEqual([]);
    expect(store.files()).toEqual(["m.gguf", "manifest.json"]);
  });
});
