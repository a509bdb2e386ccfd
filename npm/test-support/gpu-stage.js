/** A server of the package, and Chromium with WebGPU in software: what tests of WebGPU share. */

import { afterAll, beforeAll } from "vitest";
import { launchChromium } from "./browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "./page.js";
import { makeProject, writeFiles } from "./project.js";
import { startServer } from "./server.js";

/** The built-in model by its address: without one no GPU is looked for. */
export const MODEL = "/node_modules/setun/model/stories.safetensors";

/**
 * Starts them before all tests of a file, and ends them after.
 * @param {(folder: string) => Record<string, any>} files that the server has as well, of a project with the package
 */
export function gpuStage(files = () => ({})) {
  const stage = /** @type {Stage} */ ({});
  beforeAll(async () => {
    stage.project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
    const { folder } = stage.project;
    await writeFiles(folder, files(folder));
    stage.server = await startServer({ root: folder });
    stage.browser = await launchChromium({ webgpu: true });
  });
  afterAll(async () => {
    await stage.browser?.close();
    await stage.server?.stop();
    await stage.project?.remove();
  });
  return stage;
}

/**
 * @typedef {object} Stage
 * @property {Awaited<ReturnType<typeof makeProject>>} project
 * @property {Awaited<ReturnType<typeof startServer>>} server
 * @property {import("playwright-core").Browser} browser
 */
