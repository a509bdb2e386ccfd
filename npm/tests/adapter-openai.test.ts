import { describe, expect, it } from "vitest";
import { type ChatCompletionChunk, createClient } from "../src/adapters/openai.js";
import { SetunError } from "../src/errors.js";
import { fakeModel } from "./fake-model.js";

const messages = [{ role: "user", content: "Hi" }];
const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
const CALL = { name: "weather", pieces: ['{"city":', '"Oslo"}'] };

describe("chat.completions.create", () => {
  it("passes parameters by their names in camel case", async () => {
    const model = fakeModel([{ texts: ["Hel", "lo"] }]);
    const answer = await createClient(model).chat.completions.create({
      model: "fake",
      messages: [
        { role: "developer", content: "Be brief" },
        { role: "user", content: [{ type: "text", text: "a" }] },
      ],
      max_completion_tokens: 9,
      top_p: 0.5,
      top_k: 4,
      min_p: null,
      frequency_penalty: 1,
      logit_bias: { 5: -1 },
      stop: "x",
      seed: 3,
      user: "me",
      store: true,
      response_format: { type: "json_schema", json_schema: { name: "n", schema: { type: "number" } } },
    });
    const [{ prompt, options } = { prompt: 0, options: {} }] = model.asked;
    expect(prompt).toEqual([
      { role: "system", content: "Be brief" },
      { role: "user", content: [{ type: "text", text: "a" }] },
    ]);
    const { signal: _, ...given } = options;
    expect(given).toEqual({
      maxTokens: 9,
      topP: 0.5,
      topK: 4,
      frequencyPenalty: 1,
      logitBias: { 5: -1 },
      stop: "x",
      seed: 3,
      responseFormat: { type: "json_schema", schema: { type: "number" } },
    });
    expect(answer).toMatchObject({
      object: "chat.completion",
      model: "fake",
      choices: [{ index: 0, finish_reason: "stop", logprobs: null, message: { content: "Hello" } }],
      usage: { completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } },
    });
    expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens + 2);
  });

  it("answers n times, with log-probabilities", async () => {
    const client = createClient(
      fakeModel([{ texts: ["a"] }, { texts: ["b", "c"], finishReason: "timeout" }]),
    );
    const { choices, usage } = await client.chat.completions.create({
      messages,
      n: 2,
      logprobs: true,
      top_logprobs: 1,
    });
    expect(choices.map(({ message }) => message.content)).toEqual(["a", "bc"]);
    expect(choices.map(({ finish_reason }) => finish_reason)).toEqual(["stop", "length"]);
    const top = { token: "<b>", bytes: [60, 98, 62], logprob: -0.5 };
    expect(choices[1]?.logprobs?.content[0]).toEqual({ ...top, top_logprobs: [top] });
    expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 3 });
  });

  it("streams a role, texts, pieces of calls, the reason and the usage", async () => {
    const client = createClient(fakeModel([{ texts: ["Hm"], calls: [CALL] }]));
    const chunks: ChatCompletionChunk[] = [];
    const stream = await client.chat.completions.create({
      messages,
      tools: [weather],
      tool_choice: { type: "function", function: { name: "weather" } },
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: "assistant", content: "" },
      { content: "Hm" },
      {
        tool_calls: [
          { index: 0, id: "call_0", type: "function", function: { name: "weather", arguments: '{"city":' } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] },
      {},
      undefined,
    ]);
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([
      null,
      null,
      null,
      null,
      "tool_calls",
      undefined,
    ]);
    expect(chunks.map(({ usage }) => usage?.completion_tokens)).toEqual([...Array(5).fill(undefined), 3]);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  it("has reasoning apart, whole and in chunks", async () => {
    const model = fakeModel([{ thoughts: ["W", "hy"], texts: ["So"] }]);
    const client = createClient(model);
    const params = { messages, reasoning_effort: "low" as const, logprobs: true };
    const { choices, usage } = await client.chat.completions.create(params);
    const [choice] = choices;
    expect(choice?.message).toMatchObject({ content: "So", reasoning_content: "Why", reasoning: "Why" });
    expect(choice?.logprobs?.content).toHaveLength(1);
    expect(usage.completion_tokens_details).toEqual({ reasoning_tokens: 2 });
    expect(model.asked[0]?.options).toMatchObject({ reasoningEffort: "low" });
    const deltas: object[] = [];
    for await (const { choices } of await client.chat.completions.create({ ...params, stream: true }))
      deltas.push(choices[0]?.delta ?? {});
    expect(deltas).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "W", reasoning: "W" },
      { reasoning_content: "hy", reasoning: "hy" },
      { content: "So" },
      {},
    ]);
  });

  it("returns calls, and takes their results", async () => {
    const model = fakeModel([{ calls: [CALL] }]);
    const client = createClient(model);
    const { choices } = await client.chat.completions.create({ messages, tools: [weather] });
    const calls = choices[0]?.message.tool_calls;
    expect(choices[0]?.message).toEqual({
      role: "assistant",
      content: null,
      refusal: null,
      tool_calls: [
        { id: "call_0", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
      ],
    });
    const result = { role: "tool", tool_call_id: "call_0", content: "rain" };
    const again = [
      ...messages,
      { role: "assistant", content: null, ...(calls && { tool_calls: calls }) },
      result,
    ];
    await client.chat.completions.create({ messages: again });
    expect(model.asked[1]?.prompt).toEqual(again);
  });

  it.each([
    [{ messages: [{ role: "function", content: "a" }] }, "messages[0]"],
    [{ messages: [{ role: "user", content: [{ type: "image_url" }] }] }, "messages[0].content[0]"],
    [{ messages, functions: [] }, "functions"],
    [{ messages, reasoning: {} }, "reasoning"],
    [{ messages, modalities: ["text", "audio"] }, "modalities"],
    [{ messages, tools: [{ type: "custom" }] }, "tools[0]"],
    [{ messages, tools: [weather], tool_choice: { type: "allowed_tools" } }, "tool_choice"],
    [{ messages, max_tokens: 1, max_completion_tokens: 1 }, "max_completion_tokens"],
    [{ messages, n: 0 }, "n"],
    [{ messages, wrong: 1 }, "wrong"],
  ])("refuses %j", async (params, param) => {
    const create = createClient(fakeModel([{}])).chat.completions.create(params as { messages: [] });
    await expect(create).rejects.toMatchObject({ status: 400, code: "bad-option", param });
  });

  it("takes values that say what it does anyway", async () => {
    const { chat } = createClient(fakeModel([{ texts: ["a"] }]));
    const params = {
      messages,
      modalities: ["text"],
      verbosity: "medium",
      audio: null,
    };
    expect((await chat.completions.create(params)).choices).toHaveLength(1);
  });

  it("names models, and refuses others", async () => {
    const model = fakeModel([{ texts: ["a"] }]);
    const client = createClient({ small: model, large: fakeModel([{ texts: ["b"] }]) });
    const listed = [];
    for await (const { id } of client.models.list()) listed.push(id);
    expect(listed).toEqual(["small", "large"]);
    const page = await client.models.list();
    expect([page.object, page.data.map(({ id }) => id)]).toEqual(["list", listed]);
    const ofPage = [];
    for await (const { id } of page) ofPage.push(id);
    for await (const { id } of page) ofPage.push(id);
    expect([ofPage, page.hasNextPage()]).toEqual([[...listed, ...listed], false]);
    expect(page.getPaginatedItems()).toEqual(page.data);
    expect((await client.models.retrieve("large")).id).toBe("large");
    const { choices } = await client.chat.completions.create({ model: "large", messages });
    expect(choices[0]?.message.content).toBe("b");
    for (const name of ["huge", undefined]) {
      const create = client.chat.completions.create({ ...(name && { model: name }), messages });
      const message = `404 model: expected one of small, large, found ${name ?? "none"}`;
      await expect(create).rejects.toMatchObject({ status: 404, code: "not-found", param: "model", message });
    }
    const unknown = { status: 404, message: "404 model: expected one of small, large, found huge" };
    await expect(client.models.retrieve("huge")).rejects.toMatchObject(unknown);
    await expect(client.embeddings.create({ model: "huge", input: "a" })).rejects.toMatchObject(unknown);
    await expect(client.responses.create({ model: "huge", input: "a" })).rejects.toMatchObject(unknown);
  });

  it("says what to use instead of methods that need the client's classes or HTTP", async () => {
    const { chat, responses, embeddings } = createClient(fakeModel([{ texts: ["a"] }]));
    const given: never = undefined as never;
    const parse = "400 parse: not supported: use create and JSON.parse";
    await expect(chat.completions.parse(given)).rejects.toThrow(parse);
    await expect(responses.parse(given)).rejects.toThrow(parse);
    const stream = "400 stream: not supported: use create with stream: true";
    await expect(chat.completions.stream(given)).rejects.toThrow(stream);
    await expect(responses.stream(given)).rejects.toThrow(stream);
    for (const answer of [chat.completions.create({ messages }), embeddings.create({ input: "a" })]) {
      const advice = "not supported: nothing is sent by HTTP";
      await expect(answer.withResponse(given)).rejects.toThrow(`400 withResponse: ${advice}`);
      await expect(answer.asResponse(given)).rejects.toThrow(`400 asResponse: ${advice}`);
      expect(await answer).toHaveProperty("object");
    }
  });
});

describe("a request", () => {
  const busy = new SetunError("busy", "the queue is full");

  it("rejects with the client's errors, also before a stream", async () => {
    const { chat } = createClient(fakeModel([{ texts: ["a"], error: busy }]));
    for (const stream of [false, true] as const) {
      const create = chat.completions.create({ messages, stream });
      await expect(create).rejects.toMatchObject({
        name: "APIError",
        status: 429,
        code: "busy",
        type: "rate_limit_error",
        message: "429 the queue is full",
        cause: busy,
      });
    }
  });

  it("is aborted by its signal, by the controller of its stream, and by leaving the loop", async () => {
    const model = fakeModel([{ texts: ["a", "b", "c"] }]);
    const { chat } = createClient(model);
    const aborted = chat.completions.create({ messages }, { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ name: "APIUserAbortError", status: undefined });
    const stream = await chat.completions.create({ messages, stream: true });
    const seen = [];
    for await (const chunk of stream) {
      seen.push(chunk);
      stream.controller.abort();
    }
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.length).toBeLessThan(5);
    const before = model.stopped;
    for await (const _ of await chat.completions.create({ messages, stream: true })) break;
    expect(model.stopped).toBeGreaterThan(before);
  });

  it("has a time limit", async () => {
    const texts = Array.from({ length: 100_000 }, () => "a");
    const create = createClient(fakeModel([{ texts }])).chat.completions.create({ messages }, { timeout: 5 });
    await expect(create).rejects.toMatchObject({ name: "APIConnectionTimeoutError", status: undefined });
  });

  it("streams twice by tee, and as lines", async () => {
    const client = createClient(fakeModel([{ texts: ["a", "b"] }]));
    const stream = () => client.completions.create({ prompt: "p", stream: true });
    const [one, two] = (await stream()).tee();
    const texts: string[] = [];
    for await (const { choices } of one) texts.push(choices[0]?.text ?? "");
    for await (const { choices } of two) texts.push(choices[0]?.text ?? "");
    expect(texts).toEqual(["a", "b", "", "a", "b", ""]);
    const lines = (await new Response((await stream()).toReadableStream()).text()).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).choices[0].text)).toEqual(["a", "b", ""]);
  });
});

describe("completions.create", () => {
  it("continues several prompts, with an echo and log-probabilities", async () => {
    const model = fakeModel([{ texts: ["x"] }, { texts: ["y", "z"] }]);
    const { choices, usage } = await createClient(model).completions.create({
      prompt: ["ab", "cd"],
      echo: true,
      logprobs: 1,
    });
    expect(model.asked.map(({ prompt }) => prompt)).toEqual(["ab", "cd"]);
    expect(model.asked[0]?.options).toMatchObject({ logprobs: true, topLogprobs: 1, promptLogprobs: true });
    expect(choices.map(({ text }) => text)).toEqual(["abx", "cdyz"]);
    expect(choices[1]?.logprobs).toEqual({
      tokens: ["ab", "<y>", "<z>"],
      token_logprobs: [null, -0.5, -0.5],
      top_logprobs: [{}, { "<y>": -0.5 }, { "<z>": -0.5 }],
      text_offset: [0, 2, 3],
    });
    expect(usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 });
  });

  it.each([
    [{ prompt: "a", suffix: "b" }, "suffix"],
    [{ prompt: [1, 2] }, "prompt"],
    [{ prompt: "a", best_of: 3 }, "best_of"],
  ])("refuses %j", async (params, param) => {
    const create = createClient(fakeModel([{}])).completions.create(params);
    await expect(create).rejects.toMatchObject({ status: 400, param });
  });
});

describe("embeddings.create", () => {
  it("gives numbers, or their bytes", async () => {
    const { embeddings } = createClient(fakeModel([]));
    const floats = await embeddings.create({ input: ["a", "bcd"] });
    expect(floats.data.map(({ embedding }) => embedding)).toEqual([
      [1, 0.5],
      [3, 0.5],
    ]);
    expect(floats.usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
    const { data } = await embeddings.create({ input: "bcd", encoding_format: "base64" });
    const bytes = Uint8Array.from(Buffer.from(data[0]?.embedding ?? "", "base64"));
    expect([...new Float32Array(bytes.buffer)]).toEqual([3, 0.5]);
    await expect(embeddings.create({ input: "a", dimensions: 2 })).rejects.toMatchObject({
      param: "dimensions",
    });
  });
});
