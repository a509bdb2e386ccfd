/** Weights that all sites of a browser share. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CrossOriginFiles } from "../../src/cross-origin-files.js";
import { modelsOn } from "../../src/store/models.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

const NAME = "hf:maker/stories";
const WEIGHTS = "model.safetensors";
const content = bytes(4 * CHUNK, 1);
const config = "{}";

/** Files by their SHA-256, as a browser has them for all sites. */
class SharedByAll implements CrossOriginFiles {
  readonly files = new Map<string, Blob>();
  readonly asked: (readonly string[])[] = [];
  isRefused = false;
  takesFiles = true;

  refuse(): void {
    this.isRefused = true;
  }

  async find(digests: readonly string[]): Promise<readonly Blob[] | undefined> {
    this.asked.push(digests);
    const found = digests.map((each) => this.files.get(each));
    return this.isRefused ? undefined : found.every((file) => file !== undefined) ? found : undefined;
  }

  async store(digests: readonly string[], files: readonly Blob[]): Promise<boolean> {
    if (this.isRefused || !this.takesFiles) return false;
    for (const [at, each] of digests.entries()) this.files.set(each, files[at] as Blob);
    return true;
  }
}

let server: FaultyServer;
let all: SharedByAll;

beforeEach(async () => {
  server = await startFaultyServer();
  server.putHub("maker/stories", { "config.json": config, "tokenizer.json": "{}", [WEIGHTS]: content });
  all = new SharedByAll();
});
afterEach(() => server.stop());

/** A site with a store of its own. */
function site(crossOrigin: CrossOriginFiles | null = all): StoreFixture {
  const store = new StoreFixture();
  store.fetchOptions = { store: true, endpoint: server.url };
  store.crossOrigin = crossOrigin ?? undefined;
  return store;
}

/** Loads the model, and waits until what it shares is shared. */
async function load(store: StoreFixture): Promise<void> {
  const [read] = await store.load(NAME, [WEIGHTS, "config.json"]);
  expect(digest(read ?? new Uint8Array())).toBe(digest(content));
}

const requested = () => server.takeRequests().filter(({ path }) => path.endsWith(WEIGHTS)).length;
const isHere = (store: StoreFixture) => store.files().includes(WEIGHTS);
const models = ({ storage, withLock }: StoreFixture) =>
  modelsOn({
    openStorage: async () => storage,
    withLock,
    baseUrl: () => server.url,
    findShared: (digests) => all.find(digests),
  });

it("are downloaded by the first site, which leaves them to all", async () => {
  const first = site();
  await load(first);
  expect(requested()).toBe(4);
  await expect.poll(() => isHere(first)).toBe(false);
  expect([...all.files.keys()]).toEqual([digest(content)]);
  expect(first.files()).toEqual(["config.json", "manifest.json", "refs.json", "tokenizer.json"]);
  expect(await models(first).has(NAME)).toBe(true);
  await load(first);
  expect(requested()).toBe(0);
});

it("are found by another site, which downloads and stores the small files alone", async () => {
  await load(site());
  await expect.poll(() => all.files.size).toBe(1);
  requested();
  const second = site();
  await load(second);
  expect(requested()).toBe(0);
  expect(second.files()).toEqual(["config.json", "manifest.json", "refs.json", "tokenizer.json"]);
  await load(second);
  expect(server.takeRequests()).toEqual([]);
  expect(await models(second).list()).toMatchObject([{ complete: true, bytes: 4 }]);
});

describe("a site keeps its own copy", () => {
  it("without the API", async () => {
    const store = site(null);
    await load(store);
    expect(isHere(store)).toBe(true);
    expect(all.asked).toEqual([]);
  });

  it("where the browser refuses", async () => {
    all.isRefused = true;
    const store = site();
    await load(store);
    await store.free();
    await load(store);
    expect(isHere(store)).toBe(true);
    expect(requested()).toBe(4);
  });

  it("where the browser takes no file", async () => {
    all.takesFiles = false;
    const store = site();
    await load(store);
    await store.free();
    expect(isHere(store)).toBe(true);
    expect(all.asked).toEqual([[digest(content)]]);
  });

  it("where what was stored cannot be read", async () => {
    all.find = async () => undefined;
    const store = site();
    await load(store);
    await expect.poll(() => all.files.size).toBe(1);
    await store.free();
    expect(isHere(store)).toBe(true);
  });
});

describe("a shared file", () => {
  it.each([
    ["that is gone", () => all.files.clear()],
    ["that may not be read any more", () => all.refuse()],
    ["of another size", () => void all.files.set(digest(content), new Blob([content.slice(1)]))],
  ])("%s is downloaded again", async (_, change) => {
    const store = site();
    await load(store);
    await expect.poll(() => isHere(store)).toBe(false);
    requested();
    change();
    all.takesFiles = false;
    await load(store);
    expect(requested()).toBe(4);
    expect(store.digest(WEIGHTS)).toBe(digest(content));
  });

  it("that is gone is named where its server cannot be reached", async () => {
    const store = site();
    await load(store);
    await expect.poll(() => isHere(store)).toBe(false);
    all.files.clear();
    server.ruleOfAll(server.listPath("maker/stories", "main"), Number.POSITIVE_INFINITY, { status: 403 });
    await expect(load(store)).rejects.toMatchObject({
      code: "network",
      message: expect.stringMatching(/^model\.safetensors .*no longer in the storage that sites share.*403/),
    });
    expect(await models(store).has(NAME)).toBe(false);
  });

  it("of other bytes is not believed", async () => {
    const wrong = content.slice();
    wrong[CHUNK] = (wrong[CHUNK] ?? 0) ^ 1;
    all.files.set(digest(content), new Blob([wrong]));
    all.takesFiles = false;
    const store = site();
    await load(store);
    expect(requested()).toBe(4);
    expect(store.digest(WEIGHTS)).toBe(digest(content));
  });
});

it("asks for all weights of a model at once, as the browser may ask its user", async () => {
  const parts = [1, 2].map((part) => `model-0000${part}-of-00002.safetensors`);
  const index = JSON.stringify({ weight_map: { a: parts[0], b: parts[1] } });
  const [one, two] = [bytes(CHUNK, 2), bytes(CHUNK, 3)];
  server.putHub("maker/stories", {
    ...{ "config.json": config, "tokenizer.json": "{}", "model.safetensors.index.json": index },
    ...{ [parts[0] ?? ""]: one, [parts[1] ?? ""]: two },
  });
  const store = site();
  await store.load(NAME, parts);
  expect(all.asked[0]).toEqual([digest(one), digest(two)]);
  await expect.poll(() => store.files()).not.toContain(parts[0]);
  expect((await store.load(NAME, parts)).map(digest)).toEqual([digest(one), digest(two)]);
});

it("leaves out files whose hash nobody states", async () => {
  server.put("/a.safetensors", content, '"e"');
  const store = site();
  await store.load(server.at("/a.safetensors"), ["a.safetensors"]);
  await store.free();
  expect(all.asked).toEqual([]);
  expect(store.files()).toContain("a.safetensors");
});
