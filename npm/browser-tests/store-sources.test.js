/** Other sources and storages: Hubs, Firefox, the Cache API, files of users. */

import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launchFirefox } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { COMMIT } from "../test-support/faulty-server.js";
import { storyInNode } from "../test-support/node-story.js";
import { onnxModels, tokensOf } from "../test-support/onnx.js";
import { writeFiles } from "../test-support/project.js";
import { beginLoad, deleteAll, keptFiles, tryStory } from "../test-support/store-page.js";
import { beginWorkersWith, CHUNK, SHORT, sha256 } from "../test-support/store-stage.js";
import {
  firefoxTab,
  openFirefoxTab,
  openNextFirefoxTab,
  openNextTab,
  page,
  prepareFirefox,
  prepareTabs,
  stage,
} from "../test-support/store-tabs.js";

const PATH = "/models/large.safetensors";

prepareTabs({ prepare: ({ models, large }) => models.put(PATH, large, '"one"') });

const tell = (/** @type {any} */ source, load = {}) => page.evaluate(tryStory, { ...SHORT, source, load });
const list = () => page.evaluate(() => /** @type {any} */ (globalThis).setun.models.list());
/** @param {string} name */
const fixture = (name) =>
  readFileSync(fileURLToPath(new URL(`../../tests/fixtures/${name}`, import.meta.url)));

describe("a model of a hub", () => {
  const NAME = "hf:maker/stories";
  const WEIGHTS = "model.safetensors";
  /** @type {{ endpoint: string }} */
  let hub;
  /** @type {string} */
  let weights;

  beforeEach(() => {
    hub = { endpoint: stage.models.url };
    const { folder } = embeddedModel(stage.root);
    stage.models.putHub("maker/stories", { ...folder, "README.md": "what nobody reads", LICENSE: "free" });
    weights = stage.models.hubPath("maker/stories", WEIGHTS);
  });

  it("is stored, and then needs no Hub", async () => {
    expect((await tell(NAME, hub)).text).toBe(stage.texts.small);
    const asked = stage.models.takeRequests();
    expect(asked.filter(({ method }) => method === "OPTIONS")).toEqual([]);
    expect(asked.map(({ path }) => path).filter((path) => path.endsWith("README.md"))).toEqual([]);
    expect(new Set(asked.map(({ path }) => path)).size).toBe(asked.length);
    expect(await list()).toMatchObject([
      {
        name: `127.0.0.1_${new URL(hub.endpoint).port}/maker/stories`,
        revision: COMMIT,
        licence: "mit",
        complete: true,
      },
    ]);
    for (const name of [NAME, `${NAME}@main`, `${NAME}@${COMMIT}`, `${NAME}:${WEIGHTS}`]) {
      expect((await tell(name, hub)).text).toBe(stage.texts.small);
    }
    expect(stage.models.takeRequests()).toEqual([]);
    const has = await page.evaluate((name) => /** @type {any} */ (globalThis).setun.models.has(name), NAME);
    expect(has).toBe(true);
  });

  it("is not stored with `store: false`", async () => {
    expect((await tell(NAME, { ...hub, store: false })).text).toBe(stage.texts.small);
    expect(await page.evaluate(keptFiles)).toEqual({});
  });

  it("is downloaded again after wrong bytes", async () => {
    stage.models.rule(weights, 1, { wrong: true });
    const { text, message } = await tell(NAME, hub);
    expect(text ?? message).toBe(stage.texts.small);
    expect(stage.models.starts(weights)).toHaveLength(2);
  });

  it("fails while its bytes stay wrong, and loads when they are right", async () => {
    stage.models.rule(weights, Number.POSITIVE_INFINITY, { wrong: true });
    expect(await tell(NAME, hub)).toEqual({
      code: "bad-checkpoint",
      message: expect.stringMatching(/wrong bytes.*expected SHA-256/),
    });
    expect(await list()).not.toMatchObject([{ complete: true }]);
    stage.models.clearRules();
    expect((await tell(NAME, hub)).text).toBe(stage.texts.small);
  });

  it.each([
    ["hf:maker/none", "not-found"],
    [`${NAME}@none`, "not-found"],
    [`${NAME}:none.gguf`, "not-found"],
    ["hf:stories", "bad-option"],
  ])("is an error if it does not exist: %s", async (name, code) => {
    expect(await tell(name, hub)).toMatchObject({ code });
  });
});

describe("a file by itself", () => {
  it.each([
    ["i2_s.gguf"],
    ["split-00001-of-00003.gguf", "split-00002-of-00003.gguf", "split-00003-of-00003.gguf"],
  ])("may be GGUF, in parts too: %s", async (...names) => {
    for (const name of names) stage.models.put(`/models/${name}`, fixture(`gguf/${name}`), '"gguf"');
    const { prompt, options } = SHORT;
    const source = fileURLToPath(new URL(`../../tests/fixtures/gguf/${names[0]}`, import.meta.url));
    const expected = await storyInNode(stage.root, { prompt, options, source });
    for (const sent of [names.length, 0]) {
      expect((await tell(`models/${names[0]}`)).text).toBe(expected.result.text);
      const asked = stage.models
        .takeRequests()
        .filter(({ path, method }) => /gguf$/.test(path) && method === "GET");
      expect(asked).toHaveLength(sent);
    }
    expect(await list()).toMatchObject([{ complete: true, files: names.map((name) => ({ name })) }]);
  });

  it("may be a .setun file", async () => {
    stage.models.put("/models/v1.setun", fixture("setun/v1.setun"), '"setun"');
    const load = () =>
      page.evaluate(async () => {
        const model = await /** @type {any} */ (globalThis).setun.load("models/v1.setun");
        const { vocabSize, contextLength } = model.info;
        await model.dispose();
        return { vocabSize, contextLength };
      });
    expect(await load()).toEqual({ vocabSize: 200, contextLength: 512 });
    expect(stage.models.takeRequests().some(({ method }) => method === "GET")).toBe(true);
    expect(await load()).toEqual({ vocabSize: 200, contextLength: 512 });
    expect(stage.models.sent).toBe(0);
  });
});

describe("files of a user", () => {
  /** @type {string} */
  let folder;

  beforeAll(async () => {
    folder = join(stage.root, "handed", "stories");
    await mkdir(folder, { recursive: true });
    for (const [name, content] of Object.entries(embeddedModel(stage.root).folder)) {
      await writeFile(join(folder, name), content);
    }
    await writeFile(join(folder, "..", "i2_s.gguf"), fixture("gguf/i2_s.gguf"));
    await writeFile(join(folder, "..", "v1.setun"), fixture("setun/v1.setun"));
  });

  /** Drops files or folders on the page, which loads what its `event` has. @param {string[]} paths @param {string} form */
  async function drop(paths, form) {
    await page.evaluate((form) => {
      const all = /** @type {any} */ (globalThis);
      document.body.style.height = "100vh";
      all.dropped = new Promise((resolve, reject) => {
        document.addEventListener("dragover", (event) => event.preventDefault());
        document.addEventListener("drop", (event) => {
          event.preventDefault();
          const { items, files } = /** @type {DataTransfer} */ (event.dataTransfer);
          const [first] = items;
          /** @type {Record<string, () => any>} */
          const sources = {
            items: () => items,
            files: () => files,
            entry: () => first?.webkitGetAsEntry(),
            handle: () => /** @type {any} */ (first).getAsFileSystemHandle(),
          };
          const source = sources[form]?.();
          // Some browsers have handles only later; all else is gone when the event is over.
          const loading = form === "handle" ? source.then(all.setun.load) : all.setun.load(source);
          loading.then(resolve, reject);
        });
      });
    }, form);
    const session = await page.context().newCDPSession(page);
    const data = { items: [], files: paths, dragOperationsMask: 1 };
    for (const type of /** @type {const} */ (["dragEnter", "dragOver", "drop"])) {
      await session.send("Input.dispatchDragEvent", { type, x: 50, y: 50, data });
    }
    return page.evaluate(async ({ prompt, options }) => {
      const model = await /** @type {any} */ (globalThis).dropped;
      const { name, vocabSize } = model.info;
      const text = await model
        .generate(prompt, options)
        .text()
        .catch(() => undefined);
      await model.dispose();
      return { name, vocabSize, text };
    }, SHORT);
  }

  it.each(["items", "entry", "handle"])("may be a folder that was dropped: %s", async (form) => {
    expect(await drop([folder], form)).toMatchObject({ name: "stories", text: stage.texts.small });
    expect(await page.evaluate(keptFiles)).toEqual({});
  });

  it.each([
    ["i2_s.gguf", 16, "items"],
    ["i2_s.gguf", 16, "files"],
    ["v1.setun", 200, "files"],
    ["v1.setun", 200, "handle"],
  ])("may be a file that was dropped: %s", async (name, vocabSize, form) => {
    expect(await drop([join(folder, "..", name)], form)).toMatchObject({ name, vocabSize });
  });

  it("may be files that were dropped", async () => {
    const paths = Object.keys(embeddedModel(stage.root).folder).map((name) => join(folder, name));
    expect(await drop(paths, "files")).toMatchObject({ text: stage.texts.small });
  });

  it("may be a folder that was chosen", async () => {
    await page.setContent('<input type="file" webkitdirectory>');
    await page.setInputFiles("input", folder);
    const told = await page.evaluate(async ({ prompt, options }) => {
      const { files } = /** @type {HTMLInputElement} */ (document.querySelector("input"));
      const model = await /** @type {any} */ (globalThis).setun.load(files);
      const text = await model.generate(prompt, options).text();
      await model.dispose();
      return { name: model.info.name, text };
    }, SHORT);
    expect(told).toEqual({ name: "stories", text: stage.texts.small });
  });
});

describe("without any storage", () => {
  it("a model runs and is not kept, with a warning", async () => {
    await beginWorkersWith(
      page,
      `
      StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("no", "SecurityError"));
      Object.defineProperty(globalThis, "caches", { value: undefined });`,
    );
    /** @type {string[]} */
    const warnings = [];
    page.on("console", (message) => message.text().startsWith("setun: ") && warnings.push(message.text()));
    expect((await tell(stage.url + PATH)).text).toBe(stage.texts.large);
    expect(await list()).toEqual([]);
    await expect
      .poll(() => warnings)
      .toEqual([expect.stringMatching(/^setun: the model is not kept: .* no storage.*private window/)]);
  });
});

describe("without a writable private file system, the Cache API", () => {
  beforeEach(() => beginWorkersWith(page, "delete FileSystemFileHandle.prototype.createSyncAccessHandle;"));

  it("keeps a model", async () => {
    expect((await tell(stage.url + PATH)).text).toBe(stage.texts.large);
    expect(stage.models.sent).toBe(stage.large.length);
    expect(await page.evaluate(keptFiles)).toEqual({});
    expect(await page.evaluate(() => caches.keys())).toEqual(["setun"]);
    expect(await list()).toMatchObject([{ complete: true, bytes: stage.large.length }]);
    stage.models.takeRequests();
    await openNextTab();
    expect((await tell(stage.url + PATH)).text).toBe(stage.texts.large);
    expect(stage.models.requests.map(({ method }) => method)).toEqual(["HEAD"]);
    await page.evaluate(deleteAll);
    expect(await list()).toEqual([]);
    const left = await page.evaluate(async () => (await (await caches.open("setun")).keys()).length);
    expect(left).toBe(0);
  });

  it("keeps an interrupted download", async () => {
    stage.models.ruleAt(PATH, CHUNK, 1, { stall: CHUNK >> 1 });
    await page.evaluate(beginLoad, { source: stage.url + PATH });
    await expect.poll(async () => (await list())[0]?.bytes).toBe(stage.large.length - CHUNK);
    await openNextTab();
    stage.models.takeRequests();
    expect((await tell(stage.url + PATH)).text).toBe(stage.texts.large);
    expect(stage.models.starts(PATH)).toEqual([CHUNK]);
  });
});

describe("Firefox", () => {
  prepareFirefox();

  const tellThere = (path = PATH, there = firefoxTab) =>
    there.evaluate(tryStory, { ...SHORT, source: stage.url + path });
  const listThere = (there = firefoxTab) =>
    there.evaluate(() => /** @type {any} */ (globalThis).setun.models.list());

  it("stores a model in its private file system, and downloads no byte twice", async () => {
    const first = await tellThere();
    expect(first.text ?? first.message).toBe(stage.texts.large);
    expect(stage.models.sent).toBe(stage.large.length);
    const kept = await firefoxTab.evaluate(keptFiles, true);
    expect(Object.values(kept)).toContain(sha256(stage.large));
    stage.models.takeRequests();
    await openNextFirefoxTab();
    expect((await tellThere()).text).toBe(stage.texts.large);
    expect(stage.models.requests.map(({ method }) => method)).toEqual(["HEAD"]);
    expect(await listThere()).toMatchObject([{ complete: true }]);
  });

  it("stores a model in the Cache API of a private window, and downloads no byte twice", async () => {
    const path = "/models/small.safetensors";
    stage.models.put(path, stage.small, '"small"');
    const hidden = await launchFirefox({ isPrivate: true });
    try {
      const first = await openFirefoxTab(hidden);
      const told = await tellThere(path, first);
      expect(told.text ?? told.message).toBe(stage.texts.small);
      const places = await first.evaluate(async () => [
        await navigator.storage.getDirectory().catch(({ name }) => name),
        await caches.keys(),
      ]);
      expect(places).toEqual(["SecurityError", ["setun"]]);
      stage.models.takeRequests();
      const next = await openFirefoxTab(hidden);
      await first.close();
      expect((await tellThere(path, next)).text).toBe(stage.texts.small);
      expect(stage.models.requests.map(({ method }) => method)).toEqual(["HEAD"]);
      expect(await listThere(next)).toMatchObject([{ complete: true, bytes: stage.small.length }]);
    } finally {
      await hidden.close();
    }
  });

  it("resumes after a closed firefoxTab", async () => {
    stage.models.ruleAt(PATH, CHUNK, 1, { stall: CHUNK >> 1 });
    await firefoxTab.evaluate(beginLoad, { source: stage.url + PATH });
    const kept = stage.large.length - CHUNK;
    await expect.poll(async () => (await listThere(firefoxTab))[0]?.bytes).toBe(kept);
    await openNextFirefoxTab();
    stage.models.takeRequests();
    expect((await tellThere()).text).toBe(stage.texts.large);
    expect(stage.models.starts(PATH)).toEqual([CHUNK]);
  });

  it("loads from ONNX with the bits of safetensors", async () => {
    await writeFiles(stage.root, onnxModels(stage.root));
    const [graph, same] = await firefoxTab.evaluate((body) => {
      const sources = ["genai/graph/", "genai/safetensors/"];
      return new Function(`return ${body}`)()(/** @type {any} */ (globalThis).setun.load, sources);
    }, String(tokensOf));
    expect(graph).toHaveLength(12);
    expect(graph).toEqual(same);
  });
});
