/** The story as Node tells it: what every browser's is compared with. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { STORY, tellStory } from "./page.js";
import { writeFiles } from "./project.js";

/** @param {typeof STORY & { source?: string }} story */
const script = (story) => `
import * as setun from "setun";
globalThis.setun = setun;
const story = await (${tellStory})(${JSON.stringify(story)});
console.log(JSON.stringify(story));
`;

/** @param {string} folder of a project with the package @param {typeof STORY & { source?: string }} story */
export async function storyInNode(folder, story = STORY) {
  await writeFiles(folder, { "story.js": script(story) });
  return JSON.parse(
    execFileSync(process.execPath, [join(folder, "story.js")], { cwd: folder, encoding: "utf8" }),
  );
}
