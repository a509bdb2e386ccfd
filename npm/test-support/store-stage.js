/** A server with pages and models, and browsers that keep something: what tests of the store share. */

import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openChromiumProfile } from "./browsers.js";
import { embeddedModel, largeModel } from "./checkpoint.js";
import { startFaultyServer } from "./faulty-server.js";
import { storyInNode } from "./node-story.js";
import { INDEX_HTML, PLAIN_MAIN, STORY } from "./page.js";
import { makeProject, writeFiles } from "./project.js";
import { startServer } from "./server.js";

/** Bytes of the parts in which a file is requested. */
export const CHUNK = 8 << 20;

/** A short story: the large model takes its time. */
export const SHORT = { ...STORY, options: { ...STORY.options, maxTokens: 12 } };

/** Names of files that come. */
export const COMING = /\.(part|chunks)$/;

/**
 * A project whose pages are served beside models: `models` misbehaves on request, and answers what the pages' own server
 * is asked under `/models/` too.
 */
export async function makeStage() {
  const project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  const models = await startFaultyServer({ cors: { exposes: false } });
  const { file: small, folder } = embeddedModel(project.folder);
  const large = largeModel(folder, { layers: 6, isVaried: true });
  await writeFiles(project.folder, /** @type {any} */ ({ "large.safetensors": large }));
  const tell = async (/** @type {object} */ source) =>
    (await storyInNode(project.folder, { ...SHORT, ...source })).result.text;
  const texts = {
    small: await tell({}),
    large: await tell({ source: join(project.folder, "large.safetensors") }),
  };
  const server = await startServer({ root: project.folder, models });
  const stop = async () => {
    await server.stop();
    await models.stop();
    await project.remove();
  };
  return { root: project.folder, url: server.url, server, models, small, folder, large, texts, stop };
}

/** @param {Buffer} bytes */
export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Chromium that keeps things on the disk, until `remove`. `restart` ends it and starts it with what it has kept. */
export async function openProfile() {
  const folder = await mkdtemp(join(tmpdir(), "setun-profile-"));
  const profile = {
    context: await openChromiumProfile(folder),
    async restart() {
      await profile.context.close();
      profile.context = await openChromiumProfile(folder);
    },
    async remove() {
      await profile.context.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return profile;
}

/** A tab with the package. @param {import("playwright-core").BrowserContext} context @param {string} url */
export async function openTab(context, url) {
  const page = await context.newPage();
  await page.goto(`${url}/index.html`);
  await page.waitForFunction(() => "setun" in globalThis);
  return page;
}

/** Runs a script at the begin of each worker. @param {import("playwright-core").Page} page @param {string} script */
export async function beginWorkersWith(page, script) {
  await page.context().route("**/dist/worker-*.js", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${script}\n${await response.text()}` });
  });
}

/**
 * Has workers of a page skip the waits that take exactly `milliseconds`; `globalThis.waits` has what they skipped.
 * @param {import("playwright-core").Page} page @param {number} milliseconds
 */
export async function skipWaits(page, milliseconds) {
  await page.evaluate(() => {
    const all = /** @type {any} */ (globalThis);
    all.waits = [];
    all.told = new BroadcastChannel("waits");
    all.told.onmessage = (/** @type {MessageEvent} */ { data }) => all.waits.push(data);
  });
  await beginWorkersWith(
    page,
    `const { setTimeout: wait } = globalThis;
    globalThis.setTimeout = (work, milliseconds, ...given) => {
      if (milliseconds !== ${milliseconds}) return wait(work, milliseconds, ...given);
      new BroadcastChannel("waits").postMessage(milliseconds);
      return wait(work, 0, ...given);
    };`,
  );
}
