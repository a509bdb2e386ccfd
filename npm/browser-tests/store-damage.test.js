/** Damaged copies in real stores: a load names them, and downloads what is damaged again. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { damageCached, damageKept, keptFiles, removeKept, tryStory } from "../test-support/store-page.js";
import { beginWorkersWith, CHUNK, SHORT, sha256 } from "../test-support/store-stage.js";
import { firefoxTab, page, prepareFirefox, prepareTabs, stage } from "../test-support/store-tabs.js";

const NAME = "large.safetensors";
const PATH = `/models/${NAME}`;
const HUB_NAME = "hf:maker/stories";

/** A byte of the weights that is valid, as is its other value. */
const FROM_END = 3000;

prepareTabs({ prepare: ({ models, large }) => models.put(PATH, large, '"one"') });

const tell = (source = stage.url + PATH, load = {}) => page.evaluate(tryStory, { ...SHORT, source, load });

/** Stores a model, and forgets what was requested. */
async function stored(source = stage.url + PATH, text = stage.texts.large, load = {}) {
  const told = await tell(source, load);
  expect(told.text ?? told.message).toBe(text);
  expect(told.warnings).toEqual([]);
  stage.models.takeRequests();
}

/** The story is right, the damage was named, and what is stored is right. @param {any} told @param {string} reason */
function expectRepaired(told, reason, name = NAME, text = stage.texts.large) {
  expect(told.text ?? told.message).toBe(text);
  const damage = `${name} in the browser's store was damaged (${reason})`;
  expect(told.progress.damaged).toEqual([damage]);
  expect(told.warnings.filter((/** @type {string} */ each) => each.includes("damaged"))).toEqual([
    `${damage} and was downloaded again`,
  ]);
}

/** Names of files that were requested whole or in parts. */
const requested = () => {
  const asked = stage.models
    .takeRequests()
    .filter(({ method, path }) => method === "GET" && !path.includes("/api/"));
  return [...new Set(asked.map(({ path }) => path.replace(/.*\//, "")))].sort();
};

/** The next load has the right bytes and requests none. */
async function expectSound() {
  expect(Object.values(await page.evaluate(keptFiles, true))).toContain(sha256(stage.large));
  stage.models.takeRequests();
  const again = await tell();
  expect(again.text).toBe(stage.texts.large);
  expect(again.warnings).toEqual([]);
  expect(stage.models.starts(PATH)).toEqual([]);
}

/** Another valid byte of the weights. */
function otherWeight() {
  const at = stage.large.length - FROM_END;
  return { name: NAME, at, byte: stage.large[at] === 0x12 ? 0x24 : 0x12 };
}

describe("a file in the private file system", () => {
  it("that is truncated is noticed by its size", async () => {
    await stored();
    expect(await page.evaluate(damageKept, { name: NAME, bytes: CHUNK })).toBe(true);
    expectRepaired(await tell(), `it has ${CHUNK} bytes, expected ${stage.large.length}`);
    expect(stage.models.starts(PATH)).toEqual([0, CHUNK, 2 * CHUNK]);
    await expectSound();
  });

  it("with another bit in its header makes no load fail", async () => {
    await stored();
    expect(await page.evaluate(damageKept, { name: NAME, at: 8, byte: 0x7a })).toBe(true);
    expectRepaired(await tell(), `its bytes 0 to ${CHUNK} have another SHA-256`);
    await expectSound();
  });

  it("with another byte among its weights is noticed with `verify`", async () => {
    await stored();
    const damage = otherWeight();
    expect(await page.evaluate(damageKept, damage)).toBe(true);
    expect((await tell()).warnings).toEqual([]);
    expect(requested()).toEqual([]);
    const told = await tell(undefined, { verify: true });
    const [start, end] = [2 * CHUNK, stage.large.length];
    expect(damage.at).toBeGreaterThan(start);
    expectRepaired(told, `its bytes ${start} to ${end} have another SHA-256`);
    expect(told.seen?.map(({ phase }) => phase)).toContain("checking");
    await expectSound();
  });

  it("of a sound model is read once more with `verify`, and nothing is requested", async () => {
    await stored();
    const told = await tell(undefined, { verify: true });
    expect(told.text).toBe(stage.texts.large);
    expect(told.progress.damaged).toBeUndefined();
    expect(requested()).toEqual([]);
  });

  it("that is one of several and missing is downloaded alone", async () => {
    const names = [1, 2, 3].map((part) => `split-0000${part}-of-00003.gguf`);
    for (const name of names) {
      const file = fileURLToPath(new URL(`../../tests/fixtures/gguf/${name}`, import.meta.url));
      stage.models.put(`/models/${name}`, readFileSync(file), '"gguf"');
    }
    const source = `${stage.url}/models/${names[0]}`;
    const { text = "" } = await tell(source);
    expect(text).not.toBe("");
    requested();
    expect(await page.evaluate(removeKept, /** @type {string} */ (names[1]))).toBe(true);
    expectRepaired(await tell(source), "it is missing", names[1], text);
    expect(requested()).toEqual([names[1]]);
  });

  it("is named where its server cannot be reached, and downloaded when it can", async () => {
    await stored();
    expect(await page.evaluate(damageKept, { name: NAME, at: 8, byte: 0x7a })).toBe(true);
    stage.models.ruleOfAll(PATH, Number.POSITIVE_INFINITY, { breakAfter: 0 });
    const { code, message } = await tell();
    expect(code).toBe("network");
    expect(message).toMatch(
      /^large\.safetensors in the browser's store was damaged \(its bytes 0 to .* SHA-256\) and cannot be downloaded again: .*large\.safetensors.*; its other files stay: load the model again when/,
    );
    stage.models.clearRules();
    expect((await tell()).text).toBe(stage.texts.large);
    await expectSound();
  });
});

describe("a repository of a hub", () => {
  it.each([
    ["tokenizer.json", { bytes: 10 }, /it has 10 bytes, expected \d+/],
    ["config.json", { at: 0, byte: 0x7a }, /its bytes 0 to \d+ have another SHA-256/],
    ["tokenizer.json", { at: 0, byte: 0x7a }, /its bytes 0 to \d+ have another SHA-256/],
  ])("has its damaged file downloaded alone: %s, %o", async (name, damage, reason) => {
    stage.models.putHub("maker/stories", embeddedModel(stage.root).folder);
    const hub = { endpoint: stage.models.url };
    await stored(HUB_NAME, stage.texts.small, hub);
    expect(await page.evaluate(damageKept, { name, ...damage })).toBe(true);
    const told = await tell(HUB_NAME, hub);
    expect(told.text ?? told.message).toBe(stage.texts.small);
    expect(told.warnings).toEqual([
      expect.stringMatching(new RegExp(`^${name} .* \\(${reason.source}\\) and was downloaded again$`)),
    ]);
    expect(requested()).toEqual([name]);
  });
});

describe("the Cache API", () => {
  beforeEach(() => beginWorkersWith(page, "delete FileSystemFileHandle.prototype.createSyncAccessHandle;"));

  it("may have a damaged header", async () => {
    await stored();
    expect(await page.evaluate(damageCached, { at: 8 })).toBe(true);
    expectRepaired(await tell(), `its bytes 0 to ${CHUNK} have another SHA-256`);
  });

  it("may have a damaged byte, which `verify` notices", async () => {
    await stored();
    expect(await page.evaluate(damageCached, { at: CHUNK - 1 })).toBe(true);
    expectRepaired(await tell(undefined, { verify: true }), `its bytes 0 to ${CHUNK} have another SHA-256`);
  });
});

describe("Firefox", () => {
  prepareFirefox();

  it.each([
    ["truncated", { bytes: CHUNK }, {}],
    ["of another header", { at: 8, byte: 0x7a }, {}],
    ["of other weights", undefined, { verify: true }],
  ])("downloads a file again that is %s", async (_, damage, load) => {
    const tellThere = () => firefoxTab.evaluate(tryStory, { ...SHORT, source: stage.url + PATH, load });
    expect((await tellThere()).text).toBe(stage.texts.large);
    expect(await firefoxTab.evaluate(damageKept, { name: NAME, ...(damage ?? otherWeight()) })).toBe(true);
    const told = await tellThere();
    expect(told.text ?? told.message).toBe(stage.texts.large);
    expect(told.warnings).toEqual([
      expect.stringMatching(/^large\.safetensors .* and was downloaded again$/),
    ]);
    expect(Object.values(await firefoxTab.evaluate(keptFiles, true))).toContain(sha256(stage.large));
  });
});
