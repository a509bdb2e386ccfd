/** Weights that sites share, in a page with Cross-Origin Storage. */

import { expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { installCrossOriginStorage } from "../test-support/cross-origin-storage.js";
import { keptFiles, tryStory } from "../test-support/store-page.js";
import { SHORT, sha256 } from "../test-support/store-stage.js";
import { page, prepareTabs, stage } from "../test-support/store-tabs.js";

const NAME = "hf:maker/stories";
const WEIGHTS = "model.safetensors";

/** Address of the weights. @type {string} */
let weights;
/** SHA-256 of the weights. @type {string} */
let digest;

prepareTabs({
  script: installCrossOriginStorage,
  prepare({ root, models }) {
    const { folder } = embeddedModel(root);
    models.putHub("maker/stories", folder);
    weights = models.hubPath("maker/stories", WEIGHTS);
    digest = sha256(/** @type {Buffer} */ (folder[WEIGHTS]));
  },
});

const tell = async (load = {}) => {
  const told = await page.evaluate(tryStory, {
    ...SHORT,
    source: NAME,
    load: { endpoint: stage.models.url, ...load },
  });
  expect(told.text ?? told.message).toBe(stage.texts.small);
  return told;
};

/** Loads the model and keeps it until its weights are where all sites find them. */
async function share() {
  await page.evaluate(
    async ({ source, endpoint }) => {
      const all = /** @type {any} */ (globalThis);
      all.model = await all.setun.load(source, { endpoint });
    },
    { source: NAME, endpoint: stage.models.url },
  );
  await expect.poll(copies).toEqual([`cross-origin-storage/${digest}`]);
  await page.evaluate(() => /** @type {any} */ (globalThis).model.dispose());
  stage.models.takeRequests();
}

/** Paths of all files with the bytes of the weights. */
async function copies() {
  const files = await page.evaluate(keptFiles, true);
  return Object.keys(files).filter((path) => files[path] === digest);
}

/** Removes all that this site keeps, so that it is another site to the browser. */
const becomeAnotherSite = () =>
  page.evaluate(async () =>
    (await navigator.storage.getDirectory()).removeEntry("setun", { recursive: true }),
  );

const requests = () => page.evaluate(() => /** @type {any} */ (globalThis).crossOrigin.requests);

const has = () => page.evaluate((name) => /** @type {any} */ (globalThis).setun.models.has(name), NAME);

it("are downloaded once, and kept once for all sites", async () => {
  await share();
  expect(await requests()).toEqual([
    { create: false, values: [digest] },
    { create: true, values: [digest] },
    { create: false, values: [digest] },
  ]);
  expect((await tell()).warnings).toEqual([]);
  await becomeAnotherSite();
  await tell();
  await tell({ verify: true });
  expect(stage.models.starts(weights)).toEqual([]);
  expect(await copies()).toEqual([`cross-origin-storage/${digest}`]);
  expect(await has()).toBe(true);
});

it("are downloaded into the site's own store where the user refuses", async () => {
  await share();
  await becomeAnotherSite();
  await page.evaluate(() => {
    /** @type {any} */ (globalThis).crossOrigin.isAllowed = false;
  });
  await tell();
  expect(stage.models.starts(weights).length).toBeGreaterThan(0);
  expect((await copies()).filter((path) => path.startsWith("setun/"))).toHaveLength(1);
});

it("are downloaded again when the browser has removed them", async () => {
  await share();
  await page.evaluate(async () =>
    (await navigator.storage.getDirectory()).removeEntry("cross-origin-storage", { recursive: true }),
  );
  expect(await has()).toBe(false);
  const { warnings } = await tell();
  expect(warnings).toEqual([
    expect.stringMatching(
      /^model\.safetensors .*no longer in the storage that sites share.* downloaded again$/,
    ),
  ]);
  expect(stage.models.starts(weights).length).toBeGreaterThan(0);
});

it("are neither looked for nor given away with `crossOriginStorage: false`", async () => {
  await tell({ crossOriginStorage: false });
  await tell({ crossOriginStorage: false });
  expect(await requests()).toEqual([]);
  expect(await copies()).toEqual([expect.stringMatching(/^setun\/models\/.*\/model\.safetensors$/)]);
});
