// Runs the kernels' checks in Chromium, and in Node in a full check (SETUN_FULL=1): `node wasm-tests.mjs VARIANT=MODULE.wasm …`.
// $CHROME names the browser. Prints each report, then the counts in the form of `node --test`.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const RUNNER = new URL("../crates/setun-cpu/examples/wasm_tests.mjs", import.meta.url);
const SEEDS = 10;

const modules = process.argv.slice(2).map((argument) => {
  const [variant, path] = argument.split("=");
  return { variant, path };
});

let passed = 0;
let failed = 0;
const ofNode = process.env.SETUN_FULL === "1" ? modules : [];
for (const { variant, path } of ofNode) {
  // Node 20 has relaxed SIMD only as an early experiment, which computes something else.
  const runs = WebAssembly.validate(readFileSync(path));
  if (runs || !variant.startsWith("relaxed")) judge("Node", variant, inNode(path));
}
const page = await openPage();
for (const { variant } of modules) {
  judge("Chromium", variant, await inPage(variant));
}
await page.context().browser().close();
console.log(`# pass ${passed}`);
console.log(`# fail ${failed}`);
process.exit(failed === 0 ? 0 : 1);

function judge(place, variant, report) {
  if (report.startsWith("ok")) passed += 1;
  else failed += 1;
  console.log(`${place}, ${variant}: ${report.trim()}`);
}

function inNode(path) {
  const script = `
    const { runTests } = await import(${JSON.stringify(RUNNER.href)});
    const { readFile } = await import("node:fs/promises");
    console.log(await runTests(await readFile(${JSON.stringify(path)}), ${SEEDS}));`;
  const options = { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
  try {
    return execFileSync(process.execPath, ["--input-type=module", "-e", script], options);
  } catch (error) {
    return `failed: ${error.stderr || error.message}`;
  }
}

/** A page with shared memory; everything it requests comes from here. */
async function openPage() {
  const require = createRequire(new URL("../npm/package.json", import.meta.url));
  const { chromium } = require("playwright-core");
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: process.env.CHROME, args });
  const page = await browser.newPage();
  const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
  await page.route("http://localhost/**", (route) => {
    const name = new URL(route.request().url()).pathname.slice(1);
    const found = modules.find(({ variant }) => name === `${variant}.wasm`);
    if (found) return route.fulfill({ body: readFileSync(found.path), contentType: "application/wasm" });
    if (name === "runner.mjs") return route.fulfill({ body: readFileSync(RUNNER), contentType: "text/javascript" });
    return route.fulfill({ body: "<!doctype html>", contentType: "text/html", headers: isolated });
  });
  await page.goto("http://localhost/");
  return page;
}

async function inPage(variant) {
  const run = async ([variant, seeds]) => {
    const { runTests } = await import("/runner.mjs");
    const response = await fetch(`/${variant}.wasm`);
    return runTests(await response.arrayBuffer(), seeds);
  };
  return page.evaluate(run, [variant, SEEDS]).catch((error) => `failed: ${error}`);
}
