/** The built page by touch on a screen of 360 pixels, in both themes. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findings } from "./findings.mjs";
import { excessWidth, PATIENCE, page, setControls, textOf, useBrowser, usePages } from "./stage.mjs";

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

useBrowser();

/** Taps something that a finger can hit. @param {string} selector */
async function tap(selector) {
  const target = page.locator(selector).first();
  await target.waitFor(PATIENCE);
  await target.tap();
}

/** Controls that are too small for a finger. */
const small = () =>
  page
    .locator(
      "button:visible, .button:visible, select:visible, summary:visible, nav a, footer a, .actions a:visible",
    )
    .evaluateAll((all) =>
      all.flatMap((one) => {
        const { width, height } = one.getBoundingClientRect();
        return height >= 43.9 && width >= 43.9 ? [] : [`${one.id || one.textContent}: ${width} × ${height}`];
      }),
    );

/** @param {string} view */
async function openView(view) {
  await tap(`nav a[href="#${view}"]`);
  await page.waitForSelector(`.view[data-view~="${view}"]:visible`);
}

async function answered() {
  await page.waitForSelector("article .note:not(:empty)", PATIENCE);
  await page.waitForSelector("#send:enabled", PATIENCE);
}

/** What holds of everything that is shown. */
async function isFit() {
  assert.deepEqual(await small(), []);
  assert.ok((await excessWidth()) <= 0);
  assert.equal(await findings(page), "");
}

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  describe(`by touch, 360 pixels, ${colorScheme}`, () => {
    usePages({
      options: { ...PHONE, colorScheme, reducedMotion: "reduce" },
      controls: { "max-tokens": "12", seed: "3" },
    });

    it("a story is written, and forked at a token", async () => {
      await tap("#run");
      await page.waitForSelector("#run:enabled", PATIENCE);
      await tap("#text .token >> nth=3");
      await page.waitForSelector("#token:visible", PATIENCE);
      const box = await page.locator("#token").boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
      await isFit();
      await tap('#token-choices button:not([aria-current="true"])');
      await page.waitForSelector('#status-2[data-state="done"]', PATIENCE);
      assert.match(await textOf("#caption-2"), / instead of /);
      await isFit();
    });

    it("a conversation is begun, answered again, edited and left for another", async () => {
      await openView("chat");
      await tap("#message");
      await page.keyboard.type("The old king");
      await tap("#send");
      await answered();
      await isFit();
      await tap('article:last-child button:text-is("Retry")');
      await page.waitForSelector('.versions:has-text("2 of 2")', PATIENCE);
      await answered();
      await isFit();
      await tap('[aria-label="Previous version"]');
      await page.waitForSelector('.versions:has-text("1 of 2")');
      await tap('article:first-child button:text-is("Edit")');
      await page.fill(".editor textarea", "The young queen");
      await isFit();
      await tap(".editor .primary");
      await page.waitForSelector('article:first-child:has-text("2 of 2")', PATIENCE);
      await answered();
      await tap("#thread-panel summary");
      await isFit();
      await tap("#new-thread");
      await page.waitForSelector(".beginnings", PATIENCE);
      assert.equal(await page.locator("#thread-list li").count(), 1);
    });

    it("an answer is stopped", async () => {
      await setControls(page, { "max-tokens": "", backend: "scalar", temperature: "50" });
      await openView("chat");
      await tap("#message");
      await page.keyboard.type("The old king");
      await tap("#send");
      await page.waitForFunction(
        () => (document.querySelector("article[data-busy] .body")?.textContent ?? "").length > 20,
        null,
        PATIENCE,
      );
      await tap("#chat-stop");
      await answered();
      assert.match(await textOf("article:last-child .note"), /^Stopped · /);
    });

    it("a model is searched for and used", async () => {
      await openView("models");
      await tap("#model-filter");
      await page.keyboard.type("story");
      await page.waitForSelector('#models-count:text-matches("^1 of ")', PATIENCE);
      await tap('[aria-label="Use: Story model, built in"]');
      await page.waitForSelector('#models-status[data-state="done"]', PATIENCE);
      assert.equal(await textOf('.model[data-state="loaded"] h4'), "Story model, built in");
      await isFit();
    });
  });
}
