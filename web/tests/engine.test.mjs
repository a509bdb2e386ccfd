/** Live engine metrics of the page, in Chromium. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ENDLESS, excessWidth, PATIENCE, page, setControls, useStage } from "./stage.mjs";

useStage({ controls: { "max-tokens": "40", seed: "3" } });

/** The panel is folded at first. */
const openPanel = () => page.click("#engine summary");

async function runToEnd() {
  await page.click("#run");
  await page.waitForSelector("#run:enabled", PATIENCE);
  assert.equal(await page.getAttribute("#status", "data-state"), "done");
  await settled();
}

/** How often the panel has looked. */
const updates = async () => Number((await page.getAttribute("#engine", "data-updates")) ?? 0);

/** Waits until the panel has looked for the last time. */
const settled = () => page.waitForSelector("#engine:not([data-live])", PATIENCE);

/** What a figure says: its definitions. @param {string} name */
const figure = (name) => page.locator(`#engine [data-figure="${name}"] dd`).allTextContents();

/** A figure's line. @param {string} name */
const line = async (name) =>
  (await page.getAttribute(`#engine [data-figure="${name}"] path.line`, "d")) ?? "";

describe("the panel of the engine", () => {
  it("shows figures that agree with the page, and is idle when nothing runs", async () => {
    await openPanel();
    assert.deepEqual(await figure("rate"), ["–", "", ""]);
    await runToEnd();
    assert.ok((await updates()) >= 1);
    const [rate = "", , tokens] = await figure("rate");
    assert.match(rate, /^[1-9]\d*(\.\d)? tokens\/s$/);
    assert.equal(tokens, `${await page.textContent("#tokens")} tokens in total`);
    for (const name of ["between", "first", "step"]) {
      const [half = "", , most = ""] = await figure(name);
      assert.match(half, /^\d+(\.\d)? (ms|s)$/, name);
      assert.match(most, /^p99 \d+(\.\d)? (ms|s)$/, name);
    }
    assert.match((await figure("batch"))[0] ?? "", /^\d+(\.\d)? rows$/);
    assert.match((await figure("queue")).join(" "), /^0 waiting {2}0 running, wait /);
    assert.deepEqual(await figure("drafts"), ["–", "", "no draft tokens"]);
    for (const name of ["rate", "between", "first", "step", "batch"])
      assert.match(await line(name), /^M.*V/, name);
    const [sum = "", , parts = ""] = await figure("memory");
    const kinds = [...parts.matchAll(/(\d+\.\d) MB/g)].map(([, size]) => Number(size));
    assert.equal(kinds.length, 4);
    assert.ok(
      Math.abs(kinds.reduce((sum, size) => sum + size) - Number.parseFloat(sum)) < 0.3,
      `${sum}: ${parts}`,
    );
    assert.ok(kinds[0] > 1, "the layers");
  });

  it("updates while something runs", async () => {
    await openPanel();
    await setControls(page, ENDLESS);
    await page.check("#two");
    await page.fill("#seed-2", "4");
    await page.click("#run");
    await page.waitForFunction(
      () => Number(document.getElementById("engine")?.dataset.updates) >= 4,
      null,
      PATIENCE,
    );
    assert.match((await figure("queue"))[2] ?? "", /^2 running/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#run:enabled", PATIENCE);
    await settled();
    assert.match((await figure("queue"))[2] ?? "", /^0 running/);
  });

  it("counts prefix cache hits and accepted draft tokens", async () => {
    await openPanel();
    await page.fill("#prompt", "Once upon a time there was a fox. ".repeat(6));
    await page.fill("#temperature", "0");
    await page.fill("#lookahead", "8");
    await runToEnd();
    assert.equal((await figure("cache"))[0], "0 of 1");
    await runToEnd();
    const [hits, , reused = ""] = await figure("cache");
    assert.equal(hits, "1 of 2");
    assert.ok(Number.parseInt(reused, 10) >= 16, reused);
    const [, accepted = "", drafted = ""] = /^(\d+) of (\d+)$/.exec((await figure("drafts"))[0] ?? "") ?? [];
    assert.ok(
      Number(drafted) > 0 && Number(accepted) > 0 && Number(accepted) <= Number(drafted),
      `${accepted} of ${drafted}`,
    );
    const share = await page
      .locator('#engine [data-figure="drafts"] .bar')
      .evaluate((bar) => Number(/** @type {HTMLElement} */ (bar).style.getPropertyValue("--share")));
    assert.equal(share, Number(accepted) / Number(drafted));
  });

  it("starts again with another model", async () => {
    await openPanel();
    await runToEnd();
    await page.selectOption("#backend", "scalar");
    await page.waitForSelector('#backend-used[data-level="scalar"]', PATIENCE);
    await page.waitForSelector("#run:enabled", PATIENCE);
    await settled();
    assert.deepEqual(await figure("rate"), ["–", "", "0 tokens in total"]);
    assert.equal(await line("rate"), "");
  });

  it("opens and closes by the keyboard, and requests nothing while it is closed", async () => {
    await runToEnd();
    assert.equal(await updates(), 0);
    assert.equal(await page.isVisible("#engine-figures"), false);
    await page.focus("#engine summary");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () => document.getElementById("engine")?.dataset.updates === "1",
      null,
      PATIENCE,
    );
    assert.match((await figure("rate"))[2] ?? "", /^\d+ tokens in total$/);
    await page.keyboard.press("Enter");
    assert.equal(await page.isVisible("#engine-figures"), false);
  });

  it("has a text for everything; drawings are hidden from screen readers", async () => {
    await openPanel();
    await runToEnd();
    const names = await page.locator("#engine dt").allTextContents();
    assert.equal(new Set(names).size, 9);
    // A name has one figure on the whole view.
    const others = await page.locator("#pace dt").allTextContents();
    assert.deepEqual(
      others.filter((name) => names.includes(name)),
      [],
    );
    const seen = await page
      .locator("#engine svg, #engine .parts, #engine .bar")
      .evaluateAll(
        (drawings) => drawings.filter((drawing) => drawing.closest('[aria-hidden="true"]') === null).length,
      );
    assert.equal(seen, 0);
  });

  for (const [width, colorScheme] of /** @type {const} */ ([
    [360, "light"],
    [768, "dark"],
    [1100, "light"],
  ])) {
    it(`keeps its size, whatever it says: ${width} pixels, ${colorScheme}`, async () => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await openPanel();
      const size = async () => {
        const { width, height } = (await page.locator("#engine").boundingBox()) ?? {};
        return [width, height];
      };
      const empty = await size();
      await page.fill("#lookahead", "8");
      await runToEnd();
      assert.deepEqual(await size(), empty);
      const excess = await excessWidth();
      assert.ok(excess <= 0, `${excess} pixels too wide`);
    });
  }
});
