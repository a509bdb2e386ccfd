/** Page of the benchmark: opens one engine with a model and measures on request. */

/**
 * @typedef {object} Round What was measured, in milliseconds since the request.
 * @property {number} promptTokens As the engine counts them.
 * @property {number[]} times When each token arrived.
 * @property {number[]} tokens Their ids, where the engine tells.
 *
 * @typedef {object} Engine
 * @property {string} build What runs.
 * @property {number} threads
 * @property {(prompt: number, generate: number) => Promise<Round>} measure
 */

/** Opens setun through the package's own interface. @returns {Promise<Engine>} */
async function openSetun({ source, level, threads }) {
  const { load } = await import("../node_modules/setun/dist/index.js");
  const model = await load(source, { backend: level, threads });
  const measure = async (prompt, generate) => {
    const text = await promptText(model, prompt);
    const [times, tokens] = [[], []];
    const begun = performance.now();
    const generation = model.generate(text, { maxTokens: generate, temperature: 0 });
    for await (const { token } of generation) {
      times.push(performance.now() - begun);
      tokens.push(token);
    }
    const { usage } = await generation.result;
    return { promptTokens: usage.promptTokens, times, tokens };
  };
  return { build: model.info.build, threads: model.info.threads, measure };
}

/** A text of about this many tokens; tokenizing its text again may differ. */
async function promptText(model, tokens) {
  const numbers = Array.from({ length: tokens }, (_, index) => (index * 37) % 1000);
  const ids = await model.tokenize(numbers.join(" "));
  return ids.length > tokens ? model.detokenize(ids.slice(0, tokens)) : numbers.join(" ");
}

/** Opens wllama without a GPU. @returns {Promise<Engine>} */
async function openWllama({ source, threads, context }) {
  const { Wllama } = await import("./node_modules/@wllama/wllama/esm/index.js");
  const code = new URL("./node_modules/@wllama/wllama/esm/wasm/wllama.wasm", import.meta.url);
  const wllama = new Wllama({ default: code.href }, { suppressNativeLog: true });
  const model = await (await fetch(source)).blob();
  await wllama.loadModel([model], { n_ctx: context, n_threads: threads, n_gpu_layers: 0, n_parallel: 1 });
  const measure = async (prompt, generate) => {
    const times = [];
    const begun = performance.now();
    let promptTokens;
    const chunks = await wllama.createCompletion({
      ...{ prompt: letters(prompt), max_tokens: generate, temperature: 0, stream: true },
      // Every token is computed and counted: none comes from an earlier prompt, and none ends it.
      ...{ cache_prompt: false, ignore_eos: true, timings_per_token: true },
    });
    for await (const { timings } of chunks) {
      if (timings === undefined) continue;
      promptTokens = timings.prompt_n;
      // The last chunk may repeat the count of the one before it.
      if (timings.predicted_n > times.length) times.push(performance.now() - begun);
    }
    return { promptTokens, times, tokens: [] };
  };
  return {
    build: wllama.isMultithread() ? "threads" : "one thread",
    threads: wllama.getNumThreads(),
    measure,
  };
}

/** A text of this many tokens, including the first one, for a tokenizer of letters. */
function letters(tokens) {
  return Array.from({ length: tokens - 1 }, (_, index) => "bcdfgjkmnpqrstvwxz"[(index * 7) % 18]).join("");
}

const OPEN = { setun: openSetun, wllama: openWllama };

/** @type {Engine} */
let engine;

window.bench = {
  open: async (name, options) => {
    engine = await OPEN[name](options);
    return { build: engine.build, threads: engine.threads };
  },
  measure: (prompt, generate) => engine.measure(prompt, generate),
};
