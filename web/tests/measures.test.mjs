/** The benchmark and the comparison of bits on the built page, to their ends. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { WEB } from "./preview.mjs";
import { context, openPage, PATIENCE, page, server, textOf, useStage } from "./stage.mjs";

useStage({ ready: "#run:enabled" });

/** The figures of a card by name. @param {import("playwright-core").Page} shown @param {string} title */
async function figures(shown, title) {
  const card = shown.locator(".result", { has: shown.locator(`h3:text-is("${title}")`) });
  const [names, values] = [card.locator("dt"), card.locator("dd")];
  await card.waitFor(PATIENCE);
  const texts = await values.allTextContents();
  return Object.fromEntries((await names.allTextContents()).map((name, at) => [name, texts[at] ?? ""]));
}

it("the benchmark runs, and its link shows the same result on another page", async () => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click('nav a[href="#benchmark"]');
  await page.click("#benchmark-run");
  await page.waitForSelector('#benchmark-status:is([data-state="done"], [data-state="failed"])', PATIENCE);
  assert.equal(await textOf("#benchmark-status"), "Done.");
  const own = await figures(page, "This browser");
  assert.ok(Number(own["Decode, tokens/s"]) > 0, JSON.stringify(own));
  const prompt = Object.entries(own).find(([name]) => /^Prompt of [1-9]\d*, tokens\/s$/.test(name));
  assert.ok(Number(prompt?.[1]) > 0, JSON.stringify(own));
  const { Model, Backend, Build, Threads = "" } = own;
  assert.deepEqual([Model, Backend, Build], ["Story model, built in", "cpu · simd128", "simd128"]);
  assert.match(Threads, /^1 of \d+ cores$/);
  const bars = page.locator(".comparison").first().locator("li");
  const bar = Number(await bars.filter({ hasText: "This browser, simd128" }).locator("b").textContent());
  // Both are rounded, each from what was measured.
  assert.ok(Math.abs(bar - Number(own["Decode, tokens/s"])) < 0.6, `${bar}, ${JSON.stringify(own)}`);
  await page.click("#benchmark-share:enabled", PATIENCE);
  await page.waitForSelector("#benchmark-share[data-link]", PATIENCE);
  assert.match(await textOf("#benchmark-status"), /^The link is copied\./);
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await openPage({ view: new URL(link).hash.slice(1), ready: ".result" });
  assert.deepEqual(await figures(other, "From the link"), own);
});

it("the benchmark cites measured speeds, each with its date, before anything ran", async () => {
  await page.click('nav a[href="#benchmark"]');
  await page.waitForSelector(".comparison", PATIENCE);
  const document = await readFile(join(WEB, "../docs/performance.md"), "utf8");
  for (const comparison of await page.locator(".comparison").all()) {
    assert.match((await comparison.textContent()) ?? "", /measured on 2026-\d\d-\d\d/);
    const bars = await comparison.locator("li").allInnerTexts();
    assert.ok(bars.length >= 4);
    for (const bar of bars) {
      const speed = bar.split(/\s/).at(-1) ?? "";
      assert.ok(document.includes(`| ${speed.replace(/\.0$/, "")}`), bar);
    }
  }
});

it("parity ends with a verdict, and every CPU build shows the hash of the page's build", async () => {
  await page.click('nav a[href="#parity"]');
  await page.click("#parity-run");
  // Its last row is WebGPU, which takes a minute in software on an idle machine.
  await page.waitForSelector('#parity-status:is([data-state="done"], [data-state="failed"])', PATIENCE);
  assert.equal(
    await textOf("#parity-status"),
    "Every backend of the CPU gives the bits of the reference implementation.",
  );
  const hash = await builtHash();
  const rows = await page.locator("#parity-rows tr").evaluateAll((all) =>
    all.map((row) => ({
      ...{ name: row.querySelector("th")?.textContent, hash: row.querySelector("code")?.textContent },
      ...{ selfTest: row.querySelector('[data-label="Self-test"]')?.textContent },
      verdict: /** @type {HTMLElement} */ (row).dataset.verdict,
    })),
  );
  const ofCpu = rows.filter(({ name }) => name === "reference" || name?.startsWith("cpu · "));
  const names = ["reference", "cpu · scalar", "cpu · simd128", "cpu · relaxed"];
  assert.deepEqual(
    ofCpu,
    names.map((name) => ({ name, hash, selfTest: name === "reference" ? "" : "passed", verdict: "equal" })),
  );
});

/** The first digits of SHA-256 over what the build computed: ids and log-probabilities, little-endian. */
async function builtHash() {
  const { steps } = await (await fetch(new URL("parity.json", server.url))).json();
  assert.ok(steps.length >= 40, `${steps.length} tokens`);
  const hash = createHash("sha256");
  for (const { token, logprob } of steps) {
    const record = Buffer.alloc(12);
    record.writeUInt32LE(token, 0);
    record.writeDoubleLE(logprob, 4);
    hash.update(record);
  }
  return hash.digest("hex").slice(0, 16);
}
