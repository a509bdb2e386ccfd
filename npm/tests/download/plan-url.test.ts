/** Folders and files at URLs. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NotStorableError } from "../../src/download/errors.js";
import { type FaultyServer, startFaultyServer } from "../../test-support/faulty-server.js";
import { bytes, CHUNK, digest, StoreFixture } from "./store-fixture.js";

let server: FaultyServer;
let store: StoreFixture;

beforeEach(async () => {
  server = await startFaultyServer();
  store = new StoreFixture();
});
afterEach(() => server.stop());

const load = (path: string, names: readonly string[] = []) => store.load(server.at(path), names);

describe("a folder", () => {
  it("is searched for the files of a model", async () => {
    const content = bytes(2 * CHUNK, 1);
    server.put("/m/config.json", "{}", '"c"').put("/m/tokenizer.json", '{"t":1}', '"t"');
    server.put("/m/model.safetensors", content, '"w"');
    await load("/m/");
    expect(store.files()).toEqual(["config.json", "manifest.json", "model.safetensors", "tokenizer.json"]);
    expect(store.digest("model.safetensors")).toBe(digest(content));
    // Once more: the weights are asked about, and nothing else.
    server.takeRequests();
    await load("/m");
    expect(server.requests.map(({ method, path }) => [method, path])).toEqual([
      ["HEAD", "/m/model.safetensors"],
    ]);
  });

  it("has the shards that its index names", async () => {
    const map = { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" };
    const index = JSON.stringify({ weight_map: { ...map, c: map.a } });
    server.put("/m/config.json", "{}", '"c"').put("/m/model.safetensors.index.json", index, '"i"');
    server.put(`/m/${map.a}`, bytes(10, 1), '"1"');
    await expect(load("/m")).rejects.toMatchObject({
      code: "not-found",
      message: expect.stringContaining(map.b),
    });
    server.put(`/m/${map.b}`, bytes(20, 2), '"2"');
    await load("/m", Object.values(map));
    expect(store.files()).toHaveLength(5);
    server.put("/n/config.json", "{}", '"c"');
    server.put("/n/model.safetensors.index.json", '{"weight_map":{"a":"../x.safetensors"}}', '"i"');
    await expect(load("/n")).rejects.toMatchObject({ message: expect.stringContaining("../x.safetensors") });
  });

  it("may have a .setun file only", async () => {
    server.put("/m/model.setun", bytes(100, 1), '"s"');
    await load("/m", ["model.setun"]);
    expect(store.files()).toEqual(["manifest.json", "model.setun"]);
  });

  it("without a model is an error", async () => {
    server.put("/m/config.json", "{}", '"c"').put("/m/pytorch_model.bin", "x", '"p"');
    const message = expect.stringContaining("found config.json");
    await expect(load("/m")).rejects.toMatchObject({ code: "not-found", message });
    server.manners.pages = true;
    await expect(load("/n")).rejects.toMatchObject({ code: "not-found" });
    expect(store.files()).toEqual([]);
  });

  it.each(['{"name":"a web app"}', "[", '{"format":1,"files":[{"name":"../x","bytes":1}]}', '{"format":9}'])(
    "may have a manifest of other software: %s",
    async (foreign) => {
      server.put("/m/config.json", "{}", '"c"').put("/m/model.safetensors", "w", '"w"');
      server.put("/m/manifest.json", foreign, '"f"');
      await load("/m");
      expect(store.files()).toEqual(["config.json", "manifest.json", "model.safetensors"]);
    },
  );

  it("with changed configuration files is downloaded again", async () => {
    server.put("/m/config.json", "{}", '"c"').put("/m/model.safetensors", "weights", '"w"');
    await load("/m");
    server.put("/m/config.json", "[]", '"d"').put("/m/model.safetensors", "WEIGHTS", '"x"');
    const [config] = await load("/m", ["config.json"]);
    expect(new TextDecoder().decode(config)).toBe("[]");
    expect(store.files()).toEqual(["config.json", "manifest.json", "model.safetensors"]);
  });
});

describe("a file", () => {
  it("that does not exist is an error", async () => {
    await expect(load("/x.gguf")).rejects.toMatchObject({ code: "not-found" });
  });

  it.each([".m.gguf", "a%3Am.gguf", "..%2F..%2Fm.gguf"])(
    "is not kept by a name that could leave its folder: %s",
    async (name) => {
      server.put(`/${decodeURIComponent(name)}`, bytes(10, 1), '"w"');
      await expect(store.open(server.at(`/${name}`))).rejects.toBeInstanceOf(NotStorableError);
      expect(store.files()).toEqual([]);
    },
  );

  it("on a server without HEAD is probed by one byte", async () => {
    const content = bytes(2 * CHUNK, 1);
    server.put("/m.gguf", content, '"w"');
    server.ruleOfAll("/m.gguf", 1, { status: 405 });
    await load("/m.gguf");
    expect(store.digest("m.gguf")).toBe(digest(content));
  });

  it("keeps the query of its URL, and files beside it are found", async () => {
    server.put("/m.safetensors?key=1", bytes(100, 1), '"w"').put("/config.json", "{}", '"c"');
    const model = await store.open(server.at("/m.safetensors?key=1"));
    const { entry, files } = await model.open();
    expect(entry).toEqual({ layout: "file", name: "m.safetensors" });
    const opened = files();
    expect(await opened.read("config.json", undefined)).toHaveLength(2);
    expect(await opened.read("tokenizer.json", undefined)).toBeUndefined();
    await model.commit();
    expect(store.files()).toEqual(["config.json", "m.safetensors", "manifest.json"]);
    const [config] = await load("/m.safetensors?key=1", ["config.json"]);
    expect(config).toHaveLength(2);
  });

  it("of several parts is downloaded with the others", async () => {
    const names = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
    for (const name of names) server.put(`/${name}`, bytes(50, name.length), '"w"');
    await load(`/${names[0]}`, names);
    expect(store.files()).toEqual([...names, "manifest.json"]);
  });

  it("with a redirect loop or a dead redirect ends", async () => {
    server.ruleOfAll("/a.gguf", Infinity, { redirect: "/a.gguf" });
    await expect(load("/a.gguf")).rejects.toMatchObject({ code: "network" });
    server.ruleOfAll("/b.gguf", Infinity, { redirect: "file:///etc/passwd" });
    await expect(load("/b.gguf")).rejects.toMatchObject({ code: "network" });
  });
});

describe("a server that compresses", () => {
  it("sends small files whole, and large ones in uncompressed ranges", async () => {
    server.manners.gzip = true;
    const content = bytes(3 * CHUNK, 1);
    server.put("/m/config.json", '{"a":1}', '"c"').put("/m/model.safetensors", content, '"w"');
    const [config] = await load("/m", ["config.json"]);
    expect(new TextDecoder().decode(config)).toBe('{"a":1}');
    expect(store.digest("model.safetensors")).toBe(digest(content));
  });

  it("and has no range support tells no size, so nothing is stored", async () => {
    server.manners = { gzip: true, ranges: false };
    server.put("/m.gguf", bytes(3 * CHUNK, 1), '"w"');
    await expect(load("/m.gguf")).rejects.toThrow("does not state its size");
    expect(store.files()).toEqual([]);
  });
});
