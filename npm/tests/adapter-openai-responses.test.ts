import { describe, expect, it } from "vitest";
import { createClient, type ResponseEvent } from "../src/adapters/openai.js";
import { fakeModel } from "./fake-model.js";

const tool = { type: "function", name: "weather", parameters: { type: "object" }, strict: true };
const CALL = { name: "weather", pieces: ['{"city":', '"Oslo"}'] };

describe("responses.create", () => {
  it("takes instructions, messages, calls and their outputs", async () => {
    const model = fakeModel([{ texts: ["rain"] }]);
    await createClient(model).responses.create({
      instructions: "Be brief",
      input: [
        { role: "developer", content: "d" },
        { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
        { type: "reasoning" },
        { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
        { type: "function_call", call_id: "c2", name: "weather", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "wet" },
      ],
      max_output_tokens: 5,
      tools: [tool],
      tool_choice: { type: "function", name: "weather" },
      text: { format: { type: "json_schema", name: "n", schema: { type: "string" } } },
    });
    const [{ prompt, options } = { prompt: 0, options: {} }] = model.asked;
    const call = (id: string) => ({ id, type: "function", function: { name: "weather", arguments: "{}" } });
    expect(prompt).toEqual([
      { role: "system", content: "Be brief" },
      { role: "system", content: "d" },
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      { role: "assistant", content: null, tool_calls: [call("c1"), call("c2")] },
      { role: "tool", tool_call_id: "c1", content: "wet" },
    ]);
    expect(options).toMatchObject({
      maxTokens: 5,
      tools: [
        { type: "function", function: { name: "weather", parameters: { type: "object" }, strict: true } },
      ],
      toolChoice: { type: "function", function: { name: "weather" } },
      responseFormat: { type: "json_schema", schema: { type: "string" } },
    });
  });

  it("answers with messages and calls", async () => {
    const client = createClient(
      fakeModel([{ texts: ["Let ", "me"], calls: [CALL], finishReason: "length" }]),
    );
    const answer = await client.responses.create({ input: "Weather?", tools: [tool] });
    expect(answer).toMatchObject({
      object: "response",
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output_text: "Let me",
      output: [
        { type: "message", status: "completed", content: [{ type: "output_text", text: "Let me" }] },
        {
          type: "function_call",
          call_id: "call_0",
          name: "weather",
          arguments: '{"city":"Oslo"}',
          status: "incomplete",
        },
      ],
      usage: { output_tokens: 4, input_tokens_details: { cached_tokens: 1 } },
    });
  });

  it("streams the events of the API in their order", async () => {
    const client = createClient(fakeModel([{ texts: ["Let ", "me"], calls: [CALL, CALL] }]));
    const events: ResponseEvent[] = [];
    for await (const event of await client.responses.create({ input: "Weather?", stream: true }))
      events.push(event);
    const call = [
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
    ];
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      ...call,
      ...call,
      "response.completed",
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(events[2]).toMatchObject({ item: { content: [] } });
    expect(events.at(-1)).toMatchObject({ response: { status: "completed", output: { length: 3 } } });
  });

  it("has items of reasoning, and takes them back", async () => {
    const model = fakeModel([{ thoughts: ["W", "hy"], texts: ["So"] }]);
    const client = createClient(model);
    const { output, output_text, usage } = await client.responses.create({
      input: [
        { role: "user", content: "a" },
        { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
        { role: "assistant", content: "b" },
        { type: "reasoning", summary: [{ type: "summary_text", text: "ah" }], content: null },
        { type: "function_call", call_id: "1", name: "weather", arguments: "{}" },
        { type: "function_call_output", call_id: "1", output: "c" },
      ],
      reasoning: { effort: "low", summary: "auto" },
    });
    expect(model.asked[0]?.prompt).toMatchObject([
      { role: "user" },
      { role: "assistant", content: "b", reasoning_content: "hm" },
      { role: "assistant", content: "", reasoning_content: "ah", tool_calls: [{ id: "1" }] },
      { role: "tool" },
    ]);
    expect(model.asked[0]?.options).toMatchObject({ reasoningEffort: "low" });
    const content = [{ type: "reasoning_text", text: "Why" }];
    expect(output).toMatchObject([
      { type: "reasoning", status: "completed", summary: [], content },
      { type: "message", content: [{ text: "So" }] },
    ]);
    expect(output_text).toBe("So");
    expect(usage?.output_tokens_details).toEqual({ reasoning_tokens: 2 });
    const events: ResponseEvent[] = [];
    for await (const event of await client.responses.create({ input: "a", stream: true })) events.push(event);
    expect(events.slice(2, 9).map(({ type }) => type)).toEqual([
      "response.output_item.added",
      "response.content_part.added",
      "response.reasoning_text.delta",
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      "response.content_part.done",
      "response.output_item.done",
    ]);
    expect(events[2]).toMatchObject({ item: { type: "reasoning", content: [] } });
    expect(events[8]).toMatchObject({ item: { status: "completed", content } });
  });

  it("gives the log-probabilities of texts, and none of calls", async () => {
    const client = createClient(fakeModel([{ texts: ["", "a", "b", ""], calls: [CALL] }]));
    const params = { input: "Weather?", tools: [tool], include: ["message.output_text.logprobs"] };
    const { output } = await client.responses.create(params);
    expect(output.map(({ type }) => type)).toEqual(["message", "function_call"]);
    const events: ResponseEvent[] = [];
    for await (const event of await client.responses.create({ ...params, stream: true })) events.push(event);
    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    expect(deltas.map(({ delta, logprobs }) => [delta, logprobs.length])).toEqual([
      ["a", 2],
      ["b", 1],
      ["", 1],
    ]);
    expect(events.find((event) => event.type === "response.output_text.done")?.logprobs).toHaveLength(4);
    const calls = events.filter((event) => event.type === "response.function_call_arguments.done");
    expect(calls.map((event) => event.arguments)).toEqual(['{"city":"Oslo"}']);
  });

  it.each([
    [{ previous_response_id: "r" }, "previous_response_id"],
    [{ conversation: "c" }, "conversation"],
    [{ background: true }, "background"],
    [{ truncation: "auto" }, "truncation"],
    [{ include: ["file_search_call.results"] }, "include"],
    [{ tools: [{ type: "web_search" }] }, "tools[0]"],
    [{ input: [{ type: "item_reference" }] }, "input[0]"],
  ])("refuses %j", async (params, param) => {
    const create = createClient(fakeModel([{}])).responses.create({ input: "a", ...(params as object) });
    await expect(create).rejects.toMatchObject({ status: 400, code: "bad-option", param });
  });
});
