/** The package in Node. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storyInNode } from "../test-support/node-story.js";
import { ONNX_MODELS, onnxModels, tokensOf } from "../test-support/onnx.js";
import { STORY } from "../test-support/page.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
});
afterAll(() => project?.remove());

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  await writeFiles(project.folder, { "script.js": `import { load, SetunError } from "setun";\n${body}` });
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], {
      encoding: "utf8",
    }),
  );
}

describe("the package in Node", () => {
  it("loads its own model and generates", async () => {
    const { info, deltas, result } = await storyInNode(project.folder);
    expect(result.usage.completionTokens).toBe(STORY.options.maxTokens);
    expect(deltas.join("")).toBe(result.text);
    expect(result.text.length).toBeGreaterThan(STORY.options.maxTokens);
    expect(info).toMatchObject({ backend: "cpu", worker: false, threads: 1 });
  });

  it("takes a path, and gives the same text", async () => {
    const path = join(project.folder, "node_modules/setun/model/stories.safetensors");
    const text = await inNode(`
      const model = await load(${JSON.stringify(path)});
      console.log(JSON.stringify(await model.generate(${JSON.stringify(STORY.prompt)}, ${JSON.stringify(STORY.options)}).text()));
    `);
    expect(text).toBe((await storyInNode(project.folder)).result.text);
  });

  it("takes seeds of 64 bits, and reports them", async () => {
    const seeds = await inNode(`
      const model = await load();
      const seeds = [];
      for (const seed of [7, 2n ** 64n - 1n]) {
        const result = await model.generate("Once", { seed, temperature: 1, maxTokens: 2 }).result;
        seeds.push(String(result.seed));
      }
      console.log(JSON.stringify(seeds));
    `);
    expect(seeds).toEqual(["7", "18446744073709551615"]);
  });

  it("reports log-probabilities of generated and prompt tokens, and scores texts", async () => {
    const { prompt, deltas, plain, sum, score, best, total } = await inNode(`
      const model = await load();
      const options = { temperature: 0, maxTokens: 12, speculative: { lookahead: 12 }, contextOverflow: { type: "sliding_window", sinks: 4, window: 64 } };
      const told = model.generate("Once upon a time", { ...options, logprobs: true, topLogprobs: 3, promptLogprobs: true });
      const prompt = await told.promptLogprobs;
      const deltas = [];
      for await (const delta of told) deltas.push(delta);
      const { text: plain } = await model.generate("Once upon a time", { temperature: 0, maxTokens: 12 }).result;
      const sum = deltas.reduce((sum, { logprob }) => sum + logprob, 0);
      const [score] = await model.score("Once upon a time", [deltas.map(({ text }) => text).join("")]);
      const { best, probabilities } = await model.classify("Once upon a time", [" xylophone", ", there was"]);
      const total = probabilities.reduce((sum, share) => sum + share, 0);
      console.log(JSON.stringify({ prompt, deltas, plain, sum, score, best, total }));
    `);
    expect(prompt.map((/** @type {any} */ { text }) => text).join("")).toContain("Once upon a time");
    expect(prompt.at(-1).logprob).toBeLessThan(0);
    expect(deltas.map((/** @type {any} */ { text }) => text).join("")).toBe(plain);
    for (const { text, token, logprob, topLogprobs } of deltas) {
      expect(topLogprobs).toHaveLength(3);
      expect(topLogprobs[0]).toEqual({ token, text, logprob });
    }
    expect(score.tokens.map((/** @type {any} */ { token }) => token)).toEqual(
      deltas.map((/** @type {any} */ { token }) => token),
    );
    expect(score.logprob).toBeCloseTo(sum, 3);
    expect(score.meanLogprob).toBeCloseTo(sum / 12, 4);
    expect(best).toBe(1);
    expect(total).toBeCloseTo(1, 12);
  });

  it("reports how much of a long prompt is computed", async () => {
    const { seen, promptTokens } = await inNode(`
      const model = await load();
      const seen = [];
      const onPromptProgress = ({ computedTokens, promptTokens }) => seen.push([computedTokens, promptTokens]);
      const prompt = "Once upon a time there was a fox. ".repeat(20);
      const { usage } = await model.generate(prompt, { maxTokens: 1, onPromptProgress }).result;
      console.log(JSON.stringify({ seen, promptTokens: usage.promptTokens }));
    `);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)).toEqual([promptTokens, promptTokens]);
    const computed = seen.map((/** @type {number[]} */ [tokens]) => tokens);
    expect(computed).toEqual([...computed].sort((one, other) => one - other));
  });

  it("rejects with codes", async () => {
    const codes = await inNode(`
      const failures = [
        () => load("./nowhere/"),
        () => load(undefined, { backend: "webgpu" }),
        () => load(undefined, { thread: 2 }),
        () => load({ "model.safetensors": new Uint8Array(4) }),
      ];
      const codes = [];
      for (const fails of failures) {
        codes.push(await fails().catch((error) => error instanceof SetunError && error.code));
      }
      console.log(JSON.stringify(codes));
    `);
    expect(codes).toEqual(["not-found", "backend-unavailable", "bad-option", "truncated"]);
  });
});

describe("ONNX files in Node", () => {
  beforeAll(() => writeFiles(project.folder, onnxModels(project.folder)));

  it("give the tokens and log-probabilities of the same model as safetensors", async () => {
    const sources = ONNX_MODELS.flatMap((name) => {
      const file = name === "fused" ? `${name}/graph/onnx/model.onnx` : `${name}/graph/model.onnx`;
      return [`${name}/safetensors/`, file];
    });
    const found = await inNode(`
      const tokensOf = ${tokensOf};
      process.chdir(import.meta.dirname);
      console.log(JSON.stringify(await tokensOf(load, ${JSON.stringify([...sources, "fused/graph/"])})));
    `);
    expect(found.at(-1)).toEqual(found.at(-2));
    for (const [index, name] of ONNX_MODELS.entries()) {
      expect(found[2 * index], name).toHaveLength(12);
      expect(found[2 * index + 1], name).toEqual(found[2 * index]);
    }
  });

  it("are refused with a code where they are damaged, incomplete or not known", async () => {
    const told = await inNode(`
      import { readFileSync } from "node:fs";
      const read = (path) => new Uint8Array(readFileSync(new URL(path, import.meta.url)));
      const names = ["config.json", "tokenizer.json", "model.onnx"];
      const own = Object.fromEntries(names.map((name) => [name, read("genai/graph/" + name)]));
      const outcome = async (files) => {
        try {
          await (await load(files)).dispose();
          return { code: "loaded" };
        } catch (error) {
          return { code: error instanceof SetunError ? error.code : String(error), message: error.message };
        }
      };
      const graph = own["model.onnx"];
      const damaged = [];
      for (let round = 0, random = 7; round < 60; round += 1) {
        random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
        const bytes = graph.slice(0, round % 4 === 0 ? random % graph.length : graph.length);
        if (round % 4 > 0) bytes[random % Math.min(bytes.length, 1 << (8 + (round % 8)))] ^= 1 << (round % 8);
        damaged.push((await outcome({ ...own, "model.onnx": bytes })).code);
      }
      const text = Buffer.from(graph).toString("latin1").replaceAll("MatMulNBits", "MatMulXBits");
      const unknown = await outcome({ ...own, "model.onnx": new Uint8Array(Buffer.from(text, "latin1")) });
      const { "tokenizer.json": _, ...textless } = own;
      const fused = { ...own, "onnx/model.onnx": read("fused/graph/onnx/model.onnx") };
      const rest = [unknown, await outcome(textless), await outcome(fused), await outcome(own)];
      console.log(JSON.stringify({ damaged, rest }));
    `);
    const codes = ["loaded", "bad-checkpoint", "truncated", "unsupported-model", "not-found"];
    for (const code of told.damaged) expect(codes).toContain(code);
    expect(told.damaged.filter((/** @type {string} */ code) => code !== "loaded").length).toBeGreaterThan(20);
    expect(told.rest).toMatchObject([
      { code: "bad-checkpoint", message: expect.stringContaining("MatMulXBits") },
      { code: "not-found", message: expect.stringContaining("tokenizer.json") },
      { code: "not-found", message: expect.stringContaining("model_q2.onnx_data") },
      { code: "loaded" },
    ]);
  });
});
