/** Sessions of the Prompt API under chat templates that refuse a conversation without a user. */

import { readFileSync } from "node:fs";
import { Template as Jinja } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { type CreateOptions, LanguageModel, provideModel } from "../src/adapters/prompt-api.js";
import { SetunError } from "../src/errors.js";
import { type Answer, fakeModel, type Template } from "./fake-model.js";

const FOLDER = new URL("../../tests/fixtures/chat-templates/", import.meta.url);

/** A published template, with the error of the engine for what it refuses. */
function published(file: string): Template {
  const template = new Jinja(readFileSync(new URL(file, FOLDER), "utf8"));
  return (messages, tools) => {
    const read = messages.map((message) => {
      const calls = message.tool_calls?.map((call) => {
        const { function: called } = call as { function: { arguments: string } };
        return { ...call, function: { ...called, arguments: JSON.parse(called.arguments) } };
      });
      return { ...message, ...(calls && { tool_calls: calls }) };
    });
    try {
      const variables = tools.length > 0 ? { tools: [...tools] } : {};
      return template.render({ messages: read, add_generation_prompt: true, bos_token: "", ...variables });
    } catch (error) {
      throw new SetunError("bad-option", `the chat template refuses this conversation: ${error}`);
    }
  };
}

const system = { role: "system" as const, content: "You are a helpful assistant." };
const tools = [{ name: "now", description: "The time", inputSchema: {}, execute: async () => "12:00" }];

/** Sessions that the explainer begins with. */
const SESSIONS: readonly CreateOptions[] = [
  { initialPrompts: [system] },
  { tools },
  { initialPrompts: [system], tools },
  { initialPrompts: [system, { role: "assistant", content: "Hello!" }] },
];

const HELLO: Answer[] = [{ texts: ["Hel", "lo"] }];

async function begin(template: Template, options: CreateOptions, answers = HELLO, contextLength = 2000) {
  const model = fakeModel(answers, { template, contextLength });
  provideModel(model);
  return { model, session: await LanguageModel.create(options) };
}

/** Tokens of the last request. */
const read = (template: Template, messages: object[], given: readonly object[] = []) =>
  template(messages as never, given).split(/\s+/).length;

describe.each([
  "meta-llama-Llama-3.1-8B-Instruct.jinja",
  "meta-llama-Llama-3.2-3B-Instruct.jinja",
  "meta-llama-Llama-3.3-70B-Instruct.jinja",
  "Qwen3.5-4B.jinja",
  "Qwen-Qwen2.5-7B-Instruct.jinja",
])("%s", (file) => {
  const template = published(file);

  it.each(SESSIONS)("answers in session %#", async (options) => {
    const { model, session } = await begin(template, options);
    const before = session.contextUsage;
    const measured = await session.measureContextUsage("Hi");
    expect(await session.prompt("Hi")).toBe("Hello");
    const asked = model.asked.at(-1);
    expect(asked?.prompt).toEqual([...(options.initialPrompts ?? []), { role: "user", content: "Hi" }]);
    if (before > 0)
      expect(before + measured).toBe(read(template, asked?.prompt as object[], asked?.options.tools));
  });
});

describe("initial messages that wait for a user", () => {
  const template = published("Qwen3.5-4B.jinja");
  const options = { initialPrompts: [system] };

  it("are not computed before, and are part of a clone", async () => {
    const { model, session } = await begin(template, options);
    expect(model.asked).toEqual([]);
    expect(session.contextUsage).toBe(read(template, [system, { role: "user", content: "" }]));
    const clone = await session.clone();
    expect(clone.contextUsage).toBe(session.contextUsage);
    await clone.prompt("Hi");
    expect(model.asked[0]?.prompt).toEqual([system, { role: "user", content: "Hi" }]);
  });

  it("are computed with the message that is appended", async () => {
    const { model, session } = await begin(template, {});
    await session.append([system]);
    expect(model.asked).toEqual([]);
    await session.append("Hi");
    expect(model.asked.map(({ prompt }) => prompt)).toEqual([[system, { role: "user", content: "Hi" }]]);
    expect(session.contextUsage).toBe(read(template, [system, { role: "user", content: "Hi" }]));
  });

  it("stay when the context is full", async () => {
    const user = (content: string) => ({ role: "user", content });
    const full = [system, user("a"), { role: "assistant", content: "Hello" }, user("b c d e f")];
    const { model, session } = await begin(template, options, HELLO, read(template, full));
    let overflows = 0;
    session.oncontextoverflow = () => {
      overflows += 1;
    };
    await session.prompt("a");
    await session.prompt("b c d e f");
    expect(overflows).toBe(1);
    expect(model.asked.at(-1)?.prompt).toEqual([system, user("b c d e f")]);
  });

  it("are too much for the context as other messages are", async () => {
    const failed = await begin(template, options, HELLO, 8).catch((error) => error);
    expect(failed).toMatchObject({ name: "QuotaExceededError", quota: 8 });
  });

  it("alone are no prompt, which leaves the session as it was", async () => {
    const { session } = await begin(template, {});
    const failed = await session.prompt([system]).catch((error) => error);
    expect([failed.name, failed.message]).toEqual([
      "NotSupportedError",
      expect.stringMatching(/^the chat template refuses this conversation: .*No user query found/),
    ]);
    expect(session.contextUsage).toBe(0);
    expect(await session.prompt("Hi")).toBe("Hello");
  });
});

it.each([
  ["google-gemma-2-2b-it.jinja", { initialPrompts: [system] }],
  ["google-gemma-2-2b-it.jinja", { initialPrompts: [{ role: "assistant" as const, content: "Hello!" }] }],
])("%s refuses what no user's message would mend", async (file, options) => {
  const failed = await begin(published(file), options).catch((error) => error);
  expect([failed.name, failed.message]).toEqual([
    "NotSupportedError",
    expect.stringMatching(/^the chat template refuses this conversation/),
  ]);
});
