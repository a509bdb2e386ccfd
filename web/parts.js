/** Parts that the pages share: `<!-- part: NAME -->` stands for `parts/PAGE-NAME.html` or `parts/NAME.html`. */

import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("parts", import.meta.url));

/** @returns {import("vite").Plugin} */
export function parts() {
  return {
    name: "parts",
    transformIndexHtml: {
      order: "pre",
      handler: (html, { filename }) => filled(html, basename(filename, ".html")),
    },
  };
}

/** @param {string} html @param {string} page @returns {string} */
function filled(html, page) {
  return html.replace(/<!-- part: (\S+) -->/g, (_, name) => {
    const own = join(FOLDER, `${page}-${name}.html`);
    const path = existsSync(own) ? own : join(FOLDER, `${name}.html`);
    return filled(readFileSync(path, "utf8").trimEnd(), page);
  });
}
