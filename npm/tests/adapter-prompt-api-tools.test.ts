/** Tools that the application runs, and constrained answers that are cut off, by the Prompt API's explainer. */

import { afterEach, describe, expect, expectTypeOf, it } from "vitest";
import {
  type CreateOptions,
  install,
  LanguageModel,
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  type OpenAnswer,
  type PromptMessage,
  provideModel,
} from "../src/adapters/prompt-api.js";
import { type Answer, type FakeModel, fakeModel } from "./fake-model.js";

const weather = {
  name: "get_weather",
  description: "The weather",
  inputSchema: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
};
const execute = async () => "sunny";
const expected: CreateOptions = {
  expectedInputs: [{ type: "tool-response" }],
  expectedOutputs: [{ type: "tool-call" }],
};
const open: CreateOptions = { ...expected, tools: [weather] };

const CALL = { name: "get_weather", pieces: ['{"location":', '"Oslo"}'] };
const toolCall = (callId: string) =>
  new LanguageModelToolCall({ callId, name: "get_weather", arguments: { location: "Oslo" } });
const sent = (id: string) => ({
  id,
  type: "function",
  function: { name: "get_weather", arguments: '{"location":"Oslo"}' },
});

const user = (content: string) => ({ role: "user" as const, content });
const success = (callId: string, ...texts: string[]) => {
  const result = texts.map((value) => ({ type: "text" as const, value }));
  return new LanguageModelToolSuccess({ callId, name: "get_weather", result });
};
const responses = (...values: (LanguageModelToolSuccess | LanguageModelToolError)[]): PromptMessage[] => [
  { role: "user", content: values.map((value) => ({ type: "tool-response", value })) },
];

async function begin(answers: readonly Answer[], options = open, contextLength = 100) {
  const model = fakeModel(answers, { contextLength });
  provideModel(model);
  return { model, session: await LanguageModel.create<OpenAnswer>(options) };
}

const lastPrompt = ({ asked }: FakeModel) => asked.at(-1)?.prompt;
const failure = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : error);

const CLASSES = [
  "LanguageModel",
  "LanguageModelToolCall",
  "LanguageModelToolSuccess",
  "LanguageModelToolError",
];
afterEach(() => {
  for (const name of CLASSES) Reflect.deleteProperty(globalThis, name);
});

describe("the loop", () => {
  it.each<[string, CreateOptions]>([
    ["open", open],
    ["open, without tools", expected],
    ["open, with calls alone expected", { tools: [weather], expectedOutputs: [{ type: "tool-call" }] }],
    ["closed", { tools: [{ ...weather, execute }] }],
    ["closed, with calls expected", { ...expected, tools: [{ ...weather, execute }] }],
  ])("is %s", async (_, options) => {
    const { session } = await begin([{ texts: ["a"] }], options);
    expect(await LanguageModel.availability(options)).toBe("available");
    expect(await session.prompt("a")).toBe("a");
  });

  it.each<[string, CreateOptions]>([
    ["that nobody runs", { tools: [weather] }],
    ["of which the session runs one", { ...expected, tools: [{ ...weather, execute }, weather] }],
    ["whose function is none", { ...expected, tools: [{ ...weather, execute: 1 as never }] }],
    ["without a schema", { ...expected, tools: [{ ...weather, inputSchema: undefined as never }] }],
  ])("is refused for tools %s", async (_, options) => {
    provideModel(fakeModel([{}]));
    const refusal =
      /^TypeError: tools\[[01]\]: expected \{name, description, inputSchema, execute\}, or all tools/;
    expect(await LanguageModel.create(options).catch(failure)).toMatch(refusal);
    expect(await LanguageModel.availability(options).catch(failure)).toMatch(refusal);
  });

  it("goes through the application", async () => {
    const { model, session } = await begin([{ calls: [CALL] }, { texts: ["It rains."] }]);
    const asked = await session.prompt("What is the weather?");
    expect(asked).toEqual([{ type: "tool-call", value: toolCall("call_0") }]);
    const [part] = asked as Exclude<OpenAnswer, string>;
    if (part?.type !== "tool-call") throw new Error("no call");
    expect(part.value).toBeInstanceOf(LanguageModelToolCall);
    expect(await session.prompt(responses(success(part.value.callId, "rain")))).toBe("It rains.");
    expect(lastPrompt(model)).toEqual([
      user("What is the weather?"),
      { role: "assistant", content: "", tool_calls: [sent("call_0")] },
      { role: "tool", tool_call_id: "call_0", name: "get_weather", content: "rain" },
    ]);
    expect(model.asked[0]?.options.tools).toMatchObject([{ function: { name: "get_weather" } }]);
  });

  it("has the text before several calls, and takes their responses together", async () => {
    const { model, session } = await begin([
      { texts: ["Let ", "me"], calls: [CALL, CALL] },
      { texts: ["a"] },
    ]);
    expect(await session.prompt("a")).toEqual([
      { type: "text", value: "Let me" },
      { type: "tool-call", value: toolCall("call_0") },
      { type: "tool-call", value: toolCall("call_1") },
    ]);
    const object = { type: "object" as const, value: { rain: true } };
    const found = new LanguageModelToolSuccess({
      callId: "call_0",
      name: "get_weather",
      result: [object, object],
    });
    const failed = new LanguageModelToolError({
      callId: "call_1",
      name: "get_weather",
      errorMessage: "no city",
    });
    const [{ content } = { content: [] }] = responses(found, failed);
    await session.prompt([
      { role: "user", content: [...(content as []), { type: "text", value: "Go on." }] },
    ]);
    const response = { role: "tool", name: "get_weather" };
    expect(lastPrompt(model)).toEqual([
      user("a"),
      { role: "assistant", content: "Let me", tool_calls: [sent("call_0"), sent("call_1")] },
      { ...response, tool_call_id: "call_0", content: '{"rain":true}\n{"rain":true}' },
      { ...response, tool_call_id: "call_1", content: '{"error":"no city"}' },
      user("Go on."),
    ]);
  });

  it("streams texts, and then each call", async () => {
    const { session } = await begin([{ texts: ["Let ", "me"], calls: [CALL] }]);
    const pieces = [];
    for await (const piece of session.promptStreaming("a")) pieces.push(piece);
    expect(pieces).toEqual(["Let ", "me", { type: "tool-call", value: toolCall("call_0") }]);
  });

  it("has no call of an answer that was cut off", async () => {
    const { session } = await begin([{ texts: ["so"], calls: [CALL], finishReason: "length" }]);
    expect(await session.prompt("a")).toBe("so");
  });

  it("has types of its own", () => {
    expectTypeOf<ReturnType<LanguageModel["prompt"]>>().toEqualTypeOf<Promise<string>>();
    expectTypeOf<ReturnType<LanguageModel<OpenAnswer>["prompt"]>>().toEqualTypeOf<Promise<OpenAnswer>>();
    expectTypeOf<ReturnType<LanguageModel["promptStreaming"]>>().toEqualTypeOf<ReadableStream<string>>();
  });
});

describe("messages with calls", () => {
  const example: PromptMessage[] = [
    user("Weather?"),
    { role: "assistant", content: [{ type: "tool-call", value: toolCall("example-1") }] },
    ...responses(success("example-1", "rain")),
    { role: "assistant", content: "It rains." },
  ];
  const read = [
    user("Weather?"),
    { role: "assistant", content: "", tool_calls: [sent("example-1")] },
    { role: "tool", tool_call_id: "example-1", name: "get_weather", content: "rain" },
    { role: "assistant", content: "It rains." },
  ];

  it.each<[string, CreateOptions]>([
    ["the open loop", open],
    ["the closed loop", { tools: [{ ...weather, execute }] }],
  ])("are examples, in %s", async (_, options) => {
    const { model, session } = await begin([{ texts: ["a"] }], options);
    await session.append(example);
    await session.prompt("b");
    expect(lastPrompt(model)).toEqual([...read, user("b")]);
    const initial = await begin([{ texts: ["a"] }], { ...options, initialPrompts: example });
    await initial.session.prompt("b");
    expect(lastPrompt(initial.model)).toEqual([...read, user("b")]);
  });

  it.each<[string, PromptMessage[], string]>([
    [
      "a response to an unknown call",
      responses(success("call_9", "rain")),
      "TypeError: message 0: no call call_9 of get_weather waits for a response; waiting: call_0 of get_weather",
    ],
    [
      "a second response",
      [...responses(success("call_0", "rain")), ...responses(success("call_0", "sun"))],
      "TypeError: message 1: no call call_0 of get_weather waits for a response; waiting: none",
    ],
    [
      "a response of another tool",
      responses(new LanguageModelToolError({ callId: "call_0", name: "search", errorMessage: "" })),
      "TypeError: message 0: no call call_0 of search waits for a response; waiting: call_0 of get_weather",
    ],
    [
      "a response of the assistant",
      [{ role: "assistant", content: [{ type: "tool-response", value: success("call_0") }] }],
      "TypeError: message 0: expected a tool-response of the user with a LanguageModelToolSuccess or LanguageModelToolError",
    ],
    [
      "a response that is a plain object",
      responses({ callId: "call_0", name: "get_weather", result: [] } as never),
      "TypeError: message 0: expected a tool-response of the user with a LanguageModelToolSuccess or LanguageModelToolError",
    ],
    [
      "a call of the user",
      [{ role: "user", content: [{ type: "tool-call", value: toolCall("x") }] }],
      "TypeError: message 0: expected a tool-call of the assistant with a LanguageModelToolCall",
    ],
    [
      "a result that is an image",
      responses(
        new LanguageModelToolSuccess({
          callId: "call_0",
          name: "get_weather",
          result: [{ type: "image", value: new Blob() }],
        }),
      ),
      "NotSupportedError: message 0: a result of type image is not supported",
    ],
  ])("refuse %s, and leave the session as it was", async (_, input, message) => {
    const { session } = await begin([{ calls: [CALL] }, { texts: ["a"] }]);
    await session.prompt("a");
    const usage = session.contextUsage;
    expect(await session.prompt(input).catch(failure)).toBe(message);
    expect(session.contextUsage).toBe(usage);
    expect(await session.prompt(responses(success("call_0", "rain")))).toBe("a");
  });

  it("keep a call with its response when the context is full", async () => {
    const { model, session } = await begin([{ texts: ["a"] }, { calls: [CALL] }, { texts: ["b"] }], open, 14);
    await session.prompt("one two three");
    await session.prompt("four");
    expect(await session.prompt(responses(success("call_0", "r1 r2 r3")))).toBe("b");
    const [first] = lastPrompt(model) as object[];
    expect(first).toEqual(user("four"));
    await session.prompt("five six seven eight nine");
    expect(lastPrompt(model)).toEqual([user("five six seven eight nine")]);
  });
});

describe("the classes", () => {
  it("are installed beside LanguageModel, and left alone where it exists", () => {
    const all = globalThis as Record<string, unknown>;
    expect(install(fakeModel([]))).toBe(true);
    const own = [LanguageModel, LanguageModelToolCall, LanguageModelToolSuccess, LanguageModelToolError];
    expect(CLASSES.map((name) => all[name])).toEqual(own);
    for (const name of CLASSES) all[name] = name;
    expect(install(fakeModel([]))).toBe(false);
    expect(CLASSES.map((name) => all[name])).toEqual(CLASSES);
  });

  it.each([
    [() => new LanguageModelToolCall({ callId: "a", name: "b" } as never), "arguments: it is required"],
    [() => new LanguageModelToolSuccess({ name: "b", result: [] } as never), "callId: it is required"],
    [
      () => new LanguageModelToolSuccess({ callId: "a", name: "b", result: "c" as never }),
      "result: expected a list of {type, value}",
    ],
    [() => new LanguageModelToolError({ callId: "a", errorMessage: "" } as never), "name: it is required"],
  ])("refuse what lacks a member: %s", (make, message) => {
    expect(make).toThrow(new TypeError(message));
  });
});

describe("a constrained answer", () => {
  const cut: Answer = { texts: ['{"a":'], finishReason: "length", unfinished: true };
  const options = { responseConstraint: { type: "object" } };
  const refusal = "SyntaxError: the answer ended before its responseConstraint was complete";

  it.each<[string, Answer, object]>([
    ["by its limit", cut, options],
    ["by a time limit", { ...cut, finishReason: "timeout" }, options],
    ["by a stop string", { ...cut, finishReason: "stop" }, options],
    ["in a regular expression", { ...cut, texts: ["12"] }, { responseConstraint: /[0-9]{3}/ }],
  ])("that is cut %s rejects, and leaves the session as it was", async (_, answer, given) => {
    const { session } = await begin([answer, { texts: ["b"] }], {});
    const failed = await session.prompt("a", given).catch((error) => error);
    expect([failed instanceof DOMException, failure(failed)]).toEqual([true, refusal]);
    expect(session.contextUsage).toBe(0);
    expect(await session.prompt("b")).toBe("b");
  });

  it("that is cut errors a stream", async () => {
    const { model, session } = await begin([cut, { texts: ["b"] }], {});
    const reader = session.promptStreaming("a", options).getReader();
    expect((await reader.read()).value).toBe('{"a":');
    expect(await reader.read().catch(failure)).toBe(refusal);
    await session.prompt("b");
    expect(lastPrompt(model)).toEqual([user("b")]);
  });

  it("that is complete at its limit is one, as is a cut one without a constraint", async () => {
    const { session } = await begin([{ texts: ["{}"], finishReason: "length" }, cut], {});
    expect(await session.prompt("a", options)).toBe("{}");
    expect(await session.prompt("a")).toBe('{"a":');
  });
});
