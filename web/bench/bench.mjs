#!/usr/bin/env node
/**
 * Measures setun's builds, wllama and transformers.js, with models of the same shape, in turn, in one browser.
 *
 *     node bench.mjs '{"model": FOLDER, "peers": [FILE.gguf, …], "threads": [1, 2], "prompt": N, "generate": N, "repeat": R}'
 *
 * With `"plain"` pages are not cross-origin isolated, so workers share weights instead of memory. With `"text"`, a prompt for models with one tokenizer, transformers.js has the folder's model as ONNX, and of WebLLM the
 * scripts are measured. Prints a JSON array: for each engine its name, build and threads, of each round the tokens a second,
 * of each start the milliseconds to the first token, and the bytes of its scripts and WebAssembly after brotli. Browser in $CHROME.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { launch } from "../browser.mjs";
import { fileOf, isModel, ONNX, peerAddress, serve } from "./server.mjs";

/** Tokens of a warm-up, of the prompt and after it. */
const WARM_UP = 4;

/** All that a page of WebLLM has before it fetches a model with its compiled library. */
const WEB_LLM = "/bench/node_modules/@mlc-ai/web-llm/lib/index.js";

/** Bytes after brotli by path, which take a minute for the largest. @type {Map<string, number>} */
const compressed = new Map();

/**
 * @typedef {{ model: string, peers: string[], threads: number[], prompt: number, generate: number, repeat: number, text?: string, plain?: boolean }} Options
 */

try {
  const options = JSON.parse(process.argv[2]);
  process.stdout.write(`${JSON.stringify(await bench(options))}\n`);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

/** @param {Options} options */
async function bench(options) {
  const server = await serve(options.model, options.peers, options.text !== undefined, !options.plain);
  const browser = await launch();
  try {
    const results = [];
    for (const threads of options.threads) {
      const engines = [];
      for (const engine of contestants(options, server.source, threads)) {
        engines.push(await open(browser, server.page, engine));
      }
      const measured = await takeTurns(engines, options);
      for (const { context } of engines) await context.close();
      results.push(...(await addStarts(browser, server.page, engines, measured, options)));
    }
    if (options.text !== undefined) results.push(webLlm());
    return results;
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** Measurements with a number of threads: name, engine and options. */
function contestants({ peers, prompt, generate, text }, source, threads) {
  const ours = ["relaxed", "simd128"].map((level) => {
    return { name: `setun ${level}`, engine: "setun", options: { source, level, threads } };
  });
  const theirs = peers.map((path, index) => {
    const context = prompt + generate + WARM_UP;
    const options = { source: peerAddress(index), threads, context };
    return { name: `wllama ${basename(path, ".gguf")}`, engine: "wllama", options };
  });
  const onnx = { name: "transformers.js", engine: "transformers", options: { source: ONNX, threads } };
  return [...ours, ...theirs, ...(text === undefined ? [] : [onnx])];
}

/** Opens an engine in a page of its own, which is a process of its own. */
async function open(browser, address, { name, engine, options }) {
  say(`loading ${name}, ${options.threads} threads`);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForFunction(() => "bench" in window);
  const run = ([engine, options]) => window.bench.open(engine, options);
  const { build, threads } = await page.evaluate(run, [engine, options]).catch((error) => {
    throw new Error(`${name}: ${error.message}`);
  });
  if (threads !== options.threads) {
    throw new Error(`${name}: runs ${threads} threads, expected ${options.threads}`);
  }
  return { name, build, threads, context, page, engine, options };
}

/** Rounds in which the engines take turns, after one to warm up. */
async function takeTurns(engines, { prompt, generate, repeat, text }) {
  const measure = ([prompt, generate]) => window.bench.measure(prompt, generate);
  const given = { tokens: prompt, text };
  for (const { page } of engines) await page.evaluate(measure, [{ ...given, tokens: WARM_UP }, WARM_UP]);
  const results = engines.map(({ name, build, threads }) => ({ name, build, threads, rounds: [] }));
  for (let round = 1; round <= repeat; round += 1) {
    for (const [index, { name, page }] of engines.entries()) {
      say(`${name}: round ${round} of ${repeat}`);
      const found = await page.evaluate(measure, [given, generate]);
      if (found.times.length !== generate) {
        throw new Error(`${name}: generated ${found.times.length} tokens, expected ${generate}`);
      }
      results[index].rounds.push(speeds(found));
    }
  }
  return results;
}

/** Starts of each engine in fresh pages, in turn: times, and what a page fetches but for the model. */
async function addStarts(browser, address, engines, measured, { repeat, text }) {
  const results = measured.map((each) => ({ ...each, starts: [], download: 0 }));
  for (let round = 1; round <= repeat; round += 1) {
    for (const [index, { name, engine, options }] of engines.entries()) {
      say(`${name}: start ${round} of ${repeat}`);
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(address);
      await page.waitForFunction(() => "bench" in window);
      const addresses = new Set();
      context.on("request", (request) => addresses.add(request.url()));
      const start = ([engine, options, prompt]) => window.bench.start(engine, options, prompt);
      const time = await page.evaluate(start, [engine, options, { tokens: WARM_UP, text }]);
      await context.close();
      results[index].starts.push(time);
      if (round === 1) results[index].download = bytesOf(addresses);
    }
  }
  return results;
}

/** Bytes of scripts and WebAssembly after brotli. @param {Iterable<string>} addresses */
function bytesOf(addresses) {
  const served = [...addresses].filter((address) => address.startsWith("http"));
  const paths = new Set(served.map((address) => new URL(address).pathname).filter((path) => !isModel(path)));
  let bytes = 0;
  for (const path of paths) {
    const size = compressed.get(path) ?? brotliCompressSync(readFileSync(fileOf(path))).length;
    compressed.set(path, size);
    bytes += size;
  }
  return bytes;
}

/** WebLLM's models are compiled for WebGPU and fetched from its own servers, so nothing runs here. */
function webLlm() {
  const download = bytesOf([`http://localhost${WEB_LLM}`]);
  return { name: "web-llm", build: "scripts alone", threads: 0, rounds: [], starts: [], download };
}

/** Tokens a second until the first one came, and from there on. */
function speeds({ promptTokens, times, tokens }) {
  const [first, last] = [times[0], times.at(-1)];
  const decode = times.length > 1 ? ((times.length - 1) * 1000) / (last - first) : null;
  const hash = createHash("sha256").update(tokens.join(" ")).digest("hex").slice(0, 16);
  const told = tokens.length > 0 ? hash : null;
  return { promptTokens, prefill: (promptTokens * 1000) / first, decode, tokensHash: told };
}

function say(what) {
  process.stderr.write(`bench: ${what}\n`);
}
