/** Accessibility of every view of the built page by axe: light, dark, narrow. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { findings as findingsOf } from "./findings.mjs";
import { importModule } from "./modules.mjs";
import { WEB } from "./preview.mjs";
import { excessWidth, PATIENCE, page, server, useBrowser, usePages } from "./stage.mjs";

/** A checkpoint without the files beside it. */
const PACKED = join(WEB, "../tests/fixtures/families/qwen3-packed/model.safetensors");

const findings = () => findingsOf(page);

/** @param {string} view */
const open = (view) => page.goto(`${server.url}#${view}`);

useBrowser();

for (const [name, width, colorScheme] of /** @type {const} */ ([
  ["light", 1200, "light"],
  ["dark", 1200, "dark"],
  ["narrow", 360, "light"],
  ["narrow, dark", 360, "dark"],
])) {
  describe(`axe has no findings: ${name}`, () => {
    usePages({ options: { viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" } });

    it("story, with a text and the card of a token", async () => {
      await open("story");
      assert.equal(await findings(), "");
      await page.fill("#max-tokens", "12");
      await page.check("#two");
      await page.selectOption("#backend-2", "scalar");
      await page.click("#run");
      await page.waitForSelector("#run:enabled", PATIENCE);
      await page.locator("#text .token").nth(3).click();
      await page.waitForSelector("#token:visible");
      assert.equal(await findings(), "");
    });

    it("chat, empty, with messages, and while one is edited", async () => {
      await open("chat");
      await page.waitForSelector(".beginnings", PATIENCE);
      assert.equal(await findings(), "");
      const messages = [
        { id: "0", parent: null, role: "user", content: "Hello" },
        { id: "1", parent: "0", role: "assistant", content: "other" },
        {
          ...{ id: "2", parent: "0", role: "assistant", note: "7 tokens" },
          content:
            "# One\n\n#### Four\n\n[link](https://example.org)\n\n> quote `code`\n\n```js\nlet a;\n```\n\n|a|b|\n|-|-|\n|1|2|",
        },
      ];
      const thread = { title: "A", system: "", format: "transcript", updated: 1, leaf: "2", messages };
      const buffer = Buffer.from(
        JSON.stringify({ kind: "setun-conversations", version: 1, threads: [thread] }),
      );
      await page.setInputFiles("#import", { name: "a.json", mimeType: "application/json", buffer });
      if (width < 800) await page.click("#thread-panel summary");
      await page.locator("#thread-list button").click();
      await page.waitForSelector("article pre", PATIENCE);
      assert.equal(await findings(), "");
      await page.locator("article").first().getByRole("button", { name: "Edit" }).click();
      assert.equal(await findings(), "");
    });

    it("models", async () => {
      await open("models");
      await page.waitForSelector('.model[data-fits="no"]', PATIENCE);
      await page.fill("#model-source", new URL("nothing/here/", server.url).href);
      await page.click("#look-up");
      await page.waitForSelector('#models-status[data-state="failed"]', PATIENCE);
      assert.equal(await findings(), "");
    });

    it("benchmark and parity, with results", async () => {
      const { toFragment } = await importResult();
      await open(`benchmark=${toFragment}`);
      await page.waitForSelector(".result", PATIENCE);
      assert.equal(await findings(), "");
      await page.goto(`${server.url}#parity`);
      await page.click("#parity-run");
      await page.waitForSelector("#parity-rows tr:nth-child(2)", PATIENCE);
      assert.equal(await findings(), "");
      await page.click("#parity-stop");
    });

    it("explorer, with weights and warnings", async () => {
      await open("explorer");
      await page.setInputFiles("#explorer-files", PACKED);
      await page.waitForSelector('#explorer-status[data-state="done"]', PATIENCE);
      await page.waitForSelector("#explorer-warnings li");
      await page.waitForSelector(".histogram");
      assert.equal(await findings(), "");
    });

    if (width < 800) {
      it("has targets of 44 pixels in every view", async () => {
        for (const view of ["story", "chat", "models", "benchmark", "parity", "explorer"]) {
          await page.goto(`${server.url}#${view}`);
          await page.waitForSelector(`[data-view~="${view}"]:visible`);
          if (view === "chat") await page.waitForSelector(".beginnings", PATIENCE);
          if (view === "models") await page.waitForSelector(".model", PATIENCE);
          const small = await page
            .locator(
              "button:visible, .button:visible, select:visible, summary:visible, input:not(.unseen):visible, nav a",
            )
            .evaluateAll((all) =>
              all.flatMap((one) => {
                // A box is as large as its label.
                const target = one.matches('[type="checkbox"]') ? (one.closest("label") ?? one) : one;
                const { width, height } = target.getBoundingClientRect();
                return height >= 43.9 && width >= 43.9
                  ? []
                  : [`${one.id || one.textContent}: ${width} × ${height}`];
              }),
            );
          assert.deepEqual(small, [], view);
        }
      });
    }

    it("needs no sideways scrolling in any view", async () => {
      for (const view of ["story", "chat", "models", "benchmark", "parity", "explorer"]) {
        await page.goto(`${server.url}#${view}`);
        await page.waitForSelector(`[data-view~="${view}"]:visible`);
        const excess = await excessWidth();
        assert.ok(excess <= 0, `${view}: ${excess} pixels too wide`);
      }
    });
  });
}

/** A result in the form of a link. */
async function importResult() {
  const { toFragment } = await importModule("benchmark/result.ts");
  const result = {
    ...{ model: "Story model", build: "relaxed", backend: "cpu", level: "relaxed", browser: "Firefox 153" },
    ...{ threads: 2, promptTokens: 128, tokens: 64, prefill: 141.5, decode: 20.25, cores: 8 },
  };
  return { toFragment: toFragment(result) };
}
