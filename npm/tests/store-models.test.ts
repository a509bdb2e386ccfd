import { beforeEach, describe, expect, it } from "vitest";
import { chunkLine, headerLine } from "../src/store/journal.js";
import { type Manifest, printManifest } from "../src/store/manifest.js";
import { modelsOn, type StorePlatform } from "../src/store/models.js";
import { type ModelId, modelIdText, modelPath } from "../src/store/names.js";
import {
  completeRevision,
  currentRevision,
  readManifest,
  referencedCommit,
  saveReference,
  writeManifest,
} from "../src/store/revisions.js";
import type { WithLock } from "../src/store/storage.js";
import { MemoryStorage } from "./memory-storage.js";

const HUB: ModelId = { host: "huggingface.co", owner: "o", name: "n" };
const COMMITS = ["a".repeat(40), "b".repeat(40)] as const;

let storage: MemoryStorage;
/** Models with a held lock, and waiting callers. */
let locked: string[];
let free: Promise<void>;

const withLock: WithLock = async (model, signal, work) => {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  await Promise.race([free, aborted]);
  locked.push(model);
  return work();
};
const models = modelsOn({ openStorage: async () => storage, withLock, baseUrl: () => "https://h/app/" });

beforeEach(() => {
  storage = new MemoryStorage();
  locked = [];
  free = Promise.resolve();
});

/** Stores a complete model. */
async function put(id: ModelId, revision: string, more: Partial<Manifest> = {}): Promise<string> {
  const folder = `${modelPath(id)}/${revision}`;
  const files = [
    { name: "config.json", bytes: 2, chunkBytes: 0, chunks: [] },
    { name: "onnx/model.gguf", bytes: 30, chunkBytes: 0, chunks: [] },
  ];
  for (const { name, bytes } of files) storage.set(`${folder}/${name}`, new Uint8Array(bytes));
  const source = `https://${modelIdText(id)}`;
  const pulled = "2026-11-21T17:00:00Z";
  await writeManifest(storage, folder, {
    model: modelIdText(id),
    revision,
    source,
    pulled,
    complete: true,
    files,
    ...more,
  });
  return folder;
}

/** A download of 30 bytes that has chunk 1. */
async function begin(id: ModelId, revision: string): Promise<string> {
  const folder = await put(id, revision, { complete: false, files: [] });
  await storage.remove(`${folder}/onnx`);
  const part = await storage.openPartial(`${folder}/model.gguf`);
  await part.appendLine(headerLine({ bytes: 30, chunkBytes: 10 }));
  await part.writeChunk(10, new Uint8Array(10), chunkLine(1, "c".repeat(64)));
  await part.close();
  return folder;
}

describe("models.list", () => {
  it("is empty without a store", async () => {
    expect(await models.list()).toEqual([]);
    const nowhere = modelsOn({ openStorage: async () => undefined, withLock, baseUrl: () => "file:///" });
    expect(await nowhere.list()).toEqual([]);
    expect(await nowhere.has("hf:o/n")).toBe(false);
    expect(await nowhere.delete("hf:o/n")).toBe(false);
  });

  it("lists models by name, then by time", async () => {
    await put({ host: "z.org", owner: "_", name: "x.gguf" }, "1234");
    await put(HUB, COMMITS[0], { pulled: "2026-11-22T00:00:00Z", licence: "mit" });
    await put(HUB, COMMITS[1]);
    const list = await models.list();
    expect(list.map(({ name, revision }) => [name, revision])).toEqual([
      ["huggingface.co/o/n", COMMITS[1]],
      ["huggingface.co/o/n", COMMITS[0]],
      ["z.org/_/x.gguf", "1234"],
    ]);
    expect(list[1]).toEqual({
      name: "huggingface.co/o/n",
      revision: COMMITS[0],
      source: "https://huggingface.co/o/n",
      licence: "mit",
      bytes: 32,
      files: [
        { name: "config.json", bytes: 2 },
        { name: "onnx/model.gguf", bytes: 30 },
      ],
      pulled: "2026-11-22T00:00:00Z",
      complete: true,
    });
  });

  it("includes unfinished downloads", async () => {
    await begin(HUB, COMMITS[0]);
    expect(await models.list()).toMatchObject([
      { name: "huggingface.co/o/n", revision: COMMITS[0], complete: false, bytes: 12, files: [] },
    ]);
    expect(await models.has("hf:o/n")).toBe(false);
  });

  it.each([
    ["a file is gone", (folder: string) => storage.remove(`${folder}/onnx/model.gguf`), 2],
    [
      "a file is shorter",
      async (folder: string) => storage.set(`${folder}/config.json`, new Uint8Array(1)),
      31,
    ],
    ["the manifest is damaged", (folder: string) => storage.writeText(`${folder}/manifest.json`, "{"), 32],
    ["the manifest is gone", (folder: string) => storage.remove(`${folder}/manifest.json`), 32],
  ])("includes damaged models: %s", async (_, damage, bytes) => {
    await damage(await put(HUB, COMMITS[0]));
    const [model] = await models.list();
    expect(model).toMatchObject({ name: "huggingface.co/o/n", revision: COMMITS[0], complete: false, bytes });
    expect(await models.has(model ?? "")).toBe(false);
    expect(await models.delete(model ?? "")).toBe(true);
    expect([...storage.files.keys()]).toEqual([]);
  });

  it("includes models of a later version", async () => {
    const folder = await put(HUB, COMMITS[0]);
    await put({ ...HUB, name: "other" }, COMMITS[0]);
    await storage.writeText(`${folder}/manifest.json`, '{"format": 2}');
    expect((await models.list()).map(({ complete }) => complete)).toEqual([false, true]);
    await expect(models.has("hf:o/n")).rejects.toMatchObject({ code: "bad-checkpoint" });
    expect(await models.delete("hf:o/n")).toBe(true);
  });
});

describe("models.has", () => {
  it("finds a repository by its name, its URL and its list entry", async () => {
    await put(HUB, COMMITS[0]);
    const [listed] = await models.list();
    for (const source of ["hf:o/n", "https://huggingface.co/o/n", new URL("https://huggingface.co/o/n/")]) {
      expect(await models.has(source), String(source)).toBe(true);
    }
    expect(listed && (await models.has(listed))).toBe(true);
    for (const source of ["hf:o/m", "hf:other/n", "https://huggingface.co/o/m", "o/n", "data:,x"]) {
      expect(await models.has(source), source).toBe(false);
    }
  });

  it("finds revisions by their names, and files", async () => {
    await put(HUB, COMMITS[0]);
    await saveReference(storage, HUB, "v1", COMMITS[0]);
    for (const source of [
      "hf:o/n@v1",
      `hf:o/n@${COMMITS[0]}`,
      "hf:o/n:onnx/model.gguf",
      "hf:o/n@v1:config.json",
    ]) {
      expect(await models.has(source), source).toBe(true);
    }
    for (const source of ["hf:o/n@v2", `hf:o/n@${COMMITS[1]}`, "hf:o/n:other.gguf", "hf:o/n@main"]) {
      expect(await models.has(source), source).toBe(false);
    }
  });

  it("asks the browser for weights that sites share", async () => {
    const weights = { name: "m.gguf", bytes: 30, sha256: "d".repeat(64), chunkBytes: 0, chunks: [] };
    await put(HUB, COMMITS[0], { files: [{ ...weights, crossOrigin: true }] });
    const asked: (readonly string[])[] = [];
    const answers = [[new Blob(["w".repeat(30)])], [new Blob(["w"])], [], undefined];
    const hasWith = (findShared: StorePlatform["findShared"]) =>
      modelsOn({
        openStorage: async () => storage,
        withLock,
        baseUrl: () => "https://h/",
        ...(findShared && { findShared }),
      }).has("hf:o/n");
    for (const [index, answer] of answers.entries()) {
      const isThere = await hasWith(async (digests) => {
        asked.push(digests);
        return answer;
      });
      expect(isThere, String(index)).toBe(index === 0);
    }
    expect(asked).toEqual(Array(4).fill([weights.sha256]));
    expect(await hasWith(undefined)).toBe(false);
    await put(HUB, COMMITS[0], { files: [weights] });
    storage.set(`${modelPath(HUB)}/${COMMITS[0]}/m.gguf`, new Uint8Array(30));
    expect(await hasWith(() => Promise.reject(new Error("nothing is shared")))).toBe(true);
  });

  it("finds absolute and relative URLs", async () => {
    await put({ host: "h", owner: "app--models", name: "tiny" }, "1234");
    expect(await models.has("models/tiny")).toBe(true);
    expect(await models.has("models/tiny/")).toBe(true);
    expect(await models.has("https://h/app/models/tiny#x")).toBe(true);
    expect(await models.has("https://h:8080/app/models/tiny")).toBe(false);
    expect(await models.has("models/tiny?x")).toBe(false);
  });

  it("finds a repository of the only other Hub that has it", async () => {
    await put({ ...HUB, host: "hub.example_8080" }, COMMITS[0]);
    expect(await models.has("hf:o/n")).toBe(true);
    expect(await models.has("hf:hub.example_8080/o/n")).toBe(true);
    await put({ ...HUB, host: "b.example" }, COMMITS[0]);
    await expect(models.has("hf:o/n")).rejects.toMatchObject({
      code: "bad-option",
      message: expect.stringContaining("hf:b.example/o/n, hf:hub.example_8080/o/n"),
    });
  });

  it.each([
    "hf:",
    "hf:word",
    "hf:../n",
    "hf:https://h/x",
    "https://",
    { name: "../../x", revision: "r" },
    { name: "a/b/c" },
    { name: "a/b/c/d", revision: "r" },
    { name: "a/b", revision: "r" },
    7,
    null,
  ])("refuses invalid names: %j", async (source) => {
    await expect(models.has(source as string)).rejects.toMatchObject({ code: "bad-option" });
    await expect(models.delete(source as string)).rejects.toMatchObject({ code: "bad-option" });
  });
});

describe("models.delete", () => {
  it("removes all revisions or the named one, under the model's lock", async () => {
    await put(HUB, COMMITS[0]);
    await begin(HUB, COMMITS[1]);
    await saveReference(storage, HUB, "main", COMMITS[0]);
    await put({ ...HUB, name: "nn" }, COMMITS[0]);
    expect(await models.delete("hf:o/n@main")).toBe(true);
    expect((await models.list()).map(({ revision }) => revision)).toEqual([COMMITS[1], COMMITS[0]]);
    expect(await models.delete("hf:o/n@main")).toBe(false);
    expect(await models.delete("hf:o/n")).toBe(true);
    expect(await models.delete("hf:o/n")).toBe(false);
    expect(await storage.list("models/huggingface.co/o")).toEqual(["nn/"]);
    expect(locked).toEqual(Array(4).fill("huggingface.co/o/n"));
  });

  it("waits for a download, or for the signal", async () => {
    await put(HUB, COMMITS[0]);
    let end: () => void = () => undefined;
    free = new Promise((resolve) => {
      end = resolve;
    });
    const reason = new Error("enough");
    const controller = new AbortController();
    const aborted = models.delete("hf:o/n", { signal: controller.signal });
    const waiting = models.delete("hf:o/n");
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await models.has("hf:o/n")).toBe(true);
    end();
    expect(await waiting).toBe(true);
  });

  it("leaves nothing that looks complete if it cannot remove all", async () => {
    const folder = await put(HUB, COMMITS[0]);
    const part = await storage.openPartial(`${folder}/other`);
    await expect(models.delete("hf:o/n")).rejects.toThrow("is open");
    expect(await models.has("hf:o/n")).toBe(false);
    await part.close();
    expect(await models.delete("hf:o/n")).toBe(true);
  });

  it("works with an unreadable list of references", async () => {
    await put(HUB, COMMITS[0]);
    await storage.writeText(`${modelPath(HUB)}/refs.json`, '{"format": 9}');
    expect(await models.delete((await models.list())[0] ?? "")).toBe(true);
    expect([...storage.files.keys()]).toEqual([]);
  });
});

describe("revisions", () => {
  it("are current if the Hub said so, else if they are the latest", async () => {
    await put(HUB, COMMITS[0], { pulled: "2026-11-21T00:00:00Z" });
    const folder = await put(HUB, COMMITS[1], { pulled: "2026-11-22T00:00:00Z" });
    const current = async () => (await currentRevision(storage, HUB))?.manifest.revision;
    expect(await current()).toBe(COMMITS[1]);
    await saveReference(storage, HUB, "main", COMMITS[0]);
    expect(await current()).toBe(COMMITS[0]);
    await saveReference(storage, HUB, "main", COMMITS[1]);
    await storage.remove(`${folder}/config.json`);
    // The damaged one is downloaded again; an older one does not take its place.
    expect(await current()).toBeUndefined();
    await storage.writeText(`${folder}/manifest.json`, "{");
    expect(await current()).toBeUndefined();
    await storage.remove(`${folder}/manifest.json`); // it was deleted
    expect(await current()).toBe(COMMITS[0]);
  });

  it("keep their names as the command line does", async () => {
    for (const [name, commit] of [
      ["v1", "b"],
      ["main", "a"],
      ["main", "c"],
      ["__proto__", "d"],
    ] as const) {
      await saveReference(storage, HUB, name, commit);
      expect(await referencedCommit(storage, HUB, name)).toBe(commit);
    }
    expect(await referencedCommit(storage, HUB, "toString")).toBeUndefined();
    const text = await storage.readText(`${modelPath(HUB)}/refs.json`);
    expect(text).toBe(
      '{\n  "format": 1,\n  "revisions": {\n    "__proto__": "d",\n    "main": "c",\n    "v1": "b"\n  }\n}',
    );
  });

  it("start again with damaged names", async () => {
    await storage.writeText(`${modelPath(HUB)}/refs.json`, '{"format": 1, "revisi');
    expect(await referencedCommit(storage, HUB, "main")).toBeUndefined();
    await saveReference(storage, HUB, "main", "a");
    expect(await referencedCommit(storage, HUB, "main")).toBe("a");
  });

  it("are written and read", async () => {
    const folder = await put(HUB, COMMITS[0]);
    const manifest = await readManifest(storage, folder);
    expect(manifest && printManifest(manifest)).toBe(await storage.readText(`${folder}/manifest.json`));
    expect(await completeRevision(storage, HUB, COMMITS[0])).toEqual({ id: HUB, folder, manifest });
    expect(await completeRevision(storage, HUB, COMMITS[1])).toBeUndefined();
    expect(await completeRevision(storage, HUB, "../x")).toBeUndefined();
  });
});
