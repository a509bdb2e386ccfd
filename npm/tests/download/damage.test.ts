/** Damaged copies in the store: noticed, named, removed and downloaded again. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStored } from "../../src/download/open-stored.js";
import { connectLocal } from "../../src/host-links.js";
import { loadOn } from "../../src/load.js";
import type { LoadProgress } from "../../src/load-progress.js";
import type { OpenSource } from "../../src/open-model.js";
import type { LoadOptions } from "../../src/options.js";
import { isDownload } from "../../src/sources.js";
import { COMMIT, type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { emptyLog, type FakeOptions, fakeBuild } from "../fake-wasm.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const FILE = "/a.safetensors";
const content = bytes(4 * CHUNK, 1);

let server: FaultyServer;
let store: StoreFixture;
let damaged: readonly string[] | undefined;

beforeEach(async () => {
  server = await startFaultyServer();
  server.put(FILE, content, '"e"');
  store = new StoreFixture();
});
afterEach(() => server.stop());

/** Loads, and returns the warnings of the model. */
async function load(options: LoadOptions = {}, fake: FakeOptions = {}, source = FILE) {
  damaged = undefined;
  const openModel: OpenSource = async (source, fetchOptions, signal, onProgress, damages) => {
    if (!isDownload(source)) throw new Error("expected an address");
    const { storage, withLock, settings } = store;
    return openStored(source, fetchOptions, { storage, withLock, settings }, signal, onProgress, damages);
  };
  const onProgress = (progress: LoadProgress) => {
    damaged = progress.damaged ?? damaged;
  };
  const loadModel = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: true,
    baseUrl: () => server.url,
    embeddedModel: () => new URL(FILE, server.url),
    connect: async () => connectLocal({ build: fakeBuild(emptyLog(), fake), openModel }),
  });
  const model = await loadModel(source, { onProgress, ...options });
  await model.dispose();
  return model.info.warnings;
}

const pathOf = (name: string) =>
  [...store.storage.files.keys()].find((path) => path.endsWith(`/${name}`)) ?? "";

function replace(name: string, change: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>): void {
  const found = store.storage.files.get(pathOf(name));
  if (found === undefined) throw new Error(`${name} is not stored`);
  store.storage.files.set(pathOf(name), change(found.slice()));
}

const flip = (at: number) => (found: Uint8Array<ArrayBuffer>) => {
  found[at] = (found[at] ?? 0) ^ 1;
  return found;
};

/** Refuses a copy with a damaged first byte, as the engine does a header. */
const checksHeader = (code = "bad-checkpoint"): FakeOptions => ({
  refusal: () =>
    store.stored("a.safetensors")?.[0] === ((content[0] ?? 0) ^ 1)
      ? Object.assign(new Error("an odd header"), { code })
      : undefined,
});

/** The file was named and downloaded again. */
function expectRepaired(warnings: readonly string[], reason: RegExp): void {
  const sentence = `a.safetensors in the browser's store was damaged \\(${reason.source}\\)`;
  expect(damaged).toEqual([expect.stringMatching(new RegExp(`^${sentence}$`))]);
  expect(warnings).toEqual([expect.stringMatching(new RegExp(`^${sentence} and was downloaded again$`))]);
  expect(server.starts(FILE)).toEqual([0, CHUNK, 2 * CHUNK, 3 * CHUNK]);
  expect(store.digest("a.safetensors")).toBe(digest(content));
}

describe("a stored file", () => {
  beforeEach(async () => {
    await load();
    await store.free();
    server.takeRequests();
  });

  it("of the right bytes is only read", async () => {
    expect(await load({ verify: true })).toEqual([]);
    expect(damaged).toBeUndefined();
    expect(server.starts(FILE)).toEqual([]);
  });

  it.each([
    [
      "truncated",
      (found: Uint8Array<ArrayBuffer>) => found.slice(0, 100),
      /it has 100 bytes, expected 262144/,
    ],
    ["empty", () => new Uint8Array(), /it has 0 bytes, expected 262144/],
    [
      "longer",
      (found: Uint8Array<ArrayBuffer>) => Uint8Array.from([...found, 1]),
      /it has 262145 bytes, expected 262144/,
    ],
  ])("that is %s is noticed by its size", async (_, change, reason) => {
    replace("a.safetensors", change);
    expectRepaired(await load(), reason);
  });

  it("that is missing is downloaded again", async () => {
    store.storage.files.delete(pathOf("a.safetensors"));
    expectRepaired(await load(), /it is missing/);
  });

  it.each([
    ["first", 0, /its bytes 0 to 65536 have another SHA-256/],
    ["middle", 2 * CHUNK + 5, /its bytes 131072 to 196608 have another SHA-256/],
    ["last", 4 * CHUNK - 1, /its bytes 196608 to 262144 have another SHA-256/],
  ])("with another %s byte is noticed with `verify`", async (_, at, reason) => {
    replace("a.safetensors", flip(at));
    expectRepaired(await load({ verify: true }), reason);
    server.takeRequests();
    expect(await load({ verify: true })).toEqual([]);
    expect(server.starts(FILE)).toEqual([]);
  });

  it.each(["bad-checkpoint", "truncated", "unsupported-model"])(
    "that makes a load fail with %s is downloaded again",
    async (code) => {
      replace("a.safetensors", flip(0));
      expectRepaired(await load({}, checksHeader(code)), /its bytes 0 to 65536 have another SHA-256/);
    },
  );

  it("that the model is refused for stays, if it is what was downloaded", async () => {
    const refusal = Object.assign(new Error("an odd shape"), { code: "bad-checkpoint" });
    await expect(load({}, { refusal })).rejects.toMatchObject({ code: "bad-checkpoint" });
    expect(damaged).toBeUndefined();
    expect(store.digest("a.safetensors")).toBe(digest(content));
    expect(server.starts(FILE)).toEqual([]);
  });

  it.each([
    ["truncated", (found: Uint8Array<ArrayBuffer>) => found.slice(0, 100), {}, /it has 100 bytes/],
    ["of other bytes", flip(0), checksHeader(), /its bytes 0 to 65536 have another SHA-256/],
  ])("that is %s is named where its server cannot be reached", async (what, change, fake, reason) => {
    replace("a.safetensors", change);
    // Before the download begins, or in the midst of it.
    if (what === "truncated") server.ruleOfAll(FILE, Number.POSITIVE_INFINITY, { status: 403 });
    else server.ruleAt(FILE, CHUNK, Number.POSITIVE_INFINITY, { status: 403 });
    const message = expect.stringMatching(
      new RegExp(
        `^a\\.safetensors in the browser's store was damaged \\(${reason.source}.*\\) and cannot be downloaded again: ` +
          ".*403.*; its other files stay: load the model again when its server can be reached$",
      ),
    );
    await expect(load({}, fake)).rejects.toMatchObject({ code: "network", message });
    await store.free();
    server.clearRules();
    server.takeRequests();
    await load();
    expect(store.digest("a.safetensors")).toBe(digest(content));
  });
});

describe("a stored repository", () => {
  const NAME = "hf:maker/stories";
  let files: Record<string, Uint8Array<ArrayBuffer> | string>;
  let endpoint: string;

  const tell = (options: LoadOptions = {}) => load({ endpoint, ...options }, {}, NAME);

  beforeEach(async () => {
    endpoint = server.url;
    const weights = { "model.safetensors": content, "a.safetensors": content.slice(0, 100) };
    files = { "config.json": "{}", "tokenizer.json": '{"version": "1.0"}', ...weights };
    server.putHub("maker/stories", files);
    await tell();
    await store.free();
    server.takeRequests();
  });

  const requested = () =>
    server
      .takeRequests()
      .filter(({ path }) => path.includes("/resolve/"))
      .map(({ path }) => path.replace(/.*\//, ""));

  it("downloads the damaged file alone", async () => {
    replace("tokenizer.json", (found) => found.slice(1));
    const [warning, ...others] = await tell();
    expect(warning).toMatch(/^tokenizer\.json .*it has 17 bytes, expected 18/);
    expect(others).toEqual([]);
    expect(requested()).toEqual(["tokenizer.json"]);
  });

  it("names all damaged files", async () => {
    replace("config.json", flip(1));
    store.storage.files.delete(pathOf("tokenizer.json"));
    const warnings = await tell({ verify: true });
    expect(warnings.map((text) => text.split(" ")[0])).toEqual(["tokenizer.json", "config.json"]);
    expect(requested().sort()).toEqual(["config.json", "tokenizer.json"]);
  });

  it("is not replaced by an older revision", async () => {
    const older = pathOf("config.json")
      .replace(COMMIT, "f".repeat(40))
      .replace("config.json", "manifest.json");
    const manifest = (await store.storage.readText(pathOf("manifest.json"))) ?? "";
    const text = manifest
      .replaceAll(COMMIT, "f".repeat(40))
      .replace(/"pulled": "[^"]*"/, '"pulled": "2020-01-01T00:00:00Z"');
    for (const [path, found] of [...store.storage.files]) {
      if (!path.endsWith("manifest.json"))
        store.storage.files.set(path.replace(COMMIT, "f".repeat(40)), found);
    }
    await store.storage.writeText(older, text);
    const damagedPath = [...store.storage.files.keys()].find((path) =>
      path.endsWith(`${COMMIT}/config.json`),
    );
    store.storage.files.delete(damagedPath ?? "");
    expect((await tell()).map((sentence) => sentence.split(" ")[0])).toEqual(["config.json"]);
    expect(requested()).toEqual(["config.json"]);
  });
});
