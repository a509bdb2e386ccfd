/** The rules of the Prompt API's interface definition, each a row. */

import { afterEach, describe, expect, it } from "vitest";
import {
  type CreateOptions,
  install,
  LanguageModel,
  type Prompt,
  provideModel,
} from "../src/adapters/prompt-api.js";
import { SetunError } from "../src/errors.js";
import { type Answer, type FakeModel, fakeModel } from "./fake-model.js";

const HELLO: Answer[] = [{ texts: ["Hel", "lo"] }];

async function begin(answers: readonly Answer[] = HELLO, options: CreateOptions = {}, contextLength = 100) {
  const model = fakeModel(answers, { contextLength });
  provideModel(model);
  return { model, session: await LanguageModel.create(options) };
}

const lastPrompt = ({ asked }: FakeModel) => asked.at(-1)?.prompt;

const user = (content: string) => ({ role: "user" as const, content });
const assistant = (content: string) => ({ role: "assistant" as const, content });
const system = (content: string) => ({ role: "system" as const, content });

afterEach(() => {
  Reflect.deleteProperty(globalThis, "LanguageModel");
});

const nameOf = (error: unknown) => (error instanceof Error ? error.name : error);

describe("arguments that are refused", () => {
  const prompted =
    (input: unknown, options: object = {}) =>
    async () =>
      (await begin()).session.prompt(input as Prompt, options);
  const created = (options: object) => async () => (await begin(HELLO, options as CreateOptions)).session;
  const tool = { name: "t", description: "d", inputSchema: {}, execute: async () => "" };

  it.each<[string, string, () => Promise<unknown>]>([
    ["a system message that is not the first", "TypeError", prompted([user("a"), system("b")])],
    ["an unknown role", "TypeError", prompted([{ role: "tool", content: "a" }])],
    ["a message without content", "TypeError", prompted([{ role: "user" }])],
    ["a message that is none", "TypeError", prompted(["a"])],
    [
      "an unknown type of content",
      "TypeError",
      prompted([{ role: "user", content: [{ type: "smell", value: "a" }] }]),
    ],
    ["a text that is none", "TypeError", prompted([{ role: "user", content: [{ type: "text", value: 5 }] }])],
    ["an image", "NotSupportedError", prompted([{ role: "user", content: [{ type: "image", value: "" }] }])],
    [
      "a call of the assistant",
      "NotSupportedError",
      prompted([{ role: "assistant", content: [{ type: "tool-call", value: "" }] }]),
    ],
    ["a prefix of the user", "SyntaxError", prompted([{ ...user("a"), prefix: true }])],
    [
      "a prefix that is not the last",
      "SyntaxError",
      prompted([{ ...assistant("a"), prefix: true }, user("b")]),
    ],
    ["an omitted constraint without one", "TypeError", prompted("a", { omitResponseConstraintInput: true })],
    ["a constraint that is no object", "TypeError", prompted("a", { responseConstraint: "b" })],
    ["an unknown mode", "TypeError", created({ samplingMode: "wild" })],
    ["a mode and an option", "TypeError", created({ samplingMode: "balanced", temperature: 1 })],
    ["a tool without a function", "TypeError", created({ tools: [{ ...tool, execute: 1 }] })],
    ["a tool without a description", "TypeError", created({ tools: [{ ...tool, description: undefined }] })],
    ["a wrong language tag", "RangeError", created({ expectedInputs: [{ type: "text", languages: ["_"] }] })],
    ["an unknown type of input", "TypeError", created({ expectedInputs: [{ type: "smell" }] })],
    ["images as input", "NotSupportedError", created({ expectedInputs: [{ type: "image" }] })],
    ["audio as output", "NotSupportedError", created({ expectedOutputs: [{ type: "audio" }] })],
    [
      "a late system message at the beginning",
      "TypeError",
      created({ initialPrompts: [user("a"), system("b")] }),
    ],
    [
      "a prefix at the beginning",
      "SyntaxError",
      created({ initialPrompts: [{ ...assistant("a"), prefix: true }] }),
    ],
    [
      "too much at the beginning",
      "QuotaExceededError",
      async () => begin(HELLO, { initialPrompts: [user("a b c d e")] }, 6),
    ],
  ])("%s: %s", async (_, name, act) => {
    expect(nameOf(await act().catch((error) => error))).toBe(name);
  });

  it("a system message in a session that has messages", async () => {
    const { session } = await begin();
    await session.prompt([system("s"), user("a")]);
    expect(nameOf(await session.prompt([system("s"), user("b")]).catch((error) => error))).toBe("TypeError");
  });
});

describe("a prompt", () => {
  it.each<[string, unknown, object[]]>([
    ["a text", "a", [user("a")]],
    ["anything else", 5, [user("5")]],
    ["no message", [], [user("")]],
    [
      "parts, joined",
      [
        {
          role: "user",
          content: [
            { type: "text", value: "a" },
            { type: "text", value: "b" },
          ],
        },
      ],
      [user("ab")],
    ],
    ["no parts", [{ role: "user", content: [] }], [user("")]],
    ["messages", [system("s"), user("a"), assistant("b")], [system("s"), user("a"), assistant("b")]],
  ])("takes %s", async (_, input, messages) => {
    const { model, session } = await begin();
    expect(await session.prompt(input as Prompt)).toBe("Hello");
    expect(lastPrompt(model)).toEqual(messages);
  });

  it("joins the session with its answer, after the initial messages", async () => {
    const { model, session } = await begin(HELLO, { initialPrompts: [system("s")] });
    await session.prompt("a");
    await session.prompt("b");
    expect(lastPrompt(model)).toEqual([system("s"), user("a"), assistant("Hello"), user("b")]);
    expect(session.contextUsage).toBe(2 + 2 + 2 + 2 + 2);
    expect(session.contextWindow).toBe(100);
  });

  it("continues a prefix", async () => {
    const { model, session } = await begin();
    expect(await session.prompt([user("a"), { ...assistant("Oh, "), prefix: true }])).toBe("Hello");
    expect(model.asked[0]?.options).toMatchObject({ continueFinalMessage: true });
    await session.prompt("b");
    expect(lastPrompt(model)).toEqual([user("a"), assistant("Oh, Hello"), user("b")]);
    expect(model.asked[1]?.options).not.toHaveProperty("continueFinalMessage");
  });

  it.each<[object, object]>([
    [{ type: "object" }, { type: "json_schema", schema: { type: "object" } }],
    [/^a+$/, { type: "grammar", syntax: "regex", definition: "a+" }],
    [/a\$/is, { type: "grammar", syntax: "regex", definition: "(?is)a\\$" }],
  ])("follows the constraint %s", async (responseConstraint, responseFormat) => {
    const { model, session } = await begin();
    await session.prompt("a", { responseConstraint, omitResponseConstraintInput: true });
    expect(model.asked[0]?.options).toMatchObject({ responseFormat });
  });

  it("streams its pieces", async () => {
    const { session } = await begin();
    const pieces: string[] = [];
    for await (const piece of session.promptStreaming("a")) pieces.push(piece);
    expect(pieces).toEqual(["Hel", "lo"]);
    expect(session.contextUsage).toBe(4);
  });

  it("waits for those before it", async () => {
    const { model, session } = await begin();
    await Promise.all([session.prompt("a"), session.append("b"), session.prompt("c")]);
    expect(lastPrompt(model)).toEqual([user("a"), assistant("Hello"), user("b"), user("c")]);
  });

  it("calls tools, all at once, until the model calls none", async () => {
    const calls = [
      { name: "add", pieces: ['{"a":1,', '"b":2}'] },
      { name: "add", pieces: ['{"a":3,"b":4}'] },
    ];
    const seen: object[] = [];
    const execute = async (input: { a: number; b: number }) => {
      seen.push(input);
      await new Promise((resolve) => setImmediate(resolve));
      return String(seen.length * 100 + input.a + input.b);
    };
    const called = calls.map(({ name, pieces }, index) => ({
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: pieces.join("") },
    }));
    const tools = [{ name: "add", description: "adds", inputSchema: { type: "object" }, execute }];
    const { model, session } = await begin([{ calls }, { texts: ["done"] }], { tools });
    expect(await session.prompt("a")).toBe("done");
    const result = (id: string, content: string) => ({
      role: "tool",
      tool_call_id: id,
      name: "add",
      content,
    });
    expect(lastPrompt(model)).toEqual([
      user("a"),
      { ...assistant(""), tool_calls: called },
      result("call_0", "203"),
      result("call_1", "207"),
    ]);
    expect(model.asked[1]?.options.tools).toHaveLength(1);
    expect(session.contextUsage).toBe(5 * 2 + tools.length);
  });

  it("calls no tool of an answer that was cut off", async () => {
    const tools = [{ name: "t", description: "d", inputSchema: {}, execute: async () => expect.fail() }];
    const cut = { texts: ["so"], calls: [{ name: "t", pieces: ["{"] }], finishReason: "length" as const };
    const { model, session } = await begin([cut, ...HELLO], { tools });
    expect(await session.prompt("a")).toBe("so");
    await session.prompt("b");
    expect(lastPrompt(model)).toEqual([user("a"), assistant("so"), user("b")]);
  });

  it.each<[string, Answer, string]>([
    ["a filtered answer", { texts: ["a"], finishReason: "content_filter" }, "NotReadableError"],
    ["a disposed model", { error: new SetunError("disposed", "d") }, "InvalidStateError"],
    ["a refused option", { error: new SetunError("bad-option", "d") }, "NotSupportedError"],
    ["a full queue", { error: new SetunError("busy", "d") }, "UnknownError"],
  ])("rejects for %s, and leaves the session as it was", async (_, answer, name) => {
    const { session } = await begin([answer, ...HELLO]);
    expect(nameOf(await session.prompt("a").catch((error) => error))).toBe(name);
    expect(session.contextUsage).toBe(0);
    expect(await session.prompt("b")).toBe("Hello");
  });
});

describe("the context", () => {
  it("is measured", async () => {
    const { session } = await begin();
    expect(await session.measureContextUsage("a b")).toBe(3);
    await session.append("a b");
    expect(session.contextUsage).toBe(3);
    expect(await session.measureContextUsage([user("a")])).toBe(2);
  });

  it("drops the oldest pairs when it is full, and tells", async () => {
    const { model, session } = await begin(HELLO, { initialPrompts: [system("s")] }, 14);
    const events: string[] = [];
    session.addEventListener("contextoverflow", ({ type }) => events.push(type));
    session.oncontextoverflow = ({ type }) => events.push(`on${type}`);
    await session.prompt("a");
    await session.prompt("b");
    expect(events).toEqual([]);
    await session.prompt("c d e");
    expect(events).toEqual(["oncontextoverflow", "contextoverflow"]);
    expect(lastPrompt(model)).toEqual([system("s"), user("b"), assistant("Hello"), user("c d e")]);
    const failed = await session.prompt("a b c d e f g h i j k l").catch((error) => error);
    expect(failed).toMatchObject({ name: "QuotaExceededError", quota: 14, requested: 15 });
    expect(failed).toBeInstanceOf(DOMException);
    await session.append("f");
    expect(lastPrompt(model)).toEqual([system("s"), user("c d e"), assistant("Hello"), user("f")]);
  });
});

describe("an abort", () => {
  it("rejects with its reason, and leaves the session as it was", async () => {
    const { model, session } = await begin([{ texts: Array(1e6).fill("a") }, ...HELLO]);
    const controller = new AbortController();
    const running = session.prompt("a", { signal: controller.signal });
    const queued = session.prompt("b", { signal: controller.signal });
    await expect.poll(() => model.asked.length).toBe(1);
    controller.abort("enough");
    expect(await Promise.allSettled([running, queued])).toEqual([
      { status: "rejected", reason: "enough" },
      { status: "rejected", reason: "enough" },
    ]);
    expect([session.contextUsage, await session.prompt("c")]).toEqual([0, "Hello"]);
  });

  it("before the call rejects, or throws for a stream", async () => {
    const { session } = await begin();
    const signal = AbortSignal.abort("enough");
    for (const act of [
      () => session.prompt("a", { signal }),
      () => session.append("a", { signal }),
      () => session.measureContextUsage("a", { signal }),
      () => session.clone({ signal }),
      () => LanguageModel.create({ signal }),
    ]) {
      await expect(act()).rejects.toBe("enough");
    }
    expect(() => session.promptStreaming("a", { signal })).toThrow("enough");
  });

  it("of a stream errors it; a cancelled stream leaves the session as it was", async () => {
    const { model, session } = await begin([{ texts: Array.from({ length: 50 }, () => "a") }]);
    const controller = new AbortController();
    const aborted = session.promptStreaming("a", { signal: controller.signal }).getReader();
    await aborted.read();
    controller.abort("enough");
    await expect(aborted.closed).rejects.toBe("enough");
    for await (const _ of session.promptStreaming("a")) break;
    await session.append("b");
    expect(lastPrompt(model)).toEqual([user("b")]);
  });

  it("of the creation's signal destroys the session", async () => {
    const controller = new AbortController();
    const { session } = await begin(HELLO, { signal: controller.signal });
    controller.abort("enough");
    await expect(session.prompt("a")).rejects.toBe("enough");
  });
});

const by = <Mode extends string>(samplingMode: Mode) => ({ samplingMode });

describe("a session", () => {
  it("is cloned with its messages, and goes its own way", async () => {
    const { model, session } = await begin(HELLO, { samplingMode: "creative" });
    await session.prompt("a");
    const clone = await session.clone();
    expect([clone.contextUsage, clone.samplingMode]).toEqual([4, "creative"]);
    await session.prompt("b");
    await clone.prompt("c");
    expect(lastPrompt(model)).toEqual([user("a"), assistant("Hello"), user("c")]);
    expect(model.asked.at(-1)?.options).toMatchObject({ temperature: 1, topP: 0.95 });
  });

  it("is destroyed: what runs and what follows rejects with an AbortError", async () => {
    const { session } = await begin([{ texts: Array.from({ length: 50 }, () => "a") }]);
    const running = session.prompt("a").catch(nameOf);
    const stream = session.promptStreaming("b").getReader();
    stream.closed.catch(() => {});
    session.destroy();
    expect(await running).toBe("AbortError");
    expect(await stream.read().catch(nameOf)).toBe("AbortError");
    for (const act of [() => session.prompt("a"), () => session.append("a"), () => session.clone()])
      expect(await act().catch(nameOf)).toBe("AbortError");
  });

  it.each([
    [{}, "balanced", {}],
    [by("most-predictable"), "most-predictable", { temperature: 0 }],
    [by("predictable"), "predictable", { temperature: 0.4, topP: 0.9 }],
    [by("slightly-predictable"), "slightly-predictable", { temperature: 0.55, topP: 0.9 }],
    [by("slightly-creative"), "slightly-creative", { temperature: 0.85, topP: 0.95 }],
    [{ ...by("default"), temperature: 2, topK: 3 }, null, { temperature: 2, topK: 3 }],
  ])("samples by its mode: %j", async (options, mode, sampling) => {
    const { model, session } = await begin(HELLO, options);
    await session.prompt("a");
    const { signal: _, ...given } = model.asked[0]?.options ?? {};
    expect([session.samplingMode, given]).toEqual([mode, sampling]);
  });
});

describe("the model", () => {
  it("is loaded once, when the first session is created, with progress", async () => {
    let loads = 0;
    provideModel(async ({ onProgress }) => {
      loads += 1;
      onProgress({ phase: "downloading", loadedBytes: 1, totalBytes: 4, file: "" });
      await new Promise((resolve) => setImmediate(resolve));
      return fakeModel(HELLO);
    });
    expect(await LanguageModel.availability()).toBe("downloadable");
    expect(await LanguageModel.params()).toBeNull();
    const seen: unknown[] = [];
    const monitor = (target: EventTarget) =>
      target.addEventListener("downloadprogress", (event) => {
        const { loaded, total } = event as ProgressEvent;
        seen.push([loaded, total]);
      });
    const creating = LanguageModel.create({ monitor });
    await Promise.resolve();
    expect(await LanguageModel.availability()).toBe("downloading");
    await Promise.all([creating, LanguageModel.create()]);
    expect(await LanguageModel.availability()).toBe("available");
    expect(await LanguageModel.availability({ expectedInputs: [{ type: "audio" }] })).toBe("unavailable");
    expect(await LanguageModel.params()).toMatchObject({ defaultTopK: 9, defaultTemperature: 0.5 });
    expect(seen).toEqual([
      [0, 1],
      [0.25, 1],
      [1, 1],
    ]);
    expect(loads).toBe(1);
  });

  it("is loaded again after a failure", async () => {
    let loads = 0;
    provideModel(async () => {
      loads += 1;
      if (loads === 1) throw new SetunError("network", "offline");
      return fakeModel(HELLO);
    });
    expect(nameOf(await LanguageModel.create().catch((error) => error))).toBe("UnknownError");
    expect(await (await LanguageModel.create()).prompt("a")).toBe("Hello");
  });

  it("is installed where there is none, or by force", async () => {
    const all = globalThis as { LanguageModel?: unknown };
    const present = { name: "the browser's" };
    all.LanguageModel = present;
    expect(install(fakeModel(HELLO))).toBe(false);
    expect(all.LanguageModel).toBe(present);
    expect(install(fakeModel([{ texts: ["x"] }]), { force: true })).toBe(true);
    expect(all.LanguageModel).toBe(LanguageModel);
    Reflect.deleteProperty(globalThis, "LanguageModel");
    expect(install(fakeModel(HELLO), { defaults: { seed: 7 } })).toBe(true);
    expect(await (await LanguageModel.create()).prompt("a")).toBe("Hello");
  });
});
