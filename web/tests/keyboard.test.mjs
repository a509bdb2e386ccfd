/** The built page by the keyboard alone, in both themes. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PATIENCE, page, server, setControls, textOf, useBrowser, usePages } from "./stage.mjs";

/** Most presses of Tab from one control to another. */
const MAX_STOPS = 150;

useBrowser();

/** What has the keys: its name, and what is wrong with it for somebody who sees the page. */
const focused = () =>
  page.evaluate(() => {
    const one = document.activeElement;
    if (!(one instanceof HTMLElement) || one === document.body) return undefined;
    const name = one.id || `${one.tagName} ${one.ariaLabel ?? one.textContent?.trim().slice(0, 30)}`;
    // A file's field is unseen, its label is seen; a text's tokens are framed by their sheet.
    const seen = one.matches(".unseen") ? one.previousElementSibling : (one.closest(".paper") ?? one);
    if (!(seen instanceof HTMLElement)) return { name, problem: "nothing to see" };
    const { outlineStyle, outlineWidth } = getComputedStyle(seen);
    const [box = seen.getBoundingClientRect()] = seen.getClientRects();
    const at = document.elementFromPoint(
      box.left + Math.min(box.width / 2, 20),
      box.top + Math.min(box.height / 2, 20),
    );
    const isCovered = !(at && (seen.contains(at) || at.contains(seen)));
    const problems = [
      ...(outlineStyle === "none" || outlineWidth === "0px" ? ["no outline"] : []),
      ...(isCovered ? [`covered by ${at?.id || at?.className || at?.tagName}`] : []),
    ];
    return { name, ...(problems.length > 0 && { problem: problems.join(", ") }) };
  });

/** Presses Tab until something has the keys. @param {string} selector @param {"Tab" | "Shift+Tab"} key */
async function tabTo(selector, key = "Tab") {
  for (let stop = 0; stop < MAX_STOPS; stop += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${MAX_STOPS} times ${key} do not reach ${selector}`);
}

/** Opens a view by its link. @param {string} view @param {"Tab" | "Shift+Tab"} key */
async function openView(view, key = "Tab") {
  await enter(`nav a[href="#${view}"]`, key);
  await page.waitForSelector(`.view[data-view~="${view}"]:visible`);
}

/** Presses Enter on something. @param {string} selector @param {"Tab" | "Shift+Tab"} key */
async function enter(selector, key = "Tab") {
  await tabTo(selector, key);
  await page.keyboard.press("Enter");
}

async function answered() {
  await page.waitForSelector("article .note:not(:empty)", PATIENCE);
  await page.waitForSelector("#send:enabled", PATIENCE);
}

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  describe(`by keyboard alone, ${colorScheme}`, () => {
    usePages({ options: { viewport: { width: 1100, height: 700 }, colorScheme, reducedMotion: "reduce" } });

    it("every control of every view is reached, seen and left", async () => {
      for (const view of ["story", "chat", "models", "benchmark", "parity", "explorer"]) {
        // Another document, so that the keys begin at its top.
        await page.goto("about:blank");
        await page.goto(`${server.url}#${view}`);
        await page.waitForSelector(`.view[data-view~="${view}"]:visible`);
        if (view === "chat") await page.waitForSelector(".beginnings", PATIENCE);
        if (view === "models") await page.waitForSelector(".model >> nth=5", PATIENCE);
        if (view === "story") await page.waitForSelector("#invitation:visible", PATIENCE);
        const expected = await page
          .locator(
            "a[href]:visible, button:enabled:visible, input:enabled, select:visible, textarea:visible, summary:visible",
          )
          .evaluateAll((all) => all.filter((one) => one.checkVisibility()).length);
        const stops = [];
        for (let stop = 0; stop < MAX_STOPS; stop += 1) {
          await page.keyboard.press("Tab");
          const here = await focused();
          if (here === undefined) break;
          stops.push(here);
        }
        assert.ok(stops.length < MAX_STOPS, `${view}: the keys are trapped`);
        assert.deepEqual(
          stops.filter(({ problem }) => problem),
          [],
          view,
        );
        assert.ok(stops.length >= expected, `${view}: ${stops.length} of ${expected} controls`);
      }
    });

    it("a story is written and forked", async () => {
      await setControls(page, { "max-tokens": "12", seed: "3" });
      await page.evaluate(() => {
        if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      });
      await tabTo("#prompt");
      await page.keyboard.press("ControlOrMeta+A");
      await page.keyboard.type("The old king");
      await enter("#run");
      await page.waitForSelector("#run:enabled", PATIENCE);
      assert.equal(await textOf("#echo"), "The old king");
      await tabTo("#text");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#token-choices button[aria-current]:focus", PATIENCE);
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.waitForSelector('#status-2[data-state="done"]', PATIENCE);
      assert.match(await textOf("#caption-2"), / instead of /);
    });

    it("a conversation is begun, answered again, edited and copied", async () => {
      await setControls(page, { "max-tokens": "8", seed: "3" });
      await openView("chat");
      await page.waitForSelector(".beginnings", PATIENCE);
      await tabTo("#message");
      await page.keyboard.type("The old king");
      await page.keyboard.press("Enter");
      await answered();
      assert.equal(await page.evaluate(() => document.activeElement?.id), "message");
      await tabTo("article:last-child .tools > button:nth-of-type(3)", "Shift+Tab");
      assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Retry");
      assert.equal((await focused())?.problem, undefined);
      await page.keyboard.press("Enter");
      await page.waitForSelector('.versions:has-text("2 of 2")', PATIENCE);
      await answered();
      await tabTo('[aria-label="Previous version"]');
      assert.equal((await focused())?.problem, undefined);
      await page.keyboard.press("Enter");
      await page.waitForSelector('.versions:has-text("1 of 2")', PATIENCE);
      await enter("article:first-child .tools > button:nth-of-type(2)", "Shift+Tab");
      await page.waitForSelector(".editor textarea:focus");
      await page.keyboard.press("ControlOrMeta+A");
      await page.keyboard.type("The young queen");
      await enter(".editor .primary");
      await page.waitForSelector('article:first-child:has-text("2 of 2")', PATIENCE);
      await answered();
      assert.equal(await textOf("article:first-child .body"), "The young queen");
    });

    it("a model is searched for and used, and a term explained", async () => {
      await openView("models");
      await page.waitForSelector(".model >> nth=5", PATIENCE);
      await tabTo("#model-filter");
      await page.keyboard.type("story");
      await page.waitForSelector('#models-count:text-matches("^1 of ")', PATIENCE);
      await enter('[aria-label="Use: Story model, built in"]');
      await page.waitForSelector('#models-status[data-state="done"]', PATIENCE);
      await openView("story", "Shift+Tab");
      await enter('[aria-describedby="term-logprobs"]');
      await page.waitForSelector("#term-logprobs:visible");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#term-logprobs", { state: "hidden" });
    });
  });
}
