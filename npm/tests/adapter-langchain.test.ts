import {
  AIMessage,
  type AIMessageChunk,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { GenerateOptions } from "../src/adapters/core.js";
import { ChatSetun, SetunEmbeddings } from "../src/adapters/langchain.js";
import { type Answer, fakeModel } from "./fake-model.js";

const WEATHER = { name: "weather", pieces: ['{"city":', '"Oslo"}'] };
const TOOL = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A chat model with answers, and what the engine is asked. */
function chatOf(answers: readonly Answer[], options?: GenerateOptions) {
  const model = fakeModel(answers);
  return { model, chat: new ChatSetun({ model, ...(options && { options }) }) };
}

describe("a chat model", () => {
  it("reads messages", async () => {
    const { model, chat } = chatOf([{ texts: ["a"] }]);
    const call = { id: "1", name: "weather", args: { city: "Oslo" } };
    const parts = [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ];
    await chat.invoke([
      new SystemMessage("s"),
      new HumanMessage({ content: parts }),
      new AIMessage({ content: "c", tool_calls: [call] }),
      new ToolMessage({ content: "rain", tool_call_id: "1", name: "weather" }),
    ]);
    const called = { name: "weather", arguments: '{"city":"Oslo"}' };
    expect(model.asked[0]?.prompt).toEqual([
      { role: "system", content: "s" },
      { role: "user", content: "a\nb" },
      { role: "assistant", content: "c", tool_calls: [{ id: "1", type: "function", function: called }] },
      { role: "tool", content: "rain", tool_call_id: "1", name: "weather" },
    ]);
    const image = [{ type: "image_url", image_url: "https://a/" }];
    await expect(chat.invoke([new HumanMessage({ content: image })])).rejects.toThrow(
      "content of a human message: expected text, found image_url",
    );
  });

  it("passes options, those of the call last", async () => {
    const { model, chat } = chatOf([{ texts: ["a"] }], { maxTokens: 5, seed: 1 });
    await chat.invoke("Hi", { stop: ["x"], options: { seed: 2 } });
    await chat.bindTools([TOOL], { tool_choice: "any" }).invoke("Hi");
    await chat.invoke("Hi", { tools: [TOOL], tool_choice: "weather", parallelToolCalls: false });
    const given = { maxTokens: 5, seed: 1 };
    expect(model.asked.map(({ options }) => options)).toEqual([
      { ...given, stop: ["x"], seed: 2 },
      { ...given, tools: [TOOL], toolChoice: "required" },
      {
        ...given,
        tools: [TOOL],
        toolChoice: { type: "function", function: { name: "weather" } },
        parallelToolCalls: false,
      },
    ]);
  });

  it.each([
    ["by their names", { temperature: 0, maxTokens: 3, stop: ["\n"], topP: 0.9, topK: 4, seed: 7 }],
    ["that only setun has", { minP: 0.1, repetitionPenalty: 1.1, timeout: 500 }],
  ])("takes options of its constructor %s", async (_, options) => {
    const model = fakeModel([{ texts: ["a"] }]);
    const base = { tags: ["t"], metadata: { a: 1 }, maxRetries: 2, cache: false, verbose: false };
    const chat = new ChatSetun({ model, ...base, ...options });
    await chat.invoke("Hi");
    for await (const _ of await chat.stream("Hi"));
    expect(model.asked.map(({ options: { signal: _, ...given } }) => given)).toEqual([options, options]);
    expect(chat).toMatchObject({ tags: ["t"], metadata: { a: 1 } });
    expect(chat._identifyingParams()).toEqual({ model: "fake", ...options });
  });

  it("has an order of options: constructor, its `options`, the call, its `options`", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    const chat = new ChatSetun({
      model,
      seed: 1,
      topK: 1,
      topP: 0.1,
      minP: 0.1,
      options: { topK: 2, topP: 0.2 },
    });
    await chat.invoke("Hi", { topP: 0.3, maxTokens: 5, options: { minP: 0.4 } });
    await chat.withConfig({ seed: 9, stop: ["x"] }).invoke("Hi");
    expect(model.asked.map(({ options }) => options)).toEqual([
      { seed: 1, topK: 2, topP: 0.3, minP: 0.4, maxTokens: 5 },
      { seed: 9, topK: 2, topP: 0.2, minP: 0.1, stop: ["x"] },
    ]);
  });

  it.each([
    ["the constructor", () => new ChatSetun({ model: fakeModel([]), wrong: 1 } as never).invoke("Hi")],
    [
      "its `options`",
      () => new ChatSetun({ model: fakeModel([]), options: { wrong: 1 } as never }).invoke("Hi"),
    ],
    [
      "the `options` of a call",
      () => new ChatSetun({ model: fakeModel([]) }).invoke("Hi", { options: { wrong: 1 } as never }),
    ],
    ["a stream", () => new ChatSetun({ model: fakeModel([]), wrong: 1 } as never).stream("Hi")],
    ["embeddings", () => new SetunEmbeddings({ model: fakeModel([]), wrong: 1 } as never).embedQuery("Hi")],
  ])("refuses an unknown option of %s", async (_, act) => {
    await expect(act()).rejects.toThrow("wrong: unknown option");
  });

  it("continues the text of a lone message without a chat template", async () => {
    const { model, chat } = chatOf([{ texts: ["a"] }]);
    Object.assign(model.info, { hasChatTemplate: false });
    await chat.invoke("Hi");
    expect(model.asked[0]?.prompt).toBe("Hi");
    expect(await chat.getNumTokens("a b")).toBe(3);
  });

  it("gives text, calls, usage and reason, whole and streamed", async () => {
    const { chat } = chatOf([{ texts: ["Let ", "me"], calls: [WEATHER, WEATHER] }]);
    const whole = await chat.invoke("Hi");
    let joined: AIMessageChunk | undefined;
    const texts: string[] = [];
    for await (const chunk of await chat.stream("Hi")) {
      texts.push(chunk.text);
      joined = joined?.concat(chunk) ?? chunk;
    }
    expect(texts.filter(Boolean)).toEqual(["Let ", "me"]);
    const calls = ["call_0", "call_1"].map((id) => {
      return { type: "tool_call", id, name: "weather", args: { city: "Oslo" } };
    });
    for (const message of [whole, joined]) {
      expect(message?.text).toBe("Let me");
      expect(message?.tool_calls).toEqual(calls);
      expect(message?.usage_metadata).toMatchObject({ input_tokens: 2, output_tokens: 6 });
      expect(message?.response_metadata).toMatchObject({ finish_reason: "tool_calls", model_name: "fake" });
    }
  });

  it("has no whole call of an answer that was cut off", async () => {
    const { chat } = chatOf([
      { calls: [WEATHER, { name: "weather", pieces: ['{"city":'] }], finishReason: "length" },
    ]);
    const { tool_calls, invalid_tool_calls } = await chat.invoke("Hi");
    expect(tool_calls).toHaveLength(1);
    expect(invalid_tool_calls).toMatchObject([{ name: "weather", args: '{"city":' }]);
  });

  it("rejects when it is aborted", async () => {
    const { model, chat } = chatOf([{ texts: ["a", "b", "c"] }]);
    const controller = new AbortController();
    const stream = await chat.stream("Hi", { signal: controller.signal });
    await expect(
      (async () => {
        for await (const _ of stream) controller.abort(new Error("enough"));
      })(),
    ).rejects.toThrow();
    expect(model.asked[0]?.options.signal).toBeInstanceOf(AbortSignal);
  });

  it("has structured outputs as text and as the input of a tool", async () => {
    const { model, chat } = chatOf([{ texts: ['{"city":', '"Oslo"}'] }, { calls: [WEATHER] }]);
    expect(await chat.withStructuredOutput(SCHEMA).invoke("Hi")).toEqual({ city: "Oslo" });
    const named = { name: "weather", method: "functionCalling", includeRaw: true } as const;
    const { raw, parsed } = await chat.withStructuredOutput(SCHEMA, named).invoke("Hi");
    expect(parsed).toEqual({ city: "Oslo" });
    expect(AIMessage.isInstance(raw)).toBe(true);
    const [asText, asCall] = model.asked;
    expect(asText?.options).toEqual({ responseFormat: { type: "json_schema", schema: SCHEMA } });
    expect(asCall?.options).toMatchObject({
      tools: [{ type: "function", function: { name: "weather", parameters: SCHEMA } }],
      toolChoice: { type: "function", function: { name: "weather" } },
      parallelToolCalls: false,
    });
  });
});

it("embeds documents and queries", async () => {
  const embeddings = new SetunEmbeddings({ model: fakeModel([]), pooling: "mean" });
  expect(await embeddings.embedDocuments(["ab", "c"])).toEqual([
    [2, 0.5],
    [1, 0.5],
  ]);
  expect(await embeddings.embedQuery("abc")).toEqual([3, 0.5]);
});
