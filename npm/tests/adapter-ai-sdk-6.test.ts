/** The adapter beside `ai` 6, with the package of provider types that it brings. */

import { createRequire } from "node:module";
import * as ai from "ai";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { createSetun } from "../src/adapters/ai-sdk.js";
import { type FakeModel, fakeModel } from "./fake-model.js";

const CALL = { name: "weather", pieces: ['{"city":', '"Oslo"}'] };
const SCHEMA = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;

/** `createSetun` as it is where `ai` 6 alone is installed. */
let create: typeof createSetun;

beforeAll(async () => {
  const { resolve } = createRequire(import.meta.url);
  vi.doMock("@ai-sdk/provider", () => createRequire(resolve("ai"))("@ai-sdk/provider"));
  vi.resetModules();
  ({ createSetun: create } = await import("../src/adapters/ai-sdk.js"));
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
});
afterAll(() => {
  vi.doUnmock("@ai-sdk/provider");
  Reflect.deleteProperty(globalThis, "AI_SDK_LOG_WARNINGS");
});

/** The declarations are those of `ai` 7. */
const languageModel = (fake: FakeModel) => create(fake)() as unknown as ai.LanguageModel;

describe("ai 6", () => {
  it("has models of its specification", () => {
    const setun = create(fakeModel([]));
    const versions = [setun, setun(), setun.embeddingModel()].map((each) => each.specificationVersion);
    expect(versions).toEqual(["v3", "v3", "v3"]);
  });

  it("generates and streams texts with reasoning", async () => {
    const model = languageModel(fakeModel([{ thoughts: ["Why"], texts: ["Hel", "lo"] }]));
    const { text, reasoningText, usage, finishReason } = await ai.generateText({ model, prompt: "Hi" });
    expect([text, reasoningText, finishReason]).toEqual(["Hello", "Why", "stop"]);
    expect(usage.outputTokens).toBe(3);
    const pieces: string[] = [];
    for await (const piece of ai.streamText({ model, prompt: "Hi" }).textStream) pieces.push(piece);
    expect(pieces).toEqual(["Hel", "lo"]);
  });

  it("calls tools, and follows a format beside them", async () => {
    const fake = fakeModel([{ calls: [CALL] }, { texts: ['{"n":', "3}"] }]);
    const seen: unknown[] = [];
    const weather = ai.tool({
      inputSchema: ai.jsonSchema<{ city: string }>({ type: "object" }),
      execute: async (input) => {
        seen.push(input);
        return { rain: true };
      },
    });
    const { output } = await ai.generateText({
      model: languageModel(fake),
      prompt: "Hi",
      tools: { weather },
      output: ai.Output.object({ schema: ai.jsonSchema<{ n: number }>(SCHEMA) }),
      stopWhen: ai.stepCountIs(3),
    });
    expect([seen, output]).toEqual([[{ city: "Oslo" }], { n: 3 }]);
    expect(fake.asked.map(({ options }) => [options.tools?.length, options.responseFormat?.type])).toEqual([
      [1, "json_schema"],
      [1, "json_schema"],
    ]);
    expect(fake.asked[1]?.prompt).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ id: "call_0" }] },
      { role: "tool", tool_call_id: "call_0", content: '{"rain":true}' },
    ]);
  });

  it("ends at a time limit, and tells of a model that is not there", async () => {
    const model = languageModel(fakeModel([{ texts: ["a"], finishReason: "timeout" }]));
    expect((await ai.generateText({ model, prompt: "Hi" })).finishReason).toBe("other");
    const setun = create({ small: fakeModel([]) });
    expect(() => setun("huge")).toThrow("No such languageModel: huge. Loaded: small.");
    const registry = ai.createProviderRegistry({ setun: setun as never });
    expect(registry.languageModel("setun:small")).toMatchObject({ modelId: "small" });
  });

  it("embeds", async () => {
    const model = create(fakeModel([])).embeddingModel() as unknown as ai.EmbeddingModel;
    const { embeddings } = await ai.embedMany({ model, values: ["a", "bcd"] });
    expect(embeddings).toEqual([
      [1, 0.5],
      [3, 0.5],
    ]);
  });
});
