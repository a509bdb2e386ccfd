/** Servers and networks that give something else than a file: messages that help. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ModelBytes } from "../../src/model-bytes.js";
import { openStreamed } from "../../src/open-model.js";
import { modelSource } from "../../src/sources.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { StoreFixture } from "./store-fixture.js";

const PAGE = /the server answered with an HTML page.*check the path/;
const POINTER = `version https://git-lfs.github.com/spec/v1\noid sha256:${"ab".repeat(32)}\nsize 1234\n`;

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
});
afterEach(() => {
  vi.unstubAllGlobals();
  return server.stop();
});

/** The files of a source as the engine reads them: from the store while they arrive, or streamed. */
async function bytesOf(given: string | Record<string, Uint8Array>, isStored = false, needsTokenizer = true) {
  const source = await modelSource(given, "http://localhost/");
  const open = (signal: AbortSignal) =>
    isStored && typeof given === "string"
      ? store.open(given, signal)
      : openStreamed(source, { store: false }, signal);
  const bytes = new ModelBytes(open, needsTokenizer);
  await bytes.start();
  return bytes;
}

const encode = (text: string) => new TextEncoder().encode(text);

describe("an HTML page in place of a file", () => {
  beforeEach(() => {
    server.manners.pages = true;
  });

  it.each([
    ["/app/m.gguf", /m\.gguf: no such file; .*/],
    ["/app/", /has no model: looked for .*, found nothing; .*/],
  ])("is named by a stored download: %s", async (path, message) => {
    const failed = store.load(server.at(path), []);
    await expect(failed).rejects.toMatchObject({
      code: "not-found",
      message: expect.stringMatching(message),
    });
    await expect(failed).rejects.toThrow(PAGE);
  });

  it("is named by a stream", async () => {
    const bytes = await bytesOf(server.at("/app/"));
    expect(await bytes.read("chat_template.jinja", undefined, undefined, false)).toBeUndefined();
    const failed = bytes.read("config.json", undefined, undefined, true);
    await expect(failed).rejects.toThrow(PAGE);
    await expect(failed).rejects.toThrow(/^http.*config\.json: no such file/);
  });

  it("is not named where the server answers 404", async () => {
    await expect(store.load(server.at("/gone.gguf"), [])).rejects.toThrow(PAGE);
    server.manners.pages = false;
    await expect(store.load(server.at("/gone.gguf"), [])).rejects.toThrow(/no such file$/);
  });

  it("is named by a hub", async () => {
    store.fetchOptions = { store: true, endpoint: server.url };
    await expect(store.load("hf:o/n", [])).rejects.toThrow(PAGE);
  });
});

describe("a Git LFS pointer", () => {
  const expected = { code: "bad-checkpoint", message: expect.stringContaining("the file of 1234 bytes") };

  it.each([true, false])("is refused, stored: %s", async (isStored) => {
    server.put("/m.gguf", POINTER, '"p"');
    const bytes = await bytesOf(server.at("/m.gguf"), isStored);
    // The engine wants to know the format first.
    await expect(bytes.read("m.gguf", 0, 8, true)).rejects.toMatchObject(expected);
    await expect(bytes.read("m.gguf", 0, 8, true)).rejects.toThrow(/m\.gguf: is a Git LFS.*`git lfs pull`/);
    const copy = Object.assign(new Error("what the engine makes of it"), { code: "network" });
    await bytes.end(copy);
    expect(store.files()).toEqual([]);
  });

  it("is refused among local files, whole or not", async () => {
    const bytes = await bytesOf({ "config.json": encode("{}"), "model.safetensors": encode(POINTER) });
    await expect(bytes.read("model.safetensors", 0, 4, true)).rejects.toMatchObject(expected);
    await expect(bytes.read("model.safetensors", undefined, undefined, true)).rejects.toMatchObject(expected);
  });

  it.each([
    ["https://huggingface.co/o/n/raw/main/m.gguf", "https://huggingface.co/o/n/resolve/main/m.gguf"],
    [
      "https://raw.githubusercontent.com/o/n/main/m.gguf",
      "https://media.githubusercontent.com/media/o/n/main/m.gguf",
    ],
  ])("of a known server has the address of the file: %s", async (address, real) => {
    vi.stubGlobal("fetch", async () => new Response(POINTER));
    const bytes = await bytesOf(address);
    await expect(bytes.read("m.gguf", 0, 8, true)).rejects.toThrow(`its address is ${real}`);
  });

  it("is no other text with the same beginning", async () => {
    const bytes = await bytesOf({ "a.gguf": encode("version 1"), "config.json": encode("v") });
    expect(await bytes.read("a.gguf", 0, 8, true)).toEqual(encode("version "));
    expect(await bytes.read("config.json", undefined, undefined, true)).toEqual(encode("v"));
  });
});

describe("a failed request", () => {
  const ADDRESS = "http://127.0.0.1:1/m.gguf";
  const streamed = async () => (await bytesOf(ADDRESS)).read("m.gguf", 0, 8, true);
  const stored = () => store.load(ADDRESS, []);

  it.each([
    ["a stream", streamed],
    ["a stored download", stored],
  ])("of another origin says which header the server must send: %s", async (_, load) => {
    vi.stubGlobal("origin", "https://app.example");
    await expect(load()).rejects.toMatchObject({
      code: "network",
      message: expect.stringMatching(
        /^http.*m\.gguf: the request failed: .*"Access-Control-Allow-Origin: https:\/\/app\.example" \(or "\*"\)/,
      ),
    });
  });

  it.each([
    ["a stream", streamed],
    ["a stored download", stored],
  ])("says that the browser is offline: %s", async (_, load) => {
    vi.stubGlobal("origin", "https://app.example");
    vi.stubGlobal("navigator", { onLine: false });
    await expect(load()).rejects.toThrow(/m\.gguf: the request failed, this browser is offline$/);
  });

  it("says no more about the page's own origin", async () => {
    vi.stubGlobal("origin", new URL(ADDRESS).origin);
    await expect(stored()).rejects.toThrow(/m\.gguf: the request failed$/);
  });
});

describe("a folder without a tokenizer", () => {
  const WEIGHTS = "/m/model.safetensors";
  const expected = {
    code: "not-found",
    message: expect.stringMatching(/tokenizer\.json.*: no such file; .*put the/),
  };

  beforeEach(() => {
    server.put("/m/config.json", "{}", '"c"').put(WEIGHTS, new Uint8Array(1000), '"w"');
  });

  it("is refused before its weights are requested", async () => {
    const bytes = await bytesOf(server.at("/m/"), true);
    await expect(bytes.prefetch()).rejects.toMatchObject(expected);
    expect(server.starts(WEIGHTS)).toEqual([]);
    await bytes.end();
  });

  it.each([true, false])("is refused when the engine asks, stored: %s", async (isStored) => {
    const bytes = await bytesOf(server.at("/m/"), isStored);
    expect(await bytes.read("generation_config.json", undefined, undefined, false)).toBeUndefined();
    await expect(bytes.read("tokenizer.json", undefined, undefined, false)).rejects.toMatchObject(expected);
    await bytes.end();
  });

  it("is taken as a draft", async () => {
    const bytes = await bytesOf(server.at("/m/"), true, false);
    await bytes.prefetch();
    expect(await bytes.read("tokenizer.json", undefined, undefined, false)).toBeUndefined();
    await bytes.end();
  });

  it("is taken if a .setun file has it inside", async () => {
    server.put("/s/model.setun", new Uint8Array(100), '"s"');
    const bytes = await bytesOf(server.at("/s/"), true);
    await bytes.prefetch();
    expect(await bytes.read("model.setun", 0, 8, true)).toEqual(new Uint8Array(8));
    await bytes.commit();
  });

  it("is downloaded with one, once", async () => {
    server.put("/m/tokenizer.json", "{}", '"t"');
    const bytes = await bytesOf(server.at("/m/"), true);
    await bytes.prefetch();
    await bytes.commit();
    expect(server.starts(WEIGHTS)).toEqual([0]);
    expect(server.requests.filter(({ path }) => path === "/m/tokenizer.json")).toHaveLength(1);
  });
});
