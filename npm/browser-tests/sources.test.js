/** Streamed sources of models: URLs, files, bytes; and failures. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { storyInNode } from "../test-support/node-story.js";
import { onnxModels, tokensOf } from "../test-support/onnx.js";
import { fetched, INDEX_HTML, PLAIN_MAIN, STORY, tellStory } from "../test-support/page.js";
import { makeProject, writeFiles } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

/** Nothing is kept: see the tests of the store for what is. */
const STREAMED = { store: false };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Awaited<ReturnType<typeof openPage>>} */
let opened;
/** @type {string} */
let expected;
/** @type {ReturnType<typeof embeddedModel>} */
let model;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  expected = (await storyInNode(project.folder)).result.text;
  model = embeddedModel(project.folder);
  await writeFiles(project.folder, /** @type {any} */ (prefixed("tiny/", model.folder)));
  await writeFiles(project.folder, /** @type {any} */ ({ "lone.safetensors": model.file }));
  await writeFiles(project.folder, onnxModels(project.folder));
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});
beforeEach(async () => {
  server = await startServer({ root: project.folder, answers: faults() });
  opened = await openPage(browser, `${server.url}/index.html`);
});
afterEach(async () => {
  await opened.close();
  await server.stop();
});

/** Addresses whose download goes wrong. */
function faults() {
  const { length } = model.file;
  return {
    /** @param {any} _ @param {any} response */
    "/broken.safetensors": (_, response) => {
      response.writeHead(200, { "content-length": length });
      response.write(model.file.subarray(0, length >> 1), () => response.destroy());
    },
    /** @param {any} _ @param {any} response */
    "/short.safetensors": (_, response) => response.writeHead(200).end(model.file.subarray(0, length >> 1)),
    /** @param {any} _ @param {any} response */
    "/endless.safetensors": (_, response) => {
      response.writeHead(200, { "content-length": length });
      response.write(model.file.subarray(0, length >> 1));
    },
    /** @param {any} _ @param {any} response */
    "/refused.safetensors": (_, response) => response.writeHead(503).end(),
  };
}

/** @param {string} prefix @param {Record<string, unknown>} files */
function prefixed(prefix, files) {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [prefix + name, text]));
}

/** The code that a load rejects with, in the page. @param {string} source */
function failure(source) {
  return opened.page.evaluate(async (source) => {
    const { setun } = /** @type {any} */ (globalThis);
    return setun.load(source, { store: false }).then(
      () => "loaded",
      (/** @type {any} */ error) => (error instanceof setun.SetunError ? error.code : String(error)),
    );
  }, source);
}

describe("a model", () => {
  it.each(["./tiny/", "/tiny", "lone.safetensors"])("loads from a URL: %s", async (source) => {
    const { result } = await opened.page.evaluate(tellStory, { ...STORY, source, load: STREAMED });
    expect(result.text).toBe(expected);
    expect(fetched(server.requests)).toEqual({ code: [expect.anything()], models: [] });
    const checkpoints = server.requests.filter((path) => path.endsWith(".safetensors"));
    expect(checkpoints).toHaveLength(1);
  });

  it("loads from chosen files and from bytes", async () => {
    const texts = await opened.page.evaluate(async ({ prompt, options }) => {
      const { setun } = /** @type {any} */ (globalThis);
      const bytes = new Uint8Array(await (await fetch("lone.safetensors")).arrayBuffer());
      const names = [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
      ];
      const files = await Promise.all(
        names.map(async (name) => new File([await (await fetch(`tiny/${name}`)).blob()], name)),
      );
      const sources = [
        { "lone.safetensors": bytes },
        files,
        Object.fromEntries(files.map((file) => [file.name, file])),
      ];
      const texts = [];
      for (const source of sources) {
        const model = await setun.load(source);
        texts.push(await model.generate(prompt, options).text());
        await model.dispose();
      }
      return [...texts, bytes.length];
    }, STORY);
    expect(texts).toEqual([expected, expected, expected, model.file.length]);
  });

  it("loads from ONNX, streamed, stored and from files, with the bits of safetensors", async () => {
    const found = await opened.page.evaluate(
      async ([body]) => {
        const { setun } = /** @type {any} */ (globalThis);
        const tokensOf = new Function(`return ${body}`)();
        const names = ["config.json", "tokenizer.json", "onnx/model.onnx", "onnx/model_q2.onnx_data"];
        const bytes = async (/** @type {string} */ name) =>
          new Uint8Array(await (await fetch(`fused/graph/${name}`)).arrayBuffer());
        const files = Object.fromEntries(
          await Promise.all(names.map(async (name) => [name, await bytes(name)])),
        );
        const streamed = (/** @type {string} */ source) => setun.load(source, { store: false });
        const urls = ["fused/safetensors/", "fused/graph/onnx/model.onnx", "fused/graph/"];
        const { memory } = await setun.models.estimate("fused/graph/");
        const { memory: same } = await setun.models.estimate("fused/safetensors/");
        return {
          tokens: [
            ...(await tokensOf(streamed, urls)),
            ...(await tokensOf(setun.load, [...urls.slice(1), "fused/graph/", files])),
          ],
          weights: [memory.weights, same.weights],
        };
      },
      [String(tokensOf)],
    );
    const [first, ...others] = found.tokens;
    expect(first).toHaveLength(12);
    for (const other of others) expect(other).toEqual(first);
    expect(found.weights[0]).toBe(found.weights[1]);
  });

  it("reports progress up to its whole length", async () => {
    const seen = await opened.page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      /** @type {any[]} */
      const seen = [];
      const model = await setun.load("lone.safetensors", {
        onProgress: (/** @type {any} */ step) => seen.push(step),
        store: false,
      });
      await model.dispose();
      return seen;
    });
    const { length } = model.file;
    expect(seen.at(-1)).toEqual({
      phase: "ready",
      loadedBytes: length,
      totalBytes: length,
      file: "lone.safetensors",
    });
    expect(seen.map(({ loadedBytes }) => loadedBytes)).toEqual(
      seen.map((step) => step.loadedBytes).sort((a, b) => a - b),
    );
  });

  it("needs no server once it is loaded", async () => {
    await opened.page.evaluate(async () => {
      const all = /** @type {any} */ (globalThis);
      all.model = await all.setun.load("tiny/", { store: false });
    });
    await server.stop();
    const text = await opened.page.evaluate(({ prompt, options }) => {
      const all = /** @type {any} */ (globalThis);
      return all.model.generate(prompt, options).text();
    }, STORY);
    expect(text).toBe(expected);
  });
});

describe("a failed download", () => {
  it.each([
    ["nowhere/", "not-found"],
    ["nowhere.safetensors", "not-found"],
    ["broken.safetensors", "truncated"],
    ["short.safetensors", "truncated"],
    ["refused.safetensors", "network"],
    ["http://127.0.0.1:1/", "network"],
  ])("has its code, and the next load works: %s", async (source, code) => {
    expect(await failure(source)).toBe(code);
    const { result } = await opened.page.evaluate(tellStory, { ...STORY, source: "tiny/", load: STREAMED });
    expect(result.text).toBe(expected);
  });

  it("rejects with the signal's own reason, and the next load works", async () => {
    const same = await opened.page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      const controller = new AbortController();
      const reason = { mine: true };
      const onProgress = () => controller.abort(reason);
      const loading = setun.load("endless.safetensors", {
        signal: controller.signal,
        onProgress,
        store: false,
      });
      return loading.then(
        () => "loaded",
        (/** @type {unknown} */ error) => error === reason,
      );
    });
    expect(same).toBe(true);
    const { result } = await opened.page.evaluate(tellStory, { ...STORY, source: "tiny/", load: STREAMED });
    expect(result.text).toBe(expected);
  });
});
