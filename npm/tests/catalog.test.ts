import { describe, expect, it } from "vitest";
import { catalogSource } from "../src/catalog.js";
import { CATALOG } from "../src/catalog-entries.js";
import { modelSource } from "../src/sources.js";
import { modelsOn } from "../src/store/models.js";
import { modelPath } from "../src/store/names.js";
import { saveReference, writeManifest } from "../src/store/revisions.js";
import { MemoryStorage } from "./memory-storage.js";

const page = "https://example.org/app/index.html";

describe("the catalog", () => {
  it("has models with a size, memory above it or near, and a licence", () => {
    expect(CATALOG.length).toBeGreaterThan(20);
    expect(new Set(CATALOG.map(({ name }) => name)).size).toBe(CATALOG.length);
    for (const entry of CATALOG) {
      expect(entry.bytes, entry.name).toBeGreaterThan(1e8);
      expect(entry.memory, entry.name).toBeGreaterThan(entry.parameters / 4);
      expect(entry.licence, entry.name).not.toBe("");
    }
    const entry = CATALOG.find(({ name }) => name === "bitnet-2b-4t");
    expect(entry).toMatchObject({ contextLength: 4096, chatTemplate: "bitnet" });
    expect(entry?.sampling).toEqual({ temperature: 0.6, topP: 0.9 });
    const bonsai = CATALOG.find(({ name }) => name === "ternary-bonsai-8b");
    expect(bonsai?.sampling).toEqual({ temperature: 0.5, topP: 0.85, topK: 20 });
  });

  it("stands for repositories of the Hub, and for one file of those with several", async () => {
    for (const { name, repository, file } of CATALOG) {
      const source = await modelSource(name, page, { endpoint: "https://hub.example" });
      expect(source).toMatchObject({ kind: "hub", model: repository, endpoint: "https://hub.example" });
      expect(source).toMatchObject(
        file === undefined ? { layout: "folder" } : { layout: "file", name: file, file },
      );
    }
  });

  it.each(["./bitnet-2b-4t", "bitnet-2b-4t/", "/bitnet-2b-4t", "Bitnet-2b-4t", "bitnet"])(
    "leaves other texts to the page: %s",
    async (text) => {
      expect(catalogSource(text)).toBe(text);
      expect(await modelSource(text, page)).toMatchObject({ kind: "url", layout: "folder" });
    },
  );

  it("leaves sources that are no texts", () => {
    const url = new URL(page);
    expect(catalogSource(url)).toBe(url);
  });

  it("names stored models", async () => {
    const storage = new MemoryStorage();
    const models = modelsOn({
      openStorage: async () => storage,
      withLock: (_model, _signal, work) => work(),
      baseUrl: () => page,
    });
    expect(await models.has("bitnet-2b-4t")).toBe(false);
    const id = { host: "huggingface.co", owner: "microsoft", name: "bitnet-b1.58-2B-4T" };
    const revision = "a".repeat(40);
    const folder = `${modelPath(id)}/${revision}`;
    storage.set(`${folder}/config.json`, new Uint8Array(2));
    await writeManifest(storage, folder, {
      model: `${id.host}/${id.owner}/${id.name}`,
      revision,
      source: "https://huggingface.co",
      pulled: "2026-11-24T17:00:00Z",
      complete: true,
      files: [{ name: "config.json", bytes: 2, chunkBytes: 0, chunks: [] }],
    });
    await saveReference(storage, id, "main", revision);
    expect(await models.has("bitnet-2b-4t")).toBe(true);
    expect(await models.delete("bitnet-2b-4t")).toBe(true);
    expect(await models.has("bitnet-2b-4t")).toBe(false);
  });
});
