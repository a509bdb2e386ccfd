/**
 * The scene of a document's block: the variables that its reader has, in a page or in Node. A test writes this file
 * into its project, beside the blocks and a folder `model`.
 */

import * as setun from "setun";

const isPage = typeof document === "object";
const all = /** @type {any} */ (globalThis);

/** Results of the generations that blocks have started. @type {Promise<any>[]} */
const results = [];
/** Names of the models that blocks have loaded. @type {string[]} */
const loaded = [];
/** Calls of tools that blocks have run. @type {unknown[][]} */
const ran = [];
/** Options that a scene adds to those of each request. @type {any} */
let added = {};

/**
 * Runs a block, once with each of `runs` added to the options of its requests. With `calls` requests with tools are
 * answered by calls, until the last message is a result. With `installed` the model is that of `LanguageModel`, and with
 * `unfinished` the page is loaded again within a text.
 * @param {string} file
 * @param {{ runs?: object[], calls?: boolean, installed?: boolean, unfinished?: boolean, hub?: string }} scene
 */
export async function play(file, { runs = [{}], calls = false, installed = false, unfinished = false, hub }) {
  if (hub !== undefined) redirectTo(hub);
  if (unfinished) await leaveUnfinished();
  await prepare(calls);
  const { install } = await import("setun/prompt-api");
  if (installed) install(() => all.model, { force: true });
  else delete all.LanguageModel;
  try {
    for (const [index, run] of runs.entries()) {
      added = run;
      await import(`./${file}?${index}`);
    }
    return { ...(await texts()), loaded, ran, started: all.started };
  } catch (/** @type {any} */ error) {
    return { failed: `${error.name}: ${error.message}` };
  }
}

/** @param {boolean} calls */
async function prepare(calls) {
  const files = await modelFiles();
  const parts = ["config.json", "model.safetensors", "tokenizer.json"].map((name) => files[name]);
  const [config, weights, tokenizer] = parts;
  const messages = [{ role: "user", content: "Why is the sky blue?" }];
  const schema = {
    type: "object",
    properties: { city: { enum: ["Oslo", "Bern"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["city", "days"],
  };
  const model = watched(await setun.load(files), calls);
  Object.assign(all, {
    ...{ config, weights, tokenizer, messages, schema, model, prompt: "Once upon a time" },
  });
  Object.assign(all, { models: setun.models, load: noted, source: isPage ? "/model/" : "./model/" });
  all.run = async (/** @type {unknown[]} */ ...call) => JSON.stringify({ place: ran.push(call) });
  all.start = (/** @type {any} */ { info }) => {
    all.started = info.build;
  };
  all.output = isPage ? document.body.appendChild(document.createElement("output")) : collector();
  if (isPage) await preparePage(files);
}

/** What only pages have. @param {Record<string, Blob>} files */
async function preparePage(files) {
  const transfer = new DataTransfer();
  for (const [name, blob] of Object.entries(files)) transfer.items.add(new File([blob], name));
  const input = document.body.appendChild(document.createElement("input"));
  Object.assign(input, { type: "file", multiple: true, files: transfer.files });
  const event = new DragEvent("drop", { dataTransfer: transfer });
  const { isolate } = await import("setun/isolate");
  Object.assign(all, { input, event, isolate, showDirectoryPicker: () => folderOf(files) });
}

/** A folder of the page's own file system. @param {Record<string, Blob>} files */
async function folderOf(files) {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle("chosen", { create: true });
  for (const [name, blob] of Object.entries(files)) {
    const handle = await folder.getFileHandle(name, { create: true });
    await blob.stream().pipeTo(await handle.createWritable());
  }
  return folder;
}

/** The files of the folder `model`. @returns {Promise<Record<string, Blob>>} */
async function modelFiles() {
  const { readFile = undefined } = isPage ? {} : await import("node:fs/promises");
  const read = async (/** @type {string} */ name) =>
    readFile ? new Blob([await readFile(`model/${name}`)]) : (await fetch(`./model/${name}`)).blob();
  const names = JSON.parse(await (await read("names.json")).text());
  const files = await Promise.all(names.map(async (/** @type {string} */ name) => [name, await read(name)]));
  return Object.fromEntries(files);
}

/** `load`, whose models are counted. @param {any[]} given */
async function noted(...given) {
  const model = await setun.load(...given);
  loaded.push(model.info.name);
  return model;
}

/** A model whose generations must all end well. @param {any} model @param {boolean} calls */
function watched(model, calls) {
  /** @param {unknown} messages @param {any} options */
  const withMore = (messages, options = {}) => {
    if (!calls || options.tools === undefined) return { ...options, ...added };
    const isAnswered = /** @type {any[]} */ (messages).at(-1).role === "tool";
    const own = { toolChoice: isAnswered ? "none" : "required", parallelToolCalls: false };
    return { ...options, maxTokens: 120, seed: 5, temperature: 1, ...own, ...added };
  };
  const requests = ["chat", "generate", "generateMany"];
  const get = (/** @type {any} */ target, /** @type {string} */ name) => {
    const value = target[name];
    if (typeof value !== "function") return value;
    return (/** @type {any[]} */ first, /** @type {any} */ options, /** @type {any[]} */ ...rest) => {
      if (!requests.includes(name)) return value.call(target, first, options, ...rest);
      const started = value.call(target, first, withMore(first, options));
      for (const generation of [started].flat()) {
        results.push(generation.result);
        generation.result.catch(() => undefined);
      }
      return started;
    };
  };
  return new Proxy(model, { get });
}

/** What the blocks have written, and how their generations ended. */
async function texts() {
  const ended = await Promise.all(results);
  const output = all.output.textContent;
  const body = isPage ? document.body.textContent : "";
  return { output, body, ends: ended.map(({ finishReason, text }) => [finishReason, text]) };
}

/** What takes texts where there is no document. */
function collector() {
  return {
    textContent: "",
    /** @param {string[]} texts */
    append(...texts) {
      this.textContent += texts.join("");
    },
  };
}

/** Loads the page again while a text is being read. */
async function leaveUnfinished() {
  if (sessionStorage.getItem("left") !== null) return;
  sessionStorage.setItem("left", "once");
  const model = await setun.load("hf:owner/name", { shared: true, resume: true });
  const reader = model.generate("Once upon a time", { maxTokens: 200 })[Symbol.asyncIterator]();
  for (let token = 0; token < 3; token += 1) await reader.next();
  location.reload();
  await new Promise(() => undefined);
}

/** Has the addresses of other hosts answered by a server of this machine. @param {string} hub */
function redirectTo(hub) {
  const { fetch } = globalThis;
  globalThis.fetch = (address, init) => {
    const url = String(address instanceof Request ? address.url : address);
    return fetch(url.replace(/^https:\/\/(huggingface\.co|example\.org)/, hub), init);
  };
}
