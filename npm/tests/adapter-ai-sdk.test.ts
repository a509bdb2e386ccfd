import {
  type LanguageModelV4CallOptions,
  type LanguageModelV4StreamPart,
  NoSuchModelError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { createSetun } from "../src/adapters/ai-sdk.js";
import { SetunError } from "../src/errors.js";
import { fakeModel } from "./fake-model.js";

type Prompt = LanguageModelV4CallOptions["prompt"];

const prompt: Prompt = [{ role: "user", content: [{ type: "text", text: "Hi" }] }];
const CALL = { name: "weather", pieces: ['{"city":', '"Oslo"}'] };

async function partsOf(stream: ReadableStream<LanguageModelV4StreamPart>) {
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

describe("the language model", () => {
  it("passes settings, and provider options last", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    await createSetun(model)().doGenerate({
      prompt,
      maxOutputTokens: 5,
      temperature: 0.3,
      topP: 0.9,
      topK: 7,
      presencePenalty: 1,
      frequencyPenalty: 9,
      seed: 2,
      stopSequences: ["x"],
      responseFormat: { type: "json" },
      providerOptions: { setun: { minP: 0.1, topK: 8 } },
    });
    expect(model.asked[0]?.options).toEqual({
      maxTokens: 5,
      temperature: 0.3,
      topP: 0.9,
      topK: 8,
      presencePenalty: 1,
      frequencyPenalty: 2,
      seed: 2,
      stop: ["x"],
      responseFormat: { type: "json_object" },
      minP: 0.1,
    });
  });

  it("reads prompts", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    const { warnings } = await createSetun(model)().doGenerate({
      prompt: [
        { role: "system", content: "s" },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "hm" },
            { type: "text", text: "c" },
            { type: "tool-call", toolCallId: "1", toolName: "weather", input: { city: "Oslo" } },
          ],
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "1",
              toolName: "weather",
              output: { type: "json", value: { rain: true } },
            },
            {
              type: "tool-result",
              toolCallId: "2",
              toolName: "weather",
              output: { type: "execution-denied" },
            },
            { type: "tool-approval-response", approvalId: "a", approved: false },
          ],
        },
      ],
    });
    const result = { role: "tool", name: "weather" };
    expect(model.asked[0]?.prompt).toEqual([
      { role: "system", content: "s" },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "assistant",
        content: "c",
        reasoning_content: "hm",
        tool_calls: [
          { id: "1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
        ],
      },
      { ...result, tool_call_id: "1", content: '{"rain":true}' },
      { ...result, tool_call_id: "2", content: "The execution of the tool was denied." },
    ]);
    expect(warnings).toEqual([]);
  });

  it.each<[string, Prompt[number]]>([
    [
      "file part of type image/png",
      {
        role: "user",
        content: [
          { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://a/") } },
        ],
      },
    ],
    [
      "custom part of an assistant's message",
      { role: "assistant", content: [{ type: "custom", kind: "a.b" }] },
    ],
    [
      "custom part of a tool's result",
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "1",
            toolName: "t",
            output: { type: "content", value: [{ type: "custom" }] },
          },
        ],
      },
    ],
  ])("refuses a %s", async (functionality, message) => {
    const answer = createSetun(fakeModel([{}]))().doGenerate({ prompt: [message] });
    const failed = await Promise.resolve(answer).catch((error) => error);
    expect(UnsupportedFunctionalityError.isInstance(failed)).toBe(true);
    expect(failed.functionality).toBe(functionality);
  });

  it("warns of what it cannot honour, and of nothing else", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    const { warnings } = await createSetun(model)().doGenerate({
      prompt,
      reasoning: "high",
      headers: { "user-agent": "ai" },
      tools: [
        { type: "provider", id: "openai.web_search", name: "search", args: {} },
        {
          type: "function",
          name: "weather",
          inputSchema: { type: "object" },
          inputExamples: [{ input: {} }],
          strict: true,
        },
      ],
      toolChoice: { type: "tool", toolName: "weather" },
    });
    expect(warnings.map((warning) => "feature" in warning && warning.feature)).toEqual([
      "provider-defined tool openai.web_search",
      "inputExamples",
    ]);
    expect(model.asked[0]?.options).toMatchObject({
      reasoningEffort: "high",
      tools: [
        { type: "function", function: { name: "weather", parameters: { type: "object" }, strict: true } },
      ],
      toolChoice: { type: "function", function: { name: "weather" } },
    });
  });

  it("follows a format beside tools, and passes warnings of the engine on", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    const tools = [{ type: "function" as const, name: "weather", inputSchema: {} }];
    const call = { prompt, tools, responseFormat: { type: "json" as const } };
    const { warnings } = await createSetun(model)().doGenerate(call);
    expect(warnings).toEqual([]);
    await createSetun(model)().doGenerate({ ...call, toolChoice: { type: "none" } });
    const formats = model.asked.map(({ options }) => options.responseFormat);
    expect(formats).toEqual([{ type: "json_object" }, { type: "json_object" }]);
  });

  it("continues the text of a lone prompt without a chat template, with a warning", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    Object.assign(model.info, { hasChatTemplate: false });
    const setun = createSetun(model)();
    const { warnings } = await setun.doGenerate({ prompt });
    expect(warnings).toMatchObject([{ type: "compatibility", feature: "chat template" }]);
    await setun.doGenerate({ prompt: [{ role: "system", content: "s" }, ...prompt] });
    expect(model.asked.map(({ prompt }) => typeof prompt)).toEqual(["string", "object"]);
  });

  it("gives contents, reason and usage", async () => {
    const answers = [{ texts: ["Let ", "me"], calls: [CALL] }, { finishReason: "content_filter" as const }];
    const setun = createSetun(fakeModel(answers))();
    const { content, finishReason, usage, response } = await setun.doGenerate({ prompt });
    expect(content).toEqual([
      { type: "text", text: "Let me" },
      { type: "tool-call", toolCallId: "call_0", toolName: "weather", input: '{"city":"Oslo"}' },
    ]);
    expect(finishReason).toEqual({ unified: "tool-calls", raw: "tool_calls" });
    expect(usage.inputTokens).toEqual({ total: 2, noCache: 1, cacheRead: 1, cacheWrite: undefined });
    expect(usage.outputTokens.total).toBe(4);
    expect(response?.modelId).toBe("fake");
    const filtered = await setun.doGenerate({ prompt });
    expect(filtered.finishReason.unified).toBe("content-filter");
  });

  it("streams blocks of texts and inputs", async () => {
    const { stream } = await createSetun(
      fakeModel([{ texts: ["Let ", "me"], calls: [CALL, CALL] }]),
    )().doStream({ prompt });
    const [start, metadata, ...parts] = await partsOf(stream);
    expect(start).toEqual({ type: "stream-start", warnings: [] });
    expect(metadata).toMatchObject({ type: "response-metadata", modelId: "fake" });
    const input = (id: string) => [
      { type: "tool-input-start", id, toolName: "weather" },
      { type: "tool-input-delta", id, delta: '{"city":' },
      { type: "tool-input-delta", id, delta: '"Oslo"}' },
      { type: "tool-input-end", id },
      { type: "tool-call", toolCallId: id, toolName: "weather", input: '{"city":"Oslo"}' },
    ];
    expect(parts).toEqual([
      { type: "text-start", id: "text-0" },
      { type: "text-delta", id: "text-0", delta: "Let " },
      { type: "text-delta", id: "text-0", delta: "me" },
      { type: "text-end", id: "text-0" },
      ...input("call_0"),
      ...input("call_1"),
      expect.objectContaining({ type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" } }),
    ]);
  });

  it("has parts of reasoning, and passes its effort", async () => {
    const model = fakeModel([{ thoughts: ["W", "hy"], texts: ["So"], calls: [CALL] }]);
    const setun = createSetun(model)();
    const { content, usage, warnings } = await setun.doGenerate({ prompt, reasoning: "low" });
    expect(content.slice(0, 2)).toEqual([
      { type: "reasoning", text: "Why" },
      { type: "text", text: "So" },
    ]);
    expect(usage.outputTokens).toEqual({ total: 5, text: 3, reasoning: 2 });
    expect(warnings).toEqual([]);
    expect(model.asked[0]?.options).toEqual({ reasoningEffort: "low" });
    const { stream } = await setun.doStream({ prompt, reasoning: "provider-default" });
    expect((await partsOf(stream)).slice(2, 9)).toEqual([
      { type: "reasoning-start", id: "reasoning-0" },
      { type: "reasoning-delta", id: "reasoning-0", delta: "W" },
      { type: "reasoning-delta", id: "reasoning-0", delta: "hy" },
      { type: "reasoning-end", id: "reasoning-0" },
      { type: "text-start", id: "text-1" },
      { type: "text-delta", id: "text-1", delta: "So" },
      { type: "text-end", id: "text-1" },
    ]);
    expect(model.asked[1]?.options).toEqual({});
  });

  it("has no call of an answer that was cut off in its input", async () => {
    const cut = { calls: [CALL, { name: "weather", pieces: ['{"city":'] }], finishReason: "length" as const };
    const setun = createSetun(fakeModel([cut]))();
    const { content } = await setun.doGenerate({ prompt });
    expect(content.map(({ type }) => type)).toEqual(["tool-call"]);
    const parts = await partsOf((await setun.doStream({ prompt })).stream);
    expect(parts.filter(({ type }) => type === "tool-call")).toHaveLength(1);
    expect(parts.filter(({ type }) => type === "tool-input-end")).toHaveLength(2);
  });

  it("streams errors as parts, rejects with the reason of an abort, and stops when it is cancelled", async () => {
    const busy = new SetunError("busy", "the queue is full");
    const failed = await createSetun(fakeModel([{ texts: ["a"], error: busy }]))().doStream({ prompt });
    expect(await partsOf(failed.stream)).toMatchObject([
      { type: "stream-start" },
      { type: "response-metadata" },
      { type: "error", error: busy },
      { type: "finish", finishReason: { unified: "error" } },
    ]);
    const model = fakeModel([{ texts: ["a", "b"] }]);
    const abortSignal = AbortSignal.abort("enough");
    const aborted = await createSetun(model)().doStream({ prompt, abortSignal });
    await expect(partsOf(aborted.stream)).rejects.toBe("enough");
    const before = model.stopped;
    const { stream } = await createSetun(model)().doStream({ prompt, includeRawChunks: true });
    for await (const { type } of stream) if (type === "raw") break;
    expect(model.stopped).toBeGreaterThan(before);
  });
});

describe("the provider", () => {
  it("finds models by name", () => {
    const setun = createSetun({ small: fakeModel([]), large: fakeModel([]) });
    expect(setun("small").modelId).toBe("small");
    expect(setun.embeddingModel("large").modelId).toBe("large");
    for (const find of [
      () => setun(),
      () => setun("huge"),
      () => setun.embeddingModel("huge"),
      () => setun.imageModel("small"),
    ]) {
      expect(find).toThrow(NoSuchModelError);
    }
  });

  it("embeds", async () => {
    const embedding = createSetun(fakeModel([])).embeddingModel();
    expect(await embedding.doEmbed({ values: ["a", "bcd"] })).toEqual({
      embeddings: [
        [1, 0.5],
        [3, 0.5],
      ],
      usage: { tokens: 4 },
      warnings: [],
    });
    const { warnings } = await embedding.doEmbed({ values: ["a"], dimensions: 8 });
    expect(warnings).toEqual([{ type: "unsupported", feature: "dimensions" }]);
  });
});
