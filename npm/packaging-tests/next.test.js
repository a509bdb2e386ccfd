/** A fresh Next.js project without configuration but for its static output, by each of its bundlers. */

import { execSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { fetched, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const NEXT = { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1" };

const LAYOUT = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;

const PAGE = `"use client";
import { useEffect } from "react";
import * as setun from "setun";
export default function Page() {
  useEffect(() => {
    window.setun = setun;
  }, []);
  return <main>setun</main>;
}
`;

const CONFIG = 'export default { output: "export", distDir: process.env.DIST };\n';

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject(
    { "app/layout.js": LAYOUT, "app/page.js": PAGE, "next.config.mjs": CONFIG },
    NEXT,
  );
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
      env: { ...process.env, DIST: bundler, NEXT_TELEMETRY_DISABLED: "1" },
    });
    for (const isolated of [false, true]) {
      const server = await startServer({ root: `${project.folder}/${bundler}`, isolated });
      const { page, requests, errors, close } = await openPage(browser, `${server.url}/index.html`);
      const { result } = await page.evaluate(tellStory, STORY);
      expect(result).toMatchObject({ text: expected, build: isolated ? "relaxed-threads" : "relaxed" });
      expect(fetched(requests).code).toHaveLength(1);
      expect(errors).toEqual([]);
      await close();
      await server.stop();
    }
  });
});
