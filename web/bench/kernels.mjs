#!/usr/bin/env node
/**
 * Speed of the products of a step, on one thread of a page: `node kernels.mjs ROUNDS VARIANT=MODULE.wasm …`.
 * The modules are `crates/setun-cpu/examples/wasm_bench.rs`. Browser in $CHROME.
 */

import { fileURLToPath } from "node:url";
import { startServer } from "../../npm/test-support/server.js";
import { launch } from "../browser.mjs";
import { send } from "./server.mjs";

/** Matrices of the 2B-4T shape and of Bonsai-4B's: how they are walked, and how many, so that they exceed the caches. */
const CASES = [
  { name: "decode, 6912 × 2560, from memory (212 MB)", prepare: [6912, 2560, 48, 0, 1, 0] },
  { name: "decode, 6912 × 2560, from the cache (4 MB)", prepare: [6912, 2560, 1, 0, 1, 0] },
  { name: "decode, 2560 × 6912 by columns (212 MB)", prepare: [2560, 6912, 48, 1, 1, 0] },
  { name: "prefill of 128, 6912 × 2560", prepare: [6912, 2560, 2, 0, 128, 0] },
  { name: "decode, 9728 × 2560, from memory (224 MB)", prepare: [9728, 2560, 36, 0, 1, 0] },
  { name: "the same by groups of 128", prepare: [9728, 2560, 36, 0, 1, 128] },
  { name: "the same by groups of 32", prepare: [9728, 2560, 36, 0, 1, 32] },
  { name: "prefill of 128, 9728 × 2560 by groups of 128", prepare: [9728, 2560, 2, 0, 128, 128] },
];

const [rounds, ...modules] = process.argv.slice(2);
const answers = {};
const variants = modules.map((argument) => {
  const [variant, path] = argument.split("=");
  answers[`/${variant}.wasm`] = send(path);
  return variant;
});
const server = await startServer({ root: fileURLToPath(new URL(".", import.meta.url)), answers });
const browser = await launch();
try {
  const pages = [];
  for (const variant of variants) pages.push(await open(variant));
  for (const { name, prepare } of CASES) {
    for (const page of pages) await page.evaluate((prepare) => window.prepare(prepare), prepare);
    const speeds = pages.map(() => []);
    for (let round = 0; round < Number(rounds); round += 1) {
      for (const [index, page] of pages.entries())
        speeds[index].push(await page.evaluate(() => window.speed()));
    }
    for (const [index, variant] of variants.entries()) {
      const sorted = speeds[index].toSorted((a, b) => a - b);
      const [median, best] = [sorted[sorted.length >> 1], sorted.at(-1)].map((speed) => speed.toFixed(1));
      console.log(`${variant}, ${name}: ${median} G weights/s (best ${best})`);
    }
  }
} finally {
  await browser.close();
  await server.stop();
}

/** A page with the module of a variant. @param {string} variant */
async function open(variant) {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${server.url}/index.html`);
  await page.evaluate(async (address) => {
    const code = await (await fetch(address)).arrayBuffer();
    const { exports } = (await WebAssembly.instantiate(code)).instance;
    let products = 0;
    window.prepare = (shape) => {
      products = exports.prepare(...shape);
      if (products === 0) throw new Error("the matrices cannot be made");
      exports.run();
    };
    /** Billions of multiply-adds a second, over a tenth of a second at least. */
    window.speed = () => {
      const begun = performance.now();
      for (let runs = 1; ; runs += 1) {
        if (exports.run() !== 1) throw new Error("a run failed");
        const milliseconds = performance.now() - begun;
        if (milliseconds > 100) return (runs * products) / milliseconds / 1e6;
      }
    };
  }, `/${variant}.wasm`);
  return page;
}
