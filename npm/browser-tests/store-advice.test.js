/** Things that are no model: errors that say what came, and what to do. */

import { afterEach, expect, it } from "vitest";
import { keptFiles, tryStory } from "../test-support/store-page.js";
import { SHORT } from "../test-support/store-stage.js";
import { page, prepareTabs, stage } from "../test-support/store-tabs.js";

const PATH = "/models/large.safetensors";
const BARE = "/models/bare";

prepareTabs();
afterEach(() => {
  for (const name of Object.keys(stage.folder)) stage.models.remove(`${BARE}/${name}`);
});

/** @param {string} path @param {object} load */
const tell = (path, load) => page.evaluate(tryStory, { ...SHORT, source: stage.url + path, load });

it.each([{}, { store: false }])("a Git LFS pointer is named, and not stored: %j", async (load) => {
  stage.models.put(PATH, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 77\n", '"lfs"');
  const { code, message } = await tell(PATH, load);
  expect([code, message]).toEqual([
    "bad-checkpoint",
    expect.stringMatching(/large\.safetensors.*: is a Git LFS pointer in place of the file of 77 bytes/),
  ]);
  const names = Object.keys(await page.evaluate(keptFiles));
  expect(names.filter((name) => name.includes("large.safetensors"))).toEqual([]);
});

it.each([{}, { store: false }, { worker: false }])(
  "a folder without a tokenizer is refused before its weights: %j",
  async (load) => {
    const { "tokenizer.json": tokenizer = "", ...others } = stage.folder;
    for (const [name, bytes] of Object.entries(others)) stage.models.put(`${BARE}/${name}`, bytes, '"b"');
    const { code, message } = await tell(`${BARE}/`, load);
    expect([code, message]).toEqual([
      "not-found",
      expect.stringMatching(/tokenizer\.json.*put the tokenizer\.json/),
    ]);
    expect(stage.models.starts(`${BARE}/model.safetensors`)).toEqual([]);
    stage.models.put(`${BARE}/tokenizer.json`, tokenizer, '"b"');
    expect((await tell(`${BARE}/`, load)).text).toBe(stage.texts.small);
  },
);

it.each([
  [{}, /worker could not be loaded: this browser is offline$/],
  [{ worker: false }, /setun_bg\.wasm: the JavaScript beside it .* this browser is offline$/],
])("an offline browser is named: %j", async (load, words) => {
  stage.models.put(PATH, stage.small, '"small"');
  await page.context().setOffline(true);
  const { code, message } = await tell(PATH, load);
  expect([code, message]).toEqual(["network", expect.stringMatching(words)]);
  await page.context().setOffline(false);
  expect((await tell(PATH, {})).text).toBe(stage.texts.small);
});
