// Compiles every kernel's every variant in Chromium, whose WGSL compiler is stricter than the parser
// of the crates' tests: `node shader-tests.mjs FILE.json`, as the example `wgsl` of `setun-gpu` prints it.
// $CHROME names the browser. Prints what was refused, then the counts in the form of `node --test`.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";

const kernels = JSON.parse(readFileSync(process.argv[2], "utf8"));
// A browser compiles one kernel at a time, so there are several; not more than fit into a small machine's memory.
const browsers = Math.min(4, availableParallelism());
const parts = Array.from({ length: browsers }, (_, first) => kernels.filter((_, at) => at % browsers === first));
const outcomes = await Promise.all(parts.map(compileInBrowser));
const refused = outcomes.flatMap(({ refused }) => refused);
const skipped = outcomes.reduce((sum, { skipped }) => sum + skipped, 0);
for (const { name, messages } of refused) console.log(`${name}:\n  ${messages.join("\n  ")}`);
console.log(`# pass ${kernels.length - skipped - refused.length}`);
console.log(`# fail ${refused.length}`);
console.log(`# skipped ${skipped}`);
process.exit(refused.length === 0 ? 0 : 1);

async function compileInBrowser(part) {
  const page = await openPage();
  const outcome = await page.evaluate(compileAll, part);
  await page.context().browser().close();
  return outcome;
}

/** WebGPU is for secure pages; this one is, and empty. */
async function openPage() {
  const require = createRequire(new URL("../npm/package.json", import.meta.url));
  const { chromium } = require("playwright-core");
  // Without a GPU, headless Chromium has WebGPU in software, behind this switch.
  const args = ["--enable-unsafe-webgpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];
  const browser = await chromium.launch({ executablePath: process.env.CHROME, args });
  const page = await browser.newPage();
  const answer = { body: "<!doctype html>", contentType: "text/html" };
  await page.route("http://localhost/**", (route) => route.fulfill(answer));
  await page.goto("http://localhost/");
  return page;
}

/**
 * Runs in the page: a module, what the compiler says of it, and a pipeline for each kernel, but for those that ask
 * for what the browser does not have.
 */
async function compileAll(kernels) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("this browser finds no adapter for WebGPU");
  const known = kernels.filter(({ features }) => features.every((feature) => adapter.features.has(feature)));
  const requiredFeatures = [...new Set(known.flatMap(({ features }) => features))];
  const device = await adapter.requestDevice({ requiredFeatures });
  const refused = [];
  for (const { name, bindings, source } of known) {
    device.pushErrorScope("internal");
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ code: source });
    const entries = bindings.map((type, binding) => {
      return { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } };
    });
    const bindGroupLayouts = [device.createBindGroupLayout({ entries })];
    const layout = device.createPipelineLayout({ bindGroupLayouts });
    device.createComputePipeline({ layout, compute: { module, entryPoint: "main" } });
    const said = (await module.getCompilationInfo()).messages;
    const messages = said.map(({ type, lineNum, message }) => `${type} in line ${lineNum}: ${message}`);
    for (const error of [await device.popErrorScope(), await device.popErrorScope()]) {
      if (error !== null) messages.push(error.message);
    }
    if (messages.length > 0) refused.push({ name, messages });
  }
  return { refused, skipped: kernels.length - known.length };
}
