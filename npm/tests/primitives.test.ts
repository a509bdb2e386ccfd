/** Lists of prompts, web streams, embeddings and counts of tokens. */

import { beforeEach, expect, it } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import type { Model } from "../src/model.js";
import { countedModel, emptyLog, fakeBuild, type Log } from "./fake-wasm.js";

let log: Log;
let model: Model;

beforeEach(async () => {
  log = emptyLog();
  const load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
  model = await load({ "a.safetensors": new Uint8Array(16) });
});

const refusal = (call: () => unknown) =>
  expect(
    (async () => call())().then(
      () => undefined,
      (error) => error,
    ),
  ).resolves;

it("continues several prompts, each n times, in their order", async () => {
  const all = model.generateMany(["a", "bcd"], { n: 2, maxTokens: 1 });
  const results = await Promise.all(all.map(({ result }) => result));
  expect(results.map(({ usage }) => usage.promptTokens)).toEqual([1, 1, 3, 3]);
  expect(log.asked).toEqual([
    { prompt: "a", count: 2 },
    { prompt: "bcd", count: 2 },
  ]);
  expect(model.generateMany([])).toEqual([]);
});

it("takes one conversation or a list of them, and refuses what is neither", async () => {
  const dialog = [{ role: "user", content: "a" }] as const;
  expect(model.generateMany(dialog)).toHaveLength(1);
  expect(model.generateMany([dialog, "b", dialog])).toHaveLength(3);
  await refusal(() => model.generateMany(["a", 3] as never)).toMatchObject({ code: "bad-option" });
  await refusal(() => model.generateMany("a", { count: 2 } as never)).toMatchObject({
    message: expect.stringContaining("count: unknown option"),
  });
});

it("is read as a stream of deltas or of texts", async () => {
  const deltas = [];
  for await (const delta of model.generate("a", { maxTokens: 5 }).toReadableStream()) deltas.push(delta);
  expect(deltas).toEqual([0, 1, 2, 3, 4].map((token) => ({ text: `${token} `, token })));
  let text = "";
  for await (const piece of model.generate("a", { maxTokens: 5 }).textStream()) text += piece;
  expect(text).toBe("0 1 2 3 4 ");
});

it("ends when its stream is cancelled, and the stream fails as the generation does", async () => {
  const generation = model.generate("a");
  const reader = generation.textStream().getReader();
  expect(await reader.read()).toEqual({ done: false, value: "0 " });
  await reader.cancel();
  expect(await generation.result).toMatchObject({ finishReason: "aborted" });
  const failed = model.generate("bad").textStream().getReader().read();
  await expect(failed).rejects.toMatchObject({ code: "context-full" });
});

it("embeds texts", async () => {
  expect(await model.embed("abc", { pooling: "mean" })).toEqual({
    embedding: Float32Array.of(3, 0.5),
    usage: { promptTokens: 3 },
  });
  const { embeddings, usage } = await model.embedMany(["a", "bc"], { normalize: false });
  expect(embeddings).toEqual([Float32Array.of(1, 0.5), Float32Array.of(2, 0.5)]);
  expect(usage).toEqual({ promptTokens: 3 });
  expect(log.embedded).toEqual([
    { texts: ["abc"], isMean: true, isNormalized: true },
    { texts: ["a", "bc"], isMean: false, isNormalized: false },
  ]);
  expect((await model.embedMany([])).embeddings).toEqual([]);
});

it("fails with the first text that cannot be embedded, and refuses other options", async () => {
  await refusal(() => model.embedMany(["a", "bad"])).toMatchObject({ code: "context-full" });
  const message = expect.stringContaining('pooling: expected "last" or "mean"');
  await refusal(() => model.embed("a", { pooling: "max" as never })).toMatchObject({ message });
  await refusal(() => model.embed("")).toMatchObject({ code: "bad-option" });
  await refusal(() => model.embed(["a"] as never)).toMatchObject({ code: "bad-option" });
});

it("counts tokens with the options that change a conversation's", async () => {
  expect(await model.countTokens("abcd")).toBe(4);
  const options = { parseSpecial: true, chatTemplateKwargs: { enable_thinking: false } };
  await model.countTokens("a", { ...options, continueFinalMessage: true });
  const tools = [{ type: "function" as const, function: { name: "now" } }];
  await model.countTokens("a", { tools });
  await model.countTokens("a", { tools, toolChoice: "none" });
  const sent = JSON.stringify({ tools, toolChoice: "auto", format: "hermes", parallelToolCalls: true });
  expect(log.counted).toEqual([{}, { ...options, continueFinalMessage: true }, { tools: sent }, {}]);
  await refusal(() => model.countTokens("a", { maxTokens: 3 } as never)).toMatchObject({
    message: expect.stringContaining("maxTokens: unknown option"),
  });
  await refusal(() => model.countTokens([{ role: "user", content: "a" }])).toMatchObject({
    message: "there is no chat template",
  });
});
