#!/usr/bin/env node
/**
 * Measures setun's builds, and wllama, with models of the same shape, in turn, in one browser.
 *
 *     node bench.mjs '{"model": FOLDER, "peers": [FILE.gguf, …], "threads": [1, 2], "prompt": N, "generate": N, "repeat": R}'
 *
 * Prints a JSON array: for each engine its name, build and threads, and of each round the tokens a second.
 * Browser in $CHROME.
 */

import { createHash } from "node:crypto";
import { basename } from "node:path";
import { launch } from "../browser.mjs";
import { peerAddress, serve } from "./server.mjs";

/** Tokens of a warm-up, of the prompt and after it. */
const WARM_UP = 4;

/** @typedef {{ model: string, peers: string[], threads: number[], prompt: number, generate: number, repeat: number }} Options */

try {
  const options = JSON.parse(process.argv[2]);
  process.stdout.write(`${JSON.stringify(await bench(options))}\n`);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

/** @param {Options} options */
async function bench(options) {
  const server = await serve(options.model, options.peers);
  const browser = await launch();
  try {
    const results = [];
    for (const threads of options.threads) {
      const engines = [];
      for (const engine of contestants(options, server.source, threads)) {
        engines.push(await open(browser, server.page, engine));
      }
      results.push(...(await takeTurns(engines, options)));
      for (const { context } of engines) await context.close();
    }
    return results;
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** Measurements with a number of threads: name, engine and options. */
function contestants({ peers, prompt, generate }, source, threads) {
  const ours = ["relaxed", "simd128"].map((level) => {
    return { name: `setun ${level}`, engine: "setun", options: { source, level, threads } };
  });
  const theirs = peers.map((path, index) => {
    const context = prompt + generate + WARM_UP;
    const options = { source: peerAddress(index), threads, context };
    return { name: `wllama ${basename(path, ".gguf")}`, engine: "wllama", options };
  });
  return [...ours, ...theirs];
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
  return { name, build, threads, context, page };
}

/** Rounds in which the engines take turns, after one to warm up. */
async function takeTurns(engines, { prompt, generate, repeat }) {
  const measure = ([prompt, generate]) => window.bench.measure(prompt, generate);
  for (const { page } of engines) await page.evaluate(measure, [WARM_UP, WARM_UP]);
  const results = engines.map(({ name, build, threads }) => ({ name, build, threads, rounds: [] }));
  for (let round = 1; round <= repeat; round += 1) {
    for (const [index, { name, page }] of engines.entries()) {
      say(`${name}: round ${round} of ${repeat}`);
      const found = await page.evaluate(measure, [prompt, generate]);
      if (found.times.length !== generate) {
        throw new Error(`${name}: generated ${found.times.length} tokens, expected ${generate}`);
      }
      results[index].rounds.push(speeds(found));
    }
  }
  return results;
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
