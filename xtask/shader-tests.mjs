// Compiles every kernel's every variant in Chromium, whose WGSL compiler is stricter than the parser
// of the crates' tests: `node shader-tests.mjs FILE.json`, as the example `wgsl` of `setun-gpu` prints it.
// $CHROME names the browser. Prints what was refused, then the counts in the form of `node --test`.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const kernels = JSON.parse(readFileSync(process.argv[2], "utf8"));
const page = await openPage();
const { refused, skipped } = await page.evaluate(compileAll, kernels);
await page.context().browser().close();
for (const { name, messages } of refused) console.log(`${name}:\n  ${messages.join("\n  ")}`);
console.log(`# pass ${kernels.length - skipped - refused.length}`);
console.log(`# fail ${refused.length}`);
console.log(`# skipped ${skipped}`);
process.exit(refused.length === 0 ? 0 : 1);

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
 * Runs in the page: for each kernel, but for those that ask for what the browser does not have, what the compiler
 * says of its module, and why there is no pipeline of it. Several are compiled at a time.
 */
async function compileAll(kernels) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("this browser finds no adapter for WebGPU");
  const known = kernels.filter(({ features }) => features.every((feature) => adapter.features.has(feature)));
  const requiredFeatures = [...new Set(known.flatMap(({ features }) => features))];
  const device = await adapter.requestDevice({ requiredFeatures });
  const compile = async ({ name, bindings, source }) => {
    device.pushErrorScope("internal");
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ code: source });
    const entries = bindings.map((type, binding) => {
      return { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } };
    });
    const bindGroupLayouts = [device.createBindGroupLayout({ entries })];
    const layout = device.createPipelineLayout({ bindGroupLayouts });
    const errors = [device.popErrorScope(), device.popErrorScope()];
    const pipeline = device.createComputePipelineAsync({ layout, compute: { module, entryPoint: "main" } });
    errors.push(pipeline.then(() => null).catch((error) => error));
    const said = (await module.getCompilationInfo()).messages;
    const messages = said.map(({ type, lineNum, message }) => `${type} in line ${lineNum}: ${message}`);
    for (const error of await Promise.all(errors)) {
      if (error !== null) messages.push(error.message);
    }
    return { name, messages };
  };
  const outcomes = [];
  const waiting = known.values();
  const work = async () => {
    for (const kernel of waiting) outcomes.push(await compile(kernel));
  };
  await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, work));
  const refused = outcomes.filter(({ messages }) => messages.length > 0);
  return { refused, skipped: kernels.length - known.length };
}
