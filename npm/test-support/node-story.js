/** The story as Node tells it: what every browser's is compared with. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { STORY, tellStory } from "./page.js";
import { writeFiles } from "./project.js";

const SCRIPT = `
import * as setun from "setun";
globalThis.setun = setun;
const story = await (${tellStory})(${JSON.stringify(STORY)});
console.log(JSON.stringify(story));
`;

/** @param {string} folder of a project with the package */
export async function storyInNode(folder) {
  await writeFiles(folder, { "story.js": SCRIPT });
  return JSON.parse(
    execFileSync(process.execPath, [join(folder, "story.js")], { cwd: folder, encoding: "utf8" }),
  );
}
