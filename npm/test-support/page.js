/** Test pages and the functions that run in them. */

/** A page whose only script makes the package reachable for tests. */
export const INDEX_HTML = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>setun</title><link rel="icon" href="data:," /></head>
  <body><script type="module" src="./main.js"></script></body>
</html>
`;

/** For pages with a bundler. */
export const BUNDLED_MAIN = 'import * as setun from "setun";\nwindow.setun = setun;\n';

/** A page with the script that a bundler has written to `folder`. @param {string} folder */
export const bundledHtml = (folder) => INDEX_HTML.replace("./main.js", `./${folder}/main.js`);

/** Runs in the page: loads the story model, and says how that fails. @param {object} [load] */
export const codeOfLoad = (load) =>
  /** @type {any} */ (globalThis).setun
    .load(undefined, load ?? {})
    .catch((/** @type {any} */ error) => [error.code, error.message]);

/** For pages without one. */
export const PLAIN_MAIN = BUNDLED_MAIN.replace('"setun"', '"./node_modules/setun/dist/index.js"');

/** A prompt with options that give the same text in every build and in Node. */
export const STORY = { prompt: "Once upon a time", options: { maxTokens: 40, temperature: 0.8, seed: 11 } };

/** A prompt whose answer a grammar gives. */
export const STRUCTURED = {
  prompt: "The",
  options: { responseFormat: { type: "choice", choices: ["a dog"] } },
};

/**
 * Runs in the page: loads, tells {@link STORY}, and says all there is to know of it.
 * @param {{ prompt: string, options: object, source?: string, load?: object }} story
 */
export async function tellStory({ prompt, options, source, load = {} }) {
  const { setun } = /** @type {any} */ (globalThis);
  const model = await setun.load(source, load);
  const generation = model.generate(prompt, options);
  const deltas = [];
  for await (const delta of generation) deltas.push(delta);
  const result = await generation.result;
  await model.dispose();
  const tokens = deltas.map(({ token, logprob }) => ({ token, logprob }));
  return { info: model.info, deltas: deltas.map(({ text }) => text), tokens, result };
}

/**
 * The parts of the package that a page fetched: of the builds' code there must be one.
 * @param {string[]} requests
 */
export function fetched(requests) {
  const paths = requests.map((address) => new URL(address, "http://localhost").pathname);
  return {
    code: [...new Set(paths.filter((path) => path.endsWith(".wasm")))],
    models: paths.filter((path) => /stories[^/]*\.safetensors$/.test(path)),
  };
}
