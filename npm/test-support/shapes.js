/** The shapes in which a package offers a model, in whatever host: the core and three adapters. */

/** A module that makes the package and its adapters reachable for {@link tellShapes}, in pages and in Node. */
export const SHAPES_MAIN = `import * as aiSdk from "setun/ai-sdk";
import * as openai from "setun/openai";
import * as promptApi from "setun/prompt-api";
import * as setun from "setun";
Object.assign(globalThis, { aiSdk, openai, promptApi, setun });
`;

/** What a page without a bundler resolves these imports to. */
export const IMPORT_MAP = {
  imports: {
    setun: "./node_modules/setun/dist/index.js",
    ...Object.fromEntries(
      ["ai-sdk", "openai", "prompt-api"].map((name) => [
        `setun/${name}`,
        `./node_modules/setun/dist/adapters/${name}.js`,
      ]),
    ),
    "@ai-sdk/provider": "./node_modules/@ai-sdk/provider/dist/index.js",
  },
};

/** A chat template that gives a lone message the tokens which a prompt of its text has. Of tools it has the names. */
export const PLAIN_TEMPLATE =
  "{{ bos_token }}{# <tool_call> arguments #}{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}" +
  "{% for m in messages %}{{ m.content }}{% endfor %}";

/**
 * Runs in the host: each request through each shape, one after the other. Tokens are those of the generation that the
 * shape started, texts its own.
 * @param {{ source: string, requests: ReturnType<typeof import("./draw-requests.js").drawRequests> }} given
 */
export async function tellShapes({ source, requests }) {
  const { aiSdk, openai, promptApi, setun } = /** @type {any} */ (globalThis);
  const model = await setun.load(source, { store: false });
  /** @type {any} */
  let started;
  const start =
    (/** @type {string} */ name) =>
    (/** @type {any[]} */ ...request) => {
      started = model[name](...request);
      return started;
    };
  const recorded = {
    info: model.info,
    generate: start("generate"),
    chat: start("chat"),
    countTokens: (/** @type {unknown} */ prompt) => model.countTokens(prompt),
  };
  const snake = (/** @type {string} */ name) =>
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  /** @type {Record<string, (prompt: string, options: any) => Promise<string>>} */
  const shapes = {
    core: (prompt, options) => recorded.generate(prompt, options).text(),
    openai: async (prompt, options) => {
      const named = Object.fromEntries(Object.entries(options).map(([name, value]) => [snake(name), value]));
      const messages = [{ role: "user", content: prompt }];
      const answer = await openai.createClient(recorded).chat.completions.create({ ...named, messages });
      return answer.choices[0].message.content;
    },
    aiSdk: async (prompt, { maxTokens, stop, minP, repetitionPenalty, ...same }) => {
      const answer = await aiSdk
        .createSetun(recorded)()
        .doGenerate({
          ...same,
          prompt: [{ role: "user", content: [{ type: "text", text: prompt }] }],
          maxOutputTokens: maxTokens,
          ...(stop && { stopSequences: [stop] }),
          providerOptions: { setun: { minP, repetitionPenalty } },
        });
      if (answer.warnings.length > 0) throw new Error(JSON.stringify(answer.warnings));
      return answer.content.map((/** @type {any} */ { text }) => text).join("");
    },
    promptApi: async (prompt, options) => {
      promptApi.provideModel(recorded, options);
      return (await promptApi.LanguageModel.create()).prompt(prompt);
    },
  };
  /** @type {Record<string, { tokens: number[], text: string }[]>} */
  const told = {};
  for (const [name, ask] of Object.entries(shapes)) {
    told[name] = [];
    for (const { prompt, options } of requests) {
      const text = await ask(prompt, options);
      told[name].push({ tokens: (await started.result).tokens, text });
    }
  }
  await model.dispose();
  return { build: model.info.build, told };
}

/**
 * Runs in the host: each adapter calls a tool, and is aborted in the midst of a text without an end.
 * @param {{ source: string }} given
 */
export async function useTools({ source }) {
  const { aiSdk, openai, promptApi, setun } = /** @type {any} */ (globalThis);
  const model = await setun.load(source, { store: false });
  const inputSchema = {
    type: "object",
    properties: { city: { enum: ["Oslo", "Bern"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["city", "days"],
    additionalProperties: false,
  };
  const tool = { name: "weather", description: "The weather", inputSchema };
  const sampling = { seed: 9, temperature: 1 };
  const endless = { minTokens: 1e6, contextOverflow: { type: "sliding_window", sinks: 4, window: 64 } };

  const client = openai.createClient(model).chat.completions;
  const messages = [{ role: "user", content: "Rain?" }];
  const { choices } = await client.create({
    ...{ ...sampling, messages, tool_choice: "required", parallel_tool_calls: false },
    tools: [{ type: "function", function: { name: tool.name, parameters: inputSchema } }],
  });
  const language = aiSdk.createSetun(model)();
  const prompt = [{ role: "user", content: [{ type: "text", text: "Rain?" }] }];
  const { content } = await language.doGenerate({
    ...{ ...sampling, prompt, tools: [{ type: "function", ...tool }], toolChoice: { type: "required" } },
    providerOptions: { setun: { parallelToolCalls: false } },
  });
  /** @type {unknown[]} */
  const executed = [];
  const execute = async (/** @type {unknown} */ input) => String(executed.push(input));
  // The first answer is a call, and the next one a text.
  const calling = {
    ...{ info: model.info, countTokens: model.countTokens.bind(model) },
    chat: (/** @type {any[]} */ all, /** @type {object} */ options) =>
      model.chat(all, { ...options, toolChoice: all.at(-1).role === "tool" ? "none" : "required" }),
  };
  promptApi.provideModel(calling, { ...sampling, parallelToolCalls: false, maxTokens: 120 });
  await (await promptApi.LanguageModel.create({ tools: [{ ...tool, execute }] })).prompt("Rain?");
  const calls = [
    ...choices[0].message.tool_calls.map((/** @type {any} */ call) => JSON.parse(call.function.arguments)),
    ...content.map((/** @type {any} */ { input }) => JSON.parse(input)),
    ...executed,
  ];

  /** Reads until the first text, then aborts. @param {(signal: AbortSignal) => Promise<AsyncIterable<any>>} start */
  const abort = async (start) => {
    const controller = new AbortController();
    let pieces = 0;
    try {
      for await (const _ of await start(controller.signal)) if (++pieces === 3) controller.abort();
      return "ended";
    } catch (/** @type {any} */ error) {
      return error.name;
    }
  };
  const { minTokens: min_tokens, contextOverflow: context_overflow } = endless;
  promptApi.provideModel(model, { ...sampling, ...endless });
  const session = await promptApi.LanguageModel.create();
  /** @param {ReadableStream} stream */
  async function* read(stream) {
    const reader = stream.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  }
  const aborted = [
    await abort((signal) =>
      client.create({ ...sampling, messages, min_tokens, context_overflow, stream: true }, { signal }),
    ),
    await abort(async (abortSignal) => {
      const providerOptions = { setun: endless };
      return read((await language.doStream({ ...sampling, prompt, abortSignal, providerOptions })).stream);
    }),
    await abort(async (signal) => read(session.promptStreaming("Rain?", { signal }))),
  ];
  const after = await model.generate("The dog", { temperature: 0, maxTokens: 4 }).text();
  await model.dispose();
  return { calls, aborted, after };
}
