/** Two texts beside each other, their tokens, and forks, on the built page in a browser. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { modelFolder } from "./model-folder.mjs";
import { ENDLESS, excessWidth, PATIENCE, page, setControls, textOf, useStage } from "./stage.mjs";

useStage({ controls: { "max-tokens": "24", seed: "3" } });

/** Waits until all that was begun has ended well. @param {string[]} statuses */
async function ended(...statuses) {
  await page.waitForSelector("#run:enabled", PATIENCE);
  for (const status of statuses)
    assert.equal(await page.getAttribute(status, "data-state"), "done", await textOf(status));
}

async function runToEnd() {
  await page.click("#run");
  await ended("#status");
}

/** The ids of the tokens in an element. @param {string} selector @returns {Promise<string[]>} */
const tokensOf = (selector) =>
  page
    .locator(`${selector} .token`)
    .evaluateAll((marks) => marks.map((mark) => /** @type {HTMLElement} */ (mark).dataset.token ?? ""));

/** Opens a token's card, and takes what it offers. @param {string} text @param {number} place */
async function choose(text, place, choice = 0) {
  await page.locator(`${text} .token`).nth(place).click();
  const button = page.locator("#token-choices button").nth(choice);
  const token = await button.getAttribute("data-token");
  await button.click();
  await ended("#status-2");
  return token;
}

describe("two texts", () => {
  it("are generated at the same time, and stopped together", async () => {
    await setControls(page, ENDLESS);
    await page.check("#two");
    await page.fill("#seed-2", "4");
    await page.click("#run");
    const both = () =>
      ["#text", "#text-2"].every((text) => {
        const output = document.querySelector(text);
        return output?.ariaBusy === "true" && output.querySelectorAll(".token").length > 2;
      });
    await page.waitForFunction(both, null, PATIENCE);
    await page.keyboard.press("Escape");
    await ended("#status", "#status-2");
    for (const status of ["#status", "#status-2"]) assert.match(await textOf(status), /^Stopped: \d+ tokens/);
  });

  it("are equal for equal prompt and seed, and differ otherwise", async () => {
    await runToEnd();
    const alone = await textOf("#text");
    await page.check("#two");
    await page.fill("#seed-2", "3");
    await runToEnd();
    assert.deepEqual([await textOf("#text"), await textOf("#text-2")], [alone, alone]);
    await page.fill("#seed-2", "4");
    await runToEnd();
    assert.notEqual(await textOf("#text-2"), alone);
    await page.fill("#prompt-2", "The old king");
    await runToEnd();
    assert.equal(await textOf("#text"), alone);
    assert.equal(await textOf("#echo-2"), "The old king");
    await page.uncheck("#two");
    await runToEnd();
    assert.equal(await page.isVisible("#second"), false);
  });
});

describe("side by side", () => {
  it("two backends write the same bits, which is said", async () => {
    await page.fill("#temperature", "0");
    await page.check("#two");
    await page.selectOption("#backend-2", "scalar");
    await runToEnd();
    const [one, other] = [await textOf("#caption"), await textOf("#caption-2")];
    assert.deepEqual(
      [one, other],
      ["Story model, built in, cpu · simd128", "Story model, built in, cpu · scalar"],
    );
    assert.equal(
      await textOf("#difference"),
      "Both texts are equal: 24 tokens, and so is every bit of their log-probabilities.",
    );
    assert.equal(await page.locator(".differs").count(), 0);
  });

  it("another model has the seed of the first, and the first difference is marked", async () => {
    const folder = await modelFolder();
    await page.check("#two");
    await page.setInputFiles("#folder", folder.path);
    await page.selectOption("#model-2", { label: "Story model, built in" });
    await page.fill("#seed", "");
    await runToEnd();
    assert.equal(await textOf("#text-2"), await textOf("#text"));
    assert.match(await textOf("#difference"), /^Both texts are equal: \d+ tokens\.$/);
    await page.fill("#seed", "3");
    await page.fill("#seed-2", "4");
    await runToEnd();
    await folder.remove();
    const [one, other] = [await tokensOf("#text"), await tokensOf("#text-2")];
    const place = one.findIndex((token, at) => token !== other[at]);
    assert.ok(place >= 0);
    for (const text of ["#text", "#text-2"]) {
      const marks = page.locator(`${text} .token`);
      assert.match((await marks.nth(place).getAttribute("class")) ?? "", /differs/);
      assert.equal(await page.locator(`${text} .differs`).count(), 1);
    }
    const words = new RegExp(
      `^The texts differ from token ${place + 1} on: “.+” \\(.*%\\) in the first, “.+” \\(.*%\\) in the second`,
    );
    assert.match(await textOf("#difference"), words);
    // Each text is forked with the model that wrote it.
    const token = await choose("#text-2", 4, 1);
    assert.equal((await tokensOf("#text-2"))[4], token);
    assert.deepEqual(await tokensOf("#text"), other);
  });
});

describe("tokens", () => {
  it("show their probability and the most likely alternatives", async () => {
    await page.fill("#temperature", "0");
    await runToEnd();
    assert.equal((await tokensOf("#text")).length, 24);
    for (const place of [0, 7, 20]) {
      const mark = page.locator("#text .token").nth(place);
      await mark.hover();
      await page.waitForSelector(`#token:visible #token-said:text-matches("%$")`);
      const choices = page.locator("#token-choices button");
      const shares = (await choices.locator("span:last-child").allTextContents()).map(Number.parseFloat);
      assert.equal(shares.length, 5);
      assert.deepEqual(
        shares,
        shares.toSorted((one, other) => other - one),
      );
      assert.ok(shares.reduce((sum, share) => sum + share) <= 100.3);
      // Greedily, the likeliest is taken.
      assert.equal(await choices.first().getAttribute("aria-current"), "true");
      assert.equal(await choices.first().getAttribute("data-token"), await mark.getAttribute("data-token"));
      const surprise = await mark.evaluate((one) => Number(one.style.getPropertyValue("--surprise")));
      assert.ok(Math.abs(100 * (1 - surprise) - (shares[0] ?? 0)) < 0.11, `${surprise} ${shares[0]}`);
    }
    await page.hover("h1");
    await page.waitForSelector("#token", { state: "hidden" });
  });

  it("show nothing without log-probabilities, and the text is the same", async () => {
    await runToEnd();
    const text = await textOf("#text");
    await page.uncheck("#probabilities");
    await runToEnd();
    assert.equal(await textOf("#text"), text);
    await page.locator("#text .token").nth(3).click();
    assert.equal(await page.locator("#token-choices button").count(), 1);
    assert.equal(await page.isVisible("#keys"), false);
  });
});

describe("a fork", () => {
  it("with the same token gives the same text in greedy decoding", async () => {
    await page.fill("#temperature", "0");
    await page.fill("#max-tokens", "20");
    await runToEnd();
    const whole = await tokensOf("#text");
    await page.fill("#max-tokens", "14");
    const token = await choose("#text", 5);
    assert.equal(token, whole[5]);
    assert.deepEqual(await tokensOf("#text-2"), whole);
    assert.equal(await textOf("#text-2"), await textOf("#text"));
    assert.equal(await textOf("#echo-2"), await textOf("#echo"));
  });

  it("with another token continues from there, and can be forked again", async () => {
    await page.fill("#temperature", "0");
    await runToEnd();
    const [text, whole] = [await textOf("#text"), await tokensOf("#text")];
    const token = await choose("#text", 4, 1);
    const branch = await tokensOf("#text-2");
    assert.notEqual(token, whole[4]);
    assert.deepEqual(branch.slice(0, 5), [...whole.slice(0, 4), token]);
    assert.equal(branch.length, 5 + 24);
    assert.equal(await textOf("#text"), text);
    assert.match(await textOf("#caption-2"), /^“.+” instead of “.+”$/);
    // What it says is what the model says after all of it as a prompt.
    const kept = await page
      .locator("#text-2 .token")
      .evaluateAll((marks) => marks.slice(0, 5).map((mark) => mark.textContent));
    await choose("#text-2", 10, 2);
    assert.deepEqual(await tokensOf("#text"), branch);
    assert.deepEqual((await tokensOf("#text-2")).slice(0, 10), branch.slice(0, 10));
    const echo = await textOf("#echo");
    const told = (await textOf("#text")).slice(kept.join("").length);
    await page.fill("#prompt", echo + kept.join(""));
    await runToEnd();
    assert.equal(await textOf("#text"), told);
  });

  it("works during a generation, and with two texts", async () => {
    await setControls(page, ENDLESS);
    await page.check("#two");
    await page.fill("#seed-2", "4");
    await page.click("#run");
    for (const text of ["#text", "#text-2"])
      await page.waitForSelector(`${text} .token:nth-child(6)`, PATIENCE);
    const second = await tokensOf("#text-2");
    await page.locator("#text-2 .token").nth(3).click();
    const button = page.locator("#token-choices button").first();
    const token = await button.getAttribute("data-token");
    await button.click();
    await page.waitForSelector('#status[data-state="done"]', PATIENCE);
    await page.waitForSelector("#text-2 .token:nth-child(6)", PATIENCE);
    assert.deepEqual((await tokensOf("#text")).slice(0, second.length), second);
    assert.deepEqual((await tokensOf("#text-2")).slice(0, 4), [...second.slice(0, 3), token]);
    assert.equal(await page.isEnabled("#stop"), true);
    await page.keyboard.press("Escape");
    await ended("#status", "#status-2");
    for (const status of ["#status", "#status-2"]) assert.match(await textOf(status), /^Stopped: \d+ tokens/);
  });

  it("works by keyboard only", async () => {
    await runToEnd();
    await page.focus("#prompt");
    while ((await page.evaluate(() => document.activeElement?.id)) !== "text")
      await page.keyboard.press("Tab");
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
    await page.waitForSelector(`#token:visible #token-said:text-matches("%$")`);
    assert.equal(
      await page.locator("#text .token.current").getAttribute("data-token"),
      (await tokensOf("#text"))[1],
    );
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible("#token"), false);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "text");
    for (const key of ["Enter", "ArrowDown"]) await page.keyboard.press(key);
    const token = await page.evaluate(
      () => /** @type {HTMLElement} */ (document.activeElement).dataset.token,
    );
    await page.keyboard.press("Enter");
    await ended("#status-2");
    assert.equal((await tokensOf("#text-2"))[1], token);
  });

  it("needs no sideways scrolling on a narrow screen", async () => {
    await page.setViewportSize({ width: 360, height: 800 });
    await runToEnd();
    await choose("#text", 5, 1);
    for (const place of [0, 4, 9]) {
      await page.locator("#text-2 .token").nth(place).click();
      assert.ok(await page.isVisible("#token"));
      const excess = await excessWidth();
      assert.ok(excess <= 0, `${excess} pixels too wide`);
      await page.keyboard.press("Escape");
    }
  });
});
