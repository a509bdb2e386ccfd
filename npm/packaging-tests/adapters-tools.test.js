/** Tools through the adapters of the packed package, with the real libraries and a model that writes at random. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedModel, largeModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Most declare Node 22 or newer, and run on 20. */
const LIBRARIES = { ai: "7.0.173", "@ai-sdk/provider": "4.0.38", "@langchain/core": "1.4.0", zod: "4.6.6" };

/** Calls as Qwen's template writes them. It only names the tools, so that several calls fit the story model's context. */
const TEMPLATE =
  "{{ mood or '' }}{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}" +
  "{% for m in messages %}{{ m.content or '' }}{% for call in m.tool_calls or [] %}" +
  "<tool_call>\n{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}\n</tool_call>{% endfor %}\n{% endfor %}";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({}, LIBRARIES);
  const { folder } = embeddedModel(project.folder);
  const files = { ...folder, "chat_template.jinja": TEMPLATE };
  const random = largeModel(files, { layers: 1, isVaried: true });
  const paths = Object.entries(files).map(([name, bytes]) => [`model/${name}`, bytes]);
  await writeFiles(project.folder, { ...Object.fromEntries(paths), "random.safetensors": random });
});
afterAll(() => project?.remove());

/** Runs a module in the project, with `model` and a tool; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const begin = `
    import { readdirSync, readFileSync } from "node:fs";
    import { load } from "setun";
    const names = readdirSync("model");
    const files = Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync("model/" + name))]));
    const model = await load(files);
    globalThis.AI_SDK_LOG_WARNINGS = false;
    const parameters = {
      type: "object",
      properties: { city: { enum: ["Oslo", "Bern"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["city", "days"],
      additionalProperties: false,
    };
    const isValid = ({ city, days, ...rest }) =>
      ["Oslo", "Bern"].includes(city) && Number.isInteger(days) && days >= 1 && days <= 9 && Object.keys(rest).length === 0;`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
}

const AI_SDK = `
  import { generateText, isStepCount, streamText, tool } from "ai";
  import { z } from "zod";
  import { createSetun } from "setun/ai-sdk";
  const executed = [];
  const weather = tool({
    description: "The weather",
    inputSchema: z.strictObject({ city: z.enum(["Oslo", "Bern"]), days: z.number().int().min(1).max(9) }),
    execute: async (input) => {
      executed.push(input);
      return { rain: true };
    },
  });
  // At random it would call on until the context is full.
  const providerOptions = { setun: { parallelToolCalls: false } };
  const settings = { model: createSetun(model)(), tools: { weather }, temperature: 1, prompt: "Rain?", providerOptions };`;

describe("the AI SDK", () => {
  it("runs a tool loop of three steps; every input is valid under its schema", async () => {
    const { steps, executed, warnings, valid } = await inNode(`${AI_SDK}
      const result = await generateText({ ...settings, seed: 5, toolChoice: "required", stopWhen: isStepCount(3) });
      const steps = result.steps.map(({ finishReason, toolCalls, toolResults }) => ({
        finishReason,
        calls: toolCalls.length,
        invalid: toolCalls.filter(({ invalid }) => invalid).length,
        results: toolResults.length,
      }));
      const warnings = result.steps.flatMap(({ warnings }) => warnings ?? []);
      console.log(JSON.stringify({ steps, executed, warnings, valid: executed.every(isValid) }));
    `);
    expect(steps).toHaveLength(3);
    for (const { finishReason, calls, invalid, results } of steps) {
      expect(finishReason).toBe("tool-calls");
      expect(calls).toBeGreaterThan(0);
      expect([invalid, results]).toEqual([0, calls]);
    }
    expect(executed.length).toBeGreaterThanOrEqual(3);
    expect(valid).toBe(true);
    expect(warnings).toEqual([]);
  });

  it("runs the loop of an agent through DirectChatTransport, without a server", async () => {
    const { states, executed, valid, errors } = await inNode(`${AI_SDK}
      import { DirectChatTransport, readUIMessageStream, ToolLoopAgent } from "ai";
      const { prompt, ...others } = settings;
      const agent = new ToolLoopAgent({ ...others, seed: 7, toolChoice: "required", stopWhen: isStepCount(3) });
      const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: prompt }] }];
      const stream = await new DirectChatTransport({ agent }).sendMessages({ chatId: "a", trigger: "submit-message", messages });
      const errors = [];
      let last;
      for await (const message of readUIMessageStream({ stream, onError: (error) => errors.push(String(error)) })) last = message;
      const states = last.parts.map(({ type, state }) => (type === "step-start" ? type : [type, state]));
      const inputs = last.parts.flatMap(({ input }) => (input === undefined ? [] : [input]));
      const valid = inputs.every(isValid) && JSON.stringify(inputs) === JSON.stringify(executed);
      console.log(JSON.stringify({ states, executed, valid, errors }));
    `);
    const step = ["step-start", ["tool-weather", "output-available"]];
    expect(states).toEqual([...step, ...step, ...step]);
    expect(executed).toHaveLength(3);
    expect(valid).toBe(true);
    expect(errors).toEqual([]);
  });

  it("streams inputs as they are generated", async () => {
    const { deltas, input, types } = await inNode(`${AI_SDK}
      const toolChoice = { type: "tool", toolName: "weather" };
      const deltas = [], types = new Set();
      let input;
      for await (const part of streamText({ ...settings, seed: 6, toolChoice }).fullStream) {
        types.add(part.type);
        if (part.type === "tool-input-delta") deltas.push(part.delta);
        if (part.type === "tool-call") input ??= part.input;
      }
      console.log(JSON.stringify({ deltas, input, types: [...types] }));
    `);
    expect(deltas.length).toBeGreaterThan(2);
    expect(types).toEqual(expect.arrayContaining(["tool-input-start", "tool-input-end", "tool-result"]));
    expect(JSON.stringify(input)).toContain("city");
  });
});

describe("LangChain", () => {
  it("calls bound tools with valid inputs, whole and streamed, and takes their results", async () => {
    const { inputs, streamed, after, object } = await inNode(`
      import { HumanMessage } from "@langchain/core/messages";
      import { tool } from "@langchain/core/tools";
      import { z } from "zod";
      import { ChatSetun } from "setun/langchain";
      const schema = z.strictObject({ city: z.enum(["Oslo", "Bern"]), days: z.number().int().min(1).max(9) });
      const inputs = [];
      const weather = tool(async (input) => {
        inputs.push(schema.parse(input));
        return "rain";
      }, { name: "weather", description: "The weather", schema });
      const chat = new ChatSetun({ model, options: { seed: 5, temperature: 1 } });
      const bound = chat.bindTools([weather], { tool_choice: "any", parallelToolCalls: false });
      const messages = [new HumanMessage("Rain?")];
      let streamed;
      for await (const chunk of await bound.stream(messages)) streamed = streamed?.concat(chunk) ?? chunk;
      for (let step = 0; step < 2; step += 1) {
        const answer = await bound.invoke(messages);
        if (step === 0) streamed = [streamed.tool_calls, answer.tool_calls];
        messages.push(answer, ...(await Promise.all(answer.tool_calls.map((call) => weather.invoke(call)))));
      }
      const after = (await chat.invoke(messages, { options: { maxTokens: 3 } })).usage_metadata;
      const object = await chat.withStructuredOutput(schema, { method: "functionCalling" }).invoke("Rain?");
      console.log(JSON.stringify({ inputs, streamed, after, object: isValid(object) }));
    `);
    expect(inputs).toHaveLength(2);
    expect(streamed[0]).toHaveLength(1);
    expect(streamed[0]).toEqual(streamed[1]);
    expect(after.output_tokens).toBe(3);
    expect(object).toBe(true);
  });
});

describe("the OpenAI client", () => {
  it("has the same calls whole, streamed and as a response, and takes their results", async () => {
    const { whole, streamed, response, valid, after } = await inNode(`
      import { createClient } from "setun/openai";
      const client = createClient(model);
      const tools = [{ type: "function", function: { name: "weather", parameters } }];
      const messages = [{ role: "user", content: "Rain?" }];
      const params = { messages, tools, tool_choice: "required", parallel_tool_calls: false, seed: 9, temperature: 1 };
      const { choices } = await client.chat.completions.create(params);
      const [call] = choices[0].message.tool_calls;
      const whole = [choices[0].finish_reason, call.function.name, call.function.arguments];
      let [reason, name, text] = [null, "", ""];
      for await (const { choices } of await client.chat.completions.create({ ...params, stream: true })) {
        const [{ delta, finish_reason }] = choices;
        reason = finish_reason;
        for (const { function: { name: given, arguments: more } } of delta.tool_calls ?? []) {
          name ||= given;
          text += more;
        }
      }
      const { output } = await client.responses.create({
        input: "Rain?", tools: [{ type: "function", name: "weather", parameters, strict: true }],
        tool_choice: "required", parallel_tool_calls: false, seed: 9, temperature: 1,
      });
      const response = output.filter(({ type }) => type === "function_call").map(({ name, arguments: text }) => [name, text]);
      const again = [...messages, choices[0].message, { role: "tool", tool_call_id: call.id, content: "rain" }];
      const after = await client.chat.completions.create({ messages: again, tools, tool_choice: "none", max_tokens: 3 });
      console.log(JSON.stringify({ whole, streamed: [reason, name, text], response, valid: isValid(JSON.parse(text)), after: after.usage }));
    `);
    expect(whole.slice(0, 2)).toEqual(["tool_calls", "weather"]);
    expect(streamed).toEqual(whole);
    expect(response).toEqual([whole.slice(1)]);
    expect(valid).toBe(true);
    expect(after.prompt_tokens).toBeGreaterThan(4);
  });
});

describe("random weights at temperature 1", () => {
  it("call with inputs that are valid under their schema, in each shape", async () => {
    const { seeds, valid, inputs } = await inNode(`
      import { generateText, tool } from "ai";
      import { tool as langchainTool } from "@langchain/core/tools";
      import { z } from "zod";
      import { createSetun } from "setun/ai-sdk";
      import { ChatSetun } from "setun/langchain";
      import { createClient } from "setun/openai";
      import { LanguageModel, provideModel } from "setun/prompt-api";
      const random = await load({ "random.safetensors": new Uint8Array(readFileSync("random.safetensors")) });
      const schema = z.strictObject({
        city: z.enum(["Oslo", "Bern"]),
        days: z.number().int().min(1).max(9),
        exact: z.boolean().optional(),
        names: z.array(z.string().max(5)).max(2),
        at: z.strictObject({ hour: z.number().int().min(0).max(23), note: z.string().max(5) }).nullable(),
      });
      const asText = { messages: [{ role: "user", content: "Rain?" }], tool_choice: "required", parallel_tool_calls: false };
      const given = [{ type: "function", function: { name: "weather", parameters: z.toJSONSchema(schema) } }];
      const bound = (seed) => new ChatSetun({ model: random, options: { seed, temperature: 1 } }).bindTools(
        [langchainTool(async () => "", { name: "weather", description: "The weather", schema })],
        { tool_choice: "any", parallelToolCalls: false },
      );
      const shapes = {
        ai: async (seed) => {
          const tools = { weather: tool({ inputSchema: schema }) };
          const providerOptions = { setun: { parallelToolCalls: false } };
          const settings = { model: createSetun(random)(), tools, toolChoice: "required", providerOptions, prompt: "Rain?" };
          return (await generateText({ ...settings, seed, temperature: 1 })).toolCalls.map(({ input }) => input);
        },
        openai: async (seed) => {
          const params = { ...asText, tools: given, seed, temperature: 1 };
          const { choices } = await createClient(random).chat.completions.create(params);
          return choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments));
        },
        responses: async (seed) => {
          const tools = given.map(({ type, function: { name, parameters } }) => ({ type, name, parameters, strict: true }));
          const params = { input: "Rain?", tools, tool_choice: "required", parallel_tool_calls: false, seed, temperature: 1 };
          const { output } = await createClient(random).responses.create(params);
          return output.filter(({ type }) => type === "function_call").map((call) => JSON.parse(call.arguments));
        },
        core: async (seed) => {
          const options = { tools: given, toolChoice: "required", parallelToolCalls: false, seed, temperature: 1 };
          const { toolCalls } = await random.chat(asText.messages, options).result;
          return toolCalls.map((call) => JSON.parse(call.function.arguments));
        },
        langchain: async (seed) => (await bound(seed).invoke("Rain?")).tool_calls.map(({ args }) => args),
        // Its sessions leave the choice to the model: this one calls until it has a result.
        prompt: async (seed) => {
          const inputs = [];
          const execute = async (input) => String(inputs.push(input));
          const inputSchema = z.toJSONSchema(schema);
          const tools = [{ name: "weather", description: "The weather", inputSchema, execute }];
          const choice = (messages) => (messages.at(-1).role === "tool" ? { toolChoice: "none", maxTokens: 3 } : { toolChoice: "required" });
          const chat = (messages, options) => random.chat(messages, { ...options, ...choice(messages), parallelToolCalls: false, seed });
          const countTokens = (...args) => random.countTokens(...args);
          provideModel({ chat, countTokens, info: random.info }, { temperature: 1 });
          await (await LanguageModel.create({ tools })).prompt("Rain?");
          return inputs;
        },
        // The same tools, which the application runs.
        open: async (seed) => {
          const tools = [{ name: "weather", description: "The weather", inputSchema: z.toJSONSchema(schema) }];
          const options = { toolChoice: "required", parallelToolCalls: false, seed };
          const chat = (messages, given) => random.chat(messages, { ...given, ...options });
          provideModel({ chat, countTokens: (...args) => random.countTokens(...args), info: random.info }, { temperature: 1 });
          const session = await LanguageModel.create({ tools, expectedOutputs: [{ type: "tool-call" }] });
          const parts = await session.prompt("Rain?");
          return parts.filter(({ type }) => type === "tool-call").map(({ value }) => value.arguments);
        },
      };
      const seeds = [1, 2, 3, 4, 5, 6];
      const valid = {}, inputs = {};
      for (const [name, call] of Object.entries(shapes)) {
        const all = (await Promise.all(seeds.map(call))).flat();
        valid[name] = all.filter((input) => schema.safeParse(input).success).length;
        inputs[name] = new Set(all.map((input) => JSON.stringify(input))).size;
      }
      console.log(JSON.stringify({ seeds: seeds.length, valid, inputs }));
    `);
    const shapes = ["ai", "openai", "responses", "core", "langchain", "prompt", "open"];
    expect(valid).toEqual(Object.fromEntries(shapes.map((name) => [name, seeds])));
    // Each seed has its own.
    for (const different of Object.values(inputs)) expect(different).toBeGreaterThan(seeds / 2);
  });
});

describe("the Prompt API", () => {
  it("offers its tools as the core does", async () => {
    const { answer, core, calls, counted } = await inNode(`
      import { LanguageModel, provideModel } from "setun/prompt-api";
      const options = { maxTokens: 20, temperature: 1, seed: 4, chatTemplateKwargs: { mood: "A sunny day. " } };
      provideModel(model, options);
      const tools = [{ name: "weather", description: "The weather", inputSchema: parameters, execute: async () => "rain" }];
      const session = await LanguageModel.create({ tools });
      const answer = await session.prompt("Rain?");
      const given = [{ type: "function", function: { name: "weather", description: "The weather", parameters } }];
      const core = await model.chat([{ role: "user", content: "Rain?" }], { ...options, tools: given }).result;
      const without = await (await LanguageModel.create()).measureContextUsage("Rain?");
      const measured = await (await LanguageModel.create({ tools })).measureContextUsage("Rain?");
      const { usage } = core;
      const { chatTemplateKwargs } = options;
      const counted = await model.countTokens([{ role: "user", content: "Rain?" }], { tools: given, chatTemplateKwargs });
      console.log(JSON.stringify({ answer, core: core.text, calls: core.toolCalls, counted: [usage.promptTokens, counted, measured, without] }));
    `);
    expect(answer).toBe(core);
    expect(calls).toEqual([]);
    const [used, , , without] = counted;
    expect(counted).toEqual([used, used, used, without]);
    expect(used).toBeGreaterThan(without);
  });

  it("begins where the template refuses a system message without a user, and refuses what no user mends", async () => {
    const { created, waiting, asked, refused } = await inNode(`
      import { LanguageModel, provideModel } from "setun/prompt-api";
      const roles = "messages | map(attribute='role') | list";
      const template = (condition) => "{% if " + condition + " %}{{ raise_exception('no') }}{% endif %}" +
        "{% for m in messages %}{{ m.content }}\\n{% endfor %}";
      const loaded = (condition) => load({ ...files, "chat_template.jinja": new TextEncoder().encode(template(condition)) });
      const initialPrompts = [{ role: "system", content: "A story." }];
      const waits = await loaded("'user' not in (" + roles + ")");
      provideModel(waits, { maxTokens: 4, temperature: 0 });
      const session = await LanguageModel.create({ initialPrompts });
      const measured = await session.measureContextUsage("The dog");
      const waiting = [session.contextUsage + measured, await waits.countTokens([...initialPrompts, { role: "user", content: "The dog" }])];
      const asked = [await session.prompt("The dog"), await waits.chat([...initialPrompts, { role: "user", content: "The dog" }], { maxTokens: 4, temperature: 0 }).text()];
      provideModel(await loaded("'system' in (" + roles + ")"));
      const refused = await LanguageModel.create({ initialPrompts }).catch(({ name, message }) => [name, message]);
      console.log(JSON.stringify({ created: session.contextWindow > 0, waiting, asked, refused }));
    `);
    expect(created).toBe(true);
    expect(waiting[0]).toBe(waiting[1]);
    expect(asked[0]).toBe(asked[1]);
    expect(refused).toEqual([
      "NotSupportedError",
      expect.stringContaining("the chat template refuses this conversation: no"),
    ]);
  });
});
