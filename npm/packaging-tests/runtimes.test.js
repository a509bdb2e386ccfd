/** Deno and Bun. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storiesInRuntime, storyInNode } from "../test-support/node-story.js";
import { STORY, STRUCTURED } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";

const RUNTIMES = { deno: "2.9.6", bun: "1.4.5" };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject({}, RUNTIMES);
  expected = (await storyInNode(project.folder)).result.text;
});
afterAll(() => project?.remove());

describe.each([["deno", "run", "--allow-read"], ["bun"]])("%s", (...command) => {
  it("tells the story as Node does", async () => {
    const [story, structured] = await storiesInRuntime(project.folder, command, [STORY, STRUCTURED]);
    expect(story.result.text).toBe(expected);
    expect(structured.result.text).toBe("a dog");
  });
});
