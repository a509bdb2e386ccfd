/** The example with Next.js, without configuration but for its static output, by each of its bundlers. */

import { execSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { exampleDependencies, exampleFiles } from "../test-support/examples.js";
import { storyInNode } from "../test-support/node-story.js";
import { fetched } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject(exampleFiles("next"), exampleDependencies("next"));
  expected = (await storyInNode(project.folder)).result.text;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

describe.each(["turbopack", "webpack"])("Next.js with %s", (bundler) => {
  it("runs one build, isolated or not", async () => {
    execSync(`npx next build --${bundler}`, {
      cwd: project.folder,
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
    });
    const built = join(project.folder, "out");
    for (const isolated of [false, true]) {
      const server = await startServer({ root: built, isolated });
      const { page, requests, errors, close } = await openPage(
        browser,
        `${server.url}/index.html`,
        () => document.querySelector("button:enabled") !== null,
      );
      await page.click("button");
      await page.waitForFunction(() =>
        /^finished/.test(document.querySelector("#status")?.textContent ?? ""),
      );
      expect(await page.textContent("#output")).toBe(expected);
      const build = isolated ? "relaxed-threads" : "relaxed";
      expect(await page.textContent("#status")).toMatch(new RegExp(`: (stop|length), ${build}$`));
      expect(fetched(requests).code).toHaveLength(1);
      expect(errors).toEqual([]);
      await close();
      await server.stop();
    }
  });
});
