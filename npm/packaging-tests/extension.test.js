/**
 * The example of an extension.
 *
 * `SETUN_IDLE_SECONDS=60` waits so long for the browser to end the extension's service worker.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchWithExtension } from "../test-support/browsers.js";
import { exampleFiles } from "../test-support/examples.js";
import { PATIENCE_MS } from "../test-support/patience.js";
import { makeProject } from "../test-support/project.js";

const IDLE_SECONDS = [process.env.SETUN_IDLE_SECONDS ?? []].flat().map(Number);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject(exampleFiles("extension"));
});
afterAll(() => project?.remove());

describe("the example of an extension", () => {
  /** Tells a story in the popup, and gives the last line of its status. @param {import("puppeteer-core").Page} popup */
  async function tellInPopup(popup) {
    await popup.click("button");
    await popup.waitForFunction(() =>
      /loaded at|:/.test(document.querySelector("#status")?.textContent ?? ""),
    );
    return popup.$eval("#status", ({ textContent }) => textContent ?? "");
  }

  /** The protocol ends the service worker, or the browser does so itself, which takes half a minute. */
  it.each([0, ...IDLE_SECONDS])(
    "keeps its model when its service worker ends, idle for %i s",
    async (idle) => {
      const browser = await launchWithExtension(project.folder);
      const isWorker = (/** @type {import("puppeteer-core").Target} */ target) =>
        target.type() === "service_worker";
      const background = await browser.waitForTarget(isWorker, { timeout: PATIENCE_MS });
      // A service worker that is debugged is never idle.
      const worker = idle === 0 ? await background.worker() : undefined;
      const popup = await browser.newPage();
      await popup.goto(background.url().replace("background.js", "popup.html"));
      const status = await tellInPopup(popup);
      expect(status).toMatch(/^(stop|length): relaxed-threads, loaded at /);
      expect(await popup.$eval("#output", ({ textContent }) => textContent)).toMatch(/[a-z]/);

      const ended = new Promise((resolve) =>
        browser.on("targetdestroyed", (target) => target === background && resolve(0)),
      );
      await worker?.close();
      await new Promise((resolve) => setTimeout(resolve, idle * 1000));
      await ended;
      const { text, loadedAt } = await popup.evaluate(() =>
        /** @type {any} */ (globalThis).chrome.runtime.sendMessage({ to: "background", prompt: "The dog" }),
      );
      expect(text).toMatch(/[a-z]/);
      // Another load would have another time.
      expect(status).toContain(loadedAt);
      expect(await tellInPopup(popup)).toContain(loadedAt);
      await browser.close();
    },
  );
});
