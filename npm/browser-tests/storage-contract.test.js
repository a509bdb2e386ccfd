/** The storage contract in browsers. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, launchFirefox, openChromiumProfile, openPage } from "../test-support/browsers.js";
import { startServer } from "../test-support/server.js";

const PAGE =
  '<!doctype html><title>store</title><link rel="icon" href="data:,"><script type="module" src="storage-page.js"></script>';

/** APIs that browsers lacked at first. */
const OLDER = [["createWritable"], ["createWritable", "move"]];

/** @type {string} */
let folder;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "setun-store-"));
  for (const name of ["storage-page", "storage-worker"]) {
    const bundle = await rolldown({
      input: fileURLToPath(new URL(`../tests/${name}.ts`, import.meta.url)),
      resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
    });
    await bundle.write({ file: join(folder, `${name}.js`), format: "esm" });
  }
  await writeFile(join(folder, "index.html"), PAGE);
  server = await startServer({ root: folder });
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe.each([
  ["Chromium", launchChromium],
  ["Firefox", launchFirefox],
])("%s", (name, launch) => {
  /** @type {any} */
  let browser;
  /** @type {any} */
  let page;

  beforeAll(async () => {
    browser = await launch();
    if (name === "Chromium") {
      ({ page } = await openPage(browser, `${server.url}/index.html`));
    } else {
      page = await browser.newPage();
      await page.goto(`${server.url}/index.html`);
      await page.waitForFunction(() => "setun" in globalThis);
    }
  });
  afterAll(() => browser?.close());

  /** @param {object} task */
  const ask = (task) =>
    page.evaluate((/** @type {object} */ each) => /** @type {any} */ (globalThis).setun.ask(each), task);

  it.each([
    ["opfs", []],
    ["cache", []],
    // Older browsers are played by Chromium alone: Firefox has had both as long as files that are written in place.
    ...(name === "Chromium" ? OLDER.map((lacking) => ["opfs", lacking]) : []),
  ])("satisfies the contract: %s without %o", async (storage, lacking) => {
    expect(await ask({ run: "contract", storage, lacking })).toEqual([]);
  });

  it("uses the private file system in a worker, and else the Cache API", async () => {
    expect(await ask({ run: "kind", storage: "own" })).toBe("opfs");
    expect(await ask({ run: "kind", storage: "own", lacking: ["createSyncAccessHandle"] })).toBe("cache");
  });

  it("releases a file and its lock when a worker ends", async () => {
    const found = await page.evaluate(async () => {
      const { start, lockIsAwaited } = /** @type {any} */ (globalThis).setun;
      const first = start({ run: "hold", storage: "opfs" });
      await first.answer;
      const second = start({ run: "take", storage: "opfs", waits: true });
      await lockIsAwaited();
      const unlocked = start({ run: "takeUnlocked", storage: "opfs", waits: true });
      await unlocked.refused;
      first.worker.terminate();
      const found = { unlocked: await unlocked.answer, found: await second.answer };
      for (const { worker } of [second, unlocked]) worker.terminate();
      return found;
    });
    expect(found).toMatchObject({ unlocked: "taken", found: { bytes: Array(10).fill(7) } });
    expect(found.found.lines.length).toBe(2);
  });

  it("reports a locked file", async () => {
    const message = await page.evaluate(async () => {
      const { start, ask } = /** @type {any} */ (globalThis).setun;
      const first = start({ run: "hold", storage: "opfs" });
      await first.answer;
      const second = await ask({ run: "takeUnlocked", storage: "opfs" }).catch(
        (/** @type {Error} */ error) => error.message,
      );
      first.worker.terminate();
      return second;
    });
    expect(message).toMatch(/cannot open models\/h\/o\/n\/r\/model/);
  });

  it("lists and deletes on the page, after the lock's owner", async () => {
    const found = await page.evaluate(async () => {
      const { start, models, lockIsAwaited } = /** @type {any} */ (globalThis).setun;
      const first = start({ run: "hold", storage: "opfs" });
      await first.answer;
      const [before] = await models.list();
      const controller = new AbortController();
      const aborted = models
        .delete(before, { signal: controller.signal })
        .catch((/** @type {unknown} */ reason) => reason);
      await lockIsAwaited();
      controller.abort("enough");
      const reason = await aborted;
      const deletion = models.delete(before);
      await lockIsAwaited();
      first.worker.terminate();
      return { before, reason, deleted: await deletion, after: await models.list() };
    });
    expect(found.before).toMatchObject({ name: "h/o/n", revision: "r", bytes: 10, complete: false });
    expect(found).toMatchObject({ reason: "enough", deleted: true, after: [] });
  });
});

describe("Chromium with little room", () => {
  it.each([
    ["opfs", "private"],
    ["opfs", "kept"],
    ["cache", "private"],
    ["cache", "kept"],
  ])("reports it, and keeps stored chunks: %s, %s", async (storage, window) => {
    const profile = await mkdtemp(join(tmpdir(), "setun-profile-"));
    const browser = window === "private" ? await launchChromium() : await openChromiumProfile(profile);
    try {
      const page = await browser.newPage();
      await page.goto(`${server.url}/index.html`);
      await page.waitForFunction(() => "setun" in globalThis);
      const session = await page.context().newCDPSession(page);
      await session.send("Storage.overrideQuotaForOrigin", { origin: server.url, quotaSize: 20 << 20 });
      const found = await page.evaluate(
        (each) => /** @type {any} */ (globalThis).setun.ask({ run: "fill", storage: each }),
        storage,
      );
      expect(found.code).toBe("storage-full");
      expect(found.message).toMatch(/no room for fill\/model .*models\.delete/);
      expect(found.chunks).toBeGreaterThan(5);
      expect(found.chunks).toBeLessThan(21);
      expect(found.lines).toBe(found.chunks + 1);
    } finally {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    }
  });
});
