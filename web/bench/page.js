/** Page of the benchmark: opens one engine with a model and measures on request. */

/**
 * @typedef {object} Round What was measured, in milliseconds since the request.
 * @property {number} promptTokens As the engine counts them.
 * @property {number[]} times When each token arrived.
 * @property {number[]} tokens Their ids, of setun.
 *
 * @typedef {object} Prompt
 * @property {number} tokens About as many.
 * @property {string} [text] The text itself, for models with one tokenizer.
 *
 * @typedef {object} Engine
 * @property {string} build What runs.
 * @property {number} threads
 * @property {(prompt: Prompt, generate: number) => Promise<Round>} measure
 */

/** Opens setun through the package's own interface. @returns {Promise<Engine>} */
async function openSetun({ source, level, threads }) {
  const { load } = await import("../node_modules/setun/dist/index.js");
  const model = await load(source, { backend: level, threads });
  const measure = async (prompt, generate) => {
    const text = prompt.text ?? (await promptText(model, prompt.tokens));
    // Every token is computed: none comes from an earlier round.
    await model.resetPrefixCache();
    const [times, tokens] = [[], []];
    const begun = performance.now();
    const generation = model.generate(text, { maxTokens: generate, minTokens: generate, temperature: 0 });
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
  const { Wllama } = await import("./node_modules/@wllama/wllama/esm/index.min.js");
  const code = new URL("./node_modules/@wllama/wllama/esm/wasm/wllama.wasm", import.meta.url);
  const wllama = new Wllama({ default: code.href }, { suppressNativeLog: true });
  const model = await (await fetch(source)).blob();
  await wllama.loadModel([model], { n_ctx: context, n_threads: threads, n_gpu_layers: 0, n_parallel: 1 });
  const measure = async (prompt, generate) => {
    const times = [];
    const begun = performance.now();
    let promptTokens;
    const chunks = await wllama.createCompletion({
      ...{
        prompt: prompt.text ?? letters(prompt.tokens),
        max_tokens: generate,
        temperature: 0,
        stream: true,
      },
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

/** Opens transformers.js without a GPU. @returns {Promise<Engine>} */
async function openTransformers({ source, threads }) {
  const modules = new URL("./node_modules/", import.meta.url);
  const { env, AutoModelForCausalLM, AutoTokenizer } = await import(
    "./node_modules/@huggingface/transformers/dist/transformers.min.js"
  );
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: "/" });
  Object.assign(env, { useBrowserCache: false, useWasmCache: false });
  Object.assign(env.backends.onnx.wasm, {
    wasmPaths: new URL("onnxruntime-web/dist/", modules).href,
    numThreads: threads,
  });
  const tokenizer = await AutoTokenizer.from_pretrained(source);
  const model = await AutoModelForCausalLM.from_pretrained(source, { dtype: "q4", device: "wasm" });
  const measure = async ({ text }, generate) => {
    const inputs = tokenizer(text);
    const times = [];
    const begun = performance.now();
    let isPrompt = true;
    const put = () => {
      if (!isPrompt) times.push(performance.now() - begun);
      isPrompt = false;
    };
    const length = { max_new_tokens: generate, min_new_tokens: generate, do_sample: false };
    await model.generate({ ...inputs, ...length, streamer: { put, end: () => {} } });
    return { promptTokens: inputs.input_ids.dims[1], times, tokens: [] };
  };
  return { build: "wasm, 4 bits", threads, measure };
}

const OPEN = { setun: openSetun, wllama: openWllama, transformers: openTransformers };

/** @type {Engine} */
let engine;

window.bench = {
  open: async (name, options) => {
    engine = await OPEN[name](options);
    return { build: engine.build, threads: engine.threads };
  },
  measure: (prompt, generate) => engine.measure(prompt, generate),
  /** Milliseconds from nothing to the first token. */
  start: async (name, options, prompt) => {
    const begun = performance.now();
    const started = await OPEN[name](options);
    await started.measure(prompt, 1);
    return performance.now() - begun;
  },
};
