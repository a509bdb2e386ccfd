/** The story as Node tells it: what every browser's is compared with. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { STORY, tellStory } from "./page.js";
import { writeFiles } from "./project.js";

/** @typedef {typeof STORY & { source?: string }} Story */

/** @param {object[]} stories */
const script = (stories) => `
import * as setun from "setun";
globalThis.setun = setun;
const told = [];
for (const story of ${JSON.stringify(stories)}) told.push(await (${tellStory})(story));
console.log(JSON.stringify(told));
`;

/** @param {string} folder of a project with the package @param {Story} story */
export async function storyInNode(folder, story = STORY) {
  const [told] = await tellIn(folder, process.execPath, [], [story]);
  return told;
}

/**
 * Some stories as another runtime tells them, which is a package of the project.
 * @param {string} folder @param {string[]} command @param {object[]} stories
 */
export function storiesInRuntime(folder, [name = "", ...args], stories) {
  return tellIn(folder, join(folder, "node_modules", ".bin", name), args, stories);
}

/** @param {string} folder @param {string} program @param {string[]} args @param {object[]} stories */
async function tellIn(folder, program, args, stories) {
  await writeFiles(folder, { "story.js": script(stories) });
  const file = join(folder, "story.js");
  return JSON.parse(execFileSync(program, [...args, file], { cwd: folder, encoding: "utf8" }));
}
