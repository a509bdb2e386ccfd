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

/** A chat template that gives a lone message the tokens which a prompt of its text has. */
export const PLAIN_TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";

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
