/** The adapters of the packed package with the real libraries, in Node: their types, and texts against the core's. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, npm, writeFiles } from "../test-support/project.js";
import { REPEAT, SEED } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** Most declare Node 22 or newer, and run on 20. */
const LIBRARIES = {
  ai: "7.0.173",
  "@ai-sdk/provider": "4.0.38",
  "@langchain/core": "1.4.0",
  openai: "7.55.0",
  zod: "4.6.6",
};

/** Turns as lines, which the story model was trained on: its vocabulary has no tokens of turns. */
const TEMPLATE =
  "{% for m in messages %}{{ m.content }}{% if not loop.last or add_generation_prompt %}\n{% endif %}{% endfor %}";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({}, { ...LIBRARIES, typescript: "7.0.2" });
  const { folder } = embeddedModel(project.folder);
  const files = Object.entries({ ...folder, "chat_template.jinja": TEMPLATE });
  await writeFiles(
    project.folder,
    Object.fromEntries(files.map(([name, bytes]) => [`model/${name}`, bytes])),
  );
});
afterAll(() => project?.remove());

/** Runs a module in the project, with `model`; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const begin = `
    import { readdirSync, readFileSync } from "node:fs";
    import { load } from "setun";
    const names = readdirSync("model");
    const files = Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync("model/" + name))]));
    const model = await load(files);
    globalThis.AI_SDK_LOG_WARNINGS = false;
    let state = ${SEED};
    const below = (end) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * end);
    };
    const PROMPTS = ["Once upon a time", "The dog", "Lily and Tom went to the park", "A frog sat", "It was a sunny day. The"];
    const drawn = Array.from({ length: 10 }, () => ({
      prompt: PROMPTS[below(PROMPTS.length)],
      seed: below(2 ** 31),
      maxTokens: 1 + below(24),
      temperature: [0, 0.5, 1][below(3)],
      topP: [1, 0.9][below(2)],
      topK: [0, 40][below(2)],
    }));`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8"), maxBuffer: 2 ** 26 };
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
}

const STRICT = [
  "--strict",
  "--noEmit",
  "--exactOptionalPropertyTypes",
  "--skipLibCheck",
  "--target",
  "es2022",
];

it("is assignable to the official types without a cast, and takes their parameters", async () => {
  const program = `
    import type { EmbeddingModelV4, LanguageModelV4, ProviderV4 } from "@ai-sdk/provider";
    import { embed, generateText } from "ai";
    import type OpenAI from "openai";
    import { load } from "setun";
    import type { EmbeddingsInterface } from "@langchain/core/embeddings";
    import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
    import { createSetun, type SetunProviderOptions } from "setun/ai-sdk";
    import { ChatSetun, SetunEmbeddings } from "setun/langchain";
    import { createClient } from "setun/openai";
    import { install } from "setun/prompt-api";

    const model = await load();
    const client = createClient(model);
    declare const chat: OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;
    declare const chatStream: OpenAI.Chat.ChatCompletionCreateParamsStreaming;
    declare const text: OpenAI.CompletionCreateParamsNonStreaming;
    declare const embedding: OpenAI.EmbeddingCreateParams;
    declare const response: OpenAI.Responses.ResponseCreateParamsNonStreaming;
    declare const responseStream: OpenAI.Responses.ResponseCreateParamsStreaming;
    export const answer: OpenAI.Chat.ChatCompletion = await client.chat.completions.create(chat);
    for await (const chunk of await client.chat.completions.create(chatStream)) chunk satisfies OpenAI.Chat.ChatCompletionChunk;
    export const completion: OpenAI.Completion = await client.completions.create(text);
    export const embeddings: OpenAI.CreateEmbeddingResponse = await client.embeddings.create(embedding);
    export const answered: OpenAI.Responses.Response = await client.responses.create(response);
    for await (const event of await client.responses.create(responseStream)) event satisfies OpenAI.Responses.ResponseStreamEvent;
    for await (const each of client.models.list()) each satisfies OpenAI.Model;
    for await (const each of await client.models.list()) each satisfies OpenAI.Model;
    // @ts-expect-error it is not here
    client.chat.completions.parse(chat);
    client.chat.completions.create({ messages: [{ role: "user", content: "a" }], top_k: 3, min_p: 0.1 });
    // @ts-expect-error there is no such parameter
    client.chat.completions.create({ messages: [], topk: 3 });

    const setun = createSetun(model);
    export const provider: ProviderV4 = setun;
    export const language: LanguageModelV4 = setun();
    export const embedder: EmbeddingModelV4 = setun.embeddingModel();
    const providerOptions = { setun: { minP: 0.1 } satisfies SetunProviderOptions };
    await generateText({ model: setun(), prompt: "a", providerOptions });
    await embed({ model: setun.embeddingModel(), value: "a" });
    export const chat_: BaseChatModel = new ChatSetun({ model, maxTokens: 3, temperature: 0, stop: ["."] });
    export const vectors: EmbeddingsInterface = new SetunEmbeddings({ model });
    export const { parsed } = await new ChatSetun({ model })
      .withStructuredOutput<{ n: number }>({ type: "object" }, { includeRaw: true }).invoke("a");
    parsed.n satisfies number;
    export const installed: boolean = install((options) => load("hf:owner/name", options), { force: true });
  `;
  await writeFiles(project.folder, { "program.ts": program });
  const libraries = ["--lib", "es2023,esnext.disposable,dom,dom.asynciterable"];
  const module = ["--module", "esnext", "--moduleResolution", "bundler"];
  npm(project.folder, ["exec", "--", "tsc", ...STRICT, ...libraries, ...module, "program.ts"]);
});

describe(`drawn requests (${REPEAT})`, () => {
  it("have the core's text through each adapter", async () => {
    const { core, plain, texts } = await inNode(`
      import { generateText, streamText } from "ai";
      import { createSetun } from "setun/ai-sdk";
      import { ChatSetun } from "setun/langchain";
      import { createClient } from "setun/openai";
      import { LanguageModel, provideModel } from "setun/prompt-api";
      const client = createClient(model);
      const setun = createSetun(model)();
      const core = [], plain = [];
      const texts = { whole: [], streamed: [], responses: [], completions: [], echoed: [], generated: [], streamedText: [], invoked: [], chunked: [], prompted: [] };
      for (const { prompt, ...options } of drawn) {
        core.push(await model.chat([{ role: "user", content: prompt }], options).text());
        plain.push(await model.generate(prompt, options).text());
        const { seed, maxTokens, temperature, topP, topK } = options;
        const params = { seed, temperature, top_p: topP, top_k: topK };
        const messages = [{ role: "user", content: prompt }];
        const chat = { ...params, messages, max_completion_tokens: maxTokens };
        const whole = await client.chat.completions.create(chat);
        texts.whole.push(whole.choices[0].message.content);
        let text = "";
        for await (const { choices } of await client.chat.completions.create({ ...chat, stream: true })) text += choices[0].delta.content ?? "";
        texts.streamed.push(text);
        texts.responses.push((await client.responses.create({ ...params, input: prompt, max_output_tokens: maxTokens })).output_text);
        const completion = { ...params, prompt, max_tokens: maxTokens };
        texts.completions.push((await client.completions.create(completion)).choices[0].text);
        let echoed = "";
        for await (const { choices } of await client.completions.create({ ...completion, echo: true, logprobs: 2, stream: true })) echoed += choices[0].text;
        texts.echoed.push(echoed.slice(prompt.length));
        const settings = { model: setun, prompt, maxOutputTokens: maxTokens, seed, temperature, topP, topK };
        texts.generated.push((await generateText(settings)).text);
        texts.streamedText.push(await streamText(settings).text);
        const langchain = new ChatSetun({ model, ...options });
        texts.invoked.push((await langchain.invoke(prompt)).text);
        let chunked = "";
        for await (const chunk of await langchain.stream(prompt)) chunked += chunk.text;
        texts.chunked.push(chunked);
        provideModel(model, options);
        texts.prompted.push(await (await LanguageModel.create()).prompt(prompt));
      }
      console.log(JSON.stringify({ core, plain, texts }));
    `);
    const { completions, echoed, ...chats } = texts;
    expect(core.filter(Boolean).length).toBeGreaterThan(5);
    for (const [name, all] of Object.entries(chats)) expect([name, all]).toEqual([name, core]);
    expect({ completions, echoed }).toEqual({ completions: plain, echoed: plain });
  });
});

describe("the AI SDK", () => {
  it("generates objects by their schema, without warnings", async () => {
    const { objects, chained, streamed, warnings, usage } = await inNode(`
      import { ChatPromptTemplate } from "@langchain/core/prompts";
      import { ChatSetun } from "setun/langchain";
      import { generateText, Output, streamText } from "ai";
      import { z } from "zod";
      import { createSetun } from "setun/ai-sdk";
      const model_ = createSetun(model)();
      const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(9), pets: z.array(z.enum(["cat", "dog"])).max(2) });
      const objects = [];
      const warnings = [];
      let usage;
      for (const { prompt, seed } of drawn.slice(0, 4)) {
        const result = await generateText({ model: model_, prompt, seed, temperature: 1, output: Output.object({ schema }) });
        objects.push(schema.parse(result.output));
        warnings.push(...(result.warnings ?? []));
        usage = result.usage;
      }
      const { partialOutputStream, output } = streamText({ model: model_, prompt: "The dog", seed: 1, output: Output.object({ schema }) });
      let parts = 0;
      for await (const _ of partialOutputStream) parts += 1;
      // By LangChain the same answer, as text and then checked by the schema.
      const langchain = new ChatSetun({ model, options: { seed: drawn[0].seed, temperature: 1 } });
      const prompt = ChatPromptTemplate.fromMessages([["human", "{text}"]]);
      const chained = await prompt.pipe(langchain.withStructuredOutput(schema)).invoke({ text: drawn[0].prompt });
      console.log(JSON.stringify({ objects, chained, streamed: [parts, await output], warnings, usage }));
    `);
    expect(objects).toHaveLength(4);
    expect(chained).toEqual(objects[0]);
    expect(streamed[0]).toBeGreaterThan(1);
    expect(streamed[1]).toHaveProperty("age");
    expect(warnings).toEqual([]);
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.outputTokens).toBeGreaterThan(0);
  });

  it("streams, and is aborted", async () => {
    const { parts, aborted, cached } = await inNode(`
      import { generateText, streamText } from "ai";
      import { createSetun } from "setun/ai-sdk";
      const setun = createSetun(model)();
      const parts = [];
      for await (const { type } of streamText({ model: setun, prompt: "The dog", maxOutputTokens: 4, temperature: 0 }).fullStream) parts.push(type);
      const controller = new AbortController();
      let aborted = "no";
      const { fullStream } = streamText({ model: setun, prompt: "The dog", abortSignal: controller.signal });
      for await (const { type } of fullStream) {
        if (type === "text-delta") controller.abort();
        aborted = type;
      }
      const long = "Once upon a time there was a fox. ".repeat(8);
      await generateText({ model: setun, prompt: long, maxOutputTokens: 1 });
      const { usage } = await generateText({ model: setun, prompt: long, maxOutputTokens: 1 });
      console.log(JSON.stringify({ parts, aborted, cached: usage.inputTokenDetails.cacheReadTokens }));
    `);
    expect(parts[0]).toBe("start");
    expect(parts.filter((/** @type {string} */ type) => type === "text-delta").length).toBeGreaterThan(1);
    expect(parts.at(-1)).toBe("finish");
    expect(aborted).toBe("abort");
    expect(cached).toBeGreaterThan(10);
  });

  it("embeds", async () => {
    const { same, other, openai } = await inNode(`
      import { cosineSimilarity, embedMany } from "ai";
      import { createSetun } from "setun/ai-sdk";
      import { SetunEmbeddings } from "setun/langchain";
      import { createClient } from "setun/openai";
      const values = ["The dog ran.", "The dog ran.", "Lily ate a cake with Tom."];
      const { embeddings } = await embedMany({ model: createSetun(model).embeddingModel(), values });
      const { data } = await createClient(model).embeddings.create({ input: values });
      const vectors = await new SetunEmbeddings({ model }).embedDocuments(values);
      const isEqual = (vector, index) => vector.every((value, at) => value === embeddings[index][at]);
      const openai = data.map(({ embedding }) => embedding).every(isEqual) && vectors.every(isEqual);
      const [a, b, c] = embeddings;
      console.log(JSON.stringify({ same: cosineSimilarity(a, b), other: cosineSimilarity(a, c), openai }));
    `);
    expect(same).toBeCloseTo(1, 5);
    expect(other).toBeLessThan(0.999);
    expect(openai).toBe(true);
  });
});

describe("the OpenAI client", () => {
  it("has the core's log-probabilities, several texts and errors", async () => {
    const { tokens, plain, many, errors } = await inNode(`
      import { createClient } from "setun/openai";
      const client = createClient(model);
      const options = { temperature: 0, maxTokens: 6, logprobs: true, topLogprobs: 2 };
      const plain = [];
      for await (const { text, logprob } of model.generate("The dog", options)) plain.push([text, logprob]);
      const { choices } = await client.completions.create({ prompt: "The dog", temperature: 0, max_tokens: 6, logprobs: 2 });
      const { tokens, token_logprobs } = choices[0].logprobs;
      const several = { prompt: ["The dog", "A frog"], n: 2, seed: 3, temperature: 1, max_tokens: 8 };
      const whole = await client.completions.create(several);
      const streamed = ["", "", "", ""];
      for await (const { choices } of await client.completions.create({ ...several, stream: true })) streamed[choices[0].index] += choices[0].text;
      const first = await model.generate("The dog", { seed: 3, temperature: 1, maxTokens: 8 }).text();
      const errors = [];
      const failing = [
        { model: "gpt", prompt: "a" },
        { prompt: "a", top_p: 2 },
        { prompt: "a", topk: 2 },
        { prompt: "a ".repeat(5000) },
      ];
      for (const params of failing) {
        for (const stream of [false, true])
          errors.push(await client.completions.create({ ...params, stream }).catch(({ status, code, param }) => [status, code, param]));
      }
      const many = { whole: whole.choices.map(({ text }) => text), streamed, first };
      console.log(JSON.stringify({ tokens: tokens.map((text, index) => [text, token_logprobs[index]]), plain, many, errors }));
    `);
    expect(tokens).toEqual(plain);
    expect(many.streamed).toEqual(many.whole);
    expect(many.whole[0]).toBe(many.first);
    expect(new Set(many.whole).size).toBeGreaterThan(2);
    const twice = (/** @type {unknown} */ error) => [error, error];
    expect(errors).toEqual([
      ...twice([404, "not-found", "model"]),
      ...twice([400, "bad-option", "top_p"]),
      ...twice([400, "bad-option", "topk"]),
      ...twice([400, "context-full", null]),
    ]);
  });
});

describe("the Prompt API", () => {
  it("counts tokens, drops the oldest turns, continues a prefix and follows constraints", async () => {
    const told = await inNode(`
      import { LanguageModel, provideModel } from "setun/prompt-api";
      provideModel(model, { temperature: 0, maxTokens: 12 });
      const session = await LanguageModel.create({ initialPrompts: [{ role: "system", content: "A story." }] });
      const before = session.contextUsage;
      const measured = await session.measureContextUsage("Once upon a time");
      await session.append("Once upon a time");
      const after = session.contextUsage;
      let overflows = 0;
      session.oncontextoverflow = () => { overflows += 1; };
      const long = "The dog ran and ran. ".repeat(16);
      for (let i = 0; i < 12; i += 1) await session.prompt(long);
      const used = session.contextUsage;
      const failed = await session.prompt(long.repeat(40)).catch(({ name, quota, requested }) => [name, quota, requested > quota]);
      const fresh = await LanguageModel.create();
      const prefix = await fresh.prompt([{ role: "user", content: "A frog" }, { role: "assistant", content: "jumped over", prefix: true }]);
      const core = await model.chat([{ role: "user", content: "A frog" }, { role: "assistant", content: "jumped over" }], { temperature: 0, maxTokens: 12, continueFinalMessage: true }).text();
      const digits = await fresh.prompt("How many?", { responseConstraint: /[0-9]{3}/ });
      const json = JSON.parse(await fresh.prompt("Who?", { responseConstraint: { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"], additionalProperties: false } }));
      const bad = await fresh.prompt("Who?", { responseConstraint: new RegExp("(?<=a)b") }).catch(({ name }) => name);
      console.log(JSON.stringify({ before, measured, after, overflows, used, window: session.contextWindow, failed, prefix, core, digits, json, bad }));
    `);
    expect(told.before).toBeGreaterThan(0);
    expect(told.after).toBe(told.before + told.measured);
    expect(told.overflows).toBeGreaterThan(0);
    expect(told.used).toBeLessThanOrEqual(told.window);
    expect(told.failed).toEqual(["QuotaExceededError", told.window, true]);
    expect(told.prefix).toBe(told.core);
    expect(told.digits).toMatch(/^[0-9]{3}$/);
    expect([1, 2]).toContain(told.json.n);
    expect(told.bad).toBe("NotSupportedError");
  });
});

describe("the examples", () => {
  /** @param {string} name */
  async function copied(name) {
    const example = fileURLToPath(new URL(`../examples/${name}`, import.meta.url));
    await writeFiles(project.folder, { [name]: readFileSync(example, "utf8") });
    return join(project.folder, name);
  }

  it("stream a story with the AI SDK", async () => {
    const script = await copied("ai-sdk.mjs");
    const output = execFileSync(process.execPath, [...NODE_OPTIONS, script, "The dog"], { encoding: "utf8" });
    expect(output).toMatch(/^The dog.+\n(stop|length): \d+ tokens\n$/s);
  });

  it("answer in a page through the Prompt API", async () => {
    await copied("prompt-api.html");
    const server = await startServer({ root: project.folder, isolated: false, strict: false });
    const browser = await launchChromium();
    const page = await browser.newPage();
    /** @type {string[]} */
    const errors = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    await page.goto(`${server.url}/prompt-api.html`);
    await page.fill("#source", `${server.url}/model/`);
    await page.fill("#prompt", "Once upon a time");
    await page.click("#ask");
    await page.waitForFunction(() =>
      /finished|Error/.test(document.getElementById("status")?.textContent ?? ""),
    );
    expect(await page.textContent("#status")).toMatch(/^finished: \d+ of \d+ tokens in use$/);
    expect((await page.textContent("#output"))?.length).toBeGreaterThan(20);
    await browser.close();
    await server.stop();
    expect(errors).toEqual([]);
  });
});
